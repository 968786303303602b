//! Mutex and condition variable: parking_lot's, or shuttle's where schedules are explored (`interleavings`).

#[cfg(not(all(test, loom)))]
pub(super) use parking_lot::{Condvar, Mutex};

#[cfg(all(test, loom))]
pub(super) use self::explored::{Condvar, Mutex};

/// Shuttle's, in parking_lot's form.
#[cfg(all(test, loom))]
mod explored {
    use std::ops::{Deref, DerefMut};

    use std::time::Duration;

    use shuttle::{sync, thread};

    #[derive(Default)]
    pub(in crate::write) struct Mutex<T>(sync::Mutex<T>);

    pub(in crate::write) struct MutexGuard<'a, T>(Option<sync::MutexGuard<'a, T>>, &'a sync::Mutex<T>);

    pub(in crate::write) struct TimedOut;

    impl TimedOut {
        pub(in crate::write) fn timed_out(&self) -> bool {
            true
        }
    }

    impl<T> Mutex<T> {
        pub(in crate::write) fn new(value: T) -> Self {
            Mutex(sync::Mutex::new(value))
        }

        pub(in crate::write) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("no panic")), &self.0)
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
    pub(in crate::write) struct Condvar(sync::Condvar);

    impl Condvar {
        pub(in crate::write) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.0.take().expect("held");
            guard.0 = Some(self.0.wait(held).expect("no panic"));
        }

        /// Time may always be up: what schedules decide is who comes first.
        pub(in crate::write) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> TimedOut {
            drop(guard.0.take());
            thread::yield_now();
            guard.0 = Some(guard.1.lock().expect("no panic"));
            TimedOut
        }

        pub(in crate::write) fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}
