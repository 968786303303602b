//! Operations that a database meets between opens, and those that make other files of it: repairs,
//! read-only opens, checkpoints, tables of entries.

use std::path::{Path, PathBuf};

use terrace::{Db, Env, ErrorKind, IngestOptions, Options, TableWriter, destroy, repair};

use crate::model::Pair;

/// Repairs a healthy database that is closed.
///
/// # Errors
/// A message if the repair fails or puts something aside.
pub fn repair_healthy(path: &Path, options: &Options) -> Result<(), String> {
    let report = repair(path, options).map_err(|error| format!("repair: {error}"))?;
    match (&report.problems[..], &report.moved[..]) {
        ([], []) => Ok(()),
        _ => Err(format!("the repair of a healthy database: {report:?}")),
    }
}

/// Opens a closed database for reading alone and hands it to `look`. Writes must be refused.
///
/// # Errors
/// A message if something does not hold, or that of `look`.
pub fn open_read_only(
    path: &Path,
    options: &Options,
    look: impl FnOnce(&Db) -> Result<(), String>,
) -> Result<(), String> {
    let db = Db::open(path, options.clone().read_only(true))
        .map_err(|error| format!("read-only open: {error}"))?;
    match db.put("refused", "") {
        Err(error) if error.kind() == ErrorKind::NotSupported => (),
        other => {
            return Err(format!("a put into a database that is open for reading alone: {other:?}"));
        }
    }
    look(&db).map_err(|error| format!("open for reading alone: {error}"))?;
    db.close().map_err(|error| format!("close for reading alone: {error}"))
}

/// Makes a checkpoint beside the database, hands it, open, to `look`, and removes it.
///
/// # Errors
/// A message if something fails, or that of `look`.
pub fn checkpoint(
    db: &Db,
    options: &Options,
    look: impl FnOnce(&Db) -> Result<(), String>,
) -> Result<(), String> {
    let path = beside(db.path(), "checkpoint");
    db.checkpoint(&path).map_err(|error| format!("checkpoint: {error}"))?;
    let copy = Db::open(&path, options.clone())
        .map_err(|error| format!("open of a checkpoint: {error}"))?;
    look(&copy).map_err(|error| format!("in a checkpoint: {error}"))?;
    copy.close().map_err(|error| format!("close of a checkpoint: {error}"))?;
    destroy(&path, options).map_err(|error| format!("destroy of a checkpoint: {error}"))
}

/// Writes `entries`, in the order of keys and each key once, to a table beside the database and
/// takes it in.
///
/// # Errors
/// A message if something fails.
pub fn ingest(
    db: &Db,
    env: &dyn Env,
    options: &Options,
    entries: &[Pair],
    move_files: bool,
) -> Result<(), String> {
    let path = beside(db.path(), "table");
    let written = (|| {
        let mut writer = TableWriter::create(&path, options)?;
        entries.iter().try_for_each(|(key, value)| writer.put(key, value))?;
        writer.finish()
    })();
    written.map_err(|error| format!("table of entries: {error}"))?;
    let taken = db.ingest_with(&[&path], IngestOptions::new().move_files(move_files));
    taken.map_err(|error| format!("ingest: {error}"))?;
    // What moved is gone.
    match (env.exists(&path), move_files) {
        (Ok(true), false) => env.remove(&path).map_err(|error| error.to_string()),
        (Ok(false), true) => Ok(()),
        (left, _) => {
            Err(format!("after an ingest with move_files {move_files} the file is there: {left:?}"))
        }
    }
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-{what}"));
    name.into()
}
