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
//! 3. A damaged metaindex, filter or properties block costs speed, never a result: the table is
//!    read without it, and [`Table::for_each_meta_block`] reports it. With a damaged dictionary the
//!    blocks are damaged that need it.

use std::ops::Range;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::memory_account::{Charge, MemoryAccount, MemoryUse};
use crate::base::mutation::mutated;
use crate::cache::{Cached, SlotArray};
use crate::env::RandomAccessFile;
use crate::filter::FilterPolicy;

use super::block::Block;
use super::block_cache::BlockCache;
use super::block_error::{BlockError, Damage};
use super::block_iter::BlockIter;
use super::block_ref::BlockRef;
use super::buffer::Buffer;
use super::compression::{self, Codecs, decode_snappy, decompress};
use super::counters::{Outcome, ReadCounters};
use super::dictionary::DICTIONARY_NAME;
use super::external_cache::ExternalBlocks;
use super::filter_block::{self, FilterBlockReader};
use super::format::{
    BlockData, BlockHandle, FOOTER_SIZE, Footer, StoredBlock, TRAILER_SIZE, read_block_by,
};
use super::full_filter::{FULL_FILTER_NAME, FullFilter, hash_key};
use super::index::Index;
use super::key_allowance::KeyAllowance;
use super::order::TableOrder;
use super::properties::{PROPERTIES_NAME, TableProperties};
use super::read_policy::{Populated, ReadPolicy};
use super::readahead::{self, Ahead, Readahead};
use super::table_builder::COMPARATOR_NAME;
use super::table_dictionary::TableDictionary;

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
    pub(super) file: Arc<dyn RandomAccessFile>,
    /// For messages.
    pub(super) name: String,
    pub(super) order: TableOrder,
    pub(super) footer: Footer,
    pub(super) index: Index,
    pub(super) filter: Option<FilterBlockReader>,
    pub(super) full_filter: Option<FullFilter>,
    pub(super) properties: Option<TableProperties>,
    pub(super) dictionary: TableDictionary,
    pub(super) slots: SlotArray<Block>,
    /// In a cache of the program's.
    pub(super) external: Option<ExternalBlocks>,
    pub(super) counters: Arc<ReadCounters>,
    pub(super) policy: Arc<ReadPolicy>,
    pub(super) populated: Populated,
    /// Whether mappings had been given up when the table was opened.
    pub(super) opened_unmapped: bool,
    pub(super) account: Option<Arc<MemoryAccount>>,
    /// Of the table; blocks have their own.
    pub(super) charge: Option<Charge>,
}

/// Whether the cache keeps a block that had to be loaded, if it lets it in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    /// Unless loading it again takes hardly longer than finding it in the cache: a block of a
    /// mapped file that snappy decodes quickly.
    UnlessQuick,
    No,
}

impl Table {
    /// Opens the table in `file`. `name` is how messages call it.
    pub(crate) fn open(
        file: Arc<dyn RandomAccessFile>,
        name: String,
        settings: TableReadSettings,
    ) -> Result<Table> {
        Table::open_with(file, name, settings, None)
    }

    /// [`open`](Table::open), where `filter` is that of the table, if it is known.
    pub(crate) fn open_with(
        file: Arc<dyn RandomAccessFile>,
        name: String,
        settings: TableReadSettings,
        filter: Option<FullFilter>,
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
            load_block(&file, &populated, &policy, footer.index, &name, None, decompress)?.0;
        let block = Block::parse(block).map_err(bad_index)?;
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
            full_filter: filter,
            properties: None,
            dictionary: TableDictionary::default(),
            slots,
            external,
            counters: settings.counters,
            policy,
            populated,
            opened_unmapped,
            account: settings.account,
            charge: None,
        };
        table.open_meta_blocks(settings.filter_policy)?;
        let account = table.account.as_ref();
        table.charge =
            account.map(|account| account.charge(MemoryUse::Tables, table.memory_usage()));
        Ok(table)
    }

    /// Fails if the system does where a dictionary is read.
    fn open_meta_blocks(&mut self, policy: Option<Arc<dyn FilterPolicy>>) -> Result<()> {
        let entries = match self.metaindex() {
            Ok(entries) => entries,
            Err(_) => {
                let first = self.index.handle(0).map_or(0, |first| first.offset);
                let handle = TableDictionary::place_before(first);
                self.dictionary =
                    handle.map_or(Ok(Default::default()), |handle| self.open_dictionary(handle))?;
                return Ok(());
            }
        };
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
        let is_known = self.full_filter.is_some();
        if !is_known && self.order.is_internal() && self.order.is_bytewise() {
            self.full_filter = read(FULL_FILTER_NAME.as_bytes()).and_then(FullFilter::new);
        }
        self.properties = properties;
        self.filter = filter;
        let (dictionaries, others): (Vec<_>, Vec<_>) =
            entries.iter().partition(|(name, _)| name == DICTIONARY_NAME.as_bytes());
        if let Some((_, handle)) = dictionaries.first() {
            self.dictionary = self.open_dictionary(*handle)?;
        }
        // The dictionary is at the file's beginning.
        let begins = others.iter().map(|(_, handle)| handle.offset);
        let begin = begins.chain([self.footer.metaindex.offset]).min().unwrap_or_default();
        self.policy.end_share.learn(self.file.as_ref(), begin);
        Ok(())
    }

    /// The dictionary at `handle`. An error is the system's: damage is of the blocks that need it.
    fn open_dictionary(&self, handle: BlockHandle) -> Result<TableDictionary> {
        if !TableDictionary::may_be(handle) {
            return Ok(TableDictionary::damaged());
        }
        let Table { file, populated, policy, name, .. } = self;
        let raw = |_, _: &[u8]| Err("a dictionary is not compressed".into());
        match load_block(file, populated, policy, handle, name, None, raw) {
            Ok((data, _)) => Ok(TableDictionary::new(data.as_slice())),
            Err(error) if error.kind() == ErrorKind::Corruption => Ok(TableDictionary::damaged()),
            Err(error) => Err(error),
        }
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

    /// See [`ask_for_next_file`](readahead::ask_for_next_file).
    pub(crate) fn prefetch_next(&self, ahead: Ahead) -> Option<u64> {
        readahead::ask_for_next_file(self.file.as_ref(), &self.policy.end_share, ahead)
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

    /// The filter of the whole table, if it is in memory: it may outlive the table.
    pub(crate) fn filter_in_memory(&self) -> Option<FullFilter> {
        self.full_filter.as_ref()?.share()
    }

    /// Bytes in memory for as long as the table is open, blocks in the cache not included.
    pub(crate) fn memory_usage(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, FilterBlockReader::owned_bytes)
            + self.full_filter.as_ref().map_or(0, FullFilter::owned_bytes);
        size_of::<Self>()
            + self.name.capacity()
            + self.index.memory_usage()
            + self.dictionary.memory_usage()
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
                let mut result = codecs(handle);
                if name == DICTIONARY_NAME.as_bytes()
                    && let Some(damage) = self.dictionary.damage()
                {
                    result = result.and_then(|_| Err(self.damaged(handle, damage)));
                }
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

    /// The data block `at`, which is at `handle`, for a scan: from the cache, or from the file or
    /// what the scan has read `ahead`.
    pub(super) fn block(
        &self,
        at: usize,
        handle: BlockHandle,
        keep: Keep,
        ahead: &mut Readahead,
    ) -> Result<BlockRef> {
        if let Some(block) = self.block_in_memory(at, handle, false) {
            return Ok(block);
        }
        self.count_miss(false);
        let Table { file, populated, policy, name, .. } = self;
        let can_be_quick =
            file.mapped().is_some() && !policy.exceeds_memory() && self.external.is_none();
        let mut is_quick = false;
        let decompress = |kind, stored: &[u8]| {
            if kind != compression::SNAPPY {
                return self.dictionary.decompress(kind, stored);
            }
            let (buffer, was_quick) = decode_snappy(stored)?;
            is_quick = was_quick && can_be_quick;
            Ok(buffer)
        };
        let (data, _) = load_block(file, populated, policy, handle, name, Some(ahead), decompress)?;
        let block = Arc::new(self.parse(handle, data)?);
        Ok(match keep {
            Keep::Yes => self.keep(at, handle, block),
            Keep::UnlessQuick if !is_quick => self.keep(at, handle, block),
            Keep::UnlessQuick | Keep::No => BlockRef::Owned(block),
        })
    }

    pub(super) fn count_miss(&self, filtered: bool) {
        self.counters.count(if filtered { Outcome::FilteredMiss } else { Outcome::Miss });
    }

    /// Keeps data block `at`, which is at `handle`, if the cache lets it in.
    pub(super) fn keep(&self, at: usize, handle: BlockHandle, block: Arc<Block>) -> BlockRef {
        match &self.external {
            Some(_) if self.account.as_ref().is_some_and(|account| account.is_full()) => {
                BlockRef::Owned(block)
            }
            Some(external) if block.owns_its_bytes() => {
                BlockRef::External(Box::new(external.keep(handle, block)))
            }
            _ => BlockRef::Owned(self.slots.insert(at, block, self.account.as_deref())),
        }
    }

    /// The data block `at`, which is at `handle`, if it is in the cache.
    #[inline]
    pub(super) fn block_in_memory(
        &self,
        at: usize,
        handle: BlockHandle,
        filtered: bool,
    ) -> Option<BlockRef> {
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
        load_block(&self.file, &self.populated, &self.policy, handle, &self.name, None, decompress)
    }

    /// A data block, and the compressions beyond LevelDB's that it has.
    pub(super) fn load(&self, handle: BlockHandle) -> Result<(Block, Codecs)> {
        let Table { file, populated, policy, name, dictionary, .. } = self;
        let decompress = |kind, stored: &[u8]| dictionary.decompress(kind, stored);
        let (data, kind) = load_block(file, populated, policy, handle, name, None, decompress)?;
        Ok((self.parse(handle, data)?, Codecs::of(kind)))
    }

    pub(super) fn parse(&self, handle: BlockHandle, data: BlockData) -> Result<Block> {
        let block = Block::parse(data).map_err(|damage| damaged(&self.name, handle, damage))?;
        let block = block.with_abbreviated_keys(&self.order, self.index.abbreviated_keys());
        Ok(self.counted(block))
    }

    /// Has a memory budget count `block`.
    pub(super) fn counted(&self, block: Block) -> Block {
        match &self.account {
            Some(account) => block.counted(account),
            None => block,
        }
    }
}

/// Reads the block at `handle`, populated first where the policy says so.
pub(super) fn load_block(
    file: &Arc<dyn RandomAccessFile>,
    populated: &Populated,
    policy: &ReadPolicy,
    handle: BlockHandle,
    name: &str,
    ahead: Option<&mut Readahead>,
    decompress: impl FnOnce(u8, &[u8]) -> std::result::Result<Buffer, BlockError>,
) -> Result<(BlockData, u8)> {
    let size = handle.size.saturating_add(TRAILER_SIZE as u64);
    let data =
        populated.ensure(file.as_ref(), policy, handle.offset, size).and_then(|()| match ahead {
            Some(ahead) => {
                let read_at =
                    |offset, buffer: &mut [u8]| ahead.read_at(file.as_ref(), offset, buffer);
                read_block_by(file, handle, name, read_at, decompress)
            }
            None => {
                let read_at = |offset, buffer: &mut [u8]| file.read_at(offset, buffer);
                read_block_by(file, handle, name, read_at, decompress)
            }
        });
    policy.learn(data)
}

pub(super) fn damaged(name: &str, handle: BlockHandle, damage: Damage) -> Error {
    BlockError::from(damage).at(handle.offset, name)
}
