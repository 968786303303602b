//! Direct byte buffers: memory outside the heap that Java code reads and writes at any time.
//!
//! Their bytes are copied in and out. A slice over them would be undefined behaviour where another
//! Java thread writes meanwhile, and a record whose bytes change under the checksum would be
//! damage on disk.
#![allow(unsafe_code)]

use std::ptr;

use jni::Env;
use jni::objects::JByteBuffer;
use jni::sys::jint;
use terrace::Error;

use crate::failure::Result;

/// The part of a buffer from `offset`, `length` bytes, after a check of its bounds.
fn part(env: &Env<'_>, buffer: &JByteBuffer<'_>, offset: jint, length: jint) -> Result<*mut u8> {
    let capacity = env.get_direct_buffer_capacity(buffer)?;
    let bounds = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    let fits = bounds.and_then(|(from, size)| from.checked_add(size)).filter(|to| *to <= capacity);
    let (Some((from, _)), Some(_)) = (bounds, fits) else {
        return Err(Error::invalid_argument("a range outside of the buffer").into());
    };
    let address = env.get_direct_buffer_address(buffer)?;
    // SAFETY: `from` is at most the capacity of the buffer that begins at `address`.
    Ok(unsafe { address.add(from) })
}

/// Replaces the contents of `bytes` by `length` bytes of the buffer from `offset`.
///
/// # Errors
/// `InvalidArgument` if these are not within the buffer; those of the virtual machine if it is not
/// direct.
pub(crate) fn read(
    env: &Env<'_>,
    buffer: &JByteBuffer<'_>,
    offset: jint,
    length: jint,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    bytes.clear();
    if length == 0 {
        return Ok(());
    }
    let from = part(env, buffer, offset, length)?;
    bytes.reserve(length as usize);
    // SAFETY: `part` has checked that `length` bytes lie there, and that `length` is not negative.
    // The caller's frame refers to the buffer, which keeps its memory; that of a segment is its
    // arena's, which Java's side has found open, and which no other thread may close during the
    // call, by `TerraceDb`'s documentation. `bytes` has room for as many, is another piece of
    // memory, and all of the new length is written.
    unsafe {
        ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), length as usize);
        bytes.set_len(length as usize);
    }
    Ok(())
}

/// Copies as much of `bytes` as there is room for into `length` bytes of the buffer from `offset`.
///
/// # Errors
/// Those of [`read`].
pub(crate) fn write(
    env: &Env<'_>,
    buffer: &JByteBuffer<'_>,
    offset: jint,
    length: jint,
    bytes: &[u8],
) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    let to = part(env, buffer, offset, length)?;
    let size = bytes.len().min(length as usize);
    // SAFETY: as in `read`: there is room for `length` bytes, of which `size` are written, and the
    // engine's memory is never a Java buffer's.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, size) };
    Ok(())
}
