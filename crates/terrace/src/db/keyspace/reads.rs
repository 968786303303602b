//! Reads of a keyspace.

use std::ops::RangeBounds;

use crate::base::error::Result;
use crate::db::key_range::prefix_end;
use crate::db::range_delete::terms::Terms;
use crate::db::read::cursor::Cursor;
use crate::db::read::pinned::PinnedValue;
use crate::db::read::read_options::ReadOptions;

use super::cursor::KeyspaceCursor;
use super::entries::KeyspaceEntries;
use super::keyspace::Keyspace;

impl Keyspace {
    /// Returns the value of `key`, if it has one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// assert_eq!(users.get("7")?.as_deref(), Some(&b"Ada"[..]));
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
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let before = db.snapshot(); // of the whole database
    /// users.delete("7")?;
    /// let then = ReadOptions::new().snapshot(&before);
    /// assert_eq!(users.get_with("7", &then)?.as_deref(), Some(&b"Ada"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed) if the keyspace was dropped and no snapshot is read;
    /// else those of [`Db::get_with`](crate::Db::get_with).
    pub fn get_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        self.check(options)?;
        self.db.get_with(self.key(key), options)
    }

    /// Returns the value of `key` where it lies in memory, for large values.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("photo:7", vec![7; 100_000])?;
    /// let photo = users.get_pinned("photo:7")?;
    /// assert_eq!(photo.map(|photo| photo.len()), Some(100_000)); // not copied
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedValue>> {
        self.incarnation.check()?;
        self.db.get_pinned(self.key(key))
    }

    /// Returns the values of `keys`, in their order, all as of one moment.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// assert_eq!(users.multi_get(&["7", "8"])?, [Some(b"Ada".to_vec()), None]);
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
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// let before = db.snapshot();
    /// users.put("7", "Ada")?;
    /// let then = ReadOptions::new().snapshot(&before);
    /// assert_eq!(users.multi_get_with(&["7"], &then)?, [None]);
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
        self.check(options)?;
        let keys: Vec<_> = keys.iter().map(|key| self.key(key)).collect();
        self.db.multi_get_with(&keys, options)
    }

    /// Returns whether `key` has a value.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// assert!(users.contains_key("7")? && !users.contains_key("8")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.incarnation.check()?;
        self.db.contains_key(self.key(key))
    }

    /// Returns the entry with the smallest key, if there is an entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let jobs = db.create_keyspace("jobs", KeyspaceOptions::new())?;
    /// jobs.put("7", "mail")?;
    /// jobs.put("8", "print")?;
    /// assert_eq!(jobs.first()?, Some((b"7".to_vec(), b"mail".to_vec())));
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
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// users.put("8", "Grace")?;
    /// assert_eq!(users.last()?, Some((b"8".to_vec(), b"Grace".to_vec())));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.iter()?.next_back().transpose()
    }

    /// Returns a cursor over the keyspace, at no entry: seek it first.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let mut cursor = users.cursor()?;
    /// cursor.seek("5");
    /// assert_eq!(cursor.key(), b"7");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn cursor(&self) -> Result<KeyspaceCursor> {
        self.cursor_with(&ReadOptions::new())
    }

    /// Returns a cursor that reads as `options` say; their bounds are keys of the keyspace.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// users.put("9", "Grace")?;
    /// let mut cursor = users.cursor_with(&ReadOptions::new().upper_bound("9"))?;
    /// cursor.seek_to_last();
    /// assert_eq!(cursor.key(), b"7");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn cursor_with(&self, options: &ReadOptions) -> Result<KeyspaceCursor> {
        self.check(options)?;
        let cursor = Cursor::new(self.db.core(), &self.options_within(options))?;
        Ok(KeyspaceCursor::new(cursor, self.prefix_bytes().to_vec()))
    }

    /// Returns every entry, in the order of keys, from either end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let all: Vec<_> = users.iter()?.collect::<Result<_>>()?;
    /// assert_eq!(all, [(b"7".to_vec(), b"Ada".to_vec())]); // keys as they are within it
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn iter(&self) -> Result<KeyspaceEntries> {
        self.range::<&[u8]>(..)
    }

    /// Returns the entries whose keys are in `range`, from either end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let days = db.create_keyspace("days", KeyspaceOptions::new())?;
    /// days.put("2026-11-23", "rain")?;
    /// days.put("2026-12-01", "snow")?;
    /// assert_eq!(days.range("2026-11".."2026-12")?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<KeyspaceEntries> {
        self.range_with(range, &ReadOptions::new())
    }

    /// Returns the entries whose keys are in `range`, read as `options` say; their bounds are keys
    /// of the keyspace.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let once = ReadOptions::new().fill_cache(false); // leaves the cache to other reads
    /// assert_eq!(users.range_with("5".."9", &once)?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn range_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: &ReadOptions,
    ) -> Result<KeyspaceEntries> {
        self.check(options)?;
        let options = self.options_within(options);
        let entries = self.db.range_with::<Vec<u8>>(self.bounds(&range), &options)?;
        Ok(KeyspaceEntries::new(entries, self.prefix_bytes().len()))
    }

    /// Returns the entries whose keys begin with `prefix`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("ada:mail", "ada@example.org")?;
    /// users.put("grace:mail", "grace@example.org")?;
    /// assert_eq!(users.prefix("ada:")?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<KeyspaceEntries> {
        self.incarnation.check()?;
        let entries = self.db.prefix(self.key(prefix))?;
        Ok(KeyspaceEntries::new(entries, self.prefix_bytes().len()))
    }

    /// Returns about how many bytes the entries take on disk. Entries in memory alone do not
    /// count.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// assert_eq!(users.approximate_size()?, 0);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn approximate_size(&self) -> Result<u64> {
        self.incarnation.check()?;
        let from = self.prefix_bytes();
        let to = prefix_end(from).unwrap_or_default();
        Ok(self.db.approximate_sizes(&[(from, &to)])?.iter().sum())
    }
}
