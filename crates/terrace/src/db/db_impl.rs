//! What handles, iterators, snapshots and background jobs of one database share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::{InternalOrder, SequenceNumber};
use crate::base::locks::{ArcSwap, AtomicBool, AtomicU64, Condvar, Mutex};
use crate::base::mutation::mutated;
use crate::compaction::output::OutputSettings;
use crate::compaction::plan::PlanSettings;
use crate::compaction::rate_limiter::RateLimiter;
use crate::env::{Env, FileLock, Logger};
use crate::iterator::deleted_ranges::DeletedRanges;
use crate::memtable::MemTable;
use crate::table::{BlockCache, TableOrder, TableSettings};
use crate::version::file_meta::ObsoleteFiles;
use crate::version::table_set::TableSet;
use crate::version::version::Version;
use crate::version::version_set::{FileNumbers, VersionSet};
use crate::write::log_sync::LogSync;
use crate::write::throttle::Throttle;

use crate::db::background::jobs::Jobs;
use crate::db::keyspace::Keyspaces;
use crate::db::options::Options;
use crate::db::range_delete::RecentRangeDeletes;
use crate::db::read::snapshot::SnapshotList;
use crate::db::state::{BackgroundError, State};
use crate::db::stats::Counters;
use crate::db::stats::events::Event;
use crate::db::transaction::concurrency_control::ConcurrencyControl;
use crate::db::write::Commit;
use crate::db::write::recycled_logs::RecycledLogs;

/// Samples one read in this many, for read-triggered compaction.
pub(in crate::db) const READ_SAMPLE: u64 = 16;
/// Sampled reads without a write among them after which a database counts as idle: a few thousand
/// reads.
const IDLE_AFTER_SAMPLES: u64 = 128;
/// Seeks of cursors for a write, at least, where compactions pay for scans. What is written is
/// compacted with up to twenty times as much before there is one sorted run again, a few
/// microseconds an entry; a scan of fifty entries is a microsecond or two shorter on one run than
/// on three.
const SEEKS_FOR_A_WRITE: u64 = 8;
/// Bytes that compactions may rewrite to spare one read a sorted run. For a seek a run more is a
/// block more to search and most often to decompress, about 0.8 µs, and compacting takes 0.3 µs for
/// an entry of 116 bytes; for a look-up it is a filter, a tenth of that.
const SEEK_WORTH: u64 = 256;
const LOOKUP_WORTH: u64 = 32;

/// Everything a read looks into. Immutable; a change is a new view.
pub(in crate::db) struct View {
    pub(in crate::db) memtable: Arc<MemTable>,
    /// Newest first.
    pub(in crate::db) immutables: Vec<Arc<MemTable>>,
    pub(in crate::db) version: Arc<Version>,
    /// Whatever is later than this is in a memtable.
    pub(in crate::db) in_tables: SequenceNumber,
}

/// See the [module](self).
pub(crate) struct DbImpl {
    pub(in crate::db) options: Options,
    pub(in crate::db) env: Arc<dyn Env>,
    pub(in crate::db) dir: PathBuf,
    pub(in crate::db) order: InternalOrder,
    pub(in crate::db) cache: BlockCache,
    pub(in crate::db) tables: Arc<TableSet>,
    pub(in crate::db) numbers: Arc<FileNumbers>,
    pub(in crate::db) obsolete_files: Arc<ObsoleteFiles>,
    pub(in crate::db) logger: Arc<dyn Logger>,

    pub(in crate::db) view: ArcSwap<View>,
    /// The last write that reads see. Stored under the commit lock, after the write is in the
    /// memtable.
    pub(in crate::db) visible: AtomicU64,
    pub(in crate::db) snapshots: SnapshotList,
    pub(in crate::db) control: ConcurrencyControl,

    /// `None` in a read-only or closed database.
    pub(in crate::db) commit: Mutex<Option<Commit>>,
    pub(in crate::db) log_sync: LogSync,
    /// Set when the present log may not hold what was appended to it: the next write moves on
    /// first.
    pub(in crate::db) log_suspect: AtomicBool,
    /// Held for as long as the database is being closed.
    pub(in crate::db) shutting_down: Mutex<()>,
    /// Whether a write was broken off by a panic.
    pub(in crate::db) write_panicked: AtomicBool,
    pub(in crate::db) recycled_logs: RecycledLogs,
    pub(in crate::db) throttle: Throttle,
    /// How fast background work may write.
    pub(in crate::db) rate_limiter: Option<Arc<RateLimiter>>,

    pub(in crate::db) jobs: Jobs,
    pub(in crate::db) versions: Mutex<VersionSet>,
    pub(in crate::db) state: Mutex<State>,
    /// Signalled whenever something in the state changes that a thread may wait for.
    pub(in crate::db) changed: Condvar,
    pub(in crate::db) closed: AtomicBool,
    pub(in crate::db) lock: Mutex<Option<Box<dyn FileLock>>>,
    /// The process that opened the database.
    pub(in crate::db) generation: u64,
    pub(in crate::db) counters: Counters,
    pub(in crate::db) read_stats: ReadStats,
    pub(in crate::db) deleted_ranges: DeletedRanges,
    pub(in crate::db) range_deletes: RecentRangeDeletes,
    pub(in crate::db) keyspaces: Keyspaces,
}

/// A read that asks for fewer sorted runs.
#[derive(Clone, Copy)]
pub(in crate::db) enum Read {
    Lookup,
    Seek,
}

/// Notices that there are reads and no writes, or scans and few.
#[derive(Default)]
pub(in crate::db) struct ReadStats {
    last_sequence: AtomicU64,
    samples: AtomicU64,
    /// Bytes that compactions may rewrite for the reads that have seen it.
    worth: AtomicU64,
    /// The value of `worth` at which compactions are planned again; 0: never.
    look_at: AtomicU64,
    /// Sampled seeks of cursors since a moment, and the last write then.
    seeks: AtomicU64,
    seeks_since: AtomicU64,
}

impl ReadStats {
    /// Takes note of a sampled read. True when enough of them have seen the same last write, and
    /// once more when they have been worth what [`look_again`](Self::look_again) said.
    pub(in crate::db) fn sample(&self, sequence: SequenceNumber, kind: Read) -> bool {
        if self.last_sequence.swap(sequence, Ordering::Relaxed) != sequence {
            self.samples.store(0, Ordering::Relaxed);
            self.worth.store(0, Ordering::Relaxed);
            self.look_at.store(0, Ordering::Relaxed);
        }
        let worth = match kind {
            Read::Lookup => LOOKUP_WORTH,
            Read::Seek => SEEK_WORTH,
        };
        let worth =
            worth * READ_SAMPLE + self.worth.fetch_add(worth * READ_SAMPLE, Ordering::Relaxed);
        let look_at = self.look_at.load(Ordering::Relaxed);
        let is_time = look_at > 0 && worth >= look_at;
        self.samples.fetch_add(1, Ordering::Relaxed) == IDLE_AFTER_SAMPLES || is_time
    }

    /// Has [`sample`](Self::sample) say so when the reads have been worth rewriting `bytes`, unless
    /// they have been already.
    pub(in crate::db) fn look_again(&self, bytes: u64) {
        let look_at = if self.worth.load(Ordering::Relaxed) < bytes { bytes } else { 0 };
        self.look_at.store(look_at, Ordering::Relaxed);
    }

    /// Takes note of a sampled seek of a cursor. True now and then while there are many for each
    /// write.
    pub(in crate::db) fn sample_seek(&self, sequence: SequenceNumber) -> bool {
        if self.seeks.fetch_add(1, Ordering::Relaxed) + 1 < IDLE_AFTER_SAMPLES {
            return false;
        }
        self.seeks.store(0, Ordering::Relaxed);
        let writes = sequence.saturating_sub(self.seeks_since.swap(sequence, Ordering::Relaxed));
        writes * SEEKS_FOR_A_WRITE <= IDLE_AFTER_SAMPLES * READ_SAMPLE
    }

    /// Whether a sampled read has seen a later write than this one.
    pub(in crate::db) fn has_read_since(&self, sequence: SequenceNumber) -> bool {
        self.last_sequence.load(Ordering::Relaxed) > sequence
    }
}

impl DbImpl {
    #[inline]
    pub(in crate::db) fn visible_sequence(&self) -> SequenceNumber {
        self.visible.load(Ordering::Acquire)
    }

    pub(in crate::db) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(in crate::db) fn log(&self, message: impl AsRef<str>) {
        self.logger.log(message.as_ref());
    }

    pub(in crate::db) fn tell(&self, event: &Event) {
        if let Some(listener) = &self.options.listener {
            listener.on_event(event);
        }
    }

    #[inline]
    pub(in crate::db) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::closed(format!("{}: the database is closed", self.dir.display())));
        }
        Ok(())
    }

    /// Whether this process got the database from its parent, by a fork: the files are the
    /// parent's, and locks may be held by threads that are not here.
    #[inline]
    pub(in crate::db) fn is_inherited(&self) -> bool {
        self.env.process_generation() != self.generation && !mutated("fork")
    }

    /// Whether background work is another process's: in a fork, where reads must not ask for it
    /// either, and the state's lock may be held by a thread that is not here.
    #[inline]
    pub(in crate::db) fn works_elsewhere(&self) -> bool {
        self.is_inherited() && !mutated("work-of-a-fork")
    }

    /// Whether this process may change the database.
    #[inline]
    pub(in crate::db) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.options.read_only {
            return Err(Error::not_supported(format!("{}: opened read-only", self.dir.display())));
        }
        self.check_own()
    }

    /// Whether it was this process that opened the database.
    #[inline]
    pub(in crate::db) fn check_own(&self) -> Result<()> {
        if self.is_inherited() {
            let message =
                "this process is a fork of the one that opened the database; open it again here";
            return Err(Error::not_supported(format!("{}: {message}", self.dir.display())));
        }
        Ok(())
    }

    pub(in crate::db) fn plan_settings(&self, is_write_idle: bool) -> PlanSettings {
        let (snapshots, present) = self.snapshots.all(|| self.visible_sequence());
        PlanSettings {
            keys: self.order.keys.clone(),
            max_file_size: self.options.max_file_size as u64,
            oldest_snapshot: snapshots.first().copied().unwrap_or(present),
            read_triggered_bytes: is_write_idle
                .then(|| self.read_stats.worth.load(Ordering::Relaxed)),
        }
    }

    /// Does `work`; and once more if it ran out of descriptors that tables can spare.
    pub(in crate::db) fn sparing<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        match work() {
            Err(error) if error.is_out_of_descriptors() && self.tables.spare_descriptors() => {
                work()
            }
            result => result,
        }
    }

    /// How compactions write tables of `level`: not faster than the options allow.
    pub(in crate::db) fn compaction_settings(&self, level: usize) -> OutputSettings {
        OutputSettings { limit: self.rate_limiter.clone(), ..self.output_settings(level) }
    }

    /// How tables of `level` are written.
    pub(in crate::db) fn output_settings(&self, level: usize) -> OutputSettings {
        output_settings(&self.options, &self.dir, &self.order, &self.numbers, level)
    }

    /// Installs a view made from the present one, and returns the old one; drop it after
    /// unlocking, because that may close tables.
    ///
    /// The caller holds the state lock, so that views follow one another.
    #[must_use]
    pub(in crate::db) fn swap_view(
        &self,
        _state: &mut State,
        change: impl FnOnce(&View) -> View,
    ) -> Arc<View> {
        let next = change(&self.view.load());
        self.view.swap(Arc::new(next))
    }

    /// Records a background failure.
    pub(in crate::db) fn fail(&self, state: &mut State, error: &Error, retryable: bool) {
        let worse = state.error.as_ref().is_none_or(|present| present.retryable);
        if worse {
            state.error = Some(BackgroundError { error: error.clone(), retryable });
            state.has_failed = true;
        }
        if self.options.paranoid_checks && !retryable && error.kind() == ErrorKind::Corruption {
            // The next write meets the error first: see `leave_suspect_log`.
            self.log_suspect.store(true, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }

    pub(in crate::db) fn dir(&self) -> &Path {
        &self.dir
    }
}

pub(in crate::db) fn output_settings(
    options: &Options,
    dir: &Path,
    order: &InternalOrder,
    numbers: &Arc<FileNumbers>,
    level: usize,
) -> OutputSettings {
    OutputSettings {
        env: options.env.clone(),
        dir: dir.to_owned(),
        numbers: numbers.clone(),
        first_number: None,
        file_mode: options.file_mode,
        limit: None,
        table: table_settings(options, order.keys.clone(), level),
    }
}

/// How a table of `level` is written.
pub(in crate::db) fn table_settings(
    options: &Options,
    keys: KeyOrder,
    level: usize,
) -> TableSettings {
    TableSettings {
        order: TableOrder::internal(keys),
        block_size: options.block_size,
        restart_interval: options.block_restart_interval,
        compression: options.compression_at(level),
        filter_policy: options.filter_policy.clone(),
        full_filter_bits: options.table_filter_bits,
        bytes_per_sync: options.bytes_per_sync,
        comparator: None,
    }
}
