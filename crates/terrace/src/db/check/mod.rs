//! Checks a database without changing a byte of it.
//!
//! Every checksum of every block, the order of keys, ranges, levels, sizes, filters, properties,
//! sequence numbers, logs, MANIFEST and CURRENT. Damage is listed and the check goes on; an error
//! is what keeps it from being done.

pub(super) mod level;
pub(super) mod live;
pub(super) mod log;
pub(super) mod problem;
pub(super) mod table;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::{InternalOrder, SequenceNumber};
use crate::env::{Env, FileLock, LockMode, RandomAccessFile, ReadAccess};
use crate::table::{BlockCache, Table, TableOrder, TableReadSettings};
use crate::version::file_meta::FileMeta;
use crate::version::filename::{self, FileKind};
use crate::version::manifest::{self, ManifestState};
use crate::version::table_set::TableSet;
use crate::version::value_files::ValueFileMap;
use crate::version::value_reader::ValueReader;
use crate::version::version::Version;

use crate::db::check::level::{SoundLevel, check_recency};
use crate::db::check::log::{Finding, LogCheck};
use crate::db::check::problem::Problem;
use crate::db::check::table::{Expected, Values, check_table};
use crate::db::io_error::{is_damage, retry_once};
use crate::db::open::own_files::OwnFiles;
use crate::db::open::unnamed_tables::last_sequences_if_readable;
use crate::db::options::Options;

/// Tables that a check or a repair keeps open at once.
pub(in crate::db) const OPEN_TABLES: usize = 64;

/// The outcome of a check.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// let report = db.verify()?;
/// for problem in &report.problems {
///     println!("{problem}"); // file, place, and what is wrong
/// }
/// assert!(report.is_clean());
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Files that were read.
    pub files: u64,
    /// Blocks of tables whose checksums are right.
    pub blocks: u64,
    /// Entries in tables: versions and tombstones.
    pub entries: u64,
    /// Bytes of the files that were read.
    pub bytes: u64,
    /// Records in write-ahead logs.
    pub log_records: u64,
    /// Problems that were found.
    pub problems: Vec<Problem>,
    /// Harmless findings: files that nothing needs and the next open removes, and
    /// the incomplete last record of a log or the MANIFEST, which a crash leaves. If such a record
    /// was durable, as later records show, it is among the problems.
    pub notes: Vec<Problem>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # Db::open("/db", options.clone().create_if_missing(true))?.close()?;
    /// let report = verify("/db", &options)?;
    /// assert!(report.is_clean());
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

/// How far a check has come.
///
/// ```
/// # use terrace::*;
/// let progress = |progress: Progress| {
///     println!("{} %", 100 * progress.done / progress.total.max(1));
/// };
/// # let _ = progress;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes gone through.
    pub done: u64,
    /// About how many bytes there are to go through; data that is looked at twice counts twice.
    pub total: u64,
}

/// Checks the database in the directory `path`. Damage is in the report.
///
/// Nothing is changed, and other readers may have the database open. Filters are checked if
/// `options` has their policy.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # Db::open("/db", options.clone().create_if_missing(true))?.close()?;
/// let report = verify("/db", &options)?;
/// assert!(report.is_clean(), "{:?}", report.problems);
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// `Busy` if a writer has the database open; `InvalidArgument` if there is none, or if it is
/// ordered by another comparator than that of `options`; `Io`.
pub fn verify(path: impl AsRef<Path>, options: &Options) -> Result<VerifyReport> {
    verify_with(path, options, &mut |_| ())
}

/// [`verify`], telling `progress` of every step.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # Db::open("/db", options.clone().create_if_missing(true))?.close()?;
/// verify_with("/db", &options, &mut |progress: Progress| {
///     println!("{} of {} bytes", progress.done, progress.total);
/// })?;
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// Those of [`verify`].
pub fn verify_with(
    path: impl AsRef<Path>,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<VerifyReport> {
    let options = options.clone().read_only(true).sanitized()?;
    let (dir, env) = (path.as_ref(), options.env.clone());
    let _lock = lock_shared(env.as_ref(), dir)?;
    let mut own = OwnFiles::list(env.as_ref(), dir)?;
    require_database(dir, &own)?;
    let order = InternalOrder::new(KeyOrder::new(options.comparator.clone()));
    let tables = Arc::new(checking_tables(&options, dir, &order));
    let mut check = Verification::new(env, dir, order, tables, progress);
    match check.manifest()? {
        Some((number, state)) => {
            own.leave_strangers(state.next_file_number);
            let newest = check.directory(&own, &state)?;
            check.strays(&own, number, &state, newest)?;
        }
        None => check.undescribed(&own)?,
    }
    Ok(check.report)
}

/// Whether a directory is there: in an environment that keeps files alone, whether any is in it.
pub(in crate::db) fn is_directory(env: &dyn Env, dir: &Path) -> Result<bool> {
    Ok(env.exists(dir)? || env.list(dir).is_ok_and(|names| !names.is_empty()))
}

/// The lock of a reader. Where nobody has ever locked, as on media that cannot be written, there is
/// none.
fn lock_shared(env: &dyn Env, dir: &Path) -> Result<Option<Box<dyn FileLock>>> {
    if !is_directory(env, dir)? {
        return Err(no_database(dir));
    }
    match env.lock(&dir.join(filename::LOCK), LockMode::Shared) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        locked => locked.map(Some),
    }
}

pub(in crate::db) fn no_database(dir: &Path) -> Error {
    Error::invalid_argument(format!("{}: no database there", dir.display()))
}

/// Fails if a directory holds nothing of a database.
pub(in crate::db) fn require_database(dir: &Path, own: &OwnFiles) -> Result<()> {
    let any = own.found.iter().any(|(_, kind, _)| {
        let data = [FileKind::Manifest, FileKind::Table, FileKind::Values, FileKind::Log];
        *kind == FileKind::Current || data.contains(kind)
    });
    if any { Ok(()) } else { Err(no_database(dir)) }
}

/// Tables read past every cache, and not mapped: a bad sector must be an error and not a signal.
pub(in crate::db) fn checking_tables(
    options: &Options,
    dir: &Path,
    order: &InternalOrder,
) -> TableSet {
    let settings = TableReadSettings {
        order: TableOrder::internal(order.keys.clone()),
        filter_policy: options.filter_policy.clone(),
        cache: BlockCache::new(0),
        counters: Arc::default(),
        policy: Arc::default(),
        account: None,
    };
    let (env, dir) = (options.env.clone(), dir.to_owned());
    TableSet::new(env, dir, ReadAccess::Pread, settings, OPEN_TABLES).read_once()
}

/// A check in progress.
pub(in crate::db) struct Verification<'a> {
    env: Arc<dyn Env>,
    dir: &'a Path,
    order: InternalOrder,
    tables: Arc<TableSet>,
    values: Arc<ValueReader>,
    /// Those that the tables may point into.
    value_files: ValueFileMap,
    pub(in crate::db) report: VerifyReport,
    progress: &'a mut dyn FnMut(Progress),
    done: Progress,
    /// The newest entry of the tables checked so far.
    newest_in_tables: SequenceNumber,
}

impl<'a> Verification<'a> {
    pub(in crate::db) fn new(
        env: Arc<dyn Env>,
        dir: &'a Path,
        order: InternalOrder,
        tables: Arc<TableSet>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Self {
        let done = Progress { done: 0, total: 0 };
        let values = ValueReader::new(env.clone(), dir.to_owned(), OPEN_TABLES);
        Verification {
            values: Arc::new(values),
            value_files: ValueFileMap::default(),
            env,
            dir,
            order,
            tables,
            report: VerifyReport::default(),
            progress,
            done,
            newest_in_tables: 0,
        }
    }

    fn problem(&mut self, file: &str, message: impl Into<String>) {
        self.report.problems.push(Problem::new(file, message));
    }

    fn note(&mut self, file: &str, message: impl Into<String>) {
        self.report.notes.push(Problem::new(file, message));
    }

    fn advance(&mut self, bytes: u64) {
        self.done.done = self.done.total.min(self.done.done + bytes);
        (self.progress)(self.done);
    }

    /// Says what there is to do.
    pub(in crate::db) fn expect(&mut self, version: &Version, log_bytes: u64) {
        let bytes: u64 = version.files().map(|(_, file)| file.size).sum();
        self.done.total = 2 * bytes + log_bytes;
    }

    /// The size of a file that is read; `None` if it is missing.
    fn size_of(&mut self, name: &str) -> Result<Option<u64>> {
        let path = self.dir.join(name);
        let size = match retry_once(|| self.env.file_size(&path)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            size => size?,
        };
        self.report.files += 1;
        self.report.bytes += size;
        Ok(Some(size))
    }

    /// The newest entry of all tables that were checked.
    pub(in crate::db) fn newest_in_tables(&self) -> SequenceNumber {
        self.newest_in_tables
    }

    /// Reads CURRENT and the MANIFEST; `None` if they are damaged.
    pub(in crate::db) fn manifest(&mut self) -> Result<Option<(u64, ManifestState)>> {
        self.size_of(filename::CURRENT)?;
        let number = match manifest::read_current(self.env.as_ref(), self.dir) {
            Err(error) if is_damage(&error) => {
                self.report.problems.push(Problem::of(self.dir, filename::CURRENT, &error));
                return Ok(None);
            }
            number => number?,
        };
        let name = filename::manifest(number);
        self.size_of(&name)?;
        // Nothing is retired by a check, so nobody takes from these obsolete files.
        match manifest::read_manifest(
            self.env.as_ref(),
            self.dir,
            number,
            &self.order,
            &Arc::default(),
        ) {
            Err(error) if is_damage(&error) => {
                self.report.problems.push(Problem::of(self.dir, &name, &error));
                Ok(None)
            }
            state => {
                let state = state?;
                if let Some(torn) = &state.torn {
                    self.note(&name, torn_manifest(self.dir, &name, torn));
                }
                Ok(Some((number, state)))
            }
        }
    }

    /// Notes the files that nothing names. `newest` is the last write of all others.
    fn strays(
        &mut self,
        own: &OwnFiles,
        manifest_number: u64,
        state: &ManifestState,
        newest: SequenceNumber,
    ) -> Result<()> {
        let live: BTreeSet<_> = state.version.files().map(|(_, file)| file.number).collect();
        for (name, kind, number) in &own.found {
            let needed = match kind {
                FileKind::Manifest => *number == manifest_number,
                FileKind::Log => state.needs_log(*number),
                FileKind::Table => live.contains(number),
                FileKind::Values => state.version.values.get(*number).is_some(),
                FileKind::Temp => false,
                FileKind::Current | FileKind::Lock | FileKind::InfoLog => true,
            };
            if *kind == FileKind::Table && !needed && self.is_from_the_future(*number, newest)? {
                self.problem(
                    name,
                    format!(
                        "the MANIFEST does not name it, and it is newer than the last write, \
                         {newest}"
                    ),
                );
            } else if !needed {
                self.note(name, "nothing needs this file");
            }
        }
        Ok(())
    }

    /// Whether a table that no MANIFEST names begins behind the last write that is known. An
    /// interrupted flush or compaction leaves none like that: it was the MANIFEST that lost its
    /// end.
    fn is_from_the_future(&self, number: u64, newest: SequenceNumber) -> Result<bool> {
        let (file, name) = self.tables.open_file(number)?;
        let Ok(table) = Table::open(file, name, self.tables.read_settings().clone()) else {
            return Ok(false);
        };
        let values = Values { reader: &self.values, files: &self.value_files };
        match check_table(&table, &self.order, values, None, &mut |_| ()) {
            Ok(summary) => {
                Ok(summary.entries > 0 && summary.smallest_sequence > newest.saturating_add(1))
            }
            // A later version of Terrace wrote it: what is in it cannot be told.
            Err(error) if error.kind() == ErrorKind::NotSupported => Ok(true),
            Err(_) => Ok(false),
        }
    }

    /// Checks everything that a sound MANIFEST describes. Returns the last write in it.
    fn directory(&mut self, own: &OwnFiles, state: &ManifestState) -> Result<SequenceNumber> {
        let mut logs: Vec<_> =
            own.of_kind(FileKind::Log).filter(|&number| state.needs_log(number)).collect();
        logs.sort_unstable();
        let sizes = logs
            .iter()
            .map(|&log| self.env.file_size(&self.dir.join(filename::log(log))).unwrap_or(0));
        let log_bytes = sizes.sum();
        self.expect(&state.version, log_bytes);
        self.version(&state.version, state.last_sequence)?;
        if state.log_number != 0 && !logs.contains(&state.log_number) {
            self.problem(&filename::log(state.log_number), "missing, and the MANIFEST needs it");
        }
        let unnamed = last_sequences_if_readable(&self.tables, own.unnamed_tables(state))?;
        self.logs(&logs, LogCheck::following(state, self.newest_in_tables, unnamed))
    }

    /// Checks tables and logs that no MANIFEST describes, each by itself.
    fn undescribed(&mut self, own: &OwnFiles) -> Result<()> {
        let names = |wanted| {
            own.found.iter().filter(move |(_, kind, _)| *kind == wanted).map(|(name, ..)| name)
        };
        let sizes = names(FileKind::Table).chain(names(FileKind::Log));
        self.done.total =
            sizes.map(|name| self.env.file_size(&self.dir.join(name)).unwrap_or(0)).sum();
        self.value_files = own.value_files(self.env.as_ref(), self.dir)?;
        let mut numbers: Vec<_> = own.of_kind(FileKind::Table).collect();
        numbers.sort_unstable();
        for number in numbers {
            self.table(number, None)?;
        }
        let mut logs: Vec<_> = own.of_kind(FileKind::Log).collect();
        logs.sort_unstable();
        self.logs(&logs, LogCheck::new(None)).map(drop)
    }

    pub(in crate::db) fn version(
        &mut self,
        version: &Version,
        last_sequence: SequenceNumber,
    ) -> Result<()> {
        self.value_files = version.values.clone();
        self.check_value_files()?;
        let mut sound: Vec<SoundLevel> = Vec::new();
        for (level, files) in version.levels.iter().enumerate() {
            let mut readable = Vec::new();
            for file in files.iter() {
                if self.table(file.number, Some(Expected { file, last_sequence }))? {
                    readable.push(file.clone());
                }
            }
            sound.push((level, readable));
        }
        let (tables, order) = (self.tables.clone(), self.order.clone());
        let problems = check_recency(&sound, &tables, &order, &mut |bytes| self.advance(bytes))?;
        self.report.problems.extend(problems);
        // Tables may be longer than they should be, and more was read of them then.
        let expected = version.files().map(|(_, file)| 2 * file.size).sum();
        self.done.done = self.done.done.max(expected);
        self.advance(0);
        Ok(())
    }

    /// Checks that the value files are at least as long as the MANIFEST says: an output may be
    /// appending to one, or came to nothing. Their values are checked with the entries that point at them.
    fn check_value_files(&mut self) -> Result<()> {
        for record in self.value_files.records() {
            let name = filename::values(record.number);
            match self.size_of(&name) {
                Ok(Some(size)) if size >= record.size => {}
                Ok(Some(size)) => {
                    let named = record.size;
                    self.problem(&name, format!("is {size} bytes long, the MANIFEST says {named}"));
                }
                Ok(None) => self.problem(&name, "missing, and tables point into it"),
                Err(error) if is_damage(&error) => {
                    self.report.problems.push(Problem::of(self.dir, &name, &error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks a table. Returns whether it can be relied on.
    fn table(&mut self, number: u64, expected: Option<Expected<'_>>) -> Result<bool> {
        let before = self.report.problems.len();
        let (file, name) = match self.tables.open_file(number) {
            Err(error) if is_damage(&error) => {
                self.problem(&filename::table(number), "missing, and the MANIFEST needs it");
                return Ok(false);
            }
            opened => opened?,
        };
        self.report.files += 1;
        self.report.bytes += file.size();
        if let Some(message) = wrong_size(expected.map(|expected| expected.file), file.size()) {
            self.problem(&name, message);
        }
        let size = file.size();
        let mut blocks = 0;
        let checked = Table::open(file, name.clone(), self.tables.read_settings().clone())
            .and_then(|table| {
                let (order, reader) = (self.order.clone(), self.values.clone());
                let files = &self.value_files.clone();
                let values = Values { reader: &reader, files };
                check_table(&table, &order, values, expected, &mut |bytes| {
                    blocks += bytes;
                    self.advance(bytes);
                })
            });
        self.advance(size.saturating_sub(blocks));
        match checked {
            Ok(summary) => {
                self.report.blocks += summary.blocks;
                self.report.entries += summary.entries;
                self.newest_in_tables = self.newest_in_tables.max(summary.largest_sequence);
                summary
                    .messages
                    .into_iter()
                    .for_each(|message| self.problem(&name, strip(&message, &name)));
            }
            Err(error) if error.is_out_of_memory() => return Err(error),
            // A bad sector is damage like any other.
            Err(error) => self.report.problems.push(Problem::of(self.dir, &name, &error)),
        }
        Ok(self.report.problems.len() == before)
    }

    fn logs(&mut self, logs: &[u64], mut check: LogCheck) -> Result<SequenceNumber> {
        for &number in logs {
            let file =
                self.env.open_random(&self.dir.join(filename::log(number)), ReadAccess::Pread)?;
            self.log(&mut check, number, file)?;
        }
        self.logs_end(&check);
        Ok(check.last_sequence())
    }

    pub(in crate::db) fn log(
        &mut self,
        check: &mut LogCheck,
        number: u64,
        file: Arc<dyn RandomAccessFile>,
    ) -> Result<()> {
        let (name, size) = (filename::log(number), file.size());
        self.report.files += 1;
        self.report.bytes += size;
        let before = check.records;
        let read = check.read(number, file, &name, &mut |finding| {
            match finding {
                Finding::Problem(message) => {
                    self.report.problems.push(Problem::new(&name, message))
                }
                Finding::Torn(message) => self.report.notes.push(Problem::new(&name, message)),
                Finding::Batch(_) => {}
            }
            Ok(())
        });
        self.report.log_records += check.records - before;
        match read {
            Ok(()) => {}
            Err(error) if error.is_out_of_memory() => return Err(error),
            Err(error) => self.report.problems.push(Problem::of(self.dir, &name, &error)),
        }
        self.advance(size);
        Ok(())
    }

    pub(in crate::db) fn logs_end(&mut self, check: &LogCheck) {
        if let Some(message) = check.finish() {
            self.problem("*.log", message);
        }
    }
}

/// Says that the end of the file cuts a MANIFEST's last edit off, which therefore was never
/// durable: no damage.
fn torn_manifest(dir: &Path, name: &str, torn: &str) -> String {
    let torn = torn.replace(&dir.join(name).display().to_string(), name);
    format!(
        "{}: the last edit is incomplete, as a crash or a full disk leaves it",
        strip(&torn, name)
    )
}

/// A problem with the size of a table's file.
pub(in crate::db) fn wrong_size(file: Option<&Arc<FileMeta>>, size: u64) -> Option<String> {
    let file = file.filter(|file| file.size != size)?;
    Some(format!("is {size} bytes long, the MANIFEST says {}", file.size))
}

/// `message` without the name of the file that it begins with.
pub(in crate::db) fn strip<'a>(message: &'a str, name: &str) -> &'a str {
    message.strip_prefix(name).map_or(message, |rest| rest.trim_start_matches([':', ' ']))
}
