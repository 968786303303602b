//! Iterators: entries cross the border many at a time.
//!
//! An iterator reads the database as it was when it was made. Java says where to begin and in
//! which direction, and gets as many entries as fit into an array; the next call continues there.

use std::sync::{Mutex, PoisonError};

use jni::Env;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jint, jlong};
use terrace::{Cursor, Error};

use crate::bytes::{self, Scratch};
use crate::database::DATABASES;
use crate::failure::{Failure, Result};
use crate::options::read_options;
use crate::registry::Registry;

/// The iterators that Java holds, each with the number of its database.
static ITERATORS: Registry<(jlong, Mutex<Cursor>)> = Registry::new("iterator");

/// The bytes before an entry's key and value: their lengths.
const HEADER: usize = 8;

/// Drops the iterators of a database that is closed: nobody can use them any more.
pub(crate) fn close_all_of(database: jlong) {
    ITERATORS.remove_where(|(of, _)| *of == database);
}

native! {
    fn iterator(
        database: jlong,
        snapshot: jlong,
        flags: jint,
        lower: jbyte[],
        upper: jbyte[],
    ) -> jlong,
}

/// An iterator over the keys from `lower` to before `upper`, null for none.
fn iterator<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    snapshot: jlong,
    flags: jint,
    lower: JByteArray<'local>,
    upper: JByteArray<'local>,
) -> Result<jlong> {
    let mut options = read_options(snapshot, flags)?;
    if let Some(lower) = bytes::optional(env, &lower)? {
        options = options.lower_bound(lower);
    }
    if let Some(upper) = bytes::optional(env, &upper)? {
        options = options.upper_bound(upper);
    }
    DATABASES.with(database, |open| {
        let cursor = open.run(|db| db.cursor_with(&options))?;
        Ok(ITERATORS.insert((database, Mutex::new(cursor))))
    })
}

native! {
    fn close_iterator(iterator: jlong) -> jboolean,
}

fn close_iterator<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    iterator: jlong,
) -> Result<jboolean> {
    Ok(ITERATORS.remove(iterator).is_some())
}

/// Where a fill begins and which way it goes, as `io.terrace.EntryWindow` numbers them.
#[derive(Clone, Copy)]
enum Start {
    First,
    AtOrAfter,
    After,
    ContinueForward,
    Last,
    Before,
    ContinueBackward,
}

impl Start {
    fn of(number: jint) -> terrace::Result<Self> {
        Ok(match number {
            0 => Start::First,
            1 => Start::AtOrAfter,
            2 => Start::After,
            3 => Start::ContinueForward,
            4 => Start::Last,
            5 => Start::Before,
            6 => Start::ContinueBackward,
            _ => return Err(Error::invalid_argument(format!("no start has number {number}"))),
        })
    }

    fn is_forward(self) -> bool {
        matches!(self, Start::First | Start::AtOrAfter | Start::After | Start::ContinueForward)
    }

    fn seek(self, cursor: &mut Cursor, key: &[u8]) {
        match self {
            Start::First => cursor.seek_to_first(),
            Start::AtOrAfter => cursor.seek(key),
            Start::After => {
                cursor.seek(key);
                if cursor.valid() && cursor.key() == key {
                    cursor.next();
                }
            }
            Start::Last => cursor.seek_to_last(),
            Start::Before => {
                cursor.seek_for_prev(key);
                if cursor.valid() && cursor.key() == key {
                    cursor.prev();
                }
            }
            Start::ContinueForward | Start::ContinueBackward => {}
        }
    }
}

native! {
    fn fill(
        iterator: jlong,
        start: jint,
        key: jbyte[],
        array: jbyte[],
        entries: jint,
    ) -> jlong,
}

/// Copies at most `entries` entries into an array, of each the lengths of key and value in four
/// bytes each, least first, the key and the value. Returns their number; if there is no room for
/// the first one, the length that the array needs, negated.
fn fill<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    iterator: jlong,
    start: jint,
    key: JByteArray<'local>,
    array: JByteArray<'local>,
    entries: jint,
) -> Result<jlong> {
    let start = Start::of(start)?;
    let held = ITERATORS.get(iterator)?;
    let (database, cursor) = &*held;
    // A closed database's iterators are closed, too.
    DATABASES.with(*database, |open| {
        let mut window = Scratch::value();
        window.bytes.clear();
        let count = open.run(|_| {
            let mut cursor = cursor.lock().unwrap_or_else(PoisonError::into_inner);
            if !key.is_null() {
                let mut scratch = Scratch::key();
                start.seek(&mut cursor, scratch.read(env, &key)?);
            } else {
                start.seek(&mut cursor, &[]);
            }
            let room = array.len(env)?;
            let count = copy(&mut cursor, start.is_forward(), entries, room, &mut window.bytes);
            cursor.status()?;
            Ok::<_, Failure>(count)
        })?;
        if count > 0 {
            array.set_region(env, 0, bytemuck::cast_slice(&window.bytes))?;
        }
        Ok::<_, Failure>(count)
    })
}

fn copy(cursor: &mut Cursor, forward: bool, most: jint, room: usize, to: &mut Vec<u8>) -> jlong {
    let mut count = 0;
    while count < jlong::from(most) {
        let Some((key, value)) = cursor.entry() else { break };
        let size = HEADER + key.len() + value.len();
        if size > room - to.len() {
            return if count == 0 { -(size as jlong) } else { count };
        }
        to.extend_from_slice(&(key.len() as u32).to_le_bytes());
        to.extend_from_slice(&(value.len() as u32).to_le_bytes());
        to.extend_from_slice(key);
        to.extend_from_slice(value);
        count += 1;
        if forward {
            cursor.next();
        } else {
            cursor.prev();
        }
    }
    count
}
