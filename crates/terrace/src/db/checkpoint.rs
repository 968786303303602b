//! Copies of a whole database, made while it is in use.
//!
//! A checkpoint is a directory with the tables and value files of one version, most often under
//! second names; one table more of what was in memory; and a MANIFEST of a single edit. There is no
//! log: what the logs hold is in that table.
//!
//! # Invariants
//! 1. It holds the history up to one sequence number, and nothing later.
//! 2. CURRENT comes last, when all that it leads to is durable: until then no open takes the
//!    directory for a database.
//! 3. Of a checkpoint that failed nothing stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::{ParsedKey, SequenceNumber};
use crate::base::mutation::mutated;
use crate::compaction::drop_rules::DropRules;
use crate::compaction::output::{OutputSettings, OutputWriter};
use crate::env::{Env, FileLock, LockMode};
use crate::iterator::merged::Merged;
use crate::iterator::source::Source;
use crate::version::edit::{NewFile, VersionEdit};
use crate::version::file_meta::FileMeta;
use crate::version::filename;
use crate::version::value_files::UsedValueFile;
use crate::version::version_set::{FileNumbers, ManifestSettings, begin_history};

use crate::db::db_impl::DbImpl;
use crate::db::db_impl::file_copy::{copy_first, try_link};
use crate::db::db_impl::files::output_settings;
use crate::db::open::sync_directories_above;
use crate::db::view::View;

/// The contents of a checkpoint.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// db.put("apple", "red")?;
/// let report = db.checkpoint("/copies/monday")?;
/// println!("{} tables, {} of them shared", report.tables, report.linked);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointReport {
    /// Tables.
    pub tables: usize,
    /// Value files, which tables point into.
    pub value_files: usize,
    /// How many of all of them are files of the database itself, under a second name. The others
    /// are copies.
    pub linked: usize,
    /// Bytes of all tables.
    pub table_bytes: u64,
    /// Bytes of all value files.
    pub value_bytes: u64,
    /// The sequence number of the last write that it holds.
    pub sequence: u64,
}

/// See [`Db::checkpoint`](crate::db::db::Db::checkpoint).
pub(super) fn checkpoint(core: &DbImpl, to: &Path) -> Result<CheckpointReport> {
    core.files.check_open()?;
    core.files.check_own()?;
    let _open = core.background.put_close_off()?;
    let mut place = Place::take(core, to)?;
    // Between writes: a load is part of a view a moment before reads see it.
    let (view, sequence) = {
        let _no_write = core.writes.commit.lock();
        (core.views.current.load_full(), core.views.visible_sequence())
    };
    let result = fill(core, &mut place, &view, sequence);
    drop(view);
    // Files that only the view kept.
    core.background.purge_later();
    let report = result?;
    place.keep();
    let CheckpointReport { tables, value_files, linked, table_bytes, .. } = report;
    let to = to.display();
    core.files.log(format!(
        "checkpoint {to}: {tables} tables of {table_bytes} bytes and {value_files} value files, \
         {linked} of them linked"
    ));
    Ok(report)
}

fn fill(
    core: &DbImpl,
    place: &mut Place<'_>,
    view: &View,
    sequence: SequenceNumber,
) -> Result<CheckpointReport> {
    let mut report = CheckpointReport { sequence, ..CheckpointReport::default() };
    // Value files of the view that no output appends to right now will not grow any more.
    core.files.flushed_values.seal();
    core.files.compacted_values.seal();
    let mut tables = Vec::new();
    for (level, file) in view.version.files() {
        let linked = match second_file(core, place, file) {
            // A range delete has given it another name since.
            Err(error) if error.kind() == ErrorKind::NotFound => second_file(core, place, file),
            linked => linked,
        };
        report.linked += usize::from(linked?);
        tables.push(file.record(level));
    }
    for used in view.version.values.used() {
        let (size, name) = (used.size, filename::values(used.file.number));
        let (from, to) = (core.files.path(&name), place.add(&name));
        check_size(core, &from, size, |found| found >= size)?;
        // A link would show what is appended later.
        let linked = match used.file.is_sealed() || mutated("checkpoint-growth") {
            true => put(core, &from, &to, size)?,
            false => copy_first(&core.files, &from, &to, Some(size)).map(|()| false)?,
        };
        report.value_files += 1;
        report.value_bytes += size;
        report.linked += usize::from(linked);
    }
    // Memtables are newer than any table, and within level 0 the greatest number is the newest.
    let numbers = Arc::new(FileNumbers::new(core.files.numbers.peek()));
    tables.extend(write_memory(core, place, view, sequence, &numbers)?);
    report.tables = tables.len();
    report.table_bytes = tables.iter().map(|file| file.size).sum();

    let manifest = numbers.take();
    place.add(&filename::manifest(manifest));
    place.add(&filename::temp(manifest));
    place.add(filename::CURRENT);
    let settings = ManifestSettings {
        env: core.files.env.clone(),
        dir: place.dir.to_owned(),
        order: core.files.order.clone(),
        file_mode: core.files.options.file_mode,
        max_manifest_size: core.files.options.max_manifest_size,
    };
    let edit = VersionEdit {
        next_file_number: Some(numbers.peek()),
        last_sequence: Some(sequence),
        new_files: tables,
        new_value_files: view.version.values.used().map(UsedValueFile::record).collect(),
        ..VersionEdit::default()
    };
    sync_directories_above(core.files.env.as_ref(), place.dir)?;
    begin_history(&settings, manifest, edit)?;
    Ok(report)
}

/// Puts a table into the copy. Returns whether that is a link.
fn second_file(core: &DbImpl, place: &mut Place<'_>, file: &FileMeta) -> Result<bool> {
    let from = table_path(core, file.number)?;
    check_size(core, &from, file.size, |found| found == file.size)?;
    put(core, &from, &place.add(&filename::table(file.number)), file.size)
}

fn check_size(
    core: &DbImpl,
    path: &Path,
    named: u64,
    fits: impl FnOnce(u64) -> bool,
) -> Result<()> {
    let size = core.files.env.file_size(path)?;
    if !fits(size) {
        let path = path.display();
        return Err(Error::corruption(format!(
            "{path}: is {size} bytes long, the MANIFEST says {named}"
        )));
    }
    Ok(())
}

/// Puts the first `length` bytes of a file into the copy, or all of it as a link. Returns whether
/// that is a link.
fn put(core: &DbImpl, from: &Path, to: &Path, length: u64) -> Result<bool> {
    match try_link(&core.files, from, to) {
        Some(()) => Ok(true),
        None => copy_first(&core.files, from, to, Some(length)).map(|()| false),
    }
}

/// Where the file of a table is.
fn table_path(core: &DbImpl, number: u64) -> Result<PathBuf> {
    for name in filename::names_of_table(number) {
        let path = core.files.path(&name);
        if core.files.env.exists(&path)? {
            return Ok(path);
        }
    }
    Ok(core.files.path(&filename::table(number)))
}

/// Writes what the memtables hold up to `sequence` to one table, if that is anything.
fn write_memory(
    core: &DbImpl,
    place: &mut Place<'_>,
    view: &View,
    sequence: SequenceNumber,
    numbers: &Arc<FileNumbers>,
) -> Result<Option<NewFile>> {
    let memtables = std::iter::once(&view.memtable).chain(&view.immutables);
    let mut merged = Merged::new(
        memtables.map(|table| Source::Memtable(table.iter())).collect(),
        &core.files.order,
    );
    // Nobody reads the copy at an earlier moment.
    let mut rules = DropRules::new(core.files.order.keys.clone(), Vec::new());
    place.add(&filename::table(numbers.peek()));
    // Values go to value files when this table is compacted.
    let settings = OutputSettings {
        values: None,
        ..output_settings(&core.files.options, place.dir, &core.files.order, numbers, 0)
    };
    let mut writer = OutputWriter::new(settings, 0);
    merged.seek_to_first();
    while merged.valid() {
        let key = merged.key();
        let entry = ParsedKey::parse(key)
            .ok_or_else(|| Error::corruption("a memtable holds a malformed key"))?;
        let is_later = entry.sequence > sequence && !mutated("checkpoint-sequence");
        if !is_later && rules.keep(&entry, |_| false) {
            writer.add(key, merged.value())?;
        }
        merged.next();
    }
    merged.status()?;
    let mut tables = writer.finish()?;
    Ok(tables.pop().map(|table| table.file))
}

/// The directory that a checkpoint is made in. Dropped, all that was put there is gone, unless it
/// is to be kept.
struct Place<'a> {
    env: &'a dyn Env,
    dir: &'a Path,
    is_new: bool,
    /// Files that are there or may be.
    files: Vec<PathBuf>,
    /// Keeps others from making a database there meanwhile.
    lock: Option<Box<dyn FileLock>>,
    keeps: bool,
}

impl<'a> Place<'a> {
    fn take(core: &'a DbImpl, dir: &'a Path) -> Result<Self> {
        let env = core.files.env.as_ref();
        let is_new = !env.exists(dir)?;
        let mut place = Place { env, dir, is_new, files: Vec::new(), lock: None, keeps: false };
        env.create_dir(dir, core.files.options.dir_mode)?;
        place.check_empty()?;
        // If that fails the file is another program's; the directory goes only if it is empty.
        place.lock = Some(env.lock(&dir.join(filename::LOCK), LockMode::Exclusive)?);
        place.add(filename::LOCK);
        // Another program may have been here in between.
        let checked = place.check_empty();
        place.keeps =
            checked.as_ref().is_err_and(|error| error.kind() == ErrorKind::InvalidArgument);
        checked?;
        Ok(place)
    }

    fn check_empty(&self) -> Result<()> {
        match self.env.list(self.dir)?.iter().find(|name| *name != filename::LOCK) {
            None => Ok(()),
            Some(name) => {
                let message = format!("{}: not empty: {name} is there", self.dir.display());
                Err(Error::invalid_argument(message))
            }
        }
    }

    /// Where a file of this name goes.
    fn add(&mut self, name: &str) -> PathBuf {
        let path = self.dir.join(name);
        self.files.push(path.clone());
        path
    }

    fn keep(mut self) {
        self.keeps = true;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.keeps {
            return;
        }
        // CURRENT, the last, first: what is left if this fails is no database.
        for path in self.files.iter().rev() {
            let removed = self.env.remove(path);
            if path.ends_with(filename::CURRENT)
                && removed.is_err_and(|error| error.kind() != ErrorKind::NotFound)
            {
                return;
            }
        }
        self.lock = None;
        if self.is_new {
            let _ = self.env.remove_dir(self.dir);
        }
    }
}
