//! `terrace/c.h`: atomic updates.

use std::ffi::{c_char, c_void};
use std::ptr;

use terrace::{Counter, Db, Error, Result, WriteOptions};

use super::database::{Database, write_options};
use super::error::{reporting, required};
use super::options::CWriteOptions;
use crate::guard::export;
use crate::memory::{Place, address, argument, bytes, key_range, optional, store, store_entry};

/// A program's function that makes a value of a value.
type Change = extern "C-unwind" fn(
    state: *mut c_void,
    value: *const c_char,
    length: usize,
    new_length: *mut usize,
) -> *mut c_char;

/// The value that `change` makes of `value`. Null with a length, as where a program has no memory,
/// is an error and no deletion.
///
/// # Safety
/// `change` returns null, or memory from `malloc` of the length that it stores.
unsafe fn changed(
    change: Change,
    state: *mut c_void,
    value: Option<&[u8]>,
) -> Result<Option<Vec<u8>>> {
    let mut length = 0;
    let start = value.map_or(ptr::null(), address);
    let new = change(state, start, value.map_or(0, <[u8]>::len), &mut length);
    if new.is_null() {
        // SAFETY: null leads to nothing.
        return unsafe { optional(new, length, "new value") }.map(|_| None);
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let copy = bytes(new, length).to_vec();
        libc::free(new.cast());
        Ok(Some(copy))
    }
}

/// Hands out a popped entry, or puts it back.
///
/// # Safety
/// The places are null or may be written.
unsafe fn hand_out_popped(
    db: &Db,
    (key, value): (Vec<u8>, Vec<u8>),
    options: WriteOptions,
    places: [Place; 2],
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let Err(error) = (unsafe { store_entry(&key, &value, places) }) else { return Ok(()) };
    let fate = match db.insert_if_absent_with(&key, &value, options) {
        Ok(true) if key.starts_with(b"!") => {
            "the entry is back in the database, without its time to live if it had one".to_owned()
        }
        Ok(true) => "the entry is back in the database".to_owned(),
        Ok(false) => "the entry is lost: its key has a new value".to_owned(),
        Err(second) => format!("the entry is lost: {second}"),
    };
    Err(Error::io_message(format!("{}; {fate}", error.message())))
}

#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

/// # Safety
/// As for exported functions.
#[allow(clippy::too_many_arguments, reason = "those of the C function")]
unsafe fn pop(
    end: End,
    db: *mut Database,
    options: *const CWriteOptions,
    start: (*const c_char, usize),
    limit: (*const c_char, usize),
    places: [Place; 2],
    errptr: *mut *mut c_char,
) -> u8 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for (place, length) in places {
            store(place, ptr::null_mut());
            store(length, 0);
        }
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            let range = key_range(start, limit)?;
            let options = write_options(options);
            let entry = match end {
                End::First => db.pop_first_in::<&[u8]>(range, options),
                End::Last => db.pop_last_in::<&[u8]>(range, options),
            };
            let Some(entry) = entry? else { return Ok(0) };
            hand_out_popped(db, entry, options, places)?;
            Ok(1)
        })
    }
}

export! {
    /// Sets a key if it has the expected value.
    fn terrace_compare_and_swap(
        db: *mut Database, options: *const CWriteOptions, key: *const c_char, keylen: usize,
        expected: *const c_char, expected_length: usize, new_value: *const c_char,
        new_length: usize, errptr: *mut *mut c_char,
    ) -> u8 {
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            let swapped = db.compare_and_swap_with(
                argument(key, keylen, "key")?,
                optional(expected, expected_length, "expected value")?,
                optional(new_value, new_length, "new value")?,
                write_options(options),
            )?;
            Ok(u8::from(swapped))
        })
    }

    /// Sets a key if it has no value.
    fn terrace_insert_if_absent(
        db: *mut Database, options: *const CWriteOptions, key: *const c_char, keylen: usize,
        val: *const c_char, vallen: usize, errptr: *mut *mut c_char,
    ) -> u8 {
        reporting(errptr, || {
            let (key, value) = (argument(key, keylen, "key")?, argument(val, vallen, "value")?);
            let db = required(db, "db")?.db();
            Ok(u8::from(db.insert_if_absent_with(key, value, write_options(options))?))
        })
    }

    /// Sets a key to what a function makes of its value.
    fn terrace_update(
        db: *mut Database, options: *const CWriteOptions, key: *const c_char, keylen: usize,
        state: *mut c_void, change: Option<Change>, errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let (db, key) = (required(db, "db")?.db(), argument(key, keylen, "key")?);
            let Some(change) = change else {
                return Err(Error::invalid_argument("change is null"));
            };
            let change = |value: Option<&[u8]>| changed(change, state, value);
            db.try_update_with(key, change, write_options(options)).map(drop)
        })
    }

    /// Adds to a counter.
    fn terrace_increment(
        db: *mut Database, options: *const CWriteOptions, key: *const c_char, keylen: usize,
        by: i64, errptr: *mut *mut c_char,
    ) -> i64 {
        reporting(errptr, || {
            let (db, key) = (required(db, "db")?.db(), argument(key, keylen, "key")?);
            let sum = db.merge_with(key, Counter::encode(by), &Counter, write_options(options))?;
            Counter::decode(&sum)
        })
    }

    /// Takes the first entry of a range out; a null end is open.
    fn terrace_pop_first(
        db: *mut Database, options: *const CWriteOptions, start_key: *const c_char,
        start_key_len: usize, limit_key: *const c_char, limit_key_len: usize,
        key: *mut *mut c_char, keylen: *mut usize,
        val: *mut *mut c_char, vallen: *mut usize, errptr: *mut *mut c_char,
    ) -> u8 {
        pop(End::First, db, options, (start_key, start_key_len), (limit_key, limit_key_len),
            [(key, keylen), (val, vallen)], errptr)
    }

    /// Takes the last entry of a range out; a null end is open.
    fn terrace_pop_last(
        db: *mut Database, options: *const CWriteOptions, start_key: *const c_char,
        start_key_len: usize, limit_key: *const c_char, limit_key_len: usize,
        key: *mut *mut c_char, keylen: *mut usize,
        val: *mut *mut c_char, vallen: *mut usize, errptr: *mut *mut c_char,
    ) -> u8 {
        pop(End::Last, db, options, (start_key, start_key_len), (limit_key, limit_key_len),
            [(key, keylen), (val, vallen)], errptr)
    }
}
