//! The one seam to the world: files, directories, locks, time and threads.
//!
//! Everything that can fail or differ between systems comes through [`Env`], so that the same
//! engine runs on the real system, in memory, on a program's own file layer and inside a crash
//! simulator. The contract stands at [`Env`].

#[cfg(all(target_os = "linux", not(terrace_portable)))]
mod available_memory;
mod clock;
#[cfg(all(test, loom))]
pub(crate) mod explored;
mod filesystem;
mod fork_descriptors;
pub(crate) mod kept_directory;
mod lock;
#[cfg(all(target_os = "linux", not(terrace_portable)))]
mod log_region;
#[cfg(all(target_os = "linux", not(terrace_portable)))]
mod mapped_log;
mod mapped_table;
mod memory;
pub(crate) mod pace;
mod pool;
mod posix;
mod posix_file;
mod shared_file;
mod system_call;
mod timer;

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use self::lock::LockedFile;
pub use self::memory::MemEnv;
pub use self::posix::PosixEnv;
pub(crate) use self::shared_file::with_syncer;

use crate::base::error::{Error, Result};

/// A job for the background threads.
///
/// ```
/// # use terrace::*;
/// let job: Job = Box::new(|| println!("in the background"));
/// PosixEnv::shared().schedule(Priority::Compaction, job);
/// ```
pub type Job = Box<dyn FnOnce() + Send + 'static>;

/// The priority of a background job. Memory waits for flushes, so they go first.
///
/// ```
/// # use terrace::*;
/// use std::sync::mpsc;
///
/// let (done, result) = mpsc::channel();
/// let env: std::sync::Arc<dyn Env> = std::sync::Arc::new(MemEnv::new());
/// env.schedule(Priority::Compaction, Box::new(move || done.send(6 * 7).unwrap()));
/// assert_eq!(result.recv(), Ok(42));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Memtables to tables, and other short work that a writer will wait for.
    Flush,
    /// Everything else: compactions, removing obsolete files.
    Compaction,
}

/// How the reader of a table gets at its bytes.
///
/// ```
/// # use terrace::*;
/// let options = Options::new().read_access(ReadAccess::Pread); // never a signal
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReadAccess {
    /// On Linux, maps tables and checks that a block can be read before it is loaded for the first
    /// time. Reads tables with `pread` after the first read error, and once they take more than
    /// half of the available memory ([`Env::available_memory`]). A block of a mapped table that was
    /// loaded before, has left memory since, and cannot be read any more still kills the process
    /// with SIGBUS. Other systems cannot check: there it is `Pread`. An [`Env`] that checks nothing
    /// takes it for `Mapped`.
    #[default]
    Auto,
    /// Maps the file into memory where the Env can, and falls back to reads. Checks nothing: every
    /// sector that cannot be read kills the process with SIGBUS, as in LevelDB, and a block that is
    /// not in memory costs a read of 64 to 128 KiB.
    Mapped,
    /// `pread` for every block: what cannot be read is an error, never a signal. A load of a block
    /// that is in memory costs about three times as much as from a mapping. Of the tables,
    /// [`max_open_files`](crate::Options::max_open_files) hold a descriptor.
    Pread,
}

/// Whether a lock excludes everybody or only writers.
///
/// ```
/// # use terrace::*;
/// use std::path::Path;
///
/// let env = MemEnv::new();
/// let writer = env.lock(Path::new("/LOCK"), LockMode::Exclusive)?;
/// assert!(env.lock(Path::new("/LOCK"), LockMode::Shared).is_err());
/// drop(writer);
/// let readers = [(); 2].map(|()| env.lock(Path::new("/LOCK"), LockMode::Shared));
/// assert!(readers.iter().all(Result::is_ok));
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// One holder: the writer of a database.
    Exclusive,
    /// Many holders, none of them a writer: read-only opens. The file is never created or changed.
    Shared,
}

/// How a new file comes to be.
///
/// ```
/// # use terrace::*;
/// use std::path::Path;
///
/// let (env, path) = (MemEnv::new(), Path::new("/notes"));
/// env.create(path, CreateOptions::default())?.close()?;
/// assert!(env.create(path, CreateOptions::default()).is_err()); // it exists
/// let anew = CreateOptions { exclusive: false, ..CreateOptions::default() };
/// env.create(path, anew)?.close()?;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// Permission bits of the new file, before the process's umask.
    pub mode: u32,
    /// Fail with `Io` (EEXIST) if the name exists; otherwise an existing file is truncated.
    pub exclusive: bool,
}

impl Default for CreateOptions {
    fn default() -> Self {
        CreateOptions { mode: 0o644, exclusive: true }
    }
}

/// A file that is read at any offset by any number of threads.
///
/// ```
/// # use terrace::*;
/// /// A file in memory. Files of a system read at `offset` with `pread`.
/// struct Bytes(Vec<u8>);
///
/// impl RandomAccessFile for Bytes {
///     fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
///         let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
///         let length = buffer.len().min(self.0.len() - from);
///         buffer[..length].copy_from_slice(&self.0[from..from + length]);
///         Ok(length)
///     }
///
///     fn size(&self) -> u64 {
///         self.0.len() as u64
///     }
/// }
///
/// let mut buffer = [0; 8];
/// assert_eq!(Bytes(b"terrace".to_vec()).read_at(4, &mut buffer)?, 3);
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait RandomAccessFile: Send + Sync {
    /// Reads up to `buffer.len()` bytes from `offset`; fewer only at the end of the file.
    ///
    /// # Errors
    /// `Io` if the bytes cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// Does what [`read_at`](Self::read_at) does if the bytes are in memory. `None` where a device
    /// would be waited for, where the bytes cannot be read, and where that is not known.
    fn read_in_memory(&self, offset: u64, buffer: &mut [u8]) -> Option<usize> {
        let _ = (offset, buffer);
        None
    }

    /// The file's size in bytes when it was opened.
    fn size(&self) -> u64;

    /// The whole file as memory, if it is mapped. The same bytes for the life of this object,
    /// provided that the file is not modified, which the engine never does with a finished table.
    fn mapped(&self) -> Option<&[u8]> {
        None
    }

    /// Brings `length` bytes from `offset` of a mapped file into memory, or what there is of them.
    /// Fails where touching them would kill the process. A file that is not
    /// [`mapped`](Self::mapped) has nothing to do.
    ///
    /// # Errors
    /// `Io` if some of them cannot be read.
    fn populate(&self, offset: u64, length: u64) -> Result<()> {
        let _ = (offset, length);
        Ok(())
    }

    /// Says that `length` bytes from `offset` will be read soon, so that they are read in the
    /// background. A hint.
    fn will_need(&self, offset: u64, length: usize) {
        let _ = (offset, length);
    }

    /// Whether [`will_need`](Self::will_need) has the device read in the background, so that a file
    /// is worth opening for it.
    fn reads_in_background(&self) -> bool {
        false
    }

    /// Says that `length` bytes from `offset` will not be read soon, so that memory which the
    /// process has for them only for speed can go. A hint.
    fn not_needed(&self, offset: u64, length: u64) {
        let _ = (offset, length);
    }
}

/// Makes what was appended to a file durable, while its owner appends more.
///
/// ```
/// # use terrace::*;
/// use std::path::Path;
///
/// let env = PosixEnv::shared();
/// # let path = std::env::temp_dir().join(format!("terrace-syncer-{}", std::process::id()));
/// let mut file = env.create(&path, CreateOptions::default())?;
/// file.append(b"one")?;
/// if let Some(syncer) = file.syncer() {
///     std::thread::scope(|scope| {
///         let synced = scope.spawn(move || syncer.sync()); // makes "one" durable
///         file.append(b"two")?;
///         synced.join().unwrap()
///     })?;
/// }
/// # env.remove(&path)?;
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait FileSyncer: Send + Sync {
    /// Returns once every byte whose append had returned before this call is durable.
    ///
    /// # Errors
    /// `Io` if that cannot be known; it is never tried again.
    fn sync(&self) -> Result<()>;
}

/// A file that is written from front to back by one thread at a time.
///
/// ```
/// # use terrace::*;
/// use std::path::Path;
///
/// let (env, path) = (MemEnv::new(), Path::new("/notes"));
/// let mut file = env.create(path, CreateOptions::default())?;
/// file.append(b"written, ")?;
/// file.append(b"synced")?;
/// file.sync()?;
/// file.close()?;
/// env.sync_dir(Path::new("/"))?; // its name, too
/// assert_eq!(env.file_size(path)?, 15);
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait WritableFile: Send {
    /// Appends `data`. On an error an unknown prefix of it may have been written.
    ///
    /// # Errors
    /// `Io` if the system takes less than all of it.
    fn append(&mut self, data: &[u8]) -> Result<()>;

    /// Appends all of `parts`, one behind the other, as one [`append`](Self::append) of them all
    /// would. Called with much data, so that an implementation need not copy it. The slices
    /// themselves are unspecified afterwards.
    ///
    /// The parts at the indices `headers`, in ascending order, say what the others are: in a file
    /// that [is prepared](Self::is_prepared) a process that is killed leaves zeros in place of them
    /// all, or all of them. A file that cannot promise it ends behind the parts, and is not
    /// prepared any more.
    ///
    /// # Errors
    /// Those of [`append`](Self::append).
    fn append_parts(&mut self, parts: &mut [IoSlice<'_>], headers: &[usize]) -> Result<()> {
        let _ = headers;
        let mut data = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| data.extend_from_slice(part));
        self.append(&data)
    }

    /// Whether zeros may stand behind what was appended, as in a log that is prepared ahead;
    /// otherwise the file ends there.
    fn is_prepared(&self) -> bool {
        false
    }

    /// Whether an append of `length` bytes waits for no other thread, and for no device unless the
    /// system has it wait.
    fn takes_at_once(&self, length: usize) -> bool {
        let _ = length;
        true
    }

    /// Appends `data`, whose first `filler` bytes mean nothing without the others: in a file that
    /// [is prepared](Self::is_prepared) a process that is killed leaves zeros in their place, or
    /// nothing but zeros.
    ///
    /// # Errors
    /// Those of [`append`](Self::append).
    fn append_filled(&mut self, data: &[u8], filler: usize) -> Result<()> {
        let _ = filler;
        self.append(data)
    }

    /// Cuts the file back to its first `length` bytes, after appends that are not needed, and no
    /// other follows. A hint: readers pass over what is left of them, which only takes space.
    fn cut_back(&mut self, length: u64) {
        let _ = length;
    }

    /// Makes every appended byte durable.
    ///
    /// # Errors
    /// Those of [`FileSyncer::sync`].
    fn sync(&mut self) -> Result<()>;

    /// A handle that syncs concurrently with further appends; `None` if this file cannot, and
    /// `sync` must be used.
    fn syncer(&self) -> Option<Arc<dyn FileSyncer>> {
        None
    }

    /// Asks the system to start writing out `length` bytes from `offset`, without waiting. A hint.
    fn start_writeback(&mut self, offset: u64, length: u64) {
        let _ = (offset, length);
    }

    /// Zeroes out an obsolete log, so that the file, renamed, is recycled as another log: a reader
    /// finds zeros in it from then on, and the next append begins at its front. To be done only
    /// where nothing of the old records is on the disk or ever comes there, because after a power
    /// cut a reader would take them for the new log's. `false` if that is not certain, and where it
    /// costs more than a new file: then this one is to be removed, and what it holds until then is
    /// arbitrary.
    fn zero_out(&mut self) -> bool {
        false
    }

    /// Says that the file has another name now.
    fn set_path(&mut self, path: &Path) {
        let _ = path;
    }

    /// Closes a file that is not needed any more, before it is removed. A sync of it that is still
    /// to come does nothing.
    fn retire(self: Box<Self>) {}

    /// Closes the file and reports what `close` reports. A prepared tail is trimmed. Does not sync.
    ///
    /// # Errors
    /// `Io` if the system reports that something was not written.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A held lock. Dropping it releases the lock.
///
/// ```
/// # use terrace::*;
/// use std::path::Path;
///
/// let env = MemEnv::new();
/// let lock: Box<dyn FileLock> = env.lock(Path::new("/LOCK"), LockMode::Exclusive)?;
/// drop(lock); // released
/// env.lock(Path::new("/LOCK"), LockMode::Exclusive)?;
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait FileLock: Send + Sync {
    /// The file that is locked, where it can be told from other ones: by it the database finds its
    /// directory again when that was moved. `None` by default.
    fn locked_file(&self) -> Option<LockedFile> {
        None
    }
}

/// Receives the info log: one line a call, without a newline at its end.
///
/// Called from any thread, background threads included; it must not call back into the database.
///
/// ```
/// # use terrace::*;
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Lines(Mutex<Vec<String>>);
///
/// impl Logger for Lines {
///     fn log(&self, message: &str) {
///         self.0.lock().unwrap().push(message.to_owned());
///     }
/// }
///
/// let lines = Arc::new(Lines::default());
/// let options = Options::new().logger(Some(lines.clone()));
/// # let options = options.create_if_missing(true).env(Arc::new(MemEnv::new()));
/// Db::open("/db", options)?.close()?;
/// assert!(!lines.0.lock().unwrap().is_empty());
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait Logger: Send + Sync {
    /// Takes one message.
    fn log(&self, message: &str);
}

/// The world outside the engine.
///
/// # Contract
/// 1. Every method may be called from any thread at any time.
/// 2. An error names the operation and the path ([`Error::io`](crate::Error::io)); a missing file
///    is `NotFound`.
/// 3. Data that [`WritableFile::append`] accepted survives the death of the process. Data survives
///    the death of the machine once a `sync` that began after the append has returned `Ok`, *and*
///    the file's directory entry has been made durable by [`Env::sync_dir`].
/// 4. A failed `sync` says nothing about which bytes are durable; the caller never retries it on
///    the same file.
///
/// ```
/// # use terrace::*;
/// use std::path::Path;
/// use std::sync::Arc;
///
/// // An Env is used through its trait; databases in memory come and go with theirs.
/// let env: Arc<dyn Env> = Arc::new(MemEnv::new());
/// let options = Options::new().create_if_missing(true).env(env.clone());
/// Db::open("/db", options)?.close()?;
/// assert!(env.list(Path::new("/db"))?.contains(&"CURRENT".to_owned()));
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait Env: Send + Sync + 'static {
    /// Opens an existing file for reading at any offset. A symbolic link as the last component is
    /// refused by [`PosixEnv`].
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `Io` if it cannot be opened.
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>>;

    /// Creates a file for writing.
    ///
    /// # Errors
    /// `Io` if the file cannot be created, or exists and [is not to](CreateOptions::exclusive).
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>>;

    /// Creates a write-ahead log that is expected to grow to about `expected_size` bytes.
    ///
    /// The engine appends whole records, each call beginning at a record's header. An Env may
    /// prepare space ahead; then a reader finds zeros behind the last record until
    /// [`WritableFile::close`] trims them, and a record becomes readable only as a whole.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    fn create_log(
        &self,
        path: &Path,
        options: CreateOptions,
        expected_size: u64,
    ) -> Result<Box<dyn WritableFile>> {
        let _ = expected_size;
        self.create(path, options)
    }

    /// Opens an existing file for appending at its end.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `Io` if it cannot be opened.
    fn open_append(&self, path: &Path) -> Result<Box<dyn WritableFile>>;

    /// Whether a file or directory of that name exists (a dangling symbolic link does).
    ///
    /// # Errors
    /// `Io` if that cannot be told.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// The names in a directory, without `.` and `..`, in no order. Names that are not UTF-8 are
    /// left out: no file of a database has one.
    ///
    /// # Errors
    /// `NotFound` if there is no such directory; `Io` if it cannot be read.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `Io` if it cannot be removed.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Creates a directory and its missing parents; fine if it exists already, an error if a file
    /// has the name.
    ///
    /// # Errors
    /// `Io` if a directory cannot be created.
    fn create_dir(&self, path: &Path, mode: u32) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound` if there is no such directory; `Io` if it cannot be removed.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// The one path of a directory that may have several, relative ones and such with symbolic
    /// links. What is not there has any.
    fn true_path(&self, dir: &Path) -> PathBuf {
        std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())
    }

    /// A file's size in bytes.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `Io` if that cannot be told.
    fn file_size(&self, path: &Path) -> Result<u64>;

    /// Renames a file, replacing `to` if it exists, as one step.
    ///
    /// # Errors
    /// `NotFound` if there is no file `from`; `Io` if it cannot be renamed. Both names are as they
    /// were.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Whether a file has other names than `path`, as hard links of it have; false by default. The
    /// engine does not go on writing to such a file: it may be another program's copy.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `Io` if that cannot be told.
    fn has_other_names(&self, path: &Path) -> Result<bool> {
        let _ = path;
        Ok(false)
    }

    /// Gives a file a second name, `to`, which must not exist. The file is there until both are
    /// removed. `NotSupported` where there is no such thing, and by default: the engine copies
    /// then, as after any other error.
    ///
    /// # Errors
    /// `NotFound` if there is no file `from`; `NotSupported` and `Io` as above.
    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let _ = to;
        Err(Error::not_supported(format!(
            "link {}: the environment gives no second names",
            from.display()
        )))
    }

    /// Makes creations, links, renames and removals in a directory durable. An Env without the
    /// notion returns `Ok`.
    ///
    /// # Errors
    /// `Io` if that cannot be known; `NotFound` if there is no such directory.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Takes the lock that LevelDB takes on `path`, without waiting. `Busy` if another database
    /// handle, in this process or another, holds it. An exclusive lock creates the file where it is
    /// missing.
    ///
    /// # Errors
    /// `Busy` as above; `NotFound` if a shared lock finds no file; `Io` if the system refuses.
    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>>;

    /// Runs `job` on a background thread, flushes before anything else. Threads start when first
    /// needed and never keep a process alive.
    fn schedule(&self, priority: Priority, job: Job);

    /// Runs `job` as [`schedule`](Self::schedule) does after `delay`, behind flushes. `false`, and
    /// the job is dropped, where there is no such thing, and by default: what is due by time alone
    /// is then done with the next other work.
    fn schedule_after(&self, delay: Duration, job: Job) -> bool {
        let _ = (delay, job);
        false
    }

    /// Called by long background jobs now and then, while they hold no lock. An Env that has only
    /// one background thread runs a flush that waits here, on this thread: writers wait for
    /// flushes, and compactions take long.
    fn yield_to_flushes(&self) {}

    /// Lets at least `count` background threads run at once. The pool is shared by all databases of
    /// the Env. An error if there is none yet, and none can be started: jobs would wait for ever.
    ///
    /// # Errors
    /// `Io` if no thread can be started and there is none.
    fn set_background_threads(&self, count: usize) -> Result<()>;

    /// Microseconds on a clock that never goes back.
    fn now_micros(&self) -> u64;

    /// Seconds and microseconds of the wall clock since 1970, UTC. For messages, and for what
    /// expires, which allows for a clock that jumps.
    fn wall_clock(&self) -> Duration;

    /// Suspends the calling thread.
    fn sleep(&self, duration: Duration);

    /// Bytes of memory that are free or hold clean pages of files, as far as this process may use
    /// them. `None` where the system does not tell. Called on each change of the set of tables.
    fn available_memory(&self) -> Option<u64> {
        None
    }

    /// A number that stays the same in one process and differs in every fork of it. Background
    /// threads and locks do not come along into a fork, so what was opened under another number
    /// must neither write nor clean up. Called on every write: cheap.
    fn process_generation(&self) -> u64 {
        0
    }
}
