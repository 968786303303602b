//! Where a source of the merging iterator stands: its key, abbreviated to numbers that decide most
//! comparisons.

use crate::base::internal_key;
use crate::base::mutation::mutated;

use super::source::Source;

/// A source's cached key prefix.
#[derive(Clone, Copy)]
pub(super) struct Standing {
    /// How its key begins, in the bytewise order, as [`abbreviated`] has it; 0 in others.
    pub(super) abbreviated: u128,
    /// Of its key.
    pub(super) tag: u64,
    /// The bytes of the user key that `abbreviated` holds, if it holds all but the common ones;
    /// otherwise `MORE`.
    pub(super) length: u32,
    /// Whether it has an entry. The exhausted come last.
    pub(super) valid: bool,
}

/// More than an abbreviated key holds.
pub(super) const MORE: u32 = u32::MAX;

pub(super) const EXHAUSTED: Standing =
    Standing { abbreviated: 0, tag: 0, length: MORE, valid: false };

impl Standing {
    /// That of a source at its present entry. `common` is left out of abbreviated keys, which are
    /// for the bytewise order only.
    #[inline]
    pub(super) fn of(source: &Source, is_bytewise: bool, common: &[u8]) -> Self {
        let valid = source.valid();
        match internal_key::split(source.key()) {
            Some((key, tag)) if valid && is_bytewise => {
                let (abbreviated, length) = abbreviated(common, key);
                Standing { abbreviated, tag, length, valid }
            }
            _ => Standing { valid, ..EXHAUSTED },
        }
    }
}

/// 16 bytes of a key, those behind `common`, as a number that orders as keys do, and how many bytes
/// there were, or `MORE`. Keys that end before are padded with zeros. Those that do not begin with
/// `common` are less or greater than those that do, and so is the number.
#[inline]
pub(super) fn abbreviated(common: &[u8], key: &[u8]) -> (u128, u32) {
    let rest = if common.is_empty() { Some(key) } else { key.strip_prefix(common) };
    let Some(rest) = rest else {
        let is_less = key < common || mutated("abbreviated-keys-beyond-common");
        return (if is_less { 0 } else { u128::MAX }, MORE);
    };
    if let Some(bytes) = rest.first_chunk::<16>() {
        return (u128::from_be_bytes(*bytes), if rest.len() == 16 { 16 } else { MORE });
    }
    let mut bytes = [0; 16];
    bytes[..rest.len()].copy_from_slice(rest);
    (u128::from_be_bytes(bytes), rest.len() as u32)
}
