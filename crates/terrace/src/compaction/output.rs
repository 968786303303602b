//! Writes the tables of a compaction or a flush.
//!
//! # Invariants
//! 1. A table is synced before it is handed over.
//! 2. A value file is synced before the tables that point into it are handed over.
//! 3. Tables and value files that are not handed over are removed when the writer is dropped. Value
//!    files that an edit has named are cut back to what they were.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::{self, EntryKind, split, tag_sequence, user_key};
use crate::base::mutation::mutated;
use crate::env::{CreateOptions, Env, WritableFile};
use crate::table::{StoredBlock, TableBuilder, TableSettings};
use crate::version::edit::{NewFile, NewValueFile};
use crate::version::file_meta::Contents;
use crate::version::filename;
use crate::version::version_set::FileNumbers;

use super::growing_values::{Abandoned, GrowingValueFiles, LARGEST, WrittenValues};
use super::rate_limiter::RateLimiter;
use super::value_writer::ValueWriter;

/// Files that may be on their way to the disk while the next one is made.
const MOST_UNSYNCED: usize = 4;

/// Which values are written to value files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueLogSettings {
    /// Those of at least so many bytes.
    pub(crate) threshold: usize,
    /// But none of keys that begin so: those of the engine, which it reads by itself.
    pub(crate) spared: &'static [u8],
}

/// Where tables are written and how.
#[derive(Clone)]
pub(crate) struct OutputSettings {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) dir: PathBuf,
    pub(crate) numbers: Arc<FileNumbers>,
    /// The number of the first table, where that is decided already.
    pub(crate) first_number: Option<u64>,
    pub(crate) file_mode: u32,
    /// How fast the tables are written.
    pub(crate) limit: Option<Arc<RateLimiter>>,
    pub(crate) table: TableSettings,
    /// `None`: values stay in the tables.
    pub(crate) values: Option<ValueLogSettings>,
    /// The value files to append to. `None`: each output begins its own.
    pub(crate) growing: Option<Arc<GrowingValueFiles>>,
}

impl OutputSettings {
    fn start(&mut self) -> Result<Open> {
        let number = self.first_number.take().unwrap_or_else(|| self.numbers.take());
        let path = self.dir.join(filename::table(number));
        let file =
            self.env.create(&path, CreateOptions { mode: self.file_mode, exclusive: true })?;
        let file = RateLimiter::over(self.limit.as_ref(), file);
        Ok(Open { number, builder: TableBuilder::new(file, &self.table) })
    }

    fn start_values(&self) -> Result<ValueWriter> {
        if let Some(values) = self.append_to_values() {
            return Ok(values);
        }
        let number = self.numbers.take();
        let path = self.dir.join(filename::values(number));
        let file =
            self.env.create(&path, CreateOptions { mode: self.file_mode, exclusive: true })?;
        Ok(ValueWriter::new(number, RateLimiter::over(self.limit.as_ref(), file)))
    }

    /// A value file that is not full, if there is one and the environment can append to it.
    fn append_to_values(&self) -> Option<ValueWriter> {
        let growing = self.growing.as_ref()?.take()?;
        let path = self.dir.join(filename::values(growing.record.number));
        // Nobody knows what any other length means.
        let size = self.env.file_size(&path).ok()?;
        let file = self.env.open_append(&path).ok().filter(|_| size == growing.record.size)?;
        Some(ValueWriter::append_to(growing, RateLimiter::over(self.limit.as_ref(), file)))
    }

    /// Whether the value of this entry goes to a value file.
    #[inline]
    fn separates(&self, key: &[u8], value: &[u8]) -> bool {
        self.values.is_some_and(|values| {
            value.len() >= values.threshold && self.may_separate(key, values.spared)
        })
    }

    fn may_separate(&self, key: &[u8], spared: &[u8]) -> bool {
        // What expires is told by the end of the value, which compactions look at.
        let expires = |key| self.table.prefixes.as_ref().is_some_and(|known| known.expires(key));
        split(key).is_some_and(|(user_key, tag)| {
            tag as u8 == EntryKind::Value as u8
                && !user_key.starts_with(spared)
                && !expires(user_key)
        })
    }

    /// Removes a table that no edit has named, and what was written to value files with it.
    pub(crate) fn remove(&self, output: &Output) {
        let values = output.value_files.iter().map(WrittenValues::abandoned);
        self.remove_files(Some(output.file.number), values);
    }

    fn remove_files(
        &self,
        tables: impl IntoIterator<Item = u64>,
        values: impl IntoIterator<Item = Abandoned>,
    ) {
        // A leftover is harmless: no MANIFEST names it, and the next open removes it.
        let remove = |name| drop(self.env.remove(&self.dir.join(name)));
        tables.into_iter().map(filename::table).for_each(remove);
        for values in values {
            match values {
                Abandoned::File(number) => remove(filename::values(number)),
                // What is left of it takes space as long as the file is there.
                Abandoned::End { number, size } => {
                    let path = self.dir.join(filename::values(number));
                    let is_there = self.env.file_size(&path).is_ok_and(|found| found > size);
                    if is_there && let Ok(mut file) = self.env.open_append(&path) {
                        file.cut_back(size);
                        let _ = file.close();
                    }
                }
            }
        }
    }
}

/// A finished, durable table.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) file: NewFile,
    pub(crate) contents: Contents,
    /// The value files that were written with it and with the tables handed over before it.
    pub(crate) value_files: Vec<WrittenValues>,
}

impl Output {
    /// What was written to the table and the value files.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.size + self.value_files.iter().map(|file| file.appended).sum::<u64>()
    }

    /// The records of the value files in an edit.
    pub(crate) fn value_records(&self) -> impl Iterator<Item = NewValueFile> {
        self.value_files.iter().map(|file| file.record)
    }

    /// The first and the last key.
    pub(crate) fn user_keys(&self) -> (&[u8], &[u8]) {
        (user_key(&self.file.smallest), user_key(&self.file.largest))
    }
}

struct Open {
    number: u64,
    builder: TableBuilder,
}

/// Writes entries, in order, to one table after another.
pub(crate) struct OutputWriter {
    settings: OutputSettings,
    level: usize,
    open: Option<Open>,
    finished: Vec<Output>,
    /// Complete files that are being written out while the next ones are made; the oldest first.
    unsynced: VecDeque<Box<dyn WritableFile>>,
    /// The present value file.
    values: Option<ValueWriter>,
    /// Complete and durable ones.
    value_files: Vec<WrittenValues>,
    /// The key of an entry that is changed. Reused.
    key: Vec<u8>,
}

impl OutputWriter {
    pub(crate) fn new(settings: OutputSettings, level: usize) -> Self {
        OutputWriter {
            settings,
            level,
            open: None,
            finished: Vec::new(),
            unsynced: VecDeque::new(),
            values: None,
            value_files: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Adds an entry to the present table, starting one if there is none.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.settings.separates(key, value) {
            return self.add_separated(key, value);
        }
        self.open()?.builder.add(key, value)
    }

    /// [`add`](Self::add) of an entry of another table; see [`TableBuilder::add_stored`].
    #[inline]
    pub(crate) fn add_stored<'a>(
        &mut self,
        key: &[u8],
        value: &[u8],
        lone_block: impl FnOnce() -> Option<StoredBlock<'a>>,
    ) -> Result<()> {
        if self.settings.separates(key, value) {
            return self.add_separated(key, value);
        }
        self.open()?.builder.add_stored(key, value, lone_block)
    }

    /// Adds an entry whose value was read from a value file.
    pub(crate) fn add_read(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (user_key, tag) = split(key).unwrap_or_default();
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        internal_key::append(&mut key, user_key, tag_sequence(tag), EntryKind::Value);
        let added = self.add(&key, value);
        self.key = key;
        added
    }

    /// Adds an entry whose value goes to a value file.
    #[cold]
    fn add_separated(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (user_key, tag) = split(key).unwrap_or_default();
        let sequence = tag_sequence(tag);
        let values = match &mut self.values {
            Some(values) => values,
            none => none.insert(self.settings.start_values()?),
        };
        let pointer = values.add(user_key, sequence, value)?;
        if values.size() >= LARGEST {
            self.finish_values()?;
        }
        let key = internal_key::encode(user_key, sequence, EntryKind::Pointer);
        self.open()?.builder.add(&key, &pointer.encode())
    }

    /// Completes the present value file, if there is one.
    fn finish_values(&mut self) -> Result<()> {
        let Some(values) = self.values.take() else { return Ok(()) };
        let abandoned = values.abandoned();
        match values.finish() {
            Ok(finished) => self.value_files.push(finished),
            Err(error) => {
                self.settings.remove_files(None, [abandoned]);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The bytes of the present table so far; 0 if there is none.
    #[inline]
    pub(crate) fn present_size(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.builder.file_size())
    }

    /// The present table.
    #[inline]
    fn open(&mut self) -> Result<&mut Open> {
        Ok(match &mut self.open {
            Some(open) => open,
            none => none.insert(self.settings.start()?),
        })
    }

    /// Completes the present table, if there is one.
    pub(crate) fn finish_table(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        match complete_table(open.number, open.builder, self.level) {
            Ok((output, mut file)) => {
                file.start_writeback(0, output.file.size);
                self.finished.push(output);
                self.unsynced.push_back(file);
                self.sync_down_to(MOST_UNSYNCED)
            }
            Err(error) => {
                self.settings.remove_files([open.number], None);
                Err(error)
            }
        }
    }

    /// Makes files durable, the oldest first, until `most` are left.
    fn sync_down_to(&mut self, most: usize) -> Result<()> {
        while self.unsynced.len() > most
            && let Some(file) = self.unsynced.pop_front()
        {
            seal(file)?;
        }
        Ok(())
    }

    /// Finishes, makes the names of all tables durable and hands them over.
    pub(crate) fn finish(mut self) -> Result<Vec<Output>> {
        self.finish_table()?;
        self.finish_values()?;
        self.sync_down_to(0)?;
        if !self.finished.is_empty() && !mutated("table-names") {
            self.settings.env.sync_dir(&self.settings.dir)?;
        }
        if let Some(last) = self.finished.last_mut() {
            last.value_files = std::mem::take(&mut self.value_files);
        }
        Ok(std::mem::take(&mut self.finished))
    }
}

/// Writes the rest of table `number`. Neither syncs nor closes the file.
pub(crate) fn complete_table(
    number: u64,
    builder: TableBuilder,
    level: usize,
) -> Result<(Output, Box<dyn WritableFile>)> {
    let table = builder.finish()?;
    let output = Output {
        file: NewFile {
            level,
            number,
            size: table.size,
            smallest: table.smallest,
            largest: table.largest,
            values: table.values,
            codecs: table.properties.codecs,
        },
        contents: Contents::from(table.properties),
        value_files: Vec::new(),
    };
    Ok((output, table.file))
}

/// Makes a file durable that is complete.
pub(crate) fn seal(mut file: Box<dyn WritableFile>) -> Result<()> {
    let synced = if mutated("table-sync") { Ok(()) } else { file.sync() };
    if !mutated("table-sync-errors") {
        synced?;
    }
    file.close()
}

impl Drop for OutputWriter {
    fn drop(&mut self) {
        let abandoned = self.open.take().map(|open| open.number);
        let finished = std::mem::take(&mut self.finished);
        let tables = finished.iter().map(|output| output.file.number).chain(abandoned);
        let values = self.values.take().map(|values| values.abandoned());
        let complete = std::mem::take(&mut self.value_files);
        let complete = complete.iter().map(WrittenValues::abandoned);
        self.settings.remove_files(tables, complete.chain(values));
    }
}
