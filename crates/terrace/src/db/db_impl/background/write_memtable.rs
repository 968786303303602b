//! Writes a memtable as a table. Pure work: what it needs is given, and nothing is installed.

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::ParsedKey;
use crate::compaction::drop_rules::DropRules;
use crate::compaction::output::{Output, OutputSettings, OutputWriter};
use crate::memtable::MemTable;

/// Bytes of a table after which the system is asked to begin writing, so that little is left to
/// wait for.
const BYTES_PER_SYNC: u64 = 256 << 10;
/// Entries between two calls of `may_go_on`.
const CHECK_INTERVAL: usize = 512;

/// Writes the entries of `memtable` that `rules` keep as one table of level 0, or none if nothing
/// is kept. An error of `may_go_on` ends it. On an error the file is removed.
pub(in crate::db) fn write_memtable(
    memtable: &Arc<MemTable>,
    mut settings: OutputSettings,
    mut rules: DropRules,
    mut may_go_on: impl FnMut() -> Result<()>,
) -> Result<Option<Output>> {
    if settings.table.bytes_per_sync == 0 {
        settings.table.bytes_per_sync = BYTES_PER_SYNC;
    }
    let mut writer = OutputWriter::new(settings, 0);
    let mut until_check = CHECK_INTERVAL;
    let mut iter = memtable.iter();
    iter.seek_to_first();
    while iter.valid() {
        until_check -= 1;
        if until_check == 0 {
            until_check = CHECK_INTERVAL;
            may_go_on()?;
        }
        let key = iter.key();
        let entry = ParsedKey::parse(key)
            .ok_or_else(|| Error::corruption("a memtable holds a malformed key"))?;
        if rules.keep(&entry, |_| false) {
            writer.add(key, iter.value())?;
        }
        iter.next();
    }
    Ok(writer.finish()?.into_iter().next())
}
