//! The slots of one owner.
//!
//! Readers only load the value and set its used mark; everything else except the eviction time
//! changes under the lock of the cache's queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::base::prefetch::{prefetch_address, prefetch_value};

use super::slot::{Cached, GivenUp, Slot};

pub(super) struct Slots<V: Send + Sync + 'static> {
    slots: Box<[Place<V>]>,
    /// Whether the owner is gone, so that nothing will ever be looked up here again. Changes under
    /// the lock.
    retired: AtomicBool,
}

struct Place<V: Send + Sync + 'static> {
    value: Slot<V>,
    /// Whether a reader came by since the value was put here or last passed over by an eviction.
    used: AtomicBool,
    /// When a value was last rejected or evicted on probation; 0 if never.
    left_at: AtomicU32,
    /// The address of what readers of the value want next; 0 if nothing. Only ever prefetched.
    beside: AtomicUsize,
}

/// Bytes that are asked for beside a value.
const BESIDE: usize = 256;

impl<V: Send + Sync + 'static> Slots<V> {
    pub(super) fn new(count: usize) -> Self {
        let place = || Place {
            value: Slot::empty(),
            used: AtomicBool::new(false),
            left_at: AtomicU32::new(0),
            beside: AtomicUsize::new(0),
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
        let beside = slot.beside.load(Ordering::Relaxed);
        if beside != 0 {
            prefetch_address(beside, BESIDE);
        }
        let value = slot.value.get()?;
        // A store only where it changes something: the line stays shared between the readers of a
        // hot block.
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
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
        if let Some(slot) = self.slots.get(index)
            && slot.beside.load(Ordering::Relaxed) != address
        {
            slot.beside.store(address, Ordering::Relaxed);
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
        slot.used.store(false, Ordering::Relaxed);
        slot.beside.store(0, Ordering::Relaxed);
        slot.value.put(value);
    }

    pub(super) fn take(&self, index: usize) -> Option<GivenUp<V>> {
        self.slots[index].value.take()
    }

    /// Whether a reader came by since the last call.
    pub(super) fn take_used(&self, index: usize) -> bool {
        let used = &self.slots[index].used;
        let was = used.load(Ordering::Relaxed);
        if was {
            used.store(false, Ordering::Relaxed);
        }
        was
    }

    pub(super) fn left_at(&self, index: usize) -> u32 {
        self.slots[index].left_at.load(Ordering::Relaxed)
    }

    pub(super) fn set_left_at(&self, index: usize, time: u32) {
        self.slots[index].left_at.store(time, Ordering::Relaxed);
    }
}
