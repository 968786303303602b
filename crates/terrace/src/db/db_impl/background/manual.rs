//! Manual compactions.

use std::sync::Arc;

use crate::base::error::{ErrorKind, Result};
use crate::compaction::inputs::Planner;
use crate::compaction::plan::Plan;
use crate::compaction::planner::ManualRange;
use crate::version::NUM_LEVELS;
use crate::version::version::Version;

use crate::db::db_impl::background::Background;

/// How a range is compacted.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// db.put("apple", "red")?;
/// let everything = CompactOptions::new().force(true);
/// db.compact_range_with::<&[u8]>(.., everything)?;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CompactOptions {
    force: bool,
}

impl CompactOptions {
    /// Rewrites what has to be rewritten, and no more.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rewrites the bottommost level of the range, too, so that all of it is written with the
    /// present options, such as another compression or another filter. Default: false.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// // After a change of `Options::compression`, for what is stored already.
    /// db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true))?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }
}

/// The next compaction, its version, and its reservation.
type Bite = (Arc<Plan>, Arc<Version>, u64);

// Both go also when a listener or a comparator of the program's panics: a close would wait for
// ever.

/// Keeps automatic compactions waiting.
struct Manual<'a>(&'a Arc<Background>);

impl<'a> Manual<'a> {
    fn begin(background: &'a Arc<Background>) -> Self {
        background.state.lock().manual += 1;
        Manual(background)
    }
}

impl Drop for Manual<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.manual -= 1;
        self.0.schedule(&mut state);
        self.0.changed.notify_all();
        drop(state);
        self.0.files.purge();
    }
}

/// Keeps others away from files and key ranges.
struct Reserved<'a> {
    background: &'a Background,
    id: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.background.state.lock().release(self.id);
        self.background.changed.notify_all();
    }
}

impl Background {
    /// Compacts the tables of a range level by level down to the deepest one that holds any of it.
    /// Runs on the caller's thread.
    pub(in crate::db) fn compact_range(
        self: &Arc<Self>,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
        options: CompactOptions,
    ) -> Result<()> {
        self.manually(|| self.compact_levels(from, to, options))
    }

    /// Compacts level 0 and then level 1 downwards where they have anything of a range.
    pub(in crate::db) fn clear_upper_levels(
        self: &Arc<Self>,
        from: &[u8],
        to: &[u8],
    ) -> Result<()> {
        self.manually(|| {
            (0..2).try_for_each(|level| self.compact_level(level, false, Some(from), Some(to)))
        })
    }

    /// Does work that automatic compactions wait for.
    pub(in crate::db) fn manually<T>(
        self: &Arc<Self>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let _manual = Manual::begin(self);
        work()
    }

    fn compact_levels(
        self: &Arc<Self>,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
        options: CompactOptions,
    ) -> Result<()> {
        let overlapping =
            |version: &Version, level| version.overlapping(&self.files.order.keys, level, from, to);
        let version = self.views.current.load().version.clone();
        let deepest = (0..NUM_LEVELS).rev().find(|&level| !overlapping(&version, level).is_empty());
        let Some(deepest) = deepest else { return Ok(()) };
        drop(version);
        for level in 0..deepest.max(1) {
            self.compact_level(level, false, from, to)?;
        }
        // Tombstones that arrived at the bottom without a compaction hide nothing there.
        let version = self.views.current.load().version.clone();
        for level in 1..NUM_LEVELS {
            let has_tombstones = overlapping(&version, level)
                .iter()
                .any(|file| file.contents().is_some_and(|contents| contents.deletions > 0));
            let is_bottom =
                (level + 1..NUM_LEVELS).all(|deeper| overlapping(&version, deeper).is_empty());
            if (has_tombstones || options.force) && is_bottom {
                self.compact_level(level, true, from, to)?;
            }
        }
        Ok(())
    }

    fn compact_level(
        self: &Arc<Self>,
        level: usize,
        in_place: bool,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<()> {
        let keys = &self.files.order.keys;
        let mut reached: Option<Vec<u8>> = None;
        loop {
            let range = ManualRange { from, to, reached: reached.as_deref() };
            let Some((plan, version, reservation)) = self.plan_manual(level, in_place, &range)?
            else {
                break;
            };
            let ends = plan.inputs[0].iter().map(|file| file.largest_user_key());
            let end = ends.max_by(|a, b| keys.compare(a, b)).map(<[u8]>::to_vec);
            let reserved = Reserved { background: self, id: reservation };
            let result = self.files.sparing(|| self.compact(&plan, &version, reservation));
            drop(reserved);
            // The inputs' space is free before the next bite needs some.
            drop((plan, version));
            self.files.purge();
            if let Err(error) = &result
                && self.files.options.paranoid_checks
                && error.kind() == ErrorKind::Corruption
            {
                self.fail(&mut self.state.lock(), error, false);
            }
            result?;
            // Level 0 goes down in one piece; deeper levels in bites, from left to right.
            let done = match (&end, to) {
                (Some(end), Some(to)) => keys.compare(end, to).is_ge(),
                _ => false,
            };
            if level == 0 || done || end == reached {
                break;
            }
            reached = end;
        }
        Ok(())
    }

    /// Plans the next bite, waiting for compactions that are in the way.
    fn plan_manual(
        self: &Arc<Self>,
        level: usize,
        in_place: bool,
        range: &ManualRange<'_>,
    ) -> Result<Option<Bite>> {
        let mut state = self.state.lock();
        self.retry(&mut state)?;
        loop {
            self.check_background(&state)?;
            let version = self.views.current.load().version.clone();
            if range.files(&version, &self.files.order.keys, level).is_empty() {
                return Ok(None);
            }
            let settings = self.plan_settings(false, 0);
            let planner =
                Planner { version: &version, settings: &settings, busy: &state.reservations };
            if let Some(plan) = planner.manual(level, in_place, range) {
                let id = state.reserve(|id| plan.reservation(id, &self.files.order.keys));
                return Ok(Some((Arc::new(plan), version, id)));
            }
            self.changed.wait(&mut state);
        }
    }
}
