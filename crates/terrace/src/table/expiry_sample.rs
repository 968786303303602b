//! The time at which half of a table's entries have expired, from a bounded sample of theirs.

/// Times that are kept, at most. More than half of them go when there are more.
const MOST: usize = 2048;

/// See the [module](self).
pub(super) struct ExpirySample {
    times: Vec<u64>,
    /// One time in so many is kept.
    stride: u64,
    /// Entries that expire.
    count: u64,
}

impl ExpirySample {
    pub(super) fn new() -> Self {
        ExpirySample { times: Vec::new(), stride: 1, count: 0 }
    }

    /// Takes note of an entry that expires at `time`.
    pub(super) fn add(&mut self, time: u64) {
        if self.count.is_multiple_of(self.stride) {
            if self.times.len() == MOST {
                let mut at = 0;
                self.times.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.stride *= 2;
            }
            self.times.push(time);
        }
        self.count += 1;
    }

    /// When half of `entries` have expired; [`u64::MAX`] for never.
    pub(super) fn half_expired(mut self, entries: u64) -> u64 {
        let half = entries.div_ceil(2);
        if half == 0 || self.count < half {
            return u64::MAX;
        }
        self.times.sort_unstable();
        // Rounded up: rather a little later.
        let at = half.div_ceil(self.stride) as usize;
        let last = self.times.last().copied();
        self.times.get(at.saturating_sub(1)).copied().or(last).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(times: impl Iterator<Item = u64>, entries: u64) -> u64 {
        let mut sample = ExpirySample::new();
        times.for_each(|time| sample.add(time));
        sample.half_expired(entries)
    }

    #[test]
    fn half_of_all_entries_counts() {
        assert_eq!(half(0..0, 0), u64::MAX);
        assert_eq!(half(0..0, 10), u64::MAX);
        assert_eq!(half(1..=10, 10), 5);
        assert_eq!(half(1..=10, 20), 10);
        assert_eq!(half(1..=10, 21), u64::MAX, "most never expire");
        assert_eq!(half([7, 3].into_iter(), 3), 7);
    }

    #[test]
    fn a_large_table_is_sampled() {
        let count = 1_000_000;
        let about = half((0..count).rev(), count);
        assert!(about.abs_diff(count / 2) < count / 100, "{about}");
        assert!(half(0..count, 2 * count) >= count - count / 100);
    }
}
