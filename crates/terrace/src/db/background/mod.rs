//! Background work: flushes, compactions, removal of obsolete files.
//!
//! # Invariants
//! 1. Memtables become tables of the database one after another, oldest first, with file numbers in
//!    that order. The next one may be written meanwhile; it is written anew, with another number,
//!    if the one ahead of it failed.
//! 2. An edit is durable before its version is seen, and a file is removed only after an edit that
//!    drops it is durable and the last view that needs it is gone.
//! 3. A job that fails or panics leaves its inputs as they were and the failure in the state; it is
//!    tried again when a writer, a flush or a manual compaction asks, never in a loop of its own.

mod compact;
mod flush;
pub(super) mod jobs;
pub(super) mod manual;
mod obsolete_files;
pub(super) mod write_memtable;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::mutation::mutated;
use crate::compaction::output::Output;
use crate::compaction::plan::{self, Planner};
use crate::env::Priority;
use crate::version::version::Version;

use crate::db::db_impl::DbImpl;
use crate::db::state::State;
use crate::db::stats::events::Event;
use crate::db::write::LEVEL_0_COMFORTABLE;

/// Memtables that are made tables at the same time.
const FLUSHES_AT_ONCE: usize = 2;
impl DbImpl {
    /// Starts whatever background work is due. The caller holds the state lock.
    pub(in crate::db) fn schedule(self: &Arc<Self>, state: &mut State) {
        if self.schedule_flushes(state) {
            self.schedule_compactions(state);
        }
    }

    /// Starts flushes that are due. Returns whether background work goes on at all. The caller
    /// holds the state lock.
    pub(in crate::db) fn schedule_flushes(self: &Arc<Self>, state: &mut State) -> bool {
        if state.closing
            || self.options.read_only
            || state.error.is_some()
            || self.works_elsewhere()
        {
            return false;
        }
        while state.flushing < state.immutables.len().min(self.flushes_at_once(state)) {
            state.flushing += 1;
            self.in_background(Priority::Flush, |core| core.flush_job());
        }
        true
    }

    /// Plans compactions, which takes milliseconds where there are tens of thousands of tables.
    fn schedule_compactions(self: &Arc<Self>, state: &mut State) {
        while state.manual == 0 && state.compactions < self.compactions_at_once(state) {
            let version = self.view.load().version.clone();
            let settings = self.plan_settings(state.is_write_idle);
            let planner =
                Planner { version: &version, settings: &settings, busy: &state.reservations };
            let Some(plan) = planner.pick().map(Arc::new) else { break };
            let id = state.reserve(|id| plan.reservation(id, &self.order.keys));
            state.compactions += 1;
            self.in_background(Priority::Compaction, move |core| {
                core.compaction_job(plan, version, id)
            });
        }
    }

    /// How many compactions may run at once. One thread is left to flushes and one core to users of
    /// the database, unless they wait for compactions: writers that are slowed down while there
    /// are no reads, or a caller of [`wait_idle`](Self::wait_idle).
    fn compactions_at_once(&self, state: &State) -> usize {
        let threads = self.options.background_threads;
        let slows_writers = self.view.load().version.levels[0].len() > LEVEL_0_COMFORTABLE;
        let has_readers = self.read_stats.has_read_since(state.switched_at[0]);
        let is_awaited = state.awaited > 0 || (slows_writers && !has_readers);
        if is_awaited { threads } else { threads.saturating_sub(1).max(1) }
    }

    /// Two: one waits for the disk while the other computes. Beside a compaction the cores
    /// are busy anyway, and the compaction may be waiting for the thread.
    fn flushes_at_once(&self, state: &State) -> usize {
        if state.compactions == 0 {
            self.options.background_threads.min(FLUSHES_AT_ONCE)
        } else {
            1
        }
    }

    /// Notes what is known of a version that nobody sees yet, and of its new tables: what takes
    /// time where there are many is done here, without the state lock.
    pub(in crate::db) fn made_version(&self, version: &Version, outputs: &[Output]) {
        self.tables.weigh(version.bytes());
        let contents: HashMap<_, _> =
            outputs.iter().map(|output| (output.file.number, output.contents)).collect();
        for (_, file) in version.files() {
            if let Some(&contents) = contents.get(&file.number) {
                file.learn(contents);
            }
        }
        plan::prepare(version, &self.order.keys);
    }

    /// Tells of a failed job, unless it failed because the database is closing: without the lock,
    /// for a listener may look at the database, and before the failure is noted, for what clears it
    /// is told, too.
    fn tell_failure(&self, failure: &Failure) {
        if !self.state.lock().closing {
            let Failure { error, retryable } = failure;
            self.log(format!("background error: {error}"));
            self.tell(&Event::BackgroundError {
                message: error.to_string(),
                retryable: *retryable,
            });
        }
    }

    fn note_failure(&self, state: &mut State, failure: &Failure) {
        if !state.closing {
            self.fail(state, &failure.error, failure.retryable);
        }
    }

    fn tell_recovered(&self, recovered: bool) {
        if recovered {
            self.log("background work succeeds again");
            self.tell(&Event::BackgroundErrorCleared);
        }
    }

    /// Waits until no background work is due or running.
    pub(in crate::db) fn wait_idle(self: &Arc<Self>) -> Result<()> {
        self.check_writable()?;
        let mut state = self.state.lock();
        self.retry(&mut state)?;
        state.awaited += 1;
        self.schedule(&mut state);
        let mut result = self.check_background(&state);
        while result.is_ok() && !(state.is_idle() && state.immutables.is_empty()) {
            self.changed.wait(&mut state);
            result = self.check_background(&state);
        }
        state.awaited -= 1;
        drop(state);
        self.delete_recycled_logs();
        result
    }
}

struct Failure {
    error: Error,
    retryable: bool,
}

/// Runs a job. A panic becomes a failure that is not tried again.
fn caught(what: &str, job: impl FnOnce() -> Result<()>) -> std::result::Result<(), Failure> {
    match catch_unwind(AssertUnwindSafe(job)) {
        Ok(result) => result.map_err(|error| {
            // Damage does not go away, and a refused edit is a bug here: trying again would do more
            // harm.
            let retryable =
                !matches!(error.kind(), ErrorKind::Corruption | ErrorKind::InvalidArgument)
                    && !mutated("heal-after-failures");
            Failure { error, retryable }
        }),
        Err(panic) => {
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            Err(Failure {
                error: Error::io_message(format!("a panic while {what}: {message}")),
                retryable: false,
            })
        }
    }
}
