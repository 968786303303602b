//! The command line of `terrace bench`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::number::{
    parse_block_size, parse_from, parse_max_file_size, parse_size, parse_value_log, parse_whole,
    parse_write_buffer_size, parse_zstd_dictionary,
};
use crate::opening::{CompressionName, PresetName};

const USUAL_BENCHMARKS: &str = "fillseq,fillsync,fillrandom,overwrite,waitcompact,readrandom,readmissing,readhot,\
                                seekrandom,readseq,readreverse,readwhilewriting,compact,readrandom,readseq,fill100K";

#[derive(Args, Debug, Clone)]
#[command(rename_all = "snake_case")]
pub(crate) struct BenchArgs {
    /// Benchmarks to run, in this order, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        default_value = USUAL_BENCHMARKS,
        hide_default_value = true,
        value_name = "NAMES"
    )]
    pub(super) benchmarks: Vec<String>,
    /// Entries
    #[arg(
        long,
        default_value_t = 1_000_000,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = |text: &str| parse_from(1, None, text)
    )]
    pub(super) num: u64,
    /// Reads [default: as many as entries]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = parse_whole::<u64>
    )]
    pub(super) reads: Option<u64>,
    /// Bytes of a value
    #[arg(
        long,
        alias = "value-size",
        default_value = "100",
        value_parser = parse_size,
        allow_hyphen_values = true,
        value_name = "SIZE"
    )]
    pub(super) value_size: usize,
    /// Threads that share the work
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = |text: &str| parse_from(1, Some(1024), text)
    )]
    pub(super) threads: u64,
    /// Entries in a batch of fillseqbatch and fillrandbatch
    #[arg(
        long,
        default_value_t = 1000,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = |text: &str| parse_from(1, None, text)
    )]
    pub(super) batch: u64,
    /// Begin with the settings for a kind of application; other options override them
    #[arg(long, value_name = "NAME")]
    pub(super) preset: Option<PresetName>,
    /// Bytes of the block cache [default: 8M]
    #[arg(
        long,
        alias = "cache-size",
        value_parser = parse_size,
        allow_hyphen_values = true,
        value_name = "SIZE"
    )]
    pub(super) cache_size: Option<usize>,
    /// Bytes that memtables, tables and blocks take together at most [default: no bound]
    #[arg(
        long,
        alias = "memory-budget",
        value_parser = parse_size,
        allow_hyphen_values = true,
        value_name = "SIZE"
    )]
    pub(super) memory_budget: Option<usize>,
    /// Bytes of a memtable, from 64K to 1G [default: 4M]
    #[arg(
        long,
        alias = "write-buffer-size",
        value_parser = parse_write_buffer_size,
        allow_hyphen_values = true,
        value_name = "SIZE"
    )]
    pub(super) write_buffer_size: Option<usize>,
    /// How blocks are compressed
    #[arg(long, default_value = "snappy", value_name = "HOW")]
    pub(super) compression: CompressionName,
    /// Bytes of a table's zstd dictionary at most, from 2K to 256K, or 0 for none
    #[arg(
        long,
        alias = "zstd-dictionary",
        default_value = "0",
        value_parser = parse_zstd_dictionary,
        allow_hyphen_values = true,
        hide = cfg!(not(feature = "zstd")),
        value_name = "SIZE"
    )]
    pub(super) zstd_dictionary: usize,
    /// Bits per key of LevelDB's bloom filters, 0 for none
    #[arg(
        long,
        alias = "bloom-bits",
        default_value_t = 0,
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub(super) bloom_bits: usize,
    /// Bits per key of Terrace's own filters, 0 for none
    #[arg(
        long,
        alias = "table-filter-bits",
        default_value_t = 10,
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub(super) table_filter_bits: usize,
    /// Bytes of a block before compression, from 1K to 4M
    #[arg(
        long,
        alias = "block-size",
        default_value = "4K",
        value_parser = parse_block_size,
        allow_hyphen_values = true,
        value_name = "SIZE"
    )]
    pub(super) block_size: usize,
    /// Bytes of a table before the next begins, from 1M to 1G; with the default 8M in a database
    /// beyond 1 GiB
    #[arg(
        long,
        alias = "max-file-size",
        default_value = "2M",
        value_parser = parse_max_file_size,
        allow_hyphen_values = true,
        value_name = "SIZE"
    )]
    pub(super) max_file_size: usize,
    /// Keep values of at least this size in value files [default: values stay in tables]
    #[arg(
        long,
        alias = "value-log",
        value_parser = parse_value_log,
        allow_hyphen_values = true,
        value_name = "SIZE"
    )]
    pub(super) value_log: Option<usize>,
    /// Files open at the same time [default: 1000]
    #[arg(long, alias = "max-open-files", value_name = "N", allow_negative_numbers = true)]
    pub(super) max_open_files: Option<usize>,
    /// Background threads that flush and compact
    #[arg(
        long,
        alias = "background-threads",
        default_value_t = 2,
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub(super) background_threads: usize,
    /// Append to logs by system calls, not through mapped segments
    #[arg(long = "no_mapped_log", alias = "no-mapped-log", action = ArgAction::SetTrue)]
    pub(super) no_mapped_log: bool,
    /// Directory of the database; to empty one that is there takes --yes [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub(super) db: Option<PathBuf>,
    /// Do not destroy a database that is there: the fill benchmarks write into it
    #[arg(long = "use_existing_db", alias = "use-existing-db", action = ArgAction::SetTrue)]
    pub(super) use_existing_db: bool,
    /// Yes, destroy the database that is there where a benchmark begins with an empty one
    #[arg(long)]
    pub(super) yes: bool,
    /// Where the pseudo-random numbers begin
    #[arg(long, default_value_t = 301, value_name = "N", allow_negative_numbers = true)]
    pub(super) seed: u64,
    /// Print the distribution of latencies of every benchmark
    #[arg(long, conflicts_with = "json")]
    pub(super) histogram: bool,
    /// Print JSON, one object a benchmark
    #[arg(long)]
    pub(super) json: bool,
}

impl BenchArgs {
    /// Reads: as many as entries where the command line does not say.
    pub(super) fn reads(&self) -> u64 {
        self.reads.filter(|&reads| reads > 0).unwrap_or(self.num)
    }
}
