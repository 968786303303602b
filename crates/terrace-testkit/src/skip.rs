//! Tests that cannot do what they are for, because the machine lacks something.

use std::fmt::Display;
use std::io::{self, Write};
use std::{env, thread};

/// Whether continuous integration runs this.
pub fn under_ci() -> bool {
    env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "0" && ci != "false")
}

/// Says that the present test does nothing, past the capture of its output: no reader sees that of
/// a test that passes. `what` names what the machine lacks, `reason` says how that shows.
///
/// # Panics
/// Under `CI`, unless the words of `TERRACE_MAY_SKIP` contain `what`.
pub fn skip(what: &str, reason: impl Display) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let allowed = env::var("TERRACE_MAY_SKIP").unwrap_or_default();
    let is_allowed = allowed.split_whitespace().any(|allowed| allowed == what);
    assert!(!under_ci() || is_allowed, "under CI, {what} is missing for {test}: {reason}");
    let _ = writeln!(io::stderr(), "SKIPPED: {test}: no {what}: {reason}");
}
