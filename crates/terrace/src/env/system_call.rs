//! The system calls that have no safe wrapper elsewhere. Any thread may call.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

/// What [`set_lock`] asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum LockRequest {
    Exclusive,
    Shared,
    Release,
}

/// `request` for a whole file.
fn whole_file(request: LockRequest) -> libc::flock {
    let kind = match request {
        LockRequest::Exclusive => libc::F_WRLCK,
        LockRequest::Shared => libc::F_RDLCK,
        LockRequest::Release => libc::F_UNLCK,
    };
    // SAFETY: flock is plain data; zeros are a valid value of every field (and l_pid must be zero
    // here).
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

/// The process that holds a POSIX lock in the way of `request`; -1 if it is a lock of an open file
/// description. `None` if there is no such lock or the system does not tell.
pub(super) fn lock_holder(file: BorrowedFd<'_>, request: LockRequest) -> Option<libc::pid_t> {
    let mut lock = whole_file(request);
    // SAFETY: the descriptor is open for the life of `file`; the kernel writes into `lock`, which
    // outlives the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) } == 0;
    (done && i32::from(lock.l_type) != libc::F_UNLCK).then_some(lock.l_pid)
}

/// Sets or releases a lock on the whole file that belongs to the open file description
/// (F_OFD_SETLK), without waiting. `false` if somebody else's lock, of that kind or of POSIX's, is
/// in the way.
pub(super) fn set_lock(file: BorrowedFd<'_>, request: LockRequest) -> io::Result<bool> {
    let lock = whole_file(request);
    loop {
        // SAFETY: the descriptor is open for the life of `file`; `lock` outlives the call.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) } == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN | libc::EACCES) => return Ok(false),
            _ => return Err(error),
        }
    }
}

/// Closes a file and reports what that says, which dropping the descriptor does not.
pub(super) fn close(file: OwnedFd) -> io::Result<()> {
    // SAFETY: `into_raw_fd` gives the descriptor away, so it is closed once.
    if unsafe { libc::close(file.into_raw_fd()) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // Linux has closed the descriptor by then.
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

/// Starts writing out a range of a file. A hint: its failure says nothing.
pub(super) fn start_writeback(file: BorrowedFd<'_>, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (i64::try_from(offset), i64::try_from(length)) else { return };
    // SAFETY: the descriptor is open for the life of `file`; no memory is passed.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) };
}

/// The pieces of a file that the system tells of at once: what was prepared and written from front
/// to back is in one.
const MOST_EXTENTS: usize = 16;

/// `FS_IOC_FIEMAP`, `FIEMAP_EXTENT_DELALLOC` and the two structures are those of `linux/fs.h` and
/// `linux/fiemap.h`.
const FIEMAP: libc::c_ulong = 0xc020_660b;
const EXTENT_IN_MEMORY: u32 = 0x4;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

#[repr(C)]
#[derive(Default)]
struct ExtentMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; MOST_EXTENTS],
}

/// Whether the file system has not even chosen yet where on the disk the file's bytes will go: then
/// nothing that the file has ever held is there. What can't be said so is not so.
pub(super) fn is_in_memory_only(file: BorrowedFd<'_>) -> bool {
    let mut map = ExtentMap { length: u64::MAX, room: MOST_EXTENTS as u32, ..ExtentMap::default() };
    // SAFETY: the descriptor is open for the life of `file`; the kernel writes into `map`, which
    // has room for as many extents as it says, and outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut map) };
    let extents = map.extents.get(..map.mapped as usize).unwrap_or_default();
    // As many as there is room for may not be all.
    done == 0
        && (1..MOST_EXTENTS).contains(&extents.len())
        && extents.iter().all(|extent| extent.flags & EXTENT_IN_MEMORY != 0)
}
