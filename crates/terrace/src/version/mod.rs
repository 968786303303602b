//! Which files make up the database, level by level, and how that is recorded.
//!
//! A [`Version`](version::Version) is an immutable set of table files. A
//! [`VersionEdit`](edit::VersionEdit) is the difference between two versions and one record of the
//! MANIFEST; [`VersionSet`](version_set::VersionSet) writes edits and applies them.
//! [`TableSet`](table_set::TableSet) keeps tables open while they take little memory, and few
//! descriptors.

pub(crate) mod edit;
pub(crate) mod file_meta;
pub(crate) mod filename;
pub(crate) mod kept_filter;
pub(crate) mod level;
pub(crate) mod live_bytes;
pub(crate) mod manifest;
mod overlap;
mod range_files;
mod table_files;
mod table_ring;
pub(crate) mod table_set;
pub(crate) mod value_files;
pub(crate) mod value_reader;
#[allow(clippy::module_inception)]
pub(crate) mod version;
pub(crate) mod version_set;

/// The number of levels. Part of LevelDB's format: an edit that names a deeper one is refused.
pub(crate) const NUM_LEVELS: usize = 7;
