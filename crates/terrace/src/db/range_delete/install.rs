//! Removes the tables of ranges.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::MAX_SEQUENCE;
use crate::base::locks::MutexGuard;
use crate::base::mutation::mutated;
use crate::compaction::output::Output;
use crate::compaction::plan::Reservation;
use crate::db::db_impl::{DbImpl, View};
use crate::db::transaction::footprint::{Footprint, Ranges};
use crate::db::write::Commit;
use crate::version::NUM_LEVELS;
use crate::version::edit::VersionEdit;
use crate::version::filename;
use crate::version::version_set::VersionSet;

use super::Terms;
use super::cut::Cut;
use super::key_range::{KeyRange, KeyRanges};
use super::rewrite::Remainders;

/// The reservation of the tables that a range delete removes. They have no output level: what
/// replaces them lies within their keys.
struct Claim<'a> {
    core: &'a Arc<DbImpl>,
    id: u64,
}

impl<'a> Claim<'a> {
    fn new(core: &'a Arc<DbImpl>) -> Self {
        let nothing = |id| Reservation {
            id,
            files: Vec::new(),
            output_level: NUM_LEVELS,
            from: Vec::new(),
            to: Vec::new(),
        };
        let id = core.state.lock().reserve(nothing);
        Claim { core, id }
    }

    /// Reserves every table that has to go now, if no compaction has any of them.
    fn try_extend(&self, ranges: &KeyRanges) -> Option<Cut> {
        let mut state = self.core.state.lock();
        self.extend(&mut state.reservations, ranges)
    }

    /// The same, waiting for compactions.
    fn await_extension(&self, ranges: &KeyRanges) -> Result<Cut> {
        let mut state = self.core.state.lock();
        self.core.retry(&mut state)?;
        loop {
            self.core.check_background(&state)?;
            if let Some(cut) = self.extend(&mut state.reservations, ranges) {
                return Ok(cut);
            }
            self.core.changed.wait(&mut state);
        }
    }

    fn extend(&self, reservations: &mut [Reservation], ranges: &KeyRanges) -> Option<Cut> {
        let cut = Cut::of(&self.core.view.load().version, &self.core.order.keys, ranges);
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
        self.core.state.lock().release(self.id);
        self.core.changed.notify_all();
    }
}

impl DbImpl {
    /// Removes what is in the ranges, however much it is, durably.
    pub(super) fn remove_ranges(
        self: &Arc<Self>,
        ranges: &KeyRanges,
        terms: &dyn Terms,
    ) -> Result<()> {
        let _open = self.stay_open()?;
        let _one = self.range_deletes.one_at_a_time.lock();
        self.flush()?;
        let removed = self.manually(|| {
            let claim = Claim::new(self);
            let mut remainders = Remainders::new(self);
            remainders.prepare(&claim.await_extension(ranges)?, ranges)?;
            // What was written meanwhile, so that little is left for when nobody can write.
            self.flush()?;
            loop {
                remainders.prepare(&claim.await_extension(ranges)?, ranges)?;
                if let Some(removed) =
                    self.install_removal(&claim, &mut remainders, ranges, terms)?
                {
                    return Ok(removed);
                }
            }
        })?;
        if removed { self.hide_obsolete_tables() } else { Ok(()) }
    }

    /// Removes the tables of the ranges with one edit. Returns whether there were any; none, and
    /// nothing has happened, if a compaction has got hold of one that came in lately.
    fn install_removal(
        self: &Arc<Self>,
        claim: &Claim<'_>,
        remainders: &mut Remainders<'_>,
        ranges: &KeyRanges,
        terms: &dyn Terms,
    ) -> Result<Option<bool>> {
        let mut guard = self.commit.lock();
        let footprint = Ranges(|| ranges.iter().map(KeyRange::as_bounds));
        let is_watched = self.control.is_used();
        let mut locks = None;
        if is_watched {
            guard = self.await_locks(guard, &mut locks, &footprint)?;
        }
        let commit = self.usable(&mut guard)?;
        terms.check()?;
        if commit.last_sequence >= MAX_SEQUENCE {
            return Err(Error::not_supported(
                "the sequence numbers of this database are exhausted",
            ));
        }
        // Nothing may be left in a memtable: its log would bring it back.
        self.flush_under_lock(commit)?;
        let Some(cut) = claim.try_extend(ranges) else { return Ok(None) };
        remainders.prepare(&cut, ranges)?;
        let mut versions = self.versions.lock();
        versions.prepare()?;
        let keys = &self.order.keys;
        if Cut::of(versions.current(), keys, ranges).numbers() != cut.numbers() {
            return Ok(None);
        }
        if cut.files().next().is_none() {
            terms.done();
            return Ok(Some(false));
        }
        let outputs = self.replace(&mut versions, &cut, remainders, commit)?;
        if is_watched {
            footprint.record(&self.control.conflicts, commit.last_sequence + 1);
        }
        self.publish_removal(commit, versions, &outputs, ranges);
        terms.done();
        drop(guard);
        drop(locks);
        self.report_removal(&cut, &outputs);
        Ok(Some(true))
    }

    /// Makes the edit durable that puts the remainders of the tables in their place.
    fn replace(
        &self,
        versions: &mut VersionSet,
        cut: &Cut,
        remainders: &mut Remainders<'_>,
        commit: &Commit,
    ) -> Result<Vec<Output>> {
        let (levels, mut staged) = remainders.take(cut);
        let outputs = self.give_names(&mut staged).inspect_err(|_| self.discard(&staged))?;
        let mut edit =
            VersionEdit { log_number: Some(commit.log_number), ..VersionEdit::default() };
        edit.deleted_files.extend(cut.files().map(|(level, file)| (*level, file.number)));
        edit.new_files.extend(outputs.iter().zip(&levels).map(|(output, &level)| {
            let mut file = output.file.clone();
            file.level = level;
            file
        }));
        // From here on nobody but the MANIFEST knows which tables are part of the database.
        versions.log_and_apply(edit, commit.last_sequence + 1).inspect_err(|_| {
            if !mutated("range-delete-in-doubt") {
                // The next open may find the removal installed, and later than any write until
                // then: none may come before a fresh MANIFEST, without it, does.
                self.log_suspect.store(true, Ordering::Relaxed);
            }
        })?;
        Ok(outputs)
    }

    /// Shows the version without the tables to reads, as one step with its sequence number.
    fn publish_removal(
        self: &Arc<Self>,
        commit: &mut Commit,
        versions: MutexGuard<'_, VersionSet>,
        outputs: &[Output],
        ranges: &KeyRanges,
    ) {
        let version = versions.current().clone();
        self.made_version(&version, outputs);
        let sequence = commit.last_sequence + 1;
        let memtable = self.renew_memtable(commit);
        // Snapshots are taken before this or after it.
        let gate = self.snapshots.close();
        let mut state = self.state.lock();
        self.range_deletes.note(ranges, sequence, self.snapshots.oldest());
        if !mutated("range-delete-snapshots") {
            self.snapshots.keep_view(&self.view.load_full(), 0);
        }
        let replaced = self.swap_view(&mut state, |view| View {
            memtable,
            immutables: view.immutables.clone(),
            version,
            in_tables: sequence,
        });
        commit.last_sequence = sequence;
        self.visible.store(sequence, Ordering::Release);
        drop(gate);
        self.update_throttle(&state);
        self.schedule(&mut state);
        self.changed.notify_all();
        drop(state);
        drop(versions);
        drop(replaced);
        self.log_sync.flushed(commit.log_number, sequence);
    }

    fn report_removal(&self, cut: &Cut, outputs: &[Output]) {
        let rewritten = cut.rewritten.len();
        let bytes: u64 = outputs.iter().map(|output| output.file.size).sum();
        self.log(format!(
            "deleted a range: {} tables removed, {rewritten} replaced by {} of {bytes} bytes",
            cut.dropped.len(),
            outputs.len()
        ));
    }

    /// Sees to it that no table that is not part of the database any more has the name of a table,
    /// durably. Those that nobody reads are removed; the others get the name of a temporary file,
    /// which the next open, LevelDB's too, removes. Not only those of the range: a reader may keep
    /// one that was compacted before and holds entries of it.
    fn hide_obsolete_tables(&self) -> Result<()> {
        if mutated("range-delete-hides-tables") {
            return Ok(());
        }
        let present = self.obsolete_files.present();
        self.purge();
        let hidden = present.iter().try_for_each(|&number| {
            let to = self.path(&filename::temp(number));
            for name in [filename::table(number), filename::old_table(number)] {
                match self.env.rename(&self.path(&name), &to) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    renamed => return renamed,
                }
            }
            Ok(())
        });
        let synced = self.sparing(|| self.env.sync_dir(&self.dir));
        hidden.and(synced).map_err(|error| {
            error.context("the range is deleted, but a repair by LevelDB may bring entries back")
        })
    }
}
