//! The times at which lasting readers began: cursors, snapshots, transactions.
//!
//! A reader sees everything that had not expired when it began. So compactions remove what had
//! expired before the first of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::fork::Origin;
use crate::base::locks::Mutex;
use crate::base::mutation::mutated;

/// See the [module](self).
#[derive(Default)]
pub(in crate::db) struct ReadTimes {
    /// How many readers there are of each time, in milliseconds.
    live: Mutex<BTreeMap<u64, usize>>,
    origin: Origin,
}

impl ReadTimes {
    /// Begins a reader. The clock is read under the lock: what is
    /// [removed](Self::oldest) before has expired by then, and nothing else is removed later.
    pub(in crate::db) fn begin(self: &Arc<Self>, now: impl FnOnce() -> u64) -> ReadTime {
        if self.origin.is_ancestor() {
            // In a child of a fork nothing is removed, and the lock may never be free.
            return ReadTime(Arc::new(Begun { time: now(), times: self.clone() }));
        }
        let mut live = self.live.lock();
        let time = now();
        *live.entry(time).or_default() += 1;
        ReadTime(Arc::new(Begun { time, times: self.clone() }))
    }

    /// No reader, present or to come, needs what expires up to this time.
    pub(in crate::db) fn oldest(&self, now: impl FnOnce() -> u64) -> u64 {
        let live = self.live.lock();
        let now = now();
        let oldest = live.keys().next().filter(|_| !mutated("times-of-readers"));
        oldest.map_or(now, |oldest| now.min(*oldest))
    }
}

/// The time that a reader sees. Clones share it.
#[derive(Clone)]
pub(in crate::db) struct ReadTime(Arc<Begun>);

struct Begun {
    time: u64,
    times: Arc<ReadTimes>,
}

impl ReadTime {
    pub(in crate::db) fn millis(&self) -> u64 {
        self.0.time
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.times.origin.is_ancestor() {
            return;
        }
        let mut live = self.times.live.lock();
        if let Some(count) = live.get_mut(&self.time) {
            *count -= 1;
            if *count == 0 {
                live.remove(&self.time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_reader_holds_the_time() {
        let times = Arc::new(ReadTimes::default());
        assert_eq!(times.oldest(|| 5), 5);
        let (first, second) = (times.begin(|| 5), times.begin(|| 5));
        let copy = first.clone();
        let later = times.begin(|| 9);
        drop((first, later));
        assert_eq!((times.oldest(|| 20), copy.millis()), (5, 5));
        drop(second);
        assert_eq!(times.oldest(|| 20), 5);
        drop(copy);
        assert_eq!(times.oldest(|| 20), 20);
    }
}
