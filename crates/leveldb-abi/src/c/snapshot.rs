//! `leveldb_snapshot_t`.

use terrace::Snapshot;

/// `leveldb_snapshot_t`: made and released by functions of its database.
#[derive(Debug)]
pub struct CSnapshot(pub(super) Snapshot);
