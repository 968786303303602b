//! The life of a write: make room, append to the log, insert into the memtable, publish, and, if
//! asked, wait for the disk.
//!
//! # Invariants
//! 1. A batch is in the log before it is in the memtable, and in the memtable before its sequence
//!    number is visible.
//! 2. After an append or a sync of the log has failed, no write is acknowledged before everything
//!    in that log has become a durable table and the MANIFEST has left the log behind.
//! 3. The memtable is switched together with the log: a log holds exactly the entries of one
//!    memtable.
//! 4. A put invalidates the known deleted range around its key before it is visible.
//! 5. After a panic between the append and the end of the insertions nothing is written or flushed
//!    any more.

pub(super) mod recycled_logs;

use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, MAX_SEQUENCE, SequenceNumber};
use crate::base::locks::{Mutex, MutexGuard};
use crate::base::mutation::mutated;
use crate::compaction::plan::LEVEL_0_TRIGGER;
use crate::env::{CreateOptions, Env, FileSyncer, Priority, with_syncer};
use crate::log::LogWriter;
use crate::memtable::{MemTable, MemTableWriter};
use crate::version::filename;
use crate::write::batch::{
    BatchView, HEADER_SIZE, Operation, SingleFrame, WriteBatch, check_size, encode_mark,
};
use crate::write::throttle::Backlog;

use crate::db::db_impl::{DbImpl, View};
use crate::db::options::{Options, WriteOptions};
use crate::db::state::{FlushProgress, Immutable, State};
use crate::db::transaction::footprint::{Footprint, Keys};
use crate::db::transaction::lock_manager::LockOwner;
use crate::db::write::recycled_logs::RecycledLog;

/// What the commit lock guards.
pub(in crate::db) struct Commit {
    pub(in crate::db) memtable: MemTableWriter,
    pub(in crate::db) log: LogWriter,
    pub(in crate::db) log_number: u64,
    pub(in crate::db) last_sequence: SequenceNumber,
    /// The greatest sequence number that is reserved for a bulk load in progress.
    pub(in crate::db) reserved_sequence: SequenceNumber,
    /// Nanoseconds that writers still have to wait for what they have written.
    pub(in crate::db) owed_nanos: u64,
    /// Whether the suspect log has been left already, and only its flush is awaited.
    pub(in crate::db) left_suspect_log: bool,
}

/// A write that is under way. Dropped in a panic, of the program's comparator most likely, it ends
/// all writing and flushing: the batch is in the log as a whole and in the memtable in part, which
/// neither the next write may make visible nor a flush durable.
struct Unfinished<'a>(&'a DbImpl);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !mutated("panic-in-a-write") {
            self.0.write_panicked.store(true, Ordering::Relaxed);
            self.0.fail(&mut self.0.state.lock(), &self.0.write_panicked_error(), false);
        }
    }
}

/// Immutable memtables together take at most about this many bytes, and there are at least two of
/// them.
const IMMUTABLES_BYTES: usize = 32 << 20;
const MAX_IMMUTABLES: usize = 8;

/// Files in level 0 at which writers begin to slow down, and at which they go at half the speed of
/// compactions.
pub(in crate::db) const LEVEL_0_COMFORTABLE: usize = 3 * LEVEL_0_TRIGGER;
const LEVEL_0_LIMIT: usize = 9 * LEVEL_0_TRIGGER;

impl DbImpl {
    /// Writes a batch. See the [module](self). Returns the last sequence number that was taken when
    /// it was written.
    pub(in crate::db) fn write(
        self: &Arc<Self>,
        batch: &WriteBatch,
        options: WriteOptions,
    ) -> Result<SequenceNumber> {
        batch.check()?;
        self.write_view(BatchView::of(batch), options)
    }

    /// The same for a batch in a caller's bytes, checked.
    pub(in crate::db) fn write_view(
        self: &Arc<Self>,
        batch: BatchView<'_>,
        options: WriteOptions,
    ) -> Result<SequenceNumber> {
        self.write_if(batch, options, &mut None, || Ok(()))
    }

    /// The same for the owner of `locks`, if `check` has nothing against it. Between the two nobody
    /// else writes.
    pub(in crate::db) fn write_if(
        self: &Arc<Self>,
        batch: BatchView<'_>,
        options: WriteOptions,
        locks: &mut Option<LockOwner>,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<SequenceNumber> {
        let operations = batch.operation_bytes();
        let bytes = HEADER_SIZE + operations.len();
        check_size(bytes)?;
        let keys = Keys(|| {
            batch.operations().map_while(Result::ok).map(|operation| match operation {
                Operation::Put { key, .. } | Operation::Delete { key } => key,
            })
        });
        let sequence = self.commit(bytes, locks, &keys, |core, commit| {
            check()?;
            core.apply(commit, batch)
        })?;
        // What follows in the log is durable no sooner, so others need not wait for the disk.
        *locks = None;
        if options.sync {
            self.sync_log(sequence)?;
        }
        Ok(sequence)
    }

    /// Writes the batch that `make` returns, between which and the write nobody else writes; it
    /// takes about `bytes` and changes nothing but `footprint`. False, and nothing has happened, if
    /// `make` returns none. Calls `done` once it is written, before any other write.
    pub(in crate::db) fn write_made(
        self: &Arc<Self>,
        bytes: usize,
        options: WriteOptions,
        footprint: &impl Footprint,
        make: impl FnOnce() -> Result<Option<WriteBatch>>,
        done: impl FnOnce(),
    ) -> Result<bool> {
        let mut is_made = false;
        let mut locks = None;
        let sequence =
            self.commit(HEADER_SIZE + bytes, &mut locks, footprint, |core, commit| {
                let Some(batch) = make()? else { return Ok(()) };
                batch.check()?;
                is_made = true;
                core.apply(commit, BatchView::of(&batch)).map(|()| done())
            })?;
        drop(locks);
        if is_made && options.sync {
            self.sync_log(sequence)?;
        }
        Ok(is_made)
    }

    /// Appends a batch to the log and inserts it into the memtable.
    #[inline]
    fn apply(&self, commit: &mut Commit, batch: BatchView<'_>) -> Result<()> {
        // An empty batch in the log means something: it is a durability mark.
        if batch.count == 0 {
            return Ok(());
        }
        let sequence = commit.last_sequence + 1;
        let operations = batch.operation_bytes();
        let parts = [&sequence.to_le_bytes()[..], &batch.count.to_le_bytes(), operations];
        self.append(commit, u64::from(batch.count), &parts)?;
        for (sequence, operation) in (sequence..).zip(batch.operations()) {
            match operation? {
                Operation::Put { key, value } => {
                    self.deleted_ranges.invalidate(key);
                    commit.memtable.insert(sequence, EntryKind::Value, key, value);
                }
                Operation::Delete { key } => {
                    commit.memtable.insert(sequence, EntryKind::Deletion, key, &[])
                }
            }
            if mutated("publish-whole-batches") {
                self.visible.store(sequence, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Writes one operation, a put or, without a value, a deletion, without building a batch first.
    pub(in crate::db) fn write_one(
        self: &Arc<Self>,
        key: &[u8],
        value: Option<&[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        let mut frame = SingleFrame::new(key, value)?;
        let bytes = frame.len() + key.len() + value.map_or(0, <[u8]>::len);
        let sequence =
            self.commit(bytes, &mut None, &Keys(|| iter::once(key)), |core, commit| {
                core.append_one(commit, &mut frame, key, value)
            })?;
        if options.sync { self.sync_log(sequence) } else { Ok(()) }
    }

    /// Does what [`write_one`](Self::write_one) does for the owner of `locks`, if `check` holds.
    /// Returns whether it did; between the check and the write nobody else writes.
    pub(in crate::db) fn write_one_if(
        self: &Arc<Self>,
        key: &[u8],
        value: Option<&[u8]>,
        options: WriteOptions,
        locks: &mut Option<LockOwner>,
        check: impl FnOnce() -> bool,
    ) -> Result<bool> {
        let mut frame = SingleFrame::new(key, value)?;
        let mut holds = true;
        let bytes = frame.len() + key.len() + value.map_or(0, <[u8]>::len);
        let written = self.commit(bytes, locks, &Keys(|| iter::once(key)), |core, commit| {
            holds = check();
            if !holds {
                return Err(Error::conflict("the key was written meanwhile"));
            }
            core.append_one(commit, &mut frame, key, value)
        });
        if !holds {
            return Ok(false);
        }
        let sequence = written?;
        *locks = None;
        if options.sync {
            self.sync_log(sequence)?;
        }
        Ok(true)
    }

    /// Appends one operation to the log and inserts it into the memtable.
    #[inline]
    fn append_one(
        &self,
        commit: &mut Commit,
        frame: &mut SingleFrame,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        let kind = if value.is_some() { EntryKind::Value } else { EntryKind::Deletion };
        let value = value.unwrap_or_default();
        let sequence = commit.last_sequence + 1;
        let (head, middle) = frame.around(sequence);
        self.append(commit, 1, &[head, key, middle, value])?;
        if kind == EntryKind::Value {
            self.deleted_ranges.invalidate(key);
        }
        commit.memtable.insert(sequence, kind, key, value);
        Ok(())
    }

    /// Takes the commit lock, makes room, and publishes what `write` appended and inserted for the
    /// owner of `locks`, all of it in `footprint`. Returns the last sequence number.
    #[inline]
    fn commit(
        self: &Arc<Self>,
        bytes: usize,
        locks: &mut Option<LockOwner>,
        footprint: &impl Footprint,
        write: impl FnOnce(&Self, &mut Commit) -> Result<()>,
    ) -> Result<SequenceNumber> {
        self.check_writable()?;
        let mut guard = self.commit.lock();
        let is_watched = self.control.is_used();
        if is_watched {
            guard = self.await_locks(guard, locks, footprint)?;
        }
        let commit = self.usable(&mut guard)?;
        self.make_room(commit, bytes)?;
        let unfinished = Unfinished(self);
        let written = write(self, commit);
        std::mem::forget(unfinished);
        written?;
        let last = commit.last_sequence;
        if is_watched {
            footprint.record(&self.control.conflicts, last);
        }
        self.visible.store(last, Ordering::Release);
        self.counters.record_write(bytes as u64);
        if let Some(preparation) = commit.memtable.preparation() {
            self.env.schedule(Priority::Flush, Box::new(preparation));
        }
        Ok(last)
    }

    /// What the commit lock guards, unless the database is closed or a write was broken off by a
    /// panic.
    #[inline]
    pub(in crate::db) fn usable<'a>(
        &self,
        guard: &'a mut MutexGuard<'_, Option<Commit>>,
    ) -> Result<&'a mut Commit> {
        if self.write_panicked.load(Ordering::Relaxed) {
            return Err(self.write_panicked_error());
        }
        guard.as_mut().ok_or_else(|| self.closed_error())
    }

    fn write_panicked_error(&self) -> Error {
        let dir = self.dir.display();
        Error::io_message(format!(
            "{dir}: the comparator or the engine panicked in a write; open the database again"
        ))
    }

    pub(in crate::db) fn closed_error(&self) -> Error {
        self.check_open()
            .err()
            .unwrap_or_else(|| Error::not_supported("the database takes no writes"))
    }

    /// Appends a record of `count` operations to the log, and takes their sequence numbers.
    #[inline]
    fn append(&self, commit: &mut Commit, count: u64, parts: &[&[u8]]) -> Result<()> {
        let last = commit.last_sequence + count;
        if last > MAX_SEQUENCE {
            return Err(Error::not_supported(
                "the sequence numbers of this database are exhausted",
            ));
        }
        if let Err(error) = commit.log.add_record_parts(parts) {
            self.log_suspect.store(!mutated("failed-append"), Ordering::Relaxed);
            commit.log.cut_back();
            return Err(error.context("appending to the write-ahead log"));
        }
        commit.last_sequence = last;
        Ok(())
    }

    /// Waits until everything up to `sequence` is durable.
    pub(in crate::db) fn sync_log(&self, sequence: SequenceNumber) -> Result<()> {
        let appended = || self.visible_sequence();
        let synced = self
            .log_sync
            .wait(sequence, appended, || self.sparing(|| self.env.sync_dir(&self.dir)));
        let durable = match synced {
            Ok(durable) => durable,
            Err(error) => {
                self.log_suspect.store(!mutated("failed-sync"), Ordering::Relaxed);
                return Err(error);
            }
        };
        // The mark tells recovery that damage before it is damage to durable data (docs/format.md).
        // It is not needed for this write, so a failure to append it is the next write's trouble.
        if let Some(durable) = durable.filter(|_| !mutated("write-marks"))
            && let Some(commit) = self.commit.lock().as_mut()
            && commit.log.add_split_record(&encode_mark(durable)).is_err()
        {
            self.log_suspect.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Makes sure that the log and the memtable can take `bytes` more, slowing down where work is
    /// left behind.
    #[inline]
    fn make_room(self: &Arc<Self>, commit: &mut Commit, bytes: usize) -> Result<()> {
        if self.log_suspect.load(Ordering::Relaxed) {
            self.leave_suspect_log(commit)?;
        }
        if let Some(duration) = self.throttle.charge(&mut commit.owed_nanos, bytes) {
            self.env.sleep(duration);
        }
        if commit.memtable.table().memory_usage() >= self.options.write_buffer_size {
            self.wait_for_queue()?;
            self.switch_memtable(commit)?;
        }
        Ok(())
    }

    /// Waits until the queue of immutable memtables takes another one.
    #[cold]
    pub(in crate::db) fn wait_for_queue(self: &Arc<Self>) -> Result<()> {
        let limit = (IMMUTABLES_BYTES / self.options.write_buffer_size).clamp(2, MAX_IMMUTABLES);
        let mut state = self.state.lock();
        let start = self.env.now_micros();
        let earlier = state.attempts();
        if self.await_flushes(&mut state, earlier, |state| state.immutables.len() < limit)? {
            let micros = self.env.now_micros().saturating_sub(start);
            self.throttle.record_stall(Duration::from_micros(micros));
        }
        Ok(())
    }

    /// The error that keeps background work from going on.
    pub(in crate::db) fn check_background(&self, state: &State) -> Result<()> {
        match &state.error {
            Some(error) => Err(error.error.clone()),
            None if state.closing => Err(self.closed_error()),
            None => Ok(()),
        }
    }

    /// Puts background work to another attempt after a failure that may have gone by.
    pub(in crate::db) fn retry(self: &Arc<Self>, state: &mut MutexGuard<'_, State>) -> Result<()> {
        if state.error.as_ref().is_some_and(|error| error.retryable) {
            state.error = None;
            self.schedule(state);
        }
        match &state.error {
            Some(error) => Err(error.error.clone()),
            None => Ok(()),
        }
    }

    /// Waits until flushes have brought the database to where `is_done` holds. Returns whether that
    /// took time.
    ///
    /// A failure that may have gone by is put to another attempt, and so are as many as there were
    /// `earlier_attempts` when the caller was called: neither says anything about the disk as it is
    /// now.
    pub(in crate::db) fn await_flushes(
        self: &Arc<Self>,
        state: &mut MutexGuard<'_, State>,
        mut earlier_attempts: usize,
        is_done: impl Fn(&State) -> bool,
    ) -> Result<bool> {
        self.retry(state)?;
        if is_done(state) {
            return Ok(false);
        }
        self.schedule(state);
        while !is_done(state) {
            if state.error.is_some() && earlier_attempts > 0 {
                earlier_attempts -= 1;
                self.retry(state)?;
            }
            self.check_background(state)?;
            self.changed.wait(state);
        }
        Ok(true)
    }

    /// Starts a new log and memtable; the old ones queue for a flush.
    pub(in crate::db) fn switch_memtable(self: &Arc<Self>, commit: &mut Commit) -> Result<()> {
        let number = self.numbers.take();
        let path = self.path(&filename::log(number));
        // As large as a full memtable's: where the old one is not full the next may never be, and a
        // small log will do.
        let is_full = commit.memtable.table().memory_usage() >= self.options.write_buffer_size;
        let (log, syncer) = match if is_full { self.reuse_log(&path) } else { None } {
            Some(log) => log,
            None => self.sparing(|| create_log(self.env.as_ref(), &self.options, &path))?,
        };
        self.log_sync.start_log(number, syncer);
        let (writer, memtable) = commit.memtable.successor();
        let old_log = std::mem::replace(&mut commit.log, log);
        let old = std::mem::replace(&mut commit.memtable, writer);
        let immutable = Immutable {
            memtable: old.table().clone(),
            logs: vec![std::mem::replace(&mut commit.log_number, number)],
            last_sequence: commit.last_sequence,
            recovered_tables: Vec::new(),
            log: Mutex::new(Some(old_log)),
            progress: FlushProgress::default(),
        };
        let mut state = self.state.lock();
        state.immutables.push_back(Arc::new(immutable));
        state.log_number = number;
        state.switched_at = [state.switched_at[1], commit.last_sequence];
        state.is_write_idle = false;
        let replaced = self.swap_view(&mut state, |view| View {
            memtable,
            immutables: iter::once(view.memtable.clone())
                .chain(view.immutables.iter().cloned())
                .collect(),
            version: view.version.clone(),
            in_tables: view.in_tables,
        });
        self.update_throttle(&state);
        // Compactions are planned when the flush is done: not on a writer's time.
        self.schedule_flushes(&mut state);
        drop(state);
        drop(replaced);
        Ok(())
    }

    /// Begins another memtable in place of one that is empty, with the same log, and returns it.
    /// The caller makes it part of the next view: those from before show nothing that is written
    /// from now on.
    pub(in crate::db) fn renew_memtable(&self, commit: &mut Commit) -> Arc<MemTable> {
        debug_assert!(commit.memtable.table().is_empty());
        let (writer, memtable) = commit.memtable.successor();
        commit.memtable = writer;
        memtable
    }

    /// A log that another memtable has no use for any more, under the name `path`, if there is one.
    fn reuse_log(&self, path: &Path) -> Option<(LogWriter, Arc<dyn FileSyncer>)> {
        let RecycledLog { number, mut file } = self.recycled_logs.take()?;
        // A file of that name would be lost, and creating the log tells of it.
        let is_free = self.env.exists(path).is_ok_and(|exists| !exists);
        if !is_free || self.env.rename(&self.path(&filename::temp(number)), path).is_err() {
            drop(file);
            self.delete_recycled_log(number);
            return None;
        }
        file.set_path(path);
        let (file, syncer) = with_syncer(file);
        Some((LogWriter::new(file, 0), syncer))
    }

    /// Moves everything that the suspect log should hold into tables, and on to a new log.
    #[cold]
    pub(in crate::db) fn leave_suspect_log(self: &Arc<Self>, commit: &mut Commit) -> Result<()> {
        // With paranoid checks damage that background work met stops writes at once, as LevelDB's
        // does.
        if self.options.paranoid_checks {
            let state = self.state.lock();
            if state.error.as_ref().is_some_and(|error| !error.retryable) {
                return self.check_background(&state);
            }
        }
        let earlier = self.state.lock().attempts();
        if !commit.left_suspect_log {
            let suspect = filename::log(commit.log_number);
            self.switch_memtable(commit)?;
            commit.left_suspect_log = true;
            self.log(format!(
                "{suspect} could not be written: what it should hold becomes a table, and a new log follows"
            ));
        }
        self.await_flushes(&mut self.state.lock(), earlier, |state| state.immutables.is_empty())?;
        commit.left_suspect_log = false;
        // In this order: a failure in between makes the log suspect once more, for nothing, and is
        // not forgotten.
        self.log_suspect.store(false, Ordering::Relaxed);
        self.log_sync.reset();
        Ok(())
    }

    /// Sets the price of writes from the work that is waiting.
    pub(in crate::db) fn update_throttle(&self, state: &State) {
        let limit = (IMMUTABLES_BYTES / self.options.write_buffer_size).clamp(2, MAX_IMMUTABLES);
        let flushes = Backlog {
            waiting: state.immutables.len() as f64,
            comfortable: limit as f64 / 2.0,
            limit: limit as f64,
            bytes_per_second: state.flush_speed.get(),
        };
        let level_0 = Backlog {
            waiting: self.view.load().version.levels[0].len() as f64,
            comfortable: LEVEL_0_COMFORTABLE as f64,
            limit: LEVEL_0_LIMIT as f64,
            bytes_per_second: state.level_0_speed.get(),
        };
        self.throttle.set(&[flushes, level_0]);
    }

    /// Writes the memtable to a table and waits.
    pub(in crate::db) fn flush(self: &Arc<Self>) -> Result<()> {
        self.check_writable()?;
        let earlier = self.state.lock().attempts();
        let last = {
            let mut guard = self.commit.lock();
            let commit = self.usable(&mut guard)?;
            if self.log_suspect.load(Ordering::Relaxed) {
                self.leave_suspect_log(commit)?;
            }
            if !commit.memtable.table().is_empty() {
                self.wait_for_queue()?;
                self.switch_memtable(commit)?;
            }
            commit.log_number
        };
        let is_flushed =
            |state: &State| state.immutables.front().is_none_or(|next| next.first_log() >= last);
        self.await_flushes(&mut self.state.lock(), earlier, is_flushed).map(drop)
    }
}

/// Creates a write-ahead log as the options say.
pub(in crate::db) fn create_log(
    env: &dyn Env,
    options: &Options,
    path: &Path,
) -> Result<(LogWriter, Arc<dyn FileSyncer>)> {
    let create = CreateOptions { mode: options.file_mode, exclusive: true };
    let file = match options.mapped_log {
        true => env.create_log(path, create, options.write_buffer_size as u64)?,
        false => env.create(path, create)?,
    };
    let (file, syncer) = with_syncer(file);
    Ok((LogWriter::new(file, 0), syncer))
}
