//! The keys and ranges that a serializable transaction has read, absent keys included.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use crate::base::comparator::KeyOrder;
use crate::base::error::Result;
use crate::base::locks::Mutex;

use super::ordered_key::OrderedKey;
use super::ordered_range::OrderedRange;

/// See the [module](self). Reads through a shared transaction add to it.
pub(in crate::db) struct ReadSet {
    order: KeyOrder,
    /// Each key once, however often it is read.
    keys: Mutex<BTreeSet<OrderedKey>>,
    ranges: Mutex<Vec<OrderedRange>>,
}

impl ReadSet {
    pub(in crate::db) fn new(order: KeyOrder) -> Self {
        ReadSet { order, keys: Mutex::default(), ranges: Mutex::default() }
    }

    /// Adds one key.
    pub(in crate::db) fn add_key(&self, key: &[u8]) {
        self.keys.lock().insert(OrderedKey::new(key, &self.order));
    }

    /// Begins a scan whose extent is not known yet: until then it counts as one of everything.
    /// Returns its number.
    fn begin_scan(&self) -> usize {
        let mut ranges = self.ranges.lock();
        ranges.push(OrderedRange::everything());
        ranges.len() - 1
    }

    fn set_bounds(&self, scan: usize, from: Option<Bound<&[u8]>>, to: Option<Bound<&[u8]>>) {
        let ordered = |bound: Bound<&[u8]>| bound.map(|key| OrderedKey::new(key, &self.order));
        if let Some(range) = self.ranges.lock().get_mut(scan) {
            from.into_iter().for_each(|from| range.from = ordered(from));
            to.into_iter().for_each(|to| range.to = ordered(to));
        }
    }

    /// Hands every key to `visit`.
    pub(in crate::db) fn try_for_each_key(
        &self,
        visit: impl FnMut(&OrderedKey) -> Result<()>,
    ) -> Result<()> {
        self.keys.lock().iter().try_for_each(visit)
    }

    /// Hands every range that is not empty to `visit`.
    pub(in crate::db) fn try_for_each_range(
        &self,
        visit: impl FnMut(&OrderedRange) -> Result<()>,
    ) -> Result<()> {
        self.ranges.lock().iter().filter(|range| range.has_room()).try_for_each(visit)
    }
}

/// A scan of a cursor, from where it was last sought to where it stands.
pub(in crate::db) struct Scan<'t> {
    set: &'t ReadSet,
    /// Keys outside of these bounds do not count.
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    /// The number of the scan in progress, and where it began, until that is noted.
    scan: Option<usize>,
    start: Option<Bound<Vec<u8>>>,
}

impl<'t> Scan<'t> {
    pub(in crate::db) fn new(set: &'t ReadSet, from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> Self {
        Scan { set, from: from.clone(), to: to.clone(), scan: None, start: None }
    }

    /// Begins at `start`: at a key, or, unbounded, at the first or last entry.
    pub(in crate::db) fn begin(&mut self, start: Bound<&[u8]>) {
        self.scan = Some(self.set.begin_scan());
        self.start = Some(start.map(<[u8]>::to_vec));
    }

    /// Notes where the cursor stands, forward or backward of the start; unbounded if it is off the
    /// end. It goes one way until the next [`begin`](Self::begin).
    pub(in crate::db) fn reach(&mut self, forward: bool, place: Bound<&[u8]>) {
        let Some(scan) = self.scan else { return };
        let keys = &self.set.order;
        let lower = |from| tighter(keys, from, slice(&self.from), Ordering::Greater);
        let upper = |to| tighter(keys, to, slice(&self.to), Ordering::Less);
        let start = self.start.as_ref().map(slice);
        match forward {
            true => self.set.set_bounds(scan, start.map(lower), Some(upper(place))),
            false => self.set.set_bounds(scan, Some(lower(place)), start.map(upper)),
        }
        self.start = None;
    }
}

fn slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Of two bounds the one inside the other: the greater one of lower bounds, the lesser of upper
/// ones.
fn tighter<'b>(
    keys: &KeyOrder,
    a: Bound<&'b [u8]>,
    b: Bound<&'b [u8]>,
    inner: Ordering,
) -> Bound<&'b [u8]> {
    match (a, b) {
        (Bound::Unbounded, bound) | (bound, Bound::Unbounded) => bound,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            match keys.compare(x, y) {
                Ordering::Equal if matches!(a, Bound::Excluded(_)) => a,
                Ordering::Equal => b,
                ordering if ordering == inner => a,
                _ => b,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_read_again_takes_no_space() {
        let set = ReadSet::new(KeyOrder::default());
        for key in ["a", "b", "a", "a"] {
            set.add_key(key.as_bytes());
        }
        let mut keys = Vec::new();
        set.try_for_each_key(|key| {
            keys.push(key.as_slice().to_vec());
            Ok(())
        })
        .expect("no error");
        assert_eq!(keys, [b"a", b"b"]);
    }
}
