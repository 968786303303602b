//! How the commands open a database: for reading without a trace, or for changing it.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use terrace::{BloomFilterPolicy, Compression, Db, Options, RecoveryMode, Workload};

use crate::directory::FileType::{Current, Log, Manifest, Table, Values};
use crate::directory::{ListedFile, is_rocksdbs, list_files};
use crate::failure::{Failure, Result};
use crate::number::{
    parse_block_size, parse_max_file_size, parse_seconds, parse_size, parse_value_log, parse_whole,
    parse_write_buffer_size, parse_zstd_dictionary,
};
use crate::recovery::Recovery;

/// Bits per key where filters are read, or written without `--bloom-bits`: LevelDB's customary
/// number.
const USUAL_BLOOM_BITS: usize = 10;

/// The size from which on values go to value files where `--value-log` does not say.
pub(crate) const USUAL_VALUE_LOG: usize = 4 << 10;

/// How long to wait before another attempt to open a database that is busy.
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// The end of an instant is not far behind this.
const LONGEST_WAIT: Duration = Duration::from_secs(1 << 30);

/// Tables that are asked whether they have filters.
const TABLES_ASKED: usize = 16;

/// Options that every command takes that opens a database.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct OpenArgs {
    /// The order of keys: LevelDB's default order is the only one so far
    #[arg(long, value_name = "NAME", default_value = "bytewise", help_heading = "Opening")]
    comparator: KeyOrderName,
    /// Bytes for cached blocks
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_size,
        allow_hyphen_values = true,
        help_heading = "Opening"
    )]
    cache_size: Option<usize>,
    /// Files open at the same time, from 74 to 50000
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_whole::<usize>,
        allow_negative_numbers = true,
        help_heading = "Opening"
    )]
    max_open_files: Option<usize>,
    /// Fail where something may be lost that was synced, as LevelDB's paranoid_checks does
    #[arg(long, help_heading = "Opening")]
    paranoid: bool,
    /// How to treat damaged logs. prefix: a torn or unsynced end is cut; damage to what is known to
    /// be synced is an error. strict: also an error where a log of LevelDB's may have lost synced
    /// writes. salvage: reads what can be read
    #[arg(long, value_name = "MODE", default_value = "prefix", help_heading = "Opening")]
    recovery: RecoveryName,
    /// Wait for so long while another process has the database open, instead of failing at once
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        help_heading = "Opening"
    )]
    wait: Option<Duration>,
}

/// Options of the commands that write.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    open: OpenArgs,
    /// Begin with the settings for a kind of application; other options override them
    #[arg(long, value_name = "NAME", help_heading = "Writing")]
    preset: Option<PresetName>,
    /// Bits per key of the bloom filters in new tables, 0 for none [default: 10 if the database has
    /// filters already]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_whole::<usize>,
        allow_negative_numbers = true,
        help_heading = "Writing"
    )]
    bloom_bits: Option<usize>,
    /// Bits per key of Terrace's own filters in new tables, which LevelDB passes over, 0 for none
    /// [default: 10]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_whole::<usize>,
        allow_negative_numbers = true,
        help_heading = "Writing"
    )]
    table_filter_bits: Option<usize>,
    /// How blocks of new tables are compressed. LevelDB opens databases with snappy or none only
    #[arg(long, value_name = "HOW", default_value = "snappy", help_heading = "Writing")]
    compression: CompressionName,
    /// Bytes of a table's zstd dictionary at most, from 2K to 256K, or 0 for none: short entries that
    /// are alike become smaller [default: 0]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_zstd_dictionary,
        allow_hyphen_values = true,
        hide = cfg!(not(feature = "zstd")),
        help_heading = "Writing"
    )]
    zstd_dictionary: Option<usize>,
    /// Bytes of a block before compression, from 1K to 4M [default: 4K]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_block_size,
        allow_hyphen_values = true,
        help_heading = "Writing"
    )]
    block_size: Option<usize>,
    /// Bytes in memory before they are flushed, from 64K to 1G [default: 4M]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_write_buffer_size,
        allow_hyphen_values = true,
        help_heading = "Writing"
    )]
    write_buffer_size: Option<usize>,
    /// Bytes of a table before the next begins, from 1M to 1G [default: 2M, and 8M in a database
    /// beyond 1 GiB]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_max_file_size,
        allow_hyphen_values = true,
        help_heading = "Writing"
    )]
    max_file_size: Option<usize>,
    /// Keep values of at least this size in value files instead of tables: LevelDB does not open
    /// such a database [default: values stay in tables]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_value_log,
        allow_hyphen_values = true,
        help_heading = "Writing"
    )]
    value_log: Option<usize>,
}

// No comments on the variants of these: clap would print a paragraph for each option.

/// The orders of keys that the tool knows.
#[derive(ValueEnum, Debug, Clone, Copy, Default)]
enum KeyOrderName {
    #[default]
    Bytewise,
}

#[derive(ValueEnum, Debug, Clone, Copy, Default)]
enum RecoveryName {
    #[default]
    Prefix,
    Strict,
    Salvage,
}

impl From<RecoveryName> for RecoveryMode {
    fn from(name: RecoveryName) -> Self {
        match name {
            RecoveryName::Prefix => RecoveryMode::Prefix,
            RecoveryName::Strict => RecoveryMode::Strict,
            RecoveryName::Salvage => RecoveryMode::Salvage,
        }
    }
}

/// A kind of application.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PresetName {
    DataLogging,
    Analytics,
    Interactive,
}

impl From<PresetName> for Workload {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::DataLogging => Workload::DataLogging,
            PresetName::Analytics => Workload::Analytics,
            PresetName::Interactive => Workload::Interactive,
        }
    }
}

impl PresetName {
    /// As it is written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PresetName::DataLogging => "data-logging",
            PresetName::Analytics => "analytics",
            PresetName::Interactive => "interactive",
        }
    }

    /// The options that a command begins with.
    pub(crate) fn options(preset: Option<PresetName>) -> Options {
        preset.map_or_else(Options::new, |name| Options::for_workload(name.into()))
    }
}

/// How blocks are compressed.
#[derive(ValueEnum, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CompressionName {
    #[default]
    Snappy,
    None,
    Lz4,
    #[cfg_attr(not(feature = "zstd"), value(hide = true))]
    Zstd,
}

impl CompressionName {
    /// Whether LevelDB reads it.
    pub(crate) fn is_leveldbs(self) -> bool {
        matches!(self, CompressionName::Snappy | CompressionName::None)
    }
}

impl From<CompressionName> for Compression {
    fn from(name: CompressionName) -> Self {
        match name {
            CompressionName::Snappy => Compression::Snappy,
            CompressionName::None => Compression::None,
            CompressionName::Lz4 => Compression::Lz4,
            CompressionName::Zstd => Compression::Zstd,
        }
    }
}

impl OpenArgs {
    /// Options that change nothing on disk. Filters are used where tables have them.
    pub(crate) fn read_options(&self) -> Options {
        with_bloom(self.over(Options::new()), USUAL_BLOOM_BITS).read_only(true)
    }

    /// Bytes for cached blocks, if the command line says.
    pub(crate) fn cache_size(&self) -> Option<usize> {
        self.cache_size
    }

    /// Files open at the same time, if the command line says.
    pub(crate) fn max_open_files(&self) -> Option<usize> {
        self.max_open_files
    }

    /// Opens a database for reading: no byte of the directory changes.
    pub(crate) fn open(&self, path: &Path) -> Result<Opened> {
        require_database(path)?;
        self.open_database(path, self.read_options())
    }

    /// The same, where prepared transactions are to be listed.
    pub(crate) fn open_for_prepared(&self, path: &Path) -> Result<Opened> {
        require_database(path)?;
        self.open_database(path, self.read_options().prepared_transactions(true))
    }

    fn open_database(&self, path: &Path, options: Options) -> Result<Opened> {
        let open = || open_database(path, options.clone(), self.recovery.into());
        self.while_busy(open)
    }

    /// Does `work` until no other process has the database open, or --wait is over.
    pub(crate) fn while_busy<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        let end = self.wait.map(|wait| Instant::now() + wait.min(LONGEST_WAIT));
        loop {
            match work() {
                Err(Failure::Busy(_)) if end.is_some_and(|end| Instant::now() < end) => {
                    thread::sleep(BUSY_PAUSE);
                }
                Err(Failure::Busy(message)) if end.is_none() => {
                    return Err(Failure::Busy(format!("{message}; --wait SECONDS waits for it")));
                }
                result => return result,
            }
        }
    }

    /// `options` with what the command line says about opening.
    fn over(&self, options: Options) -> Options {
        let KeyOrderName::Bytewise = self.comparator;
        let mut options =
            options.paranoid_checks(self.paranoid).recovery_mode(self.recovery.into());
        if let Some(size) = self.cache_size {
            options = options.block_cache_size(size);
        }
        if let Some(count) = self.max_open_files {
            options = options.max_open_files(count);
        }
        options
    }
}

impl WriteArgs {
    /// How new tables are compressed.
    pub(crate) fn compression(&self) -> CompressionName {
        self.compression
    }

    /// The options of opening among them.
    pub(crate) fn open_args(&self) -> &OpenArgs {
        &self.open
    }

    /// Options for changing a database at `path`.
    pub(crate) fn options(&self, path: &Path) -> Options {
        let mut options =
            self.open.over(PresetName::options(self.preset)).compression(self.compression.into());
        let bits =
            self.bloom_bits.unwrap_or_else(|| if has_filters(path) { USUAL_BLOOM_BITS } else { 0 });
        options = with_bloom(options, bits);
        if let Some(bits) = self.table_filter_bits {
            options = options.table_filter_bits(bits);
        }
        if let Some(size) = self.zstd_dictionary {
            options = options.zstd_dictionary(size);
        }
        if let Some(size) = self.block_size {
            options = options.block_size(size);
        }
        if let Some(size) = self.write_buffer_size {
            options = options.write_buffer_size(size);
        }
        if let Some(size) = self.max_file_size {
            options = options.max_file_size(size);
        }
        options.value_log(self.value_log)
    }

    /// The size from which on values go to value files, if the command line says.
    pub(crate) fn value_log(&self) -> Option<usize> {
        self.value_log
    }

    /// Opens a database for a few writes. The log that is there is continued, so that a series of
    /// small commands does not leave a series of small tables.
    pub(crate) fn open_for_few_writes(&self, path: &Path, missing: Missing) -> Result<Opened> {
        self.open_or_create(path, self.options(path).reuse_logs(true), missing)
    }

    /// Opens a database for much work.
    pub(crate) fn open_for_many_writes(&self, path: &Path, missing: Missing) -> Result<Opened> {
        self.open_or_create(path, self.options(path), missing)
    }

    /// Opens a database for a shell that changes nothing.
    pub(crate) fn open_read_only(&self, path: &Path) -> Result<Opened> {
        require_database(path)?;
        let options = self.options(path).read_only(true).prepared_transactions(true);
        self.open.open_database(path, options)
    }

    /// The same with values in value files from this size on, or in tables.
    pub(crate) fn open_with_value_log(
        &self,
        path: &Path,
        threshold: Option<usize>,
        missing: Missing,
    ) -> Result<Opened> {
        self.open_or_create(path, self.options(path).value_log(threshold), missing)
    }

    /// Writes wait for the locks of prepared transactions.
    fn open_or_create(&self, path: &Path, options: Options, missing: Missing) -> Result<Opened> {
        let options = options.prepared_transactions(true);
        let found = match missing {
            Missing::Create if !path.exists() => Ok(()),
            Missing::Create => require_directory(path),
            Missing::Fail | Missing::FailWithHint => require_database(path),
        };
        match (found, missing) {
            // Where a file is in the way, or a directory may not be read, --create would not help.
            (Err(Failure::Other(message)), Missing::FailWithHint) if is_absent(path) => {
                Err(Failure::Other(format!("{message}; --create makes a new one")))
            }
            (found, _) => found.and_then(|()| {
                let options = options.create_if_missing(missing == Missing::Create);
                let opened = self.open.open_database(path, options);
                opened.map_err(|failure| in_words_of_the_command(path, missing, failure))
            }),
        }
    }
}

/// An open database.
pub(crate) struct Opened {
    pub(crate) db: Db,
    /// Whether recovery left writes out; a warning has said so.
    pub(crate) lacks_writes: bool,
}

/// Opens a database, as every command does, and warns of what is left out of its logs.
pub(crate) fn open_database(path: &Path, options: Options, mode: RecoveryMode) -> Result<Opened> {
    let recovery = Recovery::listen(path, mode);
    let db = Db::open(path, options.listener(Some(recovery.clone())))
        .map_err(|error| Failure::of_engine(path, error))?;
    Ok(Opened { db, lacks_writes: recovery.report() })
}

/// How to treat a missing database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Fail.
    Fail,
    /// Fail, and say that there is an option `--create`.
    FailWithHint,
    /// Make one.
    Create,
}

impl Missing {
    /// As an option `--create` says.
    pub(crate) fn create_if(create: bool) -> Self {
        if create { Missing::Create } else { Missing::FailWithHint }
    }
}

/// The engine speaks of its own options.
fn in_words_of_the_command(path: &Path, missing: Missing, failure: Failure) -> Failure {
    match &failure {
        Failure::Database(error) if error.message().ends_with("create_if_missing is not set") => {}
        _ => return failure,
    }
    let hint = if missing == Missing::FailWithHint { "; --create makes a new one" } else { "" };
    let path = path.display();
    Failure::Other(format!(
        "there is no database at {path}, only files that a failed creation left{hint}"
    ))
}

/// Whether there is nothing at `path`, or a directory that can be read and is not a database's.
fn is_absent(path: &Path) -> bool {
    match path.metadata() {
        Ok(_) => has_database(path).is_ok_and(|has| !has),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Options with a bloom filter of `bits` per key, or none.
pub(crate) fn with_bloom(options: Options, bits: usize) -> Options {
    if bits == 0 {
        options
    } else {
        options.filter_policy(Some(Arc::new(BloomFilterPolicy::new(bits))))
    }
}

/// Fails with a message a person understands if `path` is no directory.
pub(crate) fn require_directory(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() && is_rocksdbs(path) => Err(Failure::other(format!(
            "{} is a RocksDB database: docs/migrating.md says how to convert it",
            path.display()
        ))),
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Failure::other(format!(
            "{} is a file, not a database directory; `terrace inspect` looks into single files",
            path.display()
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Failure::other(format!("there is no database at {}", path.display())))
        }
        Err(error) => Err(Failure::io("open", path, &error)),
    }
}

/// Fails if there is no database at `path`: no file there belongs to one. What is wrong with an
/// incomplete one the engine knows best.
pub(crate) fn require_database(path: &Path) -> Result<()> {
    require_directory(path)?;
    if has_database(path)? {
        return Ok(());
    }
    Err(Failure::other(format!(
        "there is no database at {}: no file in it belongs to one",
        path.display()
    )))
}

/// Whether a file in the directory `path` belongs to a database.
pub(crate) fn has_database(path: &Path) -> Result<bool> {
    let tells =
        |file: &ListedFile| matches!(file.file_type, Current | Manifest | Table | Log | Values);
    Ok(list_files(path)?.iter().any(tells))
}

/// Whether one of the newest tables of the database carries a bloom filter: then new tables get one
/// too, for a database that an application keeps with filters must not lose them to a `terrace
/// compact`.
fn has_filters(path: &Path) -> bool {
    let Ok(mut tables) = list_files(path) else { return false };
    tables.retain(|file| file.file_type == Table);
    tables.sort_by_key(|table| std::cmp::Reverse(table.table_number()));
    let has_filter = |table: &ListedFile| {
        let name = terrace::inspect::filter_name(&path.join(&table.name), &Options::new());
        name.is_ok_and(|name| name.is_some())
    };
    tables.iter().take(TABLES_ASKED).any(has_filter)
}
