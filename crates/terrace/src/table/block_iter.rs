//! Steps through the entries of a block in either direction.
//!
//! Forward, the key is changed in place: what an entry shares with its predecessor is in the buffer
//! already. Backward, a whole restart group is decoded once and then gone through.

use std::sync::Arc;

use crate::base::internal_key::TAG_SIZE;
use crate::base::mutation::mutated;
use crate::base::prefetch::prefetch;

use super::block::Block;
use super::block_error::Damage;
use super::entry::Entry;
use super::group::Group;
use super::key_buffer::KeyBuffer;
use super::order::TableOrder;

/// Not within a decoded restart group.
const NO_GROUP: usize = usize::MAX;
/// Bytes that the first step behind a seek asks for: those of ten small entries. Behind them the
/// processor foresees what comes.
const AHEAD: usize = 1152;

/// A position in a block, or none. Reused from block to block.
pub(super) struct BlockIter {
    block: Option<Arc<Block>>,
    tag_size: usize,
    valid: bool,
    entry: Entry,
    key: KeyBuffer,
    /// The restart group that is gone through backwards.
    group: Group,
    /// Which of its entries this one is, or follows; `NO_GROUP` after a step forward.
    in_group: usize,
    /// Set by a seek, until [`next_of_other_key`](Self::next_of_other_key) asks for what lies
    /// ahead.
    has_landed: bool,
    /// After a step back: whether the user key of the entry before is known to have other bytes
    /// than this one.
    follows_other_key: bool,
    damage: Option<Damage>,
}

impl BlockIter {
    pub(super) fn new(tag_size: usize) -> Self {
        BlockIter {
            block: None,
            tag_size,
            valid: false,
            entry: Entry::default(),
            key: KeyBuffer::new(),
            group: Group::new(),
            in_group: NO_GROUP,
            has_landed: false,
            follows_other_key: false,
            damage: None,
        }
    }

    /// Another position at the same entry.
    pub(super) fn fork(&self) -> Self {
        let (block, tag_size, valid) = (self.block.clone(), self.tag_size, self.valid);
        let mut fork = BlockIter { block, valid, entry: self.entry, ..Self::new(tag_size) };
        fork.key.set(0, self.key.as_slice(), 0, self.key.len());
        fork
    }

    /// Where in the block the entry here begins.
    pub(super) fn offset(&self) -> usize {
        self.entry.offset
    }

    /// Moves to `block`, at no entry.
    pub(super) fn set_block(&mut self, block: Option<Arc<Block>>) {
        self.block = block;
        self.invalidate();
        self.damage = None;
    }

    pub(super) fn has_block(&self) -> bool {
        self.block.is_some()
    }

    #[inline]
    pub(super) fn valid(&self) -> bool {
        self.valid
    }

    /// The damage that stopped the last movement, if there is any.
    pub(super) fn damage(&self) -> Option<Damage> {
        self.damage
    }

    /// The key here; empty if not valid.
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        if self.valid { self.key.as_slice() } else { &[] }
    }

    /// The value here; empty if not valid.
    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        match &self.block {
            Some(block) if self.valid => {
                block.entries().get(self.entry.value..self.entry.end).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// Whether there is an entry here, and no other in the block.
    pub(super) fn is_alone(&self) -> bool {
        self.valid && self.block.as_ref().is_some_and(|block| block.is_all(&self.entry))
    }

    pub(super) fn seek_to_first(&mut self) {
        self.damage = None;
        self.key.set_len(0);
        self.step_to(0);
    }

    pub(super) fn seek_to_last(&mut self) {
        self.invalidate();
        self.damage = None;
        let end = self.block.as_ref().map_or(0, |block| block.entries().len());
        self.entry = Entry { offset: end, ..Entry::default() };
        self.step_back();
    }

    /// Goes to the first entry whose key is at least `target`, whose abbreviated key is
    /// `abbreviated`, if it has one.
    pub(super) fn seek(&mut self, order: &TableOrder, target: &[u8], abbreviated: Option<u64>) {
        self.invalidate();
        self.damage = None;
        let Some(block) = &self.block else { return };
        match block.find(order, target, abbreviated) {
            Ok(Some(found)) => {
                let entries = block.entries();
                match found.key {
                    Some(key) => self.key.set(0, &key, 0, key.len()),
                    None => {
                        self.key.set(0, target, 0, found.entry.shared);
                        self.key.set(
                            found.entry.shared,
                            entries,
                            found.entry.rest,
                            found.entry.value,
                        );
                    }
                }
                self.entry = found.entry;
                self.valid = true;
                self.has_landed = true;
            }
            Ok(None) => {}
            Err(damage) => self.fail(damage),
        }
    }

    /// Goes to the next entry. Nothing happens without a position.
    #[inline]
    pub(super) fn next(&mut self) {
        if self.valid {
            self.step_to(self.entry.end);
        }
    }

    /// Goes to the next entry, and returns its tag, if it is in this block and its user key has
    /// other bytes than this one. Otherwise, and where it takes a closer look, nothing happens.
    /// Only for internal keys.
    #[inline]
    pub(super) fn next_of_other_key(&mut self) -> Option<u64> {
        debug_assert_eq!(self.tag_size, TAG_SIZE);
        if !self.valid {
            return None;
        }
        let entries = self.block.as_ref()?.entries();
        if self.has_landed {
            self.has_landed = false;
            prefetch_from(entries, self.entry.end);
        }
        // Damage is reported by the next step in the usual way.
        let entry = Entry::decode(entries, self.entry.end).ok()?;
        entry.check(self.key.len(), TAG_SIZE).ok()?;
        if self.key.len() == entry.key_length() {
            let end = self.key.len() - TAG_SIZE;
            let mine = self.key.as_slice().get(entry.shared..end)?;
            let rest = entries.get(entry.rest..entry.rest + mine.len())?;
            // The first byte is as far as this gets but at restart points.
            if mine.first() == rest.first() && mine == rest {
                return None;
            }
        }
        self.key.set(entry.shared, entries, entry.rest, entry.value);
        self.entry = entry;
        self.leave_group();
        self.key.as_slice().last_chunk().map(|tag| u64::from_le_bytes(*tag))
    }

    /// Whether the entry before is in this block, and its user key is known to have other bytes
    /// than this one. Only for internal keys.
    #[inline]
    pub(super) fn follows_other_key(&self) -> bool {
        debug_assert_eq!(self.tag_size, TAG_SIZE);
        self.follows_other_key
    }

    /// Goes to the entry before. Nothing happens without a position.
    #[inline]
    pub(super) fn prev(&mut self) {
        if self.valid {
            self.step_back();
        }
    }

    /// Goes to the entry at `offset`; the buffer holds the key before it.
    #[inline]
    fn step_to(&mut self, offset: usize) {
        self.leave_group();
        let entries = self.block.as_ref().map_or(&[][..], |block| block.entries());
        if offset >= entries.len() {
            return self.invalidate();
        }
        let entry = match Entry::decode(entries, offset) {
            Ok(entry) => entry,
            Err(damage) => return self.fail(damage),
        };
        if let Err(damage) = entry.check(self.key.len(), self.tag_size) {
            return self.fail(damage);
        }
        self.key.set(entry.shared, entries, entry.rest, entry.value);
        self.entry = entry;
        self.valid = true;
    }

    /// Goes to the entry before the one in `self.entry`, which may be the end of the block.
    fn step_back(&mut self) {
        if self.entry.offset == 0 {
            return self.invalidate();
        }
        if let Err(damage) = self.try_step_back() {
            self.fail(damage);
        }
    }

    fn try_step_back(&mut self) -> Result<(), Damage> {
        let Some(block) = &self.block else { return Ok(()) };
        let entries = block.entries();
        // What the entry behind shares is the beginning of this key, and in the buffer already.
        let known = self.entry.shared;
        if self.in_group == NO_GROUP || self.in_group == 0 {
            let start = block.restart_before(self.entry.offset)?;
            self.group.decode(entries, start, self.entry.offset, self.tag_size)?;
            self.in_group = self.group.len();
        }
        let index = self.in_group - 1;
        let Some(&entry) = self.group.get(index) else { return Err("a restart point is no entry") };
        // A damaged block may contradict itself from group to group.
        if known > entry.key_length() {
            return Err("an entry shares more of a key than there is");
        }
        self.group.fetch_key(entries, index, known, &mut self.key)?;
        self.entry = entry;
        self.in_group = index;
        self.valid = true;
        // The group before is wanted next, and says already now which key comes before. Its damage
        // is found again, and reported, when that is gone to.
        if index == 0 && entry.offset > 0 {
            let start = block.restart_before(entry.offset);
            let decoded = start
                .and_then(|start| self.group.decode(entries, start, entry.offset, self.tag_size));
            self.in_group = if decoded.is_ok() { self.group.len() } else { NO_GROUP };
        }
        self.follows_other_key = self.tag_size == TAG_SIZE && self.differs_from_before(entries);
        Ok(())
    }

    /// Whether what the entry before, in the group, has of its own user key is not what the key
    /// here has there.
    #[inline]
    fn differs_from_before(&self, entries: &[u8]) -> bool {
        let before = self.in_group.checked_sub(1).and_then(|before| self.group.get(before));
        let Some(before) = before else { return false };
        if before.key_length() != self.key.len() {
            return true;
        }
        // What this entry shares is the same; where the one before shares more, its first bytes are
        // not at hand.
        let from = self.entry.shared.max(before.shared);
        let Some(mine) = self.key.as_slice().get(from..self.key.len() - TAG_SIZE) else {
            return false;
        };
        let theirs = before.rest + (from - before.shared);
        match entries.get(theirs..theirs + mine.len()) {
            // The first byte is as far as this gets but at restart points.
            Some(theirs) => {
                mine.first() != theirs.first() || mine != theirs || mutated("before-is-other")
            }
            None => false,
        }
    }

    #[inline]
    fn leave_group(&mut self) {
        self.in_group = NO_GROUP;
        self.follows_other_key = false;
    }

    fn invalidate(&mut self) {
        self.valid = false;
        self.leave_group();
    }

    #[cold]
    fn fail(&mut self, damage: Damage) {
        self.invalidate();
        self.damage = Some(damage);
    }
}

/// Asks for what a few steps from `offset` on go through.
#[inline(never)]
fn prefetch_from(entries: &[u8], offset: usize) {
    let rest = entries.get(offset..).unwrap_or_default();
    prefetch(rest.get(..AHEAD).unwrap_or(rest));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::coding::put_varint64;
    use crate::base::internal_key::user_key;
    use crate::base::random::Random;
    use crate::table::format::BlockData;

    /// A short step leads where a long one does, and only to other user keys, whatever the bytes.
    #[test]
    fn short_steps_agree_with_long_ones() {
        let mut taken = 0;
        for seed in 1..=3000u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut bytes = Vec::new();
            let mut restarts = Vec::new();
            let (mut key, entries): (Vec<u8>, _) = (Vec::new(), random.below(12));
            for n in 0..entries {
                let restart = n == 0 || random.below(4) == 0;
                let shared = if restart { 0 } else { key.len().saturating_sub(random.below(12)) };
                if restart {
                    restarts.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                }
                let size = if shared < 9 || random.below(2) == 0 {
                    9 - shared.min(9) + random.below(4)
                } else {
                    key.len() - shared
                };
                let rest = random.bytes(size, 2);
                let value = random.below(3) * random.below(100);
                bytes.extend_from_slice(&[shared as u8, rest.len() as u8]);
                put_varint64(&mut bytes, value as u64);
                bytes.extend_from_slice(&rest);
                bytes.extend(random.bytes(value, 256));
                key.truncate(shared);
                key.extend_from_slice(&rest);
            }
            let count = restarts.len() as u32 / 4;
            bytes.extend(restarts.into_iter().chain(count.to_le_bytes()));
            let block = Arc::new(Block::parse(BlockData::Owned(bytes.into())).expect("a block"));
            let scan = || {
                let mut iter = BlockIter::new(8);
                iter.set_block(Some(Arc::clone(&block)));
                iter.seek_to_first();
                iter
            };
            let (mut long, mut short) = (scan(), scan());
            while long.valid() {
                let before = long.key().to_vec();
                long.next();
                match short.next_of_other_key() {
                    Some(tag) => {
                        taken += 1;
                        assert_eq!(
                            &tag.to_le_bytes()[..],
                            &long.key()[long.key().len() - 8..],
                            "seed {seed}"
                        );
                        assert_ne!(user_key(&before), user_key(long.key()), "seed {seed}");
                    }
                    None => short.next(),
                }
                assert_eq!(
                    (short.valid(), short.key(), short.value()),
                    (long.valid(), long.key(), long.value())
                );
            }
            assert_eq!(short.damage(), None, "seed {seed}");
            short.seek_to_last();
            while short.valid() {
                let (other, behind) = (short.follows_other_key(), short.key().to_vec());
                short.prev();
                assert!(
                    !other || short.valid() && user_key(&behind) != user_key(short.key()),
                    "seed {seed}"
                );
                taken += usize::from(other);
            }
        }
        assert!(taken > 10_000, "{taken} short steps");
    }
}
