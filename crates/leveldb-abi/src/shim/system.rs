//! Calls of the C++ side's default environment to the engine's.

use std::ffi::c_void;
use std::time::Duration;

use terrace::{FileLock, LockMode, PosixEnv, Priority};

use super::outcome::{Bytes, Outcome, Put, Sink};
use crate::guard::export;
use crate::memory::{hand_out, release, store};
use crate::options::{path, test_directory};

/// `shim_lock`.
#[expect(missing_debug_implementations, reason = "an opaque handle")]
pub struct ShimLock {
    /// Held until it is dropped.
    _lock: Box<dyn FileLock>,
}

/// A function of the program's and what to call it with.
struct Work {
    function: unsafe extern "C-unwind" fn(*mut c_void),
    argument: *mut c_void,
}

// SAFETY: LevelDB's `Env::Schedule` asks for a function that may be called on another thread.
unsafe impl Send for Work {}

impl Work {
    fn run(self) {
        // SAFETY: by the contract of `Env::Schedule`.
        unsafe { (self.function)(self.argument) };
    }
}

export! {
    /// Takes the lock that databases take.
    fn shim_lock_file(name: Bytes, lock: *mut *mut ShimLock) -> Outcome {
        Outcome::of(|| {
            let held = PosixEnv::shared().lock(&path(name.get()), LockMode::Exclusive)?;
            store(lock, hand_out(ShimLock { _lock: held }));
            Ok(())
        })
    }

    /// Releases a lock.
    fn shim_unlock_file(lock: *mut ShimLock) {
        drop(release(lock));
    }

    /// Runs a function on a background thread.
    fn shim_schedule(function: unsafe extern "C-unwind" fn(*mut c_void), argument: *mut c_void) {
        let work = Work { function, argument };
        let env = PosixEnv::shared();
        // Where no thread can be started at the moment the job waits for one; LevelDB ends the
        // process there.
        while env.set_background_threads(1).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        env.schedule(Priority::Compaction, Box::new(move || work.run()));
    }

    /// Puts the path of the directory for tests.
    fn shim_test_directory(target: *mut c_void, put: Put) {
        Sink::new(target, put).put(&test_directory());
    }
}
