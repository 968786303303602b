//! Chooses the tables of a version that a range delete removes or rewrites.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::Result;
use crate::base::internal_key::{self, KIND_FOR_SEEK, MAX_SEQUENCE};
use crate::base::mutation::mutated;
use crate::version::file_meta::FileMeta;
use crate::version::version::{Version, bytes_before};

use crate::db::db_impl::files::Files;
use crate::db::key_range::KeyRanges;

/// A table and its level.
type LevelFile = (usize, Arc<FileMeta>);

/// See the [module](self).
pub(super) struct Cut {
    /// Tables that lie inside one range.
    pub(super) dropped: Vec<LevelFile>,
    /// Tables that hold other keys, too, and those of level 0 that are newer than one of them;
    /// within level 0 the oldest first.
    pub(super) rewritten: Vec<LevelFile>,
}

impl Cut {
    pub(super) fn of(version: &Version, keys: &KeyOrder, ranges: &KeyRanges) -> Cut {
        let mut cut = Cut { dropped: Vec::new(), rewritten: Vec::new() };
        for (level, files) in version.levels.iter().enumerate() {
            let mut follows_rewritten = false;
            // The last is the oldest one of level 0.
            for file in files.iter().rev() {
                let (first, last) = (file.smallest_user_key(), file.largest_user_key());
                if ranges.hold_all(keys, first, last) {
                    cut.dropped.push((level, file.clone()));
                } else if ranges.overlap(keys, first, last) || follows_rewritten {
                    cut.rewritten.push((level, file.clone()));
                    follows_rewritten = level == 0 && !mutated("range-delete-level-0-order");
                }
            }
        }
        cut
    }

    /// Every table that goes.
    pub(super) fn files(&self) -> impl Iterator<Item = &LevelFile> {
        self.dropped.iter().chain(&self.rewritten)
    }

    /// The numbers of these, sorted.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<_> = self.files().map(|(_, file)| file.number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Bytes of the tables that have to be rewritten.
    pub(super) fn bytes_rewritten(&self) -> u64 {
        self.rewritten.iter().fold(0, |bytes, (_, file)| bytes.saturating_add(file.size))
    }

    /// Whether any of these points at values in value files.
    pub(super) fn rewrites_pointers(&self) -> bool {
        self.rewritten.iter().any(|(_, file)| file.value_bytes() > 0)
    }

    /// Bytes of the tables that lie inside.
    pub(super) fn table_bytes_inside(&self) -> u64 {
        self.dropped.iter().map(|(_, file)| file.size).sum()
    }

    /// Bytes of these and of the values that they point at.
    pub(super) fn bytes_inside(&self) -> u64 {
        self.dropped.iter().fold(self.table_bytes_inside(), |bytes, (_, file)| {
            bytes.saturating_add(file.value_bytes())
        })
    }
}

/// About how many bytes of a table lie inside the ranges, which are disjoint.
pub(super) fn bytes_of(files: &Files, file: &Arc<FileMeta>, ranges: &KeyRanges) -> Result<u64> {
    let before = |bound: Bound<&[u8]>, unbounded: u64| match bound {
        Bound::Unbounded => Ok(unbounded),
        Bound::Included(key) | Bound::Excluded(key) => {
            let key = internal_key::encode(key, MAX_SEQUENCE, KIND_FOR_SEEK);
            bytes_before(file, &files.tables, &files.order, &key)
        }
    };
    let inside = ranges.iter().map(|range| {
        let (from, to) = range.as_bounds();
        Ok(before(to, file.size)?.saturating_sub(before(from, 0)?))
    });
    inside.sum()
}
