//! A cursor for users, to move about with among the entries of a database.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::SequenceNumber;
use crate::iterator::db_iter::DbIter;
use crate::iterator::deleted_ranges::Beginning;
use crate::iterator::merged::Merged;
use crate::iterator::scan_bounds::ScanBounds;

use crate::db::db_impl::DbImpl;
use crate::db::read;
use crate::db::read::expiring::expiry_check;
use crate::db::read::held::Held;
use crate::db::read::range::implements_scan_cursor;
use crate::db::read::read_options::ReadOptions;
use crate::db::read::sampling::sample_seek;
use crate::db::view::View;
use crate::db::view::catalogue::ExpiryCheck;
use crate::db::view::snapshot_list::SnapshotImpl;

/// A position among the entries of a database, as they were when the cursor was made (or its
/// snapshot taken).
///
/// It starts out invalid: seek first. Off either end and after an error it is invalid too, and
/// [`Cursor::status`] tells which; then `key` and `value` are empty and `next` and `prev` do
/// nothing. A cursor keeps what it reads alive, on disk and in memory: hold it briefly. It may
/// outlive the `Db` and move between threads.
///
/// # Example
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options)?;
/// db.put("apple", "red")?;
/// db.put("banana", "yellow")?;
/// let mut cursor = db.cursor()?;
/// cursor.seek("b");
/// assert_eq!(cursor.entry(), Some((&b"banana"[..], &b"yellow"[..])));
/// cursor.prev();
/// assert_eq!(cursor.key(), b"apple");
/// cursor.prev();
/// assert!(!cursor.valid());
/// cursor.status()?; // it ran off the beginning, nothing failed
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct Cursor {
    /// Kept for as long as the cursor reads.
    _snapshot: Option<Arc<SnapshotImpl>>,
    expiry: Option<Box<Expiry>>,
    /// Bytes of the present value's trailer, which are not shown.
    trailer: usize,
    /// The last one: fields are dropped in this order, and the core is its last one.
    iter: DbIter<Held>,
}

/// Hides expired entries.
struct Expiry {
    check: Result<ExpiryCheck>,
    /// Why the cursor has stopped, if it could not tell what expires.
    failure: Option<Error>,
}

impl Expiry {
    /// Whether the value tells whether a key is there.
    fn needs_value(&self, key: &[u8]) -> bool {
        matches!(&self.check, Ok(check) if check.may_expire(key))
    }

    /// The bytes of the trailer of what is stored for a key; `None` if it has expired.
    fn trailer(&self, key: &[u8], stored: &[u8]) -> Result<Option<usize>> {
        match &self.check {
            Ok(check) => Ok(check.shown(key, stored).map(|value| stored.len() - value.len())),
            Err(error) if key.first() == Some(&b'!') => Err(error.clone()),
            Err(_) => Ok(Some(0)),
        }
    }
}

/// The way in which a cursor goes on over what it does not show.
#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

impl Cursor {
    pub(in crate::db) fn new(core: &Arc<DbImpl>, options: &ReadOptions) -> Result<Self> {
        Self::within(core, None, options)
    }

    /// A cursor that shows nothing outside of `bounds`, nor of those of `options`.
    pub(in crate::db) fn within(
        core: &Arc<DbImpl>,
        bounds: Option<&Arc<ScanBounds>>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let beginning = core.views.beginning();
        let (view, sequence) = read::present(core, options)?;
        let expiry = expiry_check(core, options);
        Self::over(core, view, sequence, beginning, expiry, bounds, options)
    }

    /// Checks values that may expire.
    pub(in crate::db) fn expiry_check(&self) -> Option<ExpiryCheck> {
        self.expiry.as_ref()?.check.clone().ok()
    }

    /// A cursor over what was read at a moment: any number of them, made at any time, read the
    /// same.
    pub(super) fn over(
        core: &Arc<DbImpl>,
        view: Arc<View>,
        sequence: SequenceNumber,
        beginning: Beginning,
        expiry: Option<Result<ExpiryCheck>>,
        bounds: Option<&Arc<ScanBounds>>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let sources = view.sources(&core.files.tables, &core.files.order, !options.skip_cache)?;
        let merged = Merged::new(sources, &core.files.order);
        let mut iter = DbIter::new(
            merged,
            core.files.order.keys.clone(),
            sequence,
            beginning,
            Held { view: Some(view), core: core.clone() },
        );
        if options.keys_only {
            iter.show_keys_only();
        }
        let (lower, upper) = (options.lower_bound.as_deref(), options.upper_bound.as_deref());
        if lower.or(upper).is_some() {
            let everything = || ScanBounds::none(&core.files.order.keys);
            let outer = bounds.map_or_else(everything, |bounds| (**bounds).clone());
            iter.set_bounds(Arc::new(outer.narrowed(lower, upper)));
        } else if let Some(bounds) = bounds.filter(|bounds| bounds.is_bounded()) {
            iter.set_bounds(bounds.clone());
        }
        let expiry = expiry.map(|check| Box::new(Expiry { check, failure: None }));
        let _snapshot = options.snapshot.clone();
        Ok(Cursor { _snapshot, expiry, trailer: 0, iter })
    }

    /// Reads the value at a cursor of [keys](ReadOptions::keys_only), if the entry has a pointer to
    /// it. If that fails the cursor is not valid any more.
    pub(in crate::db) fn load_value(&mut self) {
        self.iter.load();
    }

    /// Forgets why the cursor was invalid: a seek begins anew, a step does not.
    #[inline]
    fn forget_failure(&mut self) {
        if let Some(expiry) = &mut self.expiry {
            expiry.failure = None;
        }
    }

    /// Leaves an entry that has expired, for the next one that has not, and sees to its value.
    #[inline]
    fn settle(&mut self, direction: Direction) {
        if self.expiry.is_some() {
            self.leave_expired(direction);
        }
        self.iter.resolve();
    }

    /// Out of line: a step of a cursor without expiry stays short.
    #[inline(never)]
    fn leave_expired(&mut self, direction: Direction) {
        self.trailer = 0;
        let Some(expiry) = &mut self.expiry else { return };
        while self.iter.valid() {
            if self.iter.is_pending() && expiry.needs_value(self.iter.key()) {
                self.iter.load();
            }
            let Some((key, stored)) = self.iter.entry() else { return };
            match (expiry.trailer(key, stored), direction) {
                (Ok(Some(trailer)), _) => {
                    self.trailer = trailer;
                    return;
                }
                (Ok(None), Direction::Forward) => self.iter.next(),
                (Ok(None), Direction::Backward) => self.iter.prev(),
                (Err(error), _) => {
                    expiry.failure = Some(error);
                    return self.iter.leave();
                }
            }
        }
    }

    /// Moves to the first entry behind the lower bound.
    #[cold]
    fn seek_behind_lower_bound(&mut self) {
        let Some(bounds) = self.iter.bounds() else { return };
        let (Bound::Included(lower) | Bound::Excluded(lower)) = bounds.lower().clone() else {
            return self.iter.seek_to_first();
        };
        self.iter.seek(&lower);
        // A bound that is left out.
        if self.iter.valid() && self.iter.bounds().is_some_and(|it| it.is_below(self.iter.key())) {
            self.iter.next();
        }
    }

    /// Moves to the last entry before the upper bound.
    #[cold]
    fn seek_before_upper_bound(&mut self) {
        let Some(bounds) = self.iter.bounds() else { return };
        let (Bound::Included(upper) | Bound::Excluded(upper)) = bounds.upper().clone() else {
            return self.iter.seek_to_last();
        };
        self.iter.seek_for_prev(&upper);
        if self.iter.valid() && self.iter.bounds().is_some_and(|it| it.is_above(self.iter.key())) {
            self.iter.prev();
        }
    }

    /// Whether the cursor stands at an entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek_to_first();
    /// assert!(!cursor.valid()); // the database is empty
    /// cursor.status()?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[inline]
    pub fn valid(&self) -> bool {
        self.iter.valid()
    }

    /// The key at the cursor.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek_to_first();
    /// assert_eq!((cursor.key(), cursor.value()), (&b"apple"[..], &b"red"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.iter.key()
    }

    /// The value at the cursor.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.without_trailer(self.iter.value())
    }

    #[inline]
    fn without_trailer<'v>(&self, stored: &'v [u8]) -> &'v [u8] {
        stored.get(..stored.len().wrapping_sub(self.trailer)).unwrap_or_default()
    }

    /// The key and the value at the cursor, if it is valid.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek_to_first();
    /// while let Some((key, value)) = cursor.entry() {
    ///     println!("{} bytes, {} bytes", key.len(), value.len());
    ///     cursor.next();
    /// }
    /// cursor.status()?; // at the end, or at what cannot be read?
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.iter.entry().map(|(key, stored)| (key, self.without_trailer(stored)))
    }

    /// Moves to the first entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("a", "")?;
    /// # db.put("b", "")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek_to_first();
    /// assert_eq!(cursor.key(), b"a");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn seek_to_first(&mut self) {
        self.forget_failure();
        match self.iter.bounds() {
            Some(_) => self.seek_behind_lower_bound(),
            None => self.iter.seek_to_first(),
        }
        self.settle(Direction::Forward);
    }

    /// Moves to the last entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("a", "")?;
    /// # db.put("b", "")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek_to_last();
    /// assert_eq!(cursor.key(), b"b");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn seek_to_last(&mut self) {
        self.forget_failure();
        match self.iter.bounds() {
            Some(_) => self.seek_before_upper_bound(),
            None => self.iter.seek_to_last(),
        }
        self.settle(Direction::Backward);
    }

    /// Moves to the first entry whose key is at or after `key`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("apple", "")?;
    /// # db.put("cherry", "")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek("banana");
    /// assert_eq!(cursor.key(), b"cherry");
    /// cursor.seek("date");
    /// assert!(!cursor.valid());
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.forget_failure();
        sample_seek(&self.iter.keeper().core);
        let key = key.as_ref();
        match self.iter.bounds() {
            Some(bounds) if bounds.is_below(key) => self.seek_behind_lower_bound(),
            _ => self.iter.seek(key),
        }
        self.settle(Direction::Forward);
    }

    /// Moves to the last entry whose key is at or before `key`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("apple", "")?;
    /// # db.put("cherry", "")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek_for_prev("banana");
    /// assert_eq!(cursor.key(), b"apple");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) {
        self.forget_failure();
        sample_seek(&self.iter.keeper().core);
        let key = key.as_ref();
        match self.iter.bounds() {
            Some(bounds) if bounds.is_above(key) => self.seek_before_upper_bound(),
            _ => self.iter.seek_for_prev(key),
        }
        self.settle(Direction::Backward);
    }

    /// Moves to the next entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("a", "")?;
    /// # db.put("b", "")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek("a");
    /// cursor.next();
    /// assert_eq!(cursor.key(), b"b");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[inline]
    pub fn next(&mut self) {
        self.iter.next();
        self.settle(Direction::Forward);
    }

    /// See [`crate::db::abi::next_with`].
    #[inline]
    pub(in crate::db) fn next_with(&mut self, show: impl FnMut(&[u8], &[u8])) -> bool {
        debug_assert!(self.expiry.is_none(), "cursors of the drop-in show what has expired");
        self.iter.next_with(show)
    }

    /// Moves to the previous entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("a", "")?;
    /// # db.put("b", "")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek("b");
    /// cursor.prev();
    /// assert_eq!(cursor.key(), b"a");
    /// cursor.prev();
    /// assert!(!cursor.valid()); // and from here only a seek leads on
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[inline]
    pub fn prev(&mut self) {
        self.iter.prev();
        self.settle(Direction::Backward);
    }

    /// See [`crate::db::abi::prev_with`].
    #[inline]
    pub(in crate::db) fn prev_with(&mut self, show: impl FnMut(&[u8], &[u8])) -> bool {
        debug_assert!(self.expiry.is_none(), "cursors of the drop-in show what has expired");
        self.iter.prev_with(show)
    }

    /// Why the cursor is invalid: `Ok` if it is only off an end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek("x");
    /// if !cursor.valid() {
    ///     cursor.status()?; // an error if the entry is there and cannot be read
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` or `Corruption` if what the cursor came to cannot be read.
    pub fn status(&self) -> Result<()> {
        match self.expiry.as_ref().and_then(|expiry| expiry.failure.clone()) {
            Some(failure) => Err(failure),
            None => self.iter.status(),
        }
    }
}

implements_scan_cursor!(Cursor);

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("valid", &self.valid()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::db::open::close::close;
    use crate::db::open::open;
    use crate::db::options::{Options, WriteOptions};
    use crate::env::MemEnv;
    use crate::write::batch::WriteBatch;

    /// A reader may have got hold of memtables before another one was begun, and of its number
    /// after a write into that.
    #[test]
    fn a_deleted_range_that_is_younger_than_a_reader_hides_nothing_from_it() {
        let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
        let core = open(Path::new("/db"), options).unwrap();
        let write = |key: String, value| {
            core.writes.write_one(key.as_bytes(), value, WriteOptions::new()).unwrap();
        };
        let numbers = |range: std::ops::Range<u32>| range.map(|number| format!("{number:04}"));
        numbers(0..400).for_each(|key| write(key, Some(b"")));
        numbers(0..100).chain(numbers(101..200)).for_each(|key| write(key, None));
        let read = ReadOptions::new();
        let beginning = core.views.beginning();
        let view = core.views.current.load_full();
        core.writes.flush().unwrap();
        let mut batch = WriteBatch::new();
        batch.delete("0100");
        batch.put("0250", "later");
        core.writes.write(&batch, WriteOptions::new()).unwrap();
        let sequence = core.views.visible_sequence();
        let first = |mut cursor: Cursor| {
            cursor.seek_to_first();
            cursor.key().to_vec()
        };
        for _ in 0..3 {
            assert_eq!(first(Cursor::new(&core, &read).unwrap()), b"0200");
        }
        assert!(core.views.deleted_ranges.around(b"0050", sequence, |_, _| ()).is_some());
        let late = Cursor::over(&core, view, sequence, beginning, None, None, &read).unwrap();
        assert_eq!(first(late), b"0100");
        close(&core).unwrap();
    }
}
