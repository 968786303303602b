//! Writes tables of what can still be read: of damaged tables, of logs, and of many tables merged
//! into one run.
//!
//! One thread. Memory is bounded by a memtable, and by one block for each of the tables that
//! overlap at one key.
//!
//! # Invariants
//! 1. Entries keep their sequence numbers, and all versions and tombstones are kept: which one is
//!    the newest is decided by the sequence number alone.
//! 2. Of what the tables point at in a value file a merge keeps no more than the file can hold: where
//!    entries share values, the first ones by key.
//! 3. No user key is split over two outputs of one call, except by [`Salvage::rewrite`] where the
//!    keys of its input do not ascend.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, InternalOrder, MAX_SEQUENCE, ParsedKey, user_key};
use crate::base::value_pointer::{ValuePointer, is_pointer};
use crate::compaction::output::{Output, OutputSettings, OutputWriter};
use crate::env::ReadAccess;
use crate::iterator::level::LevelIter;
use crate::iterator::merged::Merged;
use crate::iterator::source::Source;
use crate::memtable::{MemTable, MemTableWriter};
use crate::table::{ScanItem, Table, TableOrder, rescue};
use crate::version::edit::NewFile;
use crate::version::file_meta::FileMeta;
use crate::version::filename;
use crate::version::level::Level;
use crate::version::table_set::TableSet;
use crate::version::version_set::FileNumbers;
use crate::write::batch_view::{BatchView, Operation};

use crate::db::check::log::{Finding, LogCheck};
use crate::db::check::table::Values;
use crate::db::db_impl::files::output_settings;
use crate::db::io_error::{is_damage, retry_once};
use crate::db::options::Options;

/// Runs merged at once at most: each keeps a table open.
const MAX_RUNS: usize = 64;

/// See the [module](self).
pub(in crate::db) struct Salvage<'a> {
    pub(in crate::db) options: &'a Options,
    pub(in crate::db) dir: &'a Path,
    pub(in crate::db) order: &'a InternalOrder,
    pub(in crate::db) numbers: &'a Arc<FileNumbers>,
    pub(in crate::db) tables: &'a Arc<TableSet>,
    pub(in crate::db) values: Values<'a>,
    /// Entries that merges have left out, because others point at their values.
    pub(in crate::db) overlapping: Cell<u64>,
}

impl Salvage<'_> {
    /// The entries of the table `number` that can be read, as tables of `level`.
    pub(in crate::db) fn rewrite(&self, number: u64, level: usize) -> Result<Vec<Output>> {
        let (file, name) = self.tables.open_file(number)?;
        let mut run = self.run(level);
        // Entries behind a greater key go to tables of their own.
        let mut stragglers = self.memtable();
        let mut outputs = Vec::new();
        let mut take = |key: &[u8], value: &[u8]| {
            let Some(entry) = ParsedKey::parse(key) else { return Ok(()) };
            if entry.kind == EntryKind::Pointer && self.values.problem(value)?.is_some() {
                return Ok(());
            }
            if run.takes(key) {
                return run.add(key, value);
            }
            stragglers.insert(entry.sequence, entry.kind, entry.user_key, value);
            self.flush_if_full(&mut stragglers, level, &mut outputs)
        };
        match retry_once(|| {
            Table::open(file.clone(), name.clone(), self.tables.read_settings().clone())
        }) {
            Ok(table) => table.scan(&mut |item| match item {
                ScanItem::Entry { key, value, .. } => take(key, value),
                ScanItem::Damage { error, .. } if !is_damage(&error) => Err(error),
                ScanItem::Block { .. } | ScanItem::Damage { .. } => Ok(()),
            })?,
            Err(error) if is_damage(&error) => {
                let order = TableOrder::internal(self.order.keys.clone());
                match rescue(&file, &name, &order, &mut |_, key, value| take(key, value)) {
                    Err(error) if is_damage(&error) => {}
                    rescued => rescued?,
                }
            }
            Err(error) => return Err(error),
        }
        outputs.extend(run.finish()?);
        outputs.extend(self.flush(&stragglers, level)?);
        Ok(outputs)
    }

    /// Every whole batch of `logs`, as tables of level 0 with ascending numbers. There were so many
    /// `records` when they were read before.
    pub(in crate::db) fn logs(&self, logs: &[u64], records: u64) -> Result<Vec<Output>> {
        let mut memtable = self.memtable();
        let mut outputs = Vec::new();
        let mut check = LogCheck::new(None);
        for &number in logs {
            let name = filename::log(number);
            let file = self.options.env.open_random(&self.dir.join(&name), ReadAccess::Pread)?;
            check.read(number, file, &name, &mut |finding| match finding {
                Finding::Batch(batch) => {
                    insert(&mut memtable, batch)?;
                    self.flush_if_full(&mut memtable, 0, &mut outputs)
                }
                Finding::Problem(_) | Finding::Torn(_) => Ok(()),
            })?;
        }
        if check.records() != records {
            let now = check.records();
            let message = format!(
                "{records} records of the logs could be read at first, and {now} the second time"
            );
            return Err(Error::io_message(message));
        }
        outputs.extend(self.flush(&memtable, 0)?);
        Ok(outputs)
    }

    /// All entries of `inputs`, which are sound, in one sorted run of tables of `level`. Of entries
    /// with the same key and sequence number one is kept.
    pub(in crate::db) fn merge(&self, inputs: Vec<NewFile>, level: usize) -> Result<Vec<Output>> {
        let mut runs = self.runs(inputs);
        while runs.len() > MAX_RUNS {
            let few = runs.split_off(runs.len() - MAX_RUNS);
            let merged = self.merge_runs(few, level)?;
            // At the front: every table is read as often as any other.
            runs.splice(0..0, self.runs(merged.into_iter().map(|output| output.file).collect()));
        }
        self.merge_runs(runs, level)
    }

    fn merge_runs(&self, runs: Vec<Vec<Arc<FileMeta>>>, level: usize) -> Result<Vec<Output>> {
        let source = |run| {
            Source::Level(LevelIter::new(
                Level::from(run),
                self.tables.clone(),
                self.order.clone(),
                false,
            ))
        };
        self.write(Merged::new(runs.into_iter().map(source).collect(), self.order), level)
    }

    /// As few runs of disjoint tables as there can be. So the merge of a database that had levels
    /// reads a few tables at a time, however many there are.
    fn runs(&self, inputs: Vec<NewFile>) -> Vec<Vec<Arc<FileMeta>>> {
        let obsolete_files = Arc::default();
        let mut files: Vec<_> =
            inputs.into_iter().map(|file| Arc::new(FileMeta::new(file, &obsolete_files))).collect();
        files.sort_by(|a, b| {
            self.order.compare(&a.smallest, &b.smallest).then(a.number.cmp(&b.number))
        });
        let mut runs: Vec<Vec<Arc<FileMeta>>> = Vec::new();
        for file in files {
            let fits = |run: &&mut Vec<Arc<FileMeta>>| {
                run.last().is_some_and(|last| {
                    self.order.compare(&last.largest, &file.smallest) == Ordering::Less
                })
            };
            match runs.iter_mut().find(fits) {
                Some(run) => run.push(file),
                None => runs.push(vec![file]),
            }
        }
        runs
    }

    fn memtable(&self) -> MemTableWriter {
        MemTable::new(self.order.clone(), self.options.write_buffer_size).0
    }

    fn flush_if_full(
        &self,
        memtable: &mut MemTableWriter,
        level: usize,
        outputs: &mut Vec<Output>,
    ) -> Result<()> {
        if memtable.table().memory_usage() >= self.options.write_buffer_size {
            outputs.extend(self.flush(memtable, level)?);
            *memtable = self.memtable();
        }
        Ok(())
    }

    fn flush(&self, memtable: &MemTableWriter, level: usize) -> Result<Vec<Output>> {
        let source = Source::Memtable(memtable.table().iter());
        self.write(Merged::new(vec![source], self.order), level)
    }

    fn write(&self, mut entries: Merged, level: usize) -> Result<Vec<Output>> {
        let mut run = self.run(level);
        let mut used = UsedValues { values: self.values, bytes: BTreeMap::new() };
        entries.seek_to_first();
        while entries.valid() {
            let (key, value) = (entries.key(), entries.value());
            match run.takes(key) {
                true if used.have_room(key, value) => run.add(key, value)?,
                true => self.overlapping.set(self.overlapping.get() + 1),
                false => {}
            }
            entries.next();
        }
        entries.status()?;
        run.finish()
    }

    fn run(&self, level: usize) -> RunWriter<'_> {
        let settings = OutputSettings {
            values: None,
            ..output_settings(self.options, self.dir, self.order, self.numbers, level)
        };
        let max_file_size = self.options.max_file_size as u64;
        RunWriter {
            order: self.order,
            writer: OutputWriter::new(settings, level),
            max_file_size,
            last: None,
        }
    }
}

fn insert(memtable: &mut MemTableWriter, batch: BatchView<'_>) -> Result<()> {
    for (sequence, operation) in (batch.sequence..).zip(batch.operations()) {
        debug_assert!(sequence <= MAX_SEQUENCE);
        match operation? {
            Operation::Put { key, value } => {
                memtable.insert(sequence, EntryKind::Value, key, value)
            }
            Operation::Delete { key } => memtable.insert(sequence, EntryKind::Deletion, key, &[]),
        }
    }
    Ok(())
}

/// The values that the entries written so far point at.
struct UsedValues<'a> {
    values: Values<'a>,
    /// By value file.
    bytes: BTreeMap<u64, u64>,
}

impl UsedValues<'_> {
    /// Whether the value file holds one more value than is used of it, if the entry points at one.
    fn have_room(&mut self, key: &[u8], value: &[u8]) -> bool {
        if !is_pointer(key) {
            return true;
        }
        let Some(pointer) = ValuePointer::decode(value) else { return false };
        let size = self.values.files.get(pointer.file).map_or(0, |used| used.size);
        let bytes = self.bytes.entry(pointer.file).or_default();
        let more = bytes.saturating_add(pointer.length);
        if more <= size {
            *bytes = more;
        }
        more <= size
    }
}

/// Writes ascending entries to tables, none of which ends within a user key.
struct RunWriter<'a> {
    order: &'a InternalOrder,
    writer: OutputWriter,
    max_file_size: u64,
    last: Option<Vec<u8>>,
}

impl RunWriter<'_> {
    /// Whether `key` is behind everything that was added.
    fn takes(&self, key: &[u8]) -> bool {
        self.last.as_ref().is_none_or(|last| self.order.compare(last, key) == Ordering::Less)
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let last = self.last.get_or_insert_default();
        if self.writer.present_size() >= self.max_file_size
            && self.order.keys.compare(user_key(last), user_key(key)) != Ordering::Equal
        {
            self.writer.finish_table()?;
        }
        last.clear();
        last.extend_from_slice(key);
        self.writer.add(key, value)
    }

    fn finish(self) -> Result<Vec<Output>> {
        self.writer.finish()
    }
}
