//! Jobs that are due later: one thread for the process, which hands them to the background threads.
//!
//! The thread starts with the first such job, is called `terrace-timer`, and never keeps a process
//! alive. It does not cross a fork: what waits in a parent is the parent's.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::base::fork::generation;
use crate::base::locks::{Condvar, Mutex, thread};

use super::clock::now_micros;
use super::{Job, Priority, pool};

static SHARED: LazyLock<ArcSwap<Timer>> = LazyLock::new(|| ArcSwap::new(Timer::new()));

/// The longest wait between two looks at the clock.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

struct Timer {
    generation: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By the time at which they are due, in microseconds, and a number of their own.
    waiting: BTreeMap<(u64, u64), Job>,
    jobs: u64,
    has_thread: bool,
}

impl Timer {
    fn new() -> Arc<Timer> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Timer { generation: generation(), state, changed })
    }

    fn shared() -> Arc<Timer> {
        let timer = SHARED.load_full();
        if timer.generation == generation() {
            return timer;
        }
        SHARED.rcu(|current| match current.generation == generation() {
            true => current.clone(),
            false => Timer::new(),
        });
        // As with the pool: its jobs belong to the parent.
        std::mem::forget(timer);
        SHARED.load_full()
    }

    fn add(self: &Arc<Self>, delay: Duration, job: Job) -> bool {
        let mut state = self.state.lock();
        if !state.has_thread {
            let timer = self.clone();
            let thread = thread::Builder::new().name("terrace-timer".into());
            state.has_thread = thread.spawn(move || timer.work()).is_ok();
        }
        if state.has_thread {
            let delay = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
            let due = now_micros().saturating_add(delay);
            state.jobs += 1;
            let number = state.jobs;
            state.waiting.insert((due, number), job);
            self.changed.notify_all();
        }
        state.has_thread
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            let now = now_micros();
            match state.waiting.first_key_value().map(|(&(due, _), _)| due) {
                Some(due) if due <= now => {
                    if let Some((_, job)) = state.waiting.pop_first() {
                        pool::shared().schedule(Priority::Compaction, job);
                    }
                }
                Some(due) => {
                    let wait = Duration::from_micros(due - now).min(LONGEST_WAIT);
                    let _ = self.changed.wait_for(&mut state, wait);
                }
                None => self.changed.wait(&mut state),
            }
        }
    }
}

/// Hands `job` to the background threads once `delay` has passed. `false` if no thread can be
/// started for that.
pub(super) fn schedule_after(delay: Duration, job: Job) -> bool {
    Timer::shared().add(delay, job)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn every_job_runs_once_it_is_due() {
        let (done, ran) = channel();
        for (delay, name) in [(40, "later"), (1, "soon"), (20, "between")] {
            let done = done.clone();
            let job: Job = Box::new(move || done.send(name).unwrap());
            assert!(schedule_after(Duration::from_millis(delay), job));
        }
        let mut names: Vec<_> = ran.iter().take(3).collect();
        names.sort_unstable();
        assert_eq!(names, ["between", "later", "soon"]);
    }
}
