//! Takes tables into the database that were built outside of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::base::internal_key::user_key;
use crate::base::mutation::mutated;
use crate::compaction::output::Output;
use crate::db::check::table::{TableSummary, Values, check_table};
use crate::db::db_impl::DbImpl;
use crate::db::db_impl::file_copy::{copy_file, try_link};
use crate::db::db_impl::files::Files;
use crate::db::handle::Handle;
use crate::env::ReadAccess;
use crate::iterator::merging::MergingIter;
use crate::iterator::source::Source;
use crate::table::Table;
use crate::version::edit::NewFile;
use crate::version::file_meta::Contents;
use crate::version::filename;
use crate::version::value_files::ValueFileMap;

use super::install::{install_oldest, may_be_oldest};
use super::load::{BulkLoad, BulkLoadOptions, LoadReport};
use crate::db::staged::{Staged, discard};

/// Larger files are rewritten as tables of the usual size.
const LARGEST_TAKEN: u64 = 1 << 30;

/// How tables are taken in.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true);
/// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.clone())?;
/// # let mut table = TableWriter::create("/fruit.ldb", &options)?;
/// # table.put("apple", "red")?;
/// # table.finish()?;
/// // The table becomes a file of the database, without a copy.
/// db.ingest_with(&["/fruit.ldb"], IngestOptions::new().move_files(true))?;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct IngestOptions {
    move_files: bool,
}

impl IngestOptions {
    /// The files stay where they are.
    pub fn new() -> Self {
        Self::default()
    }

    /// Move the files into the database instead of copying them.
    ///
    /// A file that can stay as it is gets a second name in the database's directory, by a hard
    /// link, or is copied where that cannot be: from another file system, or without the right. The
    /// files are removed when the database has their entries durably. So after an error they are
    /// all there; after a crash each of them is, unchanged, or its entries are in the database, or
    /// both, whichever engine opens the database next.
    ///
    /// A file that cannot be removed stays. That is no error; the database's log says it. It may be
    /// another name of a table in use then: remove it, but never write to it. Default: false.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.clone())?;
    /// # let mut table = TableWriter::create("/fruit.ldb", &options)?;
    /// # table.put("apple", "red")?;
    /// # table.finish()?;
    /// let moved = IngestOptions::new().move_files(true);
    /// db.ingest_with(&["/fruit.ldb"], moved)?; // and /fruit.ldb is gone
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn move_files(mut self, move_files: bool) -> Self {
        self.move_files = move_files;
        self
    }
}

/// A table to be taken in, read once and found in order.
struct External {
    path: PathBuf,
    table: Arc<Table>,
    summary: TableSummary,
}

/// See [`Db::ingest`](crate::Db::ingest).
pub(in crate::db) fn ingest(
    handle: &Arc<Handle>,
    paths: &[&Path],
    options: IngestOptions,
) -> Result<LoadReport> {
    let core = handle.core();
    core.files.check_writable()?;
    let tables = paths.iter().map(|path| open_external(core, path)).collect::<Result<Vec<_>>>()?;
    if tables.is_empty() {
        return Ok(LoadReport::default());
    }
    let report = match take_as_they_are(core, &tables, options)? {
        Some(report) => report,
        None => rewrite(handle, &tables)?,
    };
    if options.move_files {
        tables.iter().for_each(|external| give_up(core, &external.path));
    }
    Ok(report)
}

/// Opens a table and reads all of it.
fn open_external(core: &DbImpl, path: &Path) -> Result<External> {
    let name = path.display().to_string();
    if is_own(core, path) {
        return Err(Error::invalid_argument(format!("{name}: a file of the database itself")));
    }
    // Another program may shorten the file meanwhile, which would end this one where it is mapped.
    let file = core.files.env.open_random(path, ReadAccess::Pread)?;
    let table =
        Arc::new(Table::open(file, name.clone(), core.files.tables.read_settings().clone())?);
    let Some(comparator) = table.comparator() else {
        return Err(Error::invalid_argument(format!(
            "{name}: not a table that a TableWriter made"
        )));
    };
    if comparator != core.files.order.keys.name_bytes() {
        let (comparator, wanted) =
            (String::from_utf8_lossy(&comparator), core.files.order.keys.name());
        let message =
            format!("{name}: ordered by comparator {comparator}, the database's is {wanted}");
        return Err(Error::invalid_argument(message));
    }
    // One that points into value files is refused: they are another database's.
    let values = Values { reader: &core.files.values, files: &ValueFileMap::default() };
    let summary = check_table(&table, &core.files.order, values, None, &mut |_| ())?;
    if let Some(message) = summary.messages.first() {
        return Err(Error::corruption(format!("{name}: {message}")));
    }
    if summary.largest_sequence != 0
        || table.properties().is_none_or(|properties| properties.deletions != 0)
    {
        return Err(Error::invalid_argument(format!(
            "{name}: not a table that a TableWriter made"
        )));
    }
    Ok(External { path: path.to_owned(), table, summary })
}

/// Whether a path names a file of the database's own, which moving would take away from it.
fn is_own(core: &DbImpl, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_here = || {
        let dir = path.parent().unwrap_or(path);
        core.files.env.true_path(dir) == core.files.env.true_path(&core.files.dir)
    };
    name.is_some_and(|name| filename::parse(name).is_some()) && is_here()
}

/// Makes the files themselves part of the database, if that is legal: their entries have the
/// sequence number 0 and count as older than everything that has another. `None`, and nothing
/// has happened, if it is not.
fn take_as_they_are(
    core: &DbImpl,
    tables: &[External],
    options: IngestOptions,
) -> Result<Option<LoadReport>> {
    let mut ascending: Vec<_> = tables.iter().collect();
    ascending.sort_by(|a, b| core.files.order.compare(&a.summary.smallest, &b.summary.smallest));
    let keys = &core.files.order.keys;
    let disjoint = ascending.windows(2).all(|pair| are_apart(keys, pair[0], pair[1]));
    let fits = disjoint && ascending.iter().all(|table| table.table.file_size() <= LARGEST_TAKEN);
    // The decision falls when the tables are installed. This check saves useless copies.
    if !fits || !may_be_oldest(core, ascending.iter().map(|external| range_of(external))) {
        return Ok(None);
    }
    let numbers = reserve_numbers(core, ascending.len(), options)?;
    let mut staged = Vec::new();
    let outcome = ascending
        .iter()
        .zip(numbers)
        .try_for_each(|(external, number)| {
            stage(core, external, number, options).map(|table| staged.push(table))
        })
        .and_then(|()| {
            let report = LoadReport::of(&staged, 0);
            let bytes = tables.iter().filter_map(|external| external.table.properties());
            let bytes = bytes.fold(0_u64, |sum, properties| {
                sum.saturating_add(properties.raw_key_bytes)
                    .saturating_add(properties.raw_value_bytes)
            });
            Ok(install_oldest(core, &mut staged, bytes)?.then_some(report))
        });
    // Empty if they were installed.
    discard(core, &staged);
    outcome
}

/// File numbers for temporary names of `count` tables. Those of links are durable: LevelDB
/// creates `N.dbtmp` over what has that name and so would write into the caller's file if it
/// found a link under a number that it takes for unused.
fn reserve_numbers(core: &DbImpl, count: usize, options: IngestOptions) -> Result<Vec<u64>> {
    let _open = core.background.stay_open()?;
    let numbers = (0..count).map(|_| core.files.numbers.take()).collect();
    if options.move_files {
        core.background.versions.lock().record_numbers()?;
    }
    Ok(numbers)
}

/// Puts a table into the database's directory, under a temporary name.
fn stage(
    core: &DbImpl,
    external: &External,
    number: u64,
    options: IngestOptions,
) -> Result<Staged> {
    let _open = core.background.stay_open()?;
    let path = core.files.path(&filename::temp(number));
    let put = if options.move_files { link_or_copy } else { copy_file };
    if let Err(error) = put(&core.files, &external.path, &path) {
        // A leftover is harmless: the next open removes it.
        let _ = core.files.env.remove(&path);
        return Err(error);
    }
    if options.move_files && mutated("moved-after-edit") {
        give_up(core, &external.path);
    }
    let TableSummary { smallest, largest, .. } = &external.summary;
    let file = NewFile {
        level: 0,
        number,
        size: external.table.file_size(),
        smallest: smallest.clone(),
        largest: largest.clone(),
        values: Vec::new(),
        codecs: external.summary.codecs,
    };
    let contents = external.table.properties().map(Contents::from).unwrap_or_default();
    Ok(Staged { table: Output { file, contents, value_files: Vec::new() }, path })
}

/// Gives a file a second name, or copies it where that cannot be. Durable up to the name.
fn link_or_copy(files: &Files, from: &Path, to: &Path) -> Result<()> {
    if try_link(files, from, to).is_none() {
        // A copy needs less, and fails too where the file is damaged.
        return copy_file(files, from, to);
    }
    // Its writer need not have synced it.
    let synced = || {
        let mut file = files.env.open_append(to)?;
        if !mutated("moved-table-sync") {
            file.sync()?;
        }
        file.close()
    };
    synced().or_else(|_| {
        let _ = files.env.remove(to);
        copy_file(files, from, to)
    })
}

/// Removes a file whose entries are durably in the database. They are, whether it goes or not:
/// no error.
fn give_up(core: &DbImpl, path: &Path) {
    if let Err(error) = core.files.env.remove(path) {
        core.files.log(format!("could not remove a table that was taken in: {error}"));
    }
}

fn range_of(external: &External) -> (&[u8], &[u8]) {
    (user_key(&external.summary.smallest), user_key(&external.summary.largest))
}

fn are_apart(keys: &KeyOrder, first: &External, second: &External) -> bool {
    keys.compare(range_of(first).1, range_of(second).0).is_lt()
}

/// Loads the entries of `tables`, of which the later ones count.
fn rewrite(handle: &Arc<Handle>, tables: &[External]) -> Result<LoadReport> {
    let order = &handle.core().files.order;
    let sources =
        tables.iter().rev().map(|external| Source::Table(external.table.iter(false))).collect();
    let mut merged = MergingIter::new(sources, order.clone());
    let mut load = BulkLoad::new(handle, BulkLoadOptions::new())?;
    let mut last: Option<Vec<u8>> = None;
    merged.seek_to_first();
    while merged.valid() {
        let key = user_key(merged.key());
        if last.as_ref().is_none_or(|last| order.keys.compare(last, key).is_ne()) {
            load.put(key, merged.value())?;
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
        }
        merged.next();
    }
    merged.status()?;
    load.finish()
}
