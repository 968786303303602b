//! Memory for blocks, handed on from one block to the next.
//!
//! A read that misses the cache needs a few kilobytes for a moment, and another block is freed for
//! it: as general allocations, these two cost a tenth of a random read. So each thread keeps a few
//! buffers of the blocks that it dropped last.

use std::cell::RefCell;
use std::collections::TryReserveError;

/// Buffers of this many bytes are kept; smaller ones are cheap to get, and larger ones are too much
/// to hold back.
const KEPT_SIZES: std::ops::RangeInclusive<usize> = 1 << 10..=256 << 10;
/// Sizes are rounded up to a multiple of this, so that a buffer suits the next block too.
const GRANULE: usize = 128;
/// Buffers that a thread keeps, and the bytes that all of them may have together.
const MOST_KEPT: usize = 8;
const MOST_BYTES_KEPT: usize = 512 << 10;

thread_local!(static KEPT: RefCell<Kept> = const { RefCell::new(Kept { buffers: Vec::new(), bytes: 0 }) });

/// Bytes on the heap: the first `length` of a buffer.
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    length: usize,
}

impl Buffer {
    /// A buffer of `length` arbitrary bytes. `length` may come from a file: lack of memory is an
    /// error, not an abort.
    pub(super) fn with_length(length: usize) -> Result<Self, TryReserveError> {
        let kept = KEPT_SIZES.contains(&length);
        if kept && let Some(bytes) = take(length) {
            return Ok(Buffer { bytes, length });
        }
        let size = if kept { length.next_multiple_of(GRANULE) } else { length };
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size)?;
        bytes.resize(size, 0);
        Ok(Buffer { bytes: bytes.into_boxed_slice(), length })
    }

    /// A buffer of these bytes.
    pub(super) fn copy_of(bytes: &[u8]) -> Result<Self, TryReserveError> {
        let mut buffer = Self::with_length(bytes.len())?;
        buffer.as_mut_slice().copy_from_slice(bytes);
        Ok(buffer)
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.length).unwrap_or_default()
    }

    /// Forgets what is behind the first `length` bytes.
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// The memory that this takes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        let length = bytes.len();
        Buffer { bytes: bytes.into_boxed_slice(), length }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if KEPT_SIZES.contains(&self.bytes.len()) {
            give(std::mem::take(&mut self.bytes));
        }
    }
}

/// The buffers that a thread keeps, the oldest first.
struct Kept {
    buffers: Vec<Box<[u8]>>,
    bytes: usize,
}

impl Kept {
    fn remove(&mut self, at: usize) -> Box<[u8]> {
        let buffer = self.buffers.remove(at);
        self.bytes -= buffer.len();
        buffer
    }
}

/// A kept buffer that suits `length` without much waste.
fn take(length: usize) -> Option<Box<[u8]>> {
    let suits = |size: usize| (length..=length + length / 8).contains(&size);
    let take = |kept: &RefCell<Kept>| {
        let mut kept = kept.try_borrow_mut().ok()?;
        let at = kept.buffers.iter().rposition(|bytes| suits(bytes.len()))?;
        Some(kept.remove(at))
    };
    // A thread that is ending has none.
    KEPT.try_with(take).ok().flatten()
}

/// Keeps a buffer, in the place of others if need be. Where the thread is ending it is freed.
fn give(bytes: Box<[u8]>) {
    let _ = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        while kept.buffers.len() == MOST_KEPT || kept.bytes + bytes.len() > MOST_BYTES_KEPT {
            kept.remove(0);
        }
        kept.bytes += bytes.len();
        kept.buffers.push(bytes);
        Some(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_handed_on_to_what_it_suits() {
        std::thread::spawn(|| {
            let address = |buffer: &Buffer| buffer.as_slice().as_ptr();
            let first = Buffer::with_length(4150).expect("memory");
            let at = address(&first);
            assert_eq!((first.as_slice().len(), first.size()), (4150, 4224));
            drop(first);
            let other = Buffer::with_length(8000).expect("memory");
            assert_ne!(address(&other), at);
            let second = Buffer::with_length(4100).expect("memory");
            assert_eq!(
                (address(&second), second.as_slice().len(), second.size()),
                (at, 4100, 4224)
            );
        })
        .join()
        .expect("holds");
    }

    #[test]
    fn no_more_is_kept_than_said() {
        std::thread::spawn(|| {
            let kept_after = |count: usize, length: usize| {
                let buffers: Vec<_> =
                    (0..count).map(|_| Buffer::with_length(length).expect("memory")).collect();
                drop(buffers);
                KEPT.with(|kept| {
                    let kept = kept.borrow();
                    assert_eq!(
                        kept.bytes,
                        kept.buffers.iter().map(|buffer| buffer.len()).sum::<usize>()
                    );
                    kept.buffers.len()
                })
            };
            assert_eq!(kept_after(3 * MOST_KEPT, 2000), MOST_KEPT);
            assert_eq!(kept_after(1, KEPT_SIZES.end() + 1), MOST_KEPT);
            assert_eq!(kept_after(1, 10), MOST_KEPT);
            assert_eq!(kept_after(5, 200 << 10), 2);
            assert_eq!(kept_after(5, 256 << 10), 2);
            assert_eq!(kept_after(3 * MOST_KEPT, 2000), MOST_KEPT);
        })
        .join()
        .expect("holds");
    }
}
