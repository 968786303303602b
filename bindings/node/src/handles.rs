//! Open databases: one for each database object, or, with `multithreading`, one for each directory
//! that any number of threads of this process share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use terrace::{Db, Error, Result};

use crate::options::OpenOptions;

/// The shared ones, and how many handles there are to each.
static SHARED: Mutex<Option<HashMap<PathBuf, (Db, usize)>>> = Mutex::new(None);

fn shared() -> MutexGuard<'static, Option<HashMap<PathBuf, (Db, usize)>>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a database, or says in JavaScript's words that there is none.
fn open(path: &Path, options: &OpenOptions) -> Result<Db> {
    Db::open(path, options.engine()).map_err(|error| {
        if options.create_if_missing || path.join("CURRENT").exists() {
            return error;
        }
        let path = path.display();
        Error::invalid_argument(format!("{path}: does not exist (createIfMissing is false)"))
    })
}

/// An open database. Dropping the handle closes what nobody else shares.
pub struct Handle {
    db: Option<Db>,
    /// The directory under which others find the database.
    shared_as: Option<PathBuf>,
}

impl Handle {
    /// Opens the database in `path`. With `multithreading` every later handle of this process to
    /// the same directory, opened that way too, is to the same database, whatever its options.
    ///
    /// # Errors
    /// Those of [`Db::open`].
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Handle> {
        if !options.multithreading {
            let db = open(path, options)?;
            return Ok(Handle { db: Some(db), shared_as: None });
        }
        // Held while opening: another thread that opens the same directory waits and shares.
        let mut shared = shared();
        let handles = shared.get_or_insert_default();
        let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some((db, count)) = handles.get_mut(&name) {
            *count += 1;
            return Ok(Handle { db: Some(db.clone()), shared_as: Some(name) });
        }
        let db = open(path, options)?;
        let name = path.canonicalize().unwrap_or(name);
        handles.insert(name.clone(), (db.clone(), 1));
        Ok(Handle { db: Some(db), shared_as: Some(name) })
    }

    /// The database, for as long as the handle has not been closed.
    pub fn db(&self) -> Option<&Db> {
        self.db.as_ref()
    }

    /// Closes the database, unless others share it.
    ///
    /// # Errors
    /// Those of [`Db::close`]. The database is closed all the same.
    pub fn close(mut self) -> Result<()> {
        self.release()
    }

    fn release(&mut self) -> Result<()> {
        let Some(db) = self.db.take() else { return Ok(()) };
        let Some(name) = self.shared_as.take() else { return db.close() };
        // Held while closing: another thread that opens the directory again finds it unlocked.
        let mut shared = shared();
        let handles = shared.get_or_insert_default();
        match handles.get_mut(&name) {
            Some((_, count)) if *count > 1 => {
                *count -= 1;
                Ok(())
            }
            _ => {
                handles.remove(&name);
                db.close()
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A program that wants to know of errors calls `close`.
        let _ = self.release();
    }
}
