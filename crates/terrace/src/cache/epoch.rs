//! Decides when no reader can hold a value any more that a slot gave up (`crossbeam-epoch`).
//!
//! The collector belongs to this crate and to one process. Pins of other crates do not retain this
//! crate's memory, and a thread that was pinned at the moment of a fork, which does not exist in
//! the child, does not retain the child's.
//!
//! A value in a slot is found under a pin of the process that evicts it: in a child, caches of its
//! ancestors evict nothing.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use crossbeam_epoch::{Collector, Guard, LocalHandle};

use crate::base::fork::generation;

/// The collector of one process.
struct Own {
    generation: u64,
    collector: Collector,
}

/// The last process's that registered a thread.
static CURRENT: ArcSwapOption<Own> = ArcSwapOption::const_empty();

/// This thread's part in the collector of one process.
struct Local {
    generation: u64,
    handle: LocalHandle,
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::new(Local::new());
}

impl Local {
    fn new() -> Self {
        let generation = generation();
        let mut current = CURRENT.load_full();
        loop {
            if let Some(own) = current.as_ref().filter(|own| own.generation == generation) {
                return Local { generation, handle: own.collector.register() };
            }
            let own = Arc::new(Own { generation, collector: Collector::new() });
            let previous = CURRENT.compare_and_swap(&current, Some(own));
            // Never dropped: it would drop what is deferred in it.
            mem::forget(current);
            current = CURRENT.load_full();
            drop(previous);
        }
    }
}

/// A pin for reads of any slot. Each read takes one for itself; many reads share one. Nothing that
/// is evicted meanwhile is freed.
#[inline]
pub(crate) fn pin() -> Guard {
    let pinned = LOCAL.try_with(|local| {
        let local = local.try_borrow().ok()?;
        (local.generation == generation()).then(|| local.handle.pin())
    });
    match pinned {
        Ok(Some(guard)) => guard,
        _ => pin_anew(),
    }
}

/// The first pin of a thread in a child of a fork, or the last ones of a thread that ends.
#[cold]
fn pin_anew() -> Guard {
    let local = Local::new();
    let guard = local.handle.pin();
    let _ = LOCAL.try_with(|own| {
        if let Ok(mut own) = own.try_borrow_mut() {
            // The ancestor's collector is left alone.
            mem::forget(mem::replace(&mut *own, local));
        }
    });
    guard
}

/// Has what this thread let slots give up dropped soon. Otherwise that waits until the thread has
/// given up a few dozen values more: for ever, if it gives up no more.
pub(crate) fn hand_on() {
    // Once to hand it on, and until no reader can have it any more: the epoch moves on twice, if no
    // pin keeps it.
    for _ in 0..3 {
        pin().flush();
    }
}

/// The time until every pin that there was at its beginning is gone, and with it whatever only
/// those kept.
pub(crate) struct GracePeriod(Arc<AtomicBool>);

impl GracePeriod {
    /// Begins one. The caller holds no pin.
    pub(crate) fn begin() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        pin().defer(move || flag.store(true, Ordering::Release));
        GracePeriod(is_over)
    }

    /// Whether it is over. It ends during a call, or one of [`hand_on`].
    pub(crate) fn is_over(&self) -> bool {
        hand_on();
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn what_is_deferred_waits_for_pins_and_not_for_those_of_others() {
        static DROPS: AtomicUsize = AtomicUsize::new(0);
        let _others = crossbeam_epoch::pin();
        pin().defer(|| DROPS.fetch_add(1, Ordering::SeqCst));
        while DROPS.load(Ordering::SeqCst) == 0 {
            pin().flush();
            std::thread::yield_now();
        }
    }
}
