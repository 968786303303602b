//! Overlaps of a level's files with the next level: the order in which compactions pick them.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;

use super::file_meta::FileMeta;
use super::version::Version;

impl Version {
    /// The files of `level`, 1 or deeper but not the last, those first whose compaction into the
    /// next level rewrites least for each of their bytes. Computed when it is first asked for.
    pub(crate) fn by_overlap(
        &self,
        keys: &KeyOrder,
        level: usize,
    ) -> impl Iterator<Item = &Arc<FileMeta>> {
        let files = &self.levels[level];
        let order = self.by_overlap[level].get_or_init(|| {
            let overlaps = self.overlaps_below(keys, level);
            let ratios: Vec<_> =
                overlaps.map(|(file, below)| below as f64 / file.size.max(1) as f64).collect();
            let mut order: Vec<usize> = (0..files.len()).collect();
            order.sort_by(|&a, &b| ratios[a].total_cmp(&ratios[b]));
            order
        });
        order.iter().map(|&index| &files[index])
    }

    /// The files of `level`, 1 or deeper but not the last, in order, each with the bytes of the
    /// next level that it overlaps.
    pub(crate) fn overlaps_below(
        &self,
        keys: &KeyOrder,
        level: usize,
    ) -> impl Iterator<Item = (&Arc<FileMeta>, u64)> {
        let below = &self.levels[level + 1][..];
        let mut first = 0;
        self.levels[level].iter().map(move |file| {
            let (from, to) = (file.smallest_user_key(), file.largest_user_key());
            // Most files overlap what stands close behind that of the file before.
            first += gallop(&below[first..], |other| {
                keys.compare(other.largest_user_key(), from) == Ordering::Less
            });
            let overlapped = below[first..].iter().take_while(|other| {
                keys.compare(other.smallest_user_key(), to) != Ordering::Greater
            });
            (file, overlapped.map(|other| other.size).sum())
        })
    }
}

/// As `partition_point`, in steps that double: quick where the point lies near the beginning.
fn gallop<T>(items: &[T], mut is_before: impl FnMut(&T) -> bool) -> usize {
    let (mut before, mut step) = (0, 1);
    while let Some(item) = items.get(before + step - 1)
        && is_before(item)
    {
        before += step;
        step *= 2;
    }
    let rest = &items[before..(before + step - 1).min(items.len())];
    before + rest.partition_point(is_before)
}

#[cfg(test)]
mod tests {
    use super::gallop;

    #[test]
    fn gallop_finds_every_point() {
        for count in 0..40 {
            let items: Vec<usize> = (0..count).collect();
            for point in 0..=count {
                assert_eq!(gallop(&items, |&item| item < point), point, "of {count}");
            }
        }
    }
}
