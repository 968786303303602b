//! The database: opening, recovery, reads, writes, background work.
//!
//! [`Db`] is the thin front; [`DbImpl`](db_impl::DbImpl) is what background jobs, iterators and
//! snapshots share. The life of a write, a read, a compaction and an open is told in
//! `docs/architecture.md`.
//!
//! # Locks
//! In this order, none taken while a later one is held:
//! 1. the *commit lock* ([`write_path`](db_impl::write_path)): the log, the memtable being written
//!    and the last sequence number;
//! 2. the *manifest lock* ([`VersionSet`](crate::version::version_set::VersionSet)): held across
//!    the I/O of an edit;
//! 3. the *state lock* ([`State`](db_impl::background::state::State)): what is queued and running,
//!    and the swap of views. Never held across I/O.
//!
//! Readers take none of them.

pub mod abi;
mod bulk;
mod check;
mod checkpoint;
mod concurrency;
#[expect(clippy::module_inception, reason = "the public handle, as LevelDB's db.h")]
mod db;
mod db_impl;
mod destroy;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod handle;
mod info_log;
pub mod inspect;
#[cfg(all(test, loom))]
mod interleavings;
mod io_error;
mod key_range;
mod keyspace;
mod memory_budget;
mod open;
pub(crate) mod options;
mod range_delete;
mod read;
mod repair;
mod staged;
mod stats;
mod transaction;
mod update;
mod view;

pub use self::bulk::{
    BulkLoad, BulkLoadOptions, IngestOptions, LoadReport, TableSummary, TableWriter,
};
pub use self::check::problem::Problem;
pub use self::check::{Progress, VerifyReport, verify, verify_with};
pub use self::checkpoint::CheckpointReport;
pub use self::db::Db;
pub use self::db_impl::background::manual::CompactOptions;
pub use self::destroy::destroy;
pub use self::keyspace::{Keyspace, KeyspaceCursor, KeyspaceEntries, PutOptions};
pub use self::memory_budget::MemoryBudget;
pub use self::options::events::{Event, EventListener};
pub use self::options::workload::Workload;
pub use self::options::{NUM_LEVELS, Options, RecoveryMode, WriteOptions};
pub use self::read::cursor::Cursor;
pub use self::read::entries::Entries;
pub use self::read::pinned::PinnedValue;
pub use self::read::read_options::ReadOptions;
pub use self::read::snapshot::Snapshot;
pub use self::repair::{RepairReport, repair};
pub use self::stats::{LevelStats, Stats, TableFile};
pub use self::transaction::{
    Isolation, PrepareError, PreparedTransaction, TransactOptions, Transaction, TransactionCursor,
    TransactionEntries, TransactionOptions,
};
pub use self::update::{Append, Counter, MergeOperator, SetUnion};
pub use self::view::catalogue::keyspace_options::KeyspaceOptions;
