//! Access of the drop-in `libleveldb` to the engine beyond the public API: LevelDB's tables of
//! plain keys, two operations without a copy, and steps that say where they lead. Made for that
//! library alone; it changes without notice.

use std::path::Path;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::env::{RandomAccessFile, WritableFile};
use crate::table::{
    BlockCache, Table, TableBuilder, TableIter, TableOrder, TableReadSettings, TableSettings,
};
use crate::write::batch_view::BatchView;

use crate::db::db::Db;
use crate::db::inspect::manifest_text;
use crate::db::options::{Options, WriteOptions};
use crate::db::read;
use crate::db::read::cursor::Cursor;
use crate::db::read::read_options::ReadOptions;
pub use crate::db::stats::leveldb_text::escape;

/// Calls `use_value` with the value of `key` where it lies, and returns its result.
pub fn get_with<R>(
    db: &Db,
    key: &[u8],
    options: &ReadOptions,
    use_value: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    read::get(db.core(), key, options, use_value)
}

/// Writes a batch in LevelDB's form, whatever its sequence number says, and returns the one of its
/// first operation.
pub fn write(db: &Db, batch: &[u8], options: WriteOptions) -> Result<u64> {
    let batch = BatchView::parse_unnumbered(batch)?;
    let last = db.core().writes.write_view(batch, options)?;
    Ok((last + 1).saturating_sub(u64::from(batch.count)))
}

/// Moves a cursor to the next entry and shows its key and value; false if there is none. An entry
/// that the cursor passes over may be shown before. What was shown last lies there until the cursor
/// moves or is dropped.
#[inline]
pub fn next_with(cursor: &mut Cursor, show: impl FnMut(&[u8], &[u8])) -> bool {
    cursor.next_with(show)
}

/// Moves a cursor to the previous entry and shows its key and value as [`next_with`] does.
#[inline]
pub fn prev_with(cursor: &mut Cursor, show: impl FnMut(&[u8], &[u8])) -> bool {
    cursor.prev_with(show)
}

/// Shows the MANIFEST at `path` as LevelDB's `DumpFile` does, piece by piece.
pub fn dump_manifest(path: &Path, options: &Options, put: &mut dyn FnMut(String)) -> Result<()> {
    manifest_text(path, options, put)
}

fn order(options: &Options) -> TableOrder {
    TableOrder::user(KeyOrder::new(options.comparator.clone()))
}

fn settings(options: &Options) -> TableSettings {
    TableSettings {
        order: order(options),
        block_size: options.block_size,
        restart_interval: options.block_restart_interval.max(1),
        compression: options.compression,
        dictionary: None,
        filter_policy: options.filter_policy.clone(),
        full_filter_bits: 0,
        is_above_more: false,
        bytes_per_sync: 0,
        comparator: None,
        prefixes: None,
    }
}

/// Writes a table of plain keys.
pub struct PlainTableBuilder {
    /// Absent once finished or abandoned.
    builder: Option<TableBuilder>,
    entries: u64,
    file_size: u64,
}

impl PlainTableBuilder {
    /// A table in `file`, which is neither synced nor closed.
    pub fn new(file: Box<dyn WritableFile>, options: &Options) -> Self {
        PlainTableBuilder {
            builder: Some(TableBuilder::new(file, &settings(options))),
            entries: 0,
            file_size: 0,
        }
    }

    fn with<R>(&mut self, work: impl FnOnce(&mut TableBuilder) -> Result<R>) -> Result<R> {
        let builder = self
            .builder
            .as_mut()
            .ok_or_else(|| Error::invalid_argument("the table is finished"))?;
        let result = work(builder);
        (self.entries, self.file_size) = (builder.entries(), builder.file_size());
        result
    }

    /// Takes over the sizes and the compression of `options` for what comes next.
    pub fn change_options(&mut self, options: &Options) -> Result<()> {
        let settings = settings(options);
        self.with(|builder| {
            builder.change(&settings);
            Ok(())
        })
    }

    /// Adds an entry. Its key is greater than every key before it.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.with(|builder| builder.add(key, value))
    }

    /// Ends the block and hands everything to the file.
    pub fn flush(&mut self) -> Result<()> {
        self.with(TableBuilder::flush)
    }

    /// Writes the rest of the table.
    pub fn finish(&mut self) -> Result<()> {
        let builder =
            self.builder.take().ok_or_else(|| Error::invalid_argument("the table is finished"))?;
        self.file_size = builder.finish()?.size;
        Ok(())
    }

    /// Gives up.
    pub fn abandon(&mut self) {
        self.builder.take().map(TableBuilder::abandon);
    }

    /// Entries added so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes in the file so far; all of them once finished.
    pub fn file_size(&self) -> u64 {
        self.file_size
    }
}

/// An open table of plain keys.
#[derive(Clone)]
pub struct PlainTable(Arc<Table>);

impl PlainTable {
    /// Opens the table in `file`. Blocks are kept only in a cache that `options` name.
    pub fn open(file: Arc<dyn RandomAccessFile>, options: &Options) -> Result<Self> {
        let settings = TableReadSettings {
            order: order(options),
            filter_policy: options.filter_policy.clone(),
            cache: options.block_cache.clone().unwrap_or_else(|| BlockCache::new(0)),
            counters: Arc::default(),
            policy: Arc::default(),
            account: None,
        };
        Ok(PlainTable(Arc::new(Table::open(file, "table".to_owned(), settings)?)))
    }

    /// About where in the file an entry of `key` is or would be.
    pub fn approximate_offset_of(&self, key: &[u8]) -> u64 {
        self.0.approximate_offset_of(key)
    }

    /// Whether an entry of `key` may be here, as far as index and filter know.
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.0.may_contain(key)
    }

    /// An iterator, at no entry.
    pub fn iter(&self, options: &ReadOptions) -> PlainTableIter {
        PlainTableIter(self.0.iter(!options.skip_cache))
    }
}

/// A position in a [`PlainTable`], which it keeps open.
pub struct PlainTableIter(TableIter);

impl PlainTableIter {
    /// Whether there is an entry here.
    pub fn valid(&self) -> bool {
        self.0.valid()
    }

    /// The key here; empty if not valid.
    pub fn key(&self) -> &[u8] {
        self.0.key()
    }

    /// The value here; empty if not valid.
    pub fn value(&self) -> &[u8] {
        self.0.value()
    }

    /// Key and value, if there is an entry here.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.valid().then(|| (self.key(), self.value()))
    }

    /// Goes to the first entry.
    pub fn seek_to_first(&mut self) {
        self.0.seek_to_first();
    }

    /// Goes to the last entry.
    pub fn seek_to_last(&mut self) {
        self.0.seek_to_last();
    }

    /// Goes to the first entry at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.0.seek(key);
    }

    /// Goes to the next entry.
    pub fn next(&mut self) {
        self.0.next();
    }

    /// Goes to the previous entry.
    pub fn prev(&mut self) {
        self.0.prev();
    }

    /// Why there is no entry here, if not for want of entries.
    pub fn status(&self) -> Result<()> {
        self.0.status()
    }
}
