//! Advice on memory (`madvise`) that only Linux takes.
//!
//! Any thread may call. On other systems, and in a build with `--cfg terrace_portable`, nothing is
//! done: the caller does without.
#![allow(unsafe_code)]

/// Asks the system to provide the pages of a private mapping at once, which costs less than one by
/// one at the first touch. A hint.
///
/// # Safety
/// The `length` bytes from `start` are whole pages of memory that the caller owns.
pub(crate) unsafe fn populate(start: *mut u8, length: usize) {
    #[cfg(all(target_os = "linux", not(terrace_portable)))]
    // SAFETY: the caller's word. Populating changes no byte.
    let _ = unsafe {
        rustix::mm::madvise(start.cast(), length, rustix::mm::Advice::LinuxPopulateWrite)
    };
    #[cfg(not(all(target_os = "linux", not(terrace_portable))))]
    let _ = (start, length);
}

/// Has the system clear `length` bytes from `start` in every child of a fork. Returns whether it
/// does.
///
/// # Safety
/// The range is a private, anonymous mapping that the caller owns as a whole.
pub(crate) unsafe fn clear_in_children(start: *mut u8, length: usize) -> bool {
    #[cfg(all(target_os = "linux", not(terrace_portable)))]
    // SAFETY: the caller's word. Nothing changes in this process.
    return unsafe {
        rustix::mm::madvise(start.cast(), length, rustix::mm::Advice::LinuxWipeOnFork)
    }
    .is_ok();
    #[cfg(not(all(target_os = "linux", not(terrace_portable))))]
    {
        let _ = (start, length);
        false
    }
}
