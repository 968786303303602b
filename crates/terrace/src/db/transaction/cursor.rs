//! Scans of what a transaction sees: the database as it was when it began, with its own writes on
//! top.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::Result;
use crate::db::concurrency::read_set::Scan;
use crate::db::read::cursor::Cursor;
use crate::db::read::range::implements_scan_cursor;
use crate::db::view::catalogue::ExpiryCheck;
use crate::iterator::scan_bounds::ScanBounds;

use super::own_writes::{OwnEntry, OwnWrites};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Where the entry that is shown is from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Database,
    Own,
}

/// A position among the entries that a transaction sees, its own writes included.
///
/// It moves as a [`Cursor`] does. While it is in use the transaction takes no writes.
///
/// # Invariants
/// 1. Forward, the database's cursor and the own entry stand at their first keys at or after what
///    is shown; backward, at their last at or before it.
/// 2. An own entry hides the database's of the same key.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// db.put("b", "database")?;
/// let mut transaction = db.transaction();
/// transaction.put("a", "own");
/// let mut cursor = transaction.cursor()?;
/// cursor.seek_to_first();
/// assert_eq!(cursor.key(), b"a");
/// cursor.next();
/// assert_eq!(cursor.key(), b"b");
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct TransactionCursor<'t> {
    database: Cursor,
    writes: &'t OwnWrites,
    expiry: Option<ExpiryCheck>,
    keys: KeyOrder,
    /// Those of `database`.
    bounds: Arc<ScanBounds>,
    own: Option<OwnEntry<'t>>,
    direction: Direction,
    shown: Shown,
    /// In a serializable transaction.
    scan: Option<Scan<'t>>,
}

impl<'t> TransactionCursor<'t> {
    pub(super) fn new(
        database: Cursor,
        writes: &'t OwnWrites,
        keys: KeyOrder,
        bounds: Arc<ScanBounds>,
        scan: Option<Scan<'t>>,
    ) -> Self {
        let (direction, shown) = (Direction::Forward, Shown::Nothing);
        let expiry = database.expiry_check();
        let own = None;
        TransactionCursor { database, writes, expiry, keys, bounds, own, direction, shown, scan }
    }

    /// Whether the cursor stands at an entry.
    pub fn valid(&self) -> bool {
        self.shown != Shown::Nothing
    }

    /// The key at the cursor; empty if it is not valid.
    pub fn key(&self) -> &[u8] {
        self.entry().map_or(&[], |(key, _)| key)
    }

    /// The value at the cursor; empty if it is not valid.
    pub fn value(&self) -> &[u8] {
        self.entry().map_or(&[], |(_, value)| value)
    }

    /// The key and the value at the cursor, if it is valid.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("apple", "red");
    /// let mut cursor = transaction.cursor()?;
    /// cursor.seek_to_first();
    /// while let Some((key, value)) = cursor.entry() {
    ///     println!("{key:?} = {value:?}");
    ///     cursor.next();
    /// }
    /// cursor.status()?; // the end, or an entry that cannot be read?
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self.shown {
            Shown::Nothing => None,
            Shown::Database => self.database.entry(),
            Shown::Own => self.own_entry(),
        }
    }

    /// The own entry that the cursor stands at, if it has a value that has not expired.
    fn own_entry(&self) -> Option<(&[u8], &[u8])> {
        let (key, write) = self.own?;
        let (key, value) = (key.as_slice(), write.value()?);
        let value = match &self.expiry {
            Some(check) => check.shown(key, value)?,
            None => value,
        };
        Some((key, value))
    }

    /// Moves to the first entry.
    pub fn seek_to_first(&mut self) {
        self.begin_scan(Bound::Unbounded);
        self.database.seek_to_first();
        self.own = self.writes.first();
        self.find(Direction::Forward);
    }

    /// Moves to the last entry.
    pub fn seek_to_last(&mut self) {
        self.begin_scan(Bound::Unbounded);
        self.database.seek_to_last();
        self.own = self.writes.last();
        self.find(Direction::Backward);
    }

    /// Moves to the first entry whose key is at or after `key`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("banana", "yellow");
    /// let mut cursor = transaction.cursor()?;
    /// cursor.seek("b");
    /// assert_eq!(cursor.key(), b"banana");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        self.begin_scan(Bound::Included(key));
        self.database.seek(key);
        self.own = self.writes.at_or_after(key);
        self.find(Direction::Forward);
    }

    /// Moves to the last entry whose key is at or before `key`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut transaction = db.transaction();
    /// transaction.put("banana", "yellow");
    /// let mut cursor = transaction.cursor()?;
    /// cursor.seek_for_prev("c");
    /// assert_eq!(cursor.key(), b"banana");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        self.begin_scan(Bound::Included(key));
        self.database.seek_for_prev(key);
        self.own = self.writes.at_or_before(key);
        self.find(Direction::Backward);
    }

    /// Moves to the next entry. Nothing happens if the cursor is not valid.
    pub fn next(&mut self) {
        self.go(Direction::Forward);
    }

    /// Moves to the previous entry. Nothing happens if the cursor is not valid.
    pub fn prev(&mut self) {
        self.go(Direction::Backward);
    }

    /// Why the cursor is invalid: `Ok` if it is only off an end.
    ///
    /// # Errors
    /// `Io` or `Corruption` if what the cursor came to cannot be read.
    pub fn status(&self) -> Result<()> {
        self.database.status()
    }

    fn begin_scan(&mut self, start: Bound<&[u8]>) {
        if let Some(scan) = &mut self.scan {
            scan.begin(start);
        }
    }

    fn go(&mut self, direction: Direction) {
        if !self.valid() {
            return;
        }
        if self.direction != direction {
            let key = self.key().to_vec();
            match direction {
                Direction::Forward => self.seek(&key),
                Direction::Backward => self.seek_for_prev(&key),
            }
        }
        let both = self.ordering() == Some(Ordering::Equal);
        if both || self.shown == Shown::Database {
            self.step_database();
        }
        if both || self.shown == Shown::Own {
            self.step_own();
        }
        self.find(direction);
    }

    fn step_database(&mut self) {
        match self.direction {
            Direction::Forward => self.database.next(),
            Direction::Backward => self.database.prev(),
        }
    }

    fn step_own(&mut self) {
        self.own = self.own.and_then(|(key, _)| match self.direction {
            Direction::Forward => self.writes.after(key),
            Direction::Backward => self.writes.before(key),
        });
    }

    /// How the database's key compares to the own one in the present direction, if there are both.
    fn ordering(&self) -> Option<Ordering> {
        let ((key, _), (own, _)) = (self.database.entry()?, self.own?);
        let ordering = self.keys.compare(key, own.as_slice());
        Some(if self.direction == Direction::Forward { ordering } else { ordering.reverse() })
    }

    /// Shows the first entry from where both stand, in this direction.
    fn find(&mut self, direction: Direction) {
        self.direction = direction;
        self.show();
        if let Some(mut scan) = self.scan.take() {
            let place = self.entry().map_or(Bound::Unbounded, |(key, _)| Bound::Included(key));
            scan.reach(direction == Direction::Forward, place);
            self.scan = Some(scan);
        }
    }

    fn show(&mut self) {
        loop {
            self.shown = Shown::Nothing;
            if self.database.status().is_err() {
                // Own writes would be shown as if there were no entries beside them.
                return;
            }
            let is_forward = self.direction == Direction::Forward;
            self.own =
                self.own.filter(|(key, _)| !self.bounds.is_beyond(key.as_slice(), is_forward));
            let ordering = self.ordering();
            if self.own.is_none() || ordering == Some(Ordering::Less) {
                if self.database.valid() {
                    self.shown = Shown::Database;
                }
                return;
            }
            if self.own_entry().is_some() {
                self.shown = Shown::Own;
                return;
            }
            if ordering == Some(Ordering::Equal) {
                self.step_database();
            }
            self.step_own();
        }
    }
}

implements_scan_cursor!(TransactionCursor<'_>);

impl std::fmt::Debug for TransactionCursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionCursor").field("valid", &self.valid()).finish_non_exhaustive()
    }
}
