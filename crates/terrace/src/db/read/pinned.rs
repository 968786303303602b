//! A value where it lies.

use std::fmt;
use std::ops::Deref;

use crate::memtable::MemTableIter;
use crate::table::BlockSlice;

/// A value that was found, without a copy where that is worth it. It keeps alive what it points
/// into: hold it briefly.
///
/// # Example
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options)?;
/// db.put("photo", vec![7; 100_000])?;
/// let photo = db.get_pinned("photo")?.expect("it is there");
/// assert_eq!(photo.len(), 100_000); // read where it lies
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct PinnedValue {
    pin: Pin,
    /// The bytes that are shown of it: a trailer follows them.
    length: usize,
}

enum Pin {
    Block(BlockSlice),
    Memtable(MemTableIter),
    Owned(Vec<u8>),
}

impl PinnedValue {
    /// The first `length` bytes of a value.
    pub(in crate::db) fn block(slice: BlockSlice, length: usize) -> Self {
        PinnedValue { pin: Pin::Block(slice.detach()), length }
    }

    /// The first `length` bytes of the value at `iter`.
    pub(in crate::db) fn memtable(iter: MemTableIter, length: usize) -> Self {
        PinnedValue { pin: Pin::Memtable(iter), length }
    }

    /// The first `length` bytes of a value that was read from a value file.
    pub(in crate::db) fn read(value: Vec<u8>, length: usize) -> Self {
        PinnedValue { length, pin: Pin::Owned(value) }
    }

    pub(in crate::db) fn owned(value: Vec<u8>) -> Self {
        PinnedValue { length: value.len(), pin: Pin::Owned(value) }
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let stored = match &self.pin {
            Pin::Block(slice) => slice.as_slice(),
            Pin::Memtable(iter) => iter.value(),
            Pin::Owned(value) => value,
        };
        stored.get(..self.length).unwrap_or(stored)
    }
}

impl AsRef<[u8]> for PinnedValue {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedValue({} bytes)", self.len())
    }
}
