//! Databases and snapshots.

use std::ffi::c_void;
use std::ops::Bound;
use std::sync::Arc;

use terrace::{Db, ReadOptions, Snapshot, WriteOptions, abi, destroy};

use super::calls::EnvHandle;
use super::cursor::ShimCursor;
use super::env::CustomEnv;
use super::options::ShimOptions;
use super::outcome::{Bytes, Outcome, Put, Sink};
use crate::guard::export;
use crate::memory::{hand_out, release, store};
use crate::options::{Settings, path};
use crate::trace::{self, Trace};

/// `shim_db`.
#[expect(missing_debug_implementations, reason = "an opaque handle")]
pub struct ShimDb {
    db: Db,
    trace: Option<Arc<Trace>>,
}

/// `shim_snapshot`.
#[derive(Debug)]
pub struct ShimSnapshot(Snapshot);

/// `shim_range`: from inclusive to exclusive.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Range {
    start: Bytes,
    limit: Bytes,
}

#[inline]
fn write_options(sync: u8) -> WriteOptions {
    WriteOptions { sync: sync != 0 }
}

/// # Safety
/// `snapshot` is null or was not released.
#[inline]
unsafe fn read_options(fill_cache: u8, snapshot: *const ShimSnapshot) -> ReadOptions {
    let options = ReadOptions::new().fill_cache(fill_cache != 0).stored_values(true);
    // SAFETY: guaranteed by the caller.
    match unsafe { snapshot.as_ref() } {
        Some(snapshot) => options.snapshot(&snapshot.0),
        None => options,
    }
}

export! {
    /// Opens a database.
    fn shim_db_open(options: *const ShimOptions, name: Bytes, db: *mut *mut ShimDb) -> Outcome {
        Outcome::of(|| {
            let path = path(name.get());
            let opened = (*options).settings_at(&path).open(&path)?;
            store(db, hand_out(ShimDb { trace: Trace::of(&opened, &path), db: opened }));
            Ok(())
        })
    }

    /// Closes a database.
    fn shim_db_close(db: *mut ShimDb) {
        if let Some(db) = release(db) {
            // A destructor has no way to report what closing reports.
            let _ = trace::close(db.db, db.trace);
        }
    }

    /// Sets a key to a value.
    fn shim_db_put(db: *const ShimDb, sync: u8, key: Bytes, value: Bytes) -> Outcome {
        Outcome::of(|| {
            let (key, value, options) = (key.get(), value.get(), write_options(sync));
            (*db).trace.iter().for_each(|trace| trace.put(key, value, options.sync));
            (*db).db.put_with(key, value, options)
        })
    }

    /// Removes a key.
    fn shim_db_delete(db: *const ShimDb, sync: u8, key: Bytes) -> Outcome {
        Outcome::of(|| {
            let (key, options) = (key.get(), write_options(sync));
            (*db).trace.iter().for_each(|trace| trace.delete(key, options.sync));
            (*db).db.delete_with(key, options)
        })
    }

    /// Applies a batch and stores the sequence number of its first operation.
    fn shim_db_write(db: *const ShimDb, sync: u8, batch: Bytes, sequence: *mut u64) -> Outcome {
        Outcome::of(|| {
            let (batch, options) = (batch.get(), write_options(sync));
            (*db).trace.iter().for_each(|trace| trace.batch_of_bytes(batch, options.sync));
            store(sequence, abi::write(&(*db).db, batch, options)?);
            Ok(())
        })
    }

    /// Writes what is in memory to tables.
    fn shim_db_flush(db: *const ShimDb) -> Outcome {
        Outcome::of(|| (*db).db.flush())
    }

    /// Puts the value of a key, if it has one.
    fn shim_db_get(
        db: *const ShimDb, fill_cache: u8, snapshot: *const ShimSnapshot, key: Bytes,
        target: *mut c_void, put: Put,
    ) -> Outcome {
        let sink = Sink::new(target, put);
        let options = read_options(fill_cache, snapshot);
        (*db).trace.iter().for_each(|trace| trace.get(key.get()));
        match abi::get_with(&(*db).db, key.get(), &options, |value| sink.put(value)) {
            Ok(None) => Outcome::absent(),
            found => Outcome::from(found.map(drop)),
        }
    }

    /// A cursor at no entry.
    fn shim_db_cursor(
        db: *const ShimDb, fill_cache: u8, snapshot: *const ShimSnapshot,
        cursor: *mut *mut ShimCursor,
    ) -> Outcome {
        Outcome::of(|| {
            let opened = (*db).db.cursor_with(&read_options(fill_cache, snapshot))?;
            store(cursor, hand_out(ShimCursor::over(opened, (*db).trace.as_ref())));
            Ok(())
        })
    }

    /// The database as it is now.
    fn shim_db_snapshot(db: *const ShimDb) -> *mut ShimSnapshot {
        hand_out(ShimSnapshot((*db).db.snapshot()))
    }

    /// Gives a snapshot back.
    fn shim_snapshot_release(snapshot: *mut ShimSnapshot) {
        drop(release(snapshot));
    }

    /// Puts a property, if there is one of that name.
    fn shim_db_property(db: *const ShimDb, name: Bytes, target: *mut c_void, put: Put) -> u8 {
        let value = (*db).db.property(&String::from_utf8_lossy(name.get()));
        if let Some(value) = &value {
            Sink::new(target, put).put(value.as_bytes());
        }
        value.is_some().into()
    }

    /// About how many bytes each range takes on disk.
    fn shim_db_sizes(db: *const ShimDb, ranges: *const Range, count: usize, sizes: *mut u64) {
        let ranges = (0..count).map(|at| *ranges.add(at));
        let ranges: Vec<_> = ranges.map(|range| (range.start.get(), range.limit.get())).collect();
        let found = (*db).db.approximate_sizes(&ranges).unwrap_or_default();
        (0..count).for_each(|at| sizes.add(at).write(found.get(at).copied().unwrap_or(0)));
    }

    /// Compacts the range between two keys; null is an open end.
    fn shim_db_compact(db: *const ShimDb, from: *const Bytes, to: *const Bytes) {
        let bound = |key: *const Bytes| {
            key.as_ref().map_or(Bound::Unbounded, |key| Bound::Included(key.get()))
        };
        // LevelDB's function has no way to report an error; the next write does.
        let _ = (*db).db.compact_range::<&[u8]>((bound(from), bound(to)));
    }

    /// Removes a database.
    fn shim_destroy(env: *const EnvHandle, name: Bytes) -> Outcome {
        Outcome::of(|| {
            let settings = Settings { env: CustomEnv::adapter(*env), ..Settings::default() };
            destroy(settings.directory(&path(name.get())), &settings.to_options())
        })
    }

    /// Saves what can be saved of a database.
    fn shim_repair(options: *const ShimOptions, name: Bytes) -> Outcome {
        Outcome::of(|| (*options).settings().repair(&path(name.get())))
    }
}
