//! How far scans go from where they are sought.
//!
//! A seek and ten steps wait for the device in every run: for the block where the scan begins, which
//! all runs are asked for at once, and then for each block that the scan goes on to, one after the
//! other. Where scans usually go on, a seek asks for those blocks as well. Sequential readahead
//! ([`Readahead`](super::readahead::Readahead)) is for scans that are longer, and for those that go
//! backward.

use std::sync::atomic::{AtomicU32, Ordering};

const ONE: u32 = 1 << 16;

/// An average over the last few scans, of the blocks or the values that each went on to, up to `MOST`:
/// longer ones read ahead by themselves. Any thread, without a lock: a scan that is lost in between
/// does not matter.
#[derive(Default, Debug)]
pub(crate) struct ScanLength<const MOST: u8 = 8>(AtomicU32);

impl<const MOST: u8> Clone for ScanLength<MOST> {
    fn clone(&self) -> Self {
        ScanLength(AtomicU32::new(self.0.load(Ordering::Relaxed)))
    }
}

impl<const MOST: u8> ScanLength<MOST> {
    /// The average moves by one part in this many: one scan of the greatest length adds less than a
    /// half.
    const WEIGHT: u32 = 2 * MOST as u32 + 1;

    /// A scan went on to so many.
    pub(crate) fn note(&self, count: u8) {
        let average = self.0.load(Ordering::Relaxed);
        let count = u32::from(count.min(MOST)) * ONE;
        let next = average - average / Self::WEIGHT + count / Self::WEIGHT;
        if next != average {
            self.0.store(next, Ordering::Relaxed);
        }
    }

    /// To how many the next one probably goes on.
    pub(crate) fn expected(&self) -> usize {
        let average = self.0.load(Ordering::Relaxed);
        // One scan of the greatest length is not yet a habit.
        usize::try_from((average + ONE / 2 - 1) / ONE).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_scans_is_learnt_and_forgotten() {
        check::<8>();
        check::<32>();
    }

    fn check<const MOST: u8>() {
        let length = ScanLength::<MOST>::default();
        assert_eq!(length.expected(), 0);
        length.note(u8::MAX);
        assert_eq!(length.expected(), 0);
        (0..400).for_each(|_| length.note(2));
        assert_eq!(length.expected(), 2);
        // Now and then a long one changes nothing.
        length.note(u8::MAX);
        assert_eq!(length.expected(), 2);
        (0..600).for_each(|_| length.note(u8::MAX));
        assert_eq!(length.expected(), usize::from(MOST));
        (0..600).for_each(|_| length.note(0));
        assert_eq!(length.expected(), 0);
    }
}
