//! One source of entries.

use crate::base::error::Result;
use crate::memtable::MemTableIter;
use crate::table::TableIter;

use super::level::LevelIter;

/// An iterator over a memtable, a table or a sorted run.
///
/// With a tag of its own: derived from a field of the iterators it takes three more instructions at
/// each look, five of them a step of a scan.
#[repr(u8)]
pub(crate) enum Source {
    Memtable(MemTableIter),
    Table(TableIter),
    Level(LevelIter),
}

macro_rules! each {
    ($source:expr, $iter:ident => $body:expr) => {
        match $source {
            Source::Memtable($iter) => $body,
            Source::Table($iter) => $body,
            Source::Level($iter) => $body,
        }
    };
}

impl Source {
    #[inline]
    pub(crate) fn valid(&self) -> bool {
        each!(self, iter => iter.valid())
    }

    pub(crate) fn seek_to_first(&mut self) {
        each!(self, iter => iter.seek_to_first());
    }

    pub(crate) fn seek_to_last(&mut self) {
        each!(self, iter => iter.seek_to_last());
    }

    pub(crate) fn seek(&mut self, target: &[u8]) {
        each!(self, iter => iter.seek(target));
    }

    /// The first part of a [`seek`](Self::seek), which waits for nothing that is prefetched: where
    /// to go. What [`prefetch_block`](Self::prefetch_block) takes is asked for.
    pub(crate) fn aim(&mut self, target: &[u8]) {
        match self {
            Source::Memtable(_) => {}
            Source::Table(iter) => iter.aim(target),
            Source::Level(iter) => iter.aim(target),
        }
    }

    /// Between [`aim`](Self::aim) and [`land`](Self::land): asks for what `prefetch_entries` takes.
    pub(crate) fn prefetch_block(&self) {
        match self {
            Source::Memtable(_) => {}
            // One of level 0: small, and soon in the cache.
            Source::Table(iter) => iter.prefetch_block(0),
            Source::Level(iter) => iter.prefetch_block(),
        }
    }

    /// Between [`prefetch_block`](Self::prefetch_block) and [`land`](Self::land): asks for what
    /// `land` takes.
    pub(crate) fn prefetch_entries(&self) {
        if let Some(table) = self.table() {
            table.prefetch_entries();
        }
    }

    /// The second part of a [`seek`](Self::seek).
    pub(crate) fn land(&mut self, target: &[u8]) {
        match self {
            Source::Memtable(iter) => iter.seek(target),
            Source::Table(iter) => iter.land(target),
            Source::Level(iter) => iter.land(target),
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) {
        each!(self, iter => iter.next());
    }

    /// [`TableIter::next_of_other_key`], and what `look` makes of the table's iterator then.
    #[inline]
    pub(crate) fn next_of_other_key<R>(
        &mut self,
        look: impl FnOnce(&TableIter) -> R,
    ) -> Option<(u64, R)> {
        let table = self.table_mut()?;
        let tag = table.next_of_other_key()?;
        Some((tag, look(table)))
    }

    /// Goes to the entry before, and returns what [`TableIter::follows_other_key`] and `look` make
    /// of the table's iterator there, if the entry here follows another key. Otherwise nothing
    /// happens.
    #[inline]
    pub(crate) fn prev_of_other_key<R>(
        &mut self,
        look: impl FnOnce(&TableIter) -> R,
    ) -> Option<Option<R>> {
        let table = self.table_mut()?;
        if !table.follows_other_key() {
            return None;
        }
        table.prev();
        Some(table.follows_other_key().then(|| look(table)))
    }

    /// [`table`](Self::table), for steps within its block.
    #[inline]
    pub(super) fn table_mut(&mut self) -> Option<&mut TableIter> {
        match self {
            Source::Memtable(_) => None,
            Source::Table(iter) => Some(iter),
            Source::Level(iter) => iter.table_mut(),
        }
    }

    /// The iterator over the table that the entry is in.
    #[inline]
    pub(crate) fn table(&self) -> Option<&TableIter> {
        match self {
            Source::Memtable(_) => None,
            Source::Table(iter) => Some(iter),
            Source::Level(iter) => iter.table(),
        }
    }

    /// See [`TableIter::follows_other_key`].
    #[inline]
    pub(crate) fn follows_other_key(&self) -> bool {
        self.table().is_some_and(TableIter::follows_other_key)
    }

    #[inline]
    pub(crate) fn prev(&mut self) {
        each!(self, iter => iter.prev());
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        each!(self, iter => iter.key())
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        each!(self, iter => iter.value())
    }

    /// Key and value at once, which costs one look at what this is.
    #[inline]
    pub(crate) fn entry(&self) -> (&[u8], &[u8]) {
        each!(self, iter => (iter.key(), iter.value()))
    }

    pub(crate) fn status(&self) -> Result<()> {
        match self {
            Source::Memtable(_) => Ok(()),
            Source::Table(iter) => iter.status(),
            Source::Level(iter) => iter.status(),
        }
    }
}
