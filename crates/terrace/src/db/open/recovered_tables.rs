//! Tables of what logs hold, written while the logs are replayed, so that a replay takes bounded
//! memory.
//!
//! No MANIFEST names these tables yet. One edit adds all of them and leaves the logs behind: see
//! `Background::flush_one`. Until then a crash loses nothing, and the next open removes them. One
//! thread.

use std::path::Path;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::Result;
use crate::base::internal_key::{InternalOrder, SequenceNumber};
use crate::compaction::drop_rules::DropRules;
use crate::compaction::output::{Output, OutputSettings};
use crate::memtable::MemTable;
use crate::version::edit::NewFile;
use crate::version::version_set::FileNumbers;

use crate::db::db_impl::background::write_memtable::write_memtable;
use crate::db::db_impl::files::output_settings;
use crate::db::options::Options;

/// Memtables of a replay are flushed once they take this many times the write buffer.
const WRITE_BUFFERS: usize = 4;

/// See the [module](self).
pub(in crate::db) struct RecoveredTables {
    settings: OutputSettings,
    keys: KeyOrder,
    /// Oldest first.
    written: Vec<Output>,
    /// Bytes of memtables from which tables are written.
    threshold: usize,
}

impl RecoveredTables {
    /// `numbers` hands out no number that a file of the database has. A database that is only read
    /// gets no tables.
    pub(in crate::db) fn new(
        options: &Options,
        dir: &Path,
        order: &InternalOrder,
        numbers: &Arc<FileNumbers>,
    ) -> Self {
        let threshold = match options.read_only {
            true => usize::MAX,
            false => options.write_buffer_size.saturating_mul(WRITE_BUFFERS),
        };
        // Values go to value files when these tables are compacted.
        let settings =
            OutputSettings { values: None, ..output_settings(options, dir, order, numbers, 0) };
        let keys = order.keys.clone();
        RecoveredTables { settings, keys, written: Vec::new(), threshold }
    }

    /// Whether memtables of `bytes` should be flushed.
    pub(in crate::db) fn are_due(&self, bytes: usize) -> bool {
        bytes >= self.threshold
    }

    /// Writes `memtable`, which ends at `last_sequence`, as the next table. After a failure, on a
    /// full disk say, the rest of the replay stays in memory.
    pub(in crate::db) fn add(
        &mut self,
        memtable: &Arc<MemTable>,
        last_sequence: SequenceNumber,
    ) -> Result<()> {
        let written = self.write(memtable, last_sequence);
        if written.is_err() {
            self.threshold = usize::MAX;
        }
        written
    }

    fn write(&mut self, memtable: &Arc<MemTable>, last_sequence: SequenceNumber) -> Result<()> {
        if self.written.is_empty() {
            // The names that were found, CURRENT above all, are durable before any new one.
            self.settings.env.sync_dir(&self.settings.dir)?;
        }
        let rules = DropRules::new(self.keys.clone(), vec![last_sequence]);
        let output = write_memtable(memtable, self.settings.clone(), rules, || Ok(()))?;
        self.written.extend(output);
        Ok(())
    }

    /// The tables, all at level 0.
    pub(in crate::db) fn into_files(self) -> Vec<NewFile> {
        self.written.into_iter().map(|output| output.file).collect()
    }

    /// Removes the tables.
    pub(in crate::db) fn discard(self) {
        self.written.iter().for_each(|output| self.settings.remove(output));
    }
}
