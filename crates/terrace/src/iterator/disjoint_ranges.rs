//! Ranges of keys, sorted, of which no two overlap, so that a look-up of a key finds one at most.
//! Bytewise order only.

use std::collections::BTreeMap;
use std::ops::Bound;

/// See the [module](self).
pub(super) struct DisjointRanges<S>(BTreeMap<Vec<u8>, Range<S>>);

/// A range of keys, with what is known of it.
pub(super) struct Range<S> {
    /// The first key after it; `None` if there is no end.
    pub(super) to: Option<Vec<u8>>,
    pub(super) state: S,
}

impl<S> Default for DisjointRanges<S> {
    fn default() -> Self {
        DisjointRanges(BTreeMap::new())
    }
}

impl<S> Range<S> {
    fn ends_after(&self, key: &[u8]) -> bool {
        self.to.as_deref().is_none_or(|to| key < to)
    }
}

impl<S> DisjointRanges<S> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The caller has taken out what it overlaps.
    pub(super) fn insert(&mut self, start: Vec<u8>, range: Range<S>) {
        self.0.insert(start, range);
    }

    pub(super) fn remove(&mut self, start: &[u8]) {
        self.0.remove(start);
    }

    /// Removes the range that holds `key`.
    pub(super) fn remove_holding(&mut self, key: &[u8]) {
        if let Some(start) = self.holding(key).map(|(start, _)| start.clone()) {
            self.remove(&start);
        }
    }

    /// The range that holds `key`, with its first key.
    pub(super) fn holding(&self, key: &[u8]) -> Option<(&Vec<u8>, &Range<S>)> {
        let before = (Bound::Unbounded, Bound::Included(key));
        self.0.range::<[u8], _>(before).next_back().filter(|(_, range)| range.ends_after(key))
    }

    /// The range within which all between these bounds lies.
    pub(super) fn covering(&self, from: &[u8], to: Option<&[u8]>) -> Option<(&Vec<u8>, &Range<S>)> {
        self.holding(from).filter(|(_, range)| ends_within(to, range.to.as_deref()))
    }

    /// The ranges that begin between these bounds.
    fn beginning_in(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> impl Iterator<Item = (&Vec<u8>, &Range<S>)> + use<'_, S> {
        let end = to.map_or(Bound::Unbounded, Bound::Excluded);
        self.0.range::<[u8], _>((Bound::Included(from), end))
    }

    /// The range with the least moment.
    pub(super) fn oldest(&self, moment: impl Fn(&S) -> u64) -> Option<(u64, Vec<u8>)> {
        let moments = self.0.iter().map(|(start, range)| (moment(&range.state), start));
        moments.min().map(|(moment, start)| (moment, start.clone()))
    }

    /// The ranges that overlap these bounds.
    pub(super) fn overlapping(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> impl Iterator<Item = (&Vec<u8>, &Range<S>)> + use<'_, S> {
        let before = self.holding(from).filter(|(start, _)| **start != *from);
        before.into_iter().chain(self.beginning_in(from, to))
    }

    /// Takes out a range that overlaps these bounds, or ends or begins at one of them.
    pub(super) fn take_joining(
        &mut self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Option<(Vec<u8>, Range<S>)> {
        let before = self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(from))).next_back();
        let before = before.filter(|(_, range)| range.to.as_deref().is_none_or(|end| from <= end));
        let found = before
            .or_else(|| self.beginning_in(from, to).next())
            .or_else(|| self.0.get_key_value(to?));
        let start = found.map(|(start, _)| start.clone())?;
        self.0.remove_entry(&start)
    }

    /// What lies between these bounds and in no range.
    pub(super) fn uncovered(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let (mut uncovered, mut at) = (Vec::new(), from);
        for (start, range) in self.overlapping(from, to) {
            if *at < **start {
                uncovered.push((at.to_vec(), Some(start.clone())));
            }
            let Some(end) = &range.to else { return uncovered };
            at = end;
        }
        if to.is_none_or(|to| at < to) {
            uncovered.push((at.to_vec(), to.map(<[u8]>::to_vec)));
        }
        uncovered
    }

    /// Removes the ranges that lie within these bounds.
    pub(super) fn remove_within(&mut self, from: &[u8], to: Option<&[u8]>) {
        let within = self.beginning_in(from, to);
        let within = within.filter(|(_, range)| ends_within(range.to.as_deref(), to));
        let within: Vec<_> = within.map(|(start, _)| start.clone()).collect();
        within.iter().for_each(|start| drop(self.0.remove(start)));
    }

    /// Leaves `key` out, and what is on one side of it: what lies behind it, if anything is before.
    pub(super) fn leave_out(&mut self, key: &[u8]) {
        let Some((start, _)) = self.holding(key) else { return };
        let mut start = start.clone();
        if *start < *key {
            self.0.entry(start).and_modify(|range| range.to = Some(key.to_vec()));
        } else if let Some(range) = self.0.remove(&start) {
            start.push(0);
            if range.ends_after(&start) {
                self.0.insert(start, range);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn check_disjoint(&self) {
        let mut end = Some(Vec::new());
        for (start, range) in &self.0 {
            assert!(end.as_ref().is_some_and(|end| end <= start) && range.ends_after(start));
            end = range.to.clone();
        }
    }
}

/// Whether a range that ends before `end` ends no later than one that ends before `outer`.
pub(super) fn ends_within(end: Option<&[u8]>, outer: Option<&[u8]>) -> bool {
    match (end, outer) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(end), Some(outer)) => end <= outer,
    }
}
