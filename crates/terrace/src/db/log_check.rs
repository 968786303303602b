//! Reads write-ahead logs one after another, telling what they hold and what is wrong with them. Applies nothing.

use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::{MAX_SEQUENCE, SequenceNumber};
use crate::env::RandomAccessFile;
use crate::log::{LogItem, LogReader};
use crate::write::batch::BatchView;

use super::medium::{ATTEMPTS, is_damage};

/// What is found in a log.
pub(super) enum Finding<'a> {
    /// A batch, checked as a whole.
    Batch(BatchView<'a>),
    /// Something that is not as it should be, with its offset.
    Problem(String),
    /// The end of the file cuts a record off, as a crash leaves it. Whether writes are missing that were durable or that
    /// the next log relies on shows in durability marks and in the next log.
    Torn(String),
}

/// Which sequence number the next batch must have.
#[derive(Clone, Copy)]
enum Expected {
    Exactly(SequenceNumber),
    /// Nothing was read yet, and all that is known is where the tables end.
    AtMost(SequenceNumber),
}

/// What is known from the logs read so far.
pub(super) struct LogCheck {
    next: Option<Expected>,
    /// The last write of tables and logs.
    last_sequence: SequenceNumber,
    /// Everything up to here was durable once.
    durable: SequenceNumber,
    /// The first write of all logs.
    pub(super) smallest_sequence: SequenceNumber,
    pub(super) records: u64,
}

impl LogCheck {
    /// `flushed`: the last sequence number that the MANIFEST records, if it is known. No log begins behind the one
    /// that follows.
    pub(super) fn new(flushed: Option<SequenceNumber>) -> Self {
        LogCheck {
            next: flushed.map(|flushed| Expected::AtMost(flushed + 1)),
            last_sequence: flushed.unwrap_or(0),
            durable: 0,
            smallest_sequence: MAX_SEQUENCE,
            records: 0,
        }
    }

    /// How many records have been read.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    pub(super) fn last_sequence(&self) -> SequenceNumber {
        self.last_sequence
    }

    /// Reads the next log. `name` is for messages. An error is the system's, or `visit`'s.
    pub(super) fn read(
        &mut self,
        file: Arc<dyn RandomAccessFile>,
        name: &str,
        visit: &mut dyn FnMut(Finding<'_>) -> Result<()>,
    ) -> Result<()> {
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
                    self.next = None;
                    let message = error.message();
                    return visit(Finding::Problem(format!("what follows is lost, it cannot be read: {message}")));
                }
                item => item?,
            };
            // What could be read after all was no loss.
            failures = 0;
            match item {
                LogItem::Record { data, offset, .. } => {
                    self.records += 1;
                    match BatchView::parse(data) {
                        Ok(batch) => self.batch(batch, offset, visit)?,
                        Err(error) => {
                            self.next = None;
                            visit(Finding::Problem(format!("at offset {offset}: {}", error.message())))?;
                        }
                    }
                }
                LogItem::Damage { length, reason, .. } => {
                    self.next = None;
                    let reason = reason.strip_prefix(name).unwrap_or(&reason).trim_start_matches([':', ' ']);
                    visit(Finding::Problem(format!("{reason}; {length} bytes are lost")))?;
                }
                LogItem::End { torn: false, .. } => return Ok(()),
                LogItem::End { torn: true, offset } => {
                    self.next.get_or_insert(Expected::AtMost(self.last_sequence + 1));
                    let message = format!("an incomplete record at offset {offset}, as a crash leaves it");
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
        if let Some(durable) = batch.durability_mark() {
            self.durable = self.durable.max(durable);
            return Ok(());
        }
        let (fits, expected) = match self.next {
            None => (true, 0),
            Some(Expected::Exactly(next)) => (batch.sequence == next, next),
            Some(Expected::AtMost(next)) => (batch.sequence <= next, next),
        };
        if !fits {
            let found = batch.sequence;
            let message = format!("at offset {offset}: a batch at sequence number {found}, where {expected} is due");
            visit(Finding::Problem(message))?;
        }
        self.next = Some(Expected::Exactly(batch.last_sequence() + 1));
        self.last_sequence = self.last_sequence.max(batch.last_sequence());
        self.smallest_sequence = self.smallest_sequence.min(batch.sequence);
        visit(Finding::Batch(batch))
    }

    /// What is wrong with all logs together.
    pub(super) fn finish(&self) -> Option<String> {
        let (durable, last) = (self.durable, self.last_sequence);
        (durable > last).then(|| format!("writes up to sequence number {durable} were synced, the last one is {last}"))
    }
}
