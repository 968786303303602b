//! The `errptr` of the C API.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use terrace::{Error, Result};

use crate::guard::{Nothing, guarded};
use crate::memory::malloc_c_string;
use crate::status;

/// Runs `work` and reports its failure, as LevelDB does: an earlier message is freed, and success
/// leaves it alone.
///
/// # Safety
/// `errptr` is null or leads to null or to a string from `malloc`.
pub(super) unsafe fn reporting<T: Nothing>(
    errptr: *mut *mut c_char,
    work: impl FnOnce() -> Result<T>,
) -> T {
    match guarded(work) {
        Ok(value) => value,
        Err(error) => {
            // SAFETY: guaranteed by the caller.
            unsafe { report(errptr, &error) };
            T::nothing()
        }
    }
}

/// Replaces the message in `errptr`.
///
/// # Safety
/// `errptr` is null or leads to null or to a string from `malloc`.
pub(super) unsafe fn report(errptr: *mut *mut c_char, error: &Error) {
    let text = status::text(error);
    if !errptr.is_null() {
        // SAFETY: `errptr` may be read and written, and what it holds is null or from `malloc`.
        unsafe {
            libc::free((*errptr).cast());
            *errptr = malloc_c_string(text.as_bytes());
        }
    }
    let text = CString::new(text.replace('\0', "\\0")).unwrap_or_default();
    // A thread that ends has no caller to tell.
    let _ = LAST.try_with(|last| last.replace(text));
}

thread_local! {
    /// The last failure on this thread.
    static LAST: RefCell<CString> = RefCell::default();
}

/// The last failure on this thread, until the next.
pub(super) fn last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The object that a caller must have passed.
///
/// # Safety
/// `object` is null or leads to a `T` that is shared until the call returns.
pub(super) unsafe fn required<'a, T>(object: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: guaranteed by the caller.
    unsafe { object.as_ref() }.ok_or_else(|| Error::invalid_argument(format!("{what} is null")))
}
