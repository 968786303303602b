//! Bytes across the border: copied, through buffers that each thread keeps.

use std::cell::Cell;

use jni::Env;
use jni::objects::JByteArray;
use jni::sys::jsize;
use terrace::Error;

use crate::failure::Result;

/// A thread keeps a buffer of at most this many bytes.
const KEPT: usize = 1 << 20;

thread_local! {
    static KEY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A buffer of the thread, empty at first. A call inside a call gets a fresh one.
pub(crate) struct Scratch {
    pub(crate) bytes: Vec<u8>,
    home: &'static std::thread::LocalKey<Cell<Vec<u8>>>,
}

impl Scratch {
    /// The buffer for keys.
    pub(crate) fn key() -> Self {
        Scratch { bytes: KEY.take(), home: &KEY }
    }

    /// The buffer for values and batches.
    pub(crate) fn value() -> Self {
        Scratch { bytes: VALUE.take(), home: &VALUE }
    }

    /// Replaces the contents by those of a Java array.
    ///
    /// # Errors
    /// Those of the virtual machine.
    pub(crate) fn read(&mut self, env: &Env<'_>, array: &JByteArray<'_>) -> Result<&[u8]> {
        let length = array.len(env)?;
        self.read_prefix(env, array, length)
    }

    /// Replaces the contents by the first `length` bytes of a Java array.
    ///
    /// # Errors
    /// Those of the virtual machine: an exception if the array is shorter.
    pub(crate) fn read_prefix(
        &mut self,
        env: &Env<'_>,
        array: &JByteArray<'_>,
        length: usize,
    ) -> Result<&[u8]> {
        // No more of the buffer is zeroed than earlier uses left out.
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
        array.get_region(env, 0, bytemuck::cast_slice_mut(&mut self.bytes[..length]))?;
        Ok(&self.bytes[..length])
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() <= KEPT {
            self.home.set(bytes);
        }
    }
}

/// A copy of a Java array; `None` for null.
pub(crate) fn optional(env: &Env<'_>, array: &JByteArray<'_>) -> Result<Option<Vec<u8>>> {
    if array.is_null() {
        return Ok(None);
    }
    Ok(Some(env.convert_byte_array(array)?))
}

/// A new Java array with these bytes.
///
/// # Errors
/// `NotSupported` if there are 2 GiB or more; those of the virtual machine if memory runs out.
pub(crate) fn new_array<'local>(env: &mut Env<'local>, bytes: &[u8]) -> Result<JByteArray<'local>> {
    if jsize::try_from(bytes.len()).is_err() {
        let message = format!("{} bytes do not fit into a Java array", bytes.len());
        return Err(Error::not_supported(message).into());
    }
    Ok(env.byte_array_from_slice(bytes)?)
}

/// Text of a Java array of UTF-8 bytes.
///
/// # Errors
/// `InvalidArgument` if it is not UTF-8.
pub(crate) fn text(env: &Env<'_>, array: &JByteArray<'_>) -> Result<String> {
    let bytes = env.convert_byte_array(array)?;
    Ok(String::from_utf8(bytes).map_err(|_| Error::invalid_argument("text is not UTF-8"))?)
}

/// Reads pieces that Java packed into one array: of each its length, in four bytes with the
/// greatest first, and its bytes.
pub(crate) struct Packed<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Packed<'a> {
    type Item = terrace::Result<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let piece = self
            .0
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_be_bytes(*length) as usize));
        let Some((piece, rest)) = piece else {
            self.0 = &[];
            return Some(Err(Error::invalid_argument("a packed array is cut off")));
        };
        self.0 = rest;
        Some(Ok(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_as_they_were_packed_and_a_cut_is_an_error() {
        let bytes = [0, 0, 0, 2, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 1, b'c'];
        let pieces: terrace::Result<Vec<_>> = Packed(&bytes).collect();
        assert_eq!(pieces.unwrap(), [&b"ab"[..], b"", b"c"]);
        for length in [1, 5, 14] {
            assert!(Packed(&bytes[..length]).any(|piece| piece.is_err()), "{length}");
        }
    }
}
