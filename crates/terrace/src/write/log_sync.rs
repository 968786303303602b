//! One sync for many writers.
//!
//! Writers append to the log under the commit lock and wait here, outside it, until the log is durable up to their
//! sequence number. The first who finds nobody syncing syncs for everybody who has appended by then.
//!
//! # Invariants
//! 1. `synced` only grows, and everything up to it is durable: in a log whose name is durable, or in a table.
//! 2. Logs are synced in the order in which they were written, so that a later write is never durable without an
//!    earlier one being so.
//! 3. A failed sync is never retried: every waiter gets the error, and so does everybody until [`LogSync::reset`],
//!    which the engine calls once the data has reached tables instead.

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::SequenceNumber;
use crate::base::sabotage::sabotaged;
use crate::env::FileSyncer;

use super::locks::{Condvar, Mutex};

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
    /// Oldest first; the last one is being written.
    logs: Vec<UnsyncedLog>,
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

    /// Says that everything up to `sequence` is durable already, in tables as a rule, and that logs below `number` are not
    /// needed.
    pub(crate) fn flushed(&self, number: u64, sequence: SequenceNumber) {
        let mut state = self.state.lock();
        state.logs.retain(|log| log.number >= number);
        state.synced = state.synced.max(sequence);
    }

    /// Forgets a failure, because no log that could have been hurt is in use any more.
    pub(crate) fn reset(&self) {
        self.state.lock().failed = None;
    }

    /// Waits until everything up to `sequence` is durable, syncing if nobody else does.
    ///
    /// `appended` answers up to where the logs have been written. Answers what became durable if this caller did
    /// the syncing, for the mark that is due then.
    pub(crate) fn wait(
        &self,
        sequence: SequenceNumber,
        appended: impl Fn() -> SequenceNumber,
        sync_dir: impl Fn() -> Result<()>,
    ) -> Result<Option<SequenceNumber>> {
        if sabotaged("wait-for-sync") {
            return Ok(None);
        }
        let mut state = self.state.lock();
        loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.synced >= sequence {
                return Ok(None);
            }
            if !state.syncing {
                break;
            }
            self.done.wait(&mut state);
        }
        state.syncing = true;
        // Before the list of logs: whatever was appended by now is in one of them.
        let target = appended();
        let unnamed = state.logs.iter().any(|log| !log.named);
        let logs: Vec<_> = state.logs.iter().map(|log| (log.number, log.syncer.clone())).collect();
        drop(state);

        let sync = |(_, syncer): &(_, Arc<dyn FileSyncer>)| if sabotaged("log-sync") { Ok(()) } else { syncer.sync() };
        let first = if sabotaged("older-logs-first") { logs.len() - 1 } else { 0 };
        let mut result = logs[first..].iter().try_for_each(sync);
        if result.is_ok() && unnamed && !sabotaged("log-name") {
            result = sync_dir();
        }

        let mut state = self.state.lock();
        state.syncing = false;
        let answer = match result {
            Ok(()) => {
                state.synced = state.synced.max(target);
                let newest = logs.last().map_or(0, |(number, _)| *number);
                state.logs.retain(|log| log.number >= newest);
                for log in state.logs.iter_mut().filter(|log| log.number == newest) {
                    log.named = true;
                }
                Ok(Some(target))
            }
            Err(error) => {
                let error = error.context("syncing the write-ahead log");
                state.failed = (!sabotaged("failed-sync")).then(|| error.clone());
                Err(error)
            }
        };
        drop(state);
        self.done.notify_all();
        answer
    }
}
