//! Installs finished tables.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{MAX_SEQUENCE, SequenceNumber};
use crate::base::mutation::mutated;
use crate::compaction::output::Output;
use crate::compaction::plan::{LEVEL_0_TRIGGER, Planner, Reservation, level_with_room};
use crate::db::db_impl::{DbImpl, View};
use crate::db::stats::events::Event;
use crate::db::transaction::footprint::{Footprint, Ranges};
use crate::db::write::Commit;
use crate::version::NUM_LEVELS;
use crate::version::edit::VersionEdit;
use crate::version::filename;
use crate::version::version::Version;

use super::staged::Staged;

/// Writes that may be made while a load is in progress before it has to be given a later sequence
/// number, which costs another pass over its entries. A load uses up so many sequence numbers, of
/// which there are 2^56.
pub(super) const WRITES_BESIDE_A_LOAD: SequenceNumber = 1 << 30;

/// Keeps a close waiting while files are written or removed.
pub(in crate::db) struct StayOpen<'a>(&'a DbImpl);

impl Drop for StayOpen<'_> {
    fn drop(&mut self) {
        self.0.state.lock().loading -= 1;
        self.0.changed.notify_all();
    }
}

/// Where tables go.
struct Places {
    levels: Vec<usize>,
    reservations: Vec<u64>,
}

impl DbImpl {
    /// Fails if the database takes no writes, is closed or is being closed, and otherwise keeps it
    /// from being closed for a while.
    pub(in crate::db) fn stay_open(&self) -> Result<StayOpen<'_>> {
        self.check_writable()?;
        self.put_close_off()
    }

    /// Fails if the database is closed or is being closed, and otherwise keeps it from being closed
    /// for a while. Not for a fork.
    pub(in crate::db) fn put_close_off(&self) -> Result<StayOpen<'_>> {
        let mut state = self.state.lock();
        if state.closing {
            return Err(self.closed_error());
        }
        state.loading += 1;
        Ok(StayOpen(self))
    }

    /// Removes tables that will not be installed. Once the database is closed its files are the
    /// next open's.
    pub(in crate::db) fn discard(&self, staged: &[Staged]) {
        if !staged.is_empty()
            && let Ok(_open) = self.stay_open()
        {
            staged.iter().for_each(|staged| staged.discard(self.env.as_ref()));
        }
    }

    /// Reserves a sequence number for a load beside which up to `writes` operations may be
    /// written.
    pub(super) fn reserve_sequence(&self, writes: SequenceNumber) -> Result<SequenceNumber> {
        self.check_writable()?;
        let mut guard = self.commit.lock();
        let commit = self.usable(&mut guard)?;
        let last = commit.last_sequence.max(commit.reserved_sequence);
        let room = MAX_SEQUENCE - last;
        if room == 0 {
            return Err(Error::not_supported(
                "the sequence numbers of this database are exhausted",
            ));
        }
        // The scarcer they are, the fewer are used up.
        commit.reserved_sequence = last + 1 + (room >> 16).min(writes);
        Ok(commit.reserved_sequence)
    }

    /// Makes `staged`, which ascend and are disjoint, part of the database. Their entries bear
    /// `sequence`. False, and nothing has happened, if a write has got that number or a later one;
    /// `staged` is empty otherwise.
    pub(super) fn install(
        self: &Arc<Self>,
        staged: &mut Vec<Staged>,
        sequence: SequenceNumber,
        user_bytes: u64,
    ) -> Result<bool> {
        self.make_way(staged)?;
        self.install_staged(staged, Some(sequence), user_bytes)
    }

    /// The same for tables whose entries bear the sequence number 0. False if they would be seen by
    /// a snapshot, or if there is anything between their first and last keys.
    pub(super) fn install_oldest(
        self: &Arc<Self>,
        staged: &mut Vec<Staged>,
        user_bytes: u64,
    ) -> Result<bool> {
        self.flush()?;
        self.install_staged(staged, None, user_bytes)
    }

    /// Whether the database has nothing in the ranges, and no snapshot.
    pub(super) fn may_be_oldest<'a>(
        &self,
        mut ranges: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> bool {
        let version = self.view.load().version.clone();
        let is_free = |(from, to)| {
            (0..NUM_LEVELS).all(|level| !version.overlaps_level(&self.order.keys, level, from, to))
        };
        self.snapshots.count() == 0 && ranges.all(is_free)
    }

    fn install_staged(
        self: &Arc<Self>,
        staged: &mut Vec<Staged>,
        sequence: Option<SequenceNumber>,
        user_bytes: u64,
    ) -> Result<bool> {
        let mut guard = self.commit.lock();
        let is_watched = self.control.is_used();
        let mut locks = None;
        if is_watched {
            let ranges = Ranges(|| staged.iter().map(|staged| included(staged.user_keys())));
            guard = self.await_locks(guard, &mut locks, &ranges)?;
        }
        let commit = self.usable(&mut guard)?;
        if sequence.is_some_and(|sequence| commit.last_sequence >= sequence) {
            return Ok(false);
        }
        // Nothing may be left in a memtable: its log would come before a gap in the sequence
        // numbers.
        self.flush_under_lock(commit)?;

        let mut versions = self.versions.lock();
        versions.prepare()?;
        if sequence.is_none() && !self.may_be_oldest(staged.iter().map(Staged::user_keys)) {
            return Ok(false);
        }
        let places = self.place_load(versions.current(), staged);
        // Reads in a snapshot that is taken until the tables are seen would see them appear.
        let no_snapshot = if sequence.is_none() { self.snapshots.keep_none() } else { None };
        if sequence.is_none() && no_snapshot.is_none() {
            let mut state = self.state.lock();
            places.reservations.iter().for_each(|&id| state.release(id));
            self.changed.notify_all();
            return Ok(false);
        }
        let last_sequence = sequence.unwrap_or(commit.last_sequence);
        let result = self.give_names(staged).and_then(|tables| {
            // From here on nobody but the MANIFEST knows whether the tables are part of the
            // database.
            staged.clear();
            let mut edit =
                VersionEdit { log_number: Some(commit.log_number), ..VersionEdit::default() };
            edit.new_files.extend(tables.iter().zip(&places.levels).map(|(table, &level)| {
                let mut file = table.file.clone();
                file.level = level;
                file
            }));
            versions.log_and_apply(edit, last_sequence).map(|version| (version, tables))
        });
        if let Ok((version, tables)) = &result {
            self.made_version(version, tables);
        }
        let mut state = self.state.lock();
        places.reservations.iter().for_each(|&id| state.release(id));
        // A manual compaction may be waiting for them, whatever came of this.
        self.changed.notify_all();
        if result.is_err() && staged.is_empty() && !mutated("load-in-doubt") {
            // The next open may find the tables installed, and later than any write until then:
            // none may come before a fresh MANIFEST, without them, does.
            self.log_suspect.store(true, Ordering::Relaxed);
        }
        let (version, tables) = result?;
        if is_watched {
            let ranges = Ranges(|| tables.iter().map(|table| included(table.user_keys())));
            ranges.record(&self.control.conflicts, last_sequence);
        }
        if !mutated("loads-in-deleted-ranges") {
            self.deleted_ranges.clear();
        }
        // A reader that has got hold of the view from before must not see what is written after the
        // load without the load.
        let memtable = self.renew_memtable(commit);
        let replaced = self.swap_view(&mut state, |view| View {
            memtable,
            immutables: view.immutables.clone(),
            version,
            in_tables: last_sequence,
        });
        commit.last_sequence = last_sequence;
        self.visible.store(last_sequence, Ordering::Release);
        if sequence.is_none() {
            // After the swap: a read that knows of this ingest has a view with it.
            self.control.ingests.fetch_add(1, Ordering::Release);
        }
        drop(no_snapshot);
        self.update_throttle(&state);
        self.schedule(&mut state);
        self.changed.notify_all();
        drop(state);
        drop(versions);
        drop(replaced);
        self.log_sync.flushed(commit.log_number, last_sequence);
        let mut rest = user_bytes;
        for (table, &level) in tables.iter().zip(&places.levels) {
            self.counters.record_load(level, std::mem::take(&mut rest), table.file.size);
        }
        drop(guard);
        self.report_load(&tables, &places.levels);
        Ok(true)
    }

    /// Writes memtables out before the commit lock is held for long, and compacts what would
    /// pile the tables up in level 0.
    fn make_way(self: &Arc<Self>, staged: &[Staged]) -> Result<()> {
        self.flush()?;
        let version = self.view.load().version.clone();
        let settings = self.plan_settings(false);
        let planner = Planner { version: &version, settings: &settings, busy: &[] };
        let blocked = staged.iter().filter(|staged| {
            let (from, to) = staged.user_keys();
            planner.level_for(from, to, 1) == 0
        });
        if blocked.count() < LEVEL_0_TRIGGER {
            return Ok(());
        }
        match hull(staged.iter()) {
            Some((from, to)) => self.clear_upper_levels(from, to),
            None => Ok(()),
        }
    }

    /// Writes every memtable out while nobody can write.
    pub(in crate::db) fn flush_under_lock(self: &Arc<Self>, commit: &mut Commit) -> Result<()> {
        let earlier = self.state.lock().attempts();
        if self.log_suspect.load(Ordering::Relaxed) {
            self.leave_suspect_log(commit)?;
        }
        if !commit.memtable.table().is_empty() {
            self.wait_for_queue()?;
            self.switch_memtable(commit)?;
        }
        self.await_flushes(&mut self.state.lock(), earlier, |state| state.immutables.is_empty())
            .map(drop)
    }

    /// Chooses a level for each table and keeps compactions from writing there.
    fn place_load(&self, version: &Version, staged: &[Staged]) -> Places {
        let bytes = staged.iter().map(|staged| staged.table.file.size).sum();
        let deepest = level_with_room(version, bytes);
        let settings = self.plan_settings(false);
        let mut state = self.state.lock();
        let planner = Planner { version, settings: &settings, busy: &state.reservations };
        let level_of = |staged: &Staged| {
            let (from, to) = staged.user_keys();
            planner.level_for(from, to, deepest)
        };
        let levels: Vec<_> = staged.iter().map(level_of).collect();
        let mut reservations = Vec::new();
        for level in 0..NUM_LEVELS {
            let there = staged
                .iter()
                .zip(&levels)
                .filter(|(_, placed)| **placed == level)
                .map(|(staged, _)| staged);
            if let Some((from, to)) = hull(there) {
                let (from, to) = (from.to_vec(), to.to_vec());
                reservations.push(state.reserve(|id| Reservation {
                    id,
                    files: Vec::new(),
                    output_level: level,
                    from,
                    to,
                }));
            }
        }
        Places { levels, reservations }
    }

    /// Gives the tables their names, durably. The numbers are new: within level 0 the greater one
    /// is the newer table, and recovery tells tables that a damaged end of the MANIFEST may have
    /// named by numbers that it has not recorded.
    ///
    /// A link may have an unrecorded number here, unlike a temporary name: the logs hold no writes,
    /// so LevelDB makes no table in its recovery, and then removes those that the MANIFEST does not
    /// name before it makes any.
    pub(in crate::db) fn give_names(&self, staged: &mut [Staged]) -> Result<Vec<Output>> {
        for staged in staged.iter_mut() {
            let number = self.numbers.take();
            let path = self.path(&filename::table(number));
            self.env.rename(&staged.path, &path)?;
            staged.path = path;
            staged.table.file.number = number;
        }
        self.sparing(|| self.env.sync_dir(&self.dir))?;
        Ok(staged.iter().map(|staged| staged.table.clone()).collect())
    }

    fn report_load(&self, tables: &[Output], levels: &[usize]) {
        let bytes = tables.iter().map(|table| table.file.size).sum();
        let entries = tables.iter().map(|table| table.contents.entries).sum();
        let (first, last) =
            (levels.iter().min().copied().unwrap_or(0), levels.iter().max().copied().unwrap_or(0));
        self.log(format!(
            "loaded {entries} entries, {} tables, {bytes} bytes, at levels {first} to {last}",
            tables.len()
        ));
        self.tell(&Event::LoadFinished { tables: tables.len(), entries, bytes });
    }
}

/// The range between two keys that are part of it.
fn included<'k>((from, to): (&'k [u8], &'k [u8])) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    (Bound::Included(from), Bound::Included(to))
}

/// The user keys between which ascending tables lie.
fn hull<'a>(mut staged: impl Iterator<Item = &'a Staged>) -> Option<(&'a [u8], &'a [u8])> {
    let (from, to) = staged.next()?.user_keys();
    Some((from, staged.last().map_or(to, |staged| staged.user_keys().1)))
}
