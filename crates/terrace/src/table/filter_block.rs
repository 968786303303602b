//! The filter block: one filter for every 2 KiB of the file's data blocks.
//!
//! The block is the filters one after another, an array of their offsets, the offset of that array,
//! and the base-two logarithm of the 2 KiB. Which filter speaks for a data block follows from the
//! block's offset alone; ranges in which no block begins have empty filters, which no lookup
//! asks.

use std::sync::Arc;

use crate::base::coding::put_u32;
use crate::filter::FilterPolicy;

use super::format::BlockData;

/// The prefix of the name under which the metaindex knows the filter block; the policy's name
/// follows.
pub(super) const FILTER_PREFIX: &str = "filter.";

/// A filter is made for every 2^11 bytes of data blocks.
const BASE_LOG: u8 = 11;

/// Collects the keys of data blocks and makes filters of them.
pub(super) struct FilterBlockBuilder {
    policy: Arc<dyn FilterPolicy>,
    keys: Vec<u8>,
    /// Where each key ends in `keys`.
    ends: Vec<usize>,
    filters: Vec<u8>,
    offsets: Vec<u32>,
}

/// The name that the metaindex has for a filter of `policy`.
pub(super) fn block_name(policy: &dyn FilterPolicy) -> Vec<u8> {
    [FILTER_PREFIX.as_bytes(), policy.name_bytes()].concat()
}

impl FilterBlockBuilder {
    pub(super) fn new(policy: Arc<dyn FilterPolicy>) -> Self {
        FilterBlockBuilder {
            policy,
            keys: Vec::new(),
            ends: Vec::new(),
            filters: Vec::new(),
            offsets: Vec::new(),
        }
    }

    /// The name of the filter's block in the metaindex.
    pub(super) fn block_name(&self) -> Vec<u8> {
        block_name(self.policy.as_ref())
    }

    /// Says that the next data block begins at `offset`.
    pub(super) fn start_block(&mut self, offset: u64) {
        let index = offset >> BASE_LOG;
        while (self.offsets.len() as u64) < index {
            self.make_filter();
        }
    }

    pub(super) fn add_key(&mut self, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
    }

    /// The whole block.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if !self.ends.is_empty() {
            self.make_filter();
        }
        let array = self.filters.len() as u32;
        for &offset in &self.offsets {
            put_u32(&mut self.filters, offset);
        }
        put_u32(&mut self.filters, array);
        self.filters.push(BASE_LOG);
        self.filters
    }

    fn make_filter(&mut self) {
        self.offsets.push(self.filters.len() as u32);
        if self.ends.is_empty() {
            return;
        }
        let mut keys = Vec::with_capacity(self.ends.len());
        let mut start = 0;
        for &end in &self.ends {
            keys.push(&self.keys[start..end]);
            start = end;
        }
        self.policy.create_filter(&keys, &mut self.filters);
        self.keys.clear();
        self.ends.clear();
    }
}

/// Reads a filter block. Where its bytes make no sense every key may match.
pub(super) struct FilterBlockReader {
    policy: Arc<dyn FilterPolicy>,
    data: BlockData,
    /// Where the array of offsets begins.
    array: usize,
    /// Filters in the array.
    count: usize,
    base_log: u32,
}

impl FilterBlockReader {
    /// `None` if `data` is no filter block.
    pub(super) fn new(policy: Arc<dyn FilterPolicy>, data: BlockData) -> Option<Self> {
        let (&base_log, rest) = data.as_slice().split_last()?;
        let (rest, array) = rest.split_last_chunk::<4>()?;
        let array = u32::from_le_bytes(*array) as usize;
        let count = rest.len().checked_sub(array)? / 4;
        let base_log = u32::from(base_log);
        (base_log < u64::BITS).then_some(FilterBlockReader { policy, data, array, count, base_log })
    }

    /// Whether the data block that begins at `block_offset` may hold `key`, a user key.
    #[inline]
    pub(super) fn key_may_match(&self, block_offset: u64, key: &[u8]) -> bool {
        match self.filter(block_offset) {
            Some(filter) => self.policy.key_may_match(key, filter),
            None => true,
        }
    }

    pub(super) fn owned_bytes(&self) -> usize {
        self.data.owned_bytes()
    }

    fn filter(&self, block_offset: u64) -> Option<&[u8]> {
        let index = usize::try_from(block_offset >> self.base_log)
            .ok()
            .filter(|&index| index < self.count)?;
        let data = self.data.as_slice();
        // The offset after the last filter's is the array's own, which follows the array.
        let (bounds, _) = data.get(self.array + 4 * index..)?.split_first_chunk::<8>()?;
        let [a, b, c, d, e, f, g, h] = *bounds;
        let (start, end) =
            (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize);
        if end > self.array {
            return None;
        }
        data.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::BloomFilterPolicy;

    fn reader(bytes: Vec<u8>) -> Option<FilterBlockReader> {
        FilterBlockReader::new(Arc::new(BloomFilterPolicy::new(10)), BlockData::Owned(bytes.into()))
    }

    #[test]
    fn filters_cover_their_blocks_only() {
        let mut builder = FilterBlockBuilder::new(Arc::new(BloomFilterPolicy::new(10)));
        builder.start_block(0);
        builder.add_key(b"foo");
        builder.start_block(2000);
        builder.add_key(b"bar");
        builder.start_block(3100);
        builder.add_key(b"box");
        builder.start_block(9000);
        builder.add_key(b"hello");
        let reader = reader(builder.finish()).expect("a filter block");
        for (offset, member) in
            [(0, b"foo" as &[u8]), (2000, b"bar"), (3100, b"box"), (9000, b"hello")]
        {
            assert!(reader.key_may_match(offset, member));
        }
        assert!(!reader.key_may_match(0, b"box"));
        assert!(!reader.key_may_match(4100, b"foo"), "an empty filter matches nothing");
        assert!(!reader.key_may_match(9000, b"foo"));
        assert!(reader.key_may_match(1 << 40, b"foo"), "past the filters everything may match");
    }

    #[test]
    fn no_keys_make_the_block_leveldb_makes() {
        let mut builder = FilterBlockBuilder::new(Arc::new(BloomFilterPolicy::new(10)));
        builder.start_block(0);
        assert_eq!(builder.finish(), [0, 0, 0, 0, 11]);
    }

    #[test]
    fn nonsense_is_no_filter_or_matches() {
        assert!(reader(vec![]).is_none());
        assert!(reader(vec![0, 0, 0, 11]).is_none());
        assert!(reader(vec![1, 0, 0, 0, 11]).is_none());
        assert!(reader(vec![0, 0, 0, 0, 64]).is_none());
        let wild = reader(vec![9, 0, 0, 0, 0, 0, 0, 0, 11]).expect("has an array");
        assert!(wild.key_may_match(0, b"k"));
    }
}
