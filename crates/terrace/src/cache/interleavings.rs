//! Threads that fill and read a cache of few values while arrays are dropped and the cache is
//! cleared.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p terrace --lib interleavings`. The cache is the real one;
//! other threads run before it takes its lock. The slots' pointers change under the lock;
//! `cache::slot` tests how readers meet them.

use std::sync::Arc;

use terrace_testkit::scale::scaled;

use super::{SlotArray, SlotCache, Weighted};
use crate::base::locks::explore;

const CAPACITY: usize = 6;
const SLOTS: usize = 3;

struct Value {
    array: usize,
    index: usize,
}

fn weight(index: usize) -> usize {
    1 + index
}

impl Weighted for Value {
    fn weight(&self) -> usize {
        weight(self.index)
    }
}

/// A thread's use of an array: it looks values up, and inserts those that are missing.
fn read(cache: &SlotCache<Value>, slots: &SlotArray<Value>, array: usize, indexes: &[usize]) {
    for &index in indexes {
        let found = match slots.get(index) {
            Some(found) => found.into_arc(),
            None => slots.insert(index, Arc::new(Value { array, index }), None),
        };
        assert_eq!((found.array, found.index), (array, index), "another slot's value");
        assert!(cache.used() <= CAPACITY, "{} used", cache.used());
    }
}

#[test]
fn capacity_and_places_are_exact_under_every_schedule() {
    let count = scaled(10_000);
    explore(count, || {
        let cache = SlotCache::new(CAPACITY);
        let (kept, shared) = (Arc::new(cache.slots(SLOTS)), Arc::new(cache.slots(SLOTS)));
        let orders: [&[usize]; 3] = [&[0, 1, 2, 0, 1], &[2, 1, 2, 0], &[1, 1, 0, 2]];
        let threads: Vec<_> = orders
            .into_iter()
            .enumerate()
            .map(|(thread, order)| {
                // The last owner of the shared array empties it, beside threads that still fill
                // the other.
                let (cache, kept, shared) = (cache.clone(), kept.clone(), shared.clone());
                shuttle::thread::spawn(move || {
                    read(&cache, &shared, 1, order);
                    drop(shared);
                    if thread == 2 {
                        cache.prune();
                    }
                    read(&cache, &kept, 0, order);
                })
            })
            .collect();
        drop(shared);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let held: Vec<_> = (0..SLOTS).filter(|&index| kept.slots.peek(index).is_some()).collect();
        assert_eq!(
            cache.used(),
            held.iter().map(|&index| weight(index)).sum::<usize>(),
            "{held:?}"
        );
        let queues = cache.shared.queues.lock();
        assert_eq!(queues.live_places(), held.len(), "a filled slot has one place");
        drop(queues);
        drop(kept);
        assert_eq!(cache.used(), 0);
    });
    println!("capacity_and_places_are_exact: {count} schedules of the cache");
}
