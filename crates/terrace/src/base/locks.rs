//! Locks, condition variables, atomics and swaps: the standard library's and arc-swap's, or
//! shuttle's where schedules are explored (`interleavings`).
//!
//! Code that waits, or shares state that another schedule could spoil, takes its types
//! from here. Only a test build with `--cfg loom` differs: there every type stands on shuttle's,
//! in the same form, and may be used in an explored schedule alone.

#[cfg(not(all(test, loom)))]
pub(crate) use self::plain::{Condvar, Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
pub(crate) use arc_swap::ArcSwap;
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(not(all(test, loom)))]
pub(crate) use std::thread;

#[cfg(all(test, loom))]
pub(crate) use self::explored::{
    ArcSwap, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, explore, thread,
};

/// The standard library's, which have no state but their own. parking_lot keeps one table of all
/// the threads that wait: in a child of a fork it leads to threads that do not exist, and a thread
/// that comes upon them waits or searches for ever.
pub(crate) mod plain {
    #![allow(unsafe_code)]
    #![cfg_attr(all(test, loom), allow(dead_code, reason = "explored schedules have others"))]

    use std::fmt;
    use std::mem::ManuallyDrop;
    use std::ops::{Deref, DerefMut};
    use std::sync::{self, PoisonError, TryLockError, WaitTimeoutResult};
    use std::time::Duration;

    /// A lock that a panic does not poison. Dropped while it is locked, which happens only in a
    /// child of a fork whose parent had another thread in it, it leaves what it guards alone: that
    /// may be half changed.
    pub(crate) struct Mutex<T>(ManuallyDrop<sync::Mutex<T>>);

    /// `None` only while a [`Condvar`] has it.
    pub(crate) struct MutexGuard<'a, T>(Option<sync::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Mutex(ManuallyDrop::new(sync::Mutex::new(value)))
        }

        #[inline]
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
        }

        #[inline]
        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(MutexGuard(Some(guard))),
                Err(TryLockError::Poisoned(poisoned)) => {
                    Some(MutexGuard(Some(poisoned.into_inner())))
                }
                Err(TryLockError::WouldBlock) => None,
            }
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Mutex::new(T::default())
        }
    }

    impl<T> Drop for Mutex<T> {
        fn drop(&mut self) {
            if self.try_lock().is_some() {
                // SAFETY: dropped here alone, and not used afterwards.
                unsafe { ManuallyDrop::drop(&mut self.0) };
            }
        }
    }

    impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        #[inline]
        fn deref(&self) -> &T {
            self.0.as_ref().expect("held, but for a wait")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        #[inline]
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("held, but for a wait")
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(sync::Condvar);

    impl Condvar {
        pub(crate) const fn new() -> Self {
            Condvar(sync::Condvar::new())
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.0.take().expect("held");
            guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }

        pub(crate) fn wait_for<T>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            duration: Duration,
        ) -> WaitTimeoutResult {
            let held = guard.0.take().expect("held");
            let (held, result) =
                self.0.wait_timeout(held, duration).unwrap_or_else(PoisonError::into_inner);
            guard.0 = Some(held);
            result
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    #[cfg(test)]
    mod tests {
        use std::mem;
        use std::sync::Arc;

        use super::Mutex;

        #[test]
        fn what_a_held_lock_guards_is_not_dropped() {
            let value = Arc::new(());
            let held = Mutex::new(value.clone());
            mem::forget(held.lock());
            drop((held, Mutex::new(value.clone())));
            assert_eq!(Arc::strong_count(&value), 2);
        }

        #[test]
        fn a_panic_poisons_nothing() {
            let lock = Mutex::new(0);
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _held = lock.lock();
                panic!("made to panic");
            }));
            assert!(panicked.is_err());
            *lock.lock() += 1;
            assert_eq!(lock.try_lock().as_deref(), Some(&1));
        }
    }
}

/// Shuttle's, in the form of the others.
#[cfg(all(test, loom))]
mod explored {
    use std::ops::{Deref, DerefMut};
    use std::sync::{Arc, PoisonError, TryLockError};
    use std::time::Duration;

    use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
    use shuttle::sync;
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64};
    use shuttle::sync::atomic::{AtomicUsize, Ordering};
    use terrace_testkit::campaign::first_run;

    #[derive(Default)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    pub(crate) struct MutexGuard<'a, T>(Option<sync::MutexGuard<'a, T>>, &'a sync::Mutex<T>);

    pub(crate) struct TimedOut;

    impl TimedOut {
        pub(crate) fn timed_out(&self) -> bool {
            true
        }
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)), &self.0)
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(MutexGuard(Some(guard), &self.0)),
                Err(TryLockError::Poisoned(poisoned)) => {
                    Some(MutexGuard(Some(poisoned.into_inner()), &self.0))
                }
                Err(TryLockError::WouldBlock) => None,
            }
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("held, but for a wait")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("held, but for a wait")
        }
    }

    #[derive(Default)]
    pub(crate) struct Condvar(sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.0.take().expect("held");
            guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }

        /// The time may always be up: schedules decide the order.
        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> TimedOut {
            drop(guard.0.take());
            shuttle::thread::yield_now();
            guard.0 = Some(guard.1.lock().unwrap_or_else(PoisonError::into_inner));
            TimedOut
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    /// The real one; others may run before each use.
    pub(crate) struct ArcSwap<T> {
        shared: arc_swap::ArcSwap<T>,
        turn: AtomicUsize,
    }

    impl<T> ArcSwap<T> {
        pub(crate) fn from_pointee(value: T) -> Self {
            ArcSwap { shared: arc_swap::ArcSwap::from_pointee(value), turn: AtomicUsize::new(0) }
        }

        fn others_may_run(&self) -> &arc_swap::ArcSwap<T> {
            self.turn.load(Ordering::SeqCst);
            &self.shared
        }

        pub(crate) fn load(&self) -> arc_swap::Guard<Arc<T>> {
            self.others_may_run().load()
        }

        pub(crate) fn load_full(&self) -> Arc<T> {
            self.others_may_run().load_full()
        }

        pub(crate) fn swap(&self, value: Arc<T>) -> Arc<T> {
            self.others_may_run().swap(value)
        }
    }

    /// Threads that end with the schedule: pool threads are not joined.
    pub(crate) mod thread {
        use std::cell::Cell;
        use std::io;

        pub(crate) use shuttle::thread::current;

        thread_local!(static REFUSALS: Cell<u32> = const { Cell::new(0) });

        /// Has the system refuse to start the next `count` threads.
        pub(crate) fn refuse(count: u32) {
            REFUSALS.set(count);
        }

        pub(crate) struct Builder;

        impl Builder {
            pub(crate) fn new() -> Self {
                Builder
            }

            pub(crate) fn name(self, _: String) -> Self {
                self
            }

            pub(crate) fn stack_size(self, _: usize) -> Self {
                self
            }

            pub(crate) fn spawn(self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
                if let Some(left) = REFUSALS.get().checked_sub(1) {
                    REFUSALS.set(left);
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                drop(shuttle::future::spawn(async move { work() }));
                Ok(())
            }
        }
    }

    /// Runs `scenario` under `count` schedules: half of them at random, half with few changes of
    /// thread at every place. A smaller count is the beginning of a larger one; `TERRACE_FIRST_RUN`
    /// begins elsewhere.
    pub(crate) fn explore(count: u64, scenario: impl Fn() + Clone + Send + Sync + 'static) {
        let seed = first_run();
        let half = usize::try_from(count.div_ceil(2)).expect("a number of schedules");
        run(RandomScheduler::new_from_seed(seed, half), scenario.clone());
        run(PctScheduler::new_from_seed(seed, 3, half), scenario);
    }

    fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) {
        let mut config = shuttle::Config::new();
        config.stack_size = 512 << 10;
        config.silence_warnings = true;
        shuttle::Runner::new(scheduler, config).run(scenario);
    }
}
