//! The native half of Terrace's Java package: what the class `io.terrace.Native` declares.
//!
//! Every native method is a function of one of the modules below. Java holds objects of the engine
//! by number ([`registry`]): a number that is not in use any more is an error, never a dangling
//! pointer, whichever thread closed the object and when. Panics become Java exceptions; errors of
//! the engine become the exceptions of `io.terrace` ([`failure`]).
//!
//! # Invariants
//! 1. Bytes of Java arrays are copied in and out (`Get`/`SetByteArrayRegion`). No array is pinned
//!    and no critical section is entered, so that neither the collector nor a safepoint waits for
//!    a native method, whatever I/O it does.
//! 2. Threads of the engine that call Java attach themselves as daemons and detach when they end
//!    ([`attach`]): they never keep the virtual machine alive.
//! 3. `unsafe` code is in [`attach`] and [`direct`] alone.

/// Declares a static native method of `io.terrace.Native`, which the function of the same name
/// implements. A panic or a failure becomes a Java exception.
macro_rules! native {
    ($($method:tt)*) => {
        const _: jni::NativeMethod<'_> = {
            use crate::failure::Throw;
            jni::native_method! {
                java_type = "io.terrace.Native",
                error_policy = Throw,
                static extern $($method)*
            }
        };
    };
}

mod attach;
mod batch;
mod budget;
mod bulk;
mod bytes;
mod callbacks;
mod comparator;
mod comparator_failure;
mod database;
mod direct;
mod failure;
mod gate;
mod iterator;
mod logger;
mod maintenance;
mod options;
mod registry;
mod reports;
mod snapshot;
mod transaction;
