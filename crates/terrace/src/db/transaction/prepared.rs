//! Two-phase commit: a transaction is prepared, which is durable and keeps others from its keys,
//! and committed or rolled back later, after a crash too.
//!
//! # Invariants
//! 1. The keys of a prepared transaction, and the key of its record, are locked from before it is
//!    checked for conflicts until it is decided; after a crash from before the first write.
//! 2. The commit is one batch, which applies the writes and removes the record.
//! 3. A transaction of which another program has written a key meanwhile is not committed.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::SequenceNumber;
use crate::write::batch::{BatchView, WriteBatch};

use crate::db::concurrency::lock_manager::LockOwner;
use crate::db::concurrency::ordered_key::shown;
use crate::db::db_impl::DbImpl;
use crate::db::db_impl::prepared_list::Prepared;
use crate::db::key_range::check_prefixes;
use crate::db::options::{ReadOptions, WriteOptions};
use crate::db::read::cursor::Cursor;
use crate::db::transaction::conflicts::{check_keys, newest};

use crate::db::transaction::prepared_record::{self, PreparedRecord};

/// Bytes of a name, at most.
const MAX_NAME: usize = 1024;

/// A transaction that was prepared and is not decided yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreparedTransaction {
    /// The name under which it was prepared.
    pub name: Vec<u8>,
    /// How many keys it writes.
    pub writes: usize,
    /// Whether another program, which knows no locks, has written one of its keys since it was
    /// prepared: it can only be rolled back.
    pub is_overtaken: bool,
}

/// What a transaction that is to be prepared consists of.
pub(super) struct Terms {
    pub(super) batch: WriteBatch,
    /// Keys that are not written, yet must not change.
    pub(super) relied_on: Vec<Vec<u8>>,
    /// Keys that must not have been written since the sequence number `since`.
    pub(super) checked: Vec<Vec<u8>>,
    pub(super) since: SequenceNumber,
    pub(super) locks: LockOwner,
}

/// Whether a transaction may be prepared as `name`.
pub(super) fn check(core: &DbImpl, name: &[u8]) -> Result<()> {
    core.files.check_writable()?;
    if !core.files.options.prepared_transactions {
        return Err(Error::invalid_argument(
            "the database was opened without the option prepared_transactions",
        ));
    }
    check_prefixes(&core.files.order.keys)?;
    if name.len() > MAX_NAME {
        return Err(Error::invalid_argument(format!(
            "the name of a prepared transaction has {} bytes, may have {MAX_NAME}",
            name.len()
        )));
    }
    if core.prepared.0.lock().contains_key(name) {
        let name = shown(name);
        return Err(Error::invalid_argument(format!(
            "a transaction is prepared as {name} already"
        )));
    }
    Ok(())
}

/// Locks all keys of a transaction, checks it for conflicts and makes it durable. See
/// [`Transaction::prepare`](super::Transaction::prepare).
pub(super) fn prepare(core: &DbImpl, name: &[u8], terms: Terms) -> Result<()> {
    terms.batch.check()?;
    let record = PreparedRecord { batch: terms.batch, relied_on: terms.relied_on };
    let mut locks = terms.locks;
    let record_key = prepared_record::key(name);
    for key in record.keys().chain([record_key.as_slice()]) {
        locks.lock(key)?;
    }
    core.writes.await_commits();
    // Another one may have been prepared under the name before its lock was to be had.
    check(core, name)?;
    // No other writer can write the keys from here on.
    let view = core.views.current.load_full();
    let checked = terms.checked.iter().map(Vec::as_slice);
    check_keys(core, &view, checked, terms.since, view.in_tables > terms.since)?;
    let mut batch = WriteBatch::new();
    batch.put(&record_key, record.encode(name));
    batch.check()?;
    let mut locks = Some(locks);
    let sequence = core.writes.write_holding(BatchView::of(&batch), &mut locks, || Ok(()))?;
    let prepared = Prepared { batch: record.batch, locks };
    core.prepared.0.lock().insert(name.to_vec(), prepared);
    core.writes.sync_log(sequence)
}

/// The transactions that are prepared and not decided, by name.
pub(in crate::db) fn list(core: &DbImpl) -> Vec<PreparedTransaction> {
    // In a child of a fork a thread of the parent may hold the lock for ever.
    if core.files.is_inherited() {
        return Vec::new();
    }
    let describe = |(name, prepared): (&Vec<u8>, &Prepared)| PreparedTransaction {
        name: name.clone(),
        writes: prepared.batch.len(),
        is_overtaken: prepared.locks.is_none(),
    };
    core.prepared.0.lock().iter().map(describe).collect()
}

/// Commits or undoes the transaction that was prepared as `name`, durably.
pub(in crate::db) fn decide(core: &DbImpl, name: &[u8], commits: bool) -> Result<()> {
    core.files.check_writable()?;
    let mut list = core.prepared.0.lock();
    let Some(mut prepared) = list.remove(name) else {
        let name = shown(name);
        return Err(Error::not_found(format!("no transaction is prepared as {name}")));
    };
    if commits && prepared.locks.is_none() {
        list.insert(name.to_vec(), prepared);
        return Err(Error::conflict(format!(
            "another program has written a key of the transaction that was prepared as {}",
            shown(name)
        )));
    }
    drop(list);
    let mut batch = if commits { prepared.batch.clone() } else { WriteBatch::new() };
    batch.delete(prepared_record::key(name));
    let options = WriteOptions::new();
    let written =
        core.writes.write_if(BatchView::of(&batch), options, &mut prepared.locks, || Ok(()));
    match written {
        Ok(sequence) => core.writes.sync_log(sequence),
        Err(error) => {
            core.prepared.0.lock().insert(name.to_vec(), prepared);
            Err(error)
        }
    }
}

/// Finds the prepared transactions of a database that is being opened, and locks their keys.
pub(in crate::db) fn recover(core: &Arc<DbImpl>) -> Result<()> {
    let options = &core.files.options;
    if !options.prepared_transactions || options.read_only {
        return Ok(());
    }
    check_prefixes(&core.files.order.keys)?;
    let mut cursor = Cursor::new(core, &ReadOptions::new())?;
    cursor.seek(prepared_record::key(b""));
    while cursor.valid()
        && let Some(name) = prepared_record::name(cursor.key())
    {
        match PreparedRecord::decode(name, cursor.value()) {
            Some(record) => {
                let prepared =
                    Prepared { locks: lock_again(core, name, &record)?, batch: record.batch };
                core.files.log(format!("found the prepared transaction {}", shown(name)));
                core.prepared.0.lock().insert(name.to_vec(), prepared);
            }
            None => core.files.log(format!("{} is no prepared transaction", shown(cursor.key()))),
        }
        cursor.next();
    }
    cursor.status()
}

/// Locks the keys of a prepared transaction that was found. `None` if one of them was written since
/// it was prepared, or is another one's.
fn lock_again(core: &DbImpl, name: &[u8], record: &PreparedRecord) -> Result<Option<LockOwner>> {
    let view = core.views.current.load_full();
    let record_key = prepared_record::key(name);
    let since = newest(core, &view, &record_key)?.unwrap_or(0);
    match check_keys(core, &view, record.keys(), since, true) {
        Err(error) if error.kind() == ErrorKind::Conflict => return Ok(None),
        checked => checked?,
    }
    let locks = &core.writes.control.locks;
    if locks.locked_key(None, record.keys()).is_some() {
        return Ok(None);
    }
    let mut owner = locks.owner(locks.next_age(), Duration::MAX);
    for key in record.keys().chain([record_key.as_slice()]) {
        owner.lock(key)?;
    }
    Ok(Some(owner))
}
