//! The database as it was at one moment.

use std::ops::RangeBounds;
use std::sync::Arc;

use crate::base::error::Result;

use crate::db::db_impl::DbImpl;
use crate::db::read;
use crate::db::read::cursor::Cursor;
use crate::db::read::entries::Entries;
use crate::db::read::expiring;
use crate::db::read::read_options::ReadOptions;
use crate::db::view::snapshot_list::SnapshotImpl;

/// The database as it was when the snapshot was taken. Clones share it; the last one releases it.
///
/// A live snapshot keeps old versions of changed keys on disk. It does not keep the database open.
///
/// # Example
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options)?;
/// db.put("apple", "red")?;
/// let before = db.snapshot();
/// db.put("apple", "green")?;
/// assert_eq!(before.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    held: Arc<SnapshotImpl>,
    /// The last one: fields are dropped in this order.
    core: Arc<DbImpl>,
}

impl Snapshot {
    pub(in crate::db) fn take(core: &Arc<DbImpl>) -> Self {
        let DbImpl { files, views, background, .. } = &**core;
        let present = || views.visible_sequence();
        let now = files.env.now_micros();
        let read_time = || expiring::read_time(core);
        let owner = background.clone();
        let held = SnapshotImpl::take(&views.snapshots, present, now, read_time, owner);
        Snapshot { held: Arc::new(held), core: core.clone() }
    }

    /// The sequence number of the last write that the snapshot sees.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let before = db.snapshot().sequence();
    /// db.put("apple", "red")?;
    /// assert!(db.snapshot().sequence() > before);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn sequence(&self) -> u64 {
        self.held.sequence()
    }

    fn options(&self) -> ReadOptions {
        ReadOptions::new().snapshot(self)
    }

    /// Returns the value that `key` had, if it had one.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/snapshot.db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.put("apple", "green")?;
    /// assert_eq!(before.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # drop(before);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        read::get(&self.core, key.as_ref(), &self.options(), <[u8]>::to_vec)
    }

    /// Returns whether `key` had a value.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let empty = db.snapshot();
    /// db.put("apple", "red")?;
    /// assert!(!empty.contains_key("apple")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        read::contains(&self.core, key.as_ref(), &self.options())
    }

    /// Returns the values that `keys` had, in their order.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.put("banana", "yellow")?;
    /// assert_eq!(before.multi_get(&["apple", "banana"])?, [Some(b"red".to_vec()), None]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        read::multi_get(&self.core, keys, &self.options())
    }

    /// Returns a cursor over the database as it was, at no entry: seek it first.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.put("apple", "green")?;
    /// let mut cursor = before.cursor()?;
    /// cursor.seek_to_first();
    /// assert_eq!(cursor.value(), b"red");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn cursor(&self) -> Result<Cursor> {
        Cursor::new(&self.core, &self.options())
    }

    /// Returns every entry that there was, in the order of keys, from either end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.delete("apple")?;
    /// assert_eq!((before.iter()?.count(), db.iter()?.count()), (1, 0));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn iter(&self) -> Result<Entries> {
        self.range::<&[u8]>(..)
    }

    /// Returns the entries that there were in `range`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("2026-11-23", "rain")?;
    /// let before = db.snapshot();
    /// db.put("2026-11-24", "sun")?;
    /// assert_eq!(before.range("2026-11".."2026-12")?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Entries> {
        Entries::range(&self.core, &range, &self.options())
    }

    /// Returns the entries that there were whose keys begin with `prefix`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("user:1", "Ada")?;
    /// let before = db.snapshot();
    /// db.delete("user:1")?;
    /// assert_eq!(before.prefix("user:")?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::prefix_with`](crate::Db::prefix_with).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Entries> {
        Entries::prefix(&self.core, prefix.as_ref(), &self.options())
    }
}

impl ReadOptions {
    /// Read the database as it was when `snapshot` was taken.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.put("banana", "yellow")?;
    /// assert_eq!(db.iter_with(&ReadOptions::new().snapshot(&before))?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn snapshot(mut self, snapshot: &Snapshot) -> Self {
        self.snapshot = Some(snapshot.held.clone());
        self
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.held.fmt(f)
    }
}
