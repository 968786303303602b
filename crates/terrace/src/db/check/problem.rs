//! Problems that checking and repairing a database find.

use std::path::Path;

use crate::base::error::{Error, ErrorKind};
use crate::base::internal_key::{ParsedKey, user_key};

/// One thing that is not as it should be.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// for problem in db.verify()?.problems {
///     println!("{}: {}", problem.file, problem.message);
/// }
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file's name in the database's directory.
    pub file: String,
    /// The problem, and its offset if that is known.
    pub message: String,
}

impl Problem {
    pub(in crate::db) fn new(file: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { file: file.into(), message: message.into() }
    }

    /// The message of `error` about `file`, without naming it again.
    pub(in crate::db) fn of(dir: &Path, file: &str, error: &Error) -> Self {
        if error.kind() == ErrorKind::NotFound {
            return Problem::new(file, "missing");
        }
        let path = dir.join(file).display().to_string();
        let message = error.message().replace(&path, file);
        let message = message
            .strip_prefix(file)
            .map_or(message.as_str(), |rest| rest.trim_start_matches([':', ' ']));
        Problem::new(file, message)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

/// The bytes of a key that messages show at most.
const SHOWN: usize = 40;

/// A user key for people.
pub(in crate::db) fn shown_user_key(key: &[u8]) -> String {
    match key.get(..SHOWN) {
        Some(start) => format!("\"{}\"...", start.escape_ascii()),
        None => format!("\"{}\"", key.escape_ascii()),
    }
}

/// An internal key for people.
pub(in crate::db) fn shown_key(key: &[u8]) -> String {
    match ParsedKey::parse(key) {
        Some(parsed) => {
            format!("{} at sequence number {}", shown_user_key(parsed.user_key), parsed.sequence)
        }
        None => shown_user_key(user_key(key)),
    }
}
