//! Ctrl-C: the first ends the running engine and lets the run finish with what it has, the second
//! ends everything.
//!
//! The handler runs on a thread of its own; everything here may be called from any thread.

use std::process;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::notice::notice;

/// The exit status of a run that was interrupted.
pub const STATUS: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// The process group of the engine that is running; 0 for none.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// Sets the handler, for interrupts and requests to terminate.
///
/// # Errors
/// If the system refuses.
pub fn install() -> Result<(), String> {
    let handler = || {
        let again = REQUESTED.swap(true, Ordering::SeqCst);
        kill_running();
        if again {
            process::exit(i32::from(STATUS));
        }
        notice("\nlab: ending; what was measured is kept (once more to stop at once)");
    };
    ctrlc::set_handler(handler).map_err(|e| format!("cannot handle Ctrl-C: {e}"))
}

/// Whether the run is to end.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// While it exists, an interrupt ends this process group.
#[derive(Debug)]
pub struct Running {
    group: i32,
}

impl Running {
    /// The group led by a process that this program started.
    #[must_use]
    pub fn new(leader: u32) -> Running {
        let group = i32::try_from(leader).unwrap_or(0);
        RUNNING.store(group, Ordering::SeqCst);
        Running { group }
    }

    /// Kills every process of the group.
    pub fn kill(&self) {
        kill(self.group);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.store(0, Ordering::SeqCst);
    }
}

fn kill_running() {
    kill(RUNNING.load(Ordering::SeqCst));
}

fn kill(group: i32) {
    if let Some(pid) = Pid::from_raw(group) {
        // It may have ended by itself.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}
