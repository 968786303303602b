//! Batches as they lie in records of the log: checked as a whole, read in place.

use crate::base::coding::get_length_prefixed;
use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, MAX_SEQUENCE, SequenceNumber, check_entry_size};
use crate::base::mutation::mutated;

/// The bytes before the first operation.
pub(crate) const HEADER_SIZE: usize = 12;

/// One operation of a [`WriteBatch`](crate::WriteBatch).
///
/// ```
/// # use terrace::*;
/// let mut batch = WriteBatch::new();
/// batch.put("apple", "red");
/// batch.delete("pear");
/// let puts = batch.iter().filter(|operation| matches!(operation, Ok(Operation::Put { .. })));
/// assert_eq!(puts.count(), 1);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Sets a key to a value.
    Put {
        /// The key.
        key: &'a [u8],
        /// Its new value.
        value: &'a [u8],
    },
    /// Removes a key.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

/// A batch inside a log record, checked as a whole before any of it is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchView<'a> {
    pub(crate) sequence: SequenceNumber,
    pub(crate) count: u32,
    operations: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// Checks header, every operation and their number. Entries of any size: what is in a log is
    /// not damaged for being large.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::decode(bytes, |_| Ok(()))?.numbered()
    }

    /// The same for a batch that is to be written, and to get its sequence number then, whatever
    /// stands there. `InvalidArgument` if no table could hold one of its entries.
    pub(crate) fn parse_unnumbered(bytes: &'a [u8]) -> Result<Self> {
        Self::decode(bytes, |operation| match operation {
            Operation::Put { key, value } => check_entry_size(key.len(), value.len()),
            Operation::Delete { key } => check_entry_size(key.len(), 0),
        })
    }

    pub(super) fn numbered(self) -> Result<Self> {
        let next = self.sequence.checked_add(u64::from(self.count));
        if next.is_none_or(|next| next > MAX_SEQUENCE + 1) {
            return Err(Error::corruption("a batch beyond the largest sequence number"));
        }
        Ok(self)
    }

    fn decode(bytes: &'a [u8], check: impl Fn(Operation<'a>) -> Result<()>) -> Result<Self> {
        let (header, operations) = bytes.split_first_chunk::<HEADER_SIZE>().ok_or_else(|| {
            Error::corruption(format!("a batch of {} bytes, shorter than its header", bytes.len()))
        })?;
        let (sequence, count) = header.split_at(8);
        let sequence = u64::from_le_bytes(sequence.try_into().unwrap_or_default());
        let count = u32::from_le_bytes(count.try_into().unwrap_or_default());
        let view = BatchView { sequence, count, operations };
        let mut iter = view.operations();
        for operation in iter.by_ref() {
            check(operation?)?;
        }
        if !iter.rest.is_empty() {
            return Err(Error::corruption(format!(
                "a batch of {count} operations holds something else"
            )));
        }
        Ok(view)
    }

    /// So many operations of a writer's, which were checked when they were added.
    pub(super) fn of_checked(count: u32, operations: &'a [u8]) -> Self {
        BatchView { sequence: 0, count, operations }
    }

    /// The bytes of all operations.
    pub(crate) fn operation_bytes(&self) -> &'a [u8] {
        self.operations
    }

    pub(crate) fn operations(&self) -> Operations<'a> {
        Operations { rest: self.operations, left: self.count }
    }

    /// The durable sequence number if this record is a durability mark: every batch up to it.
    /// `split` is the record's framing: programs write empty batches as well, LevelDB logs them,
    /// and they say nothing.
    pub(crate) fn durability_mark(&self, split: bool) -> Option<SequenceNumber> {
        (self.count == 0 && (split || mutated("split-marks")))
            .then(|| self.sequence.saturating_sub(1))
    }

    /// The sequence number of the last operation.
    pub(crate) fn last_sequence(&self) -> SequenceNumber {
        self.sequence + u64::from(self.count) - u64::from(self.count > 0)
    }
}

/// The payload of a durability mark, to be appended as a split record: everything up to `durable`
/// has reached the disk.
pub(crate) fn encode_mark(durable: SequenceNumber) -> [u8; HEADER_SIZE] {
    let mut bytes = [0; HEADER_SIZE];
    bytes[..8].copy_from_slice(&(durable + 1).to_le_bytes());
    bytes
}

pub(crate) struct Operations<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Operations<'a> {
    #[inline]
    fn decode(&mut self) -> Option<Operation<'a>> {
        let (&kind, rest) = self.rest.split_first()?;
        self.rest = rest;
        let key = match EntryKind::from_byte(kind)? {
            EntryKind::Value => {
                let key = get_length_prefixed(&mut self.rest)?;
                let value = get_length_prefixed(&mut self.rest)?;
                return Some(Operation::Put { key, value });
            }
            EntryKind::Deletion => get_length_prefixed(&mut self.rest)?,
            EntryKind::Pointer => return None,
        };
        Some(Operation::Delete { key })
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<Operation<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let operation = self.decode();
        if operation.is_none() {
            self.left = 0;
        }
        Some(
            operation
                .ok_or_else(|| Error::corruption("an unknown or cut-off operation in a batch")),
        )
    }
}
