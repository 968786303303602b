//! Bounds key expansion when an index block or a metaindex is decoded.
//!
//! Keys may share prefixes, so that few bytes can stand for many long keys: seven bytes of a block
//! for as many bytes as the block is long. A reader that keeps the keys of an index or a metaindex
//! takes them out of an allowance. LevelDB's share nothing; what expands further than this was made
//! to.

use super::block_error::Damage;

const MAX_EXPANSION: usize = 32;
/// Bytes of keys that a block of any size may come to.
const FLOOR: usize = 1 << 20;

/// Bytes that the keys to come may take.
pub(super) struct KeyAllowance(usize);

impl KeyAllowance {
    /// For all keys of a block of `size` bytes.
    pub(super) fn of_block(size: usize) -> Self {
        KeyAllowance(size.saturating_mul(MAX_EXPANSION).max(FLOOR))
    }

    /// Asked before a key is kept.
    pub(super) fn take(&mut self, key: &[u8]) -> Result<(), Damage> {
        self.0 = self.0.checked_sub(key.len()).ok_or("its keys are out of proportion")?;
        Ok(())
    }
}
