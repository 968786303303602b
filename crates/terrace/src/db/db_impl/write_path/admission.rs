//! Admission of writes under a memory budget, before any lock is taken.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::base::error::Result;
use crate::base::memory_account::Charge;
use crate::memtable::MemTable;
use crate::table::BlockCache;

use crate::db::db_impl::write_path::WritePath;
use crate::db::memory_budget::{Member, MemoryBudget, MemtableBytes, Writer};

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
        let growth = MemTable::most_growth(capacity, budget.account(), bytes, count);
        budget.admit(self, growth)
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

    /// Has the next writer, or a background thread before it, switch to another memtable.
    fn switch_early(&self) -> Result<()> {
        // The holder of the lock, or the next one, sees the request.
        let Some(mut guard) = self.commit.try_lock() else { return Ok(()) };
        let Some(commit) = guard.as_mut() else { return Ok(()) };
        let is_due = self.switch_at.load(Ordering::Relaxed) == EARLY;
        if is_due
            && !commit.memtable.table().is_empty()
            && !self.logs.suspect.load(Ordering::Relaxed)
            && self.background.state.lock().immutables.len() < self.background.queue_limit()
        {
            self.switch_memtable(commit)?;
        }
        Ok(())
    }
}

/// As the size from which a memtable is switched: as soon as anything is in it.
const EARLY: u64 = 1;

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
        let state = self.background.state.lock();
        !state.closing && state.error.is_none()
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
