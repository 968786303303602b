//! The bytes that levels may hold, and what follows from them.

use crate::base::comparator::KeyOrder;
use crate::version::NUM_LEVELS;
use crate::version::version::{Version, total_size};

/// Level 0 gathers half of the database, itself included, within these bounds, before it is compacted:
/// then each byte rewrites one other. More than the upper bound would have a crash or a close lose much
/// work.
const GATHERED_SHARE: u64 = 2;
const LEAST_GATHERED: u64 = 30 << 20;
const MOST_GATHERED: u64 = 512 << 20;
/// The number of level-0 files at which a compaction is due.
pub(crate) const LEVEL_0_TRIGGER: usize = 4;
/// The number at which a compaction is due in any case, although level 0 gathers files.
pub(crate) const LEVEL_0_GATHERED: usize = 9 * LEVEL_0_TRIGGER;
/// The bytes at which a compaction of level 1 is due, and how much more each deeper level may hold.
const LEVEL_1_BYTES: u64 = 10 << 20;
const LEVEL_MULTIPLIER: u64 = 10;
/// What a range delete left is little if it removed this many times as much. Then the steps that make
/// it one sorted run may rewrite it this many times: once for each level but for what overlaps.
const LITTLE: u64 = 4;
const ONE_RUN_REWRITE: u64 = 8;

/// The bytes that `level` (1 and deeper) may hold before a compaction of it is due.
pub(crate) fn level_limit(level: usize) -> u64 {
    LEVEL_1_BYTES * LEVEL_MULTIPLIER.pow(level.saturating_sub(1) as u32)
}

/// The bytes that level 0 gathers before it is compacted, while much is written and nothing read.
pub(crate) fn gathered_bytes(version: &Version) -> u64 {
    (version.bytes() / GATHERED_SHARE).clamp(LEAST_GATHERED, MOST_GATHERED)
}

/// The first level that has room for `bytes` more.
pub(crate) fn level_with_room(version: &Version, bytes: u64) -> usize {
    let fits = |level: &usize| version.level_bytes(*level) + bytes <= level_limit(*level);
    (1..NUM_LEVELS - 1).find(fits).unwrap_or(NUM_LEVELS - 1)
}

/// The bytes that compactions may rewrite to make `left` one sorted run, after a range delete has
/// `removed` so many.
pub(crate) fn one_run_allowance(removed: u64, left: u64) -> u64 {
    let is_little = left.saturating_mul(LITTLE) <= removed;
    if is_little { left.saturating_mul(ONE_RUN_REWRITE).min(removed) } else { 0 }
}

/// The bytes that should be moved down before every level is within its limit.
pub(crate) fn pending_bytes(version: &Version) -> u64 {
    let level_0 = &version.levels[0];
    let over_0 = if level_0.len() >= LEVEL_0_TRIGGER { total_size(level_0) } else { 0 };
    over_0 + pending_below_level_0(version)
}

/// Of the [`pending_bytes`] those that are not in level 0.
pub(crate) fn pending_below_level_0(version: &Version) -> u64 {
    let deeper = (1..NUM_LEVELS - 1)
        .map(|level| version.level_bytes(level).saturating_sub(level_limit(level)));
    deeper.sum()
}

/// Computes ahead what plans for `version` need, so that planning, which is done under a lock, is
/// quick.
pub(crate) fn prepare(version: &Version, keys: &KeyOrder) {
    for level in
        (1..NUM_LEVELS - 1).filter(|&level| version.level_bytes(level) >= level_limit(level))
    {
        drop(version.by_overlap(keys, level));
    }
}
