//! Numbers about a database and its work.

pub(super) mod leveldb_text;
pub(super) mod property;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::compaction::limits::pending_bytes;

use crate::db::db_impl::DbImpl;
use crate::db::db_impl::background::counters::Counters;
use crate::version::live_bytes::live_table_bytes;
use crate::version::version::Version;

/// One level.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// let levels: Vec<LevelStats> = db.stats().levels;
/// assert_eq!(levels.iter().map(|level| level.files).sum::<usize>(), 0);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LevelStats {
    /// The level, 0 to 6.
    pub level: usize,
    /// Table files now.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Compactions that wrote to this level since the database was opened.
    pub compactions: u64,
    /// Seconds that flushes and compactions into this level took.
    pub seconds: f64,
    /// Bytes that compactions into this level read.
    pub bytes_read: u64,
    /// Bytes that flushes, compactions and loads wrote to this level.
    pub bytes_written: u64,
}

/// Numbers about a database. Work is counted from the moment the database was opened.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// db.put("apple", "red")?;
/// let stats = db.stats();
/// println!("write amplification {:.1}", stats.write_amplification);
/// for level in stats.levels.iter().filter(|level| level.files > 0) {
///     println!("level {}: {} tables, {} bytes", level.level, level.files, level.bytes);
/// }
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Every level, from 0.
    pub levels: Vec<LevelStats>,
    /// Bytes of all memtables.
    pub memtable_bytes: u64,
    /// Full memtables that have not been flushed.
    pub immutable_memtables: usize,
    /// Bytes of keys and values that were written, with the few bytes a batch adds.
    pub user_bytes_written: u64,
    /// Bytes that flushes wrote to tables and value files.
    pub flush_bytes_written: u64,
    /// Bytes of tables that bulk loads and ingestions brought.
    pub load_bytes_written: u64,
    /// Bytes that compactions read.
    pub compaction_bytes_read: u64,
    /// Bytes that compactions wrote to tables and value files.
    pub compaction_bytes_written: u64,
    /// Bytes written to logs, tables and value files for each byte that was written by the user; 0 before the
    /// first write.
    pub write_amplification: f64,
    /// Bytes of tables and value files that are not obsolete, by an estimate: those of each table,
    /// from the last level up, whose keys lie beside those that count already, and those of values
    /// that tables point to. Too little where new keys lie among old ones and are in levels above.
    pub live_bytes: u64,
    /// Bytes of tables and value files for each that is not obsolete, by the same estimate; 1 where
    /// there are none. What it is above 1, compactions and garbage collection will free.
    pub space_amplification: f64,
    /// Capacity of the block cache, in bytes.
    pub cache_capacity: u64,
    /// Bytes in the block cache, which other databases may share.
    pub cache_used: u64,
    /// The bound of the memory budget, in bytes; 0 if the database has none.
    pub memory_budget_bytes: u64,
    /// Bytes that count for it now, of all databases that share it.
    pub memory_used_bytes: u64,
    /// Blocks found in the cache and not found there.
    pub cache_hits: u64,
    /// Blocks that had to be loaded.
    pub cache_misses: u64,
    /// Filters asked.
    pub filter_checked: u64,
    /// Times that a filter spared a read.
    pub filter_useful: u64,
    /// Tables open now.
    pub open_tables: usize,
    /// Bytes in memory for open tables, indexes and filters, not blocks, and for filters of others that
    /// were closed for want of memory.
    pub table_memory_bytes: u64,
    /// Value files now ([`Options::value_log`](crate::Options::value_log)).
    pub value_files: usize,
    /// Their bytes, without what a flush is appending.
    pub value_file_bytes: u64,
    /// Bytes of the values in them that tables point at. Compactions copy values out of files of
    /// which less than half is used, and out of more while a quarter of all values is garbage.
    pub value_bytes_used: u64,
    /// Whether it has value files, or tables with LZ4 or zstd. LevelDB refuses such a database;
    /// once it has none any more, from the next close on it does not.
    pub is_extended: bool,
    /// Snapshots alive.
    pub snapshots: usize,
    /// The age of the oldest snapshot.
    pub oldest_snapshot_age: Option<Duration>,
    /// Keys that transactions have locked now.
    pub locked_keys: usize,
    /// Times that a writer or a transaction had to wait for a lock.
    pub lock_waits: u64,
    /// Times that a writer was slowed down or had to wait.
    pub stall_count: u64,
    /// Microseconds that writers were slowed down or waited in all.
    pub stall_micros: u64,
    /// Microseconds that compactions waited because of `Options::compaction_rate_limit`.
    pub rate_limited_micros: u64,
    /// The sequence number of the last write.
    pub sequence: u64,
    /// Bytes that should be compacted down before every level is within its limit: the debt left by
    /// writes.
    pub pending_compaction_bytes: u64,
    /// Compactions running now.
    pub running_compactions: usize,
    /// The error that keeps background work from going on, if there is one.
    pub background_error: Option<String>,
}

/// A table file of the database.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// db.put("apple", "red")?;
/// db.flush()?;
/// for table in db.files() {
///     println!("{:06}.ldb: level {}, {} bytes", table.number, table.level, table.size);
/// }
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableFile {
    /// The number in its name.
    pub number: u64,
    /// Its level.
    pub level: usize,
    /// Its size in bytes.
    pub size: u64,
    /// The smallest user key.
    pub smallest: Vec<u8>,
    /// The largest user key.
    pub largest: Vec<u8>,
    /// Entries, tombstones included, if known: a table that was not opened yet has not told.
    pub entries: Option<u64>,
    /// Tombstones, if known.
    pub deletions: Option<u64>,
    /// The compressions of its blocks that LevelDB does not read: `lz4`, `zstd`, and
    /// `zstd-dictionary` for those that need the dictionary of their table.
    pub compressions: Vec<&'static str>,
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn level_stats(counters: &Counters, version: &Version) -> Vec<LevelStats> {
    let levels = counters.levels.iter().enumerate();
    let stats = levels.map(|(level, counters)| LevelStats {
        level,
        files: version.levels[level].len(),
        bytes: version.level_bytes(level),
        compactions: get(&counters.compactions),
        seconds: get(&counters.micros) as f64 / 1e6,
        bytes_read: get(&counters.bytes_read),
        bytes_written: get(&counters.bytes_written),
    });
    stats.collect()
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

pub(in crate::db) fn stats(core: &DbImpl) -> Stats {
    let view = core.views.current.load_full();
    let levels = level_stats(&core.background.counters, &view.version);
    let user_bytes_written = get(&core.background.counters.user_bytes);
    let flush_bytes_written = get(&core.background.counters.flush_bytes);
    let table_bytes_written: u64 = levels.iter().map(|level| level.bytes_written).sum();
    let memtables = std::iter::once(&view.memtable).chain(&view.immutables);
    let (stall_count, stall_micros) = core.background.throttle.stalls();
    let now = core.files.env.now_micros();
    // In a child of a fork a thread of the parent may hold a lock for ever.
    let is_inherited = core.files.is_inherited();
    let state = if is_inherited {
        core.background.state.try_lock()
    } else {
        Some(core.background.state.lock())
    };
    let (running_compactions, background_error) = state.map_or((0, None), |state| {
        (state.compactions, state.error.as_ref().map(|error| error.error.to_string()))
    });
    let load_bytes_written = get(&core.background.counters.load_bytes_written);
    // Every user byte goes to the log once, unless it was loaded past it.
    let logged =
        user_bytes_written - get(&core.background.counters.loaded_bytes).min(user_bytes_written);
    let written = (logged + table_bytes_written) as f64;
    let table_stats = core.files.tables.read_totals();
    let (open_tables, table_memory_bytes) = core.files.tables.open_tables();
    let budget = core.files.options.memory_budget.as_ref();
    let value_file_bytes = sum(view.version.values.iter().map(|used| used.size));
    let value_bytes_used = view.version.values.used_bytes();
    let live_bytes =
        live_table_bytes(&view.version, &core.files.order.keys).saturating_add(value_bytes_used);
    Stats {
        memtable_bytes: memtables.map(|table| table.memory_usage() as u64).sum(),
        immutable_memtables: view.immutables.len(),
        user_bytes_written,
        flush_bytes_written,
        load_bytes_written,
        compaction_bytes_read: levels.iter().map(|level| level.bytes_read).sum(),
        compaction_bytes_written: table_bytes_written
            .saturating_sub(flush_bytes_written + load_bytes_written),
        write_amplification: if user_bytes_written == 0 {
            0.0
        } else {
            written / user_bytes_written as f64
        },
        live_bytes,
        space_amplification: match live_bytes {
            0 => 1.0,
            _ => view.version.bytes().saturating_add(value_file_bytes) as f64 / live_bytes as f64,
        },
        cache_capacity: core.files.cache.capacity() as u64,
        cache_used: core.files.cache.used() as u64,
        memory_budget_bytes: budget.map_or(0, |budget| budget.limit() as u64),
        memory_used_bytes: budget.map_or(0, |budget| budget.used() as u64),
        cache_hits: table_stats.cache_hits,
        cache_misses: table_stats.cache_misses,
        filter_checked: table_stats.filter_checked,
        filter_useful: table_stats.filter_useful,
        open_tables,
        table_memory_bytes: table_memory_bytes as u64,
        value_files: view.version.values.iter().count(),
        value_file_bytes,
        value_bytes_used,
        is_extended: view.version.is_extended(),
        snapshots: if is_inherited { 0 } else { core.views.snapshots.count() },
        oldest_snapshot_age: if is_inherited { None } else { core.views.snapshots.oldest_age(now) },
        locked_keys: if is_inherited { 0 } else { core.writes.control.locks.held() },
        lock_waits: core.writes.control.locks.waits(),
        stall_count,
        stall_micros,
        rate_limited_micros: core
            .background
            .rate_limiter
            .as_ref()
            .map_or(0, |limit| limit.waited_micros()),
        sequence: core.views.visible_sequence(),
        pending_compaction_bytes: pending_bytes(&view.version),
        running_compactions,
        background_error,
        levels,
    }
}

pub(in crate::db) fn files(core: &DbImpl) -> Vec<TableFile> {
    let view = core.views.current.load_full();
    let describe = |(level, file): (usize, &Arc<crate::version::file_meta::FileMeta>)| {
        let contents = file.contents();
        TableFile {
            number: file.number,
            level,
            size: file.size,
            smallest: file.smallest_user_key().to_vec(),
            largest: file.largest_user_key().to_vec(),
            entries: contents.map(|contents| contents.entries),
            deletions: contents.map(|contents| contents.deletions),
            compressions: file.codecs.names(),
        }
    };
    view.version.files().map(describe).collect()
}
