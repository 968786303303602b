//! A cache whose entries are stored with their owners.
//!
//! The owner of cacheable values (a table: its blocks) has an array of slots, one for each value,
//! and looks there. A hit is one load of a slot: no lock, no hash table, no counter shared between
//! readers. The cache owns the capacity and the queues that decide which slot is evicted next.
//!
//! Any thread may call anything. Reading a slot never waits; filling one takes the cache's lock for
//! the work of a few pointers.
//!
//! # Invariants
//! 1. The weight of all filled slots is at most the capacity, without what is lent of it, whenever
//!    no insertion is under way.
//!    Evicted values that readers still hold are not counted.
//! 2. A filled slot has exactly one place in the queues; an empty one has none.
//! 3. An array that is dropped empties its slots and returns their weight. Its places in the queues
//!    are swept before they make up half of the queues.
//! 4. Nothing is dropped while the lock is held. References that slots gave up are collected and
//!    dropped afterwards by the thread that finds enough of them, at the latest when an array is
//!    dropped: a block retains its file, which may be obsolete.
//! 5. In a child of a fork the caches of its ancestors neither keep nor evict anything: the owner
//!    of their lock may not exist there.

mod admission;
mod epoch;
mod loan;
mod queues;
mod slot;
mod slots;
mod weighted;

use std::sync::Arc;

use crate::base::fork::Origin;
use crate::base::locks::Mutex;
use crate::base::memory_account::MemoryAccount;

pub(crate) use epoch::{GracePeriod, hand_on, pin};
pub(crate) use loan::Loan;
pub(crate) use slot::Cached;
pub(crate) use weighted::Weighted;

use admission::Admission;
use loan::Capacity;
use queues::Queues;
use slot::GivenUp;
use slots::Slots;

/// A cache of `V`s. Clones share it.
pub(crate) struct SlotCache<V: Send + Sync + 'static> {
    shared: Arc<Shared<V>>,
}

struct Shared<V: Send + Sync + 'static> {
    origin: Origin,
    capacity: Arc<Capacity>,
    admission: Admission,
    queues: Mutex<Queues<V>>,
}

impl<V: Send + Sync + 'static> Clone for SlotCache<V> {
    fn clone(&self) -> Self {
        SlotCache { shared: Arc::clone(&self.shared) }
    }
}

impl<V: Weighted> Shared<V> {
    fn note(&self, queues: &Queues<V>) {
        self.admission.note(queues.used(), queues.places());
    }
}

impl<V: Weighted> SlotCache<V> {
    /// A cache of at most `capacity` bytes. One of no bytes keeps nothing.
    pub(crate) fn new(capacity: usize) -> Self {
        let (admission, queues) = (Admission::default(), Mutex::new(Queues::new()));
        SlotCache {
            shared: Arc::new(Shared {
                origin: Origin::here(),
                capacity: Capacity::new(capacity),
                admission,
                queues,
            }),
        }
    }

    /// The most bytes that the cache holds.
    pub(crate) fn capacity(&self) -> usize {
        self.shared.capacity.all()
    }

    /// Tells this cache and its clones from all others that there are.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// To lend a part of the capacity to one borrower, who then calls
    /// [`shrink_to_capacity`](Self::shrink_to_capacity).
    pub(crate) fn loan(&self) -> Loan {
        Loan::new(self.shared.capacity.clone())
    }

    /// Empties slots until the others hold what is not lent at most.
    pub(crate) fn shrink_to_capacity(&self) {
        self.shrink(self.shared.capacity.to_fill());
    }

    fn capacity_within(&self, account: Option<&MemoryAccount>, counted: usize) -> usize {
        let capacity = self.shared.capacity.to_fill();
        account.map_or(capacity, |account| {
            capacity.min(account.cache_bound(self.shared.admission.used(), counted))
        })
    }

    /// The bytes that the cache holds now.
    pub(crate) fn used(&self) -> usize {
        // In a child of a fork a thread of the parent may hold the lock for ever.
        match self.shared.origin.is_ancestor() {
            true => self.shared.queues.try_lock().map_or(0, |queues| queues.used()),
            false => self.shared.queues.lock().used(),
        }
    }

    /// Empties every slot.
    pub(crate) fn prune(&self) {
        if self.shared.origin.is_ancestor() {
            return;
        }
        let given_up = {
            let _pin = pin();
            let mut queues = self.shared.queues.lock();
            queues.make_room(usize::MAX, 0, &self.shared.admission);
            self.shared.note(&queues);
            queues.take_given_up()
        };
        dispose_of(given_up);
    }

    /// Empties slots until the others hold `bytes` at most. Returns whether any gave something up.
    pub(crate) fn shrink(&self, bytes: usize) -> bool {
        if self.shared.origin.is_ancestor() || self.shared.admission.used() <= bytes {
            return false;
        }
        let given_up = {
            let _pin = pin();
            let mut queues = self.shared.queues.lock();
            queues.make_room(0, bytes, &self.shared.admission);
            self.shared.note(&queues);
            queues.take_given_up()
        };
        let has_evicted = !given_up.is_empty();
        dispose_of(given_up);
        has_evicted
    }

    /// An array of `count` empty slots in this cache.
    pub(crate) fn slots(&self, count: usize) -> SlotArray<V> {
        SlotArray { slots: Arc::new(Slots::new(count)), cache: self.clone() }
    }
}

/// So many bytes that slots gave up, or so many values, do not wait for others.
const GIVEN_UP_BYTES: usize = 32 << 10;
const GIVEN_UP_VALUES: usize = 32;

/// Flushes deferred drops of this thread. Not to be called under a lock.
fn dispose_of<V: Weighted>(given_up: Vec<GivenUp<V>>) {
    if !given_up.is_empty() {
        drop(given_up);
        hand_on();
    }
}

/// Slots that one owner fills and looks into. Dropping it empties them.
pub(crate) struct SlotArray<V: Weighted> {
    slots: Arc<Slots<V>>,
    cache: SlotCache<V>,
}

impl<V: Weighted> SlotArray<V> {
    /// The bytes of the slots themselves, which the cache's capacity does not include.
    pub(crate) fn memory_usage(&self) -> usize {
        self.slots.memory_usage()
    }

    /// Returns the value in slot `index` and marks it as used.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<Cached<V>> {
        self.slots.get(index)
    }

    /// Whether slot `index` has a value. Not a use of it.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.slots.has(index)
    }

    /// Sets the address that readers of the value in slot `index` need next, 0 for none: a lookup
    /// of the slot prefetches it.
    #[inline]
    pub(crate) fn set_beside(&self, index: usize, address: usize) {
        self.slots.set_beside(index, address);
    }

    /// Asks the processor for slot `index`, without what it holds.
    pub(crate) fn prefetch(&self, index: usize) {
        self.slots.prefetch(index);
    }

    /// Whether the cache does not [let in](admission) a value of `weight` for slot `index`, which
    /// the `account` has not counted. The value counts as one that was not let in, then.
    pub(crate) fn rejects(
        &self,
        index: usize,
        weight: usize,
        account: Option<&MemoryAccount>,
    ) -> bool {
        self.admit(index, weight, account, 0).is_none()
    }

    /// The capacity that a value of `weight` is let into for slot `index`, and whether it was here
    /// not long ago. If it is only that which it lacks, this is remembered. The `account` has
    /// counted so many bytes of the value.
    fn admit(
        &self,
        index: usize,
        weight: usize,
        account: Option<&MemoryAccount>,
        counted: usize,
    ) -> Option<(usize, bool)> {
        let capacity = self.cache.capacity_within(account, counted);
        if weight > capacity || index >= self.slots.len() || self.cache.shared.origin.is_ancestor()
        {
            return None;
        }
        let admission = &self.cache.shared.admission;
        let returns = admission.is_recent(self.slots.left_at(index));
        if !returns && !admission.has_room(weight, capacity) {
            self.slots.set_left_at(index, admission.tick());
            return None;
        }
        Some((capacity, returns))
    }

    /// Puts `value` into slot `index`, if the cache [lets it in](admission), evicting others for
    /// it, and returns what the slot holds afterwards: what another thread put there first, if so.
    /// A value that is not let in, or heavier than the whole cache, is handed back and not kept.
    /// With an `account`, which has counted the value, the cache is as large as that allows.
    pub(crate) fn insert(
        &self,
        index: usize,
        value: Arc<V>,
        account: Option<&MemoryAccount>,
    ) -> Arc<V> {
        let weight = value.weight();
        let Some((capacity, returns)) = self.admit(index, weight, account, weight) else {
            return value;
        };
        let admission = &self.cache.shared.admission;
        let (kept, given_up) = {
            // Not the outermost pins are those under the lock, since the outermost may drop what
            // others deferred.
            let _pin = pin();
            let mut queues = self.cache.shared.queues.lock();
            let kept = match self.slots.peek(index) {
                Some(first) => first,
                // More of it may have been lent by now.
                None if weight > self.cache.shared.capacity.to_fill() => Arc::clone(&value),
                None => {
                    let capacity = capacity.min(self.cache.shared.capacity.to_fill());
                    queues.make_room(weight, capacity, admission);
                    queues.insert(&self.slots, index, Arc::clone(&value), weight, returns);
                    self.cache.shared.note(&queues);
                    Arc::clone(&value)
                }
            };
            (kept, queues.take_given_up_from(GIVEN_UP_BYTES, GIVEN_UP_VALUES))
        };
        dispose_of(given_up);
        kept
    }
}

impl<V: Weighted> Drop for SlotArray<V> {
    fn drop(&mut self) {
        if self.cache.shared.origin.is_ancestor() {
            return;
        }
        let given_up = {
            let _pin = pin();
            let mut queues = self.cache.shared.queues.lock();
            queues.retire(&self.slots);
            self.cache.shared.note(&queues);
            queues.take_given_up()
        };
        dispose_of(given_up);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Payload(usize);

    impl Weighted for Payload {
        fn weight(&self) -> usize {
            self.0
        }
    }

    fn held(slots: &SlotArray<Payload>, count: usize) -> Vec<usize> {
        (0..count).filter(|&index| slots.has(index)).collect()
    }

    /// Counts those that there are.
    struct Counted(&'static AtomicUsize);

    impl Counted {
        fn new(live: &'static AtomicUsize) -> Arc<Self> {
            live.fetch_add(1, Ordering::SeqCst);
            Arc::new(Counted(live))
        }
    }

    impl Weighted for Counted {
        fn weight(&self) -> usize {
            1 << 20
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Tables that are closed and opened again leave arrays behind, each of which is far larger than
    /// its place in a queue.
    #[test]
    fn an_array_takes_no_memory_once_its_owner_is_gone() {
        let cache = SlotCache::new(1000);
        let kept = cache.slots(100);
        (0..100).for_each(|index| drop(kept.insert(index, Arc::new(Payload(1)), None)));
        let slots = cache.slots(100);
        slots.insert(7, Arc::new(Payload(1)), None);
        let array = Arc::downgrade(&slots.slots);
        drop(slots);
        assert!(array.upgrade().is_none());
        assert_eq!(held(&kept, 100).len(), 100);
        assert_eq!(cache.used(), 100);
    }

    #[test]
    fn what_was_evicted_is_freed_before_long() {
        static LIVE: AtomicUsize = AtomicUsize::new(0);
        let evict = || {
            let slots = SlotCache::new(8 << 20).slots(1000);
            let mut most = 0;
            for index in 0..2000 {
                slots.insert(index / 2, Counted::new(&LIVE), None);
                most = most.max(LIVE.load(Ordering::SeqCst));
            }
            drop(slots);
            while LIVE.load(Ordering::SeqCst) > 0 {
                hand_on();
                std::thread::yield_now();
            }
            most
        };
        // Pins of other tests' threads keep a few; one that sleeps with its pin keeps everything,
        // so that it has to be tried again.
        let most = (0..100).map(|_| evict()).find(|most| *most < 40);
        assert!(most.is_some(), "40 and more of 8");
    }

    #[test]
    fn capacity_is_exact() {
        let cache = SlotCache::new(1000);
        let slots = cache.slots(64);
        for index in 0..64 {
            // A full cache lets in what is wanted twice.
            for _ in 0..2 {
                slots.insert(index, Arc::new(Payload(90 + index)), None);
                assert!(cache.used() <= 1000, "{} used", cache.used());
            }
        }
        assert!(cache.used() > 700);
        assert_eq!(slots.insert(0, Arc::new(Payload(1001)), None).0, 1001);
        assert!(!held(&slots, 64).contains(&0), "heavier than the cache, yet kept");
        cache.prune();
        assert_eq!((cache.used(), held(&slots, 64).len()), (0, 0));
    }

    #[test]
    fn no_capacity_keeps_nothing() {
        let cache = SlotCache::new(0);
        let slots = cache.slots(1);
        assert_eq!(slots.insert(0, Arc::new(Payload(1)), None).0, 1);
        assert!(slots.get(0).is_none());
        assert!(slots.get(7).is_none());
        assert_eq!(slots.insert(7, Arc::new(Payload(0)), None).0, 0);
    }

    #[test]
    fn the_first_of_two_values_stays() {
        let cache = SlotCache::new(100);
        let slots = cache.slots(1);
        slots.insert(0, Arc::new(Payload(10)), None);
        assert_eq!(slots.insert(0, Arc::new(Payload(20)), None).0, 10);
        assert_eq!(cache.used(), 10);
    }

    #[test]
    fn a_scan_does_not_evict_what_is_used() {
        let cache = SlotCache::new(100);
        let hot = cache.slots(50);
        for index in 0..50 {
            hot.insert(index, Arc::new(Payload(1)), None);
            assert!(hot.get(index).is_some());
        }
        let scanned = cache.slots(1000);
        for index in 0..1000 {
            scanned.insert(index, Arc::new(Payload(1)), None);
        }
        assert_eq!(held(&hot, 50).len(), 50);
        assert_eq!(held(&scanned, 1000).len(), 50);
    }

    #[test]
    fn what_comes_back_soon_is_let_in_and_kept() {
        let cache = SlotCache::new(10);
        let slots = cache.slots(100);
        for index in 0..10 {
            slots.insert(index, Arc::new(Payload(1)), None);
        }
        slots.insert(10, Arc::new(Payload(1)), None);
        assert!(slots.get(10).is_none(), "let in at once");
        slots.insert(10, Arc::new(Payload(1)), None);
        for index in 20..60 {
            slots.insert(index, Arc::new(Payload(1)), None);
        }
        slots.insert(20, Arc::new(Payload(1)), None);
        assert!(slots.get(10).is_some(), "evicted in spite of its return");
        assert!(slots.get(20).is_none(), "remembered for too long");
    }

    #[test]
    fn a_new_working_set_replaces_the_old_one() {
        let cache = SlotCache::new(50);
        let slots = cache.slots(200);
        for index in (0..50).chain(100..150).chain(100..150) {
            if slots.get(index).is_none() {
                slots.insert(index, Arc::new(Payload(1)), None);
            }
        }
        assert!(held(&slots, 200).iter().filter(|index| (100..150).contains(*index)).count() >= 49);
    }

    #[test]
    fn arrays_that_go_give_back_and_are_swept() {
        let cache = SlotCache::new(1 << 20);
        let keeper = cache.slots(4);
        for index in 0..4 {
            keeper.insert(index, Arc::new(Payload(1)), None);
        }
        for _ in 0..100 {
            let slots = cache.slots(32);
            for index in 0..32 {
                slots.insert(index, Arc::new(Payload(100)), None);
            }
            assert_eq!(cache.used(), 3204);
            drop(slots);
            assert_eq!(cache.used(), 4);
            assert!(cache.shared.queues.lock().places() <= 2 * 36);
        }
        assert_eq!(held(&keeper, 4), [0, 1, 2, 3]);
    }

    #[test]
    fn what_a_reader_pins_outlives_its_slot() {
        let cache = SlotCache::new(100);
        let slots = cache.slots(1);
        slots.insert(0, Arc::new(Payload(42)), None);
        let pinned = slots.get(0).expect("cached");
        cache.prune();
        drop(slots);
        assert_eq!(cache.used(), 0);
        assert_eq!(pinned.0, 42);
    }

    #[test]
    fn threads_agree_on_the_weight() {
        let cache = SlotCache::new(500);
        let shared: Vec<SlotArray<Payload>> = (0..4).map(|_| cache.slots(200)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let (cache, shared) = (&cache, &shared);
                scope.spawn(move || {
                    let mut state = thread + 1;
                    for _ in 0..5_000 {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let (array, index) =
                            ((state >> 8) as usize % 4, (state >> 16) as usize % 200);
                        let weight = 1 + index % 40;
                        match shared[array].get(index) {
                            Some(found) => assert_eq!(found.0, weight),
                            None => assert_eq!(
                                shared[array].insert(index, Arc::new(Payload(weight)), None).0,
                                weight
                            ),
                        }
                        assert!(cache.used() <= 500);
                    }
                });
            }
        });
        let total: usize = shared
            .iter()
            .flat_map(|slots| (0..200).filter_map(|i| slots.slots.peek(i)))
            .map(|v| v.0)
            .sum();
        assert_eq!(cache.used(), total);
        drop(shared);
        assert_eq!(cache.used(), 0);
    }
}

#[cfg(all(test, loom))]
mod interleavings;
