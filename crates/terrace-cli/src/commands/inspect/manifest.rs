//! MANIFESTs, for people and as JSON.

use serde_json::{Value, json};
use terrace::Options;
use terrace::inspect::{self, AddedTable, AddedValueFile, Damage, EditItem, ManifestItem};

use super::Printer;
use crate::failure::Result;
use crate::output::columns::{counted, size};

impl Printer<'_> {
    pub(super) fn manifest(&mut self) -> Result<u64> {
        let file = self.file.clone();
        let summary = inspect::manifest(&file, &Options::new(), &mut |item| {
            let printed = match &item {
                ManifestItem::Edit(_) if self.args.summary => Ok(()),
                ManifestItem::Edit(edit) => self.edit(edit),
                ManifestItem::Damage(damage) => self.damage(damage),
                _ => Ok(()),
            };
            self.go_on(printed)
        });
        let mut summary = self.unless_failed(summary)?;
        if summary.edits == 0 && summary.damages == 0 {
            // Not even the torn end of one that was written is without its first edit.
            let message = "no edit can be read, and a MANIFEST begins with one".to_owned();
            self.damage(&Damage { offset: 0, message })?;
            summary.damages = 1;
        }
        if self.form.json {
            self.out.json(&json!({
                "manifest": {
                    "file_size": summary.file_size,
                    "edits": summary.edits,
                    "comparator": summary.comparator,
                    "log_number": summary.log_number,
                    "next_file_number": summary.next_file_number,
                    "last_sequence": summary.last_sequence,
                    "tables": summary.tables,
                    "torn": summary.torn,
                    "damages": summary.damages,
                }
            }))?;
            return Ok(summary.damages);
        }
        let number =
            |number: Option<u64>| number.map_or("not set".to_string(), |number| number.to_string());
        let tables: Vec<_> = summary.tables.iter().map(usize::to_string).collect();
        let edits = counted(summary.edits, "edit", "edits");
        self.line(format!("MANIFEST of {}, {edits}; at its end:", size(summary.file_size)))?;
        self.line(format!(
            "  comparator     {}",
            summary.comparator.as_deref().unwrap_or("not set")
        ))?;
        self.line(format!("  log            {}", number(summary.log_number)))?;
        self.line(format!("  next file      {}", number(summary.next_file_number)))?;
        self.line(format!("  last sequence  {}", number(summary.last_sequence)))?;
        self.line(format!("  tables         {} by level", tables.join(" ")))?;
        self.torn(summary.torn)?;
        self.verdict(summary.damages)
    }

    fn edit(&mut self, edit: &EditItem) -> Result<()> {
        if self.form.json {
            let json = self.edit_as_json(edit);
            return self.out.json(&json);
        }
        self.line(format!("edit at {}", edit.offset))?;
        if let Some(name) = &edit.comparator {
            self.line(format!("  comparator {name}"))?;
        }
        let numbers = [
            ("log", edit.log_number),
            ("previous log", edit.previous_log_number),
            ("next file", edit.next_file_number),
            ("last sequence", edit.last_sequence),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                self.line(format!("  {name} {number}"))?;
            }
        }
        for (level, key) in &edit.compact_pointers {
            self.line(format!("  level {level} goes on after {}", self.show(key)))?;
        }
        for (level, number) in &edit.removed {
            self.line(format!("  remove table {number} from level {level}"))?;
        }
        for AddedValueFile { number, size, value_bytes } in &edit.added_value_files {
            self.line(format!(
                "  add value file {number}: {size} bytes, {value_bytes} of them values"
            ))?;
        }
        for table in &edit.added {
            let AddedTable { level, number, size, smallest, largest, values, compressions } = table;
            let (smallest, largest) = (self.show(smallest), self.show(largest));
            self.line(format!(
                "  add table {number} to level {level}: {size} bytes, {smallest} .. {largest}"
            ))?;
            for (file, bytes) in values {
                self.line(format!("    points at {bytes} bytes in value file {file}"))?;
            }
            if !compressions.is_empty() {
                self.line(format!("    compressed with {}", compressions.join(" and ")))?;
            }
        }
        Ok(())
    }

    fn edit_as_json(&self, edit: &EditItem) -> Value {
        let pointers = edit.compact_pointers.iter();
        let added = edit.added.iter();
        json!({ "edit": {
            "offset": edit.offset,
            "comparator": edit.comparator,
            "log_number": edit.log_number,
            "previous_log_number": edit.previous_log_number,
            "next_file_number": edit.next_file_number,
            "last_sequence": edit.last_sequence,
            "compact_pointers": pointers
                .map(|(level, key)| json!({ "level": level, "key": self.json(key) }))
                .collect::<Vec<_>>(),
            "removed": edit.removed.iter()
                .map(|(level, number)| json!({ "level": level, "number": number }))
                .collect::<Vec<_>>(),
            "added": added
                .map(|table| json!({
                    "level": table.level,
                    "number": table.number,
                    "size": table.size,
                    "smallest": self.json(&table.smallest),
                    "largest": self.json(&table.largest),
                    "values": table.values.iter()
                        .map(|(file, bytes)| json!({ "file": file, "bytes": bytes }))
                        .collect::<Vec<_>>(),
                    "compressions": table.compressions,
                }))
                .collect::<Vec<_>>(),
            "added_value_files": edit.added_value_files.iter()
                .map(|file| json!({
                    "number": file.number,
                    "size": file.size,
                    "value_bytes": file.value_bytes,
                }))
                .collect::<Vec<_>>(),
        }})
    }
}
