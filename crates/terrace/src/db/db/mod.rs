//! The database as its users hold it.

mod loads;
pub(in crate::db) mod pop;
mod reads;
mod transactions;
mod updates;
mod upkeep;
mod writes;

use std::path::Path;
use std::sync::Arc;

use crate::base::error::Result;

use crate::db::db_impl::DbImpl;
use crate::db::handle::Handle;
use crate::db::open;
use crate::db::open::close::close;
use crate::db::options::Options;
use crate::db::transaction::prepared_recovery;

/// An open database.
///
/// Cheap to clone; clones are the same database. Any number of threads may read and write through
/// one or many clones at once: readers never wait for writers. The last clone to be dropped closes
/// the database; [`Db::close`] does so at once and reports errors.
///
/// # Durability
/// A write that has returned survives the death of the process. With
/// [`WriteOptions::sync`](crate::WriteOptions::sync) it survives the death of the machine, and so
/// does every write before it. After any crash the database is a prefix of its history of writes,
/// batches whole.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// db.put("apple", "red")?;
/// let other = db.clone(); // the same database
/// std::thread::spawn(move || other.put("banana", "yellow")).join().unwrap()?;
/// assert_eq!(db.iter()?.count(), 2);
/// db.close()?;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

impl Db {
    /// Opens the database in the directory `path`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// let db = Db::open("fruit.db", options.clone().create_if_missing(true))?;
    /// // A database has one owner at a time.
    /// assert_eq!(Db::open("fruit.db", options).unwrap_err().kind(), ErrorKind::Busy);
    /// db.close()?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if there is none and `create_if_missing` is not set, if `path` is empty, or
    /// if an option is out of range or the comparator is not the one the database was created with;
    /// `Busy` if it is open already, here or in another process, Terrace or LevelDB; `Corruption` if
    /// data that is known to have been durable is damaged; `Io`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let core = open::open(path.as_ref(), options)?;
        let db = Db { handle: Arc::new(Handle::new(core)) };
        prepared_recovery::recover(db.core())?;
        Ok(db)
    }

    #[inline]
    pub(in crate::db) fn core(&self) -> &Arc<DbImpl> {
        self.handle.core()
    }

    /// The directory of the database: the path that it was opened with, made absolute and without
    /// symbolic links where the environment knows one. What happens to links or to the working
    /// directory does not move an open database. If the directory is renamed meanwhile, the database
    /// goes on in it; this is still the path that it had, and paths below it that the database is
    /// given, as for a checkpoint, lead to where the directory is now.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// assert_eq!(db.path(), std::path::Path::new("/db"));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        self.handle.dir()
    }

    /// Stops background work, closes every file and releases the lock, and reports what went wrong.
    ///
    /// Other clones, keyspaces, snapshots and transactions fail with
    /// [`Closed`](crate::ErrorKind::Closed) from then on. Cursors and iterators that are open go on
    /// with what they see.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.close()?; // dropping it closes it too, and keeps errors to itself
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of what a close writes and of background work that no call was told of.
    pub fn close(self) -> Result<()> {
        close(self.core())
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.handle.fmt(f)
    }
}
