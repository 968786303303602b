//! Reads of a [`Db`].

use std::ops::RangeBounds;

use crate::base::error::Result;

use crate::db::db::Db;
use crate::db::read;
use crate::db::read::cursor::Cursor;
use crate::db::read::entries::Entries;
use crate::db::read::pinned::PinnedValue;
use crate::db::read::read_options::ReadOptions;
use crate::db::read::snapshot::Snapshot;

/// Reads. None waits for a writer.
impl Db {
    /// Returns the value of `key`, if it has one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// assert_eq!(db.get("banana")?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, &ReadOptions::new())
    }

    /// Returns the value of `key`, if it has one, read as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.put("apple", "green")?;
    /// let then = ReadOptions::new().snapshot(&before).fill_cache(false);
    /// assert_eq!(db.get_with("apple", &then)?.as_deref(), Some(&b"red"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Corruption`](crate::ErrorKind::Corruption), naming file and offset, if a block that the
    ///   lookup needs is damaged; [`Io`](crate::ErrorKind::Io) if it cannot be read.
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the snapshot is another
    ///   database's.
    /// - [`Closed`](crate::ErrorKind::Closed) after [`close`](Self::close).
    pub fn get_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        read::get(self.core(), key.as_ref(), options, <[u8]>::to_vec)
    }

    /// Replaces the contents of `buffer` by the value of `key`, reusing its memory. Returns whether
    /// there is a value; if not, the buffer is as it was.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("a", "12")?;
    /// db.put("b", "345")?;
    /// let (mut buffer, mut bytes) = (Vec::new(), 0);
    /// for key in ["a", "b", "c"] {
    ///     if db.get_into(key, &mut buffer)? {
    ///         bytes += buffer.len();
    ///     }
    /// }
    /// assert_eq!(bytes, 5);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_into(&self, key: impl AsRef<[u8]>, buffer: &mut Vec<u8>) -> Result<bool> {
        self.get_into_with(key, buffer, &ReadOptions::new())
    }

    /// Does what [`get_into`](Self::get_into) does, reading as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.delete("apple")?;
    /// let (mut value, then) = (Vec::new(), ReadOptions::new().snapshot(&before));
    /// assert!(db.get_into_with("apple", &mut value, &then)? && value == b"red");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_into_with(
        &self,
        key: impl AsRef<[u8]>,
        buffer: &mut Vec<u8>,
        options: &ReadOptions,
    ) -> Result<bool> {
        let found = read::get(self.core(), key.as_ref(), options, |value| {
            buffer.clear();
            buffer.extend_from_slice(value);
        })?;
        Ok(found.is_some())
    }

    /// Does what [`get_into_with`](Self::get_into_with) does, but reads no file: `None` if neither
    /// memtables nor cached blocks of open tables tell whether there is a value. For threads that
    /// must not wait for a device, such as those of an event loop; they leave the lookup to another
    /// thread then.
    ///
    /// A cached block of a mapped file is still read from its mapping, whose pages the system may
    /// have taken back in the meantime, as it may take any memory of a process that is short of it.
    /// So are indexes and filters of mapped tables. `fill_cache` of `options` makes no difference.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/get_in_memory.db", options)?;
    /// db.put("apple", "red")?;
    /// let mut value = Vec::new();
    /// let found = db.get_in_memory("apple", &mut value, &terrace::ReadOptions::new())?;
    /// assert_eq!(found, Some(true), "it is in the memtable");
    /// assert_eq!(value, b"red");
    /// # db.close()
    /// # }
    /// ```
    pub fn get_in_memory(
        &self,
        key: impl AsRef<[u8]>,
        buffer: &mut Vec<u8>,
        options: &ReadOptions,
    ) -> Result<Option<bool>> {
        let found = read::get_in_memory(self.core(), key.as_ref(), options, |value| {
            buffer.clear();
            buffer.extend_from_slice(value);
        })?;
        Ok(found.map(|found| found.is_some()))
    }

    /// Returns the value of `key` where it lies in memory, for large values. A small value that is
    /// still in a memtable is copied.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("photo", vec![7; 100_000])?;
    /// if let Some(photo) = db.get_pinned("photo")? {
    ///     assert_eq!(photo[99_999], 7); // a slice of bytes, not copied
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedValue>> {
        self.get_pinned_with(key, &ReadOptions::new())
    }

    /// Does what [`get_pinned`](Self::get_pinned) does, reading as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("photo:7", vec![7; 100_000])?;
    /// let once = ReadOptions::new().fill_cache(false); // leaves the cache to other reads
    /// assert_eq!(db.get_pinned_with("photo:7", &once)?.map(|photo| photo.len()), Some(100_000));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_pinned_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        read::get_pinned(self.core(), key.as_ref(), options)
    }

    /// Returns the values of `keys`, in their order, all as of one moment.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.put("cherry", "dark red")?;
    /// let found = db.multi_get(&["apple", "banana", "cherry"])?;
    /// assert_eq!(found, [Some(b"red".to_vec()), None, Some(b"dark red".to_vec())]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.multi_get_with(keys, &ReadOptions::new())
    }

    /// Does what [`multi_get`](Self::multi_get) does, reading as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let before = db.snapshot();
    /// db.put("apple", "red")?;
    /// let then = ReadOptions::new().snapshot(&before);
    /// assert_eq!(db.multi_get_with(&["apple"], &then)?, [None]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        read::multi_get(self.core(), keys, options)
    }

    /// Returns whether `key` has a value.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// assert!(db.contains_key("apple")? && !db.contains_key("banana")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.contains_key_with(key, &ReadOptions::new())
    }

    /// Returns whether `key` has a value, read as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let before = db.snapshot();
    /// db.put("apple", "red")?;
    /// assert!(!db.contains_key_with("apple", &ReadOptions::new().snapshot(&before))?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn contains_key_with(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<bool> {
        read::contains(self.core(), key.as_ref(), options)
    }

    /// Returns the entry with the smallest key, if there is an entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// assert_eq!(db.first()?, None);
    /// db.put("banana", "yellow")?;
    /// db.put("apple", "red")?;
    /// assert_eq!(db.first()?, Some((b"apple".to_vec(), b"red".to_vec())));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.iter()?.next().transpose()
    }

    /// Returns the entry with the largest key, if there is an entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("2026-11-23", "rain")?;
    /// db.put("2026-11-24", "sun")?;
    /// let (day, _) = db.last()?.expect("there are entries");
    /// assert_eq!(day, b"2026-11-24");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.iter()?.next_back().transpose()
    }

    /// Returns a cursor over the whole database, at no entry: seek it first.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.put("banana", "yellow")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek("b");
    /// assert_eq!(cursor.key(), b"banana");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn cursor(&self) -> Result<Cursor> {
        self.cursor_with(&ReadOptions::new())
    }

    /// Returns a cursor that reads as `options` say, between their
    /// [bounds](ReadOptions::lower_bound).
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// for key in ["a", "b", "c", "d"] {
    ///     db.put(key, "")?;
    /// }
    /// let mut cursor = db.cursor_with(&ReadOptions::new().lower_bound("b").upper_bound("d"))?;
    /// cursor.seek_to_last();
    /// assert_eq!(cursor.key(), b"c");
    /// cursor.seek("a");
    /// assert_eq!(cursor.key(), b"b");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn cursor_with(&self, options: &ReadOptions) -> Result<Cursor> {
        Cursor::new(self.core(), options)
    }

    /// Returns every entry, in the order of keys, from either end: those of keyspaces, too, under
    /// their full keys, and where there are any the engine's own, whose keys begin with
    /// `!$terrace!` (docs/format.md). [`Keyspace::iter`](crate::Keyspace::iter) returns those of one
    /// keyspace.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.put("banana", "yellow")?;
    /// for entry in db.iter()?.rev() {
    ///     let (fruit, colour) = entry?;
    ///     println!("{}: {}", String::from_utf8_lossy(&fruit), String::from_utf8_lossy(&colour));
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn iter(&self) -> Result<Entries> {
        self.iter_with(&ReadOptions::new())
    }

    /// Returns every entry, read as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// // A scan of everything that leaves the cache to others.
    /// assert_eq!(db.iter_with(&ReadOptions::new().fill_cache(false))?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn iter_with(&self, options: &ReadOptions) -> Result<Entries> {
        self.range_with::<&[u8]>(.., options)
    }

    /// Returns the entries whose keys are in `range`, from either end.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/range.db", options.create_if_missing(true))?;
    /// db.put("2026-11-23", "rain")?;
    /// db.put("2026-11-24", "sun")?;
    /// db.put("2026-12-01", "snow")?;
    /// for entry in db.range("2026-11".."2026-12")? {
    ///     let (day, weather) = entry?;
    ///     println!("{}: {}", String::from_utf8_lossy(&day), String::from_utf8_lossy(&weather));
    /// }
    /// # assert_eq!(db.range("2026-11".."2026-12")?.count(), 2);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Entries> {
        self.range_with(range, &ReadOptions::new())
    }

    /// Returns the entries whose keys are in `range`, read as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.put("banana", "yellow")?;
    /// let then = ReadOptions::new().snapshot(&before);
    /// assert_eq!(db.range_with("a"..="z", &then)?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn range_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: &ReadOptions,
    ) -> Result<Entries> {
        Entries::range(self.core(), &range, options)
    }

    /// Returns the entries whose keys begin with `prefix`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("user:1", "Ada")?;
    /// db.put("user:2", "Grace")?;
    /// db.put("visit:1", "2026-11-24")?;
    /// assert_eq!(db.prefix("user:")?.count(), 2);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`prefix_with`](Self::prefix_with).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Entries> {
        self.prefix_with(prefix, &ReadOptions::new())
    }

    /// Returns the entries whose keys begin with `prefix`, read as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("user:1", "Ada")?;
    /// let once = ReadOptions::new().fill_cache(false); // leaves the cache to other reads
    /// assert_eq!(db.prefix_with("user:", &once)?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`NotSupported`](crate::ErrorKind::NotSupported) under a custom comparator, where such keys
    /// need not be neighbours; else those of [`get_with`](Self::get_with).
    pub fn prefix_with(&self, prefix: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Entries> {
        Entries::prefix(self.core(), prefix.as_ref(), options)
    }

    /// Returns the database as it is now, for any number of reads later.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.delete("apple")?;
    /// assert!(before.contains_key("apple")? && !db.contains_key("apple")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.core())
    }
}
