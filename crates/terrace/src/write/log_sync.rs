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

/// How long a sync waits for those whom the last one met: about what it takes itself on a fast
/// disk.
const PATIENCE: Duration = Duration::from_micros(100);
/// After `n` groups that did not fill in a row the next 2^n syncs do not wait; `n` ends here.
const MOST_DISAPPOINTMENTS: u32 = 10;

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
    company: Company,
    /// Whether a waiting leader watches the time. The others need not.
    is_timed: bool,
    /// Oldest first; the last one is being written.
    logs: Vec<UnsyncedLog>,
}

/// How many callers a sync should serve.
#[derive(Default)]
struct Company {
    /// How many waited when the last sync ended.
    met: usize,
    /// How often in a row fewer came.
    disappointments: u32,
    /// The number of syncs that will not wait.
    alone: u32,
}

impl Company {
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
                self.disappointments = 0;
            }
        } else {
            self.disappointments = (self.disappointments + 1).min(MOST_DISAPPOINTMENTS);
            self.alone = 1 << self.disappointments;
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

    /// Forgets a failure, because no log that could have been hurt is in use any more.
    pub(crate) fn reset(&self) {
        self.state.lock().failed = None;
    }

    /// Waits until everything up to `sequence` is durable, syncing unless another thread does.
    ///
    /// `appended` returns up to where the logs have been written. Returns what became durable if
    /// this caller did the syncing, for the mark that is due then.
    pub(crate) fn wait(
        &self,
        sequence: SequenceNumber,
        appended: impl Fn() -> SequenceNumber,
        sync_dir: impl Fn() -> Result<()>,
    ) -> Result<Option<SequenceNumber>> {
        if mutated("wait-for-sync") {
            return Ok(None);
        }
        let mut state = self.state.lock();
        if state.synced < sequence {
            state.awaited.push(sequence);
        }
        let mut has_patience = true;
        loop {
            if let Some(error) = &state.failed {
                let error = error.clone();
                state.awaited.retain(|&awaited| awaited != sequence);
                return Err(error);
            }
            if state.synced >= sequence {
                return Ok(None);
            }
            if !state.syncing && (!has_patience || state.company.is_complete(state.awaited.len())) {
                break;
            }
            if state.syncing || state.is_timed {
                self.done.wait(&mut state);
                continue;
            }
            state.is_timed = true;
            has_patience = !self.done.wait_for(&mut state, PATIENCE).timed_out();
            state.is_timed = false;
            if state.synced >= sequence || state.failed.is_some() {
                // This one goes, without a sync at whose end the others would be called.
                self.done.notify_all();
            }
        }
        state.syncing = true;
        let waiting = state.awaited.len();
        state.company.begin(waiting);
        // Before the list of logs: whatever was appended by now is in one of them.
        let target = appended();
        let unnamed = state.logs.iter().any(|log| !log.named);
        let logs: Vec<_> = state.logs.iter().map(|log| (log.number, log.syncer.clone())).collect();
        drop(state);

        let sync = |(_, syncer): &(_, Arc<dyn FileSyncer>)| {
            if mutated("log-sync") { Ok(()) } else { syncer.sync() }
        };
        let first = if mutated("older-logs-first") { logs.len() - 1 } else { 0 };
        let mut result = logs[first..].iter().try_for_each(sync);
        if result.is_ok() && unnamed && !mutated("log-name") {
            result = sync_dir();
        }

        let mut state = self.state.lock();
        state.syncing = false;
        state.company.met = state.awaited.len();
        let answer = match result {
            Ok(()) => {
                state.synced = state.synced.max(target);
                state.awaited.retain(|&awaited| awaited > target);
                let newest = logs.last().map_or(0, |(number, _)| *number);
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
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_come_is_waited_for_less_and_less() {
        let mut company = Company { met: 3, ..Company::default() };
        assert!(!company.is_complete(2) && company.is_complete(3));
        for disappointments in 1..4 {
            company.begin(1);
            for _ in 0..1 << disappointments {
                assert!(company.is_complete(1));
                company.begin(1);
            }
            assert!(!company.is_complete(1));
        }
        company.met = 1;
        company.begin(1);
        company.met = 3;
        company.begin(2);
        assert_eq!(company.alone, 16, "who was alone met nobody who could have made up for it");
        company.alone = 0;
        company.begin(3);
        company.begin(2);
        assert_eq!(company.alone, 2, "once they came, all is forgiven");
    }

    #[test]
    fn a_writer_alone_waits_for_nobody() {
        let company = Company::default();
        assert!(company.is_complete(1));
        assert!(Company { met: 1, ..company }.is_complete(1));
    }
}
