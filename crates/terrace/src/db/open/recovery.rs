//! Replays write-ahead logs into memtables, and decides what a damaged one means.
//!
//! A log can end in a torn record: writes that were never synced reach the disk in any order, or
//! not at all. A log can also be damaged where it was durable once. *Durability marks* tell the two
//! apart: a mark says that everything up to a sequence number had reached the disk when it was
//! written (`docs/format.md`). A hole shows in the sequence numbers even where every checksum is
//! right ([`continuity`](crate::db::open::continuity)).
//!
//! # Invariants
//! 1. In the modes [`RecoveryMode::Prefix`] and [`RecoveryMode::Strict`] the outcome is a prefix of
//!    the history.
//! 2. A batch is applied as a whole, after all of it has been checked.
//! 3. Nothing in the directory is changed, but for new tables that no MANIFEST names.
//! 4. A log comes into tables as a whole, by one edit: a MANIFEST can leave behind whole logs only.
//!    Were the first part of a log in tables and the rest lost in a power cut, the next recovery
//!    would put older versions above newer ones.
//! 5. Batches that are in tables are not applied again: an earlier log in the place of a later one
//!    would hide newer versions.

use std::path::Path;
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, InternalOrder, SequenceNumber};
use crate::base::mutation::mutated;
use crate::env::{Env, ReadAccess};
use crate::log::{LogItem, LogReader};
use crate::memtable::MemTableWriter;
use crate::version::edit::NewFile;
use crate::version::filename;
use crate::version::manifest::ManifestState;
use crate::version::table_set::TableSet;
use crate::version::version::Version;
use crate::version::version_set::FileNumbers;
use crate::write::batch_view::{BatchView, Operation};

use crate::db::open::continuity::{Continuity, Place};
use crate::db::open::recovered_tables::RecoveredTables;
use crate::db::open::unnamed_tables::{last_sequences, may_be_loaded};
use crate::db::options::{Options, RecoveryMode};

/// A memtable with what some logs held.
pub(in crate::db) struct RecoveredMemtable {
    pub(in crate::db) writer: MemTableWriter,
    /// The logs whose last entries are here: they are needed until this is flushed.
    pub(in crate::db) logs: Vec<u64>,
    pub(in crate::db) last_sequence: SequenceNumber,
}

/// Where the history was cut or has a hole.
#[derive(Clone, Debug)]
pub(in crate::db) struct Damage {
    pub(in crate::db) log: u64,
    /// The log's name.
    pub(in crate::db) file: String,
    pub(in crate::db) message: String,
    /// Whether the damaged log is worth keeping: something valid lies behind the damage.
    pub(in crate::db) keep: bool,
    /// Where it is kept, once it is.
    pub(in crate::db) kept_as: Option<String>,
}

/// The outcome of a replay.
pub(in crate::db) struct Recovered {
    /// Oldest first; empty ones left out.
    pub(in crate::db) memtables: Vec<RecoveredMemtable>,
    /// Tables of older entries than those of the memtables, oldest first. No MANIFEST names them
    /// yet.
    pub(in crate::db) tables: Vec<NewFile>,
    /// Why not more of the logs is in tables.
    pub(in crate::db) table_error: Option<Error>,
    pub(in crate::db) last_sequence: SequenceNumber,
    pub(in crate::db) damage: Vec<Damage>,
    /// Whether the next sequence number does not follow the last one in the logs, because the
    /// MANIFEST knows of later writes (LevelDB records what it has handed out, not what is
    /// durable).
    leaves_gap: bool,
    /// Whether the logs hold anything at all, if only marks. What was never synced may be something
    /// else after a power cut, and stand as damage before whatever later logs hold.
    holds_bytes: bool,
    /// Whether another program wrote the MANIFEST that names the logs: until an edit says otherwise
    /// the next open takes every log for that program's.
    manifest_is_foreign: bool,
    /// Whether the log is missing that the MANIFEST names as the first one, which only
    /// [`RecoveryMode::Salvage`] passes over.
    misses_first_log: bool,
    /// Whether LevelDB's MANIFEST has told rightly where the logs begin.
    pub(in crate::db) begins_new_log: bool,
    /// The newest log and where it ends, if it can be appended to.
    reusable: Option<(u64, u64)>,
}

impl Recovered {
    /// Whether something was wrong with the logs.
    pub(in crate::db) fn was_damaged(&self) -> bool {
        !self.damage.is_empty()
    }

    /// Whether there is something in the logs that the next recovery must not meet again.
    pub(in crate::db) fn is_cut(&self) -> bool {
        !self.damage.is_empty() || self.leaves_gap
    }

    /// Whether the MANIFEST must have left the logs behind before another write is acknowledged.
    /// Not asked where the log is continued.
    pub(in crate::db) fn must_be_left(&self) -> bool {
        self.is_cut() || self.holds_bytes || self.manifest_is_foreign || self.misses_first_log
    }

    /// The log to go on with, and its end, if that is safe. The only memtable is then the log's.
    pub(in crate::db) fn reusable(&self) -> Option<(u64, u64)> {
        let (log, end) = self.reusable?;
        let single = self.memtables.len() == 1 && self.memtables[0].logs == [log];
        let whole = self.tables.is_empty() && !self.is_cut() && !self.misses_first_log;
        (single && whole).then_some((log, end))
    }
}

/// The least unit in which systems and disks write files back.
const SECTOR: u64 = 512;

/// Where replaying stopped applying.
struct Problem {
    file: String,
    message: String,
    /// The logs from this one on hold what was not applied.
    log: u64,
    /// A power cut leaves a record like that which was not synced.
    torn: bool,
}

/// See the [module](self).
pub(in crate::db) struct Replay<'a> {
    pub(in crate::db) env: &'a dyn Env,
    pub(in crate::db) dir: &'a Path,
    pub(in crate::db) options: &'a Options,
    pub(in crate::db) order: &'a InternalOrder,
    pub(in crate::db) version: &'a Version,
    pub(in crate::db) tables: &'a TableSet,
    pub(in crate::db) numbers: &'a Arc<FileNumbers>,
    /// Tables that the MANIFEST does not name.
    pub(in crate::db) unnamed_tables: Vec<u64>,
}

/// The state of a replay.
struct Progress {
    /// The last sequence number that the MANIFEST records.
    flushed: SequenceNumber,
    /// Whether all logs are Terrace's, which syncs older logs before newer ones: then what a power
    /// cut leaves behind missing bytes was never synced. LevelDB does not.
    syncs_in_order: bool,
    /// The newest sequence number in tables, once that was asked.
    in_tables: Option<SequenceNumber>,
    memtables: Vec<RecoveredMemtable>,
    /// The tables of the memtables before them.
    written: RecoveredTables,
    table_error: Option<Error>,
    last_sequence: SequenceNumber,
    continuity: Continuity,
    /// Everything up to here is known to have been durable.
    durable: SequenceNumber,
    /// The first problem.
    problem: Option<Problem>,
    /// The first problem that no power cut leaves behind what was synced.
    damage: Option<String>,
    /// Something valid lies behind the first problem.
    more_behind: bool,
    salvaged: Vec<Damage>,
    holds_bytes: bool,
    /// Where the last batch ends in the log being read.
    end_of_batches: u64,
}

impl Replay<'_> {
    /// Replays `logs`, oldest first, which belong to what the MANIFEST says.
    pub(in crate::db) fn run(&self, logs: &[u64], state: &ManifestState) -> Result<Recovered> {
        let flushed = state.last_sequence;
        let mut progress = Progress {
            flushed,
            syncs_in_order: state.is_terraces,
            in_tables: None,
            memtables: Vec::new(),
            written: RecoveredTables::new(self.options, self.dir, self.order, self.numbers),
            table_error: None,
            last_sequence: flushed,
            continuity: Continuity::following(state),
            durable: 0,
            problem: None,
            damage: None,
            more_behind: false,
            salvaged: Vec::new(),
            holds_bytes: false,
            end_of_batches: 0,
        };
        let mut reusable = None;
        let replayed = logs.iter().try_for_each(|&log| {
            reusable = self.replay_log(log, &mut progress)?.map(|end| (log, end));
            Ok(())
        });
        let damage = match replayed.and_then(|()| self.judge(&mut progress, logs)) {
            Ok(damage) => damage,
            Err(error) => {
                progress.written.discard();
                return Err(error);
            }
        };
        let last_sequence = progress.last_sequence;
        // A log is continued only if every byte of it is certainly on disk, or will be with the
        // next append. After a failed sync the system may show bytes that no later sync writes:
        // only marks tell. The marks that follow the last batch were themselves never synced, so
        // they must lie in the sector that the next append rewrites.
        let end_of_batches = progress.end_of_batches / SECTOR;
        let all_durable = progress.durable >= last_sequence || mutated("continue-durable-logs");
        reusable = reusable.filter(|(_, end)| all_durable && end / SECTOR == end_of_batches);
        // Nor under a MANIFEST of LevelDB's: the next open would take it, and the logs behind it,
        // for logs that LevelDB has not synced in their order.
        let is_terraces = state.is_terraces || mutated("continue-under-leveldb");
        reusable = reusable.filter(|_| is_terraces);
        let leaves_gap = progress.continuity.next().is_some_and(|next| next != last_sequence + 1);
        let (mut memtables, empty): (Vec<_>, Vec<_>) = progress
            .memtables
            .into_iter()
            .partition(|memtable| !memtable.writer.table().is_empty());
        // Logs that held nothing go with the first memtable, so that they are removed with its log.
        if let Some(first) = memtables.first_mut() {
            first.logs.extend(empty.into_iter().flat_map(|memtable| memtable.logs));
            first.logs.sort_unstable();
        }
        let holds_bytes = progress.holds_bytes;
        let (tables, table_error) = (progress.written.into_files(), progress.table_error);
        Ok(Recovered {
            memtables,
            tables,
            table_error,
            last_sequence,
            damage,
            leaves_gap,
            holds_bytes,
            manifest_is_foreign: !is_terraces,
            begins_new_log: progress.continuity.begins_new_log(),
            misses_first_log: state.log_number != 0 && !logs.contains(&state.log_number),
            reusable,
        })
    }

    /// Replays one log. Returns where it ends, if the file ends there too.
    fn replay_log(&self, log: u64, progress: &mut Progress) -> Result<Option<u64>> {
        let file = filename::log(log);
        let path = self.dir.join(&file);
        let handle = self.env.open_random(&path, ReadAccess::Pread)?;
        let size = handle.size();
        progress.end_of_batches = 0;
        progress.continuity.begin_log(log);
        // What a gap may hide shows in the sequence numbers behind it.
        let mut reader = LogReader::new(handle, path.display().to_string()).tolerating_gaps();
        match progress.memtables.last_mut().filter(|last| !self.is_full(last)) {
            Some(last) => last.logs.push(log),
            None => self.start_memtable(log, progress),
        }
        loop {
            let item = reader.next()?;
            progress.holds_bytes |= !matches!(item, LogItem::End { torn: false, .. });
            match item {
                LogItem::Record { data, begin, offset, end, split, doubtful } => {
                    progress.continuity.record(begin, end);
                    match BatchView::parse(data) {
                        Ok(batch) if batch.count == 0 => {
                            let mark = batch.durability_mark(split);
                            let proven = progress.continuity.proven_durable(mark, doubtful, offset);
                            progress.durable = progress.durable.max(proven);
                        }
                        Ok(batch) => {
                            progress.end_of_batches = end;
                            self.take_batch(batch, log, &path, offset, progress)?;
                        }
                        Err(error) => {
                            let message = format!(
                                "{} at offset {offset}: {}",
                                path.display(),
                                error.message()
                            );
                            self.meet(
                                Problem { file: file.clone(), message, log, torn: false },
                                progress,
                            );
                        }
                    }
                }
                LogItem::Damage { reason, torn, .. } => {
                    self.meet(Problem { file: file.clone(), message: reason, log, torn }, progress);
                }
                LogItem::End { offset, torn } => {
                    if !torn {
                        progress.continuity.end_log(offset, size);
                    }
                    // A torn end before a later log: processes were killed in a write and then in
                    // its recovery. If more is missing than what was never acknowledged, the later
                    // log does not follow.
                    return Ok((!torn && offset == size).then_some(offset));
                }
            }
        }
    }

    fn is_full(&self, memtable: &RecoveredMemtable) -> bool {
        memtable.writer.table().memory_usage() >= self.options.write_buffer_size
    }

    fn start_memtable(&self, log: u64, progress: &mut Progress) {
        let writer = self.options.new_memtable(self.order);
        let last_sequence = progress.last_sequence;
        progress.memtables.push(RecoveredMemtable { writer, logs: vec![log], last_sequence });
    }

    fn take_batch(
        &self,
        batch: BatchView<'_>,
        log: u64,
        path: &Path,
        offset: u64,
        progress: &mut Progress,
    ) -> Result<()> {
        let (sequence, last) = (batch.sequence, batch.last_sequence());
        let missing = match progress.continuity.place(sequence, last) {
            Place::Follows => None,
            Place::FollowsTables
                if self.version.holds_sequence(self.tables, sequence.saturating_sub(1)) =>
            {
                None
            }
            Place::SkipsNumbers { due } => self
                .may_be_loaded(due, sequence)?
                .then_some("which skips the numbers of a lost load"),
            Place::FollowsTables => Some("which follows neither the tables nor a batch before it"),
            Place::Misplaced { .. } => Some("which does not follow the one before"),
        };
        if let Some(what) = missing {
            let message = format!(
                "{} at offset {offset}: a batch at sequence number {sequence}, {what}",
                path.display()
            );
            let torn = progress.syncs_in_order;
            self.meet(Problem { file: filename::log(log), message, log, torn }, progress);
        }
        if progress.problem.is_some() && !mutated("stop-at-damage") {
            progress.more_behind = true;
            return Ok(());
        }
        progress.last_sequence = progress.last_sequence.max(last);
        if self.is_in_tables(&batch, progress) && !mutated("batches-in-tables") {
            return Ok(());
        }
        if mutated("logs-as-a-whole")
            && progress.memtables.last().is_some_and(|last| self.is_full(last))
        {
            self.start_memtable(log, progress);
        }
        let Some(memtable) = progress.memtables.last_mut() else { return Ok(()) };
        let count = if mutated("replay-whole-batches") { 1 } else { batch.count as usize };
        for (sequence, operation) in (batch.sequence..).zip(batch.operations().take(count)) {
            match operation? {
                Operation::Put { key, value } => {
                    memtable.writer.insert(sequence, EntryKind::Value, key, value)
                }
                Operation::Delete { key } => {
                    memtable.writer.insert(sequence, EntryKind::Deletion, key, &[])
                }
            }
        }
        memtable.last_sequence = progress.last_sequence;
        self.write_tables_if_due(progress);
        Ok(())
    }

    /// Whether the numbers from `due` on and before `first` may be those of a bulk load.
    fn may_be_loaded(&self, due: SequenceNumber, first: SequenceNumber) -> Result<bool> {
        let ends = last_sequences(self.tables, self.unnamed_tables.iter().copied())?;
        Ok(ends.into_iter().any(|last| may_be_loaded(last, due, first)))
    }

    /// Flushes all memtables if they take too much memory, and begins a new one for their
    /// logs.
    fn write_tables_if_due(&self, progress: &mut Progress) {
        let bytes =
            progress.memtables.iter().map(|memtable| memtable.writer.table().memory_usage()).sum();
        if !progress.written.are_due(bytes) {
            return;
        }
        let mut logs = Vec::new();
        let (mut kept, mut memtables) =
            (Vec::new(), std::mem::take(&mut progress.memtables).into_iter());
        for memtable in memtables.by_ref() {
            let written = match memtable.writer.table().is_empty() {
                true => Ok(()),
                false => progress.written.add(memtable.writer.table(), memtable.last_sequence),
            };
            if let Err(error) = written {
                progress.table_error = Some(error);
                kept.push(memtable);
                break;
            }
            logs.extend(memtable.logs);
        }
        kept.extend(memtables);
        progress.memtables = kept;
        match progress.memtables.first_mut() {
            Some(first) => first.logs.splice(..0, logs).for_each(drop),
            None => {
                let writer = self.options.new_memtable(self.order);
                progress.memtables.push(RecoveredMemtable {
                    writer,
                    logs,
                    last_sequence: progress.last_sequence,
                });
            }
        }
    }

    /// Whether tables hold the batch. A batch is never divided between a table and a later log.
    fn is_in_tables(&self, batch: &BatchView<'_>, progress: &mut Progress) -> bool {
        // A MANIFEST of Terrace's ends where the logs begin. LevelDB records what it had handed out
        // by then.
        batch.sequence <= progress.flushed
            && batch.sequence
                <= *progress
                    .in_tables
                    .get_or_insert_with(|| self.version.newest_sequence_in_tables(self.tables))
    }

    /// Meets something that is not as it should be.
    fn meet(&self, problem: Problem, progress: &mut Progress) {
        if self.options.recovery_mode == RecoveryMode::Salvage {
            let Problem { file, message, log, .. } = problem;
            progress.salvaged.push(Damage { log, file, message, keep: true, kept_as: None });
            progress.continuity.interrupt();
            return;
        }
        if !problem.torn {
            progress.damage.get_or_insert_with(|| problem.message.clone());
        }
        progress.problem.get_or_insert(problem);
    }

    /// Decides what the first problem means, with everything read.
    fn judge(&self, progress: &mut Progress, logs: &[u64]) -> Result<Vec<Damage>> {
        if self.options.recovery_mode == RecoveryMode::Salvage {
            return Ok(std::mem::take(&mut progress.salvaged));
        }
        let recovered = progress.last_sequence;
        if progress.durable > recovered && !mutated("heed-marks") {
            let what = match &progress.problem {
                Some(problem) => problem.message.clone(),
                None => format!("{}: the end of the logs is missing", self.dir.display()),
            };
            let durable = progress.durable;
            return Err(Error::corruption(format!(
                "{what}: damage to durable data: writes up to sequence number {durable} were \
                 synced, only those up to {recovered} can be read; a repair, or the recovery mode \
                 \"salvage\", saves what is left"
            )));
        }
        let Some(problem) = progress.problem.take() else { return Ok(Vec::new()) };
        let Problem { file, message, log, .. } = problem;
        if self.options.recovery_mode == RecoveryMode::Strict {
            // What was torn was not synced, nor was anything behind it if older logs are synced
            // first.
            let may_hide_syncs = progress.more_behind && !progress.syncs_in_order;
            let doubt = progress.damage.take().or_else(|| may_hide_syncs.then(|| message.clone()));
            if let Some(doubt) = doubt {
                return Err(Error::corruption(doubt));
            }
        }
        let mut damage =
            vec![Damage { log, file, message, keep: progress.more_behind, kept_as: None }];
        // Later logs hold nothing that was applied: they are kept with the damaged one.
        if progress.more_behind {
            let later = logs.iter().filter(|&&later| later > log);
            damage.extend(later.map(|&log| Damage {
                log,
                file: filename::log(log),
                message: format!("{}: behind the cut", filename::log(log)),
                keep: true,
                kept_as: None,
            }));
        }
        Ok(damage)
    }
}
