//! Admission to a full cache.
//!
//! A cache with room admits everything. A full cache admits a value only if it was requested
//! before, not long ago: a value that is read once in a while costs its load, but no eviction and
//! no lock. Random reads in a database ten times the cache's size are rejected nine times in ten.
//!
//! Any thread may call anything. The figures are read without the cache's lock and may be a moment
//! old, which shifts the border between admission and rejection and nothing else.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// See the [module](self).
#[derive(Default)]
pub(super) struct Admission {
    /// The weight of what the cache holds.
    used: AtomicUsize,
    /// How many values that is.
    places: AtomicUsize,
    /// Counts values rejected or evicted.
    clock: AtomicU32,
}

impl Admission {
    /// Takes note of what the cache holds.
    pub(super) fn note(&self, used: usize, places: usize) {
        self.used.store(used, Ordering::Relaxed);
        self.places.store(places, Ordering::Relaxed);
    }

    /// The contents of the cache.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether a value of this weight fits beside the others.
    pub(super) fn has_room(&self, weight: usize, capacity: usize) -> bool {
        self.used.load(Ordering::Relaxed).saturating_add(weight) <= capacity
    }

    /// The time by which values rejected or evicted from now on are remembered; never 0.
    pub(super) fn tick(&self) -> u32 {
        self.clock.fetch_add(1, Ordering::Relaxed).max(1)
    }

    /// Whether something remembered by the time `then` (0: nothing is) was here not longer ago than
    /// values stay.
    pub(super) fn is_recent(&self, then: u32) -> bool {
        let age = self.clock.load(Ordering::Relaxed).wrapping_sub(then) as usize;
        then != 0 && age <= self.places.load(Ordering::Relaxed)
    }
}
