//! Background work that comes early or late, to see that no test depends on which.
//!
//! A build with `--cfg pace` does what the environment variable `TERRACE_PACE` says. With `early`,
//! a call that follows on newly scheduled work naps first, so that the work is done when it looks;
//! with `late`, all work naps before it begins; with `mixed`, some calls and some work do. In every
//! other build nothing of this remains. `make pace` runs the tests in all three ways.

#[cfg(pace)]
mod napping {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread::sleep;
    use std::time::Duration;

    const NAP: Duration = Duration::from_millis(3);

    static PACE: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("TERRACE_PACE").ok());
    static IS_NEW: AtomicBool = AtomicBool::new(false);
    static DICE: AtomicU32 = AtomicU32::new(1);

    fn is(pace: &str) -> bool {
        PACE.as_deref() == Some(pace)
    }

    /// One time of `count`, without an order that one would notice.
    fn once_in(count: u32) -> bool {
        DICE.fetch_add(0x9e37_79b9, Ordering::Relaxed).wrapping_mul(0x85eb_ca6b) >> 8
            < (1 << 24) / count
    }

    pub(crate) fn work_is_scheduled() {
        IS_NEW.store(true, Ordering::Relaxed);
    }

    pub(crate) fn before_work() {
        if is("late") || is("mixed") && once_in(3) {
            sleep(NAP);
        }
    }

    pub(crate) fn before_call() {
        if is("early") && IS_NEW.swap(false, Ordering::Relaxed) || is("mixed") && once_in(500) {
            sleep(NAP);
        }
    }
}

#[cfg(pace)]
pub(crate) use napping::{before_call, before_work, work_is_scheduled};

/// Background work is scheduled.
#[cfg(not(pace))]
#[inline(always)]
pub(crate) const fn work_is_scheduled() {}

/// A background thread begins a job.
#[cfg(not(pace))]
#[inline(always)]
pub(crate) const fn before_work() {}

/// A caller begins a call.
#[cfg(not(pace))]
#[inline(always)]
pub(crate) const fn before_call() {}
