//! `terrace/c.h`: what the engine offers beyond LevelDB's API.

use std::ffi::{c_char, c_int};
use std::ops::Bound;
use std::{ptr, slice};

use terrace::{Compression, PinnedValue, ReadAccess, Result};

use super::database::{Database, read_options, write_options};
use super::error::{last_error, reporting, required};
use super::iterator::Iterator;
use super::options::{COptions, CReadOptions, CWriteOptions};
use crate::guard::export;
use crate::memory::{
    address, argument, bytes, c_string, copied, hand_out, key_range, optional, release, store,
};
use crate::options::path;

/// `terrace_pinned_t`.
#[derive(Debug)]
pub struct Pinned(PinnedValue);

/// The keys that a caller passed in arrays.
///
/// # Safety
/// The arrays are null or have `count` elements, and the keys are as in [`argument`].
unsafe fn keys_of<'a>(
    count: usize,
    keys: *const *const c_char,
    lengths: *const usize,
) -> Result<Vec<&'a [u8]>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        required(keys, "keys")?;
        required(lengths, "key_lengths")?;
        let (keys, lengths) =
            (slice::from_raw_parts(keys, count), slice::from_raw_parts(lengths, count));
        keys.iter().zip(lengths).map(|(&key, &length)| argument(key, length, "key")).collect()
    }
}

export! {
    /// Terrace's version.
    fn terrace_version() -> *const c_char {
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
    }

    /// The last failure on this thread.
    fn terrace_last_error() -> *const c_char {
        last_error()
    }

    /// Opens without changing anything.
    fn terrace_options_set_read_only(options: *mut COptions, value: u8) {
        if let Some(options) = options.as_mut() {
            options.plain.read_only = value != 0;
        }
    }

    /// Sets how tables are read.
    fn terrace_options_set_read_access(options: *mut COptions, access: c_int) {
        if let Some(options) = options.as_mut() {
            options.plain.read_access = Some(match access {
                1 => ReadAccess::Mapped,
                2 => ReadAccess::Pread,
                _ => ReadAccess::Auto,
            });
        }
    }

    /// Sets whether logs are mapped.
    fn terrace_options_set_mapped_log(options: *mut COptions, value: u8) {
        if let Some(options) = options.as_mut() {
            options.plain.mapped_log = Some(value != 0);
        }
    }

    /// Sets from how many bytes on values go to value files; 0 for none.
    fn terrace_options_set_value_log(options: *mut COptions, bytes: usize) {
        if let Some(options) = options.as_mut() {
            options.plain.value_log = Some(bytes);
        }
    }

    /// Sets how new tables are compressed, by name. 0, and nothing has changed, if it is unknown.
    fn terrace_options_set_compression(options: *mut COptions, name: *const c_char) -> u8 {
        let name = String::from_utf8_lossy(c_string(name));
        let (Some(options), Some(compression)) = (options.as_mut(), Compression::from_name(&name))
        else {
            return 0;
        };
        options.plain.own_compression = Some(compression);
        1
    }

    /// Sets the bytes of a table's zstd dictionary at most; 0 for none.
    fn terrace_options_set_zstd_dictionary(options: *mut COptions, bytes: usize) {
        if let Some(options) = options.as_mut() {
            options.plain.zstd_dictionary = bytes;
        }
    }

    /// Sets the bits for each key of the filters for whole tables.
    fn terrace_options_set_table_filter_bits(options: *mut COptions, bits: c_int) {
        if let Some(options) = options.as_mut() {
            // A value out of range fails the open.
            options.plain.table_filter_bits = usize::try_from(bits).unwrap_or(usize::MAX);
        }
    }

    /// Closes a database and says what went wrong.
    fn terrace_close(db: *mut Database, errptr: *mut *mut c_char) {
        if let Some(db) = release(db) {
            reporting(errptr, || db.close())
        }
    }

    /// Goes to the last entry at or before a key.
    fn terrace_iter_seek_for_prev(iter: *mut Iterator, key: *const c_char, keylen: usize) {
        let iter = iter.as_mut();
        if let Some((cursor, key)) = iter.and_then(|iter| iter.seek_with(bytes(key, keylen))) {
            cursor.seek_for_prev(&key);
        }
    }

    /// Looks keys up, all as of one moment.
    fn terrace_multi_get(
        db: *mut Database, options: *const CReadOptions, count: usize, keys: *const *const c_char,
        key_lengths: *const usize, values: *mut *mut c_char, value_lengths: *mut usize,
        errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            // Before results are stored: the lengths of keys and of values may be one array.
            let keys = keys_of(count, keys, key_lengths);
            if !values.is_null() {
                ptr::write_bytes(values, 0, count);
            }
            if !value_lengths.is_null() {
                ptr::write_bytes(value_lengths, 0, count);
            }
            let (db, keys) = (required(db, "db")?.db(), keys?);
            if count == 0 {
                return Ok(());
            }
            required(values, "values")?;
            required(value_lengths, "value_lengths")?;
            let found = db.multi_get_with(&keys, &read_options(options))?;
            for (at, value) in found.iter().enumerate() {
                let Some(value) = value else { continue };
                match copied(value) {
                    Ok(copy) => {
                        values.add(at).write(copy);
                        value_lengths.add(at).write(value.len());
                    }
                    Err(error) => {
                        for earlier in 0..at {
                            libc::free(values.add(earlier).replace(ptr::null_mut()).cast());
                            value_lengths.add(earlier).write(0);
                        }
                        return Err(error);
                    }
                }
            }
            Ok(())
        })
    }

    /// The value of a key where it lies.
    fn terrace_get_pinned(
        db: *mut Database, options: *const CReadOptions, key: *const c_char, keylen: usize,
        errptr: *mut *mut c_char,
    ) -> *mut Pinned {
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            let key = argument(key, keylen, "key")?;
            let found = db.get_pinned_with(key, &read_options(options))?;
            Ok(found.map_or(ptr::null_mut(), |value| hand_out(Pinned(value))))
        })
    }

    /// The bytes of a pinned value.
    fn terrace_pinned_value(pinned: *const Pinned, length: *mut usize) -> *const c_char {
        let value: &[u8] = pinned.as_ref().map_or(&[], |pinned| &pinned.0);
        store(length, value.len());
        address(value)
    }

    /// Lets go of a value.
    fn terrace_pinned_destroy(pinned: *mut Pinned) {
        drop(release(pinned));
    }

    /// Writes what is in memory to tables.
    fn terrace_flush(db: *mut Database, errptr: *mut *mut c_char) {
        reporting(errptr, || required(db, "db")?.db().flush())
    }

    /// Deletes every key of a range; a null end is open.
    fn terrace_delete_range(
        db: *mut Database, options: *const CWriteOptions, start_key: *const c_char,
        start_key_len: usize, limit_key: *const c_char, limit_key_len: usize,
        errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            let range = key_range((start_key, start_key_len), (limit_key, limit_key_len))?;
            db.delete_range_with::<&[u8]>(range, write_options(options))
        })
    }

    /// Compacts a range of keys and says what went wrong; a null end is open.
    fn terrace_compact_range(
        db: *mut Database, start_key: *const c_char, start_key_len: usize,
        limit_key: *const c_char, limit_key_len: usize, errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            let start = optional(start_key, start_key_len, "start key")?;
            let limit = optional(limit_key, limit_key_len, "limit key")?;
            let bound = |key: Option<_>| key.map_or(Bound::Unbounded, Bound::Included);
            db.compact_range::<&[u8]>((bound(start), bound(limit)))
        })
    }

    /// Makes a copy of a database in a directory that is absent or empty.
    fn terrace_checkpoint(db: *mut Database, name: *const c_char, errptr: *mut *mut c_char) {
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            required(name, "name")?;
            db.checkpoint(path(c_string(name))).map(drop)
        })
    }

    /// Waits until there is no background work.
    fn terrace_wait_idle(db: *mut Database, errptr: *mut *mut c_char) {
        reporting(errptr, || required(db, "db")?.db().wait_idle())
    }
}
