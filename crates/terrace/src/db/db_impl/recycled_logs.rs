//! Logs whose memtables have been flushed, emptied, for memtables to come.
//!
//! Where a log's pages have not been written to the disk, the next log can have them
//! ([`WritableFile::zero_out`]), which spares the system most of its work for a log. Until then the
//! file has the name of a temporary one: an open after a crash removes it, and no program takes it
//! for the log that it was.
//!
//! Any thread.

use crate::base::locks::{Condvar, Mutex};
use crate::env::WritableFile;
use crate::log::LogWriter;

/// So many are kept: two memtables may be flushed at once, and the next two wait for logs then.
const MOST: usize = 2;

/// An empty log under the temporary name of its old number.
pub(in crate::db) struct RecycledLog {
    pub(in crate::db) number: u64,
    pub(in crate::db) file: Box<dyn WritableFile>,
}

#[derive(Default)]
struct State {
    logs: Vec<RecycledLog>,
    /// How many are being emptied.
    emptying: usize,
    /// Readers of logs that may not be needed any longer.
    readers: usize,
}

/// See the [module](self).
#[derive(Default)]
pub(in crate::db) struct RecycledLogs {
    state: Mutex<State>,
    /// Signalled when a log has been emptied.
    emptied: Condvar,
}

impl RecycledLogs {
    /// Empties log `number` and keeps it, once `rename` has given it its temporary name. `false` if
    /// that cannot be done, or enough are kept: the log is closed and to be removed then, under the
    /// name that it has.
    ///
    /// The MANIFEST says durably that the log is not needed.
    pub(in crate::db) fn keep(
        &self,
        number: u64,
        log: LogWriter,
        rename: impl FnOnce() -> bool,
    ) -> bool {
        let mut state = self.state.lock();
        if state.readers > 0 || state.logs.len() + state.emptying >= MOST {
            drop(state);
            log.retire();
            return false;
        }
        state.emptying += 1;
        drop(state);
        // Writers ask for a log meanwhile.
        let file = log.zero_out().filter(|_| rename());
        let mut state = self.state.lock();
        state.emptying -= 1;
        let done = file.is_some();
        state.logs.extend(file.map(|file| RecycledLog { number, file }));
        drop(state);
        self.emptied.notify_all();
        done
    }

    /// Takes one of them out.
    pub(in crate::db) fn take(&self) -> Option<RecycledLog> {
        self.state.lock().logs.pop()
    }

    /// While this is held, logs keep what they hold, even where they lose their names.
    pub(in crate::db) fn read(&self) -> LogsInUse<'_> {
        let mut state = self.state.lock();
        state.readers += 1;
        while state.emptying > 0 {
            self.emptied.wait(&mut state);
        }
        LogsInUse(self)
    }
}

/// See [`RecycledLogs::read`].
pub(in crate::db) struct LogsInUse<'a>(&'a RecycledLogs);

impl Drop for LogsInUse<'_> {
    fn drop(&mut self) {
        self.0.state.lock().readers -= 1;
    }
}
