//! The items that inspection finds in a file.

use std::ops::ControlFlow;

use crate::table::TableDump;

/// Whether the visitor has seen enough.
pub(super) type Flow = ControlFlow<()>;

/// A part of a table file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Extent {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes, without what follows a block to check it.
    pub size: u64,
}

/// A piece of a table, in the order of the file.
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

/// What an entry of a table does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The key has a value.
    Put,
    /// The key is gone.
    Delete,
}

/// An entry of a table.
#[derive(Debug)]
pub struct EntryItem<'a> {
    /// The user key.
    pub key: &'a [u8],
    /// The write's place in the history of the database.
    pub sequence: u64,
    /// What it does to the key.
    pub effect: Effect,
    /// The value; empty for a deletion.
    pub value: &'a [u8],
}

/// Bytes that are not what they must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where: of a block, its beginning.
    pub offset: u64,
    /// What is wrong there.
    pub message: String,
}

/// A table as a whole.
#[derive(Clone, Debug, Default)]
pub struct TableSummary {
    /// Bytes of the file.
    pub file_size: u64,
    /// The index block.
    pub index: Extent,
    /// The block that lists filters and other additions.
    pub metaindex: Extent,
    /// What the metaindex lists, by name.
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
    /// Bytes of all values.
    pub value_bytes: u64,
    /// The first and the last user key.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// The smallest and the largest sequence number.
    pub sequences: Option<(u64, u64)>,
    /// Places that are damaged.
    pub damages: u64,
}

impl TableSummary {
    /// Whether the table carries Terrace's own filter.
    pub fn has_table_filter(&self) -> bool {
        self.meta_blocks.iter().any(|(name, _)| TableDump::is_table_filter(name))
    }

    /// The name of the filter policy whose filter the table carries.
    pub fn filter_name(&self) -> Option<&str> {
        self.meta_blocks.iter().find_map(|(name, _)| TableDump::filter_policy_name(name))
    }
}

/// A piece of a write-ahead log, in the order of the file.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogItem<'a> {
    /// A batch. Its operations follow.
    Batch(BatchItem),
    /// An operation of the batch before it.
    Operation(OperationItem<'a>),
    /// Damage; what can be read behind it follows.
    Damage(Damage),
}

/// A batch in a log: one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchItem {
    /// Where the record begins in the file.
    pub offset: u64,
    /// Bytes of the batch.
    pub size: u64,
    /// The sequence number of its first operation.
    pub sequence: u64,
    /// Operations that it says it holds.
    pub operations: u32,
    pub(super) is_mark: bool,
}

impl BatchItem {
    /// Whether this is a durability mark: an empty batch that says that everything before it had
    /// reached the disk. Empty batches of programs are none.
    pub fn is_mark(&self) -> bool {
        self.is_mark
    }
}

/// An operation of a batch.
#[derive(Debug)]
pub struct OperationItem<'a> {
    /// Its place in the history of the database.
    pub sequence: u64,
    /// The user key.
    pub key: &'a [u8],
    /// The new value, or `None` for a deletion.
    pub value: Option<&'a [u8]>,
}

/// A log as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSummary {
    /// Bytes of the file.
    pub file_size: u64,
    /// Batches, marks not counted.
    pub batches: u64,
    /// Durability marks.
    pub marks: u64,
    /// Operations in all batches.
    pub operations: u64,
    /// Deletions among them.
    pub deletions: u64,
    /// The first and the last sequence number of an operation.
    pub sequences: Option<(u64, u64)>,
    /// Whether the end of the file cuts a record off: the writer died while it wrote it.
    pub torn: bool,
    /// Places that are damaged.
    pub damages: u64,
}

/// A piece of a MANIFEST, in the order of the file.
#[derive(Debug)]
#[non_exhaustive]
pub enum ManifestItem {
    /// An edit of the set of tables.
    Edit(EditItem),
    /// Damage; what can be read behind it follows.
    Damage(Damage),
}

/// An edit in a MANIFEST: one record. What it does not mention stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditItem {
    /// Where the record begins in the file.
    pub offset: u64,
    /// The name of the comparator; what is not UTF-8 has replacement characters.
    pub comparator: Option<String>,
    /// Logs with a smaller number are not needed any more.
    pub log_number: Option<u64>,
    /// A log besides, which only old versions of LevelDB had.
    pub previous_log_number: Option<u64>,
    /// The number of the next file.
    pub next_file_number: Option<u64>,
    /// The last sequence number in use.
    pub last_sequence: Option<u64>,
    /// Where the next compaction of a level goes on: level and user key.
    pub compact_pointers: Vec<(usize, Vec<u8>)>,
    /// Tables that are not used any more: level and number.
    pub removed: Vec<(usize, u64)>,
    /// New tables.
    pub added: Vec<AddedTable>,
}

/// A table that an edit adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedTable {
    /// The level that it joins.
    pub level: usize,
    /// The number in its name.
    pub number: u64,
    /// Bytes of the file.
    pub size: u64,
    /// Its first user key.
    pub smallest: Vec<u8>,
    /// Its last user key.
    pub largest: Vec<u8>,
}

/// A MANIFEST as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestSummary {
    /// Bytes of the file.
    pub file_size: u64,
    /// Edits.
    pub edits: u64,
    /// The name of the comparator; what is not UTF-8 has replacement characters.
    pub comparator: Option<String>,
    /// Logs with a smaller number are not needed any more.
    pub log_number: Option<u64>,
    /// The number of the next file.
    pub next_file_number: Option<u64>,
    /// The last sequence number in use.
    pub last_sequence: Option<u64>,
    /// How many tables each level has at the end.
    pub tables: Vec<usize>,
    /// Whether the end of the file cuts a record off: the writer died while it wrote it.
    pub torn: bool,
    /// Places that are damaged.
    pub damages: u64,
}
