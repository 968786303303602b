//! How reads of tables went, counted without the threads getting into each other's way.
//!
//! Each thread counts in one of several stripes, each on cache lines of its own, and one look-up
//! counts once: what it did is one of a few outcomes, from which the totals follow.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// A power of two, for as many threads as can count at the same time: on 64 processors 8 KiB of each
/// database.
static STRIPES: LazyLock<usize> =
    LazyLock::new(|| available_parallelism().map_or(16, |n| n.get().next_power_of_two().min(64)));
const OUTCOMES: usize = 5;

/// The outcome of a lookup in a table. A *filtered* one asked a filter that said "perhaps".
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A filter spared it the block.
    Spared = 0,
    /// It found its block in the cache.
    Hit = 1,
    FilteredHit = 2,
    /// It loaded its block.
    Miss = 3,
    FilteredMiss = 4,
}

/// Counters shared by the tables of a database.
pub(crate) struct ReadCounters {
    stripes: Box<[Stripe]>,
}

impl Default for ReadCounters {
    fn default() -> Self {
        ReadCounters { stripes: (0..*STRIPES).map(|_| Stripe::default()).collect() }
    }
}

#[derive(Default)]
#[repr(align(128))]
struct Stripe([AtomicU64; OUTCOMES]);

/// The totals of [`ReadCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadTotals {
    /// Blocks found in the cache, and blocks that had to be loaded.
    pub(crate) cache_hits: u64,
    pub(crate) cache_misses: u64,
    /// How often a filter was asked, and how often it spared a block.
    pub(crate) filter_checked: u64,
    pub(crate) filter_useful: u64,
}

impl ReadCounters {
    #[inline]
    pub(super) fn count(&self, outcome: Outcome) {
        let stripe = thread_number() & (self.stripes.len() - 1);
        self.stripes[stripe].0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a block that a filter spared a lookup, of a table that is not even open.
    pub(crate) fn count_spared(&self) {
        self.count(Outcome::Spared);
    }

    /// The sums over all threads. Counts made meanwhile may or may not be in them.
    pub(crate) fn totals(&self) -> ReadTotals {
        let sum = |outcome: Outcome| -> u64 {
            self.stripes
                .iter()
                .map(|stripe| stripe.0[outcome as usize].load(Ordering::Relaxed))
                .sum()
        };
        let spared = sum(Outcome::Spared);
        let (hit, filtered_hit) = (sum(Outcome::Hit), sum(Outcome::FilteredHit));
        let (miss, filtered_miss) = (sum(Outcome::Miss), sum(Outcome::FilteredMiss));
        ReadTotals {
            cache_hits: hit + filtered_hit,
            cache_misses: miss + filtered_miss,
            filter_checked: spared + filtered_hit + filtered_miss,
            filter_useful: spared,
        }
    }
}

/// The calling thread's number among those that count.
#[inline]
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed) & (usize::MAX >> 1));
        }
        number.get()
    })
}
