//! What stays of a table that was closed for want of memory: its filter, a tenth of what an open
//! table takes. It spares most lookups of keys that the table does not have the opening.

use std::sync::Arc;

use crate::base::memory_account::{Charge, MemoryAccount, MemoryUse};
use crate::table::{FullFilter, Table};

/// The filter of a closed table.
pub(crate) struct KeptFilter {
    filter: FullFilter,
    /// With a memory budget.
    _charge: Option<Charge>,
}

impl KeptFilter {
    /// That of `table`, counted by `account`; `None` if it has none in memory.
    pub(super) fn of(table: &Table, account: Option<&Arc<MemoryAccount>>) -> Option<Self> {
        let filter = table.filter_in_memory()?;
        let mut kept = KeptFilter { filter, _charge: None };
        let bytes = kept.memory_usage();
        kept._charge = account.map(|account| account.charge(MemoryUse::Tables, bytes));
        Some(kept)
    }

    /// Whether a key with this hash may be in the table.
    pub(super) fn may_match(&self, hash: u64) -> bool {
        self.filter.may_match(hash)
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
