//! The bytes of a batch of one operation, without a copy of its key and value.

use crate::base::coding::MAX_VARINT32;
use crate::base::error::Result;
use crate::base::internal_key::{EntryKind, SequenceNumber, check_entry_size};

use super::batch_view::HEADER_SIZE;

/// The bytes of a batch of one operation around its key and value, which stay where they are.
pub(crate) struct SingleFrame {
    /// Header, kind and the key's length.
    head: [u8; HEADER_SIZE + 1 + MAX_VARINT32],
    head_length: usize,
    /// The value's length.
    middle: [u8; MAX_VARINT32],
    middle_length: usize,
}

impl SingleFrame {
    /// The frame of a put, or, without a value, of a deletion.
    ///
    /// `InvalidArgument` if no table could hold key and value.
    // Every put makes one. Copied out of a call, its bytes would be waited for.
    #[inline]
    pub(crate) fn new(key: &[u8], value: Option<&[u8]>) -> Result<Self> {
        check_entry_size(key.len(), value.map_or(0, <[u8]>::len))?;
        let kind = if value.is_some() { EntryKind::Value } else { EntryKind::Deletion };
        let mut frame = SingleFrame {
            head: [0; _],
            head_length: HEADER_SIZE + 1,
            middle: [0; _],
            middle_length: 0,
        };
        frame.head[8] = 1;
        frame.head[HEADER_SIZE] = kind as u8;
        frame.head_length += encode_varint(&mut frame.head[HEADER_SIZE + 1..], key.len() as u32);
        if let Some(value) = value {
            frame.middle_length = encode_varint(&mut frame.middle, value.len() as u32);
        }
        Ok(frame)
    }

    /// The bytes before the key, with the sequence number put in, and those between key and
    /// value.
    pub(crate) fn around(&mut self, sequence: SequenceNumber) -> (&[u8], &[u8]) {
        self.head[..8].copy_from_slice(&sequence.to_le_bytes());
        (&self.head[..self.head_length], &self.middle[..self.middle_length])
    }

    /// The bytes of the frame alone.
    pub(crate) fn len(&self) -> usize {
        self.head_length + self.middle_length
    }
}

/// Writes `value` to the front of `dst`, which has room for it; returns its length.
#[inline]
fn encode_varint(dst: &mut [u8], mut value: u32) -> usize {
    let mut length = 0;
    while value >= 0x80 {
        dst[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    dst[length] = value as u8;
    length + 1
}
