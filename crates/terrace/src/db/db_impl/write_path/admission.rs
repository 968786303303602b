//! Admission of writes under a memory budget, before any lock is taken.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::base::error::Result;
use crate::base::internal_key::SequenceNumber;
use crate::base::memory_account::Charge;
use crate::memtable::MemTable;
use crate::table::BlockCache;

use crate::db::db_impl::background::failure::Failure;
use crate::db::db_impl::write_path::WritePath;
use crate::db::memory_budget::{LEAST_FLUSH, Member, MemoryBudget, MemtableBytes, Writer};

impl WritePath {
    /// Reserves memory for a write of `count` entries in `bytes`. The caller holds no lock, and
    /// keeps the charge until the write is done.
    ///
    /// Out of line: a write without a budget stays short.
    #[inline(never)]
    pub(super) fn admit(
        &self,
        budget: &MemoryBudget,
        bytes: usize,
        count: usize,
    ) -> Result<Charge> {
        let capacity = self.files.options.write_buffer_size;
        let most = MemTable::most_growth(capacity, budget.account(), bytes, count);
        budget.admit(self, MemTable::growth(bytes, count), most)
    }

    pub(in crate::db) fn join_budget(self: &Arc<Self>) {
        if let Some(budget) = &self.files.options.memory_budget
            && !self.files.options.read_only
        {
            budget.join(self.as_member());
        }
    }

    pub(in crate::db) fn leave_budget(self: &Arc<Self>) {
        if let Some(budget) = &self.files.options.memory_budget {
            budget.leave(&self.as_member());
        }
    }

    fn as_member(self: &Arc<Self>) -> Weak<dyn Member> {
        let member: Weak<WritePath> = Arc::downgrade(self);
        member
    }

    /// Switches to another memtable as requested, unless a writer is about to. A failure is one of
    /// background work: those that wait for the flush fail by it, and the next one tries again.
    fn switch_early(&self) -> Result<()> {
        if let Err(error) = self.try_switch_early() {
            self.background.report_failure(&Failure { error, retryable: true });
        }
        Ok(())
    }

    fn try_switch_early(&self) -> Result<()> {
        // The holder of the lock, or the next one, sees the request.
        let Some(mut guard) = self.commit.try_lock() else { return Ok(()) };
        let Some(commit) = guard.as_mut() else { return Ok(()) };
        let is_due = self.switch_at.load(Ordering::Relaxed) == EARLY
            && commit.memtable.table().memory_usage() >= LEAST_FLUSH;
        if is_due
            && !self.is_log_suspect()
            && self.background.queue_has_room(&self.background.state.lock())
        {
            self.switch_memtable(commit)?;
        }
        Ok(())
    }
}

/// The size from which a memtable is switched whose flush was requested. A request that comes when
/// the memtable has been switched already makes no tiny table.
const EARLY: u64 = LEAST_FLUSH as u64;

impl Member for WritePath {
    fn memtable_bytes(&self) -> MemtableBytes {
        let view = self.views.current.load();
        let sum = |bytes: fn(&MemTable) -> usize| -> usize {
            view.immutables.iter().map(|memtable| bytes(memtable)).sum()
        };
        MemtableBytes {
            active: view.memtable.memory_usage(),
            immutable: sum(MemTable::memory_usage),
            reserved: view.memtable.reserved_memory() + sum(MemTable::reserved_memory),
            is_requested: self.switch_at.load(Ordering::Relaxed) == EARLY,
        }
    }

    fn can_flush(&self) -> bool {
        // The next write leaves a suspect log, nobody else does.
        let state = self.background.state.lock();
        !state.closing && state.error.is_none() && !self.is_log_suspect()
    }

    fn request_flush(self: Arc<Self>) {
        self.switch_at.store(EARLY, Ordering::Relaxed);
        self.schedule_switch(&mut self.background.state.lock(), "an early memtable", |writes| {
            writes.switch_early()
        });
    }

    fn cache(&self) -> &BlockCache {
        &self.files.cache
    }
}

impl Writer for WritePath {
    fn is_log_suspect(&self) -> bool {
        self.logs.suspect.load(Ordering::Relaxed)
    }

    fn written(&self) -> SequenceNumber {
        self.views.visible_sequence()
    }

    fn is_flushed(&self, written: SequenceNumber) -> bool {
        self.views.current.load().in_tables >= written
    }

    fn check_flushes(&self, first: bool) -> Result<()> {
        self.files.check_writable()?;
        let mut state = self.background.state.lock();
        if first {
            self.background.retry(&mut state)?;
        }
        self.background.check_background(&state)
    }

    fn stall(&self, wait: impl FnOnce()) {
        let start = self.files.env.now_micros();
        wait();
        let micros = self.files.env.now_micros().saturating_sub(start);
        self.background.throttle.record_stall(Duration::from_micros(micros));
    }

    fn sleep(&self, duration: Duration) {
        self.files.env.sleep(duration);
    }
}
