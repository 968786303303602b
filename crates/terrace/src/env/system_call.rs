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

/// Sets or releases a lock on the whole file that belongs to the open file description (F_OFD_SETLK), without
/// waiting. `false` if somebody else's lock, of that kind or of POSIX's, is in the way.
pub(super) fn set_lock(file: BorrowedFd<'_>, request: LockRequest) -> io::Result<bool> {
    let kind = match request {
        LockRequest::Exclusive => libc::F_WRLCK,
        LockRequest::Shared => libc::F_RDLCK,
        LockRequest::Release => libc::F_UNLCK,
    };
    // SAFETY: flock is plain data; zeros are a valid value of every field (and l_pid must be zero here).
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
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
