//! Iterates over a sorted run: disjoint tables in key order, one open at a time.

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::InternalOrder;
use crate::cache::pin;
use crate::table::{Ahead, TableIter};
use crate::version::level::Level;
use crate::version::table_set::TableSet;

/// An iterator over the tables of one sorted run.
pub(crate) struct LevelIter {
    files: Arc<Level>,
    tables: Arc<TableSet>,
    order: InternalOrder,
    fill_cache: bool,
    /// See [`TableIter::read_once`].
    once: bool,
    /// The table being read; `files.len()` before the start.
    index: usize,
    table: Option<TableIter>,
    /// What was asked for in a neighbour of it.
    asked: Option<Asked>,
    error: Option<Error>,
}

/// What a scan has asked for in a table before it came there.
struct Asked {
    index: usize,
    backward: bool,
    /// How far, in the file.
    far: u64,
}

impl LevelIter {
    pub(crate) fn new(
        files: impl Into<Arc<Level>>,
        tables: Arc<TableSet>,
        order: InternalOrder,
        fill_cache: bool,
    ) -> Self {
        let files = files.into();
        let index = files.len();
        LevelIter {
            files,
            tables,
            order,
            fill_cache,
            once: false,
            index,
            table: None,
            asked: None,
            error: None,
        }
    }

    /// See [`TableIter::read_once`].
    pub(crate) fn read_once(mut self) -> Self {
        self.once = true;
        self
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.table.as_ref().is_some_and(TableIter::valid)
    }

    pub(crate) fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => self.table.as_ref().map_or(Ok(()), TableIter::status),
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableIter::key)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableIter::value)
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.open(0, false);
        if let Some(table) = &mut self.table {
            table.seek_to_first();
        }
        self.skip_forward();
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.open(self.files.len().wrapping_sub(1), false);
        if let Some(table) = &mut self.table {
            table.seek_to_last();
        }
        self.skip_backward();
    }

    pub(crate) fn seek(&mut self, target: &[u8]) {
        self.aim(target);
        if self.files.scan_length.expected() > 0 {
            let _pin = pin();
            self.prefetch_block();
        }
        self.land(target);
    }

    /// See [`TableIter::aim`].
    pub(crate) fn aim(&mut self, target: &[u8]) {
        self.note_length();
        self.open(self.files.find(&self.order, target), false);
        if let Some(table) = &mut self.table {
            table.aim(target);
        }
    }

    /// See [`TableIter::prefetch_block`]: with as many further blocks as scans of this run mostly
    /// read.
    pub(crate) fn prefetch_block(&self) {
        if let Some(table) = &self.table {
            table.prefetch_block(self.files.scan_length.expected());
        }
    }

    /// Takes note of how far the scan went that ends now.
    fn note_length(&mut self) {
        if let Some(blocks) = self.table.as_mut().and_then(TableIter::take_blocks)
            && !self.once
        {
            self.files.scan_length.note(blocks);
        }
    }

    /// See [`TableIter::land`].
    pub(crate) fn land(&mut self, target: &[u8]) {
        if let Some(table) = &mut self.table {
            table.land(target);
        }
        self.skip_forward();
    }

    #[inline]
    pub(crate) fn next(&mut self) {
        if let Some(table) = &mut self.table {
            table.next();
            if !table.valid() {
                self.skip_forward();
            }
        }
    }

    /// [`table`](Self::table), for steps within it.
    #[inline]
    pub(crate) fn table_mut(&mut self) -> Option<&mut TableIter> {
        self.table.as_mut()
    }

    /// The iterator over the table being read.
    #[inline]
    pub(crate) fn table(&self) -> Option<&TableIter> {
        self.table.as_ref()
    }

    #[inline]
    pub(crate) fn prev(&mut self) {
        if let Some(table) = &mut self.table {
            table.prev();
            if !table.valid() {
                self.skip_backward();
            }
        }
    }

    /// Makes table `index` the one being read, for a seek, or for a scan that comes to it from the
    /// one beside it. An index off the end closes the present one.
    fn open(&mut self, index: usize, goes_on: bool) {
        self.error = None;
        if index == self.index && self.table.as_ref().is_some_and(|table| table.status().is_ok()) {
            return;
        }
        self.index = index;
        let asked = self.asked.take().filter(|asked| asked.index == index);
        let mut previous = self.table.take();
        if let Some(read) = &mut previous {
            read.give_back();
        }
        let Some(file) = self.files.get(index) else { return };
        let table = match goes_on || self.once || !self.fill_cache {
            true => self.tables.table(file),
            false => self.tables.table_to_seek(file),
        };
        match table {
            Ok(table) => {
                let mut table = table.into_arc().iter(self.fill_cache);
                if self.once {
                    table = table.read_once();
                } else if let Some(previous) = previous.filter(|_| goes_on) {
                    table.continue_from(previous);
                }
                if let Some(ahead) = table.reads_ahead() {
                    let is_ahead = |asked: &Asked| asked.backward == ahead.is_backward();
                    if let Some(asked) = asked.filter(is_ahead) {
                        table.has_asked(asked.far);
                    }
                    self.prefetch_neighbour(ahead);
                }
                self.table = Some(table);
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Asks for what the scan reads after the table that it comes to now.
    fn prefetch_neighbour(&mut self, ahead: Ahead) {
        let backward = ahead.is_backward();
        let index = if backward { self.index.wrapping_sub(1) } else { self.index + 1 };
        let far = self.files.get(index).and_then(|file| self.tables.prefetch_next(file, ahead));
        self.asked = far.map(|far| Asked { index, backward, far });
    }

    /// Whether the table being read ended without an error, so that its neighbour is next.
    fn exhausted(&self) -> bool {
        self.table.as_ref().is_some_and(|table| !table.valid() && table.status().is_ok())
    }

    #[cold]
    fn skip_forward(&mut self) {
        while self.exhausted() {
            self.open(self.index + 1, true);
            if let Some(table) = &mut self.table {
                table.seek_to_first();
            }
        }
    }

    #[cold]
    fn skip_backward(&mut self) {
        while self.exhausted() {
            self.open(self.index.wrapping_sub(1), true);
            if let Some(table) = &mut self.table {
                table.seek_to_last();
            }
        }
    }
}

impl Drop for LevelIter {
    fn drop(&mut self) {
        self.note_length();
    }
}
