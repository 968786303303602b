//! Messages on standard error while the lab works.

use std::io::{Write, stderr};

/// Writes a line, from any thread. Where standard error is closed it is lost: Ctrl-C ends the `tee`
/// of `lab run 2>&1 | tee log` before the lab, and `eprintln!` would then panic before the report
/// is written.
pub fn notice(line: &str) {
    // One write, so that lines of two threads do not mix.
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}
