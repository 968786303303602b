//! Background work: flushes, compactions, removal of obsolete files, tables opened ahead of reads.
//!
//! # Invariants
//! 1. Flushes are installed one after another, oldest first, with file numbers in that order. The
//!    next one may be written meanwhile; it is written anew, with another number, if the one ahead
//!    of it failed.
//! 2. An edit is durable before its version is seen, and a file is removed only after an edit that
//!    drops it is durable and the last view that needs it is gone.
//! 3. A job that fails or panics leaves its inputs as they were and the failure in the state; it is
//!    tried again when a writer, a flush or a manual compaction asks, never in a loop of its own.

mod backlog;
mod compact;
pub(in crate::db) mod counters;
mod descriptors;
mod expiry_check;
pub(in crate::db) mod failure;
mod flush;
mod jobs;
mod load;
pub(in crate::db) mod manual;
mod obsolete_files;
mod open_ahead;
pub(in crate::db) mod read_stats;
pub(in crate::db) mod state;
mod stay_open;
mod stored_settings;
mod turns;
pub(in crate::db) mod write_memtable;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::locks::{AtomicU64, Condvar, Mutex};
use crate::compaction::inputs::{PlanSettings, Planner};
use crate::compaction::limits::{self, LEVEL_0_TRIGGER};
use crate::compaction::output::{Output, OutputSettings};
use crate::compaction::plan::Reason;
use crate::compaction::rate_limiter::RateLimiter;
use crate::env::Priority;
use crate::version::version::Version;
use crate::version::version_set::VersionSet;
use crate::write::throttle::Throttle;

use crate::db::db_impl::background::counters::Counters;
use crate::db::db_impl::background::failure::{Failure, caught};
use crate::db::db_impl::background::jobs::Jobs;
use crate::db::db_impl::background::read_stats::ReadStats;
use crate::db::db_impl::background::state::{BackgroundError, State};
use crate::db::db_impl::background::turns::Automatic;
use crate::db::db_impl::files::Files;
use crate::db::db_impl::logs::Logs;
use crate::db::db_impl::views::Views;
use crate::db::options::events::Event;
use crate::db::view::View;

/// Memtables that are flushed at the same time.
const FLUSHES_AT_ONCE: usize = 2;
/// Files in level 0 at which writers begin to slow down.
const LEVEL_0_COMFORTABLE: usize = 3 * LEVEL_0_TRIGGER;

/// See the [module](self).
pub(in crate::db) struct Background {
    pub(in crate::db) files: Arc<Files>,
    pub(in crate::db) views: Arc<Views>,
    pub(in crate::db) logs: Arc<Logs>,
    pub(in crate::db) jobs: Jobs,
    pub(in crate::db) versions: Mutex<VersionSet>,
    pub(in crate::db) state: Mutex<State>,
    /// Signalled whenever something in the state changes that a thread may wait for.
    pub(in crate::db) changed: Condvar,
    pub(in crate::db) throttle: Throttle,
    /// How fast background work may write.
    pub(in crate::db) rate_limiter: Option<Arc<RateLimiter>>,
    pub(in crate::db) counters: Counters,
    pub(in crate::db) read_stats: ReadStats,
    /// How many tables there were when they were opened for reads to come; 0: never.
    opened_ahead: AtomicU64,
}

impl Background {
    pub(in crate::db) fn new(
        files: &Arc<Files>,
        views: &Arc<Views>,
        logs: &Arc<Logs>,
        versions: VersionSet,
    ) -> Self {
        let rate_limiter = match files.options.compaction_rate_limit {
            0 => None,
            rate => Some(Arc::new(RateLimiter::new(files.env.clone(), rate))),
        };
        Background {
            files: files.clone(),
            views: views.clone(),
            logs: logs.clone(),
            jobs: Jobs::default(),
            versions: Mutex::new(versions),
            state: Mutex::default(),
            changed: Condvar::new(),
            throttle: Throttle::default(),
            rate_limiter,
            counters: Counters::default(),
            read_stats: ReadStats::default(),
            opened_ahead: AtomicU64::new(0),
        }
    }

    /// Runs a job on a background thread.
    pub(in crate::db) fn in_background(
        self: &Arc<Self>,
        priority: Priority,
        job: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        self.jobs.run(self, self.files.env.as_ref(), priority, job);
    }

    /// Starts whatever background work is due. The caller holds the state lock.
    pub(in crate::db) fn schedule(self: &Arc<Self>, state: &mut State) {
        let allowed = match state.manual.allowed(false) {
            Automatic::All if state.starting => Automatic::Due,
            allowed => allowed,
        };
        self.schedule_allowed(state, allowed);
    }

    fn schedule_allowed(self: &Arc<Self>, state: &mut State, allowed: Automatic) {
        if self.schedule_flushes(state) {
            self.schedule_compactions(state, allowed);
        }
    }

    /// Starts flushes that are due. Returns whether background work goes on at all. The caller
    /// holds the state lock.
    pub(in crate::db) fn schedule_flushes(self: &Arc<Self>, state: &mut State) -> bool {
        if state.closing
            || self.files.options.read_only
            || state.error.is_some()
            || self.files.works_elsewhere()
        {
            return false;
        }
        while state.flushing < state.immutables.len().min(self.flushes_at_once(state)) {
            state.flushing += 1;
            self.in_background(Priority::Flush, |background| background.flush_job());
        }
        true
    }

    /// Plans compactions, which takes milliseconds where there are tens of thousands of tables.
    fn schedule_compactions(self: &Arc<Self>, state: &mut State, allowed: Automatic) {
        while allowed != Automatic::None && state.compactions < self.compactions_at_once(state) {
            let version = self.views.current.load().version.clone();
            let settings = PlanSettings {
                gathers: self.gathers(state),
                ..self.plan_settings(state.is_write_idle, state.range_delete_bytes)
            };
            let busy = state.manual.kept_from(&state.reservations);
            let planner = Planner { version: &version, settings: &settings, busy: &busy };
            let plan = match allowed {
                Automatic::All => planner.pick(),
                Automatic::Due => planner.pick_due(),
                Automatic::WithinLevel0 => planner.pick_due_within_level_0(),
                Automatic::None => None,
            };
            let Some(plan) = plan.map(Arc::new) else {
                if allowed == Automatic::All && busy.is_empty() {
                    // All is one run: the allowance is not for what is written later.
                    state.range_delete_bytes = 0;
                }
                break;
            };
            if plan.is_intra_level_0() {
                // Also if the compaction fails: its table may be in a MANIFEST that comes back.
                plan.inputs[0][0].set_has_successor(false);
            }
            if plan.reason == Reason::RangeDelete && !plan.is_trivial_move {
                let left = state.range_delete_bytes.saturating_sub(plan.input_bytes());
                state.range_delete_bytes = left;
            }
            let id = state.reserve(|id| plan.reservation(id, &self.files.order.keys));
            state.automatic.insert(id, false);
            state.compactions += 1;
            self.in_background(Priority::Compaction, move |background| {
                background.compaction_job(plan, version, id)
            });
        }
    }

    /// How many compactions may run at once. One thread is left to flushes and one core to users of
    /// the database, unless they wait for compactions: writers that are slowed down while there
    /// are no reads, or a caller of [`wait_idle`](Self::wait_idle).
    fn compactions_at_once(&self, state: &State) -> usize {
        let threads = self.files.options.background_threads;
        let is_awaited = state.awaited > 0 || self.is_only_written(state);
        if is_awaited { threads } else { threads.saturating_sub(1).max(1) }
    }

    /// Two: one waits for the disk while the other computes. Beside a compaction the cores
    /// are busy anyway, and the compaction may be waiting for the thread.
    fn flushes_at_once(&self, state: &State) -> usize {
        if state.compactions == 0 {
            self.files.options.background_threads.min(FLUSHES_AT_ONCE)
        } else {
            1
        }
    }

    /// Notes what is known of a version that no reader sees yet, and of its new tables. This takes
    /// time where there are many, and so is done without the state lock.
    pub(in crate::db) fn made_version(&self, version: &Version, outputs: &[Output]) {
        self.files.tables.weigh(version.bytes());
        let contents: HashMap<_, _> =
            outputs.iter().map(|output| (output.file.number, output.contents)).collect();
        for (_, file) in version.files() {
            if let Some(&contents) = contents.get(&file.number) {
                file.learn(contents);
            }
        }
        limits::prepare(version, &self.files.order.keys);
        self.files.flushed_values.drop_garbage(version);
        self.files.compacted_values.drop_garbage(version);
    }

    /// Ends background work, and returns when no job is left that could use anything of the
    /// program's.
    pub(in crate::db) fn stop(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        self.changed.notify_all();
        if let Some(limit) = &self.rate_limiter {
            limit.lift();
        }
        while !state.is_idle() || state.manual.running > 0 || state.loading > 0 {
            self.changed.wait(&mut state);
        }
        drop(state);
        self.jobs.wait_for_none();
    }

    /// Tells the listener of a failed job, unless it failed because the database is closing:
    /// without the lock, since a listener may look at the database, and before the failure is
    /// noted, since its end is told, too.
    fn tell_failure(&self, failure: &Failure) {
        if self.state.lock().closing {
            return;
        }
        let Failure { error, retryable } = failure;
        // A listener or logger that panics must not keep the failure from being noted, for which
        // writers wait.
        let _ = caught("telling of a failure", || {
            self.files.log(format!("background error: {error}"));
            let message = error.to_string();
            self.files.tell(&Event::BackgroundError { message, retryable: *retryable });
            Ok(())
        });
    }

    fn note_failure(&self, state: &mut State, failure: &Failure) {
        if !state.closing {
            self.fail(state, &failure.error, failure.retryable);
        }
    }

    /// Tells and notes a failure. The caller holds no lock.
    pub(in crate::db) fn report_failure(&self, failure: &Failure) {
        self.tell_failure(failure);
        self.note_failure(&mut self.state.lock(), failure);
    }

    fn tell_recovered(&self, recovered: bool) {
        if recovered {
            self.files.log("background work succeeds again");
            self.files.tell(&Event::BackgroundErrorCleared);
        }
    }

    /// Waits until no background work is due or running.
    pub(in crate::db) fn wait_idle(self: &Arc<Self>) -> Result<()> {
        self.files.check_writable()?;
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
        // What readers let go of while a purge was under way.
        self.files.purge();
        self.logs.delete_recycled_logs();
        result
    }

    pub(in crate::db) fn plan_settings(
        &self,
        is_write_idle: bool,
        range_delete_bytes: u64,
    ) -> PlanSettings {
        let (snapshots, present) = self.views.snapshots.all(|| self.views.visible_sequence());
        let bytes = self.views.current.load().version.bytes();
        PlanSettings {
            keys: self.files.order.keys.clone(),
            max_file_size: self.files.options.table_size(bytes) as u64,
            oldest_snapshot: snapshots.first().copied().unwrap_or(present),
            range_delete_bytes,
            read_triggered_bytes: is_write_idle.then(|| self.read_stats.worth()),
            // In a database larger than memory such steps would take the device and the page cache
            // from the reads.
            ahead_of_reads: !self.files.tables.exceed_memory(),
            gathers: false,
            expired_before: self.files.catalogue.expired_before(self.files.env.as_ref()),
        }
    }

    /// How compactions write tables of `level`: not faster than the options allow.
    pub(in crate::db) fn compaction_settings(&self, level: usize) -> OutputSettings {
        OutputSettings {
            limit: self.rate_limiter.clone(),
            growing: Some(self.files.compacted_values.clone()),
            ..self.files.output_settings(level)
        }
    }

    /// Installs a view made from the present one, and returns the old one; drop it after
    /// unlocking, because that may close tables.
    ///
    /// The caller holds the state lock, so that views follow one another.
    #[must_use]
    pub(in crate::db) fn swap_view(
        &self,
        _state: &mut State,
        change: impl FnOnce(&View) -> View,
    ) -> Arc<View> {
        let next = change(&self.views.current.load());
        self.views.current.swap(Arc::new(next))
    }

    /// Records a background failure.
    pub(in crate::db) fn fail(&self, state: &mut State, error: &Error, retryable: bool) {
        let worse = state.error.as_ref().is_none_or(|present| present.retryable);
        if worse {
            state.error = Some(BackgroundError { error: error.clone(), retryable });
            state.has_failed = true;
        }
        if self.files.options.paranoid_checks && !retryable && error.kind() == ErrorKind::Corruption
        {
            // The next write meets the error first: see `leave_suspect_log`.
            self.logs.suspect.store(true, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }
}
