//! Terrace: an embedded, ordered, persistent key-value store on LevelDB's files.
//!
//! ```no_run
//! use terrace::{Db, Options, WriteBatch, WriteOptions};
//!
//! # fn main() -> terrace::Result<()> {
//! let db = Db::open("fruit.db", Options::new().create_if_missing(true))?;
//! db.put("apple", "red")?;
//! let before = db.snapshot();
//!
//! let mut batch = WriteBatch::new();
//! batch.put("apple", "green");
//! batch.put("banana", "yellow");
//! db.write_with(&batch, WriteOptions::sync())?; // both or neither, and on the disk
//!
//! assert_eq!(db.get("apple")?.as_deref(), Some(&b"green"[..]));
//! assert_eq!(before.get("apple")?.as_deref(), Some(&b"red"[..]));
//! for entry in db.iter()? {
//!     let (key, value) = entry?;
//!     println!("{} = {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
//! }
//! # db.close()
//! # }
//! ```
//!
//! Where to look: [`Db`] for what a database does and promises, [`Options`] for how it is opened,
//! [`Cursor`] and [`Entries`] for scans, [`Db::update`] and [`Db::merge`] for one key that is read
//! and written, [`Transaction`] for reads and writes that belong together,
//! [`Transaction::prepare`] for those that span databases, [`Keyspace`] for named sets of keys,
//! [`KeyspaceOptions::expiry`] for entries that expire, [`BulkLoad`], [`TableWriter`] and
//! [`Db::ingest`] for much data at once, [`Db::checkpoint`] for copies, [`MemoryBudget`] for the
//! memory of many databases, [`verify()`] and [`repair()`] for what disks do, [`Stats`] and
//! [`EventListener`] for what is going on, [`Env`] for other places than the file system,
//! [`inspect`] for single files.
//!
//! Features, none of them on by default: `zstd` for tables with [`Compression::Zstd`] (libzstd, in
//! C; what has it is read without the feature, more slowly), `invariants` for checks in tests.

mod base;
mod cache;
mod compaction;
mod db;
mod env;
mod filter;
mod iterator;
mod log;
mod memtable;
mod table;
mod version;
mod write;

pub use base::comparator::{BytewiseComparator, Comparator};
pub use base::error::{Error, ErrorKind, Result};
pub use compaction::filter::{CompactionFilter, FilterDecision};
#[doc(hidden)]
pub use db::abi;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use db::fuzzing;
pub use db::inspect;
pub use db::{
    Append, BulkLoad, BulkLoadOptions, CheckpointReport, CompactOptions, Counter, Cursor, Db,
    Entries, Event, EventListener, IngestOptions, Isolation, Keyspace, KeyspaceCursor,
    KeyspaceEntries, KeyspaceOptions, LevelStats, LoadReport, MemoryBudget, MergeOperator,
    NUM_LEVELS, Options, PinnedValue, PrepareError, PreparedTransaction, Problem, Progress,
    PutOptions, ReadOptions, RecoveryMode, RepairReport, SetUnion, Snapshot, Stats, TableFile,
    TableSummary, TableWriter, TransactOptions, Transaction, TransactionCursor, TransactionEntries,
    TransactionOptions, VerifyReport, Workload, WriteOptions, destroy, repair, verify, verify_with,
};
pub use env::{
    CreateOptions, Env, FileLock, FileSyncer, Job, LockMode, LockedFile, Logger, MemEnv, PosixEnv,
    Priority, RandomAccessFile, ReadAccess, WritableFile,
};
pub use filter::{BloomFilterPolicy, FilterPolicy};
pub use table::{BlockCache, BlockKey, Compression, ExternalBlock, ExternalBlockCache, HeldBlock};
pub use write::batch::WriteBatch;
pub use write::batch_view::Operation;
