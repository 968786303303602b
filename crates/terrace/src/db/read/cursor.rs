//! Iterators for users: a cursor to move about with, and ranges as Rust iterators.

use std::ops::RangeBounds;
use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::SequenceNumber;
use crate::iterator::db_iter::DbIter;
use crate::iterator::deleted_ranges::{Beginning, DeletedRangeRecorder, DeletedRanges};
use crate::iterator::level::LevelIter;
use crate::iterator::merged::Merged;
use crate::iterator::source::Source;

use crate::db::db_impl::{DbImpl, View};
use crate::db::options::ReadOptions;
use crate::db::read::range::{Entry, RangeIter, implements_scan_cursor};
use crate::db::read::snapshot::Snapshot;

/// A position among the entries of a database, as they were when the cursor was made (or its
/// snapshot taken).
///
/// It starts out invalid: seek first. Off either end and after an error it is invalid too, and
/// [`Cursor::status`] tells which; then `key` and `value` are empty and `next` and `prev` do
/// nothing. A cursor keeps what it reads alive, on disk and in memory: hold it briefly. It may
/// outlive the `Db` and move between threads.
pub struct Cursor {
    /// Kept for as long as the cursor reads.
    _view: Arc<View>,
    _snapshot: Option<Snapshot>,
    /// The last one: fields are dropped in this order, and the core is its last one.
    iter: DbIter<PurgedCore>,
}

/// Has files removed that only the cursor kept, once everything else of it is gone.
struct PurgedCore(Arc<DbImpl>);

impl Drop for PurgedCore {
    fn drop(&mut self) {
        self.0.purge_later();
    }
}

impl DeletedRangeRecorder for PurgedCore {
    fn gaps(&self) -> &DeletedRanges {
        &self.0.gaps
    }

    fn watch(&self, from: &[u8], to: Option<&[u8]>) {
        if self.0.works_elsewhere() {
            return;
        }
        // Writers may hold it for long.
        if let Some(commit) = self.0.commit.try_lock() {
            let last =
                commit.as_ref().map_or(self.0.visible_sequence(), |commit| commit.last_sequence);
            self.0.gaps.watch(from, to, last);
        }
    }
}

impl Cursor {
    pub(in crate::db) fn new(core: &Arc<DbImpl>, options: &ReadOptions) -> Result<Self> {
        let beginning = core.beginning();
        let (view, sequence) = core.present(options)?;
        Self::over(core, view, sequence, beginning, options)
    }

    /// A cursor over what was read at a moment: any number of them, made at any time, read the
    /// same.
    fn over(
        core: &Arc<DbImpl>,
        view: Arc<View>,
        sequence: SequenceNumber,
        beginning: Beginning,
        options: &ReadOptions,
    ) -> Result<Self> {
        let sources = sources(core, &view, !options.skip_cache)?;
        let merged = Merged::new(sources, &core.order);
        let iter = DbIter::new(
            merged,
            core.order.keys.clone(),
            sequence,
            beginning,
            PurgedCore(core.clone()),
        );
        Ok(Cursor { _view: view, _snapshot: options.snapshot.clone(), iter })
    }

    /// Whether the cursor stands at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.iter.valid()
    }

    /// The key at the cursor.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.iter.key()
    }

    /// The value at the cursor.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.iter.value()
    }

    /// The key and the value at the cursor, if it is valid.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.iter.entry()
    }

    /// Moves to the first entry.
    pub fn seek_to_first(&mut self) {
        self.iter.seek_to_first();
    }

    /// Moves to the last entry.
    pub fn seek_to_last(&mut self) {
        self.iter.seek_to_last();
    }

    /// Moves to the first entry whose key is at or after `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.iter.keeper().0.sample_seek();
        self.iter.seek(key.as_ref());
    }

    /// Moves to the last entry whose key is at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) {
        self.iter.keeper().0.sample_seek();
        self.iter.seek_for_prev(key.as_ref());
    }

    /// Moves to the next entry.
    #[inline]
    pub fn next(&mut self) {
        self.iter.next();
    }

    /// See [`crate::db::abi::next_with`].
    #[inline]
    pub(in crate::db) fn next_with(&mut self, show: impl FnMut(&[u8], &[u8])) -> bool {
        self.iter.next_with(show)
    }

    /// Moves to the previous entry.
    #[inline]
    pub fn prev(&mut self) {
        self.iter.prev();
    }

    /// See [`crate::db::abi::prev_with`].
    #[inline]
    pub(in crate::db) fn prev_with(&mut self, show: impl FnMut(&[u8], &[u8])) -> bool {
        self.iter.prev_with(show)
    }

    /// Why the cursor is invalid: `Ok` if it is only off an end.
    pub fn status(&self) -> Result<()> {
        self.iter.status()
    }
}

implements_scan_cursor!(Cursor);

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("valid", &self.valid()).finish_non_exhaustive()
    }
}

/// Everything in a view, newest first. A level of one sorted run is one source.
fn sources(core: &DbImpl, view: &View, fill_cache: bool) -> Result<Vec<Source>> {
    let memtables =
        std::iter::once(&view.memtable).chain(&view.immutables).filter(|table| !table.is_empty());
    let (level_0, deeper) = (&view.version.levels[0], &view.version.levels[1..]);
    let deeper = deeper.iter().filter(|files| !files.is_empty());
    // No more room than it takes: sources are large, and allocators keep small pieces at hand.
    let mut sources =
        Vec::with_capacity(memtables.clone().count() + level_0.len() + deeper.clone().count());
    sources.extend(memtables.map(|table| Source::Memtable(table.iter())));
    for file in level_0.iter() {
        sources.push(Source::Table(core.tables.table(file)?.into_arc().iter(fill_cache)));
    }
    for files in deeper {
        let run =
            LevelIter::new(files.clone(), core.tables.clone(), core.order.clone(), fill_cache);
        sources.push(Source::Level(run));
    }
    Ok(sources)
}

/// The entries of a range, from either end, each as an owned key and value.
///
/// After an error it ends.
pub struct Entries {
    span: RangeIter<Cursor>,
    /// What cursors at both ends read.
    view: Arc<View>,
    sequence: SequenceNumber,
    beginning: Beginning,
    options: ReadOptions,
    /// The last one: fields are dropped in this order.
    core: PurgedCore,
}

impl Entries {
    pub(in crate::db) fn range<K: AsRef<[u8]>>(
        core: &Arc<DbImpl>,
        range: &impl RangeBounds<K>,
        options: &ReadOptions,
    ) -> Result<Self> {
        Self::over(core, RangeIter::new(&core.order.keys, range), options)
    }

    pub(in crate::db) fn prefix(
        core: &Arc<DbImpl>,
        prefix: &[u8],
        options: &ReadOptions,
    ) -> Result<Self> {
        Self::over(core, RangeIter::prefix(&core.order.keys, prefix)?, options)
    }

    fn over(core: &Arc<DbImpl>, span: RangeIter<Cursor>, options: &ReadOptions) -> Result<Self> {
        let beginning = core.beginning();
        let (view, sequence) = core.present(options)?;
        let (options, core) = (options.clone(), PurgedCore(core.clone()));
        Ok(Entries { span, view, sequence, beginning, options, core })
    }
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let Entries { span, view, sequence, beginning, options, core } = self;
        span.next(|| Cursor::over(&core.0, view.clone(), *sequence, *beginning, options))
    }
}

impl DoubleEndedIterator for Entries {
    fn next_back(&mut self) -> Option<Self::Item> {
        let Entries { span, view, sequence, beginning, options, core } = self;
        span.next_back(|| Cursor::over(&core.0, view.clone(), *sequence, *beginning, options))
    }
}

impl std::iter::FusedIterator for Entries {}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (from, to) = self.span.bounds();
        f.debug_struct("Entries").field("from", from).field("to", to).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, MemEnv, Options, WriteBatch, WriteOptions};

    /// A reader may have got hold of memtables before another one was begun, and of its number
    /// after a write into that.
    #[test]
    fn a_gap_that_is_younger_than_what_a_reader_holds_is_none_for_it() {
        let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
        let db = Db::open("/db", options).unwrap();
        let numbers = |range: std::ops::Range<u32>| range.map(|number| format!("{number:04}"));
        numbers(0..400).for_each(|key| db.put(key, "").unwrap());
        numbers(0..100).chain(numbers(101..200)).for_each(|key| db.delete(key).unwrap());
        let (core, read) = (db.core(), ReadOptions::new());
        let beginning = core.beginning();
        let view = core.view.load_full();
        db.flush().unwrap();
        let mut batch = WriteBatch::new();
        batch.delete("0100");
        batch.put("0250", "later");
        db.write(&batch, WriteOptions::new()).unwrap();
        let sequence = core.visible_sequence();
        let first = |cursor: &mut Cursor| {
            cursor.seek_to_first();
            cursor.key().to_vec()
        };
        for _ in 0..3 {
            assert_eq!(first(&mut db.cursor(&read).unwrap()), b"0200");
        }
        assert!(core.gaps.around(b"0050", sequence, |_, _| ()).is_some());
        let mut late = Cursor::over(core, view, sequence, beginning, &read).unwrap();
        assert_eq!(first(&mut late), b"0100");
    }
}
