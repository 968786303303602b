//! Which files of a version hold keys of a range.

use std::cmp::Ordering as KeyOrdering;
use std::ops::Range;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;

use super::file_meta::FileMeta;
use super::version::Version;

impl Version {
    /// The files of `level` that hold user keys in the inclusive range; an absent end is open.
    ///
    /// In level 0, where files overlap each other, the range grows to take in every file that
    /// overlaps one taken.
    pub(crate) fn overlapping(
        &self,
        keys: &KeyOrder,
        level: usize,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Vec<Arc<FileMeta>> {
        let files = &self.levels[level];
        if level > 0 {
            let is_before = |file: &Arc<FileMeta>| {
                from.is_some_and(|from| {
                    keys.compare(file.largest_user_key(), from) == KeyOrdering::Less
                })
            };
            let reaches = |file: &&Arc<FileMeta>| file.overlaps(keys, None, to);
            return files[files.partition_point(is_before)..]
                .iter()
                .take_while(reaches)
                .cloned()
                .collect();
        }
        let mut from = from.map(<[u8]>::to_vec);
        let mut to = to.map(<[u8]>::to_vec);
        loop {
            let taken: Vec<_> = files
                .iter()
                .filter(|file| file.overlaps(keys, from.as_deref(), to.as_deref()))
                .cloned()
                .collect();
            let mut grown = false;
            for file in &taken {
                if let Some(low) = &mut from
                    && keys.compare(file.smallest_user_key(), low) == KeyOrdering::Less
                {
                    *low = file.smallest_user_key().to_vec();
                    grown = true;
                }
                if let Some(high) = &mut to
                    && keys.compare(file.largest_user_key(), high) == KeyOrdering::Greater
                {
                    *high = file.largest_user_key().to_vec();
                    grown = true;
                }
            }
            if !grown {
                return taken;
            }
        }
    }

    /// Whether any file of `level` holds user keys in the inclusive range.
    pub(crate) fn overlaps_level(
        &self,
        keys: &KeyOrder,
        level: usize,
        from: &[u8],
        to: &[u8],
    ) -> bool {
        let files = &self.levels[level];
        if level == 0 {
            return files.iter().any(|file| file.overlaps(keys, Some(from), Some(to)));
        }
        let first = files.partition_point(|file| {
            keys.compare(file.largest_user_key(), from) == KeyOrdering::Less
        });
        files
            .get(first)
            .is_some_and(|file| keys.compare(file.smallest_user_key(), to) != KeyOrdering::Greater)
    }

    /// Whether the tables of `levels` that hold user keys in the inclusive range have so many bytes.
    pub(crate) fn overlap_at_least(
        &self,
        keys: &KeyOrder,
        levels: Range<usize>,
        (from, to): (&[u8], &[u8]),
        bytes: u64,
    ) -> bool {
        let mut files = levels.flat_map(|level| {
            let files = &self.levels[level];
            // Those of level 0 are in the order of their ages.
            let first = match level {
                0 => 0,
                _ => files.partition_point(|file| {
                    keys.compare(file.largest_user_key(), from) == KeyOrdering::Less
                }),
            };
            let reaches = move |file: &&Arc<FileMeta>| {
                level == 0 || keys.compare(file.smallest_user_key(), to) != KeyOrdering::Greater
            };
            files[first..].iter().take_while(reaches)
        });
        let mut left = bytes;
        files.any(|file| {
            if file.overlaps(keys, Some(from), Some(to)) {
                left = left.saturating_sub(file.size);
            }
            left == 0
        })
    }
}
