//! Hard-links a file, or copies it.

use std::path::Path;

use crate::base::error::{Error, ErrorKind, Result};
use crate::env::{CreateOptions, Env, RandomAccessFile, ReadAccess, WritableFile};

use crate::db::db_impl::files::Files;

/// Bytes that are read at once.
pub(in crate::db) const PIECE: usize = 1 << 20;

/// Gives a file a second name. `None`, and nothing is there, where that cannot be: on another
/// file system, without the right. The link is no more durable than the file.
pub(in crate::db) fn try_link(files: &Files, from: &Path, to: &Path) -> Option<()> {
    let linked = files.env.link(from, to);
    if linked.is_err() {
        // It may be there all the same.
        let _ = files.env.remove(to);
    }
    linked.ok()
}

/// Makes a file durable, whose end a process may have written that was killed before it synced it.
/// An environment that cannot append has no such end.
pub(in crate::db) fn sync_end(env: &dyn Env, path: &Path) -> Result<()> {
    match env.open_append(path) {
        Err(error) if error.kind() == ErrorKind::NotSupported => Ok(()),
        file => sync_and_close(file?),
    }
}

pub(in crate::db) fn sync_and_close(mut file: Box<dyn WritableFile>) -> Result<()> {
    file.sync()?;
    file.close()
}

/// Copies a file, durably up to its name. There must be none of that name.
pub(in crate::db) fn copy_file(files: &Files, from: &Path, to: &Path) -> Result<()> {
    copy_first(files, from, to, None)
}

/// [`copy_file`] of the first `length` bytes alone: others may be appending.
pub(in crate::db) fn copy_first(
    files: &Files,
    from: &Path,
    to: &Path,
    length: Option<u64>,
) -> Result<()> {
    let source = files.env.open_random(from, ReadAccess::Pread)?;
    let length = length.unwrap_or(source.size());
    let mut copy =
        files.env.create(to, CreateOptions { mode: files.options.file_mode, exclusive: true })?;
    let mut copied = 0;
    each_piece(&*source, |_, piece| {
        let wanted = usize::try_from(length - copied).unwrap_or(usize::MAX).min(piece.len());
        copied += wanted as u64;
        copy.append(&piece[..wanted])?;
        Ok(copied < length)
    })?;
    if copied != length {
        return Err(Error::corruption(format!("{}: not as long as it was", from.display())));
    }
    copy.sync()?;
    copy.close()
}

/// Shows a file piece by piece, for as long as `look` says so. Returns whether it did to the end.
pub(in crate::db) fn each_piece(
    file: &dyn RandomAccessFile,
    mut look: impl FnMut(u64, &[u8]) -> Result<bool>,
) -> Result<bool> {
    let mut buffer = vec![0; PIECE];
    let mut offset = 0;
    loop {
        let read = file.read_at(offset, &mut buffer)?;
        if read == 0 {
            return Ok(true);
        }
        if !look(offset, &buffer[..read])? {
            return Ok(false);
        }
        offset += read as u64;
    }
}
