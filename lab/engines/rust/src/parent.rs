//! A program that the harness has started ends when the harness is gone, however that ended. Called
//! before any thread is started.

use std::env;
use std::process;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// The harness names itself in `LAB_PARENT`; a program that is started by hand lives on.
pub(crate) fn end_with_parent() {
    let Ok(parent) = env::var("LAB_PARENT") else { return };
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    // It may have ended before that.
    if asked.is_err() || getppid().is_none_or(|pid| pid.as_raw_nonzero().to_string() != parent) {
        process::exit(3);
    }
}
