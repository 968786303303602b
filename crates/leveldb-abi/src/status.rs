//! Errors in LevelDB's words.

use terrace::{Error, ErrorKind};

/// The codes of LevelDB's `Status`.
pub(crate) fn code(error: &Error) -> i32 {
    match error.kind() {
        ErrorKind::NotFound => 1,
        ErrorKind::Corruption => 2,
        ErrorKind::NotSupported => 3,
        ErrorKind::InvalidArgument | ErrorKind::Closed => 4,
        // LevelDB has no code for a lock with another owner.
        _ => 5,
    }
}

/// The prefix of a message in LevelDB's `Status::ToString`.
fn prefix(code: i32) -> &'static str {
    match code {
        1 => "NotFound: ",
        2 => "Corruption: ",
        3 => "Not implemented: ",
        4 => "Invalid argument: ",
        _ => "IO error: ",
    }
}

/// The error as LevelDB's `Status::ToString` shows it.
pub(crate) fn text(error: &Error) -> String {
    format!("{}{}", prefix(code(error)), error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leveldbs_words() {
        assert_eq!(text(&Error::busy("lock /x/LOCK")), "IO error: lock /x/LOCK");
        assert_eq!(text(&Error::not_supported("that")), "Not implemented: that");
        assert_eq!(text(&Error::invalid_argument("x: y")), "Invalid argument: x: y");
    }
}
