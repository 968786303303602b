//! `leveldb_t`.

use std::ffi::{c_char, c_int};
use std::ops::Bound;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use terrace::{Db, ReadOptions, Result, WriteOptions, abi, destroy};

use super::batch::CWriteBatch;
use super::error::{reporting, required};
use super::iterator::Iterator;
use super::options::{COptions, CReadOptions, CWriteOptions};
use super::snapshot::CSnapshot;
use crate::guard::export;
use crate::memory::{argument, bytes, c_string, copied, hand_out, malloc_c_string, release, store};
use crate::options::{Settings, path};
use crate::trace::{self, Trace};

/// `leveldb_t`.
#[expect(missing_debug_implementations, reason = "an opaque handle")]
pub struct Database {
    db: Db,
    trace: Option<Arc<Trace>>,
}

impl Database {
    fn open(settings: &Settings, path: &Path) -> Result<Self> {
        let db = settings.open(path)?;
        Ok(Database { trace: Trace::of(&db, path), db })
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    pub(super) fn close(self) -> Result<()> {
        trace::close(self.db, self.trace)
    }
}

/// How the caller wants to read; LevelDB's defaults for null.
///
/// # Safety
/// `options` is null or leads to read options whose snapshot is null or was not released.
pub(super) unsafe fn read_options(options: *const CReadOptions) -> ReadOptions {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match options.as_ref() {
            Some(options) => options.to_read_options(),
            None => ReadOptions::new().stored_values(true),
        }
    }
}

/// # Safety
/// `options` is null or leads to write options.
pub(super) unsafe fn write_options(options: *const CWriteOptions) -> WriteOptions {
    // SAFETY: guaranteed by the caller.
    unsafe { options.as_ref() }.map_or_else(WriteOptions::new, |options| options.0)
}

export! {
    /// Opens the database `name`.
    fn leveldb_open(
        options: *const COptions, name: *const c_char, errptr: *mut *mut c_char,
    ) -> *mut Database {
        reporting(errptr, || {
            let settings = required(options, "options")?.settings();
            required(name, "name")?;
            Ok(hand_out(Database::open(&settings, &path(c_string(name)))?))
        })
    }

    /// Closes a database. Iterators and snapshots were released before.
    fn leveldb_close(db: *mut Database) {
        if let Some(db) = release(db) {
            // The C API has no way to report what closing reports.
            reporting(ptr::null_mut(), || db.close());
        }
    }

    /// Sets a key to a value.
    fn leveldb_put(
        db: *mut Database, options: *const CWriteOptions, key: *const c_char, keylen: usize,
        val: *const c_char, vallen: usize, errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let Database { db, trace } = required(db, "db")?;
            let (key, value) = (argument(key, keylen, "key")?, argument(val, vallen, "value")?);
            let options = write_options(options);
            trace.iter().for_each(|trace| trace.put(key, value, options.sync));
            db.put_with(key, value, options)
        })
    }

    /// Removes a key.
    fn leveldb_delete(
        db: *mut Database, options: *const CWriteOptions, key: *const c_char, keylen: usize,
        errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let Database { db, trace } = required(db, "db")?;
            let (key, options) = (argument(key, keylen, "key")?, write_options(options));
            trace.iter().for_each(|trace| trace.delete(key, options.sync));
            db.delete_with(key, options)
        })
    }

    /// Applies a batch as a whole.
    fn leveldb_write(
        db: *mut Database, options: *const CWriteOptions, batch: *mut CWriteBatch,
        errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let Database { db, trace } = required(db, "db")?;
            let (batch, options) = (required(batch, "batch")?.complete()?, write_options(options));
            trace.iter().for_each(|trace| trace.batch(batch, options.sync));
            db.write_with(batch, options)
        })
    }

    /// The value of a key in memory from `malloc`, or null.
    fn leveldb_get(
        db: *mut Database, options: *const CReadOptions, key: *const c_char, keylen: usize,
        vallen: *mut usize, errptr: *mut *mut c_char,
    ) -> *mut c_char {
        store(vallen, 0);
        reporting(errptr, || {
            let Database { db, trace } = required(db, "db")?;
            let copy = |value: &[u8]| copied(value).map(|copy| (copy, value.len()));
            let key = argument(key, keylen, "key")?;
            trace.iter().for_each(|trace| trace.get(key));
            let found = abi::get_with(db, key, &read_options(options), copy)?;
            let Some(found) = found else { return Ok(ptr::null_mut()) };
            let (value, length) = found?;
            store(vallen, length);
            Ok(value)
        })
    }

    /// An iterator at no entry.
    fn leveldb_create_iterator(db: *mut Database, options: *const CReadOptions) -> *mut Iterator {
        match db.as_ref() {
            Some(Database { db, trace }) => {
                let cursor = db.cursor_with(&read_options(options));
                hand_out(Iterator::new(cursor).traced(trace.as_ref()))
            }
            None => ptr::null_mut(),
        }
    }

    /// The database as it is now.
    fn leveldb_create_snapshot(db: *mut Database) -> *const CSnapshot {
        match db.as_ref() {
            Some(db) => hand_out(CSnapshot(db.db.snapshot())),
            None => ptr::null(),
        }
    }

    /// Gives a snapshot back.
    fn leveldb_release_snapshot(_db: *mut Database, snapshot: *const CSnapshot) {
        drop(release(snapshot.cast_mut()));
    }

    /// A property as a string from `malloc`, or null.
    fn leveldb_property_value(db: *mut Database, propname: *const c_char) -> *mut c_char {
        let Some(db) = db.as_ref() else { return ptr::null_mut() };
        let name = String::from_utf8_lossy(c_string(propname));
        db.db.property(&name).map_or(ptr::null_mut(), |value| malloc_c_string(value.as_bytes()))
    }

    /// About how many bytes each range takes on disk.
    fn leveldb_approximate_sizes(
        db: *mut Database, num_ranges: c_int, range_start_key: *const *const c_char,
        range_start_key_len: *const usize, range_limit_key: *const *const c_char,
        range_limit_key_len: *const usize, sizes: *mut u64,
    ) {
        let count = usize::try_from(num_ranges).unwrap_or(0);
        let Some(db) = db.as_ref() else { return };
        let missing = range_start_key.is_null() || range_start_key_len.is_null()
            || range_limit_key.is_null() || range_limit_key_len.is_null() || sizes.is_null();
        if missing || count == 0 {
            return;
        }
        let key = |keys: *const *const c_char, lengths: *const usize, at| {
            bytes(*keys.add(at), *lengths.add(at))
        };
        let start = |at| key(range_start_key, range_start_key_len, at);
        let limit = |at| key(range_limit_key, range_limit_key_len, at);
        let ranges: Vec<_> = (0..count).map(|at| (start(at), limit(at))).collect();
        let found = db.db.approximate_sizes(&ranges).unwrap_or_default();
        // The array may be uninitialised.
        for at in 0..count {
            sizes.add(at).write(found.get(at).copied().unwrap_or(0));
        }
    }

    /// Compacts a range of keys; a null end is open.
    fn leveldb_compact_range(
        db: *mut Database, start_key: *const c_char, start_key_len: usize,
        limit_key: *const c_char, limit_key_len: usize,
    ) {
        let Some(db) = db.as_ref() else { return };
        let bound = |key: *const c_char, length| {
            let key = (!key.is_null()).then(|| bytes(key, length));
            key.map_or(Bound::Unbounded, Bound::Included)
        };
        // LevelDB's function has no way to report an error; the next write does.
        reporting(ptr::null_mut(), || {
            let range = (bound(start_key, start_key_len), bound(limit_key, limit_key_len));
            db.db.compact_range::<&[u8]>(range)
        });
    }

    /// Removes a database. The options say nothing that matters here, and what they point to may be
    /// gone already.
    fn leveldb_destroy_db(
        _options: *const COptions, name: *const c_char, errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            required(name, "name")?;
            destroy(path(c_string(name)), &Settings::default().to_options())
        })
    }

    /// Saves what can be saved of a database.
    fn leveldb_repair_db(options: *const COptions, name: *const c_char, errptr: *mut *mut c_char) {
        reporting(errptr, || {
            let settings = required(options, "options")?.settings();
            required(name, "name")?;
            settings.repair(&path(c_string(name)))
        })
    }
}
