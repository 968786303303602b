//! A block in memory, and the search for a key in it.
//!
//! Any number of threads read a block at once. Its bytes have passed their checksum but are not
//! trusted otherwise: every offset and length is checked where it is used. A block that contradicts
//! itself is *damaged*; a caller that knows file and offset makes an error of that.

use std::cmp::Ordering;
use std::sync::atomic::{self, AtomicU8};
use std::sync::{Arc, OnceLock};

use crate::base::abbreviated_keys::AbbreviatedKeys;
use crate::base::memory_account::{Charge, MemoryAccount, MemoryUse};
use crate::base::prefetch::prefetch;
use crate::cache::Weighted;

use super::abbreviated_entries::AbbreviatedEntries;
use super::block_error::Damage;
use super::block_search::{Found, scan, scan_bytewise};
use super::entry::Entry;
use super::format::BlockData;
use super::order::TableOrder;

const BAD_RESTART: Damage = "a restart point is no entry";

/// Bytes that a block takes besides its contents: itself, its count of references, its place in the
/// cache's queues, and the allocator's share of all that.
const OVERHEAD: usize = size_of::<Block>() + 64;

/// Restart points that a block keeps the abbreviated keys of.
const MAX_ABBREVIATED: usize = 6;

/// Searches after which a block learns the abbreviated keys of its entries: that costs as much as
/// five of them save, and some blocks are soon compacted away.
const WORTH_ABBREVIATING: u8 = 12;

/// Bytes of an entry that are prefetched before it is looked at.
const ENTRY_BYTES: usize = 192;

/// About what a search goes through behind a restart point where entries are small: asked for at
/// once.
const SCANNED_BYTES: usize = 1536;

/// Bytes at its beginning that are prefetched before a block is scanned: the processor itself
/// foresees the others.
const FIRST_BYTES: usize = 256;

/// The same at its end: restart points and a group of small entries, because it does not foresee
/// steps backwards.
const LAST_BYTES: usize = 2 << 10;

/// The bytes of a block: entries, then the offsets of restart points, then their number.
pub(crate) struct Block {
    data: BlockData,
    /// Where the entries end and the restart points begin.
    entries_end: usize,
    restarts: usize,
    abbreviated_keys: Option<AbbreviatedRestarts>,
    /// Bytes that abbreviated keys of keys of this table leave out.
    prefix: usize,
    /// Searches so far, up to those that abbreviated keys of entries are worth.
    searches: AtomicU8,
    /// `None` if it cannot have them.
    abbreviated_entries: OnceLock<Option<Box<AbbreviatedEntries>>>,
    /// With a memory budget.
    charge: Option<Charge>,
}

/// Offsets and abbreviated keys (those of the index) of the restart points of a small block, but
/// for the first, which is at 0. They spare a search the way through the block's far ends, each of
/// which is likely to be missing in the processor's cache.
struct AbbreviatedRestarts {
    abbreviated_keys: [u64; MAX_ABBREVIATED],
    offsets: [u32; MAX_ABBREVIATED],
}

impl Block {
    /// Checks the frame of a block.
    pub(super) fn parse(data: BlockData) -> Result<Block, Damage> {
        let bytes = data.as_slice();
        let (rest, restarts) = bytes.split_last_chunk::<4>().ok_or("too short for a block")?;
        let restarts = u32::from_le_bytes(*restarts) as usize;
        if restarts > rest.len() / 4 {
            return Err("more restart points than bytes");
        }
        let entries_end = rest.len() - 4 * restarts;
        let block = Block { entries_end, restarts, ..Block::beginning(data) };
        if entries_end > 0 && block.restart(0) != Some(0) {
            return Err("the first entry is no restart point");
        }
        Ok(block)
    }

    /// The decoded beginning of a block, for a value in it. It is never searched.
    pub(super) fn beginning(data: BlockData) -> Block {
        let entries_end = data.as_slice().len();
        let (searches, abbreviated_entries) = (AtomicU8::new(0), OnceLock::new());
        Block {
            data,
            entries_end,
            restarts: 0,
            abbreviated_keys: None,
            prefix: 0,
            searches,
            abbreviated_entries,
            charge: None,
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.data.as_slice()
    }

    #[inline]
    pub(super) fn entries(&self) -> &[u8] {
        self.data.as_slice().get(..self.entries_end).unwrap_or_default()
    }

    /// The restart point `index`, if there is one and it lies before the end of the entries.
    #[inline]
    fn restart(&self, index: usize) -> Option<usize> {
        let at = self.entries_end + 4 * index;
        let bytes = self.data.as_slice().get(at..)?.first_chunk::<4>()?;
        let offset = u32::from_le_bytes(*bytes) as usize;
        (index < self.restarts && offset < self.entries_end).then_some(offset)
    }

    /// The last restart point before `offset`, which is not 0.
    pub(super) fn restart_before(&self, offset: usize) -> Result<usize, Damage> {
        let (mut low, mut high) = (0, self.restarts);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.restart(middle).ok_or(BAD_RESTART)? < offset {
                low = middle
            } else {
                high = middle
            }
        }
        self.restart(low).filter(|&restart| restart < offset).ok_or(BAD_RESTART)
    }

    /// Where the abbreviated keys of its entries are; 0 if it has none.
    #[inline]
    pub(super) fn abbreviated_address(&self) -> usize {
        let abbreviated_keys = self.abbreviated_entries.get().and_then(Option::as_deref);
        abbreviated_keys.map_or(0, |abbreviated_keys| std::ptr::from_ref(abbreviated_keys).addr())
    }

    /// Prefetches the beginning of a forward scan.
    #[inline]
    pub(super) fn prefetch_first(&self) {
        let bytes = self.data.as_slice();
        prefetch(bytes.get(..FIRST_BYTES).unwrap_or(bytes));
    }

    /// Prefetches the beginning of a backward scan.
    #[inline]
    pub(super) fn prefetch_last(&self) {
        let bytes = self.data.as_slice();
        prefetch(bytes.get(bytes.len().saturating_sub(LAST_BYTES)..).unwrap_or_default());
    }

    /// Takes the abbreviated keys of the restart points, where all of them have one.
    pub(super) fn with_abbreviated_keys(
        mut self,
        order: &TableOrder,
        keys: &AbbreviatedKeys,
    ) -> Self {
        self.abbreviated_keys = self.abbreviated_restarts(order, keys);
        self.prefix = keys.prefix().len();
        self
    }

    /// Has `account` count the block for as long as it is in memory.
    pub(super) fn counted(mut self, account: &Arc<MemoryAccount>) -> Self {
        self.charge = Some(account.charge(MemoryUse::Blocks, self.weight()));
        self
    }

    fn abbreviated_restarts(
        &self,
        order: &TableOrder,
        keys: &AbbreviatedKeys,
    ) -> Option<AbbreviatedRestarts> {
        if self.restarts == 0 || self.restarts > MAX_ABBREVIATED + 1 {
            return None;
        }
        let mut abbreviated_keys = AbbreviatedRestarts {
            abbreviated_keys: [u64::MAX; MAX_ABBREVIATED],
            offsets: [0; MAX_ABBREVIATED],
        };
        for at in 1..self.restarts {
            let offset = self.restart(at)?;
            let entry = Entry::decode(self.entries(), offset).ok()?;
            entry.check(0, order.tag_size()).ok()?;
            abbreviated_keys.abbreviated_keys[at - 1] = keys
                .abbreviate(order.user_key(self.entries().get(entry.rest..entry.value)?))
                .ok()?;
            abbreviated_keys.offsets[at - 1] = offset as u32;
        }
        Some(abbreviated_keys)
    }

    /// The restart points between which a key with this abbreviated key is sought: the first is not
    /// behind it, the second is.
    #[inline]
    fn restarts_around(&self, abbreviated: Option<u64>) -> (usize, usize) {
        let (Some(known), Some(abbreviated)) = (&self.abbreviated_keys, abbreviated) else {
            return (0, self.restarts);
        };
        let abbreviated_keys = &known.abbreviated_keys[..MAX_ABBREVIATED.min(self.restarts - 1)];
        let (before, up_to) = abbreviated_keys.iter().fold((0, 0), |(before, up_to), &other| {
            (before + usize::from(other < abbreviated), up_to + usize::from(other <= abbreviated))
        });
        (before, 1 + up_to)
    }

    /// Asks for what a search for a key with this abbreviated key goes through, if that is known.
    pub(super) fn prefetch_near(&self, abbreviated: Option<u64>) {
        if let (Some(Some(known)), Some(abbreviated)) =
            (self.abbreviated_entries.get(), abbreviated)
        {
            if let Some(start) = known.start(abbreviated) {
                let entries = self.entries();
                prefetch(
                    entries
                        .get(start.offset..entries.len().min(start.offset + ENTRY_BYTES))
                        .unwrap_or_default(),
                );
            }
            return;
        }
        let Some(known) = &self.abbreviated_keys else { return };
        let start = self
            .restarts_around(abbreviated)
            .0
            .checked_sub(1)
            .map_or(0, |at| known.offsets[at] as usize);
        self.prefetch_from(start);
    }

    /// [`find`](Self::find) by the abbreviated keys of entries, if the block has been searched
    /// often enough. `None` if these cannot say.
    #[inline]
    fn find_by_abbreviated(
        &self,
        order: &TableOrder,
        target: &[u8],
        abbreviated: u64,
    ) -> Result<Option<Option<Found>>, Damage> {
        let Some(known) = self.abbreviated_entries.get() else {
            self.count_search(order, target);
            return Ok(None);
        };
        let Some(known) = known.as_deref() else { return Ok(None) };
        let entries = self.entries();
        let Some(start) = known.start(abbreviated) else { return Ok(Some(None)) };
        prefetch(
            entries
                .get(start.offset..entries.len().min(start.offset + ENTRY_BYTES))
                .unwrap_or_default(),
        );
        let first = Entry::decode(entries, start.offset)?;
        if first.shared > start.told.min(order.user_key(target).len()) {
            return Ok(None);
        }
        scan_bytewise(entries, start.offset, first.shared, order, target)
    }

    /// Learns the abbreviated keys of its entries when that is worth it.
    #[inline]
    fn count_search(&self, order: &TableOrder, target: &[u8]) {
        let searches = self.searches.load(atomic::Ordering::Relaxed);
        self.searches.store(searches.saturating_add(1), atomic::Ordering::Relaxed);
        if searches >= WORTH_ABBREVIATING {
            self.read_abbreviated(order, target);
        }
    }

    #[cold]
    #[inline(never)]
    fn read_abbreviated(&self, order: &TableOrder, target: &[u8]) {
        let restarts = (0..self.restarts).map(|index| self.restart(index));
        // A block in a mapped file weighs little else, and its memory is what the cache has room
        // for.
        let prefix = target.get(..self.prefix).filter(|_| self.owns_its_bytes());
        let abbreviated_keys = prefix
            .and_then(|prefix| AbbreviatedEntries::new(self.entries(), restarts, order, prefix));
        let _ = self.abbreviated_entries.set(abbreviated_keys.map(Box::new));
    }

    /// Asks for what a search goes through from `start` on.
    #[inline]
    fn prefetch_from(&self, start: usize) {
        let entries = self.entries();
        prefetch(entries.get(start..entries.len().min(start + SCANNED_BYTES)).unwrap_or_default());
    }

    /// The first entry whose key is at least `target`, a key of the table's order whose abbreviated
    /// key is `abbreviated`, if it has one; `None` if all are less.
    pub(super) fn find(
        &self,
        order: &TableOrder,
        target: &[u8],
        abbreviated: Option<u64>,
    ) -> Result<Option<Found>, Damage> {
        let entries = self.entries();
        if entries.is_empty() {
            return Ok(None);
        }
        let bytewise = order.is_bytewise() && target.len() >= order.tag_size();
        if let Some(abbreviated) = abbreviated.filter(|_| bytewise)
            && let Some(found) = self.find_by_abbreviated(order, target, abbreviated)?
        {
            return Ok(found);
        }
        let (mut low, mut high) = self.restarts_around(abbreviated);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let entry = Entry::decode(entries, self.restart(middle).ok_or(BAD_RESTART)?)?;
            entry.check(0, order.tag_size())?;
            if order.compare(&entries[entry.rest..entry.value], target) == Ordering::Less {
                low = middle;
            } else {
                high = middle;
            }
        }
        let start = match &self.abbreviated_keys {
            _ if low == 0 => 0,
            Some(known) => known.offsets[low - 1] as usize,
            None => self.restart(low).ok_or(BAD_RESTART)?,
        };
        self.prefetch_from(start);
        if bytewise && let Some(found) = scan_bytewise(entries, start, 0, order, target)? {
            return Ok(found);
        }
        scan(entries, start, order, target)
    }
}

impl Block {
    /// Whether its bytes are on the heap, rather than in a mapped file.
    pub(super) fn owns_its_bytes(&self) -> bool {
        self.data.owned_bytes() > 0
    }

    /// Whether `entry`, which is of this block, is all that is in it.
    pub(super) fn is_all(&self, entry: &Entry) -> bool {
        entry.offset == 0 && entry.end == self.entries_end && self.restarts == 1
    }

    /// What a block weighs that owns so many bytes.
    pub(super) fn weight_of(bytes: usize) -> usize {
        bytes + OVERHEAD + size_of::<AbbreviatedEntries>()
    }

    /// Bytes of the block, uncompressed.
    pub(super) fn size(&self) -> usize {
        self.data.as_slice().len()
    }
}

impl Weighted for Block {
    fn weight(&self) -> usize {
        match self.data.owned_bytes() {
            0 => OVERHEAD,
            bytes => Block::weight_of(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::abbreviated_keys::abbreviated;
    use crate::base::coding::{put_u32, put_varint32};
    use crate::base::comparator::KeyOrder;
    use crate::base::internal_key::{EntryKind, encode, user_key};
    use crate::base::random::Random;
    use crate::table::block_builder::BlockBuilder;
    use crate::table::entry::{BAD_ENTRY, BAD_SHARING, SHORT_KEY};

    /// A block of entries as they are: how much they share, the rest of the key, the value.
    fn block(entries: &[(u32, &[u8], &[u8])], restarts: &[u32]) -> Result<Block, Damage> {
        let mut bytes = Vec::new();
        for (shared, rest, value) in entries {
            for length in [*shared, rest.len() as u32, value.len() as u32] {
                put_varint32(&mut bytes, length);
            }
            bytes.extend_from_slice(rest);
            bytes.extend_from_slice(value);
        }
        restarts.iter().for_each(|&restart| put_u32(&mut bytes, restart));
        put_u32(&mut bytes, restarts.len() as u32);
        Block::parse(BlockData::Owned(bytes.into()))
    }

    fn key(user: &str) -> Vec<u8> {
        encode(user.as_bytes(), 7, EntryKind::Value)
    }

    fn find(block: &Block, user: &str) -> Result<Option<(Vec<u8>, bool)>, Damage> {
        let found = block.find(&TableOrder::internal(KeyOrder::default()), &key(user), None)?;
        let value = |found: &Found| block.entries()[found.entry.value..found.entry.end].to_vec();
        Ok(found.map(|found| (value(&found), found.same_user_key)))
    }

    #[test]
    fn keys_that_share_into_a_tag_are_put_together() {
        // The second key is the first one's eight letters and one byte more: a user key of one
        // letter, and a tag. It is out of order, and the search goes on behind it.
        let block =
            block(&[(0, &key("abcdefgh"), b"1"), (8, b"x", b"2"), (0, &key("b"), b"3")], &[0])
                .expect("frames");
        assert_eq!(find(&block, "abcdefgh"), Ok(Some((b"1".to_vec(), true))));
        assert_eq!(find(&block, "abcdefghi"), Ok(Some((b"3".to_vec(), false))));
        assert_eq!(find(&block, "b"), Ok(Some((b"3".to_vec(), true))));
        assert_eq!(find(&block, "c"), Ok(None));
    }

    /// A block that knows the abbreviated keys of its entries finds what it found before.
    #[test]
    fn abbreviated_entries_find_the_same_entry() {
        let order = TableOrder::internal(KeyOrder::default());
        let (mut learned, mut by_abbreviated) = (0, 0);
        for seed in 1..=2000u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let size = random.below(6);
            let prefix = random.bytes(size, 256);
            let (letters, longest) = ([2, 10, 256][random.below(3)], 1 + random.below(14));
            let any_key = |random: &mut Random| {
                let (mut user, size) = (prefix.clone(), random.below(longest + 1));
                user.extend(random.bytes(size, letters));
                encode(&user, random.below(3) as u64, EntryKind::Value)
            };
            let mut keys: Vec<_> = (0..random.below(60)).map(|_| any_key(&mut random)).collect();
            keys.sort_by(|a, b| order.compare(a, b));
            keys.dedup();
            let mut builder = BlockBuilder::new(1 + random.below(20));
            for key in &keys {
                let size = random.below(50);
                let value = random.bytes(size, 256);
                builder.add(key, &value);
            }
            let mut block =
                Block::parse(BlockData::Owned(builder.finish().to_vec().into())).expect("frames");
            block.prefix = prefix.len();
            for search in 0..200 {
                let target = any_key(&mut random);
                let abbreviated = abbreviated(&user_key(&target)[prefix.len()..]);
                let find_by = |abbreviated| {
                    let found = block.find(&order, &target, abbreviated).expect("sound");
                    found.map(|found| {
                        let (shared, rest) =
                            (found.entry.shared, found.entry.rest..found.entry.value);
                        let key = found.key.unwrap_or_else(|| {
                            [&target[..shared], &block.entries()[rest]].concat()
                        });
                        (found.entry.offset, found.same_user_key, found.tag, key)
                    })
                };
                let expected = keys.iter().find(|key| order.compare(key, &target).is_ge());
                assert_eq!(
                    find_by(None).map(|(_, _, _, key)| key),
                    expected.cloned(),
                    "seed {seed}, search {search}"
                );
                assert_eq!(
                    find_by(Some(abbreviated)),
                    find_by(None),
                    "seed {seed}, search {search}"
                );
                by_abbreviated += usize::from(
                    block
                        .find_by_abbreviated(&order, &target, abbreviated)
                        .is_ok_and(|found| found.is_some()),
                );
            }
            learned += usize::from(matches!(block.abbreviated_entries.get(), Some(Some(_))));
        }
        assert!(
            learned > 500 && by_abbreviated > 100_000,
            "{learned} blocks, {by_abbreviated} searches by abbreviated_keys"
        );
    }

    #[test]
    fn contradictions_are_damage() {
        assert_eq!(block(&[], &[]).and_then(|block| find(&block, "a")), Ok(None));
        assert_eq!(
            block(&[(0, b"abc", b"")], &[]).err(),
            Some("the first entry is no restart point")
        );
        assert_eq!(
            block(&[(0, b"abc", b"")], &[1]).err(),
            Some("the first entry is no restart point")
        );
        assert_eq!(
            Block::parse(BlockData::Owned(vec![0; 3].into())).err(),
            Some("too short for a block")
        );
        assert_eq!(
            Block::parse(BlockData::Owned(vec![9; 8].into())).err(),
            Some("more restart points than bytes")
        );
        let damage = |entries: &[(u32, &[u8], &[u8])], restarts: &[u32]| {
            find(&block(entries, restarts).expect("frames"), "k").expect_err("damage")
        };
        assert_eq!(damage(&[(0, b"short", b"")], &[0]), SHORT_KEY);
        assert_eq!(damage(&[(1, &key("a"), b"")], &[0]), BAD_SHARING);
        assert_eq!(damage(&[(0, &key("a"), b""), (20, &key("a"), b"")], &[0]), BAD_SHARING);
        // A restart point behind the entries, and some within an entry.
        assert_eq!(damage(&[(0, &key("a"), b"")], &[0, 300]), BAD_RESTART);
        assert_eq!(damage(&[(0, &key("a"), b""), (0, &key("b"), b"")], &[0, 5]), BAD_SHARING);
        assert_eq!(damage(&[(0, &key("a"), b""), (0, &key("b"), b"")], &[0, 11]), SHORT_KEY);
        assert_eq!(damage(&[(0, &key("a"), b""), (0, &key("b"), b"")], &[0, 23]), BAD_ENTRY);
    }
}
