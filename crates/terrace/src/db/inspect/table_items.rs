//! The pieces of a table.

use super::piece::Damage;
use crate::table::TableDump;

/// A part of a table file.
///
/// ```
/// use terrace::inspect::Extent;
///
/// fn end(extent: Extent) -> u64 {
///     extent.offset + extent.size
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Extent {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes, without what follows a block to check it.
    pub size: u64,
}

/// A piece of a table, in the order of the file.
///
/// ```
/// # use terrace::*;
/// # use std::ops::ControlFlow;
/// # use std::path::Path;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let mut writer = TableWriter::create("/000005.ldb", &options)?;
/// # writer.put("apple", "red")?;
/// # writer.finish()?;
/// use terrace::inspect::{self, TableItem};
///
/// let mut pieces = [0; 3];
/// inspect::table(Path::new("/000005.ldb"), &options, &mut |item| {
///     match item {
///         TableItem::Block(_) => pieces[0] += 1,
///         TableItem::Entry(_) => pieces[1] += 1,
///         TableItem::Damage(_) => pieces[2] += 1,
///         _ => {}
///     }
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(pieces, [1, 1, 0]);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum TableItem<'a> {
    /// A data block. Its entries follow.
    Block(BlockItem<'a>),
    /// An entry of the block before it.
    Entry(EntryItem<'a>),
    /// Damage; what can be read behind it follows.
    Damage(Damage),
}

/// A data block of a table.
///
/// ```
/// use terrace::inspect::BlockItem;
///
/// fn ratio(block: &BlockItem) -> f64 {
///     block.raw_size as f64 / block.extent.size.max(1) as f64
/// }
/// ```
#[derive(Debug)]
pub struct BlockItem<'a> {
    /// Where the block is.
    pub extent: Extent,
    /// How the block is compressed.
    pub compression: &'static str,
    /// Bytes after decompression.
    pub raw_size: u64,
    /// Entries in the block.
    pub entries: u64,
    /// The user key of the index entry: not less than any in the block, and less than any in the
    /// next.
    pub separator: &'a [u8],
}

/// The effect of a table's entry on its key.
///
/// ```
/// use terrace::inspect::{Effect, EntryItem};
///
/// fn is_deletion(entry: &EntryItem) -> bool {
///     entry.effect == Effect::Delete
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The key has a value.
    Put,
    /// The key is gone.
    Delete,
}

/// An entry of a table.
///
/// ```
/// use terrace::inspect::EntryItem;
///
/// fn shown(entry: &EntryItem) -> String {
///     format!("{:?} @ {}: {} bytes", entry.key, entry.sequence, entry.value.len())
/// }
/// ```
#[derive(Debug)]
pub struct EntryItem<'a> {
    /// The user key.
    pub key: &'a [u8],
    /// The write's place in the history of the database.
    pub sequence: u64,
    /// Its effect on the key.
    pub effect: Effect,
    /// The value; empty for a deletion, and the bytes of the pointer where the value is in a value
    /// file.
    pub value: &'a [u8],
    /// Where the value is, if it is in a value file.
    pub pointed: Option<PointedValue>,
}

/// A value in a value file, as a table points at it.
///
/// ```
/// use terrace::inspect::PointedValue;
///
/// fn shown(value: &PointedValue) -> String {
///     format!("{} bytes at {} of {:06}.vlog", value.length, value.offset, value.file)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointedValue {
    /// The number of the value file.
    pub file: u64,
    /// Where the value begins in it. Where it goes on in another block of the file, that block's
    /// header stands between its bytes.
    pub offset: u64,
    /// The bytes of the value.
    pub length: u64,
}

/// A table as a whole.
///
/// ```
/// # use terrace::*;
/// # use std::ops::ControlFlow;
/// # use std::path::Path;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let mut writer = TableWriter::create("/000005.ldb", &options)?;
/// # writer.put("apple", "red")?;
/// # writer.finish()?;
/// use terrace::inspect;
///
/// let path = Path::new("/000005.ldb");
/// let summary = inspect::table(path, &options, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!((summary.blocks, summary.entries, summary.deletions), (1, 1, 0));
/// assert_eq!(summary.bounds, Some((b"apple".to_vec(), b"apple".to_vec())));
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TableSummary {
    /// Bytes of the file.
    pub file_size: u64,
    /// The index block.
    pub index: Extent,
    /// The block that lists filters and other additions.
    pub metaindex: Extent,
    /// The blocks that the metaindex lists, by name.
    pub meta_blocks: Vec<(String, Extent)>,
    /// Data blocks.
    pub blocks: u64,
    /// Bytes of all data blocks as they are in the file.
    pub stored_bytes: u64,
    /// Bytes of all data blocks after decompression.
    pub raw_bytes: u64,
    /// Entries, deletions included.
    pub entries: u64,
    /// Deletions.
    pub deletions: u64,
    /// Bytes of all user keys.
    pub key_bytes: u64,
    /// Bytes of all values in the table, pointers included.
    pub value_bytes: u64,
    /// Values in value files, which the table points at.
    pub pointed_values: u64,
    /// Bytes of these values.
    pub pointed_bytes: u64,
    /// The first and the last user key.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// The smallest and the largest sequence number.
    pub sequences: Option<(u64, u64)>,
    /// Places that are damaged.
    pub damages: u64,
}

impl TableSummary {
    /// Whether the table carries Terrace's own filter.
    ///
    /// ```
    /// # use terrace::*;
    /// # use std::ops::ControlFlow;
    /// # use std::path::Path;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let mut writer = TableWriter::create("/000005.ldb", &options)?;
    /// # writer.put("apple", "red")?;
    /// # writer.finish()?;
    /// use terrace::inspect;
    ///
    /// let path = Path::new("/000005.ldb");
    /// let summary = inspect::table(path, &options, &mut |_| ControlFlow::Continue(()))?;
    /// assert!(summary.has_table_filter()); // `Options::table_filter_bits`
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn has_table_filter(&self) -> bool {
        self.meta_blocks.iter().any(|(name, _)| TableDump::is_table_filter(name))
    }

    /// The name of the filter policy whose filter the table carries.
    ///
    /// ```
    /// # use terrace::*;
    /// # use std::ops::ControlFlow;
    /// # use std::path::Path;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let mut writer = TableWriter::create("/000005.ldb", &options)?;
    /// # writer.put("apple", "red")?;
    /// # writer.finish()?;
    /// use terrace::inspect;
    ///
    /// let path = Path::new("/000005.ldb");
    /// let summary = inspect::table(path, &options, &mut |_| ControlFlow::Continue(()))?;
    /// assert_eq!(summary.filter_name(), None); // there was no `Options::filter_policy`
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn filter_name(&self) -> Option<&str> {
        self.meta_blocks.iter().find_map(|(name, _)| TableDump::filter_policy_name(name))
    }
}
