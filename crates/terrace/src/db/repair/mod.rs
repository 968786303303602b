//! Makes a database that can be opened of whatever is left of one.
//!
//! # How
//! A MANIFEST that reads well and whose tables are there *describes* the database: its levels stay
//! as they are, damaged tables are replaced by what can be read of them, and logs are written to
//! tables. Otherwise every table and every log is taken, and all of it is merged into one sorted
//! run, where the sequence number alone decides which version of a key is the newest. (LevelDB's
//! repair puts all tables into level 0 under their old numbers, which decide there, and so brings
//! old values back even to a healthy database.)
//!
//! # Invariants
//! 1. Nothing that is there is changed or moved before a new MANIFEST, and every table that it
//!    names, is durable and CURRENT names it. A repair that is interrupted can be repeated; one
//!    that fails before that point removes what it made.
//! 2. Nothing is deleted but the repair's own intermediate tables. What is damaged, replaced or not
//!    needed moves to `lost/`.
//! 3. Tables that a MANIFEST has removed, or that the present one does not name, do not come back:
//!    what they hold may have been deleted since.
//! 4. A healthy database is left as it is.

pub(super) mod inputs;
pub(super) mod manifest_survey;
pub(super) mod salvage;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::base::internal_key::{InternalOrder, SequenceNumber};
use crate::base::mutation::mutated;
use crate::compaction::output::Output;
use crate::env::{CreateOptions, LockMode};
use crate::log::LogWriter;
use crate::version::NUM_LEVELS;
use crate::version::edit::{NewFile, VersionEdit};
use crate::version::filename::{self, FileKind, LAST_NUMBER, MAX_NUMBER};
use crate::version::manifest::comparator_name;
use crate::version::table_set::TableSet;
use crate::version::value_files::ValueFileMap;
use crate::version::value_reader::ValueReader;
use crate::version::version::Version;
use crate::version::version_set::{FileNumbers, set_current};

use crate::db::check::level::check_recency;
use crate::db::check::problem::Problem;
use crate::db::check::table::Values;
use crate::db::check::{OPEN_TABLES, checking_tables, is_directory, no_database, require_database};
use crate::db::db_impl::file_copy::{sync_and_close, sync_end};
use crate::db::db_impl::lost::free_name;
use crate::db::info_log;
use crate::db::open::own_files::OwnFiles;
use crate::db::open::require_path;
use crate::db::options::Options;
use crate::db::repair::inputs::{Candidate, Gathering, Inputs};
use crate::db::repair::manifest_survey::ManifestSurvey;
use crate::db::repair::salvage::Salvage;

/// Where everything goes that is merged by sequence number alone: deep, so that no compaction is
/// due, and not at the bottom, from where LevelDB never takes tombstones away.
const MERGED_LEVEL: usize = NUM_LEVELS - 2;

/// The outcome of a repair.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # Db::open("/db", options.clone().create_if_missing(true))?.close()?;
/// let report = repair("/db", &options)?;
/// println!("{} problems; {:?} are in lost/ now", report.problems.len(), report.moved);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Tables that were read.
    pub tables: u64,
    /// Logs that were read.
    pub logs: u64,
    /// Puts and deletes that could be read of the logs. Where the database was healthy they are in
    /// the logs still, and not among `entries`.
    pub log_entries: u64,
    /// Entries in the tables of the repaired database, versions and tombstones included.
    pub entries: u64,
    /// The problems, and so what may be lost.
    pub problems: Vec<Problem>,
    /// Files that are under `lost/` now, by their new names.
    pub moved: Vec<String>,
}

/// Repairs the database in the directory `path`.
///
/// A healthy database stays as it is. From a damaged one everything is saved that can still be
/// read: tables block by block, logs batch by batch; of several versions of a key the newest by
/// sequence number wins. Where the newest version of a key, or its deletion, is lost with a damaged
/// block, an older one comes to light; so may one that lies in a table which a killed process had
/// replaced but not yet removed, if no MANIFEST is left to tell. Damaged and replaced files move to
/// the directory `lost` inside `path`.
///
/// A failed or interrupted repair can be repeated.
///
/// ```
/// # use terrace::*;
/// # let env = std::sync::Arc::new(MemEnv::new());
/// # let options = Options::new().create_if_missing(true).env(env.clone());
/// let db = Db::open("/db", options.clone())?;
/// db.put("apple", "red")?;
/// db.close()?;
/// env.write("/db/CURRENT", b"nonsense".to_vec());
/// assert!(Db::open("/db", options.clone()).is_err());
///
/// repair("/db", &options)?;
/// let db = Db::open("/db", options)?;
/// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// `InvalidArgument` if `path` is empty or there is nothing of a database, or if it is ordered by another comparator
/// than that of `options`; `Busy` if the database is open anywhere; `Io`.
pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
    let options = options.clone().sanitized()?;
    let (dir, env) = (path.as_ref(), options.env.clone());
    require_path(dir)?;
    if options.read_only {
        return Err(Error::invalid_argument("option read_only is set, and a repair writes"));
    }
    if !is_directory(env.as_ref(), dir)? {
        return Err(no_database(dir));
    }
    require_database(dir, &OwnFiles::list(env.as_ref(), dir)?)?;
    let _lock = env.lock(&dir.join(filename::LOCK), LockMode::Exclusive)?;
    let mut own = OwnFiles::list(env.as_ref(), dir)?;
    let order = InternalOrder::new(KeyOrder::new(options.comparator.clone()));
    let survey = ManifestSurvey::read(env.as_ref(), dir, &order, &own)?;
    own.leave_strangers(
        survey.description.as_ref().map_or(0, |found| found.state.next_file_number),
    );
    let numbers = Arc::new(FileNumbers::new(1));
    let named =
        survey.description.iter().map(|found| found.state.next_file_number.saturating_sub(1));
    let present = own.found.iter().map(|(_, _, number)| *number);
    named
        .chain(present)
        .filter(|&number| number <= MAX_NUMBER)
        .for_each(|number| numbers.skip(number));
    let tables = Arc::new(checking_tables(&options, dir, &order));
    let values = ValueReader::new(env.clone(), dir.to_owned(), OPEN_TABLES);
    let value_files = own.value_files(env.as_ref(), dir)?;
    let first_own = numbers.peek();
    let repair = Repair {
        options: &options,
        dir,
        order,
        own,
        tables,
        values,
        value_files,
        numbers,
        first_own,
        report: RepairReport::default(),
    };
    let report = repair.run(&survey)?;
    tell(&report, &options, dir);
    Ok(report)
}

/// Says in the log for people what was found and done. `LOG` stays as it is where that is nothing.
fn tell(report: &RepairReport, options: &Options, dir: &Path) {
    let is_healthy = report.problems.is_empty() && report.moved.is_empty();
    let logger = match &options.logger {
        Some(logger) => logger.clone(),
        None if is_healthy => return,
        None => info_log::start(&options.env, dir, options.file_mode),
    };
    report.problems.iter().for_each(|problem| logger.log(&format!("repair: {problem}")));
    report.moved.iter().for_each(|name| logger.log(&format!("repair: moved to {name}")));
    let RepairReport { tables, logs, entries, problems, .. } = report;
    let verdict =
        if problems.is_empty() { "nothing was wrong" } else { "some data may have been lost" };
    logger.log(&format!(
        "repaired: read {tables} tables and {logs} logs, kept {entries} entries; {verdict}"
    ));
}

/// The tables of the repaired database.
#[derive(Default)]
struct Rebuilt {
    files: Vec<NewFile>,
    entries: u64,
    last_sequence: SequenceNumber,
    /// Entries that share their values with others.
    overlapping: u64,
}

impl Rebuilt {
    fn keep(&mut self, table: &Candidate) {
        self.files.push(table.file.record(table.level));
        self.entries += table.summary.entries;
        self.last_sequence = self.last_sequence.max(table.summary.largest_sequence);
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for Output { file, contents, .. } in outputs {
            self.files.push(file);
            self.entries += contents.entries;
            self.last_sequence = self.last_sequence.max(contents.largest_sequence);
        }
    }
}

/// The numbers of the files that stay.
#[derive(Default)]
struct Live {
    tables: BTreeSet<u64>,
    values: BTreeSet<u64>,
}

impl Live {
    /// Tables, and what they point into.
    fn of(tables: impl Iterator<Item = NewFile>) -> Self {
        let mut live = Live::default();
        for table in tables {
            live.tables.insert(table.number);
            live.values.extend(table.values.iter().map(|used| used.file));
        }
        live
    }
}

/// A repair in progress.
struct Repair<'a> {
    options: &'a Options,
    dir: &'a Path,
    order: InternalOrder,
    own: OwnFiles,
    tables: Arc<TableSet>,
    values: ValueReader,
    value_files: ValueFileMap,
    numbers: Arc<FileNumbers>,
    /// Files with this number and greater ones are of this repair's making.
    first_own: u64,
    report: RepairReport,
}

impl Repair<'_> {
    fn run(mut self, survey: &ManifestSurvey) -> Result<RepairReport> {
        let Repair { options, dir, order, own, tables, .. } = &self;
        let problems = Vec::new();
        let gathering =
            Gathering { options, dir, order, own, tables, values: self.values(), problems };
        let inputs = gathering.run(survey)?;
        self.report.tables = inputs.tables.len() as u64;
        self.report.logs = inputs.logs.len() as u64;
        self.report.log_entries = inputs.log_entries;
        self.report.problems.clone_from(&inputs.problems);
        if let Some(manifest) = inputs.manifest
            && inputs.problems.is_empty()
        {
            self.report.entries = inputs.tables.iter().map(|table| table.summary.entries).sum();
            let live = Live::of(inputs.tables.iter().map(|table| table.record(0)));
            self.sync_found(manifest)?;
            self.set_aside(&live, &inputs.logs, manifest)?;
            return Ok(self.report);
        }
        let made = match inputs.keeps_levels {
            true => self.rebuild_levels(&inputs),
            false => self.rebuild_merged(&inputs),
        };
        let prepared = made.and_then(|rebuilt| {
            let last_sequence = rebuilt.last_sequence.max(inputs.last_sequence);
            let manifest = self.write_manifest(&rebuilt, last_sequence)?;
            Ok((rebuilt, manifest))
        });
        let (rebuilt, (manifest, log)) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                self.discard(
                    &[filename::table, filename::log, filename::manifest],
                    &BTreeSet::new(),
                );
                return Err(error.context("repairing"));
            }
        };
        set_current(self.options.env.as_ref(), self.dir, manifest, self.options.file_mode)?;
        let live = Live::of(rebuilt.files.iter().cloned());
        self.discard(&[filename::table], &live.tables);
        self.set_aside(&live, &[log], manifest)?;
        self.report.entries = rebuilt.entries;
        if let entries @ 1.. = rebuilt.overlapping {
            let message = format!("{entries} entries are lost, which point at values of others");
            self.report.problems.push(Problem::new("*.vlog", message));
        }
        Ok(self.report)
    }

    fn values(&self) -> Values<'_> {
        Values { reader: &self.values, files: &self.value_files }
    }

    fn salvage(&self) -> Salvage<'_> {
        let Repair { options, dir, order, numbers, tables, .. } = self;
        Salvage {
            options,
            dir,
            order,
            numbers,
            tables,
            values: self.values(),
            overlapping: Cell::default(),
        }
    }

    /// The edit that adds `files`, with the value files that they point into.
    fn adding(&self, files: &[NewFile]) -> VersionEdit {
        let live = Live::of(files.iter().cloned());
        let mut new_value_files = self.value_files.records();
        new_value_files.retain(|file| live.values.contains(&file.number));
        VersionEdit { new_files: files.to_vec(), new_value_files, ..VersionEdit::default() }
    }

    /// The entries that can be read of a damaged table, which must be those that could be before.
    fn rewrite(&self, table: &Candidate, level: usize) -> Result<Vec<Output>> {
        let outputs = self.salvage().rewrite(table.file.number, level)?;
        let (before, now) = (
            table.summary.entries,
            outputs.iter().map(|output| output.contents.entries).sum::<u64>(),
        );
        if table.summary.is_orderly && now != before {
            let name = filename::table(table.file.number);
            let message = format!(
                "{name}: {before} entries could be read at first, and {now} the second time"
            );
            return Err(Error::io_message(message));
        }
        Ok(outputs)
    }

    /// Keeps the levels, replacing damaged tables by what can be read of them.
    fn rebuild_levels(&self, inputs: &Inputs) -> Result<Rebuilt> {
        let Inputs { tables, logs, log_records, .. } = inputs;
        let salvage = self.salvage();
        let mut rebuilt = Rebuilt::default();
        // In level 0 the number tells which table is the newer one, and a rewritten table has a new
        // number.
        let merge_level_0 = tables.iter().any(|table| table.level == 0 && !table.is_sound());
        let mut level_0 = Vec::new();
        for table in tables.iter() {
            match (table.is_sound(), table.level == 0 && merge_level_0) {
                (true, false) => rebuilt.keep(table),
                (true, true) => level_0.push(table.record(0)),
                (false, true) => {
                    level_0.extend(self.rewrite(table, 0)?.into_iter().map(|output| output.file))
                }
                (false, false) => rebuilt.take(self.rewrite(table, table.level)?),
            }
        }
        rebuilt.take(salvage.merge(level_0, 0)?);
        rebuilt.take(salvage.logs(logs, *log_records)?);
        rebuilt.overlapping = salvage.overlapping.get();
        // A damaged table may be another one under its name.
        match tables.iter().all(Candidate::is_sound) || self.is_in_order(&rebuilt)? {
            true => Ok(rebuilt),
            false => self.rebuild_merged(inputs),
        }
    }

    /// Whether no table hides anything newer.
    fn is_in_order(&self, rebuilt: &Rebuilt) -> Result<bool> {
        let edit = self.adding(&rebuilt.files);
        let Ok(version) = Version::default().apply(&edit, &self.order, &Arc::default()) else {
            return Ok(false);
        };
        let levels: Vec<_> =
            version.levels.iter().map(|files| files.to_vec()).enumerate().collect();
        Ok(check_recency(&levels, &self.tables, &self.order, &mut |_| ())?.is_empty())
    }

    /// Merges everything by sequence number.
    fn rebuild_merged(&self, found: &Inputs) -> Result<Rebuilt> {
        let salvage = self.salvage();
        let mut inputs = Vec::new();
        for table in &found.tables {
            match table.is_sound() {
                true => inputs.push(table.record(0)),
                false => {
                    inputs.extend(self.rewrite(table, 0)?.into_iter().map(|output| output.file))
                }
            }
        }
        inputs.extend(
            salvage.logs(&found.logs, found.log_records)?.into_iter().map(|output| output.file),
        );
        let mut rebuilt = Rebuilt::default();
        rebuilt.take(salvage.merge(inputs, MERGED_LEVEL)?);
        rebuilt.overlapping = salvage.overlapping.get();
        Ok(rebuilt)
    }

    /// Writes a MANIFEST and the empty log that it names, durable, which CURRENT does not name yet.
    /// Returns their numbers.
    fn write_manifest(
        &self,
        rebuilt: &Rebuilt,
        last_sequence: SequenceNumber,
    ) -> Result<(u64, u64)> {
        let env = self.options.env.as_ref();
        let (log, number) = (self.numbers.take(), self.numbers.take());
        let edit = self.adding(&rebuilt.files);
        let is_extended = edit.is_extended();
        let edit = VersionEdit {
            comparator: Some(comparator_name(&self.order, is_extended)),
            log_number: Some(log),
            previous_log_number: Some(0),
            next_file_number: Some(self.numbers.peek()),
            last_sequence: Some(last_sequence),
            ..edit
        };
        // What a later open would refuse must not replace anything.
        if self.numbers.peek() > LAST_NUMBER {
            return Err(Error::not_supported("the file numbers of this database are exhausted"));
        }
        Version::default().apply(&edit, &self.order, &Arc::default())?;
        for values in &edit.new_value_files {
            self.sync_values(values.number)?;
        }
        let create = CreateOptions { mode: self.options.file_mode, exclusive: true };
        sync_and_close(env.create(&self.dir.join(filename::log(log)), create)?)?;
        let mut writer =
            LogWriter::new(env.create(&self.dir.join(filename::manifest(number)), create)?, 0);
        if is_extended {
            // See `VersionSet::roll`.
            let name = VersionEdit {
                comparator: edit.comparator.clone(),
                previous_log_number: Some(0),
                ..VersionEdit::default()
            };
            writer.add_record(&name.encode())?;
        }
        writer.add_record(&edit.encode())?;
        writer.sync()?;
        writer.close()?;
        Ok((number, log))
    }

    /// Makes a healthy MANIFEST durable, so that nothing is moved that an older state of it would
    /// need.
    fn sync_found(&self, manifest: u64) -> Result<()> {
        let env = self.options.env.as_ref();
        sync_and_close(env.open_append(&self.dir.join(filename::manifest(manifest)))?)?;
        env.sync_dir(self.dir)
    }

    fn sync_values(&self, number: u64) -> Result<()> {
        if mutated("repair-syncs-values") {
            return Ok(());
        }
        sync_end(self.options.env.as_ref(), &self.dir.join(filename::values(number)))
    }

    /// Removes files of this repair's making, except those with the numbers in `live`.
    fn discard(&self, names: &[fn(u64) -> String], live: &BTreeSet<u64>) {
        for number in (self.first_own..self.numbers.peek()).filter(|number| !live.contains(number))
        {
            for name in names {
                // A leftover is harmless: nothing names it.
                let _ = self.options.env.remove(&self.dir.join(name(number)));
            }
        }
    }

    /// Moves to `lost/` what is not needed any more.
    fn set_aside(&mut self, live: &Live, logs: &[u64], manifest: u64) -> Result<()> {
        let env = self.options.env.as_ref();
        let not_needed = |(_, kind, number): &&(String, FileKind, u64)| match kind {
            FileKind::Manifest => *number != manifest,
            FileKind::Log => !logs.contains(number),
            FileKind::Table => !live.tables.contains(number),
            FileKind::Values => !live.values.contains(number),
            FileKind::Temp => true,
            FileKind::Current | FileKind::Lock | FileKind::InfoLog => false,
        };
        let names: Vec<_> =
            self.own.found.iter().filter(not_needed).map(|(name, ..)| name.clone()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let lost = self.dir.join(filename::LOST_DIR);
        env.create_dir(&lost, self.options.dir_mode)?;
        for name in names {
            let kept_as = free_name(env, &lost, &name)?;
            env.rename(&self.dir.join(&name), &lost.join(&kept_as))?;
            self.report.moved.push(format!("{}/{kept_as}", filename::LOST_DIR));
        }
        // The new names before the old ones are gone for good.
        env.sync_dir(&lost)?;
        env.sync_dir(self.dir)
    }
}
