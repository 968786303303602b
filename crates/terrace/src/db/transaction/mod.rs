//! Transactions: reads of one moment, writes that take effect together, and only if no other write
//! came in between.
//!
//! A transaction collects its writes in memory and reads a snapshot with them on top. When it
//! commits, what it rests on is checked under the commit lock, and its writes become one batch.
//!
//! * An *optimistic* one holds no lock, and others never wait for it: the keys that it writes or
//!   has read for update are looked up once more when it commits.
//! * A *locking* one locks what it reads for update until it ends
//!   ([`lock_manager`](crate::db::concurrency::lock_manager)): every other writer waits.
//! * A *serializable* one, of either kind, also notes everything else that it reads
//!   ([`read_set`](crate::db::concurrency::read_set)), and is checked against what was written
//!   meanwhile ([`conflict_set`](crate::db::concurrency::conflict_set)).
//!
//! # Invariants
//! 1. Between the check and the write no other writer writes.
//! 2. The snapshot is retained until then, so that compactions keep the newest entry of every key
//!    written since, deletions included.
//! 3. A lock is held, and a serializable transaction in the conflict set, before the commit lock
//!    is taken for the first time after; what the transaction reads comes after that.

mod conflicts;
mod cursor;
mod entries;
mod options;
mod own_writes;
mod prepare;
pub(in crate::db) mod prepared;
pub(in crate::db) mod prepared_record;
pub(in crate::db) mod prepared_recovery;

use std::collections::HashSet;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::SequenceNumber;
use crate::write::batch::WriteBatch;
use crate::write::batch_view::Operation;

use crate::db::concurrency::lock_manager::{Age, LockOwner};
use crate::db::concurrency::read_set::ReadSet;
use crate::db::db_impl::DbImpl;
use crate::db::key_range::KeyRange;
use crate::db::options::WriteOptions;
use crate::db::read;
use crate::db::read::expiring::shown;
use crate::db::read::read_options::ReadOptions;
use crate::db::read::snapshot::Snapshot;
use crate::db::view::catalogue::entry;

pub use self::cursor::TransactionCursor;
pub use self::entries::TransactionEntries;
pub use self::options::{Isolation, TransactOptions, TransactionOptions};
pub use self::prepare::PrepareError;
pub use self::prepared::PreparedTransaction;

use self::conflicts::{check_keys, write_unless_changed};
use self::own_writes::{OwnWrites, Write};

/// Reads and writes that belong together. Made by [`Db::transaction`](crate::Db::transaction).
///
/// # What it sees
/// The database as it was when the transaction began, with its own writes on top; nothing that
/// others write meanwhile. Others see nothing of it until it is committed, and everything then.
///
/// # When it fails
/// [`commit`](Transaction::commit) fails with [`Conflict`](ErrorKind::Conflict), and nothing has
/// happened, if another writer, in a transaction or not, has since written a key that the
/// transaction writes or has read with [`get_for_update`](Transaction::get_for_update). This is
/// snapshot isolation: what was merely read may have changed. Read with `get_for_update` what a
/// decision rests on, or begin the transaction as [`Isolation::Serializable`], where everything
/// that it reads counts, ranges too.
///
/// # Locks
/// With [`TransactionOptions::locking`] `get_for_update` locks the key until the transaction ends,
/// and returns its newest value. Every writer of the key waits for that.
/// As long as the transaction reads nothing but keys that it has locked, its moment moves on with
/// every lock, and it cannot conflict.
///
/// Its writes are in memory until it is committed. It keeps what it reads on disk, as a
/// [`Snapshot`] does; hold it briefly. Dropping it is a rollback.
///
/// # Example
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options)?;
/// db.put("apple", "3")?;
/// let mut transaction = db.transaction();
/// let apples = transaction.get_for_update("apple")?;
/// assert_eq!(apples.as_deref(), Some(&b"3"[..]));
/// transaction.put("apple", "2");
/// db.put("apple", "0")?; // another writer was faster
/// assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct Transaction {
    core: Arc<DbImpl>,
    snapshot: Snapshot,
    /// As of the snapshot.
    read: ReadOptions,
    writes: OwnWrites,
    /// Keys that are not written, yet must not change.
    relied_on: HashSet<Vec<u8>>,
    /// Of a locking transaction.
    locks: Option<LockOwner>,
    /// Why a locking transaction cannot be committed any more.
    failure: Option<Error>,
    /// Whether a locking transaction has read anything that it has not locked: its snapshot stays.
    is_fixed: AtomicBool,
    /// Of a serializable transaction.
    reads: Option<Reads>,
}

/// The reads of a serializable transaction, and its place in the conflict set.
struct Reads {
    core: Arc<DbImpl>,
    entered: SequenceNumber,
    set: ReadSet,
}

impl Reads {
    fn begin(core: &Arc<DbImpl>) -> Self {
        let entered = core.views.visible_sequence();
        core.writes.control.conflicts.enter(entered);
        let set = ReadSet::new(core.files.order.keys.clone());
        let reads = Reads { core: core.clone(), entered, set };
        core.writes.await_commits();
        reads
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        self.core.writes.control.conflicts.leave(self.entered);
    }
}

impl Transaction {
    pub(super) fn new(core: &Arc<DbImpl>, options: TransactionOptions, age: Age) -> Self {
        let is_serializable = options.isolation == Isolation::Serializable;
        let reads = is_serializable.then(|| Reads::begin(core));
        let owner = || core.writes.control.locks.owner(age, options.lock_timeout);
        let locks = options.locking.then(owner);
        let snapshot = Snapshot::take(core);
        Transaction {
            core: core.clone(),
            read: ReadOptions::new().snapshot(&snapshot),
            snapshot,
            writes: OwnWrites::new(core.files.order.keys.clone()),
            relied_on: HashSet::new(),
            locks,
            failure: None,
            is_fixed: AtomicBool::new(false),
            reads,
        }
    }

    fn keys(&self) -> &KeyOrder {
        &self.core.files.order.keys
    }

    /// The value of `key`, if it has one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let mut transaction = db.transaction();
    /// transaction.put("banana", "yellow");
    /// assert!(transaction.get("banana")?.is_some()); // its own write
    /// db.put("apple", "green")?;
    /// assert_eq!(transaction.get("apple")?.as_deref(), Some(&b"red"[..])); // as it began
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.read(key.as_ref(), &self.read, <[u8]>::to_vec)
    }

    /// Whether `key` has a value.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("apple", "red");
    /// assert!(transaction.contains_key("apple")? && !db.contains_key("apple")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let options = self.read.clone().keys_only();
        Ok(self.read(key.as_ref(), &options, |_| ())?.is_some())
    }

    /// Reads what the transaction sees of `key`, and takes note of it.
    fn read<R>(
        &self,
        key: &[u8],
        options: &ReadOptions,
        use_value: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if let Some(write) = self.writes.get(key) {
            let Some(value) = write.value() else { return Ok(None) };
            return Ok(shown(&self.core, key, value, options)?.map(use_value));
        }
        if !self.has_locked(key) {
            self.is_fixed.store(true, Ordering::Relaxed);
            if let Some(reads) = &self.reads {
                reads.set.add_key(key);
            }
        }
        read::get(&self.core, key, options, use_value)
    }

    fn has_locked(&self, key: &[u8]) -> bool {
        self.locks.as_ref().is_some_and(|locks| locks.holds(key))
    }

    /// The value of `key`, if it has one; the transaction can be committed only if no other has
    /// written the key by then. A [locking](TransactionOptions::locking) transaction locks the key,
    /// so that no other can, and waits for that if another has locked it.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("balance", "100")?;
    /// let mut transaction = db.transaction();
    /// let balance = transaction.get_for_update("balance")?;
    /// transaction.put("allowed", if balance.is_some() { "yes" } else { "no" });
    /// db.delete("balance")?; // what the decision rests on
    /// assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with). A locking transaction also fails with
    /// - [`Deadlock`](ErrorKind::Deadlock) if it, or another one, would wait for ever, and this is
    ///   the younger one. The message names the transactions and the keys that they wait for. It
    ///   has given up its locks then, and cannot be committed any more.
    /// - [`TimedOut`](ErrorKind::TimedOut) if the lock was not to be had within
    ///   [its time](TransactionOptions::lock_timeout).
    /// - [`Conflict`](ErrorKind::Conflict) if the key was written since the moment that the
    ///   transaction sees, and it has read something that it has not locked.
    ///
    /// Where the look whether it was written fails, the transaction cannot be committed any more,
    /// either.
    pub fn get_for_update(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        if self.locks.is_some() {
            self.lock(key)?;
            return self.get(key);
        }
        let value = self.get(key)?;
        if let Some(reads) = &self.reads {
            // Also where its own write is what it sees, which may be undone.
            reads.set.add_key(key);
        } else if !self.relied_on.contains(key) {
            self.relied_on.insert(key.to_vec());
        }
        Ok(value)
    }

    /// Why the transaction has to be run again, if a lock has told it.
    pub(in crate::db) fn failure(self) -> Option<Error> {
        self.failure
    }

    /// Locks `key`, and moves to the present if nothing but locked keys was read so far.
    fn lock(&mut self, key: &[u8]) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let Some(locks) = self.locks.as_mut().filter(|locks| !locks.holds(key)) else {
            return Ok(());
        };
        self.core.files.check_writable()?;
        let locked = locks.lock(key);
        self.failure = locked.as_ref().err().filter(is_final).cloned();
        locked?;
        self.core.writes.await_commits();
        if *self.is_fixed.get_mut() {
            let since = self.snapshot.sequence();
            let view = self.core.views.current.load_full();
            let in_tables = view.in_tables > since;
            let checked = check_keys(&self.core, &view, std::iter::once(key), since, in_tables);
            // Whatever failed: the key is locked now, and is not looked at again.
            self.failure = checked.as_ref().err().cloned();
            return checked;
        }
        self.snapshot = Snapshot::take(&self.core);
        self.read = ReadOptions::new().snapshot(&self.snapshot);
        Ok(())
    }

    /// Sets `key` to `value`. Too large ones are refused when it is committed, as with
    /// [`WriteBatch::put`].
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("apple", "red");
    /// assert_eq!(db.get("apple")?, None); // not before the commit
    /// transaction.commit()?;
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.writes.set(key.as_ref(), Write::Put(value.as_ref().to_vec()));
    }

    /// Removes `key`. Removing an absent key is no error, but it is a write.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete("apple");
    /// transaction.commit()?;
    /// assert_eq!(db.get("apple")?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.writes.set(key.as_ref(), Write::Delete);
    }

    /// Removes every key in `range` that the transaction sees: a deletion for each, in memory until
    /// it is committed. Keys that others add to the range meanwhile stay, and are no conflict. The
    /// engine's own entries stay as with [`Db::delete_range_with`](crate::Db::delete_range_with).
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("job:1", "")?;
    /// # db.put("job:2", "")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete_range("job:".."job;")?;
    /// db.put("job:3", "new")?;
    /// transaction.commit()?;
    /// assert_eq!(db.prefix("job:")?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with). The transaction is as it was then.
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, range: impl RangeBounds<K>) -> Result<()> {
        let order = &self.core.files.order.keys;
        let mut keys = Vec::new();
        for part in KeyRange::new(&range).sparing(order, entry::PREFIX) {
            for found in self.range::<&[u8]>(part.as_bounds()) {
                keys.push(found?.0);
            }
        }
        keys.iter().for_each(|key| self.delete(key));
        Ok(())
    }

    /// Does every operation of `batch`, in order.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut batch = WriteBatch::new();
    /// batch.put("apple", "red");
    /// let mut transaction = db.transaction();
    /// transaction.apply(&batch)?;
    /// transaction.commit()?;
    /// # assert!(db.contains_key("apple")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if a key and value of the batch are too large; nothing is done then.
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

    /// The database as it was at the moment that the transaction sees. What is read in it by itself
    /// is not noted for the sake of [`Isolation::Serializable`].
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let mut transaction = db.transaction();
    /// transaction.put("apple", "green");
    /// assert_eq!(transaction.snapshot().get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn snapshot(&self) -> &Snapshot {
        self.is_fixed.store(true, Ordering::Relaxed);
        &self.snapshot
    }

    /// How many keys the transaction writes.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("apple", "red");
    /// transaction.put("apple", "green");
    /// assert_eq!(transaction.len(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("apple", "red");
    /// transaction.set_savepoint();
    /// transaction.put("apple", "green");
    /// transaction.rollback_to_savepoint()?;
    /// transaction.commit()?;
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn set_savepoint(&mut self) {
        self.writes.set_savepoint();
    }

    /// Undoes every write since the last savepoint, and forgets that savepoint. What was read [for
    /// update](Transaction::get_for_update) stays so.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.set_savepoint();
    /// transaction.put("apple", "red");
    /// transaction.rollback_to_savepoint()?;
    /// assert!(transaction.is_empty());
    /// assert!(transaction.rollback_to_savepoint().is_err()); // it is forgotten
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if there is no savepoint.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        if self.writes.rollback_to_savepoint() {
            Ok(())
        } else {
            Err(Error::invalid_argument("the transaction has no savepoint"))
        }
    }

    /// Applies all writes at once. They survive the death of the process.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let (mut first, mut second) = (db.transaction(), db.transaction());
    /// first.put("apple", "red");
    /// second.put("apple", "green");
    /// first.commit()?;
    /// assert_eq!(second.commit().unwrap_err().kind(), ErrorKind::Conflict);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) if others have written what it rests on: see
    /// [above](Transaction#when-it-fails). [`Deadlock`](ErrorKind::Deadlock) and
    /// [`TimedOut`](ErrorKind::TimedOut) if it writes keys that others have locked, as with
    /// [`get_for_update`](Self::get_for_update). Else those of
    /// [`Db::write_with`](crate::Db::write_with). A transaction without writes does nothing,
    /// whatever it has read.
    pub fn commit(self) -> Result<()> {
        self.commit_with(WriteOptions::new())
    }

    /// Applies all writes at once, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("balance", "100");
    /// transaction.commit_with(WriteOptions::sync())?; // survives the loss of power
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit).
    pub fn commit_with(mut self, options: WriteOptions) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.is_empty() {
            return self.core.files.check_open();
        }
        let batch = self.batch();
        let since = self.snapshot.sequence();
        let mut locks = self.locks.take();
        let reads = self.reads.as_ref().map(|reads| &reads.set);
        let keys = self.checked_keys(locks.as_ref());
        write_unless_changed(
            &self.core,
            &batch,
            keys.into_iter(),
            reads,
            since,
            &mut locks,
            options,
        )
    }

    /// The writes as a batch.
    fn batch(&self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for (key, write) in self.writes.iter() {
            match write {
                Write::Put(value) => batch.put(key.as_slice(), value),
                Write::Delete => batch.delete(key.as_slice()),
            }
        }
        batch
    }

    /// The keys that must not have been written since the snapshot, besides what was noted as read:
    /// not those that no other could write.
    fn checked_keys(&self, locks: Option<&LockOwner>) -> Vec<&[u8]> {
        // A serializable one does not rest on what it has not read; nor does a locking one rest on
        // a moment, as long as it has read nothing but what it has locked.
        let rests_on_moment = locks.is_none() || self.is_fixed.load(Ordering::Relaxed);
        if self.reads.is_some() || !rests_on_moment {
            return Vec::new();
        }
        let written = self.writes.iter().map(|(key, _)| key.as_slice());
        let is_free = |key: &&[u8]| !locks.is_some_and(|locks| locks.holds(key));
        written.filter(is_free).chain(self.relied_on.iter().map(Vec::as_slice)).collect()
    }

    /// Forgets all writes.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("apple", "red");
    /// transaction.rollback(); // as dropping it does
    /// assert_eq!(db.get("apple")?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn rollback(self) {}
}

/// Whether a transaction that met `error` for a lock cannot be committed any more.
fn is_final(error: &&Error) -> bool {
    matches!(error.kind(), ErrorKind::Deadlock | ErrorKind::Conflict)
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("sequence", &self.snapshot.sequence())
            .field("writes", &self.len())
            .finish_non_exhaustive()
    }
}
