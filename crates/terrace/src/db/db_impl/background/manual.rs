//! Manual compactions. Each is a sequence of steps of bounded size, between and beside which
//! automatic compactions go on ([`turns`](super::turns)).

use std::sync::Arc;
use std::thread;

use crate::base::error::{ErrorKind, Result};
use crate::base::mutation::mutated;
use crate::compaction::inputs::Planner;
use crate::compaction::plan::Plan;
use crate::compaction::planner::ManualRange;
use crate::version::NUM_LEVELS;
use crate::version::version::{Version, key_range};

use crate::db::db_impl::background::Background;
use crate::db::db_impl::background::state::State;
use crate::db::db_impl::background::turns::Automatic;

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

/// The next step, its version, and its reservation.
type Step<'a> = (Arc<Plan>, Arc<Version>, Reserved<'a>);

// All of these go also when a listener or a comparator of the program's panics: a close would wait
// for ever.

/// Has a close wait, and automatic compactions give way.
struct Manual<'a> {
    background: &'a Arc<Background>,
    /// Whether no automatic compaction begins.
    is_removal: bool,
}

impl<'a> Manual<'a> {
    fn begin(background: &'a Arc<Background>, is_removal: bool) -> Self {
        let mut state = background.state.lock();
        state.manual.running += 1;
        state.manual.removals += usize::from(is_removal);
        drop(state);
        Manual { background, is_removal }
    }
}

impl Drop for Manual<'_> {
    fn drop(&mut self) {
        let mut state = self.background.state.lock();
        state.manual.running -= 1;
        state.manual.removals -= usize::from(self.is_removal);
        let allowed = state.manual.allowed(false);
        self.background.go_on(&mut state, allowed);
        drop(state);
        self.background.files.purge();
    }
}

/// Keeps automatic compactions from taking files of a range deeper than a level.
struct Floor<'a> {
    background: &'a Arc<Background>,
    id: u64,
}

impl Drop for Floor<'_> {
    fn drop(&mut self) {
        self.background.state.lock().manual.lift_floor(self.id);
    }
}

/// A step that waits for compactions that are in the way.
struct Waiting<'a> {
    background: &'a Arc<Background>,
    ticket: u64,
}

impl<'a> Waiting<'a> {
    fn begin(background: &'a Arc<Background>, level: usize) -> Self {
        let ticket = background.state.lock().manual.wait(level);
        Waiting { background, ticket }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.background.state.lock();
        state.manual.end_wait(self.ticket);
        let allowed = state.manual.allowed(false);
        self.background.go_on(&mut state, allowed);
    }
}

/// Keeps others away from files and key ranges. Behind it automatic compactions have a turn.
struct Reserved<'a> {
    background: &'a Arc<Background>,
    id: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut state = self.background.state.lock();
        state.release(self.id);
        let allowed = match mutated("automatic-turns") {
            true => Automatic::None,
            false => state.manual.allowed(true),
        };
        self.background.go_on(&mut state, allowed);
    }
}

impl Background {
    /// Starts the work that is due, of automatic compactions what is `allowed`, and wakes those who
    /// wait. A comparator that has panicked must not do so in here as well.
    fn go_on(self: &Arc<Self>, state: &mut State, allowed: Automatic) {
        if !thread::panicking() {
            self.schedule_allowed(state, allowed);
        }
        self.changed.notify_all();
    }

    /// Compacts the tables of a range level by level down to the deepest one that holds any of it.
    /// Runs on the caller's thread.
    pub(in crate::db) fn compact_range(
        self: &Arc<Self>,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
        options: CompactOptions,
    ) -> Result<()> {
        let _manual = Manual::begin(self, false);
        self.compact_levels(from, to, options)
    }

    /// Compacts level 0 and then level 1 downwards where they have anything of a range.
    pub(in crate::db) fn clear_upper_levels(
        self: &Arc<Self>,
        from: &[u8],
        to: &[u8],
    ) -> Result<()> {
        let _manual = Manual::begin(self, false);
        (0..2).try_for_each(|level| self.compact_level(level, false, Some(from), Some(to)))
    }

    /// Does work that automatic compactions wait for.
    pub(in crate::db) fn without_compactions<T>(
        self: &Arc<Self>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let _manual = Manual::begin(self, true);
        work()
    }

    fn compact_levels(
        self: &Arc<Self>,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
        options: CompactOptions,
    ) -> Result<()> {
        let Some((deepest, _floor)) = self.lay_floor(from, to) else { return Ok(()) };
        for level in 0..deepest {
            self.compact_level(level, false, from, to)?;
        }
        // Tombstones that arrived at the bottom without a compaction hide nothing there. Deeper may lie
        // what writers have brought since, behind the last key that was there.
        let version = self.views.current.load().version.clone();
        let has_tombstones = version
            .overlapping(&self.files.order.keys, deepest, from, to)
            .iter()
            .any(|file| file.contents().is_some_and(|contents| contents.deletions > 0));
        match has_tombstones || options.force {
            true => self.compact_level(deepest, true, from, to),
            false => Ok(()),
        }
    }

    /// The deepest level that will hold anything of a range, and what keeps automatic compactions
    /// from taking it deeper: older entries would be there, below newer ones that stay. None if no
    /// table overlaps the range.
    fn lay_floor(
        self: &Arc<Self>,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Option<(usize, Floor<'_>)> {
        let keys = &self.files.order.keys;
        // No compaction begins in between.
        let mut state = self.state.lock();
        let version = self.views.current.load().version.clone();
        let levels: Vec<_> =
            (0..NUM_LEVELS).map(|level| version.overlapping(keys, level, from, to)).collect();
        let deepest = levels.iter().rposition(|files| !files.is_empty())?.max(1);
        let (least, greatest) = key_range(keys, levels.iter().flatten())?;
        // Compactions in progress may bring some of it deeper.
        let written = state.reservations.iter().filter(|other| {
            other.output_level < NUM_LEVELS
                && keys.compare(&other.from, &greatest).is_le()
                && keys.compare(&other.to, &least).is_ge()
        });
        let deepest = written.map(|other| other.output_level).fold(deepest, usize::max);
        let id = state.manual.lay_floor(deepest + 1, least, greatest);
        Some((deepest, Floor { background: self, id }))
    }

    fn compact_level(
        self: &Arc<Self>,
        level: usize,
        in_place: bool,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<()> {
        let keys = &self.files.order.keys;
        let all = ManualRange { from, to, reached: None };
        let mut reached: Option<Vec<u8>> = None;
        for end in self.manual_steps(level, in_place, &all) {
            let is_done = match (&reached, &end) {
                (Some(reached), Some(end)) => keys.compare(reached, end).is_ge(),
                _ => false,
            };
            if is_done {
                continue;
            }
            let range = ManualRange { from, to: end.as_deref(), reached: reached.as_deref() };
            let Some((plan, version, reserved)) = self.plan_step(level, in_place, &range)? else {
                continue;
            };
            let ends = plan.inputs[0].iter().map(|file| file.largest_user_key());
            reached = ends.max_by(|a, b| keys.compare(a, b)).map(<[u8]>::to_vec);
            let result = self.sparing(|| self.compact(&plan, &version, reserved.id));
            // The inputs' space is free before the next compaction needs some.
            drop((plan, version));
            self.files.purge();
            drop(reserved);
            if matches!(&result, Err(error) if error.kind() == ErrorKind::Busy)
                && self.state.lock().closing
            {
                return Err(self.files.closed_error());
            }
            if let Err(error) = &result
                && self.files.options.paranoid_checks
                && error.kind() == ErrorKind::Corruption
            {
                self.fail(&mut self.state.lock(), error, false);
            }
            result?;
        }
        Ok(())
    }

    fn manual_steps(
        &self,
        level: usize,
        in_place: bool,
        range: &ManualRange<'_>,
    ) -> Vec<Option<Vec<u8>>> {
        let version = self.views.current.load().version.clone();
        let settings = self.plan_settings(false, 0);
        let planner = Planner { version: &version, settings: &settings, busy: &[] };
        planner.manual_steps(level, in_place, range)
    }

    /// Plans a step, waiting for compactions that are in the way.
    fn plan_step(
        self: &Arc<Self>,
        level: usize,
        in_place: bool,
        range: &ManualRange<'_>,
    ) -> Result<Option<Step<'_>>> {
        // Ends behind the lock.
        let waiting = Waiting::begin(self, level);
        let mut state = self.state.lock();
        self.retry(&mut state)?;
        loop {
            self.check_background(&state)?;
            if state.manual.is_first(waiting.ticket) {
                let version = self.views.current.load().version.clone();
                if range.files(&version, &self.files.order.keys, level).is_empty() {
                    return Ok(None);
                }
                let settings = self.plan_settings(false, 0);
                let planner =
                    Planner { version: &version, settings: &settings, busy: &state.reservations };
                if let Some(plan) = planner.manual(level, in_place, range) {
                    let id = state.reserve(|id| plan.reservation(id, &self.files.order.keys));
                    let reserved = Reserved { background: self, id };
                    return Ok(Some((Arc::new(plan), version, reserved)));
                }
            }
            self.changed.wait(&mut state);
        }
    }
}
