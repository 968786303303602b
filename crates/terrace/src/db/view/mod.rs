//! The view: the sources of a read.

pub(in crate::db) mod snapshot_list;

use std::sync::Arc;

use crate::base::internal_key::{MAX_SEQUENCE, SequenceNumber, tag_sequence};
use crate::memtable::MemTable;
use crate::version::version::Version;

/// Everything a read looks into. Immutable; a change is a new view.
pub(in crate::db) struct View {
    pub(in crate::db) memtable: Arc<MemTable>,
    /// Newest first.
    pub(in crate::db) immutables: Vec<Arc<MemTable>>,
    pub(in crate::db) version: Arc<Version>,
    /// Every later entry is in a memtable.
    pub(in crate::db) in_tables: SequenceNumber,
}

impl View {
    /// The sequence number of the newest entry of `key` that is not in tables yet.
    pub(in crate::db) fn newest_in_memory(&self, key: &[u8]) -> Option<SequenceNumber> {
        let mut memtables = std::iter::once(&self.memtable).chain(&self.immutables);
        memtables.find_map(|table| table.get(key, MAX_SEQUENCE)).map(|(tag, _)| tag_sequence(tag))
    }
}
