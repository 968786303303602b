//! The output of the command.

use std::io::{self, ErrorKind, Write};

/// Prints to standard output. A reader that has seen enough and is gone, `lab list | head`, is no
/// error.
///
/// # Errors
/// If it cannot be written to, as on a full disk.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {e}")),
        _ => Ok(()),
    }
}
