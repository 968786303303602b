//! Group commit: one sync for many writers.
//!
//! Writers append to the log under the commit lock and wait here, outside it, until the log is
//! durable up to their sequence number. The first waiter leads and syncs for the group: all writers
//! that have appended by then.
//!
//! Writers that were released together tend to return together. So a leader waits a moment for as
//! many writers as the last sync served, and the last of them to arrive leads. When they do not
//! arrive, the next syncs do not wait. Without the wait the first writer to return would sync for
//! itself, and the others would wait for two syncs.
//!
//! # Invariants
//! 1. `synced` only grows, and everything up to it is durable: in a log whose name is durable, or
//!    in a table.
//! 2. Logs are synced in the order in which they were written, so that a later write is never
//!    durable without an earlier one being so.
//! 3. A failed sync is never retried: every waiter and every later caller gets the error until
//!    [`LogSync::reset`], which the engine calls once the data has reached tables instead.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, Result};
use crate::base::internal_key::SequenceNumber;
use crate::base::locks::{Condvar, Mutex};
use crate::base::mutation::mutated;
use crate::env::FileSyncer;

/// How long a leader waits for as many writers as the last sync served: about the time of a sync
/// on a fast disk.
const GROUP_COMMIT_WINDOW: Duration = Duration::from_micros(100);
/// After `n` groups that did not fill in a row the next 2^n syncs do not wait; `n` ends here.
const MAX_LATE_GROUPS: u32 = 10;

struct UnsyncedLog {
    number: u64,
    syncer: Arc<dyn FileSyncer>,
    /// Whether the log's directory entry is durable.
    named: bool,
}

#[derive(Default)]
struct State {
    synced: SequenceNumber,
    syncing: bool,
    failed: Option<Error>,
    /// The sequence numbers that callers wait for. No more than there are threads.
    awaited: Vec<SequenceNumber>,
    group_size: GroupSize,
    /// Whether a waiter watches the time. The others need not.
    is_timed: bool,
    /// Oldest first; the last one is being written.
    logs: Vec<UnsyncedLog>,
}

/// How many callers a sync should serve.
#[derive(Default)]
struct GroupSize {
    /// How many waited when the last sync ended.
    met: usize,
    /// How often in a row fewer came.
    late_groups: u32,
    /// The number of syncs that will not wait.
    alone: u32,
}

impl GroupSize {
    /// Whether a sync should begin, with `waiting` callers to serve.
    fn is_complete(&self, waiting: usize) -> bool {
        self.alone > 0 || waiting >= self.met
    }

    /// Takes note of a sync that begins with `waiting` callers.
    fn begin(&mut self, waiting: usize) {
        if self.alone > 0 {
            self.alone -= 1;
        } else if waiting >= self.met {
            // No group is expected.
            if self.met > 1 {
                self.late_groups = 0;
            }
        } else {
            self.late_groups = (self.late_groups + 1).min(MAX_LATE_GROUPS);
            self.alone = 1 << self.late_groups;
        }
    }
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct LogSync {
    state: Mutex<State>,
    done: Condvar,
}

impl LogSync {
    /// Says that `number` is the log being written from now on.
    pub(crate) fn start_log(&self, number: u64, syncer: Arc<dyn FileSyncer>) {
        self.state.lock().logs.push(UnsyncedLog { number, syncer, named: false });
    }

    /// Says that everything up to `sequence` is durable already, in tables as a rule, and that logs
    /// below `number` are not needed.
    pub(crate) fn flushed(&self, number: u64, sequence: SequenceNumber) {
        let mut state = self.state.lock();
        state.logs.retain(|log| log.number >= number);
        state.synced = state.synced.max(sequence);
        state.awaited.retain(|&awaited| awaited > sequence);
    }

    /// Makes the logs before the one that is being written durable and lets go of their files,
    /// where descriptors are scarce; `close` closes what else is open of those below the number
    /// that it gets.
    ///
    /// Their names are durable no later than that of the next log, which is synced for the first
    /// writer that waits.
    ///
    /// # Errors
    /// The sync's, which every writer gets from now on. That of an earlier one: then they are closed
    /// all the same, as they are, because tables will hold what they should.
    pub(crate) fn close_older(&self, close: impl FnOnce(u64)) -> Result<()> {
        let mut state = self.state.lock();
        while state.syncing {
            self.done.wait(&mut state);
        }
        let Some((newest, older)) = state.logs.split_last() else { return Ok(()) };
        let newest = newest.number;
        let older: Vec<_> = older.iter().map(|log| log.syncer.clone()).collect();
        let failed = state.failed.clone();
        state.syncing = true;
        drop(state);
        let syncing = Syncing { sync: self, awaited: None, is_over: false };
        let result = match failed {
            Some(_) => Ok(()),
            None => older.iter().try_for_each(|syncer| syncer.sync()),
        };
        drop(older);
        if result.is_ok() {
            self.forget_older(newest);
            close(newest);
        }
        syncing.has_ended();
        let mut state = self.state.lock();
        state.syncing = false;
        if let Err(error) = result {
            state.failed = Some(error.context("syncing the write-ahead log"));
        }
        let result = state.failed.clone().map_or(Ok(()), Err);
        drop(state);
        self.done.notify_all();
        result
    }

    /// Lets go of the logs before `newest`, which need no sync any more.
    fn forget_older(&self, newest: u64) {
        self.state.lock().logs.retain(|log| log.number >= newest);
    }

    /// Forgets a failure, because no log that could have been hurt is in use any more.
    pub(crate) fn reset(&self) {
        self.state.lock().failed = None;
    }

    /// Waits until everything up to `sequence` is durable, syncing unless another thread does.
    ///
    /// `appended` returns up to where the logs have been written, `sync_dir` makes the names of logs
    /// durable and gets the number below which their files may be closed. Returns what became
    /// durable if this caller did the syncing, for the mark that is due then.
    pub(crate) fn wait(
        &self,
        sequence: SequenceNumber,
        appended: impl Fn() -> SequenceNumber,
        sync_dir: impl Fn(u64) -> Result<()>,
    ) -> Result<Option<SequenceNumber>> {
        if mutated("wait-for-sync") {
            return Ok(None);
        }
        let mut state = self.state.lock();
        if state.synced < sequence {
            state.awaited.push(sequence);
        }
        let mut may_wait = true;
        loop {
            if let Some(error) = &state.failed {
                let error = error.clone();
                state.awaited.retain(|&awaited| awaited != sequence);
                return Err(error);
            }
            if state.synced >= sequence {
                return Ok(None);
            }
            if !state.syncing && (!may_wait || state.group_size.is_complete(state.awaited.len())) {
                break;
            }
            if state.syncing || state.is_timed {
                self.done.wait(&mut state);
                continue;
            }
            state.is_timed = true;
            may_wait = !self.done.wait_for(&mut state, GROUP_COMMIT_WINDOW).timed_out();
            state.is_timed = false;
            if state.synced >= sequence || state.failed.is_some() {
                // This one goes, without a sync at whose end the others would be called.
                self.done.notify_all();
            }
        }
        state.syncing = true;
        let waiting = state.awaited.len();
        state.group_size.begin(waiting);
        // Before the list of logs: whatever was appended by now is in one of them.
        let target = appended();
        let unnamed = state.logs.iter().any(|log| !log.named);
        let logs: Vec<_> = state.logs.iter().map(|log| (log.number, log.syncer.clone())).collect();
        drop(state);
        let syncing = Syncing { sync: self, awaited: Some(sequence), is_over: false };

        let sync = |(_, syncer): &(_, Arc<dyn FileSyncer>)| {
            if mutated("log-sync") { Ok(()) } else { syncer.sync() }
        };
        let first = if mutated("older-logs-first") { logs.len() - 1 } else { 0 };
        let mut result = logs[first..].iter().try_for_each(sync);
        let newest = logs.last().map_or(0, |(number, _)| *number);
        if result.is_ok() && unnamed && !mutated("log-name") {
            // Opening the directory takes a descriptor, which older logs may have to give back.
            drop(logs);
            self.forget_older(newest);
            result = sync_dir(newest);
        }
        syncing.has_ended();
        self.end_group(result, sequence, target, newest)
    }

    /// Ends the sync of the caller that wrote `sequence`, which made everything up to `target`
    /// durable, if it did not fail, and the name of the log `newest`. Wakes its group.
    fn end_group(
        &self,
        result: Result<()>,
        sequence: SequenceNumber,
        target: SequenceNumber,
        newest: u64,
    ) -> Result<Option<SequenceNumber>> {
        let mut state = self.state.lock();
        state.syncing = false;
        state.group_size.met = state.awaited.len();
        let durable = match result {
            Ok(()) => {
                state.synced = state.synced.max(target);
                state.awaited.retain(|&awaited| awaited > target);
                state.logs.retain(|log| log.number >= newest);
                for log in state.logs.iter_mut().filter(|log| log.number == newest) {
                    log.named = true;
                }
                Ok(Some(target))
            }
            Err(error) => {
                let error = error.context("syncing the write-ahead log");
                state.failed = (!mutated("failed-sync")).then(|| error.clone());
                state.awaited.retain(|&awaited| awaited != sequence);
                Err(error)
            }
        };
        drop(state);
        self.done.notify_all();
        durable
    }
}

/// A sync that is under way. Where a program's file panics in it, it ends as a failed one.
struct Syncing<'a> {
    sync: &'a LogSync,
    /// What its caller waits for.
    awaited: Option<SequenceNumber>,
    is_over: bool,
}

impl Syncing<'_> {
    /// Nothing that may panic comes before the state says so.
    fn has_ended(mut self) {
        self.is_over = true;
    }
}

impl Drop for Syncing<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.sync.state.lock();
        state.syncing = false;
        state.awaited.retain(|&awaited| Some(awaited) != self.awaited);
        state.failed = Some(Error::io_message("syncing the write-ahead log panicked"));
        drop(state);
        self.sync.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_commit_window_closes_for_longer_when_writers_are_late() {
        let mut group_size = GroupSize { met: 3, ..GroupSize::default() };
        assert!(!group_size.is_complete(2) && group_size.is_complete(3));
        for late_groups in 1..4 {
            group_size.begin(1);
            for _ in 0..1 << late_groups {
                assert!(group_size.is_complete(1));
                group_size.begin(1);
            }
            assert!(!group_size.is_complete(1));
        }
        group_size.met = 1;
        group_size.begin(1);
        group_size.met = 3;
        group_size.begin(2);
        assert_eq!(group_size.alone, 16, "a group of one does not reset the count");
        group_size.alone = 0;
        group_size.begin(3);
        group_size.begin(2);
        assert_eq!(group_size.alone, 2, "a full group resets the count");
    }

    struct Panics;

    impl FileSyncer for Panics {
        fn sync(&self) -> Result<()> {
            panic!("a program's file");
        }
    }

    #[test]
    fn a_file_that_panics_is_a_sync_that_failed() {
        let sync = LogSync::default();
        sync.start_log(1, Arc::new(Panics));
        let wait = || sync.wait(1, || 1, |_| Ok(())).map(drop);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait)).is_err());
        assert!(wait().is_err_and(|error| error.message().contains("panicked")));
        sync.reset();
        sync.start_log(2, Arc::new(Panics));
        let closed = std::cell::Cell::new(0);
        let close = || sync.close_older(|newest| closed.set(newest));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(close)).is_err());
        assert!(wait().is_err());
        // Nothing is synced after a failure.
        assert!(close().is_err());
        assert_eq!(closed.get(), 2);
    }

    #[test]
    fn a_writer_alone_does_not_wait() {
        let group_size = GroupSize::default();
        assert!(group_size.is_complete(1));
        assert!(GroupSize { met: 1, ..group_size }.is_complete(1));
    }
}
