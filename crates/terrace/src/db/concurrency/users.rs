//! How many locks and serializable transactions there are: one look tells a writer that there are
//! none.

use std::sync::atomic::Ordering;

use crate::base::locks::AtomicU64;

/// See the [module](self). A writer that holds the commit lock sees all that counted before they
/// last took the commit lock.
#[derive(Default)]
pub(in crate::db) struct Users(AtomicU64);

impl Users {
    pub(in crate::db) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::db) fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    pub(in crate::db) fn are_there(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}
