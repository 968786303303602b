//! Delays writers in proportion to the background work that they leave behind, instead of stopping
//! them when it becomes too much.
//!
//! Each byte written owes a little time; the debt is paid in sleeps long enough to be exact. The
//! price of a byte rises with the pressure and follows the measured speed of background work, so
//! that writers converge to the rate that background work can sustain.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Shorter sleeps cost more than they delay.
const SHORTEST_SLEEP_NANOS: u64 = 300_000;
/// A longer one would be a stall.
const LONGEST_SLEEP_NANOS: u64 = 20_000_000;

/// The price of writing, shared between background work, which sets it, and writers, which pay it.
#[derive(Default)]
pub(crate) struct Throttle {
    nanos_per_kib: AtomicU64,
    sleeps: AtomicU64,
    slept_micros: AtomicU64,
}

/// How far behind one kind of background work is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    /// Units of work waiting, and between how many of them writers go from undisturbed to as slow
    /// as the work.
    pub(crate) waiting: f64,
    pub(crate) comfortable: f64,
    pub(crate) limit: f64,
    /// Bytes of user data that the work gets through in a second.
    pub(crate) bytes_per_second: f64,
}

impl Backlog {
    /// Nanoseconds that one byte should take.
    ///
    /// Half way to the limit writers go exactly as fast as the work; at the limit half as fast, so
    /// that the backlog shrinks; beyond it slower still, but never not at all.
    fn nanos_per_byte(&self) -> f64 {
        let pressure = (self.waiting - self.comfortable) / (self.limit - self.comfortable);
        let nanos_at_par = 1e9 / self.bytes_per_second.max(64.0 * 1024.0);
        2.0 * pressure.clamp(0.0, 4.0) * nanos_at_par
    }
}

impl Throttle {
    /// Sets the price from every backlog; the worst one counts.
    pub(crate) fn set(&self, backlogs: impl IntoIterator<Item = Backlog>) {
        let prices = backlogs.into_iter().map(|backlog| backlog.nanos_per_byte());
        let worst = prices.fold(0.0, f64::max);
        self.nanos_per_kib.store((worst * 1024.0) as u64, Ordering::Relaxed);
    }

    /// Whether writers pay at all.
    pub(crate) fn slows_down(&self) -> bool {
        self.nanos_per_kib.load(Ordering::Relaxed) != 0
    }

    /// Adds the price of `bytes` to `owed`, and returns how long to sleep now, if it is time to.
    #[inline]
    pub(crate) fn charge(&self, owed: &mut u64, bytes: usize) -> Option<Duration> {
        let price = self.nanos_per_kib.load(Ordering::Relaxed);
        if price == 0 {
            *owed = 0;
            return None;
        }
        *owed += (price.saturating_mul(bytes as u64)) >> 10;
        if *owed < SHORTEST_SLEEP_NANOS {
            return None;
        }
        let nanos = std::mem::take(owed).min(LONGEST_SLEEP_NANOS);
        self.record_stall(Duration::from_nanos(nanos));
        Some(Duration::from_nanos(nanos))
    }

    /// Counts a wait of a writer.
    pub(crate) fn record_stall(&self, duration: Duration) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        self.slept_micros.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }

    /// How often writers slept or waited, and for how many microseconds in all.
    pub(crate) fn stalls(&self) -> (u64, u64) {
        (self.sleeps.load(Ordering::Relaxed), self.slept_micros.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(waiting: f64) -> Backlog {
        Backlog { waiting, comfortable: 2.0, limit: 6.0, bytes_per_second: 1e6 }
    }

    #[test]
    fn the_price_is_proportional_to_the_backlog() {
        let price = |waiting| backlog(waiting).nanos_per_byte();
        assert_eq!(price(1.0), 0.0);
        assert_eq!(price(2.0), 0.0);
        assert!((price(4.0) - 1000.0).abs() < 1e-6, "half way: as fast as the work");
        assert!((price(6.0) - 2000.0).abs() < 1e-6);
        assert!(price(1000.0) < 10_000.0, "never a stop");
    }

    #[test]
    fn small_debts_add_up_to_one_sleep() {
        let throttle = Throttle::default();
        let mut owed = 0;
        assert_eq!(throttle.charge(&mut owed, 1 << 20), None);
        throttle.set([backlog(1.0), backlog(4.0)]);
        let mut slept = Duration::ZERO;
        for _ in 0..1000 {
            slept += throttle.charge(&mut owed, 100).unwrap_or_default();
        }
        let due = Duration::from_micros(100_000);
        assert!(slept <= due && slept + Duration::from_millis(1) >= due, "{slept:?}");
        assert!(throttle.stalls().0 > 10);
    }
}
