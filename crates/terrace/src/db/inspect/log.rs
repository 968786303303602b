//! Write-ahead logs.

use std::path::Path;

use super::damage_counter::DamageCounter;
use super::file::{name_of, open};
use super::log_items::{BatchItem, LogItem, LogSummary, OperationItem};
use super::piece::{Damage, Flow};
use crate::base::error::Result;
use crate::db::options::Options;
use crate::log::{self, LogReader};
use crate::write::batch_view::{BatchView, Operation};

/// Reads the write-ahead log at `path` from its beginning to its end and calls `visit` with every
/// piece until it breaks off. What follows damage is shown too, although recovery may not take it.
///
/// ```
/// # use terrace::*;
/// # use std::ops::ControlFlow;
/// # use std::path::Path;
/// # use std::sync::Arc;
/// use terrace::inspect::{self, LogItem};
///
/// # let env: Arc<dyn Env> = Arc::new(MemEnv::new());
/// # let options = Options::new().create_if_missing(true).env(env.clone());
/// # let db = Db::open("/db", options.clone())?;
/// # db.put("apple", "red")?;
/// # let mut names = env.list(Path::new("/db"))?.into_iter();
/// # let path = Path::new("/db").join(names.find(|name| name.ends_with(".log")).unwrap());
/// let summary = inspect::log(&path, &options, &mut |item| {
///     if let LogItem::Operation(operation) = item {
///         println!("{}: {:?}", operation.sequence, operation.key);
///     }
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(summary.operations, 1);
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// `Io` if the file cannot be read. Damage is a piece of its own.
pub fn log(
    path: &Path,
    options: &Options,
    visit: &mut dyn FnMut(LogItem<'_>) -> Flow,
) -> Result<LogSummary> {
    let file = open(path, options)?;
    let mut summary = LogSummary { file_size: file.size(), ..LogSummary::default() };
    let mut reader = LogReader::new(file, name_of(path));
    let mut damages = DamageCounter::new(name_of(path));
    loop {
        let flow = match reader.next()? {
            log::LogItem::Record { data, offset, split, .. } => match BatchView::parse(data) {
                Ok(batch) => {
                    let is_mark = batch.durability_mark(split).is_some();
                    let size = data.len() as u64;
                    let item = BatchItem {
                        offset,
                        size,
                        sequence: batch.sequence,
                        operations: batch.count,
                        is_mark,
                    };
                    show_batch(item, &batch, &mut summary, visit)
                }
                Err(error) => visit(LogItem::Damage(damages.count(offset, error.message()))),
            },
            log::LogItem::Damage { offset, length, reason, .. } => {
                visit(LogItem::Damage(skipped(&mut damages, offset, length, &reason)))
            }
            log::LogItem::End { torn, .. } => {
                summary.torn = torn;
                break;
            }
        };
        if flow.is_break() {
            break;
        }
    }
    summary.damages = damages.damages;
    Ok(summary)
}

/// Damage that the framing of a log or a MANIFEST shows.
pub(super) fn skipped(
    damages: &mut DamageCounter,
    offset: u64,
    length: u64,
    reason: &str,
) -> Damage {
    damages.count(offset, &format!("{reason}; {length} bytes are skipped"))
}

fn show_batch(
    item: BatchItem,
    batch: &BatchView<'_>,
    summary: &mut LogSummary,
    visit: &mut dyn FnMut(LogItem<'_>) -> Flow,
) -> Flow {
    summary.marks += u64::from(item.is_mark);
    summary.batches += u64::from(!item.is_mark);
    visit(LogItem::Batch(item))?;
    // Checked as a whole already: no operation fails to decode.
    for (operation, sequence) in batch.operations().flatten().zip(batch.sequence..) {
        let (key, value) = match operation {
            Operation::Put { key, value } => (key, Some(value)),
            Operation::Delete { key } => (key, None),
        };
        summary.operations += 1;
        summary.deletions += u64::from(value.is_none());
        let (smallest, largest) = summary.sequences.unwrap_or((sequence, sequence));
        summary.sequences = Some((smallest.min(sequence), largest.max(sequence)));
        visit(LogItem::Operation(OperationItem { sequence, key, value }))?;
    }
    Flow::Continue(())
}

/// Whether the first record that can be read is a batch.
pub(super) fn is_log(path: &Path, options: &Options) -> Result<bool> {
    first_record(path, options, |record| BatchView::parse(record).is_ok())
}

/// Whether the first record that can be read in a file with a log's framing passes a test.
pub(super) fn first_record(
    path: &Path,
    options: &Options,
    test: impl Fn(&[u8]) -> bool,
) -> Result<bool> {
    let mut reader = LogReader::new(open(path, options)?, name_of(path));
    loop {
        match reader.next()? {
            log::LogItem::Record { data, .. } => return Ok(test(data)),
            log::LogItem::Damage { .. } => {}
            log::LogItem::End { .. } => return Ok(false),
        }
    }
}
