//! Numbers in four bytes each, where all of them fit.
//!
//! A large database has an index entry for each block of some kilobytes in memory, so what an entry
//! takes decides how much data the memory for indexes stands for.

/// See the [module](self).
#[derive(Default)]
pub(super) struct Offsets {
    /// All of them, unless one does not fit.
    short: Box<[u32]>,
    /// All of them, or none.
    long: Box<[u64]>,
}

impl Offsets {
    pub(super) fn new(numbers: &[u64]) -> Self {
        if numbers.iter().any(|&number| number > u64::from(u32::MAX)) {
            return Offsets { long: numbers.into(), ..Self::default() };
        }
        let short = numbers.iter().map(|&number| number as u32).collect();
        Offsets { short, ..Self::default() }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<u64> {
        match self.short.get(at) {
            Some(&number) => Some(u64::from(number)),
            None => self.long.get(at).copied(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.short) + size_of_val(&*self.long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_small_ones_take_half() {
        let most = u64::from(u32::MAX);
        for (numbers, bytes) in [
            (vec![], 0),
            (vec![0, 7, 7, most], 16),
            (vec![0, 7, 7, most + 1], 32),
            (vec![u64::MAX], 8),
        ] {
            let offsets = Offsets::new(&numbers);
            let back: Vec<_> = (0..offsets.len()).filter_map(|at| offsets.get(at)).collect();
            assert_eq!((back, offsets.memory_usage()), (numbers.clone(), bytes));
            assert_eq!(offsets.get(numbers.len()), None);
        }
    }
}
