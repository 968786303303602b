//! The order of a table's keys.
//!
//! The engine's tables order internal keys. LevelDB's public `Table` and `TableBuilder` order plain
//! user keys; both are the same file format, and one reader and one builder serve them.

use std::cmp::Ordering;

use crate::base::comparator::KeyOrder;
use crate::base::internal_key::{self, InternalOrder, TAG_SIZE};

/// How the keys of a table are ordered, and what part of them a user sees.
#[derive(Clone, Debug)]
pub(crate) struct TableOrder {
    order: InternalOrder,
    internal: bool,
}

impl TableOrder {
    /// A table of internal keys, whose user keys are ordered by `keys`.
    pub(crate) fn internal(keys: KeyOrder) -> Self {
        TableOrder { order: InternalOrder::new(keys), internal: true }
    }

    /// A table of plain keys, ordered by `keys`.
    pub(crate) fn user(keys: KeyOrder) -> Self {
        TableOrder { order: InternalOrder::new(keys), internal: false }
    }

    #[inline]
    pub(crate) fn is_internal(&self) -> bool {
        self.internal
    }

    /// Whether user keys are ordered as plain bytes.
    #[inline]
    pub(crate) fn is_bytewise(&self) -> bool {
        self.order.keys.is_bytewise()
    }

    /// The bytes at the end of each key that are not the user's.
    #[inline]
    pub(crate) fn tag_size(&self) -> usize {
        if self.internal { TAG_SIZE } else { 0 }
    }

    #[inline]
    pub(crate) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.internal { self.order.compare(a, b) } else { self.order.keys.compare(a, b) }
    }

    /// Compares two user keys.
    #[inline]
    pub(crate) fn compare_user(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.order.keys.compare(a, b)
    }

    /// The user key of a table's key; of one too short to have a tag, nothing.
    #[inline]
    pub(crate) fn user_key<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        if self.internal { internal_key::user_key(key) } else { key }
    }

    /// The user key of a table's key, and its tag: 0 without one.
    #[inline]
    pub(crate) fn split<'a>(&self, key: &'a [u8]) -> (&'a [u8], u64) {
        if self.internal { internal_key::split(key).unwrap_or((&[], 0)) } else { (key, 0) }
    }

    /// Whether `a` is less than `b`, which begin with `common` equal bytes and no more. Only in the
    /// bytewise order.
    #[inline]
    pub(crate) fn ascends_bytewise(&self, a: &[u8], b: &[u8], common: usize) -> bool {
        debug_assert!(self.is_bytewise());
        let (a_user, b_user) = (self.user_key(a).len(), self.user_key(b).len());
        if common < a_user.min(b_user) {
            return a[common] < b[common];
        }
        match a_user.cmp(&b_user) {
            Ordering::Equal => self.compare(a, b) == Ordering::Less,
            ordering => ordering == Ordering::Less,
        }
    }

    pub(crate) fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        if self.internal {
            self.order.find_shortest_separator(start, limit);
        } else {
            self.order.keys.find_shortest_separator(start, limit);
        }
    }

    pub(crate) fn find_short_successor(&self, key: &mut Vec<u8>) {
        if self.internal {
            self.order.find_short_successor(key);
        } else {
            self.order.keys.find_short_successor(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::abbreviated_keys::common_prefix;

    #[test]
    fn a_common_prefix_decides_as_a_comparison_does() {
        let keys: [&[u8]; 8] =
            [b"", b"a", b"ab", b"ab\xff", b"b", b"abcdefgh", b"abcdefghi", b"abcdefgh\0"];
        for tag_size in [0, TAG_SIZE] {
            let order = match tag_size {
                0 => TableOrder::user(KeyOrder::default()),
                _ => TableOrder::internal(KeyOrder::default()),
            };
            let tagged = |key: &[u8], tag: u64| [key, &tag.to_le_bytes()[..tag_size]].concat();
            for (a, b) in keys.iter().flat_map(|a| keys.map(|b| (*a, b))) {
                for (a_tag, b_tag) in [(0x101, 0x101), (0x101, 0x201), (0x6161, 0x1ff)] {
                    let (a, b) = (tagged(a, a_tag), tagged(b, b_tag));
                    let expected = order.compare(&a, &b) == Ordering::Less;
                    assert_eq!(
                        order.ascends_bytewise(&a, &b, common_prefix(&a, &b)),
                        expected,
                        "{a:?} {b:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn common_prefixes_of_every_length() {
        let a: Vec<u8> = (0..40).collect();
        for length in 0..40 {
            let mut b = a.clone();
            b[length] ^= 0x80;
            assert_eq!(common_prefix(&a, &b), length);
            assert_eq!(common_prefix(&a, &a[..length]), length);
        }
        assert_eq!(common_prefix(&a, &a), 40);
    }
}
