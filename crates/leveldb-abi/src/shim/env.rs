//! A program's own environment, under the engine: every file, lock, job and moment goes through its
//! virtual functions.
//!
//! Calls that LevelDB's interface lacks are left out: directories are not synced, files are
//! neither mapped nor trimmed nor prepared ahead, and there is one kind of lock.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, ptr};

use terrace::{
    CreateOptions, Env, Error, FileLock, Job, LockMode, Logger, PosixEnv, Priority,
    RandomAccessFile, ReadAccess, Result, WritableFile,
};

use super::calls::{EnvCalls, EnvHandle, LoggerCalls};
use super::components::LoggerAdapter;
use super::env_files::{CustomFile, CustomRandomFile, EmptyFile};
use super::outcome::{Bytes, Outcome};

/// A `leveldb::Env` that is not the default one.
#[derive(Clone)]
pub(super) struct CustomEnv {
    object: *mut c_void,
    calls: &'static EnvCalls,
    waiting: Arc<Mutex<Waiting>>,
}

// SAFETY: LevelDB asks of environments that any thread may call them at any time.
unsafe impl Send for CustomEnv {}
// SAFETY: likewise.
unsafe impl Sync for CustomEnv {}

fn bytes(path: &Path) -> Bytes {
    Bytes::of(path.as_os_str().as_bytes())
}

/// Jobs that wait for a thread of the environment's. There may be one such thread for everything,
/// so each time it comes it takes a flush if there is one.
#[derive(Default)]
struct Waiting {
    flushes: VecDeque<Job>,
    others: VecDeque<Job>,
}

impl Waiting {
    fn add(&mut self, priority: Priority, job: Job) {
        match priority {
            Priority::Flush => self.flushes.push_back(job),
            Priority::Compaction => self.others.push_back(job),
        }
    }
}

thread_local! {
    /// Whether this thread is at a job.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Does a job. The thread is the program's: nothing may unwind into it.
fn run(job: Option<Job>) {
    if let Some(job) = job {
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

/// Does the most urgent of the jobs that [`Env::schedule`] left.
unsafe extern "C" fn run_job(argument: *mut c_void) {
    // SAFETY: the argument is what `schedule` passed, once.
    let waiting = unsafe { Arc::from_raw(argument.cast::<Mutex<Waiting>>()) };
    let next = {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.flushes.pop_front().or_else(|| waiting.others.pop_front())
    };
    let before = AT_WORK.replace(true);
    run(next);
    AT_WORK.set(before);
}

/// Collects names into a `Vec<String>`, leaving out those that are not UTF-8, which no file of a
/// database has.
unsafe extern "C" fn push_name(target: *mut c_void, data: *const std::ffi::c_char, size: usize) {
    // SAFETY: passed together with the address of such a vector.
    unsafe {
        let names = &mut *target.cast::<Vec<String>>();
        names.extend(std::str::from_utf8(crate::memory::bytes(data, size)).map(str::to_owned));
    }
}

impl CustomEnv {
    /// # Safety
    /// The object outlives the result.
    pub(super) unsafe fn adapter(env: EnvHandle) -> Option<Arc<dyn Env>> {
        // SAFETY: guaranteed by the caller.
        unsafe { CustomEnv::new(env) }.map(|env| Arc::new(env) as Arc<dyn Env>)
    }

    /// # Safety
    /// The object outlives the result; the calls are static.
    unsafe fn new(env: EnvHandle) -> Option<Self> {
        if env.object.is_null() {
            return None;
        }
        // SAFETY: guaranteed by the caller.
        let calls = unsafe { env.calls.as_ref() }?;
        Some(CustomEnv { object: env.object, calls, waiting: Arc::default() })
    }

    /// A call that opens something.
    fn open(
        &self,
        call: unsafe extern "C" fn(*mut c_void, Bytes, *mut *mut c_void) -> Outcome,
        path: &Path,
    ) -> Result<*mut c_void> {
        let mut opened = ptr::null_mut();
        // SAFETY: the object is alive, by `new`.
        unsafe { call(self.object, bytes(path), &mut opened).into_result()? };
        Ok(opened)
    }

    fn call(
        &self,
        call: unsafe extern "C" fn(*mut c_void, Bytes) -> Outcome,
        path: &Path,
    ) -> Result<()> {
        // SAFETY: as above.
        unsafe { call(self.object, bytes(path)).into_result() }
    }

    /// The names in a directory of this very name.
    fn list_named(&self, dir: &[u8]) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        // SAFETY: the object is alive; the target is the vector that `push_name` expects.
        unsafe {
            let target = ptr::from_mut(&mut names).cast();
            (self.calls.list)(self.object, Bytes::of(dir), target, push_name).into_result()?;
        }
        Ok(names)
    }
}

impl Env for CustomEnv {
    fn open_random(&self, path: &Path, _access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        if self.file_size(path).is_ok_and(|size| size == 0) {
            return Ok(Arc::new(EmptyFile));
        }
        let (mut file, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the object is alive; what is opened is ours.
        unsafe {
            (self.calls.open_random)(self.object, bytes(path), &mut file, &mut size)
                .into_result()?;
            Ok(Arc::new(CustomRandomFile::owned(file, size, self.calls.random)))
        }
    }

    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        if options.exclusive && self.exists(path)? {
            return Err(Error::io("create", path, io::Error::from_raw_os_error(libc::EEXIST)));
        }
        let file = self.open(self.calls.create, path)?;
        // SAFETY: what was opened is ours.
        Ok(Box::new(unsafe { CustomFile::owned(file, self.calls.file) }))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WritableFile>> {
        let file = self.open(self.calls.open_append, path)?;
        // SAFETY: as above.
        Ok(Box::new(unsafe { CustomFile::owned(file, self.calls.file) }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        // SAFETY: the object is alive.
        Ok(unsafe { (self.calls.exists)(self.object, bytes(path)) != 0 })
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        // Names of files have one slash behind that of the directory, however it is written: an
        // environment may compare names as text. For such a one the root's is empty.
        let name = dir.as_os_str().as_bytes();
        if name != b"/" {
            return self.list_named(name.strip_suffix(b"/").unwrap_or(name));
        }
        match self.list_named(name) {
            Ok(names) if !names.is_empty() => Ok(names),
            listed => self.list_named(b"").or(listed),
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.call(self.calls.remove, path)
    }

    fn create_dir(&self, path: &Path, _mode: u32) -> Result<()> {
        self.call(self.calls.create_dir, path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.call(self.calls.remove_dir, path)
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        let mut size = 0;
        // SAFETY: the object is alive.
        unsafe { (self.calls.file_size)(self.object, bytes(path), &mut size).into_result()? };
        Ok(size)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        // SAFETY: the object is alive.
        unsafe { (self.calls.rename)(self.object, bytes(from), bytes(to)).into_result() }
    }

    fn sync_dir(&self, _dir: &Path) -> Result<()> {
        // LevelDB's interface has no call for it: an environment does it in WritableFile::Sync, if
        // at all.
        Ok(())
    }

    fn true_path(&self, dir: &Path) -> PathBuf {
        // The program's environment knows the names that the program gives, and may know no others.
        dir.to_owned()
    }

    fn lock(&self, path: &Path, _mode: LockMode) -> Result<Box<dyn FileLock>> {
        let lock = self.open(self.calls.lock, path)?;
        Ok(Box::new(CustomLock { env: self.clone(), lock }))
    }

    fn schedule(&self, priority: Priority, job: Job) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).add(priority, job);
        let argument = Arc::into_raw(Arc::clone(&self.waiting)).cast_mut().cast();
        // SAFETY: the object is alive; the environment calls `run_job` once.
        unsafe { (self.calls.schedule)(self.object, run_job, argument) };
    }

    fn yield_to_flushes(&self) {
        if AT_WORK.get() {
            let flush =
                self.waiting.lock().unwrap_or_else(PoisonError::into_inner).flushes.pop_front();
            run(flush);
        }
    }

    fn set_background_threads(&self, _count: usize) -> Result<()> {
        Ok(())
    }

    fn now_micros(&self) -> u64 {
        // SAFETY: the object is alive.
        unsafe { (self.calls.now_micros)(self.object) }
    }

    fn wall_clock(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        // SAFETY: the object is alive.
        unsafe { (self.calls.sleep)(self.object, micros) };
    }

    fn process_generation(&self) -> u64 {
        PosixEnv::shared().process_generation()
    }
}

/// A lock that the environment gave.
struct CustomLock {
    env: CustomEnv,
    lock: *mut c_void,
}

// SAFETY: as its environment.
unsafe impl Send for CustomLock {}
// SAFETY: likewise.
unsafe impl Sync for CustomLock {}

impl FileLock for CustomLock {}

impl Drop for CustomLock {
    fn drop(&mut self) {
        // SAFETY: the environment is alive, and gave the lock.
        unsafe { (self.env.calls.unlock)(self.env.object, self.lock) };
    }
}

/// The file `LOG` of a database in a program's own environment, made by the environment's
/// `NewLogger` when there is a first message: by then the directory exists and the lock is held.
pub(super) struct EnvLogger {
    env: CustomEnv,
    path: PathBuf,
    made: OnceLock<Option<LoggerAdapter>>,
}

impl EnvLogger {
    /// The logger of the database in `dir`; `None` in the system's environment, where the engine
    /// has its own.
    ///
    /// # Safety
    /// The environment outlives the result.
    pub(super) unsafe fn adapter(env: EnvHandle, dir: &Path) -> Option<Arc<dyn Logger>> {
        // SAFETY: guaranteed by the caller.
        let env = unsafe { CustomEnv::new(env) }?;
        Some(Arc::new(EnvLogger { env, path: dir.join("LOG"), made: OnceLock::new() }))
    }

    fn make(&self) -> Option<LoggerAdapter> {
        // There need not be an old one.
        let _ = self.env.rename(&self.path, &self.path.with_extension("old"));
        let mut logger = LoggerCalls { object: ptr::null_mut(), log: None };
        // SAFETY: the environment is alive, by `adapter`.
        let made = unsafe {
            (self.env.calls.new_logger)(self.env.object, bytes(&self.path), &mut logger)
                .into_result()
        };
        (made.is_ok() && !logger.object.is_null()).then_some(LoggerAdapter(logger))
    }
}

impl Logger for EnvLogger {
    fn log(&self, message: &str) {
        if let Some(logger) = self.made.get_or_init(|| self.make()) {
            logger.log(message);
        }
    }
}

impl Drop for EnvLogger {
    fn drop(&mut self) {
        if let Some(Some(logger)) = self.made.get() {
            // SAFETY: the environment made it for this one, and it is not used again.
            unsafe { (self.env.calls.release_logger)(logger.0.object) };
        }
    }
}
