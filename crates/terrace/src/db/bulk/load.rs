//! A load in progress, as its user holds it.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{InternalOrder, SequenceNumber, check_entry_size, user_key};
use crate::db::db_impl::DbImpl;
use crate::db::handle::Handle;
use crate::iterator::level::LevelIter;
use crate::iterator::merging::MergingIter;
use crate::iterator::source::Source;
use crate::version::file_meta::{FileMeta, ObsoleteFiles};
use crate::version::level::Level;

use super::builders::{Builders, Purpose};
use super::install::{WRITES_BESIDE_A_LOAD, install};
use super::sort::{Chunk, Sorter};
use crate::db::staged::{Staged, discard};

/// One chunk has at most this part of a load's memory.
const CHUNK_SHARE: usize = 8;
/// Tables open at once for each load that has to merge.
const OPEN_TABLES: usize = 256;

/// How entries are loaded.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// // A small machine: less memory, and the caller's thread alone.
/// let mut load = db.bulk_load_with(BulkLoadOptions::new().memory(8 << 20).threads(1))?;
/// load.put("apple", "red")?;
/// load.finish()?;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BulkLoadOptions {
    memory: usize,
    threads: usize,
}

impl Default for BulkLoadOptions {
    fn default() -> Self {
        BulkLoadOptions { memory: 64 << 20, threads: 0 }
    }
}

impl BulkLoadOptions {
    /// 64 MiB of memory and as many threads as the database has.
    pub fn new() -> Self {
        Self::default()
    }

    /// About how many bytes of entries are held in memory; more are sorted in pieces and merged at
    /// the end. At least 64 KiB. Default: 64 MiB.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut load = db.bulk_load_with(BulkLoadOptions::new().memory(1 << 30))?; // fewer pieces
    /// load.put("apple", "red")?;
    /// load.finish()?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes.max(64 << 10);
        self
    }

    /// Threads that build tables, the caller's included. 0: as many as
    /// `Options::background_threads`, but not more than the machine has cores. Default: 0.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut load = db.bulk_load_with(BulkLoadOptions::new().threads(1))?; // the caller's alone
    /// load.put("apple", "red")?;
    /// load.finish()?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }
}

/// The outcome of a load.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// let mut load = db.bulk_load()?;
/// load.put("apple", "green")?;
/// load.put("apple", "red")?;
/// let report = load.finish()?;
/// assert_eq!((report.entries, report.tables), (1, 1));
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Entries, each key counted once.
    pub entries: u64,
    /// Tables.
    pub tables: usize,
    /// Their bytes.
    pub table_bytes: u64,
    /// The sequence number of every entry; 0 for tables taken in as they were.
    pub sequence: u64,
}

impl LoadReport {
    pub(super) fn of(tables: &[Staged], sequence: SequenceNumber) -> Self {
        LoadReport {
            entries: tables.iter().map(|staged| staged.table.contents.entries).sum(),
            tables: tables.len(),
            table_bytes: tables.iter().map(|staged| staged.table.file.size).sum(),
            sequence,
        }
    }
}

/// Many entries that come into the database at once: much faster than writing them, and no reader
/// sees any of them before [`finish`](BulkLoad::finish).
///
/// Keys may come in any order; in ascending order they are neither sorted nor kept in memory. Of
/// several values of one key the last one counts. Nothing is written to the log: tables are built
/// directly, by several threads, and one record in the MANIFEST installs all of them.
///
/// A load happens when it is finished: it comes after every write that was acknowledged before,
/// also of the same keys. Snapshots and cursors from before do not see it. Others may read and
/// write all the while. Dropped without being finished, or after an error, it leaves no trace.
///
/// # Example
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options)?;
/// let mut load = db.bulk_load()?;
/// for number in 0..1000 {
///     load.put(format!("key {number:04}"), "value")?;
/// }
/// assert_eq!(db.get("key 0007")?, None); // all of it appears at once
/// assert_eq!(load.finish()?.entries, 1000);
/// assert!(db.contains_key("key 0007")?);
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct BulkLoad {
    handle: Arc<Handle>,
    order: InternalOrder,
    /// 0 until one is reserved: when the first table is due.
    sequence: SequenceNumber,
    /// Bytes of entries in memory.
    memory: usize,
    builders: Builders,
    chunk: Chunk,
    /// The length at which a chunk is large enough for a table.
    chunk_size: usize,
    /// While keys ascend.
    last_key: Vec<u8>,
    /// Since they do not.
    sorter: Option<Sorter>,
    /// Where the sorted runs among the submitted chunks end.
    runs: Vec<usize>,
    user_bytes: u64,
    is_ending: bool,
    failed: Option<Error>,
}

impl BulkLoad {
    pub(in crate::db) fn new(handle: &Arc<Handle>, options: BulkLoadOptions) -> Result<Self> {
        let core = handle.core();
        core.files.check_writable()?;
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = match options.threads {
            0 => core.files.options.background_threads.min(most),
            threads => threads.min(64),
        };
        let mut load = BulkLoad {
            handle: handle.clone(),
            order: core.files.order.clone(),
            sequence: 0,
            memory: options.memory,
            builders: Builders::new(core, threads - 1),
            chunk: Chunk::default(),
            chunk_size: 0,
            last_key: Vec::new(),
            sorter: None,
            runs: Vec::new(),
            user_bytes: 0,
            is_ending: false,
            failed: None,
        };
        load.set_chunk_size();
        Ok(load)
    }

    fn core(&self) -> &Arc<DbImpl> {
        self.handle.core()
    }

    fn set_chunk_size(&mut self) {
        let database_bytes = self.core().views.current.load().version.bytes();
        let table_size = self.core().files.options.table_size(database_bytes + self.user_bytes);
        self.chunk_size = self.builders.entries_for(table_size).min(self.memory / CHUNK_SHARE);
    }

    /// Sets `key` to `value`. After an error every further call fails with it.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut load = db.bulk_load()?;
    /// load.put("banana", "yellow")?;
    /// load.put("apple", "red")?; // any order will do
    /// load.finish()?;
    /// # assert_eq!(db.iter()?.count(), 2);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if key and value have 8 MiB less than 4 GiB together, or more; `Io` if a
    /// table cannot be written.
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let added = self.add(key, value);
        if let Err(error) = &added {
            self.failed = Some(error.clone());
        }
        added
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        check_entry_size(key.len(), value.len())?;
        self.user_bytes += (key.len() + value.len()) as u64;
        if let Some(sorter) = &mut self.sorter {
            sorter.push(key, value);
            return if sorter.len() >= self.memory { self.end_run() } else { Ok(()) };
        }
        let ascends =
            self.is_empty() || self.order.keys.compare(&self.last_key, key) == Ordering::Less;
        if !ascends {
            return self.begin_sorting(key, value);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.append(Purpose::Final, key, value)
    }

    fn is_empty(&self) -> bool {
        self.chunk.is_empty() && self.builders.submitted() == 0
    }

    /// Appends an entry to the run being written.
    #[inline]
    fn append(&mut self, purpose: Purpose, key: &[u8], value: &[u8]) -> Result<()> {
        self.chunk.push(key, self.sequence, value);
        if self.chunk.len() >= self.chunk_size { self.submit(purpose) } else { Ok(()) }
    }

    fn submit(&mut self, purpose: Purpose) -> Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let mut full = std::mem::replace(&mut self.chunk, self.builders.chunk());
        if self.sequence == 0 {
            // A load that is one table is over before others have written much.
            let is_small = self.is_ending && self.user_bytes < self.chunk_size as u64;
            let writes = if is_small { 0 } else { WRITES_BESIDE_A_LOAD };
            self.sequence = self.core().writes.reserve_sequence(writes)?;
            full.stamp(self.sequence);
        }
        self.builders.submit(purpose, full)?;
        self.set_chunk_size();
        Ok(())
    }

    #[cold]
    fn begin_sorting(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut sorter = Sorter::new(self.order.keys.clone());
        if self.builders.submitted() == 0 {
            // Not worth a run of its own.
            self.chunk.entries().for_each(|(key, value)| sorter.push(user_key(key), value));
            self.chunk.clear();
        } else {
            self.submit(Purpose::Final)?;
            self.runs.push(self.builders.submitted());
        }
        sorter.push(key, value);
        self.sorter = Some(sorter);
        Ok(())
    }

    /// Writes what is in the sorter as a run that will be merged.
    #[cold]
    fn end_run(&mut self) -> Result<()> {
        self.write_sorted(Purpose::Temporary)?;
        self.runs.push(self.builders.submitted());
        Ok(())
    }

    fn write_sorted(&mut self, purpose: Purpose) -> Result<()> {
        let Some(mut sorter) = self.sorter.take() else { return Ok(()) };
        let written = sorter.drain(|key, value| self.append(purpose, key, value));
        self.sorter = Some(sorter);
        written?;
        self.submit(purpose)
    }

    /// Makes all entries visible, durably, and says what they came to. The database waits with
    /// other writes for a moment.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut load = db.bulk_load()?;
    /// load.put("apple", "red")?;
    /// drop(load); // without a trace
    /// assert_eq!(db.get("apple")?, None);
    /// let mut load = db.bulk_load()?;
    /// load.put("apple", "red")?;
    /// load.finish()?; // visible and durable
    /// assert!(db.contains_key("apple")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of a [`put`](Self::put); `Io` if a table or the MANIFEST cannot be written;
    /// `TimedOut` if a transaction, a prepared one maybe, holds a lock on a key between the first and
    /// the last of a table for ten seconds; `Closed`. Nothing of the load is visible then.
    pub fn finish(mut self) -> Result<LoadReport> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.is_ending = true;
        let mut tables = self.complete()?;
        let outcome = self.install(&mut tables);
        if outcome.is_err() {
            discard(self.core(), &tables);
        }
        outcome
    }

    /// The tables of the load, ascending and disjoint.
    fn complete(&mut self) -> Result<Vec<Staged>> {
        if self.runs.is_empty() {
            // All entries ascend, or fit into memory.
            self.write_sorted(Purpose::Final)?;
            self.submit(Purpose::Final)?;
            return self.builders.finish();
        }
        if self.sorter.as_ref().is_some_and(|sorter| sorter.len() > 0) {
            self.end_run()?;
        }
        let tables = self.builders.finish()?;
        self.merge(tables)
    }

    fn install(&mut self, tables: &mut Vec<Staged>) -> Result<LoadReport> {
        loop {
            let report = LoadReport::of(tables, self.sequence);
            let core = self.core().clone();
            if tables.is_empty() {
                // As durable as any other load: so is everything before it.
                core.writes.flush()?;
                return Ok(report);
            }
            if install(&core, tables, self.sequence, self.user_bytes)? {
                return Ok(report);
            }
            // So many writes were made in the meantime that the number is taken.
            self.sequence = core.writes.reserve_sequence(WRITES_BESIDE_A_LOAD)?;
            self.runs = vec![tables.len()];
            *tables = self.merge(std::mem::take(tables))?;
        }
    }

    /// Merges the runs, of which the later ones count, to tables with the load's sequence number.
    fn merge(&mut self, tables: Vec<Staged>) -> Result<Vec<Staged>> {
        let merged = self.merge_into_builders(&tables).and_then(|()| self.builders.finish());
        discard(self.core(), &tables);
        merged
    }

    fn merge_into_builders(&mut self, tables: &[Staged]) -> Result<()> {
        let obsolete_files = Arc::new(ObsoleteFiles::default());
        let set = Arc::new(self.core().files.tables.of_temporaries(OPEN_TABLES));
        let mut sources = Vec::new();
        let mut begin = 0;
        for end in std::mem::take(&mut self.runs) {
            let files = tables.get(begin..end).unwrap_or_default().iter();
            let files: Vec<_> = files
                .map(|staged| Arc::new(FileMeta::new(staged.table.file.clone(), &obsolete_files)))
                .collect();
            sources.push(Source::Level(LevelIter::new(
                Level::from(files),
                set.clone(),
                self.order.clone(),
                false,
            )));
            begin = end;
        }
        // Of equal keys the first source's comes first.
        sources.reverse();
        let mut merged = MergingIter::new(sources, self.order.clone());
        merged.seek_to_first();
        let mut last: Option<Vec<u8>> = None;
        while merged.valid() {
            let key = user_key(merged.key());
            let repeated = last
                .as_ref()
                .is_some_and(|last| self.order.keys.compare(last, key) == Ordering::Equal);
            if !repeated {
                self.append(Purpose::Final, key, merged.value())?;
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
            merged.next();
        }
        merged.status()?;
        self.submit(Purpose::Final)
    }
}

impl std::fmt::Debug for BulkLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkLoad")
            .field("db", &self.handle)
            .field("bytes", &self.user_bytes)
            .finish()
    }
}
