//! Care for a whole database: `verify`, `repair`, `compact`, `checkpoint`, `destroy`. `convert` has
//! a file of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use terrace::{CompactOptions, Db, Problem};

use super::{Run, Session};
use crate::directory::list_files;
use crate::failure::{Failure, Result};
use crate::form::FormArgs;
use crate::opening::{OpenArgs, WriteArgs, require_database};
use crate::output::Output;
use crate::output::columns::{counted, size};
use crate::progress::Progress;
use crate::range::{decode_argument, require_order};

/// Problems of a file that are printed at most: a lost value file is one for each of its values.
const PROBLEMS_PRINTED: usize = 5;

/// The directory of a database in which damaged files are kept.
const LOST: &str = "lost";

#[derive(Args, Debug)]
pub(crate) struct VerifyCommand {
    /// Directory of the database
    db: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

impl VerifyCommand {
    /// The command with the usual options.
    pub(crate) fn on(db: PathBuf, json: bool) -> Self {
        VerifyCommand { db, json, open: OpenArgs::default() }
    }

    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        require_database(&self.db)?;
        let progress = Progress::bytes("verifying", Some(0));
        let report = self.open.while_busy(|| {
            terrace::verify_with(&self.db, &self.open.read_options(), &mut |step| {
                progress.set_of(step.done, step.total);
            })
            .map_err(|error| Failure::of_engine(&self.db, error))
        });
        drop(progress);
        let mut report = report.map_err(Failure::of_check)?;
        report.notes.sort_by(|a, b| a.file.cmp(&b.file));
        if self.json {
            out.json(&json!({
                "clean": report.is_clean(),
                "files": report.files,
                "blocks": report.blocks,
                "entries": report.entries,
                "bytes": report.bytes,
                "log_records": report.log_records,
                "problems": problems_as_json(&report.problems),
                "notes": problems_as_json(&report.notes),
            }))?;
        } else {
            print_problems("", &report.problems, out)?;
            print_problems("note: ", &report.notes, out)?;
            let verdict = match report.problems.len() as u64 {
                0 => "no damage".to_string(),
                count => counted(count, "problem", "problems"),
            };
            let files = counted(report.files, "file", "files");
            let blocks = counted(report.blocks, "block", "blocks");
            let entries = counted(report.entries, "entry", "entries");
            let records = counted(report.log_records, "log record", "log records");
            let read = size(report.bytes);
            out.line(format!(
                "{verdict}: {files}, {blocks}, {entries} in tables, {records}, {read} read"
            ))?;
        }
        if report.is_clean() { Ok(()) } else { Err(Failure::Damage) }
    }
}

fn problems_as_json(problems: &[Problem]) -> serde_json::Value {
    problems
        .iter()
        .map(|problem| json!({ "file": problem.file, "message": problem.message }))
        .collect()
}

/// Prints the first problems of each file, and how many more it has.
fn print_problems(prefix: &str, problems: &[Problem], out: &mut Output) -> Result<()> {
    let mut left = BTreeMap::<&str, usize>::new();
    for problem in problems {
        *left.entry(&problem.file).or_default() += 1;
    }
    let mut printed = BTreeMap::<&str, usize>::new();
    for Problem { file, message, .. } in problems {
        let printed = printed.entry(file).or_default();
        let left = left.entry(file).or_default();
        if *printed < PROBLEMS_PRINTED {
            out.line(format!("{prefix}{file}: {message}"))?;
        } else if *printed == PROBLEMS_PRINTED {
            out.line(format!("{prefix}{file}: and {left} more; --json lists them all"))?;
        }
        *printed += 1;
        *left -= 1;
    }
    Ok(())
}

#[derive(Args, Debug)]
pub(crate) struct RepairCommand {
    /// Directory of the database
    db: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    write: WriteArgs,
}

impl RepairCommand {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        require_database(&self.db)?;
        let lost_logs = lost_logs(&self.db);
        let progress = Progress::spinner("repairing");
        let report = self.write.open_args().while_busy(|| {
            terrace::repair(&self.db, &self.write.options(&self.db))
                .map_err(|error| Failure::of_engine(&self.db, error))
        });
        drop(progress);
        let report = report.map_err(Failure::of_check)?;
        if self.json {
            out.json(&json!({
                "tables": report.tables,
                "logs": report.logs,
                "entries": report.entries,
                "log_entries": report.log_entries,
                "problems": problems_as_json(&report.problems),
                "moved": report.moved,
                "lost_logs": lost_logs,
            }))?;
        } else {
            print_problems("", &report.problems, out)?;
            for name in &report.moved {
                out.line(format!("moved: {name}"))?;
            }
            let entries = counted(report.entries, "entry", "entries");
            let tables = counted(report.tables, "table", "tables");
            let logs = counted(report.logs, "log", "logs");
            // The logs of a healthy database stay; otherwise logs have become
            // tables.
            let in_logs = match report.problems.is_empty() {
                true => format!(" and {} in logs", counted(report.log_entries, "entry", "entries")),
                false => String::new(),
            };
            out.line(format!(
                "read {tables} and {logs}; the database holds {entries} in tables{in_logs}"
            ))?;
            if !lost_logs.is_empty() {
                out.line(format!(
                    "not read: {} in {}, of an earlier open or repair; `terrace help repair` says \
                     how to read them",
                    lost_logs.join(", "),
                    self.db.join(LOST).display()
                ))?;
            }
        }
        // No problem is known to be harmless: without a MANIFEST, for one, nothing tells whether a
        // table is missing, and obsolete tables bring deleted entries back.
        if report.problems.is_empty() { Ok(()) } else { Err(Failure::Damage) }
    }
}

/// The logs that an open or a repair has kept because they are damaged.
fn lost_logs(database: &Path) -> Vec<String> {
    let lost = list_files(&database.join(LOST)).unwrap_or_default().into_iter();
    let logs = lost.map(|file| file.name).filter(|name| is_lost_log(name));
    logs.collect()
}

/// Whether a file of lost/ is a log: `000003.log`, or `000003.log.2` where the name was taken.
fn is_lost_log(name: &str) -> bool {
    let (number, rest) = name.split_once('.').unwrap_or_default();
    let is_log = rest == "log" || rest.starts_with("log.");
    is_log && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[derive(Args, Debug)]
#[command(
    mut_arg("hex", |hex| hex.help("--from and --to are pairs of hexadecimal digits")),
    mut_arg("base64", |base64| base64.help("--from and --to are base64")),
    mut_arg("json", |json| json.help("Print JSON"))
)]
pub(crate) struct CompactArgs {
    /// Begin at this key
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// End after this key
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Rewrite tables that are compact already, too: with another --compression, for one
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    form: FormArgs,
}

impl Run for CompactArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let form = self.form.over(session.form());
        let bound = |name: &str, key: Option<&OsString>| {
            key.map(|key| decode_argument(name, key, form.notation)).transpose()
        };
        let from = bound("--from", self.from.as_ref())?;
        let to = bound("--to", self.to.as_ref())?;
        require_order(from.as_deref(), to.as_deref(), form.notation)?;
        let db = session.db()?;
        let progress = Progress::spinner("compacting");
        let (before, tables) = (Held::by(db), numbers_of_tables(db));
        let options = CompactOptions::new().force(self.force);
        let end = |key: Option<Vec<u8>>| key.map_or(Bound::Unbounded, Bound::Included);
        db.compact_range_with((end(from), end(to)), options)?;
        // The values of value files that are mostly unused now are moved by compactions that the
        // background begins.
        db.wait_idle()?;
        drop(progress);
        let after = Held::by(db);
        if form.json {
            return out.json(&json!({
                "table_bytes_before": before.table_bytes,
                "table_bytes_after": after.table_bytes,
                "value_file_bytes_before": before.value_bytes,
                "value_file_bytes_after": after.value_bytes,
            }));
        }
        let change = |before, after| format!("held {}, now hold {}", size(before), size(after));
        out.line(format!("tables {}", change(before.table_bytes, after.table_bytes)))?;
        if !self.force && !tables.is_empty() && numbers_of_tables(db) == tables {
            out.line("nothing to do: the tables are compact already; --force rewrites them")?;
        }
        if before.value_bytes == 0 && after.value_bytes == 0 {
            return Ok(());
        }
        out.line(format!("value files {}", change(before.value_bytes, after.value_bytes)))
    }
}

fn numbers_of_tables(db: &Db) -> BTreeSet<u64> {
    db.files().iter().map(|file| file.number).collect()
}

/// What the files of a database hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) tables: usize,
    pub(super) table_bytes: u64,
    pub(super) value_files: usize,
    pub(super) value_bytes: u64,
    pub(super) is_extended: bool,
}

impl Held {
    pub(super) fn by(db: &Db) -> Self {
        let (files, stats) = (db.files(), db.stats());
        Held {
            tables: files.len(),
            table_bytes: files.iter().map(|file| file.size).sum(),
            value_files: stats.value_files,
            value_bytes: stats.value_file_bytes,
            is_extended: stats.is_extended,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct CheckpointArgs {
    /// Directory of the copy; absent or empty
    to: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Run for CheckpointArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let db = session.db()?;
        self.check_place(session.path())?;
        let progress = Progress::spinner("copying");
        let report = db.checkpoint(&self.to);
        drop(progress);
        let report = report?;
        if self.json || session.form().json {
            out.json(&json!({
                "tables": report.tables,
                "value_files": report.value_files,
                "linked": report.linked,
                "table_bytes": report.table_bytes,
                "value_bytes": report.value_bytes,
                "sequence": report.sequence,
            }))?;
            return session.require_whole("the copy");
        }
        let mut files = counted(report.tables as u64, "table", "tables");
        if report.value_files > 0 {
            let values = counted(report.value_files as u64, "value file", "value files");
            files = format!("{files} and {values}");
        }
        let to = self.to.display();
        out.line(format!(
            "{to}: {files}, {} of them linked, {}",
            report.linked,
            size(report.table_bytes + report.value_bytes)
        ))?;
        session.require_whole("the copy")
    }
}

impl CheckpointArgs {
    /// Fails if the copy would be a file, or a part of the database.
    fn check_place(&self, database: &Path) -> Result<()> {
        let to = self.to.display();
        if self.to.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            return Err(Failure::other(format!(
                "{to} is a file; a copy needs a directory that is absent or empty"
            )));
        }
        let database = database.canonicalize().map_err(|e| Failure::io("open", database, &e))?;
        // Of a directory that is to be made, those above it that are there.
        let to = std::path::absolute(&self.to).map_err(|e| Failure::io("open", &self.to, &e))?;
        let above = to.ancestors().find_map(|above| above.canonicalize().ok());
        match above.is_some_and(|above| above.starts_with(&database)) {
            true => Err(Failure::other(format!(
                "{} is in the database's own directory; a copy needs one outside of it",
                self.to.display()
            ))),
            false => Ok(()),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DestroyCommand {
    /// Directory of the database
    db: PathBuf,
    /// Yes, remove all of it
    #[arg(long)]
    yes: bool,
}

impl DestroyCommand {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        require_database(&self.db)?;
        if !self.yes {
            let path = self.db.display();
            return Err(Failure::other(format!(
                "this would remove the database {path}; add --yes to do it"
            )));
        }
        terrace::destroy(&self.db, &terrace::Options::new())
            .map_err(|error| Failure::of_engine(&self.db, error))?;
        let left = self
            .db
            .read_dir()
            .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect());
        let left: Vec<_> = left.unwrap_or_default();
        let path = self.db.display();
        if left.is_empty() && self.db.is_dir() {
            out.line(format!("the directory {path} stays, empty"))?;
        }
        if left.iter().any(|name| name == LOST) {
            out.line(format!(
                "{path}/{LOST} stays: damaged files that a recovery or a repair kept"
            ))?;
        }
        if left.iter().any(|name| name != LOST) {
            out.line(format!(
                "the directory {path} stays: it holds files that are not the database's"
            ))?;
        }
        Ok(())
    }
}
