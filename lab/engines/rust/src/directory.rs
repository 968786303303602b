//! The directory of a database: made by these programs, and emptied only if they made it.
//! `common/directory.h` does the same for the programs in C++.

use std::fs;
use std::io;
use std::path::Path;

use crate::{Failure, Result};

/// The file that says whose the directory is.
const MARK: &str = "LAB-BENCHMARK";
const WORDS: &str = "A benchmark's database. Everything in this directory is removed when the next benchmark begins.\n";

/// Creates it if it is missing, and marks it as ours if it is empty.
pub(crate) fn create(directory: &Path) -> Result<()> {
    let make = || {
        fs::create_dir_all(directory)?;
        if directory.read_dir()?.next().is_some() {
            return Ok(());
        }
        fs::write(directory.join(MARK), WORDS)
    };
    make().map_err(|e| Failure::io("create", directory, &e))
}

/// Removes everything in it but the mark; fails if what is in it may belong to another program.
pub(crate) fn empty(directory: &Path) -> Result<()> {
    let failed = |e: io::Error| Failure::io("empty", directory, &e);
    let holds_something = match directory.read_dir() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(failed(e)),
        Ok(mut entries) => entries.next().is_some(),
    };
    if !holds_something {
        return Ok(());
    }
    if !directory.join(MARK).is_file() {
        let directory = directory.display();
        return Err(Failure::new(format!(
            "{directory} was not made by a benchmark (there is no {MARK} in it), so it is not emptied"
        )));
    }
    remove_all(directory).map_err(failed)
}

fn remove_all(directory: &Path) -> io::Result<()> {
    for entry in directory.read_dir()? {
        let entry = entry?;
        if entry.file_name() == MARK {
            continue;
        }
        let path = entry.path();
        // A link to a directory is removed, not what it leads to.
        if entry.file_type()?.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    Ok(())
}
