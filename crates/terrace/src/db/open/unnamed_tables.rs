//! Tables that the MANIFEST does not name: left by an interrupted flush or compaction, or named by
//! an edit that the MANIFEST has lost.

use std::sync::Arc;

use crate::base::internal_key::SequenceNumber;
use crate::version::edit::NewFile;
use crate::version::file_meta::FileMeta;
use crate::version::table_set::TableSet;

/// The last sequence numbers that such tables record, 0 for a bulk load whose number nobody knows
/// any more. A table that was never finished was in no edit, and LevelDB, which records no
/// properties, has no loads.
pub(in crate::db) fn last_sequences(
    tables: &TableSet,
    numbers: Vec<u64>,
) -> impl Iterator<Item = SequenceNumber> {
    numbers.into_iter().filter_map(|number| {
        let (smallest, largest, values) = Default::default();
        let (file, _) = tables.open_file(number).ok()?;
        let file = NewFile { level: 0, number, size: file.size(), smallest, largest, values };
        let table = tables.table(&Arc::new(FileMeta::new(file, &Arc::default()))).ok()?;
        Some(table.properties()?.largest_sequence)
    })
}

/// Whether a table whose last sequence number is `last` may be one of a bulk load with a number
/// from `due` on and before `first`. A flush that was interrupted leaves later ones.
pub(in crate::db) fn may_be_loaded(
    last: SequenceNumber,
    due: SequenceNumber,
    first: SequenceNumber,
) -> bool {
    last == 0 || (due..first).contains(&last)
}
