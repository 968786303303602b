//! The directory `lost/` of a database: what may hold something that is nowhere else, and would do
//! harm where it was. Repair and people look there; the engine only puts things in.
//!
//! Names and contents are durable when a function returns `Ok`.

use std::path::{Path, PathBuf};

use crate::base::error::Result;
use crate::env::{Env, RandomAccessFile, ReadAccess};
use crate::version::filename::LOST_DIR;

use crate::db::db_impl::file_copy::{PIECE, copy_file, each_piece, sync_end};
use crate::db::db_impl::files::Files;

/// Moves a file there. Returns where it is now, seen from the database's directory.
pub(in crate::db) fn move_to_lost(files: &Files, name: &str) -> Result<String> {
    let lost = lost_dir(files)?;
    let kept_as = free_name(files.env.as_ref(), &lost, name)?;
    files.env.rename(&files.path(name), &lost.join(&kept_as))?;
    sync_lost(files, &lost)?;
    Ok(format!("{LOST_DIR}/{kept_as}"))
}

/// Copies a file there, unless an equal one is there under its name or a numbered one. Returns
/// where.
pub(in crate::db) fn copy_to_lost(files: &Files, name: &str) -> Result<String> {
    let (lost, path) = (lost_dir(files)?, files.path(name));
    let original = files.env.open_random(&path, ReadAccess::Pread)?;
    let mut is_there = false;
    let kept_as = first_name(name, |name| {
        let there = lost.join(name);
        // One that cannot be read is no copy.
        let is_taken = files.env.exists(&there)?;
        is_there = is_taken && is_copy(files, &*original, &there).unwrap_or(false);
        Ok(is_there || !is_taken)
    })?;
    if !is_there {
        let unfinished = lost.join(format!("{name}.unfinished"));
        // A crash may have left one.
        let _ = files.env.remove(&unfinished);
        let copied = copy_file(files, &path, &unfinished)
            .and_then(|_| files.env.rename(&unfinished, &lost.join(&kept_as)));
        if copied.is_err() {
            // What there is of it takes the space that the database needs.
            let _ = files.env.remove(&unfinished);
        }
        copied?;
    }
    sync_lost(files, &lost)?;
    Ok(format!("{LOST_DIR}/{kept_as}"))
}

/// Gives a file a second name there. Returns it.
pub(in crate::db) fn link_to_lost(files: &Files, name: &str) -> Result<String> {
    let lost = lost_dir(files)?;
    let kept_as = free_name(files.env.as_ref(), &lost, name)?;
    // Its end may be a killed process's, which had not synced it.
    sync_end(files.env.as_ref(), &files.path(name))?;
    files.env.link(&files.path(name), &lost.join(&kept_as))?;
    sync_lost(files, &lost)?;
    Ok(format!("{LOST_DIR}/{kept_as}"))
}

fn lost_dir(files: &Files) -> Result<PathBuf> {
    let lost = files.path(LOST_DIR);
    files.env.create_dir(&lost, files.options.dir_mode)?;
    Ok(lost)
}

/// The new names before the old ones are gone for good.
fn sync_lost(files: &Files, lost: &Path) -> Result<()> {
    files.env.sync_dir(lost)?;
    files.env.sync_dir(&files.dir)
}

/// Whether the file at `path` holds what `original` does.
fn is_copy(files: &Files, original: &dyn RandomAccessFile, path: &Path) -> Result<bool> {
    let copy = files.env.open_random(path, ReadAccess::Pread)?;
    let mut buffer = vec![0; PIECE];
    let is_same = |offset, piece: &[u8]| {
        let read = copy.read_at(offset, &mut buffer[..piece.len()])?;
        Ok(buffer[..read] == *piece)
    };
    Ok(copy.size() == original.size() && each_piece(original, is_same)?)
}

/// `name`, or with a number behind it if that is taken: a database of the same name was there
/// before, perhaps.
pub(in crate::db) fn free_name(env: &dyn Env, lost: &Path, name: &str) -> Result<String> {
    first_name(name, |name| Ok(!env.exists(&lost.join(name))?))
}

/// The first name that will do of those that a file called `name` may have there.
fn first_name(name: &str, mut will_do: impl FnMut(&str) -> Result<bool>) -> Result<String> {
    let mut candidate = name.to_owned();
    let mut taken = 0;
    while !will_do(&candidate)? {
        taken += 1;
        candidate = format!("{name}.{taken}");
    }
    Ok(candidate)
}
