//! Replays write-ahead logs into memtables, and decides what a damaged one means.
//!
//! A log can end in a torn record: writes that were never synced reach the disk in any order, or not at all. A log
//! can also be damaged where it was durable once. *Durability marks* tell the two apart: a mark says that everything
//! up to a sequence number had reached the disk when it was written (`docs/format.md`). Sequence numbers are
//! contiguous over all logs, so a hole shows even where every checksum is right.
//!
//! # Invariants
//! 1. In the modes [`RecoveryMode::Prefix`] and [`RecoveryMode::Strict`] the outcome is a prefix of the history.
//! 2. A batch is applied as a whole, after all of it has been checked.
//! 3. Nothing in the directory is changed.
//! 4. A log belongs to one memtable as a whole, however large: memtables become tables one by one, and the MANIFEST can leave
//!    behind whole logs only. Were the first part of a log a table and the rest lost in a power cut, the next recovery would
//!    put older versions above newer ones.
//! 5. What is in tables is not applied again: an earlier log in the place of a later one would hide newer versions.

use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{EntryKind, InternalOrder, SequenceNumber};
use crate::base::sabotage::sabotaged;
use crate::env::{Env, ReadAccess};
use crate::log::{LogItem, LogReader};
use crate::memtable::{MemTable, MemTableWriter};
use crate::version::filename;
use crate::version::table_set::TableSet;
use crate::version::version::Version;
use crate::write::batch::{BatchView, Operation};

use super::options::{Options, RecoveryMode};

/// A memtable with what some logs held.
pub(super) struct RecoveredMemtable {
    pub(super) writer: MemTableWriter,
    /// The logs whose last entries are here: they are needed until this is a table.
    pub(super) logs: Vec<u64>,
    pub(super) last_sequence: SequenceNumber,
}

/// Where the history was cut or has a hole.
#[derive(Clone, Debug)]
pub(super) struct Damage {
    pub(super) log: u64,
    /// The log's name.
    pub(super) file: String,
    pub(super) message: String,
    /// Whether the damaged log is worth keeping: something valid lies behind the damage.
    pub(super) keep: bool,
    /// Where it is kept, once it is.
    pub(super) kept_as: Option<String>,
}

/// What replaying brought.
pub(super) struct Recovered {
    /// Oldest first; empty ones left out.
    pub(super) memtables: Vec<RecoveredMemtable>,
    pub(super) last_sequence: SequenceNumber,
    pub(super) damage: Vec<Damage>,
    /// Whether the next sequence number does not follow the last one in the logs, because the MANIFEST knows of
    /// later writes (LevelDB records what it has handed out, not what is durable).
    leaves_gap: bool,
    /// Whether the logs hold anything at all, if only marks. What was never synced may be something else after a power
    /// cut, and stand as damage before whatever later logs hold.
    holds_bytes: bool,
    /// The newest log and where it ends, if it can be appended to.
    reusable: Option<(u64, u64)>,
}

impl Recovered {
    /// Whether something was wrong with the logs.
    pub(super) fn was_damaged(&self) -> bool {
        !self.damage.is_empty()
    }

    /// Whether there is something in the logs that the next recovery must not meet again.
    pub(super) fn is_cut(&self) -> bool {
        !self.damage.is_empty() || self.leaves_gap
    }

    /// Whether the MANIFEST must have left the logs behind before another write is acknowledged. Not asked where the log is
    /// continued.
    pub(super) fn must_be_left(&self) -> bool {
        self.is_cut() || self.holds_bytes
    }

    /// The log to go on with, and its end, if that is safe. The only memtable is then the log's.
    pub(super) fn reusable(&self) -> Option<(u64, u64)> {
        let (log, end) = self.reusable?;
        let single = self.memtables.len() == 1 && self.memtables[0].logs == [log];
        (single && !self.is_cut()).then_some((log, end))
    }
}

/// The least unit in which systems and disks write files back.
const SECTOR: u64 = 512;

/// Which sequence number the next batch must have.
#[derive(Clone, Copy)]
enum Expected {
    /// It follows the batch before it.
    Exactly(SequenceNumber),
    /// It is the first: it continues the tables, which end there (Terrace) or earlier (LevelDB records what it had
    /// handed out by then). More would mean that an earlier log lost all that it held.
    AtMost(SequenceNumber),
}

/// Where replaying stopped applying.
struct Problem {
    file: String,
    message: String,
    /// The logs from this one on hold what was not applied.
    log: u64,
}

/// See the [module](self).
pub(super) struct Replay<'a> {
    pub(super) env: &'a dyn Env,
    pub(super) dir: &'a Path,
    pub(super) options: &'a Options,
    pub(super) order: &'a InternalOrder,
    pub(super) version: &'a Version,
    pub(super) tables: &'a TableSet,
}

/// What is known while logs are being replayed.
struct Progress {
    /// The last sequence number that the MANIFEST records.
    flushed: SequenceNumber,
    /// The newest sequence number in tables, once that was asked.
    in_tables: Option<SequenceNumber>,
    memtables: Vec<RecoveredMemtable>,
    last_sequence: SequenceNumber,
    /// What must come next; anything after damage that is salvaged.
    next: Option<Expected>,
    /// Everything up to here is known to have been durable.
    durable: SequenceNumber,
    problem: Option<Problem>,
    /// Something valid lies behind the problem.
    more_behind: bool,
    salvaged: Vec<Damage>,
    holds_bytes: bool,
    /// Where the last batch ends in the log being read.
    end_of_batches: u64,
}

impl Replay<'_> {
    /// Replays `logs`, oldest first. `flushed`: the last sequence number that the MANIFEST records.
    pub(super) fn run(&self, logs: &[u64], flushed: SequenceNumber) -> Result<Recovered> {
        let mut progress = Progress {
            flushed,
            in_tables: None,
            memtables: Vec::new(),
            last_sequence: flushed,
            next: Some(Expected::AtMost(flushed + 1)),
            durable: 0,
            problem: None,
            more_behind: false,
            salvaged: Vec::new(),
            holds_bytes: false,
            end_of_batches: 0,
        };
        let mut reusable = None;
        for &log in logs {
            reusable = self.replay_log(log, &mut progress)?.map(|end| (log, end));
        }
        let damage = self.judge(&mut progress, logs)?;
        let last_sequence = progress.last_sequence;
        // A log is continued only if every byte of it is certainly on disk, or will be with the next append. After a
        // failed sync the system may show bytes that no later sync writes: only marks tell. The marks that follow the
        // last batch were themselves never synced, so they must lie in the sector that the next append rewrites.
        let end_of_batches = progress.end_of_batches / SECTOR;
        let all_durable = progress.durable >= last_sequence || sabotaged("continue-durable-logs");
        reusable = reusable.filter(|(_, end)| all_durable && end / SECTOR == end_of_batches);
        let leaves_gap = matches!(progress.next, Some(Expected::Exactly(next)) if next != last_sequence + 1);
        let (mut memtables, empty): (Vec<_>, Vec<_>) =
            progress.memtables.into_iter().partition(|memtable| !memtable.writer.table().is_empty());
        // Logs that held nothing go with the first memtable, so that they are removed with its log.
        if let Some(first) = memtables.first_mut() {
            first.logs.extend(empty.into_iter().flat_map(|memtable| memtable.logs));
            first.logs.sort_unstable();
        }
        let holds_bytes = progress.holds_bytes;
        Ok(Recovered { memtables, last_sequence, damage, leaves_gap, holds_bytes, reusable })
    }

    /// Replays one log. Answers where it ends, if the file ends there too.
    fn replay_log(&self, log: u64, progress: &mut Progress) -> Result<Option<u64>> {
        let file = filename::log(log);
        let path = self.dir.join(&file);
        let handle = self.env.open_random(&path, ReadAccess::Pread)?;
        let size = handle.size();
        progress.end_of_batches = 0;
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
                LogItem::Record { data, offset, end } => match BatchView::parse(data) {
                    Ok(batch) => {
                        if batch.count > 0 {
                            progress.end_of_batches = end;
                        }
                        self.take_batch(batch, log, &path, offset, progress)?;
                    }
                    Err(error) => {
                        let message = format!("{} at offset {offset}: {}", path.display(), error.message());
                        self.meet(Problem { file: file.clone(), message, log }, progress)?;
                    }
                },
                LogItem::Damage { reason, .. } => {
                    self.meet(Problem { file: file.clone(), message: reason, log }, progress)?;
                }
                LogItem::End { offset, torn } => {
                    // A torn end before a later log: processes were killed in a write and then in its recovery. If
                    // more is missing than what was never acknowledged, the later log does not follow.
                    return Ok((!torn && offset == size).then_some(offset));
                }
            }
        }
    }

    fn is_full(&self, memtable: &RecoveredMemtable) -> bool {
        memtable.writer.table().memory_usage() >= self.options.write_buffer_size
    }

    fn start_memtable(&self, log: u64, progress: &mut Progress) {
        let (writer, _) = MemTable::new(self.order.clone(), self.options.write_buffer_size);
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
        if let Some(durable) = batch.durability_mark() {
            progress.durable = progress.durable.max(durable);
            return Ok(());
        }
        let fits = match progress.next {
            None => true,
            Some(Expected::Exactly(next)) => batch.sequence == next,
            Some(Expected::AtMost(next)) => batch.sequence <= next,
        };
        if !fits && !sabotaged("sequence-holes") {
            let message = format!(
                "{} at offset {offset}: a batch at sequence number {}, which does not follow the one before",
                path.display(),
                batch.sequence,
            );
            self.meet(Problem { file: filename::log(log), message, log }, progress)?;
        }
        if progress.problem.is_some() && !sabotaged("stop-at-damage") {
            progress.more_behind = true;
            return Ok(());
        }
        let last = batch.last_sequence();
        progress.last_sequence = progress.last_sequence.max(last);
        progress.next = Some(Expected::Exactly(last + 1));
        if self.is_in_tables(&batch, progress) && !sabotaged("batches-in-tables") {
            return Ok(());
        }
        if sabotaged("logs-as-a-whole") && progress.memtables.last().is_some_and(|last| self.is_full(last)) {
            self.start_memtable(log, progress);
        }
        let Some(memtable) = progress.memtables.last_mut() else { return Ok(()) };
        let count = if sabotaged("replay-whole-batches") { 1 } else { batch.count as usize };
        for (sequence, operation) in (batch.sequence..).zip(batch.operations().take(count)) {
            match operation? {
                Operation::Put { key, value } => memtable.writer.insert(sequence, EntryKind::Value, key, value),
                Operation::Delete { key } => memtable.writer.insert(sequence, EntryKind::Deletion, key, &[]),
            }
        }
        memtable.last_sequence = progress.last_sequence;
        Ok(())
    }

    /// Whether tables hold the batch. A batch is never divided between a table and a later log.
    fn is_in_tables(&self, batch: &BatchView<'_>, progress: &mut Progress) -> bool {
        // A MANIFEST of Terrace's ends where the logs begin. LevelDB records what it had handed out by then.
        batch.sequence <= progress.flushed
            && batch.sequence
                <= *progress.in_tables.get_or_insert_with(|| self.version.newest_sequence_in_tables(self.tables))
    }

    /// Meets something that is not as it should be.
    fn meet(&self, problem: Problem, progress: &mut Progress) -> Result<()> {
        match self.options.recovery_mode {
            RecoveryMode::Strict => return Err(Error::corruption(problem.message)),
            RecoveryMode::Salvage => {
                let Problem { file, message, log } = problem;
                progress.salvaged.push(Damage { log, file, message, keep: true, kept_as: None });
                // Whatever comes next is taken.
                progress.next = None;
            }
            RecoveryMode::Prefix => {
                progress.problem.get_or_insert(problem);
            }
        }
        Ok(())
    }

    /// Decides what the first problem means, with everything read.
    fn judge(&self, progress: &mut Progress, logs: &[u64]) -> Result<Vec<Damage>> {
        if self.options.recovery_mode == RecoveryMode::Salvage {
            return Ok(std::mem::take(&mut progress.salvaged));
        }
        let recovered = progress.last_sequence;
        if progress.durable > recovered && !sabotaged("heed-marks") {
            let what = match &progress.problem {
                Some(problem) => problem.message.clone(),
                None => format!("{}: the end of the logs is missing", self.dir.display()),
            };
            let durable = progress.durable;
            return Err(Error::corruption(format!(
                "{what}: damage to durable data: writes up to sequence number {durable} were synced, only those up to \
                 {recovered} can be read; repair or RecoveryMode::Salvage save what is left"
            )));
        }
        let Some(problem) = progress.problem.take() else { return Ok(Vec::new()) };
        let Problem { file, message, log } = problem;
        let mut damage = vec![Damage { log, file, message, keep: progress.more_behind, kept_as: None }];
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
