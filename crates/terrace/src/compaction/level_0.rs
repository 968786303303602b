//! What becomes of level 0: its files are compacted into a deeper level, or small ones into one.
//!
//! Each compaction of level 0 rewrites what it overlaps below. While much is written, level 0
//! gathers files until there are many bytes for that, which go past levels that have no room for
//! them. Small files that come meanwhile become one within level 0, so that there are not many for
//! a read to search. RocksDB calls that intra-L0 compaction.
//!
//! In LevelDB the greater number of two files of level 0 is the newer one. A flush keeps the number
//! behind its own free, which is that of the one file that it and those before it become. So the
//! order is right, whatever is flushed meanwhile.

use std::sync::Arc;

use crate::base::mutation::mutated;
use crate::version::NUM_LEVELS;
use crate::version::file_meta::FileMeta;
use crate::version::version::{key_range, total_size};

use super::inputs::Planner;
use super::limits::{LEVEL_0_GATHERED, LEVEL_0_TRIGGER, gathered_bytes, level_limit};
use super::plan::{Plan, Reason};

/// Large files of level 0 skip level 1 if they have this many times the bytes that it may hold, and
/// deeper ones if they have as many as those: most of them would be compacted into the next level
/// soon.
const SKIP_BYTES: u64 = 3;
/// But not if they would rewrite more than this many times their bytes in the next level: other
/// compactions of that level would have to wait too long.
const SKIP_REWRITE: u64 = 4;
/// Nor if they would rewrite more bytes than this: the work is lost if the database closes before
/// the compaction ends.
const SKIP_REWRITE_LIMIT: u64 = 1 << 30;
/// So many small files become one.
const SMALL_FILES: usize = 12;
/// A file is small if it has fewer bytes than this, and fewer than so many times the newest one:
/// what small files have become is not rewritten with the next ones.
const SMALL_FILE: u64 = 10 << 20;
const SMALL_TIMES: u64 = 8;

/// What is due in level 0.
#[derive(Default)]
pub(super) struct LevelZero {
    pub(super) plan: Option<Plan>,
    /// The level from which files of level 0, that are to skip others, are kept by a compaction of
    /// it in progress, or because they become one first: while another compaction of that level
    /// begins, level 0 waits on.
    pub(super) awaited: Option<usize>,
}

/// The level that files of level 0 are compacted into.
pub(super) enum BaseLevel {
    /// This one.
    At(usize),
    /// One below this, once these files of it are compacted, which are older.
    Below(usize, Vec<Arc<FileMeta>>),
}

impl Planner<'_> {
    /// The compaction of level 0 that can begin now.
    pub(super) fn pick_level_0(&self) -> LevelZero {
        let goes_down = !self.settings.gathers || self.has_gathered();
        let down = goes_down.then(|| self.pick_level_0_down()).flatten();
        let mut picked = down.unwrap_or_default();
        picked.plan = picked.plan.or_else(|| self.pick_intra_level_0());
        picked
    }

    /// Whether level 0 has gathered enough.
    fn has_gathered(&self) -> bool {
        let free = self.version.levels[0].iter().filter(|file| !self.is_busy(file));
        let (files, bytes) =
            free.fold((0, 0), |(files, bytes), file| (files + 1, bytes + file.size));
        files >= LEVEL_0_GATHERED || bytes >= gathered_bytes(self.version)
    }

    /// The oldest file and all that overlap it: recency within level 0 stays as it is.
    fn pick_level_0_down(&self) -> Option<LevelZero> {
        let files = &self.version.levels[0];
        let oldest = if mutated("level-0-closure") { files.first()? } else { files.last()? };
        let oldest = std::slice::from_ref(oldest);
        let (plan, busy_level) = match self.base_level(oldest)? {
            BaseLevel::At(level) => {
                (self.plan(Reason::Size, 0, level, oldest), (level > 1).then_some(level))
            }
            BaseLevel::Below(level, older) => {
                (self.plan(Reason::Skipped, level, level + 1, &older), Some(level + 1))
            }
        };
        let waits = plan.is_none() && !self.is_going_down(oldest) && !mutated("level-0-waits");
        Some(LevelZero { plan, awaited: busy_level.filter(|_| waits) })
    }

    /// Whether a compaction into a deeper level has one of the files that a compaction of `seeds`
    /// takes. One within level 0 ends soon, and what it makes will wait for the same level.
    fn is_going_down(&self, seeds: &[Arc<FileMeta>]) -> bool {
        let closure = self.closure(0, seeds).unwrap_or_default();
        let mut down = self.busy.iter().filter(|other| other.output_level > 0);
        down.any(|other| closure.iter().any(|file| other.files.contains(&file.number)))
    }

    /// The newest small files, if there are many: nothing is newer that has a smaller number than
    /// the one that they become.
    pub(super) fn pick_intra_level_0(&self) -> Option<Plan> {
        // One at a time, or there would be one whenever level 0 is to be compacted.
        if self.busy.iter().any(|other| other.output_level == 0 && !other.files.is_empty()) {
            return None;
        }
        let files = &self.version.levels[0];
        let newest = files.iter().position(|file| file.has_successor())?;
        let limit = files[newest].size.saturating_mul(SMALL_TIMES).min(SMALL_FILE);
        let is_small = |file: &&Arc<FileMeta>| file.size < limit && !self.is_busy(file);
        let small: Vec<_> = files[newest..].iter().take_while(is_small).cloned().collect();
        (small.len() >= SMALL_FILES).then(|| Plan {
            reason: Reason::SmallFiles,
            level: 0,
            output_level: 0,
            inputs: [small, Vec::new()],
            grandparents: Vec::new(),
            is_trivial_move: false,
        })
    }

    /// The level that `seeds` of level 0 are compacted into.
    pub(super) fn base_level(&self, seeds: &[Arc<FileMeta>]) -> Option<BaseLevel> {
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
            bytes >= level_limit(level)
                && total_size(&below(level + 1)) <= most
                && (!self.is_written_to(level, &from, &to) || mutated("skipped-outputs"))
                && !self.is_kept_free(level + 1, &from, &to)
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
}
