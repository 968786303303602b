//! A file that is written beside its place and takes it when it is whole: until then whatever was
//! there stays, and a failure leaves nothing behind.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::directory::{FileType, list_files};
use crate::signals::{self, Registered};

/// Names of what is open already, whatever it is.
const HANDLES: [&str; 3] = ["/dev/stdout", "/dev/stderr", "/dev/fd"];

/// A file that has not taken its place yet. Dropped, it is gone.
pub(crate) struct Draft {
    file: File,
    written_as: TempPath,
    _registered: Registered,
    place: PathBuf,
}

/// Opens `path` for writing. What is no regular file, such as a pipe, is written directly and has
/// no draft.
pub(crate) fn create(path: &Path) -> io::Result<(File, Option<Draft>)> {
    let is_of_process =
        path.starts_with("/proc") && path.parent().is_some_and(|dir| dir.ends_with("fd"));
    let is_handle = is_of_process || HANDLES.iter().any(|handle| path.starts_with(handle));
    // Where a handle leads to a regular file, what others have written there stays.
    let (place, old) = match OpenOptions::new().write(true).append(is_handle).open(path) {
        Ok(file) => {
            let metadata = file.metadata()?;
            if !metadata.is_file() || is_handle {
                return Ok((file, None));
            }
            // Of a symbolic link what it leads to is replaced.
            (path.canonicalize()?, Some(metadata))
        }
        // Not followed, as `cp` does not: the target could be a name in a database.
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            let message = "a symbolic link to a file that does not exist";
            return Err(io::Error::new(ErrorKind::NotFound, message));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => (path.to_owned(), None),
        Err(error) => return Err(error),
    };
    refuse_database_file(&place)?;
    // At no time with more rights than in the end.
    let mut mode = old.as_ref().map_or(0o666, |old| old.mode() & 0o777);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".terrace-").permissions(Permissions::from_mode(mode));
    let (temporary, _registered) = signals::make_temporary(|| {
        builder.tempfile_in(directory_of(&place)).map_err(without_temporary_name)
    })?;
    let (file, written_as) = temporary.into_parts();
    if let Some(old) = old {
        let (owner, group) = (Some(old.uid()), Some(old.gid()));
        if fchown(&file, owner, group).or_else(|_| fchown(&file, None, group)).is_err() {
            // Rights of the old group are not for another one.
            mode &= !0o070;
        }
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    let draft = Draft { file: file.try_clone()?, written_as, place, _registered };
    Ok((file, Some(draft)))
}

/// The kind of the error alone: the user has not asked for a temporary file.
fn without_temporary_name(error: io::Error) -> io::Error {
    error.kind().into()
}

/// Fails if `place` has the name of a file of the database in whose directory it is.
fn refuse_database_file(place: &Path) -> io::Result<()> {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let files = list_files(directory_of(place)).unwrap_or_default();
    let has_database =
        files.iter().any(|file| matches!(file.file_type, FileType::Current | FileType::Manifest));
    match FileType::of(&name) {
        FileType::Foreign => Ok(()),
        _ if !has_database => Ok(()),
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "this is a name of the database's own files",
        )),
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Draft {
    /// Puts the file in its place, all of it on the disk.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        self.written_as.persist(&self.place).map_err(|error| error.error)?;
        // Not every file system syncs directories. After a power loss the old file is there or the
        // new one, whole.
        let _ = File::open(directory_of(&self.place)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}
