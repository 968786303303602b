//! Takes tables into the database that were built outside of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::base::internal_key::user_key;
use crate::base::mutation::mutated;
use crate::compaction::output::Output;
use crate::db::check::table::{TableSummary, check_table};
use crate::db::db::Db;
use crate::db::db_impl::DbImpl;
use crate::env::ReadAccess;
use crate::iterator::merging::MergingIter;
use crate::iterator::source::Source;
use crate::table::Table;
use crate::version::edit::NewFile;
use crate::version::file_meta::Contents;
use crate::version::filename;

use super::load::{BulkLoad, BulkLoadOptions, LoadReport};
use super::staged::Staged;

/// Larger files are rewritten as tables of the usual size.
const LARGEST_TAKEN: u64 = 1 << 30;

/// How tables are taken in.
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

/// See [`Db::ingest`].
pub(in crate::db) fn ingest(
    db: &Db,
    paths: &[&Path],
    options: IngestOptions,
) -> Result<LoadReport> {
    let core = db.core();
    core.check_writable()?;
    let tables = paths.iter().map(|path| core.open_external(path)).collect::<Result<Vec<_>>>()?;
    if tables.is_empty() {
        return Ok(LoadReport::default());
    }
    let report = match core.take_as_they_are(&tables, options)? {
        Some(report) => report,
        None => rewrite(db, &tables)?,
    };
    if options.move_files {
        tables.iter().for_each(|external| core.give_up(&external.path));
    }
    Ok(report)
}

impl DbImpl {
    /// Opens a table and reads all of it.
    fn open_external(&self, path: &Path) -> Result<External> {
        let name = path.display().to_string();
        if self.is_own(path) {
            return Err(Error::invalid_argument(format!("{name}: a file of the database itself")));
        }
        let file = self.env.open_random(path, ReadAccess::Mapped)?;
        let table = Arc::new(Table::open(file, name.clone(), self.tables.read_settings().clone())?);
        let Some(comparator) = table.comparator() else {
            return Err(Error::invalid_argument(format!(
                "{name}: not a table that a TableWriter made"
            )));
        };
        if comparator != self.order.keys.name_bytes() {
            let (comparator, wanted) =
                (String::from_utf8_lossy(&comparator), self.order.keys.name());
            let message =
                format!("{name}: ordered by comparator {comparator}, the database's is {wanted}");
            return Err(Error::invalid_argument(message));
        }
        let summary = check_table(&table, &self.order, None, &mut |_| ())?;
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
    fn is_own(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let is_here = || {
            let dir = path.parent().unwrap_or(path);
            self.env.true_path(dir) == self.env.true_path(&self.dir)
        };
        name.is_some_and(|name| filename::parse(name).is_some()) && is_here()
    }

    /// Makes the files themselves part of the database, if that is legal: their entries have the
    /// sequence number 0 and count as older than everything that has another. `None`, and nothing
    /// has happened, if it is not.
    fn take_as_they_are(
        self: &Arc<Self>,
        tables: &[External],
        options: IngestOptions,
    ) -> Result<Option<LoadReport>> {
        let mut ascending: Vec<_> = tables.iter().collect();
        ascending.sort_by(|a, b| self.order.compare(&a.summary.smallest, &b.summary.smallest));
        let keys = &self.order.keys;
        let disjoint = ascending.windows(2).all(|pair| are_apart(keys, pair[0], pair[1]));
        let fits =
            disjoint && ascending.iter().all(|table| table.table.file_size() <= LARGEST_TAKEN);
        // The decision falls when the tables are installed. This check saves useless copies.
        if !fits || !self.may_be_oldest(ascending.iter().map(|external| range_of(external))) {
            return Ok(None);
        }
        let numbers = self.reserve_numbers(ascending.len(), options)?;
        let mut staged = Vec::new();
        let outcome = ascending
            .iter()
            .zip(numbers)
            .try_for_each(|(external, number)| {
                self.stage(external, number, options).map(|table| staged.push(table))
            })
            .and_then(|()| {
                let report = LoadReport::of(&staged, 0);
                let bytes = tables.iter().filter_map(|external| external.table.properties());
                let bytes = bytes
                    .map(|properties| properties.raw_key_bytes + properties.raw_value_bytes)
                    .sum();
                Ok(self.install_oldest(&mut staged, bytes)?.then_some(report))
            });
        // Empty if they were installed.
        self.discard(&staged);
        outcome
    }

    /// File numbers for temporary names of `count` tables. Those of links are durable: LevelDB
    /// creates `N.dbtmp` over what has that name and so would write into the caller's file if it
    /// found a link under a number that it takes for unused.
    fn reserve_numbers(&self, count: usize, options: IngestOptions) -> Result<Vec<u64>> {
        let _open = self.stay_open()?;
        let numbers = (0..count).map(|_| self.numbers.take()).collect();
        if options.move_files {
            self.versions.lock().record_numbers()?;
        }
        Ok(numbers)
    }

    /// Puts a table into the database's directory, under a temporary name.
    fn stage(&self, external: &External, number: u64, options: IngestOptions) -> Result<Staged> {
        let _open = self.stay_open()?;
        let path = self.path(&filename::temp(number));
        let put = if options.move_files { Self::link_or_copy } else { Self::copy_file };
        if let Err(error) = put(self, &external.path, &path) {
            // A leftover is harmless: the next open removes it.
            let _ = self.env.remove(&path);
            return Err(error);
        }
        if options.move_files && mutated("moved-after-edit") {
            self.give_up(&external.path);
        }
        let TableSummary { smallest, largest, .. } = &external.summary;
        let file = NewFile {
            level: 0,
            number,
            size: external.table.file_size(),
            smallest: smallest.clone(),
            largest: largest.clone(),
        };
        let contents = external.table.properties().map(Contents::from).unwrap_or_default();
        Ok(Staged { table: Output { file, contents }, path })
    }

    /// Gives a file a second name, or copies it where that cannot be. Durable up to the name.
    fn link_or_copy(&self, from: &Path, to: &Path) -> Result<()> {
        if self.try_link(from, to).is_none() {
            // A copy needs less. What is really wrong fails it too.
            return self.copy_file(from, to);
        }
        // Its writer need not have synced it.
        let synced = || {
            let mut file = self.env.open_append(to)?;
            if !mutated("moved-table-sync") {
                file.sync()?;
            }
            file.close()
        };
        synced().or_else(|_| {
            let _ = self.env.remove(to);
            self.copy_file(from, to)
        })
    }

    /// Removes a file whose entries are durably in the database. They are, whether it goes or not:
    /// no error.
    fn give_up(&self, path: &Path) {
        if let Err(error) = self.env.remove(path) {
            self.log(format!("could not remove a table that was taken in: {error}"));
        }
    }
}

fn range_of(external: &External) -> (&[u8], &[u8]) {
    (user_key(&external.summary.smallest), user_key(&external.summary.largest))
}

fn are_apart(keys: &KeyOrder, first: &External, second: &External) -> bool {
    keys.compare(range_of(first).1, range_of(second).0).is_lt()
}

/// Loads the entries of `tables`, of which the later ones count.
fn rewrite(db: &Db, tables: &[External]) -> Result<LoadReport> {
    let order = &db.core().order;
    let sources =
        tables.iter().rev().map(|external| Source::Table(external.table.iter(false))).collect();
    let mut merged = MergingIter::new(sources, order.clone());
    let mut load = BulkLoad::new(db, BulkLoadOptions::new())?;
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
