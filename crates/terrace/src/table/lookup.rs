//! Look-ups of single keys in a table: filter, index, block, entry.
//!
//! A look-up that finds its block in the cache takes no lock and allocates nothing (in the bytewise
//! order), but once: when the block learns the abbreviated keys of its entries.

use std::ops::Range;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key;
use crate::base::prefetch::{prefetch, prefetch_value};

use super::block::Block;
use super::block_ref::{BlockRef, BlockSlice};
use super::block_search::{Found, find_while_decoding};
use super::buffer::Buffer;
use super::compression;
use super::counters::Outcome;
use super::format::BlockHandle;
use super::full_filter::hash_key;
use super::readahead;
use super::separators::Place;
use super::snappy::{self, SnappyDecoder};
use super::table::{Table, damaged, load_block};

/// Bytes of a block in a file that are asked for ahead, at most.
const MOST_AHEAD: usize = 4 << 10;
/// Bytes of several blocks that a seek asks the device for, at most.
const MOST_ASKED: u64 = 64 << 10;

/// The entry that a look-up found.
pub(crate) struct TableHit {
    /// Sequence number and kind of the entry; 0 in a table of plain keys.
    pub(crate) tag: u64,
    pub(crate) value: BlockSlice,
}

impl TableHit {
    /// What was `found` in `block`.
    #[inline]
    fn new(block: BlockRef, found: Found) -> Self {
        let value = BlockSlice::new(block, found.entry.value..found.entry.end);
        TableHit { tag: found.tag, value }
    }
}

/// Why a look-up that wants a block has none.
enum NoBlock {
    /// It was searched on the way: the outcome.
    Searched(Option<TableHit>),
    Failed(Error),
}

impl From<Error> for NoBlock {
    fn from(error: Error) -> Self {
        NoBlock::Failed(error)
    }
}

impl Table {
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
        match self.block_to_search(at, handle, key, fill_cache) {
            Ok(block) => self.find_in(block, handle, key, abbreviated),
            Err(NoBlock::Searched(hit)) => Ok(hit),
            Err(NoBlock::Failed(error)) => Err(error),
        }
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
        Ok(found.filter(|found| found.same_user_key).map(|found| TableHit::new(block, found)))
    }

    /// The data block `at`, which is at `handle`, from the cache or from the file. In a block of
    /// snappy that would not be kept, `key` is looked for while it is decompressed, as far as that
    /// takes (internal keys in bytewise order).
    #[inline(never)]
    fn block_to_search(
        &self,
        at: usize,
        handle: BlockHandle,
        key: &[u8],
        fill_cache: bool,
    ) -> std::result::Result<BlockRef, NoBlock> {
        if let Some(block) = self.block_in_memory(at, handle, self.has_filter()) {
            return Ok(block);
        }
        self.count_miss(self.has_filter());
        let account = self.account.as_deref();
        let can_search = self.order.is_internal()
            && self.order.is_bytewise()
            && key.len() >= self.order.tag_size()
            && self.external.is_none();
        let (mut is_kept, mut found) = (fill_cache, None);
        let search = |kind, stored: &[u8]| {
            if kind != compression::SNAPPY || !can_search {
                return self.dictionary.decompress(kind, stored);
            }
            let (length, elements) = snappy::split_header(stored)?;
            is_kept = is_kept && !self.slots.rejects(at, Block::weight_of(length), account);
            if is_kept {
                return self.dictionary.decompress(kind, stored);
            }
            let mut output = Buffer::with_length(length)?;
            let mut block = SnappyDecoder::new(elements, output.as_mut_slice());
            found = find_while_decoding(&mut block, &self.order, key);
            let decoded = block.decoded();
            if found.is_none() {
                block.finish()?;
                return Ok(output);
            }
            output.truncate(decoded);
            Ok(output)
        };
        let Table { file, populated, policy, name, .. } = self;
        let (data, _) = load_block(file, populated, policy, handle, name, None, search)?;
        if let Some(found) = found {
            let hit = |found| {
                TableHit::new(
                    BlockRef::Owned(Arc::new(self.counted(Block::beginning(data)))),
                    found,
                )
            };
            return Err(NoBlock::Searched(found.same_user_key.then(|| hit(found))));
        }
        let block = Arc::new(self.parse(handle, data)?);
        Ok(if is_kept { self.keep(at, handle, block) } else { BlockRef::Owned(block) })
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::KeyOrder;
    use crate::base::internal_key::{EntryKind, encode};
    use crate::base::random::Random;
    use crate::table::block_builder::BlockBuilder;
    use crate::table::format::BlockData;
    use crate::table::order::TableOrder;

    /// The value of the first entry that is not less than `target`, if it has that user key.
    type Value = Option<Vec<u8>>;

    fn in_whole(bytes: &[u8], order: &TableOrder, target: &[u8]) -> Option<Value> {
        let block = Block::parse(BlockData::Owned(bytes.to_vec().into())).ok()?;
        let found = block.find(order, target, None).ok()?.filter(|found| found.same_user_key);
        Some(found.map(|found| block.entries()[found.entry.value..found.entry.end].to_vec()))
    }

    /// Compressed to `stored`; `None` where the search wants the whole block.
    fn while_decoding(stored: &[u8], order: &TableOrder, target: &[u8]) -> Option<(Value, usize)> {
        let (length, elements) = snappy::split_header(stored).expect("sound");
        let mut output = vec![1; length];
        let mut decoder = SnappyDecoder::new(elements, &mut output);
        let found = find_while_decoding(&mut decoder, order, target)?;
        let decoded = decoder.decoded();
        let value =
            found.same_user_key.then(|| output[found.entry.value..found.entry.end].to_vec());
        Some((value, decoded))
    }

    /// A search that decodes meanwhile finds what one of the whole block finds, and seldom wants
    /// the whole block.
    #[test]
    fn a_search_while_decoding_finds_what_one_of_the_whole_block_does() {
        let order = TableOrder::internal(KeyOrder::default());
        let (mut told, mut hits, mut searches, mut bytes, mut decoded) = (0, 0, 0, 0, 0);
        for seed in 1..=1000u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let (letters, longest) = ([2, 10, 256][random.below(3)], 1 + random.below(20));
            let any_key = |random: &mut Random| {
                let size = random.below(longest + 1);
                encode(&random.bytes(size, letters), random.below(3) as u64, EntryKind::Value)
            };
            let mut keys: Vec<_> = (0..random.below(60)).map(|_| any_key(&mut random)).collect();
            keys.sort_by(|a, b| order.compare(a, b));
            keys.dedup();
            let mut builder = BlockBuilder::new(1 + random.below(20));
            for key in &keys {
                let (size, letters) = (random.below(200), [2, 256][random.below(2)]);
                builder.add(key, &random.bytes(size, letters));
            }
            let whole = builder.finish().to_vec();
            let stored = snap::raw::Encoder::new().compress_vec(&whole).expect("fits");
            for _ in 0..50 {
                let target = match keys.len() {
                    count if count > 0 && random.below(2) == 0 => keys[random.below(count)].clone(),
                    _ => any_key(&mut random),
                };
                let expected = in_whole(&whole, &order, &target);
                searches += 1;
                let Some((found, at)) = while_decoding(&stored, &order, &target) else { continue };
                assert_eq!(Some(&found), expected.as_ref(), "seed {seed}");
                (told, hits) = (told + 1, hits + usize::from(found.is_some()));
                (bytes, decoded) = (bytes + whole.len(), decoded + at);
            }
        }
        // Keys as short and often written as these are put together now and then.
        assert!(told * 3 > searches && hits * 5 > searches, "{told}, {hits} of {searches}");
        assert!(decoded * 4 < bytes * 3, "{decoded} of {bytes} bytes");
    }

    /// What contradicts itself is left to a search of the whole block, or found before that.
    #[test]
    fn damaged_blocks_are_searched_without_harm() {
        let order = TableOrder::internal(KeyOrder::default());
        for seed in 1..=20_000u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut builder = BlockBuilder::new(1 + random.below(4));
            for number in 0..random.below(20) {
                let key = encode(&[b'a', number as u8], 1, EntryKind::Value);
                builder.add(&key, &random.bytes(30, 2));
            }
            let mut whole = builder.finish().to_vec();
            for _ in 0..1 + random.below(3) {
                let at = random.below(whole.len());
                whole[at] = random.below(256) as u8;
            }
            let stored = snap::raw::Encoder::new().compress_vec(&whole).expect("fits");
            let target = encode(&[b'a', random.below(20) as u8], 1, EntryKind::Value);
            if let Some((_, decoded)) = while_decoding(&stored, &order, &target) {
                assert!(decoded <= whole.len(), "seed {seed}");
            }
        }
    }
}
