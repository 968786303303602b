//! The capacity of a cache, parts of which may be in use for something else.
//!
//! Any thread may call anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that a cache may hold, and what it has lent of them.
pub(super) struct Capacity {
    all: usize,
    lent: AtomicUsize,
}

impl Capacity {
    pub(super) fn new(all: usize) -> Arc<Self> {
        Arc::new(Capacity { all, lent: AtomicUsize::new(0) })
    }

    /// All bytes, lent or not.
    pub(super) fn all(&self) -> usize {
        self.all
    }

    /// The bytes that slots may hold now.
    pub(super) fn to_fill(&self) -> usize {
        self.all.saturating_sub(self.lent.load(Ordering::Relaxed))
    }
}

/// Bytes of a cache that it has lent to one borrower. Dropping it gives them back.
pub(crate) struct Loan {
    capacity: Arc<Capacity>,
    bytes: AtomicUsize,
}

impl Loan {
    /// A loan of nothing so far.
    pub(super) fn new(capacity: Arc<Capacity>) -> Self {
        Loan { capacity, bytes: AtomicUsize::new(0) }
    }

    /// The bytes that are lent.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Makes it a loan of `wanted` bytes, or of as many as there are to lend: all borrowers together
    /// have three quarters of the capacity at most. Whether it is larger than before.
    pub(crate) fn adjust(&self, wanted: usize) -> bool {
        let Capacity { all, lent } = &*self.capacity;
        let before = self.bytes();
        if wanted <= before {
            self.lower(wanted);
            return false;
        }
        let more = |lent: usize| (wanted - before).min((all / 4 * 3).saturating_sub(lent));
        let take = |lent| Some(more(lent)).filter(|&more| more > 0).map(|more| lent + more);
        let taken = lent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.is_ok_and(|lent| {
            self.bytes.fetch_add(more(lent), Ordering::Relaxed);
            // Another thread may have raised it at the same time.
            self.lower(wanted);
            true
        })
    }

    /// Gives back what is more than `most` bytes.
    pub(crate) fn lower(&self, most: usize) {
        let less = |bytes| (most < bytes).then_some(most);
        if let Ok(bytes) = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            self.capacity.lent.fetch_sub(bytes - most, Ordering::Relaxed);
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.capacity.lent.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrowers_together_have_three_quarters_at_most() {
        let capacity = Capacity::new(100);
        let (first, second) = (Loan::new(capacity.clone()), Loan::new(capacity.clone()));
        assert!(first.adjust(30) && !first.adjust(30));
        assert_eq!((first.bytes(), capacity.to_fill()), (30, 70));
        assert!(second.adjust(50) && !second.adjust(50));
        assert_eq!((second.bytes(), capacity.to_fill()), (45, 25));
        assert!(!first.adjust(10));
        assert!(second.adjust(usize::MAX));
        assert_eq!((first.bytes(), second.bytes(), capacity.to_fill()), (10, 65, 25));
        drop(second);
        assert_eq!(capacity.to_fill(), 90);
        drop(first);
        assert_eq!((capacity.to_fill(), capacity.all()), (100, 100));
    }

    #[test]
    fn threads_that_want_the_same_have_it_once() {
        let capacity = Capacity::new(1 << 20);
        let loan = Loan::new(capacity.clone());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|wanted| _ = loan.adjust(wanted)));
            }
        });
        assert_eq!(loan.bytes(), capacity.all() - capacity.to_fill());
        assert!(loan.bytes() < 10_000, "{}", loan.bytes());
    }
}
