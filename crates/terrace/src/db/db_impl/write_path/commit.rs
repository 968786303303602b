//! The state that the commit lock guards.

use crate::base::internal_key::SequenceNumber;
use crate::log::LogWriter;
use crate::memtable::MemTableWriter;

/// See the [module](self).
pub(in crate::db) struct Commit {
    pub(in crate::db) memtable: MemTableWriter,
    pub(in crate::db) log: LogWriter,
    pub(in crate::db) log_number: u64,
    /// Logs that were found, if none could be started: they stand for the present one.
    pub(in crate::db) found_logs: Vec<u64>,
    pub(in crate::db) last_sequence: SequenceNumber,
    /// The greatest sequence number that is reserved for a bulk load in progress.
    pub(in crate::db) reserved_sequence: SequenceNumber,
    /// Nanoseconds that writers still have to wait for what they have written.
    pub(in crate::db) owed_nanos: u64,
    /// Whether the suspect log has been left already, and only its flush is awaited.
    pub(in crate::db) left_suspect_log: bool,
}
