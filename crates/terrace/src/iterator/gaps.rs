//! Stretches of keys in which reads find nothing, so that they need not find that out again.
//!
//! A deletion hides what is older until merging removes both. Where many were deleted side by side, as at the head of a queue,
//! every walk goes over all of it before it comes to something. A walk that has gone far in vain says so here; others leap
//! over it.
//!
//! What walks say is true at the moment of their read alone: a put may be on its way. So a stretch is *watched* first, from
//! a moment on at which nothing is being written, and every put cuts its key out of all that are watched. If a walk that
//! began later goes over what is left of the stretch and finds nothing either, it is a *gap*: nothing was there at that
//! read's sequence number, and nothing has come since.
//!
//! # Invariants
//! 1. Puts with a sequence number greater than `watched_since` have cut their keys out before a read sees them.
//! 2. In a gap no read that has everything up to `empty_at` finds anything.
//! 3. Nothing waits here: a reader that does not get the lock goes on as if there were nothing. (After a fork its owner may
//!    be in the other process.)
//!
//! In the bytewise order only.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::internal_key::SequenceNumber;
use crate::base::locks::{AtomicU64, Mutex};
use crate::base::sabotage::sabotaged;

/// Stretches that are kept. The oldest goes first.
const MOST: usize = 8;

/// The bytes of the longest key that a stretch may begin or end with.
const LONGEST_KEY: usize = 1024;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Gaps {
    stretches: Mutex<Vec<Stretch>>,
    /// How many there are; changes under the lock of whoever writes, but for those that a gap takes the place of.
    count: AtomicUsize,
    /// How many stretches were ever watched.
    moment: AtomicU64,
}

struct Stretch {
    from: Vec<u8>,
    /// The first key after it; `None` if there is no end.
    to: Option<Vec<u8>>,
    watched_since: SequenceNumber,
    moment: u64,
    /// Where it is a gap: see the invariants.
    empty_at: Option<SequenceNumber>,
}

impl Stretch {
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
    /// Of the gaps: see [`Gaps::moment`].
    pub(crate) moment: u64,
    /// The last write that could be seen. The reader's own number may be later than what it has got hold of: a write into a
    /// memtable that was begun meanwhile is not there for it. This one and those before it are.
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
pub(crate) trait GapKeeper {
    fn gaps(&self) -> &Gaps;

    /// Has a stretch [watched](Gaps::watch), unless somebody writes at the moment.
    fn watch(&self, from: &[u8], to: Option<&[u8]>);
}

impl Gaps {
    /// Which stretches are watched already when a reader begins.
    #[inline]
    pub(crate) fn moment(&self) -> u64 {
        self.moment.load(Ordering::Acquire)
    }

    /// The gap around `key` for a reader that sees everything up to `sequence`, if there is one: its bounds are shown.
    pub(crate) fn around<R>(
        &self,
        key: &[u8],
        sequence: SequenceNumber,
        show: impl FnOnce(&[u8], Option<&[u8]>) -> R,
    ) -> Option<R> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let stretches = self.stretches.try_lock()?;
        let is_gap = |stretch: &&Stretch| stretch.empty_at.is_some_and(|at| at <= sequence) && stretch.holds(key);
        stretches.iter().find(is_gap).map(|gap| show(&gap.from, gap.to.as_deref()))
    }

    /// A walk at `sequence` of a reader that began at `moment` found nothing between these bounds. Answers whether they are
    /// worth [watching](Self::watch).
    pub(crate) fn note(&self, from: &[u8], to: Option<&[u8]>, sequence: SequenceNumber, moment: u64) -> bool {
        if from.len().max(to.map_or(0, <[u8]>::len)) > LONGEST_KEY || to.is_some_and(|to| to <= from) {
            return false;
        }
        let Some(mut stretches) = self.stretches.try_lock() else { return false };
        let is_new = |stretch: &Stretch| {
            let began_later = stretch.moment <= moment && stretch.watched_since <= sequence;
            let is_seen = stretch.is_within(from, to) || stretch.covers(from, to);
            stretch.empty_at.is_none() && began_later && is_seen
        };
        let Some(mut gap) = stretches.iter().position(is_new).map(|at| stretches.remove(at)) else {
            // What is covered is known, or watched and waits for the next walk.
            return !stretches.iter().any(|stretch| stretch.covers(from, to));
        };
        gap.empty_at = Some(sequence);
        if !gap.is_within(from, to) {
            (gap.from, gap.to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        }
        stretches.retain(|stretch| !stretch.is_within(&gap.from, gap.to.as_deref()));
        stretches.push(gap);
        self.count.store(stretches.len(), Ordering::Relaxed);
        false
    }

    /// Watches a stretch from now on. The caller keeps everybody from writing; `last` is the last write.
    pub(crate) fn watch(&self, from: &[u8], to: Option<&[u8]>, last: SequenceNumber) {
        let Some(mut stretches) = self.stretches.try_lock() else { return };
        if stretches.len() == MOST {
            stretches.remove(0);
        }
        let moment = self.moment.load(Ordering::Relaxed) + 1;
        let (from, to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        stretches.push(Stretch { from, to, watched_since: last, moment, empty_at: None });
        self.count.store(stretches.len(), Ordering::Relaxed);
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
        let mut stretches = self.stretches.lock();
        if !sabotaged("puts-in-gaps") {
            if key.len() > LONGEST_KEY {
                stretches.retain(|stretch| !stretch.holds(key));
            }
            stretches.iter_mut().filter(|stretch| stretch.holds(key)).for_each(|stretch| stretch.cut(key));
            stretches.retain(|stretch| stretch.ends_after(&stretch.from));
        }
        self.count.store(stretches.len(), Ordering::Relaxed);
    }

    /// Anything may be about to be seen. The caller is the only one who writes.
    pub(crate) fn clear(&self) {
        let mut stretches = self.stretches.lock();
        stretches.clear();
        self.count.store(0, Ordering::Relaxed);
    }
}
