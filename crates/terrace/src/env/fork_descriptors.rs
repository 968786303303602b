//! Descriptors that a child of a fork closes at once, because what they hold is its parent's: an
//! open-file-description lock lasts for as long as any process has the descriptor.
//!
//! Any thread may call. The handler that runs in the child uses atomics and `close` alone, which
//! are async-signal-safe. A child that was made without the C library (`clone`) runs no handler and
//! keeps the descriptors.
//!
//! # Invariants
//! 1. A registered descriptor is open, and is not closed by the process that registered it before
//!    it is withdrawn.
//! 2. A child never closes it again: its owner compares
//!    [generations](crate::base::fork::generation) first.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::base::mutation::mutated;

/// Descriptors that can be registered at once. A child keeps those for which there is no place.
const PLACES: usize = 1024;
const FREE: RawFd = -1;

static REGISTERED: [AtomicI32; PLACES] = [const { AtomicI32::new(FREE) }; PLACES];
static HANDLER: Once = Once::new();

/// Has children close `descriptor` until it is [withdrawn](withdraw).
pub(super) fn close_in_children(descriptor: RawFd) {
    HANDLER.call_once(|| {
        // SAFETY: the handler is a function of this library, which the C library forgets when the
        // library is unloaded; it is async-signal-safe. A failure leaves things as without it.
        unsafe { libc::pthread_atfork(None, None, Some(close_registered)) };
    });
    for place in &REGISTERED {
        let order = Ordering::Relaxed;
        if place.compare_exchange(FREE, descriptor, order, order).is_ok() {
            return;
        }
    }
}

/// Forgets `descriptor`, which is about to be closed.
pub(super) fn withdraw(descriptor: RawFd) {
    for place in &REGISTERED {
        let order = Ordering::Relaxed;
        if place.compare_exchange(descriptor, FREE, order, order).is_ok() {
            return;
        }
    }
}

/// Runs in the child, in the only thread that it has.
extern "C" fn close_registered() {
    if mutated("locks-of-a-fork") {
        return;
    }
    for place in &REGISTERED {
        let descriptor = place.swap(FREE, Ordering::Relaxed);
        if descriptor != FREE {
            // SAFETY: by the first invariant it is the child's copy of an open descriptor, and by
            // the second the child does not close it again.
            unsafe { libc::close(descriptor) };
        }
    }
}
