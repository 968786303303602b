//! Deleted keys in a row that a scan passes.

use std::ops::Bound;

/// A scan looks for a known deleted range after this many deleted keys in a row, and reports the
/// range that it has passed after the second number.
const DELETED_FOR_A_LOOK: usize = 8;
const DELETED_FOR_A_NOTE: usize = 64;

/// See the [module](self).
#[derive(Default)]
pub(super) struct DeletedRun {
    /// The bound that the scan came from; `None` until it has looked for known ranges.
    begin: Option<Bound<Vec<u8>>>,
    /// Keys that it has not skipped.
    count: usize,
}

impl DeletedRun {
    /// Counts a key. Returns whether it is time to look for a known range.
    #[inline]
    pub(super) fn add(&mut self) -> bool {
        self.count += 1;
        self.count.is_multiple_of(DELETED_FOR_A_LOOK)
    }

    /// The scan has skipped a known range that begins with `bound`.
    pub(super) fn begin_with(&mut self, bound: Bound<Vec<u8>>) {
        self.begin.get_or_insert(bound);
    }

    /// The scan has found no known range at `key`.
    pub(super) fn begin_at(&mut self, key: &[u8], is_forward: bool) {
        self.begin.get_or_insert_with(|| {
            let key = key.to_vec();
            if is_forward { Bound::Included(key) } else { Bound::Excluded(key) }
        });
    }

    #[inline]
    pub(super) fn is_worth_a_note(&self) -> bool {
        self.count >= DELETED_FOR_A_NOTE
    }

    /// The range that the scan has passed, its end left out, if it ends at `end`, or where there
    /// are no more keys.
    pub(super) fn range(self, end: Option<&[u8]>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        match self.begin? {
            Bound::Included(from) => Some((from, end.map(<[u8]>::to_vec))),
            begin => {
                // Backward: from behind the key at which it ends.
                let from = end.map_or_else(Vec::new, |end| [end, &[0]].concat());
                let to = if let Bound::Excluded(to) = begin { Some(to) } else { None };
                Some((from, to))
            }
        }
    }
}
