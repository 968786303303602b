//! Finished tables that are not part of the database yet.

use std::path::PathBuf;

use crate::compaction::output::Output;
use crate::env::Env;

/// A finished table and where it lies. Nobody removes it unless [`discard`](Staged::discard) is
/// called.
pub(in crate::db) struct Staged {
    pub(in crate::db) table: Output,
    pub(in crate::db) path: PathBuf,
}

impl Staged {
    /// The first and the last key.
    pub(super) fn user_keys(&self) -> (&[u8], &[u8]) {
        self.table.user_keys()
    }

    /// Removes the file. A leftover is harmless: the next open removes it.
    pub(super) fn discard(&self, env: &dyn Env) {
        let _ = env.remove(&self.path);
    }
}
