//! Events inside a database, and the listener that is told of them.

use std::time::Duration;

/// Something that happened. More kinds and fields may come.
///
/// ```
/// # use terrace::*;
/// fn line(event: &Event) -> Option<String> {
///     match event {
///         Event::FlushFinished { bytes, .. } => Some(format!("a table of {bytes} bytes")),
///         Event::BackgroundError { message, .. } => Some(message.clone()),
///         _ => None, // more kinds may come
///     }
/// }
/// # let _ = line;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A memtable was flushed.
    FlushFinished {
        /// The table's number; `None` if the memtable held nothing.
        table: Option<u64>,
        /// The level it went to.
        level: usize,
        /// Its size in bytes.
        bytes: u64,
        /// How long it took.
        duration: Duration,
    },
    /// A compaction rewrote tables, or moved one down.
    CompactionFinished {
        /// The upper level of the inputs.
        level: usize,
        /// The level of the outputs.
        output_level: usize,
        /// Tables read and written. A moved table counts as neither.
        files_read: usize,
        /// Tables written.
        files_written: usize,
        /// Bytes read.
        bytes_read: u64,
        /// Bytes written.
        bytes_written: u64,
        /// How long it took.
        duration: Duration,
    },
    /// A bulk load or an ingestion was installed.
    LoadFinished {
        /// Tables that it brought.
        tables: usize,
        /// Their entries.
        entries: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// Recovery met damage in a log and cut the history there; the damaged file is kept. Or the
    /// last record of the MANIFEST is bad, and a table, which it may have named, holds writes that
    /// are nowhere else.
    RecoveryDamage {
        /// The name of the log or the table.
        file: String,
        /// The problem, and where it is.
        message: String,
        /// Where the damaged file is kept, relative to the database's directory, if it is.
        kept_as: Option<String>,
    },
    /// A background job failed. Reads go on; writes go on while the log takes them and memory
    /// lasts.
    BackgroundError {
        /// The failure.
        message: String,
        /// Whether the database tries again by itself.
        retryable: bool,
    },
    /// Background work succeeded again after an error.
    BackgroundErrorCleared,
}

/// Is told of events, on the thread on which they happen: background threads above all.
///
/// An implementation must be quick, and must not call what waits for background work: `flush`,
/// `compact_range`, `wait_idle`, `close`, and writes to the same database, which wait for a flush
/// where memory is full; its own thread may be the one that would do it. The drop of the last clone
/// of a [`Db`](crate::Db) is a `close`: a listener that upgrades a weak handle must give the strong
/// one to another thread to drop.
///
/// It must not panic. If it does, what was done stays done, but background work stops with an error
/// ([`Stats::background_error`](crate::Stats::background_error)); on a thread of the program's,
/// such as that of a compaction by hand, the call panics.
///
/// ```
/// # use terrace::*;
/// struct Alarm;
///
/// impl EventListener for Alarm {
///     fn on_event(&self, event: &Event) {
///         if let Event::BackgroundError { message, retryable } = event {
///             eprintln!("{message}; tries again: {retryable}");
///         }
///     }
/// }
///
/// let options = Options::new().listener(Some(std::sync::Arc::new(Alarm)));
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait EventListener: Send + Sync {
    /// Something happened.
    fn on_event(&self, event: &Event);
}
