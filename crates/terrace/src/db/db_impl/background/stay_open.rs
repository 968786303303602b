//! Keeps a database from being closed for a while.

use crate::base::error::Result;

use crate::db::db_impl::background::Background;

/// Keeps a close waiting while files are written or removed.
pub(in crate::db) struct StayOpen<'a>(&'a Background);

impl Drop for StayOpen<'_> {
    fn drop(&mut self) {
        self.0.state.lock().loading -= 1;
        self.0.changed.notify_all();
    }
}

impl Background {
    /// Fails if the database takes no writes, is closed or is being closed, and otherwise keeps it
    /// from being closed for a while.
    pub(in crate::db) fn stay_open(&self) -> Result<StayOpen<'_>> {
        self.files.check_writable()?;
        self.put_close_off()
    }

    /// Fails if the database is closed or is being closed, and otherwise keeps it from being closed
    /// for a while. Not for a fork.
    pub(in crate::db) fn put_close_off(&self) -> Result<StayOpen<'_>> {
        let mut state = self.state.lock();
        if state.closing {
            return Err(self.files.closed_error());
        }
        state.loading += 1;
        Ok(StayOpen(self))
    }
}
