//! The directory of an open database: how its files are named, written and removed, and whether
//! this process may use them.
//!
//! Any thread. Everything but `closed`, `lock`, `catalogue` and the value files that grow stays
//! as the open made it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::InternalOrder;
use crate::base::locks::{AtomicBool, Mutex};
use crate::base::mutation::mutated;
use crate::cache::hand_on;
use crate::compaction::growing_values::GrowingValueFiles;
use crate::compaction::output::{OutputSettings, ValueLogSettings};
use crate::env::{Env, FileLock, Logger};
use crate::table::{BlockCache, TableOrder, TableSettings};
use crate::version::file_meta::ObsoleteFiles;
use crate::version::filename;
use crate::version::table_set::TableSet;
use crate::version::value_reader::ValueReader;
use crate::version::version_set::FileNumbers;

use crate::db::options::Options;
use crate::db::options::events::Event;
use crate::db::view::catalogue::{Catalogue, entry};

/// See the [module](self).
pub(in crate::db) struct Files {
    pub(in crate::db) options: Options,
    pub(in crate::db) env: Arc<dyn Env>,
    pub(in crate::db) dir: PathBuf,
    pub(in crate::db) order: InternalOrder,
    pub(in crate::db) cache: BlockCache,
    pub(in crate::db) tables: Arc<TableSet>,
    pub(in crate::db) values: Arc<ValueReader>,
    /// Those that the next flush appends to.
    pub(in crate::db) flushed_values: Arc<GrowingValueFiles>,
    /// Those that the next compaction appends to.
    pub(in crate::db) compacted_values: Arc<GrowingValueFiles>,
    pub(in crate::db) numbers: Arc<FileNumbers>,
    pub(in crate::db) obsolete_files: Arc<ObsoleteFiles>,
    pub(in crate::db) logger: Arc<dyn Logger>,
    pub(in crate::db) closed: AtomicBool,
    pub(in crate::db) lock: Mutex<Option<Box<dyn FileLock>>>,
    /// The process that opened the database.
    pub(in crate::db) generation: u64,
    pub(in crate::db) catalogue: Catalogue,
}

/// Does `work`; once more if it ran out of descriptors and `spare` has given some back.
pub(in crate::db) fn retry_with_spared<T>(
    mut work: impl FnMut() -> Result<T>,
    spare: impl FnOnce() -> bool,
) -> Result<T> {
    match work() {
        Err(error) if error.is_out_of_descriptors() && spare() => work(),
        result => result,
    }
}

impl Files {
    pub(in crate::db) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(in crate::db) fn log(&self, message: impl AsRef<str>) {
        self.logger.log(message.as_ref());
    }

    pub(in crate::db) fn tell(&self, event: &Event) {
        if let Some(listener) = &self.options.listener {
            listener.on_event(event);
        }
    }

    #[inline]
    pub(in crate::db) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::closed(format!("{}: the database is closed", self.dir.display())));
        }
        Ok(())
    }

    /// Whether this process got the database from its parent, by a fork: the files are the
    /// parent's, and locks may be held by threads that are not here.
    #[inline]
    pub(in crate::db) fn is_inherited(&self) -> bool {
        self.env.process_generation() != self.generation && !mutated("fork")
    }

    /// Whether background work is another process's: in a fork, where reads must not ask for it
    /// either, and the state's lock may be held by a thread that is not here.
    #[inline]
    pub(in crate::db) fn works_elsewhere(&self) -> bool {
        self.is_inherited() && !mutated("work-of-a-fork")
    }

    /// Whether this process may change the database.
    #[inline]
    pub(in crate::db) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.options.read_only {
            return Err(Error::not_supported(format!("{}: opened read-only", self.dir.display())));
        }
        self.check_own()
    }

    /// Whether it was this process that opened the database.
    #[inline]
    pub(in crate::db) fn check_own(&self) -> Result<()> {
        if self.is_inherited() {
            let message =
                "this process is a fork of the one that opened the database; open it again here";
            return Err(Error::not_supported(format!("{}: {message}", self.dir.display())));
        }
        Ok(())
    }

    pub(in crate::db) fn closed_error(&self) -> Error {
        self.check_open()
            .err()
            .unwrap_or_else(|| Error::not_supported("the database takes no writes"))
    }

    /// Does `work`; and once more if it ran out of descriptors that tables can spare.
    pub(in crate::db) fn sparing<T>(&self, work: impl FnMut() -> Result<T>) -> Result<T> {
        retry_with_spared(work, || self.tables.spare_descriptors())
    }

    /// How tables of `level` are written.
    pub(in crate::db) fn output_settings(&self, level: usize) -> OutputSettings {
        let settings = output_settings(&self.options, &self.dir, &self.order, &self.numbers, level);
        let prefixes = self.catalogue.known().map(|known| Arc::clone(&known));
        OutputSettings { table: TableSettings { prefixes, ..settings.table }, ..settings }
    }

    /// Removes obsolete tables and value files.
    pub(in crate::db) fn purge(&self) {
        if self.options.read_only {
            return;
        }
        let numbers = self.obsolete_files.take();
        if !numbers.is_empty() {
            // Lest what they took closes tables that are read.
            self.tables.forget_gone();
        }
        let mut left = Vec::new();
        for number in numbers {
            let names = filename::names_of_table(number).into_iter();
            let removed = names.chain([filename::values(number)]).find_map(|name| {
                match self.env.remove(&self.path(&name)) {
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    result => Some(result),
                }
            });
            match removed {
                Some(Err(_)) => left.push(number),
                _ => self.obsolete_files.removed(number),
            }
        }
        if !left.is_empty() {
            self.obsolete_files.put_back(left);
        }
        // Readers that were pinned when a table went away left its blocks to be dropped.
        hand_on();
    }
}

pub(in crate::db) fn output_settings(
    options: &Options,
    dir: &Path,
    order: &InternalOrder,
    numbers: &Arc<FileNumbers>,
    level: usize,
) -> OutputSettings {
    OutputSettings {
        env: options.env.clone(),
        dir: dir.to_owned(),
        numbers: numbers.clone(),
        first_number: None,
        file_mode: options.file_mode,
        limit: None,
        table: table_settings(options, order.keys.clone(), level),
        values: options
            .value_log
            .map(|threshold| ValueLogSettings { threshold, spared: entry::PREFIX }),
        growing: None,
    }
}

/// How a table of `level` is written. Without a dictionary: that is for tables with nothing below.
pub(in crate::db) fn table_settings(
    options: &Options,
    keys: KeyOrder,
    level: usize,
) -> TableSettings {
    TableSettings {
        order: TableOrder::internal(keys),
        block_size: options.block_size,
        restart_interval: options.block_restart_interval,
        compression: options.compression_at(level),
        dictionary: None,
        filter_policy: options.filter_policy.clone(),
        full_filter_bits: options.table_filter_bits,
        is_above_more: false,
        bytes_per_sync: options.bytes_per_sync,
        comparator: None,
        prefixes: None,
    }
}
