//! Writes a table file from front to back.
//!
//! Data blocks come first, then the filter block, Terrace's properties, the metaindex, the index
//! and the footer. Where the table is to have a dictionary, the first data blocks wait until it is
//! trained, and it stands before them. The index has an entry for each data block: a key that is not less than the
//! block's last and less than the next block's first, and where the block is. One thread uses a
//! builder. Once a call has failed the file is worthless: every later call fails too.

use crate::base::abbreviated_keys::common_prefix;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::MAX_ENTRY_SIZE;
use crate::base::value_pointer::{ValuePointer, ValueUse, is_pointer};
use crate::env::WritableFile;
use crate::filter::FilterPolicy;

use super::block_buffer::BlockBuffer;
use super::block_builder::BlockBuilder;
use super::block_writer::BlockWriter;
use super::compression::Compression;
use super::dictionary::DICTIONARY_NAME;
use super::dictionary_builder::DictionarySettings;
use super::filter_block::FilterBlockBuilder;
use super::format::{BlockHandle, Footer, StoredBlock};
use super::full_filter::{FULL_FILTER_NAME, FullFilterBuilder, bits_above};
use super::order::TableOrder;
use super::prefix_settings::PrefixSettings;
use super::prefix_tracker::PrefixTracker;
use super::properties::{PROPERTIES_NAME, TableProperties};

/// How a table is written.
#[derive(Clone)]
pub(crate) struct TableSettings {
    pub(crate) order: TableOrder,
    /// Bytes of entries after which a block ends, before compression.
    pub(crate) block_size: usize,
    /// Entries between two restart points.
    pub(crate) restart_interval: usize,
    pub(crate) compression: Compression,
    /// For blocks of zstd. `None`: without a dictionary.
    pub(crate) dictionary: Option<DictionarySettings>,
    pub(crate) filter_policy: Option<Arc<dyn FilterPolicy>>,
    /// Bits for each key in the filter of the whole table; 0: no such filter. Only tables of
    /// internal keys in the bytewise order have one.
    pub(crate) full_filter_bits: usize,
    /// Whether most of the keys that a lookup looks for here lie below; see [`bits_above`].
    pub(crate) is_above_more: bool,
    /// Ask the system to begin writing out after this many bytes; 0: never.
    pub(crate) bytes_per_sync: u64,
    /// The name of the comparator, for a table that is built outside of a database; see
    /// [`COMPARATOR_NAME`].
    pub(crate) comparator: Option<Vec<u8>>,
    /// The settings that differ for keys with some prefixes. In tables of internal keys in the
    /// bytewise order only.
    pub(crate) prefixes: Option<Arc<PrefixSettings>>,
}

/// Index entries between two restart points. LevelDB has 1, and searches the block as it is; here an
/// index is decoded once, and what its keys share need not be read from the device.
const INDEX_RESTART_INTERVAL: usize = 16;

/// The name of the block, in the metaindex, that says by which comparator a table built outside of
/// a database is ordered, so that no database with another one takes it in.
pub(super) const COMPARATOR_NAME: &str = "terrace.comparator";

/// A table that was written but not yet made durable.
pub(crate) struct FinishedTable {
    pub(crate) file: Box<dyn WritableFile>,
    /// The size of the file.
    pub(crate) size: u64,
    /// Of a table of plain keys only the numbers of entries and bytes mean something.
    pub(crate) properties: TableProperties,
    /// The first and the last key.
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    /// How much of which value files it points at.
    pub(crate) values: Vec<ValueUse>,
}

/// A table under construction.
pub(crate) struct TableBuilder {
    writer: BlockWriter,
    settings: TableSettings,
    data: BlockBuilder,
    index: BlockBuilder,
    filter: Option<FilterBlockBuilder>,
    full_filter: Option<FullFilterBuilder>,
    tracker: Option<PrefixTracker>,
    /// Those of the present block.
    block_size: usize,
    compression: Compression,
    /// Those that wait for a dictionary.
    buffered: Option<BlockBuffer>,
    dictionary: Option<BlockHandle>,
    properties: TableProperties,
    /// The bytes of values by value file.
    values: BTreeMap<u64, u64>,
    smallest: Vec<u8>,
    /// The last data block, until the key that follows it is known and its index entry can be
    /// short.
    pending: Option<BlockHandle>,
    /// Reused for index entries.
    separator: Vec<u8>,
    encoded_handle: Vec<u8>,
    failure: Option<Error>,
}

impl TableBuilder {
    /// A table in `file`, which is empty.
    pub(crate) fn new(file: Box<dyn WritableFile>, settings: &TableSettings) -> Self {
        let mut filter = settings.filter_policy.clone().map(FilterBlockBuilder::new);
        if let Some(filter) = &mut filter {
            filter.start_block(0);
        }
        let is_bytewise = settings.order.is_internal() && settings.order.is_bytewise();
        let prefixes =
            settings.prefixes.clone().filter(|prefixes| is_bytewise && !prefixes.is_empty());
        let wants_full = is_bytewise && (settings.full_filter_bits > 0 || prefixes.is_some());
        TableBuilder {
            writer: BlockWriter::new(file, settings.compression, settings.bytes_per_sync),
            settings: settings.clone(),
            data: BlockBuilder::new(settings.restart_interval),
            index: BlockBuilder::new(match settings.order.is_internal() {
                true => INDEX_RESTART_INTERVAL,
                // LevelDB's class for tables, whose bytes it has.
                false => 1,
            }),
            filter,
            full_filter: wants_full.then(FullFilterBuilder::new),
            tracker: prefixes
                .map(|prefixes| PrefixTracker::new(prefixes, settings.full_filter_bits)),
            block_size: settings.block_size,
            compression: settings.compression,
            buffered: settings
                .dictionary
                .as_ref()
                .map(DictionarySettings::sampled)
                .filter(|&bytes| bytes > 0 && settings.compression == Compression::Zstd)
                .map(BlockBuffer::new),
            dictionary: None,
            properties: TableProperties::new(),
            values: BTreeMap::new(),
            smallest: Vec::new(),
            pending: None,
            separator: Vec::new(),
            encoded_handle: Vec::new(),
            failure: None,
        }
    }

    /// Goes on with the block size, restart interval and compression of `settings`. Nothing else
    /// changes.
    pub(crate) fn change(&mut self, settings: &TableSettings) {
        self.block_size = settings.block_size;
        self.compression = settings.compression;
        self.data.set_restart_interval(settings.restart_interval);
        self.writer.set_compression(settings.compression);
    }

    /// Adds an entry. Its key is greater than every key before it.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let common = self.admit(key, value)?;
        self.data.add_sharing(common, key, value);
        if self.data.size() >= self.block_size {
            self.end_block()?;
        }
        Ok(())
    }

    /// [`add`](Self::add) of an entry of another table. `lone_block` is asked for the block that it
    /// is alone in, if it is large enough to be alone in a block here as well: then that is copied,
    /// and nothing is compressed again.
    #[inline]
    pub(crate) fn add_stored<'a>(
        &mut self,
        key: &[u8],
        value: &[u8],
        lone_block: impl FnOnce() -> Option<StoredBlock<'a>>,
    ) -> Result<()> {
        self.enter(key)?;
        if value.len() < self.block_size || !self.data.is_empty() || self.buffered.is_some() {
            return self.add(key, value);
        }
        match lone_block() {
            Some(stored) if self.writer.takes(&stored) => self.copy(key, value, &stored),
            _ => self.add(key, value),
        }
    }

    /// Goes on with the settings of the prefix that owns a key.
    #[inline]
    fn enter(&mut self, key: &[u8]) -> Result<()> {
        let order = &self.settings.order;
        let Some(tracker) = self.tracker.as_mut().filter(|_| key.len() >= order.tag_size()) else {
            return Ok(());
        };
        let Some(setting) = tracker.enter(order.user_key(key)) else { return Ok(()) };
        let block_size = setting.block_size.unwrap_or(self.settings.block_size);
        let compression = setting.compression.unwrap_or(self.settings.compression);
        if (block_size, compression) != (self.block_size, self.compression) {
            self.end_block()?;
            (self.block_size, self.compression) = (block_size, compression);
            self.writer.set_compression(compression);
        }
        Ok(())
    }

    fn copy(&mut self, key: &[u8], value: &[u8], stored: &StoredBlock<'_>) -> Result<()> {
        self.admit(key, value)?;
        self.data.pass(key);
        let written = self.writer.copy(stored);
        self.block_ended(written)
    }

    /// Does everything for an entry but put it into a block. Returns how much of its key the last
    /// one begins with.
    #[inline]
    fn admit(&mut self, key: &[u8], value: &[u8]) -> Result<usize> {
        self.check_alive()?;
        let common = common_prefix(self.data.last_key(), key);
        self.check_entry(key, value, common)?;
        self.enter(key)?;
        if let Some(handle) = self.pending.take() {
            self.separator.clear();
            self.separator.extend_from_slice(self.data.last_key());
            self.settings.order.find_shortest_separator(&mut self.separator, key);
            self.add_to_index(handle);
        }
        if let Some(filter) = &mut self.filter {
            let user_key = self.settings.order.user_key(key);
            match &mut self.buffered {
                // It depends on where the block will be.
                Some(buffered) => buffered.add_key(user_key),
                None => filter.add_key(user_key),
            }
        }
        if let Some(filter) = &mut self.full_filter {
            filter.add_key(self.settings.order.user_key(key));
        }
        if let Some(tracker) = &mut self.tracker {
            tracker.note(self.settings.order.user_key(key), value);
        }
        if self.properties.entries == 0 {
            self.smallest.extend_from_slice(key);
        }
        let is_internal = self.settings.order.is_internal();
        self.properties.count(key, value, is_internal);
        if is_internal && is_pointer(key) {
            self.count_pointer(value)?;
        }
        Ok(common)
    }

    fn count_pointer(&mut self, pointer: &[u8]) -> Result<()> {
        let pointer = ValuePointer::decode(pointer)
            .ok_or_else(|| Error::corruption("a malformed pointer to a value"))?;
        let bytes = self.values.entry(pointer.file).or_default();
        *bytes = bytes.saturating_add(pointer.length);
        Ok(())
    }

    /// Ends the current block and hands everything to the file, so that the next entry is in a
    /// block of its own.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.check_alive()?;
        self.end_block()?;
        self.write_buffered()?;
        let flushed = self.writer.flush();
        self.sticky(flushed)
    }

    /// The bytes of the file so far. Entries of the unfinished block are not in it. Blocks that wait
    /// for a dictionary count as they are.
    pub(crate) fn file_size(&self) -> u64 {
        let buffered = self.buffered.as_ref().map_or(0, BlockBuffer::len);
        self.writer.offset() + buffered as u64
    }

    /// Entries added so far.
    pub(crate) fn entries(&self) -> u64 {
        self.properties.entries
    }

    /// Writes the rest of the table. Neither syncs nor closes the file.
    pub(crate) fn finish(mut self) -> Result<FinishedTable> {
        self.check_alive()?;
        self.end_block()?;
        self.write_buffered()?;
        // Readers look for it after they have read the index.
        self.writer.set_dictionary(None);
        let metaindex = self.write_meta_blocks()?;
        if let Some(handle) = self.pending.take() {
            self.separator.clear();
            self.separator.extend_from_slice(self.data.last_key());
            self.settings.order.find_short_successor(&mut self.separator);
            self.add_to_index(handle);
        }
        let index = self.writer.write(self.index.finish())?;
        let largest = self.data.last_key().to_vec();
        let (file, size) = self.writer.finish(&Footer { metaindex, index })?;
        Ok(FinishedTable {
            file,
            size,
            properties: self.properties,
            smallest: self.smallest,
            largest,
            values: self.values.into_iter().map(|(file, bytes)| ValueUse { file, bytes }).collect(),
        })
    }

    /// Gives the unfinished file back. What it holds is no table.
    pub(crate) fn abandon(self) -> Box<dyn WritableFile> {
        self.writer.into_file()
    }

    fn write_meta_blocks(&mut self) -> Result<BlockHandle> {
        // The names ascend bytewise: readers search for them.
        let mut metaindex = BlockBuilder::new(self.settings.restart_interval);
        if let Some(filter) = self.filter.take() {
            let name = filter.block_name();
            let handle = self.writer.write_raw(&filter.finish())?;
            metaindex.add(&name, encoded(handle, &mut self.encoded_handle));
        }
        if let Some(comparator) = self.settings.comparator.take() {
            let handle = self.writer.write_raw(&comparator)?;
            metaindex.add(COMPARATOR_NAME.as_bytes(), encoded(handle, &mut self.encoded_handle));
        }
        let mut filter_bits = self.settings.full_filter_bits;
        if let Some(tracker) = self.tracker.take() {
            filter_bits = tracker.filter_bits();
            self.properties.half_expired = tracker.half_expired(self.properties.entries);
        }
        if self.settings.is_above_more {
            filter_bits = bits_above(filter_bits);
        }
        if let Some(filter) = self.full_filter.take().filter(|_| filter_bits > 0) {
            let handle = self.writer.write_raw(&filter.finish(filter_bits))?;
            metaindex.add(FULL_FILTER_NAME.as_bytes(), encoded(handle, &mut self.encoded_handle));
        }
        // The index is yet to come.
        self.properties.codecs = self.writer.codecs();
        if self.settings.order.is_internal() {
            let handle = self.writer.write_raw(&self.properties.encode())?;
            metaindex.add(PROPERTIES_NAME.as_bytes(), encoded(handle, &mut self.encoded_handle));
        }
        if let Some(handle) = self.dictionary {
            metaindex.add(DICTIONARY_NAME.as_bytes(), encoded(handle, &mut self.encoded_handle));
        }
        self.writer.write(metaindex.finish())
    }

    fn end_block(&mut self) -> Result<()> {
        if self.data.is_empty() {
            return Ok(());
        }
        let size = self.data.size();
        if self.buffered.as_ref().is_some_and(|buffered| buffered.is_too_large(size)) {
            self.write_buffered()?;
        }
        if let Some(buffered) = &mut self.buffered {
            buffered.push(self.data.finish(), self.compression);
            self.data.reset();
            // Its place is not known yet.
            self.pending = Some(BlockHandle::default());
            return match buffered.is_full() {
                true => self.write_buffered(),
                false => Ok(()),
            };
        }
        let written = self.writer.write(self.data.finish());
        self.data.reset();
        self.block_ended(written)
    }

    /// Writes the blocks that waited, with the dictionary that they make. From here on none waits.
    fn write_buffered(&mut self) -> Result<()> {
        let Some(buffered) = self.buffered.take() else { return Ok(()) };
        let written = self.write_blocks(&buffered);
        self.sticky(written)
    }

    fn write_blocks(&mut self, buffered: &BlockBuffer) -> Result<()> {
        let settings = self.settings.dictionary.as_ref();
        if let Some(dictionary) = settings.and_then(|settings| settings.choose(buffered)) {
            self.dictionary = Some(self.writer.write_raw(dictionary.bytes())?);
            self.writer.set_dictionary(Some(dictionary));
            if let Some(filter) = &mut self.filter {
                filter.start_block(self.writer.offset());
            }
        }
        for block in buffered.blocks() {
            if let Some(filter) = &mut self.filter {
                buffered.keys_of(&block).for_each(|key| filter.add_key(key));
            }
            self.writer.set_compression(block.compression);
            let handle = self.writer.write(block.contents)?;
            match block.separator {
                Some(separator) => {
                    self.index.add(separator, encoded(handle, &mut self.encoded_handle));
                }
                None => self.pending = Some(handle),
            }
            if let Some(filter) = &mut self.filter {
                filter.start_block(self.writer.offset());
            }
        }
        self.writer.set_compression(self.compression);
        // Those of a block that is too large to wait.
        if let Some(filter) = &mut self.filter {
            buffered.last_keys().for_each(|key| filter.add_key(key));
        }
        Ok(())
    }

    fn block_ended(&mut self, written: Result<BlockHandle>) -> Result<()> {
        match written {
            Ok(handle) => self.pending = Some(handle),
            Err(error) => return self.sticky(Err(error)),
        }
        if let Some(filter) = &mut self.filter {
            filter.start_block(self.writer.offset());
        }
        Ok(())
    }

    fn add_to_index(&mut self, handle: BlockHandle) {
        if let Some(buffered) = &mut self.buffered {
            return buffered.set_separator(&self.separator);
        }
        self.index.add(&self.separator, encoded(handle, &mut self.encoded_handle));
    }

    fn check_entry(&self, key: &[u8], value: &[u8], common: usize) -> Result<()> {
        let order = &self.settings.order;
        if key.len() < order.tag_size() {
            return Err(Error::invalid_argument("a key without a tag in a table of internal keys"));
        }
        if key.len().saturating_add(value.len()) > MAX_ENTRY_SIZE {
            return Err(Error::invalid_argument("an entry of 4 GiB less 8 MiB or more"));
        }
        let last = self.data.last_key();
        let ascends = if self.properties.entries == 0 {
            true
        } else if order.is_bytewise() {
            order.ascends_bytewise(last, key, common)
        } else {
            // The engine's own compactions are in order; a virtual call for each entry would only
            // prove it again. Tables that name their comparator are a program's.
            let is_merged = order.is_internal() && self.settings.comparator.is_none();
            (is_merged && !cfg!(debug_assertions)) || order.compare(last, key) == Ordering::Less
        };
        if ascends {
            Ok(())
        } else {
            Err(Error::invalid_argument("keys of a table must be added in ascending order"))
        }
    }

    fn check_alive(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Remembers a failure of the file: what it holds after one is unknown.
    fn sticky(&mut self, result: Result<()>) -> Result<()> {
        if let Err(error) = &result {
            self.failure = Some(error.clone());
        }
        result
    }
}

fn encoded(handle: BlockHandle, buffer: &mut Vec<u8>) -> &[u8] {
    buffer.clear();
    handle.encode(buffer);
    buffer
}
