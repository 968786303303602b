//! The calls that macOS and the BSDs have, too.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use memmap2::Mmap;

/// POSIX locks, as LevelDB takes them. The process owns them, so a LevelDB in the same process is
/// not noticed.
pub(super) const SET_LOCK: libc::c_int = libc::F_SETLK;
pub(super) const GET_LOCK: libc::c_int = libc::F_GETLK;

/// The name of what [`sync`] calls, for messages.
pub(in crate::env) const SYNC_CALL: &str =
    if cfg!(target_vendor = "apple") { "fcntl(F_FULLFSYNC)" } else { "fsync" };

/// Makes a file's bytes and its size durable. On macOS the standard library calls `F_FULLFSYNC`
/// here, because `fsync` leaves data in the disk's cache.
pub(in crate::env) fn sync(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Reads what the page cache has of a range: that cannot be told.
pub(in crate::env) fn read_in_memory(_: &File, _: u64, _: &mut [u8]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether [`will_need`] does anything.
pub(in crate::env) const READS_IN_BACKGROUND: bool = false;

/// Says that a range of a file will be read soon. Not every system takes such hints.
pub(in crate::env) fn will_need(_: &File, _: u64, _: usize) {}

/// Starts writing out a range of a file. Not every system can.
pub(in crate::env) fn start_writeback(_: BorrowedFd<'_>, _: u64, _: u64) {}

/// Says that a file is read here and there. Not every system takes such hints.
pub(in crate::env) fn do_not_read_ahead(_: &File) {}

/// No system but Linux tells whether a load from a mapping would kill the process.
pub(in crate::env) const CHECKS_MAPPINGS: bool = false;

/// Does nothing: see [`CHECKS_MAPPINGS`].
pub(in crate::env) fn populate(_: &Mmap, _: usize, _: usize) -> io::Result<()> {
    Ok(())
}
