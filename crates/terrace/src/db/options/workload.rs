//! Settings for kinds of applications.
//!
//! Plain values, for any thread. A preset is where to begin: what is set after it counts. The lab's
//! suite `configurations` measures each of them against the defaults, on Terrace and on LevelDB.

use crate::db::options::Options;

/// A kind of application, as [`Options::for_workload`] has settings for it.
///
/// ```
/// # use terrace::*;
/// let options = Options::for_workload(Workload::DataLogging);
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Workload {
    /// Writes without pause, mostly of new keys, and a rare look-up.
    DataLogging,
    /// Large loads, then scans and look-ups over much of the data.
    Analytics,
    /// Random reads and writes in balance, with a bound on latency.
    Interactive,
}

impl Options {
    /// The defaults, changed for a kind of application.
    ///
    /// - [`DataLogging`](Workload::DataLogging): a write buffer of 16 MiB. Tables of level 0 are
    ///   four times as large, so there are fewer flushes and fewer compactions for the same data.
    ///   More would lengthen the pause of a compaction of level 0 and the recovery after a crash,
    ///   which replays up to two buffers.
    /// - [`Analytics`](Workload::Analytics): a write buffer of 64 MiB, because nobody waits for a
    ///   single write during a load; 64 MiB of block cache, because look-ups come back to the same
    ///   regions; 10,000 open files, because scans touch every table, and as many keep their index
    ///   and their filter in memory, unless the database exceeds it. Up to 128 MiB of
    ///   memtables and 64 MiB of blocks in memory. Load with
    ///   [`Db::bulk_load`](crate::Db::bulk_load).
    /// - [`Interactive`](Workload::Interactive): the defaults, which are made for this: small
    ///   buffers keep every compaction short, and filters spare the search for missing keys. With
    ///   more data than memory, and more than 8 GB of it, raise
    ///   [`max_open_files`](Options::max_open_files) to one for every table, that is, one for every
    ///   8 MiB, so that no read opens a file. Indexes and filters take a 50th to a 20th of the data.
    ///
    /// Whether a write waits for the disk is not a setting of the database: see
    /// [`WriteOptions::sync`](crate::WriteOptions::sync). `terrace advise` says what suits a
    /// database that is there.
    ///
    /// ```
    /// # use terrace::*;
    /// let options = Options::for_workload(Workload::Analytics)
    ///     .block_cache_size(256 << 20) // settings after a preset count
    ///     .create_if_missing(true);
    /// # let _ = options;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn for_workload(workload: Workload) -> Self {
        let options = Options::new();
        match workload {
            Workload::DataLogging => options.write_buffer_size(16 << 20),
            Workload::Analytics => options
                .write_buffer_size(64 << 20)
                .block_cache_size(64 << 20)
                .max_open_files(10_000),
            Workload::Interactive => options,
        }
    }
}
