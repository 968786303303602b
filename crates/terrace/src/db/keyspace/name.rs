//! Names of keyspaces and the prefixes that they give keys. Pure.
//!
//! A name is between two separators, `!`: abstract-level's way, so its rules for names are these:
//! bytes from 0x23 to 0x7E, which are behind the separator and the byte that ends its range.

use crate::base::error::{Error, Result};

use crate::db::view::catalogue::entry::RESERVED;

/// The bytes of a name, at most, and of all names of a nested keyspace with their separators.
const MAX_NAME: usize = 255;
const MAX_PREFIX: usize = 4096;

/// The prefix of keys of the keyspace `name` within `parent`, the prefix of another or nothing.
pub(super) fn prefix(parent: &[u8], name: &str) -> Result<Vec<u8>> {
    let refuse = |why: &str| {
        let message = format!("the name \"{}\" of a keyspace {why}", name.escape_debug());
        Err(Error::invalid_argument(message))
    };
    if name.is_empty() {
        return refuse("is empty");
    }
    if name.len() > MAX_NAME {
        return refuse(&format!("has {} bytes, may have {MAX_NAME}", name.len()));
    }
    if let Some(other) = name.chars().find(|&character| !is_part(character as u32)) {
        let other = other.escape_debug();
        return refuse(&format!("holds '{other}': ASCII from # to ~ may be in names"));
    }
    if parent.is_empty() && name == RESERVED {
        return refuse("is reserved");
    }
    let prefix = [parent, b"!", name.as_bytes(), b"!"].concat();
    if prefix.len() > MAX_PREFIX {
        return refuse(&format!("is nested too deep: {} bytes of names", prefix.len()));
    }
    Ok(prefix)
}

fn is_part(character: u32) -> bool {
    (0x23..=0x7e).contains(&character)
}

/// The name that `key`, which begins with a separator, begins with, if it does; and how many bytes
/// of it decide that. None if it ends before.
pub(super) fn first(key: &[u8]) -> (Option<&str>, Option<usize>) {
    let rest = &key[1..];
    let Some(length) = rest.iter().position(|&byte| !is_part(u32::from(byte))) else {
        return (None, None);
    };
    let is_name = rest[length] == b'!' && (1..=MAX_NAME).contains(&length);
    let name = is_name.then(|| std::str::from_utf8(&rest[..length]).ok()).flatten();
    (name, Some(length + 2))
}

/// A keyspace for messages: its names from the outside in.
pub(super) fn shown(prefix: &[u8]) -> String {
    let names = prefix.split(|&byte| byte == b'!').filter(|name| !name.is_empty());
    let names: Vec<_> = names.map(String::from_utf8_lossy).collect();
    format!("the keyspace {}", names.join(" > "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_those_of_sublevels() {
        let users = prefix(b"", "users").unwrap();
        assert_eq!(users, b"!users!");
        assert_eq!(prefix(&users, "~x#").unwrap(), b"!users!!~x#!");
        assert_eq!(shown(b"!users!!~x#!"), "the keyspace users > ~x#");
        for name in ["", "a!b", "a\"b", "a b", "\u{e4}", "\u{7f}", "$terrace"] {
            prefix(b"", name).expect_err(name);
        }
        assert!(prefix(&users, RESERVED).is_ok(), "reserved outside alone");
        assert!(prefix(b"", &"n".repeat(255)).is_ok());
        assert!(prefix(b"", &"n".repeat(256)).is_err());
        assert!(prefix(&[b'n'; 4000], &"n".repeat(200)).is_err());
    }

    #[test]
    fn a_key_begins_with_a_name_or_says_where_not() {
        assert_eq!(first(b"!users!key"), (Some("users"), Some(7)));
        assert_eq!(first(b"!users!"), (Some("users"), Some(7)));
        assert_eq!(first(b"!users"), (None, None));
        assert_eq!(first(b"!"), (None, None));
        assert_eq!(first(b"!!a"), (None, Some(2)));
        assert_eq!(first(b"!a b!"), (None, Some(3)));
        assert_eq!(first(b"!a\xff!"), (None, Some(3)));
    }
}
