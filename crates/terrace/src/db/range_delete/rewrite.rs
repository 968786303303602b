//! Writes tables anew without what they hold in ranges.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{KIND_FOR_SEEK, MAX_SEQUENCE, ParsedKey, encode, user_key};
use crate::compaction::output::{OutputSettings, complete_table, seal};
use crate::env::CreateOptions;
use crate::iterator::merged::Merged;
use crate::iterator::source::Source;
use crate::table::TableBuilder;
use crate::version::file_meta::FileMeta;
use crate::version::filename;

use crate::db::db_impl::DbImpl;
use crate::db::key_range::KeyRanges;
use crate::db::range_delete::cut::Cut;
use crate::db::staged::{Staged, discard};

/// The remainders of the tables across the ends of a range, by the numbers of these tables; none
/// where nothing is left. Dropped, their files are removed.
pub(super) struct Remainders<'a> {
    core: &'a DbImpl,
    tables: HashMap<u64, Option<Staged>>,
}

impl<'a> Remainders<'a> {
    pub(super) fn new(core: &'a DbImpl) -> Self {
        Remainders { core, tables: HashMap::new() }
    }

    /// Writes what is left of the tables of `cut` for which that has not been done yet. Returns how
    /// many these were.
    pub(super) fn prepare(&mut self, cut: &Cut, ranges: &KeyRanges) -> Result<usize> {
        let mut written = 0;
        for (level, file) in &cut.rewritten {
            if !self.tables.contains_key(&file.number) {
                let left = write_outside(self.core, *level, file, ranges)?;
                self.tables.insert(file.number, left);
                written += 1;
            }
        }
        Ok(written)
    }

    /// Hands over what is left of the tables of `cut`, in their order and with their levels.
    pub(super) fn take(&mut self, cut: &Cut) -> (Vec<usize>, Vec<Staged>) {
        let mut take = |(level, file): &(usize, Arc<FileMeta>)| {
            Some((*level, self.tables.remove(&file.number)??))
        };
        cut.rewritten.iter().filter_map(&mut take).unzip()
    }
}

impl Drop for Remainders<'_> {
    fn drop(&mut self) {
        let left: Vec<_> = self.tables.drain().filter_map(|(_, staged)| staged).collect();
        discard(self.core, &left);
    }
}

/// Writes the entries of a table that lie outside of `ranges`, all versions of them, to a table
/// that is not part of the database yet. None if there are none.
fn write_outside(
    core: &DbImpl,
    level: usize,
    file: &Arc<FileMeta>,
    ranges: &KeyRanges,
) -> Result<Option<Staged>> {
    let OutputSettings { env, dir, numbers, file_mode, table, .. } =
        core.files.output_settings(level);
    let number = numbers.take();
    let path = dir.join(filename::temp(number));
    let create = || env.create(&path, CreateOptions { mode: file_mode, exclusive: true });
    let mut builder = TableBuilder::new(core.files.sparing(create)?, &table);
    let copied = copy_outside(core, file, ranges, &mut builder);
    if copied.is_err() || builder.entries() == 0 {
        drop(builder.abandon());
        // A leftover is harmless: the next open removes it.
        let _ = env.remove(&path);
        return copied.map(|()| None);
    }
    let complete =
        complete_table(number, builder, level).and_then(|(table, file)| seal(file).map(|()| table));
    match complete {
        Ok(table) => Ok(Some(Staged { table, path })),
        Err(error) => {
            let _ = env.remove(&path);
            Err(error)
        }
    }
}

fn copy_outside(
    core: &DbImpl,
    file: &Arc<FileMeta>,
    ranges: &KeyRanges,
    builder: &mut TableBuilder,
) -> Result<()> {
    let keys = &core.files.order.keys;
    let source = core.files.sparing(|| Ok(core.files.tables.table(file)?.into_arc()))?;
    let mut entries =
        Merged::new(vec![Source::Table(source.iter(false).read_once())], &core.files.order);
    entries.seek_to_first();
    while entries.valid() {
        let key = entries.key();
        let entry = ParsedKey::parse(key)
            .ok_or_else(|| Error::corruption("a table holds a malformed key"))?;
        let Some(range) = ranges.holding(keys, entry.user_key) else {
            builder.add_stored(key, entries.value(), || entries.lone_block())?;
            entries.next();
            continue;
        };
        match range.to() {
            Bound::Unbounded => break,
            Bound::Excluded(to) => entries.seek(&encode(to, MAX_SEQUENCE, KIND_FOR_SEEK)),
            Bound::Included(to) => {
                entries.seek(&encode(to, MAX_SEQUENCE, KIND_FOR_SEEK));
                while entries.valid() && keys.compare(user_key(entries.key()), to).is_eq() {
                    entries.next();
                }
            }
        }
    }
    entries.status()
}
