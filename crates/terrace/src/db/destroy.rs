//! Removes a database.

use std::path::Path;

use crate::base::error::{ErrorKind, Result};
use crate::env::LockMode;
use crate::version::filename::{self, FileKind};

use super::options::Options;

/// Removes the database in the directory `path`: every file that bears one of its names, and then the directory, if
/// nothing else is in it. Fine if there is no database.
///
/// Fails with `Busy` if the database is open anywhere.
pub fn destroy(path: impl AsRef<Path>, options: &Options) -> Result<()> {
    let (dir, env) = (path.as_ref(), options.env.as_ref());
    let names = match env.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let own: Vec<_> = names.iter().filter_map(|name| filename::parse(name).map(|(kind, _)| (name, kind))).collect();
    if own.is_empty() {
        return Ok(());
    }
    let lock_path = dir.join(filename::LOCK);
    let lock = env.lock(&lock_path, LockMode::Exclusive)?;
    // CURRENT first: whatever happens then, what is left is no database that could be opened half removed.
    let mut ordered = own;
    ordered.sort_by_key(|(_, kind)| *kind != FileKind::Current);
    for (name, kind) in ordered {
        if kind != FileKind::Lock {
            env.remove(&dir.join(name))?;
        }
    }
    drop(lock);
    match env.remove(&lock_path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if env.list(dir)?.is_empty() {
        env.remove_dir(dir)?;
    }
    Ok(())
}
