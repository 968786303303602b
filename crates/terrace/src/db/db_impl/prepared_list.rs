//! The prepared transactions of an open database, with the locks of their keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::locks::Mutex;
use crate::write::batch::WriteBatch;

use crate::db::concurrency::lock_manager::LockOwner;
use crate::db::concurrency::ordered_key::shown;

/// A transaction that is prepared, from before its record is durable until its decision is.
pub(in crate::db) struct Prepared {
    /// The batch that commits it: its writes, and the removal of its record.
    pub(in crate::db) commit: WriteBatch,
    /// Whether others have written its keys: it cannot be committed any more, and has locked
    /// nothing but the key of its record.
    pub(in crate::db) is_overtaken: bool,
    /// Held while a decision is made, which waits for the disk.
    pub(in crate::db) progress: Mutex<Progress>,
}

/// How far a prepared transaction has come.
pub(in crate::db) enum Progress {
    Undecided(Option<LockOwner>),
    /// The decision is visible, and not known to be durable.
    Written {
        committed: bool,
    },
    Decided,
}

/// By name. The lock is held for a moment only, also under that of a transaction's progress.
#[derive(Default)]
pub(in crate::db) struct PreparedList(Mutex<BTreeMap<Vec<u8>, Arc<Prepared>>>);

impl Prepared {
    pub(in crate::db) fn new(commit: WriteBatch, is_overtaken: bool, locks: LockOwner) -> Self {
        let progress = Mutex::new(Progress::Undecided(Some(locks)));
        Prepared { commit, is_overtaken, progress }
    }
}

impl PreparedList {
    pub(in crate::db) fn contains(&self, name: &[u8]) -> bool {
        self.0.lock().contains_key(name)
    }

    pub(in crate::db) fn get(&self, name: &[u8]) -> Option<Arc<Prepared>> {
        self.0.lock().get(name).cloned()
    }

    pub(in crate::db) fn insert(&self, name: &[u8], prepared: Prepared) {
        if let Progress::Undecided(Some(locks)) = &*prepared.progress.lock() {
            locks.set_name(format!("the prepared transaction {}", shown(name)));
        }
        self.0.lock().insert(name.to_vec(), Arc::new(prepared));
    }

    pub(in crate::db) fn remove(&self, name: &[u8]) {
        self.0.lock().remove(name);
    }

    /// All of them, in the order of their names.
    pub(in crate::db) fn all(&self) -> Vec<(Vec<u8>, Arc<Prepared>)> {
        self.0.lock().iter().map(|(name, prepared)| (name.clone(), prepared.clone())).collect()
    }
}
