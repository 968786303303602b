//! Jobs of both priorities, some of which panic, while the pool grows and the system refuses to
//! start a thread.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p terrace --lib interleavings`. The pool is the real one.

use std::panic::resume_unwind;
use std::sync::Arc;

use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use terrace_testkit::scale::scaled;

use super::Pool;
use crate::base::locks::{Condvar, Mutex, explore, thread};
use crate::env::{Job, Priority};

/// The outcome of the jobs. A failed assertion in a job would end that job only: its owner looks
/// afterwards.
#[derive(Default)]
struct Done {
    runs: Mutex<[usize; JOBS]>,
    changed: Condvar,
    compacting: AtomicUsize,
    most_compacting: AtomicUsize,
}

impl Done {
    /// Waits until each of these jobs has run.
    fn wait(&self, numbers: &[usize]) {
        let mut runs = self.runs.lock();
        while numbers.iter().any(|&number| runs[number] == 0) {
            self.changed.wait(&mut runs);
        }
    }
}

const JOBS: usize = 7;
/// Threads after the pool has grown.
const GROWN: usize = 2;

fn priority(number: usize) -> Priority {
    if number.is_multiple_of(3) { Priority::Flush } else { Priority::Compaction }
}

fn job(done: &Arc<Done>, number: usize) -> Job {
    let done = done.clone();
    Box::new(move || {
        if priority(number) == Priority::Compaction {
            let now = done.compacting.fetch_add(1, SeqCst) + 1;
            done.most_compacting.fetch_max(now, SeqCst);
            shuttle::thread::yield_now();
            done.compacting.fetch_sub(1, SeqCst);
        }
        done.runs.lock()[number] += 1;
        done.changed.notify_all();
        if number % 4 == 1 {
            resume_unwind(Box::new("expected"));
        }
    })
}

#[test]
fn every_job_runs_once_under_every_schedule() {
    let count = scaled(10_000);
    explore(count, || {
        thread::refuse(1);
        let (pool, done) = (Pool::new(1), Arc::new(Done::default()));
        let others: Vec<_> = (0..2)
            .map(|owner| {
                let (pool, done) = (pool.clone(), done.clone());
                shuttle::thread::spawn(move || {
                    for number in (owner..JOBS - 1).step_by(2) {
                        pool.schedule(priority(number), job(&done, number));
                    }
                })
            })
            .collect();
        // If none was refused before, this one may be.
        let _ = pool.grow(GROWN);
        others.into_iter().for_each(|owner| owner.join().expect("no panic"));
        // Whatever was refused before, this call starts.
        pool.schedule(priority(JOBS - 1), job(&done, JOBS - 1));
        done.wait(&std::array::from_fn::<_, JOBS, _>(|number| number));
        assert_eq!(*done.runs.lock(), [1; JOBS], "a job ran twice");
        assert!(
            done.most_compacting.load(SeqCst) <= GROWN,
            "more jobs of the compaction priority than allowed"
        );
        let state = pool.state.lock();
        assert!(state.threads <= GROWN + 1, "{} threads", state.threads);
        assert!(state.flushes.is_empty() && state.others.is_empty() && state.idle <= state.threads);
    });
    println!("every_job_runs_once: {count} schedules of the background threads");
}

#[test]
fn without_a_thread_growing_is_an_error_and_the_next_one_runs_what_waits() {
    explore(scaled(1_000), || {
        thread::refuse(3);
        let (pool, done) = (Pool::new(1), Arc::new(Done::default()));
        pool.schedule(Priority::Flush, job(&done, 0));
        let error = pool.grow(1).expect_err("no thread can be started");
        assert!(error.message().contains("cannot start a background thread"), "{error}");
        pool.grow(1).expect("a thread");
        done.wait(&[0]);
    });
}

/// A job that waits for another, as a flush waits for its turn: the flush goes first or beside.
#[test]
fn a_flush_runs_beside_a_compaction_under_every_schedule() {
    let count = scaled(10_000);
    explore(count, || {
        thread::refuse(1);
        let pool = Pool::new(1);
        let (flushed, changed) = (Arc::new(Mutex::new([false; 2])), Arc::new(Condvar::new()));
        let wait = |turn: usize| {
            let (flushed, changed) = (flushed.clone(), changed.clone());
            move || {
                let mut flushed = flushed.lock();
                while !flushed[turn] {
                    changed.wait(&mut flushed);
                }
            }
        };
        // The first finds no thread, and only the thread that starts for the second could run
        // it.
        let done = Arc::new(Done::default());
        pool.schedule(Priority::Compaction, job(&done, 2));
        pool.schedule(Priority::Compaction, job(&done, 4));
        done.wait(&[2, 4]);
        pool.schedule(Priority::Compaction, Box::new(wait(0)));
        pool.schedule(Priority::Compaction, Box::new(wait(1)));
        for turn in 0..2 {
            let (flushed, changed) = (flushed.clone(), changed.clone());
            let flush = move || {
                flushed.lock()[turn] = true;
                changed.notify_all();
            };
            pool.schedule(Priority::Flush, Box::new(flush));
        }
        wait(0)();
        wait(1)();
    });
    println!("a_flush_runs_beside_a_compaction: {count} schedules of the background threads");
}
