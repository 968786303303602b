//! The scans of a transaction, and ranges of what it sees as Rust iterators.

use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::db::concurrency::read_set::Scan;
use crate::db::read::cursor::Cursor;
use crate::db::read::range::{Entry, RangeIter, owned};
use crate::iterator::scan_bounds::ScanBounds;

use super::Transaction;
use super::cursor::TransactionCursor;

/// The entries of a range that a transaction sees, from either end, each as an owned key and value.
///
/// After an error it ends.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// db.put("a", "database")?;
/// let mut transaction = db.transaction();
/// transaction.put("b", "own");
/// let last = transaction.iter().next_back().transpose()?;
/// assert_eq!(last, Some((b"b".to_vec(), b"own".to_vec())));
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct TransactionEntries<'t> {
    transaction: &'t Transaction,
    range: RangeIter<TransactionCursor<'t>>,
}

impl<'t> TransactionEntries<'t> {
    fn range<K: AsRef<[u8]>>(transaction: &'t Transaction, range: &impl RangeBounds<K>) -> Self {
        Self::new(transaction, RangeIter::new(transaction.keys(), range))
    }

    fn prefix(transaction: &'t Transaction, prefix: &[u8]) -> Result<Self> {
        Ok(Self::new(transaction, RangeIter::prefix(transaction.keys(), prefix)?))
    }

    fn new(transaction: &'t Transaction, range: RangeIter<TransactionCursor<'t>>) -> Self {
        TransactionEntries { transaction, range }
    }
}

impl Iterator for TransactionEntries<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let transaction = self.transaction;
        let entry = self.range.next(|bounds| transaction.bounded_cursor(bounds));
        entry.map(|entry| entry.map(owned)).transpose()
    }
}

impl DoubleEndedIterator for TransactionEntries<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let transaction = self.transaction;
        let entry = self.range.next_back(|bounds| transaction.bounded_cursor(bounds));
        entry.map(|entry| entry.map(owned)).transpose()
    }
}

impl std::iter::FusedIterator for TransactionEntries<'_> {}

impl std::fmt::Debug for TransactionEntries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bounds = self.range.bounds();
        f.debug_struct("TransactionEntries")
            .field("from", bounds.lower())
            .field("to", bounds.upper())
            .finish_non_exhaustive()
    }
}

impl Transaction {
    /// A cursor over everything that the transaction sees. Seek it first.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let mut transaction = db.transaction();
    /// transaction.put("banana", "yellow");
    /// let mut cursor = transaction.cursor()?;
    /// cursor.seek("b");
    /// assert_eq!(cursor.entry(), Some((&b"banana"[..], &b"yellow"[..])));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn cursor(&self) -> Result<TransactionCursor<'_>> {
        self.bounded_cursor(&Arc::new(ScanBounds::none(self.keys())))
    }

    /// A cursor of which nothing counts as read that lies outside of the bounds, and which goes no
    /// farther.
    fn bounded_cursor(&self, bounds: &Arc<ScanBounds>) -> Result<TransactionCursor<'_>> {
        self.is_fixed.store(true, Ordering::Relaxed);
        let database = Cursor::within(&self.core, Some(bounds), &self.read)?;
        let scan =
            self.reads.as_ref().map(|reads| Scan::new(&reads.set, bounds.lower(), bounds.upper()));
        let keys = self.keys().clone();
        Ok(TransactionCursor::new(database, &self.writes, keys, bounds.clone(), scan))
    }

    /// Every entry that the transaction sees, in order of keys, from either end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete("apple");
    /// transaction.put("banana", "yellow");
    /// let all: Vec<_> = transaction.iter().collect::<Result<_>>()?;
    /// assert_eq!(all, [(b"banana".to_vec(), b"yellow".to_vec())]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn iter(&self) -> TransactionEntries<'_> {
        self.range::<&[u8]>(..)
    }

    /// The entries whose keys are in `range`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("2026-11-23", "rain")?;
    /// let mut transaction = db.transaction();
    /// transaction.put("2026-11-24", "sun");
    /// assert_eq!(transaction.range("2026-11".."2026-12").count(), 2);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> TransactionEntries<'_> {
        TransactionEntries::range(self, &range)
    }

    /// The entries whose keys begin with `prefix`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("user:1", "Ada")?;
    /// let mut transaction = db.transaction();
    /// transaction.put("user:2", "Grace");
    /// assert_eq!(transaction.prefix("user:")?.count(), 2);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotSupported` under a custom comparator.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<TransactionEntries<'_>> {
        TransactionEntries::prefix(self, prefix.as_ref())
    }
}
