//! How a command ends when it does not end well: a message for standard error and an exit status.
//!
//! The statuses are grep's: 1 is an answer, 2 an error, so that a script can tell them apart.
//! Damage is an answer of the commands that look for it, and an error of all others.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use terrace::ErrorKind;

use crate::text;

/// The command did its work, and the answer is no: nothing is there, the value is another one,
/// there is damage in what was checked, or a part is missing in what was printed or copied.
const STATUS_NEGATIVE: u8 = 1;
/// The command failed: wrong usage, damage that it met, or any other failure.
pub(crate) const STATUS_ERROR: u8 = 2;

/// A shell's status of a command that SIGINT ended.
const STATUS_INTERRUPTED: u8 = 130;

/// The reason why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The key or the name that was asked for does not exist, or the value is another one.
    Missing(String),
    /// The command did what it could, and a warning has said what is missing.
    Incomplete(String),
    /// Damage that the command's own output has described already.
    Damage,
    /// Damage that kept a command from going on which looks for damage.
    FoundDamage(terrace::Error),
    /// Another process has the database open.
    Busy(String),
    /// The database refused.
    Database(terrace::Error),
    /// Wrong usage, wrong input or the operating system.
    Other(String),
    /// Wrong usage, in the parser's words: a message of several lines.
    Usage(String),
    /// The user ended the command.
    Interrupted,
    /// Several failures that were reported when they happened; the status is the worst of them.
    Reported(u8),
    /// Standard output is closed. Not an error: its reader has seen enough.
    ClosedPipe,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Failure::Other(message.into())
    }

    /// A name that is not there, if that is what was wrong, has the exit status of a key that is not
    /// there.
    pub(crate) fn of_missing(failure: impl Into<Failure>) -> Self {
        match failure.into() {
            Failure::Database(error) if error.kind() == ErrorKind::NotFound => {
                Failure::Missing(error.message().to_owned())
            }
            other => other,
        }
    }

    /// Damage is what the command looks for, and not an error.
    pub(crate) fn of_check(failure: impl Into<Failure>) -> Self {
        match failure.into() {
            Failure::Database(error) if error.kind() == ErrorKind::Corruption => {
                Failure::FoundDamage(error)
            }
            other => other,
        }
    }

    /// The engine did not open, check, repair or remove the database in `path`.
    pub(crate) fn of_engine(path: &Path, error: terrace::Error) -> Self {
        if error.kind() != ErrorKind::Busy {
            return Failure::Database(error);
        }
        let lock = error.message().trim_end_matches(" (another process holds it)");
        Failure::Busy(format!("{} is open in another process (busy: {lock})", path.display()))
    }

    /// The operating system refused `operation` on `path`.
    pub(crate) fn io(operation: &str, path: &Path, error: &io::Error) -> Self {
        Failure::Other(format!("cannot {operation} {}: {error}", path.display()))
    }

    /// Data cannot be written to `name`.
    pub(crate) fn of_output(name: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Other(format!("cannot write {name}: {error}")),
        }
    }

    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Missing(_)
            | Failure::Incomplete(_)
            | Failure::Damage
            | Failure::FoundDamage(_) => STATUS_NEGATIVE,
            Failure::Database(_) | Failure::Busy(_) | Failure::Other(_) | Failure::Usage(_) => {
                STATUS_ERROR
            }
            Failure::Reported(status) => *status,
            Failure::ClosedPipe => 0,
            Failure::Interrupted => STATUS_INTERRUPTED,
        }
    }

    /// The message without control characters, which may come from files, paths and arguments.
    fn printable(&self, message: &str) -> String {
        match self {
            Failure::Usage(_) => {
                message.lines().map(text::printable).collect::<Vec<_>>().join("\n")
            }
            _ => text::printable(message).into_owned(),
        }
    }

    /// Writes the message to standard error, if there is one to write.
    pub(crate) fn report(&self) {
        let message = self.to_string();
        if !message.is_empty() {
            // Nothing is left to do when standard error is closed as well.
            let _ = writeln!(io::stderr(), "terrace: {}", self.printable(&message));
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Missing(message)
            | Failure::Incomplete(message)
            | Failure::Busy(message)
            | Failure::Other(message)
            | Failure::Usage(message) => f.write_str(message),
            Failure::Interrupted => f.write_str("interrupted"),
            Failure::Database(error) | Failure::FoundDamage(error) => error.fmt(f),
            Failure::Damage | Failure::Reported(_) | Failure::ClosedPipe => Ok(()),
        }
    }
}

impl From<terrace::Error> for Failure {
    fn from(error: terrace::Error) -> Self {
        Failure::Database(error)
    }
}
