//! Flushes: an immutable memtable is written to a table of level 0, or of a deeper level that has
//! nothing in its range.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, Result};
use crate::base::internal_key::user_key;
use crate::base::mutation::mutated;
use crate::compaction::drop_rules::DropRules;
use crate::compaction::inputs::{DEEPEST_FLUSH_LEVEL, Planner};
use crate::compaction::output::{Output, OutputSettings};
use crate::compaction::plan::Reservation;
use crate::memtable::MemTable;
use crate::version::NUM_LEVELS;
use crate::version::edit::VersionEdit;
use crate::version::filename;
use crate::version::version::Version;

use crate::db::db_impl::background::Background;
use crate::db::db_impl::background::failure::caught;
use crate::db::db_impl::background::state::Immutable;
use crate::db::db_impl::background::write_memtable::write_memtable;
use crate::db::options::events::Event;
use crate::db::view::View;

/// A flush of more than this stops when the database closes.
const CANCELLABLE_BYTES: usize = 32 << 20;

impl Background {
    pub(in crate::db) fn flush_job(self: &Arc<Self>) {
        let mut attempts = 0;
        while let Some((immutable, number)) = self.next_flush() {
            let result = caught("flushing a memtable", || self.flush_one(&immutable, number));
            let Err(failure) = result else {
                self.files.purge();
                continue;
            };
            // Once more with another number if it ran out of descriptors that tables can spare, or
            // else logs.
            attempts += 1;
            let spare = || {
                Ok(attempts == 1 && self.files.tables.spare_descriptors()
                    || attempts <= 2 && self.spare_logs())
            };
            let goes_on = failure.error.is_out_of_descriptors()
                && caught("sparing descriptors", spare).unwrap_or(false);
            if !goes_on {
                self.tell_failure(&failure);
            }
            let mut state = self.state.lock();
            state.give_flush_back(&immutable);
            if !goes_on {
                state.flushing -= 1;
                self.note_failure(&mut state, &failure);
                break;
            }
            self.changed.notify_all();
        }
        self.changed.notify_all();
    }

    /// The next memtable to flush, and the number of its table. If there is none, the job has
    /// ended.
    fn next_flush(&self) -> Option<(Arc<Immutable>, u64)> {
        let mut state = self.state.lock();
        // After a failure it is tried again only when a caller asks: see `retry`.
        let stops =
            state.closing || state.error.is_some() || state.flushing > self.flushes_at_once(&state);
        let next = if stops { None } else { state.take_flush() };
        if next.is_none() {
            state.flushing -= 1;
        }
        next.map(|immutable| (immutable, self.files.numbers.take_with_successor()))
    }

    /// Makes a memtable a table with this number and installs it, once those ahead of it have been.
    fn flush_one(self: &Arc<Self>, immutable: &Arc<Immutable>, number: u64) -> Result<()> {
        let start = self.files.env.now_micros();
        self.versions.lock().prepare()?;
        // What an attempt that failed has left, if anything: this one needs the space.
        self.files.purge();
        // A table is written as they say, and what expires in an idle database is looked for. Where
        // they cannot be read that is no reason to fail.
        let may_have_catalogue =
            || !immutable.recovered_tables.is_empty() || self.may_have_catalogue();
        if !immutable.memtable.is_empty() || may_have_catalogue() {
            let _ = self.prefix_settings();
        }
        let mut output = self.write_memtable(&immutable.memtable, number)?;
        if output.is_none() {
            // The edit names the next log, which must not be lost then. A table's writer has synced
            // the directory.
            self.files.env.sync_dir(&self.files.dir)?;
        }
        if !self.await_turn(immutable) {
            output.iter().for_each(|output| self.files.output_settings(0).remove(output));
            self.state.lock().give_flush_back(immutable);
            return Ok(());
        }
        let mut versions = self.versions.lock();
        let (level, reservation, log_number) =
            self.place_flush(versions.current(), immutable, output.as_ref());
        let new_files = immutable.recovered_tables.clone();
        let mut edit =
            VersionEdit { log_number: Some(log_number), new_files, ..VersionEdit::default() };
        edit.new_files.extend(output.iter().map(|output| {
            let mut file = output.file.clone();
            file.level = level;
            file
        }));
        edit.new_value_files.extend(output.iter().flat_map(Output::value_records));
        if mutated("logs-after-edit") {
            immutable
                .logs
                .iter()
                .filter(|&&log| log < log_number)
                .for_each(|&log| self.retire_log(log));
        }
        let installed = versions.log_and_apply(edit, immutable.last_sequence);
        match &installed {
            Ok(version) => {
                self.made_version(version, output.as_slice());
                if let Some(file) = version.levels[0].iter().find(|file| file.number == number) {
                    file.set_has_successor(true);
                }
                let written = output.iter_mut().flat_map(|output| &mut output.value_files);
                self.files.flushed_values.keep(version, written);
                // Before any thread sees that the memtable is flushed: from then on no log of it
                // needs to be synced.
                self.logs.sync.flushed(log_number, immutable.last_sequence);
            }
            // The next attempt writes the memtable anew, and comes in with the same ones.
            Err(_) => versions.keep(&immutable.recovered_tables),
        }
        let micros = self.files.env.now_micros().saturating_sub(start);
        let (replaced, recovered);
        {
            let mut state = self.state.lock();
            state.release(reservation);
            let version = installed?;
            recovered = std::mem::take(&mut state.has_failed);
            state.immutables.pop_front();
            state.has_flushed = true;
            // Before whoever waits for the flush looks at statistics.
            self.counters.record_flush(level, output.as_ref().map_or(0, Output::bytes), micros);
            // Those beside it get as much done.
            let bytes = immutable.memtable.memory_usage() * state.flushing.max(1);
            state.flush_speed.record(bytes as u64, micros);
            if let Some(budget) = &self.files.options.memory_budget {
                budget.record_flush(bytes, micros);
            }
            replaced = self.swap_view(&mut state, |view| View {
                memtable: view.memtable.clone(),
                immutables: view.immutables[..view.immutables.len() - 1].to_vec(),
                version,
                in_tables: view.in_tables.max(immutable.last_sequence),
            });
            self.update_throttle(&state);
            self.schedule(&mut state);
            self.changed.notify_all();
        }
        drop(versions);
        drop(replaced);
        self.tell_recovered(recovered);
        self.retire_logs(immutable, log_number);
        self.report_flush(immutable, level, output.as_ref(), micros);
        Ok(())
    }

    fn report_flush(
        &self,
        immutable: &Immutable,
        level: usize,
        output: Option<&Output>,
        micros: u64,
    ) {
        let bytes = output.map_or(0, Output::bytes);
        if let Some(limit) = &self.rate_limiter {
            limit.count(bytes);
        }
        let table = output.map(|output| output.file.number);
        let logs: Vec<_> = immutable.logs.iter().map(|&log| filename::log(log)).collect();
        let logs = logs.join(", ");
        self.files.log(match table {
            Some(number) => {
                format!("flushed {logs} to table {number:06} at level {level}: {bytes} bytes")
            }
            None => format!("left {logs} behind, which held nothing that is needed"),
        });
        self.files.tell(&Event::FlushFinished {
            table,
            level,
            bytes,
            duration: Duration::from_micros(micros),
        });
    }

    /// Waits until every memtable ahead of this one has been flushed. False if one of them could
    /// not be.
    fn await_turn(&self, immutable: &Arc<Immutable>) -> bool {
        let mut state = self.state.lock();
        while !immutable.progress.is_spoiled() {
            if state.immutables.front().is_some_and(|front| Arc::ptr_eq(front, immutable)) {
                return true;
            }
            self.changed.wait(&mut state);
        }
        false
    }

    /// Writes a memtable as one table of level 0, without what no reader can see any more.
    fn write_memtable(&self, memtable: &Arc<MemTable>, number: u64) -> Result<Option<Output>> {
        let (mut snapshots, _) = self.views.snapshots.all(|| self.views.visible_sequence());
        if mutated("snapshots-in-flushes") {
            snapshots.clear();
        }
        let rules = DropRules::new(self.files.order.keys.clone(), snapshots);
        let mut settings = OutputSettings {
            first_number: Some(number),
            growing: Some(self.files.flushed_values.clone()),
            ..self.files.output_settings(0)
        };
        settings.table.is_above_more = self.is_above_more(memtable);
        // A small one is finished even when the database closes: an application that opens, writes
        // a little and closes, again and again, must not pile up logs.
        let cancellable = memtable.memory_usage() > CANCELLABLE_BYTES;
        write_memtable(memtable, settings, rules, || {
            match cancellable && self.state.lock().closing {
                true => Err(Error::busy("the database is closing")),
                false => Ok(()),
            }
        })
    }

    /// Whether tables hold at least as much in the range of `memtable`.
    fn is_above_more(&self, memtable: &Arc<MemTable>) -> bool {
        let (mut first, mut last) = (memtable.iter(), memtable.iter());
        first.seek_to_first();
        last.seek_to_last();
        first.valid() && last.valid() && {
            let (keys, version) = (&self.files.order.keys, &self.views.current.load().version);
            let range = (user_key(first.key()), user_key(last.key()));
            version.overlap_at_least(keys, 0..NUM_LEVELS, range, memtable.memory_usage() as u64)
        }
    }

    /// Chooses the level of a flushed table and keeps others from writing there, and says which log
    /// is the first that is needed from now on.
    fn place_flush(
        &self,
        version: &Version,
        immutable: &Immutable,
        output: Option<&Output>,
    ) -> (usize, u64, u64) {
        let settings = self.plan_settings(false, 0);
        let mut state = self.state.lock();
        let log_number = state.immutables.get(1).map_or(state.log_number, |next| next.first_log());
        let Some(output) = output else {
            let nothing = |id| Reservation {
                id,
                files: Vec::new(),
                output_level: 0,
                from: Vec::new(),
                to: Vec::new(),
            };
            return (0, state.reserve(nothing), log_number);
        };
        let (from, to) =
            (user_key(&output.file.smallest).to_vec(), user_key(&output.file.largest).to_vec());
        let planner = Planner { version, settings: &settings, busy: &state.reservations };
        // Above older tables that come in with it.
        let deepest = if immutable.recovered_tables.is_empty() { DEEPEST_FLUSH_LEVEL } else { 0 };
        let level = planner.level_for(&from, &to, deepest);
        let id = state.reserve(|id| Reservation {
            id,
            files: Vec::new(),
            output_level: level,
            from,
            to,
        });
        (level, id, log_number)
    }
}
