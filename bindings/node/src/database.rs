//! An open database as the JavaScript half holds it.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use napi::bindgen_prelude::{AsyncTask, BufferSlice};
use napi_derive::napi;
use terrace::{Db, ReadOptions, Result};

use crate::cursor::Cursor;
use crate::error::{Code, not_open, thrown};
use crate::frames::Frames;
use crate::handles::Handle;
use crate::job::Job;
use crate::lookups::{self, Lookup};
use crate::options::OpenOptions;
use crate::outputs::Outputs;
use crate::range::{Range, flag};
use crate::reports::{CheckpointReport, Stats};
use crate::snapshot::Snapshot;
use crate::writes::{Failure, Writes};

/// What [`Database::get_sync`] and [`Database::lookup`] return for a key without a value.
const NOT_FOUND: f64 = -1.0;
/// What [`Database::lookup`] returns for a lookup that was queued. A ticket is returned as a number
/// below that.
const QUEUED: f64 = -2.0;

/// A read of many keys.
type ReadMany = fn(&Db, &[Vec<u8>], &ReadOptions) -> Result<Vec<u8>>;

/// A database. All methods are called on the event loop of one thread.
#[napi]
#[derive(Default)]
pub struct Database {
    /// The open database; a job that opens it puts it there.
    handle: Arc<Mutex<Option<Handle>>>,
    /// A clone of the same, which needs no lock.
    db: RefCell<Option<Db>>,
    outputs: Outputs,
    lookups: RefCell<Vec<Lookup>>,
    writes: RefCell<Writes>,
    /// Whether an open has replayed logs that no table is known to hold yet.
    is_fresh: Arc<AtomicBool>,
    /// The last value that [`get_sync`](Self::get_sync) read.
    value: RefCell<Vec<u8>>,
}

fn at(frames: &[u8], length: u32) -> napi::Result<Frames<'_>, Code> {
    Frames::new(frames, length).map_err(|error| thrown(&error))
}

impl Database {
    fn locked(&self) -> std::sync::MutexGuard<'_, Option<Handle>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_db(&self) -> napi::Result<Db, Code> {
        self.db.borrow().clone().ok_or_else(|| thrown(&not_open()))
    }

    fn with_db<T>(&self, work: impl FnOnce(&Db) -> Result<T>) -> napi::Result<T, Code> {
        let db = self.db.borrow();
        let db = db.as_ref().ok_or_else(|| thrown(&not_open()))?;
        work(db).map_err(|error| thrown(&error))
    }

    /// Copies a value to the front of `frames` and returns its length, or has a ticket made for it
    /// if it does not fit.
    fn show(&self, value: &mut Vec<u8>, frames: &mut [u8]) -> f64 {
        match frames.get_mut(..value.len()) {
            Some(target) => {
                target.copy_from_slice(value);
                value.len() as f64
            }
            None => QUEUED - 1.0 - f64::from(self.outputs.put(std::mem::take(value))),
        }
    }

    /// A snapshot that was passed, or one of this moment.
    fn snapshot_of(&self, passed: Option<&Snapshot>) -> napi::Result<terrace::Snapshot, Code> {
        match passed.and_then(Snapshot::get) {
            Some(snapshot) => Ok(snapshot),
            None => self.with_db(|db| Ok(db.snapshot())),
        }
    }
}

#[napi]
impl Database {
    /// A database that is not open.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the database in the directory `location`. Call [`attach`](Self::attach) afterwards.
    #[napi]
    pub fn open(&self, location: String, options: OpenOptions) -> AsyncTask<Job<()>> {
        let slot = self.handle.clone();
        Job::start(move || {
            let handle = Handle::open(Path::new(&location), &options)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
            Ok(())
        })
    }

    /// Takes over what the promise of [`open`](Self::open) has opened.
    #[napi]
    pub fn attach(&self) {
        let db = self.locked().as_ref().and_then(|handle| handle.db().cloned());
        *self.db.borrow_mut() = db;
        self.is_fresh.store(true, Ordering::Relaxed);
    }

    /// Closes the database. Jobs must have ended.
    #[napi]
    pub fn close(&self) -> AsyncTask<Job<()>> {
        self.db.borrow_mut().take();
        self.lookups.borrow_mut().clear();
        *self.writes.borrow_mut() = Writes::default();
        let handle = self.locked().take();
        Job::start(move || handle.map_or(Ok(()), Handle::close))
    }

    /// Copies what `ticket` is for to `target` if it fits. Returns its length in bytes.
    #[napi]
    pub fn take(&self, ticket: u32, mut target: BufferSlice<'_>) -> f64 {
        self.outputs.take(ticket, &mut target) as f64
    }

    /// Drops what `ticket` is for.
    #[napi]
    pub fn discard(&self, ticket: u32) {
        self.outputs.discard(ticket);
    }

    /// Queues a write of the operations in `frames`: a single one, or a batch.
    #[napi]
    pub fn queue_write(&self, frames: &[u8], length: u32, sync: bool) -> napi::Result<(), Code> {
        self.with_db(|_| self.writes.borrow_mut().push(Frames::new(frames, length)?, sync))
    }

    /// Writes the operations in `frames` at once if that needs no waiting. False, and nothing has
    /// happened, otherwise.
    #[napi]
    pub fn try_write(&self, frames: &[u8], length: u32) -> napi::Result<bool, Code> {
        self.with_db(|db| db.try_write(&Frames::new(frames, length)?.batch()?))
    }

    /// Queues the removal of a range. A negative `limit` is none.
    #[napi]
    pub fn queue_clear(
        &self,
        frames: &[u8],
        length: u32,
        flags: u32,
        limit: f64,
        snapshot: Option<&Snapshot>,
    ) -> napi::Result<(), Code> {
        let limit = (limit >= 0.0).then_some(limit as u64);
        let snapshot = snapshot.and_then(Snapshot::get);
        self.with_db(|_| {
            let range = Range::read(Frames::new(frames, length)?, flags)?;
            self.writes.borrow_mut().push_clear(range, limit, snapshot);
            Ok(())
        })
    }

    /// Runs the writes that are queued. The promise is for those that failed, if any did.
    #[napi]
    pub fn run_writes(&self) -> napi::Result<AsyncTask<Job<Option<Vec<Failure>>>>, Code> {
        let (db, writes) = (self.open_db()?, self.writes.take());
        Ok(Job::start(move || Ok(Some(writes.run(&db)).filter(|failures| !failures.is_empty()))))
    }

    /// Looks a key up as of this moment or `snapshot`: with `direct` on this thread, if memory
    /// tells what its value is; otherwise the lookup is queued. Returns what
    /// [`get_sync`](Self::get_sync) returns, or −2 for a lookup that was queued.
    #[napi]
    pub fn lookup(
        &self,
        mut frames: BufferSlice<'_>,
        length: u32,
        fill_cache: bool,
        snapshot: Option<&Snapshot>,
        direct: bool,
    ) -> napi::Result<f64, Code> {
        let key = at(&frames, length)?.rest();
        if direct {
            let mut options = ReadOptions::new();
            if let Some(snapshot) = snapshot.and_then(Snapshot::get) {
                options = options.snapshot(&snapshot);
            }
            let mut value = self.value.borrow_mut();
            match self.with_db(|db| db.get_in_memory(key, &mut value, &options))? {
                Some(true) => return Ok(self.show(&mut value, &mut frames)),
                Some(false) => return Ok(NOT_FOUND),
                None => {}
            }
        }
        let (key, snapshot) = (key.to_vec(), self.snapshot_of(snapshot)?);
        self.lookups.borrow_mut().push(Lookup { key, snapshot, fill_cache });
        Ok(QUEUED)
    }

    /// Runs the first `count` lookups that are queued. The promise is for the ticket of their
    /// results.
    #[napi]
    pub fn run_lookups(&self, count: u32) -> napi::Result<AsyncTask<Job<u32>>, Code> {
        let (db, outputs) = (self.open_db()?, self.outputs.clone());
        let mut queue = self.lookups.borrow_mut();
        let count = queue.len().min(count as usize);
        let rest = queue.split_off(count);
        let lookups = std::mem::replace(&mut *queue, rest);
        Ok(Job::start(move || Ok(outputs.put(lookups::run(&db, &lookups)))))
    }

    /// Looks a key up on this thread. Returns the length of the value, which is in `frames` then;
    /// or −1 if there is none; or, if it does not fit, −3 − the ticket of the value.
    #[napi]
    pub fn get_sync(
        &self,
        mut frames: BufferSlice<'_>,
        length: u32,
        fill_cache: bool,
        snapshot: Option<&Snapshot>,
    ) -> napi::Result<f64, Code> {
        let key = at(&frames, length)?.rest();
        let mut options = ReadOptions::new().fill_cache(fill_cache);
        if let Some(snapshot) = snapshot.and_then(Snapshot::get) {
            options = options.snapshot(&snapshot);
        }
        let mut value = self.value.borrow_mut();
        if !self.with_db(|db| db.get_into_with(key, &mut value, &options))? {
            return Ok(NOT_FOUND);
        }
        Ok(self.show(&mut value, &mut frames))
    }

    /// Looks many keys up. The promise is for the ticket of their results.
    #[napi]
    pub fn get_many(
        &self,
        keys: &[u8],
        length: u32,
        fill_cache: bool,
        snapshot: Option<&Snapshot>,
    ) -> napi::Result<AsyncTask<Job<u32>>, Code> {
        self.many(keys, length, fill_cache, snapshot, lookups::get_many)
    }

    /// Looks for many keys. The promise is for the ticket of a byte for each.
    #[napi]
    pub fn has_many(
        &self,
        keys: &[u8],
        length: u32,
        fill_cache: bool,
        snapshot: Option<&Snapshot>,
    ) -> napi::Result<AsyncTask<Job<u32>>, Code> {
        self.many(keys, length, fill_cache, snapshot, lookups::has_many)
    }

    /// Returns an iterator over a range as of this moment or `snapshot`.
    #[napi]
    pub fn cursor(
        &self,
        frames: &[u8],
        length: u32,
        flags: u32,
        snapshot: Option<&Snapshot>,
    ) -> napi::Result<Cursor, Code> {
        let range = Range::read(at(frames, length)?, flags).map_err(|error| thrown(&error))?;
        let (db, snapshot) = (self.open_db()?, self.snapshot_of(snapshot)?);
        Ok(Cursor::new(db, range, flags, &snapshot, self.outputs.clone()))
    }

    /// Returns a snapshot of this moment.
    #[napi]
    pub fn snapshot(&self) -> napi::Result<Snapshot, Code> {
        self.with_db(|db| Ok(Snapshot::new(db.snapshot())))
    }

    /// About how many bytes the range between the two keys takes on disk. The first call after an
    /// open waits until what logs held is in tables, where LevelDB has it by then.
    #[napi]
    pub fn approximate_size(
        &self,
        keys: &[u8],
        length: u32,
    ) -> napi::Result<AsyncTask<Job<f64>>, Code> {
        let range = Range::read(at(keys, length)?, flag::LOWER | flag::UPPER);
        let (db, range) = (self.open_db()?, range.map_err(|error| thrown(&error))?);
        let is_fresh = self.is_fresh.clone();
        Ok(Job::start(move || {
            if is_fresh.swap(false, Ordering::Relaxed) {
                db.flush()?;
            }
            let (from, to) = range.bounds();
            let sizes = db.approximate_sizes(&[(from, to)])?;
            Ok(sizes.first().copied().unwrap_or(0) as f64)
        }))
    }

    /// Compacts the range between the two keys.
    #[napi]
    pub fn compact_range(
        &self,
        keys: &[u8],
        length: u32,
    ) -> napi::Result<AsyncTask<Job<()>>, Code> {
        let range = Range::read(at(keys, length)?, flag::LOWER | flag::UPPER);
        let (db, range) = (self.open_db()?, range.map_err(|error| thrown(&error))?);
        Ok(Job::start(move || {
            let (from, to) = range.bounds();
            db.compact_range(from..=to)
        }))
    }

    /// Makes a copy of the database in the directory `location`, which must be absent or empty.
    #[napi]
    pub fn checkpoint(
        &self,
        location: String,
    ) -> napi::Result<AsyncTask<Job<CheckpointReport>>, Code> {
        let db = self.open_db()?;
        Ok(Job::start(move || db.checkpoint(&location).map(CheckpointReport::from)))
    }

    /// Returns a property of LevelDB's, or nothing if there is none of that name.
    #[napi]
    pub fn property(&self, name: String) -> napi::Result<Option<String>, Code> {
        self.with_db(|db| Ok(db.property(&name)))
    }

    /// Returns numbers about the database and its work since it was opened.
    #[napi]
    pub fn stats(&self) -> napi::Result<Stats, Code> {
        self.with_db(|db| Ok(db.stats().into()))
    }
}

impl Database {
    /// Starts a job that reads many keys.
    fn many(
        &self,
        keys: &[u8],
        length: u32,
        fill_cache: bool,
        snapshot: Option<&Snapshot>,
        read: ReadMany,
    ) -> napi::Result<AsyncTask<Job<u32>>, Code> {
        let keys = at(keys, length)?.all_bytes().map_err(|error| thrown(&error))?;
        let (db, snapshot) = (self.open_db()?, self.snapshot_of(snapshot)?);
        let options = ReadOptions::new().snapshot(&snapshot).fill_cache(fill_cache);
        let outputs = self.outputs.clone();
        Ok(Job::start(move || Ok(outputs.put(read(&db, &keys, &options)?))))
    }
}
