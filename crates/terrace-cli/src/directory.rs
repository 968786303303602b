//! The files in a database's directory, as far as their names tell.

use std::path::Path;

use serde::Serialize;

use crate::failure::{Failure, Result};

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
