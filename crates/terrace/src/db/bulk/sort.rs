//! Entries on their way into tables: in the order in which they came, or being sorted.

use std::cmp::Ordering;

use crate::base::comparator::KeyOrder;
use crate::base::internal_key::{EntryKind, SequenceNumber, TAG_SIZE, pack_tag};

/// Before each entry: the lengths of its internal key and its value.
const HEADER: usize = 8;

/// Entries of a table to be, in order: lengths, internal key, value, one after another.
#[derive(Default)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
}

impl Chunk {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Appends an entry. Key and value together are shorter than 4 GiB.
    #[inline]
    pub(super) fn push(&mut self, user_key: &[u8], sequence: SequenceNumber, value: &[u8]) {
        let key_length = user_key.len() + TAG_SIZE;
        self.bytes.reserve(HEADER + key_length + value.len());
        self.bytes.extend_from_slice(&(key_length as u32).to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(user_key);
        self.bytes.extend_from_slice(&pack_tag(sequence, EntryKind::Value).to_le_bytes());
        self.bytes.extend_from_slice(value);
    }

    /// Gives every entry another sequence number.
    pub(super) fn stamp(&mut self, sequence: SequenceNumber) {
        let tag = pack_tag(sequence, EntryKind::Value).to_le_bytes();
        let mut rest = self.bytes.as_mut_slice();
        while let Some((header, entries)) = rest.split_first_chunk_mut::<HEADER>() {
            let (key, value) = lengths(*header);
            let Some((entry, others)) = entries.split_at_mut_checked(key + value) else { return };
            if let Some(old) = entry[..key].last_chunk_mut::<TAG_SIZE>() {
                *old = tag;
            }
            rest = others;
        }
    }

    /// Internal keys and values.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (header, entries) = rest.split_first_chunk::<HEADER>()?;
            let (key, value) = lengths(*header);
            let (key, entries) = entries.split_at_checked(key)?;
            let (value, entries) = entries.split_at_checked(value)?;
            rest = entries;
            Some((key, value))
        })
    }
}

/// Of an internal key and of a value.
fn lengths(header: [u8; HEADER]) -> (usize, usize) {
    let header = u64::from_le_bytes(header);
    (header as u32 as usize, (header >> 32) as usize)
}

/// Where an entry lies in the sorter, and how its key begins.
struct Place {
    /// The first 8 bytes of the key as a number that orders as they do. Meaningful in the bytewise
    /// order only.
    abbreviated: u64,
    offset: usize,
    key: u32,
    value: u32,
}

/// Entries in memory that come in any order and leave in that of their keys, the last one of each
/// key only.
pub(super) struct Sorter {
    keys: KeyOrder,
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl Sorter {
    pub(super) fn new(keys: KeyOrder) -> Self {
        Sorter { keys, bytes: Vec::new(), places: Vec::new() }
    }

    /// Bytes of memory in use.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<Place>()
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.places.push(Place {
            abbreviated: abbreviated(key),
            offset,
            key: key.len() as u32,
            value: value.len() as u32,
        });
    }

    /// Hands out every entry in order, and is empty then. The first error ends it.
    pub(super) fn drain<E>(
        &mut self,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (keys, bytes) = (&self.keys, &self.bytes);
        let key = |place: &Place| &bytes[place.offset..place.offset + place.key as usize];
        let is_bytewise = keys.is_bytewise();
        // Of one key the entry that came last goes first. Entries share an offset where all but the
        // last are empty.
        self.places.sort_unstable_by(|a, b| {
            let by_abbreviated =
                if is_bytewise { a.abbreviated.cmp(&b.abbreviated) } else { Ordering::Equal };
            by_abbreviated
                .then_with(|| keys.compare(key(a), key(b)))
                .then_with(|| (b.offset, b.value).cmp(&(a.offset, a.value)))
        });
        let mut last: Option<&Place> = None;
        let mut result = Ok(());
        for place in &self.places {
            if last.is_some_and(|last| keys.compare(key(last), key(place)) == Ordering::Equal) {
                continue;
            }
            last = Some(place);
            let value = place.offset + place.key as usize;
            result = take(key(place), &bytes[value..value + place.value as usize]);
            if result.is_err() {
                break;
            }
        }
        self.bytes.clear();
        self.places.clear();
        result
    }
}

fn abbreviated(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = key.len().min(8);
    bytes[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_of_each_key_comes_out_in_order() {
        let mut sorter = Sorter::new(KeyOrder::default());
        let keys: [&[u8]; 6] =
            [b"same-abbreviated-b", b"", b"z", b"same-abbreviated-a", b"\0", b"same-hea"];
        for round in [b"1", b"2"] {
            keys.iter().for_each(|key| sorter.push(key, round));
        }
        sorter.push(b"z", b"");
        let mut found = Vec::new();
        let outcome: Result<(), ()> = sorter.drain(|key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(())
        });
        assert_eq!((outcome, sorter.len()), (Ok(()), 0));
        let mut expected: Vec<_> = keys.iter().map(|key| (key.to_vec(), b"2".to_vec())).collect();
        expected.sort();
        expected[5].1.clear();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_empty_entry_is_no_later_than_what_replaces_it() {
        for values in [[b"".as_slice(), b"value"], [b"value", b""]] {
            let mut sorter = Sorter::new(KeyOrder::default());
            values.iter().for_each(|value| sorter.push(b"", value));
            let mut found = Vec::new();
            let outcome: Result<(), ()> = sorter.drain(|_, value| {
                found.push(value.to_vec());
                Ok(())
            });
            assert_eq!((outcome, found), (Ok(()), vec![values[1].to_vec()]));
        }
    }

    #[test]
    fn chunks_give_back_what_they_were_given() {
        let mut chunk = Chunk::default();
        chunk.push(b"", 7, b"value");
        chunk.push(b"key", 8, b"");
        chunk.stamp(9);
        let found: Vec<_> = chunk.entries().collect();
        let tag = |sequence: u64| (sequence << 8 | 1).to_le_bytes();
        let second = [b"key".as_slice(), &tag(9)].concat();
        assert_eq!(found, [(tag(9).as_slice(), b"value".as_slice()), (&second, b"")]);
    }
}
