//! Finds the prepared transactions of a database that is being opened, and locks their keys.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{ErrorKind, Result};
use crate::base::mutation::mutated;
use crate::write::batch::WriteBatch;

use crate::db::concurrency::ordered_key::shown;
use crate::db::db_impl::DbImpl;
use crate::db::db_impl::prepared_list::Prepared;
use crate::db::key_range::{check_prefixes, prefix_end};
use crate::db::options::WriteOptions;
use crate::db::read::cursor::Cursor;
use crate::db::read::read_options::ReadOptions;
use crate::db::transaction::conflicts::{check_keys, newest};
use crate::db::transaction::prepared::{commit_batch, has_value};

use crate::db::transaction::prepared_record::{self, PreparedRecord};

/// See the [module](self). Called before the first write.
pub(in crate::db) fn recover(core: &Arc<DbImpl>) -> Result<()> {
    if !core.files.options.prepared_transactions {
        return Ok(());
    }
    check_prefixes(&core.files.order.keys)?;
    let first = prepared_record::key(b"");
    let mut options = ReadOptions::new();
    options.upper_bound = prefix_end(&first);
    let mut cursor = Cursor::new(core, &options)?;
    cursor.seek(&first);
    while cursor.valid()
        && let Some(name) = prepared_record::name(cursor.key())
    {
        match PreparedRecord::decode(name, cursor.value()) {
            Some(record) => add(core, name, record)?,
            None => core.files.log(format!("{} is no prepared transaction", shown(cursor.key()))),
        }
        cursor.next();
    }
    cursor.status()?;
    if core.files.options.read_only || mutated("prepared-found") {
        return Ok(());
    }
    // The end of a process decides nothing about what it had not synced. A coordinator goes by what
    // is listed here and what is not, so that has to survive the next loss of power.
    core.writes.write(&WriteBatch::new(), WriteOptions::sync()).map(drop)
}

/// Adds a transaction that was found to the list, with its locks.
fn add(core: &Arc<DbImpl>, name: &[u8], record: PreparedRecord) -> Result<()> {
    let record_key = prepared_record::key(name);
    let manager = &core.writes.control.locks;
    // No other record has this key among its own, so its lock is to be had.
    let mut locks = manager.owner(manager.next_age(), Duration::MAX);
    locks.lock(&record_key)?;
    let is_overtaken = manager.locked_key(None, record.keys()).is_some()
        || has_changed(core, &record, &record_key)?;
    if !is_overtaken && !mutated("prepared-locks") {
        record.keys().try_for_each(|key| locks.lock(key))?;
    }
    let state = if is_overtaken { ", which others have overtaken" } else { "" };
    core.files.log(format!("found the prepared transaction {}{state}", shown(name)));
    let commit = commit_batch(record, &record_key);
    core.prepared.insert(name, Prepared::new(commit, is_overtaken, locks));
    Ok(())
}

/// Whether a key of the transaction was written since it was prepared. A write that has left no
/// entry, such as a deletion whose tombstone is gone or a range delete, shows by whether there is a
/// value; so does an ingested table, whose entries may have the sequence number 0.
fn has_changed(core: &Arc<DbImpl>, record: &PreparedRecord, record_key: &[u8]) -> Result<bool> {
    if mutated("prepared-overtaken") {
        return Ok(false);
    }
    let view = core.views.current.load_full();
    let since = newest(core, &view, record_key)?.unwrap_or(0);
    match check_keys(core, &view, record.keys(), since, true) {
        Err(error) if error.kind() == ErrorKind::Conflict => return Ok(true),
        checked => checked?,
    }
    for (key, before) in record.keys().zip(&record.before) {
        if !before.agrees_with(has_value(core, key)?) {
            return Ok(true);
        }
    }
    Ok(false)
}
