//! Executes a compaction in several key ranges at once.
//!
//! The calling thread works too, and background threads help when they are free: the caller takes
//! every range that no helper has begun. So a compaction never waits for threads that are busy
//! elsewhere.
//!
//! # Invariants
//! 1. A user key belongs to one range: drop rules see all of its entries together.
//! 2. The outputs come in the order of the ranges, so that they ascend and are disjoint.
//! 3. If a range fails, the others end soon, and no output is left behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::base::locks::{Condvar, Mutex};
use crate::env::Priority;

use super::job::{CompactionJob, UserRange};
use super::output::Output;
use super::plan::Plan;

/// A range is not worth a thread below this many output files of input, or [`ENOUGH_A_RANGE`] if
/// that is less, and never below two files.
const FILES_A_RANGE: u64 = 4;
const ENOUGH_A_RANGE: u64 = 8 << 20;
/// Ranges for each thread, so that none waits long for another at the end.
const RANGES_A_THREAD: usize = 2;

struct Subcompactions {
    job: CompactionJob,
    failed: AtomicBool,
    state: Mutex<State>,
    done: Condvar,
}

struct State {
    /// From the last to the first, each with its place.
    waiting: Vec<(usize, UserRange)>,
    running: usize,
    finished: Vec<(usize, Vec<Output>)>,
    /// The first one, which made the others stop.
    failure: Option<Error>,
}

/// Compacts on this thread and up to `helpers` others. The outputs are durable but not installed.
pub(crate) fn run(job: CompactionJob, helpers: usize) -> Result<Vec<Output>> {
    let ranges = split(&job.plan, &job.order.keys, helpers, job.max_file_size);
    if ranges.len() < 2 {
        return job.run(&UserRange::default(), &|| false);
    }
    let env = job.outputs.env.clone();
    let waiting = ranges.into_iter().enumerate().rev().collect();
    let state = Mutex::new(State { waiting, running: 0, finished: Vec::new(), failure: None });
    let subcompactions = Arc::new(Subcompactions {
        job,
        failed: AtomicBool::new(false),
        state,
        done: Condvar::new(),
    });
    for _ in 0..helpers {
        // A helper that comes too late finds nothing, and holds no table until then.
        let subcompactions = Arc::downgrade(&subcompactions);
        let work = move || {
            if let Some(subcompactions) = subcompactions.upgrade() {
                while subcompactions.run_one() {}
            }
        };
        env.schedule(Priority::Compaction, Box::new(work));
    }
    while subcompactions.run_one() {}
    subcompactions.collect()
}

impl Subcompactions {
    /// Compacts the first waiting range. Returns whether there was one.
    fn run_one(&self) -> bool {
        let Some((place, range)) = ({
            let mut state = self.state.lock();
            let next = state.waiting.pop();
            state.running += usize::from(next.is_some());
            next
        }) else {
            return false;
        };
        let failed = || self.failed.load(Ordering::Relaxed);
        let compacted = catch_unwind(AssertUnwindSafe(|| self.job.run(&range, &failed)))
            .unwrap_or_else(|_| Err(Error::corruption("a panic in a subcompaction of the tables")));
        let mut state = self.state.lock();
        match compacted {
            Ok(outputs) => state.finished.push((place, outputs)),
            Err(error) => {
                self.failed.store(true, Ordering::Relaxed);
                state.failure.get_or_insert(error);
                state.waiting.clear();
            }
        }
        state.running -= 1;
        drop(state);
        self.done.notify_all();
        true
    }

    /// Waits for every range and returns the outputs of all.
    fn collect(&self) -> Result<Vec<Output>> {
        let mut state = self.state.lock();
        while state.running > 0 {
            self.done.wait(&mut state);
        }
        let (mut finished, failure) = (std::mem::take(&mut state.finished), state.failure.take());
        drop(state);
        finished.sort_by_key(|(place, _)| *place);
        let outputs: Vec<_> = finished.into_iter().flat_map(|(_, outputs)| outputs).collect();
        match failure {
            None => Ok(outputs),
            Some(error) => {
                outputs.iter().for_each(|output| self.job.outputs.remove(output));
                Err(error)
            }
        }
    }
}

/// Splits the keys of a plan into ranges of about the same size, at first keys of its inputs.
fn split(plan: &Plan, keys: &KeyOrder, helpers: usize, max_file_size: u64) -> Vec<UserRange> {
    let least = (FILES_A_RANGE * max_file_size).min(ENOUGH_A_RANGE.max(2 * max_file_size));
    let whole = plan.input_bytes() / least.max(1);
    let wanted =
        (RANGES_A_THREAD * (helpers + 1)).min(usize::try_from(whole).unwrap_or(usize::MAX));
    if helpers == 0 || wanted < 2 || plan.is_intra_level_0() {
        return vec![UserRange::default()];
    }
    let mut files: Vec<_> = plan.files().collect();
    files.sort_by(|a, b| keys.compare(a.smallest_user_key(), b.smallest_user_key()));
    let size = plan.input_bytes() / wanted as u64;
    let mut ranges = vec![UserRange::default()];
    let mut before = 0;
    for file in files {
        let boundary = file.smallest_user_key();
        let last = ranges.last_mut().filter(|last| {
            before >= size
                && last.from.as_deref().is_none_or(|from| keys.compare(from, boundary).is_lt())
        });
        if let Some(last) = last {
            last.to = Some(boundary.to_vec());
            ranges.push(UserRange { from: Some(boundary.to_vec()), to: None });
            before = 0;
        }
        before += file.size;
    }
    ranges
}
