//! The entry of a keyspace in the catalogue, and that of the clock. Pure.
//!
//! The key of a keyspace's entry is `!$terrace!keyspace` and the keyspace's prefix, so the entries
//! of keyspaces within another one follow that one's. Its value is text, a line for the format and
//! one for each setting that is not the database's (`docs/format.md`).

use std::time::Duration;

use crate::base::error::{Error, Result};
use crate::table::Compression;

use super::keyspace_options::{KeyspaceOptions, millis};

/// The name of the keyspace that holds the catalogue.
pub(in crate::db) const RESERVED: &str = "$terrace";

/// The prefix of the keys of the reserved keyspace.
pub(in crate::db) const PREFIX: &[u8] = b"!$terrace!";

/// The first line of every entry.
const FORMAT: &str = "keyspace 1";

/// The key of the clock's mark, and the first line of its entry.
pub(in crate::db) const CLOCK: &[u8] = b"!$terrace!clock";
const CLOCK_FORMAT: &str = "clock 1";

/// The key of the entry of the keyspace with this prefix; what precedes all such keys if the prefix
/// is empty.
pub(in crate::db) fn key(prefix: &[u8]) -> Vec<u8> {
    [b"!", RESERVED.as_bytes(), b"!keyspace", prefix].concat()
}

pub(in crate::db) fn encode(options: &KeyspaceOptions) -> Vec<u8> {
    let KeyspaceOptions { expiry, default_ttl, compression, block_size, filter_bits } = options;
    let settings = [
        expiry.then(|| "expiry".to_owned()),
        default_ttl.map(|ttl| format!("ttl {}", millis(ttl))),
        compression.map(|compression| format!("compression {}", compression.name())),
        block_size.map(|bytes| format!("block_size {bytes}")),
        filter_bits.map(|bits| format!("filter_bits {bits}")),
    ];
    let mut entry = format!("{FORMAT}\n");
    for setting in settings.iter().flatten() {
        entry.push_str(setting);
        entry.push('\n');
    }
    entry.into_bytes()
}

/// `NotSupported` if the entry has a setting that this version does not know: ignored, it would be
/// lost or worse.
pub(in crate::db) fn decode(entry: &[u8]) -> Result<KeyspaceOptions> {
    let text = std::str::from_utf8(entry).unwrap_or_default();
    let mut lines = text.lines();
    if lines.next() != Some(FORMAT) {
        return Err(Error::not_supported("its entry in the catalogue is of another format"));
    }
    let mut options = KeyspaceOptions::new();
    for line in lines {
        let is_known = read_setting(line, &mut options).is_some();
        if !is_known || options.check().is_err() {
            let line = line.escape_debug();
            let message = format!("it was created with the unknown setting {line}");
            return Err(Error::not_supported(message));
        }
    }
    Ok(options)
}

/// `None` if the line is not known.
fn read_setting(line: &str, options: &mut KeyspaceOptions) -> Option<()> {
    match line.split_once(' ') {
        None if line == "expiry" => options.expiry = true,
        Some(("ttl", millis)) => {
            options.default_ttl = Some(Duration::from_millis(millis.parse().ok()?));
        }
        Some(("compression", name)) => options.compression = Some(Compression::from_name(name)?),
        Some(("block_size", bytes)) => options.block_size = Some(bytes.parse().ok()?),
        Some(("filter_bits", bits)) => options.filter_bits = Some(bits.parse().ok()?),
        _ => return None,
    }
    Some(())
}

/// The entry of the clock, which stands at `millis` since 1970.
pub(in crate::db) fn encode_clock(millis: u64) -> Vec<u8> {
    format!("{CLOCK_FORMAT}\n{millis}\n").into_bytes()
}

/// `None` if the entry is of another format.
pub(in crate::db) fn decode_clock(entry: &[u8]) -> Option<u64> {
    let mut lines = std::str::from_utf8(entry).ok()?.lines();
    match lines.next() {
        Some(CLOCK_FORMAT) => lines.next()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_unknown_ones_are_refused() {
        assert_eq!(key(b"!a!!b!"), b"!$terrace!keyspace!a!!b!");
        let none = KeyspaceOptions::new();
        assert_eq!(encode(&none), b"keyspace 1\n");
        let all = KeyspaceOptions::new()
            .expiry(true)
            .default_ttl(Some(Duration::from_millis(3_600_000)))
            .compression(Compression::None)
            .block_size(64 << 10)
            .filter_bits(0);
        let text = "keyspace 1\nexpiry\nttl 3600000\ncompression none\nblock_size 65536\n\
                    filter_bits 0\n";
        assert_eq!(encode(&all), text.as_bytes());
        for options in [none, all, KeyspaceOptions::new().compression(Compression::Snappy)] {
            assert_eq!(decode(&encode(&options)).unwrap(), options);
        }
        for unknown in [
            &b""[..],
            b"keyspace 2\n",
            b"keyspace 1\ncipher aes\n",
            b"keyspace 1\nexpiry 1\n",
            b"keyspace 1\nttl 5\n",
            b"keyspace 1\nexpiry\nttl x\n",
            b"keyspace 1\nexpiry\nttl 0\n",
            b"keyspace 1\ncompression brotli\n",
            b"keyspace 1\ncompression lz4\n",
            b"keyspace 1\ncompression zstd\n",
            b"keyspace 1\nblock_size 3\n",
            b"keyspace 1\nfilter_bits 33\n",
            b"\xff",
        ] {
            let shown = String::from_utf8_lossy(unknown).into_owned();
            decode(unknown).expect_err(&shown);
        }
        assert_eq!(decode_clock(&encode_clock(1_732_500_000_000)), Some(1_732_500_000_000));
        assert_eq!(decode_clock(b"clock 2\n5\n"), None);
        assert_eq!(decode_clock(b"\xff"), None);
    }
}
