//! The lock of a database: between processes and within this one.
//!
//! Between processes it is a lock on the whole of `LOCK` that conflicts with the POSIX lock of
//! LevelDB, both ways: on Linux the lock of an open file description, elsewhere a POSIX lock too.
//! Within the process a table of (device, inode) is consulted before the file is opened.
//!
//! The system drops a POSIX lock when its process closes any descriptor of the file. So the process
//! has one descriptor of each locked file, however many readers share the lock. And a LevelDB in
//! the same process, which is not in the table, keeps its lock: a descriptor that met a lock of
//! this process is not closed but kept for the next attempt.
//!
//! # Invariants
//! 1. The table has an entry, with the descriptor, for a file as long as a lock on it is held in
//!    this process.
//! 2. A child of a fork starts with an empty table, and without the descriptors: the locks are its
//!    parent's, and end with it. Dropping an inherited lock does nothing.
//! 3. No descriptor of a file is closed while another descriptor of this process may hold a POSIX
//!    lock on it. At most one descriptor for each file and mode is kept for that.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use super::fork_descriptors;
use super::posix_file::open_regular;
use super::system_call::{LockRequest, lock_holder, set_lock};
use super::{FileLock, LockMode};
use crate::base::error::{Error, Result};
use crate::base::fork::generation;
use crate::base::locks::plain::Mutex;
use crate::base::mutation::mutated;
use arc_swap::ArcSwap;

/// The holders of a file in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders {
    exclusive: bool,
    shared: usize,
}

impl Holders {
    pub(super) fn allow(self, mode: LockMode) -> bool {
        !self.exclusive && (mode == LockMode::Shared || self.shared == 0)
    }

    pub(super) fn add(&mut self, mode: LockMode) {
        match mode {
            LockMode::Exclusive => self.exclusive = true,
            LockMode::Shared => self.shared += 1,
        }
    }

    pub(super) fn remove(&mut self, mode: LockMode) {
        match mode {
            LockMode::Exclusive => self.exclusive = false,
            LockMode::Shared => self.shared -= 1,
        }
    }
}

// The words of both begin as LevelDB's: programs look for them.

pub(super) fn busy_here(path: &Path) -> Error {
    Error::busy(format!("lock {}: already held by process (this one)", path.display()))
}

fn busy_elsewhere(path: &Path) -> Error {
    Error::busy(format!(
        "lock {}: Resource temporarily unavailable (another process holds it)",
        path.display()
    ))
}

/// A file's identity, whatever its name.
pub(super) type FileId = (u64, u64);

struct Table {
    generation: u64,
    locks: Mutex<Locks>,
}

/// A locked file.
struct Held {
    holders: Holders,
    /// In a child of a fork the number may be another file's, so nothing closes it but a drop of
    /// the last lock.
    file: ManuallyDrop<File>,
}

#[derive(Default)]
struct Locks {
    held: HashMap<FileId, Held>,
    /// Descriptors that may not be closed, see the module's third invariant. An open one keeps its
    /// file's identity from being given to another file.
    kept: Vec<(FileId, LockMode, File)>,
}

impl Locks {
    /// One more holder of a file that this process has locked. `None` if it has not.
    fn join(&mut self, id: FileId, mode: LockMode) -> Option<bool> {
        let held = self.held.get_mut(&id)?;
        let is_allowed = held.holders.allow(mode);
        if is_allowed {
            held.holders.add(mode);
        }
        Some(is_allowed)
    }

    /// The descriptor that an earlier attempt had to keep.
    fn take_kept(&mut self, id: FileId, mode: LockMode) -> Option<File> {
        let at = self.kept.iter().position(|kept| (kept.0, kept.1) == (id, mode))?;
        Some(self.kept.swap_remove(at).2)
    }
}

impl Table {
    fn new() -> Arc<Table> {
        Arc::new(Table { generation: generation(), locks: Mutex::default() })
    }
}

static TABLE: LazyLock<ArcSwap<Table>> = LazyLock::new(|| ArcSwap::new(Table::new()));

fn table() -> Arc<Table> {
    let table = TABLE.load_full();
    if table.generation == generation() {
        return table;
    }
    TABLE.rcu(
        |current| if current.generation == generation() { current.clone() } else { Table::new() },
    );
    TABLE.load_full()
}

/// A held lock.
struct PosixLock {
    id: FileId,
    mode: LockMode,
    table: Arc<Table>,
}

impl FileLock for PosixLock {
    fn locked_file(&self) -> Option<LockedFile> {
        Some(LockedFile { id: self.id, table: self.table.clone() })
    }
}

/// A file that is locked, whatever its name is by now. Of a [`PosixEnv`](super::PosixEnv), and of
/// environments that take their locks of one.
pub struct LockedFile {
    id: FileId,
    table: Arc<Table>,
}

impl fmt::Debug for LockedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockedFile").field(&self.id).finish()
    }
}

/// What lies where a locked file lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The file.
    Here,
    Other,
    Missing,
}

impl LockedFile {
    /// Whether it is what lies at `path`.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        matches!(self.standing(path), Ok(Standing::Here))
    }

    /// What lies at `path`.
    pub(super) fn standing(&self, path: &Path) -> Result<Standing> {
        Ok(match identify(path)? {
            None => Standing::Missing,
            Some(id) if id == self.id => Standing::Here,
            // File systems may number their files anew.
            Some(id) if self.with_file(identify_open) == Some(Some(id)) => Standing::Here,
            Some(_) => Standing::Other,
        })
    }

    /// The file's path, if the system tells it and the file is still locked by this process; with
    /// words behind it if it was removed, and of another file where the system's word for it has come
    /// to mean that.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.with_file(named)?
    }

    /// What `look` sees of the file, while this process has it locked.
    fn with_file<T>(&self, look: impl FnOnce(&File) -> T) -> Option<T> {
        if self.table.generation != generation() {
            return None;
        }
        let locks = self.table.locks.lock();
        Some(look(&locks.held.get(&self.id)?.file))
    }
}

/// The identity of what a path leads to; `None` if there is nothing.
pub(super) fn identify_directory(path: &Path) -> Result<Option<FileId>> {
    match std::fs::metadata(path) {
        Ok(info) => Ok(Some((info.dev(), info.ino()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("stat", path, error)),
    }
}

fn identify_open(file: &File) -> Option<FileId> {
    file.metadata().ok().map(|info| (info.dev(), info.ino()))
}

#[cfg(target_os = "linux")]
fn named(file: &File) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

#[cfg(not(target_os = "linux"))]
fn named(_file: &File) -> Option<PathBuf> {
    None
}

impl Drop for PosixLock {
    fn drop(&mut self) {
        // In a child the lock is the parent's. The fork has closed the descriptor.
        if self.table.generation != generation() {
            return;
        }
        let mut locks = self.table.locks.lock();
        let Entry::Occupied(mut entry) = locks.held.entry(self.id) else { return };
        let held = entry.get_mut();
        held.holders.remove(self.mode);
        if held.holders != Holders::default() {
            return;
        }
        let file = ManuallyDrop::into_inner(entry.remove().file);
        // Released rather than left to closing: a child that still has the descriptor would keep
        // the lock alive.
        let _ = set_lock(file.as_fd(), LockRequest::Release);
        fork_descriptors::withdraw(file.as_raw_fd());
    }
}

/// The lock of a reader where there is no file to lock, as on read-only media.
pub(super) struct NoLock;

impl FileLock for NoLock {}

/// Takes the lock on `path`. See [`Env::lock`](super::Env::lock).
pub(super) fn lock(path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
    let table = table();
    // Held throughout: nothing in here waits, and two opens must not race between looking and
    // locking.
    let mut locks = table.locks.lock();
    loop {
        let known = identify(path)?;
        match known.and_then(|id| Some((id, locks.join(id, mode)?))) {
            Some((id, true)) => {
                drop(locks);
                return Ok(Box::new(PosixLock { id, mode, table }));
            }
            Some((_, false)) => return Err(busy_here(path)),
            None => {}
        }
        let file = match known.and_then(|id| locks.take_kept(id, mode)) {
            Some(file) => file,
            None => match open(path, mode) {
                Err(error)
                    if mode == LockMode::Shared && error.raw_os_error() == Some(libc::ENOENT) =>
                {
                    return Ok(Box::new(NoLock));
                }
                opened => opened?,
            },
        };
        let info = file.metadata().map_err(|e| Error::io("stat", path, e))?;
        let id = (info.dev(), info.ino());
        if locks.held.contains_key(&id) {
            // The name has come to another file, which is locked.
            locks.kept.push((id, mode, file));
            return Err(busy_here(path));
        }
        let request = match mode {
            LockMode::Exclusive => LockRequest::Exclusive,
            LockMode::Shared => LockRequest::Shared,
        };
        let locked = set_lock(file.as_fd(), request);
        if !matches!(locked, Ok(true)) && !mutated("lock") {
            // A lock that vanished meanwhile may be back, and of this process, before the
            // descriptor is closed.
            let holder = lock_holder(file.as_fd(), request);
            let is_elsewhere =
                holder.is_some_and(|process| process.cast_unsigned() != std::process::id());
            if !is_elsewhere && !mutated("refused-descriptors") {
                locks.kept.push((id, mode, file));
            }
            return Err(match locked {
                Err(error) => Error::io("lock", path, error),
                Ok(_) if is_elsewhere => busy_elsewhere(path),
                Ok(_) => busy_here(path),
            });
        }
        // A database is destroyed while its lock is held, and the file removed: a lock on a removed
        // file excludes no one.
        if identify(path)? != Some(id) {
            continue;
        }
        // The lock of an open file description outlives its process in a child that has the
        // descriptor.
        fork_descriptors::close_in_children(file.as_raw_fd());
        let mut holders = Holders::default();
        holders.add(mode);
        locks.held.insert(id, Held { holders, file: ManuallyDrop::new(file) });
        drop(locks);
        return Ok(Box::new(PosixLock { id, mode, table }));
    }
}

fn open(path: &Path, mode: LockMode) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    if mode == LockMode::Exclusive {
        options.write(true).create(true).truncate(false).mode(0o644);
    }
    open_regular(&mut options, "lock", path)
}

fn identify(path: &Path) -> Result<Option<FileId>> {
    match std::fs::symlink_metadata(path) {
        Ok(info) => Ok(Some((info.dev(), info.ino()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("stat", path, error)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(unsafe_code)]

    use std::ffi::CString;
    use std::io::{PipeReader, PipeWriter};
    use std::os::fd::RawFd;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::base::error::ErrorKind;

    /// Runs `child` in another process, which is what LevelDB's POSIX locks look at; true if
    /// `child` says so. It must be async-signal-safe: no allocation, no locks.
    fn in_another_process(child: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls only `child`, which is async-signal-safe, and `_exit`.
        let process = unsafe { libc::fork() };
        assert!(process >= 0, "fork failed");
        if process == 0 {
            let code = if child() { 7 } else { 0 };
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(process, &mut status, 0) }, process);
        assert!(libc::WIFEXITED(status));
        libc::WEXITSTATUS(status) == 7
    }

    /// Writes a byte and waits for one, in a child. Not for the end of the pipe: children of other
    /// tests have inherited its writing end, and may wait for this child in turn. A child whose
    /// test failed is ended by the alarm.
    fn say_and_wait(said: &PipeWriter, waited: &PipeReader) {
        let mut byte = [0];
        // SAFETY: the descriptors are open, the buffer outlives the calls, and all of them are
        // async-signal-safe.
        unsafe {
            libc::alarm(100);
            libc::write(said.as_raw_fd(), byte.as_ptr().cast(), 1);
            libc::read(waited.as_raw_fd(), byte.as_mut_ptr().cast(), 1);
        }
    }

    /// Takes the lock LevelDB takes.
    fn set_posix_lock(file: RawFd, kind: libc::c_int) -> bool {
        // SAFETY: plain data, for which zeros are valid.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        // SAFETY: the descriptor is open and `lock` outlives the call.
        unsafe { libc::fcntl(file, libc::F_SETLK, &lock) == 0 }
    }

    /// The other process opens the file itself: this one must not close a descriptor of it, see the
    /// module's third invariant.
    fn leveldb_gets_the_lock(path: &Path, write: bool) -> bool {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        in_another_process(|| {
            // SAFETY: the path is a C string.
            let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR) };
            file >= 0 && set_posix_lock(file, if write { libc::F_WRLCK } else { libc::F_RDLCK })
        })
    }

    fn kind(result: Result<Box<dyn FileLock>>) -> Option<ErrorKind> {
        result.err().map(|error| error.kind())
    }

    #[test]
    fn a_failed_second_open_leaves_the_first_lock_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let held = lock(&path, LockMode::Exclusive).unwrap();
        assert!(!leveldb_gets_the_lock(&path, true));
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            let error = lock(&path, mode).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Busy);
            let words = format!("lock {}: already held by process", path.display());
            assert!(error.message().starts_with(&words), "{error}");
            assert!(!leveldb_gets_the_lock(&path, true));
        }
        drop(held);
        assert!(leveldb_gets_the_lock(&path, true));
        assert!(lock(&path, LockMode::Exclusive).is_ok());
    }

    #[test]
    fn many_readers_or_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        drop(lock(&path, LockMode::Shared).unwrap());
        assert!(!path.exists());
        drop(lock(&path, LockMode::Exclusive).unwrap());
        let readers =
            [lock(&path, LockMode::Shared).unwrap(), lock(&path, LockMode::Shared).unwrap()];
        let [first, second] = readers;
        drop(first);
        assert_eq!(kind(lock(&path, LockMode::Exclusive)), Some(ErrorKind::Busy));
        assert!(leveldb_gets_the_lock(&path, false) && !leveldb_gets_the_lock(&path, true));
        drop(second);
        assert_eq!(kind(lock(&path, LockMode::Exclusive)), None);
    }

    #[test]
    fn leveldb_in_another_process_excludes_us() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let file = File::create(&path).unwrap();
        let (mut held, held_end) = io::pipe().unwrap();
        let (release_end, mut release) = io::pipe().unwrap();
        std::thread::scope(|scope| {
            let (file, held_end, release_end) = (&file, &held_end, &release_end);
            let child = scope.spawn(move || {
                in_another_process(|| {
                    let held = set_posix_lock(file.as_raw_fd(), libc::F_WRLCK);
                    say_and_wait(held_end, release_end);
                    held
                })
            });
            io::Read::read_exact(&mut held, &mut [0]).unwrap();
            for mode in [LockMode::Exclusive, LockMode::Shared] {
                let error = lock(&path, mode).err().unwrap();
                let words = format!("lock {}: Resource temporarily unavailable", path.display());
                assert!(
                    error.kind() == ErrorKind::Busy && error.message().starts_with(&words),
                    "{error}"
                );
            }
            io::Write::write_all(&mut release, &[0]).unwrap();
            assert!(child.join().unwrap());
        });
        assert_eq!(kind(lock(&path, LockMode::Exclusive)), None);
    }

    /// Closing any descriptor of a file drops the POSIX locks that the process has on it. Where
    /// Terrace's own lock is one of them, a LevelDB in this process is not noticed.
    #[cfg(all(target_os = "linux", not(terrace_portable)))]
    #[test]
    fn a_refused_attempt_leaves_the_lock_of_leveldb_in_this_process_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let leveldb = File::create(&path).unwrap();
        // Opened before and closed after: the test must not drop the lock itself.
        let other = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        assert!(set_posix_lock(leveldb.as_raw_fd(), libc::F_WRLCK));
        let descriptors = || {
            std::fs::read_dir("/proc/self/fd")
                .unwrap()
                .filter_map(|entry| entry.ok()?.path().read_link().ok())
        };
        let open_here = || descriptors().filter(|target| *target == path).count();
        for _ in 0..100 {
            for mode in [LockMode::Exclusive, LockMode::Shared] {
                let error = lock(&path, mode).err().unwrap();
                let words = format!("lock {}: already held by process", path.display());
                assert!(
                    error.kind() == ErrorKind::Busy && error.message().starts_with(&words),
                    "{error}"
                );
            }
        }
        assert!(
            !in_another_process(|| set_posix_lock(other.as_raw_fd(), libc::F_WRLCK)),
            "LevelDB's lock is gone"
        );
        assert!(open_here() <= 4, "{} descriptors", open_here());
        assert!(set_posix_lock(leveldb.as_raw_fd(), libc::F_UNLCK));
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let held = lock(&path, mode).unwrap();
            assert!(!in_another_process(|| set_posix_lock(other.as_raw_fd(), libc::F_WRLCK)));
            drop(held);
            assert!(in_another_process(|| set_posix_lock(other.as_raw_fd(), libc::F_WRLCK)));
        }
        assert_eq!(open_here(), 2);
    }

    #[test]
    fn a_fork_holds_nothing_and_drops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let held = lock(&path, LockMode::Exclusive).unwrap();
        let mut inherited = Some(held);
        assert!(in_another_process(|| {
            drop(inherited.take());
            true
        }));
        assert!(!leveldb_gets_the_lock(&path, true));
        drop(inherited);
        assert!(leveldb_gets_the_lock(&path, true));
    }

    /// A process that forked a worker and was killed: its locks are gone, though the worker lives.
    #[test]
    fn a_lock_ends_with_its_process_and_not_with_a_child_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        // What is done once in a process is done before it forks.
        drop(lock(&path, LockMode::Exclusive).unwrap());
        let (mut ready, ready_end) = io::pipe().unwrap();
        let (release_end, mut release) = io::pipe().unwrap();
        assert!(in_another_process(|| {
            let Ok(held) = lock(&path, LockMode::Exclusive) else { return false };
            // SAFETY: the child calls only functions that are async-signal-safe.
            let worker = unsafe { libc::fork() };
            if worker == 0 {
                say_and_wait(&ready_end, &release_end);
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::_exit(0) };
            }
            std::mem::forget(held);
            worker > 0
        }));
        io::Read::read_exact(&mut ready, &mut [0]).unwrap();
        assert_eq!(kind(lock(&path, LockMode::Exclusive)), None);
        io::Write::write_all(&mut release, &[0]).unwrap();
    }

    #[test]
    fn the_name_counts_not_a_removed_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let held = lock(&path, LockMode::Exclusive).unwrap();
        std::fs::remove_file(&path).unwrap();
        let again = lock(&path, LockMode::Exclusive).unwrap();
        drop(held);
        assert_eq!(kind(lock(&path, LockMode::Exclusive)), Some(ErrorKind::Busy));
        drop(again);
    }
}
