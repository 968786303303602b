//! Ranges of user keys.

use std::ops::{Bound, RangeBounds};

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};

/// Keys between two bounds.
#[derive(Clone, Debug)]
pub(in crate::db) struct KeyRange {
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
}

impl KeyRange {
    pub(in crate::db) fn new<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> Self {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        KeyRange { from: owned(range.start_bound()), to: owned(range.end_bound()) }
    }

    /// The keys that begin with `prefix`. These are a range in bytewise order only.
    pub(in crate::db) fn prefix(keys: &KeyOrder, prefix: &[u8]) -> Result<Self> {
        check_prefixes(keys)?;
        let to = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        Ok(KeyRange { from: Bound::Included(prefix.to_vec()), to })
    }

    pub(in crate::db) fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (self.from.clone(), self.to.clone())
    }

    pub(in crate::db) fn as_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice))
    }

    pub(in crate::db) fn to(&self) -> &Bound<Vec<u8>> {
        &self.to
    }

    /// Its keys without those that begin with `prefix`; all of them where its first bound begins
    /// with `prefix`, and in another order than the bytewise.
    pub(in crate::db) fn sparing(self, keys: &KeyOrder, prefix: &[u8]) -> Vec<KeyRange> {
        let begins_within = match &self.from {
            Bound::Included(from) | Bound::Excluded(from) => from.starts_with(prefix),
            Bound::Unbounded => false,
        };
        let Some(end) = prefix_end(prefix).filter(|_| keys.is_bytewise() && !begins_within) else {
            return vec![self];
        };
        if !self.overlaps(keys, prefix, &end) {
            return vec![self];
        }
        let before = KeyRange { from: self.from, to: Bound::Excluded(prefix.to_vec()) };
        vec![before, KeyRange { from: Bound::Included(end), to: self.to }]
    }

    /// Whether no key can be in it, as far as the bounds alone say so.
    fn is_empty(&self, keys: &KeyOrder) -> bool {
        match (&self.from, &self.to) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(from), Bound::Included(to)) => keys.compare(from, to).is_gt(),
            (
                Bound::Included(from) | Bound::Excluded(from),
                Bound::Included(to) | Bound::Excluded(to),
            ) => keys.compare(from, to).is_ge(),
        }
    }

    /// Whether `key` lies before the range.
    fn is_after(&self, keys: &KeyOrder, key: &[u8]) -> bool {
        match &self.from {
            Bound::Unbounded => false,
            Bound::Included(from) => keys.compare(key, from).is_lt(),
            Bound::Excluded(from) => keys.compare(key, from).is_le(),
        }
    }

    /// Whether `key` lies behind the range.
    fn is_before(&self, keys: &KeyOrder, key: &[u8]) -> bool {
        match &self.to {
            Bound::Unbounded => false,
            Bound::Included(to) => keys.compare(key, to).is_gt(),
            Bound::Excluded(to) => keys.compare(key, to).is_ge(),
        }
    }

    fn holds(&self, keys: &KeyOrder, key: &[u8]) -> bool {
        !self.is_after(keys, key) && !self.is_before(keys, key)
    }

    /// Whether any key from `first` to `last`, both included, may be in the range.
    fn overlaps(&self, keys: &KeyOrder, first: &[u8], last: &[u8]) -> bool {
        !self.is_after(keys, last) && !self.is_before(keys, first)
    }
}

/// Ranges that are deleted together.
#[derive(Clone, Debug)]
pub(in crate::db) struct KeyRanges(Vec<KeyRange>);

impl KeyRanges {
    /// Those of `ranges` that are not empty.
    pub(in crate::db) fn new(keys: &KeyOrder, ranges: impl IntoIterator<Item = KeyRange>) -> Self {
        KeyRanges(ranges.into_iter().filter(|range| !range.is_empty(keys)).collect())
    }

    pub(in crate::db) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::db) fn iter(&self) -> impl Iterator<Item = &KeyRange> {
        self.0.iter()
    }

    /// A range that holds `key`.
    pub(in crate::db) fn holding(&self, keys: &KeyOrder, key: &[u8]) -> Option<&KeyRange> {
        self.0.iter().find(|range| range.holds(keys, key))
    }

    /// Whether one range holds all keys from `first` to `last`.
    pub(in crate::db) fn hold_all(&self, keys: &KeyOrder, first: &[u8], last: &[u8]) -> bool {
        self.0.iter().any(|range| range.holds(keys, first) && range.holds(keys, last))
    }

    /// Whether any key from `first` to `last`, both included, may be in one of them.
    pub(in crate::db) fn overlap(&self, keys: &KeyOrder, first: &[u8], last: &[u8]) -> bool {
        self.0.iter().any(|range| range.overlaps(keys, first, last))
    }
}

/// Fails under a comparator in whose order the keys with a prefix need not be a range.
pub(in crate::db) fn check_prefixes(keys: &KeyOrder) -> Result<()> {
    if keys.is_bytewise() {
        return Ok(());
    }
    Err(Error::not_supported("prefixes need the bytewise comparator"))
}

/// The first key after all keys that begin with `prefix`; `None` if there is none.
pub(in crate::db) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_spares_a_prefix_unless_it_begins_there() {
        let keys = KeyOrder::default();
        let spared = |range: KeyRange| {
            let ranges = KeyRanges::new(&keys, range.sparing(&keys, b"b!"));
            [&b"a"[..], b"b", b"b!", b"b!x", b"b\"", b"c"]
                .map(|key| u8::from(ranges.holding(&keys, key).is_some()))
        };
        assert_eq!(spared(KeyRange::new::<&str>(&..)), [1, 1, 0, 0, 1, 1]);
        assert_eq!(spared(KeyRange::new(&("b".."c"))), [0, 1, 0, 0, 1, 0]);
        assert_eq!(spared(KeyRange::new(&("a"..="b!x"))), [1, 1, 0, 0, 0, 0]);
        assert_eq!(spared(KeyRange::new(&("a".."b"))), [1, 0, 0, 0, 0, 0]);
        assert_eq!(spared(KeyRange::new(&("b\""..))), [0, 0, 0, 0, 1, 1]);
        assert_eq!(spared(KeyRange::new(&("b!"..))), [0, 0, 1, 1, 1, 1]);
        assert_eq!(spared(KeyRange::new(&("c".."a"))), [0; 6]);
    }

    #[test]
    fn bounds_count_as_they_say() {
        let keys = KeyOrder::default();
        let holds = |range: &KeyRange| {
            [b"a", b"b", b"c", b"d"].map(|key| range.holds(&keys, key)).map(u8::from)
        };
        assert_eq!(holds(&KeyRange::new::<&[u8]>(&..)), [1, 1, 1, 1]);
        assert_eq!(holds(&KeyRange::new(&("b".."d"))), [0, 1, 1, 0]);
        assert_eq!(holds(&KeyRange::new(&("b"..="d"))), [0, 1, 1, 1]);
        let excluded = (Bound::Excluded("b"), Bound::Included("c"));
        assert_eq!(holds(&KeyRange::new::<&str>(&excluded)), [0, 0, 1, 0]);
        assert!(KeyRange::new(&("c".."c")).is_empty(&keys));
        assert!(KeyRange::new(&("d"..="c")).is_empty(&keys));
        assert!(!KeyRange::new(&("c"..="c")).is_empty(&keys));
        let range = KeyRange::new(&("b".."c"));
        assert!(range.overlaps(&keys, b"a", b"b") && range.overlaps(&keys, b"a", b"z"));
        assert!(!range.overlaps(&keys, b"c", b"d") && !range.overlaps(&keys, b"", b"az"));
    }
}
