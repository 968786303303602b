//! The clocks of the real system. Any thread may call.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Microseconds on a clock that never goes back (CLOCK_MONOTONIC).
pub(super) fn now_micros() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = now.tv_sec.wrapping_mul(1_000_000).wrapping_add(now.tv_nsec / 1_000);
    u64::try_from(micros).unwrap_or(0)
}

/// Time since 1970, UTC; zero if the system's clock stands before that.
pub(super) fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
