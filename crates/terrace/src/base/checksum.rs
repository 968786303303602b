//! CRC-32C as LevelDB stores it.
//!
//! LevelDB masks every stored checksum, so that the checksum of bytes that contain checksums stays
//! meaningful.

use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

const MASK_DELTA: u32 = 0xa282_ead8;

/// The checksum of `data`, masked for storage.
#[inline]
pub(crate) fn masked(data: &[u8]) -> u32 {
    Checksum::of(data).masked()
}

/// The checksum of `first` followed by `second`, masked for storage.
pub(crate) fn masked_pair(first: &[u8], second: &[u8]) -> u32 {
    let mut checksum = Checksum::of(first);
    checksum.add(second);
    checksum.masked()
}

/// A checksum of bytes that come piece by piece.
#[derive(Clone, Copy, Default)]
pub(crate) struct Checksum(u32);

impl Checksum {
    /// The checksum of `data`.
    #[inline]
    pub(crate) fn of(data: &[u8]) -> Self {
        Checksum(crc32_iscsi(data))
    }

    pub(crate) fn add(&mut self, data: &[u8]) {
        // The state of a CRC-32C is the inverse of what it would be finished as.
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!self.0));
        digest.update(data);
        self.0 = digest.finalize() as u32;
    }

    /// The checksum so far, masked for storage.
    #[inline]
    pub(crate) fn masked(self) -> u32 {
        self.0.rotate_right(15).wrapping_add(MASK_DELTA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_value_and_mask() {
        // RFC 3720, B.4: 32 bytes of zeros.
        assert_eq!(Checksum::of(&[0u8; 32]).0, 0x8a91_36aa);
        assert_ne!(masked(b"foo"), Checksum::of(b"foo").0);
        assert_eq!(masked_pair(b"fo", b"o"), masked(b"foo"));
    }

    #[test]
    fn whole_and_in_pieces_as_another_library_has_it() {
        let bytes: Vec<u8> =
            (0..70_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
        let lengths =
            (0..600).chain([1023, 1024, 1025, 2311, 4096, 4101, 16_384, 65_535, 70_000 - 3]);
        for length in lengths {
            let data = &bytes[3..][..length];
            let expected = crc32c::crc32c(data);
            assert_eq!(Checksum::of(data).0, expected, "{length} bytes");
            for at in [0, 1, length / 3, length / 2, length.saturating_sub(1), length] {
                let (first, second) = data.split_at(at.min(length));
                let mut pieces = Checksum::of(first);
                pieces.add(second);
                assert_eq!(pieces.0, expected, "{length} bytes, {at} of them first");
            }
        }
        assert_eq!(Checksum::default().0, Checksum::of(b"").0);
    }
}
