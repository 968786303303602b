//! Writes a value file: a log whose records are batches of one put each, so that what reads logs
//! reads it. Tables point into the records.

use crate::base::checksum;
use crate::base::coding::put_varint64;
use crate::base::error::Result;
use crate::base::internal_key::{EntryKind, SequenceNumber};
use crate::base::mutation::mutated;
use crate::base::value_pointer::ValuePointer;
use crate::env::WritableFile;
use crate::log::{LogWriter, payload_offset};
use crate::version::edit::NewValueFile;
use crate::version::value_files::Growth;

use super::growing_values::{Abandoned, GrowingValueFile, WrittenValues};

/// Bytes after which the system is asked to begin writing, so that little is left to wait for.
const BYTES_PER_SYNC: u64 = 1 << 20;

/// A value file under construction.
pub(super) struct ValueWriter {
    number: u64,
    log: LogWriter,
    value_bytes: u64,
    /// The right to append, where an earlier edit has named the file.
    growth: Option<Growth>,
    /// The bytes that the file had before.
    start: u64,
    /// Of a record, what stands before its value. Reused.
    head: Vec<u8>,
    /// Up to here the system was asked to write.
    written_back: u64,
}

impl ValueWriter {
    /// The value file `number`, in `file`, which is empty.
    pub(super) fn new(number: u64, file: Box<dyn WritableFile>) -> Self {
        Self::begin(NewValueFile { number, size: 0, value_bytes: 0 }, None, file)
    }

    /// Appends to `growing`, whose bytes `file` holds.
    pub(super) fn append_to(growing: GrowingValueFile, file: Box<dyn WritableFile>) -> Self {
        Self::begin(growing.record, Some(growing.growth), file)
    }

    fn begin(known: NewValueFile, growth: Option<Growth>, file: Box<dyn WritableFile>) -> Self {
        let NewValueFile { number, size, value_bytes } = known;
        ValueWriter {
            number,
            log: LogWriter::new(file, size),
            value_bytes,
            growth,
            start: size,
            head: Vec::new(),
            written_back: size,
        }
    }

    pub(super) fn abandoned(&self) -> Abandoned {
        match self.growth {
            None => Abandoned::File(self.number),
            Some(_) => Abandoned::End { number: self.number, size: self.start },
        }
    }

    /// The bytes of the file so far.
    pub(super) fn size(&self) -> u64 {
        self.log.offset()
    }

    /// Adds a value, and says where it lies.
    pub(super) fn add(
        &mut self,
        user_key: &[u8],
        sequence: SequenceNumber,
        value: &[u8],
    ) -> Result<ValuePointer> {
        self.head.clear();
        self.head.extend_from_slice(&sequence.to_le_bytes());
        self.head.extend_from_slice(&1_u32.to_le_bytes());
        self.head.push(EntryKind::Value as u8);
        put_varint64(&mut self.head, user_key.len() as u64);
        self.head.extend_from_slice(user_key);
        put_varint64(&mut self.head, value.len() as u64);
        let offset = payload_offset(self.log.offset(), self.head.len() as u64);
        self.log.add_record_parts(&[&self.head, value])?;
        if self.log.offset() >= self.written_back + BYTES_PER_SYNC {
            self.log.start_writeback(self.written_back, self.log.offset() - self.written_back);
            self.written_back = self.log.offset();
        }
        self.value_bytes += value.len() as u64;
        Ok(ValuePointer {
            file: self.number,
            offset,
            length: value.len() as u64,
            checksum: checksum::masked(value),
        })
    }

    /// Makes the file durable, but for its name.
    pub(super) fn finish(mut self) -> Result<WrittenValues> {
        let (number, size, value_bytes) = (self.number, self.size(), self.value_bytes);
        if !mutated("value-file-sync") {
            self.log.sync()?;
        }
        self.log.close()?;
        let record = NewValueFile { number, size, value_bytes };
        Ok(WrittenValues { record, appended: size - self.start, growth: self.growth })
    }
}
