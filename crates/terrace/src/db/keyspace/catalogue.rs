//! The entry of a keyspace in the catalogue. Pure.
//!
//! Its key is `!$terrace!keyspace` and the keyspace's prefix, so the entries of keyspaces within
//! another one follow that one's. Its value is text, a line for the format and one for each setting
//! (`docs/format.md`).

use crate::base::error::{Error, Result};

use super::name::RESERVED;
use super::options::KeyspaceOptions;

/// The first line of every entry.
const FORMAT: &str = "keyspace 1";

/// The key of the entry of the keyspace with this prefix; what precedes all such keys if the prefix
/// is empty.
pub(super) fn key(prefix: &[u8]) -> Vec<u8> {
    [b"!", RESERVED.as_bytes(), b"!keyspace", prefix].concat()
}

pub(super) fn encode(_options: &KeyspaceOptions) -> Vec<u8> {
    format!("{FORMAT}\n").into_bytes()
}

/// `NotSupported` if the entry has a setting that this version does not know: ignored, it would be
/// lost or worse.
pub(super) fn decode(entry: &[u8]) -> Result<KeyspaceOptions> {
    let text = std::str::from_utf8(entry).unwrap_or_default();
    let mut lines = text.lines();
    if lines.next() != Some(FORMAT) {
        return Err(Error::not_supported("its entry in the catalogue is of another format"));
    }
    match lines.next() {
        None => Ok(KeyspaceOptions::new()),
        Some(line) => {
            let line = line.escape_debug();
            Err(Error::not_supported(format!("it was created with the unknown setting {line}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_unknown_ones_are_refused() {
        assert_eq!(key(b"!a!!b!"), b"!$terrace!keyspace!a!!b!");
        let options = KeyspaceOptions::new();
        assert_eq!(decode(&encode(&options)).unwrap(), options);
        for unknown in [&b""[..], b"keyspace 2\n", b"keyspace 1\nexpiry\n", b"\xff"] {
            decode(unknown).expect_err("unknown");
        }
    }
}
