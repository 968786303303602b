//! Terrace: an embedded, ordered, persistent key-value store on LevelDB's files.

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
#[doc(hidden)]
pub use db::abi;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use db::fuzzing;
pub use db::inspect;
pub use db::{
    BulkLoad, BulkLoadOptions, CheckpointReport, Cursor, Db, Entries, Event, EventListener, IngestOptions, LevelStats, LoadReport,
    NUM_LEVELS, Options, PinnedValue, Problem, Progress, ReadOptions, RecoveryMode, RepairReport, Snapshot, Stats,
    TableFile, TableSummary, TableWriter, VerifyReport, Workload, WriteOptions, destroy, repair, verify, verify_with,
};
pub use env::{
    CreateOptions, Env, FileLock, FileSyncer, Job, Lane, LockMode, Logger, MemEnv, PosixEnv, RandomAccessFile,
    ReadAccess, WritableFile,
};
pub use filter::{BloomFilterPolicy, FilterPolicy};
pub use table::{BlockCache, BlockKey, Compression, ExternalBlock, ExternalBlockCache, HeldBlock};
pub use write::batch::{Operation, WriteBatch};
