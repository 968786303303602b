//! The value files of a version.
//!
//! Any thread. Nothing here takes a lock, so that a child of a fork reads like its parent.
//!
//! # Invariants
//! 1. A version holds every value file that one of its tables points into, and those that outputs
//!    append to at the moment ([`Growth`]). Where that comes to nothing the next version goes without.
//! 2. Tables use no more of a value file than there are values in it, for each value is one entry's.
//!    A MANIFEST that says otherwise is refused: what it says decides what garbage collection copies.
//! 3. A value file that an installed edit left without a table is marked obsolete; when the last
//!    version that holds it goes, its number goes to the [`ObsoleteFiles`], and only then may it be
//!    unlinked.
//! 4. The bytes of a value file up to the size that a version has for it never change. A later version
//!    may have a larger size. Behind the newest one there may be bytes that no edit has named.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use arc_swap::ArcSwapOption;

use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;
use crate::base::value_pointer::ValueUse;
use crate::env::RandomAccessFile;

use super::edit::NewValueFile;
use super::file_meta::{FileMeta, ObsoleteFiles};
use super::filename;

/// An open value file, counted.
pub(super) struct OpenValueFile {
    pub(super) file: Arc<dyn RandomAccessFile>,
    pub(super) count: Arc<AtomicUsize>,
}

impl Drop for OpenValueFile {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// No output will append to the file.
const SEALED: u8 = 0;
/// The next output may.
const WAITING: u8 = 1;
/// An output does.
const GROWING: u8 = 2;

/// One value file.
pub(crate) struct ValueFile {
    pub(crate) number: u64,
    pub(super) open: ArcSwapOption<OpenValueFile>,
    /// `SEALED`, `WAITING` or `GROWING`.
    growth: AtomicU8,
    /// Set on use, cleared when open files are too many.
    pub(super) recently_used: AtomicBool,
    obsolete: AtomicBool,
    obsolete_files: Arc<ObsoleteFiles>,
}

impl ValueFile {
    fn new(number: u64, obsolete_files: &Arc<ObsoleteFiles>) -> Self {
        ValueFile {
            number,
            open: ArcSwapOption::empty(),
            growth: AtomicU8::new(SEALED),
            recently_used: AtomicBool::new(false),
            obsolete: AtomicBool::new(false),
            obsolete_files: obsolete_files.clone(),
        }
    }

    /// Called once an edit that leaves it without a table is durable and installed.
    pub(super) fn mark_obsolete(&self) {
        self.obsolete_files.expect(self.number);
        self.obsolete.store(true, Ordering::Release);
        if mutated("value-files-of-readers") {
            self.obsolete_files.put_back(vec![self.number]);
        }
    }

    /// Seals the file, which no table of a version to come uses, so that it can go with its readers.
    /// False while an output appends to it.
    fn seal(&self) -> bool {
        let order = Ordering::Relaxed;
        let sealed = self.growth.compare_exchange(WAITING, SEALED, order, order);
        sealed != Err(GROWING) || mutated("growing-value-files")
    }

    /// Whether no output will append to the file any more.
    pub(crate) fn is_sealed(&self) -> bool {
        self.growth.load(Ordering::Relaxed) == SEALED
    }
}

/// The right to append to a value file, which one owner has at a time. When it is dropped the file is
/// sealed.
pub(crate) struct Growth(Arc<ValueFile>);

impl Growth {
    /// Of a file that an edit has just named, and that nobody else appends to.
    pub(crate) fn of(file: &Arc<ValueFile>) -> Self {
        file.growth.store(WAITING, Ordering::Relaxed);
        Growth(file.clone())
    }

    /// Has versions keep the file, until [`pause`](Self::pause), even if no table of theirs uses it.
    /// False if it has been sealed, for a version without it.
    pub(crate) fn resume(&self) -> bool {
        let order = Ordering::Relaxed;
        self.0.growth.compare_exchange(WAITING, GROWING, order, order).is_ok()
    }

    /// Has the file go with the last table that uses it.
    pub(crate) fn pause(&self) {
        self.0.growth.store(WAITING, Ordering::Relaxed);
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        self.0.growth.store(SEALED, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Growth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Growth({:06})", self.0.number)
    }
}

impl Drop for ValueFile {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            self.obsolete_files.put_back(vec![self.number]);
        }
    }
}

/// Of the values in all files this part may be garbage before files are collected of which more than
/// half is used. So values take a third more than those that tables use, and a byte that is freed
/// costs three copied ones at most; one, where keys are overwritten at random.
const GARBAGE_PART: u64 = 4;

/// A value file as a version uses it.
#[derive(Clone)]
pub(crate) struct UsedValueFile {
    pub(crate) file: Arc<ValueFile>,
    /// Of the file, as far as it is known.
    pub(crate) size: u64,
    /// Of the values in it.
    value_bytes: u64,
    /// The bytes of values that tables point at.
    pub(crate) used: u64,
    /// How many tables do.
    tables: usize,
    /// Whether compactions copy its values to others, so that it can go.
    is_collected: bool,
}

impl UsedValueFile {
    /// Whether compactions copy its values to other files, so that it can go: it is garbage for the
    /// most part, or has more garbage than most where all files together have too much.
    pub(crate) fn is_collected(&self) -> bool {
        self.is_collected
    }

    /// The bytes that count as values in it.
    fn counted_bytes(&self) -> u64 {
        if mutated("garbage-by-values") { self.size } else { self.value_bytes }
    }

    /// The bytes of values in it that no table uses.
    pub(crate) fn garbage(&self) -> u64 {
        self.counted_bytes().saturating_sub(self.used)
    }

    /// Whether less than half of the values are used, so that it pays to copy those.
    pub(crate) fn is_mostly_garbage(&self) -> bool {
        self.used < self.counted_bytes() / 2
    }

    /// The part of the values that is used, in 2^32nds.
    fn used_part(&self) -> u64 {
        let part = (u128::from(self.used) << 32) / u128::from(self.counted_bytes().max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    fn new(file: NewValueFile, obsolete_files: &Arc<ObsoleteFiles>) -> Self {
        let NewValueFile { number, size, value_bytes } = file;
        let file = Arc::new(ValueFile::new(number, obsolete_files));
        UsedValueFile { file, size, value_bytes, used: 0, tables: 0, is_collected: false }
    }

    /// Takes over what an output has appended.
    fn grow(&mut self, file: NewValueFile) -> Result<()> {
        check_growth(&self.record(), &file)?;
        (self.size, self.value_bytes) = (file.size, file.value_bytes);
        Ok(())
    }

    pub(crate) fn record(&self) -> NewValueFile {
        let (number, size, value_bytes) = (self.file.number, self.size, self.value_bytes);
        NewValueFile { number, size, value_bytes }
    }

    /// Fails if more is used than there is. Compactions, loads, range deletes and trivial moves keep
    /// one entry for each value in one table, and a checkpoint takes the MANIFEST's numbers over.
    fn check(&self) -> Result<()> {
        let NewValueFile { number, size, value_bytes } = self.record();
        let name = filename::values(number);
        if value_bytes > size {
            return Err(Error::corruption(format!(
                "{name}: {size} bytes are said to hold values of {value_bytes}"
            )));
        }
        if self.used > value_bytes {
            let used = self.used;
            return Err(Error::corruption(format!(
                "{name}: tables use {used} bytes of the {value_bytes} that its values have"
            )));
        }
        Ok(())
    }
}

impl std::fmt::Debug for UsedValueFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:06} ({} of {} bytes)", self.file.number, self.used, self.value_bytes)
    }
}

/// The value files of a version by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueFileMap(Arc<BTreeMap<u64, UsedValueFile>>);

impl ValueFileMap {
    /// This map changed by tables that come and go. A file that one of those that come points into is
    /// in this map or among the `new` ones; an error names one that is neither. One that is both has
    /// grown.
    pub(super) fn changed<'a>(
        &self,
        added: impl Iterator<Item = &'a FileMeta>,
        removed: impl Iterator<Item = &'a FileMeta>,
        new: &[NewValueFile],
        obsolete_files: &Arc<ObsoleteFiles>,
    ) -> Result<Self> {
        let mut added = added.flat_map(|table| &table.values).peekable();
        let mut removed = removed.flat_map(|table| &table.values).peekable();
        let is_left_over = |used: &UsedValueFile| used.tables == 0 && used.file.is_sealed();
        if added.peek().is_none() && removed.peek().is_none() && !self.iter().any(is_left_over) {
            return Ok(self.clone());
        }
        let mut files = (*self.0).clone();
        for file in new {
            files.get_mut(&file.number).map_or(Ok(()), |known| known.grow(*file))?;
        }
        let new: BTreeMap<_, _> = new.iter().map(|new| (new.number, *new)).collect();
        // First what comes: a table that moves is both, and its files stay the same.
        for ValueUse { file: number, bytes } in added {
            let used = match files.entry(*number) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unused) => {
                    let new = *new.get(number).ok_or_else(|| unknown(*number))?;
                    unused.insert(UsedValueFile::new(new, obsolete_files))
                }
            };
            used.used = used.used.saturating_add(*bytes);
            used.tables += 1;
        }
        for ValueUse { file: number, bytes } in removed {
            if let Some(used) = files.get_mut(number) {
                used.used = used.used.saturating_sub(*bytes);
                used.tables = used.tables.saturating_sub(1);
            }
        }
        files.retain(|_, used| used.tables > 0 || !used.file.seal());
        files.values().try_for_each(UsedValueFile::check)?;
        choose_collected(&mut files);
        Ok(ValueFileMap(Arc::new(files)))
    }

    /// Files that stand in no version: nothing is known of their use.
    pub(crate) fn unused(files: impl IntoIterator<Item = NewValueFile>) -> Self {
        let unused = |file: NewValueFile| (file.number, UsedValueFile::new(file, &Arc::default()));
        ValueFileMap(Arc::new(files.into_iter().map(unused).collect()))
    }

    /// Whether tables point into any of them.
    pub(crate) fn is_used(&self) -> bool {
        self.used().next().is_some()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&UsedValueFile> {
        self.0.get(&number)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &UsedValueFile> {
        self.0.values()
    }

    /// Those that tables point into.
    pub(crate) fn used(&self) -> impl Iterator<Item = &UsedValueFile> {
        self.iter().filter(|used| used.tables > 0)
    }

    /// The records of all of them in a MANIFEST.
    pub(crate) fn records(&self) -> Vec<NewValueFile> {
        self.iter().map(UsedValueFile::record).collect()
    }

    /// The bytes of the values that tables point at, in all of them.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.iter().fold(0, |sum: u64, used| sum.saturating_add(used.used))
    }

    /// The bytes of the values in all of them.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.iter().fold(0, |sum: u64, used| sum.saturating_add(used.value_bytes))
    }
}

/// Marks the files whose values compactions copy to others: those that are mostly garbage, and of the
/// others those with the largest part of garbage, until little of the rest is. What is left of a file
/// that is being emptied does not count, or each copy would have more files emptied.
fn choose_collected(files: &mut BTreeMap<u64, UsedValueFile>) {
    let mut by_part: Vec<_> = files.values_mut().collect();
    by_part.sort_by_key(|used| used.used_part());
    let sum = |of: fn(&UsedValueFile) -> u64| {
        by_part.iter().fold(0, |sum: u64, used| sum.saturating_add(of(used)))
    };
    let (mut garbage, mut bytes) = (sum(UsedValueFile::garbage), sum(|used| used.counted_bytes()));
    for used in by_part {
        let is_too_much = garbage > bytes / GARBAGE_PART && !mutated("garbage-of-all-files");
        used.is_collected = used.is_mostly_garbage() || (is_too_much && used.garbage() > 0);
        if used.is_collected {
            garbage = garbage.saturating_sub(used.garbage());
            bytes = bytes.saturating_sub(used.garbage());
        }
    }
}

/// Fails if `later`, of the same value file, does not follow `earlier`: a file only grows.
pub(super) fn check_growth(earlier: &NewValueFile, later: &NewValueFile) -> Result<()> {
    if later.size < earlier.size || later.value_bytes < earlier.value_bytes {
        let name = filename::values(later.number);
        let message = format!("an edit makes {name} smaller");
        return Err(Error::corruption(message));
    }
    Ok(())
}

pub(super) fn unknown(number: u64) -> Error {
    let name = filename::values(number);
    Error::corruption(format!(
        "a table points into {name}, which is missing or which the MANIFEST does not name"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of those files that are collected; of each the bytes of its values and of those
    /// that are used.
    fn collected(files: &[(u64, u64)]) -> Vec<u64> {
        let file = |(number, &(value_bytes, used)): (u64, &(u64, u64))| {
            let file = NewValueFile { number, size: value_bytes.saturating_add(9), value_bytes };
            (number, UsedValueFile { used, tables: 1, ..UsedValueFile::new(file, &Arc::default()) })
        };
        let mut files: BTreeMap<_, _> = (0..).zip(files).map(file).collect();
        choose_collected(&mut files);
        files.values().filter(|used| used.is_collected()).map(|used| used.file.number).collect()
    }

    #[test]
    fn files_with_most_garbage_are_collected_until_little_is_left() {
        assert_eq!(collected(&[]), [0; 0]);
        assert_eq!(collected(&[(100, 75)]), [0; 0], "a quarter is little");
        assert_eq!(collected(&[(100, 74)]), [0]);
        // Mostly garbage, whatever the others are.
        assert_eq!(collected(&[(1000, 1000), (100, 49), (100, 50)]), [1]);
        // Of equal ones as many as it takes. One with more garbage, but a smaller part, comes later.
        assert_eq!(collected(&[(100, 70); 10]), [0, 1, 2]);
        assert_eq!(collected(&[(100, 70), (1000, 710), (100, 90), (100, 90)]), [0]);
        assert_eq!(collected(&[(400, 280), (1000, 900), (100, 55)]), [0; 0]);
        // One that is being emptied has no others emptied.
        assert_eq!(collected(&[(100, 72), (100, 72), (100, 5), (95, 95)]), [2]);
        assert_eq!(collected(&[(0, 0), (u64::MAX, 1), (u64::MAX, u64::MAX)]), [1]);
    }
}
