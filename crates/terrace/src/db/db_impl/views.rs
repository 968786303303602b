//! The present view and the last visible write, which reads see, and what is known of both.
//!
//! Any thread, without a lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::internal_key::SequenceNumber;
use crate::base::locks::{ArcSwap, AtomicU64};
use crate::iterator::deleted_ranges::{Beginning, DeletedRanges};

use crate::db::db_impl::recent_range_deletes::RecentRangeDeletes;
use crate::db::view::View;
use crate::db::view::snapshot_list::SnapshotList;

/// See the [module](self).
pub(in crate::db) struct Views {
    pub(in crate::db) current: ArcSwap<View>,
    /// The last write that reads see. Stored under the commit lock, after the write is in the
    /// memtable.
    pub(in crate::db) visible: AtomicU64,
    pub(in crate::db) snapshots: Arc<SnapshotList>,
    pub(in crate::db) deleted_ranges: DeletedRanges,
    pub(in crate::db) range_deletes: RecentRangeDeletes,
    /// How many ingests came in beneath all sequence numbers: no number tells that they did.
    pub(in crate::db) ingests: AtomicU64,
}

impl Views {
    pub(in crate::db) fn new(view: View, visible: SequenceNumber) -> Self {
        Views {
            current: ArcSwap::from_pointee(view),
            visible: AtomicU64::new(visible),
            snapshots: Arc::default(),
            deleted_ranges: DeletedRanges::default(),
            range_deletes: RecentRangeDeletes::default(),
            ingests: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(in crate::db) fn visible_sequence(&self) -> SequenceNumber {
        self.visible.load(Ordering::Acquire)
    }

    /// Returns the state that a read that [skips known deleted
    /// ranges](crate::iterator::deleted_ranges) loads before the view.
    pub(in crate::db) fn beginning(&self) -> Beginning {
        Beginning { moment: self.deleted_ranges.moment(), visible: self.visible_sequence() }
    }
}
