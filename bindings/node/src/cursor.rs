//! Iterators: a cursor that jobs move, a chunk of entries at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use terrace::{Db, ReadOptions, Result};

use crate::error::{Code, not_open, thrown};
use crate::frames::{Frames, put_bytes};
use crate::job::Job;
use crate::outputs::Outputs;
use crate::range::{Range, flag};

/// Bytes before the entries of a chunk: [`END`] and [`ASCII`], and the number of entries.
const HEADER_SIZE: usize = 5;
/// There are no entries behind the chunk.
const END: u8 = 1;
/// All bytes of keys and values are ASCII.
const ASCII: u8 = 2;

/// Where the next entry is.
enum Position {
    /// At the beginning of the range, in its direction.
    Start,
    /// At a key that was sought, or behind it.
    Seek(Vec<u8>),
    /// One step from the cursor.
    Next,
    /// Nowhere.
    End,
}

/// What jobs of an iterator work on, one at a time.
struct State {
    db: Db,
    range: Range,
    options: ReadOptions,
    keys: bool,
    values: bool,
    cursor: Option<terrace::Cursor>,
    position: Position,
}

impl State {
    /// Reads entries until there are `size`, or more than `bytes_limit` bytes of them, or none is
    /// left.
    fn read(&mut self, size: u32, bytes_limit: usize, aborted: &AtomicBool) -> Result<Vec<u8>> {
        let mut chunk = vec![0; HEADER_SIZE];
        let mut cursor = match self.cursor.take() {
            Some(cursor) => cursor,
            None => self.db.cursor_with(&self.options)?,
        };
        let (mut count, mut bytes, mut is_ascii) = (0_u32, 0, true);
        while count < size && bytes <= bytes_limit && !aborted.load(Ordering::Relaxed) {
            self.advance(&mut cursor);
            let Some((key, value)) = cursor.entry() else {
                self.position = Position::End;
                cursor.status()?;
                chunk[0] = END;
                break;
            };
            for (part, is_shown) in [(key, self.keys), (value, self.values)] {
                if is_shown {
                    put_bytes(&mut chunk, part);
                    bytes += part.len();
                    is_ascii = is_ascii && part.is_ascii();
                }
            }
            count += 1;
        }
        chunk[0] |= if is_ascii { ASCII } else { 0 };
        chunk[1..HEADER_SIZE].copy_from_slice(&count.to_le_bytes());
        self.cursor = Some(cursor);
        Ok(chunk)
    }

    /// Moves the cursor to the next entry, or off the end.
    fn advance(&mut self, cursor: &mut terrace::Cursor) {
        let reverse = self.range.reverse;
        match std::mem::replace(&mut self.position, Position::Next) {
            Position::Start if reverse => cursor.seek_to_last(),
            Position::Start => cursor.seek_to_first(),
            // A target outside the range has nothing behind it, whatever the direction.
            Position::Seek(key) if !self.range.contains(&key) => self.leave(cursor),
            Position::Seek(key) if reverse => cursor.seek_for_prev(key),
            Position::Seek(key) => cursor.seek(key),
            Position::Next if reverse => cursor.prev(),
            Position::Next => cursor.next(),
            Position::End => self.leave(cursor),
        }
    }

    /// Moves the cursor off the end of the range.
    fn leave(&self, cursor: &mut terrace::Cursor) {
        if self.range.reverse {
            cursor.seek_to_first();
            cursor.prev();
        } else {
            cursor.seek_to_last();
            cursor.next();
        }
    }
}

/// An iterator over entries, keys or values.
#[napi]
pub struct Cursor {
    /// `None` once closed.
    state: Arc<Mutex<Option<State>>>,
    aborted: Arc<AtomicBool>,
    outputs: Outputs,
}

fn locked(state: &Mutex<Option<State>>) -> MutexGuard<'_, Option<State>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cursor {
    /// An iterator over `range` as of `snapshot`. Reads nothing yet.
    pub fn new(
        db: Db,
        range: Range,
        flags: u32,
        snapshot: &terrace::Snapshot,
        outputs: Outputs,
    ) -> Self {
        let options = range.read_options(snapshot, flags & flag::FILL_CACHE != 0);
        let (keys, values) = (flags & flag::KEYS != 0, flags & flag::VALUES != 0);
        let position = Position::Start;
        let state = State { db, range, options, keys, values, cursor: None, position };
        Cursor { state: Arc::new(Mutex::new(Some(state))), aborted: Arc::default(), outputs }
    }
}

#[napi]
impl Cursor {
    /// Has the next entry be the one at the key in the frame, or the next one in the direction of
    /// the iterator.
    #[napi]
    pub fn seek(&self, frames: &[u8], length: u32) -> napi::Result<(), Code> {
        let target = Frames::new(frames, length).and_then(|mut frames| frames.bytes());
        let target = target.map_err(|error| thrown(&error))?.to_vec();
        if let Some(state) = locked(&self.state).as_mut() {
            state.position = Position::Seek(target);
        }
        Ok(())
    }

    /// Reads up to `size` entries, or somewhat more than `bytes_limit` bytes of them. The promise
    /// is for the ticket of a chunk.
    #[napi]
    pub fn next(&self, size: u32, bytes_limit: u32) -> AsyncTask<Job<u32>> {
        let (state, aborted) = (self.state.clone(), self.aborted.clone());
        let outputs = self.outputs.clone();
        Job::start(move || {
            let mut state = locked(&state);
            let state = state.as_mut().ok_or_else(not_open)?;
            Ok(outputs.put(state.read(size, bytes_limit as usize, &aborted)?))
        })
    }

    /// Has the job that is running, and every later one, stop early.
    #[napi]
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }

    /// Lets go of everything that the iterator holds.
    #[napi]
    pub fn close(&self) {
        let state = locked(&self.state).take();
        drop(state);
    }
}
