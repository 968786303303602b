//! A restart group of a block, decoded for steps back.
//!
//! A key says how much it shares with the one before, so keys are put together on the way forward,
//! where that one is at hand: a step back copies what is there. Long keys, and those of large
//! groups, are put together when they are come to, from the entries that hold their parts. That
//! takes the space of the decoded entries and no more, however long the keys are.

use crate::base::prefetch::prefetch;

use super::block_error::Damage;
use super::entry::Entry;
use super::key_buffer::KeyBuffer;

/// Bytes that are asked for ahead on the way back: a group of small entries. Large ones gain
/// nothing.
const MOST_AHEAD: usize = 4 << 10;

/// The room for each of the keys that are put together ahead, and how many those are at most.
const SLOT: usize = 64;
const MOST_KEYS: usize = 32;

/// The entries of a restart group, up to the one where it was entered from behind.
pub(super) struct Group {
    entries: Vec<Entry>,
    /// Their keys, a `SLOT` apart.
    keys: KeyBuffer,
    /// Whether all their keys are there.
    has_keys: bool,
}

impl Group {
    pub(super) fn new() -> Self {
        Group { entries: Vec::new(), keys: KeyBuffer::new(), has_keys: false }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)
    }

    /// Takes the entries from the restart point `start` up to `end`, and checks all of them.
    pub(super) fn decode(
        &mut self,
        entries: &[u8],
        start: usize,
        end: usize,
        tag_size: usize,
    ) -> Result<(), Damage> {
        self.entries.clear();
        self.has_keys = true;
        self.keys.grow(MOST_KEYS * SLOT);
        // The processor does not foresee steps backwards. Decoding would find one line after
        // another missing, because each entry says where the next one is; so the group before is on
        // its way while this one is gone through.
        let size = (end - start.min(end)).min(MOST_AHEAD);
        prefetch(entries.get(start.saturating_sub(size)..start).unwrap_or_default());
        let (mut offset, mut key_length) = (start, 0);
        while offset < end {
            let entry = Entry::decode(entries, offset)?;
            entry.check(key_length, tag_size)?;
            key_length = entry.key_length();
            self.has_keys &= key_length <= SLOT && self.entries.len() < MOST_KEYS;
            if self.has_keys {
                let at = self.entries.len() * SLOT;
                // The first one shares nothing.
                self.keys.repeat::<SLOT>(at);
                self.keys.put(at + entry.shared, entries, entry.rest, entry.value);
            }
            self.entries.push(entry);
            offset = entry.end;
        }
        if offset == end { Ok(()) } else { Err("a restart point is no entry") }
    }

    /// Makes `key`, whose first `known` bytes are right, the key of the entry at `index`, which is
    /// as long at least.
    #[inline]
    pub(super) fn fetch_key(
        &self,
        entries: &[u8],
        index: usize,
        known: usize,
        key: &mut KeyBuffer,
    ) -> Result<(), Damage> {
        if !self.has_keys {
            return self.gather_key(entries, index, known, key);
        }
        let at = index * SLOT;
        key.set(0, self.keys.room(), at, at + self.entries[index].key_length());
        Ok(())
    }

    /// The bytes that are not known are in the rests of the entry and those before it, each of
    /// which covers the key from where it stops sharing.
    fn gather_key(
        &self,
        entries: &[u8],
        index: usize,
        known: usize,
        key: &mut KeyBuffer,
    ) -> Result<(), Damage> {
        let mut holders = self.entries[..=index].iter().rev();
        let length = self.entries[index].key_length();
        key.truncate(known);
        key.grow(length);
        let mut missing_end = length;
        while missing_end > known {
            // The first entry of a group shares nothing, so this ends there at the latest.
            let holder = holders.next().ok_or("an entry shares more of a key than there is")?;
            let from = holder.shared.max(known);
            if from < missing_end {
                let at = holder.rest + (from - holder.shared);
                let end = at + (missing_end - from);
                // Only the end of the key has nothing behind it yet.
                if missing_end == length {
                    key.put(from, entries, at, end);
                } else {
                    key.put_exact(from, entries, at, end);
                }
                missing_end = from;
            }
        }
        key.set_len(length);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::coding::put_varint32;
    use crate::base::random::Random;

    /// Whether keys are put together ahead, gathered, or copied in whole, they are those that were
    /// written.
    #[test]
    fn keys_come_back_whatever_their_number_and_length() {
        let (mut ahead, mut gathered) = (0, 0);
        for seed in 1..=1000u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let longest = [20, SLOT, 3 * SLOT][random.below(3)];
            let (mut bytes, mut keys) = (Vec::new(), Vec::<Vec<u8>>::new());
            for _ in 0..=random.below(2 * MOST_KEYS) {
                let before = keys.last().map_or(&[][..], Vec::as_slice);
                let shared = random.below(before.len() + 1);
                let size = 8 + random.below(longest - 8 + 1).saturating_sub(shared);
                let rest = random.bytes(size, 256);
                for length in [shared, rest.len(), 5] {
                    put_varint32(&mut bytes, length as u32);
                }
                bytes.extend_from_slice(&rest);
                bytes.extend_from_slice(b"value");
                keys.push([&before[..shared], &rest].concat());
            }
            let mut group = Group::new();
            group.decode(&bytes, 0, bytes.len(), 8).expect("sound entries");
            let (mut key, mut known) = (KeyBuffer::new(), 0);
            for (index, expected) in keys.iter().enumerate().rev() {
                group.fetch_key(&bytes, index, known, &mut key).expect("a key");
                assert_eq!(
                    key.as_slice(),
                    expected,
                    "seed {seed}, entry {index} of {}",
                    keys.len()
                );
                known = group.get(index).expect("an entry").shared;
            }
            *(if group.has_keys { &mut ahead } else { &mut gathered }) += 1;
        }
        assert!(ahead > 100 && gathered > 100, "{ahead} groups with keys, {gathered} without");
    }
}
