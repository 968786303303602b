//! An immutable set of table files, level by level, and look-ups in it.
//!
//! # Invariants
//! 1. Level 0 is ordered newest first, by file number; its files may overlap.
//! 2. Files of every deeper level are ordered by key, disjoint, and never share a user key with a
//!    neighbour.
//! 3. For one user key, everything in a level is newer than everything in the levels below it, and
//!    everything in a level-0 file is newer than everything in the level-0 files with smaller
//!    numbers.

use std::cmp::Ordering as KeyOrdering;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::base::internal_key::{InternalOrder, SequenceNumber, split, tag_sequence, user_key};
use crate::base::mutation::mutated;
use crate::cache::pin;
use crate::table::{Place, ScanItem, Table, TableHit, hash_key};

use super::NUM_LEVELS;
use super::edit::VersionEdit;
use super::file_meta::{FileMeta, ObsoleteFiles};
use super::level::Level;
use super::table_set::{TableRef, TableSet};
use super::value_files::ValueFileMap;

/// How many tables, the latest first, are looked into for the newest sequence number.
const LOOKED_INTO: usize = 64;

/// The result of a lookup, and the file that it searched first without a hit, if there was one.
pub(crate) struct Lookup<'a> {
    pub(crate) hit: Option<TableHit>,
    /// The first file without a filter that was searched without success before another one had to
    /// be: a candidate for a compaction.
    pub(crate) wasted: Option<&'a Arc<FileMeta>>,
}

/// A lookup in progress: the files that were searched without a hit so far.
#[derive(Default)]
struct Search<'a> {
    first: Option<&'a Arc<FileMeta>>,
    wasted: Option<&'a Arc<FileMeta>>,
}

impl<'a> Search<'a> {
    /// Takes note of the result in the table of the next file; an entry ends the lookup. A filter
    /// spares a lookup all but one search in a hundred: no compaction could spare it more.
    #[inline]
    fn take(
        &mut self,
        file: &'a Arc<FileMeta>,
        table: &Table,
        hit: Option<TableHit>,
    ) -> Option<Lookup<'a>> {
        self.wasted = self.wasted.or(self.first);
        if hit.is_some() {
            return Some(Lookup { hit, wasted: self.wasted });
        }
        self.first = self.first.or((!table.has_filter()).then_some(file));
        None
    }

    #[inline]
    fn without_hit(self) -> Lookup<'a> {
        Lookup { hit: None, wasted: self.wasted }
    }
}

/// Whether a table that records no sequence numbers holds an entry at least as new as `sequence`.
fn holds_entry_since(table: &Table, sequence: SequenceNumber) -> bool {
    let mut found = false;
    // The scan ends early by an error of its own.
    let _ = table.scan(&mut |item| {
        if let ScanItem::Entry { key, .. } = item {
            found = split(key).is_some_and(|(_, tag)| tag_sequence(tag) >= sequence);
        }
        if found { Err(Error::io_message("found")) } else { Ok(()) }
    });
    found
}

/// One table that one of several look-ups may have to go to.
struct Step<'a, 'k> {
    /// Which look-up.
    number: usize,
    key: &'k [u8],
    hash: u64,
    file: &'a Arc<FileMeta>,
    table: Result<Arc<Table>>,
    place: Option<Place>,
}

/// Look-ups that wait for the processor's loads together: as many as it keeps under way, and few
/// enough that what was asked for is still there when it is needed.
pub(crate) const TOGETHER: usize = 16;

/// Finds the place of each of `steps` in its table and asks for what is there.
fn ask_for_blocks(steps: &mut [Step<'_, '_>]) {
    for step in &mut *steps {
        let Ok(table) = &step.table else { continue };
        step.place = table.place(step.key, step.hash);
        if let Some(place) = step.place {
            table.prefetch_slot(place);
        }
    }
    let places = || steps.iter().filter_map(|step| Some((step.table.as_ref().ok()?, step.place?)));
    places().for_each(|(table, place)| table.prefetch_block(place, 0));
    places().for_each(|(table, place)| table.prefetch_entries(place));
}

/// An immutable set of table files.
#[derive(Default, Debug)]
pub(crate) struct Version {
    /// Shared, so that an iterator over a level need not hold each of its files.
    pub(crate) levels: [Arc<Level>; NUM_LEVELS],
    /// Those that the tables point into.
    pub(crate) values: ValueFileMap,
    /// See `Version::by_overlap`.
    pub(super) by_overlap: [OnceLock<Vec<usize>>; NUM_LEVELS],
}

impl Version {
    /// Finds the newest entry of the user key of `key` (an internal key made for seeking) that is
    /// not newer than it.
    pub(crate) fn get(
        &self,
        tables: &TableSet,
        order: &InternalOrder,
        key: &[u8],
        fill_cache: bool,
    ) -> Result<Lookup<'_>> {
        let hash = hash_key(user_key(key));
        let mut search = Search::default();
        if self.levels[0].len() > 1 {
            self.prefetch_filters(order, key, hash);
        }
        for file in self.candidates(order, key) {
            let Some(table) = tables.table_to_search(file, hash, fill_cache)? else { continue };
            let hit = table.get(key, hash, fill_cache)?;
            if let Some(lookup) = search.take(file, &table, hit) {
                return Ok(lookup);
            }
        }
        Ok(search.without_hit())
    }

    /// [`get`](Version::get) without reading a file; `None` if tables that are open, filters and
    /// blocks in the cache do not tell.
    pub(crate) fn get_in_memory(
        &self,
        tables: &TableSet,
        order: &InternalOrder,
        key: &[u8],
    ) -> Result<Option<Lookup<'_>>> {
        let hash = hash_key(user_key(key));
        let mut search = Search::default();
        for file in self.candidates(order, key) {
            let Some(table) = TableSet::usable_table_of(file) else {
                if TableSet::open_table_of(file).is_none() && tables.spares(file, hash) {
                    continue;
                }
                return Ok(None);
            };
            let Some(hit) = table.get_in_memory(key, hash)? else { return Ok(None) };
            if let Some(lookup) = search.take(file, &table, hit) {
                return Ok(Some(lookup));
            }
        }
        Ok(Some(search.without_hit()))
    }

    /// [`get`](Version::get) for several keys; `found` is told what was found for each, in their
    /// order. One look-up waits for filter, slot, block and entries one after the other; here
    /// [`TOGETHER`] of them wait for each of these at once, and all of them for the device.
    pub(crate) fn get_many<'a, 'k>(
        &'a self,
        tables: &TableSet,
        order: &InternalOrder,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        fill_cache: bool,
        mut found: impl FnMut(Lookup<'a>) -> Result<()>,
    ) -> Result<()> {
        // Every look into the cache below needs this, and it costs less in one piece.
        let _pin = pin();
        let mut steps = Vec::with_capacity(2 * keys.size_hint().0);
        let mut numbered = keys.clone().enumerate().peekable();
        // The device reads for the first keys while the next ones look for their blocks.
        while numbered.peek().is_some() {
            let first = steps.len();
            for (number, key) in numbered.by_ref().take(TOGETHER) {
                let hash = hash_key(user_key(key));
                for file in self.candidates(order, key) {
                    // A table that cannot be opened is an error only if the look-up comes as far
                    // as there.
                    let table = match tables.table_to_search(file, hash, fill_cache).transpose() {
                        Some(table) => table.map(TableRef::into_arc),
                        None => continue,
                    };
                    if let Ok(table) = &table {
                        table.prefetch_filter(hash);
                    }
                    steps.push(Step { number, key, hash, file, table, place: None });
                }
            }
            ask_for_blocks(&mut steps[first..]);
        }
        let mut steps = steps.into_iter().peekable();
        for number in 0..keys.count() {
            let (mut search, mut lookup) = (Search::default(), None);
            while let Some(step) = steps.next_if(|step| step.number == number) {
                if lookup.is_none() {
                    let table = step.table?;
                    let hit = table.get_at(step.key, step.place, fill_cache)?;
                    lookup = search.take(step.file, &table, hit);
                }
            }
            found(lookup.unwrap_or_else(|| search.without_hit()))?;
        }
        Ok(())
    }

    /// Asks for the filters of level 0: most of them will say no, and each would be waited for on
    /// its own.
    #[inline(never)]
    fn prefetch_filters(&self, order: &InternalOrder, key: &[u8], hash: u64) {
        let candidates =
            self.levels[0].iter().filter(|file| file.covers(&order.keys, user_key(key)));
        candidates
            .filter_map(TableSet::open_table_of)
            .for_each(|table| table.prefetch_filter(hash));
    }

    /// The files that may hold the user key of `key`, newest first.
    #[inline]
    fn candidates<'a, 'k>(
        &'a self,
        order: &'k InternalOrder,
        key: &'k [u8],
    ) -> impl Iterator<Item = &'a Arc<FileMeta>> + use<'a, 'k> {
        let wanted = user_key(key);
        let level_0 = self.levels[0].iter().filter(move |file| file.covers(&order.keys, wanted));
        let deeper = (1..NUM_LEVELS).filter_map(move |level| {
            let files = &self.levels[level];
            let file = files.get(files.find(order, key))?;
            let covered =
                order.keys.compare(file.smallest_user_key(), wanted) != KeyOrdering::Greater;
            covered.then_some(file)
        });
        level_0.chain(deeper)
    }

    fn file_at(&self, level: usize, number: u64) -> Option<&Arc<FileMeta>> {
        self.levels[level].iter().find(|file| file.number == number)
    }

    pub(crate) fn level_bytes(&self, level: usize) -> u64 {
        self.levels[level].bytes()
    }

    /// Of all levels.
    pub(crate) fn bytes(&self) -> u64 {
        (0..NUM_LEVELS).fold(0, |sum: u64, level| sum.saturating_add(self.level_bytes(level)))
    }

    /// Whether LevelDB must not open a database in this state.
    pub(crate) fn is_extended(&self) -> bool {
        self.values.is_used() || self.files().any(|(_, file)| !file.codecs.is_empty())
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (usize, &Arc<FileMeta>)> {
        self.levels
            .iter()
            .enumerate()
            .flat_map(|(level, files)| files.iter().map(move |file| (level, file)))
    }

    /// The newest sequence number that is known to be in a table: of all tables those of the first
    /// and last keys count, of the latest, where Terrace has written them, all.
    pub(crate) fn newest_sequence_in_tables(&self, tables: &TableSet) -> SequenceNumber {
        let ends = self.files().flat_map(|(_, file)| [&file.smallest, &file.largest]);
        let at_ends =
            ends.filter_map(|key| split(key)).map(|(_, tag)| tag_sequence(tag)).max().unwrap_or(0);
        // The newest entry is in the last flush's table or in what has been made of it since.
        let mut latest: Vec<_> = self.files().map(|(_, file)| file).collect();
        latest.sort_unstable_by_key(|file| std::cmp::Reverse(file.number));
        let looked_into = latest.into_iter().take(LOOKED_INTO);
        looked_into.fold(at_ends, |newest, file| match tables.table(file) {
            Ok(table) => {
                newest.max(table.properties().map_or(0, |properties| properties.largest_sequence))
            }
            // The reader of the table gets the error.
            Err(_) => newest,
        })
    }

    /// Whether a table holds an entry at least as new as `sequence`. Reads whole tables that record
    /// no sequence numbers, newest first, until it has found one: for cases of doubt.
    pub(crate) fn holds_sequence(&self, tables: &TableSet, sequence: SequenceNumber) -> bool {
        if sequence <= self.newest_sequence_in_tables(tables) {
            return true;
        }
        let mut latest: Vec<_> = self.files().map(|(_, file)| file).collect();
        latest.sort_unstable_by_key(|file| std::cmp::Reverse(file.number));
        latest.into_iter().any(|file| {
            // The reader of a damaged table gets the error.
            let Ok(table) = tables.table(file) else { return false };
            match table.properties() {
                Some(properties) => properties.largest_sequence >= sequence,
                None => holds_entry_since(&table, sequence),
            }
        })
    }

    /// About where in the database's files an internal key lies: the bytes before it.
    pub(crate) fn approximate_offset(
        &self,
        tables: &TableSet,
        order: &InternalOrder,
        key: &[u8],
    ) -> Result<u64> {
        let before = |file: &Arc<FileMeta>| {
            let bytes = bytes_before(file, tables, order, key)?;
            // Values lie evenly, as far as anybody knows.
            let values = file.value_bytes();
            let of_values = u128::from(values) * u128::from(bytes) / u128::from(file.size.max(1));
            Result::Ok(bytes.saturating_add(u64::try_from(of_values).unwrap_or(u64::MAX)))
        };
        self.files().try_fold(0_u64, |sum, (_, file)| Ok(sum.saturating_add(before(file)?)))
    }

    /// This version changed by `edit`. An edit that breaks an invariant is a corruption.
    pub(crate) fn apply(
        &self,
        edit: &VersionEdit,
        order: &InternalOrder,
        obsolete_files: &Arc<ObsoleteFiles>,
    ) -> Result<Version> {
        let mut levels = self.levels.each_ref().map(|files| files.to_vec());
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        let mut gone: [HashSet<u64>; NUM_LEVELS] = Default::default();
        for &(level, number) in &edit.deleted_files {
            gone[level].insert(number);
        }
        for (level, numbers) in gone.iter_mut().enumerate().filter(|(_, gone)| !gone.is_empty()) {
            let is_removed = |file: &mut Arc<FileMeta>| numbers.remove(&file.number);
            removed.extend(levels[level].extract_if(.., is_removed));
            if let Some(number) = numbers.iter().next() {
                let message =
                    format!("an edit removes table {number:06}, which is not at level {level}");
                return Err(Error::corruption(message));
            }
        }
        for file in &edit.new_files {
            // A file that only moves keeps its identity, and with it its open table.
            let moved = edit.deleted_files.iter().find(|(_, number)| *number == file.number);
            let kept = moved.and_then(|&(level, number)| self.file_at(level, number));
            let meta = kept
                .cloned()
                .unwrap_or_else(|| Arc::new(FileMeta::new(file.clone(), obsolete_files)));
            added.push(meta.clone());
            levels[file.level].push(meta);
        }
        let (first, deeper) = levels.split_at_mut(1);
        first[0].sort_by_key(|file| std::cmp::Reverse(file.number));
        if mutated("newest-first") {
            first[0].reverse();
        }
        for files in deeper {
            files.sort_by(|a, b| order.compare(&a.smallest, &b.smallest));
        }
        let values = self.values.changed(
            added.iter().map(|file| &**file),
            removed.iter().map(|file| &**file),
            &edit.new_value_files,
            obsolete_files,
        )?;
        let levels = std::array::from_fn(|level| {
            let files = std::mem::take(&mut levels[level]);
            Arc::new(Level::from(files).in_place_of(&self.levels[level]))
        });
        let version = Version { levels, values, by_overlap: Default::default() };
        version.check(order)?;
        Ok(version)
    }

    /// Checks what a damaged MANIFEST could break: ranges upside down, overlaps, numbers used
    /// twice.
    pub(crate) fn check(&self, order: &InternalOrder) -> Result<()> {
        if let Some((_, file)) =
            self.files().find(|(_, file)| self.values.get(file.number).is_some())
        {
            let message = format!("{:06} is a table and a value file", file.number);
            return Err(Error::corruption(message));
        }
        for (level, file) in self.files() {
            if order.compare(&file.smallest, &file.largest) == KeyOrdering::Greater {
                let message =
                    format!("table {:06} at level {level} ends before it begins", file.number);
                return Err(Error::corruption(message));
            }
        }
        for (level, files) in self.levels.iter().enumerate() {
            for pair in files.windows(2) {
                let fine = match level {
                    0 => pair[0].number != pair[1].number,
                    _ => order.compare(&pair[0].largest, &pair[1].smallest) == KeyOrdering::Less,
                };
                if !fine {
                    let message = format!(
                        "tables {:06} and {:06} at level {level} overlap",
                        pair[0].number, pair[1].number
                    );
                    return Err(Error::corruption(message));
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn total_size(files: &[Arc<FileMeta>]) -> u64 {
    files.iter().map(|file| file.size).sum()
}

/// About how many bytes of a table lie before an internal key.
pub(crate) fn bytes_before(
    file: &Arc<FileMeta>,
    tables: &TableSet,
    order: &InternalOrder,
    key: &[u8],
) -> Result<u64> {
    if order.compare(&file.largest, key) != KeyOrdering::Greater {
        Ok(file.size)
    } else if order.compare(&file.smallest, key) == KeyOrdering::Less {
        tables.table(file).map(|table| table.approximate_offset_of(key))
    } else {
        Ok(0)
    }
}

/// The user keys between which all of `files` lie. `None` for no files.
pub(crate) fn key_range<'a>(
    keys: &KeyOrder,
    files: impl IntoIterator<Item = &'a Arc<FileMeta>>,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut files = files.into_iter();
    let first = files.next()?;
    let (mut low, mut high) = (first.smallest_user_key(), first.largest_user_key());
    for file in files {
        if keys.compare(file.smallest_user_key(), low) == KeyOrdering::Less {
            low = file.smallest_user_key();
        }
        if keys.compare(file.largest_user_key(), high) == KeyOrdering::Greater {
            high = file.largest_user_key();
        }
    }
    Some((low.to_vec(), high.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::KeyOrder;
    use crate::base::internal_key::{EntryKind, InternalOrder, encode};
    use crate::base::value_pointer::ValueUse;
    use crate::version::edit::{NewFile, NewValueFile};
    use crate::version::value_files::{Growth, UsedValueFile};

    fn table(number: u64, values: Vec<ValueUse>) -> NewFile {
        let key = encode(b"a", 9, EntryKind::Value);
        let (smallest, largest) = (key.clone(), key);
        NewFile {
            level: 0,
            number,
            size: 100,
            smallest,
            largest,
            values,
            codecs: Default::default(),
        }
    }

    fn apply(version: &Version, edit: VersionEdit) -> Version {
        let order = InternalOrder::new(KeyOrder::default());
        version.apply(&edit, &order, &Arc::default()).expect("applies")
    }

    #[test]
    fn a_file_without_tables_stays_while_it_grows_and_extends_nothing() {
        let record = NewValueFile { number: 7, size: 9, value_bytes: 5 };
        let first = VersionEdit {
            new_files: vec![table(8, vec![ValueUse { file: 7, bytes: 5 }])],
            new_value_files: vec![record],
            ..VersionEdit::default()
        };
        let without = || VersionEdit { deleted_files: vec![(0, 8)], ..VersionEdit::default() };
        let version = apply(&Version::default(), first);
        let file = version.values.get(7).expect("is there").file.clone();
        let growth = Growth::of(&file);
        assert!(growth.resume());
        let version = apply(&version, without());
        assert!(version.values.get(7).is_some() && version.values.used().next().is_none());
        assert!(!version.is_extended(), "LevelDB can read it");
        // The output comes to something.
        let grown = NewValueFile { size: 20, value_bytes: 15, ..record };
        let later = VersionEdit {
            new_files: vec![table(10, vec![ValueUse { file: 7, bytes: 10 }])],
            new_value_files: vec![grown],
            ..VersionEdit::default()
        };
        let with = apply(&version, later);
        assert_eq!(with.values.used().map(UsedValueFile::record).collect::<Vec<_>>(), [grown]);
        // It comes to nothing: the next edit, whatever it is, leaves the file.
        drop(growth);
        assert!(file.is_sealed());
        let next = apply(
            &version,
            VersionEdit { new_files: vec![table(11, vec![])], ..VersionEdit::default() },
        );
        assert!(next.values.get(7).is_none());
    }

    #[test]
    fn a_file_that_waits_for_outputs_goes_with_its_last_table() {
        let first = VersionEdit {
            new_files: vec![table(8, vec![ValueUse { file: 7, bytes: 5 }])],
            new_value_files: vec![NewValueFile { number: 7, size: 9, value_bytes: 5 }],
            ..VersionEdit::default()
        };
        let version = apply(&Version::default(), first);
        let growth = Growth::of(&version.values.get(7).expect("is there").file);
        let without = VersionEdit { deleted_files: vec![(0, 8)], ..VersionEdit::default() };
        assert!(apply(&version, without).values.get(7).is_none());
        assert!(!growth.resume(), "no output begins to append to it");
    }
}
