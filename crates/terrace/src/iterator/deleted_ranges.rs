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
//! 1. Puts with a sequence number greater than a watched range's `since` have removed their keys from the
//!    range before a read sees them.
//! 2. In a known range a read that sees everything up to `empty_at` finds nothing.
//! 3. A reader of a view from before a compaction filter removed values skips no range that was
//!    found after that: removals of a filter have no sequence number of their own. So reads up to
//!    `filtered`, the last write before the removals were visible, are not noted.
//! 4. No two known ranges overlap, and no two watched ones, so that a put looks at one of each. A
//!    known range and a watched one may: the scan behind a known range reports both together.
//! 5. Nothing waits here: a reader that does not get the lock goes on without ranges. (After a fork
//!    the lock's owner may be in the other process.)
//!
//! Bytewise order only.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::internal_key::SequenceNumber;
use crate::base::locks::{AtomicU64, Mutex};
use crate::base::mutation::mutated;

use super::disjoint_ranges::{DisjointRanges, Range, ends_within};

/// Ranges that are kept, so that as many queues are served. The oldest is replaced first.
const MOST: usize = 256;

/// The bytes of the longest key that a range may begin or end with.
const LONGEST_KEY: usize = 1024;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct DeletedRanges {
    ranges: Mutex<Ranges>,
    /// The number of ranges. Becomes more than 0 under the writer's lock only.
    count: AtomicUsize,
    /// How often ranges began to be watched.
    moment: AtomicU64,
    /// See the invariants. The maximum while a view with removals of a filter is being installed.
    filtered: AtomicU64,
}

#[derive(Default)]
struct Ranges {
    watched: DisjointRanges<Watched>,
    known: DisjointRanges<Known>,
}

struct Watched {
    /// See the invariants.
    since: SequenceNumber,
    moment: u64,
}

struct Known {
    /// See the invariants.
    empty_at: SequenceNumber,
    /// When it was watched.
    moment: u64,
}

impl Ranges {
    fn len(&self) -> usize {
        self.watched.len() + self.known.len()
    }

    /// Whether all between these bounds lies within one range.
    fn covers(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        self.watched.covering(from, to).is_some() || self.known.covering(from, to).is_some()
    }

    /// Makes a range known, together with the known ones that it overlaps or touches: where each of
    /// them was empty at some number, all of them are at the greatest.
    fn insert_known(&mut self, from: Vec<u8>, to: Option<Vec<u8>>, known: Known) {
        let (mut from, mut to, mut known) = (from, to, known);
        while let Some((start, other)) = self.known.take_joining(&from, to.as_deref()) {
            from = from.min(start);
            to = if ends_within(to.as_deref(), other.to.as_deref()) { other.to } else { to };
            known.empty_at = known.empty_at.max(other.state.empty_at);
            known.moment = known.moment.max(other.state.moment);
        }
        // What was to become known is.
        self.watched.remove_within(&from, to.as_deref());
        self.known.insert(from, Range { to, state: known });
    }

    fn leave_out(&mut self, key: &[u8]) {
        // No range begins or ends at a long key.
        if key.len() > LONGEST_KEY {
            self.watched.remove_holding(key);
            self.known.remove_holding(key);
        } else {
            self.watched.leave_out(key);
            self.known.leave_out(key);
        }
    }

    fn remove_oldest(&mut self) {
        let watched = self.watched.oldest(|state| state.moment);
        let known = self.known.oldest(|state| state.moment);
        if let Some((moment, start)) = &watched
            && known.as_ref().is_none_or(|(other, _)| moment <= other)
        {
            self.watched.remove(start);
        } else if let Some((_, start)) = &known {
            self.known.remove(start);
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
        let (from, known) = ranges.known.holding(key)?;
        (known.state.empty_at <= sequence).then(|| show(from, known.to.as_deref()))
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
        let began_later = |range: &Watched| range.moment <= moment && range.since <= sequence;
        let mut confirmed = Vec::new();
        for (start, range) in ranges.watched.overlapping(from, to) {
            let ends_seen = ends_within(range.to.as_deref(), to);
            // Of a range that reaches farther, what was seen; it waits for a scan that sees all of
            // it.
            let seen_from = from.max(start);
            let seen_to = if ends_seen { range.to.as_deref() } else { to };
            let is_whole = seen_from == start && ends_seen;
            let is_news = is_whole || ranges.known.covering(seen_from, seen_to).is_none();
            if began_later(&range.state) && is_news {
                let known = Known { empty_at: sequence, moment: range.state.moment };
                confirmed.push((seen_from.to_vec(), seen_to.map(<[u8]>::to_vec), known));
            }
        }
        if confirmed.is_empty() {
            // A covered range is known already, or watched and waits for the next scan.
            return !ranges.covers(from, to);
        }
        for (from, to, known) in confirmed {
            ranges.insert_known(from, to, known);
        }
        self.trim(&mut ranges);
        false
    }

    /// Removes the oldest of too many ranges.
    fn trim(&self, ranges: &mut Ranges) {
        while ranges.len() > MOST {
            ranges.remove_oldest();
        }
        self.count.store(ranges.len(), Ordering::Relaxed);
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

    /// Watches a range from now on, but for what is watched of it already. The caller excludes all
    /// writers; `last` is the last write.
    pub(crate) fn watch(&self, from: &[u8], to: Option<&[u8]>, last: SequenceNumber) {
        let Some(mut ranges) = self.ranges.try_lock() else { return };
        let moment = self.moment.load(Ordering::Relaxed) + 1;
        for (from, to) in ranges.watched.uncovered(from, to) {
            ranges.watched.insert(from, Range { to, state: Watched { since: last, moment } });
        }
        self.trim(&mut ranges);
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
            ranges.leave_out(key);
        }
        self.count.store(ranges.len(), Ordering::Relaxed);
    }

    /// Invalidates all ranges. Called by the writer only.
    pub(crate) fn clear(&self) {
        let mut ranges = self.ranges.lock();
        drop(mem::take(&mut *ranges));
        self.count.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::base::random::Random;

    /// A reader as it began.
    struct Reader {
        beginning: u64,
        sequence: SequenceNumber,
        alive: BTreeSet<u8>,
    }

    impl Reader {
        fn scan(&self, ranges: &DeletedRanges, from: u8) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
            let to = self.alive.range(from..).next().map(|&key| vec![key]);
            let worth = ranges.note(&[from], to.as_deref(), self.sequence, self.beginning);
            worth.then(|| (vec![from], to))
        }
    }

    #[test]
    fn what_is_known_to_be_deleted_is() {
        let mut known = 0;
        for seed in 1..=300u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let (ranges, mut last) = (DeletedRanges::default(), 0);
            let mut alive = BTreeSet::new();
            let mut readers = Vec::new();
            for _ in 0..400 {
                let key = random.below(40) as u8;
                match random.below(8) {
                    0 => {
                        last += 1;
                        ranges.invalidate(&[key]);
                        alive.insert(key);
                    }
                    1..=3 => {
                        last += 1;
                        alive.remove(&key);
                    }
                    4 => ranges.clear(),
                    _ => {
                        let beginning = ranges.moment();
                        let reader = Reader { beginning, sequence: last, alive: alive.clone() };
                        // Some note what they found later.
                        readers.push(reader);
                        let at = random.below(readers.len());
                        if let Some((from, to)) = readers[at].scan(&ranges, key) {
                            ranges.watch(&from, to.as_deref(), last);
                        }
                        if readers.len() > 3 {
                            readers.swap_remove(at);
                        }
                    }
                }
                let now =
                    Reader { beginning: ranges.moment(), sequence: last, alive: alive.clone() };
                for reader in readers.iter().chain([&now]) {
                    for key in 0..41 {
                        ranges.around(&[key], reader.sequence, |from, to| {
                            known += 1;
                            let is_within = |&&at: &&u8| {
                                from <= &[at][..] && to.is_none_or(|to| &[at][..] < to)
                            };
                            let found = reader.alive.iter().find(is_within);
                            assert_eq!(found, None, "seed {seed}: {from:?} to {to:?}");
                        });
                    }
                }
                let inner = ranges.ranges.lock();
                inner.watched.check_disjoint();
                inner.known.check_disjoint();
                assert_eq!(ranges.count.load(Ordering::Relaxed), inner.len(), "seed {seed}");
            }
        }
        assert!(known > 10_000, "{known}");
    }

    /// What two scans find beside each other, or one farther than the other, becomes known.
    #[test]
    fn scans_that_overlap_do_not_keep_each_other_from_it() {
        let is_known =
            |ranges: &DeletedRanges, key: &[u8]| ranges.around(key, 9, |_, _| ()).is_some();
        let scan = |ranges: &DeletedRanges, from: &[u8], to: &[u8], moment| {
            if ranges.note(from, Some(to), 9, moment) {
                ranges.watch(from, Some(to), 9);
            }
        };
        // Each begins before the other one ends.
        let ranges = DeletedRanges::default();
        let mut moments = [ranges.moment(); 2];
        for round in 0..4 {
            for (at, (from, to)) in [(b"a", b"m"), (b"g", b"z")].into_iter().enumerate() {
                scan(&ranges, from, to, moments[at]);
                moments[1 - at] = ranges.moment();
            }
            assert!(round < 3 || is_known(&ranges, b"b") && is_known(&ranges, b"x"));
        }
        // The second sees less in front and more behind.
        let ranges = DeletedRanges::default();
        scan(&ranges, b"a", b"e", 0);
        for _ in 0..3 {
            scan(&ranges, b"b", b"z", ranges.moment());
        }
        assert!(is_known(&ranges, b"b") && is_known(&ranges, b"y"));
        // A wide range waits for a scan of all of it, beside scans of its parts.
        let ranges = DeletedRanges::default();
        scan(&ranges, b"a", b"z", 0);
        for from in b'a'..b'y' {
            scan(&ranges, &[from], &[from + 1], ranges.moment());
        }
        assert!(is_known(&ranges, b"m") && !is_known(&ranges, b"yy"));
        scan(&ranges, b"a", b"z", ranges.moment());
        assert!(is_known(&ranges, b"yy"));
        assert_eq!(ranges.ranges.lock().len(), 1);
    }

    /// Each of many queues has its range, and the latest have theirs where there are more.
    #[test]
    fn many_queues_are_served() {
        let ranges = DeletedRanges::default();
        let scan = |queue: u16, to: u8| {
            let (from, to) = (queue.to_be_bytes(), [&queue.to_be_bytes()[..], &[to]].concat());
            if ranges.note(&from, Some(&to), 7, ranges.moment()) {
                ranges.watch(&from, Some(&to), 7);
            }
        };
        let is_known = |queue: u16, at: u8| {
            let key = [&queue.to_be_bytes()[..], &[at]].concat();
            ranges.around(&key, 7, |_, _| ()).is_some()
        };
        // What each of them has lost grows.
        for to in 1..=5 {
            for _ in 0..2 {
                (0..MOST as u16 / 2).for_each(|queue| scan(queue, to));
            }
            assert!((0..MOST as u16 / 2).all(|queue| is_known(queue, to - 1)), "up to {to}");
        }
        let more = MOST as u16;
        (0..2).for_each(|_| scan(more, 1));
        assert!(is_known(more, 0));
        for queue in 0..2 * more {
            (0..2).for_each(|_| scan(queue, 6));
            assert!(is_known(queue, 5) && ranges.ranges.lock().len() <= MOST, "{queue}");
        }
    }
}
