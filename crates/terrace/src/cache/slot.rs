//! A shared value that many threads read and few replace.
//!
//! A reader pins the current epoch (`crossbeam-epoch`), loads a pointer and uses the value as long
//! as it holds the pin: no lock, and no counter that readers share. A thread that empties the slot
//! hands the slot's reference to the epoch scheme, which drops it once every pin of that time is
//! gone.
//!
//! # Invariants
//! 1. The pointer is null or comes from `Arc::into_raw`, and then the slot owns one strong count of
//!    that `Arc`.
//! 2. The slot's count is given up only by way of a deferred drop: a pointer that was loaded under
//!    a pin stays valid for as long as that pin.

#![allow(unsafe_code)]

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use crossbeam_epoch::Guard;

use super::epoch;

/// See the [module](self).
pub(super) struct Slot<V: Send + Sync + 'static> {
    pointer: AtomicPtr<V>,
}

/// A value found in a slot, pinned until this is dropped. To be held briefly: nothing that any
/// cache evicts meanwhile is freed.
pub(crate) struct Cached<V> {
    pointer: NonNull<V>,
    /// Dropped last: it keeps the pointer valid.
    _pin: Guard,
}

impl<V: Send + Sync + 'static> Slot<V> {
    pub(super) fn empty() -> Self {
        Slot { pointer: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Where the value is, or was a moment ago; 0 if nowhere.
    #[inline]
    pub(super) fn address(&self) -> usize {
        self.pointer.load(Ordering::Relaxed).addr()
    }

    #[inline]
    pub(super) fn get(&self) -> Option<Cached<V>> {
        if self.pointer.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let pin = epoch::pin();
        let pointer = NonNull::new(self.pointer.load(Ordering::Acquire))?;
        Some(Cached { pointer, _pin: pin })
    }

    /// Replaces the value.
    pub(super) fn put(&self, value: Arc<V>) {
        drop(self.replace(Arc::into_raw(value).cast_mut()));
    }

    /// Empties the slot.
    pub(super) fn take(&self) -> Option<GivenUp<V>> {
        self.replace(ptr::null_mut())
    }

    fn replace(&self, pointer: *mut V) -> Option<GivenUp<V>> {
        let old = self.pointer.swap(pointer, Ordering::AcqRel);
        // SAFETY: `old` comes from `Arc::into_raw`, and the swap made this call the only owner of
        // the slot's count (invariant 1), so it is taken back once.
        (!old.is_null()).then(|| GivenUp(Some(unsafe { Arc::from_raw(old) })))
    }
}

/// A reference that a slot gave up. Dropping this value releases the reference once no reader can
/// hold the value by its pointer.
pub(super) struct GivenUp<V: Send + Sync + 'static>(Option<Arc<V>>);

impl<V: Send + Sync + 'static> Deref for GivenUp<V> {
    type Target = V;

    fn deref(&self) -> &V {
        self.0.as_ref().expect("taken by drop alone")
    }
}

impl<V: Send + Sync + 'static> Drop for GivenUp<V> {
    fn drop(&mut self) {
        let value = self.0.take();
        epoch::pin().defer(move || drop(value));
    }
}

impl<V: Send + Sync + 'static> Drop for Slot<V> {
    fn drop(&mut self) {
        // A reader may hold the value for longer than the slot exists.
        drop(self.take());
    }
}

impl<V> Cached<V> {
    /// The same value, held in a way that may last.
    pub(crate) fn into_arc(self) -> Arc<V> {
        // SAFETY: the pointer comes from `Arc::into_raw`, and the count that the slot owned when it
        // was loaded is not dropped before the pin is (invariant 2), so that the count is at least
        // one here.
        unsafe {
            Arc::increment_strong_count(self.pointer.as_ptr());
            Arc::from_raw(self.pointer.as_ptr())
        }
    }
}

impl<V> Deref for Cached<V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        // SAFETY: loaded under the pin that is still held (invariant 2); shared values are never
        // mutated.
        unsafe { self.pointer.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    /// Knows whether it was dropped, and counts how often that happened.
    struct Canary<'a> {
        number: usize,
        alive: AtomicBool,
        drops: &'a AtomicUsize,
    }

    impl Drop for Canary<'_> {
        fn drop(&mut self) {
            assert!(self.alive.swap(false, Ordering::SeqCst), "dropped twice");
            self.drops.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn values_live_while_they_are_held_and_die_once() {
        static DROPS: AtomicUsize = AtomicUsize::new(0);
        const ROUNDS: usize = 20_000;
        let canary =
            |number| Arc::new(Canary { number, alive: AtomicBool::new(true), drops: &DROPS });
        let slot: Slot<Canary<'static>> = Slot::empty();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let Some(found) = slot.get() else { continue };
                        assert!(found.alive.load(Ordering::SeqCst) && found.number >= last);
                        last = found.number;
                        if last % 3 == 0 {
                            assert!(found.into_arc().alive.load(Ordering::SeqCst));
                        }
                    }
                });
            }
            for number in 0..ROUNDS {
                if number % 4 == 3 {
                    let taken = slot.take().expect("was put before");
                    assert!(taken.alive.load(Ordering::SeqCst) && taken.number == number - 1);
                } else {
                    slot.put(canary(number));
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        drop(slot);
        // Frequent pins run the deferred drops.
        let made = ROUNDS - ROUNDS / 4;
        while DROPS.load(Ordering::SeqCst) < made {
            epoch::pin().flush();
        }
        assert_eq!(DROPS.load(Ordering::SeqCst), made);
    }
}
