//! Internal keys: what tables and memtables order.
//!
//! An internal key is a user key followed by an 8-byte *tag*: the sequence number in the upper 56
//! bits and the kind of the entry in the lowest 8. Internal keys are ordered by user key,
//! ascending, and then by tag, *descending*, so that the newest entry of a user key comes first.

use std::cmp::Ordering;

use super::comparator::KeyOrder;
use super::error::{Error, Result};

/// The position of a write in the history of a database. 56 bits.
pub(crate) type SequenceNumber = u64;

/// The largest sequence number that a tag can hold.
pub(crate) const MAX_SEQUENCE: SequenceNumber = (1 << 56) - 1;

/// The bytes that a tag takes.
pub(crate) const TAG_SIZE: usize = 8;

/// The longest entry of a table, key and value together. A block's lengths have 32 bits, and
/// LevelDB's readers' offsets in it; a block has up to 4 MiB of other entries before a long one,
/// and restart points behind it.
pub(crate) const MAX_ENTRY_SIZE: usize = (u32::MAX as usize) - (8 << 20);

/// `InvalidArgument` if no table could hold an entry of so many bytes of user key and value. Asked
/// before anything is copied or written: acknowledged entries must fit into a table.
#[inline]
pub(crate) fn check_entry_size(user_key: usize, value: usize) -> Result<()> {
    let size = user_key.saturating_add(value);
    if size > MAX_ENTRY_SIZE - TAG_SIZE { Err(too_large(size)) } else { Ok(()) }
}

#[cold]
fn too_large(size: usize) -> Error {
    let limit = MAX_ENTRY_SIZE - TAG_SIZE;
    Error::invalid_argument(format!(
        "a key and value of {size} bytes; the limit is {limit}, 8 MiB below 4 GiB"
    ))
}

/// The effect of an entry on its user key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum EntryKind {
    /// The key is absent from this sequence number on: a tombstone.
    Deletion = 0,
    /// The key has a value from this sequence number on.
    Value = 1,
    /// The key has a value from this sequence number on, which lies in a value file: a
    /// [`ValuePointer`](super::value_pointer::ValuePointer) says where. In tables of databases with a
    /// value log only.
    Pointer = 2,
}

impl EntryKind {
    #[inline]
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(EntryKind::Deletion),
            1 => Some(EntryKind::Value),
            2 => Some(EntryKind::Pointer),
            _ => None,
        }
    }
}

/// The kind that sorts before all others at equal sequence: look-ups use it.
pub(crate) const KIND_FOR_SEEK: EntryKind = EntryKind::Pointer;

/// The tag of a separator that was shortened, as LevelDB writes it, which knows no greater kind.
pub(crate) const SHORTENED_TAG: u64 = (MAX_SEQUENCE << 8) | EntryKind::Value as u64;

#[inline]
pub(crate) fn pack_tag(sequence: SequenceNumber, kind: EntryKind) -> u64 {
    debug_assert!(sequence <= MAX_SEQUENCE);
    (sequence << 8) | kind as u64
}

#[inline]
pub(crate) fn tag_sequence(tag: u64) -> SequenceNumber {
    tag >> 8
}

/// Splits an internal key into user key and tag. `None` if it is too short to be one.
#[inline]
pub(crate) fn split(internal_key: &[u8]) -> Option<(&[u8], u64)> {
    let (user_key, tag) = internal_key.split_last_chunk::<TAG_SIZE>()?;
    Some((user_key, u64::from_le_bytes(*tag)))
}

/// The user key of a key that is known to carry a tag; of a shorter one, nothing.
#[inline]
pub(crate) fn user_key(internal_key: &[u8]) -> &[u8] {
    split(internal_key).map_or(&[], |(user_key, _)| user_key)
}

/// An internal key taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParsedKey<'a> {
    pub(crate) user_key: &'a [u8],
    pub(crate) sequence: SequenceNumber,
    pub(crate) kind: EntryKind,
}

impl<'a> ParsedKey<'a> {
    /// Takes an internal key apart. `None` if it is too short or its kind is unknown.
    #[inline]
    pub(crate) fn parse(internal_key: &'a [u8]) -> Option<Self> {
        let (user_key, tag) = split(internal_key)?;
        Some(ParsedKey {
            user_key,
            sequence: tag_sequence(tag),
            kind: EntryKind::from_byte(tag as u8)?,
        })
    }
}

/// Appends the internal key of `user_key` to `dst`.
pub(crate) fn append(
    dst: &mut Vec<u8>,
    user_key: &[u8],
    sequence: SequenceNumber,
    kind: EntryKind,
) {
    dst.extend_from_slice(user_key);
    dst.extend_from_slice(&pack_tag(sequence, kind).to_le_bytes());
}

/// The internal key of `user_key`.
pub(crate) fn encode(user_key: &[u8], sequence: SequenceNumber, kind: EntryKind) -> Vec<u8> {
    let mut key = Vec::with_capacity(user_key.len() + TAG_SIZE);
    append(&mut key, user_key, sequence, kind);
    key
}

/// The order of internal keys over an order of user keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct InternalOrder {
    pub(crate) keys: KeyOrder,
}

impl InternalOrder {
    pub(crate) fn new(keys: KeyOrder) -> Self {
        InternalOrder { keys }
    }

    /// Compares two internal keys. Bytes too short to be one count as an empty user key: never a
    /// panic.
    #[inline]
    pub(crate) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (a_key, a_tag) = split(a).unwrap_or((&[], 0));
        let (b_key, b_tag) = split(b).unwrap_or((&[], 0));
        self.keys.compare(a_key, b_key).then_with(|| b_tag.cmp(&a_tag))
    }

    /// Shortens the internal key `start` towards `limit`, as
    /// [`Comparator`](super::comparator::Comparator) does for user keys. A shortened key gets the
    /// largest tag of a value, so that it sorts before every entry of its user key.
    pub(crate) fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        let mut shorter = user_key(start).to_vec();
        self.keys.shorten_towards(&mut shorter, user_key(limit));
        self.replace_if_shorter(start, shorter);
    }

    /// Shortens the internal key `key` upwards.
    pub(crate) fn find_short_successor(&self, key: &mut Vec<u8>) {
        let mut shorter = user_key(key).to_vec();
        self.keys.find_short_successor(&mut shorter);
        self.replace_if_shorter(key, shorter);
    }

    fn replace_if_shorter(&self, key: &mut Vec<u8>, shorter: Vec<u8>) {
        let current = user_key(key);
        if shorter.len() < current.len() && self.keys.compare(current, &shorter) == Ordering::Less {
            *key = shorter;
            key.extend_from_slice(&SHORTENED_TAG.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_entries_of_a_key_come_first() {
        let order = InternalOrder::default();
        let at = |key: &[u8], sequence| encode(key, sequence, EntryKind::Value);
        assert_eq!(order.compare(&at(b"a", 9), &at(b"a", 8)), Ordering::Less);
        assert_eq!(order.compare(&at(b"a", 1), &at(b"b", 9)), Ordering::Less);
        let deletion = encode(b"a", 9, EntryKind::Deletion);
        assert_eq!(order.compare(&at(b"a", 9), &deletion), Ordering::Less);
    }

    #[test]
    fn short_and_unknown_keys_do_not_parse() {
        assert_eq!(ParsedKey::parse(b"1234567"), None);
        assert_eq!(ParsedKey::parse(&[3, 0, 0, 0, 0, 0, 0, 0]), None);
        let key = encode(b"", MAX_SEQUENCE, EntryKind::Value);
        let parsed = ParsedKey::parse(&key).expect("a key");
        assert_eq!((parsed.user_key, parsed.sequence), (&b""[..], MAX_SEQUENCE));
    }

    #[test]
    fn separators_keep_internal_order() {
        let order = InternalOrder::default();
        let limit = encode(b"abxyz", 5, EntryKind::Value);
        let start = encode(b"abcdefgh", 7, EntryKind::Value);
        let mut separator = start.clone();
        order.find_shortest_separator(&mut separator, &limit);
        assert_eq!(user_key(&separator), b"abd");
        assert_eq!(order.compare(&start, &separator), Ordering::Less);
        assert_eq!(order.compare(&separator, &limit), Ordering::Less);
    }
}
