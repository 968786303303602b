//! Makes a database that can be opened of whatever is left of one.
//!
//! # How
//! A MANIFEST that reads well and whose tables are there *describes* the database: its levels stay as they are,
//! damaged tables are replaced by what can be read of them, and logs become tables. Otherwise every table and every
//! log is taken, and all of it is merged into one sorted run, where the sequence number alone decides which version
//! of a key is the newest. (LevelDB's repair puts all tables into level 0 under their old numbers, which decide
//! there, and so brings old values back even to a healthy database.)
//!
//! # Invariants
//! 1. Nothing that is there is changed or moved before a new MANIFEST, and every table that it names, is durable and
//!    in force. A repair that is interrupted can be repeated; one that fails before that point removes what it made.
//! 2. Nothing is deleted but the repair's own intermediate tables. What is damaged, replaced or not needed moves to
//!    `lost/`.
//! 3. Tables that a MANIFEST has removed, or that the one in force does not name, do not come back: what they hold
//!    may have been deleted since.
//! 4. A healthy database is left as it is.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::base::internal_key::{InternalOrder, SequenceNumber};
use crate::compaction::output::Output;
use crate::env::{CreateOptions, LockMode, ReadAccess};
use crate::log::LogWriter;
use crate::table::Table;
use crate::version::NUM_LEVELS;
use crate::version::edit::{NewFile, VersionEdit};
use crate::version::file_meta::FileMeta;
use crate::version::filename::{self, FileKind};
use crate::version::table_set::TableSet;
use crate::version::version::Version;
use crate::version::version_set::{FileNumbers, set_current};

use super::level_check::{check_neighbours, check_recency};
use super::log_check::{Finding, LogCheck};
use super::manifest_survey::{Description, ManifestSurvey};
use super::medium::{is_damage, twice};
use super::open::OwnFiles;
use super::options::Options;
use super::problem::Problem;
use super::salvage::Salvage;
use super::table_check::{Promise, TableSummary, check_table, check_wreck};
use super::verify::{checking_tables, no_database, require_database, strip, wrong_size};

/// Where everything goes that is merged by sequence number alone: deep, so that no merge is due, and not at the
/// bottom, from where LevelDB never takes tombstones away.
const MERGED_LEVEL: usize = NUM_LEVELS - 2;

/// Greater numbers in file names are nobody's: no more could be handed out.
const MAX_NUMBER: u64 = u64::MAX / 2;

/// What a repair found and did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Tables that were read.
    pub tables: u64,
    /// Logs that were read.
    pub logs: u64,
    /// Entries in the tables of the repaired database, versions and tombstones included.
    pub entries: u64,
    /// What was wrong, and so what may be lost.
    pub problems: Vec<Problem>,
    /// Files that are under `lost/` now, by their new names.
    pub moved: Vec<String>,
}

/// Repairs the database in the directory `path`.
///
/// A healthy database stays as it is. From a damaged one everything is saved that can still be read: tables block by
/// block, logs batch by batch; of several versions of a key the newest by sequence number wins. Where the newest
/// version of a key, or its deletion, is lost with a damaged block, an older one comes to light. Damaged and replaced
/// files move to the directory `lost` inside `path`.
///
/// Fails with `InvalidArgument` if there is nothing of a database, or if it is ordered by another comparator than that
/// of `options`; with `Busy` if the database is open anywhere. A failed or interrupted repair can be repeated.
pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
    let options = options.clone().sanitized()?;
    let (dir, env) = (path.as_ref(), options.env.clone());
    if options.read_only {
        return Err(Error::invalid_argument("option read_only is set, and a repair writes"));
    }
    if !env.exists(dir)? {
        return Err(no_database(dir));
    }
    require_database(dir, &OwnFiles::list(env.as_ref(), dir)?)?;
    let _lock = env.lock(&dir.join(filename::LOCK), LockMode::Exclusive)?;
    let own = OwnFiles::list(env.as_ref(), dir)?;
    let order = InternalOrder::new(KeyOrder::new(options.comparator.clone()));
    let survey = ManifestSurvey::read(env.as_ref(), dir, &order, &own)?;
    let numbers = Arc::new(FileNumbers::new(1));
    let named = survey.description.iter().map(|found| found.state.next_file_number - 1);
    let present = own.found.iter().map(|(_, _, number)| *number);
    named.chain(present).filter(|&number| number <= MAX_NUMBER).for_each(|number| numbers.skip(number));
    let tables = Arc::new(checking_tables(&options, dir, &order));
    let first_own = numbers.peek();
    let repair =
        Repair { options: &options, dir, order, own, tables, numbers, first_own, report: RepairReport::default() };
    repair.run(survey)
}

/// A table to be saved.
struct Candidate {
    file: Arc<FileMeta>,
    /// Where the MANIFEST has it, if one describes the database.
    level: usize,
    summary: TableSummary,
}

impl Candidate {
    fn is_sound(&self) -> bool {
        self.summary.messages.is_empty()
    }

    /// As an input of a merge: with the keys that it really has.
    fn record(&self, level: usize) -> NewFile {
        NewFile {
            level,
            number: self.file.number,
            size: self.file.size,
            smallest: self.summary.smallest.clone(),
            largest: self.summary.largest.clone(),
        }
    }
}

/// A table that was read.
struct Seen {
    name: String,
    size: u64,
    summary: TableSummary,
}

/// The tables of the repaired database.
#[derive(Default)]
struct Rebuilt {
    files: Vec<NewFile>,
    entries: u64,
    last_sequence: SequenceNumber,
}

impl Rebuilt {
    fn keep(&mut self, table: &Candidate) {
        self.files.push(table.file.record(table.level));
        self.entries += table.summary.entries;
        self.last_sequence = self.last_sequence.max(table.summary.largest_sequence);
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for Output { file, contents } in outputs {
            self.files.push(file);
            self.entries += contents.entries;
            self.last_sequence = self.last_sequence.max(contents.largest_sequence);
        }
    }
}

/// A repair in progress.
struct Repair<'a> {
    options: &'a Options,
    dir: &'a Path,
    order: InternalOrder,
    own: OwnFiles,
    tables: Arc<TableSet>,
    numbers: Arc<FileNumbers>,
    /// Files with this number and greater ones are of this repair's making.
    first_own: u64,
    report: RepairReport,
}

impl Repair<'_> {
    fn run(mut self, survey: ManifestSurvey) -> Result<RepairReport> {
        self.report.problems.clone_from(&survey.problems);
        let described = self.described(&survey)?;
        let (tables, logs) = match described {
            Some(description) => self.inputs(description)?,
            None => self.all_inputs(&survey)?,
        };
        let mut log_check = LogCheck::new(described.map(|description| description.state.last_sequence));
        self.check_logs(&logs, &mut log_check)?;
        let in_order = self.check_levels(described.is_some(), &tables, &log_check)?;
        let healthy = survey.problems.is_empty() && self.report.problems.is_empty();
        if let Some(Description { number, in_force: true, .. }) = described
            && healthy
        {
            self.report.entries = tables.iter().map(|table| table.summary.entries).sum();
            let live = tables.iter().map(|table| table.file.number).collect();
            self.sync_found(*number)?;
            self.set_aside(&live, &logs, *number)?;
            return Ok(self.report);
        }
        let keep_levels = described.is_some() && in_order;
        let made = match keep_levels {
            true => self.rebuild_levels(&tables, &logs),
            false => self.rebuild_merged(&tables, &logs),
        };
        let prepared = made.and_then(|rebuilt| {
            let last_sequence = rebuilt.last_sequence.max(survey.last_sequence).max(log_check.last_sequence());
            let manifest = self.write_manifest(&rebuilt, last_sequence)?;
            Ok((rebuilt, manifest))
        });
        let (rebuilt, (manifest, log)) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                self.discard(&[filename::table, filename::log, filename::manifest], &BTreeSet::new());
                return Err(error.context("repairing"));
            }
        };
        set_current(self.options.env.as_ref(), self.dir, manifest, self.options.file_mode)?;
        let live = rebuilt.files.iter().map(|file| file.number).collect();
        self.discard(&[filename::table], &live);
        self.set_aside(&live, &[log], manifest)?;
        self.report.entries = rebuilt.entries;
        Ok(self.report)
    }

    /// The MANIFEST that tells what the database is, if one does.
    fn described<'s>(&mut self, survey: &'s ManifestSurvey) -> Result<Option<&'s Description>> {
        let Some(description) = survey.description.as_ref() else { return Ok(None) };
        let state = &description.state;
        let present: BTreeSet<_> = self.own.of_kind(FileKind::Table).collect();
        let live: BTreeSet<_> = state.version.files().map(|(_, file)| file.number).collect();
        let mut missing: Vec<_> = live.difference(&present).map(|&number| filename::table(number)).collect();
        if state.log_number != 0 && !self.own.of_kind(FileKind::Log).any(|number| number == state.log_number) {
            missing.push(filename::log(state.log_number));
        }
        let is_whole = missing.is_empty();
        for name in missing {
            self.report.problems.push(Problem::new(name, "missing, and the MANIFEST needs it"));
        }
        // Tables that it has never heard of may be what replaced the missing ones, after the end of this MANIFEST
        // was lost; or they are what an interrupted flush or merge left behind.
        let unheard: Vec<_> = present
            .into_iter()
            .filter(|number| *number <= MAX_NUMBER && !live.contains(number) && !survey.removed.contains(number))
            .collect();
        let trusted = match (description.in_force, is_whole, unheard.is_empty()) {
            (true, _, true) | (false, true, true) => true,
            (true, true, false) => !self.is_behind(description, &unheard)?,
            _ => false,
        };
        Ok(trusted.then_some(description))
    }

    /// Whether a MANIFEST lacks its end: the logs begin later than its tables end, or tables that it has never heard
    /// of hold writes that neither it nor any log has.
    fn is_behind(&mut self, description: &Description, unheard: &[u64]) -> Result<bool> {
        let state = &description.state;
        let name = filename::manifest(description.number);
        let mut logs = LogCheck::new(Some(state.last_sequence));
        for number in self.own.of_kind(FileKind::Log).filter(|&number| state.needs_log(number)).collect::<BTreeSet<_>>()
        {
            let log = filename::log(number);
            let file = self.options.env.open_random(&self.dir.join(&log), ReadAccess::Pread)?;
            logs.read(file, &log, &mut |_| Ok(()))?;
        }
        let (last, first) = (state.last_sequence, logs.smallest_sequence);
        if logs.records > 0 && first > last + 1 {
            let message = format!("ends with sequence number {last}, and the logs begin with {first}");
            self.report.problems.push(Problem::new(name, message));
            return Ok(true);
        }
        for &number in unheard {
            let found = self.look_at(number, None)?.summary.largest_sequence;
            if found > logs.last_sequence() {
                let table = filename::table(number);
                let message = format!("has never heard of {table}, which holds newer writes, up to {found}");
                self.report.problems.push(Problem::new(name, message));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The tables and logs that a MANIFEST names.
    fn inputs(&mut self, description: &Description) -> Result<(Vec<Candidate>, Vec<u64>)> {
        let state = &description.state;
        let present: BTreeSet<_> = self.own.of_kind(FileKind::Table).collect();
        let mut tables = Vec::new();
        for (level, file) in state.version.files().filter(|(_, file)| present.contains(&file.number)) {
            let promise = Promise { file, last_sequence: state.last_sequence };
            let summary = self.check_table(file.number, Some(promise))?.0;
            tables.push(Candidate { file: file.clone(), level, summary });
        }
        let mut logs: Vec<_> = self.own.of_kind(FileKind::Log).filter(|&number| state.needs_log(number)).collect();
        logs.sort_unstable();
        Ok((tables, logs))
    }

    /// Every table and log, except what is known to be obsolete.
    fn all_inputs(&mut self, survey: &ManifestSurvey) -> Result<(Vec<Candidate>, Vec<u64>)> {
        let numbers: BTreeSet<_> = self.own.of_kind(FileKind::Table).filter(|&number| number <= MAX_NUMBER).collect();
        let mut tables = Vec::new();
        for number in numbers.into_iter().filter(|number| !survey.removed.contains(number)) {
            let (summary, size) = self.check_table(number, None)?;
            let (smallest, largest) = (summary.smallest.clone(), summary.largest.clone());
            let file = NewFile { level: 0, number, size, smallest, largest };
            tables.push(Candidate { file: Arc::new(FileMeta::new(file, &Arc::default())), level: 0, summary });
        }
        let mut logs: Vec<_> = self.own.of_kind(FileKind::Log).collect();
        logs.retain(|&number| (survey.log_number..=MAX_NUMBER).contains(&number));
        logs.sort_unstable();
        Ok((tables, logs))
    }

    /// Reads a table that is to be saved.
    fn check_table(&mut self, number: u64, promise: Option<Promise<'_>>) -> Result<(TableSummary, u64)> {
        let Seen { name, size, summary } = self.look_at(number, promise)?;
        self.report.tables += 1;
        let problems = summary.messages.iter().map(|message| Problem::new(&name, strip(message, &name)));
        self.report.problems.extend(problems);
        Ok((summary, size))
    }

    fn look_at(&self, number: u64, promise: Option<Promise<'_>>) -> Result<Seen> {
        let (file, name) = self.tables.open_file(number)?;
        let size = file.size();
        let open = || Table::open(file.clone(), name.clone(), self.tables.read_settings().clone());
        let mut summary = match twice(open) {
            Ok(table) => check_table(&table, &self.order, promise, &mut |_| ())?,
            Err(error) if is_damage(&error) => check_wreck(&file, &self.order, promise, &error)?,
            Err(error) => return Err(error),
        };
        summary.messages.extend(wrong_size(promise.map(|promise| promise.file), size));
        Ok(Seen { name, size, summary })
    }

    fn check_logs(&mut self, logs: &[u64], check: &mut LogCheck) -> Result<()> {
        for &number in logs {
            let name = filename::log(number);
            let file = self.options.env.open_random(&self.dir.join(&name), ReadAccess::Pread)?;
            check.read(file, &name, &mut |finding| {
                if let Finding::Problem(message) = finding {
                    self.report.problems.push(Problem::new(&name, message));
                }
                Ok(())
            })?;
            self.report.logs += 1;
        }
        if let (Some(message), Some(&last)) = (check.finish(), logs.last()) {
            self.report.problems.push(Problem::new(filename::log(last), message));
        }
        Ok(())
    }

    /// Whether the levels can stay: they are ordered, nothing in them hides anything newer, and the logs are newer
    /// than all of them.
    fn check_levels(&mut self, described: bool, tables: &[Candidate], logs: &LogCheck) -> Result<bool> {
        if !described || tables.iter().any(|table| !table.summary.is_orderly) {
            return Ok(false);
        }
        let mut problems = Vec::new();
        let mut levels = Vec::new();
        for level in 0..NUM_LEVELS {
            let at_level = || tables.iter().filter(move |table| table.level == level);
            let all: Vec<_> = at_level().map(|table| table.file.clone()).collect();
            problems.extend(check_neighbours(&self.order, level, &all));
            levels.push((level, at_level().filter(|table| table.is_sound()).map(|table| table.file.clone()).collect()));
        }
        problems.extend(check_recency(&levels, &self.tables, &self.order, &mut |_| ())?);
        let in_order = problems.is_empty();
        self.report.problems.extend(problems);
        let newest = tables.iter().map(|table| table.summary.largest_sequence).max();
        Ok(in_order && newest.is_none_or(|newest| newest < logs.smallest_sequence))
    }

    fn salvage(&self) -> Salvage<'_> {
        let Repair { options, dir, order, numbers, tables, .. } = self;
        Salvage { options, dir, order, numbers, tables }
    }

    /// What can be read of a damaged table, which must be what could be read of it before.
    fn rewrite(&self, table: &Candidate, level: usize) -> Result<Vec<Output>> {
        let outputs = self.salvage().rewrite(table.file.number, level)?;
        let (before, now) = (table.summary.entries, outputs.iter().map(|output| output.contents.entries).sum::<u64>());
        if table.summary.is_orderly && now != before {
            let name = filename::table(table.file.number);
            let message = format!("{name}: {before} entries could be read at first, and {now} the second time");
            return Err(Error::io_message(message));
        }
        Ok(outputs)
    }

    /// Keeps the levels, replacing damaged tables by what can be read of them.
    fn rebuild_levels(&self, tables: &[Candidate], logs: &[u64]) -> Result<Rebuilt> {
        let salvage = self.salvage();
        let mut rebuilt = Rebuilt::default();
        // In level 0 the number tells which table is the newer one, and a rewritten table has a new number.
        let merge_level_0 = tables.iter().any(|table| table.level == 0 && !table.is_sound());
        let mut level_0 = Vec::new();
        for table in tables.iter() {
            match (table.is_sound(), table.level == 0 && merge_level_0) {
                (true, false) => rebuilt.keep(table),
                (true, true) => level_0.push(table.record(0)),
                (false, true) => level_0.extend(self.rewrite(table, 0)?.into_iter().map(|output| output.file)),
                (false, false) => rebuilt.take(self.rewrite(table, table.level)?),
            }
        }
        rebuilt.take(salvage.merge(level_0, 0)?);
        rebuilt.take(salvage.logs(logs)?);
        // A damaged table may be another one under its name.
        match tables.iter().all(Candidate::is_sound) || self.is_in_order(&rebuilt)? {
            true => Ok(rebuilt),
            false => self.rebuild_merged(tables, logs),
        }
    }

    /// Whether no table hides anything newer.
    fn is_in_order(&self, rebuilt: &Rebuilt) -> Result<bool> {
        let edit = VersionEdit { new_files: rebuilt.files.clone(), ..VersionEdit::default() };
        let Ok(version) = Version::default().apply(&edit, &self.order, &Arc::default()) else { return Ok(false) };
        let shared =
            (0..NUM_LEVELS).any(|level| !check_neighbours(&self.order, level, &version.levels[level]).is_empty());
        let levels: Vec<_> = version.levels.into_iter().enumerate().collect();
        Ok(!shared && check_recency(&levels, &self.tables, &self.order, &mut |_| ())?.is_empty())
    }

    /// Merges everything by sequence number.
    fn rebuild_merged(&self, tables: &[Candidate], logs: &[u64]) -> Result<Rebuilt> {
        let salvage = self.salvage();
        let mut inputs = Vec::new();
        for table in tables {
            match table.is_sound() {
                true => inputs.push(table.record(0)),
                false => inputs.extend(self.rewrite(table, 0)?.into_iter().map(|output| output.file)),
            }
        }
        inputs.extend(salvage.logs(logs)?.into_iter().map(|output| output.file));
        let mut rebuilt = Rebuilt::default();
        rebuilt.take(salvage.merge(inputs, MERGED_LEVEL)?);
        Ok(rebuilt)
    }

    /// Writes a MANIFEST and the empty log that it names, durable but not yet in force. Answers their numbers.
    fn write_manifest(&self, rebuilt: &Rebuilt, last_sequence: SequenceNumber) -> Result<(u64, u64)> {
        let env = self.options.env.as_ref();
        let (log, number) = (self.numbers.take(), self.numbers.take());
        let edit = VersionEdit {
            comparator: Some(self.order.keys.name().to_owned()),
            log_number: Some(log),
            previous_log_number: Some(0),
            next_file_number: Some(self.numbers.peek()),
            last_sequence: Some(last_sequence),
            new_files: rebuilt.files.clone(),
            ..VersionEdit::default()
        };
        // What a later open would refuse must not replace anything.
        Version::default().apply(&edit, &self.order, &Arc::default())?;
        let create = CreateOptions { mode: self.options.file_mode, exclusive: true };
        let mut file = env.create(&self.dir.join(filename::log(log)), create)?;
        file.sync()?;
        file.close()?;
        let mut writer = LogWriter::new(env.create(&self.dir.join(filename::manifest(number)), create)?, 0);
        writer.add_record(&edit.encode())?;
        writer.sync()?;
        writer.close()?;
        Ok((number, log))
    }

    /// Makes a healthy MANIFEST durable, so that nothing is moved that an older state of it would need.
    fn sync_found(&self, manifest: u64) -> Result<()> {
        let env = self.options.env.as_ref();
        let mut file = env.open_append(&self.dir.join(filename::manifest(manifest)))?;
        file.sync()?;
        file.close()?;
        env.sync_dir(self.dir)
    }

    /// Removes files of this repair's making, except those with the numbers in `live`.
    fn discard(&self, names: &[fn(u64) -> String], live: &BTreeSet<u64>) {
        for number in (self.first_own..self.numbers.peek()).filter(|number| !live.contains(number)) {
            for name in names {
                // A leftover is harmless: nothing names it.
                let _ = self.options.env.remove(&self.dir.join(name(number)));
            }
        }
    }

    /// Moves to `lost/` what is not needed any more.
    fn set_aside(&mut self, live: &BTreeSet<u64>, logs: &[u64], manifest: u64) -> Result<()> {
        let env = self.options.env.as_ref();
        let not_needed = |(_, kind, number): &&(String, FileKind, u64)| match kind {
            FileKind::Manifest => *number != manifest,
            FileKind::Log => !logs.contains(number),
            FileKind::Table => !live.contains(number),
            FileKind::Temp => true,
            FileKind::Current | FileKind::Lock | FileKind::InfoLog => false,
        };
        let names: Vec<_> = self.own.found.iter().filter(not_needed).map(|(name, ..)| name.clone()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let lost = self.dir.join(filename::LOST_DIR);
        env.create_dir(&lost, self.options.dir_mode)?;
        for name in names {
            let mut kept_as = name.clone();
            let mut copies = 0;
            while env.exists(&lost.join(&kept_as))? {
                copies += 1;
                kept_as = format!("{name}.{copies}");
            }
            env.rename(&self.dir.join(&name), &lost.join(&kept_as))?;
            self.report.moved.push(format!("{}/{kept_as}", filename::LOST_DIR));
        }
        // The new names before the old ones are gone for good.
        env.sync_dir(&lost)?;
        env.sync_dir(self.dir)
    }
}
