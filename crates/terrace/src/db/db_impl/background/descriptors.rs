//! What to do where the process has no descriptor left: logs of memtables that wait to be flushed,
//! and those kept for memtables to come, give theirs back.

use std::sync::atomic::Ordering;

use crate::base::error::Result;

use crate::db::db_impl::background::Background;

impl Background {
    /// Does `work`; where it runs out of descriptors once more with those of tables, and where that
    /// does not help, with those of logs.
    pub(in crate::db) fn sparing<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        match self.files.sparing(&mut work) {
            Err(error) if error.is_out_of_descriptors() && self.spare_logs() => work(),
            result => result,
        }
    }

    /// Closes logs that nothing is written to, the full ones once they are durable. Whether there
    /// were any.
    pub(in crate::db) fn spare_logs(&self) -> bool {
        let mut has_spared = self.logs.delete_recycled_logs();
        match self.logs.sync.close_older() {
            Ok(closed) => has_spared |= closed,
            Err(_) => {
                // As where a writer's sync fails: what they hold reaches tables instead.
                self.logs.suspect.store(true, Ordering::Relaxed);
                return has_spared;
            }
        }
        self.close_full_logs() || has_spared
    }

    /// Closes the logs of memtables that wait to be flushed. Whether there were any. Those that are
    /// not durable yet keep their descriptors until they are.
    pub(in crate::db) fn close_full_logs(&self) -> bool {
        let immutables = self.state.lock().immutables.clone();
        let logs = immutables.iter().filter_map(|immutable| immutable.log.lock().take());
        let closed = logs.map(|log| {
            // At worst prepared pages stay behind its end.
            if let Err(error) = log.close() {
                self.files.log(format!("could not close a full log: {error}"));
            }
        });
        closed.count() > 0
    }
}
