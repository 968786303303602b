//! One table file of the database: its record in the MANIFEST, and its open table if there is one.
//!
//! # Invariants
//! 1. The MANIFEST's record never changes after construction.
//! 2. A file that an installed edit removed is marked obsolete; when the last version, iterator or
//!    reader releases it, its number goes to the [`ObsoleteFiles`], and only then may it be
//!    unlinked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::base::comparator::KeyOrder;
use crate::base::fork::Origin;
use crate::base::internal_key::user_key;
use crate::base::locks::Mutex;
use crate::base::mutation::mutated;
use crate::base::value_pointer::ValueUse;
use crate::table::{Codecs, Table, TableProperties};
use arc_swap::ArcSwapOption;

use super::edit::NewFile;
use super::kept_filter::KeptFilter;

/// Numbers of obsolete files, tables and value files, waiting to be unlinked.
///
/// In a child of a fork there are none: the files are the parent's, and so may be the lock.
#[derive(Default)]
pub(crate) struct ObsoleteFiles {
    origin: Origin,
    numbers: Mutex<Vec<u64>>,
    /// Whether there are any, set with the lock held: each cursor that ends asks.
    any: AtomicBool,
    /// All that are obsolete, those that are still being read included, until their files are gone.
    present: Mutex<BTreeSet<u64>>,
}

impl ObsoleteFiles {
    pub(crate) fn take(&self) -> Vec<u64> {
        if self.origin.is_ancestor() {
            Vec::new()
        } else {
            let mut numbers = self.numbers.lock();
            self.any.store(false, Ordering::Release);
            std::mem::take(&mut numbers)
        }
    }

    /// Puts numbers back whose files could not be removed, to try again later.
    pub(crate) fn put_back(&self, numbers: Vec<u64>) {
        if !self.origin.is_ancestor() {
            self.present.lock().extend(&numbers);
            let mut waiting = self.numbers.lock();
            waiting.extend(numbers);
            self.any.store(!waiting.is_empty(), Ordering::Release);
        }
    }

    /// Notes that a file is obsolete, which is still being read maybe.
    pub(super) fn expect(&self, number: u64) {
        if !self.origin.is_ancestor() {
            self.present.lock().insert(number);
        }
    }

    /// The obsolete files that are there, also those that are still being read.
    pub(crate) fn present(&self) -> Vec<u64> {
        if self.origin.is_ancestor() {
            return Vec::new();
        }
        self.present.lock().iter().copied().collect()
    }

    /// Notes that a file is gone.
    pub(crate) fn removed(&self, number: u64) {
        self.present.lock().remove(&number);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.origin.is_ancestor() || !self.any.load(Ordering::Acquire)
    }
}

/// Facts about a table's contents beyond the MANIFEST: learnt when it is written or first
/// opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) entries: u64,
    pub(crate) deletions: u64,
    pub(crate) largest_sequence: u64,
    /// When half of the entries have expired, in milliseconds since 1970.
    pub(crate) half_expired: u64,
}

impl From<TableProperties> for Contents {
    fn from(properties: TableProperties) -> Self {
        Contents {
            entries: properties.entries,
            deletions: properties.deletions,
            largest_sequence: properties.largest_sequence,
            half_expired: properties.half_expired,
        }
    }
}

/// One table file.
pub(crate) struct FileMeta {
    pub(crate) number: u64,
    pub(crate) size: u64,
    /// Internal keys.
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    /// How much of which value files it points at.
    pub(crate) values: Vec<ValueUse>,
    /// The compressions beyond LevelDB's that its blocks may have.
    pub(crate) codecs: Codecs,
    /// The open table; managed by [`TableSet`](super::table_set::TableSet).
    pub(crate) table: ArcSwapOption<Table>,
    /// The filter of a table that was closed; managed by the same.
    pub(super) filter: ArcSwapOption<KeptFilter>,
    /// Set on use, cleared by the table set's clock.
    pub(crate) recently_used: AtomicBool,
    /// Lookups that may search this file, which has no filter, without a hit before it is worth a
    /// compaction.
    pub(crate) seeks_left: AtomicI64,
    /// See [`successor`](Self::successor).
    has_successor: AtomicBool,
    entries: AtomicU64,
    deletions: AtomicU64,
    largest_sequence: AtomicU64,
    half_expired: AtomicU64,
    obsolete: AtomicBool,
    obsolete_files: Arc<ObsoleteFiles>,
}

/// Marks contents as not learnt yet.
const UNKNOWN: u64 = u64::MAX;

impl FileMeta {
    /// Whether a user key lies in its range.
    pub(super) fn covers(&self, keys: &KeyOrder, user_key: &[u8]) -> bool {
        self.overlaps(keys, Some(user_key), Some(user_key))
    }

    /// Whether its range overlaps this one, inclusive; an absent end is open.
    pub(super) fn overlaps(&self, keys: &KeyOrder, from: Option<&[u8]>, to: Option<&[u8]>) -> bool {
        from.is_none_or(|from| keys.compare(self.largest_user_key(), from).is_ge())
            && to.is_none_or(|to| keys.compare(self.smallest_user_key(), to).is_le())
    }

    pub(crate) fn new(file: NewFile, obsolete_files: &Arc<ObsoleteFiles>) -> Self {
        let seeks = seeks_for(file.size);
        FileMeta {
            number: file.number,
            size: file.size,
            smallest: file.smallest,
            largest: file.largest,
            values: file.values,
            codecs: file.codecs,
            table: ArcSwapOption::empty(),
            filter: ArcSwapOption::empty(),
            recently_used: AtomicBool::new(false),
            seeks_left: AtomicI64::new(seeks),
            has_successor: AtomicBool::new(false),
            entries: AtomicU64::new(UNKNOWN),
            deletions: AtomicU64::new(UNKNOWN),
            largest_sequence: AtomicU64::new(UNKNOWN),
            half_expired: AtomicU64::new(UNKNOWN),
            obsolete: AtomicBool::new(false),
            obsolete_files: obsolete_files.clone(),
        }
    }

    pub(crate) fn smallest_user_key(&self) -> &[u8] {
        user_key(&self.smallest)
    }

    pub(crate) fn largest_user_key(&self) -> &[u8] {
        user_key(&self.largest)
    }

    /// The bytes of the values that it points at.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.values.iter().fold(0, |sum, used| sum.saturating_add(used.bytes))
    }

    /// As the MANIFEST records this file at `level`.
    pub(crate) fn record(&self, level: usize) -> NewFile {
        NewFile {
            level,
            number: self.number,
            size: self.size,
            smallest: self.smallest.clone(),
            largest: self.largest.clone(),
            values: self.values.clone(),
            codecs: self.codecs,
        }
    }

    /// Says that the [`successor`](Self::successor) was kept free, or that it is taken.
    pub(crate) fn set_has_successor(&self, has: bool) {
        self.has_successor.store(has, Ordering::Relaxed);
    }

    /// Whether the [`successor`](Self::successor) is free.
    pub(crate) fn has_successor(&self) -> bool {
        self.has_successor.load(Ordering::Relaxed)
    }

    /// The number of one file of level 0 that this and older ones become.
    pub(crate) fn successor(&self) -> u64 {
        self.number + 1
    }

    /// Gives the file a fresh allowance of seeks, after a trivial move.
    pub(crate) fn earn_seeks(&self) {
        self.seeks_left.store(seeks_for(self.size), Ordering::Relaxed);
    }

    pub(crate) fn learn(&self, contents: Contents) {
        self.deletions.store(contents.deletions, Ordering::Relaxed);
        self.largest_sequence.store(contents.largest_sequence, Ordering::Relaxed);
        self.half_expired.store(contents.half_expired, Ordering::Relaxed);
        self.entries.store(contents.entries, Ordering::Release);
    }

    /// The file's contents, if they have been learnt.
    pub(crate) fn contents(&self) -> Option<Contents> {
        let entries = self.entries.load(Ordering::Acquire);
        (entries != UNKNOWN).then(|| Contents {
            entries,
            deletions: self.deletions.load(Ordering::Relaxed),
            largest_sequence: self.largest_sequence.load(Ordering::Relaxed),
            half_expired: self.half_expired.load(Ordering::Relaxed),
        })
    }

    /// Called once an edit that removes this file is durable and installed.
    pub(crate) fn mark_obsolete(&self) {
        self.obsolete_files.expect(self.number);
        self.obsolete.store(true, Ordering::Release);
        if mutated("files-of-readers") {
            self.obsolete_files.put_back(vec![self.number]);
        }
    }
}

/// One seek costs about as much as compacting 16 KiB (LevelDB's estimate, `doc/impl.md`), so a file
/// earns a compaction after size / 16 KiB seeks without a hit; at least 100.
fn seeks_for(size: u64) -> i64 {
    i64::try_from(size / 16384).unwrap_or(i64::MAX).max(100)
}

impl Drop for FileMeta {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            self.obsolete_files.put_back(vec![self.number]);
        }
    }
}

impl std::fmt::Debug for FileMeta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:06} ({} bytes)", self.number, self.size)
    }
}
