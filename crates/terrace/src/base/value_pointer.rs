//! Pointers to values that lie in a value file: what a table holds in place of such a value.
//!
//! Pure format code. A pointer is part of a table's block, under that block's checksum, and has a
//! checksum of the value.

use super::coding::{get_varint64, put_varint64};
use super::internal_key::{EntryKind, TAG_SIZE};

/// No pointer is longer than three numbers and a checksum.
pub(crate) const MAX_POINTER_SIZE: usize = 3 * 10 + 4;
/// No value is longer: a batch has 32 bits for the length of one.
const MAX_VALUE_SIZE: u64 = u32::MAX as u64;

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValuePointer {
    /// The number of the value file.
    pub(crate) file: u64,
    /// Where in the file its first byte is. Headers of fragments may stand between its bytes.
    pub(crate) offset: u64,
    /// The bytes of the value.
    pub(crate) length: u64,
    /// The masked CRC-32C of the value.
    pub(crate) checksum: u32,
}

impl ValuePointer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MAX_POINTER_SIZE);
        put_varint64(&mut bytes, self.file);
        put_varint64(&mut bytes, self.offset);
        put_varint64(&mut bytes, self.length);
        bytes.extend_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// The pointer that the entry with this internal key has in place of a value, if it has one.
    pub(crate) fn of_entry(internal_key: &[u8], value: &[u8]) -> Option<Self> {
        if is_pointer(internal_key) { Self::decode(value) } else { None }
    }

    /// `None` if `bytes` are no pointer, or one to more than a value can be.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut number = || get_varint64(&mut bytes);
        let (file, offset, length) = (number()?, number()?, number()?);
        let checksum = u32::from_le_bytes(bytes.try_into().ok()?);
        if length > MAX_VALUE_SIZE {
            return None;
        }
        Some(ValuePointer { file, offset, length, checksum })
    }
}

/// How much of a value file a table points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueUse {
    /// The number of the value file.
    pub(crate) file: u64,
    /// The bytes of values.
    pub(crate) bytes: u64,
}

/// Whether the entry with this internal key has a pointer in place of a value.
#[inline]
pub(crate) fn is_pointer(internal_key: &[u8]) -> bool {
    let kind = internal_key.len().checked_sub(TAG_SIZE).map(|at| internal_key[at]);
    kind == Some(EntryKind::Pointer as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::internal_key::encode;

    #[test]
    fn pointers_round_trip_and_nothing_else_is_one() {
        let pointer =
            ValuePointer { file: 7, offset: 1 << 40, length: 100_000, checksum: 0xdead_beef };
        let bytes = pointer.encode();
        assert_eq!(ValuePointer::decode(&bytes), Some(pointer));
        for length in 0..bytes.len() {
            assert_eq!(ValuePointer::decode(&bytes[..length]), None);
        }
        assert_eq!(ValuePointer::decode(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn a_pointer_to_more_than_a_value_can_be_is_none() {
        let pointer = |length| ValuePointer { file: 7, offset: 7, length, checksum: 0 };
        let largest = pointer(u64::from(u32::MAX));
        assert_eq!(ValuePointer::decode(&largest.encode()), Some(largest));
        for length in [largest.length + 1, 1 << 40, u64::MAX] {
            assert_eq!(ValuePointer::decode(&pointer(length).encode()), None);
        }
    }

    #[test]
    fn the_kind_of_an_entry_tells_a_pointer() {
        let largest =
            ValuePointer { file: u64::MAX, offset: u64::MAX, length: u64::MAX, checksum: 0 };
        assert_eq!(largest.encode().len(), MAX_POINTER_SIZE);
        assert!(is_pointer(&encode(b"k", 5, EntryKind::Pointer)));
        assert!(!is_pointer(&encode(b"k", 5, EntryKind::Value)));
        assert!(!is_pointer(b"short"));
    }
}
