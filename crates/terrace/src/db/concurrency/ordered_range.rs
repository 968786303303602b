//! Ranges of keys that sort as the database sorts them.

use std::ops::Bound;

use crate::base::comparator::KeyOrder;

use super::ordered_key::OrderedKey;

/// The ends of a range.
pub(in crate::db) type KeyBounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// See the [module](self).
#[derive(Clone)]
pub(in crate::db) struct OrderedRange {
    pub(in crate::db) from: Bound<OrderedKey>,
    pub(in crate::db) to: Bound<OrderedKey>,
}

impl OrderedRange {
    pub(in crate::db) fn new((from, to): KeyBounds<'_>, order: &KeyOrder) -> Self {
        let ordered = |key: &[u8]| OrderedKey::new(key, order);
        OrderedRange { from: from.map(ordered), to: to.map(ordered) }
    }

    pub(in crate::db) fn everything() -> Self {
        OrderedRange { from: Bound::Unbounded, to: Bound::Unbounded }
    }

    pub(in crate::db) fn bounds(&self) -> (Bound<&OrderedKey>, Bound<&OrderedKey>) {
        (self.from.as_ref(), self.to.as_ref())
    }

    /// Whether there may be a key in the range.
    pub(in crate::db) fn has_room(&self) -> bool {
        begins_before_end(&self.from, &self.to)
    }

    /// Whether there may be a key in both ranges.
    pub(in crate::db) fn overlaps(&self, other: &OrderedRange) -> bool {
        begins_before_end(&self.from, &other.to) && begins_before_end(&other.from, &self.to)
    }

    /// About how many bytes the ends take.
    pub(in crate::db) fn len(&self) -> usize {
        [&self.from, &self.to]
            .into_iter()
            .map(|bound| match bound {
                Bound::Included(key) | Bound::Excluded(key) => key.as_slice().len(),
                Bound::Unbounded => 0,
            })
            .sum()
    }
}

fn begins_before_end(from: &Bound<OrderedKey>, to: &Bound<OrderedKey>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Included(from), Bound::Included(to)) => from <= to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from < to,
    }
}
