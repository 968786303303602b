//! The pieces of a MANIFEST.

use super::piece::Damage;

/// A piece of a MANIFEST, in the order of the file.
///
/// ```
/// # use terrace::*;
/// # use std::ops::ControlFlow;
/// # use std::path::Path;
/// # let env: std::sync::Arc<dyn Env> = std::sync::Arc::new(MemEnv::new());
/// # let options = Options::new().create_if_missing(true).env(env.clone());
/// # let db = Db::open("/db", options.clone())?;
/// # db.put("apple", "red")?;
/// # db.flush()?;
/// # let mut names = env.list(Path::new("/db"))?.into_iter();
/// # let path = Path::new("/db").join(names.find(|name| name.starts_with("MANIFEST")).unwrap());
/// use terrace::inspect::{self, ManifestItem};
///
/// let (mut edits, mut damages) = (0, 0);
/// inspect::manifest(&path, &options, &mut |item| {
///     match item {
///         ManifestItem::Edit(_) => edits += 1,
///         ManifestItem::Damage(_) => damages += 1,
///         _ => {}
///     }
///     ControlFlow::Continue(())
/// })?;
/// assert!(edits > 0 && damages == 0);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ManifestItem {
    /// An edit of the set of tables.
    Edit(EditItem),
    /// Damage; what can be read behind it follows.
    Damage(Damage),
}

/// An edit in a MANIFEST: one record. What it does not mention stays as it was.
///
/// ```
/// use terrace::inspect::EditItem;
///
/// fn is_compaction(edit: &EditItem) -> bool {
///     !edit.added.is_empty() && !edit.removed.is_empty()
/// }
/// ```
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
    /// Value files that come, and those that have grown, with their new sizes.
    pub added_value_files: Vec<AddedValueFile>,
}

/// A table that an edit adds.
///
/// ```
/// use terrace::inspect::AddedTable;
///
/// fn file_name(table: &AddedTable) -> String {
///     format!("{:06}.ldb", table.number)
/// }
/// ```
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
    /// The value files that it points into, and how many bytes of values in each.
    pub values: Vec<(u64, u64)>,
    /// The compressions of its blocks that LevelDB does not read: `lz4`, `zstd`, and
    /// `zstd-dictionary` for those that need the dictionary of their table.
    pub compressions: Vec<&'static str>,
}

/// A value file that an edit adds, or that has grown with it.
///
/// ```
/// use terrace::inspect::AddedValueFile;
///
/// fn file_name(file: &AddedValueFile) -> String {
///     format!("{:06}.vlog", file.number)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedValueFile {
    /// The number in its name.
    pub number: u64,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of the values in it.
    pub value_bytes: u64,
}

/// A MANIFEST as a whole.
///
/// ```
/// # use terrace::*;
/// # use std::ops::ControlFlow;
/// # use std::path::Path;
/// # let env: std::sync::Arc<dyn Env> = std::sync::Arc::new(MemEnv::new());
/// # let options = Options::new().create_if_missing(true).env(env.clone());
/// # let db = Db::open("/db", options.clone())?;
/// # db.put("apple", "red")?;
/// # db.flush()?;
/// # let mut names = env.list(Path::new("/db"))?.into_iter();
/// # let path = Path::new("/db").join(names.find(|name| name.starts_with("MANIFEST")).unwrap());
/// use terrace::inspect;
///
/// let summary = inspect::manifest(&path, &options, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!(summary.comparator.as_deref(), Some("leveldb.BytewiseComparator"));
/// assert_eq!(summary.tables.iter().sum::<usize>(), 1);
/// # Ok::<_, terrace::Error>(())
/// ```
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
