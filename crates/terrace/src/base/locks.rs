//! What threads wait for and swap: parking_lot's, the standard library's and arc-swap's, or shuttle's where schedules are
//! explored (`interleavings`).
//!
//! Whoever holds a lock while others may come to wait, or shares what a schedule could spoil, takes it from here. Only
//! a test build with `--cfg loom` differs: there every type stands on shuttle's, in the same form, and may be used in an
//! explored schedule alone.

#[cfg(not(all(test, loom)))]
pub(crate) use arc_swap::ArcSwap;
#[cfg(not(all(test, loom)))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(not(all(test, loom)))]
pub(crate) use std::thread;

#[cfg(all(test, loom))]
pub(crate) use self::explored::{ArcSwap, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, explore, thread};

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
                Err(TryLockError::Poisoned(poisoned)) => Some(MutexGuard(Some(poisoned.into_inner()), &self.0)),
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

        /// Time may always be up: what schedules decide is who comes first.
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

    /// Threads that end with the schedule: nobody waits for those of a pool.
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

    /// Where the schedules begin: a smaller run is the beginning of a larger one.
    const SEED: u64 = 0;

    /// Runs `scenario` under `count` schedules: half of them at random, half with few changes of thread at every place.
    pub(crate) fn explore(count: u64, scenario: impl Fn() + Clone + Send + Sync + 'static) {
        let half = usize::try_from(count.div_ceil(2)).expect("a number of schedules");
        run(RandomScheduler::new_from_seed(SEED, half), scenario.clone());
        run(PctScheduler::new_from_seed(SEED, 3, half), scenario);
    }

    fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) {
        let mut config = shuttle::Config::new();
        config.stack_size = 512 << 10;
        config.silence_warnings = true;
        shuttle::Runner::new(scheduler, config).run(scenario);
    }
}
