//! The ranges that were deleted as a whole since the oldest snapshot began: what a transaction
//! conflicts with that finds nothing of them in memtables or tables.

use crate::base::comparator::KeyOrder;
use crate::base::internal_key::SequenceNumber;
use crate::base::locks::Mutex;

use crate::db::key_range::KeyRanges;

/// See the [module](self).
#[derive(Default)]
pub(in crate::db) struct RecentRangeDeletes {
    /// Each with its sequence number.
    deleted: Mutex<Vec<(KeyRanges, SequenceNumber)>>,
    /// Held for as long as a large range is being deleted: one at a time reserves tables, so that
    /// no two of them wait for each other's.
    pub(in crate::db) one_at_a_time: Mutex<()>,
}

impl RecentRangeDeletes {
    /// Notes ranges, and forgets those that every transaction sees. `oldest` is the oldest
    /// snapshot, if there is one.
    pub(in crate::db) fn note(
        &self,
        ranges: &KeyRanges,
        sequence: SequenceNumber,
        oldest: Option<SequenceNumber>,
    ) {
        let mut deleted = self.deleted.lock();
        deleted.retain(|(_, at)| oldest.is_some_and(|oldest| oldest < *at));
        if oldest.is_some() {
            deleted.push((ranges.clone(), sequence));
        }
    }

    /// Whether `key` is in a range that was deleted after `since`, up to which a live snapshot
    /// sees.
    pub(in crate::db) fn holds(&self, keys: &KeyOrder, key: &[u8], since: SequenceNumber) -> bool {
        let deleted = self.deleted.lock();
        deleted.iter().any(|(ranges, at)| *at > since && ranges.holding(keys, key).is_some())
    }
}
