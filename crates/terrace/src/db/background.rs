//! Background work: flushing memtables, merging tables, removing files.
//!
//! # Invariants
//! 1. Memtables become tables of the database one after another, oldest first, with file numbers in that order. The
//!    next one may be written meanwhile; it is written anew, with another number, if the one ahead of it failed.
//! 2. An edit is durable before its version is seen, and a file is removed only after an edit that drops it is
//!    durable and the last view that needs it is gone.
//! 3. A job that fails or panics leaves its inputs as they were and the failure in the state; it is tried again when
//!    a writer, a flush or a manual merge asks, never in a loop of its own.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::user_key;
use crate::base::sabotage::sabotaged;
use crate::cache::hand_on;
use crate::compaction::drop_rules::DropRules;
use crate::compaction::job::CompactionJob;
use crate::compaction::output::{Output, OutputSettings};
use crate::compaction::parts;
use crate::compaction::plan::{self, DEEPEST_FLUSH_LEVEL, Plan, Planner, Reason, Reservation};
use crate::env::Lane;
use crate::memtable::MemTable;
use crate::version::edit::VersionEdit;
use crate::version::filename;
use crate::version::version::Version;

use super::commit::LEVEL_0_COMFORTABLE;
use super::core::{DbCore, View};
use super::events::Event;
use super::state::{Immutable, State};
use super::write_memtable::write_memtable;

/// Memtables that are made tables at the same time.
const FLUSHES_AT_ONCE: usize = 2;
/// A smaller memtable costs reads less than a table of its own would cost.
const SETTLE_FROM: usize = 64 << 10;
/// A flush of more than this stops when the database closes.
const CANCELLABLE_BYTES: usize = 32 << 20;

impl DbCore {
    /// Starts whatever background work is due. The caller holds the state lock.
    pub(super) fn schedule(self: &Arc<Self>, state: &mut State) {
        if self.schedule_flushes(state) {
            self.schedule_compactions(state);
        }
    }

    /// Starts flushes that are due. Returns whether background work goes on at all. The caller holds the state lock.
    pub(super) fn schedule_flushes(self: &Arc<Self>, state: &mut State) -> bool {
        if state.closing || self.options.read_only || state.error.is_some() || self.works_elsewhere() {
            return false;
        }
        while state.flushing < state.immutables.len().min(self.flushes_at_once(state)) {
            state.flushing += 1;
            self.in_background(Lane::Flush, |core| core.flush_job());
        }
        true
    }

    /// Plans compactions, which takes milliseconds where there are tens of thousands of tables.
    fn schedule_compactions(self: &Arc<Self>, state: &mut State) {
        while state.manual == 0 && state.compactions < self.merges_at_once(state) {
            let version = self.view.load().version.clone();
            let settings = self.plan_settings(state.is_quiet);
            let planner = Planner { version: &version, settings: &settings, busy: &state.reservations };
            let Some(plan) = planner.pick().map(Arc::new) else { break };
            let id = state.reserve(|id| plan.reservation(id, &self.order.keys));
            state.compactions += 1;
            self.in_background(Lane::Compaction, move |core| core.compaction_job(plan, version, id));
        }
    }

    /// How many merges may run at once. One thread is left to flushes and one core to whoever uses the database, unless
    /// merging is what everybody waits for: writers who are slowed down for its sake while nobody reads, or somebody who
    /// asked to be told when it is done.
    fn merges_at_once(&self, state: &State) -> usize {
        let threads = self.options.background_threads;
        let slows_writers = self.view.load().version.levels[0].len() > LEVEL_0_COMFORTABLE;
        let has_readers = self.quiet.has_read_since(state.switched_at[0]);
        let is_awaited = state.awaited > 0 || (slows_writers && !has_readers);
        if is_awaited { threads } else { threads.saturating_sub(1).max(1) }
    }

    /// Two: one waits for the disk while the other computes. Beside a merge the cores are busy without, and the merge
    /// may be waiting for the thread.
    fn flushes_at_once(&self, state: &State) -> usize {
        if state.compactions == 0 { self.options.background_threads.min(FLUSHES_AT_ONCE) } else { 1 }
    }

    fn flush_job(self: &Arc<Self>) {
        let mut has_spared = false;
        while let Some((immutable, number)) = self.next_flush() {
            let result = caught("flushing a memtable", || self.flush_one(&immutable, number));
            let Err(failure) = result else {
                self.purge();
                continue;
            };
            // Once more with another number if it ran out of descriptors that tables can spare.
            let goes_on = !has_spared && failure.error.is_out_of_descriptors() && self.tables.spare_descriptors();
            has_spared = true;
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

    /// The next memtable to flush, and the number of its table. If there is none, the job has ended.
    fn next_flush(&self) -> Option<(Arc<Immutable>, u64)> {
        let mut state = self.state.lock();
        // After a failure only who asks has it tried again: see `retry`.
        let stops = state.closing || state.error.is_some() || state.flushing > self.flushes_at_once(&state);
        let next = if stops { None } else { state.take_flush() };
        if next.is_none() {
            state.flushing -= 1;
        }
        next.map(|immutable| (immutable, self.numbers.take()))
    }

    /// Has the memtable of a database that is only read flushed, so that reads find one sorted run less.
    pub(super) fn settle_later(self: &Arc<Self>, state: &mut State) {
        if state.closing || state.settling || self.options.read_only || state.error.is_some() {
            return;
        }
        state.settling = true;
        self.in_background(Lane::Flush, |core| {
            let settled = caught("moving on from a quiet memtable", || core.settle());
            if let Err(failure) = settled {
                core.log(format!("could not flush the memtable of a quiet database: {}", failure.error));
            }
            let mut state = core.state.lock();
            state.settling = false;
            core.schedule(&mut state);
            core.changed.notify_all();
        });
    }

    fn settle(self: &Arc<Self>) -> Result<()> {
        // Whoever holds the lock writes: the database is not quiet.
        let Some(mut guard) = self.commit.try_lock() else { return Ok(()) };
        let Some(commit) = guard.as_mut() else { return Ok(()) };
        let is_worth_it = commit.memtable.table().memory_usage() >= SETTLE_FROM;
        if is_worth_it && !self.log_suspect.load(Ordering::Relaxed) && self.state.lock().immutables.is_empty() {
            self.switch_memtable(commit)?;
            // It still is: no write can have come in between.
            self.state.lock().is_quiet = true;
        }
        Ok(())
    }

    /// Makes a memtable a table with this number and installs it, once those ahead of it have been.
    fn flush_one(self: &Arc<Self>, immutable: &Arc<Immutable>, number: u64) -> Result<()> {
        let start = self.env.now_micros();
        self.versions.lock().prepare()?;
        let output = self.write_memtable(&immutable.memtable, number)?;
        if output.is_none() {
            // The edit names the next log, which must not be lost then. A table's writer has synced the directory.
            self.env.sync_dir(&self.dir)?;
        }
        if !self.await_turn(immutable) {
            output.iter().for_each(|output| self.output_settings(0).remove(output.file.number));
            self.state.lock().give_flush_back(immutable);
            return Ok(());
        }
        let mut versions = self.versions.lock();
        let (level, reservation, log_number) = self.place_flush(versions.current(), immutable, output.as_ref());
        let new_files = immutable.recovered_tables.clone();
        let mut edit = VersionEdit { log_number: Some(log_number), new_files, ..VersionEdit::default() };
        edit.new_files.extend(output.iter().map(|output| {
            let mut file = output.file.clone();
            file.level = level;
            file
        }));
        if sabotaged("logs-after-edit") {
            immutable.logs.iter().filter(|&&log| log < log_number).for_each(|&log| self.retire_log(log));
        }
        let installed = versions.log_and_apply(edit, immutable.last_sequence);
        if let Ok(version) = &installed {
            self.made_version(version, output.as_slice());
            // Before anybody sees that the memtable is a table, who may count on no log of it being synced any more.
            self.log_sync.flushed(log_number, immutable.last_sequence);
        }
        let micros = self.env.now_micros().saturating_sub(start);
        let (replaced, recovered);
        {
            let mut state = self.state.lock();
            state.release(reservation);
            let version = installed?;
            recovered = std::mem::take(&mut state.has_failed);
            state.immutables.pop_front();
            // Those beside it get as much done.
            let bytes = immutable.memtable.memory_usage() * state.flushing.max(1);
            state.flush_speed.record(bytes as u64, micros);
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
        let bytes = output.as_ref().map_or(0, |output| output.file.size);
        self.counters.record_flush(level, bytes, micros);
        if let Some(limit) = &self.write_limit {
            limit.count(bytes);
        }
        let table = output.map(|output| output.file.number);
        let logs: Vec<_> = immutable.logs.iter().map(|&log| filename::log(log)).collect();
        let logs = logs.join(", ");
        self.log(match table {
            Some(number) => format!("flushed {logs} to table {number:06} at level {level}: {bytes} bytes"),
            None => format!("left {logs} behind, which held nothing that is needed"),
        });
        self.tell(&Event::FlushFinished { table, level, bytes, duration: Duration::from_micros(micros) });
        Ok(())
    }

    /// Waits until every memtable ahead of this one has become a table. False if one of them could not.
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
        let (mut snapshots, _) = self.snapshots.all(|| self.visible_sequence());
        if sabotaged("snapshots-in-flushes") {
            snapshots.clear();
        }
        let rules = DropRules::new(self.order.keys.clone(), snapshots);
        let settings = OutputSettings { first_number: Some(number), ..self.output_settings(0) };
        // A small one is finished even when the database closes: an application that opens, writes a little and
        // closes, again and again, must not pile up logs.
        let cancellable = memtable.memory_usage() > CANCELLABLE_BYTES;
        write_memtable(memtable, settings, rules, || match cancellable && self.state.lock().closing {
            true => Err(Error::busy("the database is closing")),
            false => Ok(()),
        })
    }

    /// Chooses the level of a flushed table and keeps others from writing there, and says which log is the first
    /// that is needed from now on.
    fn place_flush(&self, version: &Version, immutable: &Immutable, output: Option<&Output>) -> (usize, u64, u64) {
        let settings = self.plan_settings(false);
        let mut state = self.state.lock();
        let log_number = state.immutables.get(1).map_or(state.log_number, |next| next.first_log());
        let Some(output) = output else {
            let nothing = |id| Reservation { id, files: Vec::new(), output_level: 0, from: Vec::new(), to: Vec::new() };
            return (0, state.reserve(nothing), log_number);
        };
        let (from, to) = (user_key(&output.file.smallest).to_vec(), user_key(&output.file.largest).to_vec());
        let planner = Planner { version, settings: &settings, busy: &state.reservations };
        // Above older tables that come in with it.
        let deepest = if immutable.recovered_tables.is_empty() { DEEPEST_FLUSH_LEVEL } else { 0 };
        let level = planner.level_for(&from, &to, deepest);
        let id = state.reserve(|id| Reservation { id, files: Vec::new(), output_level: level, from, to });
        (level, id, log_number)
    }

    fn compaction_job(self: &Arc<Self>, plan: Arc<Plan>, version: Arc<Version>, reservation: u64) {
        let result = caught("merging tables", || self.sparing(|| self.compact(&plan, &version, reservation)));
        // Only now nobody needs the inputs. They go before this counts as done: who waits for that finds their space free.
        drop((plan, version));
        self.purge();
        if let Err(failure) = &result {
            self.tell_failure(failure);
        }
        let mut state = self.state.lock();
        state.compactions -= 1;
        state.release(reservation);
        if let Err(failure) = &result {
            self.note_failure(&mut state, failure);
        }
        self.schedule(&mut state);
        self.changed.notify_all();
    }

    /// Other threads that a merge may take for its parts. While users write, one core is theirs; who asks for a merge
    /// and waits for it leaves his.
    fn idle_threads(&self, plan: &Plan) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.options.background_threads.min(cores);
        let state = self.state.lock();
        let reserved = if plan.reason == Reason::Manual { state.flushing } else { 1 };
        threads.saturating_sub(reserved + state.compactions.max(1))
    }

    /// Carries out a plan and installs its outcome. The caller releases the reservation.
    pub(super) fn compact(self: &Arc<Self>, plan: &Arc<Plan>, version: &Arc<Version>, reservation: u64) -> Result<()> {
        if self.state.lock().closing {
            return Err(Error::busy("the database is closing"));
        }
        let start = self.env.now_micros();
        let mut edit = VersionEdit::default();
        let mut outputs = Vec::new();
        if plan.is_move {
            let file = &plan.inputs[0][0];
            edit.new_files.push(file.record(plan.output_level));
        } else {
            self.versions.lock().prepare()?;
            let (snapshots, _) = self.snapshots.all(|| self.visible_sequence());
            // Helpers of the merge let go of it a moment after they are waited for.
            let held = self.hold();
            let job = CompactionJob {
                plan: plan.clone(),
                version: version.clone(),
                tables: self.tables.clone(),
                order: self.order.clone(),
                outputs: self.merge_settings(plan.output_level),
                max_file_size: self.options.max_file_size as u64,
                snapshots,
                cancelled: Box::new(move || {
                    held.env.yield_to_flushes();
                    held.state.lock().closing
                }),
            };
            outputs = parts::run(job, self.idle_threads(plan))?;
            edit.new_files.extend(outputs.iter().map(|output| output.file.clone()));
        }
        for (side, files) in plan.inputs.iter().enumerate() {
            let level = if side == 0 { plan.level } else { plan.output_level };
            edit.deleted_files.extend(files.iter().map(|file| (level, file.number)));
        }
        let mut versions = self.versions.lock();
        if sabotaged("inputs-after-edit") && !plan.is_move {
            self.graveyard.put_back(plan.files().map(|file| file.number).collect());
            self.purge();
        }
        let version = versions.log_and_apply(edit, 0)?;
        self.made_version(&version, &outputs);
        let micros = self.env.now_micros().saturating_sub(start);
        let (replaced, recovered);
        {
            let mut state = self.state.lock();
            recovered = std::mem::take(&mut state.has_failed);
            if plan.is_move {
                plan.inputs[0][0].earn_seeks();
            }
            if plan.level == 0 && !plan.is_move {
                let user_bytes = plan.inputs[0].len() * self.options.write_buffer_size;
                state.level_0_speed.record(user_bytes as u64, micros);
            }
            state.release(reservation);
            replaced = self.swap_view(&mut state, |view| View {
                memtable: view.memtable.clone(),
                immutables: view.immutables.clone(),
                version,
                in_tables: view.in_tables,
            });
            self.update_throttle(&state);
            self.changed.notify_all();
        }
        drop(versions);
        drop(replaced);
        self.tell_recovered(recovered);
        self.report(plan, &outputs, micros);
        Ok(())
    }

    fn report(&self, plan: &Plan, outputs: &[Output], micros: u64) {
        let (level, output_level) = (plan.level, plan.output_level);
        if plan.is_move {
            let number = plan.inputs[0][0].number;
            self.log(format!("moved table {number:06} from level {level} to {output_level}"));
        }
        let files_read = if plan.is_move { 0 } else { plan.files().count() };
        let bytes_read = if plan.is_move { 0 } else { plan.input_bytes() };
        let bytes_written = outputs.iter().map(|output| output.file.size).sum();
        self.counters.record_compaction(output_level, bytes_read, bytes_written, micros);
        let duration = Duration::from_micros(micros);
        if !plan.is_move {
            self.log(format!(
                "merged {} + {} tables of levels {level} and {output_level} into {}: {bytes_read} bytes into \
                 {bytes_written} in {:.3} s: {}",
                plan.inputs[0].len(),
                plan.inputs[1].len(),
                outputs.len(),
                duration.as_secs_f64(),
                plan.reason.describe(),
            ));
        }
        self.tell(&Event::CompactionFinished {
            level,
            output_level,
            files_read,
            files_written: outputs.len(),
            bytes_read,
            bytes_written,
            duration,
        });
    }

    /// Notes what is known of a version that nobody sees yet, and of its new tables: what takes time where there are many is
    /// done here, without the state lock.
    pub(super) fn made_version(&self, version: &Version, outputs: &[Output]) {
        self.tables.weigh(version);
        let contents: HashMap<_, _> = outputs.iter().map(|output| (output.file.number, output.contents)).collect();
        for (_, file) in version.files() {
            if let Some(&contents) = contents.get(&file.number) {
                file.learn(contents);
            }
        }
        plan::prepare(version, &self.order.keys);
    }

    /// Tells of a failed job, unless it failed because the database is closing: without the lock, for a listener may look at
    /// the database, and before the failure is noted, for what clears it is told, too.
    fn tell_failure(&self, failure: &Failure) {
        if !self.state.lock().closing {
            let Failure { error, retryable } = failure;
            self.log(format!("background error: {error}"));
            self.tell(&Event::BackgroundError { message: error.to_string(), retryable: *retryable });
        }
    }

    fn note_failure(&self, state: &mut State, failure: &Failure) {
        if !state.closing {
            self.fail(state, &failure.error, failure.retryable);
        }
    }

    fn tell_recovered(&self, recovered: bool) {
        if recovered {
            self.log("background work succeeds again");
            self.tell(&Event::BackgroundErrorCleared);
        }
    }

    /// Removes table files that nobody needs any more.
    pub(super) fn purge(&self) {
        if self.options.read_only {
            return;
        }
        let mut left = Vec::new();
        for number in self.graveyard.take() {
            let removed = match self.env.remove(&self.path(&filename::table(number))) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.env.remove(&self.path(&filename::old_table(number)))
                }
                result => result,
            };
            if removed.is_err_and(|error| error.kind() != ErrorKind::NotFound) {
                left.push(number);
            }
        }
        if !left.is_empty() {
            self.graveyard.put_back(left);
        }
        // Readers that were pinned when a table went away left its blocks to be dropped.
        hand_on();
    }

    /// Has files removed that a reader just let go of, on a background thread.
    pub(super) fn purge_later(self: &Arc<Self>) {
        if self.is_inherited() || self.options.read_only || self.graveyard.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        if state.closing || state.purging {
            return;
        }
        state.purging = true;
        self.in_background(Lane::Compaction, |core| {
            core.purge();
            core.state.lock().purging = false;
            core.changed.notify_all();
        });
    }

    /// Does away with the logs of a memtable that is a table now, but for those from `needed` on. One may be kept for a
    /// memtable to come, if there seems to come one.
    fn retire_logs(&self, immutable: &Immutable, needed: u64) {
        let mut log = immutable.log.lock().take();
        let is_written = {
            let state = self.state.lock();
            let damaged = immutable.logs.iter().any(|number| state.damaged_logs.contains(number));
            !(state.is_quiet || state.closing || state.awaited > 0 || damaged)
        };
        for &number in immutable.logs.iter().filter(|&&number| number < needed) {
            // The writer is that of the last one.
            let mut writer = log.take_if(|_| immutable.logs.last() == Some(&number));
            if !is_written && let Some(writer) = writer.take() {
                // Closed before it is removed, which a program's environment may count on.
                writer.retire();
            }
            let rename = || {
                let (from, to) = (self.path(&filename::log(number)), self.path(&filename::temp(number)));
                self.env.rename(&from, &to).is_ok()
            };
            if writer.is_none_or(|writer| !self.spare_logs.keep(number, writer, rename)) {
                self.retire_log(number);
            }
        }
        if !is_written {
            self.retire_spare_logs();
        }
    }

    /// Removes the logs that were kept.
    pub(super) fn retire_spare_logs(&self) {
        while let Some(spare) = self.spare_logs.take() {
            let number = spare.number;
            drop(spare);
            self.remove_spare_log(number);
        }
    }

    /// A leftover is harmless: the next open removes it.
    pub(super) fn remove_spare_log(&self, number: u64) {
        let _ = self.env.remove(&self.path(&filename::temp(number)));
    }

    /// Removes a log that is not needed any more; a damaged one moves to `lost/`.
    pub(super) fn retire_log(&self, number: u64) {
        let name = filename::log(number);
        let path = self.path(&name);
        let damaged = self.state.lock().damaged_logs.remove(&number);
        let result = match damaged && !sabotaged("keep-damaged-logs") {
            false => self.env.remove(&path),
            true => self.move_to_lost(&name).map(drop),
        };
        // A leftover is harmless: the next open tries again.
        if let Err(error) = result {
            self.log(format!("could not retire {name}: {error}"));
        }
    }

    /// Waits until no background work is due or running.
    pub(super) fn wait_idle(self: &Arc<Self>) -> Result<()> {
        self.check_writable()?;
        let mut state = self.state.lock();
        self.retry(&mut state)?;
        state.awaited += 1;
        self.schedule(&mut state);
        let mut result = self.check_background(&state);
        while result.is_ok() && !(state.is_idle() && state.immutables.is_empty()) {
            self.changed.wait(&mut state);
            result = self.check_background(&state);
        }
        state.awaited -= 1;
        drop(state);
        self.retire_spare_logs();
        result
    }
}

struct Failure {
    error: Error,
    retryable: bool,
}

/// Runs a job. A panic becomes a failure that is not tried again.
fn caught(what: &str, job: impl FnOnce() -> Result<()>) -> std::result::Result<(), Failure> {
    match catch_unwind(AssertUnwindSafe(job)) {
        Ok(result) => result.map_err(|error| {
            // Damage does not go away, and a refused edit is a bug here: trying again would do more harm.
            let retryable = !matches!(error.kind(), ErrorKind::Corruption | ErrorKind::InvalidArgument)
                && !sabotaged("heal-after-failures");
            Failure { error, retryable }
        }),
        Err(panic) => {
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            Err(Failure { error: Error::io_message(format!("a panic while {what}: {message}")), retryable: false })
        }
    }
}
