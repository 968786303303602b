//! Removes the tables of ranges.

use std::sync::atomic::Ordering;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::MAX_SEQUENCE;
use crate::base::locks::MutexGuard;
use crate::base::mutation::mutated;
use crate::compaction::limits::one_run_allowance;
use crate::compaction::output::Output;
use crate::compaction::plan::Reservation;
use crate::version::NUM_LEVELS;
use crate::version::edit::VersionEdit;
use crate::version::filename;
use crate::version::version_set::VersionSet;
use std::sync::Arc;

use crate::db::concurrency::footprint::{Footprint, Ranges};
use crate::db::db_impl::DbImpl;
use crate::db::db_impl::background::Background;
use crate::db::db_impl::write_path::commit::Commit;
use crate::db::key_range::{KeyRange, KeyRanges};
use crate::db::range_delete::cut::{Cut, bytes_of};
use crate::db::range_delete::rewrite::Remainders;
use crate::db::range_delete::terms::Terms;
use crate::db::staged::{discard, give_names};
use crate::db::view::View;

/// How often tables are rewritten beside writers, at most, before writers wait for the last ones.
const ATTEMPTS: usize = 4;

/// The reservation of the tables that a range delete removes. They have no output level: what
/// replaces them lies within their keys.
struct Claim<'a> {
    background: &'a Arc<Background>,
    id: u64,
}

impl<'a> Claim<'a> {
    fn new(background: &'a Arc<Background>) -> Self {
        let nothing = |id| Reservation {
            id,
            files: Vec::new(),
            output_level: NUM_LEVELS,
            from: Vec::new(),
            to: Vec::new(),
        };
        let id = background.state.lock().reserve(nothing);
        Claim { background, id }
    }

    /// Reserves every table that has to go now, if no compaction has any of them.
    fn try_extend(&self, ranges: &KeyRanges) -> Option<Cut> {
        let mut state = self.background.state.lock();
        self.extend(&mut state.reservations, ranges)
    }

    /// The same, waiting for compactions, of which those stop that mostly read what has to go.
    fn await_extension(&self, ranges: &KeyRanges) -> Result<Cut> {
        let mut seen = vec![self.id];
        let mut state = self.background.state.lock();
        self.background.retry(&mut state)?;
        loop {
            self.background.check_background(&state)?;
            if let Some(cut) = self.extend(&mut state.reservations, ranges) {
                return Ok(cut);
            }
            let others = state.reservations.iter().filter(|other| !seen.contains(&other.id));
            let others: Vec<_> = others.cloned().collect();
            if others.is_empty() {
                self.background.changed.wait(&mut state);
                continue;
            }
            seen.extend(others.iter().map(|other| other.id));
            drop(state);
            self.stop_compactions(&others, ranges);
            state = self.background.state.lock();
        }
    }

    /// Has those of the compactions stop that mostly read what lies inside the ranges. Manual ones
    /// do not heed it.
    fn stop_compactions(&self, compactions: &[Reservation], ranges: &KeyRanges) {
        let (files, view) = (&self.background.files, self.background.views.current.load_full());
        let is_vain = |compaction: &&Reservation| {
            let inputs = view.version.files().map(|(_, file)| file);
            let inputs = inputs.filter(|file| compaction.files.contains(&file.number));
            let (inside, all) = inputs.fold((0, 0), |(inside, all), file| {
                // One that cannot be opened is the error of those who read it.
                (inside + bytes_of(files, file, ranges).unwrap_or(0), all + file.size)
            });
            inside > all / 2
        };
        let mut stopped = 0;
        for compaction in compactions.iter().filter(is_vain) {
            stopped += usize::from(self.background.state.lock().stop(compaction.id));
        }
        if stopped > 0 {
            // Without a lock: a logger is the program's.
            files.log(format!("compactions stopped for a range delete: {stopped}"));
        }
    }

    /// What the ranges cut out of the present version.
    fn cut(&self, ranges: &KeyRanges) -> Cut {
        let version = &self.background.views.current.load().version;
        Cut::of(version, &self.background.files.order.keys, ranges)
    }

    fn extend(&self, reservations: &mut [Reservation], ranges: &KeyRanges) -> Option<Cut> {
        let cut = self.cut(ranges);
        let numbers = cut.numbers();
        let is_ours = |other: &&mut Reservation| other.id == self.id;
        let is_taken = reservations
            .iter()
            .filter(|other| other.id != self.id)
            .flat_map(|other| &other.files)
            .any(|number| numbers.binary_search(number).is_ok());
        if is_taken && !mutated("range-delete-reserves") {
            return None;
        }
        if let Some(own) = reservations.iter_mut().find(is_ours) {
            own.files = numbers;
        }
        Some(cut)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.background.state.lock().release(self.id);
        self.background.changed.notify_all();
    }
}

/// Removes what is in the ranges, however much it is, durably.
pub(super) fn remove_ranges(core: &DbImpl, ranges: &KeyRanges, terms: &dyn Terms) -> Result<()> {
    let _open = core.background.stay_open()?;
    let _one = core.views.range_deletes.one_at_a_time.lock();
    core.writes.flush()?;
    let removed = core.background.without_compactions(|| {
        let claim = Claim::new(&core.background);
        let mut remainders = Remainders::new(core);
        // Each attempt flushes what was written during the one before, so that little is left for
        // the time when no writer can write.
        for _ in 0..ATTEMPTS {
            let written = remainders.prepare(&claim.await_extension(ranges)?, ranges)?;
            core.writes.flush()?;
            if written <= 1 {
                break;
            }
        }
        loop {
            remainders.prepare(&claim.await_extension(ranges)?, ranges)?;
            if let Some(removed) = install_removal(core, &claim, &mut remainders, ranges, terms)? {
                return Ok(removed);
            }
        }
    })?;
    if removed { hide_obsolete_tables(core) } else { Ok(()) }
}

/// Removes the tables of the ranges with one edit. Returns whether there were any; none, and
/// nothing has happened, if a compaction has got hold of one that came in lately.
fn install_removal(
    core: &DbImpl,
    claim: &Claim<'_>,
    remainders: &mut Remainders<'_>,
    ranges: &KeyRanges,
    terms: &dyn Terms,
) -> Result<Option<bool>> {
    let mut guard = core.writes.commit.lock();
    let footprint = Ranges(|| ranges.iter().map(KeyRange::as_bounds));
    let is_watched = core.writes.control.is_used();
    let mut locks = None;
    if is_watched {
        guard = core.writes.await_locks(guard, &mut locks, &footprint)?;
    }
    let commit = core.writes.usable(&mut guard)?;
    terms.check()?;
    if commit.last_sequence >= MAX_SEQUENCE {
        return Err(Error::not_supported("the sequence numbers of this database are exhausted"));
    }
    // Nothing may be left in a memtable: its log would bring it back.
    core.writes.flush_under_lock(commit)?;
    let Some(cut) = claim.try_extend(ranges) else { return Ok(None) };
    remainders.prepare(&cut, ranges)?;
    let mut versions = core.background.versions.lock();
    versions.prepare()?;
    let keys = &core.files.order.keys;
    if Cut::of(versions.current(), keys, ranges).numbers() != cut.numbers() {
        return Ok(None);
    }
    if cut.files().next().is_none() {
        terms.done();
        return Ok(Some(false));
    }
    let outputs = replace(core, &mut versions, &cut, remainders, commit)?;
    if is_watched {
        footprint.record(&core.writes.control.conflicts, commit.last_sequence + 1);
    }
    publish_removal(core, commit, versions, &cut, &outputs, ranges);
    terms.done();
    drop(guard);
    drop(locks);
    report_removal(core, &cut, &outputs);
    Ok(Some(true))
}

/// Makes the edit durable that puts the remainders of the tables in their place.
fn replace(
    core: &DbImpl,
    versions: &mut VersionSet,
    cut: &Cut,
    remainders: &mut Remainders<'_>,
    commit: &Commit,
) -> Result<Vec<Output>> {
    let (levels, mut staged) = remainders.take(cut);
    let outputs = give_names(core, &mut staged).inspect_err(|_| discard(core, &staged))?;
    let mut edit = VersionEdit { log_number: Some(commit.log_number), ..VersionEdit::default() };
    edit.deleted_files.extend(cut.files().map(|(level, file)| (*level, file.number)));
    edit.new_files.extend(outputs.iter().zip(&levels).map(|(output, &level)| {
        let mut file = output.file.clone();
        file.level = level;
        file
    }));
    // From here on only the MANIFEST knows which tables are part of the database.
    versions.log_and_apply(edit, commit.last_sequence + 1).inspect_err(|_| {
        if !mutated("range-delete-in-doubt") {
            // The next open may find the removal installed, and later than any write until
            // then: none may come before a fresh MANIFEST, without it, does.
            core.logs.suspect.store(true, Ordering::Relaxed);
        }
    })?;
    Ok(outputs)
}

/// Shows the version without the tables to reads, as one step with its sequence number.
fn publish_removal(
    core: &DbImpl,
    commit: &mut Commit,
    versions: MutexGuard<'_, VersionSet>,
    cut: &Cut,
    outputs: &[Output],
    ranges: &KeyRanges,
) {
    let version = versions.current().clone();
    core.background.made_version(&version, outputs);
    let left = version.bytes();
    let sequence = commit.last_sequence + 1;
    let memtable = core.writes.renew_memtable(commit);
    // Snapshots are taken before this or after it.
    let gate = core.views.snapshots.close();
    let mut state = core.background.state.lock();
    core.views.range_deletes.note(ranges, sequence, core.views.snapshots.oldest());
    if !mutated("range-delete-snapshots") {
        core.views.snapshots.keep_view(&core.views.current.load_full(), 0);
    }
    let replaced = core.background.swap_view(&mut state, |view| View {
        memtable,
        immutables: view.immutables.clone(),
        version,
        in_tables: sequence,
    });
    let allowance = one_run_allowance(cut.table_bytes_inside(), left);
    state.range_delete_bytes = state.range_delete_bytes.max(allowance);
    commit.last_sequence = sequence;
    core.views.visible.store(sequence, Ordering::Release);
    drop(gate);
    core.background.update_throttle(&state);
    core.background.schedule(&mut state);
    core.background.changed.notify_all();
    drop(state);
    drop(versions);
    drop(replaced);
    core.logs.sync.flushed(commit.log_number, sequence);
}

fn report_removal(core: &DbImpl, cut: &Cut, outputs: &[Output]) {
    let rewritten = cut.rewritten.len();
    let bytes: u64 = outputs.iter().map(|output| output.file.size).sum();
    core.files.log(format!(
        "deleted a range: {} tables removed, {rewritten} replaced by {} of {bytes} bytes",
        cut.dropped.len(),
        outputs.len()
    ));
}

/// Sees to it that no table that is not part of the database any more has the name of a table,
/// durably. Those without a reader are removed; the others get the name of a temporary file,
/// which the next open, LevelDB's too, removes. Not only those of the range: a reader may keep
/// one that was compacted before and holds entries of it.
fn hide_obsolete_tables(core: &DbImpl) -> Result<()> {
    if mutated("range-delete-hides-tables") {
        return Ok(());
    }
    let present = core.files.obsolete_files.present();
    core.files.purge();
    let hidden = present.iter().try_for_each(|&number| {
        let to = core.files.path(&filename::temp(number));
        for name in [filename::table(number), filename::old_table(number)] {
            match core.files.env.rename(&core.files.path(&name), &to) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                renamed => return renamed,
            }
        }
        Ok(())
    });
    let synced = core.files.sparing(|| core.files.env.sync_dir(&core.files.dir));
    hidden.and(synced).map_err(|error| {
        error.context("the range is deleted, but a repair by LevelDB may bring entries back")
    })
}
