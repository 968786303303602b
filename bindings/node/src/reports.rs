//! What the engine reports, as objects of JavaScript. Counts are exact up to 2^53.

use napi_derive::napi;

/// A copy that a checkpoint made.
#[napi(object)]
pub struct CheckpointReport {
    /// Tables.
    pub tables: f64,
    /// Value files.
    pub value_files: f64,
    /// Files of both that are hard links; the others are copies.
    pub linked: f64,
    /// Bytes of all tables.
    pub table_bytes: f64,
    /// Bytes of all value files.
    pub value_bytes: f64,
    /// The sequence number of the last write in the copy.
    pub sequence: f64,
}

impl From<terrace::CheckpointReport> for CheckpointReport {
    fn from(report: terrace::CheckpointReport) -> Self {
        CheckpointReport {
            tables: report.tables as f64,
            value_files: report.value_files as f64,
            linked: report.linked as f64,
            table_bytes: report.table_bytes as f64,
            value_bytes: report.value_bytes as f64,
            sequence: report.sequence as f64,
        }
    }
}

/// Tables of a level, and the work on it since the database was opened.
#[napi(object)]
pub struct LevelStats {
    /// The level, 0 to 6.
    pub level: f64,
    /// Tables of the level now.
    pub files: f64,
    /// Bytes of these tables.
    pub bytes: f64,
    /// Compactions that wrote to this level.
    pub compactions: f64,
    /// Seconds that flushes and compactions into this level took.
    pub seconds: f64,
    /// Bytes that compactions into this level read.
    pub bytes_read: f64,
    /// Bytes that flushes and compactions wrote to this level.
    pub bytes_written: f64,
}

impl From<&terrace::LevelStats> for LevelStats {
    fn from(stats: &terrace::LevelStats) -> Self {
        LevelStats {
            level: stats.level as f64,
            files: stats.files as f64,
            bytes: stats.bytes as f64,
            compactions: stats.compactions as f64,
            seconds: stats.seconds,
            bytes_read: stats.bytes_read as f64,
            bytes_written: stats.bytes_written as f64,
        }
    }
}

/// Numbers about a database. Work is counted from the moment the database was opened.
#[napi(object)]
pub struct Stats {
    /// Every level, from 0.
    pub levels: Vec<LevelStats>,
    /// Bytes of all memtables.
    pub memtable_bytes: f64,
    /// Full memtables that have not been flushed.
    pub immutable_memtables: f64,
    /// Bytes of keys and values that were written, with the few bytes that a batch adds.
    pub user_bytes_written: f64,
    /// Bytes that flushes wrote to tables and value files.
    pub flush_bytes_written: f64,
    /// Bytes that compactions read.
    pub compaction_bytes_read: f64,
    /// Bytes that compactions wrote to tables and value files.
    pub compaction_bytes_written: f64,
    /// Bytes written to logs, tables and value files for each byte that was written by the program;
    /// 0 before the first write.
    pub write_amplification: f64,
    /// Bytes of tables and value files that are not obsolete, by an estimate.
    pub live_bytes: f64,
    /// Bytes of tables and value files for each that is not obsolete, by the same estimate; 1 where
    /// there are none.
    pub space_amplification: f64,
    /// Capacity of the block cache, in bytes.
    pub cache_capacity: f64,
    /// Bytes in the block cache.
    pub cache_used: f64,
    /// Blocks that were found in the block cache.
    pub cache_hits: f64,
    /// Blocks that were not, and had to be loaded.
    pub cache_misses: f64,
    /// Filters that lookups asked.
    pub filter_checked: f64,
    /// Times that a filter spared a read.
    pub filter_useful: f64,
    /// Tables that are open.
    pub open_tables: f64,
    /// Bytes in memory for open tables, indexes and filters, without blocks.
    pub table_memory_bytes: f64,
    /// Value files now.
    pub value_files: f64,
    /// Bytes of value files.
    pub value_file_bytes: f64,
    /// Bytes of the values in value files that tables point at.
    pub value_bytes_used: f64,
    /// Snapshots that are open, those of reads and iterators under way among them.
    pub snapshots: f64,
    /// Times that a writer was slowed down or had to wait.
    pub stall_count: f64,
    /// Microseconds that writers were slowed down or waited, in all.
    pub stall_micros: f64,
    /// The sequence number of the last write.
    pub sequence: f64,
    /// Bytes that have to be compacted before every level is within its limit.
    pub pending_compaction_bytes: f64,
    /// Compactions that are running.
    pub running_compactions: f64,
    /// Whether the database has value files, or tables with LZ4 or zstd, which LevelDB refuses.
    pub is_extended: bool,
    /// Seconds since the oldest open snapshot was taken, if there is one.
    pub oldest_snapshot_seconds: Option<f64>,
    /// The error that keeps flushes and compactions from going on, if there is one.
    pub background_error: Option<String>,
}

impl From<terrace::Stats> for Stats {
    fn from(stats: terrace::Stats) -> Self {
        Stats {
            levels: stats.levels.iter().map(LevelStats::from).collect(),
            memtable_bytes: stats.memtable_bytes as f64,
            immutable_memtables: stats.immutable_memtables as f64,
            user_bytes_written: stats.user_bytes_written as f64,
            flush_bytes_written: stats.flush_bytes_written as f64,
            compaction_bytes_read: stats.compaction_bytes_read as f64,
            compaction_bytes_written: stats.compaction_bytes_written as f64,
            write_amplification: stats.write_amplification,
            live_bytes: stats.live_bytes as f64,
            space_amplification: stats.space_amplification,
            cache_capacity: stats.cache_capacity as f64,
            cache_used: stats.cache_used as f64,
            cache_hits: stats.cache_hits as f64,
            cache_misses: stats.cache_misses as f64,
            filter_checked: stats.filter_checked as f64,
            filter_useful: stats.filter_useful as f64,
            open_tables: stats.open_tables as f64,
            table_memory_bytes: stats.table_memory_bytes as f64,
            value_files: stats.value_files as f64,
            value_file_bytes: stats.value_file_bytes as f64,
            value_bytes_used: stats.value_bytes_used as f64,
            snapshots: stats.snapshots as f64,
            stall_count: stats.stall_count as f64,
            stall_micros: stats.stall_micros as f64,
            sequence: stats.sequence as f64,
            pending_compaction_bytes: stats.pending_compaction_bytes as f64,
            running_compactions: stats.running_compactions as f64,
            is_extended: stats.is_extended,
            oldest_snapshot_seconds: stats.oldest_snapshot_age.map(|age| age.as_secs_f64()),
            background_error: stats.background_error,
        }
    }
}
