//! The trailer that gives a value a time of expiry. Pure.
//!
//! A value in a keyspace with expiry ends with the time, in milliseconds since 1970 as eight bytes,
//! [`MAGIC`], and a masked checksum of key and time. What has no valid trailer, as what LevelDB's
//! programs write, never expires: it is a value as it stands.

use super::checksum::Checksum;

/// Bytes of a trailer.
pub(crate) const TRAILER_SIZE: usize = 16;
/// The time of what never expires, though it has a trailer.
pub(crate) const NEVER: u64 = u64::MAX;

const MAGIC: [u8; 4] = *b"\xf7ttl";

/// A value that has a trailer for its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiring<'v> {
    /// Without the trailer.
    pub(crate) value: &'v [u8],
    /// Milliseconds since 1970.
    pub(crate) expires_at: u64,
}

/// Splits the trailer for `key` off what is stored. `None` if there is none.
#[inline]
pub(crate) fn split<'v>(key: &[u8], stored: &'v [u8]) -> Option<Expiring<'v>> {
    let (value, trailer) = stored.split_last_chunk::<TRAILER_SIZE>()?;
    let (time, rest) = trailer.split_first_chunk::<8>()?;
    let (magic, checksum) = rest.split_first_chunk::<4>()?;
    let is_valid = *magic == MAGIC && checksum == checksum_of(key, time).to_le_bytes();
    is_valid.then(|| Expiring { value, expires_at: u64::from_le_bytes(*time) })
}

/// Appends the trailer for `key` to a value.
pub(crate) fn append(key: &[u8], value: &mut Vec<u8>, expires_at: u64) {
    let time = expires_at.to_le_bytes();
    value.reserve_exact(TRAILER_SIZE);
    value.extend_from_slice(&time);
    value.extend_from_slice(&MAGIC);
    value.extend_from_slice(&checksum_of(key, &time).to_le_bytes());
}

fn checksum_of(key: &[u8], time: &[u8; 8]) -> u32 {
    let mut checksum = Checksum::of(key);
    checksum.add(time);
    checksum.masked()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_belongs_to_its_key_and_its_time() {
        for value in [&b""[..], b"value", &[0; 100]] {
            let mut stored = value.to_vec();
            append(b"key", &mut stored, 1_732_500_000_000);
            let split_off = split(b"key", &stored).expect("a trailer");
            assert_eq!(split_off, Expiring { value, expires_at: 1_732_500_000_000 });
            assert_eq!(split(b"kez", &stored), None);
            assert_eq!(split(b"key", &stored[..stored.len() - 1]), None);
            for at in value.len()..stored.len() {
                let mut damaged = stored.clone();
                damaged[at] ^= 1;
                assert_eq!(split(b"key", &damaged), None, "{at}");
            }
        }
        assert_eq!(split(b"key", b"fifteen bytes.."), None);
    }

    #[test]
    fn the_bytes_are_fixed() {
        let mut stored = b"v".to_vec();
        append(b"!s!k", &mut stored, 0x0102_0304_0506);
        assert_eq!(stored[..13], *b"v\x06\x05\x04\x03\x02\x01\0\0\xf7ttl");
        let checksum = super::super::checksum::masked(b"!s!k\x06\x05\x04\x03\x02\x01\0\0");
        assert_eq!(stored[13..], checksum.to_le_bytes());
    }
}
