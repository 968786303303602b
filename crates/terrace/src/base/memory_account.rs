//! The memory of several databases together, and its bound.
//!
//! Memory is counted where it is held: a [`Charge`] stands beside it and ends with it. Counting
//! never waits and never fails; those that can wait, or can do without, look at the account first.
//!
//! Any thread may call anything. In a child of a fork nobody is woken: the lock may be held by a
//! thread that does not exist there.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::fork::Origin;
use super::locks::plain::{Condvar, Mutex};

/// The uses of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryUse {
    /// Chunks of memtables, and what is reserved for writes that are under way.
    Memtables = 0,
    /// Indexes and filters of open tables.
    Tables = 1,
    /// Blocks, in a cache or held by a reader.
    Blocks = 2,
}

const USES: usize = 3;

/// See the [module](self).
pub(crate) struct MemoryAccount {
    limit: usize,
    used: [AtomicUsize; USES],
    /// Caches that hold blocks which this account counts.
    caches: AtomicUsize,
    waiting: AtomicUsize,
    lock: Mutex<()>,
    released: Condvar,
    origin: Origin,
}

impl MemoryAccount {
    /// An account of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        MemoryAccount {
            limit,
            used: Default::default(),
            caches: AtomicUsize::new(1),
            waiting: AtomicUsize::new(0),
            lock: Mutex::new(()),
            released: Condvar::new(),
            origin: Origin::here(),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// So many eighths of the limit.
    pub(crate) fn eighths(&self, count: usize) -> usize {
        self.limit / 8 * count
    }

    pub(crate) fn used_for(&self, purpose: MemoryUse) -> usize {
        self.used[purpose as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn used(&self) -> usize {
        self.used.iter().fold(0, |sum, used| sum.saturating_add(used.load(Ordering::Relaxed)))
    }

    /// Whether the account is another process's, from which this one was forked.
    pub(crate) fn is_inherited(&self) -> bool {
        self.origin.is_ancestor()
    }

    /// How many bytes a cache may hold that holds `cached` bytes and is to take `weight` more,
    /// which are counted already. A cache has what others leave of six eighths, and its part of one
    /// eighth at least.
    pub(crate) fn cache_bound(&self, cached: usize, weight: usize) -> usize {
        let others = self.used().saturating_sub(cached).saturating_sub(weight);
        self.eighths(6).saturating_sub(others).max(self.eighths(1) / self.caches())
    }

    /// Among how many caches the eighth that blocks have in any case is divided.
    fn caches(&self) -> usize {
        self.caches.load(Ordering::Relaxed).max(1)
    }

    pub(crate) fn set_caches(&self, count: usize) {
        self.caches.store(count, Ordering::Relaxed);
    }

    /// Whether a cache that cannot be shrunk may not grow.
    pub(crate) fn is_full(&self) -> bool {
        self.used() > self.eighths(6)
    }

    /// Whether open tables take more than their two eighths.
    pub(crate) fn has_too_many_tables(&self) -> bool {
        self.used_for(MemoryUse::Tables) > self.eighths(2)
    }

    /// Whether open tables take less than half of that.
    pub(crate) fn has_few_tables(&self) -> bool {
        self.used_for(MemoryUse::Tables) < self.eighths(1)
    }

    /// Counts `bytes` until the charge is dropped.
    pub(crate) fn charge(self: &Arc<Self>, purpose: MemoryUse, bytes: usize) -> Charge {
        self.used[purpose as usize].fetch_add(bytes, Ordering::Relaxed);
        Charge { account: Arc::clone(self), purpose, bytes, is_reservation: false }
    }

    /// Counts `bytes` of memtables that a write may take, whether there is room or not. The end of
    /// a reservation wakes nobody: what the write took is counted by then, and gives nothing back.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Charge {
        let mut charge = self.charge(MemoryUse::Memtables, bytes);
        charge.is_reservation = true;
        charge
    }

    /// The same, if no more than `memtables` bytes of memtables and `all` bytes altogether count
    /// then.
    pub(crate) fn try_reserve(
        self: &Arc<Self>,
        bytes: usize,
        memtables: usize,
        all: usize,
    ) -> Option<Charge> {
        let purpose = MemoryUse::Memtables;
        let used = &self.used[purpose as usize];
        let mut before = used.load(Ordering::Relaxed);
        loop {
            let after = before.checked_add(bytes).filter(|&after| after <= memtables)?;
            self.used().checked_add(bytes).filter(|&used| used <= all)?;
            match used.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    let account = Arc::clone(self);
                    return Some(Charge { account, purpose, bytes, is_reservation: true });
                }
                Err(now) => before = now,
            }
        }
    }

    fn release(&self, purpose: MemoryUse, bytes: usize, is_reservation: bool) {
        self.used[purpose as usize].fetch_sub(bytes, Ordering::SeqCst);
        if !is_reservation && self.waiting.load(Ordering::SeqCst) > 0 && !self.is_inherited() {
            drop(self.lock.lock());
            self.released.notify_all();
        }
    }

    /// Waits until something is released, and not longer than `limit`: a waiter looks again at what
    /// else has changed. Not to be called under a lock.
    pub(crate) fn wait(&self, limit: Duration) {
        let mut guard = self.lock.lock();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.released.wait_for(&mut guard, limit);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for MemoryAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryAccount")
            .field("limit", &self.limit)
            .field("used", &self.used())
            .finish()
    }
}

/// Bytes that an account counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Arc<MemoryAccount>,
    purpose: MemoryUse,
    bytes: usize,
    is_reservation: bool,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.release(self.purpose, self.bytes, self.is_reservation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_count_until_they_are_dropped() {
        let account = Arc::new(MemoryAccount::new(800));
        let memtable = account.charge(MemoryUse::Memtables, 300);
        let block = account.charge(MemoryUse::Blocks, 50);
        assert_eq!((account.used(), account.used_for(MemoryUse::Blocks)), (350, 50));
        drop(memtable);
        assert_eq!(account.used(), 50);
        drop(block);
        assert_eq!(account.used(), 0);
    }

    #[test]
    fn a_cache_has_what_others_leave_and_never_less_than_an_eighth() {
        let account = Arc::new(MemoryAccount::new(800));
        let _cached = account.charge(MemoryUse::Blocks, 90);
        assert_eq!(account.cache_bound(80, 10), 600);
        let _memtable = account.charge(MemoryUse::Memtables, 200);
        assert_eq!(account.cache_bound(80, 10), 400);
        let _more = account.charge(MemoryUse::Memtables, 700);
        assert_eq!(account.cache_bound(80, 10), 100);
        account.set_caches(4);
        assert_eq!(account.cache_bound(80, 10), 25);
    }

    #[test]
    fn a_reservation_is_made_within_both_bounds_or_counts_nothing() {
        let account = Arc::new(MemoryAccount::new(800));
        let _table = account.charge(MemoryUse::Tables, 100);
        let used = || (account.used_for(MemoryUse::Memtables), account.used());
        assert!(account.try_reserve(201, 200, 800).is_none(), "too many for memtables");
        assert!(account.try_reserve(150, 200, 249).is_none(), "too many in all");
        assert!(account.try_reserve(usize::MAX, usize::MAX, usize::MAX).is_none(), "overflow");
        assert_eq!(used(), (0, 100));
        let reservation = account.try_reserve(150, 200, 250).expect("fits");
        assert!(account.try_reserve(51, 200, 800).is_none());
        assert_eq!(used(), (150, 250));
        drop(reservation);
        assert_eq!(used(), (0, 100));
    }

    #[test]
    fn a_release_wakes_those_that_wait() {
        let account = Arc::new(MemoryAccount::new(8));
        let charge = account.charge(MemoryUse::Tables, 8);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| account.wait(Duration::from_secs(60)));
            while account.waiting.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            drop(charge);
            waiter.join().expect("returns");
        });
    }
}
