//! An entry of a block: lengths, the rest of the key, the value.

use crate::base::coding::get_varint32;

use super::block_error::Damage;

pub(super) const BAD_ENTRY: Damage = "an entry does not decode";
pub(super) const BAD_SHARING: Damage = "an entry shares more of a key than there is";
pub(super) const SHORT_KEY: Damage = "a key is too short for its tag";

/// Bytes of the three lengths of an entry, at most.
pub(super) const MOST_LENGTHS: usize = 15;

/// An entry, as offsets into the entries of a block.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Entry {
    pub(super) offset: usize,
    /// Bytes of the key that are those of the key before.
    pub(super) shared: usize,
    /// Where the rest of the key begins.
    pub(super) rest: usize,
    /// Where the rest of the key ends and the value begins.
    pub(super) value: usize,
    /// Where the value ends and the next entry begins.
    pub(super) end: usize,
}

impl Entry {
    #[inline]
    pub(super) fn key_length(&self) -> usize {
        self.shared + (self.value - self.rest)
    }

    /// Decodes the entry at `offset`. Everything in it lies within `entries`.
    #[inline(always)]
    pub(super) fn decode(entries: &[u8], offset: usize) -> Result<Entry, Damage> {
        let (shared, rest, value, header) =
            match entries.get(offset..).and_then(<[u8]>::first_chunk) {
                Some(&[shared, rest, value]) if (shared | rest | value) < 0x80 => {
                    (u32::from(shared), u32::from(rest), u32::from(value), 3)
                }
                _ => {
                    let lengths = Entry::decode_long(entries, offset);
                    (
                        lengths as u32,
                        (lengths >> 32) as u32,
                        (lengths >> 64) as u32,
                        (lengths >> 96) as u32,
                    )
                }
            };
        let size = u64::from(header) + u64::from(rest) + u64::from(value);
        if header == 0 || size > entries.len().saturating_sub(offset) as u64 {
            return Err(BAD_ENTRY);
        }
        let start = offset + header as usize;
        let (value_start, end) = (start + rest as usize, start + rest as usize + value as usize);
        Ok(Entry { offset, shared: shared as usize, rest: start, value: value_start, end })
    }

    /// The three lengths of the entry at `offset`, from the lowest bits up, and the bytes that they
    /// take; 0 if they do not decode. All in one number, which stays in registers: entries that
    /// pass through memory in pieces cost more than everything else about them.
    #[cold]
    #[inline(never)]
    fn decode_long(entries: &[u8], offset: usize) -> u128 {
        let mut cursor = entries.get(offset..).unwrap_or_default();
        let all = cursor.len();
        let mut next = || get_varint32(&mut cursor).map(u128::from);
        let (Some(shared), Some(rest), Some(value)) = (next(), next(), next()) else { return 0 };
        let header = (all - cursor.len()) as u128;
        shared | rest << 32 | value << 64 | header << 96
    }

    /// Checks this entry against the length of the key before it.
    #[inline]
    pub(super) fn check(&self, previous_key: usize, tag_size: usize) -> Result<(), Damage> {
        if self.shared > previous_key {
            return Err(BAD_SHARING);
        }
        if self.key_length() < tag_size {
            return Err(SHORT_KEY);
        }
        Ok(())
    }
}
