//! Installs finished tables.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::base::internal_key::SequenceNumber;
use crate::base::mutation::mutated;
use crate::compaction::inputs::Planner;
use crate::compaction::limits::{LEVEL_0_TRIGGER, level_with_room};
use crate::compaction::output::Output;
use crate::compaction::plan::Reservation;
use crate::version::NUM_LEVELS;
use crate::version::edit::VersionEdit;
use crate::version::version::Version;
use crate::version::version_set::VersionSet;

use crate::db::concurrency::footprint::{Footprint, Ranges};
use crate::db::db_impl::DbImpl;
use crate::db::db_impl::background::state::State;
use crate::db::db_impl::write_path::commit::Commit;
use crate::db::options::events::Event;
use crate::db::staged::{Staged, give_names};
use crate::db::view::View;

/// Writes that may be made while a load is in progress before it has to be given a later sequence
/// number, which costs another pass over its entries. A load uses up so many sequence numbers, of
/// which there are 2^56.
pub(super) const WRITES_BESIDE_A_LOAD: SequenceNumber = 1 << 30;

/// Where tables go.
struct Places {
    levels: Vec<usize>,
    reservations: Vec<u64>,
}

impl Places {
    fn release(&self, core: &DbImpl, state: &mut State) {
        self.reservations.iter().for_each(|&id| state.release(id));
        // A manual compaction may be waiting for them.
        core.background.changed.notify_all();
    }
}

/// Makes `staged`, which ascend and are disjoint, part of the database. Their entries bear
/// `sequence`. False, and nothing has happened, if a write has got that number or a later one;
/// `staged` is empty otherwise.
pub(super) fn install(
    core: &DbImpl,
    staged: &mut Vec<Staged>,
    sequence: SequenceNumber,
    user_bytes: u64,
) -> Result<bool> {
    make_way(core, staged)?;
    install_staged(core, staged, Some(sequence), user_bytes)
}

/// The same for tables whose entries bear the sequence number 0. False if they would be seen by
/// a snapshot, or if there is anything between their first and last keys.
pub(super) fn install_oldest(
    core: &DbImpl,
    staged: &mut Vec<Staged>,
    user_bytes: u64,
) -> Result<bool> {
    core.writes.flush()?;
    install_staged(core, staged, None, user_bytes)
}

/// Whether the database has nothing in the ranges, and no snapshot.
pub(super) fn may_be_oldest<'a>(
    core: &DbImpl,
    mut ranges: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> bool {
    let version = core.views.current.load().version.clone();
    let is_free = |(from, to)| {
        (0..NUM_LEVELS)
            .all(|level| !version.overlaps_level(&core.files.order.keys, level, from, to))
    };
    core.views.snapshots.count() == 0 && ranges.all(is_free)
}

fn install_staged(
    core: &DbImpl,
    staged: &mut Vec<Staged>,
    sequence: Option<SequenceNumber>,
    user_bytes: u64,
) -> Result<bool> {
    let mut guard = core.writes.commit.lock();
    let is_watched = core.writes.control.is_used();
    let mut locks = None;
    if is_watched {
        let ranges = Ranges(|| staged.iter().map(|staged| included(staged.user_keys())));
        guard = core.writes.await_locks(guard, &mut locks, &ranges)?;
    }
    let commit = core.writes.usable(&mut guard)?;
    if sequence.is_some_and(|sequence| commit.last_sequence >= sequence) {
        return Ok(false);
    }
    // Nothing may be left in a memtable: its log would end before sequence numbers that are
    // skipped.
    core.writes.flush_under_lock(commit)?;

    let mut versions = core.background.versions.lock();
    versions.prepare()?;
    if sequence.is_none() && !may_be_oldest(core, staged.iter().map(Staged::user_keys)) {
        return Ok(false);
    }
    let places = place_load(core, versions.current(), staged);
    // Reads in a snapshot that is taken until the tables are seen would see them appear.
    let no_snapshot = if sequence.is_none() { core.views.snapshots.keep_none() } else { None };
    if sequence.is_none() && no_snapshot.is_none() {
        places.release(core, &mut core.background.state.lock());
        return Ok(false);
    }
    let last_sequence = sequence.unwrap_or(commit.last_sequence);
    let result =
        log_load(core, &mut versions, staged, &places.levels, (commit.log_number, last_sequence));
    if let Ok((version, tables)) = &result {
        core.background.made_version(version, tables);
    }
    // A snapshot that is taken while they are seen and their number is not would be older than reads
    // before it.
    let gate = sequence.is_some().then(|| core.views.snapshots.close());
    let mut state = core.background.state.lock();
    places.release(core, &mut state);
    if result.is_err() && staged.is_empty() && !mutated("load-in-doubt") {
        // The next open may find the tables installed, and later than any write until then:
        // none may come before a fresh MANIFEST, without them, does.
        core.logs.suspect.store(true, Ordering::Relaxed);
    }
    let (version, tables) = result?;
    if is_watched {
        let ranges = Ranges(|| tables.iter().map(|table| included(table.user_keys())));
        ranges.record(&core.writes.control.conflicts, last_sequence);
    }
    let replaced = publish_load(core, commit, &mut state, version, last_sequence);
    if sequence.is_none() {
        // After the swap: a read that knows of this ingest has a view with it.
        core.views.ingests.fetch_add(1, Ordering::Release);
    }
    drop((no_snapshot, gate));
    core.background.update_throttle(&state);
    core.background.schedule(&mut state);
    core.background.changed.notify_all();
    drop(state);
    drop(versions);
    drop(replaced);
    core.logs.sync.flushed(commit.log_number, last_sequence);
    let mut rest = user_bytes;
    for (table, &level) in tables.iter().zip(&places.levels) {
        core.background.counters.record_load(level, std::mem::take(&mut rest), table.file.size);
    }
    drop(guard);
    report_load(core, &tables, &places.levels);
    Ok(true)
}

/// Gives the tables their names and makes the edit durable that adds them to `levels`, with the
/// present log's number and the last sequence number. `staged` is empty once the edit may be part
/// of the MANIFEST.
fn log_load(
    core: &DbImpl,
    versions: &mut VersionSet,
    staged: &mut Vec<Staged>,
    levels: &[usize],
    (log_number, last_sequence): (u64, SequenceNumber),
) -> Result<(Arc<Version>, Vec<Output>)> {
    let tables = give_names(core, staged)?;
    // From here on only the MANIFEST knows whether the tables are part of the database.
    staged.clear();
    let mut edit = VersionEdit { log_number: Some(log_number), ..VersionEdit::default() };
    edit.new_files.extend(tables.iter().zip(levels).map(|(table, &level)| {
        let mut file = table.file.clone();
        file.level = level;
        file
    }));
    Ok((versions.log_and_apply(edit, last_sequence)?, tables))
}

/// Shows the version with the tables to reads. Returns the view from before.
fn publish_load(
    core: &DbImpl,
    commit: &mut Commit,
    state: &mut State,
    version: Arc<Version>,
    last_sequence: SequenceNumber,
) -> Arc<View> {
    if !mutated("loads-in-deleted-ranges") {
        core.views.deleted_ranges.clear();
    }
    // A reader that has got hold of the view from before must not see what is written after the
    // load without the load.
    let memtable = core.writes.renew_memtable(commit);
    let replaced = core.background.swap_view(state, |view| View {
        memtable,
        immutables: view.immutables.clone(),
        version,
        in_tables: last_sequence,
    });
    commit.last_sequence = last_sequence;
    core.views.visible.store(last_sequence, Ordering::Release);
    replaced
}

/// Writes memtables out before the commit lock is held for long, and compacts what would
/// pile the tables up in level 0.
fn make_way(core: &DbImpl, staged: &[Staged]) -> Result<()> {
    core.writes.flush()?;
    let version = core.views.current.load().version.clone();
    let settings = core.background.plan_settings(false, 0);
    let planner = Planner { version: &version, settings: &settings, busy: &[] };
    let blocked = staged.iter().filter(|staged| {
        let (from, to) = staged.user_keys();
        planner.level_for(from, to, 1) == 0
    });
    if blocked.count() < LEVEL_0_TRIGGER {
        return Ok(());
    }
    match hull(staged.iter()) {
        Some((from, to)) => core.background.clear_upper_levels(from, to),
        None => Ok(()),
    }
}

/// Chooses a level for each table and keeps compactions from writing there.
fn place_load(core: &DbImpl, version: &Version, staged: &[Staged]) -> Places {
    let bytes = staged.iter().map(|staged| staged.table.file.size).sum();
    let deepest = level_with_room(version, bytes);
    let settings = core.background.plan_settings(false, 0);
    let mut state = core.background.state.lock();
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

fn report_load(core: &DbImpl, tables: &[Output], levels: &[usize]) {
    let bytes = tables.iter().map(|table| table.file.size).sum();
    let entries = tables.iter().map(|table| table.contents.entries).sum();
    let (first, last) =
        (levels.iter().min().copied().unwrap_or(0), levels.iter().max().copied().unwrap_or(0));
    core.files.log(format!(
        "loaded {entries} entries, {} tables, {bytes} bytes, at levels {first} to {last}",
        tables.len()
    ));
    core.files.tell(&Event::LoadFinished { tables: tables.len(), entries, bytes });
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
