//! The slots of one owner.
//!
//! Readers only load the value and set its used mark; everything else except the eviction time
//! changes under the lock of the cache's queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::base::prefetch::{prefetch_address, prefetch_value};

use super::slot::{Cached, GivenUp, Slot};

pub(super) struct Slots<V: Send + Sync + 'static> {
    slots: Box<[Place<V>]>,
    /// Whether the owner is gone, so that nothing will ever be looked up here again. Changes under
    /// the lock.
    retired: AtomicBool,
}

/// 16 bytes: a large database has one for each of its blocks in memory.
struct Place<V: Send + Sync + 'static> {
    value: Slot<V>,
    /// When a value was last rejected or evicted on probation; 0 if never.
    left_at: AtomicU32,
    /// A [`Mark`]. Two threads that change it at once may lose one of the changes, which costs a
    /// prefetch or an early eviction.
    mark: AtomicU32,
}

/// Whether a reader came by since the value was put here or last passed over by an eviction (the
/// lowest bit), and where readers of the value want to read next, in units from the value's address
/// (the others; 0 if nowhere, or too far away). Only ever prefetched.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark(u32);

/// Bytes that are asked for beside a value.
const BESIDE: usize = 256;

/// Of an address beside a value. So 31 bits reach 16 GiB up and down.
const UNIT: isize = 16;

impl Mark {
    const UNUSED: Mark = Mark(0);

    fn is_used(self) -> bool {
        self.0 & 1 == 1
    }

    fn with_used(self, used: bool) -> Mark {
        Mark(self.0 & !1 | u32::from(used))
    }

    /// The address, rounded down to a unit from that of the value.
    fn beside(self, value: usize) -> Option<usize> {
        let units = self.0.cast_signed() >> 1;
        (units != 0).then(|| value.wrapping_add_signed(units as isize * UNIT))
    }

    fn with_beside(self, value: usize, address: usize) -> Mark {
        let units = match address {
            0 => 0,
            _ => address.wrapping_sub(value).cast_signed().div_euclid(UNIT),
        };
        let units = i32::try_from(units).ok().filter(|units| (units << 1) >> 1 == *units);
        Mark((units.unwrap_or(0) << 1).cast_unsigned()).with_used(self.is_used())
    }
}

impl<V: Send + Sync + 'static> Place<V> {
    #[inline]
    fn mark(&self) -> Mark {
        Mark(self.mark.load(Ordering::Relaxed))
    }

    #[inline]
    fn set_mark(&self, mark: Mark) {
        self.mark.store(mark.0, Ordering::Relaxed);
    }
}

impl<V: Send + Sync + 'static> Slots<V> {
    pub(super) fn new(count: usize) -> Self {
        let place = || Place {
            value: Slot::empty(),
            left_at: AtomicU32::new(0),
            mark: AtomicU32::new(Mark::UNUSED.0),
        };
        Slots { slots: (0..count).map(|_| place()).collect(), retired: AtomicBool::new(false) }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.slots)
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<Cached<V>> {
        let slot = self.slots.get(index)?;
        let mark = slot.mark();
        if let Some(beside) = mark.beside(slot.value.address()) {
            prefetch_address(beside, BESIDE);
        }
        let value = slot.value.get()?;
        // A store only where it changes something: the line stays shared between the readers of a
        // hot block.
        if !mark.is_used() {
            slot.set_mark(mark.with_used(true));
        }
        Some(value)
    }

    pub(super) fn prefetch(&self, index: usize) {
        if let Some(slot) = self.slots.get(index) {
            prefetch_value(slot);
        }
    }

    /// Says what readers of the value in a slot want next.
    #[inline]
    pub(super) fn set_beside(&self, index: usize, address: usize) {
        let Some(slot) = self.slots.get(index) else { return };
        let mark = slot.mark();
        let changed = mark.with_beside(slot.value.address(), address);
        if changed != mark {
            slot.set_mark(changed);
        }
    }

    /// The value of a slot, without a mark.
    pub(super) fn peek(&self, index: usize) -> Option<Arc<V>> {
        self.slots.get(index)?.value.get().map(Cached::into_arc)
    }

    /// Whether a slot has a value, without a mark.
    pub(super) fn has(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.value.get().is_some())
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    pub(super) fn fill(&self, index: usize, value: Arc<V>) {
        let slot = &self.slots[index];
        slot.set_mark(Mark::UNUSED);
        slot.value.put(value);
    }

    pub(super) fn take(&self, index: usize) -> Option<GivenUp<V>> {
        self.slots[index].value.take()
    }

    /// Whether a reader came by since the last call.
    pub(super) fn take_used(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        let mark = slot.mark();
        if mark.is_used() {
            slot.set_mark(mark.with_used(false));
        }
        mark.is_used()
    }

    pub(super) fn left_at(&self, index: usize) -> u32 {
        self.slots[index].left_at.load(Ordering::Relaxed)
    }

    pub(super) fn set_left_at(&self, index: usize, time: u32) {
        self.slots[index].left_at.store(time, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_keep_addresses_near_the_value_and_whether_it_was_used() {
        const GIB: i64 = 1 << 30;
        assert!(size_of::<Place<u64>>() <= 16);
        let value = (usize::MAX / 2) & !15;
        for used in [false, true] {
            let mark = Mark::UNUSED.with_used(used);
            for distance in [16, 15 * GIB, -16, -16 * GIB, 1040, -(16 << 20)] {
                let Ok(distance) = isize::try_from(distance) else { continue };
                let address = value.wrapping_add_signed(distance);
                let marked = mark.with_beside(value, address);
                assert_eq!((marked.beside(value), marked.is_used()), (Some(address), used));
                let within = marked.with_beside(value, address + 15);
                assert_eq!(within.beside(value), Some(address));
                assert_eq!(marked.with_used(!used).beside(value), Some(address));
                assert_eq!(marked.with_used(!used).is_used(), !used);
                let none = marked.with_beside(value, 0);
                assert_eq!((none.beside(value), none.is_used()), (None, used));
            }
            for distance in [16 * GIB, -16 * GIB - 1, 80 * GIB, -80 * GIB] {
                let Ok(distance) = isize::try_from(distance) else { continue };
                let far = mark.with_beside(value, value.wrapping_add_signed(distance));
                assert_eq!((far.beside(value), far.is_used()), (None, used));
            }
        }
    }
}
