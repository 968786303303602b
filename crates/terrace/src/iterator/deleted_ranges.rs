//! Ranges of keys in which reads find nothing, so that they need not find that out again.
//!
//! A deletion hides what is older until merging removes both. Where many were deleted side by side,
//! as at the head of a queue, every walk goes over all of it before it comes to something. A walk
//! that has gone far in vain says so here; others leap over it.
//!
//! What walks say is true at the moment of their read alone: a put may be on its way. So a range is
//! *watched* first, from a moment on at which nothing is being written, and every put cuts its key
//! out of all that are watched. If a walk that began later goes over what is left of the range and
//! finds nothing either, it is a *gap*: nothing was there at that read's sequence number, and
//! nothing has come since.
//!
//! # Invariants
//! 1. Puts with a sequence number greater than `watched_since` have cut their keys out before a
//!    read sees them.
//! 2. In a gap no read that has everything up to `empty_at` finds anything.
//! 3. Nothing waits here: a reader that does not get the lock goes on as if there were nothing.
//!    (After a fork its owner may be in the other process.)
//!
//! In the bytewise order only.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::internal_key::SequenceNumber;
use crate::base::locks::{AtomicU64, Mutex};
use crate::base::mutation::mutated;

/// Ranges that are kept. The oldest goes first.
const MOST: usize = 8;

/// The bytes of the longest key that a range may begin or end with.
const LONGEST_KEY: usize = 1024;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct DeletedRanges {
    ranges: Mutex<Vec<DeletedRange>>,
    /// How many there are; changes under the lock of whoever writes, but for those that a gap takes
    /// the place of.
    count: AtomicUsize,
    /// How many ranges were ever watched.
    moment: AtomicU64,
}

struct DeletedRange {
    from: Vec<u8>,
    /// The first key after it; `None` if there is no end.
    to: Option<Vec<u8>>,
    watched_since: SequenceNumber,
    moment: u64,
    /// Where it is a gap: see the invariants.
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
    fn cut(&mut self, key: &[u8]) {
        if *self.from < *key {
            self.to = Some(key.to_vec());
        } else {
            self.from.push(0);
        }
    }
}

/// What a reader takes note of before it takes anything that it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// Of the gaps: see [`DeletedRanges::moment`].
    pub(crate) moment: u64,
    /// The last write that could be seen. The reader's own number may be later than what it has got
    /// hold of: a write into a memtable that was begun meanwhile is not there for it. This one and
    /// those before it are.
    pub(crate) visible: SequenceNumber,
}

/// Whether what ends before `end` ends with what ends before `outer`, or earlier.
fn ends_within(end: Option<&[u8]>, outer: Option<&[u8]>) -> bool {
    match (end, outer) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(end), Some(outer)) => end <= outer,
    }
}

/// Who keeps the gaps that a walk knows of.
pub(crate) trait DeletedRangeRecorder {
    fn gaps(&self) -> &DeletedRanges;

    /// Has a range [watched](DeletedRanges::watch), unless somebody writes at the moment.
    fn watch(&self, from: &[u8], to: Option<&[u8]>);
}

impl DeletedRanges {
    /// Which ranges are watched already when a reader begins.
    #[inline]
    pub(crate) fn moment(&self) -> u64 {
        self.moment.load(Ordering::Acquire)
    }

    /// The gap around `key` for a reader that sees everything up to `sequence`, if there is one:
    /// its bounds are shown.
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
        let is_gap = |range: &&DeletedRange| {
            range.empty_at.is_some_and(|at| at <= sequence) && range.holds(key)
        };
        ranges.iter().find(is_gap).map(|gap| show(&gap.from, gap.to.as_deref()))
    }

    /// A walk at `sequence` of a reader that began at `moment` found nothing between these bounds.
    /// Answers whether they are worth [watching](Self::watch).
    pub(crate) fn note(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        sequence: SequenceNumber,
        moment: u64,
    ) -> bool {
        if from.len().max(to.map_or(0, <[u8]>::len)) > LONGEST_KEY
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
        let Some(mut gap) = ranges.iter().position(is_new).map(|at| ranges.remove(at)) else {
            // What is covered is known, or watched and waits for the next walk.
            return !ranges.iter().any(|range| range.covers(from, to));
        };
        gap.empty_at = Some(sequence);
        if !gap.is_within(from, to) {
            (gap.from, gap.to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        }
        ranges.retain(|range| !range.is_within(&gap.from, gap.to.as_deref()));
        ranges.push(gap);
        self.count.store(ranges.len(), Ordering::Relaxed);
        false
    }

    /// Watches a range from now on. The caller keeps everybody from writing; `last` is the last
    /// write.
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

    /// A put of `key` is about to be seen. The caller is the only one who writes.
    #[inline]
    pub(crate) fn cut(&self, key: &[u8]) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.cut_out(key);
        }
    }

    #[cold]
    fn cut_out(&self, key: &[u8]) {
        let mut ranges = self.ranges.lock();
        if !mutated("puts-in-gaps") {
            if key.len() > LONGEST_KEY {
                ranges.retain(|range| !range.holds(key));
            }
            ranges.iter_mut().filter(|range| range.holds(key)).for_each(|range| range.cut(key));
            ranges.retain(|range| range.ends_after(&range.from));
        }
        self.count.store(ranges.len(), Ordering::Relaxed);
    }

    /// Anything may be about to be seen. The caller is the only one who writes.
    pub(crate) fn clear(&self) {
        let mut ranges = self.ranges.lock();
        ranges.clear();
        self.count.store(0, Ordering::Relaxed);
    }
}
