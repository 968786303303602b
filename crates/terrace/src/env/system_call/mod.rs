//! System calls that have no safe wrapper elsewhere, and those in which systems differ. Any thread
//! may call.
//!
//! [`linux`] uses what Linux has. [`portable`] makes do with what macOS and the BSDs have, too; a
//! build with `--cfg terrace_portable` uses it on Linux, so that its code is tested there. Both
//! have the same functions.
#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", not(terrace_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(terrace_portable))))]
mod portable;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

#[cfg(all(target_os = "linux", not(terrace_portable)))]
use self::linux as system;
#[cfg(not(all(target_os = "linux", not(terrace_portable))))]
use self::portable as system;

pub(super) use self::system::*;

/// The lock that [`set_lock`] asks for.
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
/// description. `None` if there is no such lock or the system does not tell. A system without locks
/// of open file descriptions does not tell of this process's own.
pub(super) fn lock_holder(file: BorrowedFd<'_>, request: LockRequest) -> Option<libc::pid_t> {
    let mut lock = whole_file(request);
    // SAFETY: the descriptor is open for the life of `file`; the kernel writes into `lock`, which
    // outlives the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), GET_LOCK, &raw mut lock) } == 0;
    (done && i64::from(lock.l_type) != i64::from(libc::F_UNLCK)).then_some(lock.l_pid)
}

/// Sets or releases a lock on the whole file, without waiting. `false` if a lock of another owner
/// is in the way. The owner is the open file description on Linux ([`SET_LOCK`]), elsewhere
/// the process, which loses the lock when it closes any descriptor of the file.
pub(super) fn set_lock(file: BorrowedFd<'_>, request: LockRequest) -> io::Result<bool> {
    let lock = whole_file(request);
    loop {
        // SAFETY: the descriptor is open for the life of `file`; `lock` outlives the call.
        if unsafe { libc::fcntl(file.as_raw_fd(), SET_LOCK, &raw const lock) } == 0 {
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
        // Linux and the BSDs have closed the descriptor by then.
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}
