//! The end of an open database: background work stops, every file is closed, and the lock goes
//! last.

use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::env::ReadAccess;
use crate::version::filename;

use crate::db::db_impl::DbImpl;

/// Stops background work, closes the files and releases the lock. Further calls do nothing.
pub(in crate::db) fn close(core: &DbImpl) -> Result<()> {
    if core.files.is_inherited() {
        core.files.closed.store(true, Ordering::SeqCst);
        return Ok(());
    }
    // Writers that are delayed are waited for.
    core.background.throttle.lift();
    if core.files.options.reuse_logs
        && core.files.check_writable().is_ok()
        && !core.views.current.load().memtable.is_empty()
    {
        // So that the next open can continue the log. If it fails, the next open writes a table
        // instead.
        let _ = core.writes.sync_log(core.views.visible_sequence());
    }
    // A second close returns once the lock of the directory is free, too.
    let _one = core.shutting_down.lock();
    core.writes.leave_budget();
    let mut guard = core.writes.commit.lock();
    if core.files.closed.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    let commit = guard.take();
    drop(guard);
    core.writes.control.locks.close(&core.files.closed_error());
    core.background.stop();
    let mut state = core.background.state.lock();
    let immutables = std::mem::take(&mut state.immutables);
    // The error that kept background work from going on: nothing is lost by it, but the next open
    // meets it, too.
    let mut result = state.error.take().map_or(Ok(()), |standing| Err(standing.error));
    drop(state);
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
            remove_empty_log(core, commit.log_number);
        }
    }
    result = result.and(core.background.versions.lock().close());
    core.logs.delete_recycled_logs();
    core.files.purge();
    core.files.log("closed");
    *core.files.lock.lock() = None;
    result
}

/// Removes a log that nothing was written to and that no MANIFEST leads to, as on a disk that
/// stays full: each open would leave another one.
fn remove_empty_log(core: &DbImpl, number: u64) {
    if !core.background.versions.lock().needs_no_log_from(number) {
        return;
    }
    let path = core.files.path(&filename::log(number));
    let found = core.files.env.open_random(&path, ReadAccess::Pread);
    if found.is_ok_and(|file| file.size() == 0) {
        let _ = core.files.env.remove(&path);
    }
}
