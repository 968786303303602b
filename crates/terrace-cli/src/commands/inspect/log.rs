//! Write-ahead logs and value files, for people and as JSON.

use serde_json::json;
use terrace::Options;
use terrace::inspect::{self, LogItem};

use super::{KindName, Printer};
use crate::failure::Result;
use crate::output::columns::{counted, size};

impl Printer<'_> {
    pub(super) fn log(&mut self) -> Result<u64> {
        let file = self.file.clone();
        let summary = inspect::log(&file, &Options::new(), &mut |item| {
            let printed = self.log_item(&item);
            self.go_on(printed)
        });
        let summary = self.unless_failed(summary)?;
        if self.form.json {
            self.out.json(&json!({
                "log": {
                    "file_size": summary.file_size,
                    "batches": summary.batches,
                    "marks": summary.marks,
                    "operations": summary.operations,
                    "deletions": summary.deletions,
                    "smallest_sequence": summary.sequences.map(|(first, _)| first),
                    "largest_sequence": summary.sequences.map(|(_, last)| last),
                    "torn": summary.torn,
                    "damages": summary.damages,
                }
            }))?;
            return Ok(summary.damages);
        }
        let is_values = file.extension().is_some_and(|extension| extension == "vlog")
            || matches!(self.args.kind, Some(KindName::Values));
        let kind = if is_values { "value file" } else { "log" };
        self.line(format!("{kind} of {}", size(summary.file_size)))?;
        let marks = counted(summary.marks, "durability mark", "durability marks");
        self.line(format!("  batches    {}, and {marks}", summary.batches))?;
        let deletions = counted(summary.deletions, "deletion", "deletions");
        self.line(format!("  operations {}, {deletions}", summary.operations))?;
        self.sequences(summary.sequences)?;
        self.torn(summary.torn)?;
        self.verdict(summary.damages)
    }

    fn log_item(&mut self, item: &LogItem<'_>) -> Result<()> {
        match item {
            LogItem::Batch(_) if self.args.summary => Ok(()),
            LogItem::Batch(batch) if self.form.json => self.out.json(&json!({ "batch": {
                "offset": batch.offset,
                "size": batch.size,
                "sequence": batch.sequence,
                "operations": batch.operations,
                "mark": batch.is_mark(),
            }})),
            LogItem::Batch(batch) if batch.is_mark() => {
                let last = batch.sequence.saturating_sub(1);
                self.line(format!("mark at {}: durable up to here, sequence {last}", batch.offset))
            }
            LogItem::Batch(batch) => {
                let operations = counted(u64::from(batch.operations), "operation", "operations");
                let (offset, size, sequence) = (batch.offset, batch.size, batch.sequence);
                self.line(format!(
                    "batch at {offset}, {size} bytes, {operations} from sequence {sequence}"
                ))
            }
            LogItem::Operation(_) if !self.shows_keys() => Ok(()),
            LogItem::Operation(operation) => {
                let effect = if operation.value.is_some() { "put" } else { "delete" };
                self.operation(effect, operation.sequence, operation.key, operation.value)
            }
            LogItem::Damage(damage) => self.damage(damage),
            _ => Ok(()),
        }
    }
}
