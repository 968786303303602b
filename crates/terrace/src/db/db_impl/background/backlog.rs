//! Work that is waiting: writers are slowed down by it, and wait where it is too much.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::Result;
use crate::base::locks::MutexGuard;
use crate::compaction::limits::{
    LEVEL_0_GATHERED, LEVEL_0_TRIGGER, gathered_bytes, pending_below_level_0,
};
use crate::version::version::Version;
use crate::write::throttle::Backlog;

use crate::db::db_impl::background::state::State;
use crate::db::db_impl::background::{Background, LEVEL_0_COMFORTABLE};

/// Immutable memtables together take at most about this many bytes, and there are at least two of
/// them.
const IMMUTABLES_BYTES: usize = 32 << 20;
const MAX_IMMUTABLES: usize = 8;
/// The most bytes of immutable memtables beside which another one waits, where there are two or
/// more: large values and batches fill a memtable far beyond its size.
const MOST_IMMUTABLES_BYTES: usize = 2 * IMMUTABLES_BYTES;

/// Files in level 0 at which writers go at half the speed of compactions.
const LEVEL_0_LIMIT: usize = 9 * LEVEL_0_TRIGGER;
/// Bytes beyond the limits of deeper levels at which writers begin to slow down: each of them is
/// rewritten with several others, a few seconds of work for all of them.
const PENDING_COMFORTABLE: f64 = (256 << 20) as f64;
/// Writers go at half the speed of compactions where there are as many times the bytes, in level 0
/// or pending in deeper ones, at which they begin to slow down.
const BYTES_LIMIT_TIMES: f64 = 3.0;
/// The speed that compactions of deeper levels are taken to have at least, in bytes of user data a
/// second: that of level 0 need not be theirs.
const DEEPER_SPEED: f64 = 8e6;

impl Background {
    /// Waits until the queue of immutable memtables takes another one.
    #[cold]
    pub(in crate::db) fn wait_for_queue(self: &Arc<Self>) -> Result<()> {
        let mut state = self.state.lock();
        let start = self.files.env.now_micros();
        let earlier = state.attempts();
        if self.await_flushes(&mut state, earlier, |state| self.queue_has_room(state))? {
            let micros = self.files.env.now_micros().saturating_sub(start);
            self.throttle.record_stall(Duration::from_micros(micros));
        }
        Ok(())
    }

    /// Whether the queue of immutable memtables takes another one.
    pub(in crate::db) fn queue_has_room(&self, state: &State) -> bool {
        let waiting = state.immutables.len();
        let bytes = || {
            let tables = state.immutables.iter().map(|immutable| &immutable.memtable);
            tables.map(|memtable| memtable.memory_usage()).sum::<usize>()
        };
        waiting < 2 || waiting < self.queue_limit() && bytes() <= MOST_IMMUTABLES_BYTES
    }

    /// How many immutable memtables wait at most.
    fn queue_limit(&self) -> usize {
        (IMMUTABLES_BYTES / self.files.options.write_buffer_size).clamp(2, MAX_IMMUTABLES)
    }

    /// The error that keeps background work from going on.
    pub(in crate::db) fn check_background(&self, state: &State) -> Result<()> {
        match &state.error {
            Some(error) => Err(error.error.clone()),
            None if state.closing => Err(self.files.closed_error()),
            None => Ok(()),
        }
    }

    /// Puts background work to another attempt after a failure that may have gone by.
    pub(in crate::db) fn retry(self: &Arc<Self>, state: &mut MutexGuard<'_, State>) -> Result<()> {
        if state.error.as_ref().is_some_and(|error| error.retryable) {
            state.error = None;
            self.schedule(state);
        }
        match &state.error {
            Some(error) => Err(error.error.clone()),
            None => Ok(()),
        }
    }

    /// Waits until flushes have brought the database to where `is_done` holds. Returns whether that
    /// took time.
    ///
    /// A failure that may have gone by is put to another attempt, and so are as many as there were
    /// `earlier_attempts` when the caller was called: neither says anything about the disk as it is
    /// now.
    pub(in crate::db) fn await_flushes(
        self: &Arc<Self>,
        state: &mut MutexGuard<'_, State>,
        mut earlier_attempts: usize,
        is_done: impl Fn(&State) -> bool,
    ) -> Result<bool> {
        self.retry(state)?;
        if is_done(state) {
            return Ok(false);
        }
        self.schedule(state);
        while !is_done(state) {
            if state.error.is_some() && earlier_attempts > 0 {
                earlier_attempts -= 1;
                self.retry(state)?;
            }
            self.check_background(state)?;
            self.changed.wait(state);
        }
        Ok(true)
    }

    /// Sets the price of writes from the work that is waiting.
    pub(in crate::db) fn update_throttle(&self, state: &State) {
        let limit = self.queue_limit();
        let flushes = Backlog {
            waiting: state.immutables.len() as f64,
            comfortable: limit as f64 / 2.0,
            limit: limit as f64,
            bytes_per_second: state.flush_speed.get(),
        };
        let view = self.views.current.load();
        let version = &view.version;
        // Where level 0 gathers files, that is not for want of time.
        let gathered = if self.is_gathering(state) { LEVEL_0_GATHERED } else { 0 };
        let files = Backlog {
            waiting: version.levels[0].len() as f64,
            comfortable: (gathered + LEVEL_0_COMFORTABLE) as f64,
            limit: (gathered + LEVEL_0_LIMIT) as f64,
            bytes_per_second: state.level_0_speed.get(),
        };
        let comfortable = self.comfortable_bytes(version) as f64;
        let bytes = Backlog {
            waiting: version.level_bytes(0) as f64,
            comfortable,
            limit: BYTES_LIMIT_TIMES * comfortable,
            bytes_per_second: state.level_0_speed.get(),
        };
        let deeper = Backlog {
            waiting: pending_below_level_0(version) as f64,
            comfortable: PENDING_COMFORTABLE,
            limit: BYTES_LIMIT_TIMES * PENDING_COMFORTABLE,
            bytes_per_second: state.level_0_speed.get().max(DEEPER_SPEED),
        };
        // Writers cannot speed a manual compaction up, which fills deep levels beyond their limits.
        let deeper = Some(deeper).filter(|_| state.manual.running == 0);
        self.throttle.set([flushes, files, bytes].into_iter().chain(deeper));
    }

    /// The bytes in level 0 at which writers begin to slow down: what it gathers, or
    /// `LEVEL_0_COMFORTABLE` memtables.
    fn comfortable_bytes(&self, version: &Version) -> u64 {
        let buffer = self.files.options.write_buffer_size as u64;
        let files = buffer.saturating_mul(LEVEL_0_COMFORTABLE as u64);
        gathered_bytes(version).max(files)
    }
}
