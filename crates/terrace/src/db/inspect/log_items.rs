//! The pieces of a write-ahead log.

use super::piece::Damage;

/// A piece of a write-ahead log, in the order of the file.
///
/// ```
/// # use terrace::*;
/// # use std::ops::ControlFlow;
/// # use std::path::Path;
/// # let env: std::sync::Arc<dyn Env> = std::sync::Arc::new(MemEnv::new());
/// # let options = Options::new().create_if_missing(true).env(env.clone());
/// # let db = Db::open("/db", options.clone())?;
/// # db.put("apple", "red")?;
/// # let mut names = env.list(Path::new("/db"))?.into_iter();
/// # let path = Path::new("/db").join(names.find(|name| name.ends_with(".log")).unwrap());
/// use terrace::inspect::{self, LogItem};
///
/// let (mut batches, mut operations) = (0, 0);
/// inspect::log(&path, &options, &mut |item| {
///     match item {
///         LogItem::Batch(batch) if !batch.is_mark() => batches += 1,
///         LogItem::Operation(_) => operations += 1,
///         _ => {}
///     }
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!((batches, operations), (1, 1));
/// # Ok::<_, terrace::Error>(())
/// ```
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
///
/// ```
/// use terrace::inspect::BatchItem;
///
/// fn sequences(batch: &BatchItem) -> std::ops::Range<u64> {
///     batch.sequence..batch.sequence + u64::from(batch.operations)
/// }
/// ```
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
    ///
    /// ```
    /// use terrace::inspect::BatchItem;
    ///
    /// fn shown(batch: &BatchItem) -> &str {
    ///     if batch.is_mark() { "everything before is durable" } else { "a batch" }
    /// }
    /// ```
    pub fn is_mark(&self) -> bool {
        self.is_mark
    }
}

/// An operation of a batch.
///
/// ```
/// use terrace::inspect::OperationItem;
///
/// fn is_deletion(operation: &OperationItem) -> bool {
///     operation.value.is_none()
/// }
/// ```
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
///
/// ```
/// # use terrace::*;
/// # use std::ops::ControlFlow;
/// # use std::path::Path;
/// # let env: std::sync::Arc<dyn Env> = std::sync::Arc::new(MemEnv::new());
/// # let options = Options::new().create_if_missing(true).env(env.clone());
/// # let db = Db::open("/db", options.clone())?;
/// # db.put("apple", "red")?;
/// # let mut names = env.list(Path::new("/db"))?.into_iter();
/// # let path = Path::new("/db").join(names.find(|name| name.ends_with(".log")).unwrap());
/// use terrace::inspect;
///
/// let summary = inspect::log(&path, &options, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!((summary.batches, summary.deletions, summary.damages), (1, 0, 0));
/// # Ok::<_, terrace::Error>(())
/// ```
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
