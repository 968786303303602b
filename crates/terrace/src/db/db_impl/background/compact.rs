//! Compactions: carries out the plan of one and installs its edit.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::SequenceNumber;
use crate::base::mutation::mutated;
use crate::compaction::filter::AppliedFilter;
use crate::compaction::job::CompactionJob;
use crate::compaction::output::{Output, OutputSettings};
use crate::compaction::plan::{Plan, Reason};
use crate::compaction::subcompactions;
use crate::version::edit::VersionEdit;
use crate::version::version::Version;

use crate::db::db_impl::background::Background;
use crate::db::db_impl::background::failure::caught;
use crate::db::options::events::Event;
use crate::db::view::View;

/// Bytes of user data of which a compaction of level 0 shows how fast they are.
const MEASURED_BYTES: u64 = 1 << 20;

impl Background {
    pub(in crate::db) fn compaction_job(
        self: &Arc<Self>,
        plan: Arc<Plan>,
        version: Arc<Version>,
        reservation: u64,
    ) {
        let result = caught("compacting tables", || {
            self.sparing(|| self.compact(&plan, &version, reservation))
        });
        // Nothing needs the inputs now. They are removed before the compaction counts as done, so
        // that a caller that waits for it finds their space free.
        drop((plan, version));
        self.files.purge();
        let failure = result.err().filter(|failure| {
            failure.error.kind() != ErrorKind::Busy || !self.state.lock().stops(reservation)
        });
        if let Some(failure) = &failure {
            self.tell_failure(failure);
        }
        let mut state = self.state.lock();
        state.compactions -= 1;
        state.release(reservation);
        if let Some(failure) = &failure {
            self.note_failure(&mut state, failure);
        }
        self.schedule(&mut state);
        self.changed.notify_all();
    }

    /// Other threads that may run subcompactions. While users write, one core is theirs; a caller
    /// that waits for a manual compaction leaves its own.
    fn idle_threads(&self, plan: &Plan) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.files.options.background_threads.min(cores);
        let state = self.state.lock();
        let reserved = if plan.reason == Reason::Manual { state.flushing } else { 1 };
        threads.saturating_sub(reserved + state.compactions.max(1))
    }

    /// Carries out a plan and installs its outcome. The caller releases the reservation.
    pub(in crate::db) fn compact(
        self: &Arc<Self>,
        plan: &Arc<Plan>,
        version: &Arc<Version>,
        reservation: u64,
    ) -> Result<()> {
        if self.state.lock().stops(reservation) {
            return Err(Error::busy("the database is closing"));
        }
        let start = self.files.env.now_micros();
        let mut edit = VersionEdit::default();
        let mut outputs = Vec::new();
        // What has expired for every reader by now has expired for every later one.
        let expiry = self.expired_in_compactions();
        // Dropped last, without a lock: it may be the last one to hold a filter of the program's.
        let filter = AppliedFilter::new(self.compaction_filters(), expiry).map(Arc::new);
        // The newest snapshot whose entries the filter is not asked about.
        let mut newest_kept = None;
        if plan.is_trivial_move {
            let file = &plan.inputs[0][0];
            edit.new_files.push(file.record(plan.output_level));
        } else {
            self.versions.lock().prepare()?;
            self.files.purge();
            let (snapshots, _) = self.views.snapshots.all(|| self.views.visible_sequence());
            newest_kept = snapshots.last().copied();
            let job = self.job_of(plan, version, snapshots, filter.clone(), reservation);
            outputs = subcompactions::run(job, self.idle_threads(plan))?;
            edit.new_files.extend(outputs.iter().map(|output| output.file.clone()));
            edit.new_value_files.extend(outputs.iter().flat_map(Output::value_records));
        }
        for (side, files) in plan.inputs.iter().enumerate() {
            let level = if side == 0 { plan.level } else { plan.output_level };
            edit.deleted_files.extend(files.iter().map(|file| (level, file.number)));
        }
        let mut versions = self.versions.lock();
        if mutated("inputs-after-edit") && !plan.is_trivial_move {
            self.files.obsolete_files.put_back(plan.files().map(|file| file.number).collect());
            self.files.purge();
        }
        if mutated("emptied-values-after-edit") && plan.reason == Reason::Values {
            let used = self.views.current.load();
            let emptied = used.version.values.iter().filter(|used| used.is_collected());
            self.files.obsolete_files.put_back(emptied.map(|used| used.file.number).collect());
            self.files.purge();
        }
        let version = versions.log_and_apply(edit, 0)?;
        self.made_version(&version, &outputs);
        let written = outputs.iter_mut().flat_map(|output| &mut output.value_files);
        self.files.compacted_values.keep(&version, written);
        let micros = self.files.env.now_micros().saturating_sub(start);
        let (replaced, recovered);
        {
            // Snapshots that were taken meanwhile read on what there was.
            let has_filtered = filter.as_ref().is_some_and(|filter| filter.has_changed())
                && !mutated("filter-beside-snapshots");
            let _gate = has_filtered.then(|| {
                self.views.deleted_ranges.begin_filtered();
                let gate = self.views.snapshots.close();
                // One may be at 0, of a database whose tables were all ingested.
                let from = newest_kept.map_or(0, |newest| newest + 1);
                self.views.snapshots.keep_view(&self.views.current.load_full(), from);
                gate
            });
            let mut state = self.state.lock();
            recovered = std::mem::take(&mut state.has_failed);
            if plan.is_trivial_move {
                plan.inputs[0][0].earn_seeks();
            }
            if plan.level == 0 && !plan.is_intra_level_0() && !plan.is_trivial_move {
                let user_bytes = self.counters.user_bytes_of(&plan.inputs[0]);
                // A little above much says nothing of speed.
                if user_bytes >= MEASURED_BYTES {
                    state.level_0_speed.record(user_bytes, micros);
                }
            }
            // A step of a manual compaction ends with a turn of automatic ones, under one lock.
            if plan.reason != Reason::Manual {
                state.release(reservation);
            }
            replaced = self.swap_view(&mut state, |view| View {
                memtable: view.memtable.clone(),
                immutables: view.immutables.clone(),
                version,
                in_tables: view.in_tables,
            });
            if has_filtered {
                self.views.deleted_ranges.end_filtered(self.views.visible_sequence());
            }
            self.update_throttle(&state);
            self.changed.notify_all();
        }
        drop(versions);
        drop(replaced);
        self.tell_recovered(recovered);
        self.report(plan, &outputs, micros);
        Ok(())
    }

    fn job_of(
        self: &Arc<Self>,
        plan: &Arc<Plan>,
        version: &Arc<Version>,
        snapshots: Vec<SequenceNumber>,
        filter: Option<Arc<AppliedFilter>>,
        reservation: u64,
    ) -> CompactionJob {
        // Threads of subcompactions drop it a moment after they are waited for.
        let held = self.jobs.hold(self);
        CompactionJob {
            plan: plan.clone(),
            version: version.clone(),
            tables: self.files.tables.clone(),
            values: self.files.values.clone(),
            order: self.files.order.clone(),
            outputs: OutputSettings {
                first_number: plan.first_number(),
                ..self.compaction_settings(plan.output_level)
            },
            max_file_size: self.files.options.table_size(version.bytes()) as u64,
            dictionary_bytes: self.files.options.zstd_dictionary,
            snapshots,
            filter,
            cancelled: Box::new(move || {
                held.files.env.yield_to_flushes();
                held.state.lock().stops(reservation)
            }),
        }
    }

    fn report(&self, plan: &Plan, outputs: &[Output], micros: u64) {
        let (level, output_level) = (plan.level, plan.output_level);
        if plan.is_trivial_move {
            let number = plan.inputs[0][0].number;
            self.files.log(format!("moved table {number:06} from level {level} to {output_level}"));
        }
        let files_read = if plan.is_trivial_move { 0 } else { plan.files().count() };
        let bytes_read = if plan.is_trivial_move { 0 } else { plan.input_bytes() };
        let bytes_written = outputs.iter().map(Output::bytes).sum();
        self.counters.record_compaction(output_level, bytes_read, bytes_written, micros);
        let duration = Duration::from_micros(micros);
        if !plan.is_trivial_move {
            self.files.log(format!(
                "compacted {} + {} tables of levels {level} and {output_level} into {}: \
                 {bytes_read} bytes into {bytes_written} in {:.3} s: {}",
                plan.inputs[0].len(),
                plan.inputs[1].len(),
                outputs.len(),
                duration.as_secs_f64(),
                plan.reason.describe(),
            ));
        }
        self.files.tell(&Event::CompactionFinished {
            level,
            output_level,
            files_read,
            files_written: outputs.len(),
            bytes_read,
            bytes_written,
            duration,
        });
    }
}
