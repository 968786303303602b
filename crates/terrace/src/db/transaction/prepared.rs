//! Two-phase commit: a transaction is prepared, which is durable and keeps others from its keys,
//! and committed or rolled back later, after a crash too.
//!
//! # Invariants
//! 1. The keys of a prepared transaction, and the key of its record, are locked from before it is
//!    checked for conflicts until it is decided; after a crash from before the first write.
//! 2. The commit is one batch, which applies the writes and removes the record.
//! 3. A transaction of which another program has written a key meanwhile is not committed.
//! 4. It is listed until its decision is known to be durable: what follows a failed sync is
//!    repeated under its name, and cannot be the opposite.

use std::fmt;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::SequenceNumber;
use crate::base::mutation::mutated;
use crate::write::batch::WriteBatch;

use crate::db::concurrency::lock_manager::LockOwner;
use crate::db::concurrency::ordered_key::shown;
use crate::db::db_impl::DbImpl;
use crate::db::db_impl::prepared_list::{Prepared, Progress};
use crate::db::key_range::check_prefixes;
use crate::db::options::WriteOptions;
use crate::db::read;
use crate::db::read::read_options::ReadOptions;
use crate::db::transaction::conflicts::check_keys;

use crate::db::transaction::prepared_record::{self, Before, PreparedRecord};

/// Bytes of a name, at most.
const MAX_NAME: usize = 1024;

/// A transaction that was prepared and is not decided yet.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).prepared_transactions(true);
/// # let db = Db::open("/db", options.env(std::sync::Arc::new(MemEnv::new())))?;
/// let mut transaction = db.transaction();
/// transaction.put("account", "90");
/// transaction.prepare("transfer 7")?;
/// let prepared = &db.prepared_transactions()?[0];
/// assert_eq!((&prepared.name[..], prepared.writes), (&b"transfer 7"[..], 1));
/// assert!(!prepared.is_overtaken);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
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

impl fmt::Debug for PreparedTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTransaction")
            .field("name", &format_args!("\"{}\"", self.name.escape_ascii()))
            .field("writes", &self.writes)
            .field("is_overtaken", &self.is_overtaken)
            .finish()
    }
}

/// The contents of a transaction that is to be prepared.
pub(super) struct Terms {
    pub(super) record: PreparedRecord,
    /// Keys that must not have been written since the sequence number `since`.
    pub(super) checked: Vec<Vec<u8>>,
    pub(super) since: SequenceNumber,
    pub(super) locks: LockOwner,
}

/// Whether a transaction may be prepared as `name`.
pub(super) fn check(core: &DbImpl, name: &[u8]) -> Result<()> {
    core.files.check_writable()?;
    check_option(core)?;
    check_prefixes(&core.files.order.keys)?;
    if name.len() > MAX_NAME {
        return Err(Error::invalid_argument(format!(
            "the name of a prepared transaction has {} bytes, may have {MAX_NAME}",
            name.len()
        )));
    }
    if core.prepared.contains(name) {
        let name = shown(name);
        return Err(Error::invalid_argument(format!(
            "a transaction is prepared as {name} already"
        )));
    }
    Ok(())
}

/// Fails where an open has not looked for prepared transactions.
fn check_option(core: &DbImpl) -> Result<()> {
    if core.files.options.prepared_transactions {
        return Ok(());
    }
    let message = "the database was opened without the option prepared_transactions";
    Err(Error::invalid_argument(message))
}

/// Locks all keys of a transaction, checks it for conflicts and makes it durable. See
/// [`Transaction::prepare`](super::Transaction::prepare).
pub(super) fn prepare(core: &Arc<DbImpl>, name: &[u8], terms: Terms) -> Result<()> {
    let Terms { mut record, checked, since, mut locks } = terms;
    let record_key = prepared_record::key(name);
    for key in record.keys().chain([record_key.as_slice()]) {
        locks.lock(key)?;
    }
    core.writes.await_commits();
    // Another one may have been prepared under the name before its lock was to be had.
    check(core, name)?;
    // No other writer can write the keys from here on.
    let view = core.views.current.load_full();
    let checked = checked.iter().map(Vec::as_slice);
    check_keys(core, &view, checked, since, view.in_tables > since)?;
    record.before = record.keys().map(|key| before(core, key)).collect::<Result<_>>()?;

    let mut batch = WriteBatch::new();
    let too_large = || Error::invalid_argument("the transaction is too large to be prepared");
    batch.put(&record_key, record.encode(name).ok_or_else(too_large)?);
    batch.check()?;
    let commit = commit_batch(record, &record_key);
    commit.check()?;
    let mut locks = Some(locks);
    let sequence =
        core.writes.write_holding(batch.view(), &mut locks, || Ok(())).map_err(of_environment)?;
    drop(batch);
    if let Some(locks) = locks {
        core.prepared.insert(name, Prepared::new(commit, false, locks));
    }
    if mutated("prepared-sync") {
        return Ok(());
    }
    core.writes.sync_log(sequence).map_err(of_environment)
}

/// An error of a write or a sync: a directory that is gone says nothing about whether the
/// transaction is, which is what `NotFound` means to callers.
fn of_environment(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::io_message(error.message()),
        _ => error,
    }
}

/// The batch that commits a transaction.
pub(super) fn commit_batch(record: PreparedRecord, record_key: &[u8]) -> WriteBatch {
    let mut commit = record.batch;
    commit.delete(record_key);
    commit
}

/// Whether `key`, which is locked, has a value, and whether that may go without a write.
fn before(core: &Arc<DbImpl>, key: &[u8]) -> Result<Before> {
    if !has_value(core, key)? {
        return Ok(Before::Absent);
    }
    let is_filtered = core.files.options.compaction_filter.is_some()
        || core.files.catalogue.filters.lock().longest(key).is_some();
    let may_vanish = is_filtered || core.background.prefix_settings()?.expires(key);
    Ok(if may_vanish { Before::MayVanish } else { Before::Present })
}

/// Whether `key` has a value, expired or not.
pub(super) fn has_value(core: &Arc<DbImpl>, key: &[u8]) -> Result<bool> {
    let as_stored = ReadOptions::new().stored_values(true);
    read::contains(core, key, &as_stored)
}

/// The transactions that are prepared and not decided, by name.
pub(in crate::db) fn list(core: &DbImpl) -> Result<Vec<PreparedTransaction>> {
    core.files.check_open()?;
    // In a child of a fork a thread of the parent may hold the lock for ever.
    core.files.check_own()?;
    check_option(core)?;
    let describe = |(name, prepared): (Vec<u8>, Arc<Prepared>)| PreparedTransaction {
        name,
        writes: prepared.commit.len() - 1,
        is_overtaken: prepared.is_overtaken,
    };
    Ok(core.prepared.all().into_iter().map(describe).collect())
}

/// Commits or undoes the transaction that was prepared as `name`, durably.
pub(in crate::db) fn decide(core: &DbImpl, name: &[u8], commits: bool) -> Result<()> {
    core.files.check_writable()?;
    check_option(core)?;
    let none = || Error::not_found(format!("no transaction is prepared as {}", shown(name)));
    let prepared = core.prepared.get(name).ok_or_else(none)?;
    // Another thread that decides the same one waits for the outcome.
    let mut progress = prepared.progress.lock();
    let mut removal = WriteBatch::new();
    removal.delete(prepared_record::key(name));
    let mut no_locks = None;
    let (batch, locks) = match &mut *progress {
        Progress::Decided => return Err(none()),
        Progress::Undecided(_) if commits && prepared.is_overtaken => return Err(overtaken(name)),
        Progress::Undecided(locks) if commits => (&prepared.commit, locks),
        Progress::Undecided(locks) => (&removal, locks),
        Progress::Written { committed } if *committed != commits => {
            return Err(decided_otherwise(name, *committed));
        }
        // The log is suspect: what it holds becomes durable before the next write does.
        Progress::Written { .. } => (&removal, &mut no_locks),
    };
    let options = WriteOptions::new();
    let sequence =
        core.writes.write_if(batch.view(), options, locks, || Ok(())).map_err(of_environment)?;
    *progress = Progress::Written { committed: commits };
    core.writes.sync_log(sequence).map_err(of_environment)?;
    *progress = Progress::Decided;
    core.prepared.remove(name);
    Ok(())
}

fn overtaken(name: &[u8]) -> Error {
    let name = shown(name);
    Error::conflict(format!(
        "another program has written a key of the transaction that was prepared as {name}; it can \
         only be rolled back"
    ))
}

fn decided_otherwise(name: &[u8], committed: bool) -> Error {
    let (name, decision) = (shown(name), if committed { "committed" } else { "rolled back" });
    Error::invalid_argument(format!(
        "the transaction that was prepared as {name} was {decision}, and the sync failed"
    ))
}
