//! Picks the next compaction. Pure: the same version, settings and reservations give the same plan.
//!
//! The shape is LevelDB's: when level 0 has enough files, or a deeper level enough bytes, files are
//! compacted into the next level with the files that they overlap there. Files of level 0 that are
//! large, because memtables are, skip levels that have no room for them. Within a level the file
//! with the least to rewrite below it is picked first (RocksDB's `kMinOverlappingRatio`), which
//! lowers write amplification against LevelDB's round robin. When nothing is due, files that are
//! mostly tombstones are compacted down to the keys that they hide, and so are files without a
//! filter that many lookups searched without a hit. What a range delete has left becomes one sorted
//! run if it is little beside what it removed. While there are reads and no writes, levels are
//! compacted into one sorted run, unless that rewrites much more than it moves.
//!
//! # Invariants
//! 1. No two plans in progress share an input, or write overlapping key ranges into one level.
//! 2. A plan takes every level-0 file that overlaps one it takes, and every file of a level that
//!    shares a user key with one it takes: no older version of a key is left above a newer one.
//! 3. Of the levels that a plan skips none has a file in the range of its upper files, and no other plan
//!    writes one there.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::mutation::mutated;
use crate::version::NUM_LEVELS;
use crate::version::file_meta::FileMeta;
use crate::version::version::{Version, key_range, total_size};

use super::limits::{LEVEL_0_TRIGGER, level_limit};
use super::plan::{Plan, Reason, Reservation};

/// Files of level 0 skip a level if they have this many times the bytes that it may hold: most of them
/// would be compacted into the next level soon.
const SKIP_BYTES: u64 = 3;
/// But not if they would rewrite more than this many times their bytes in the next level: other
/// compactions of that level would have to wait too long.
const SKIP_REWRITE: u64 = 2;
/// Nor if they would rewrite more bytes than this: the work is lost if the database closes before the
/// compaction ends.
const SKIP_REWRITE_LIMIT: u64 = 1 << 30;
/// Files of the upper level are added until a compaction would read this many times the output
/// file size.
const EXPANSION_LIMIT: u64 = 25;
/// A read-triggered compaction may rewrite this many times the bytes it moves down: less than a
/// compaction that is due.
const READ_TRIGGERED_REWRITE: u64 = 4;
/// The deepest level to which a memtable is written directly.
pub(crate) const DEEPEST_FLUSH_LEVEL: usize = 2;

/// The planner's inputs besides the version.
#[derive(Clone, Debug)]
pub(crate) struct PlanSettings {
    pub(crate) keys: KeyOrder,
    pub(crate) max_file_size: u64,
    /// The sequence number of the oldest live snapshot; the last one if there is none.
    pub(crate) oldest_snapshot: u64,
    /// The bytes that compactions may still rewrite for one sorted run of what a range delete left.
    pub(crate) range_delete_bytes: u64,
    /// There are reads and no writes, or scans and few: the bytes that a compaction may rewrite for
    /// those since the last write.
    pub(crate) read_triggered_bytes: Option<u64>,
    /// Steps that move much to little are taken before reads have been worth them: more such reads
    /// are expected.
    pub(crate) ahead_of_reads: bool,
    /// Compactions remove entries that expire up to this time, in milliseconds since 1970.
    pub(crate) expired_before: u64,
}

/// What is left to do of a manual compaction.
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

/// The level that files of level 0 are compacted into.
enum BaseLevel {
    /// This one.
    At(usize),
    /// One below this, once these files of it are compacted, which are older.
    Below(usize, Vec<Arc<FileMeta>>),
}

/// Chooses plans for one version.
pub(crate) struct Planner<'a> {
    pub(crate) version: &'a Version,
    pub(crate) settings: &'a PlanSettings,
    pub(crate) busy: &'a [Reservation],
}

impl Planner<'_> {
    /// The most urgent compaction that can begin now.
    pub(crate) fn pick(&self) -> Option<Plan> {
        let mut scores: Vec<_> =
            (0..NUM_LEVELS - 1).map(|level| (self.score(level), level)).collect();
        scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let due: Vec<_> = scores.into_iter().take_while(|(score, _)| *score >= 1.0).collect();
        let mut of_level_0 = None;
        let mut awaited = None;
        if due.iter().any(|(_, level)| *level == 0) {
            of_level_0 = self.pick_level(0);
            awaited = of_level_0.is_none().then(|| self.awaited_by_level_0()).flatten();
        }
        let mut levels = due.iter().map(|(_, level)| *level);
        levels
            .find_map(|level| match level {
                0 => of_level_0.take(),
                _ if Some(level) == awaited => None,
                _ => self.pick_level(level),
            })
            .or_else(|| self.pick_tombstones())
            .or_else(|| self.pick_expired())
            .or_else(|| self.pick_values())
            .or_else(|| self.pick_seeks())
            .or_else(|| self.pick_range_delete())
            .or_else(|| self.pick_read_triggered())
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

    fn is_busy(&self, file: &FileMeta) -> bool {
        self.busy.iter().any(|reservation| reservation.files.contains(&file.number))
    }

    fn pick_level(&self, level: usize) -> Option<Plan> {
        if level == 0 {
            // The oldest file and all that overlap it: recency within level 0 stays as it is.
            let files = &self.version.levels[0];
            let oldest = if mutated("level-0-closure") { files.first()? } else { files.last()? };
            let oldest = std::slice::from_ref(oldest);
            return match self.base_level(oldest)? {
                BaseLevel::At(level) => self.plan(Reason::Size, 0, level, oldest),
                BaseLevel::Below(level, older) => {
                    self.plan(Reason::Skipped, level, level + 1, &older)
                }
            };
        }
        let free =
            self.version.by_overlap(&self.settings.keys, level).filter(|file| !self.is_busy(file));
        free.map(std::slice::from_ref)
            .find_map(|seed| self.plan(Reason::Size, level, level + 1, seed))
    }

    /// The level that `seeds` of level 0 are compacted into.
    fn base_level(&self, seeds: &[Arc<FileMeta>]) -> Option<BaseLevel> {
        let keys = &self.settings.keys;
        let files = self.closure(0, seeds)?;
        let (from, to) = key_range(keys, &files)?;
        let bytes = total_size(&files);
        let mut sizes: Vec<_> = files.iter().map(|file| file.size).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let largest =
            sizes.iter().take(LEVEL_0_TRIGGER).fold(0_u64, |sum, &size| sum.saturating_add(size));
        if largest < SKIP_BYTES * level_limit(1) {
            // Many small files. A compaction of level 0 has one thread; those of level 1 have more.
            return Some(BaseLevel::At(1));
        }
        let below = |level| self.version.overlapping(keys, level, Some(&from), Some(&to));
        let most = bytes.saturating_mul(SKIP_REWRITE).min(SKIP_REWRITE_LIMIT);
        let skips = |level| {
            bytes >= SKIP_BYTES * level_limit(level)
                && total_size(&below(level + 1)) <= most
                && (!self.is_written_to(level, &from, &to) || mutated("skipped-outputs"))
        };
        let mut level = 1;
        while level < NUM_LEVELS - 1 && skips(level) {
            let older = below(level);
            if let Some((from, to)) = key_range(keys, &older) {
                let below = self.version.overlapping(keys, level + 1, Some(&from), Some(&to));
                let pays = total_size(&older) <= bytes && total_size(&below) <= SKIP_REWRITE_LIMIT;
                return Some(match pays {
                    true => BaseLevel::Below(level, older),
                    false => BaseLevel::At(level),
                });
            }
            level += 1;
        }
        Some(BaseLevel::At(level))
    }

    /// The level whose compaction in progress keeps files of level 0 from it, that are to skip others:
    /// while another compaction of that level begins, level 0 waits on.
    fn awaited_by_level_0(&self) -> Option<usize> {
        let oldest = std::slice::from_ref(self.version.levels[0].last()?);
        let is_busy = self.closure(0, oldest)?.iter().any(|file| self.is_busy(file));
        match self.base_level(oldest)? {
            _ if is_busy || mutated("level-0-waits") => None,
            BaseLevel::At(level) => (level > 1).then_some(level),
            BaseLevel::Below(level, _) => Some(level + 1),
        }
    }

    /// Whether a compaction in progress writes to this range of `level`.
    fn is_written_to(&self, level: usize, from: &[u8], to: &[u8]) -> bool {
        let keys = &self.settings.keys;
        self.busy.iter().any(|other| {
            other.output_level == level
                && keys.compare(&other.from, to) != Ordering::Greater
                && keys.compare(&other.to, from) != Ordering::Less
        })
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

    /// Whether anything deeper lies in the range of a file.
    fn is_covered(&self, level: usize, file: &FileMeta) -> bool {
        let (from, to) = (file.smallest_user_key(), file.largest_user_key());
        (level + 1..NUM_LEVELS)
            .any(|deeper| self.version.overlaps_level(&self.settings.keys, deeper, from, to))
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

    /// The file that points at most bytes in value files that are mostly garbage: one that was
    /// rewritten lately points at few.
    fn pick_values(&self) -> Option<Plan> {
        if !self.busy.is_empty() || !self.version.values.is_used() {
            return None;
        }
        let garbage = self.version.values.iter().filter(|used| used.is_mostly_garbage());
        let garbage: BTreeSet<_> = garbage.map(|used| used.file.number).collect();
        if garbage.is_empty() {
            return None;
        }
        let points_at = |file: &FileMeta| {
            let used = file.values.iter().filter(|used| garbage.contains(&used.file));
            used.fold(0_u64, |bytes, used| bytes.saturating_add(used.bytes))
        };
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

    /// The files of `level` in an inclusive range, compacted into the next level or, at the bottom,
    /// rewritten in place.
    pub(crate) fn manual(
        &self,
        level: usize,
        in_place: bool,
        range: &ManualRange<'_>,
    ) -> Option<Plan> {
        let files = range.files(self.version, &self.settings.keys, level);
        // Deep levels in bites, so that a whole database does not need twice its space.
        let bite = EXPANSION_LIMIT * self.settings.max_file_size;
        let mut taken = 0;
        let count = files.iter().take_while(|file| {
            let fits = level == 0 || taken < bite;
            taken = file.value_bytes().saturating_add(file.size).saturating_add(taken);
            fits
        });
        let count = count.count();
        let output_level = if in_place { level } else { level + 1 };
        let mut plan = self.plan(Reason::Manual, level, output_level, &files[..count])?;
        plan.is_trivial_move = false;
        Some(plan)
    }

    /// Completes a plan that begins with `seeds`, unless it would get in the way of one in
    /// progress.
    fn plan(
        &self,
        reason: Reason,
        level: usize,
        output_level: usize,
        seeds: &[Arc<FileMeta>],
    ) -> Option<Plan> {
        if output_level >= NUM_LEVELS {
            return None;
        }
        let keys = &self.settings.keys;
        let upper = self.closure(level, seeds)?;
        let (from, to) = key_range(keys, &upper)?;
        let (upper, lower) = match output_level == level {
            true => (upper, Vec::new()),
            false => {
                let lower = self.shared_below(output_level, &from, &to)?;
                match output_level == level + 1 || mutated("skipped-files") {
                    true => self.expand(level, upper, lower),
                    // More of level 0 might skip older entries.
                    false => (upper, lower),
                }
            }
        };
        let (from, to) = key_range(keys, upper.iter().chain(&lower))?;
        let blocked = upper.iter().chain(&lower).any(|file| self.is_busy(file))
            || self.is_written_to(output_level, &from, &to);
        if blocked && !mutated("disjoint-compactions") {
            return None;
        }
        let grandparents = match output_level + 1 < NUM_LEVELS {
            true => self.version.overlapping(keys, output_level + 1, Some(&from), Some(&to)),
            false => Vec::new(),
        };
        let is_trivial_move = output_level != level
            && upper.len() == 1
            && lower.is_empty()
            && total_size(&grandparents) <= Plan::grandparent_limit(self.settings.max_file_size);
        Some(Plan {
            reason,
            level,
            output_level,
            inputs: [upper, lower],
            grandparents,
            is_trivial_move,
        })
    }

    /// Every file of `level` that shares a user key with `seeds`, directly or through others.
    fn closure(&self, level: usize, seeds: &[Arc<FileMeta>]) -> Option<Vec<Arc<FileMeta>>> {
        let keys = &self.settings.keys;
        let mut files = seeds.to_vec();
        loop {
            let (from, to) = key_range(keys, &files)?;
            let wider = self.version.overlapping(keys, level, Some(&from), Some(&to));
            if wider.len() == files.len() || mutated("level-0-closure") {
                return Some(files);
            }
            files = wider;
        }
    }

    /// The files of the output level `level` that a compaction of this range has to take in: those
    /// it overlaps, and with them every other version of their keys. A tombstone in one file may
    /// hide files in the next, where LevelDB has split a key's versions between two files, and it
    /// is dropped when nothing deeper has the key.
    fn shared_below(&self, level: usize, from: &[u8], to: &[u8]) -> Option<Vec<Arc<FileMeta>>> {
        let overlapped = self.version.overlapping(&self.settings.keys, level, Some(from), Some(to));
        if overlapped.is_empty() || mutated("keys-split-below") {
            return Some(overlapped);
        }
        self.closure(level, &overlapped)
    }

    /// Takes in more of the upper level where that does not take in more of the lower one.
    fn expand(
        &self,
        level: usize,
        upper: Vec<Arc<FileMeta>>,
        lower: Vec<Arc<FileMeta>>,
    ) -> (Vec<Arc<FileMeta>>, Vec<Arc<FileMeta>>) {
        let keys = &self.settings.keys;
        let wider = || {
            let (from, to) = key_range(keys, upper.iter().chain(&lower))?;
            let seeds = self.version.overlapping(keys, level, Some(&from), Some(&to));
            let wider = self.closure(level, &seeds)?;
            let (from, to) = key_range(keys, &wider)?;
            let below = self.shared_below(level + 1, &from, &to)?;
            let limit = EXPANSION_LIMIT * self.settings.max_file_size;
            let good = wider.len() > upper.len()
                && below.len() == lower.len()
                && total_size(&wider) + total_size(&lower) < limit
                && !wider.iter().any(|file| self.is_busy(file));
            good.then_some(wider)
        };
        let wider = if lower.is_empty() { None } else { wider() };
        (wider.unwrap_or(upper), lower)
    }

    /// The level for a table that is newer than everything in the version: as deep as it overlaps
    /// nothing on the way, and nothing being written there, and not deeper than `deepest`.
    pub(crate) fn level_for(&self, from: &[u8], to: &[u8], deepest: usize) -> usize {
        let keys = &self.settings.keys;
        if self.version.overlaps_level(keys, 0, from, to) && !mutated("flush-above-level-0") {
            return 0;
        }
        let mut level = 0;
        while level < deepest {
            let next = level + 1;
            if self.is_written_to(next, from, to)
                || self.version.overlaps_level(keys, next, from, to)
            {
                break;
            }
            if next + 1 < NUM_LEVELS {
                let below = self.version.overlapping(keys, next + 1, Some(from), Some(to));
                if total_size(&below) > Plan::grandparent_limit(self.settings.max_file_size) {
                    break;
                }
            }
            level = next;
        }
        level
    }
}

#[cfg(test)]
mod tests;
