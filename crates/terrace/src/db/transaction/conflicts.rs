//! Whether others have written what a transaction rests on.

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{
    KIND_FOR_SEEK, MAX_SEQUENCE, SequenceNumber, encode, tag_sequence,
};
use crate::base::mutation::mutated;
use crate::db::db_impl::{DbImpl, View};
use crate::db::options::WriteOptions;
use crate::write::batch::{BatchView, WriteBatch};

use super::lock_manager::LockOwner;
use super::ordered_key::shown;
use super::read_set::ReadSet;

impl DbImpl {
    /// Writes `batch`, unless one of `keys` has been written since `since`, up to which a snapshot
    /// sees, or one of `reads` would read something else now: `Conflict` then, and nothing has
    /// happened.
    ///
    /// Tables are looked into before the lock is taken, and only if there is something later in
    /// them; under the lock again only if there are others by then.
    pub(super) fn write_unless_changed<'k>(
        self: &Arc<Self>,
        batch: &WriteBatch,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        reads: Option<&ReadSet>,
        since: SequenceNumber,
        locks: &mut Option<LockOwner>,
        options: WriteOptions,
    ) -> Result<()> {
        batch.check()?;
        self.check_writable()?;
        let before = self.view.load_full();
        let checked = self.check_keys(&before, keys.clone(), since, before.in_tables > since);
        if checked.is_err() {
            // A write that is in the memtable and not visible yet would be met again and again.
            self.await_commits();
        }
        checked?;
        self.write_if(BatchView::of(batch), options, locks, || {
            if mutated("conflicts") {
                return Ok(());
            }
            if let Some(reads) = reads {
                self.control.conflicts.check(reads, since)?;
            }
            let now = self.view.load();
            let others = now.in_tables > since && !Arc::ptr_eq(&now.version, &before.version);
            self.check_keys(&now, keys, since, others)
        })?;
        Ok(())
    }

    /// `Conflict` if one of `keys` has been written since `since`.
    pub(super) fn check_keys<'k>(
        &self,
        view: &View,
        mut keys: impl Iterator<Item = &'k [u8]>,
        since: SequenceNumber,
        in_tables: bool,
    ) -> Result<()> {
        let in_tables = in_tables && !mutated("conflicts-in-tables");
        keys.try_for_each(|key| self.check_unchanged(view, key, since, in_tables))
    }

    /// `Conflict` if the newest entry of `key` is later than `since`.
    fn check_unchanged(
        &self,
        view: &View,
        key: &[u8],
        since: SequenceNumber,
        in_tables: bool,
    ) -> Result<()> {
        let newest = match view.newest_in_memory(key) {
            Some(sequence) => sequence,
            None if in_tables => self.newest_in_tables(view, key)?.unwrap_or(0),
            None => 0,
        };
        let is_deleted = || {
            !mutated("range-delete-conflicts")
                && self.range_deletes.holds(&self.order.keys, key, since)
        };
        if newest <= since && !is_deleted() {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "the key {} was written since the transaction began",
            shown(key)
        )))
    }

    fn newest_in_tables(&self, view: &View, key: &[u8]) -> Result<Option<SequenceNumber>> {
        let seek_key = encode(key, MAX_SEQUENCE, KIND_FOR_SEEK);
        let lookup = view.version.get(&self.tables, &self.order, &seek_key, true)?;
        Ok(lookup.hit.map(|hit| tag_sequence(hit.tag)))
    }
}

impl View {
    /// The sequence number of the newest entry of `key` that is not in tables yet.
    pub(in crate::db) fn newest_in_memory(&self, key: &[u8]) -> Option<SequenceNumber> {
        let mut memtables = std::iter::once(&self.memtable).chain(&self.immutables);
        memtables.find_map(|table| table.get(key, MAX_SEQUENCE)).map(|(tag, _)| tag_sequence(tag))
    }
}
