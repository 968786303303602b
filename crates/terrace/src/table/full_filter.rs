//! One filter for all keys of a table, asked before anything else of it is read.
//!
//! LevelDB's filter block knows about each 2 KiB of data and is asked after the index has been
//! searched. This one stands in a metaindex entry of its own, which LevelDB passes over. It is a
//! blocked Bloom filter (Putze, Sanders, Singler: *Cache-, Hash- and Space-Efficient Bloom
//! Filters*, 2007): all bits of a key lie in one line of 64 bytes, so that a check costs one
//! cache miss.
//!
//! The block is the lines, then one byte for the number of probes, then one for the version.
//!
//! Keys are hashed as bytes, so that only tables in the bytewise order have such a filter: under
//! another order, equal keys may differ in their bytes.

use std::mem;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::prefetch::prefetch;

use super::format::BlockData;

/// The name of the block in the metaindex.
pub(super) const FULL_FILTER_NAME: &str = "terrace.filter";

const LINE: usize = 64;
const VERSION: u8 = 1;
const TRAILER: usize = 2;
/// More probes would find their line full.
const MAX_PROBES: usize = 30;
/// More bits for each key spare nothing that is worth their memory.
const MOST_BITS: usize = 32;

/// The hash of a user key under which filters know it: XXH3, 64 bits. Part of the format.
#[inline]
pub(crate) fn hash_key(user_key: &[u8]) -> u64 {
    xxh3_64(user_key)
}

/// Hashes in one piece of a builder's memory, 64 KiB: less than what glibc maps by itself. A vector
/// that doubles asks for megabytes, and when such a mapping is freed, glibc takes its size for the
/// least to map from then on, and leaves twice as much free at the top of each thread's heap
/// (`M_MMAP_THRESHOLD` in mallopt(3)).
const PIECE: usize = 8192;

/// The bits for each key of a table that has at least as many entries below it as in it, where
/// `bits` are those of the others: eight for five. A lookup that goes on below pays for each table
/// above that is wrong. Those hold few of the keys, so that a bit for each of theirs takes little
/// memory, and spares as much as a bit for each of the many (Dayan, Athanassoulis, Idreos: *Monkey:
/// Optimal Navigable Key-Value Store*, 2017).
pub(super) fn bits_above(bits: usize) -> usize {
    (bits * 8 / 5).min(MOST_BITS)
}

/// Collects the keys of a table.
#[derive(Default)]
pub(super) struct FullFilterBuilder {
    /// The pieces that are full.
    full: Vec<Vec<u64>>,
    hashes: Vec<u64>,
    last: Option<u64>,
}

impl FullFilterBuilder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a user key. Versions of one key come one behind the other and count once.
    #[inline]
    pub(super) fn add_key(&mut self, user_key: &[u8]) {
        let hash = hash_key(user_key);
        if self.last != Some(hash) {
            self.last = Some(hash);
            if self.hashes.len() == PIECE {
                self.full.push(mem::replace(&mut self.hashes, Vec::with_capacity(PIECE)));
            }
            self.hashes.push(hash);
        }
    }

    /// The whole block, with so many bits for each key.
    pub(super) fn finish(self, bits_per_key: usize) -> Vec<u8> {
        let keys = self.full.len() * PIECE + self.hashes.len();
        let lines = (keys * bits_per_key).div_ceil(8 * LINE).max(1);
        // ln 2 times the bits for a key is best for a plain Bloom filter; a blocked one wants a
        // little less.
        let probes = (bits_per_key * 6 / 10).clamp(1, MAX_PROBES);
        let mut block = vec![0; lines * LINE + TRAILER];
        for &hash in self.full.iter().flatten().chain(&self.hashes) {
            let start = line_of(hash, lines) * LINE;
            let line = &mut block[start..start + LINE];
            for bit in bits(hash, probes) {
                line[bit / 8] |= 1 << (bit % 8);
            }
        }
        block[lines * LINE] = probes as u8;
        block[lines * LINE + 1] = VERSION;
        block
    }
}

/// Reads a filter.
pub(crate) struct FullFilter {
    block: FilterBlock,
    lines: usize,
    probes: usize,
}

/// The bytes of the block.
enum FilterBlock {
    /// In memory, shared by the open table and what stays of it when it is closed.
    Owned(Arc<[u8]>),
    Mapped(BlockData),
}

impl FilterBlock {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        match self {
            FilterBlock::Owned(bytes) => bytes,
            FilterBlock::Mapped(data) => data.as_slice(),
        }
    }
}

impl FullFilter {
    /// `None` if `data` is no filter of a version that is known here.
    pub(super) fn new(data: BlockData) -> Option<Self> {
        let (body, trailer) = data.as_slice().split_last_chunk::<TRAILER>()?;
        let [probes, version] = *trailer;
        let sound = version == VERSION && !body.is_empty() && body.len().is_multiple_of(LINE);
        let lines = body.len() / LINE;
        let probes = usize::from(probes);
        let block = match data {
            BlockData::Owned(_) if sound => FilterBlock::Owned(data.as_slice().into()),
            _ => FilterBlock::Mapped(data),
        };
        sound.then_some(FullFilter { block, lines, probes: probes.min(MAX_PROBES) })
    }

    /// The same filter, with the same bytes, if they are in memory; `None` if they are in a mapped
    /// file.
    pub(crate) fn share(&self) -> Option<FullFilter> {
        let FullFilter { ref block, lines, probes } = *self;
        match block {
            FilterBlock::Owned(bytes) => {
                Some(FullFilter { block: FilterBlock::Owned(bytes.clone()), lines, probes })
            }
            FilterBlock::Mapped(_) => None,
        }
    }

    /// Whether the key with this hash may be in the table.
    #[inline]
    pub(crate) fn may_match(&self, hash: u64) -> bool {
        let start = line_of(hash, self.lines) * LINE;
        let line = self.block.as_slice().get(start..start + LINE);
        // A filter without this line cannot speak for it.
        line.is_none_or(|line| {
            bits(hash, self.probes).all(|bit| line[bit / 8] >> (bit % 8) & 1 == 1)
        })
    }

    /// Prefetches what a check of this hash reads.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        let start = line_of(hash, self.lines) * LINE;
        prefetch(self.block.as_slice().get(start..start + LINE).unwrap_or_default());
    }

    /// The bytes in memory.
    pub(crate) fn owned_bytes(&self) -> usize {
        match &self.block {
            FilterBlock::Owned(bytes) => bytes.len(),
            FilterBlock::Mapped(_) => 0,
        }
    }
}

/// The line of a hash: its upper half, scaled.
#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

/// The bits of a hash in its line: from the lower half, multiplied on for each probe.
#[inline]
fn bits(hash: u64, probes: usize) -> impl Iterator<Item = usize> {
    let mut state = hash as u32;
    (0..probes).map(move |_| {
        let bit = state >> 23;
        state = state.wrapping_mul(0x9e37_79b9);
        bit as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(bytes: Vec<u8>) -> BlockData {
        BlockData::Owned(bytes.into())
    }

    fn filter(bits_per_key: usize, keys: std::ops::Range<u32>) -> FullFilter {
        let mut builder = FullFilterBuilder::new();
        keys.for_each(|n| builder.add_key(format!("{n:016}").as_bytes()));
        FullFilter::new(owned(builder.finish(bits_per_key))).expect("a filter")
    }

    #[test]
    fn every_key_matches_and_few_others_do() {
        for count in [0u32, 1, 10, 20_000] {
            let filter = filter(10, 0..count);
            assert!((0..count).all(|n| filter.may_match(hash_key(format!("{n:016}").as_bytes()))));
            let others = (count..count + 20_000)
                .filter(|n| filter.may_match(hash_key(format!("{n:016}").as_bytes())));
            assert!(others.count() < 400, "about one in a hundred");
        }
    }

    #[test]
    fn a_table_above_others_is_wrong_ten_times_as_rarely() {
        let wrong = |bits| {
            let filter = filter(bits, 0..20_000);
            let others = (20_000..220_000u32)
                .filter(|n| filter.may_match(hash_key(format!("{n:016}").as_bytes())));
            others.count()
        };
        let (few, many) = (wrong(bits_above(10)), wrong(10));
        assert!(few < 300 && 7 * few < many, "{few} and {many} of 200,000");
        assert_eq!([0, 1, 10, 20, 32].map(bits_above), [0, 1, 16, 32, 32]);
    }

    /// However many pieces the hashes take, and where versions of one key lie in two.
    #[test]
    fn the_bytes_are_those_of_the_keys_alone() {
        for count in [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
            let keys: Vec<_> = (0..count).map(|n| format!("{n:016}")).collect();
            let (mut once, mut often) = (FullFilterBuilder::new(), FullFilterBuilder::new());
            for key in &keys {
                once.add_key(key.as_bytes());
                (0..3).for_each(|_| often.add_key(key.as_bytes()));
            }
            let lines = (count * 10).div_ceil(8 * LINE);
            let mut expected = vec![0; lines * LINE];
            for key in &keys {
                let hash = hash_key(key.as_bytes());
                bits(hash, 6).for_each(|bit| {
                    expected[line_of(hash, lines) * LINE + bit / 8] |= 1 << (bit % 8);
                });
            }
            expected.extend([6, VERSION]);
            assert!(once.finish(10) == expected && often.finish(10) == expected, "{count} keys");
        }
    }

    #[test]
    fn the_bytes_are_fixed() {
        let mut builder = FullFilterBuilder::new();
        builder.add_key(b"key");
        builder.add_key(b"key");
        let block = builder.finish(10);
        assert_eq!(hash_key(b"key"), xxh3_64(b"key"));
        assert_eq!((block.len(), &block[LINE..]), (LINE + TRAILER, &[6u8, VERSION][..]));
        let set: Vec<_> =
            (0..8 * LINE).filter(|bit| block[bit / 8] >> (bit % 8) & 1 == 1).collect();
        let mut expected: Vec<_> = bits(xxh3_64(b"key"), 6).collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(set, expected);
    }

    #[test]
    fn foreign_blocks_are_no_filters() {
        for block in
            [vec![], vec![6, VERSION], vec![0; LINE + TRAILER], vec![VERSION; LINE + TRAILER + 1]]
        {
            assert!(FullFilter::new(owned(block)).is_none());
        }
    }
}
