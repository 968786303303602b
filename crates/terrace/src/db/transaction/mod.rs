//! Transactions: reads of one moment, writes that take effect together, and only if nobody came in
//! between.
//!
//! A transaction is *optimistic*: it holds no lock, and others never wait for it. It collects its
//! writes in memory and reads a snapshot with them on top. When it commits, its keys are looked up
//! once more, under the commit lock: if one of them has been written since the snapshot, nothing
//! happens and the caller is told. Otherwise its writes become one batch.
//!
//! # Invariants
//! 1. Between the look and the write nobody else writes.
//! 2. The snapshot lives until then, so that merging keeps the newest entry of every key written
//!    since, deletions included.

mod conflicts;
mod cursor;
mod own_writes;

use std::collections::HashSet;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::write::batch::{Operation, WriteBatch};

use crate::db::db_impl::DbImpl;
use crate::db::options::{ReadOptions, WriteOptions};
use crate::db::read::cursor::Cursor;
use crate::db::read::snapshot::Snapshot;

pub use self::cursor::{TransactionCursor, TransactionEntries};

use self::own_writes::{OwnWrites, Write};

/// How [`Db::transact_with`](crate::Db::transact_with) commits, and how often it tries.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct TransactOptions {
    pub(in crate::db) write: WriteOptions,
    pub(in crate::db) retries: u64,
}

impl Default for TransactOptions {
    fn default() -> Self {
        TransactOptions { write: WriteOptions::new(), retries: u64::MAX }
    }
}

impl TransactOptions {
    /// Commits asynchronously, and retries without limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// How durably the transaction commits. Default: [`WriteOptions::new`].
    pub fn write_options(mut self, options: WriteOptions) -> Self {
        self.write = options;
        self
    }

    /// How often a transaction that conflicts is run again. Default: without limit.
    pub fn retry_limit(mut self, retries: u64) -> Self {
        self.retries = retries;
        self
    }
}

/// Reads and writes that belong together. Made by [`Db::transaction`](crate::Db::transaction).
///
/// # What it sees
/// The database as it was when the transaction began, with its own writes on top; nothing that
/// others write meanwhile. Others see nothing of it until it is committed, and everything then.
///
/// # When it fails
/// [`commit`](Transaction::commit) fails with [`Conflict`](crate::ErrorKind::Conflict), and nothing
/// has happened, if anybody, in a transaction or not, has since written a key that the transaction
/// writes or has read with [`get_for_update`](Transaction::get_for_update). This is snapshot
/// isolation: what was merely read may have changed. Read with `get_for_update` what a decision
/// rests on. Keys that others add to a range which was walked over are not noticed.
///
/// Its writes are in memory until it is committed. It keeps what it reads on disk, as a
/// [`Snapshot`] does; hold it briefly. Dropping it is a rollback.
pub struct Transaction {
    core: Arc<DbImpl>,
    snapshot: Snapshot,
    /// As of the snapshot.
    read: ReadOptions,
    writes: OwnWrites,
    /// Keys that are not written, yet must not change.
    relied_on: HashSet<Vec<u8>>,
}

impl Transaction {
    pub(super) fn new(core: &Arc<DbImpl>) -> Self {
        let snapshot = Snapshot::take(core);
        let read = ReadOptions::new().snapshot(&snapshot);
        let writes = OwnWrites::new(core.order.keys.clone());
        Transaction { core: core.clone(), snapshot, read, writes, relied_on: HashSet::new() }
    }

    fn keys(&self) -> &KeyOrder {
        &self.core.order.keys
    }

    /// The value of `key`, if it has one.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        match self.writes.get(key) {
            Some(write) => Ok(write.value().map(<[u8]>::to_vec)),
            None => self.core.get(key, &self.read, <[u8]>::to_vec),
        }
    }

    /// The value of `key`, if it has one; the transaction can be committed only if nobody else has
    /// written the key by then.
    pub fn get_for_update(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        let value = self.get(key)?;
        if !self.relied_on.contains(key) {
            self.relied_on.insert(key.to_vec());
        }
        Ok(value)
    }

    /// Whether `key` has a value.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        match self.writes.get(key) {
            Some(write) => Ok(write.value().is_some()),
            None => Ok(self.core.get(key, &self.read, |_| ())?.is_some()),
        }
    }

    /// Sets `key` to `value`. Too large ones are refused when it is committed, as with
    /// [`WriteBatch::put`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.writes.set(key.as_ref(), Write::Put(value.as_ref().to_vec()));
    }

    /// Removes `key`. Removing an absent key is no error, but it is a write.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.writes.set(key.as_ref(), Write::Delete);
    }

    /// Removes every key in `range` that the transaction sees: a deletion for each, in memory until
    /// it is committed. Keys that others add to the range meanwhile stay, and are no conflict.
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with). The transaction is as it was then.
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, range: impl RangeBounds<K>) -> Result<()> {
        let keys = self.range(range).map(|entry| entry.map(|(key, _)| key));
        let keys: Vec<_> = keys.collect::<Result<_>>()?;
        keys.iter().for_each(|key| self.delete(key));
        Ok(())
    }

    /// Does every operation of `batch`, in order.
    pub fn apply(&mut self, batch: &WriteBatch) -> Result<()> {
        batch.check()?;
        for operation in batch.iter() {
            match operation? {
                Operation::Put { key, value } => self.put(key, value),
                Operation::Delete { key } => self.delete(key),
            }
        }
        Ok(())
    }

    /// A cursor over everything that the transaction sees. Seek it first.
    pub fn cursor(&self) -> Result<TransactionCursor<'_>> {
        let database = Cursor::new(&self.core, &self.read)?;
        Ok(TransactionCursor::new(database, &self.writes, self.keys().clone()))
    }

    /// Every entry that the transaction sees, in order of keys, from either end.
    pub fn iter(&self) -> TransactionEntries<'_> {
        self.range::<&[u8]>(..)
    }

    /// The entries whose keys are in `range`.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> TransactionEntries<'_> {
        TransactionEntries::range(self, &range)
    }

    /// The entries whose keys begin with `prefix`. `NotSupported` under a custom comparator.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<TransactionEntries<'_>> {
        TransactionEntries::prefix(self, prefix.as_ref())
    }

    /// The database as it was when the transaction began.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// How many keys the transaction writes.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether the transaction writes nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes note of the writes so far, so that
    /// [`rollback_to_savepoint`](Transaction::rollback_to_savepoint) comes back to them. Savepoints
    /// may be set one behind the other.
    pub fn set_savepoint(&mut self) {
        self.writes.set_savepoint();
    }

    /// Undoes every write since the last savepoint, and forgets that savepoint. `InvalidArgument`
    /// if there is none. What was read [for update](Transaction::get_for_update) stays so.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        if self.writes.rollback_to_savepoint() {
            Ok(())
        } else {
            Err(Error::invalid_argument("the transaction has no savepoint"))
        }
    }

    /// Applies all writes at once. They survive the death of the process.
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict) if others have written one of its keys: see
    /// [above](Transaction#when-it-fails). Else those of [`Db::write_with`](crate::Db::write_with).
    /// A transaction without writes does nothing, whatever it has read.
    pub fn commit(self) -> Result<()> {
        self.commit_with(WriteOptions::new())
    }

    /// Applies all writes at once, as durably as `options` say.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit).
    pub fn commit_with(self, options: WriteOptions) -> Result<()> {
        if self.is_empty() {
            return self.core.check_open();
        }
        let mut batch = WriteBatch::new();
        for (key, write) in self.writes.iter() {
            match write {
                Write::Put(value) => batch.put(key.as_slice(), value),
                Write::Delete => batch.delete(key.as_slice()),
            }
        }
        let written = self.writes.iter().map(|(key, _)| key.as_slice());
        let keys = written.chain(self.relied_on.iter().map(Vec::as_slice));
        self.core.write_unless_changed(&batch, keys, self.snapshot.sequence(), options)
    }

    /// Forgets all writes.
    pub fn rollback(self) {}
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("sequence", &self.snapshot.sequence())
            .field("writes", &self.len())
            .finish_non_exhaustive()
    }
}
