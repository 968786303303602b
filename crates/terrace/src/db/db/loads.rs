//! Bulk loads of a [`Db`].

use std::path::Path;

use crate::base::error::Result;

use crate::db::bulk::{self, BulkLoad, BulkLoadOptions, IngestOptions, LoadReport};
use crate::db::db::Db;

/// Bulk loads. Many entries come in at once, past the write-ahead log.
impl Db {
    /// Begins a load of many entries: much faster than writes, and all of them become visible at
    /// the same moment.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut load = db.bulk_load()?;
    /// for number in 0..1000_u32 {
    ///     load.put(number.to_be_bytes(), "value")?;
    /// }
    /// load.finish()?;
    /// assert_eq!(db.iter()?.count(), 1000);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn bulk_load(&self) -> Result<BulkLoad> {
        self.bulk_load_with(BulkLoadOptions::new())
    }

    /// Begins a load, as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut load = db.bulk_load_with(BulkLoadOptions::new().memory(16 << 20).threads(1))?;
    /// load.put("apple", "red")?;
    /// assert_eq!(load.finish()?.entries, 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn bulk_load_with(&self, options: BulkLoadOptions) -> Result<BulkLoad> {
        BulkLoad::new(&self.handle, options)
    }

    /// Takes in tables that [`TableWriter`](crate::TableWriter)s made, all at the same moment. Of
    /// several values of one key the one in the later table counts.
    ///
    /// Every table is read first: comparator, order, checksums. Where the database holds nothing
    /// between a table's first and last key, and there is no snapshot, the files become part of the
    /// database as they are; otherwise their entries are loaded as [`bulk_load`](Db::bulk_load)
    /// does it, with the same guarantees.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.clone())?;
    /// let mut table = TableWriter::create("/fruit.ldb", &options)?;
    /// table.put("apple", "red")?;
    /// table.put("banana", "yellow")?;
    /// table.finish()?;
    /// assert_eq!(db.ingest(&["/fruit.ldb"])?.entries, 2);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Corruption`](crate::ErrorKind::Corruption) if a table is damaged;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if one has another comparator.
    /// Nothing is taken in then. Else those of [`write_with`](Self::write_with).
    pub fn ingest<P: AsRef<Path>>(&self, paths: &[P]) -> Result<LoadReport> {
        self.ingest_with(paths, IngestOptions::new())
    }

    /// Does what [`ingest`](Self::ingest) does, as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.clone())?;
    /// # let mut table = TableWriter::create("/fruit.ldb", &options)?;
    /// # table.put("apple", "red")?;
    /// # table.finish()?;
    /// let moved = IngestOptions::new().move_files(true);
    /// assert_eq!(db.ingest_with(&["/fruit.ldb"], moved)?.entries, 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`ingest`](Self::ingest).
    pub fn ingest_with<P: AsRef<Path>>(
        &self,
        paths: &[P],
        options: IngestOptions,
    ) -> Result<LoadReport> {
        let paths: Vec<_> = paths.iter().map(AsRef::as_ref).collect();
        bulk::ingest(&self.handle, &paths, options)
    }
}
