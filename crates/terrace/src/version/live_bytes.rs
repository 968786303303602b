//! How much of a database's files is not obsolete, by an estimate that needs no reading.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::version::file_meta::FileMeta;
use crate::version::version::Version;

/// The bytes of tables that are not obsolete, as RocksDB estimates them: from the last level up,
/// those of each table whose keys lie beside those that count already. Keys of a table that
/// overlaps with one below are taken for new versions of keys there, so it may be too little where
/// new keys lie in between.
pub(crate) fn live_table_bytes(version: &Version, order: &KeyOrder) -> u64 {
    let (mut counted, mut bytes) = (Vec::<Arc<FileMeta>>::new(), 0_u64);
    for level in version.levels.iter().rev() {
        let mut files = level.to_vec();
        // Level 0 is ordered by age.
        files.sort_by(|a, b| order.compare(a.smallest_user_key(), b.smallest_user_key()));
        let before = std::mem::take(&mut counted);
        let mut below = before.into_iter().peekable();
        for file in files {
            while below.peek().is_some_and(|next| precedes(next, &file, order)) {
                counted.extend(below.next());
            }
            let is_beside = below.peek().is_none_or(|next| precedes(&file, next, order))
                && counted.last().is_none_or(|last| precedes(last, &file, order));
            if is_beside {
                bytes = bytes.saturating_add(file.size);
                counted.push(file);
            }
        }
        counted.extend(below);
    }
    bytes
}

/// Whether all keys of `file` come before those of `other`.
fn precedes(file: &FileMeta, other: &FileMeta, order: &KeyOrder) -> bool {
    order.compare(file.largest_user_key(), other.smallest_user_key()) == Ordering::Less
}
