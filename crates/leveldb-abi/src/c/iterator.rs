//! `leveldb_iterator_t`.

use std::borrow::Cow;
use std::ffi::c_char;
use std::sync::Arc;

use terrace::{Cursor, Error, Result};

use super::error::report;
use crate::guard::export;
use crate::memory::{address, bytes, detached, release, store};
use crate::trace::{Trace, TracedScans};

/// `leveldb_iterator_t`: a cursor, or why there is none.
#[expect(missing_debug_implementations, reason = "an opaque handle")]
pub struct Iterator {
    cursor: Result<Cursor>,
    /// The prefix of the database's keys that the iterator's keys lack: empty, but in a
    /// keyspace.
    prefix: Vec<u8>,
    /// Where the database is traced.
    scans: Option<Box<TracedScans>>,
}

impl Iterator {
    pub(super) fn new(cursor: Result<Cursor>) -> Self {
        Iterator { cursor, prefix: Vec::new(), scans: None }
    }

    /// The same, of a database whose trace this is.
    pub(super) fn traced(mut self, trace: Option<&Arc<Trace>>) -> Self {
        self.scans = trace.map(|trace| Box::new(TracedScans::new(trace)));
        self
    }

    /// Over the keys that begin with `prefix`, without it; the cursor has these bounds.
    pub(super) fn within(cursor: Cursor, prefix: Vec<u8>) -> Self {
        Iterator { cursor: Ok(cursor), prefix, scans: None }
    }

    /// The cursor to seek with, and a key as it knows it.
    pub(super) fn seek_with<'k>(&mut self, key: &'k [u8]) -> Option<(&mut Cursor, Cow<'k, [u8]>)> {
        let cursor = self.cursor.as_mut().ok()?;
        let key = match self.prefix.is_empty() {
            true => detached(key, cursor.entry()),
            false => Cow::Owned([&self.prefix, key].concat()),
        };
        Some((cursor, key))
    }

    /// The cursor to move, if there is one, after `note` has told a trace how.
    fn cursor(&mut self, note: impl FnOnce(&mut TracedScans, &Cursor)) -> Option<&mut Cursor> {
        let cursor = self.cursor.as_mut().ok()?;
        if let Some(scans) = &mut self.scans {
            note(scans, cursor);
        }
        Some(cursor)
    }

    fn error(&self) -> Option<Error> {
        match &self.cursor {
            Ok(cursor) => cursor.status().err(),
            Err(error) => Some(error.clone()),
        }
    }
}

/// The cursor to move, after `note` has told a trace how.
///
/// # Safety
/// `iter` is null or leads to an iterator that no other thread uses.
#[inline]
unsafe fn cursor<'a>(
    iter: *mut Iterator,
    note: impl FnOnce(&mut TracedScans, &Cursor),
) -> Option<&'a mut Cursor> {
    // SAFETY: guaranteed by the caller.
    unsafe { iter.as_mut() }.and_then(|iter| iter.cursor(note))
}

/// # Safety
/// `iter` is null or leads to an iterator that is not moved meanwhile.
unsafe fn position<'a>(iter: *const Iterator) -> Option<&'a Cursor> {
    // SAFETY: guaranteed by the caller.
    unsafe { iter.as_ref() }.and_then(|iter| iter.cursor.as_ref().ok())
}

/// Returns `part` as pointer and length. Good until the iterator moves.
///
/// # Safety
/// `length` is null or may be written.
unsafe fn pointer_to(part: Option<&[u8]>, length: *mut usize) -> *const c_char {
    let part = part.unwrap_or_default();
    // SAFETY: guaranteed by the caller.
    unsafe { store(length, part.len()) };
    address(part)
}

export! {
    /// Releases an iterator.
    fn leveldb_iter_destroy(iter: *mut Iterator) {
        drop(release(iter));
    }

    /// Whether the iterator stands at an entry.
    fn leveldb_iter_valid(iter: *const Iterator) -> u8 {
        position(iter).is_some_and(Cursor::valid).into()
    }

    /// Goes to the first entry.
    fn leveldb_iter_seek_to_first(iter: *mut Iterator) {
        if let Some(cursor) = cursor(iter, |scans, _| scans.seek_to_first()) {
            cursor.seek_to_first();
        }
    }

    /// Goes to the last entry.
    fn leveldb_iter_seek_to_last(iter: *mut Iterator) {
        if let Some(cursor) = cursor(iter, |scans, _| scans.seek_to_last()) {
            cursor.seek_to_last();
        }
    }

    /// Goes to the first entry at or after a key.
    fn leveldb_iter_seek(iter: *mut Iterator, k: *const c_char, klen: usize) {
        let Some(iter) = iter.as_mut() else { return };
        let key = bytes(k, klen);
        iter.scans.iter_mut().for_each(|scans| scans.seek(key));
        if let Some((cursor, key)) = iter.seek_with(key) {
            cursor.seek(&key);
        }
    }

    /// Goes to the next entry.
    fn leveldb_iter_next(iter: *mut Iterator) {
        if let Some(cursor) = cursor(iter, |scans, cursor| scans.step(false, cursor.key())) {
            cursor.next();
        }
    }

    /// Goes to the previous entry.
    fn leveldb_iter_prev(iter: *mut Iterator) {
        if let Some(cursor) = cursor(iter, |scans, cursor| scans.step(true, cursor.key())) {
            cursor.prev();
        }
    }

    /// The key here, until the iterator moves.
    fn leveldb_iter_key(iter: *const Iterator, klen: *mut usize) -> *const c_char {
        let prefix = iter.as_ref().map_or(0, |iter| iter.prefix.len());
        pointer_to(position(iter).and_then(|cursor| cursor.key().get(prefix..)), klen)
    }

    /// The value here, until the iterator moves.
    fn leveldb_iter_value(iter: *const Iterator, vlen: *mut usize) -> *const c_char {
        pointer_to(position(iter).map(Cursor::value), vlen)
    }

    /// Reports why the iterator is not valid, if not for want of entries.
    fn leveldb_iter_get_error(iter: *const Iterator, errptr: *mut *mut c_char) {
        if let Some(error) = iter.as_ref().and_then(Iterator::error) {
            report(errptr, &error);
        }
    }
}
