//! Removes a database.

use std::path::Path;

use crate::base::error::{ErrorKind, Result};
use crate::env::LockMode;
use crate::version::filename::{self, FileKind};

use crate::db::open::require_path;
use crate::db::options::Options;

/// Removes the database in the directory `path`: every file that bears one of its names, and then
/// the directory, if nothing else is in it and it can be removed: a symbolic link's target or a
/// mount point stays, empty. Fine if there is no database; an empty directory is removed.
///
/// If CURRENT cannot be removed nothing else is either, and the database is as it was; if another
/// file cannot, the rest is, and the first error is returned.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # Db::open("/db", options.clone().create_if_missing(true))?.close()?;
/// destroy("/db", &options)?;
/// assert!(Db::open("/db", options).is_err()); // there is none any more
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// `Busy` if the database is open anywhere; `InvalidArgument` if `path` is empty; `Io` if a file cannot be removed.
pub fn destroy(path: impl AsRef<Path>, options: &Options) -> Result<()> {
    let (dir, env) = (path.as_ref(), options.env.as_ref());
    require_path(dir)?;
    let names = match env.list(dir) {
        Ok(names) => names,
        Err(error)
            if error.kind() == ErrorKind::NotFound
                || error.raw_os_error() == Some(libc::ENOTDIR) =>
        {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let own: Vec<_> = names
        .iter()
        .filter_map(|name| filename::parse(name).map(|(kind, _)| (name, kind)))
        .collect();
    if own.is_empty() {
        // As LevelDB does, for which a directory that it may make is the database's.
        if names.is_empty() {
            let _ = env.remove_dir(dir);
        }
        return Ok(());
    }
    let lock_path = dir.join(filename::LOCK);
    let lock = env.lock(&lock_path, LockMode::Exclusive)?;
    // CURRENT first: whatever happens then, what is left is no database that could be opened half
    // removed.
    let mut ordered = own;
    ordered.sort_by_key(|(_, kind)| *kind != FileKind::Current);
    let mut result = Ok(());
    for (name, kind) in ordered.into_iter().filter(|(_, kind)| *kind != FileKind::Lock) {
        let removed = env.remove(&dir.join(name));
        if kind == FileKind::Current {
            removed?;
        } else {
            result = result.and(removed);
        }
    }
    // A process that waits for the lock finds that its file is gone, and looks again: while this
    // one is held nobody has another.
    match env.remove(&lock_path) {
        Err(error) if error.kind() != ErrorKind::NotFound => result = result.and(Err(error)),
        _ => {}
    }
    drop(lock);
    // The database is gone, whether its directory goes or not.
    if env.list(dir).is_ok_and(|names| names.is_empty()) {
        let _ = env.remove_dir(dir);
    }
    result
}
