//! The world of one explored schedule: files in memory, background threads of its own, a clock that
//! only its use moves.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::pool::Pool;
use super::{
    CreateOptions, Env, FileLock, Job, LockMode, MemEnv, Priority, RandomAccessFile, ReadAccess,
    WritableFile,
};
use crate::base::error::{Error, Result};
use crate::base::locks::plain::Mutex;

/// See the [module](self).
pub(crate) struct ExploredEnv {
    files: MemEnv,
    pool: Arc<Pool>,
    micros: AtomicU64,
    /// Which tables cannot be created, counted from the next one on.
    failing_tables: Mutex<Range<i32>>,
}

impl ExploredEnv {
    pub(crate) fn new() -> Arc<ExploredEnv> {
        let (micros, failing_tables) = (AtomicU64::new(0), Mutex::default());
        Arc::new(ExploredEnv { files: MemEnv::new(), pool: Pool::new(1), micros, failing_tables })
    }

    /// Fails to create these tables of those to come: 0 is the next one.
    pub(crate) fn fail_tables(&self, which: Range<i32>) {
        *self.failing_tables.lock() = which;
    }

    fn next_table_fails(&self) -> bool {
        let mut failing = self.failing_tables.lock();
        let fails = failing.contains(&0);
        *failing = failing.start - 1..failing.end - 1;
        fails
    }
}

impl Env for ExploredEnv {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        self.files.open_random(path, access)
    }

    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        let is_table = path.extension().is_some_and(|extension| extension == "ldb");
        if is_table && self.next_table_fails() {
            return Err(Error::io_message(format!("creating {}: the disk fails", path.display())));
        }
        self.files.create(path, options)
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WritableFile>> {
        self.files.open_append(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.files.exists(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.files.list(dir)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.files.remove(path)
    }

    fn create_dir(&self, path: &Path, mode: u32) -> Result<()> {
        self.files.create_dir(path, mode)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.files.remove_dir(path)
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        self.files.file_size(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.files.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.files.sync_dir(dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
        self.files.lock(path, mode)
    }

    fn schedule(&self, priority: Priority, job: Job) {
        self.pool.schedule(priority, job);
    }

    fn set_background_threads(&self, count: usize) -> Result<()> {
        self.pool.grow(count)
    }

    fn now_micros(&self) -> u64 {
        self.micros.fetch_add(100, Ordering::Relaxed)
    }

    fn wall_clock(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) {
        shuttle::thread::yield_now();
    }
}
