//! Files of the operating system: opening them safely, reading by `pread`, appending by `write`.
//!
//! # Invariants
//! 1. No descriptor survives `exec`. (std opens with O_CLOEXEC.)
//! 2. A database file is a regular file under its own name: a symbolic link as the last component,
//!    a device, pipe or directory is refused, and opening one never blocks.
//! 3. Once a sync failed, every later sync of the same file fails too: the kernel reports a lost
//!    page once and then calls it clean.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::{CreateOptions, FileSyncer, RandomAccessFile, WritableFile, system_call};
use crate::base::error::{Error, Result};
use crate::base::locks::plain::Mutex;
use crate::base::mutation::mutated;

/// Opens `path` under the rules above. `operation` is for messages.
pub(super) fn open_regular(
    options: &mut OpenOptions,
    operation: &str,
    path: &Path,
) -> Result<File> {
    let file = options
        .custom_flags(
            if mutated("symbolic-links") { 0 } else { libc::O_NOFOLLOW } | libc::O_NONBLOCK,
        )
        .open(path)
        .map_err(|e| refused(operation, path, e))?;
    let info = file.metadata().map_err(|e| Error::io("stat", path, e))?;
    if info.is_file() {
        return Ok(file);
    }
    Err(Error::io_message(format!(
        "{operation} {}: refused, a database file must be a regular file",
        path.display()
    )))
}

fn refused(operation: &str, path: &Path, error: io::Error) -> Error {
    // FreeBSD reports EMLINK.
    let symbolic_link = matches!(error.raw_os_error(), Some(libc::ELOOP | libc::EMLINK));
    let error = Error::io(operation, path, error);
    if symbolic_link {
        return error.context("refused, a database file must not be a symbolic link");
    }
    error
}

/// Opens an existing file for reading.
pub(super) fn open_for_read(path: &Path) -> Result<File> {
    open_regular(OpenOptions::new().read(true), "open", path)
}

/// Creates a file for writing. A mapping of it needs read access, too.
pub(super) fn create(path: &Path, options: CreateOptions) -> Result<File> {
    let mut how = OpenOptions::new();
    how.read(true).write(true).mode(options.mode);
    if options.exclusive {
        how.create_new(true);
    } else {
        how.create(true).truncate(true);
    }
    open_regular(&mut how, "create", path)
}

/// The most that the system takes in one call.
const MOST_PARTS: usize = 1024;

/// Writes all of `parts` with as many calls of `write` as it takes; each returns how much it has
/// written.
pub(super) fn write_all_parts(
    mut parts: &mut [IoSlice<'_>],
    mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
) -> io::Result<()> {
    // Empty parts at the front go, so that nothing written means that the system takes nothing.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match write(&parts[..parts.len().min(MOST_PARTS)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file read by `pread`: exactly what is asked for. The system is told not to read ahead, so that
/// a point read costs the pages of its block; scans say themselves what they will need.
pub(super) struct PosixRandomFile {
    file: File,
    path: Box<Path>,
    size: u64,
    /// Whether the system does not tell what of the file is in memory.
    hides_memory: AtomicBool,
}

impl PosixRandomFile {
    pub(super) fn new(file: File, path: &Path, size: u64) -> Self {
        system_call::do_not_read_ahead(&file);
        PosixRandomFile { file, path: path.into(), size, hides_memory: AtomicBool::new(false) }
    }
}

impl RandomAccessFile for PosixRandomFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset.saturating_add(done as u64)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let at = offset.saturating_add(done as u64);
                    return Err(Error::io("read", &self.path, error)
                        .context(format_args!("at offset {at}")));
                }
            }
        }
        Ok(done)
    }

    fn read_in_memory(&self, offset: u64, buffer: &mut [u8]) -> Option<usize> {
        if self.hides_memory.load(Ordering::Relaxed) {
            return None;
        }
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        match system_call::read_in_memory(&self.file, offset, &mut buffer[..wanted]) {
            Ok(read) => Some(read).filter(|&read| read == wanted),
            Err(error) => {
                use ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
                if matches!(error.kind(), Unsupported | InvalidInput | PermissionDenied) {
                    self.hides_memory.store(true, Ordering::Relaxed);
                }
                None
            }
        }
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn will_need(&self, offset: u64, length: usize) {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        system_call::will_need(&self.file, offset, length.min(left));
    }

    fn reads_in_background(&self) -> bool {
        system_call::READS_IN_BACKGROUND
    }
}

/// An open file whose durability several threads look after.
pub(super) struct SyncedFile {
    pub(super) file: File,
    /// For messages: a log may get another name.
    path: Mutex<Box<Path>>,
    failure: OnceLock<Error>,
}

impl SyncedFile {
    pub(super) fn new(file: File, path: &Path) -> Arc<Self> {
        Arc::new(SyncedFile { file, path: Mutex::new(path.into()), failure: OnceLock::new() })
    }

    pub(super) fn set_path(&self, path: &Path) {
        *self.path.lock() = path.into();
    }

    /// An error of an operation on this file.
    pub(super) fn error(&self, operation: &str, error: io::Error) -> Error {
        Error::io(operation, &self.path.lock(), error)
    }
}

/// Calls that only mapped logs need.
#[cfg(all(target_os = "linux", not(terrace_portable)))]
impl SyncedFile {
    pub(super) fn path(&self) -> std::path::PathBuf {
        self.path.lock().to_path_buf()
    }

    /// Whether a sync has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// As if a sync had failed with this error.
    #[cfg(test)]
    pub(super) fn fail(&self, error: io::Error) {
        let _ = self.failure.set(self.error(system_call::SYNC_CALL, error));
    }

    /// The failure of a sync, if one has failed.
    pub(super) fn check(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }
}

impl FileSyncer for SyncedFile {
    fn sync(&self) -> Result<()> {
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        match system_call::sync(&self.file) {
            // A concurrent sync may have been told of a lost page that this one covers.
            Ok(()) => self.failure.get().map_or(Ok(()), |failure| Err(failure.clone())),
            Err(error) => {
                Err(self.failure.get_or_init(|| self.error(system_call::SYNC_CALL, error)).clone())
            }
        }
    }
}

/// A file appended to by `write`, unbuffered: what was appended is the kernel's.
pub(super) struct PosixWritableFile {
    shared: Arc<SyncedFile>,
}

impl PosixWritableFile {
    pub(super) fn new(shared: Arc<SyncedFile>) -> Self {
        PosixWritableFile { shared }
    }
}

impl WritableFile for PosixWritableFile {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        // Handles short writes and EINTR.
        (&self.shared.file).write_all(data).map_err(|e| self.shared.error("write", e))
    }

    fn append_parts(&mut self, parts: &mut [IoSlice<'_>], _: &[usize]) -> Result<()> {
        let mut file = &self.shared.file;
        write_all_parts(parts, |parts| file.write_vectored(parts))
            .map_err(|e| self.shared.error("write", e))
    }

    fn cut_back(&mut self, length: u64) {
        let _ = self.shared.file.set_len(length);
    }

    fn sync(&mut self) -> Result<()> {
        self.shared.sync()
    }

    fn syncer(&self) -> Option<Arc<dyn FileSyncer>> {
        Some(self.shared.clone())
    }

    fn set_path(&mut self, path: &Path) {
        self.shared.set_path(path);
    }

    fn start_writeback(&mut self, offset: u64, length: u64) {
        system_call::start_writeback(self.shared.file.as_fd(), offset, length);
    }

    fn close(self: Box<Self>) -> Result<()> {
        // If a syncer is still at work, the last of them closes the file.
        let Ok(SyncedFile { file, path, .. }) = Arc::try_unwrap(self.shared) else { return Ok(()) };
        system_call::close(file.into()).map_err(|e| Error::io("close", &path.lock(), e))
    }
}
