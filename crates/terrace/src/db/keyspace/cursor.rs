//! A cursor over a keyspace.

use crate::base::error::Result;
use crate::db::read::cursor::Cursor;

/// A position among the entries of a [`Keyspace`](crate::Keyspace), with keys as they are within
/// it. It behaves as a [`Cursor`](crate::Cursor) does: it starts out invalid, so seek first.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
/// users.put("7", "Ada")?;
/// let mut cursor = users.cursor()?;
/// cursor.seek_to_last();
/// assert_eq!(cursor.entry(), Some((&b"7"[..], &b"Ada"[..])));
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct KeyspaceCursor {
    /// Within the bounds of the keyspace.
    cursor: Cursor,
    prefix: Vec<u8>,
}

impl KeyspaceCursor {
    pub(super) fn new(cursor: Cursor, prefix: Vec<u8>) -> Self {
        KeyspaceCursor { cursor, prefix }
    }

    /// Whether the cursor stands at an entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// let mut cursor = users.cursor()?;
    /// cursor.seek_to_first();
    /// assert!(!cursor.valid()); // there are no entries
    /// cursor.status()?; // and none that could not be read
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn valid(&self) -> bool {
        self.cursor.valid()
    }

    /// The key at the cursor.
    pub fn key(&self) -> &[u8] {
        self.cursor.key().get(self.prefix.len()..).unwrap_or_default()
    }

    /// The value at the cursor.
    pub fn value(&self) -> &[u8] {
        self.cursor.value()
    }

    /// The key and the value at the cursor, if it is valid.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let mut cursor = users.cursor()?;
    /// cursor.seek_to_first();
    /// while let Some((key, value)) = cursor.entry() {
    ///     println!("{key:?} = {value:?}");
    ///     cursor.next();
    /// }
    /// cursor.status()?; // the end, or an entry that cannot be read?
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.valid().then(|| (self.key(), self.value()))
    }

    /// Moves to the first entry.
    pub fn seek_to_first(&mut self) {
        self.cursor.seek_to_first();
    }

    /// Moves to the last entry.
    pub fn seek_to_last(&mut self) {
        self.cursor.seek_to_last();
    }

    /// Moves to the first entry whose key is at or after `key`.
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
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.cursor.seek([&self.prefix, key.as_ref()].concat());
    }

    /// Moves to the last entry whose key is at or before `key`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let mut cursor = users.cursor()?;
    /// cursor.seek_for_prev("9");
    /// assert_eq!(cursor.key(), b"7");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) {
        self.cursor.seek_for_prev([&self.prefix, key.as_ref()].concat());
    }

    /// Moves to the next entry.
    pub fn next(&mut self) {
        self.cursor.next();
    }

    /// Moves to the previous entry.
    pub fn prev(&mut self) {
        self.cursor.prev();
    }

    /// Why the cursor is invalid: `Ok` if it is only off an end.
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with).
    pub fn status(&self) -> Result<()> {
        self.cursor.status()
    }
}

impl std::fmt::Debug for KeyspaceCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyspaceCursor").field("valid", &self.valid()).finish_non_exhaustive()
    }
}
