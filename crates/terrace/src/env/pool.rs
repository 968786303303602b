//! The background threads of the process: one pool, two queues, shared by all databases.
//!
//! Any thread may schedule; jobs run on threads named `terrace-bg`, never on the caller's.
//!
//! # Invariants
//! 1. A flush is taken before any other job that waits.
//! 2. At most `limit` jobs of the compaction priority run at once. If all threads are busy when a
//!    flush arrives, one thread beyond `limit` is started for it, so no flush waits for a long
//!    compaction.
//! 3. A first thread starts with the first database, the others when they are needed. They are
//!    detached: they never keep a process alive, and they are reused for ever.
//! 4. A panic in a job ends that job only.
//! 5. Threads do not cross a fork. A child gets a fresh, empty pool; jobs that were queued in its
//!    parent are the parent's.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use rustix::process::{Resource, getrlimit};

use crate::base::error::{Error, Result};
use crate::base::fork::generation;
use crate::base::locks::{Condvar, Mutex, thread};

use super::{Job, Priority, pace};

static SHARED: LazyLock<ArcSwap<Pool>> = LazyLock::new(|| ArcSwap::new(Pool::new(1)));

/// The pool of this process.
pub(super) fn shared() -> Arc<Pool> {
    let pool = SHARED.load_full();
    if pool.generation == generation() {
        return pool;
    }
    SHARED.rcu(
        |current| if current.generation == generation() { current.clone() } else { Pool::new(1) },
    );
    // The inherited pool is not dropped: its jobs hold parts of databases that belong to the
    // parent.
    std::mem::forget(pool);
    SHARED.load_full()
}

/// The stack of a background thread where the system sets no bound, which is what LevelDB's have by
/// default. Comparators, filter policies and jobs of the program's own run there.
const DEFAULT_STACK: usize = 8 << 20;

/// No limit asks for less or more.
const LEAST_STACK: usize = 1 << 20;
const LARGEST_STACK: u64 = 1 << 30;

/// As much stack as the system gives the threads of C programs, within bounds. A program whose memory
/// is scarce asks for less by its limit (`ulimit -s`).
fn stack_size() -> usize {
    let limit = getrlimit(Resource::Stack).current.filter(|&limit| limit <= LARGEST_STACK);
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    limit.map_or(DEFAULT_STACK, |limit| limit.max(LEAST_STACK))
}

/// A set of background threads and the jobs that wait for them.
pub(super) struct Pool {
    generation: u64,
    state: Mutex<State>,
    work: Condvar,
}

struct State {
    flushes: VecDeque<Job>,
    others: VecDeque<Job>,
    limit: usize,
    threads: usize,
    idle: usize,
    running_others: usize,
}

impl State {
    fn may_start_thread(&self) -> bool {
        let extra_for_flush = self.threads == self.limit && !self.flushes.is_empty();
        self.threads < self.limit || extra_for_flush
    }

    fn take(&mut self) -> Option<(Priority, Job)> {
        if let Some(job) = self.flushes.pop_front() {
            return Some((Priority::Flush, job));
        }
        if self.running_others >= self.limit {
            return None;
        }
        let job = self.others.pop_front()?;
        self.running_others += 1;
        Some((Priority::Compaction, job))
    }
}

impl Pool {
    pub(super) fn new(limit: usize) -> Arc<Pool> {
        Arc::new(Pool {
            generation: generation(),
            state: Mutex::new(State {
                flushes: VecDeque::new(),
                others: VecDeque::new(),
                limit,
                threads: 0,
                idle: 0,
                running_others: 0,
            }),
            work: Condvar::new(),
        })
    }

    /// Queues `job`. Without a thread, which [`grow`](Self::grow) starts, it waits until a later
    /// call can start one.
    pub(super) fn schedule(self: &Arc<Self>, priority: Priority, job: Job) {
        pace::work_is_scheduled();
        let mut state = self.state.lock();
        match priority {
            Priority::Flush => state.flushes.push_back(job),
            Priority::Compaction => state.others.push_back(job),
        }
        self.staff(&mut state);
    }

    /// Raises the number of threads to `count`; never lowers it. An error if there is no thread and
    /// none can be started.
    pub(super) fn grow(self: &Arc<Self>, count: usize) -> Result<()> {
        let mut state = self.state.lock();
        state.limit = state.limit.max(count);
        self.staff(&mut state);
        match state.threads {
            0 => self.start(&mut state).map_err(|error| {
                Error::io_message(format!("cannot start a background thread: {error}"))
            }),
            _ => Ok(()),
        }
    }

    /// Starts threads, or wakes one, for the jobs that wait.
    fn staff(self: &Arc<Self>, state: &mut State) {
        while state.idle < state.flushes.len() + state.others.len() && state.may_start_thread() {
            if self.start(state).is_err() {
                break;
            }
        }
        self.work.notify_one();
    }

    fn start(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        let pool = Arc::clone(self);
        let thread = thread::Builder::new().name("terrace-bg".into()).stack_size(stack_size());
        thread.spawn(move || pool.work())?;
        state.threads += 1;
        // Counted as idle until it takes its first job, so that one job does not start two threads.
        state.idle += 1;
        Ok(())
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            let Some((priority, job)) = state.take() else {
                self.work.wait(&mut state);
                continue;
            };
            state.idle -= 1;
            drop(state);
            pace::before_work();
            // What the job shared is its owner's to judge; the pool shares nothing with it.
            let _ = catch_unwind(AssertUnwindSafe(job));
            state = self.state.lock();
            state.idle += 1;
            if priority == Priority::Compaction {
                state.running_others -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A job that says it started and then waits to be released.
    fn held(name: &'static str, started: &Sender<&'static str>) -> (Job, Sender<()>) {
        let (release, released): (Sender<()>, Receiver<()>) = channel();
        let started = started.clone();
        let job = Box::new(move || {
            started.send(name).unwrap();
            released.recv().unwrap();
        });
        (job, release)
    }

    #[test]
    fn flush_runs_beside_compactions_and_goes_first() {
        let pool = Pool::new(1);
        let (started, events) = channel();
        let (compaction, release_compaction) = held("compaction", &started);
        let (second, release_second) = held("second", &started);
        let (flush, release_flush) = held("flush", &started);
        pool.schedule(Priority::Compaction, compaction);
        assert_eq!(events.recv().unwrap(), "compaction");
        pool.schedule(Priority::Compaction, second);
        pool.schedule(Priority::Flush, flush);
        assert_eq!(events.recv().unwrap(), "flush");
        assert_eq!(pool.state.lock().threads, 2);
        // The extra thread does not take the second compaction.
        release_flush.send(()).unwrap();
        let (another, release_another) = held("another flush", &started);
        pool.schedule(Priority::Flush, another);
        assert_eq!(events.recv().unwrap(), "another flush");
        assert_eq!(pool.state.lock().running_others, 1);
        release_compaction.send(()).unwrap();
        assert_eq!(events.recv().unwrap(), "second");
        release_second.send(()).unwrap();
        release_another.send(()).unwrap();
        assert_eq!(pool.state.lock().threads, 2);
    }

    #[test]
    fn a_panic_ends_only_its_job() {
        let pool = Pool::new(1);
        let (done, finished) = channel();
        pool.schedule(
            Priority::Compaction,
            Box::new(|| std::panic::resume_unwind(Box::new("expected"))),
        );
        pool.schedule(
            Priority::Compaction,
            Box::new(move || done.send(thread::current().name().map(String::from)).unwrap()),
        );
        assert_eq!(finished.recv().unwrap().as_deref(), Some("terrace-bg"));
        assert_eq!(pool.state.lock().threads, 1);
    }

    #[test]
    fn growing_lets_waiting_jobs_run() {
        let pool = Pool::new(1);
        let (started, events) = channel();
        let jobs: Vec<_> = (0..3).map(|_| held("job", &started)).collect();
        let releases: Vec<_> = jobs
            .into_iter()
            .map(|(job, release)| {
                pool.schedule(Priority::Compaction, job);
                release
            })
            .collect();
        assert_eq!(events.recv().unwrap(), "job");
        assert!(events.try_recv().is_err());
        pool.grow(3).unwrap();
        assert_eq!((events.recv().unwrap(), events.recv().unwrap()), ("job", "job"));
        releases.iter().for_each(|release| release.send(()).unwrap());
    }
}

#[cfg(all(test, loom))]
mod interleavings;
