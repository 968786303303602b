//! One entry in the arena, and the keys it is compared with.
//!
//! A record is two lengths (`u32`, of the user key and of the value), the user key, its tag and the
//! value, without gaps: user key and tag together are the internal key. It is written once, before
//! other threads learn of it.

#![allow(unsafe_code)]

use std::cmp::Ordering;
use std::ptr::{self, NonNull};

use crate::base::internal_key::{InternalOrder, TAG_SIZE};

const KEY: usize = 8;

/// A pointer to a record: `Copy`, without a lifetime, and only as good as the arena it points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record(NonNull<u8>);

impl Record {
    /// The bytes that a record of these takes.
    #[inline]
    pub(super) fn size(user_key: &[u8], value: &[u8]) -> usize {
        KEY + TAG_SIZE + user_key.len() + value.len()
    }

    /// A record that is, or is about to be, at `place`.
    #[inline]
    pub(super) fn at(place: NonNull<u8>) -> Self {
        Record(place)
    }

    #[inline]
    pub(super) fn pointer(self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// Writes a record.
    ///
    /// # Safety
    /// The record's place has [`Record::size`] bytes, is aligned to 4, and nobody else reads or
    /// writes it meanwhile. Both lengths fit in 32 bits.
    #[inline]
    pub(super) unsafe fn write(self, user_key: &[u8], tag: u64, value: &[u8]) {
        let place = self.0.as_ptr();
        // SAFETY: the caller gives room for all of it, to itself; the pieces follow one another.
        unsafe {
            place.cast::<u32>().write(user_key.len() as u32);
            place.add(4).cast::<u32>().write(value.len() as u32);
            ptr::copy_nonoverlapping(user_key.as_ptr(), place.add(KEY), user_key.len());
            let tag_at = place.add(KEY + user_key.len());
            tag_at.cast::<[u8; TAG_SIZE]>().write(tag.to_le_bytes());
            ptr::copy_nonoverlapping(value.as_ptr(), tag_at.add(TAG_SIZE), value.len());
        }
    }

    /// The user key's length.
    ///
    /// # Safety
    /// The record has been written, and the write happened before this call.
    #[inline]
    unsafe fn key_length(self) -> usize {
        // SAFETY: by the caller's word, initialised and no longer written.
        unsafe { self.0.as_ptr().cast::<u32>().read() as usize }
    }

    /// The user key.
    ///
    /// # Safety
    /// The record has been written, the write happened before this call, and the arena outlives
    /// `'a`.
    #[inline]
    pub(super) unsafe fn user_key<'a>(self) -> &'a [u8] {
        // SAFETY: by the caller's word, initialised, no longer written and alive.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(KEY), self.key_length()) }
    }

    /// The user key and its tag.
    ///
    /// # Safety
    /// As for [`Record::user_key`].
    #[inline]
    pub(super) unsafe fn internal_key<'a>(self) -> &'a [u8] {
        // SAFETY: as in `user_key`; the tag follows it.
        unsafe {
            std::slice::from_raw_parts(self.0.as_ptr().add(KEY), self.key_length() + TAG_SIZE)
        }
    }

    /// The tag.
    ///
    /// # Safety
    /// As for [`Record::user_key`].
    #[inline]
    pub(super) unsafe fn tag(self) -> u64 {
        // SAFETY: as in `user_key`; the tag follows it, unaligned, and an array of bytes needs no
        // alignment.
        u64::from_le_bytes(unsafe {
            self.0.as_ptr().add(KEY + self.key_length()).cast::<[u8; TAG_SIZE]>().read()
        })
    }

    /// The record's place in the order.
    ///
    /// # Safety
    /// As for [`Record::user_key`].
    #[inline]
    pub(super) unsafe fn bound<'a>(self) -> Bound<'a> {
        // SAFETY: the caller's word.
        unsafe { Bound { user_key: self.user_key(), tag: self.tag() } }
    }

    /// The value.
    ///
    /// # Safety
    /// As for [`Record::user_key`].
    #[inline]
    pub(super) unsafe fn value<'a>(self) -> &'a [u8] {
        // SAFETY: as in `user_key`; the value follows the tag.
        unsafe {
            let length = self.0.as_ptr().add(4).cast::<u32>().read() as usize;
            std::slice::from_raw_parts(
                self.0.as_ptr().add(KEY + self.key_length() + TAG_SIZE),
                length,
            )
        }
    }
}

/// A position in the order of internal keys: where an entry is, or would be.
#[derive(Clone, Copy)]
pub(super) struct Bound<'a> {
    pub(super) user_key: &'a [u8],
    pub(super) tag: u64,
}

impl Bound<'_> {
    /// The order of internal keys: by user key, then by tag, descending.
    #[inline]
    pub(super) fn compare(&self, order: &InternalOrder, other: &Bound<'_>) -> Ordering {
        compare_keys(order, self.user_key, other.user_key).then_with(|| other.tag.cmp(&self.tag))
    }

    #[inline]
    pub(super) fn is_before(&self, order: &InternalOrder, other: &Bound<'_>) -> bool {
        self.compare(order, other).is_lt()
    }
}

/// The order of user keys. In the bytewise order by words: keys are short, and a call of `memcmp`
/// costs more.
#[inline]
pub(super) fn compare_keys(order: &InternalOrder, a: &[u8], b: &[u8]) -> Ordering {
    if !order.keys.is_bytewise() {
        return order.keys.compare(a, b);
    }
    let (mut rest_a, mut rest_b) = (a, b);
    while let (Some((word_a, next_a)), Some((word_b, next_b))) =
        (rest_a.split_first_chunk::<8>(), rest_b.split_first_chunk::<8>())
    {
        if word_a != word_b {
            return u64::from_be_bytes(*word_a).cmp(&u64::from_be_bytes(*word_b));
        }
        (rest_a, rest_b) = (next_a, next_b);
    }
    if rest_a.is_empty() || rest_b.is_empty() {
        rest_a.len().cmp(&rest_b.len())
    } else {
        rest_a.cmp(rest_b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_compare_as_slices_do() {
        let order = InternalOrder::default();
        let keys: Vec<Vec<u8>> = (0..40usize)
            .flat_map(|length| {
                [
                    vec![7; length],
                    [vec![7; length], vec![200]].concat(),
                    [vec![7; length], vec![0, 1]].concat(),
                ]
            })
            .collect();
        for a in &keys {
            for b in &keys {
                assert_eq!(compare_keys(&order, a, b), a.cmp(b));
            }
        }
    }
}
