//! Tables.

use std::path::Path;

use super::damage_counter::DamageCounter;
use super::file::{name_of, open};
use super::piece::{Damage, Flow};
use super::table_items::{
    BlockItem, Effect, EntryItem, Extent, PointedValue, TableItem, TableSummary,
};
use crate::base::error::{ErrorKind, Result};
use crate::base::internal_key::{self, EntryKind, ParsedKey};
use crate::base::value_pointer::ValuePointer;
use crate::db::options::Options;
use crate::table::{BlockHandle, TableDump};

/// Reads the table at `path` from its first block to its last and calls `visit` with every piece
/// until it breaks off. Every block's checksum is checked.
///
/// ```
/// # use terrace::*;
/// # use std::ops::ControlFlow;
/// # use std::path::Path;
/// use terrace::inspect::{self, TableItem};
///
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let mut writer = TableWriter::create("/000005.ldb", &options)?;
/// # writer.put("apple", "red")?;
/// # writer.finish()?;
/// let mut keys = Vec::new();
/// let summary = inspect::table(Path::new("/000005.ldb"), &options, &mut |item| {
///     if let TableItem::Entry(entry) = item {
///         keys.push(entry.key.to_vec());
///     }
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!((summary.entries, keys), (1, vec![b"apple".to_vec()]));
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// `Io` if the file cannot be read. Damage is a piece of its own.
pub fn table(
    path: &Path,
    options: &Options,
    visit: &mut dyn FnMut(TableItem<'_>) -> Flow,
) -> Result<TableSummary> {
    let file = open(path, options)?;
    let file_size = file.size();
    let table_dump = TableDump::open(file, name_of(path))?;
    let summary = TableSummary {
        file_size,
        index: extent(table_dump.index()),
        metaindex: extent(table_dump.metaindex()),
        ..TableSummary::default()
    };
    let mut inspection =
        Inspection { table_dump, summary, damages: DamageCounter::new(name_of(path)), visit };
    let _ = inspection.run()?;
    inspection.summary.damages = inspection.damages.damages;
    Ok(inspection.summary)
}

/// The name of the filter policy whose filter the table at `path` carries. Reads the end of the
/// file alone.
///
/// ```
/// # use terrace::*;
/// # use std::path::Path;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let mut writer = TableWriter::create("/000005.ldb", &options)?;
/// # writer.put("apple", "red")?;
/// # writer.finish()?;
/// let name = inspect::filter_name(Path::new("/000005.ldb"), &options)?;
/// assert_eq!(name, None); // there was no `Options::filter_policy`
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// `Io` if the file cannot be read; `Corruption` if its end is damaged.
pub fn filter_name(path: &Path, options: &Options) -> Result<Option<String>> {
    let table_dump = TableDump::open(open(path, options)?, name_of(path))?;
    let (blocks, _) = meta_blocks(&table_dump)?;
    Ok(blocks.iter().find_map(|(name, _)| TableDump::filter_policy_name(name)).map(str::to_owned))
}

/// Whether the table at `path` carries Terrace's own filter. Reads the end of the file alone.
///
/// ```
/// # use terrace::*;
/// # use std::path::Path;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let mut writer = TableWriter::create("/000005.ldb", &options)?;
/// # writer.put("apple", "red")?;
/// # writer.finish()?;
/// assert!(inspect::has_table_filter(Path::new("/000005.ldb"), &options)?);
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// `Io` if the file cannot be read; `Corruption` if its end is damaged.
pub fn has_table_filter(path: &Path, options: &Options) -> Result<bool> {
    let table_dump = TableDump::open(open(path, options)?, name_of(path))?;
    let (blocks, _) = meta_blocks(&table_dump)?;
    Ok(blocks.iter().any(|(name, _)| TableDump::is_table_filter(name)))
}

/// Whether the file ends as a table does.
pub(super) fn is_table(path: &Path, options: &Options) -> Result<bool> {
    match TableDump::open(open(path, options)?, name_of(path)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Corruption => Ok(false),
        Err(error) => Err(error),
    }
}

fn extent(handle: BlockHandle) -> Extent {
    Extent { offset: handle.offset, size: handle.size }
}

/// The blocks that the metaindex lists, and how many of its entries point nowhere.
fn meta_blocks(table_dump: &TableDump) -> Result<(Vec<(String, Extent)>, u64)> {
    let (listed, whole) = table_dump.list(table_dump.metaindex());
    whole?;
    let (mut blocks, mut astray) = (Vec::new(), 0);
    for (name, handle) in listed {
        match handle {
            Some(handle) => {
                blocks.push((String::from_utf8_lossy(&name).into_owned(), extent(handle)))
            }
            None => astray += 1,
        }
    }
    Ok((blocks, astray))
}

struct Inspection<'a> {
    table_dump: TableDump,
    summary: TableSummary,
    damages: DamageCounter,
    visit: &'a mut dyn FnMut(TableItem<'_>) -> Flow,
}

impl Inspection<'_> {
    fn run(&mut self) -> Result<Flow> {
        let handle = self.table_dump.index();
        let (blocks, whole) = self.table_dump.list(handle);
        // The entries before the damage are good for something.
        if let Err(error) = whole {
            let damage = self.damages.count_error(handle.offset, error.context("index"))?;
            if self.damage(damage).is_break() {
                return Ok(Flow::Break(()));
            }
        }
        for (separator, block) in &blocks {
            let flow = match block {
                Some(block) => self.block(separator, *block)?,
                None => {
                    let damage = self
                        .damages
                        .count(handle.offset, "index: an entry points outside the file");
                    self.damage(damage)
                }
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        self.meta_blocks()
    }

    fn block(&mut self, separator: &[u8], handle: BlockHandle) -> Result<Flow> {
        let block = match self.table_dump.block(handle) {
            Ok(block) => block,
            Err(error) => {
                let damage = self.damages.count_error(handle.offset, error)?;
                return Ok(self.damage(damage));
            }
        };
        let mut entries = 0;
        // Counted first, because the block is shown before its entries. Damage shows in the second
        // pass.
        let _ = self.table_dump.for_each_entry(handle, &block, |_, _| {
            entries += 1;
            Flow::Continue(())
        });
        self.summary.blocks += 1;
        self.summary.stored_bytes += handle.size;
        self.summary.raw_bytes += block.raw_size();
        let item = TableItem::Block(BlockItem {
            extent: extent(handle),
            compression: block.compression,
            raw_size: block.raw_size(),
            entries,
            separator: internal_key::user_key(separator),
        });
        if (self.visit)(item).is_break() {
            return Ok(Flow::Break(()));
        }
        let Inspection { table_dump, summary, damages, visit } = self;
        let whole = table_dump.for_each_entry(handle, &block, |key, value| {
            let Some(parsed) = ParsedKey::parse(key) else {
                let shown = key.escape_ascii();
                let damage = damages
                    .count(handle.offset, &format!("an entry's key is no internal key: {shown}"));
                return visit(TableItem::Damage(damage));
            };
            let pointed = match parsed.kind {
                EntryKind::Pointer => match pointed(value) {
                    Some(pointed) => Some(pointed),
                    None => {
                        let key = parsed.user_key.escape_ascii();
                        let message = format!("the entry of {key} has a malformed pointer");
                        let damage = damages.count(handle.offset, &message);
                        return visit(TableItem::Damage(damage));
                    }
                },
                EntryKind::Value | EntryKind::Deletion => None,
            };
            count(summary, &parsed, value);
            if let Some(pointed) = &pointed {
                summary.pointed_values += 1;
                summary.pointed_bytes = summary.pointed_bytes.saturating_add(pointed.length);
            }
            visit(TableItem::Entry(EntryItem {
                key: parsed.user_key,
                sequence: parsed.sequence,
                effect: match parsed.kind {
                    EntryKind::Value | EntryKind::Pointer => Effect::Put,
                    EntryKind::Deletion => Effect::Delete,
                },
                value,
                pointed,
            }))
        });
        match whole {
            Ok(flow) => Ok(flow),
            Err(error) => {
                let damage = self.damages.count_error(handle.offset, error)?;
                Ok(self.damage(damage))
            }
        }
    }

    fn meta_blocks(&mut self) -> Result<Flow> {
        let offset = self.table_dump.metaindex().offset;
        let damage = match meta_blocks(&self.table_dump) {
            Ok((blocks, astray)) => {
                self.summary.meta_blocks = blocks;
                (astray > 0).then(|| {
                    self.damages.count(offset, "metaindex: an entry points outside the file")
                })
            }
            Err(error) => Some(self.damages.count_error(offset, error.context("metaindex"))?),
        };
        if let Some(damage) = damage
            && self.damage(damage).is_break()
        {
            return Ok(Flow::Break(()));
        }
        for (name, extent) in self.summary.meta_blocks.clone() {
            let handle = BlockHandle { offset: extent.offset, size: extent.size };
            let checked = match TableDump::is_dictionary(&name) {
                true => self.table_dump.check_dictionary(handle),
                false => self.table_dump.check(handle),
            };
            if let Err(error) = checked {
                let damage = self.damages.count_error(handle.offset, error.context(name))?;
                if self.damage(damage).is_break() {
                    return Ok(Flow::Break(()));
                }
            }
        }
        Ok(Flow::Continue(()))
    }

    fn damage(&mut self, damage: Damage) -> Flow {
        (self.visit)(TableItem::Damage(damage))
    }
}

fn pointed(value: &[u8]) -> Option<PointedValue> {
    let ValuePointer { file, offset, length, .. } = ValuePointer::decode(value)?;
    Some(PointedValue { file, offset, length })
}

fn count(summary: &mut TableSummary, entry: &ParsedKey<'_>, value: &[u8]) {
    summary.entries += 1;
    summary.deletions += u64::from(entry.kind == EntryKind::Deletion);
    summary.key_bytes += entry.user_key.len() as u64;
    summary.value_bytes += value.len() as u64;
    let (smallest, largest) = summary.sequences.unwrap_or((entry.sequence, entry.sequence));
    summary.sequences = Some((smallest.min(entry.sequence), largest.max(entry.sequence)));
    let (_, last) = summary.bounds.get_or_insert_with(|| (entry.user_key.to_vec(), Vec::new()));
    last.clear();
    last.extend_from_slice(entry.user_key);
}
