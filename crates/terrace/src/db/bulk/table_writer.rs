//! Tables that are built outside of any database.

use std::path::Path;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::base::internal_key::{self, EntryKind, check_entry_size, user_key};
use crate::db::db_impl::files::table_settings;
use crate::db::options::Options;
use crate::env::CreateOptions;
use crate::table::{DictionarySettings, TableBuilder, TableSettings};
use crate::version::NUM_LEVELS;

/// The contents of a finished table.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true);
/// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.clone())?;
/// let mut table = TableWriter::create("/fruit.ldb", &options)?;
/// table.put("apple", "red")?;
/// table.put("banana", "yellow")?;
/// let summary = table.finish()?;
/// assert_eq!((&summary.smallest[..], &summary.largest[..]), (&b"apple"[..], &b"banana"[..]));
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableSummary {
    /// Entries.
    pub entries: u64,
    /// Bytes of the file.
    pub size: u64,
    /// The first key.
    pub smallest: Vec<u8>,
    /// The last key.
    pub largest: Vec<u8>,
}

/// Builds a table file outside of a database, for [`Db::ingest`](crate::Db::ingest): on another
/// machine, or long before.
///
/// Entries come in ascending order of keys, each key once. The file has LevelDB's format, or with
/// [`Compression::Lz4`](crate::Compression::Lz4) and `Zstd` that of an extended database, which the
/// one that takes it in becomes. It notes the name of the comparator, which must be the database's.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true);
/// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
/// let mut table = TableWriter::create("fruit.ldb", &options)?;
/// table.put("apple", "red")?;
/// table.put("banana", "yellow")?;
/// let summary = table.finish()?;
/// assert_eq!((summary.entries, &summary.largest[..]), (2, &b"banana"[..]));
///
/// let db = Db::open("/db", options)?;
/// db.ingest(&["fruit.ldb"])?;
/// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct TableWriter {
    builder: TableBuilder,
    key: Vec<u8>,
}

impl TableWriter {
    /// A table in the new file `path`, written as `options` say: comparator, block size, restart
    /// interval, compression, filters, file mode and Env.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.clone())?;
    /// let options = options.compression(Compression::None); // of this table
    /// let mut table = TableWriter::create("/photos.ldb", &options)?;
    /// table.put("7", vec![7; 100_000])?;
    /// table.finish()?;
    /// assert!(TableWriter::create("/photos.ldb", &options).is_err()); // never overwrites
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if an option is out of range; `NotSupported` if this build cannot write the
    /// compression; `Io` if the file exists or cannot be created.
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<TableWriter> {
        let options = options.clone().sanitized()?;
        options.compression_at(NUM_LEVELS - 1).check()?;
        let keys = KeyOrder::new(options.comparator.clone());
        let comparator = Some(keys.name_bytes().to_owned());
        let dictionary = DictionarySettings::new(options.zstd_dictionary);
        let settings = TableSettings {
            comparator,
            dictionary,
            ..table_settings(&options, keys, NUM_LEVELS - 1)
        };
        let create = CreateOptions { mode: options.file_mode, exclusive: true };
        let file = options.env.create(path.as_ref(), create)?;
        Ok(TableWriter { builder: TableBuilder::new(file, &settings), key: Vec::new() })
    }

    /// Adds an entry, whose key comes after the last one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.clone())?;
    /// let mut table = TableWriter::create("/fruit.ldb", &options)?;
    /// table.put("banana", "yellow")?;
    /// assert!(table.put("apple", "red").is_err()); // not after the last key
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if its key is not after the last one, or if key and value have 8 MiB less
    /// than 4 GiB together, or more; `Io` if the file cannot be written.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_entry_size(key.len(), value.len())?;
        self.key.clear();
        // Not a sequence number that any write of a database has.
        internal_key::append(&mut self.key, key, 0, EntryKind::Value);
        self.builder.add(&self.key, value)
    }

    /// Completes the file, durably up to its name, which is the directory's.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.clone())?;
    /// let mut table = TableWriter::create("/fruit.ldb", &options)?;
    /// table.put("apple", "red")?;
    /// assert_eq!(table.finish()?.entries, 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if there are no entries; `Io` if the file cannot be written or synced.
    pub fn finish(self) -> Result<TableSummary> {
        if self.builder.entries() == 0 {
            return Err(Error::invalid_argument("a table without entries"));
        }
        let mut table = self.builder.finish()?;
        table.file.sync()?;
        table.file.close()?;
        Ok(TableSummary {
            entries: table.properties.entries,
            size: table.size,
            smallest: user_key(&table.smallest).to_vec(),
            largest: user_key(&table.largest).to_vec(),
        })
    }
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").field("entries", &self.builder.entries()).finish()
    }
}
