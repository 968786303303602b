//! The clock of expiry: the time since 1970 as far as it can be trusted.
//!
//! It follows the wall clock, but neither jumps ahead nor goes back with it: between two looks it
//! moves on by at least half and at most twice of what the monotonic clock did. So a wall clock
//! that is set wrong for a while does little harm, and a machine that slept catches up. An open
//! begins with the wall clock, or with the catalogue's mark if that is later.

use std::sync::atomic::Ordering;

use crate::base::locks::{AtomicU64, Mutex};
use crate::base::mutation::mutated;
use crate::env::Env;

/// See the [module](self). Any thread may look.
#[derive(Default)]
pub(in crate::db) struct ExpiryClock {
    last: Mutex<Option<Look>>,
    /// The time of the last look, in milliseconds.
    latest: AtomicU64,
}

/// Microseconds.
#[derive(Clone, Copy)]
struct Look {
    time: u64,
    monotonic: u64,
}

impl ExpiryClock {
    /// The present time, in milliseconds since 1970. It never goes back.
    pub(in crate::db) fn now(&self, env: &dyn Env) -> u64 {
        // Another thread is looking at this moment.
        let Some(mut last) = self.last.try_lock() else {
            let latest = self.latest.load(Ordering::Acquire);
            return if latest > 0 { latest } else { self.look(&mut self.last.lock(), env) };
        };
        self.look(&mut last, env)
    }

    fn look(&self, last: &mut Option<Look>, env: &dyn Env) -> u64 {
        let (wall, monotonic) = (micros(env), env.now_micros());
        let time = match *last {
            None => wall,
            Some(_) if mutated("clock-that-jumps") => wall,
            Some(last) => {
                let passed = monotonic.saturating_sub(last.monotonic);
                let least = last.time.saturating_add(passed / 2);
                wall.clamp(least, last.time.saturating_add(passed.saturating_mul(2)))
            }
        };
        *last = Some(Look { time, monotonic });
        self.latest.store(time / 1000, Ordering::Release);
        time / 1000
    }

    /// Sees to it that the clock is not behind `mark`, in milliseconds.
    pub(in crate::db) fn raise(&self, env: &dyn Env, mark: u64) {
        let mut last = self.last.lock();
        let now = self.look(&mut last, env);
        if now < mark {
            let time = mark.saturating_mul(1000);
            *last = Some(Look { time, monotonic: env.now_micros() });
            self.latest.store(time / 1000, Ordering::Release);
        }
    }
}

fn micros(env: &dyn Env) -> u64 {
    u64::try_from(env.wall_clock().as_micros()).unwrap_or(u64::MAX)
}
