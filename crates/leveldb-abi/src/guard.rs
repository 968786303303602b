//! The end of unwinding: the result of a function after a panic, which is a bug in the engine.

use std::panic::{AssertUnwindSafe, catch_unwind};

use terrace::{Error, Result};

/// The result of a function that cannot report errors when it cannot do its work.
pub(crate) trait Nothing {
    /// Null, zero or nothing.
    fn nothing() -> Self;
}

impl Nothing for () {
    fn nothing() -> Self {}
}

impl<T> Nothing for *mut T {
    fn nothing() -> Self {
        std::ptr::null_mut()
    }
}

impl<T> Nothing for *const T {
    fn nothing() -> Self {
        std::ptr::null()
    }
}

macro_rules! zero_is_nothing {
    ($($type:ty),*) => {$(
        impl Nothing for $type {
            fn nothing() -> Self {
                0
            }
        }
    )*};
}

zero_is_nothing!(u8, i32, i64, u64, usize);

/// Runs `work`; a panic ends here.
#[inline]
pub(crate) fn guard<T: Nothing>(work: impl FnOnce() -> T) -> T {
    // State that a panic leaves half done is the engine's, which poisons or discards it; this crate
    // keeps nothing.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| T::nothing())
}

/// Runs `work`; a panic becomes an error.
#[inline]
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()))
}

/// The error that callers see after a panic.
#[cold]
pub(crate) fn panicked() -> Error {
    Error::io_message("internal error: the engine panicked")
}

/// Defines exported functions: each catches panics and has the rules of `leveldb/c.h` as its safety
/// contract.
macro_rules! export {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers to objects come from this library and were not released; pointers with a length
        /// lead to that many readable bytes; everything else is as the header says. Null is
        /// tolerated for every pointer.
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, reason = "some bodies need none")]
        pub unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: the helpers in `memory` ask for exactly what the caller of this function
            // guarantees.
            $crate::guard::guard(move || unsafe { $body })
        }
    )*};
}

pub(crate) use export;
