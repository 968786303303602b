//! The prepared transactions of an open database, with the locks of their keys.

use std::collections::BTreeMap;

use crate::base::locks::Mutex;
use crate::write::batch::WriteBatch;

use crate::db::concurrency::lock_manager::LockOwner;

/// A transaction that waits for its decision.
pub(in crate::db) struct Prepared {
    pub(in crate::db) batch: WriteBatch,
    /// `None` if it cannot be committed any more: others have written its keys.
    pub(in crate::db) locks: Option<LockOwner>,
}

/// By name. Locked for a moment only.
#[derive(Default)]
pub(in crate::db) struct PreparedList(pub(in crate::db) Mutex<BTreeMap<Vec<u8>, Prepared>>);
