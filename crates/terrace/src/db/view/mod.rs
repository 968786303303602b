//! The view: the sources of a read.

pub(in crate::db) mod catalogue;
pub(in crate::db) mod snapshot_list;

use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::{InternalOrder, MAX_SEQUENCE, SequenceNumber, tag_sequence};
use crate::iterator::level::LevelIter;
use crate::iterator::source::Source;
use crate::memtable::MemTable;
use crate::version::table_set::TableSet;
use crate::version::version::Version;

/// Everything a read looks into. Immutable; a change is a new view.
pub(in crate::db) struct View {
    pub(in crate::db) memtable: Arc<MemTable>,
    /// Newest first.
    pub(in crate::db) immutables: Vec<Arc<MemTable>>,
    pub(in crate::db) version: Arc<Version>,
    /// Every later entry is in a memtable.
    pub(in crate::db) in_tables: SequenceNumber,
}

impl View {
    /// The sequence number of the newest entry of `key` that is not in tables yet.
    pub(in crate::db) fn newest_in_memory(&self, key: &[u8]) -> Option<SequenceNumber> {
        let mut memtables = std::iter::once(&self.memtable).chain(&self.immutables);
        memtables.find_map(|table| table.get(key, MAX_SEQUENCE)).map(|(tag, _)| tag_sequence(tag))
    }

    /// All entries, newest source first. A level of one sorted run is one source.
    pub(in crate::db) fn sources(
        &self,
        tables: &Arc<TableSet>,
        order: &InternalOrder,
        fill_cache: bool,
    ) -> Result<Vec<Source>> {
        let memtables = std::iter::once(&self.memtable).chain(&self.immutables);
        let memtables = memtables.filter(|table| !table.is_empty());
        let (level_0, deeper) = (&self.version.levels[0], &self.version.levels[1..]);
        let deeper = deeper.iter().filter(|files| !files.is_empty());
        // No more room than it takes: sources are large, and allocators keep small pieces at hand.
        let mut sources =
            Vec::with_capacity(memtables.clone().count() + level_0.len() + deeper.clone().count());
        sources.extend(memtables.map(|table| Source::Memtable(table.iter())));
        for file in level_0.iter() {
            sources.push(Source::Table(tables.table(file)?.into_arc().iter(fill_cache)));
        }
        for files in deeper {
            let run = LevelIter::new(files.clone(), tables.clone(), order.clone(), fill_cache);
            sources.push(Source::Level(run));
        }
        Ok(sources)
    }
}
