//! Steps through a table in either direction.
//!
//! The outer level is a position in the decoded index, the inner one an iterator over that data
//! block. Damage ends an iteration: the iterator becomes invalid and says why, and stays so until
//! the next seek.

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;

use super::block::Block;
use super::block_iter::BlockIter;
use super::entries_ahead::EntriesAhead;
use super::external_cache::HeldBlock;
use super::format::StoredBlock;
use super::readahead::{Ahead, Readahead};
use super::separators::Place;
use super::table::{Keep, Table};

/// Bytes behind a scan that reads a table for the last time, after which it gives them back.
const BEHIND: u64 = 256 << 10;
/// Bytes in the file that a scan goes on through, after which it is a long one: of what it passes
/// the cache keeps nothing that is loaded quickly, because fresh memory for it costs more.
const LONG: u64 = 64 << 10;

impl Table {
    /// A cursor over the table, at no entry. Without `fill_cache` the blocks that it loads are not
    /// kept.
    pub(crate) fn iter(self: &Arc<Self>, fill_cache: bool) -> TableIter {
        TableIter::new(Arc::clone(self), fill_cache)
    }
}

/// A position in a table, or none. It keeps its table open and the current block in memory.
pub(crate) struct TableIter {
    table: Arc<Table>,
    fill_cache: bool,
    /// Bytes of blocks that the scan went on to in one direction since its last seek, and which.
    passed: u64,
    backward: bool,
    /// Whether what is entered next goes on a scan of a neighbouring table.
    continues: bool,
    /// How much of the file's beginning has been given back, if nobody reads the table after this
    /// scan.
    given_back: Option<u64>,
    readahead: Readahead,
    /// Which data block `block` is over.
    at: usize,
    block: BlockIter,
    /// Of a scan that has looked ahead in the block since its last seek.
    ahead: Option<Box<EntriesAhead>>,
    /// Keeps the block in a cache of the program's.
    hold: Option<Box<HeldBlock>>,
    /// Where a seek is to end.
    aim: Place,
    failure: Option<Error>,
}

impl TableIter {
    pub(super) fn new(table: Arc<Table>, fill_cache: bool) -> Self {
        let block = BlockIter::new(table.order().tag_size());
        TableIter {
            table,
            fill_cache,
            passed: 0,
            backward: false,
            continues: false,
            given_back: None,
            readahead: Readahead::default(),
            at: usize::MAX,
            block,
            ahead: None,
            hold: None,
            aim: Place::NOWHERE,
            failure: None,
        }
    }

    /// For a forward scan after which the table is gone: gives memory back that the process has for
    /// what lies behind it.
    pub(crate) fn read_once(self) -> Self {
        TableIter { given_back: Some(0), readahead: Readahead::of_whole_file(), ..self }
    }

    /// Goes on reading ahead as a scan of `previous`, a neighbouring table, did.
    pub(crate) fn continue_from(&mut self, previous: TableIter) {
        (self.passed, self.backward) = (previous.passed, previous.backward);
        self.continues = true;
        self.readahead = previous.readahead.in_next_file();
    }

    /// Says that the scan asked for bytes of this table, as `far` as
    /// [`prefetch_next`](crate::version::table_set::TableSet::prefetch_next) returned.
    pub(crate) fn has_asked(&mut self, far: u64) {
        self.readahead.has_asked(far);
    }

    /// How the device reads ahead for this scan, if it does, so that the scan will go on in the next
    /// table.
    pub(crate) fn reads_ahead(&self) -> Option<Ahead> {
        self.readahead.ahead().filter(|_| self.table.reads_in_background())
    }

    /// Ends the scan.
    pub(crate) fn give_back(&mut self) {
        self.give_back_before(self.table.file_size());
    }

    fn give_back_before(&mut self, offset: u64) {
        if let Some(given_back) = &mut self.given_back {
            self.table.not_needed(*given_back..offset);
            *given_back = offset;
        }
    }

    /// Whether there is an entry here.
    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.block.valid()
    }

    /// The key here, a key of the table's order; empty if not valid. Good until the next movement.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.block.key()
    }

    /// The value here; empty if not valid. Good until the next movement.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.block.value()
    }

    /// The block here as the file has it, if the file is mapped and the entry here is all that is
    /// in the block.
    pub(crate) fn lone_block(&self) -> Option<StoredBlock<'_>> {
        if !self.block.is_alone() && !mutated("lone-blocks") {
            return None;
        }
        self.table.stored_block(self.at)
    }

    /// Why the iterator became invalid, if not for want of entries.
    pub(crate) fn status(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Goes to the first entry.
    pub(crate) fn seek_to_first(&mut self) {
        self.begin();
        if self.enter(0) {
            self.block.seek_to_first();
            self.skip_empty_blocks_forward();
        }
    }

    /// Goes to the last entry.
    pub(crate) fn seek_to_last(&mut self) {
        self.begin();
        if self.enter(self.table.index().len().wrapping_sub(1)) {
            self.block.seek_to_last();
            self.skip_empty_blocks_backward();
        }
    }

    /// Goes to the first entry whose key is at least `target`, a key of the table's order.
    pub(crate) fn seek(&mut self, target: &[u8]) {
        self.aim = self.table.index().search(self.table.order(), target);
        self.land(target);
    }

    /// Finds out where a seek has to go, without going there, and asks for what
    /// [`prefetch_block`](Self::prefetch_block) takes.
    pub(crate) fn aim(&mut self, target: &[u8]) {
        self.aim = self.table.index().search(self.table.order(), target);
        self.table.prefetch_slot(self.aim);
    }

    /// Asks for what tells where things are in the block that was aimed at, and the device for
    /// `further` blocks behind it.
    pub(crate) fn prefetch_block(&self, further: usize) {
        if !self.is_there() || further > 0 {
            self.table.prefetch_block(self.aim, further);
        }
    }

    /// To how many blocks the scan went on forward since the last call, if the device reads ahead
    /// for those that ask.
    pub(crate) fn take_blocks(&mut self) -> Option<u8> {
        self.table.reads_in_background().then(|| self.readahead.take_blocks())
    }

    /// Asks for the entries around what was aimed at.
    pub(crate) fn prefetch_entries(&self) {
        if !self.is_there() {
            self.table.prefetch_entries(self.aim);
        }
    }

    /// Whether the block that was aimed at is the one at hand.
    fn is_there(&self) -> bool {
        self.aim.at == self.at && self.block.has_block()
    }

    /// Goes where [`aim`](Self::aim) with the same target has found that it has to go.
    pub(crate) fn land(&mut self, target: &[u8]) {
        let Place { at, abbreviated } = self.aim;
        self.begin();
        if self.enter(at) {
            self.block.seek(self.table.order(), target, abbreviated);
            self.skip_empty_blocks_forward();
        }
    }

    /// Goes to the next entry. Nothing happens if not valid.
    #[inline]
    pub(crate) fn next(&mut self) {
        if self.block.valid() {
            self.block.next();
            if !self.block.valid() {
                self.skip_empty_blocks_forward();
            }
        }
    }

    /// Goes to the next entry, and returns its tag, if its user key is known to have other bytes
    /// than this one, and nothing but a step within the block is to be done. Otherwise nothing
    /// happens. Only for internal keys.
    #[inline]
    pub(crate) fn next_of_other_key(&mut self) -> Option<u64> {
        self.block.next_of_other_key()
    }

    /// Whether the user key of the entry before is known to have other bytes than this one. Only
    /// for internal keys.
    #[inline]
    pub(crate) fn follows_other_key(&self) -> bool {
        self.block.follows_other_key()
    }

    /// Goes to the entry before. Nothing happens if not valid.
    #[inline]
    pub(crate) fn prev(&mut self) {
        if self.block.valid() {
            self.block.prev();
            if !self.block.valid() {
                self.skip_empty_blocks_backward();
            }
        }
    }

    /// Goes on to later blocks until there is an entry, an end, or damage.
    fn skip_empty_blocks_forward(&mut self) {
        while !self.block.valid() && !self.is_damaged() {
            if !self.go_on_to(self.at.wrapping_add(1), false) {
                return;
            }
            self.block.seek_to_first();
            self.ask_ahead(self.at.wrapping_add(1), Block::prefetch_first);
        }
    }

    fn skip_empty_blocks_backward(&mut self) {
        while !self.block.valid() && !self.is_damaged() {
            if !self.go_on_to(self.at.wrapping_sub(1), true) {
                return;
            }
            self.block.seek_to_last();
            self.ask_ahead(self.at.wrapping_sub(1), Block::prefetch_last);
        }
    }

    /// Prefetches block `at`, which is next: the beginning of a scan of it, or for what it
    /// is loaded from.
    fn ask_ahead(&self, at: usize, ask_for: impl FnOnce(&Block)) {
        match self.table.cached_block(at) {
            Some(next) => ask_for(&next),
            None => self.table.prefetch_stored(at),
        }
    }

    /// Takes damage over from the block.
    fn is_damaged(&mut self) -> bool {
        if let Some(damage) = self.block.damage() {
            let handle = self.table.index().handle(self.at).unwrap_or_default();
            self.failure = Some(self.table.damaged(handle, damage));
        }
        self.failure.is_some()
    }

    /// [`enter`](Self::enter), by a scan.
    fn go_on_to(&mut self, at: usize, backward: bool) -> bool {
        if self.backward != backward {
            (self.passed, self.backward) = (0, backward);
        }
        let size = self.table.index().handle(at).map_or(0, |handle| handle.size);
        self.passed = self.passed.saturating_add(size);
        self.enter(at)
    }

    /// How many entries were shown the last time that the scan has not come to.
    pub(crate) fn shown_ahead(&self, backward: bool) -> usize {
        let ahead = self.ahead.as_ref().filter(|_| self.block.valid());
        let ahead = ahead.filter(|ahead| ahead.is_ahead_of(backward, &self.block));
        ahead.map_or(0, |ahead| ahead.left(&self.block))
    }

    /// Shows what a scan comes to next in this block, as far as it was not shown since the last
    /// seek: forward, entries behind this one, and backward, this one and those before it, up to one for which `show`
    /// returns false. Nothing while it has not come to more than half of what was shown.
    pub(crate) fn show_ahead(
        &mut self,
        backward: bool,
        show: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) {
        if !self.block.valid() {
            return;
        }
        let ahead = self.ahead.take();
        let ahead = ahead.filter(|ahead| ahead.is_ahead_of(backward, &self.block));
        let new = || Box::new(EntriesAhead::new(backward, &self.block));
        self.ahead.insert(ahead.unwrap_or_else(new)).show(&self.block, show);
    }

    /// Begins to count what a scan passes, unless it comes from a neighbouring table.
    fn begin(&mut self) {
        self.ahead = None;
        if !std::mem::take(&mut self.continues) {
            self.passed = 0;
        }
    }

    /// Moves to the data block `at`, at no entry of it. False if there is no such block or it
    /// cannot be read.
    fn enter(&mut self, at: usize) -> bool {
        self.failure = None;
        if at == self.at && self.block.has_block() {
            return true;
        }
        self.ahead = None;
        let handle = self.table.index().handle(at);
        if let (Some(given_back), Some(handle)) = (self.given_back, handle)
            && handle.offset >= given_back.saturating_add(BEHIND)
        {
            self.give_back_before(handle.offset);
        }
        let block = handle.map(|handle| {
            self.table.read_ahead(&mut self.readahead, handle);
            let keep = match self.fill_cache {
                false => Keep::No,
                true if self.passed >= LONG => Keep::UnlessQuick,
                true => Keep::Yes,
            };
            self.table.block(at, handle, keep, &mut self.readahead)
        });
        let (block, hold) = match block {
            Some(Ok(block)) => {
                let (block, hold) = block.into_owned();
                (Some(block), hold)
            }
            Some(Err(error)) => {
                self.failure = Some(error);
                (None, None)
            }
            None => (None, None),
        };
        self.at = at;
        self.block.set_block(block);
        self.hold = hold;
        self.block.has_block()
    }
}
