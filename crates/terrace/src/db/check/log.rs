//! Reads write-ahead logs one after another, telling what they hold and what is wrong with them.
//! Applies nothing.

use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::{MAX_SEQUENCE, SequenceNumber};
use crate::env::RandomAccessFile;
use crate::log::{LogItem, LogReader};
use crate::version::manifest::ManifestState;
use crate::write::batch_view::BatchView;

use crate::db::io_error::{ATTEMPTS, is_damage};
use crate::db::open::continuity::{Continuity, Place};
use crate::db::open::unnamed_tables::may_be_loaded;

/// A finding in a log.
pub(in crate::db) enum Finding<'a> {
    /// A batch, checked as a whole.
    Batch(BatchView<'a>),
    /// Something that is not as it should be, with its offset.
    Problem(String),
    /// The end of the file cuts a record off, as a crash leaves it. Whether writes are missing that
    /// were durable or that the next log relies on shows in durability marks and in the next log.
    Torn(String),
}

/// The state of a check of logs: what those read so far show.
pub(in crate::db) struct LogCheck {
    continuity: Continuity,
    /// The newest entry of all tables.
    in_tables: SequenceNumber,
    /// The last sequence numbers of tables that the MANIFEST does not name, 0 where that is unknown.
    unnamed: Vec<SequenceNumber>,
    /// The last write of tables and logs.
    last_sequence: SequenceNumber,
    /// Everything up to here was durable once.
    durable: SequenceNumber,
    /// The first write of all logs.
    pub(in crate::db) smallest_sequence: SequenceNumber,
    begins_late: bool,
    pub(in crate::db) records: u64,
}

impl LogCheck {
    /// `flushed`: the last sequence number that the MANIFEST records, if it is known. No log begins
    /// behind the one that follows.
    pub(in crate::db) fn new(flushed: Option<SequenceNumber>) -> Self {
        LogCheck {
            continuity: Continuity::without_manifest(flushed),
            in_tables: 0,
            unnamed: Vec::new(),
            last_sequence: flushed.unwrap_or(0),
            durable: 0,
            smallest_sequence: MAX_SEQUENCE,
            begins_late: false,
            records: 0,
        }
    }

    /// The logs that belong to what a MANIFEST says. The newest entry of all tables is `in_tables`;
    /// the tables that the MANIFEST does not name end with the sequence numbers `unnamed`, 0 where
    /// that is unknown.
    pub(in crate::db) fn following(
        state: &ManifestState,
        in_tables: SequenceNumber,
        unnamed: Vec<SequenceNumber>,
    ) -> Self {
        let continuity = Continuity::following(state);
        LogCheck { continuity, in_tables, unnamed, ..Self::new(Some(state.last_sequence)) }
    }

    /// Whether the first batch of all logs does not continue the tables.
    pub(in crate::db) fn begins_late(&self) -> bool {
        self.begins_late
    }

    /// How many records have been read.
    pub(in crate::db) fn records(&self) -> u64 {
        self.records
    }

    pub(in crate::db) fn last_sequence(&self) -> SequenceNumber {
        self.last_sequence
    }

    /// Reads the log `number`, the next one. `name` is for messages. An error is the system's, or
    /// `visit`'s.
    pub(in crate::db) fn read(
        &mut self,
        number: u64,
        file: Arc<dyn RandomAccessFile>,
        name: &str,
        visit: &mut dyn FnMut(Finding<'_>) -> Result<()>,
    ) -> Result<()> {
        self.continuity.begin_log(number);
        let size = file.size();
        // What a gap may hide shows in the sequence numbers behind it.
        let mut reader = LogReader::new(file, name.to_owned()).tolerating_gaps();
        let mut failures = 0;
        loop {
            let item = match reader.next() {
                Err(error) if is_damage(&error) => {
                    failures += 1;
                    if failures < ATTEMPTS {
                        continue;
                    }
                    self.continuity.interrupt();
                    let message = error.message();
                    return visit(Finding::Problem(format!(
                        "what follows is lost, it cannot be read: {message}"
                    )));
                }
                item => item?,
            };
            // What could be read after all was no loss.
            failures = 0;
            match item {
                LogItem::Record { data, begin, offset, end, split, doubtful } => {
                    self.records += 1;
                    self.continuity.record(begin, end);
                    match BatchView::parse(data) {
                        Ok(batch) if batch.count == 0 => {
                            let mark = batch.durability_mark(split);
                            let proven = self.continuity.proven_durable(mark, doubtful, offset);
                            self.durable = self.durable.max(proven);
                        }
                        Ok(batch) => self.batch(batch, offset, visit)?,
                        Err(error) => {
                            self.continuity.interrupt();
                            visit(Finding::Problem(format!(
                                "at offset {offset}: {}",
                                error.message()
                            )))?;
                        }
                    }
                }
                LogItem::Damage { length, reason, .. } => {
                    self.continuity.interrupt();
                    let reason =
                        reason.strip_prefix(name).unwrap_or(&reason).trim_start_matches([':', ' ']);
                    visit(Finding::Problem(format!("{reason}; {length} bytes are lost")))?;
                }
                LogItem::End { torn: false, offset } => {
                    self.continuity.end_log(offset, size);
                    return Ok(());
                }
                // What is torn was never synced. Whether more is missing shows in the next log.
                LogItem::End { torn: true, offset } => {
                    let message =
                        format!("an incomplete record at offset {offset}, as a crash leaves it");
                    return visit(Finding::Torn(message));
                }
            }
        }
    }

    fn batch(
        &mut self,
        batch: BatchView<'_>,
        offset: u64,
        visit: &mut dyn FnMut(Finding<'_>) -> Result<()>,
    ) -> Result<()> {
        let found = batch.sequence;
        // Behind damage nothing is due, but the tables end where they end.
        let is_late = self.continuity.is_interrupted() && found > self.last_sequence + 1;
        let is_first = self.smallest_sequence == MAX_SEQUENCE;
        let due = match self.continuity.place(found, batch.last_sequence()) {
            Place::Misplaced { due } => Some(due),
            Place::FollowsTables if found > self.in_tables + 1 => Some(self.in_tables + 1),
            Place::SkipsNumbers { due }
                if self.unnamed.iter().any(|&last| may_be_loaded(last, due, found)) =>
            {
                Some(due)
            }
            Place::Follows | Place::FollowsTables | Place::SkipsNumbers { .. } => None,
        };
        self.begins_late |= is_first && (due.is_some() || is_late);
        if let Some(due) = due {
            let message = format!(
                "at offset {offset}: a batch at sequence number {found}, where {due} is due"
            );
            visit(Finding::Problem(message))?;
        }
        self.last_sequence = self.last_sequence.max(batch.last_sequence());
        self.smallest_sequence = self.smallest_sequence.min(batch.sequence);
        visit(Finding::Batch(batch))
    }

    /// Problems of all logs together.
    pub(in crate::db) fn finish(&self) -> Option<String> {
        let (durable, last) = (self.durable, self.last_sequence);
        (durable > last).then(|| {
            format!("writes up to sequence number {durable} were synced, the last one is {last}")
        })
    }
}
