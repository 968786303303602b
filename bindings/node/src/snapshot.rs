//! Explicit snapshots.

use std::cell::RefCell;

use napi_derive::napi;

/// The database as it was at one moment, until it is closed.
#[napi]
pub struct Snapshot(RefCell<Option<terrace::Snapshot>>);

impl Snapshot {
    /// Wraps a snapshot.
    pub fn new(snapshot: terrace::Snapshot) -> Self {
        Snapshot(RefCell::new(Some(snapshot)))
    }

    /// The snapshot, unless it has been closed.
    pub fn get(&self) -> Option<terrace::Snapshot> {
        self.0.borrow().clone()
    }
}

#[napi]
impl Snapshot {
    /// Releases the snapshot. Reads that were started with it go on.
    #[napi]
    pub fn close(&self) {
        self.0.borrow_mut().take();
    }
}
