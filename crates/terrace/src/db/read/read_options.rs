//! How reads are done.

use std::sync::Arc;

use crate::db::view::snapshot_list::SnapshotImpl;

/// How a read is done.
///
/// # Example
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options)?;
/// db.put("apple", "red")?;
/// db.put("banana", "yellow")?;
/// let cold = ReadOptions::new().fill_cache(false).upper_bound("b");
/// assert_eq!(db.iter_with(&cold)?.count(), 1);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    pub(crate) snapshot: Option<Arc<SnapshotImpl>>,
    pub(crate) skip_cache: bool,
    pub(crate) lower_bound: Option<Vec<u8>>,
    pub(crate) upper_bound: Option<Vec<u8>>,
    pub(crate) stored_values: bool,
    pub(crate) keys_only: bool,
}

impl ReadOptions {
    /// Reads the present, through the cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The smallest key that cursors and ranges show. Gets take no notice of it. Default: none.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("a", "")?;
    /// # db.put("b", "")?;
    /// let mut cursor = db.cursor_with(&ReadOptions::new().lower_bound("b"))?;
    /// cursor.seek_to_first();
    /// assert_eq!(cursor.key(), b"b");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn lower_bound(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.lower_bound = Some(key.into());
        self
    }

    /// The key at which cursors and ranges end, itself left out. Gets take no notice of it.
    /// Default: none.
    ///
    /// A scan with bounds, in either direction, ends at the first entry beyond them, though that is
    /// deleted. A loop that compares keys instead reads all deleted entries up to the next one that
    /// it is shown.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("a", "")?;
    /// # db.put("b", "")?;
    /// let mut cursor = db.cursor_with(&ReadOptions::new().upper_bound("b"))?;
    /// cursor.seek_to_last();
    /// assert_eq!(cursor.key(), b"a");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn upper_bound(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.upper_bound = Some(key.into());
        self
    }

    /// Show values as they are stored, as LevelDB shows them: those of a
    /// [keyspace with expiry](crate::KeyspaceOptions::expiry) with their trailers, and what has
    /// expired but is not removed yet. For copies of whole databases. Default: false.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let raw = ReadOptions::new().stored_values(true);
    /// for entry in db.iter_with(&raw)? {
    ///     let (key, value) = entry?; // as a copy for LevelDB needs it
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn stored_values(mut self, stored: bool) -> Self {
        self.stored_values = stored;
        self
    }

    /// Reads no value of a value file, unless it tells whether the key is there: so no damaged
    /// value is in the way. What such a read shows as the value is none. Default: false.
    #[must_use]
    pub(crate) fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// Whether blocks that this read loads stay in the block cache. Say no for scans of data that
    /// nobody will read again soon. Default: true; but of what a scan passes that goes on for 64
    /// KiB and more, blocks in mapped files that snappy decodes quickly are not kept: loading them
    /// again takes hardly longer. They are where the data exceed memory, and in a cache of the
    /// program's.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("a", "")?;
    /// let whole = db.iter_with(&ReadOptions::new().fill_cache(false))?;
    /// assert_eq!(whole.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn fill_cache(mut self, fill: bool) -> Self {
        self.skip_cache = !fill;
        self
    }
}
