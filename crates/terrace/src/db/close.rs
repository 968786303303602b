//! The end of an open database: background work stops, every file is closed, and the lock goes last.

use std::sync::atomic::Ordering;

use crate::base::error::Result;

use super::core::DbCore;

impl DbCore {
    /// Stops background work, closes the files and releases the lock. Further calls do nothing.
    pub(super) fn shut_down(&self) -> Result<()> {
        if self.is_inherited() {
            self.closed.store(true, Ordering::SeqCst);
            return Ok(());
        }
        if self.options.reuse_logs && self.check_writable().is_ok() && !self.view.load().memtable.is_empty() {
            // So that the next open can continue the log. If it fails, the next open writes a table instead.
            let _ = self.sync_log(self.visible_sequence());
        }
        let mut guard = self.commit.lock();
        if self.closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let commit = guard.take();
        drop(guard);
        let mut state = self.state.lock();
        state.closing = true;
        self.changed.notify_all();
        if let Some(limit) = &self.write_limit {
            limit.lift();
        }
        while !state.is_idle() || state.manual > 0 || state.loading > 0 {
            self.changed.wait(&mut state);
        }
        let immutables = std::mem::take(&mut state.immutables);
        drop(state);
        self.jobs.wait_for_none();
        let mut result = Ok(());
        for immutable in &immutables {
            if let Some(log) = immutable.log.lock().take() {
                result = result.and(log.close());
            }
        }
        if let Some(commit) = commit {
            result = result.and(commit.log.close());
        }
        result = result.and(self.versions.lock().close());
        self.retire_spare_logs();
        self.purge();
        self.log("closed");
        *self.lock.lock() = None;
        result
    }
}
