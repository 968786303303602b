//! One entry as it lies in the arena, and what it is compared with.
//!
//! A record is two lengths (`u32`, of the user key and of the value), the user key, its tag and the value, without
//! gaps: user key and tag together are the internal key. It is written once, before other threads learn of it.

#![allow(unsafe_code)]

use std::cmp::Ordering;
use std::ptr::{self, NonNull};

use crate::base::internal_key::{InternalOrder, TAG_SIZE};

const KEY: usize = 8;

/// A pointer to a record: `Copy`, without a lifetime, and only as good as the arena it points into.
#[derive(Clone, Copy, PartialEq, Eq)]
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

    /// Writes a record.
    ///
    /// # Safety
    /// The record's place has [`Record::size`] bytes, is aligned to 4, and nobody else reads or writes it meanwhile.
    /// Both lengths fit in 32 bits.
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
    /// The record has been written, the write happened before this call, and the arena outlives `'a`.
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
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(KEY), self.key_length() + TAG_SIZE) }
    }

    /// The tag.
    ///
    /// # Safety
    /// As for [`Record::user_key`].
    #[inline]
    pub(super) unsafe fn tag(self) -> u64 {
        // SAFETY: as in `user_key`; the tag follows it, unaligned, and an array of bytes needs no alignment.
        u64::from_le_bytes(unsafe { self.0.as_ptr().add(KEY + self.key_length()).cast::<[u8; TAG_SIZE]>().read() })
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
            std::slice::from_raw_parts(self.0.as_ptr().add(KEY + self.key_length() + TAG_SIZE), length)
        }
    }
}

/// The first bytes of a user key as one number, padded with zeros: in the bytewise order, keys whose heads differ
/// order as their heads do. Sixteen bytes, as eight are often the same in all keys (numbers written with leading
/// zeros).
pub(super) type Head = u128;

/// The bytes in a head.
pub(super) const HEAD_SIZE: usize = 16;

/// The head of a key under `order`. Other orders than the bytewise one have no use for heads: theirs are all zero, so
/// that they never differ.
#[inline]
pub(super) fn head_of(order: &InternalOrder, user_key: &[u8]) -> Head {
    if !order.keys.is_bytewise() {
        return 0;
    }
    if let Some(first) = user_key.first_chunk::<HEAD_SIZE>() {
        return Head::from_be_bytes(*first);
    }
    let mut bytes = [0; HEAD_SIZE];
    bytes[..user_key.len()].copy_from_slice(user_key);
    Head::from_be_bytes(bytes)
}

/// A position in the order that is searched for.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) head: Head,
    pub(super) user_key: &'a [u8],
    pub(super) tag: u64,
}

impl<'a> Target<'a> {
    #[inline]
    pub(super) fn new(order: &InternalOrder, user_key: &'a [u8], tag: u64) -> Self {
        Target { head: head_of(order, user_key), user_key, tag }
    }

    /// Whether the target comes after a record whose head has been found equal to the target's.
    ///
    /// # Safety
    /// The record has been written, and the write happened before this call.
    #[inline]
    pub(super) unsafe fn is_after_equal_head(&self, order: &InternalOrder, record: Record) -> bool {
        // SAFETY: by the caller's word; the references end with this function.
        let user_key = unsafe { record.user_key() };
        match order.keys.compare(user_key, self.user_key) {
            Ordering::Less => true,
            Ordering::Greater => false,
            // SAFETY: by the caller's word.
            Ordering::Equal => unsafe { record.tag() > self.tag },
        }
    }
}
