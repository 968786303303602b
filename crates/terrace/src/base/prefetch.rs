//! Hints to the processor: what it is about to need. Each costs an instruction for a line of memory, and waits for nothing.
#![allow(unsafe_code)]

/// What the processor loads at once.
const LINE: usize = 64;

/// Asks for `bytes`.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..bytes.len()).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction. It has no effect that a program could see, whatever the
        // address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, LINE);
}
