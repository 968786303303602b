//! How keys and values cross between JavaScript and Rust: length-prefixed, one behind the other, in
//! one buffer. Lengths are 32-bit little-endian.
//!
//! An *operation* is its kind (1 byte: 0 a deletion, 1 a put), its key and, for a put, its value,
//! each behind its length. A *result* is the length of a value and the value, or [`ABSENT`], or
//! [`FAILED`] and the text of an error behind its length. `lib/frames.js` is the other side.

use terrace::{Error, Result, WriteBatch};

use crate::error::code;

/// In place of a length: there is no value.
pub const ABSENT: u32 = u32::MAX;
/// In place of a length: the text of an error follows, its code before the first line break.
pub const FAILED: u32 = u32::MAX - 1;

const DELETION: u8 = 0;
const PUT: u8 = 1;

/// One operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Sets a key.
    Put(&'a [u8], &'a [u8]),
    /// Removes a key.
    Delete(&'a [u8]),
}

/// Frames that have not been read yet.
#[derive(Clone, Copy)]
pub struct Frames<'a>(&'a [u8]);

impl<'a> Frames<'a> {
    /// The frames in the first `length` bytes of a buffer.
    ///
    /// # Errors
    /// `InvalidArgument` if the buffer is shorter.
    pub fn new(buffer: &'a [u8], length: u32) -> Result<Self> {
        buffer.get(..length as usize).map(Frames).ok_or_else(malformed)
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every byte that has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads bytes behind their length.
    ///
    /// # Errors
    /// `InvalidArgument` if the frames end too early, as for every reader.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        self.take(u32::from_le_bytes(*length) as usize)
    }

    /// Reads an operation.
    ///
    /// # Errors
    /// Those of [`bytes`](Self::bytes); and for an unknown kind.
    pub fn operation(&mut self) -> Result<Operation<'a>> {
        match self.take(1)? {
            [PUT] => Ok(Operation::Put(self.bytes()?, self.bytes()?)),
            [DELETION] => Ok(Operation::Delete(self.bytes()?)),
            _ => Err(malformed()),
        }
    }

    /// Reads all of them as keys.
    ///
    /// # Errors
    /// Those of [`bytes`](Self::bytes).
    pub fn all_bytes(mut self) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        while !self.is_empty() {
            all.push(self.bytes()?.to_vec());
        }
        Ok(all)
    }

    /// Reads all of them as the operations of a batch.
    ///
    /// # Errors
    /// Those of [`operation`](Self::operation).
    pub fn batch(mut self) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        while !self.is_empty() {
            match self.operation()? {
                Operation::Put(key, value) => batch.put(key, value),
                Operation::Delete(key) => batch.delete(key),
            }
        }
        Ok(batch)
    }
}

/// Appends bytes behind their length.
pub fn put_bytes(frames: &mut Vec<u8>, bytes: &[u8]) {
    frames.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    frames.extend_from_slice(bytes);
}

/// Appends the result of a lookup.
pub fn put_result(frames: &mut Vec<u8>, result: &Result<Option<Vec<u8>>>) {
    match result {
        Ok(Some(value)) => put_bytes(frames, value),
        Ok(None) => frames.extend_from_slice(&ABSENT.to_le_bytes()),
        Err(error) => {
            frames.extend_from_slice(&FAILED.to_le_bytes());
            put_bytes(frames, format!("{}\n{error}", code(error).as_ref()).as_bytes());
        }
    }
}

/// Frames come from `lib/frames.js` alone, so this is a bug there.
fn malformed() -> Error {
    Error::invalid_argument("malformed frames")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_of_operations_is_read_or_refused() {
        let mut bytes = vec![PUT];
        put_bytes(&mut bytes, b"key");
        put_bytes(&mut bytes, b"value");
        bytes.push(DELETION);
        put_bytes(&mut bytes, b"gone");
        let whole = Frames::new(&bytes, bytes.len() as u32).unwrap();
        let mut frames = whole;
        assert_eq!(frames.operation().unwrap(), Operation::Put(b"key", b"value"));
        assert_eq!(frames.operation().unwrap(), Operation::Delete(b"gone"));
        assert!(frames.is_empty());
        assert_eq!(whole.batch().unwrap().len(), 2);
        let good = [0, 17, bytes.len()];
        for length in 0..=bytes.len() {
            let batch = Frames::new(&bytes, length as u32).unwrap().batch();
            assert_eq!(batch.is_ok(), good.contains(&length), "{length} bytes");
        }
        assert!(Frames::new(&bytes, bytes.len() as u32 + 1).is_err());
        bytes[0] = 9;
        assert!(Frames::new(&bytes, 17).unwrap().batch().is_err());
    }
}
