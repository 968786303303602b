//! An environment for the files of one open database, which stays with the directory that it has
//! locked: whatever becomes of the working directory, of symbolic links and of the names of
//! directories above.
//!
//! # Invariants
//! 1. A path below the directory's name leads to the directory that held the locked file when it was
//!    locked, or the operation is an error.
//! 2. Where another file has the locked one's place in it the operation is an error: another process
//!    may have locked that. Where the file was merely removed, it is none.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::lock::{FileId, LockedFile, Standing, identify_directory};
use super::{
    CreateOptions, Env, FileLock, Job, LockMode, Priority, RandomAccessFile, ReadAccess,
    WritableFile,
};
use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;

/// See the [module](self).
pub(crate) struct KeptDirectory {
    inner: Arc<dyn Env>,
    locked: LockedFile,
    /// The directory's identity.
    id: FileId,
    /// What the database calls its directory.
    name: PathBuf,
    /// Where that is.
    place: ArcSwap<Place>,
}

struct Place {
    directory: PathBuf,
    lock: PathBuf,
}

impl KeptDirectory {
    /// `inner` for a database that calls its directory `name`, whose file `lock_name` is held by
    /// `lock`. `None` where that cannot be told from other files.
    pub(crate) fn over(
        inner: &Arc<dyn Env>,
        lock: &dyn FileLock,
        name: &Path,
        lock_name: &str,
    ) -> Option<Arc<dyn Env>> {
        let locked = lock.locked_file()?;
        let place = Place { directory: name.to_owned(), lock: name.join(lock_name) };
        if !locked.is_at(&place.lock) || mutated("kept-directory") {
            return None;
        }
        let id = identify_directory(name).ok()??;
        let (inner, name, place) = (inner.clone(), name.to_owned(), ArcSwap::from_pointee(place));
        Some(Arc::new(KeptDirectory { inner, locked, id, name, place }))
    }

    /// Where a path of the database's leads.
    fn path<'a>(&self, path: &'a Path) -> Result<Cow<'a, Path>> {
        let Ok(rest) = path.strip_prefix(&self.name) else { return Ok(Cow::Borrowed(path)) };
        let mut place = self.place.load();
        let standing = self.locked.standing(&place.lock)?;
        if standing != Standing::Here {
            if let Some(moved) = self.moved_to() {
                self.place.store(Arc::new(moved));
                place = self.place.load();
            } else {
                self.check_unlocked(&place, standing)?;
            }
        }
        if place.directory == self.name {
            return Ok(Cow::Borrowed(path));
        }
        // A joined empty path would end with a slash.
        let is_itself = rest.as_os_str().is_empty();
        let path = if is_itself { place.directory.clone() } else { place.directory.join(rest) };
        Ok(Cow::Owned(path))
    }

    /// Where the directory is now, with the locked file in it.
    fn moved_to(&self) -> Option<Place> {
        let lock = self.locked.path()?;
        let directory = lock.parent()?.to_owned();
        let is_it =
            self.locked.is_at(&lock) && identify_directory(&directory).ok()? == Some(self.id);
        is_it.then_some(Place { directory, lock })
    }

    /// Whether the database may go on in a place without the locked file.
    fn check_unlocked(&self, place: &Place, standing: Standing) -> Result<()> {
        let directory = place.directory.display();
        Err(Error::io_message(match identify_directory(&place.directory)? {
            // What comes next finds out as well.
            None => return Ok(()),
            Some(id) if id != self.id => format!(
                "{directory}: the directory of this database is gone, and another one has its name"
            ),
            Some(_) if standing == Standing::Missing => return Ok(()),
            Some(_) => format!(
                "{}: another file than the one that this database has locked; another process may \
                 have the database open",
                place.lock.display()
            ),
        }))
    }
}

impl Env for KeptDirectory {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        self.inner.open_random(&self.path(path)?, access)
    }

    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        self.inner.create(&self.path(path)?, options)
    }

    fn create_log(
        &self,
        path: &Path,
        options: CreateOptions,
        expected_size: u64,
    ) -> Result<Box<dyn WritableFile>> {
        self.inner.create_log(&self.path(path)?, options, expected_size)
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn WritableFile>> {
        self.inner.open_append(&self.path(path)?)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(&self.path(path)?)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.inner.list(&self.path(dir)?)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(&self.path(path)?)
    }

    fn create_dir(&self, path: &Path, mode: u32) -> Result<()> {
        self.inner.create_dir(&self.path(path)?, mode)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.inner.remove_dir(&self.path(path)?)
    }

    fn true_path(&self, dir: &Path) -> PathBuf {
        match self.path(dir) {
            Ok(path) => self.inner.true_path(&path),
            Err(_) => dir.to_owned(),
        }
    }

    fn file_size(&self, path: &Path) -> Result<u64> {
        self.inner.file_size(&self.path(path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(&self.path(from)?, &self.path(to)?)
    }

    fn has_other_names(&self, path: &Path) -> Result<bool> {
        self.inner.has_other_names(&self.path(path)?)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.link(&self.path(from)?, &self.path(to)?)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(&self.path(dir)?)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
        self.inner.lock(&self.path(path)?, mode)
    }

    fn schedule(&self, priority: Priority, job: Job) {
        self.inner.schedule(priority, job);
    }

    fn schedule_after(&self, delay: Duration, job: Job) -> bool {
        self.inner.schedule_after(delay, job)
    }

    fn yield_to_flushes(&self) {
        self.inner.yield_to_flushes();
    }

    fn set_background_threads(&self, count: usize) -> Result<()> {
        self.inner.set_background_threads(count)
    }

    fn now_micros(&self) -> u64 {
        self.inner.now_micros()
    }

    fn wall_clock(&self) -> Duration {
        self.inner.wall_clock()
    }

    fn sleep(&self, duration: Duration) {
        self.inner.sleep(duration);
    }

    fn available_memory(&self) -> Option<u64> {
        self.inner.available_memory()
    }

    fn process_generation(&self) -> u64 {
        self.inner.process_generation()
    }
}
