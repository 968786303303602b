//! Which slot is emptied next: S3-FIFO.
//!
//! A value enters on *probation*. It is dropped when it leaves there without having been used; otherwise it moves to
//! the *main* queue, where every use buys another round. A value that comes back soon after it failed probation goes
//! to the main queue at once. So one scan through everything costs the cache a tenth of its capacity and no more,
//! which a single clock or an LRU list cannot say. The memory of who left when costs nothing: slots outlive values.
//!
//! All of this happens under the cache's lock.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Weighted;
use super::slots::Slots;

/// The share of the capacity that probation may take before values leave it.
const PROBATION_SHARE: usize = 10;

/// Fewer places of retired arrays than this are not worth a sweep.
const SWEEP_AT_LEAST: usize = 16;

struct Place<V: Send + Sync + 'static> {
    slots: Arc<Slots<V>>,
    index: u32,
}

impl<V: Send + Sync + 'static> Place<V> {
    fn index(&self) -> usize {
        self.index as usize
    }
}

pub(super) struct Queues<V: Send + Sync + 'static> {
    probation: VecDeque<Place<V>>,
    main: VecDeque<Place<V>>,
    used: usize,
    used_on_probation: usize,
    /// Places whose array is retired.
    retired: usize,
    /// Counts evictions from probation; never 0.
    clock: u32,
}

impl<V: Weighted> Queues<V> {
    pub(super) fn new() -> Self {
        Queues {
            probation: VecDeque::new(),
            main: VecDeque::new(),
            used: 0,
            used_on_probation: 0,
            retired: 0,
            clock: 1,
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Puts `value` into an empty slot. The caller has made room for it.
    pub(super) fn insert(&mut self, slots: &Arc<Slots<V>>, index: usize, value: Arc<V>, weight: usize) {
        let place = Place { slots: Arc::clone(slots), index: index as u32 };
        let evicted_at = slots.evicted_at(index);
        let returned = evicted_at != 0 && (self.clock.wrapping_sub(evicted_at) as usize) < self.main.len();
        slots.fill(index, value, returned);
        self.used += weight;
        if returned {
            self.main.push_back(place);
        } else {
            self.used_on_probation += weight;
            self.probation.push_back(place);
        }
    }

    /// Empties slots until `weight` more bytes fit into `capacity`, or nothing is left.
    pub(super) fn make_room(&mut self, weight: usize, capacity: usize, evicted: &mut Vec<Arc<V>>) {
        // Readers can mark slots faster than they are passed over: after one whole round, marks count no longer.
        let mut second_chances = self.main.len();
        while self.places() > 0 && self.used.saturating_add(weight) > capacity {
            let crowded = self.used_on_probation > capacity / PROBATION_SHARE && !self.probation.is_empty();
            if crowded || self.main.is_empty() {
                self.shrink_probation(evicted);
            } else {
                self.shrink_main(&mut second_chances, evicted);
            }
        }
    }

    fn shrink_probation(&mut self, evicted: &mut Vec<Arc<V>>) {
        let Some(place) = self.probation.pop_front() else { return };
        let index = place.index();
        if place.slots.is_retired() {
            self.retired -= 1;
        } else if place.slots.take_used(index) {
            self.used_on_probation -= place.slots.peek(index).map_or(0, |value| value.weight());
            place.slots.set_in_main(index);
            self.main.push_back(place);
        } else if let Some(value) = place.slots.take(index) {
            let weight = value.weight();
            self.used_on_probation -= weight;
            self.used -= weight;
            place.slots.set_evicted_at(index, self.clock);
            self.clock = self.clock.checked_add(1).unwrap_or(1);
            evicted.push(value);
        }
    }

    fn shrink_main(&mut self, second_chances: &mut usize, evicted: &mut Vec<Arc<V>>) {
        let Some(place) = self.main.pop_front() else { return };
        let index = place.index();
        if place.slots.is_retired() {
            self.retired -= 1;
        } else if *second_chances > 0 && place.slots.take_used(index) {
            *second_chances -= 1;
            self.main.push_back(place);
        } else if let Some(value) = place.slots.take(index) {
            self.used -= value.weight();
            evicted.push(value);
        }
    }

    /// Empties the slots of an array whose owner goes away.
    pub(super) fn retire(&mut self, slots: &Slots<V>, released: &mut Vec<Arc<V>>) {
        slots.retire();
        for index in 0..slots.len() {
            let Some(value) = slots.take(index) else { continue };
            let weight = value.weight();
            self.used -= weight;
            if !slots.is_in_main(index) {
                self.used_on_probation -= weight;
            }
            self.retired += 1;
            released.push(value);
        }
        if self.retired >= SWEEP_AT_LEAST && self.retired > self.places() / 2 {
            self.probation.retain(|place| !place.slots.is_retired());
            self.main.retain(|place| !place.slots.is_retired());
            self.retired = 0;
        }
    }

    pub(super) fn places(&self) -> usize {
        self.probation.len() + self.main.len()
    }
}
