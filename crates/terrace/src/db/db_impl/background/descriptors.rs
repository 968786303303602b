//! What to do where the process has no descriptor left: logs of memtables that wait to be flushed,
//! and those kept for memtables to come, give theirs back.

use crate::base::error::Result;

use crate::db::db_impl::background::Background;
use crate::db::db_impl::files::retry_with_spared;

impl Background {
    /// Does `work`; where it runs out of descriptors once more with those of tables, and where that
    /// does not help, with those of logs.
    pub(in crate::db) fn sparing<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        retry_with_spared(|| self.files.sparing(&mut work), || self.spare_logs())
    }

    /// Closes logs that nothing is written to, the full ones once they are durable. Whether there
    /// were any.
    pub(in crate::db) fn spare_logs(&self) -> bool {
        let mut has_spared = self.logs.delete_recycled_logs();
        let doubt = self.logs.doubt();
        let close = |newest| has_spared |= self.close_full_logs(newest);
        if self.logs.sync.close_older(close).is_ok() {
            doubt.dispel();
        }
        has_spared
    }

    /// [`sparing`](Self::sparing), by the thread that syncs logs: those below `newest` are durable.
    pub(in crate::db) fn sparing_in_sync<T>(
        &self,
        newest: u64,
        mut work: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let spare = || self.logs.delete_recycled_logs() | self.close_full_logs(newest);
        retry_with_spared(|| self.files.sparing(&mut work), spare)
    }

    /// Closes the logs below `newest` of memtables that wait to be flushed, which are durable.
    /// Whether there were any. No other thread syncs them meanwhile, and none removes them.
    fn close_full_logs(&self, newest: u64) -> bool {
        let immutables = self.state.lock().immutables.clone();
        let mut has_closed = false;
        for immutable in immutables {
            if immutable.logs.last().is_none_or(|&number| number >= newest) {
                continue;
            }
            // Held until it is closed: then the log may be removed.
            let mut log = immutable.log.lock();
            let Some(log) = log.take() else { continue };
            has_closed = true;
            // At worst prepared pages stay behind its end.
            if let Err(error) = log.close() {
                self.files.log(format!("could not close a full log: {error}"));
            }
        }
        has_closed
    }
}
