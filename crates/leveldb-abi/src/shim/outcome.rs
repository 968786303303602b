//! Bytes and results as they cross the boundary.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use terrace::{Error, Result};

use crate::guard::{Nothing, panicked};
use crate::memory::{address, bytes, malloc_copy};
use crate::status;

/// `shim_bytes`: a pointer and a length, null for none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    data: *const c_char,
    size: usize,
}

impl Bytes {
    /// No bytes, for callers who want a pointer all the same.
    pub(super) const NONE: Bytes = Bytes { data: c"".as_ptr(), size: 0 };

    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Self {
        Bytes { data: address(bytes), size: bytes.len() }
    }

    /// The bytes it leads to.
    ///
    /// # Safety
    /// It leads to bytes that do not change while the result is in use.
    #[inline]
    pub(super) unsafe fn get<'a>(self) -> &'a [u8] {
        // SAFETY: guaranteed by the caller.
        unsafe { bytes(self.data, self.size) }
    }
}

/// `shim_put`: takes the bytes of a result.
pub type Put = unsafe extern "C" fn(target: *mut c_void, data: *const c_char, size: usize);

/// `shim_outcome`: a code of LevelDB's `Status` and, unless it is 0, a message from `malloc`. Two
/// registers hold it.
#[repr(C)]
#[derive(Debug)]
pub struct Outcome {
    code: c_int,
    length: u32,
    message: *mut c_char,
}

impl Nothing for Outcome {
    fn nothing() -> Self {
        Outcome::failure(&panicked())
    }
}

impl Outcome {
    #[inline]
    fn done() -> Self {
        Outcome { code: 0, length: 0, message: ptr::null_mut() }
    }

    /// `NotFound` without words: no key, rather than no file.
    #[inline]
    pub(super) fn absent() -> Self {
        Outcome { code: 1, length: 0, message: ptr::null_mut() }
    }

    #[cold]
    fn failure(error: &Error) -> Self {
        let message = error.message().as_bytes();
        // LevelDB's own lengths of messages have 32 bits.
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let message = malloc_copy(message);
        // Without memory for the words the code has to do.
        let length = if message.is_null() { 0 } else { length };
        Outcome { code: status::code(error), length, message }
    }

    /// The outcome of `work`. A panic passes through, to the guard of the exported function.
    #[inline]
    pub(super) fn of(work: impl FnOnce() -> Result<()>) -> Self {
        Outcome::from(work())
    }

    #[inline]
    pub(super) fn from(result: Result<()>) -> Self {
        match result {
            Ok(()) => Outcome::done(),
            Err(error) => Outcome::failure(&error),
        }
    }

    /// The result of C++.
    ///
    /// # Safety
    /// The message is null or came from `malloc`, with `length` bytes; it is freed.
    #[inline]
    pub(super) unsafe fn into_result(self) -> Result<()> {
        if self.code == 0 {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        let message = unsafe {
            let message =
                String::from_utf8_lossy(bytes(self.message, self.length as usize)).into_owned();
            libc::free(self.message.cast());
            message
        };
        Err(match self.code {
            1 => Error::not_found(message),
            2 => Error::corruption(message),
            3 => Error::not_supported(message),
            4 => Error::invalid_argument(message),
            _ => Error::io_message(message),
        })
    }
}

/// A place for bytes on the other side.
#[derive(Clone, Copy)]
pub(super) struct Sink {
    target: *mut c_void,
    put: Put,
}

impl Sink {
    /// # Safety
    /// `put` may be called with `target` for as long as the sink is in use.
    pub(super) unsafe fn new(target: *mut c_void, put: Put) -> Self {
        Sink { target, put }
    }

    #[inline]
    pub(super) fn put(self, bytes: &[u8]) {
        // SAFETY: guaranteed by `new`.
        unsafe { (self.put)(self.target, address(bytes), bytes.len()) }
    }
}

/// Collects what C++ puts into a `Vec<u8>`, replacing what is there.
pub(super) unsafe extern "C" fn replace_vec(target: *mut c_void, data: *const c_char, size: usize) {
    // SAFETY: passed together with the address of a `Vec<u8>` that is exclusively the caller's.
    unsafe {
        let vec = &mut *target.cast::<Vec<u8>>();
        vec.clear();
        vec.extend_from_slice(bytes(data, size));
    }
}

/// Collects what C++ puts into a `Vec<u8>`, behind what is there.
pub(super) unsafe extern "C" fn extend_vec(target: *mut c_void, data: *const c_char, size: usize) {
    // SAFETY: as `replace_vec`.
    unsafe { (*target.cast::<Vec<u8>>()).extend_from_slice(bytes(data, size)) }
}
