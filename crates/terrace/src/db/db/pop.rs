//! Takes the first or the last entry of a range out of the database.
//!
//! A pop is a serializable transaction: an entry that is written in front of the one it has found
//! sends it back. All pops of a range want the same entry, so they take turns.

use std::ops::{Bound, RangeBounds};

use crate::base::error::Result;

use crate::db::db::Db;
use crate::db::key_range::prefix_end;
use crate::db::options::WriteOptions;
use crate::db::transaction::{Isolation, TransactOptions, TransactionOptions};
use crate::db::view::catalogue::entry;

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// The end of a range that an entry is taken from.
#[derive(Clone, Copy)]
pub(in crate::db) enum End {
    First,
    Last,
}

/// Queues and stacks.
impl Db {
    /// Deletes the entry with the smallest key and returns it. Of any number of callers each gets
    /// another entry. Entries of [keyspaces](crate::Keyspace) count as keys of the database; the
    /// catalogue of keyspaces stays.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/queue.db", options.create_if_missing(true))?;
    /// db.put("0001", "first task")?;
    /// db.put("0002", "second task")?;
    /// let task = db.pop_first()?;
    /// assert_eq!(task, Some((b"0001".to_vec(), b"first task".to_vec())));
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with) and [`write_with`](Self::write_with).
    pub fn pop_first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop_first_in::<&[u8]>(.., WriteOptions::new())
    }

    /// Deletes the entry with the largest key and returns it, as [`pop_first`](Self::pop_first)
    /// does at the other end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("1", "lower")?;
    /// db.put("2", "upper")?;
    /// assert_eq!(db.pop_last()?, Some((b"2".to_vec(), b"upper".to_vec())));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`pop_first`](Self::pop_first).
    pub fn pop_last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop_last_in::<&[u8]>(.., WriteOptions::new())
    }

    /// Deletes the first entry whose key is in `range` and returns it, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("job:7", "mail")?;
    /// db.put("job:8", "print")?;
    /// // Durable before it is handed out: no job is done twice.
    /// let job = db.pop_first_in("job:".."job;", WriteOptions::sync())?;
    /// assert_eq!(job, Some((b"job:7".to_vec(), b"mail".to_vec())));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`pop_first`](Self::pop_first).
    pub fn pop_first_in<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: WriteOptions,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(&range, End::First, options, || Ok(()))
    }

    /// Deletes the last entry whose key is in `range` and returns it, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("job:7", "mail")?;
    /// db.put("task", "none of them")?;
    /// let job = db.pop_last_in("job:".."job;", WriteOptions::new())?;
    /// assert_eq!(job, Some((b"job:7".to_vec(), b"mail".to_vec())));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`pop_first`](Self::pop_first).
    pub fn pop_last_in<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: WriteOptions,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(&range, End::Last, options, || Ok(()))
    }

    /// Takes an entry, unless `terms` fails.
    pub(in crate::db) fn pop<K: AsRef<[u8]>>(
        &self,
        range: &impl RangeBounds<K>,
        end: End,
        options: WriteOptions,
        terms: impl Fn() -> Result<()>,
    ) -> Result<Option<Entry>> {
        self.core().files.check_writable()?;
        let turn = match range.start_bound() {
            Bound::Included(from) | Bound::Excluded(from) => from.as_ref(),
            Bound::Unbounded => &[],
        };
        let turn = self.core().writes.control.pop_turn(turn);
        let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
        let transact = TransactOptions::new().transaction_options(serializable);
        let is_bytewise = self.core().files.order.keys.is_bytewise();
        let bounds = (range.start_bound().map(AsRef::as_ref), range.end_bound().map(AsRef::as_ref));
        let popped = self.transact_with(transact, |transaction| -> Result<Option<Entry>> {
            // Whatever ends them later is a write of the range.
            terms()?;
            let outermost = |from, to| {
                let mut entries = transaction.range::<&[u8]>((from, to));
                if matches!(end, End::First) { entries.next() } else { entries.next_back() }
            };
            let (from, to) = bounds;
            let mut found = outermost(from, to).transpose()?;
            if is_bytewise && found.as_ref().is_some_and(|(key, _)| key.starts_with(entry::PREFIX))
            {
                // Behind the catalogue, which no program has put there.
                let behind = prefix_end(entry::PREFIX).unwrap_or_default();
                found = match end {
                    End::First => outermost(Bound::Included(&behind), to),
                    End::Last => outermost(from, Bound::Excluded(entry::PREFIX)),
                }
                .transpose()?;
            }
            let Some((key, value)) = found else { return Ok(None) };
            transaction.delete(&key);
            Ok(Some((key, value)))
        })?;
        drop(turn);
        // The next one need not wait for the disk.
        if options.sync && popped.is_some() {
            self.sync()?;
        }
        Ok(popped)
    }
}
