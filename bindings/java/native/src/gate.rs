//! The operating system as a database of Java sees it: background work can be suspended, and
//! nothing becomes part of the database any more once its comparator has failed.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use terrace::{
    CreateOptions, Env, FileLock, FileSyncer, Job, LockMode, PosixEnv, Priority, RandomAccessFile,
    ReadAccess, Result, WritableFile,
};

use crate::comparator_failure::ComparatorFailure;

#[derive(Default)]
struct Jobs {
    /// No job begins.
    suspended: bool,
    /// Nothing that is like one begins on the program's threads: so before jobs are suspended, too.
    suspending: bool,
    /// Compactions and the like on the program's threads.
    foreground: usize,
    /// The database is closing, and waits for its jobs: they are not suspended any more.
    ended: bool,
    running: usize,
    waiting: Vec<(Priority, Job)>,
}

#[derive(Default)]
struct Gate {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job is over, however it ends.
struct Running(Arc<Gate>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.changed.notify_all();
    }
}

/// The same on a thread of the program's.
struct Foreground(Arc<Gate>);

impl Drop for Foreground {
    fn drop(&mut self) {
        self.0.lock().foreground -= 1;
        self.0.changed.notify_all();
    }
}

/// One database's view of the operating system.
pub(crate) struct GatedEnv {
    inner: Arc<dyn Env>,
    gate: Arc<Gate>,
    failure: Arc<ComparatorFailure>,
}

impl GatedEnv {
    /// A view with the gate open.
    pub(crate) fn new(failure: Arc<ComparatorFailure>) -> Self {
        GatedEnv { inner: PosixEnv::shared(), gate: Arc::default(), failure }
    }

    /// Begins no more jobs, and waits until none is running, at most for `time`. Returns whether
    /// none is; if not, some of them may still begin. Once the gate is open for good, does nothing
    /// and returns false.
    pub(crate) fn suspend(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut jobs = self.gate.lock();
        loop {
            if jobs.ended {
                return false;
            }
            jobs.suspending = true;
            // Those on the program's threads first: they wait for jobs.
            if jobs.foreground == 0 {
                jobs.suspended = true;
                if jobs.running == 0 {
                    return true;
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.gate.changed.wait_timeout(jobs, left);
            jobs = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Does `work`, which changes the database's files on this thread, once they may change.
    pub(crate) fn foreground<R>(&self, work: impl FnOnce() -> R) -> R {
        let mut jobs = self.gate.lock();
        while jobs.suspending && !jobs.ended {
            jobs = self.gate.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
        jobs.foreground += 1;
        drop(jobs);
        let _over = Foreground(self.gate.clone());
        work()
    }

    /// Begins the jobs that waited, and those to come.
    pub(crate) fn resume(&self) {
        self.open_gate(false);
    }

    /// As [`resume`](Self::resume), for good.
    pub(crate) fn end(&self) {
        self.open_gate(true);
    }

    fn open_gate(&self, for_good: bool) {
        let waiting = {
            let mut jobs = self.gate.lock();
            (jobs.suspended, jobs.suspending) = (false, false);
            jobs.ended |= for_good;
            std::mem::take(&mut jobs.waiting)
        };
        self.gate.changed.notify_all();
        waiting.into_iter().for_each(|(priority, job)| self.begin(priority, job));
    }

    fn begin(&self, priority: Priority, job: Job) {
        let gate = self.gate.clone();
        let inner = self.inner.clone();
        self.inner.schedule(priority, Box::new(move || run(&gate, &inner, priority, job)));
    }
}

/// Runs a job, or keeps it until the gate opens.
fn run(gate: &Arc<Gate>, inner: &Arc<dyn Env>, priority: Priority, job: Job) {
    {
        let mut jobs = gate.lock();
        if jobs.suspended {
            let (gate, inner) = (gate.clone(), inner.clone());
            let again = Box::new(move || run(&gate, &inner, priority, job));
            jobs.waiting.push((priority, again));
            return;
        }
        jobs.running += 1;
    }
    let _running = Running(gate.clone());
    job();
}

/// A MANIFEST whose database may lose its comparator.
struct GuardedFile {
    inner: Box<dyn WritableFile>,
    failure: Arc<ComparatorFailure>,
}

impl WritableFile for GuardedFile {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.failure.check()?;
        self.inner.append(data)
    }

    fn append_parts(&mut self, parts: &mut [IoSlice<'_>], headers: &[usize]) -> Result<()> {
        self.failure.check()?;
        self.inner.append_parts(parts, headers)
    }

    fn sync(&mut self) -> Result<()> {
        self.inner.sync()
    }

    fn syncer(&self) -> Option<Arc<dyn FileSyncer>> {
        self.inner.syncer()
    }

    fn set_path(&mut self, path: &Path) {
        self.inner.set_path(path);
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}

impl GatedEnv {
    fn guard(&self, path: &Path, file: Box<dyn WritableFile>) -> Box<dyn WritableFile> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with("MANIFEST-") {
            return file;
        }
        Box::new(GuardedFile { inner: file, failure: self.failure.clone() })
    }
}

impl Env for GatedEnv {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        self.inner.open_random(path, access)
    }

    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        self.failure.check()?;
        Ok(self.guard(path, self.inner.create(path, options)?))
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
        Ok(self.guard(path, self.inner.open_append(path)?))
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

    fn schedule(&self, priority: Priority, job: Job) {
        self.begin(priority, job);
    }

    /// Not suspended: what is due by time only decides which work there is.
    fn schedule_after(&self, delay: Duration, job: Job) -> bool {
        self.inner.schedule_after(delay, job)
    }

    fn yield_to_flushes(&self) {
        self.inner.yield_to_flushes();
    }

    fn set_background_threads(&self, count: usize) -> Result<()> {
        self.inner.set_background_threads(count)
    }

    fn now_micros(&self) -> u64 {
        self.inner.now_micros()
    }

    fn wall_clock(&self) -> Duration {
        self.inner.wall_clock()
    }

    fn sleep(&self, duration: Duration) {
        self.inner.sleep(duration);
    }

    fn available_memory(&self) -> Option<u64> {
        self.inner.available_memory()
    }

    fn process_generation(&self) -> u64 {
        self.inner.process_generation()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn env() -> GatedEnv {
        GatedEnv::new(Arc::default())
    }

    #[test]
    fn what_is_due_by_time_alone_runs() {
        let (done, runs) = channel();
        let job = move || done.send(()).unwrap();
        assert!(env().schedule_after(Duration::from_millis(1), Box::new(job)));
        runs.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn jobs_run_once_the_database_closes_whoever_suspends_them() {
        let env = env();
        assert!(env.suspend(LONG));
        let (done, runs) = channel();
        for _ in 0..2 {
            let done = done.clone();
            env.schedule(Priority::Compaction, Box::new(move || done.send(()).unwrap()));
        }
        env.end();
        assert!(!env.suspend(LONG));
        env.schedule(Priority::Flush, Box::new(move || done.send(()).unwrap()));
        for _ in 0..3 {
            runs.recv_timeout(LONG).unwrap();
        }
    }
}
