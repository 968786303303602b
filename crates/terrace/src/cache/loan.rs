//! A part of a cache's capacity that is in use for something else.
//!
//! Any thread may call anything.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{SlotCache, Weighted};

/// Bytes of a cache that it has lent to one borrower. Dropping it gives them back.
pub(crate) struct Loan<V: Weighted> {
    cache: SlotCache<V>,
    bytes: AtomicUsize,
}

impl<V: Weighted> Loan<V> {
    /// A loan of nothing so far.
    pub(super) fn new(cache: SlotCache<V>) -> Self {
        Loan { cache, bytes: AtomicUsize::new(0) }
    }

    /// The bytes that are lent.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Makes it a loan of `wanted` bytes, or of as many as the cache can lend: all borrowers
    /// together have three quarters of its capacity at most. The cache empties slots for them.
    pub(crate) fn adjust(&self, wanted: usize) {
        let shared = &self.cache.shared;
        let before = self.bytes();
        if wanted < before {
            let less = |bytes| (wanted < bytes).then_some(wanted);
            if let Ok(bytes) = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
                shared.lent.fetch_sub(bytes - wanted, Ordering::Relaxed);
            }
            return;
        }
        let most = shared.capacity / 4 * 3;
        let more = |lent: usize| (wanted - before).min(most.saturating_sub(lent));
        let take = |lent| Some(more(lent)).filter(|&more| more > 0).map(|more| lent + more);
        if let Ok(lent) = shared.lent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            self.bytes.fetch_add(more(lent), Ordering::Relaxed);
            self.cache.shrink(self.cache.capacity_to_fill());
        }
    }
}

impl<V: Weighted> Drop for Loan<V> {
    fn drop(&mut self) {
        self.cache.shared.lent.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Kilobyte;

    impl Weighted for Kilobyte {
        fn weight(&self) -> usize {
            1 << 10
        }
    }

    #[test]
    fn borrowers_together_have_three_quarters_of_a_cache_and_values_the_rest() {
        let cache = SlotCache::new(100 << 10);
        let slots = cache.slots(200);
        let fill = || {
            // The second time as something that was here not long ago.
            (0..400).for_each(|at| drop(slots.insert(at % 200, Arc::new(Kilobyte), None)));
            cache.used() >> 10
        };
        assert_eq!(fill(), 100);
        let (first, second) = (cache.loan(), cache.loan());
        first.adjust(30 << 10);
        assert_eq!((first.bytes() >> 10, cache.used() >> 10, fill()), (30, 70, 70));
        second.adjust(50 << 10);
        assert_eq!((second.bytes() >> 10, cache.used() >> 10), (45, 25));
        first.adjust(10 << 10);
        second.adjust(usize::MAX);
        assert_eq!((first.bytes() >> 10, second.bytes() >> 10), (10, 65));
        assert_eq!(fill(), 25);
        drop(second);
        assert_eq!(fill(), 90);
        first.adjust(0);
        assert_eq!((fill(), cache.capacity() >> 10), (100, 100));
    }
}
