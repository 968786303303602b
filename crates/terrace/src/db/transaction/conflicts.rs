//! Whether others have written what a transaction rests on.

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{
    KIND_FOR_SEEK, MAX_SEQUENCE, SequenceNumber, encode, tag_sequence,
};
use crate::base::mutation::mutated;
use crate::db::db_impl::DbImpl;
use crate::db::options::WriteOptions;
use crate::db::view::View;
use crate::write::batch::WriteBatch;

use crate::db::concurrency::lock_manager::LockOwner;
use crate::db::concurrency::ordered_key::shown;
use crate::db::concurrency::read_set::ReadSet;

/// Writes `batch`, unless one of `keys` has been written since `since`, up to which a snapshot
/// sees, or one of `reads` would read something else now: `Conflict` then, and nothing has
/// happened.
///
/// Tables are looked into before the lock is taken, and only if there is something later in
/// them; under the lock again only if there are others by then.
pub(super) fn write_unless_changed<'k>(
    core: &DbImpl,
    batch: &WriteBatch,
    keys: impl Iterator<Item = &'k [u8]> + Clone,
    reads: Option<&ReadSet>,
    since: SequenceNumber,
    locks: &mut Option<LockOwner>,
    options: WriteOptions,
) -> Result<()> {
    batch.check()?;
    core.files.check_writable()?;
    let before = core.views.current.load_full();
    let checked = check_keys(core, &before, keys.clone(), since, before.in_tables > since);
    if checked.is_err() {
        // A write that is in the memtable and not visible yet would be met again and again.
        core.writes.await_commits();
    }
    checked?;
    core.writes.write_if(batch.view(), options, locks, || {
        if mutated("conflicts") {
            return Ok(());
        }
        if let Some(reads) = reads {
            core.writes.control.conflicts.check(reads, since)?;
        }
        let now = core.views.current.load();
        let others = now.in_tables > since && !Arc::ptr_eq(&now.version, &before.version);
        check_keys(core, &now, keys, since, others)
    })?;
    Ok(())
}

/// `Conflict` if one of `keys` has been written since `since`.
pub(super) fn check_keys<'k>(
    core: &DbImpl,
    view: &View,
    mut keys: impl Iterator<Item = &'k [u8]>,
    since: SequenceNumber,
    in_tables: bool,
) -> Result<()> {
    let in_tables = in_tables && !mutated("conflicts-in-tables");
    keys.try_for_each(|key| check_unchanged(core, view, key, since, in_tables))
}

/// `Conflict` if the newest entry of `key` is later than `since`.
fn check_unchanged(
    core: &DbImpl,
    view: &View,
    key: &[u8],
    since: SequenceNumber,
    in_tables: bool,
) -> Result<()> {
    let newest = match view.newest_in_memory(key) {
        Some(sequence) => sequence,
        None if in_tables => newest_in_tables(core, view, key)?.unwrap_or(0),
        None => 0,
    };
    let is_deleted = || {
        !mutated("range-delete-conflicts")
            && core.views.range_deletes.holds(&core.files.order.keys, key, since)
    };
    if newest <= since && !is_deleted() {
        return Ok(());
    }
    Err(Error::conflict(format!("the key {} was written since the transaction began", shown(key))))
}

/// The sequence number of the newest entry of `key`, if it has one.
pub(super) fn newest(core: &DbImpl, view: &View, key: &[u8]) -> Result<Option<SequenceNumber>> {
    match view.newest_in_memory(key) {
        Some(sequence) => Ok(Some(sequence)),
        None => newest_in_tables(core, view, key),
    }
}

fn newest_in_tables(core: &DbImpl, view: &View, key: &[u8]) -> Result<Option<SequenceNumber>> {
    let seek_key = encode(key, MAX_SEQUENCE, KIND_FOR_SEEK);
    let lookup = view.version.get(&core.files.tables, &core.files.order, &seek_key, true)?;
    Ok(lookup.hit.map(|hit| tag_sequence(hit.tag)))
}
