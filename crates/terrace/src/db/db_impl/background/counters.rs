//! Counts the work of an open database.
//!
//! Any thread, without a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::version::NUM_LEVELS;
use crate::version::file_meta::FileMeta;

/// Bytes that users write for one of a table, at most: more are taken for bytes of entries that
/// were overwritten in the memtable.
const MOST_USER_BYTES: f64 = 16.0;

/// Work done for one level since the database was opened.
#[derive(Default)]
pub(in crate::db) struct LevelCounters {
    pub(in crate::db) compactions: AtomicU64,
    pub(in crate::db) micros: AtomicU64,
    pub(in crate::db) bytes_read: AtomicU64,
    pub(in crate::db) bytes_written: AtomicU64,
}

/// Work done since the database was opened.
#[derive(Default)]
pub(in crate::db) struct Counters {
    pub(in crate::db) levels: [LevelCounters; NUM_LEVELS],
    pub(in crate::db) user_bytes: AtomicU64,
    pub(in crate::db) flush_bytes: AtomicU64,
    /// Of `user_bytes` those that were loaded past the log, and the bytes of the tables that they
    /// became.
    pub(in crate::db) loaded_bytes: AtomicU64,
    pub(in crate::db) load_bytes_written: AtomicU64,
}

impl Counters {
    /// Called under the commit lock, so that no read-modify-write is needed.
    #[inline]
    pub(in crate::db) fn record_write(&self, bytes: u64) {
        self.user_bytes.store(self.user_bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    pub(in crate::db) fn record_flush(&self, level: usize, bytes: u64, micros: u64) {
        self.flush_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.record(level, 0, bytes, micros);
    }

    /// About as many bytes as users wrote for the entries of these files.
    pub(in crate::db) fn user_bytes_of(&self, files: &[Arc<FileMeta>]) -> u64 {
        let bytes: u64 =
            files.iter().map(|file| file.size.saturating_add(file.value_bytes())).sum();
        let loaded = self.loaded_bytes.load(Ordering::Relaxed);
        let user = self.user_bytes.load(Ordering::Relaxed).saturating_sub(loaded);
        let flushed = self.flush_bytes.load(Ordering::Relaxed);
        // Entries that an open recovered were flushed, but not written since.
        let ratio = if flushed == 0 { 1.0 } else { user as f64 / flushed as f64 };
        (bytes as f64 * ratio.clamp(1.0, MOST_USER_BYTES)) as u64
    }

    /// A table of a bulk load. Called under the commit lock.
    pub(in crate::db) fn record_load(&self, level: usize, user_bytes: u64, bytes: u64) {
        self.record_write(user_bytes);
        self.loaded_bytes.fetch_add(user_bytes, Ordering::Relaxed);
        self.load_bytes_written.fetch_add(bytes, Ordering::Relaxed);
        self.record(level, 0, bytes, 0);
    }

    pub(in crate::db) fn record_compaction(
        &self,
        level: usize,
        read: u64,
        written: u64,
        micros: u64,
    ) {
        self.record(level, read, written, micros);
        self.levels[level].compactions.fetch_add(1, Ordering::Relaxed);
    }

    fn record(&self, level: usize, read: u64, written: u64, micros: u64) {
        let counters = &self.levels[level];
        counters.micros.fetch_add(micros, Ordering::Relaxed);
        counters.bytes_read.fetch_add(read, Ordering::Relaxed);
        counters.bytes_written.fetch_add(written, Ordering::Relaxed);
    }
}
