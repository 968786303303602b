//! Survey of a database: its levels from the MANIFEST, its entries and blocks from a sample
//! of its tables.

use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;
use terrace::inspect::{self, Effect, TableItem};
use terrace::{Db, Options, TableFile};

use super::info_log::Activity;
use crate::directory::{FileType, ListedFile, list_files};
use crate::failure::Result;

/// Tables looked into, at most.
const SAMPLED_TABLES: u64 = 32;
/// Bytes of blocks looked at in each of them, decompressed.
const SAMPLED_BYTES: u64 = 1 << 20;
/// Bytes of blocks that lie uncompressed, kept to see whether they would shrink.
const LOOSE_BYTES: usize = 1 << 20;
/// They are compressed in pieces of this size, as the usual blocks are.
const PIECE: usize = 4 << 10;

/// A level that holds tables.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Level {
    pub(super) level: usize,
    pub(super) tables: u64,
    pub(super) bytes: u64,
}

/// A database.
#[derive(Debug, Default, Serialize)]
pub(super) struct Survey {
    pub(super) levels: Vec<Level>,
    pub(super) tables: u64,
    pub(super) table_bytes: u64,
    pub(super) value_files: u64,
    pub(super) value_file_bytes: u64,
    /// Bytes in them that tables point at.
    pub(super) value_bytes_used: u64,
    pub(super) log_bytes: u64,
    /// The bytes that due compactions would read.
    pub(super) pending_compaction_bytes: u64,
    pub(super) sample: Sample,
    pub(super) info_log: Activity,
}

/// A part of the tables.
#[derive(Debug, Default, Serialize)]
pub(super) struct Sample {
    pub(super) tables: u64,
    /// Tables that could not be read whole.
    pub(super) damaged_tables: u64,
    pub(super) blocks: u64,
    pub(super) uncompressed_blocks: u64,
    /// Bytes of blocks as they lie in the files, and decompressed.
    pub(super) stored_bytes: u64,
    pub(super) raw_bytes: u64,
    /// The size of a block, decompressed, that half of them do not reach: one with a huge value
    /// does not count for more than any other.
    pub(super) median_block: u64,
    pub(super) entries: u64,
    pub(super) deletions: u64,
    pub(super) key_bytes: u64,
    /// Of values in tables and of those in value files that tables point at.
    pub(super) value_bytes: u64,
    pub(super) largest_value: u64,
    /// Tables with a filter of LevelDB's kind, and with Terrace's own.
    pub(super) with_filter_policy: u64,
    pub(super) with_table_filter: u64,
    /// Of 100 bytes in uncompressed blocks so many would be left by snappy.
    pub(super) would_compress_to_percent: Option<u64>,
}

impl Survey {
    pub(super) fn of(path: &Path, db: &Db) -> Result<Self> {
        let stats = db.stats();
        let files = list_files(path)?;
        let levels = stats.levels.iter().filter(|level| level.files > 0);
        let levels: Vec<Level> = levels
            .map(|level| Level {
                level: level.level,
                tables: level.files as u64,
                bytes: level.bytes,
            })
            .collect();
        Ok(Survey {
            tables: levels.iter().map(|level| level.tables).sum(),
            table_bytes: saturating_sum(levels.iter().map(|level| level.bytes)),
            levels,
            value_files: stats.value_files as u64,
            value_file_bytes: stats.value_file_bytes,
            value_bytes_used: stats.value_bytes_used,
            log_bytes: files
                .iter()
                .filter(|file| file.file_type == FileType::Log)
                .map(|file| file.size)
                .sum(),
            pending_compaction_bytes: stats.pending_compaction_bytes,
            sample: Sample::of(path, db.files(), &files),
            info_log: Activity::of(path),
        })
    }

    /// Tables of a level.
    pub(super) fn tables_at(&self, level: usize) -> u64 {
        self.levels.iter().find(|found| found.level == level).map_or(0, |level| level.tables)
    }

    /// The tables' bytes, decompressed, by the sample.
    pub(super) fn raw_bytes(&self) -> u64 {
        match self.sample.stored_bytes {
            0 => self.table_bytes,
            stored => {
                (self.table_bytes as f64 * self.sample.raw_bytes as f64 / stored as f64) as u64
            }
        }
    }
}

impl Sample {
    /// Looks into tables that lie evenly over the bytes of all levels.
    fn of(path: &Path, mut tables: Vec<TableFile>, files: &[ListedFile]) -> Self {
        tables.sort_by(|a, b| (a.level, &a.smallest).cmp(&(b.level, &b.smallest)));
        let step = (saturating_sum(tables.iter().map(|table| table.size)) / SAMPLED_TABLES).max(1);
        let mut sample = Sample::default();
        let (mut loose, mut blocks) = (Vec::new(), Vec::new());
        let (mut passed, mut next) = (0u64, 0);
        for table in &tables {
            passed = passed.saturating_add(table.size);
            // A file may be called N.ldb or N.sst.
            let file = files.iter().find(|file| file.table_number() == Some(table.number));
            if passed <= next {
                continue;
            }
            next = (passed - passed % step).saturating_add(step);
            if let Some(file) = file {
                sample.table(&path.join(&file.name), &mut loose, &mut blocks);
            }
        }
        sample.would_compress_to_percent = compressed_percent(&loose);
        blocks.sort_unstable();
        sample.median_block = blocks.get(blocks.len() / 2).copied().unwrap_or_default();
        sample
    }

    /// Adds the beginning of a table, to `loose` what of it lies uncompressed, and to `blocks` the
    /// sizes of its blocks.
    fn table(&mut self, path: &Path, loose: &mut Vec<u8>, blocks: &mut Vec<u64>) {
        let options = Options::new();
        let mut seen = 0;
        let mut is_loose = false;
        let mut is_damaged = false;
        let summary = inspect::table(path, &options, &mut |item| {
            match item {
                TableItem::Block(_) if seen >= SAMPLED_BYTES => return ControlFlow::Break(()),
                TableItem::Block(block) => {
                    seen += block.raw_size;
                    is_loose = block.compression == "none";
                    self.blocks += 1;
                    self.uncompressed_blocks += u64::from(is_loose);
                    self.stored_bytes += block.extent.size;
                    self.raw_bytes += block.raw_size;
                    blocks.push(block.raw_size);
                }
                TableItem::Entry(entry) => {
                    self.entries += 1;
                    self.deletions += u64::from(entry.effect == Effect::Delete);
                    self.key_bytes += entry.key.len() as u64;
                    let length = entry.value.len() as u64;
                    let length = entry.pointed.map_or(length, |pointed| pointed.length);
                    self.value_bytes = self.value_bytes.saturating_add(length);
                    self.largest_value = self.largest_value.max(length);
                    if is_loose {
                        let room = LOOSE_BYTES - loose.len();
                        loose.extend(entry.key.iter().chain(entry.value).take(room));
                    }
                }
                _ => is_damaged = true,
            }
            ControlFlow::Continue(())
        });
        // Damage is for `terrace verify`; the rest of the sample is as good as
        // before.
        self.tables += 1;
        self.damaged_tables += u64::from(is_damaged || summary.is_err());
        self.with_filter_policy +=
            u64::from(inspect::filter_name(path, &options).is_ok_and(|name| name.is_some()));
        self.with_table_filter +=
            u64::from(inspect::has_table_filter(path, &options).unwrap_or(false));
    }

    pub(super) fn average_value(&self) -> u64 {
        self.value_bytes / self.entries.saturating_sub(self.deletions).max(1)
    }

    /// Deletions among a hundred entries.
    pub(super) fn deletion_percent(&self) -> u64 {
        self.deletions.saturating_mul(100) / self.entries.max(1)
    }
}

/// Sizes come from the MANIFEST, and may be anything.
fn saturating_sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

fn compressed_percent(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    let mut encoder = snap::raw::Encoder::new();
    let sizes = bytes
        .chunks(PIECE)
        .map(|piece| encoder.compress_vec(piece).map_or(piece.len(), |small| small.len()));
    Some((sizes.sum::<usize>() as u64).saturating_mul(100) / bytes.len() as u64)
}
