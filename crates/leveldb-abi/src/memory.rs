//! Raw memory at the boundary: what callers pass in, and what they get to free.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::ops::Bound;
use std::ptr;

use terrace::{Error, Result};

/// The bytes that a caller points to; none for a null pointer.
///
/// # Safety
/// `data` is null or leads to `length` bytes that do not change while the result is in use.
#[inline]
pub(crate) unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller; `c_char` and `u8` have the same layout.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// As [`bytes`], for what a caller passes as `what`: a null pointer with a length is a bug of the
/// caller's, in which LevelDB reads address 0.
///
/// # Safety
/// As [`bytes`].
#[inline]
pub(crate) unsafe fn argument<'a>(
    data: *const c_char,
    length: usize,
    what: &str,
) -> Result<&'a [u8]> {
    if data.is_null() && length > 0 {
        return Err(Error::invalid_argument(format!("the {what} is null and has {length} bytes")));
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { bytes(data, length) })
}

/// As [`argument`], for what a caller may leave out: null of no bytes.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn optional<'a>(
    data: *const c_char,
    length: usize,
    what: &str,
) -> Result<Option<&'a [u8]>> {
    // SAFETY: guaranteed by the caller.
    let given = unsafe { argument(data, length, what) }?;
    Ok((!data.is_null()).then_some(given))
}

/// The keys of a range, from inclusive to exclusive; an end that is left out is open.
pub(crate) type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn key_range<'a>(
    (start, start_length): (*const c_char, usize),
    (limit, limit_length): (*const c_char, usize),
) -> Result<KeyRange<'a>> {
    // SAFETY: guaranteed by the caller.
    let (start, limit) = unsafe {
        (optional(start, start_length, "start key")?, optional(limit, limit_length, "limit key")?)
    };
    Ok((
        start.map_or(Bound::Unbounded, Bound::Included),
        limit.map_or(Bound::Unbounded, Bound::Excluded),
    ))
}

/// Where `bytes` begin, for the caller. Those of no bytes may begin at a dangling address such as
/// 1, which runtimes that check pointers, Go's for one, take for corruption; they get an address
/// that may be read.
#[inline]
pub(crate) fn address(bytes: &[u8]) -> *const c_char {
    if bytes.is_empty() { c"".as_ptr() } else { bytes.as_ptr().cast() }
}

/// `key` as a cursor may seek it: copied if it lies within the entry at which the cursor is and
/// which the seek replaces.
#[inline]
pub(crate) fn detached<'a>(key: &'a [u8], entry: Option<(&[u8], &[u8])>) -> Cow<'a, [u8]> {
    let overlaps = |part: &[u8]| {
        let (key, part) = (key.as_ptr_range(), part.as_ptr_range());
        key.start < part.end && part.start < key.end
    };
    match entry {
        Some((own_key, own_value)) if overlaps(own_key) || overlaps(own_value) => {
            Cow::Owned(key.to_vec())
        }
        _ => Cow::Borrowed(key),
    }
}

/// A name that a C program gave, which need not be UTF-8: the bytes that files record, and the text
/// for messages.
#[derive(Debug)]
pub(crate) struct Name {
    bytes: Vec<u8>,
    text: String,
}

impl Name {
    /// # Safety
    /// `name` is null or leads to a C string.
    pub(crate) unsafe fn copied_from(name: *const c_char) -> Self {
        // SAFETY: guaranteed by the caller, and copied at once.
        let bytes = unsafe { c_string(name) }.to_vec();
        Name { text: String::from_utf8_lossy(&bytes).into_owned(), bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The bytes of a C string without its end; none for a null pointer.
///
/// # Safety
/// `text` is null or leads to a C string that do not change while the result is in use.
pub(crate) unsafe fn c_string<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// A copy of `bytes` in memory from `malloc`; null only if there is no memory. Never null for no
/// bytes.
pub(crate) fn malloc_copy(bytes: &[u8]) -> *mut c_char {
    // SAFETY: `malloc` may be called with any size; a zero size is avoided, because it may return
    // null.
    let copy = unsafe { libc::malloc(bytes.len().max(1)) }.cast::<u8>();
    if !copy.is_null() {
        // SAFETY: `copy` is fresh and has room for the bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len()) };
    }
    copy.cast()
}

/// As [`malloc_copy`], for a key or a value: a null pointer would say that there is none.
///
/// # Errors
/// `Io` if there is no memory for it.
pub(crate) fn copied(bytes: &[u8]) -> Result<*mut c_char> {
    let copy = malloc_copy(bytes);
    if copy.is_null() {
        return Err(Error::io_message(format!("no memory for a copy of {} bytes", bytes.len())));
    }
    Ok(copy)
}

/// Where a caller wants a copy and its length; nowhere if the first is null.
pub(crate) type Place = (*mut *mut c_char, *mut usize);

/// Stores copies of `key` and `value`, both or none.
///
/// # Errors
/// As [`copied`].
///
/// # Safety
/// The places are null or may be written.
pub(crate) unsafe fn store_entry(key: &[u8], value: &[u8], places: [Place; 2]) -> Result<()> {
    let wanted = |(place, _): Place, bytes| (!place.is_null()).then(|| copied(bytes)).transpose();
    let key_copy = wanted(places[0], key)?;
    let value_copy = wanted(places[1], value).inspect_err(|_| {
        // SAFETY: nobody else knows this memory from `malloc`.
        unsafe { libc::free(key_copy.unwrap_or(ptr::null_mut()).cast()) };
    })?;
    let copies = [(key_copy, key.len()), (value_copy, value.len())];
    for ((copy, length), (place, length_place)) in copies.into_iter().zip(places) {
        if let Some(copy) = copy {
            // SAFETY: guaranteed by the caller.
            unsafe {
                store(place, copy);
                store(length_place, length);
            }
        }
    }
    Ok(())
}

/// A copy of `text` as a C string in memory from `malloc`. A zero in the text ends it early.
pub(crate) fn malloc_c_string(text: &[u8]) -> *mut c_char {
    let mut terminated = Vec::with_capacity(text.len() + 1);
    terminated.extend_from_slice(text);
    terminated.push(0);
    malloc_copy(&terminated)
}

/// Hands `value` to the caller, which releases it through [`release`].
pub(crate) fn hand_out<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes an object back; null is nothing.
///
/// # Safety
/// `object` is null or came from [`hand_out`], and is not used again.
pub(crate) unsafe fn release<T>(object: *mut T) -> Option<Box<T>> {
    // SAFETY: guaranteed by the caller.
    (!object.is_null()).then(|| unsafe { Box::from_raw(object) })
}

/// Stores `value` where the caller asked for it, if anywhere.
///
/// # Safety
/// `place` is null or may be written.
pub(crate) unsafe fn store<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: guaranteed by the caller. What is there is not dropped: it may be uninitialised.
        unsafe { place.write(value) };
    }
}
