//! Prefetch hints. Each costs one instruction for a cache line and never waits.
#![allow(unsafe_code)]

use std::ptr;

/// The bytes that the processor loads at once.
const LINE: usize = 64;

/// Asks for `bytes`.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    ask(bytes.as_ptr(), bytes.len());
}

/// Prefetches `value` itself, not what it points to.
#[inline]
pub(crate) fn prefetch_value<T>(value: &T) {
    ask(ptr::from_ref(value).cast(), size_of::<T>());
}

/// Asks for `length` bytes at an address, if there is anything.
#[inline]
pub(crate) fn prefetch_address(address: usize, length: usize) {
    ask(ptr::without_provenance(address), length);
}

#[inline]
fn ask(start: *const u8, length: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..length).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction. It has no effect that a program could
        // see, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, length, LINE);
}
