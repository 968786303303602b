//! Iterators: over a database or over a table of plain keys.

use std::sync::Arc;

use terrace::Cursor;
use terrace::abi::{PlainTableIter, next_with, prev_with};

use super::outcome::{Bytes, Outcome};
use crate::guard::export;
use crate::memory::{detached, release};
use crate::trace::{Trace, TracedScans};

/// `shim_cursor`.
#[expect(missing_debug_implementations, reason = "an opaque handle")]
pub enum ShimCursor {
    /// Over a database.
    Database(Cursor),
    /// Over a table.
    Table(PlainTableIter),
    /// Over a database that is traced.
    Traced(Cursor, TracedScans),
}

impl ShimCursor {
    pub(super) fn over(cursor: Cursor, trace: Option<&Arc<Trace>>) -> Self {
        match trace {
            None => ShimCursor::Database(cursor),
            Some(trace) => ShimCursor::Traced(cursor, TracedScans::new(trace)),
        }
    }

    /// What notes for a trace how the cursor is placed, if there is one.
    fn scans(&mut self) -> Option<&mut TracedScans> {
        match self {
            ShimCursor::Traced(_, scans) => Some(scans),
            _ => None,
        }
    }
}

/// `shim_position`: where a cursor stands. Good until it moves.
#[repr(C)]
#[derive(Debug)]
pub struct Position {
    key: Bytes,
    value: Bytes,
    valid: u8,
}

impl Position {
    /// At no entry.
    const NOWHERE: Position = Position { key: Bytes::NONE, value: Bytes::NONE, valid: 0 };

    /// Field by field, since whole positions that are put together elsewhere and moved here make
    /// the processor wait.
    #[inline]
    fn show(&mut self, key: &[u8], value: &[u8]) {
        self.key = Bytes::of(key);
        self.value = Bytes::of(value);
    }

    /// Whether there is an entry, which was shown then.
    #[inline]
    fn set_position(&mut self, there_is_one: bool) {
        if there_is_one {
            self.valid = 1;
        } else {
            *self = Position::NOWHERE;
        }
    }
}

macro_rules! each {
    ($cursor:expr, $inner:ident => $body:expr) => {
        match $cursor {
            ShimCursor::Database($inner) | ShimCursor::Traced($inner, _) => $body,
            ShimCursor::Table($inner) => $body,
        }
    };
}

/// Moves a cursor and says where it is then.
macro_rules! moved {
    ($cursor:ident, $position:ident, $inner:ident => $body:expr) => {
        each!(&mut *$cursor, $inner => {
            let position = &mut *$position;
            // Should this panic, the cursor is nowhere.
            position.valid = 0;
            $body;
            let shown = $inner.entry().map(|(key, value)| position.show(key, value));
            position.set_position(shown.is_some());
        })
    };
}

/// Moves a cursor by a step.
macro_rules! stepped {
    ($cursor:ident, $position:ident, $with:ident, $in_table:ident, $backwards:literal) => {{
        let position = &mut *$position;
        // Should this panic, the cursor is nowhere.
        position.valid = 0;
        let moved = match &mut *$cursor {
            ShimCursor::Database(cursor) => $with(cursor, |key, value| position.show(key, value)),
            ShimCursor::Table(iter) => $in_table(iter, position),
            ShimCursor::Traced(cursor, scans) => {
                scans.step($backwards, cursor.key());
                $with(cursor, |key, value| position.show(key, value))
            }
        };
        position.set_position(moved);
    }};
}

// Apart from the steps of databases, which are short.

#[inline(never)]
fn next_in_table(iter: &mut PlainTableIter, position: &mut Position) -> bool {
    iter.next();
    iter.entry().map(|(key, value)| position.show(key, value)).is_some()
}

#[inline(never)]
fn prev_in_table(iter: &mut PlainTableIter, position: &mut Position) -> bool {
    iter.prev();
    iter.entry().map(|(key, value)| position.show(key, value)).is_some()
}

export! {
    /// Releases a cursor.
    fn shim_cursor_release(cursor: *mut ShimCursor) {
        drop(release(cursor));
    }

    /// Goes to the first entry.
    fn shim_cursor_first(cursor: *mut ShimCursor, position: *mut Position) {
        (*cursor).scans().into_iter().for_each(TracedScans::seek_to_first);
        moved!(cursor, position, inner => inner.seek_to_first())
    }

    /// Goes to the last entry.
    fn shim_cursor_last(cursor: *mut ShimCursor, position: *mut Position) {
        (*cursor).scans().into_iter().for_each(TracedScans::seek_to_last);
        moved!(cursor, position, inner => inner.seek_to_last())
    }

    /// Goes to the first entry at or after a key.
    fn shim_cursor_seek(cursor: *mut ShimCursor, key: Bytes, position: *mut Position) {
        let key = each!(&*cursor, inner => detached(key.get(), inner.entry()));
        (*cursor).scans().into_iter().for_each(|scans| scans.seek(&key));
        moved!(cursor, position, inner => inner.seek(&key))
    }

    /// Goes to the next entry.
    fn shim_cursor_next(cursor: *mut ShimCursor, position: *mut Position) {
        stepped!(cursor, position, next_with, next_in_table, false)
    }

    /// Goes to the previous entry.
    fn shim_cursor_prev(cursor: *mut ShimCursor, position: *mut Position) {
        stepped!(cursor, position, prev_with, prev_in_table, true)
    }

    /// Why there is no entry, if not for want of entries.
    fn shim_cursor_status(cursor: *const ShimCursor) -> Outcome {
        Outcome::of(|| each!(&*cursor, inner => inner.status()))
    }
}
