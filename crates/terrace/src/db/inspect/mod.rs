//! Single files taken apart for people: tables, write-ahead logs and MANIFESTs.
//!
//! Nothing but the one file is read, no lock is taken and nothing is changed. Damage is reported as
//! a piece of the file, and what can be read behind it follows; an `Err` means that the file could
//! not be read at all, or is not of the kind that was asked for. Any thread may call these
//! functions; each runs on the caller's.
//!
//! The order of keys is not checked: a table does not know its comparator.
//! [`verify`](crate::verify) checks it.

mod damage_counter;
mod file;
mod log;
mod log_items;
mod manifest;
mod manifest_items;
mod piece;
mod table;
mod table_items;

use std::path::Path;

use crate::base::error::Result;

use crate::db::options::Options;

pub use log::log;
pub use log_items::{BatchItem, LogItem, LogSummary, OperationItem};
pub use manifest::manifest;
pub(super) use manifest::manifest_text;
pub use manifest_items::{AddedTable, AddedValueFile, EditItem, ManifestItem, ManifestSummary};
pub use piece::Damage;
pub use table::{filter_name, has_table_filter, table};
pub use table_items::{
    BlockItem, Effect, EntryItem, Extent, PointedValue, TableItem, TableSummary,
};

/// The kind of a file.
///
/// ```
/// # use terrace::*;
/// # use std::path::Path;
/// use terrace::inspect::{FileKind, kind};
///
/// let manifest = Path::new("fruit.db/MANIFEST-000002");
/// assert_eq!(kind(manifest, &Options::new())?, Some(FileKind::Manifest));
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Sorted entries: `N.ldb`, `N.sst`.
    Table,
    /// A write-ahead log: `N.log`. A value file, `N.vlog`, is a log too: of batches of one put each.
    Log,
    /// The history of the set of tables: `MANIFEST-N`.
    Manifest,
}

/// Returns the kind of the file at `path`, by its name or, failing that, its contents; `None` if
/// neither says.
///
/// ```
/// # use terrace::*;
/// use std::path::Path;
///
/// use terrace::inspect::{FileKind, kind};
///
/// let options = Options::new();
/// assert_eq!(kind(Path::new("fruit.db/000005.ldb"), &options)?, Some(FileKind::Table));
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// `Io` if the file cannot be read.
pub fn kind(path: &Path, options: &Options) -> Result<Option<FileKind>> {
    if let Some(kind) = kind_by_name(path) {
        return Ok(Some(kind));
    }
    if table::is_table(path, options)? {
        return Ok(Some(FileKind::Table));
    }
    // Logs and MANIFESTs have the same frame, and hardly any bytes are both an edit and a batch.
    if manifest::is_manifest(path, options)? {
        return Ok(Some(FileKind::Manifest));
    }
    Ok(log::is_log(path, options)?.then_some(FileKind::Log))
}

fn kind_by_name(path: &Path) -> Option<FileKind> {
    let name = path.file_name()?.to_str()?;
    match name.rsplit_once('.') {
        Some((_, "ldb" | "sst")) => Some(FileKind::Table),
        Some((_, "log" | "vlog")) => Some(FileKind::Log),
        _ => name.starts_with("MANIFEST-").then_some(FileKind::Manifest),
    }
}
