//! The bounds of a scan, in user keys.

use std::ops::Bound;

use crate::base::comparator::KeyOrder;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct ScanBounds {
    keys: KeyOrder,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

impl ScanBounds {
    pub(crate) fn new(keys: &KeyOrder, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Self {
        ScanBounds { keys: keys.clone(), lower, upper }
    }

    /// A scan of everything.
    pub(crate) fn none(keys: &KeyOrder) -> Self {
        Self::new(keys, Bound::Unbounded, Bound::Unbounded)
    }

    pub(crate) fn lower(&self) -> &Bound<Vec<u8>> {
        &self.lower
    }

    pub(crate) fn upper(&self) -> &Bound<Vec<u8>> {
        &self.upper
    }

    /// Whether there is a bound at all.
    pub(crate) fn is_bounded(&self) -> bool {
        !matches!((&self.lower, &self.upper), (Bound::Unbounded, Bound::Unbounded))
    }

    /// Those of keys from `lower` on and before `upper` that are within these bounds.
    pub(crate) fn narrowed(mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Self {
        // A key at a bound that is left out is beyond it.
        if let Some(lower) = lower.filter(|lower| !self.is_below(lower)) {
            self.lower = Bound::Included(lower.to_vec());
        }
        if let Some(upper) = upper.filter(|upper| !self.is_above(upper)) {
            self.upper = Bound::Excluded(upper.to_vec());
        }
        self
    }

    pub(crate) fn is_below(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => false,
            Bound::Included(lower) => self.keys.compare(key, lower).is_lt(),
            Bound::Excluded(lower) => self.keys.compare(key, lower).is_le(),
        }
    }

    pub(crate) fn is_above(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => self.keys.compare(key, upper).is_gt(),
            Bound::Excluded(upper) => self.keys.compare(key, upper).is_ge(),
        }
    }

    /// Whether a scan in this direction that comes to `key` has passed its bound.
    #[inline]
    pub(crate) fn is_beyond(&self, key: &[u8], is_forward: bool) -> bool {
        if is_forward { self.is_above(key) } else { self.is_below(key) }
    }

    fn ahead(&self, is_forward: bool) -> &Bound<Vec<u8>> {
        if is_forward { &self.upper } else { &self.lower }
    }

    /// The key at which a scan in this direction ends.
    pub(super) fn key_ahead(&self, is_forward: bool) -> Option<&[u8]> {
        match self.ahead(is_forward) {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
        }
    }

    /// Of `end` and the bound ahead, that which a scan in this direction comes to first.
    pub(super) fn nearer(&self, end: Bound<Vec<u8>>, is_forward: bool) -> Bound<Vec<u8>> {
        let is_nearer = |bound: &[u8]| match &end {
            Bound::Unbounded => true,
            Bound::Included(end) | Bound::Excluded(end) => {
                let ordering = self.keys.compare(bound, end);
                if is_forward { ordering.is_lt() } else { ordering.is_gt() }
            }
        };
        match self.key_ahead(is_forward) {
            Some(bound) if is_nearer(bound) => self.ahead(is_forward).clone(),
            _ => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(lower: Bound<&str>, upper: Bound<&str>) -> ScanBounds {
        let owned = |bound: Bound<&str>| bound.map(|key| key.as_bytes().to_vec());
        ScanBounds::new(&KeyOrder::default(), owned(lower), owned(upper))
    }

    fn within(bounds: &ScanBounds) -> String {
        let is_within =
            |key: &char| !bounds.is_below(&[*key as u8]) && !bounds.is_above(&[*key as u8]);
        "abcdefg".chars().filter(is_within).collect()
    }

    #[test]
    fn bounds_are_narrowed_to_what_both_leave() {
        use Bound::{Excluded, Included, Unbounded};
        assert_eq!(within(&bounds(Excluded("b"), Included("e"))), "cde");
        let narrowed = |lower, upper, inner: [&str; 2]| {
            let [from, to] = inner.map(|key| Some(key.as_bytes()));
            within(&bounds(lower, upper).narrowed(from, to))
        };
        assert_eq!(narrowed(Unbounded, Unbounded, ["b", "e"]), "bcd");
        assert_eq!(narrowed(Excluded("b"), Included("e"), ["b", "e"]), "cd");
        assert_eq!(narrowed(Included("b"), Excluded("e"), ["b", "e"]), "bcd");
        assert_eq!(narrowed(Excluded("b"), Included("e"), ["a", "f"]), "cde");
        assert_eq!(narrowed(Included("b"), Included("e"), ["c", "d"]), "c");
        assert_eq!(narrowed(Included("f"), Included("g"), ["a", "c"]), "");
    }
}
