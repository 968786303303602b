//! The files in a database's directory, as far as their names tell.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Serialize;
use terrace::Options;
use terrace::inspect::{self, EditItem, ManifestItem};

use crate::failure::{Failure, Result};

/// RocksDB begins a MANIFEST with a few edits for each column family, which have tags of its own.
const EDITS_TO_KNOW_ROCKSDB: u32 = 8;

/// The kind of a file in a database's directory, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileType {
    Table,
    Log,
    /// Values that tables point at.
    Values,
    Manifest,
    Current,
    Lock,
    Info,
    Temporary,
    /// Not a file of LevelDB's: it survives whatever the engine does.
    Foreign,
}

impl FileType {
    pub(crate) fn of(name: &str) -> Self {
        let is_number =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match name {
            "CURRENT" => return FileType::Current,
            "LOCK" => return FileType::Lock,
            "LOG" | "LOG.old" => return FileType::Info,
            _ => {}
        }
        if name.strip_prefix("MANIFEST-").is_some_and(is_number) {
            return FileType::Manifest;
        }
        match name.split_once('.') {
            Some((number, "ldb" | "sst")) if is_number(number) => FileType::Table,
            Some((number, "log")) if is_number(number) => FileType::Log,
            Some((number, "vlog")) if is_number(number) => FileType::Values,
            Some((number, "dbtmp")) if is_number(number) => FileType::Temporary,
            _ => FileType::Foreign,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            FileType::Table => "table",
            FileType::Log => "log",
            FileType::Values => "values",
            FileType::Manifest => "manifest",
            FileType::Current => "current",
            FileType::Lock => "lock",
            FileType::Info => "info",
            FileType::Temporary => "temporary",
            FileType::Foreign => "foreign",
        }
    }
}

/// A file of the directory.
pub(crate) struct ListedFile {
    pub(crate) name: String,
    pub(crate) file_type: FileType,
    pub(crate) size: u64,
}

impl ListedFile {
    /// The number in a table's name.
    pub(crate) fn table_number(&self) -> Option<u64> {
        match self.file_type {
            FileType::Table => self.name.split_once('.')?.0.parse().ok(),
            _ => None,
        }
    }
}

/// The MANIFEST in use, if LevelDB refuses it by the name of its comparator (docs/format.md).
pub(crate) fn extended_manifest(path: &Path) -> Result<Option<PathBuf>> {
    let current = path.join("CURRENT");
    let name = fs::read_to_string(&current)
        .map_err(|error| Failure::other(format!("{}: {error}", current.display())))?;
    let manifest = path.join(name.trim_end());
    let mut is_extended = false;
    inspect::manifest(&manifest, &Options::new(), &mut |item| {
        // The first name counts: one that LevelDB refuses begins a MANIFEST of its own.
        let ManifestItem::Edit(EditItem { comparator: Some(name), .. }) = item else {
            return ControlFlow::Continue(());
        };
        is_extended = name.starts_with("terrace.extended.");
        ControlFlow::Break(())
    })?;
    Ok(is_extended.then_some(manifest))
}

/// Whether the directory is a database of RocksDB's: its MANIFEST has edits that only RocksDB
/// writes, which an open could take for a torn end. Where there is none, its other files tell.
pub(crate) fn is_rocksdbs(path: &Path) -> bool {
    let current = fs::read_to_string(path.join("CURRENT")).unwrap_or_default();
    let manifest = path.join(current.trim_end());
    if !current.is_empty() && !current.contains('/') && manifest.is_file() {
        return is_rocksdbs_manifest(&manifest);
    }
    let files = list_files(path).unwrap_or_default();
    let is_options = |file: &ListedFile| {
        let number = file.name.strip_prefix("OPTIONS-").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    files.iter().any(|file| file.name == "IDENTITY") && files.iter().any(is_options)
}

fn is_rocksdbs_manifest(path: &Path) -> bool {
    let (mut is_rocksdbs, mut edits) = (false, 0);
    // A file that cannot be read says nothing.
    let _ = inspect::manifest(path, &Options::new(), &mut |item| {
        edits += 1;
        if let ManifestItem::Damage(damage) = item {
            is_rocksdbs = rocksdb_tag(&damage.message);
        }
        match is_rocksdbs || edits == EDITS_TO_KNOW_ROCKSDB {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    is_rocksdbs
}

/// Whether damage in a MANIFEST is a tag of RocksDB's version edits: the smallest log that
/// two-phase commit needs (10), those of files and column families (100 to 105, 200 to 203 and
/// later ones), and those that readers may ignore (with the bit 2^13).
fn rocksdb_tag(message: &str) -> bool {
    let tag = message.split_once("unknown tag ").map(|(_, rest)| rest);
    let tag = tag.and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    tag.is_some_and(|tag| tag == 10 || (100..=300).contains(&tag) || tag & 1 << 13 != 0)
}

/// The files of a directory, by name.
pub(crate) fn list_files(path: &Path) -> Result<Vec<ListedFile>> {
    let failed = |error| Failure::io("list", path, &error);
    let mut files = Vec::new();
    for entry in path.read_dir().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // A file may go while it is listed: another process may have the database open.
        let Ok(metadata) = entry.metadata() else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        if metadata.is_file() {
            files.push(ListedFile { file_type: FileType::of(&name), size: metadata.len(), name });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}
