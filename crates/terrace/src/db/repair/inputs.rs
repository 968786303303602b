//! The inputs of a repair: which MANIFEST to believe, which tables and logs to take, and what is
//! wrong with them.
//!
//! Changes nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::{InternalOrder, SequenceNumber};
use crate::env::ReadAccess;
use crate::table::Table;
use crate::version::NUM_LEVELS;
use crate::version::edit::NewFile;
use crate::version::file_meta::FileMeta;
use crate::version::filename::{self, FileKind, MAX_NUMBER};
use crate::version::manifest::ManifestState;
use crate::version::table_set::TableSet;

use crate::db::check::level::check_recency;
use crate::db::check::log::{Finding, LogCheck};
use crate::db::check::problem::Problem;
use crate::db::check::table::{Expected, TableSummary, Values, check_table, check_wreck};
use crate::db::check::{strip, wrong_size};
use crate::db::io_error::{is_damage, retry_once};
use crate::db::open::own_files::OwnFiles;
use crate::db::open::unnamed_tables::last_sequences_if_readable;
use crate::db::options::Options;
use crate::db::repair::manifest_survey::{Description, ManifestSurvey};

/// The files that there are to be saved.
pub(in crate::db) struct Inputs {
    pub(in crate::db) tables: Vec<Candidate>,
    /// Ascending.
    pub(in crate::db) logs: Vec<u64>,
    /// Puts and deletes that could be read of them.
    pub(in crate::db) log_entries: u64,
    /// Records that could be read of them.
    pub(in crate::db) log_records: u64,
    /// The present MANIFEST, if it describes the database.
    pub(in crate::db) manifest: Option<u64>,
    /// Whether the levels can stay as they are.
    pub(in crate::db) keeps_levels: bool,
    /// The last write of logs and MANIFESTs; tables may know of later ones.
    pub(in crate::db) last_sequence: SequenceNumber,
    pub(in crate::db) problems: Vec<Problem>,
}

/// A table to be saved.
pub(in crate::db) struct Candidate {
    pub(in crate::db) file: Arc<FileMeta>,
    /// Where the MANIFEST has it, if one describes the database.
    pub(in crate::db) level: usize,
    pub(in crate::db) summary: TableSummary,
}

impl Candidate {
    pub(in crate::db) fn is_sound(&self) -> bool {
        self.summary.messages.is_empty()
    }

    /// As an input of a compaction: with the keys that it really has.
    pub(in crate::db) fn record(&self, level: usize) -> NewFile {
        NewFile {
            level,
            number: self.file.number,
            size: self.file.size,
            smallest: self.summary.smallest.clone(),
            largest: self.summary.largest.clone(),
            values: self.summary.value_uses(),
            codecs: self.summary.codecs,
        }
    }
}

/// A table that was read.
struct Seen {
    name: String,
    size: u64,
    summary: TableSummary,
}

/// Gathers the inputs of a repair.
pub(in crate::db) struct Gathering<'a> {
    pub(in crate::db) options: &'a Options,
    pub(in crate::db) dir: &'a Path,
    pub(in crate::db) order: &'a InternalOrder,
    pub(in crate::db) own: &'a OwnFiles,
    pub(in crate::db) tables: &'a Arc<TableSet>,
    pub(in crate::db) values: Values<'a>,
    pub(in crate::db) problems: Vec<Problem>,
}

impl Gathering<'_> {
    pub(in crate::db) fn run(mut self, survey: &ManifestSurvey) -> Result<Inputs> {
        self.problems.clone_from(&survey.problems);
        let described = self.described(survey)?;
        let (tables, logs) = match described {
            Some(description) => self.inputs(description)?,
            None => self.all_inputs(survey)?,
        };
        let in_tables =
            tables.iter().map(|table| table.summary.largest_sequence).max().unwrap_or(0);
        let mut check = match described {
            Some(Description { state, .. }) => {
                let mut unnamed = self.own.unnamed_tables(state);
                unnamed.retain(|number| !survey.removed.contains(number));
                let ends = last_sequences_if_readable(self.tables, unnamed)?;
                LogCheck::following(state, in_tables, ends)
            }
            None => LogCheck::new(None),
        };
        let log_entries = self.check_logs(&logs, &mut check)?;
        let keeps_levels = self.check_levels(described.is_some(), &tables, &check)?;
        let manifest = described
            .filter(|description| description.in_force)
            .map(|description| description.number);
        let last_sequence = survey.last_sequence.max(check.last_sequence());
        let log_records = check.records();
        Ok(Inputs {
            tables,
            logs,
            log_entries,
            log_records,
            manifest,
            keeps_levels,
            last_sequence,
            problems: self.problems,
        })
    }

    /// The MANIFEST that tells what the database is, if one does.
    fn described<'s>(&mut self, survey: &'s ManifestSurvey) -> Result<Option<&'s Description>> {
        let Some(description) = survey.description.as_ref() else { return Ok(None) };
        let state = &description.state;
        let present: BTreeSet<_> = self.own.of_kind(FileKind::Table).collect();
        let live: BTreeSet<_> = state.version.files().map(|(_, file)| file.number).collect();
        let mut missing: Vec<_> =
            live.difference(&present).map(|&number| filename::table(number)).collect();
        if state.log_number != 0
            && !self.own.of_kind(FileKind::Log).any(|number| number == state.log_number)
        {
            missing.push(filename::log(state.log_number));
        }
        let is_whole = missing.is_empty();
        for name in missing {
            self.problems.push(Problem::new(name, "missing, and the MANIFEST needs it"));
        }
        // Tables that it has never heard of may be what replaced the missing ones, after the end of
        // this MANIFEST was lost; or they are what an interrupted flush or compaction left behind.
        let unheard: Vec<_> = present
            .into_iter()
            .filter(|number| {
                *number <= MAX_NUMBER && !live.contains(number) && !survey.removed.contains(number)
            })
            .collect();
        let trusted = match (description.in_force, is_whole, unheard.is_empty()) {
            (true, _, true) | (false, true, true) => true,
            (true, true, false) => !self.is_behind(description, &unheard)?,
            _ => false,
        };
        Ok(trusted.then_some(description))
    }

    /// Whether a MANIFEST lacks its end: the logs begin later than its tables end, or tables that
    /// it has never heard of hold writes that neither it nor any log has.
    fn is_behind(&mut self, description: &Description, unheard: &[u64]) -> Result<bool> {
        let state = &description.state;
        let name = filename::manifest(description.number);
        let mut unnamed = Vec::new();
        for &number in unheard {
            let Seen { summary, .. } = self.look_at(number, None)?;
            if summary.entries > 0 {
                unnamed.push((number, summary.largest_sequence));
            }
        }
        let ends = unnamed.iter().map(|&(_, last)| last).collect();
        let mut logs = LogCheck::following(state, state.last_sequence, ends);
        for number in self
            .own
            .of_kind(FileKind::Log)
            .filter(|&number| state.needs_log(number))
            .collect::<BTreeSet<_>>()
        {
            let log = filename::log(number);
            let file = self.options.env.open_random(&self.dir.join(&log), ReadAccess::Pread)?;
            logs.read(number, file, &log, &mut |_| Ok(()))?;
        }
        let (last, first) = (state.last_sequence, logs.smallest_sequence);
        if logs.begins_late() {
            let message =
                format!("ends with sequence number {last}, and the logs begin with {first}");
            self.problems.push(Problem::new(name, message));
            return Ok(true);
        }
        let newer = unnamed.into_iter().find(|&(_, last)| last > logs.last_sequence());
        if let Some((number, last)) = newer {
            let table = filename::table(number);
            let message =
                format!("has never heard of {table}, which holds newer writes, up to {last}");
            self.problems.push(Problem::new(name, message));
        }
        Ok(newer.is_some())
    }

    /// Notes the value files that are missing, or shorter than the MANIFEST says. Their values are
    /// looked at with the entries that point at them.
    fn check_value_files(&mut self, state: &ManifestState) {
        for named in state.version.values.records() {
            let found = self.values.files.get(named.number).map(|used| used.size);
            let message = match found {
                None => "missing, and tables point into it".into(),
                Some(size) if size < named.size => {
                    format!("is {size} bytes long, the MANIFEST says {}", named.size)
                }
                Some(_) => continue,
            };
            self.problems.push(Problem::new(filename::values(named.number), message));
        }
    }

    /// The tables and logs that a MANIFEST names.
    fn inputs(&mut self, description: &Description) -> Result<(Vec<Candidate>, Vec<u64>)> {
        let state = &description.state;
        self.check_value_files(state);
        let present: BTreeSet<_> = self.own.of_kind(FileKind::Table).collect();
        let mut tables = Vec::new();
        for (level, file) in
            state.version.files().filter(|(_, file)| present.contains(&file.number))
        {
            let expected = Expected { file, last_sequence: state.last_sequence };
            let summary = self.check_table(file.number, Some(expected))?.0;
            tables.push(Candidate { file: file.clone(), level, summary });
        }
        let mut logs: Vec<_> =
            self.own.of_kind(FileKind::Log).filter(|&number| state.needs_log(number)).collect();
        logs.sort_unstable();
        Ok((tables, logs))
    }

    /// Every table and log, except what is known to be obsolete.
    fn all_inputs(&mut self, survey: &ManifestSurvey) -> Result<(Vec<Candidate>, Vec<u64>)> {
        let numbers: BTreeSet<_> =
            self.own.of_kind(FileKind::Table).filter(|&number| number <= MAX_NUMBER).collect();
        let mut tables = Vec::new();
        for number in numbers.into_iter().filter(|number| !survey.removed.contains(number)) {
            let (summary, size) = self.check_table(number, None)?;
            let (smallest, largest) = (summary.smallest.clone(), summary.largest.clone());
            let (values, codecs) = (summary.value_uses(), summary.codecs);
            let file = NewFile { level: 0, number, size, smallest, largest, values, codecs };
            tables.push(Candidate {
                file: Arc::new(FileMeta::new(file, &Arc::default())),
                level: 0,
                summary,
            });
        }
        let mut logs: Vec<_> = self.own.of_kind(FileKind::Log).collect();
        logs.retain(|&number| (survey.log_number..=MAX_NUMBER).contains(&number));
        logs.sort_unstable();
        Ok((tables, logs))
    }

    /// Reads a table that is to be saved.
    fn check_table(
        &mut self,
        number: u64,
        expected: Option<Expected<'_>>,
    ) -> Result<(TableSummary, u64)> {
        let Seen { name, size, summary } = self.look_at(number, expected)?;
        let problems =
            summary.messages.iter().map(|message| Problem::new(&name, strip(message, &name)));
        self.problems.extend(problems);
        Ok((summary, size))
    }

    fn look_at(&self, number: u64, expected: Option<Expected<'_>>) -> Result<Seen> {
        let (file, name) = self.tables.open_file(number)?;
        let size = file.size();
        let open = || Table::open(file.clone(), name.clone(), self.tables.read_settings().clone());
        let mut summary = match retry_once(open) {
            Ok(table) => check_table(&table, self.order, self.values, expected, &mut |_| ())?,
            Err(error) if is_damage(&error) => {
                check_wreck((&file, &name), self.order, self.values, expected, &error)?
            }
            Err(error) => return Err(error),
        };
        summary.messages.extend(wrong_size(expected.map(|expected| expected.file), size));
        Ok(Seen { name, size, summary })
    }

    /// Checks the logs and returns how many puts and deletes they hold.
    fn check_logs(&mut self, logs: &[u64], check: &mut LogCheck) -> Result<u64> {
        let mut entries = 0;
        for &number in logs {
            let name = filename::log(number);
            let file = self.options.env.open_random(&self.dir.join(&name), ReadAccess::Pread)?;
            check.read(number, file, &name, &mut |finding| {
                match finding {
                    Finding::Batch(batch) => entries += batch.operations().count() as u64,
                    Finding::Problem(message) => self.problems.push(Problem::new(&name, message)),
                    Finding::Torn(_) => {}
                }
                Ok(())
            })?;
        }
        if let (Some(message), Some(&last)) = (check.finish(), logs.last()) {
            self.problems.push(Problem::new(filename::log(last), message));
        }
        Ok(entries)
    }

    /// Whether the levels can stay: they are ordered, nothing in them hides anything newer, and the
    /// logs are newer than all of them.
    fn check_levels(
        &mut self,
        described: bool,
        tables: &[Candidate],
        logs: &LogCheck,
    ) -> Result<bool> {
        if !described || tables.iter().any(|table| !table.summary.is_orderly) {
            return Ok(false);
        }
        let sound_at =
            |level| tables.iter().filter(move |table| table.level == level && table.is_sound());
        let files_at = |level| sound_at(level).map(|table| table.file.clone()).collect();
        let levels: Vec<_> = (0..NUM_LEVELS).map(|level| (level, files_at(level))).collect();
        let problems = check_recency(&levels, self.tables, self.order, &mut |_| ())?;
        let in_order = problems.is_empty();
        self.problems.extend(problems);
        let newest = tables.iter().map(|table| table.summary.largest_sequence).max();
        Ok(in_order && newest.is_none_or(|newest| newest < logs.smallest_sequence))
    }
}
