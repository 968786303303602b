//! Tables that the MANIFEST does not name: left by an interrupted flush or compaction, or named by
//! an edit that the MANIFEST has lost.

use std::sync::Arc;

use crate::base::error::{ErrorKind, Result};
use crate::base::internal_key::SequenceNumber;
use crate::version::edit::NewFile;
use crate::version::file_meta::FileMeta;
use crate::version::table_set::TableSet;

use crate::db::io_error::{is_damage, retry_once};

/// The last sequence numbers that such tables record, 0 for a bulk load whose number nobody knows
/// any more. A table that was never finished was in no edit, and LevelDB, which records no
/// properties, has no loads.
///
/// # Errors
/// The system's: what cannot be looked at now is not taken for nothing.
pub(in crate::db) fn last_sequences(
    tables: &TableSet,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<Vec<SequenceNumber>> {
    numbers.into_iter().filter_map(|number| last_sequence(tables, number).transpose()).collect()
}

/// The same for a check or a repair, which goes on where a table is on a bad sector or gone by now:
/// 0, since nobody knows its number.
///
/// # Errors
/// The system's others, after a second attempt.
pub(in crate::db) fn last_sequences_if_readable(
    tables: &TableSet,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<Vec<SequenceNumber>> {
    let look = |number| match retry_once(|| last_sequence(tables, number)) {
        Err(error) if is_damage(&error) => Ok(Some(0)),
        looked => looked,
    };
    numbers.into_iter().filter_map(|number| look(number).transpose()).collect()
}

fn last_sequence(tables: &TableSet, number: u64) -> Result<Option<SequenceNumber>> {
    let (smallest, largest, values, codecs) = Default::default();
    let (file, _) = tables.open_file(number)?;
    let file = NewFile { level: 0, number, size: file.size(), smallest, largest, values, codecs };
    match tables.table(&Arc::new(FileMeta::new(file, &Arc::default()))) {
        Ok(table) => Ok(table.properties().map(|properties| properties.largest_sequence)),
        Err(error) if error.kind() == ErrorKind::Corruption => Ok(None),
        Err(error) => Err(error),
    }
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
