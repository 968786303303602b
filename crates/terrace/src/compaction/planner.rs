//! Picks the next compaction. Pure: the same version, settings and reservations give the same plan.
//!
//! The shape is LevelDB's: when level 0 has enough files, or a deeper level enough bytes, files are
//! compacted into the next level with the files that they overlap there ([`level_0`](super::level_0) has
//! rules of its own). Within a level the file
//! with the least to rewrite below it is picked first (RocksDB's `kMinOverlappingRatio`), which
//! lowers write amplification against LevelDB's round robin. When nothing is due, files that are
//! mostly tombstones are compacted down to the keys that they hide, and so are files without a
//! filter that many lookups searched without a hit; [`value_garbage`](super::value_garbage) gives the
//! space of value files back. What a range delete has left becomes one sorted run if it is little
//! beside what it removed. While there are reads and no writes, levels are compacted into one sorted
//! run, unless that rewrites much more than it moves.

use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::mutation::mutated;
use crate::version::NUM_LEVELS;
use crate::version::file_meta::FileMeta;
use crate::version::version::{Version, key_range, total_size};

use super::inputs::{EXPANSION_LIMIT, Planner};
use super::level_0::LevelZero;
use super::limits::{LEVEL_0_TRIGGER, level_limit};
use super::plan::{Plan, Reason};

/// A read-triggered compaction may rewrite this many times the bytes it moves down: less than a
/// compaction that is due.
const READ_TRIGGERED_REWRITE: u64 = 4;

/// A step of a manual compaction ends where it rewrites this many times as many bytes of the next
/// level as it may move there. More would keep level 0 waiting; less would rewrite much twice,
/// since the last file of a step may be the first of the next one.
const STEP_REWRITE: u64 = 2;

/// A step of a manual compaction, or all of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ManualRange<'a> {
    /// The first key; from the beginning without one.
    pub(crate) from: Option<&'a [u8]>,
    /// The last key; to the end without one.
    pub(crate) to: Option<&'a [u8]>,
    /// The last key of the inputs so far: a file that ends there is an output.
    pub(crate) reached: Option<&'a [u8]>,
}

impl ManualRange<'_> {
    /// The files of a level that are left.
    pub(crate) fn files(
        &self,
        version: &Version,
        keys: &KeyOrder,
        level: usize,
    ) -> Vec<Arc<FileMeta>> {
        let mut files = version.overlapping(keys, level, self.reached.or(self.from), self.to);
        if let Some(reached) = self.reached {
            files.retain(|file| keys.compare(file.largest_user_key(), reached).is_ne());
        }
        files
    }
}

impl Planner<'_> {
    /// The most urgent compaction that can begin now.
    pub(crate) fn pick(&self) -> Option<Plan> {
        self.pick_due()
            .or_else(|| self.pick_tombstones())
            .or_else(|| self.pick_expired())
            .or_else(|| self.pick_values())
            .or_else(|| self.pick_seeks())
            .or_else(|| self.pick_range_delete())
            .or_else(|| self.pick_read_triggered())
    }

    /// The same, of levels that have too many files or bytes.
    pub(crate) fn pick_due(&self) -> Option<Plan> {
        let mut scores: Vec<_> =
            (0..NUM_LEVELS - 1).map(|level| (self.score(level), level)).collect();
        scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let due: Vec<_> = scores.into_iter().take_while(|(score, _)| *score >= 1.0).collect();
        let mut of_level_0 = LevelZero::default();
        if due.iter().any(|(_, level)| *level == 0) {
            of_level_0 = self.pick_level_0();
        }
        let mut levels = due.iter().map(|(_, level)| *level);
        levels.find_map(|level| match level {
            0 => of_level_0.plan.take(),
            _ if Some(level) == of_level_0.awaited => None,
            _ => self.pick_level(level),
        })
    }

    /// A compaction within level 0, if level 0 has too many files.
    pub(crate) fn pick_due_within_level_0(&self) -> Option<Plan> {
        if self.score(0) >= 1.0 { self.pick_intra_level_0() } else { None }
    }

    /// The score of `level`: at 1 and above a compaction is due.
    fn score(&self, level: usize) -> f64 {
        let free = self.version.levels[level].iter().filter(|file| !self.is_busy(file));
        if level == 0 {
            return free.count() as f64 / LEVEL_0_TRIGGER as f64;
        }
        let bytes = match self.version.level_bytes(level) {
            // Not due, whatever is busy: a large level need not be looked through.
            all if all < level_limit(level) => all,
            all if self.busy.is_empty() => all,
            _ => free.map(|file| file.size).sum(),
        };
        bytes as f64 / level_limit(level) as f64
    }

    fn pick_level(&self, level: usize) -> Option<Plan> {
        // Of a large level, all of which may be kept from the next one, only this is asked quickly.
        let is_free = |file: &&Arc<FileMeta>| {
            let (from, to) = (file.smallest_user_key(), file.largest_user_key());
            !self.is_busy(file)
                && (!self.is_written_to(level + 1, from, to) || mutated("disjoint-compactions"))
        };
        let free = self.version.by_overlap(&self.settings.keys, level).filter(is_free);
        free.map(std::slice::from_ref)
            .find_map(|seed| self.plan(Reason::Size, level, level + 1, seed))
    }

    /// A file at least half of whose entries are tombstones that no reader needs.
    fn pick_tombstones(&self) -> Option<Plan> {
        if !self.busy.is_empty() {
            return None;
        }
        let worth_it = |file: &FileMeta| {
            file.contents().is_some_and(|contents| {
                contents.deletions > 0
                    && contents.deletions * 2 >= contents.entries
                    && contents.largest_sequence <= self.settings.oldest_snapshot
            })
        };
        let mut candidates = self.version.files().filter(|(_, file)| worth_it(file));
        candidates.find_map(|(level, file)| {
            // At the bottom of its key range a tombstone hides nothing: rewriting the file in place
            // drops it.
            let covered = self.is_covered(level, file);
            let output_level = if covered || level == 0 { level + 1 } else { level };
            let mut plan =
                self.plan(Reason::Tombstones, level, output_level, std::slice::from_ref(file))?;
            // Only a compaction drops tombstones. Moving down to the hidden entries is progress
            // too.
            plan.is_trivial_move &= covered;
            Some(plan)
        })
    }

    /// A file at least half of whose entries have expired. Those that are at the bottom of their
    /// ranges are rewritten together with such neighbours, so that few small files are left.
    fn pick_expired(&self) -> Option<Plan> {
        let expired_before = self.settings.expired_before;
        if expired_before == 0 || !self.busy.is_empty() {
            return None;
        }
        let worth_it = |file: &FileMeta| {
            file.contents().is_some_and(|contents| contents.half_expired <= expired_before)
        };
        let (level, file) = self.version.files().find(|(_, file)| worth_it(file))?;
        let in_place = |file: &FileMeta| level > 0 && !self.is_covered(level, file);
        let mut plan = if in_place(file) {
            let files = &self.version.levels[level];
            let first = files.iter().position(|other| other.number == file.number)?;
            let mut bytes = 0;
            let together = files[first..].iter().take_while(|file| {
                bytes += file.size;
                bytes <= EXPANSION_LIMIT * self.settings.max_file_size
                    && worth_it(file)
                    && in_place(file)
            });
            let count = together.count().max(1);
            self.plan(Reason::Expired, level, level, &files[first..first + count])?
        } else {
            self.plan(Reason::Expired, level, level + 1, std::slice::from_ref(file))?
        };
        // Moving it removes nothing.
        plan.is_trivial_move = false;
        Some(plan)
    }

    /// A file without a filter that lookups searched without a hit. Only while little is written:
    /// under writes it is compacted soon anyway, and doing it earlier as well would more than double
    /// what is written.
    fn pick_seeks(&self) -> Option<Plan> {
        if self.settings.read_triggered_bytes.is_none() || !self.busy.is_empty() {
            return None;
        }
        let exhausted =
            |file: &FileMeta| file.seeks_left.load(std::sync::atomic::Ordering::Relaxed) <= 0;
        let mut candidates =
            self.version.files().filter(|(level, file)| *level < NUM_LEVELS - 1 && exhausted(file));
        candidates.find_map(|(level, file)| {
            self.plan(Reason::Seeks, level, level + 1, std::slice::from_ref(file))
        })
    }

    /// A step towards one sorted run of what a range delete has left.
    fn pick_range_delete(&self) -> Option<Plan> {
        let is_allowed = self.settings.range_delete_bytes > 0;
        is_allowed.then(|| self.pick_step(Reason::RangeDelete, |_, _| true)).flatten()
    }

    fn pick_read_triggered(&self) -> Option<Plan> {
        let rewrite = self.settings.read_triggered_bytes?;
        // Once the reads have been worth all of it, all of it becomes one run, even for a little at
        // the top.
        let all = rewrite >= self.version.bytes();
        let ahead = self.settings.ahead_of_reads;
        let pays = |bytes: u64, below: u64| all || ahead && bytes * READ_TRIGGERED_REWRITE >= below;
        self.pick_step(Reason::ReadTriggered, pays)
    }

    /// A step towards one sorted run, if nothing else is compacted: one that moves so many bytes
    /// down to so many as `pays`.
    fn pick_step(&self, reason: Reason, pays: impl Fn(u64, u64) -> bool) -> Option<Plan> {
        if !self.busy.is_empty() {
            return None;
        }
        let keys = &self.settings.keys;
        let level_0 = &self.version.levels[0];
        if let Some((from, to)) = key_range(keys, level_0.iter()) {
            let below = total_size(&self.version.overlapping(keys, 1, Some(&from), Some(&to)));
            if pays(total_size(level_0), below) {
                return self.plan(reason, 0, 1, level_0);
            }
        }
        let has_deeper =
            |level: usize| self.version.levels[level + 1..].iter().any(|files| !files.is_empty());
        (1..NUM_LEVELS - 1).filter(|&level| has_deeper(level)).find_map(|level| {
            let (file, _) = self
                .version
                .overlaps_below(keys, level)
                .find(|&(file, below)| pays(file.size, below))?;
            self.plan(reason, level, level + 1, std::slice::from_ref(file))
        })
    }

    /// The last keys of the steps of a manual compaction of `level`: level 0 goes down in one
    /// piece, deeper levels in steps, so that a whole database does not need twice its space, and
    /// so that automatic compactions wait for one step at most.
    ///
    /// They are chosen before the first step. Were they chosen one by one, what comes into the
    /// level meanwhile would add steps, without an end where much is written.
    pub(crate) fn manual_steps(
        &self,
        level: usize,
        in_place: bool,
        range: &ManualRange<'_>,
    ) -> Vec<Option<Vec<u8>>> {
        if level == 0 {
            return vec![range.to.map(<[u8]>::to_vec)];
        }
        let keys = &self.settings.keys;
        let below = |file: &FileMeta| {
            let (from, to) = (file.smallest_user_key(), file.largest_user_key());
            match !in_place && level + 1 < NUM_LEVELS {
                true => {
                    total_size(&self.version.overlapping(keys, level + 1, Some(from), Some(to)))
                }
                false => 0,
            }
        };
        let limit = EXPANSION_LIMIT * self.settings.max_file_size;
        let (mut moved, mut rewritten) = (0_u64, 0_u64);
        let mut ends: Vec<Option<Vec<u8>>> = Vec::new();
        let files = range.files(self.version, keys, level);
        for (at, file) in files.iter().enumerate() {
            moved = file.value_bytes().saturating_add(file.size).saturating_add(moved);
            rewritten = rewritten.saturating_add(below(file));
            let is_last = at + 1 == files.len();
            if is_last || moved >= limit || rewritten >= STEP_REWRITE * limit {
                ends.push(Some(file.largest_user_key().to_vec()));
                (moved, rewritten) = (0, 0);
            }
        }
        // Not beyond the range.
        if let (Some(Some(last)), Some(to)) = (ends.last_mut(), range.to)
            && keys.compare(last, to).is_gt()
        {
            *last = to.to_vec();
        }
        ends
    }

    /// The files of `level` in an inclusive range, compacted into the next level or, at the bottom,
    /// rewritten in place.
    pub(crate) fn manual(
        &self,
        level: usize,
        in_place: bool,
        range: &ManualRange<'_>,
    ) -> Option<Plan> {
        let files = range.files(self.version, &self.settings.keys, level);
        let output_level = if in_place { level } else { level + 1 };
        let mut plan = self.plan(Reason::Manual, level, output_level, &files)?;
        plan.is_trivial_move = false;
        Some(plan)
    }
}

#[cfg(test)]
mod tests;
