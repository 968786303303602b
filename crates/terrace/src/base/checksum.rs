//! CRC-32C as LevelDB stores it.
//!
//! LevelDB masks every stored checksum, so that the checksum of bytes that contain checksums stays meaningful.

const MASK_DELTA: u32 = 0xa282_ead8;

/// The checksum of `data`, masked for storage.
pub(crate) fn masked(data: &[u8]) -> u32 {
    mask(crc32c::crc32c(data))
}

/// The checksum of `first` followed by `second`, masked for storage.
pub(crate) fn masked_pair(first: &[u8], second: &[u8]) -> u32 {
    mask(crc32c::crc32c_append(crc32c::crc32c(first), second))
}

/// A checksum of bytes that come piece by piece.
#[derive(Clone, Copy, Default)]
pub(crate) struct Checksum(u32);

impl Checksum {
    /// The checksum of `data`.
    #[inline]
    pub(crate) fn of(data: &[u8]) -> Self {
        Checksum(crc32c::crc32c(data))
    }

    #[inline]
    pub(crate) fn add(&mut self, data: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, data);
    }

    /// The checksum so far, masked for storage.
    pub(crate) fn masked(self) -> u32 {
        mask(self.0)
    }
}

fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_value_and_mask() {
        // RFC 3720, B.4: 32 bytes of zeros.
        assert_eq!(crc32c::crc32c(&[0u8; 32]), 0x8a91_36aa);
        assert_ne!(masked(b"foo"), crc32c::crc32c(b"foo"));
        assert_eq!(masked_pair(b"fo", b"o"), masked(b"foo"));
    }
}
