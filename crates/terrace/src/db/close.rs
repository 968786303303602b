//! The end of an open database: background work stops, every file is closed, and the lock goes
//! last.

use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::env::ReadAccess;
use crate::version::filename;

use crate::db::db_impl::DbImpl;

impl DbImpl {
    /// Stops background work, closes the files and releases the lock. Further calls do nothing.
    pub(super) fn shut_down(&self) -> Result<()> {
        if self.is_inherited() {
            self.closed.store(true, Ordering::SeqCst);
            return Ok(());
        }
        if self.options.reuse_logs
            && self.check_writable().is_ok()
            && !self.view.load().memtable.is_empty()
        {
            // So that the next open can continue the log. If it fails, the next open writes a table
            // instead.
            let _ = self.sync_log(self.visible_sequence());
        }
        // A second close returns once the lock of the directory is free, too.
        let _one = self.shutting_down.lock();
        let mut guard = self.commit.lock();
        if self.closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let commit = guard.take();
        drop(guard);
        self.control.locks.close(&self.closed_error());
        let mut state = self.state.lock();
        state.closing = true;
        self.changed.notify_all();
        if let Some(limit) = &self.rate_limiter {
            limit.lift();
        }
        while !state.is_idle() || state.manual > 0 || state.loading > 0 {
            self.changed.wait(&mut state);
        }
        let immutables = std::mem::take(&mut state.immutables);
        // What kept background work from going on: nothing is lost by it, but the next open meets
        // it, too.
        let mut result = state.error.take().map_or(Ok(()), |standing| Err(standing.error));
        drop(state);
        self.jobs.wait_for_none();
        for immutable in &immutables {
            if let Some(log) = immutable.log.lock().take() {
                result = result.and(log.close());
            }
        }
        if let Some(commit) = commit {
            let older = immutables
                .iter()
                .all(|immutable| immutable.logs.iter().all(|&log| log < commit.log_number));
            let is_empty = commit.log.offset() == 0 && commit.memtable.table().is_empty();
            result = result.and(commit.log.close());
            if is_empty && older {
                self.remove_empty_log(commit.log_number);
            }
        }
        result = result.and(self.versions.lock().close());
        self.delete_recycled_logs();
        self.purge();
        self.log("closed");
        *self.lock.lock() = None;
        result
    }

    /// Removes a log that nothing was written to and that no MANIFEST leads to, as on a disk that
    /// stays full: each open would leave another one.
    fn remove_empty_log(&self, number: u64) {
        if !self.versions.lock().needs_no_log_from(number) {
            return;
        }
        let path = self.path(&filename::log(number));
        let found = self.env.open_random(&path, ReadAccess::Pread);
        if found.is_ok_and(|file| file.size() == 0) {
            let _ = self.env.remove(&path);
        }
    }
}
