//! An open database, for as long as there is a handle of it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::env::pace;

use crate::db::db_impl::DbImpl;
use crate::db::open::close::close;

/// Shared by the clones of a [`Db`](crate::Db) and by loads in progress. Dropped, it closes the
/// database.
pub(in crate::db) struct Handle {
    core: Arc<DbImpl>,
}

impl Handle {
    pub(in crate::db) fn new(core: Arc<DbImpl>) -> Self {
        Handle { core }
    }

    /// The database, for a call of the program's.
    #[inline]
    pub(in crate::db) fn core(&self) -> &Arc<DbImpl> {
        pace::before_call();
        &self.core
    }

    pub(in crate::db) fn dir(&self) -> &Path {
        &self.core.files.dir
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Errors are for callers of `close`.
        let _ = close(&self.core);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Db").field(&self.dir()).finish()
    }
}
