//! Counts the work of one thread of a benchmark.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// Latencies are kept to two digits: an error below one per cent.
const SIGNIFICANT_DIGITS: u8 = 2;
/// Latencies above an hour count as an hour.
const LONGEST_NANOS: u64 = 3_600_000_000_000;

/// Nanoseconds of operations.
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    longest: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NANOS, SIGNIFICANT_DIGITS)
            .expect("bounds in range");
        Latencies { histogram, longest: 0 }
    }

    #[inline]
    fn add(&mut self, nanos: u64, times: u64) {
        self.histogram.saturating_record_n(nanos, times);
        self.longest = self.longest.max(nanos);
    }

    pub(crate) fn merge(&mut self, other: &Latencies) {
        // All have the same bounds, so adding cannot fail.
        let _ = self.histogram.add(&other.histogram);
        self.longest = self.longest.max(other.longest);
    }

    fn clear(&mut self) {
        self.histogram.reset();
        self.longest = 0;
    }

    pub(crate) fn mean_micros(&self) -> f64 {
        self.histogram.mean() / 1e3
    }

    pub(crate) fn micros_at(&self, quantile: f64) -> f64 {
        self.histogram.value_at_quantile(quantile).min(self.longest) as f64 / 1e3
    }

    pub(crate) fn max_micros(&self) -> f64 {
        self.longest as f64 / 1e3
    }
}

/// The work of one thread since the last line of a series.
pub(crate) struct Interval {
    since_last_line: Mutex<(u64, Latencies)>,
}

impl Interval {
    pub(crate) fn new() -> Self {
        Interval { since_last_line: Mutex::new((0, Latencies::new())) }
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Latencies)> {
        self.since_last_line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves operations and latencies into `sum`.
    pub(crate) fn take(&self, sum: &mut (u64, Latencies)) {
        let mut mine = self.lock();
        sum.0 += mine.0;
        sum.1.merge(&mine.1);
        mine.0 = 0;
        mine.1.clear();
    }
}

/// The work of one thread, or of all of them.
pub(crate) struct Meter<'a> {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    pub(crate) found: u64,
    pub(crate) latencies: Latencies,
    /// When the last operation ended.
    pub(crate) last: Instant,
    /// Whether there was more to do when time was up.
    pub(crate) truncated: bool,
    limit: Option<Duration>,
    deadline: Option<Instant>,
    interval: Option<&'a Interval>,
}

impl<'a> Meter<'a> {
    /// `limit` is the time after which the thread has to end.
    pub(crate) fn new(limit: Option<Duration>, interval: Option<&'a Interval>) -> Self {
        Meter {
            operations: 0,
            bytes: 0,
            found: 0,
            latencies: Latencies::new(),
            last: Instant::now(),
            truncated: false,
            limit,
            deadline: None,
            interval,
        }
    }

    /// The measured part begins.
    pub(crate) fn begin(&mut self) {
        self.last = Instant::now();
        self.deadline = self.limit.map(|limit| self.last + limit);
    }

    /// Waits until an operation is due. Its latency counts from then if the one before it was still
    /// running, and else from when the thread woke up: that delay is the machine's.
    pub(crate) fn await_due(&mut self, due: Instant) {
        if self.last < due {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            self.last = Instant::now();
        } else {
            self.last = due;
        }
    }

    /// A call ended that did `count` operations on `bytes` of keys and values.
    #[inline]
    pub(crate) fn end(&mut self, count: u64, bytes: u64) {
        let nanos = self.lap();
        self.add(count, bytes, nanos, 1);
    }

    /// One call ended in whose last part, `idle`, nothing was done: that does not count.
    pub(crate) fn end_before(&mut self, idle: Duration) {
        let nanos = self.lap();
        let idle = idle.min(Duration::from_nanos(nanos));
        self.last -= idle;
        self.add(1, 0, nanos - idle.as_nanos() as u64, 1);
    }

    /// `count` steps of a scan ended. A step alone is too short for the clock.
    pub(crate) fn end_steps(&mut self, count: u64, bytes: u64) {
        if let Some(nanos) = self.lap().checked_div(count) {
            self.add(count, bytes, nanos, count);
        }
    }

    #[inline]
    fn lap(&mut self) -> u64 {
        let now = Instant::now();
        let nanos = now.saturating_duration_since(self.last).as_nanos() as u64;
        self.last = now;
        nanos
    }

    #[inline]
    fn add(&mut self, count: u64, bytes: u64, nanos: u64, times: u64) {
        self.operations += count;
        self.bytes += bytes;
        self.latencies.add(nanos, times);
        if let Some(interval) = self.interval {
            let mut since_last_line = interval.lock();
            since_last_line.0 += count;
            since_last_line.1.add(nanos, times);
        }
    }

    /// Whether there was time left when the last operation ended.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        self.deadline.is_none_or(|deadline| self.last < deadline)
    }

    pub(crate) fn merge(&mut self, other: &Meter<'_>) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.found += other.found;
        self.latencies.merge(&other.latencies);
        self.last = self.last.max(other.last);
        self.truncated |= other.truncated;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So that what waits behind a stall is as slow as it was for whoever wanted it.
    #[test]
    fn an_operation_that_begins_late_counts_from_when_it_was_due() {
        let late = Duration::from_secs(5);
        let mut meter = Meter::new(None, None);
        meter.begin();
        meter.last += late;
        let due = meter.last - late;
        meter.await_due(due);
        assert_eq!(meter.last, due);

        // One that is due later does not count the time until then.
        meter.begin();
        let due = meter.last + Duration::from_millis(5);
        meter.await_due(due);
        assert!(meter.last >= due);
    }
}
