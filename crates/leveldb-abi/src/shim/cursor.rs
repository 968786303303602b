//! Iterators: over a database or over a table of plain keys.

use terrace::Cursor;
use terrace::abi::PlainTableIter;

use super::outcome::{Bytes, Outcome};
use crate::guard::export;
use crate::memory::release;

/// `shim_cursor`.
#[expect(missing_debug_implementations, reason = "an opaque handle")]
pub enum ShimCursor {
    /// Over a database.
    Database(Cursor),
    /// Over a table.
    Table(PlainTableIter),
}

/// `shim_position`: where a cursor stands. Good until it moves.
#[repr(C)]
#[derive(Debug)]
pub struct Position {
    key: Bytes,
    value: Bytes,
    valid: u8,
}

macro_rules! each {
    ($cursor:expr, $inner:ident => $body:expr) => {
        match $cursor {
            ShimCursor::Database($inner) => $body,
            ShimCursor::Table($inner) => $body,
        }
    };
}

/// Moves a cursor and says where it is then.
macro_rules! moved {
    ($cursor:ident, $position:ident, $inner:ident => $body:expr) => {
        each!(&mut *$cursor, $inner => {
            // Should this panic, the cursor is nowhere.
            (*$position).valid = 0;
            $body;
            $position.write(match $inner.entry() {
                Some((key, value)) => Position { key: Bytes::of(key), value: Bytes::of(value), valid: 1 },
                None => Position { key: Bytes::of(&[]), value: Bytes::of(&[]), valid: 0 },
            });
        })
    };
}

export! {
    /// Releases a cursor.
    fn shim_cursor_release(cursor: *mut ShimCursor) {
        drop(release(cursor));
    }

    /// Goes to the first entry.
    fn shim_cursor_first(cursor: *mut ShimCursor, position: *mut Position) {
        moved!(cursor, position, inner => inner.seek_to_first())
    }

    /// Goes to the last entry.
    fn shim_cursor_last(cursor: *mut ShimCursor, position: *mut Position) {
        moved!(cursor, position, inner => inner.seek_to_last())
    }

    /// Goes to the first entry at or after a key.
    fn shim_cursor_seek(cursor: *mut ShimCursor, key: Bytes, position: *mut Position) {
        moved!(cursor, position, inner => inner.seek(key.get()))
    }

    /// Goes to the next entry.
    fn shim_cursor_next(cursor: *mut ShimCursor, position: *mut Position) {
        moved!(cursor, position, inner => inner.next())
    }

    /// Goes to the previous entry.
    fn shim_cursor_prev(cursor: *mut ShimCursor, position: *mut Position) {
        moved!(cursor, position, inner => inner.prev())
    }

    /// Why there is no entry, if not for want of entries.
    fn shim_cursor_status(cursor: *const ShimCursor) -> Outcome {
        Outcome::of(|| each!(&*cursor, inner => inner.status()))
    }
}
