//! Options at random, as plain values that can be printed.

use std::sync::Arc;

use terrace::{BloomFilterPolicy, Compression, Env, Options, ReadAccess};

use crate::model::ReverseComparator;
use crate::rng::Rng;

/// Settings under which a database must give the same results as under any other.
#[derive(Clone, Debug)]
pub struct OptionSet {
    /// See the methods of [`Options`] by the same names, from here on.
    pub block_size: usize,
    /// Keys between two restart points.
    pub block_restart_interval: usize,
    /// Bytes of a memtable.
    pub write_buffer_size: usize,
    /// Bytes of a table file.
    pub max_file_size: usize,
    /// Snappy or nothing.
    pub snappy: bool,
    /// Bits per key of a bloom filter; 0 for none.
    pub bloom_bits: usize,
    /// Bytes of the block cache.
    pub block_cache_size: usize,
    /// Tables and other files open at once.
    pub max_open_files: usize,
    /// Continue old logs.
    pub reuse_logs: bool,
    /// Append to logs through mapped segments.
    pub mapped_log: bool,
    /// Mapped reads rather than `pread`.
    pub mapped_reads: bool,
    /// Threads for background work.
    pub background_threads: usize,
    /// Bytes of the MANIFEST before a new one.
    pub max_manifest_size: u64,
    /// Compactions caused by reads.
    pub seek_compaction: bool,
    /// Refuse doubtful logs.
    pub paranoid_checks: bool,
    /// Entries of a deleted range that are deleted one by one.
    pub range_delete_batch: usize,
    /// Bytes of a value that goes to a value file; 0: none does.
    pub value_log: usize,
    /// LZ4 instead of snappy.
    pub lz4: bool,
    /// Keys in the order of [`ReverseComparator`].
    pub reverse: bool,
}

impl Default for OptionSet {
    /// The engine's defaults, with the smallest memtable.
    fn default() -> Self {
        OptionSet {
            block_size: 4096,
            block_restart_interval: 16,
            write_buffer_size: 64 << 10,
            max_file_size: 1 << 20,
            snappy: true,
            bloom_bits: 0,
            block_cache_size: 8 << 20,
            max_open_files: 1000,
            reuse_logs: false,
            mapped_log: true,
            mapped_reads: true,
            background_threads: 2,
            max_manifest_size: 64 << 20,
            seek_compaction: true,
            paranoid_checks: false,
            range_delete_batch: 4096,
            value_log: 0,
            lz4: false,
            reverse: false,
        }
    }
}

impl OptionSet {
    /// A set at random.
    pub fn random(rng: &mut Rng) -> OptionSet {
        OptionSet {
            block_size: *rng.pick(&[1024, 1024, 4096, 65536]),
            block_restart_interval: *rng.pick(&[1, 2, 16, 128]),
            write_buffer_size: *rng.pick(&[64 << 10, 64 << 10, 256 << 10, 4 << 20]),
            max_file_size: *rng.pick(&[1 << 20, 2 << 20]),
            snappy: rng.one_in(2),
            bloom_bits: *rng.pick(&[0, 1, 10, 20]),
            block_cache_size: *rng.pick(&[0, 4096, 100_000, 8 << 20]),
            max_open_files: *rng.pick(&[74, 1000]),
            reuse_logs: rng.one_in(2),
            mapped_log: rng.one_in(2),
            mapped_reads: rng.one_in(2),
            background_threads: rng.between(1, 3),
            max_manifest_size: *rng.pick(&[4 << 10, 64 << 20]),
            seek_compaction: rng.one_in(2),
            paranoid_checks: rng.one_in(4),
            range_delete_batch: *rng.pick(&[0, 0, 5, 4096]),
            value_log: *rng.pick(&[0, 0, 1, 20, 500]),
            lz4: rng.one_in(4),
            reverse: rng.one_in(6),
        }
    }

    /// Eight sets, far from each other.
    pub fn eight() -> [OptionSet; 8] {
        let base = OptionSet::default;
        [
            base(),
            OptionSet {
                block_size: 1024,
                block_restart_interval: 1,
                snappy: false,
                reuse_logs: true,
                value_log: 1,
                ..base()
            },
            OptionSet {
                bloom_bits: 10,
                block_cache_size: 0,
                mapped_reads: false,
                range_delete_batch: 0,
                background_threads: 1,
                ..base()
            },
            OptionSet {
                write_buffer_size: 4 << 20,
                block_size: 64 << 10,
                mapped_log: false,
                ..base()
            },
            OptionSet {
                max_manifest_size: 4 << 10,
                max_open_files: 74,
                range_delete_batch: 0,
                bloom_bits: 1,
                value_log: 20,
                lz4: true,
                ..base()
            },
            OptionSet {
                block_restart_interval: 128,
                block_cache_size: 4096,
                paranoid_checks: true,
                ..base()
            },
            OptionSet {
                seek_compaction: false,
                reuse_logs: true,
                mapped_log: false,
                range_delete_batch: 5,
                value_log: 100,
                bloom_bits: 20,
                ..base()
            },
            OptionSet {
                background_threads: 4,
                block_size: 2048,
                mapped_reads: false,
                reuse_logs: true,
                ..base()
            },
        ]
    }

    /// These settings for [`terrace::Db::open`], on `env`; a missing database is created.
    pub fn options(&self, env: Arc<dyn Env>) -> Options {
        let options = Options::new()
            .create_if_missing(true)
            .env(env)
            .block_size(self.block_size)
            .block_restart_interval(self.block_restart_interval)
            .write_buffer_size(self.write_buffer_size)
            .max_file_size(self.max_file_size)
            .compression(match (self.snappy, self.lz4) {
                (false, _) => Compression::None,
                (true, false) => Compression::Snappy,
                (true, true) => Compression::Lz4,
            })
            .block_cache_size(self.block_cache_size)
            .max_open_files(self.max_open_files)
            .reuse_logs(self.reuse_logs)
            .mapped_log(self.mapped_log)
            .read_access(if self.mapped_reads { ReadAccess::Mapped } else { ReadAccess::Pread })
            .background_threads(self.background_threads)
            .max_manifest_size(self.max_manifest_size)
            .seek_compaction(self.seek_compaction)
            .range_delete_batch(self.range_delete_batch)
            .value_log((self.value_log > 0).then_some(self.value_log))
            .paranoid_checks(self.paranoid_checks);
        let options = match self.bloom_bits {
            0 => options,
            bits => options.filter_policy(Some(Arc::new(BloomFilterPolicy::new(bits)))),
        };
        if self.reverse { options.comparator(Arc::new(ReverseComparator)) } else { options }
    }
}
