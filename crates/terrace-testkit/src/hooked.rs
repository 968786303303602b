//! An Env in memory under which something happens in the middle of an operation, and whose clock
//! may go back.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use terrace::{
    CreateOptions, Env, FileLock, Job, LockMode, MemEnv, Priority, RandomAccessFile, ReadAccess,
    Result, WritableFile,
};

type Hook = Box<dyn FnOnce(&Path) + Send>;

/// See the [module](self).
#[derive(Default)]
pub struct Hooked {
    files: MemEnv,
    hook: Mutex<Option<(&'static str, Hook)>>,
    goes_back: AtomicBool,
    looks: AtomicU64,
}

impl Hooked {
    /// Has `hook` called, once, before the next `operation`: "link" or "remove", a space, and how
    /// the name ends, or nothing.
    pub fn once_at(&self, operation: &'static str, hook: impl FnOnce(&Path) + Send + 'static) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((operation, Box::new(hook)));
    }

    /// From now on every look at the clock finds it a second earlier.
    pub fn set_the_clock_back(&self) {
        self.goes_back.store(true, Ordering::Relaxed);
    }

    fn operate(&self, operation: &str, path: &Path) {
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        let matches = |(wanted, _): &mut (&'static str, Hook)| {
            let (kind, suffix) = wanted.split_once(' ').unwrap_or((wanted, ""));
            kind == operation && path.to_string_lossy().ends_with(suffix)
        };
        let due = hook.take_if(|hook| matches(hook));
        drop(hook);
        if let Some((_, hook)) = due {
            hook(path);
        }
    }
}

impl Env for Hooked {
    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.operate("link", from);
        self.files.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.operate("remove", path);
        self.files.remove(path)
    }

    fn now_micros(&self) -> u64 {
        match self.goes_back.load(Ordering::Relaxed) {
            true => (1 << 50) - 1_000_000 * self.looks.fetch_add(1, Ordering::Relaxed),
            false => self.files.now_micros(),
        }
    }

    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        self.files.open_random(path, access)
    }

    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
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
        self.files.schedule(priority, job);
    }

    fn set_background_threads(&self, count: usize) -> Result<()> {
        self.files.set_background_threads(count)
    }

    fn wall_clock(&self) -> Duration {
        self.files.wall_clock()
    }

    fn sleep(&self, duration: Duration) {
        self.files.sleep(duration);
    }
}
