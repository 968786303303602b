//! Delays writers in proportion to the background work that they leave behind, instead of stopping
//! them when it becomes too much.
//!
//! Each byte written owes a little time; the debt is paid in sleeps long enough to be exact. The
//! price of a byte rises with the pressure and follows the measured speed of background work, so
//! that writers converge to the rate that background work can sustain.
//!
//! A write sleeps no longer than its size allows: a small one for 20 ms, a large batch in proportion,
//! up to half a second. It sleeps in pieces, and no longer than there is a reason to.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Shorter sleeps cost more than they delay.
const SHORTEST_SLEEP_NANOS: u64 = 300_000;
/// For a small write a longer one would be a stall. Large ones look after each piece of this length
/// whether they have to go on.
const LONGEST_SLEEP_NANOS: u64 = 20_000_000;
/// The size up to which a write is small. A larger one sleeps as long as the small ones would in
/// which its bytes could come instead.
pub(crate) const SMALL_WRITE: usize = 64 << 10;
/// The most that a write sleeps: half of what others wait by default for the locks that a
/// transaction holds while it does. Large writes sleep one after the other.
const LONGEST_DELAY_NANOS: u64 = 500_000_000;

/// The price of writing, shared between background work, which sets it, and writers, which pay it.
#[derive(Default)]
pub(crate) struct Throttle {
    nanos_per_kib: AtomicU64,
    /// Whether the database is closing.
    is_lifted: AtomicBool,
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
        self.nanos_per_kib.load(Ordering::Relaxed) != 0 && !self.is_lifted.load(Ordering::Relaxed)
    }

    /// Ends every delay for good: the caller closes the database, and waits for the writers.
    pub(crate) fn lift(&self) {
        self.is_lifted.store(true, Ordering::Relaxed);
    }

    /// Adds the price of `bytes` to `owed`, and returns for how long to [delay](Self::delay) the
    /// write now, if it is time to.
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
        let nanos = std::mem::take(owed).min(longest_delay(bytes));
        Some(Duration::from_nanos(nanos))
    }

    /// Sleeps for `delay`, or until there is no backlog any more, or it is over for another reason.
    #[cold]
    pub(crate) fn delay(
        &self,
        delay: Duration,
        mut sleep: impl FnMut(Duration),
        is_over: impl Fn() -> bool,
    ) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        let mut left = delay;
        loop {
            let piece = left.min(Duration::from_nanos(LONGEST_SLEEP_NANOS));
            self.slept_micros.fetch_add(piece.as_micros() as u64, Ordering::Relaxed);
            sleep(piece);
            left -= piece;
            if left.is_zero() || !self.slows_down() || is_over() {
                return;
            }
        }
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

/// The most nanoseconds that a write of `bytes` sleeps.
fn longest_delay(bytes: usize) -> u64 {
    let in_proportion = (bytes as u64).saturating_mul(LONGEST_SLEEP_NANOS) / SMALL_WRITE as u64;
    in_proportion.clamp(LONGEST_SLEEP_NANOS, LONGEST_DELAY_NANOS)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const PIECE: Duration = Duration::from_nanos(LONGEST_SLEEP_NANOS);

    /// How long one write of `bytes` sleeps.
    fn delay_of(throttle: &Throttle, bytes: usize) -> Duration {
        let mut slept = Duration::ZERO;
        if let Some(delay) = throttle.charge(&mut 0, bytes) {
            let sleep = |piece: Duration| {
                assert!(piece <= PIECE, "{piece:?} without a look at what has changed");
                slept += piece;
            };
            throttle.delay(delay, sleep, || false);
            assert_eq!(slept, delay);
        }
        slept
    }

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
            if let Some(delay) = throttle.charge(&mut owed, 100) {
                throttle.delay(delay, |piece| slept += piece, || false);
            }
        }
        let due = Duration::from_micros(100_000);
        assert!(slept <= due && slept + Duration::from_millis(1) >= due, "{slept:?}");
        assert!(throttle.stalls().0 > 10);
    }

    #[test]
    fn a_small_write_sleeps_once_and_for_20_ms_at_most() {
        for bytes in [1, 100, 4096, SMALL_WRITE] {
            for (waiting, bytes_per_second) in [(2.5, 1e6), (4.0, 5e7), (6.0, 1e6), (1e6, 1.0)] {
                let throttle = Throttle::default();
                throttle.set([Backlog { bytes_per_second, ..backlog(waiting) }]);
                let price = throttle.nanos_per_kib.load(Ordering::Relaxed);
                let due = (price * bytes as u64) >> 10;
                let expected = if due < SHORTEST_SLEEP_NANOS { 0 } else { due.min(20_000_000) };
                assert_eq!(delay_of(&throttle, bytes), Duration::from_nanos(expected));
                assert_eq!(throttle.stalls().0, u64::from(expected > 0));
            }
        }
    }

    #[test]
    fn a_large_write_sleeps_as_long_as_its_bytes_take() {
        let throttle = Throttle::default();
        let at_par = Backlog { bytes_per_second: 50e6, ..backlog(4.0) };
        throttle.set([at_par]);
        assert_eq!(delay_of(&throttle, 10_240_000), Duration::from_millis(204) + PIECE / 25);
        assert_eq!(delay_of(&throttle, 20_480_000), 2 * delay_of(&throttle, 10_240_000));
        assert_eq!(throttle.stalls(), (3, 4 * 204_800));
        for bytes in [100 << 20, u32::MAX as usize, usize::MAX] {
            assert_eq!(delay_of(&throttle, bytes), Duration::from_millis(500));
        }
        throttle.set([backlog(1.0)]);
        assert_eq!(delay_of(&throttle, usize::MAX), Duration::ZERO);
    }

    #[test]
    fn a_delay_ends_with_its_reason() {
        let pieces_until = |change: &dyn Fn(&Throttle), is_over: &dyn Fn(u32) -> bool| {
            let throttle = Throttle::default();
            throttle.set([backlog(6.0)]);
            let pieces = Cell::new(0);
            let sleep = |_| {
                pieces.set(pieces.get() + 1);
                if pieces.get() == 3 {
                    change(&throttle);
                }
            };
            let delay = throttle.charge(&mut 0, 64 << 20).expect("a delay");
            throttle.delay(delay, sleep, || is_over(pieces.get()));
            assert_eq!(throttle.stalls(), (1, u64::from(pieces.get()) * 20_000));
            pieces.get()
        };
        let nothing = |_: &Throttle| ();
        assert_eq!(pieces_until(&nothing, &|_| false), 25);
        assert_eq!(pieces_until(&|throttle| throttle.set([backlog(2.0)]), &|_| false), 3);
        assert_eq!(pieces_until(&|throttle| throttle.set([backlog(4.0)]), &|_| false), 25);
        assert_eq!(pieces_until(&Throttle::lift, &|_| false), 3);
        assert_eq!(pieces_until(&nothing, &|pieces| pieces == 7), 7);
    }

    /// Writers and one kind of background work, with time that passes in sleeps alone.
    #[test]
    fn a_backlog_stays_bounded_whatever_the_size_of_a_write() {
        const SPEED: f64 = 50e6;
        const LIMIT: f64 = 48e6;
        for bytes in [1000, 100_000, 1_000_000, 10_000_000, 20_000_000] {
            let throttle = Throttle::default();
            let (mut waiting, mut most, mut owed) = (0.0_f64, 0.0_f64, 0);
            for _ in 0..4_000_000_000_usize / bytes {
                throttle.set([Backlog {
                    waiting,
                    comfortable: LIMIT / 3.0,
                    limit: LIMIT,
                    bytes_per_second: SPEED,
                }]);
                if let Some(delay) = throttle.charge(&mut owed, bytes) {
                    throttle.delay(delay, |piece| waiting -= SPEED * piece.as_secs_f64(), || false);
                }
                waiting = waiting.max(0.0) + bytes as f64;
                most = most.max(waiting);
            }
            assert!(most <= LIMIT + bytes as f64, "{bytes}: {most}");
        }
    }
}
