//! An Env whose clocks a test moves: everything else is another one's.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use terrace::{
    CreateOptions, Env, FileLock, Job, LockMode, Priority, RandomAccessFile, ReadAccess, Result,
    WritableFile,
};

/// The wall clock's time to begin with, in milliseconds since 1970.
pub const START: u64 = 1_750_000_000_000;

/// See the [module](self). The clocks also move on by themselves, as those of the inner Env do.
pub struct Clocked {
    inner: Arc<dyn Env>,
    began: u64,
    /// By how much both clocks were moved on, and the wall clock alone, in microseconds.
    advanced: AtomicU64,
    jumped: AtomicI64,
    /// Jobs by the microsecond at which they are due.
    later: Mutex<Vec<(u64, Job)>>,
    /// Runs in the thread that reads the wall clock next, after the reading.
    amid_a_look: Mutex<Option<Amid>>,
}

type Amid = Box<dyn FnOnce(&Clocked) + Send>;

impl Clocked {
    /// Files, locks and threads are those of `inner`.
    pub fn over(inner: Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Clocked {
            began: inner.now_micros(),
            inner,
            advanced: AtomicU64::new(0),
            jumped: AtomicI64::new(0),
            later: Mutex::default(),
            amid_a_look: Mutex::default(),
        })
    }

    /// Runs just after the next reading of the wall clock, before its reader goes on.
    pub fn amid_the_next_look(&self, event: impl FnOnce(&Clocked) + Send + 'static) {
        *self.amid_a_look.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(event));
    }

    /// Lets time pass: background threads get what is due by then.
    pub fn advance(&self, duration: Duration) {
        self.advanced.fetch_add(duration.as_micros() as u64, Ordering::SeqCst);
        let now = self.now_micros();
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        let (due, rest) = later.drain(..).partition(|(at, _)| *at <= now);
        *later = rest;
        drop(later);
        let due: Vec<_> = due;
        due.into_iter().for_each(|(_, job)| self.inner.schedule(Priority::Compaction, job));
    }

    /// Sets the wall clock alone forwards or backwards.
    pub fn jump(&self, seconds: i64) {
        self.jumped.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    /// The time of the wall clock, in milliseconds since 1970.
    pub fn millis(&self) -> u64 {
        self.wall_clock().as_millis() as u64
    }
}

impl Env for Clocked {
    fn now_micros(&self) -> u64 {
        self.inner.now_micros() + self.advanced.load(Ordering::SeqCst)
    }

    fn wall_clock(&self) -> Duration {
        let passed = (self.now_micros() - self.began) as i64;
        let micros = (START * 1000) as i64 + passed + self.jumped.load(Ordering::SeqCst);
        let event = self.amid_a_look.lock().unwrap_or_else(PoisonError::into_inner).take();
        event.into_iter().for_each(|event| event(self));
        Duration::from_micros(micros.max(0) as u64)
    }

    fn schedule_after(&self, delay: Duration, job: Job) -> bool {
        let at = self.now_micros() + delay.as_micros() as u64;
        self.later.lock().unwrap_or_else(PoisonError::into_inner).push((at, job));
        true
    }

    fn schedule(&self, priority: Priority, job: Job) {
        self.inner.schedule(priority, job);
    }

    fn yield_to_flushes(&self) {
        self.inner.yield_to_flushes();
    }

    fn set_background_threads(&self, count: usize) -> Result<()> {
        self.inner.set_background_threads(count)
    }

    fn sleep(&self, duration: Duration) {
        self.inner.sleep(duration);
    }

    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        self.inner.open_random(path, access)
    }

    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        self.inner.create(path, options)
    }

    fn create_log(
        &self,
        path: &Path,
        options: CreateOptions,
        expected_size: u64,
    ) -> Result<Box<dyn WritableFile>> {
        self.inner.create_log(path, options, expected_size)
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WritableFile>> {
        self.inner.open_append(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn create_dir(&self, path: &Path, mode: u32) -> Result<()> {
        self.inner.create_dir(path, mode)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.inner.remove_dir(path)
    }

    fn true_path(&self, dir: &Path) -> PathBuf {
        self.inner.true_path(dir)
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        self.inner.file_size(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn has_other_names(&self, path: &Path) -> Result<bool> {
        self.inner.has_other_names(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
        self.inner.lock(path, mode)
    }

    fn available_memory(&self) -> Option<u64> {
        self.inner.available_memory()
    }

    fn process_generation(&self) -> u64 {
        self.inner.process_generation()
    }
}
