//! The clock of expiry: the time since 1970 as far as it can be trusted.
//!
//! It follows the wall clock, but neither jumps ahead nor goes back with it: between two looks it
//! moves on by at least half and at most twice of what the monotonic clock did. So a wall clock
//! that is set wrong for a while does little harm, and a machine that slept catches up. An open
//! begins with the wall clock, or with the catalogue's mark if that is later.

use std::sync::atomic::Ordering;

use crate::base::fork::Origin;
use crate::base::locks::{AtomicU64, Mutex, MutexGuard};
use crate::base::mutation::mutated;
use crate::env::Env;

/// Two readings of the monotonic clock, with the wall clock between them, are one moment if they
/// are at most this many microseconds apart.
const ONE_MOMENT: u64 = 1000;

/// A thread that is suspended between them more often than this takes what it read last.
const READINGS: usize = 8;

/// See the [module](self). Any thread may look. A time that is less than [`ONE_MOMENT`] old is
/// taken without a lock; otherwise one thread waits for another, because the last time may be long
/// past. In a child of a fork, where the other one may not be, it takes the wall clock instead.
#[derive(Default)]
pub(in crate::db) struct ExpiryClock {
    last: Mutex<Option<Look>>,
    /// The last time, in milliseconds, and when it was taken by the monotonic clock: stored in this
    /// order, and loaded in the other one, so that the time is no older than the moment says.
    latest: AtomicU64,
    latest_at: AtomicU64,
    origin: Origin,
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
        let at = self.latest_at.load(Ordering::Acquire);
        let is_fresh = env.now_micros().saturating_sub(at) < ONE_MOMENT;
        let latest = self.latest.load(Ordering::Acquire);
        if is_fresh && latest > 0 {
            return latest;
        }
        self.last()
            .map_or_else(|| latest.max(micros(env) / 1000), |mut last| self.look(&mut last, env))
    }

    fn look(&self, last: &mut Option<Look>, env: &dyn Env) -> u64 {
        let (wall, monotonic) = readings(env);
        let time = match *last {
            None => wall,
            Some(_) if mutated("clock-that-jumps") => wall,
            Some(last) => {
                let passed = monotonic.saturating_sub(last.monotonic);
                let least = last.time.saturating_add(passed / 2);
                wall.clamp(least, last.time.saturating_add(passed.saturating_mul(2)))
            }
        };
        self.set(last, Look { time, monotonic })
    }

    /// The lock of the last look. None in a child of a fork whose parent held it.
    fn last(&self) -> Option<MutexGuard<'_, Option<Look>>> {
        if self.origin.is_ancestor() { self.last.try_lock() } else { Some(self.last.lock()) }
    }

    fn set(&self, last: &mut Option<Look>, look: Look) -> u64 {
        *last = Some(look);
        let millis = look.time / 1000;
        self.latest.store(millis, Ordering::Release);
        self.latest_at.store(look.monotonic, Ordering::Release);
        millis
    }

    /// Sees to it that the clock is not behind `mark`, in milliseconds.
    pub(in crate::db) fn raise(&self, env: &dyn Env, mark: u64) {
        let Some(mut last) = self.last() else {
            // In a child of a fork: it writes nothing, and `now` takes the greater time.
            self.latest.fetch_max(mark, Ordering::AcqRel);
            return;
        };
        let now = self.look(&mut last, env);
        if now < mark {
            let time = mark.saturating_mul(1000);
            self.set(&mut last, Look { time, monotonic: env.now_micros() });
        }
    }
}

/// The wall clock and the monotonic clock at one moment, in microseconds. Time that passed between
/// the readings would count for one clock alone, and the other be taken for wrong.
fn readings(env: &dyn Env) -> (u64, u64) {
    let mut before = env.now_micros();
    for _ in 1..READINGS {
        let (wall, after) = (micros(env), env.now_micros());
        if after.saturating_sub(before) <= ONE_MOMENT {
            return (wall, after);
        }
        before = after;
    }
    (micros(env), env.now_micros())
}

fn micros(env: &dyn Env) -> u64 {
    u64::try_from(env.wall_clock().as_micros()).unwrap_or(u64::MAX)
}
