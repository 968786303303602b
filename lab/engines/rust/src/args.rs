//! The command line of an engine program.

use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

use crate::{Failure, Result};

/// The arguments of a program. A setting of 0 is the engine's default.
#[derive(Parser, Clone, Debug)]
#[command(rename_all = "snake_case", disable_version_flag = true)]
pub struct Settings {
    /// Benchmarks to run, in this order, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "fillseq,readrandom,readseq")]
    pub(crate) benchmarks: Vec<String>,
    /// Directory of the database
    #[arg(long)]
    db: Option<PathBuf>,
    /// Entries
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub num: u64,
    /// Reads; 0 for as many as entries
    #[arg(long, default_value_t = 0)]
    pub(crate) reads: u64,
    /// Bytes of a key
    #[arg(long, default_value_t = Self::KEY_SIZE, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) key_size: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=16 << 20))]
    pub(crate) value_size: u64,
    /// Bytes of the largest value, where every value has a size of its own
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=16 << 20))]
    pub(crate) value_size_max: u64,
    /// Threads that share the work
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub threads: u64,
    /// Entries in a batch
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub batch: u64,
    /// Puts a second of the writer beside readers; 0 for as many as it can
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    pub(crate) write_rate: u64,
    /// Keyspaces of the benchmarks that are about many
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) keyspaces: u64,
    /// Operations a second of an open loop; 0 for a closed one
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    pub(crate) rate: u64,
    /// Seconds of a timed benchmark
    #[arg(long, default_value_t = 10.0, value_parser = parse_seconds)]
    pub(crate) duration: f64,
    /// Seconds between two lines of a series; 0 for none
    #[arg(long, default_value_t = 0.0, value_parser = parse_seconds)]
    pub(crate) interval: f64,
    /// Seconds after which a benchmark is cut short; 0 for never
    #[arg(long = "time_limit", default_value_t = 0.0, value_parser = parse_seconds)]
    pub(crate) time_limit: f64,
    /// The trace of replay
    #[arg(long)]
    pub(crate) trace: Option<PathBuf>,
    /// Where the random numbers begin
    #[arg(long, default_value_t = 301)]
    pub(crate) seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what the engine is and how it is set up, and end
    #[arg(long)]
    pub(crate) describe: bool,
    /// Print name and version, and end
    #[arg(long)]
    pub(crate) version: bool,
    /// Bytes of the cache
    #[arg(long, default_value_t = 0)]
    pub cache_size: u64,
    /// Bytes of the write buffer
    #[arg(long, default_value_t = 0)]
    pub write_buffer_size: u64,
    /// Bytes of a block
    #[arg(long, default_value_t = 0)]
    pub block_size: u64,
    /// Files that may be open
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub max_open_files: u64,
    /// Bits of a filter for each key
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=64))]
    pub bloom_bits: u64,
    /// Whether to compress, with what comes nearest to snappy
    #[arg(long, default_value = "snappy")]
    pub compression: Compression,
    /// A way to run the engine
    #[arg(long, default_value = "")]
    pub variant: String,
}

/// The value of `--compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// The engine's compression.
    Snappy,
    /// None.
    None,
}

impl Settings {
    pub(crate) const KEY_SIZE: u64 = 16;

    /// The value of a setting, if it is not left to the engine.
    pub fn chosen<T: TryFrom<u64>>(setting: u64) -> Option<T> {
        if setting == 0 { None } else { T::try_from(setting).ok() }
    }

    /// Whether blocks are to be compressed.
    pub fn compress(&self) -> bool {
        self.compression == Compression::Snappy
    }

    /// The directory of the database.
    pub fn db(&self) -> &Path {
        self.db.as_deref().unwrap_or(Path::new(""))
    }

    pub(crate) fn reads(&self) -> u64 {
        if self.reads == 0 { self.num } else { self.reads }
    }
}

pub(crate) fn parse() -> Result<Settings> {
    let settings = Settings::try_parse().map_err(|error| {
        if error.use_stderr() {
            let message = error.to_string();
            let first = message.lines().next().unwrap_or_default();
            return Failure::usage(first.strip_prefix("error: ").unwrap_or(first));
        }
        // Help.
        error.exit()
    })?;
    // Twice num: ycsbd and ycsbe put keys above it.
    let digits = (2 * settings.num).to_string().len() as u64;
    if settings.key_size < digits {
        let (size, num) = (settings.key_size, settings.num);
        return Err(Failure::usage(format!(
            "--key_size={size} is too small for the keys of --num={num}"
        )));
    }
    Ok(settings)
}

fn parse_seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..1e8).contains(&seconds) => Ok(seconds),
        _ => Err("wants seconds".to_owned()),
    }
}
