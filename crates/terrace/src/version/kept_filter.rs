//! What stays of a table that was closed for want of memory: its filter, a sixth of what an open
//! table takes with values of 1 KB, less than half with small ones. For most keys that the table does
//! not have, a lookup need not open it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::memory_account::{Charge, MemoryAccount, MemoryUse};
use crate::table::{FullFilter, Table};

/// The filter of a closed table.
pub(crate) struct KeptFilter {
    filter: FullFilter,
    /// Set at first and when it spares a lookup something, cleared by the clock.
    useful: AtomicBool,
    /// With a memory budget.
    _charge: Option<Charge>,
}

impl KeptFilter {
    /// That of `table`, counted by `account`; `None` if it has none in memory.
    pub(super) fn of(table: &Table, account: Option<&Arc<MemoryAccount>>) -> Option<Self> {
        let filter = table.filter_in_memory()?;
        let mut kept = KeptFilter { filter, useful: AtomicBool::new(true), _charge: None };
        let bytes = kept.memory_usage();
        kept._charge = account.map(|account| account.charge(MemoryUse::Tables, bytes));
        Some(kept)
    }

    /// Whether no key with this hash is in the table.
    pub(super) fn rejects(&self, hash: u64) -> bool {
        let rejects = !self.filter.may_match(hash);
        if rejects && !self.useful.load(Ordering::Relaxed) {
            self.useful.store(true, Ordering::Relaxed);
        }
        rejects
    }

    /// Whether it spared a lookup something since the last call.
    pub(super) fn take_useful(&self) -> bool {
        self.useful.swap(false, Ordering::Relaxed)
    }

    /// The filter, for the table when it is opened again.
    pub(super) fn share(&self) -> Option<FullFilter> {
        self.filter.share()
    }

    /// The memory that it takes.
    pub(super) fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.filter.owned_bytes()
    }
}
