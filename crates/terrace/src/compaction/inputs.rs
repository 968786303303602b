//! Completes a plan: which files a compaction has to take in, and what it may not get in the way
//! of.
//!
//! # Invariants
//! 1. No two plans in progress share an input, or write overlapping key ranges into one level below
//!    level 0.
//! 2. A plan for a deeper level takes every level-0 file that overlaps one it takes, and every file
//!    of a level that shares a user key with one it takes: no older version of a key is left above
//!    a newer one.
//! 3. Of the levels that a plan skips none has a file in the range of its upper files, and no other
//!    plan writes one there.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::mutation::mutated;
use crate::version::NUM_LEVELS;
use crate::version::file_meta::FileMeta;
use crate::version::version::{Version, key_range, total_size};

use super::plan::{Plan, Reason, Reservation};

/// Files of the upper level are added until a compaction would read this many times the output
/// file size.
pub(super) const EXPANSION_LIMIT: u64 = 25;
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
    /// Much is written and nothing read: level 0 gathers tables until a compaction of them rewrites
    /// little else.
    pub(crate) gathers: bool,
    /// Compactions remove entries that expire up to this time, in milliseconds since 1970.
    pub(crate) expired_before: u64,
}

/// Chooses plans for one version.
pub(crate) struct Planner<'a> {
    pub(crate) version: &'a Version,
    pub(crate) settings: &'a PlanSettings,
    pub(crate) busy: &'a [Reservation],
}

impl Planner<'_> {
    pub(super) fn is_busy(&self, file: &FileMeta) -> bool {
        self.busy.iter().any(|reservation| reservation.files.contains(&file.number))
    }

    /// Whether anything deeper lies in the range of a file.
    pub(super) fn is_covered(&self, level: usize, file: &FileMeta) -> bool {
        let (from, to) = (file.smallest_user_key(), file.largest_user_key());
        (level + 1..NUM_LEVELS)
            .any(|deeper| self.version.overlaps_level(&self.settings.keys, deeper, from, to))
    }

    /// Whether a compaction in progress writes to this range of `level`.
    pub(super) fn is_written_to(&self, level: usize, from: &[u8], to: &[u8]) -> bool {
        self.reserving(level, from, to).next().is_some()
    }

    /// Whether this range of `level` is kept free of compactions without one that writes there.
    pub(super) fn is_kept_free(&self, level: usize, from: &[u8], to: &[u8]) -> bool {
        self.reserving(level, from, to).any(|other| other.files.is_empty())
    }

    fn reserving(
        &self,
        level: usize,
        from: &[u8],
        to: &[u8],
    ) -> impl Iterator<Item = &Reservation> {
        let keys = &self.settings.keys;
        self.busy.iter().filter(move |other| {
            other.output_level == level
                && keys.compare(&other.from, to) != Ordering::Greater
                && keys.compare(&other.to, from) != Ordering::Less
        })
    }

    /// Completes a plan that begins with `seeds`, unless it would get in the way of one in
    /// progress.
    pub(super) fn plan(
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
    pub(super) fn closure(
        &self,
        level: usize,
        seeds: &[Arc<FileMeta>],
    ) -> Option<Vec<Arc<FileMeta>>> {
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
