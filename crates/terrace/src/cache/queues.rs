//! Eviction: two queues, after S3-FIFO (Yang et al., *FIFO queues are all you need for cache
//! eviction*, SOSP 2023).
//!
//! A value that was admitted because there was room is on *probation*: it is evicted at the end of
//! that queue if it was not used, and moves to the *main* queue otherwise, where every use buys
//! another round. A value that returns soon after probation or a [rejection](super::admission) goes
//! to the main queue at once. Probation is emptied before the main queue. So a scan through
//! everything costs a full cache nothing, unlike with a clock or an LRU list. Slots outlive values,
//! so the memory of evictions costs nothing.
//!
//! All of this happens under the cache's lock.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Weak};

use super::admission::Admission;
use super::slot::GivenUp;
use super::slots::Slots;
use super::weighted::Weighted;

/// Fewer places of retired arrays than this are not worth a sweep.
const SWEEP_AT_LEAST: usize = 16;

/// Does not keep the array in memory, which may be a thousand times as large.
struct Place<V: Send + Sync + 'static> {
    slots: Weak<Slots<V>>,
    index: u32,
}

impl<V: Send + Sync + 'static> Place<V> {
    fn index(&self) -> usize {
        self.index as usize
    }

    /// The array, unless it is retired. Its owner, or a thread that has just retired it, has it, too:
    /// no value is dropped with what this returns.
    fn slots(&self) -> Option<Arc<Slots<V>>> {
        self.slots.upgrade().filter(|slots| !slots.is_retired())
    }
}

pub(super) struct Queues<V: Send + Sync + 'static> {
    probation: VecDeque<Place<V>>,
    main: VecDeque<Place<V>>,
    used: usize,
    /// Places whose array is retired.
    retired: usize,
    given_up: Vec<GivenUp<V>>,
    given_up_bytes: usize,
}

impl<V: Weighted> Queues<V> {
    pub(super) fn new() -> Self {
        Queues {
            probation: VecDeque::new(),
            main: VecDeque::new(),
            used: 0,
            retired: 0,
            given_up: Vec::new(),
            given_up_bytes: 0,
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Puts `value` into an empty slot. The caller has made room for it, and knows whether it left
    /// not long ago.
    pub(super) fn insert(
        &mut self,
        slots: &Arc<Slots<V>>,
        index: usize,
        value: Arc<V>,
        weight: usize,
        returns: bool,
    ) {
        let place = Place { slots: Arc::downgrade(slots), index: index as u32 };
        slots.fill(index, value);
        self.used += weight;
        if returns {
            self.main.push_back(place);
        } else {
            self.probation.push_back(place);
        }
    }

    /// Empties slots until `weight` more bytes fit into `capacity`, or nothing is left.
    pub(super) fn make_room(&mut self, weight: usize, capacity: usize, admission: &Admission) {
        // Readers can mark slots faster than they are passed over: after one whole round, marks
        // count no longer.
        let mut second_chances = self.main.len();
        while self.used.saturating_add(weight) > capacity {
            if let Some(place) = self.probation.pop_front() {
                self.leave_probation(place, admission);
            } else if let Some(place) = self.main.pop_front() {
                self.leave_main(place, &mut second_chances);
            } else {
                return;
            }
        }
    }

    fn leave_probation(&mut self, place: Place<V>, admission: &Admission) {
        let index = place.index();
        let Some(slots) = place.slots() else {
            self.retired -= 1;
            return;
        };
        if slots.take_used(index) {
            self.main.push_back(place);
        } else if let Some(value) = slots.take(index) {
            slots.set_left_at(index, admission.tick());
            self.give_up(value);
        }
    }

    fn leave_main(&mut self, place: Place<V>, second_chances: &mut usize) {
        let index = place.index();
        let Some(slots) = place.slots() else {
            self.retired -= 1;
            return;
        };
        if *second_chances > 0 && slots.take_used(index) {
            *second_chances -= 1;
            self.main.push_back(place);
        } else if let Some(value) = slots.take(index) {
            self.give_up(value);
        }
    }

    /// Empties the slots of an array whose owner goes away.
    pub(super) fn retire(&mut self, slots: &Slots<V>) {
        slots.retire();
        for index in 0..slots.len() {
            let Some(value) = slots.take(index) else { continue };
            self.retired += 1;
            self.give_up(value);
        }
        if self.retired >= SWEEP_AT_LEAST && self.retired > self.places() / 2 {
            self.probation.retain(|place| place.slots().is_some());
            self.main.retain(|place| place.slots().is_some());
            self.retired = 0;
        }
    }

    fn give_up(&mut self, value: GivenUp<V>) {
        self.used -= value.weight();
        self.given_up_bytes += value.weight();
        self.given_up.push(value);
    }

    /// References that slots gave up since the last call, to be dropped without the lock.
    pub(super) fn take_given_up(&mut self) -> Vec<GivenUp<V>> {
        self.given_up_bytes = 0;
        mem::take(&mut self.given_up)
    }

    /// The same, once that is as many bytes or values.
    pub(super) fn take_given_up_from(&mut self, bytes: usize, values: usize) -> Vec<GivenUp<V>> {
        if self.given_up_bytes >= bytes || self.given_up.len() >= values {
            self.take_given_up()
        } else {
            Vec::new()
        }
    }

    pub(super) fn places(&self) -> usize {
        self.probation.len() + self.main.len()
    }

    /// Places of arrays that are still in use.
    #[cfg(all(test, loom))]
    pub(super) fn live_places(&self) -> usize {
        self.places() - self.retired
    }
}
