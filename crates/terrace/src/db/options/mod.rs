//! The settings of a database and of single operations.
//!
//! Names, defaults and clipping are LevelDB 1.23's where LevelDB has the option. Numbers that
//! LevelDB clips silently are clipped silently here too, so that programs that rely on it keep
//! working; options that only Terrace has are checked, and a bad value is
//! [`InvalidArgument`](crate::ErrorKind::InvalidArgument) naming option and range.

pub(in crate::db) mod events;
pub(in crate::db) mod workload;
mod write;

use std::fmt;
use std::sync::Arc;

use crate::base::comparator::{BytewiseComparator, Comparator};
use crate::base::error::{Error, Result};
use crate::base::internal_key::InternalOrder;
use crate::base::memory_account::MemoryAccount;
use crate::compaction::filter::CompactionFilter;
use crate::db::memory_budget::MemoryBudget;
use crate::db::options::events::EventListener;
use crate::env::{Env, Logger, PosixEnv, ReadAccess};
use crate::filter::FilterPolicy;
use crate::memtable::{MemTable, MemTableWriter};
use crate::table::{BlockCache, Compression, MOST_DICTIONARY};
use crate::version::manifest::plain_name;

pub use self::write::WriteOptions;

/// The number of levels of a database. Part of LevelDB's format.
pub const NUM_LEVELS: usize = crate::version::NUM_LEVELS;

/// How a damaged write-ahead log is treated when a database is opened.
///
/// ```
/// # use terrace::*;
/// let options = Options::new().recovery_mode(RecoveryMode::Strict);
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RecoveryMode {
    /// Recovers exactly a prefix of the history of writes. Damage to data that is known to have
    /// been durable is an error; a torn tail of writes that were never synced is cut. The default.
    #[default]
    Prefix,
    /// Fails where `Prefix` would cut something that may have been durable, as LevelDB's
    /// `paranoid_checks` does: records with a wrong checksum, and writes behind a gap in a log of
    /// LevelDB's. What a power cut leaves of writes that were never synced (torn records, and what
    /// Terrace wrote behind a gap) is cut in this mode, too.
    Strict,
    /// Takes every batch that still decodes, skipping damage. May leave holes in the history: only
    /// to save what can be saved.
    Salvage,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $assign:expr;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(mut self, value: $type) -> Self {
            self.$name = $assign(value);
            self
        })*
    };
}

/// Bytes of a table, unless the program chooses: as LevelDB has it.
const TABLE: usize = 2 << 20;

/// The same in a large database.
const LARGE_TABLE: usize = 8 << 20;

/// The default of [`Options::range_delete_batch`].
pub(crate) const RANGE_DELETE_BATCH: usize = 4096;

/// How a database is opened. A builder: `Options::new().create_if_missing(true)`.
///
/// # Example
/// ```
/// use terrace::Options;
///
/// let options = Options::new()
///     .create_if_missing(true)
///     .write_buffer_size(16 << 20)
///     .block_cache_size(64 << 20);
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    pub(crate) paranoid_checks: bool,
    pub(crate) recovery_mode: RecoveryMode,
    pub(crate) read_only: bool,
    pub(crate) comparator: Arc<dyn Comparator>,
    pub(crate) filter_policy: Option<Arc<dyn FilterPolicy>>,
    pub(crate) table_filter_bits: usize,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) logger: Option<Arc<dyn Logger>>,
    pub(crate) listener: Option<Arc<dyn EventListener>>,
    pub(crate) write_buffer_size: usize,
    pub(crate) max_open_files: usize,
    pub(crate) block_cache: Option<BlockCache>,
    pub(crate) block_cache_size: usize,
    pub(crate) block_size: usize,
    pub(crate) block_restart_interval: usize,
    pub(crate) max_file_size: usize,
    /// Bytes of tables beyond which a database is large.
    pub(crate) large_database: u64,
    pub(crate) compression: Compression,
    pub(crate) compression_per_level: Vec<Compression>,
    pub(crate) zstd_dictionary: usize,
    pub(crate) reuse_logs: bool,
    pub(crate) background_threads: usize,
    pub(crate) read_access: ReadAccess,
    pub(crate) mapped_log: bool,
    pub(crate) bytes_per_sync: u64,
    pub(crate) compaction_rate_limit: u64,
    pub(crate) max_manifest_size: u64,
    pub(crate) file_mode: u32,
    pub(crate) dir_mode: u32,
    pub(crate) seek_compaction: bool,
    pub(crate) range_delete_batch: usize,
    pub(crate) compaction_filter: Option<Arc<dyn CompactionFilter>>,
    pub(crate) memory_budget: Option<MemoryBudget>,
    pub(crate) prepared_transactions: bool,
    pub(crate) value_log: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            create_if_missing: false,
            error_if_exists: false,
            paranoid_checks: false,
            recovery_mode: RecoveryMode::Prefix,
            read_only: false,
            comparator: Arc::new(BytewiseComparator),
            filter_policy: None,
            table_filter_bits: 10,
            env: PosixEnv::shared(),
            logger: None,
            listener: None,
            write_buffer_size: 4 << 20,
            max_open_files: 1000,
            block_cache: None,
            block_cache_size: 8 << 20,
            block_size: 4096,
            block_restart_interval: 16,
            max_file_size: TABLE,
            large_database: 1 << 30,
            compression: Compression::Snappy,
            compression_per_level: Vec::new(),
            zstd_dictionary: 0,
            reuse_logs: false,
            background_threads: 2,
            read_access: ReadAccess::Auto,
            mapped_log: true,
            bytes_per_sync: 0,
            compaction_rate_limit: 0,
            max_manifest_size: 64 << 20,
            file_mode: 0o644,
            dir_mode: 0o755,
            seek_compaction: true,
            range_delete_batch: RANGE_DELETE_BATCH,
            compaction_filter: None,
            memory_budget: None,
            prepared_transactions: false,
            value_log: None,
        }
    }
}

/// The settings that are values; of objects their names, or whether there is one.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("create_if_missing", &self.create_if_missing)
            .field("error_if_exists", &self.error_if_exists)
            .field("paranoid_checks", &self.paranoid_checks)
            .field("recovery_mode", &self.recovery_mode)
            .field("read_only", &self.read_only)
            .field("comparator", &String::from_utf8_lossy(self.comparator.name_bytes()))
            .field("filter_policy", &self.filter_policy.is_some())
            .field("table_filter_bits", &self.table_filter_bits)
            .field("logger", &self.logger.is_some())
            .field("listener", &self.listener.is_some())
            .field("write_buffer_size", &self.write_buffer_size)
            .field("max_open_files", &self.max_open_files)
            .field("block_cache", &self.block_cache.is_some())
            .field("block_cache_size", &self.block_cache_size)
            .field("block_size", &self.block_size)
            .field("block_restart_interval", &self.block_restart_interval)
            .field("max_file_size", &self.max_file_size)
            .field("compression", &self.compression)
            .field("compression_per_level", &self.compression_per_level)
            .field("zstd_dictionary", &self.zstd_dictionary)
            .field("reuse_logs", &self.reuse_logs)
            .field("background_threads", &self.background_threads)
            .field("read_access", &self.read_access)
            .field("mapped_log", &self.mapped_log)
            .field("bytes_per_sync", &self.bytes_per_sync)
            .field("compaction_rate_limit", &self.compaction_rate_limit)
            .field("max_manifest_size", &self.max_manifest_size)
            .field("file_mode", &format_args!("0o{:o}", self.file_mode))
            .field("dir_mode", &format_args!("0o{:o}", self.dir_mode))
            .field("seek_compaction", &self.seek_compaction)
            .field("range_delete_batch", &self.range_delete_batch)
            .field("compaction_filter", &self.compaction_filter.is_some())
            .field("memory_budget", &self.memory_budget)
            .field("prepared_transactions", &self.prepared_transactions)
            .field("value_log", &self.value_log)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// LevelDB 1.23's defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Create the database if there is none. Default: false.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
        /// assert!(Db::open("/db", options.clone()).is_err());
        /// Db::open("/db", options.create_if_missing(true))?.close()?;
        /// # Ok::<_, terrace::Error>(())
        /// ```
        create_if_missing: bool = |v| v;
        /// Fail with `InvalidArgument` if there is a database already. Default: false.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().create_if_missing(true).error_if_exists(true);
        /// let options = options.env(std::sync::Arc::new(MemEnv::new()));
        /// Db::open("/db", options.clone())?.close()?;
        /// assert_eq!(Db::open("/db", options).unwrap_err().kind(), ErrorKind::InvalidArgument);
        /// # Ok::<_, terrace::Error>(())
        /// ```
        error_if_exists: bool = |v| v;
        /// Treat damage in logs as an error even if it was not synced, as [`RecoveryMode::Strict`]
        /// does; a [`RecoveryMode::Salvage`] that is asked for counts more. Damage that a
        /// compaction of tables meets has writes fail from then on, until the database is opened
        /// again; without this they fail once a memtable is full. Default: false.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().paranoid_checks(true);
        /// ```
        paranoid_checks: bool = |v| v;
        /// How damaged logs are treated. Default: [`RecoveryMode::Prefix`].
        ///
        /// ```
        /// # use terrace::*;
        /// // After a broken disk: what can be read of the logs, rather than an error.
        /// let options = Options::new().recovery_mode(RecoveryMode::Salvage);
        /// ```
        recovery_mode: RecoveryMode = |v| v;
        /// Open without changing a byte of the directory: writes fail with `NotSupported`, logs are
        /// replayed into memory, and other readers may open the database at the same time. Default:
        /// false.
        ///
        /// ```
        /// # use terrace::*;
        /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
        /// # Db::open("/db", options.clone().create_if_missing(true))?.close()?;
        /// let db = Db::open("/db", options.read_only(true))?;
        /// assert_eq!(db.put("apple", "red").unwrap_err().kind(), ErrorKind::NotSupported);
        /// # Ok::<_, terrace::Error>(())
        /// ```
        read_only: bool = |v| v;
        /// The order of keys. A database opens only under the name it was created with. One that is
        /// named `leveldb.BytewiseComparator` is taken for the bytewise order and never asked.
        /// Default: bytewise.
        ///
        /// ```
        /// # use terrace::*;
        /// use std::cmp::Ordering;
        ///
        /// /// The greatest key first.
        /// struct Descending;
        ///
        /// impl Comparator for Descending {
        ///     fn name(&self) -> &str {
        ///         "descending"
        ///     }
        ///
        ///     fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        ///         b.cmp(a)
        ///     }
        /// }
        ///
        /// let options = Options::new().comparator(std::sync::Arc::new(Descending));
        /// # let options = options.create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
        /// let db = Db::open("/descending", options)?;
        /// db.put("1", "one")?;
        /// db.put("2", "two")?;
        /// assert_eq!(db.first()?, Some((b"2".to_vec(), b"two".to_vec())));
        /// # Ok::<_, terrace::Error>(())
        /// ```
        comparator: Arc<dyn Comparator> = |v| v;
        /// A filter that spares reads of tables that do not hold a key. Default: none.
        ///
        /// ```
        /// # use terrace::*;
        /// // Filters that LevelDB uses too; for Terrace alone `table_filter_bits` does.
        /// let filter = std::sync::Arc::new(BloomFilterPolicy::new(10));
        /// let options = Options::new().filter_policy(Some(filter));
        /// # let _ = options;
        /// # Ok::<_, terrace::Error>(())
        /// ```
        filter_policy: Option<Arc<dyn FilterPolicy>> = |v| v;
        /// Bits for each key in a filter of Terrace's own, one for each table and in memory while
        /// it is open, which spares searching tables that do not hold a key; LevelDB passes over
        /// it. Tables with more below them than in them, which hold few of the keys, have eight bits
        /// where others have five, up to 32. Tables under a custom comparator have none. 0 to 32, 0
        /// for none. Default: 10, which is wrong about once in a hundred times.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().table_filter_bits(16); // wrong less often, for more memory
        /// ```
        table_filter_bits: usize = |v| v;
        /// The file system, clock and threads that the database uses. Default: the operating
        /// system's ([`PosixEnv`](crate::PosixEnv)).
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
        /// let db = Db::open("/in memory alone", options.create_if_missing(true))?;
        /// # db.close()?;
        /// # Ok::<_, terrace::Error>(())
        /// ```
        env: Arc<dyn Env> = |v| v;
        /// Where messages for people go. Default: the file `LOG` in the database's directory.
        ///
        /// ```
        /// # use terrace::*;
        /// struct Console;
        ///
        /// impl Logger for Console {
        ///     fn log(&self, message: &str) {
        ///         eprintln!("terrace: {message}");
        ///     }
        /// }
        ///
        /// let options = Options::new().logger(Some(std::sync::Arc::new(Console)));
        /// # let _ = options;
        /// # Ok::<_, terrace::Error>(())
        /// ```
        logger: Option<Arc<dyn Logger>> = |v| v;
        /// The listener that is told of flushes, compactions, errors and recovery. Default: none.
        ///
        /// ```
        /// # use terrace::*;
        /// use std::sync::Arc;
        /// use std::sync::atomic::{AtomicU64, Ordering};
        ///
        /// #[derive(Default)]
        /// struct Flushes(AtomicU64);
        ///
        /// impl EventListener for Flushes {
        ///     fn on_event(&self, event: &Event) {
        ///         if let Event::FlushFinished { .. } = event {
        ///             self.0.fetch_add(1, Ordering::Relaxed);
        ///         }
        ///     }
        /// }
        ///
        /// let flushes = Arc::new(Flushes::default());
        /// let options = Options::new().listener(Some(flushes.clone()));
        /// # let options = options.create_if_missing(true).env(Arc::new(MemEnv::new()));
        /// let db = Db::open("/db", options)?;
        /// db.put("apple", "red")?;
        /// db.close()?;
        /// println!("{} flushes", flushes.0.load(Ordering::Relaxed));
        /// # Ok::<_, terrace::Error>(())
        /// ```
        listener: Option<Arc<dyn EventListener>> = |v| v;
        /// Bytes of a memtable before it is written to a table; clipped to 64 KiB – 1 GiB. Default:
        /// 4 MiB.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().write_buffer_size(64 << 20); // fewer and larger tables
        /// ```
        write_buffer_size: usize = |v| v;
        /// Tables that may hold a descriptor at once; clipped to 74 – 50,000, of which 10 are kept
        /// for other uses. Default: 1,000.
        ///
        /// As many tables keep their index and filter in memory, whatever those take; 64 of them
        /// where the tables exceed memory. More do, up to 65,536, while all indexes and filters
        /// together take little: of tables that are read with `pread`, half of what the block cache
        /// leaves of the [available memory](Env::available_memory), but at least an eighth of that
        /// memory, and beyond 512 MiB no more than the eighth. A read of a table without a descriptor
        /// opens its file again, closes another, and reads no more than its block.
        ///
        /// Where that is too little for tables that exceed memory, lookups and seeks that fill the
        /// block cache borrow up to half of its capacity for indexes and filters, as long as these
        /// take no more than half of the available memory; the cache gives up three bytes for two.
        /// They do not with a [memory budget](Self::memory_budget), nor from a cache of the
        /// program's. A table that is closed keeps its [filter](Self::table_filter_bits) in memory,
        /// while such filters take no more than half of what tables may: lookups do not open a table
        /// whose filter rejects the key.
        ///
        /// Mapped tables hold no descriptor: 1,000 of them stay open, however small this is, and up
        /// to 8,192 while memory holds the whole database and their indexes and filters take at most
        /// 512 MiB. A [memory budget](Self::memory_budget) closes tables before.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().max_open_files(10_000); // with `ulimit -n` above it
        /// ```
        max_open_files: usize = |v| v;
        /// A cache shared with other databases. Default: one of `block_cache_size` bytes of the
        /// database's own.
        ///
        /// ```
        /// # use terrace::*;
        /// # let options = Options::new().create_if_missing(true);
        /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
        /// let options = options.block_cache(Some(BlockCache::new(64 << 20)));
        /// let one = Db::open("/one", options.clone())?;
        /// let two = Db::open("/two", options)?; // both together have 64 MiB
        /// assert_eq!(one.stats().cache_capacity, two.stats().cache_capacity);
        /// # Ok::<_, terrace::Error>(())
        /// ```
        block_cache: Option<BlockCache> = |v| v;
        /// Bytes of the database's own block cache, where none is shared. Default: 8 MiB.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().block_cache_size(1 << 30);
        /// ```
        block_cache_size: usize = |v| v;
        /// Bytes of user data in a block before compression; clipped to 1 KiB – 4 MiB. Default: 4
        /// KiB.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().block_size(16 << 10); // smaller indexes, for scans
        /// ```
        block_size: usize = |v| v;
        /// Keys between two restart points of a block, at least 1. Default: 16.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().block_restart_interval(32); // smaller blocks of like keys
        /// ```
        block_restart_interval: usize = |v| v;
        /// Bytes of a table file before the next one begins; clipped to 1 MiB – 1 GiB. With 2 MiB,
        /// the default, compactions write tables of 8 MiB while the database has more than 1 GiB:
        /// fewer files to open. Bulk loads do so as far as an eighth of their memory is enough.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().max_file_size(64 << 20); // fewer files
        /// ```
        max_file_size: usize = |v| v;
        /// How blocks of new tables are compressed. With [`Compression::Lz4`] or
        /// [`Compression::Zstd`] the database becomes extended, and LevelDB refuses it. Opening
        /// fails with [`NotSupported`](crate::ErrorKind::NotSupported) if this build cannot write
        /// it. Default: snappy.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().compression(Compression::None);
        /// ```
        compression: Compression = |v| v;
        /// Compression by level, overriding `compression`; the last entry holds for all deeper
        /// levels. Default: empty.
        ///
        /// ```
        /// # use terrace::*;
        /// // Tables of levels 0 and 1 are rewritten soon.
        /// let levels = vec![Compression::None, Compression::None, Compression::Snappy];
        /// let options = Options::new().compression_per_level(levels);
        /// # let _ = options;
        /// # Ok::<_, terrace::Error>(())
        /// ```
        compression_per_level: Vec<Compression> = |v| v;
        /// Bytes of the zstd dictionary of a table at most, from 2 KiB to 256 KiB; 0: none. Blocks
        /// of a few kilobytes are smaller with one if their entries are alike, JSON for one: they
        /// need not repeat what all of them have. Only tables with [`Compression::Zstd`] and nothing
        /// below them have one: those that compactions write there, and those of bulk loads and of
        /// [`TableWriter`](crate::TableWriter). The first blocks of such a table, up to 1 MiB of
        /// them, wait in memory until a dictionary was trained on them, of a sixteenth of their
        /// bytes at most; fewer than eight blocks are not enough. Tables of one compaction or load
        /// share it. One that saves less than it takes is not stored. While a table is open, its
        /// dictionary and about 30 KB of tables for it are in memory. Versions of Terrace that know
        /// of no dictionaries refuse a database with such a table. Default: 0.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().compression(Compression::Zstd).zstd_dictionary(4 << 10);
        /// # let _ = options;
        /// # Ok::<_, terrace::Error>(())
        /// ```
        zstd_dictionary: usize = |v| v;
        /// Continue with the newest log at open instead of writing what it holds to a table, if
        /// everything in it is known to be on disk: a close syncs the log for this. Not one that has
        /// another name, which may be a copy's. Default: false.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().reuse_logs(true); // for programs that open often
        /// ```
        reuse_logs: bool = |v| v;
        /// Background threads that flush and compact, shared by all databases of the Env: 1 – 64.
        /// Default: 2.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().background_threads(4);
        /// ```
        background_threads: usize = |v| v;
        /// How tables are read, and what a sector that cannot be read does. Default:
        /// [`ReadAccess::Auto`].
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().read_access(ReadAccess::Pread); // never a signal
        /// ```
        read_access: ReadAccess = |v| v;
        /// Append to the write-ahead log through prepared, mapped segments where the file system
        /// allows it, instead of a system call per write, and recycle the file of an old log that
        /// the disk has never seen. Logs are mapped on ext4 and tmpfs, on x86-64 and AArch64;
        /// elsewhere, and on XFS, where a store after a shutdown of the file system would kill the
        /// process, they are written, and so is the rest of a log once a record of more than 8 KiB
        /// does not fit into its block of 32 KiB. The program that opens the database after the
        /// process was killed, LevelDB with paranoid checks included, finds every write that was
        /// acknowledged, either way. Default: true.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().mapped_log(false); // one system call for each write
        /// ```
        mapped_log: bool = |v| v;
        /// Start writing a growing table out after this many bytes, so that its final sync has less
        /// to do; 0 leaves it to the system. Default: 0.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().bytes_per_sync(1 << 20);
        /// ```
        bytes_per_sync: u64 = |v| v;
        /// Bytes a second that compactions may write, so that they leave the disk to others; 0 for
        /// no limit. What flushes write counts, but flushes never wait: memory waits for them. A
        /// rate below what writes need lets level 0 grow, and that slows writers down in turn. 0,
        /// or 1 MiB – 1 TiB. Default: 0.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().compaction_rate_limit(20 << 20); // 20 MiB a second
        /// # let _ = options;
        /// # Ok::<_, terrace::Error>(())
        /// ```
        compaction_rate_limit: u64 = |v| v;
        /// Bytes of the MANIFEST before a fresh one is started, or twice its first record where that
        /// is more: 4 KiB – 1 GiB. Default: 64 MiB.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().max_manifest_size(1 << 20); // for faster opens
        /// ```
        max_manifest_size: u64 = |v| v;
        /// Permission bits of new files, before the umask. Default: 0o644.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().file_mode(0o600).dir_mode(0o700); // for its owner alone
        /// ```
        file_mode: u32 = |v| v;
        /// Permission bits of a new database directory, before the umask. Default: 0o755.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().file_mode(0o600).dir_mode(0o700); // for its owner alone
        /// ```
        dir_mode: u32 = |v| v;
        /// Compact tables without a filter that many lookups searched without a hit, and compact
        /// towards one sorted run while there are reads and no writes, or eight scans or more for
        /// each write: at once where little has to be rewritten for it, all of the database when
        /// the reads since the last write have been worth it (256 bytes a seek, 32 a look-up). In
        /// a database larger than memory no step towards one run is taken at once, and a seek is
        /// worth 16 KiB. Default: true.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().seek_compaction(false); // reads write nothing
        /// ```
        seek_compaction: bool = |v| v;
        /// Entries that [`Db::delete_range`](crate::Db::delete_range) deletes one by one, in a
        /// batch. Where a range holds more, its tables are removed and those at its ends written
        /// anew. 0 for always. Default: 4,096, and up to 65,536 where those tables are so large
        /// that writing them anew would take longer.
        ///
        /// ```
        /// # use terrace::*;
        /// let options = Options::new().range_delete_batch(0); // never one by one
        /// ```
        range_delete_batch: usize = |v| v;
        /// Decides which entries compactions keep. Default: none, all are kept.
        ///
        /// ```
        /// # use terrace::*;
        /// /// Removes keys that begin with `tmp:`.
        /// struct NothingTemporary;
        ///
        /// impl CompactionFilter for NothingTemporary {
        ///     fn filter(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
        ///         match key.starts_with(b"tmp:") {
        ///             true => FilterDecision::Remove,
        ///             false => FilterDecision::Keep,
        ///         }
        ///     }
        /// }
        ///
        /// let filter = std::sync::Arc::new(NothingTemporary);
        /// let options = Options::new().compaction_filter(Some(filter));
        /// ```
        compaction_filter: Option<Arc<dyn CompactionFilter>> = |v| v;
        /// A bound for the memory of this database and of all others with clones of it. A memtable
        /// then has an eighth of it at most, and databases without a `block_cache` share one within
        /// it, in place of `block_cache_size`. A budget of another process fails the open. Default:
        /// none.
        ///
        /// ```
        /// # use terrace::*;
        /// # let options = Options::new().create_if_missing(true);
        /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
        /// let options = options.memory_budget(Some(MemoryBudget::new(256 << 20)));
        /// let one = Db::open("/one", options.clone())?;
        /// let two = Db::open("/two", options)?; // both together have 256 MiB
        /// # (one.close()?, two.close()?);
        /// # Ok::<_, terrace::Error>(())
        /// ```
        memory_budget: Option<MemoryBudget> = |v| v;
        /// Whether transactions may be [prepared](crate::Transaction::prepare). The open then looks
        /// for those that were prepared before and not decided, and locks their keys again, and
        /// makes durable what it has found in logs. It fails if that cannot be done, and with
        /// `NotSupported` under a custom comparator. A read-only open only lists them. Without the
        /// option they stay in the database, and their locks are not obeyed. Default: false.
        prepared_transactions: bool = |v| v;
        /// Values of at least so many bytes are written once more, to a value file, when they leave
        /// the memtable, and no compaction copies them again but to give space back: tables hold
        /// pointers to them. For large values written in random order; a scan reads each value
        /// from its file. They are not compressed there. At least 1; below a few KiB there is
        /// little to gain.
        /// A flush appends to the value file of the one before until that has a 64th of the bytes of
        /// all values, at least 1 MiB and at most 256. Compactions give the space of overwritten and
        /// deleted values back: once background work is over, files of values of some KB and more
        /// take at most half as much again as what lives, and what snapshots keep. With `None`
        /// values stay in tables, and come back into them from value files with much garbage, and by
        /// every [`Db::compact_range`](crate::Db::compact_range): one of all tables
        /// ([`CompactOptions::force`](crate::CompactOptions::force)) makes the database plain, unless
        /// it has LZ4 or zstd.
        ///
        /// A database with such values is *extended*: its MANIFEST bears a name that LevelDB and
        /// earlier versions of Terrace refuse, until it has none any more. Any Terrace from this
        /// one on opens it, with this option or without. Values of keyspaces that expire, of bulk
        /// loads, of ingested tables and of recovered logs stay in tables, the latter three until
        /// they are compacted. Default: `None`.
        ///
        /// ```
        /// # use terrace::*;
        /// # let options = Options::new().create_if_missing(true);
        /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
        /// let db = Db::open("/photos", options.value_log(Some(4096)))?;
        /// db.put("cat", vec![7; 1_000_000])?;
        /// db.flush()?;
        /// assert_eq!(db.get("cat")?.map(|photo| photo.len()), Some(1_000_000));
        /// # Ok::<_, terrace::Error>(())
        /// ```
        value_log: Option<usize> = |v| v;
    }

    /// Bytes of a table before the next one begins, in a database whose tables have
    /// `database_bytes`.
    pub(crate) fn table_size(&self, database_bytes: u64) -> usize {
        match self.max_file_size {
            TABLE if database_bytes > self.large_database => LARGE_TABLE,
            chosen => chosen,
        }
    }

    /// Checks Terrace's own options and clips LevelDB's.
    pub(crate) fn sanitized(mut self) -> Result<Self> {
        if let Some(budget) = &self.memory_budget {
            budget.check_own()?;
            self.write_buffer_size = budget.write_buffer_size(self.write_buffer_size);
        }
        self.write_buffer_size = self.write_buffer_size.clamp(64 << 10, 1 << 30);
        self.max_open_files = self.max_open_files.clamp(64 + 10, 50_000);
        self.max_file_size = self.max_file_size.clamp(1 << 20, 1 << 30);
        self.block_size = self.block_size.clamp(1 << 10, 4 << 20);
        self.block_restart_interval = self.block_restart_interval.max(1);
        if plain_name(self.comparator.name_bytes()).1 {
            let message = "a comparator's name must not begin with terrace.extended.";
            return Err(Error::invalid_argument(message));
        }
        if !self.read_only {
            (0..NUM_LEVELS).try_for_each(|level| self.compression_at(level).check())?;
        }
        check("background_threads", self.background_threads as u64, 1, 64)?;
        check("table_filter_bits", self.table_filter_bits as u64, 0, 32)?;
        if self.compaction_rate_limit != 0 {
            check("compaction_rate_limit", self.compaction_rate_limit, 1 << 20, 1 << 40)?;
        }
        if self.zstd_dictionary != 0 {
            let most = MOST_DICTIONARY as u64;
            check("zstd_dictionary", self.zstd_dictionary as u64, 2 << 10, most)?;
        }
        if let Some(threshold) = self.value_log {
            check("value_log", threshold as u64, 1, u64::from(u32::MAX))?;
        }
        check("max_manifest_size", self.max_manifest_size, 4 << 10, 1 << 30)?;
        check("file_mode", u64::from(self.file_mode), 0o400, 0o777)?;
        check("dir_mode", u64::from(self.dir_mode), 0o500, 0o7777)?;
        check(
            "compression_per_level (entries)",
            self.compression_per_level.len() as u64,
            0,
            NUM_LEVELS as u64,
        )?;
        if self.paranoid_checks && self.recovery_mode == RecoveryMode::Prefix {
            self.recovery_mode = RecoveryMode::Strict;
        }
        Ok(self)
    }

    /// The account of the database's memory.
    pub(crate) fn memory_account(&self) -> Option<&Arc<MemoryAccount>> {
        self.memory_budget.as_ref().map(MemoryBudget::account)
    }

    /// A memtable of the database.
    pub(crate) fn new_memtable(&self, order: &InternalOrder) -> MemTableWriter {
        MemTable::within(order.clone(), self.write_buffer_size, self.memory_account()).0
    }

    pub(crate) fn compression_at(&self, level: usize) -> Compression {
        let per_level = &self.compression_per_level;
        per_level.get(level).or(per_level.last()).copied().unwrap_or(self.compression)
    }
}

fn check(option: &str, value: u64, low: u64, high: u64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("option {option} is {value}, must be {low} to {high}")))
}
