//! Picks compactions that give back the space of values in value files. Pure, like the
//! [`planner`](super::planner).
//!
//! A version knows which value files are to be collected, by what its tables use
//! ([`UsedValueFile::is_collected`](crate::version::value_files::UsedValueFile::is_collected)). But a
//! value that was overwritten or deleted counts as used for as long as its entry lies in a table below
//! the newer one. Where values are large, tables are small, so that levels are not full and the two
//! would not meet. So tables that may hide much go down, before anything is copied.
//!
//! A table that is covered hides at most as many bytes as it is estimated to: each of its values may
//! stand for one overwritten, and each tombstone for one of the average size. What is new hides
//! nothing, and the bottom does not either, so such compactions come to an end.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::mutation::mutated;
use crate::version::file_meta::FileMeta;
use crate::version::value_files::UsedValueFile;

use super::inputs::Planner;
use super::plan::{Plan, Reason};

/// Of the values that tables use this part may be hidden by newer entries. With a quarter of garbage
/// values take 1.42 times what lives.
const HIDDEN_PART: u64 = 16;

/// A compaction pays that shows so many times the bytes that it reads to be garbage, if all that may
/// be hidden is. So values shorter than some KB may leave more.
const PAYS: u64 = 4;

/// So many tables are looked at for one that pays.
const CANDIDATES: usize = 32;

impl Planner<'_> {
    /// A compaction that shows hidden values to be garbage, or one that empties value files.
    pub(super) fn pick_values(&self) -> Option<Plan> {
        if !self.busy.is_empty() || !self.version.values.is_used() {
            return None;
        }
        self.pick_hidden_values().or_else(|| self.pick_collected_values())
    }

    /// The table that may hide most, if all of them may hide much.
    fn pick_hidden_values(&self) -> Option<Plan> {
        let used = self.version.values.used_bytes();
        let is_much = |bytes: u64| bytes > used / HIDDEN_PART && !mutated("hidden-values");
        // Of tables that were not opened yet neither entries nor values count.
        let known = self.version.files().filter_map(|(_, file)| Some((file, file.contents()?)));
        let (values, bytes) = known.fold((0_u64, 0_u64), |(values, bytes), (file, known)| {
            let more = known.entries.saturating_sub(known.deletions);
            (values.saturating_add(more), bytes.saturating_add(file.value_bytes()))
        });
        let average = bytes / values.max(1);
        let may_hide = |file: &Arc<FileMeta>| {
            // What a snapshot sees stays, and would be garbage that nothing tells of.
            let known = file.contents();
            let sequence = known.map_or(0, |known| known.largest_sequence);
            if sequence > self.settings.oldest_snapshot {
                return 0;
            }
            let deletions = known.map_or(0, |known| known.deletions);
            file.value_bytes().saturating_add(deletions.saturating_mul(average))
        };
        let bottom = self.version.levels.iter().rposition(|files| !files.is_empty())?;
        let above = self.version.files().filter(|(level, _)| *level < bottom.max(1));
        let mut above: Vec<_> = above.map(|(level, file)| (may_hide(file), level, file)).collect();
        let sum = |files: &[(u64, usize, &Arc<FileMeta>)]| {
            files.iter().fold(0_u64, |sum, (bytes, ..)| sum.saturating_add(*bytes))
        };
        // Most often this is enough to know.
        if !is_much(sum(&above)) {
            return None;
        }
        above.retain(|(bytes, level, file)| *bytes > 0 && self.hides(*level, file));
        if !is_much(sum(&above)) {
            return None;
        }
        above.sort_unstable_by_key(|(bytes, ..)| Reverse(*bytes));
        let pays = |plan: &Plan| {
            let shown = plan.inputs[0].iter().map(may_hide).fold(0, u64::saturating_add);
            plan.is_trivial_move || shown / PAYS >= plan.input_bytes()
        };
        // Tables of short values may hide most, and pay never.
        above.iter().take(CANDIDATES).find_map(|(_, level, file)| {
            let file = std::slice::from_ref(*file);
            self.plan(Reason::HiddenValues, *level, level + 1, file).filter(pays)
        })
    }

    /// Whether a table may hide anything: something older lies in its range.
    fn hides(&self, level: usize, file: &FileMeta) -> bool {
        let (from, to) = (file.smallest_user_key(), file.largest_user_key());
        let keys = &self.settings.keys;
        let is_older = |other: &&Arc<FileMeta>| other.number < file.number;
        let mut beside = self.version.levels[0].iter().filter(|_| level == 0).filter(is_older);
        let overlaps = |other: &Arc<FileMeta>| {
            keys.compare(other.largest_user_key(), from).is_ge()
                && keys.compare(other.smallest_user_key(), to).is_le()
        };
        beside.any(overlaps) || self.is_covered(level, file)
    }

    /// The table that points at most bytes in value files that are collected: one that was rewritten
    /// lately points at few.
    fn pick_collected_values(&self) -> Option<Plan> {
        let mut files: Vec<_> =
            self.version.values.iter().filter(|used| used.is_collected()).collect();
        if files.is_empty() {
            return None;
        }
        let numbers = |files: &[&UsedValueFile]| {
            files.iter().map(|used| used.file.number).collect::<BTreeSet<_>>()
        };
        let mut collected = numbers(&files);
        let points_into = |collected: &BTreeSet<u64>, file: &FileMeta| {
            let used = file.values.iter().filter(|used| collected.contains(&used.file));
            used.fold(0_u64, |bytes, used| bytes.saturating_add(used.bytes))
        };
        // All tables are rewritten that point into them, and may have a few large values each.
        let garbage = files.iter().fold(0, |sum: u64, used| sum.saturating_add(used.garbage()));
        let pointing = self.version.files().filter(|(_, file)| points_into(&collected, file) > 0);
        let tables = pointing.fold(0, |sum: u64, (_, file)| sum.saturating_add(file.size));
        if tables / PAYS > garbage {
            files.retain(|used| used.is_mostly_garbage());
            collected = numbers(&files);
        }
        let points_at = |file: &FileMeta| points_into(&collected, file);
        let files = self.version.files().map(|(level, file)| (points_at(file), level, file));
        let most = files.max_by_key(|(bytes, ..)| *bytes).filter(|(bytes, ..)| *bytes > 0);
        let (_, level, file) = most?;
        let output_level = level.max(1);
        let mut plan =
            self.plan(Reason::Values, level, output_level, std::slice::from_ref(file))?;
        // Moving it copies nothing.
        plan.is_trivial_move = false;
        Some(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::KeyOrder;
    use crate::base::internal_key::{EntryKind, InternalOrder, encode};
    use crate::base::value_pointer::ValueUse;
    use crate::compaction::inputs::PlanSettings;
    use crate::version::edit::{NewFile, NewValueFile, VersionEdit};
    use crate::version::file_meta::Contents;
    use crate::version::version::Version;

    const KB: u64 = 1 << 10;

    /// Level, number, first and last key, KB used of value files 90 and 91, entries and tombstones.
    type File = (usize, u64, &'static str, &'static str, [u64; 2], u64, u64);

    /// Tables of a KB. Both value files have 1000 KB.
    fn version(files: &[File]) -> Version {
        let file = |&(level, number, from, to, used, ..): &File| NewFile {
            level,
            number,
            size: KB,
            smallest: encode(from.as_bytes(), 9, EntryKind::Pointer),
            largest: encode(to.as_bytes(), 9, EntryKind::Pointer),
            values: [(90, used[0]), (91, used[1])]
                .into_iter()
                .filter(|(_, used)| *used > 0)
                .map(|(file, used)| ValueUse { file, bytes: used * KB })
                .collect(),
            codecs: Default::default(),
        };
        let values = |number| NewValueFile { number, size: 1001 * KB, value_bytes: 1000 * KB };
        let edit = VersionEdit {
            new_files: files.iter().map(file).collect(),
            new_value_files: vec![values(90), values(91)],
            ..VersionEdit::default()
        };
        let order = InternalOrder::new(KeyOrder::default());
        let version = Version::default().apply(&edit, &order, &Arc::default()).expect("a version");
        for (_, number, .., entries, deletions) in files {
            let (_, file) =
                version.files().find(|(_, file)| file.number == *number).expect("is there");
            file.learn(Contents {
                entries: *entries,
                deletions: *deletions,
                largest_sequence: 50,
                half_expired: u64::MAX,
            });
        }
        version
    }

    /// The reason, the level, and the inputs.
    type Chosen = (Reason, usize, Vec<u64>);

    fn chosen(
        files: &[File],
        oldest_snapshot: u64,
        pick: impl Fn(&Planner<'_>) -> Option<Plan>,
    ) -> Option<Chosen> {
        let version = version(files);
        let settings = PlanSettings {
            keys: KeyOrder::default(),
            max_file_size: 2048 * KB,
            oldest_snapshot,
            range_delete_bytes: 0,
            read_triggered_bytes: None,
            ahead_of_reads: true,
            gathers: false,
            expired_before: 0,
        };
        let plan = pick(&Planner { version: &version, settings: &settings, busy: &[] })?;
        Some((plan.reason, plan.level, plan.files().map(|file| file.number).collect()))
    }

    #[test]
    fn tables_that_may_hide_many_values_go_down() {
        let picked = |files: &[File], oldest_snapshot| {
            let picked = chosen(files, oldest_snapshot, |planner| planner.pick_hidden_values());
            picked.map(|(reason, level, inputs)| {
                assert_eq!(reason, Reason::HiddenValues);
                (level, inputs)
            })
        };
        let pair = |below: u64, above: u64| {
            [(2, 5, "a", "m", [below, 0], 90, 0), (1, 7, "b", "c", [0, above], 6, 0)]
        };
        // A sixteenth of what is used.
        assert_eq!(picked(&pair(900, 60), 100), None);
        assert_eq!(picked(&pair(900, 61), 100), Some((1, vec![7, 5])));
        // Four times what is read.
        assert_eq!(picked(&pair(40, 7), 100), None);
        assert_eq!(picked(&pair(40, 8), 100), Some((1, vec![7, 5])));
        // Where the one that may hide most does not pay, another one may.
        let below = [(2, 1, "b", "ba"), (2, 2, "bb", "bc"), (2, 3, "bd", "c"), (2, 4, "x", "y")];
        let below = below.map(|(level, number, from, to)| (level, number, from, to, [9, 0], 1, 0));
        let above = [(1, 7, "b", "c", [0, 15], 6, 0), (1, 8, "x", "y", [0, 9], 6, 0)];
        assert_eq!(picked(&[&below[..], &above].concat(), 100), Some((1, vec![8, 4])));
        // What a snapshot sees stays.
        assert_eq!(picked(&pair(900, 900), 49), None);
        assert_eq!(picked(&pair(900, 900), 50), Some((1, vec![7, 5])));
        // Nothing lies below it.
        let beside = [(2, 5, "a", "m", [900, 0], 90, 0), (1, 7, "n", "o", [0, 900], 6, 0)];
        assert_eq!(picked(&beside, 100), None);
        // Within level 0.
        let level_0 = [(0, 7, "b", "c", [1000, 0], 90, 0), (0, 8, "c", "d", [0, 800], 9, 0)];
        assert_eq!(picked(&level_0, 100), Some((0, vec![8, 7])));
        // A tombstone counts as a value of the average size, about eight KB.
        let deleted = |count| {
            let tombstones = (0, 9, "b", "c", [0, 0], 50, count);
            [(2, 5, "a", "m", [800, 800], 160, 0), tombstones]
        };
        assert_eq!(picked(&deleted(10), 100), None);
        assert_eq!(picked(&deleted(20), 100), Some((0, vec![9])), "moved down");
    }

    #[test]
    fn values_of_collected_files_are_copied_once_nothing_is_hidden() {
        let picked = |files: &[File]| chosen(files, 100, |planner| planner.pick_values());
        let collects = |level, table| Some((Reason::Values, level, vec![table]));
        let files = |used| [(2, 5, "a", "m", [used, 900], 90, 0), (2, 6, "n", "z", [90, 1], 5, 0)];
        assert_eq!(picked(&files(800)), None);
        assert_eq!(picked(&files(400)), collects(2, 5));
        // Between a half and three quarters it depends on the other file.
        assert_eq!(picked(&files(510)), None);
        let less = [(2, 5, "a", "m", [600, 800], 90, 0), (2, 6, "n", "z", [0, 90], 5, 0)];
        assert_eq!(picked(&less), collects(2, 5));
        // What may be garbage is not copied.
        let hidden = (1, 7, "b", "c", [300, 0], 9, 0);
        let [below, ..] = files(100);
        let expected = Some((Reason::HiddenValues, 1, vec![7, 5]));
        assert_eq!(picked(&[below, hidden]), expected);
    }
}
