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

mod admission;
pub(in crate::db) mod commit;
mod idle_flush;
mod memtable_switch;
mod try_write;
mod waiting;

use std::cell::Cell;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, MAX_SEQUENCE, SequenceNumber};
use crate::base::locks::{AtomicBool, AtomicU64, Mutex, MutexGuard};
use crate::base::mutation::mutated;
use crate::env::Priority;
use crate::write::batch::{WriteBatch, check_size};
use crate::write::batch_view::{BatchView, HEADER_SIZE, Operation, encode_mark};
use crate::write::single_frame::SingleFrame;
use crate::write::throttle::SMALL_WRITE;

use crate::db::concurrency::ConcurrencyControl;
use crate::db::concurrency::footprint::{Footprint, Keys};
use crate::db::concurrency::lock_manager::LockOwner;
use crate::db::db_impl::background::Background;
use crate::db::db_impl::files::Files;
use crate::db::db_impl::logs::Logs;
use crate::db::db_impl::views::Views;
use crate::db::db_impl::write_path::commit::Commit;
use crate::db::options::WriteOptions;

/// See the [module](self).
pub(in crate::db) struct WritePath {
    files: Arc<Files>,
    views: Arc<Views>,
    logs: Arc<Logs>,
    background: Arc<Background>,
    /// `None` in a read-only or closed database.
    pub(in crate::db) commit: Mutex<Option<Commit>>,
    /// A large write has this while it is [delayed](Self::delay_large).
    large_writes: Mutex<()>,
    /// Bytes from which the memtable is switched: fewer once an early flush is requested.
    switch_at: AtomicU64,
    /// Whether a write was broken off by a panic.
    panicked: AtomicBool,
    pub(in crate::db) control: ConcurrencyControl,
}

/// A write that is under way. Dropped in a panic, of the program's comparator most likely, it ends
/// all writing and flushing: the batch is in the log as a whole and in the memtable in part, which
/// neither the next write may make visible nor a flush durable.
struct Unfinished<'a>(&'a WritePath);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !mutated("panic-in-a-write") {
            let WritePath { background, panicked, .. } = self.0;
            panicked.store(true, Ordering::Relaxed);
            background.fail(&mut background.state.lock(), &self.0.panicked_error(), false);
        }
    }
}

/// The keys that a batch changes.
fn keys_of(batch: BatchView<'_>) -> impl Iterator<Item = &[u8]> {
    batch.operations().map_while(Result::ok).map(|operation| match operation {
        Operation::Put { key, .. } | Operation::Delete { key } => key,
    })
}

impl WritePath {
    /// Nothing can be written before there is a [`Commit`].
    pub(in crate::db) fn new(background: &Arc<Background>) -> Self {
        let Background { files, views, logs, .. } = &**background;
        WritePath {
            files: files.clone(),
            views: views.clone(),
            logs: logs.clone(),
            background: background.clone(),
            commit: Mutex::new(None),
            large_writes: Mutex::new(()),
            switch_at: AtomicU64::new(files.options.write_buffer_size as u64),
            panicked: AtomicBool::new(false),
            control: ConcurrencyControl::new(&files.order.keys, &files.env),
        }
    }

    /// Writes a batch. See the [module](self). Returns the last sequence number that was taken when
    /// it was written.
    pub(in crate::db) fn write(
        &self,
        batch: &WriteBatch,
        options: WriteOptions,
    ) -> Result<SequenceNumber> {
        batch.check()?;
        self.write_view(batch.view(), options)
    }

    /// The same for a batch in a caller's bytes, checked.
    pub(in crate::db) fn write_view(
        &self,
        batch: BatchView<'_>,
        options: WriteOptions,
    ) -> Result<SequenceNumber> {
        self.write_if(batch, options, &mut None, || Ok(()))
    }

    /// The same for the owner of `locks`, if `check` has nothing against it. Between the two no
    /// other writer writes.
    pub(in crate::db) fn write_if(
        &self,
        batch: BatchView<'_>,
        options: WriteOptions,
        locks: &mut Option<LockOwner>,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<SequenceNumber> {
        let sequence = self.write_holding(batch, locks, check)?;
        // Later records of the log are durable no sooner, so others need not wait for the disk.
        *locks = None;
        if options.sync {
            self.sync_log(sequence)?;
        }
        Ok(sequence)
    }

    /// The same, and the locks stay the owner's. Nothing is synced.
    pub(in crate::db) fn write_holding(
        &self,
        batch: BatchView<'_>,
        locks: &mut Option<LockOwner>,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<SequenceNumber> {
        let operations = batch.operation_bytes();
        let bytes = HEADER_SIZE + operations.len();
        check_size(bytes)?;
        let keys = Keys(|| keys_of(batch));
        let write = |writes: &Self, commit: &mut Commit| {
            check()?;
            writes.apply(commit, batch)
        };
        self.commit((bytes, batch.count as usize), locks, &keys, write, || ())
    }

    /// Writes the batch that `make` returns, between which and the write no other writes; it has
    /// about `count` entries in `bytes` and changes nothing but `footprint`. False, and nothing has
    /// happened, if `make` returns none. Calls `done` once reads see it, before any other write.
    pub(in crate::db) fn write_made(
        &self,
        (bytes, count): (usize, usize),
        options: WriteOptions,
        footprint: &impl Footprint,
        make: impl FnOnce() -> Result<Option<WriteBatch>>,
        done: impl FnOnce(),
    ) -> Result<bool> {
        let is_made = Cell::new(false);
        let mut locks = None;
        let write = |writes: &Self, commit: &mut Commit| {
            let Some(batch) = make()? else { return Ok(()) };
            batch.check()?;
            is_made.set(true);
            writes.apply(commit, batch.view())
        };
        let published = || {
            if is_made.get() {
                done()
            }
        };
        let room = (HEADER_SIZE + bytes, count);
        let sequence = self.commit(room, &mut locks, footprint, write, published)?;
        drop(locks);
        if is_made.get() && options.sync {
            self.sync_log(sequence)?;
        }
        Ok(is_made.get())
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
                    self.views.deleted_ranges.invalidate(key);
                    commit.memtable.insert(sequence, EntryKind::Value, key, value);
                }
                Operation::Delete { key } => {
                    commit.memtable.insert(sequence, EntryKind::Deletion, key, &[])
                }
            }
            if mutated("publish-whole-batches") {
                self.views.visible.store(sequence, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Writes one operation, a put or, without a value, a deletion, without building a batch first.
    pub(in crate::db) fn write_one(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        let mut frame = SingleFrame::new(key, value)?;
        let bytes = frame.len() + key.len() + value.map_or(0, <[u8]>::len);
        let write =
            |writes: &Self, commit: &mut Commit| writes.append_one(commit, &mut frame, key, value);
        let keys = Keys(|| iter::once(key));
        let sequence = self.commit((bytes, 1), &mut None, &keys, write, || ())?;
        if options.sync { self.sync_log(sequence) } else { Ok(()) }
    }

    /// Does what [`write_one`](Self::write_one) does for the owner of `locks`, if `check` holds.
    /// Returns whether it did; between the check and the write no other writer writes.
    pub(in crate::db) fn write_one_if(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        options: WriteOptions,
        locks: &mut Option<LockOwner>,
        check: impl FnOnce() -> bool,
    ) -> Result<bool> {
        let mut frame = SingleFrame::new(key, value)?;
        let mut holds = true;
        let bytes = frame.len() + key.len() + value.map_or(0, <[u8]>::len);
        let write = |writes: &Self, commit: &mut Commit| {
            holds = check();
            if !holds {
                return Err(Error::conflict("the key was written meanwhile"));
            }
            writes.append_one(commit, &mut frame, key, value)
        };
        let written = self.commit((bytes, 1), locks, &Keys(|| iter::once(key)), write, || ());
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
            self.views.deleted_ranges.invalidate(key);
        }
        commit.memtable.insert(sequence, kind, key, value);
        Ok(())
    }

    /// Takes the commit lock, makes room for `count` entries in `bytes`, and publishes what `write`
    /// appended and inserted for the owner of `locks`, all of it in `footprint`. Calls `published`
    /// then, before any other write. Returns the last sequence number.
    #[inline]
    fn commit(
        &self,
        (bytes, count): (usize, usize),
        locks: &mut Option<LockOwner>,
        footprint: &impl Footprint,
        write: impl FnOnce(&Self, &mut Commit) -> Result<()>,
        published: impl FnOnce(),
    ) -> Result<SequenceNumber> {
        self.files.check_writable()?;
        let _room = match &self.files.options.memory_budget {
            None => None,
            Some(budget) => Some(self.admit(budget, bytes, count)?),
        };
        if bytes > SMALL_WRITE {
            self.delay_large(bytes);
        }
        let mut guard = self.commit.lock();
        let is_watched = self.control.is_used();
        if is_watched {
            guard = self.await_locks(guard, locks, footprint)?;
        }
        let commit = self.usable(&mut guard)?;
        self.make_room(commit, bytes)?;
        self.publish(commit, bytes, is_watched.then_some(footprint), write, published)
    }

    /// Publishes what `write` appends and inserts, for which there is room; the commit lock is
    /// held. `watched` is what it changes, if anybody wants to know. Calls `published` then.
    /// Returns the last sequence number.
    #[inline]
    fn publish(
        &self,
        commit: &mut Commit,
        bytes: usize,
        watched: Option<&impl Footprint>,
        write: impl FnOnce(&Self, &mut Commit) -> Result<()>,
        published: impl FnOnce(),
    ) -> Result<SequenceNumber> {
        let unfinished = Unfinished(self);
        let written = write(self, commit);
        std::mem::forget(unfinished);
        written?;
        let last = commit.last_sequence;
        if let Some(footprint) = watched {
            footprint.record(&self.control.conflicts, last);
        }
        self.views.visible.store(last, Ordering::Release);
        published();
        self.background.counters.record_write(bytes as u64);
        if let Some(preparation) = commit.memtable.preparation() {
            self.files.env.schedule(Priority::Flush, Box::new(preparation));
        }
        Ok(last)
    }

    /// The state that the commit lock guards, unless the database is closed or a write was broken
    /// off by a panic.
    #[inline]
    pub(in crate::db) fn usable<'a>(
        &self,
        guard: &'a mut MutexGuard<'_, Option<Commit>>,
    ) -> Result<&'a mut Commit> {
        if self.panicked.load(Ordering::Relaxed) {
            return Err(self.panicked_error());
        }
        guard.as_mut().ok_or_else(|| self.files.closed_error())
    }

    fn panicked_error(&self) -> Error {
        let dir = self.files.dir.display();
        Error::io_message(format!(
            "{dir}: the comparator or the engine panicked in a write; open the database again"
        ))
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
            self.logs.suspect.store(!mutated("failed-append"), Ordering::Relaxed);
            commit.log.cut_back();
            return Err(error.context("appending to the write-ahead log"));
        }
        commit.last_sequence = last;
        Ok(())
    }

    /// Waits until everything up to `sequence` is durable.
    pub(in crate::db) fn sync_log(&self, sequence: SequenceNumber) -> Result<()> {
        let appended = || self.views.visible_sequence();
        let doubt = self.logs.doubt();
        let durable = self.logs.sync.wait(sequence, appended, |newest| {
            let sync_dir = || self.files.env.sync_dir(&self.files.dir);
            self.background.sparing_in_sync(newest, sync_dir)
        })?;
        doubt.dispel();
        // The mark tells recovery that damage before it is damage to durable data (docs/format.md).
        // It is not needed for this write, so a failure to append it is the next write's trouble.
        if let Some(durable) = durable.filter(|_| !mutated("write-marks"))
            && let Some(commit) = self.commit.lock().as_mut()
            && commit.log.add_split_record(&encode_mark(durable)).is_err()
        {
            self.logs.suspect.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Delays a write where work is left behind.
    #[inline]
    fn delay(&self, owed_nanos: &mut u64, bytes: usize) {
        if let Some(delay) = self.background.throttle.charge(owed_nanos, bytes) {
            let sleep = |piece| self.files.env.sleep(piece);
            // Work that has failed does not catch up.
            let has_failed = || self.background.state.lock().error.is_some();
            self.background.throttle.delay(delay, sleep, has_failed);
        }
    }

    /// Delays a large write before it takes the commit lock: others write meanwhile, but for large
    /// ones, which are delayed one after the other.
    #[cold]
    fn delay_large(&self, bytes: usize) {
        if self.background.throttle.slows_down() {
            let _one = self.large_writes.lock();
            // Those in front may have waited for the end of it.
            if self.background.throttle.slows_down() {
                self.delay(&mut 0, bytes);
            }
        }
    }

    /// Makes sure that the log and the memtable can take `bytes` more, slowing down where work is
    /// left behind.
    #[inline]
    fn make_room(&self, commit: &mut Commit, bytes: usize) -> Result<()> {
        if self.logs.suspect.load(Ordering::Relaxed) {
            self.leave_suspect_log(commit)?;
        }
        if bytes <= SMALL_WRITE {
            self.delay(&mut commit.owed_nanos, bytes);
        }
        let switch_at = self.switch_at.load(Ordering::Relaxed);
        if commit.memtable.table().memory_usage() as u64 >= switch_at {
            self.await_switch(commit)?;
            // Where descriptors are scarce it syncs logs.
            if self.logs.suspect.load(Ordering::Relaxed) {
                self.leave_suspect_log(commit)?;
            }
        }
        Ok(())
    }

    /// Reserves a sequence number for a load beside which up to `writes` operations may be
    /// written.
    pub(in crate::db) fn reserve_sequence(&self, writes: SequenceNumber) -> Result<SequenceNumber> {
        self.files.check_writable()?;
        let mut guard = self.commit.lock();
        let commit = self.usable(&mut guard)?;
        let last = commit.last_sequence.max(commit.reserved_sequence);
        let room = MAX_SEQUENCE - last;
        if room == 0 {
            return Err(Error::not_supported(
                "the sequence numbers of this database are exhausted",
            ));
        }
        // The scarcer they are, the fewer are used up.
        commit.reserved_sequence = last + 1 + (room >> 16).min(writes);
        Ok(commit.reserved_sequence)
    }
}
