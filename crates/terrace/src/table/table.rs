//! Reads a table file.
//!
//! A table is opened once and then read by any number of threads. Opening decodes footer and index;
//! blocks are loaded when they are needed, each verified against its checksum, and kept in the
//! table's slots of the shared cache.
//!
//! # Invariants
//! 1. No block is used before its checksum was verified. What a slot holds has been.
//! 2. Index entries point into the file, before the footer. Nothing is allocated for a block that
//!    does not fit.
//! 3. A look-up that finds its block in the cache takes no lock and allocates nothing (in the
//!    bytewise order), but one: when the block learns the abbreviated keys of its entries.
//! 4. A damaged metaindex, filter or properties block costs speed, never a result: the table is
//!    read without it, and [`Table::for_each_meta_block`] reports it.

use std::ops::Range;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key;
use crate::base::memory_account::{Charge, MemoryAccount, MemoryUse};
use crate::base::mutation::mutated;
use crate::base::prefetch::{prefetch, prefetch_value};
use crate::cache::{Cached, SlotArray};
use crate::env::RandomAccessFile;
use crate::filter::FilterPolicy;

use super::block::Block;
use super::block_cache::BlockCache;
use super::block_iter::BlockIter;
use super::block_ref::{BlockRef, BlockSlice};
use super::compression::Codecs;
use super::counters::{Outcome, ReadCounters};
use super::entry::Damage;
use super::external_cache::ExternalBlocks;
use super::filter_block::{self, FilterBlockReader};
use super::format::{
    BlockData, BlockHandle, FOOTER_SIZE, Footer, StoredBlock, TRAILER_SIZE, read_block,
    read_block_by,
};
use super::full_filter::{FULL_FILTER_NAME, FullFilter, hash_key};
use super::index::{Index, Place};
use super::key_allowance::KeyAllowance;
use super::order::TableOrder;
use super::properties::{PROPERTIES_NAME, TableProperties};
use super::read_policy::{Populated, ReadPolicy};
use super::readahead::{self, Readahead};
use super::table_builder::COMPARATOR_NAME;

/// Bytes of a block in a file that are asked for ahead, at most.
const MOST_AHEAD: usize = 4 << 10;
/// Bytes of several blocks that a seek asks the device for, at most.
const MOST_ASKED: u64 = 64 << 10;

/// How tables are read.
#[derive(Clone)]
pub(crate) struct TableReadSettings {
    pub(crate) order: TableOrder,
    pub(crate) filter_policy: Option<Arc<dyn FilterPolicy>>,
    pub(crate) cache: BlockCache,
    /// Where look-ups are counted.
    pub(crate) counters: Arc<ReadCounters>,
    /// Whether tables are read from mappings.
    pub(crate) policy: Arc<ReadPolicy>,
    /// Counts tables and blocks, with a memory budget.
    pub(crate) account: Option<Arc<MemoryAccount>>,
}

/// An open table.
pub(crate) struct Table {
    file: Arc<dyn RandomAccessFile>,
    /// For messages.
    name: String,
    order: TableOrder,
    footer: Footer,
    index: Index,
    filter: Option<FilterBlockReader>,
    full_filter: Option<FullFilter>,
    properties: Option<TableProperties>,
    slots: SlotArray<Block>,
    /// In a cache of the program's.
    external: Option<ExternalBlocks>,
    counters: Arc<ReadCounters>,
    policy: Arc<ReadPolicy>,
    populated: Populated,
    /// Whether mappings had been given up when the table was opened.
    opened_unmapped: bool,
    account: Option<Arc<MemoryAccount>>,
    /// Of the table; blocks have their own.
    charge: Option<Charge>,
}

/// The entry that a look-up found.
pub(crate) struct TableHit {
    /// Sequence number and kind of the entry; 0 in a table of plain keys.
    pub(crate) tag: u64,
    pub(crate) value: BlockSlice,
}

impl Table {
    /// Opens the table in `file`. `name` is how messages call it.
    pub(crate) fn open(
        file: Arc<dyn RandomAccessFile>,
        name: String,
        settings: TableReadSettings,
    ) -> Result<Table> {
        let policy = settings.policy;
        let opened_unmapped = policy.is_unmapped();
        let populated = Populated::new(file.as_ref(), &policy);
        readahead::ask_for_end(file.as_ref(), &policy.end_share);
        let end = file.size().saturating_sub(FOOTER_SIZE as u64);
        let footer = populated
            .ensure(file.as_ref(), &policy, end, FOOTER_SIZE as u64)
            .and_then(|()| Footer::read(file.as_ref(), &name));
        let footer = policy.learn(footer)?;
        let limit = file.size() - FOOTER_SIZE as u64;
        let bad_index = |damage: Damage| damaged(&name, footer.index, damage).context("index");
        let block =
            Block::parse(load_block(&file, &populated, &policy, footer.index, &name, None)?.0)
                .map_err(bad_index)?;
        let index = Index::decode(Arc::new(block), &settings.order, limit).map_err(bad_index)?;
        let slots = settings.cache.slots().slots(index.len());
        let external = settings.cache.external_cache().map(ExternalBlocks::new);
        let mut table = Table {
            file,
            name,
            order: settings.order,
            footer,
            index,
            filter: None,
            full_filter: None,
            properties: None,
            slots,
            external,
            counters: settings.counters,
            policy,
            populated,
            opened_unmapped,
            account: settings.account,
            charge: None,
        };
        table.open_meta_blocks(settings.filter_policy);
        let account = table.account.as_ref();
        table.charge =
            account.map(|account| account.charge(MemoryUse::Tables, table.memory_usage()));
        Ok(table)
    }

    fn open_meta_blocks(&mut self, policy: Option<Arc<dyn FilterPolicy>>) {
        let Ok(entries) = self.metaindex() else { return };
        let read = |name: &[u8]| {
            let (_, handle) = entries.iter().find(|(entry, _)| entry == name)?;
            Some(self.read_block(*handle).ok()?.0)
        };
        let properties = read(PROPERTIES_NAME.as_bytes())
            .and_then(|data| TableProperties::decode(data.as_slice()));
        let filter = policy.and_then(|policy| {
            let data = read(&filter_block::block_name(policy.as_ref()))?;
            FilterBlockReader::new(policy, data)
        });
        if self.order.is_internal() && self.order.is_bytewise() {
            self.full_filter = read(FULL_FILTER_NAME.as_bytes()).and_then(FullFilter::new);
        }
        self.properties = properties;
        self.filter = filter;
        let begins = entries.iter().map(|(_, handle)| handle.offset);
        let begin = begins.chain([self.footer.metaindex.offset]).min().unwrap_or_default();
        self.policy.end_share.learn(self.file.as_ref(), begin);
    }

    /// Names and places of the blocks that are neither data nor index.
    fn metaindex(&self) -> Result<Vec<(Vec<u8>, BlockHandle)>> {
        let bad = |damage: Damage| {
            damaged(&self.name, self.footer.metaindex, damage).context("metaindex")
        };
        let block = Block::parse(self.read_block(self.footer.metaindex)?.0).map_err(bad)?;
        let mut allowance = KeyAllowance::of_block(block.size());
        let mut iter = BlockIter::new(0);
        iter.set_block(Some(Arc::new(block)));
        iter.seek_to_first();
        let mut entries = Vec::new();
        while iter.valid() {
            allowance.take(iter.key()).map_err(bad)?;
            let handle = BlockHandle::decode(&mut iter.value())
                .ok_or_else(|| bad("a handle does not decode"))?;
            entries.push((iter.key().to_vec(), handle));
            iter.next();
        }
        if let Some(damage) = iter.damage() {
            return Err(bad(damage));
        }
        // As with the index: one block for many entries.
        let mut handles: Vec<_> = entries.iter().map(|(_, handle)| *handle).collect();
        handles.sort_unstable_by_key(|handle| handle.offset);
        if handles.windows(2).any(|pair| pair[1].offset < pair[0].end()) {
            return Err(bad("its blocks overlap"));
        }
        Ok(entries)
    }

    /// The first entry that is not less than `key`, if it has the same user key. `key` is an
    /// internal key in a table of internal keys, and `hash` what [`hash_key`] makes of its user
    /// key. Without `fill_cache` a block that had to be loaded is not kept.
    pub(crate) fn get(&self, key: &[u8], hash: u64, fill_cache: bool) -> Result<Option<TableHit>> {
        self.get_at(key, self.place(key, hash), fill_cache)
    }

    /// Where a look-up of `key`, with the `hash` of its user key, has to go, unless the filter
    /// spares it that.
    #[inline]
    pub(crate) fn place(&self, key: &[u8], hash: u64) -> Option<Place> {
        if self.full_filter.as_ref().is_some_and(|filter| !filter.may_match(hash)) {
            return None;
        }
        Some(self.index.search(&self.order, key))
    }

    /// [`get`](Table::get), where the [`place`](Table::place) of the key is known.
    #[inline]
    pub(crate) fn get_at(
        &self,
        key: &[u8],
        place: Option<Place>,
        fill_cache: bool,
    ) -> Result<Option<TableHit>> {
        let Some((Place { at, abbreviated }, handle)) = self.admit(key, place) else {
            return Ok(None);
        };
        let block = self.block(at, handle, fill_cache, self.has_filter(), None)?;
        self.find_in(block, handle, key, abbreviated)
    }

    /// [`get`](Table::get) without reading the file; `None` if the block that it takes is not in
    /// the cache.
    pub(crate) fn get_in_memory(&self, key: &[u8], hash: u64) -> Result<Option<Option<TableHit>>> {
        let Some((Place { at, abbreviated }, handle)) = self.admit(key, self.place(key, hash))
        else {
            return Ok(Some(None));
        };
        let Some(block) = self.block_in_memory(at, handle, self.has_filter()) else {
            return Ok(None);
        };
        self.find_in(block, handle, key, abbreviated).map(Some)
    }

    /// Whether a filter, its own or LevelDB's, spares most lookups of what it does not hold.
    #[inline]
    pub(crate) fn has_filter(&self) -> bool {
        self.filter.is_some() || self.full_filter.is_some()
    }

    /// Where a look-up goes on whose `place` is known, with the block there; `None` if LevelDB's
    /// filter spares it that, too.
    #[inline]
    fn admit(&self, key: &[u8], place: Option<Place>) -> Option<(Place, BlockHandle)> {
        let Some(place) = place else {
            self.counters.count(Outcome::Spared);
            return None;
        };
        let handle = self.index.handle(place.at)?;
        if let Some(filter) = &self.filter
            && !filter.key_may_match(handle.offset, self.order.user_key(key))
        {
            self.counters.count(Outcome::Spared);
            return None;
        }
        Some((place, handle))
    }

    /// The first entry of `block`, which is at `handle`, that is not less than `key`, if it has the
    /// same user key.
    #[inline]
    fn find_in(
        &self,
        block: BlockRef,
        handle: BlockHandle,
        key: &[u8],
        abbreviated: Option<u64>,
    ) -> Result<Option<TableHit>> {
        let found = block
            .get()
            .find(&self.order, key, abbreviated)
            .map_err(|damage| damaged(&self.name, handle, damage))?;
        Ok(found.filter(|found| found.same_user_key).map(|found| TableHit {
            tag: found.tag,
            value: BlockSlice::new(block, found.entry.value..found.entry.end),
        }))
    }

    /// Prefetches what [`place`](Table::place) reads.
    #[inline]
    pub(crate) fn prefetch_filter(&self, hash: u64) {
        if let Some(filter) = &self.full_filter {
            filter.prefetch(hash);
        }
    }

    /// Prefetches the slot that [`prefetch_block`](Table::prefetch_block) reads.
    pub(crate) fn prefetch_slot(&self, place: Place) {
        self.slots.prefetch(place.at);
    }

    /// Asks for what tells where in the block at `place` things are. If the block is not in the
    /// cache, asks the processor for its bytes in a mapped file, and the device for those in
    /// another, so that several reads are under way at once. Of the device, asks for `further`
    /// blocks behind it as well.
    pub(crate) fn prefetch_block(&self, place: Place, further: usize) {
        match self.slots.get(place.at) {
            Some(block) => prefetch_value::<Block>(&block),
            None if self.external.is_some() => return,
            None if self.file.mapped().is_some() => return self.prefetch_stored(place.at),
            None => return self.ask_for_blocks(place.at, further),
        }
        if further > 0 && self.external.is_none() && self.file.mapped().is_none() {
            self.ask_for_blocks(place.at, further);
        }
    }

    /// Asks the device for block `at` and `further` ones behind it: from the first to the last that
    /// is not in the cache, and beyond block `at` no more than [`MOST_ASKED`].
    fn ask_for_blocks(&self, at: usize, further: usize) {
        let wanted = (at..=at.saturating_add(further))
            .map_while(|number| Some((number, self.index.handle(number)?)))
            .filter(|(number, _)| !self.slots.has(*number));
        let mut range: Option<Range<u64>> = None;
        for (number, handle) in wanted {
            let first = range.as_ref().map_or(handle.offset, |range| range.start);
            if number > at && handle.end().saturating_sub(first) > MOST_ASKED {
                break;
            }
            range = Some(first..handle.end());
        }
        if let Some(range) = range {
            readahead::ask(self.file.as_ref(), range.start, range.end);
        }
    }

    /// Asks for the bytes in the file of data block `at`, if they are mapped.
    pub(super) fn prefetch_stored(&self, at: usize) {
        if let (Some(handle), Some(file)) = (self.index.handle(at), self.file.mapped()) {
            let start = usize::try_from(handle.offset).unwrap_or(usize::MAX);
            let size = usize::try_from(handle.size).map_or(MOST_AHEAD, |size| size.min(MOST_AHEAD));
            prefetch(file.get(start..start.saturating_add(size)).unwrap_or_default());
        }
    }

    /// Asks for the entries around `place`, if their block is in the cache.
    pub(crate) fn prefetch_entries(&self, place: Place) {
        if let Some(block) = self.slots.get(place.at) {
            block.prefetch_near(place.abbreviated);
        }
    }

    /// Whether an entry of `user_key` may be here. Reads no block; always true without a filter,
    /// except for a key past the last.
    pub(crate) fn may_contain(&self, user_key: &[u8]) -> bool {
        if self.full_filter.as_ref().is_some_and(|filter| !filter.may_match(hash_key(user_key))) {
            return false;
        }
        // Before all entries of the user key, so that the block is the one where they begin.
        let at = if self.order.is_internal() {
            let seek = internal_key::encode(
                user_key,
                internal_key::MAX_SEQUENCE,
                internal_key::KIND_FOR_SEEK,
            );
            self.index.search(&self.order, &seek).at
        } else {
            self.index.search(&self.order, user_key).at
        };
        let Some(handle) = self.index.handle(at) else { return false };
        self.filter.as_ref().is_none_or(|filter| filter.key_may_match(handle.offset, user_key))
    }

    /// About where in the file an entry of `key`, a key of the table's order, is or would be.
    pub(crate) fn approximate_offset_of(&self, key: &[u8]) -> u64 {
        let at = self.index.search(&self.order, key).at;
        self.index.handle(at).unwrap_or(self.footer.metaindex).offset
    }

    /// Takes note that a scan comes to the block at `handle`.
    #[inline]
    pub(super) fn read_ahead(&self, readahead: &mut Readahead, handle: BlockHandle) {
        readahead.enter(self.file.as_ref(), handle);
    }

    /// See [`RandomAccessFile::reads_in_background`].
    pub(super) fn reads_in_background(&self) -> bool {
        self.file.reads_in_background()
    }

    /// Asks for what a scan reads first that goes on in this table.
    pub(crate) fn prefetch_next(&self, backward: bool) {
        readahead::ask_for_next_file(self.file.as_ref(), &self.policy.end_share, backward);
    }

    /// Says that the bytes of the file in `range` will not be read soon.
    pub(super) fn not_needed(&self, range: Range<u64>) {
        self.file.not_needed(range.start, range.end.saturating_sub(range.start));
    }

    /// The properties that the builder wrote; `None` if the table is not Terrace's, or the block is
    /// damaged.
    pub(crate) fn properties(&self) -> Option<TableProperties> {
        self.properties
    }

    /// The name of the comparator, of a table that was built outside of a database.
    pub(crate) fn comparator(&self) -> Option<Vec<u8>> {
        let entries = self.metaindex().ok()?;
        let (_, handle) = entries.iter().find(|(name, _)| name == COMPARATOR_NAME.as_bytes())?;
        Some(self.read_block(*handle).ok()?.0.as_slice().to_vec())
    }

    /// The name of the file, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The size of the file.
    pub(crate) fn file_size(&self) -> u64 {
        self.file.size()
    }

    /// Bytes in memory for as long as the table is open, blocks in the cache not included.
    pub(crate) fn memory_usage(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, FilterBlockReader::owned_bytes)
            + self.full_filter.as_ref().map_or(0, FullFilter::owned_bytes);
        size_of::<Self>()
            + self.name.capacity()
            + self.index.memory_usage()
            + filter
            + self.slots.memory_usage()
            + self.populated.memory_usage()
    }

    /// Reads and checks every block that holds no entries, past all caches, and says how each of
    /// them is: offset, size, and how it is compressed or what is wrong.
    pub(crate) fn for_each_meta_block(&self, visit: &mut dyn FnMut(u64, u64, Result<Codecs>)) {
        let codecs = |handle| self.read_block(handle).map(|(_, kind)| Codecs::of(kind));
        if let Ok(entries) = self.metaindex() {
            for (name, handle) in entries {
                let result = codecs(handle);
                visit(
                    handle.offset,
                    handle.size,
                    result.map_err(|error| error.context(name.escape_ascii())),
                );
            }
        }
        let Footer { metaindex, index } = self.footer;
        let result = self.metaindex().and_then(|_| codecs(metaindex));
        visit(metaindex.offset, metaindex.size, result);
        visit(index.offset, index.size, codecs(index).map_err(|error| error.context("index")));
    }

    pub(super) fn order(&self) -> &TableOrder {
        &self.order
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn damaged(&self, handle: BlockHandle, damage: Damage) -> Error {
        damaged(&self.name, handle, damage)
    }

    /// The data block `at`, which is at `handle`, from the cache, or from the file or what a scan
    /// has read of it already.
    pub(super) fn block(
        &self,
        at: usize,
        handle: BlockHandle,
        fill_cache: bool,
        filtered: bool,
        ahead: Option<&mut Readahead>,
    ) -> Result<BlockRef> {
        if let Some(block) = self.block_in_memory(at, handle, filtered) {
            return Ok(block);
        }
        self.counters.count(if filtered { Outcome::FilteredMiss } else { Outcome::Miss });
        let block = Arc::new(self.load_in(handle, ahead)?);
        Ok(match &self.external {
            _ if !fill_cache => BlockRef::Owned(block),
            Some(_) if self.account.as_ref().is_some_and(|account| account.is_full()) => {
                BlockRef::Owned(block)
            }
            Some(external) if block.owns_its_bytes() => {
                BlockRef::External(Box::new(external.keep(handle, block)))
            }
            _ => BlockRef::Owned(self.slots.insert(at, block, self.account.as_deref())),
        })
    }

    /// The data block `at`, which is at `handle`, if it is in the cache.
    #[inline]
    fn block_in_memory(&self, at: usize, handle: BlockHandle, filtered: bool) -> Option<BlockRef> {
        let block = match self.slots.get(at ^ usize::from(mutated("cache-slot"))) {
            Some(cached) => {
                self.slots.set_beside(at, cached.abbreviated_address());
                BlockRef::Cached(cached)
            }
            None => BlockRef::External(Box::new(self.external.as_ref()?.get(handle)?)),
        };
        self.counters.count(if filtered { Outcome::FilteredHit } else { Outcome::Hit });
        Some(block)
    }

    /// Data block `at`, if it is in the cache.
    #[inline]
    pub(super) fn cached_block(&self, at: usize) -> Option<Cached<Block>> {
        self.slots.get(at)
    }

    /// Data block `at` as the file has it, if that is mapped; verified now: what is in the cache
    /// may have been for long.
    pub(super) fn stored_block(&self, at: usize) -> Option<StoredBlock<'_>> {
        StoredBlock::new(self.file.mapped()?, self.index.handle(at)?).ok()
    }

    /// Whether the filters, if there are any, let a look-up of `key` into the block at `handle`.
    pub(super) fn filters_allow(&self, handle: BlockHandle, key: &[u8]) -> bool {
        let key = self.order.user_key(key);
        self.full_filter.as_ref().is_none_or(|filter| filter.may_match(hash_key(key)))
            && self.filter.as_ref().is_none_or(|filter| filter.key_may_match(handle.offset, key))
    }

    /// Whether mappings were given up since the table was opened, so that it is to be opened once
    /// more.
    #[inline]
    pub(crate) fn is_outdated(&self) -> bool {
        self.policy.is_unmapped() && !self.opened_unmapped
    }

    fn read_block(&self, handle: BlockHandle) -> Result<(BlockData, u8)> {
        load_block(&self.file, &self.populated, &self.policy, handle, &self.name, None)
    }

    /// A block, and the compressions beyond LevelDB's that it has.
    pub(super) fn load(&self, handle: BlockHandle) -> Result<(Block, Codecs)> {
        let (data, kind) = self.read_block(handle)?;
        Ok((self.parse(handle, data)?, Codecs::of(kind)))
    }

    fn load_in(&self, handle: BlockHandle, ahead: Option<&mut Readahead>) -> Result<Block> {
        let Table { file, populated, policy, name, .. } = self;
        self.parse(handle, load_block(file, populated, policy, handle, name, ahead)?.0)
    }

    fn parse(&self, handle: BlockHandle, data: BlockData) -> Result<Block> {
        let block = Block::parse(data).map_err(|damage| damaged(&self.name, handle, damage))?;
        let block = block.with_abbreviated_keys(&self.order, self.index.abbreviated_keys());
        Ok(match &self.account {
            Some(account) => block.counted(account),
            None => block,
        })
    }
}

/// Reads the block at `handle`, populated first where the policy says so.
fn load_block(
    file: &Arc<dyn RandomAccessFile>,
    populated: &Populated,
    policy: &ReadPolicy,
    handle: BlockHandle,
    name: &str,
    ahead: Option<&mut Readahead>,
) -> Result<(BlockData, u8)> {
    let size = handle.size.saturating_add(TRAILER_SIZE as u64);
    let data =
        populated.ensure(file.as_ref(), policy, handle.offset, size).and_then(|()| match ahead {
            Some(ahead) => read_block_by(file, handle, name, |offset, buffer| {
                ahead.read_at(file.as_ref(), offset, buffer)
            }),
            None => read_block(file, handle, name),
        });
    policy.learn(data)
}

fn damaged(name: &str, handle: BlockHandle, damage: Damage) -> Error {
    Error::corruption(format!("{name}: block at offset {}: {damage}", handle.offset))
}
