//! The files of one level.

use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

use crate::base::abbreviated_keys::AbbreviatedKeys;
use crate::base::internal_key::{InternalOrder, user_key};
use crate::table::ScanLength;

use super::file_meta::FileMeta;

/// The files of one level, in the order of the level: level 0 newest first, the others by key.
#[derive(Default, Debug)]
pub(crate) struct Level {
    files: Vec<Arc<FileMeta>>,
    /// Of the largest user keys. Of use in the bytewise order, and where files are ordered by key.
    abbreviated_keys: AbbreviatedKeys,
    bytes: u64,
    pub(crate) scan_length: ScanLength,
}

impl Level {
    /// With what is known of scans of the same level in the version before.
    pub(super) fn in_place_of(self, before: &Level) -> Level {
        Level { scan_length: before.scan_length.clone(), ..self }
    }

    /// The size of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first file of a level ordered by key whose largest key is at or after `key`, an internal
    /// key; the number of files if there is none.
    #[inline]
    pub(crate) fn find(&self, order: &InternalOrder, key: &[u8]) -> usize {
        let undecided = match order.keys.is_bytewise() {
            true => self.abbreviated_keys.undecided(user_key(key)),
            false => 0..self.files.len(),
        };
        let is_before = |file: &Arc<FileMeta>| order.compare(&file.largest, key) == Ordering::Less;
        undecided.start + self.files[undecided].partition_point(is_before)
    }
}

impl From<Vec<Arc<FileMeta>>> for Level {
    fn from(files: Vec<Arc<FileMeta>>) -> Self {
        let abbreviated_keys =
            AbbreviatedKeys::new(files.iter().map(|file| file.largest_user_key()));
        let bytes = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size));
        Level { files, abbreviated_keys, bytes, scan_length: ScanLength::default() }
    }
}

impl Deref for Level {
    type Target = [Arc<FileMeta>];

    #[inline]
    fn deref(&self) -> &[Arc<FileMeta>] {
        &self.files
    }
}
