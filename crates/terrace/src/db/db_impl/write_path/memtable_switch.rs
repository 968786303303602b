//! Moves on to another log and memtable: where a memtable is full, where the log is suspect, and
//! where a caller wants everything in tables.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::base::locks::Mutex;
use crate::memtable::MemTable;
use crate::version::filename;

use crate::db::db_impl::background::state::{FlushProgress, Immutable, State};
use crate::db::db_impl::write_path::WritePath;
use crate::db::db_impl::write_path::commit::Commit;
use crate::db::view::View;

impl WritePath {
    /// Starts a new log and memtable; the old ones queue for a flush.
    pub(in crate::db) fn switch_memtable(&self, commit: &mut Commit) -> Result<()> {
        let number = self.files.numbers.take();
        let path = self.files.path(&filename::log(number));
        // As large as a full memtable's: where the old one is not full the next may never be, and a
        // small log will do.
        let is_full =
            commit.memtable.table().memory_usage() >= self.files.options.write_buffer_size;
        let (log, syncer) = match if is_full { self.logs.reuse(&path) } else { None } {
            Some(log) => log,
            None => self.background.sparing(|| self.logs.create(&path))?,
        };
        self.logs.sync.start_log(number, syncer);
        let (writer, memtable) = commit.memtable.successor();
        let old_log = std::mem::replace(&mut commit.log, log);
        let old = std::mem::replace(&mut commit.memtable, writer);
        self.reset_switch();
        let mut logs = std::mem::take(&mut commit.found_logs);
        let left = std::mem::replace(&mut commit.log_number, number);
        if logs.is_empty() {
            logs.push(left);
        }
        let immutable = Immutable {
            memtable: old.table().clone(),
            logs,
            last_sequence: commit.last_sequence,
            recovered_tables: Vec::new(),
            log: Mutex::new(Some(old_log)),
            progress: FlushProgress::default(),
        };
        let mut state = self.background.state.lock();
        state.immutables.push_back(Arc::new(immutable));
        state.log_number = number;
        state.switched_at = [state.switched_at[1], commit.last_sequence];
        state.is_write_idle = false;
        let replaced = self.background.swap_view(&mut state, |view| View {
            memtable,
            immutables: iter::once(view.memtable.clone())
                .chain(view.immutables.iter().cloned())
                .collect(),
            version: view.version.clone(),
            in_tables: view.in_tables,
        });
        self.background.update_throttle(&state);
        // Compactions are planned when the flush is done: not on a writer's time.
        self.background.schedule_flushes(&mut state);
        drop(state);
        drop(replaced);
        Ok(())
    }

    /// Switches once the queue has room; where flushes hold the last descriptors, once those have
    /// given them back. For threads of the program's: flushes need those of the pool.
    pub(super) fn await_switch(&self, commit: &mut Commit) -> Result<()> {
        self.background.wait_for_queue()?;
        let error = match self.switch_memtable(commit) {
            Err(error) if error.is_out_of_descriptors() => error,
            result => return result,
        };
        let mut state = self.background.state.lock();
        let earlier = state.attempts();
        let is_done = |state: &State| state.immutables.is_empty() && state.flushing == 0;
        if self.background.await_flushes(&mut state, earlier, is_done).is_err() {
            return Err(error);
        }
        drop(state);
        self.switch_memtable(commit)
    }

    /// Begins another memtable in place of one that is empty, with the same log, and returns it.
    /// The caller makes it part of the next view: those from before show nothing that is written
    /// from now on.
    pub(in crate::db) fn renew_memtable(&self, commit: &mut Commit) -> Arc<MemTable> {
        debug_assert!(commit.memtable.table().is_empty());
        let (writer, memtable) = commit.memtable.successor();
        commit.memtable = writer;
        self.reset_switch();
        memtable
    }

    /// Forgets the request for an early flush: the memtable is another one.
    fn reset_switch(&self) {
        self.switch_at.store(self.files.options.write_buffer_size as u64, Ordering::Relaxed);
    }

    /// Moves everything that the suspect log should hold into tables, and on to a new log.
    #[cold]
    pub(in crate::db) fn leave_suspect_log(&self, commit: &mut Commit) -> Result<()> {
        // With paranoid checks damage that background work met stops writes at once, as LevelDB's
        // does.
        if self.files.options.paranoid_checks {
            let state = self.background.state.lock();
            if state.error.as_ref().is_some_and(|error| !error.retryable) {
                return self.background.check_background(&state);
            }
        }
        let earlier = self.background.state.lock().attempts();
        if !commit.left_suspect_log {
            let suspect = filename::log(commit.log_number);
            self.switch_memtable(commit)?;
            commit.left_suspect_log = true;
            self.files.log(format!(
                "{suspect} could not be written: its memtable is flushed, and a new log follows"
            ));
        }
        self.background.await_flushes(&mut self.background.state.lock(), earlier, |state| {
            state.immutables.is_empty()
        })?;
        commit.left_suspect_log = false;
        // In this order: a failure in between makes the log suspect once more, for nothing, and is
        // not forgotten.
        self.logs.suspect.store(false, Ordering::Relaxed);
        self.logs.sync.reset();
        Ok(())
    }

    /// Writes the memtable to a table and waits.
    pub(in crate::db) fn flush(&self) -> Result<()> {
        self.files.check_writable()?;
        let earlier = self.background.state.lock().attempts();
        let last = {
            let mut guard = self.commit.lock();
            let commit = self.usable(&mut guard)?;
            if self.logs.suspect.load(Ordering::Relaxed) {
                self.leave_suspect_log(commit)?;
            }
            if !commit.memtable.table().is_empty() {
                self.await_switch(commit)?;
            }
            commit.log_number
        };
        let is_flushed =
            |state: &State| state.immutables.front().is_none_or(|next| next.first_log() >= last);
        self.background
            .await_flushes(&mut self.background.state.lock(), earlier, is_flushed)
            .map(drop)
    }

    /// Writes every memtable out, with the commit lock held.
    pub(in crate::db) fn flush_under_lock(&self, commit: &mut Commit) -> Result<()> {
        let earlier = self.background.state.lock().attempts();
        if self.logs.suspect.load(Ordering::Relaxed) {
            self.leave_suspect_log(commit)?;
        }
        if !commit.memtable.table().is_empty() {
            self.await_switch(commit)?;
        }
        self.background
            .await_flushes(&mut self.background.state.lock(), earlier, |state| {
                state.immutables.is_empty()
            })
            .map(drop)
    }
}
