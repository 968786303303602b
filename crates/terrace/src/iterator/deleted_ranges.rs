//! Ranges of keys that are known to be deleted, so that scans skip them.
//!
//! A tombstone hides older entries until a compaction removes both. Where many keys side by side
//! were deleted, as at the head of a queue, every scan steps over all of the tombstones. A scan
//! that has passed many of them without an entry reports the range here, and later scans skip it.
//!
//! A report holds for the moment of its read only, because a put may be in progress. So a range is
//! *watched* first: it is registered while no write is in progress, and from then on every put
//! removes its own key from all watched ranges. When a scan that began later passes what is left of
//! the range without an entry, the range is *known*: nothing was there at that read's sequence
//! number, and nothing has been written since.
//!
//! # Invariants
//! 1. Puts with a sequence number greater than `watched_since` have removed their keys from the
//!    range before a read sees them.
//! 2. In a known range a read that sees everything up to `empty_at` finds nothing.
//! 3. A reader of a view from before a compaction filter removed values skips no range that was
//!    found after that: removals of a filter have no sequence number of their own. So reads up to
//!    `filtered`, the last write before the removals were visible, are not noted.
//! 4. Nothing waits here: a reader that does not get the lock goes on without ranges. (After a fork
//!    the lock's owner may be in the other process.)
//!
//! Bytewise order only.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::internal_key::SequenceNumber;
use crate::base::locks::{AtomicU64, Mutex};
use crate::base::mutation::mutated;

/// Ranges that are kept. The oldest is replaced first.
const MOST: usize = 8;

/// The bytes of the longest key that a range may begin or end with.
const LONGEST_KEY: usize = 1024;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct DeletedRanges {
    ranges: Mutex<Vec<DeletedRange>>,
    /// The number of ranges. Changes under the writer's lock, except for ranges that a known range
    /// replaces.
    count: AtomicUsize,
    /// How many ranges were ever watched.
    moment: AtomicU64,
    /// See the invariants. The maximum while a view with removals of a filter is being installed.
    filtered: AtomicU64,
}

struct DeletedRange {
    from: Vec<u8>,
    /// The first key after it; `None` if there is no end.
    to: Option<Vec<u8>>,
    watched_since: SequenceNumber,
    moment: u64,
    /// Set once the range is known: see the invariants.
    empty_at: Option<SequenceNumber>,
}

impl DeletedRange {
    fn holds(&self, key: &[u8]) -> bool {
        *self.from <= *key && self.ends_after(key)
    }

    fn ends_after(&self, key: &[u8]) -> bool {
        self.to.as_deref().is_none_or(|to| key < to)
    }

    /// Whether it lies within these bounds.
    fn is_within(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        *from <= *self.from && ends_within(self.to.as_deref(), to)
    }

    /// Whether all between these bounds lies within it.
    fn covers(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        *self.from <= *from && ends_within(to, self.to.as_deref())
    }

    /// Leaves out a key, and what is on one side of it: what lies behind it, if anything is before.
    fn invalidate(&mut self, key: &[u8]) {
        if *self.from < *key {
            self.to = Some(key.to_vec());
        } else {
            self.from.push(0);
        }
    }
}

/// A reader takes this before it takes anything that it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// Of the known ranges: see [`DeletedRanges::moment`].
    pub(crate) moment: u64,
    /// The last write that is visible. The reader's own sequence number may be later than the view
    /// it holds: a write into a memtable that was created meanwhile is not in that view. Writes up
    /// to this one are.
    pub(crate) visible: SequenceNumber,
}

/// Whether a range that ends before `end` ends no later than one that ends before `outer`.
fn ends_within(end: Option<&[u8]>, outer: Option<&[u8]>) -> bool {
    match (end, outer) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(end), Some(outer)) => end <= outer,
    }
}

/// Records ranges that a scan found deleted, and returns those that are known.
pub(crate) trait DeletedRangeRecorder {
    fn deleted_ranges(&self) -> &DeletedRanges;

    /// [Watches](DeletedRanges::watch) a range, unless a write is in progress.
    fn watch(&self, from: &[u8], to: Option<&[u8]>);
}

impl DeletedRanges {
    /// The ranges that are watched when a reader begins.
    #[inline]
    pub(crate) fn moment(&self) -> u64 {
        self.moment.load(Ordering::Acquire)
    }

    /// Passes the bounds of the known range around `key` to `look`, if a reader that sees
    /// everything up to `sequence` may skip it.
    pub(crate) fn around<R>(
        &self,
        key: &[u8],
        sequence: SequenceNumber,
        show: impl FnOnce(&[u8], Option<&[u8]>) -> R,
    ) -> Option<R> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let ranges = self.ranges.try_lock()?;
        let is_known = |range: &&DeletedRange| {
            range.empty_at.is_some_and(|at| at <= sequence) && range.holds(key)
        };
        ranges.iter().find(is_known).map(|known| show(&known.from, known.to.as_deref()))
    }

    /// Reports that a scan at `sequence` by a reader that began at `moment` found nothing between
    /// these bounds. Returns whether they are worth [watching](Self::watch).
    pub(crate) fn note(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        sequence: SequenceNumber,
        moment: u64,
    ) -> bool {
        let is_filtered = sequence <= self.filtered.load(Ordering::Acquire);
        if is_filtered && !mutated("filter-and-deleted-ranges")
            || from.len().max(to.map_or(0, <[u8]>::len)) > LONGEST_KEY
            || to.is_some_and(|to| to <= from)
        {
            return false;
        }
        let Some(mut ranges) = self.ranges.try_lock() else { return false };
        let is_new = |range: &DeletedRange| {
            let began_later = range.moment <= moment && range.watched_since <= sequence;
            let is_seen = range.is_within(from, to) || range.covers(from, to);
            range.empty_at.is_none() && began_later && is_seen
        };
        let Some(mut known) = ranges.iter().position(is_new).map(|at| ranges.remove(at)) else {
            // A covered range is known already, or watched and waits for the next scan.
            return !ranges.iter().any(|range| range.covers(from, to));
        };
        known.empty_at = Some(sequence);
        if !known.is_within(from, to) {
            (known.from, known.to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        }
        ranges.retain(|range| !range.is_within(&known.from, known.to.as_deref()));
        ranges.push(known);
        self.count.store(ranges.len(), Ordering::Relaxed);
        false
    }

    /// To be called before a view is installed in which a compaction filter has removed values.
    pub(crate) fn begin_filtered(&self) {
        self.filtered.store(SequenceNumber::MAX, Ordering::Release);
    }

    /// To be called when it is installed: `visible` is the last write that is visible then. The
    /// caller excludes other such installations from [`begin_filtered`](Self::begin_filtered) on.
    pub(crate) fn end_filtered(&self, visible: SequenceNumber) {
        self.filtered.store(visible, Ordering::Release);
    }

    /// Watches a range from now on. The caller excludes all writers; `last` is the last write.
    pub(crate) fn watch(&self, from: &[u8], to: Option<&[u8]>, last: SequenceNumber) {
        let Some(mut ranges) = self.ranges.try_lock() else { return };
        if ranges.len() == MOST {
            ranges.remove(0);
        }
        let moment = self.moment.load(Ordering::Relaxed) + 1;
        let (from, to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        ranges.push(DeletedRange { from, to, watched_since: last, moment, empty_at: None });
        self.count.store(ranges.len(), Ordering::Relaxed);
        self.moment.store(moment, Ordering::Release);
    }

    /// Removes `key` from all ranges: a put of it becomes visible next. Called by the writer only.
    #[inline]
    pub(crate) fn invalidate(&self, key: &[u8]) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.invalidate_known(key);
        }
    }

    #[cold]
    fn invalidate_known(&self, key: &[u8]) {
        let mut ranges = self.ranges.lock();
        if !mutated("puts-in-deleted-ranges") {
            if key.len() > LONGEST_KEY {
                ranges.retain(|range| !range.holds(key));
            }
            ranges
                .iter_mut()
                .filter(|range| range.holds(key))
                .for_each(|range| range.invalidate(key));
            ranges.retain(|range| range.ends_after(&range.from));
        }
        self.count.store(ranges.len(), Ordering::Relaxed);
    }

    /// Invalidates all ranges. Called by the writer only.
    pub(crate) fn clear(&self) {
        let mut ranges = self.ranges.lock();
        ranges.clear();
        self.count.store(0, Ordering::Relaxed);
    }
}
