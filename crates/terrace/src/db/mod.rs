//! The database: opening, recovery, reads, writes, background work.
//!
//! [`Db`] is the thin front; [`DbCore`](core::DbCore) is what background jobs, iterators and snapshots
//! share. The life of a write, a read, a merge and an open is told in `docs/architecture.md`.
//!
//! # Locks
//! In this order, none taken while a later one is held:
//! 1. the *commit lock* ([`commit`]): the log, the memtable being written and the last sequence number;
//! 2. the *manifest lock* ([`VersionSet`](crate::version::version_set::VersionSet)): held across the I/O of an edit;
//! 3. the *state lock* ([`state`]): what is queued and running, and the swap of views. Never held across I/O.
//!
//! Readers take none of them.

pub mod abi;
mod background;
mod bulk;
mod checkpoint;
mod close;
mod commit;
mod continuity;
mod core;
mod cursor;
mod destroy;
pub(crate) mod events;
mod file_copy;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod handle;
mod info_log;
pub mod inspect;
#[cfg(all(test, loom))]
mod interleavings;
mod jobs;
mod level_check;
mod leveldb_text;
mod live_check;
mod log_check;
mod lost;
mod manifest_survey;
mod manual;
mod medium;
mod open;
pub(crate) mod options;
mod pinned;
mod problem;
mod property;
mod read;
mod recovered_tables;
mod recovery;
mod repair;
mod repair_inputs;
mod salvage;
pub(crate) mod snapshot;
mod span;
mod spare_logs;
mod state;
mod statistics;
mod table_check;
mod transaction;
mod verify;
mod workload;
mod write_memtable;

pub use self::bulk::{BulkLoad, BulkLoadOptions, IngestOptions, LoadReport, TableSummary, TableWriter};
pub use self::checkpoint::CheckpointReport;
pub use self::cursor::{Cursor, Entries};
pub use self::destroy::destroy;
pub use self::events::{Event, EventListener};
pub use self::handle::Db;
pub use self::manual::CompactOptions;
pub use self::options::{NUM_LEVELS, Options, ReadOptions, RecoveryMode, WriteOptions};
pub use self::pinned::PinnedValue;
pub use self::problem::Problem;
pub use self::repair::{RepairReport, repair};
pub use self::snapshot::Snapshot;
pub use self::statistics::{LevelStats, Stats, TableFile};
pub use self::transaction::{Transaction, TransactionCursor, TransactionEntries};
pub use self::verify::{Progress, VerifyReport, verify, verify_with};
pub use self::workload::Workload;
