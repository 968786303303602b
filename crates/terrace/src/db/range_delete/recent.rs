//! The ranges that were deleted as a whole since the oldest snapshot began: what a transaction
//! conflicts with that finds nothing of them in memtables or tables.

use crate::base::comparator::KeyOrder;
use crate::base::internal_key::SequenceNumber;
use crate::base::locks::Mutex;

use super::key_range::KeyRange;

/// See the [module](self).
#[derive(Default)]
pub(in crate::db) struct RecentRangeDeletes {
    /// Each with its sequence number.
    ranges: Mutex<Vec<(KeyRange, SequenceNumber)>>,
    /// Held for as long as a large range is being deleted: one at a time reserves tables, so that
    /// no two of them wait for each other's.
    pub(super) one_at_a_time: Mutex<()>,
}

impl RecentRangeDeletes {
    /// Notes a range, and forgets those that every transaction sees. `oldest` is the oldest
    /// snapshot, if there is one.
    pub(super) fn note(
        &self,
        range: &KeyRange,
        sequence: SequenceNumber,
        oldest: Option<SequenceNumber>,
    ) {
        let mut ranges = self.ranges.lock();
        ranges.retain(|(_, deleted)| oldest.is_some_and(|oldest| oldest < *deleted));
        if oldest.is_some() {
            ranges.push((range.clone(), sequence));
        }
    }

    /// Whether `key` is in a range that was deleted after `since`, up to which a live snapshot
    /// sees.
    pub(in crate::db) fn holds(&self, keys: &KeyOrder, key: &[u8], since: SequenceNumber) -> bool {
        let ranges = self.ranges.lock();
        ranges.iter().any(|(range, deleted)| *deleted > since && range.holds(keys, key))
    }
}
