//! Errors that end a program early.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

const WRONG_COMMAND_LINE: u8 = 2;
const ENGINE_FAILED: u8 = 3;

/// What can go wrong, with the message for people.
pub type Result<T> = std::result::Result<T, Failure>;

/// A message in one line, and whose fault it is.
#[derive(Debug)]
pub struct Failure {
    message: String,
    usage: bool,
}

impl Failure {
    /// The engine, or the machine, failed.
    pub fn new(message: impl fmt::Display) -> Self {
        Failure { message: one_line(&message.to_string()), usage: false }
    }

    /// The command line is wrong.
    pub fn usage(message: impl fmt::Display) -> Self {
        Failure { message: one_line(&message.to_string()), usage: true }
    }

    /// A system call on a file failed.
    pub fn io(what: &str, path: &Path, error: &std::io::Error) -> Self {
        Failure::new(format!("cannot {what} {}: {error}", path.display()))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.usage { WRONG_COMMAND_LINE } else { ENGINE_FAILED })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
