//! Errors of a failing disk in a check or a repair.
//!
//! A sector that cannot be read is damage like any other: a repair that gave up on it would never
//! end. But an error that goes away by itself must not cost data, so that every read is tried again
//! first.

use crate::base::error::{Error, ErrorKind, Result};

/// How often something is read before its bytes count as lost.
pub(super) const ATTEMPTS: u32 = 2;

/// Whether `error` tells that a file, or a part of it, is lost: missing, damaged, or on a bad
/// sector.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corruption)
        || error.raw_os_error() == Some(libc::EIO)
}

/// Reads, and once more if the system says that it cannot.
pub(super) fn retry_once<T>(mut read: impl FnMut() -> Result<T>) -> Result<T> {
    match read() {
        Err(error) if error.kind() == ErrorKind::Io => read(),
        result => result,
    }
}
