//! Tables, for people and as JSON.

use serde_json::{Value, json};
use terrace::Options;
use terrace::inspect::{self, Effect, Extent, PointedValue, TableItem};

use super::Printer;
use crate::failure::Result;
use crate::output::columns::{counted, size};

impl Printer<'_> {
    pub(super) fn table(&mut self) -> Result<u64> {
        let file = self.file.clone();
        let summary = inspect::table(&file, &Options::new(), &mut |item| {
            let printed = self.table_item(&item);
            self.go_on(printed)
        });
        let summary = self.unless_failed(summary)?;
        let filter = summary.filter_name();
        if self.form.json {
            let bounds = summary.bounds.as_ref();
            self.out.json(&json!({
                "table": {
                    "file_size": summary.file_size,
                    "index": extent_as_json(summary.index),
                    "metaindex": extent_as_json(summary.metaindex),
                    "meta_blocks": summary.meta_blocks.iter()
                        .map(|(name, extent)| (name.clone(), extent_as_json(*extent)))
                        .collect::<serde_json::Map<_, _>>(),
                    "filter": filter,
                    "table_filter": summary.has_table_filter(),
                    "blocks": summary.blocks,
                    "stored_bytes": summary.stored_bytes,
                    "raw_bytes": summary.raw_bytes,
                    "entries": summary.entries,
                    "deletions": summary.deletions,
                    "key_bytes": summary.key_bytes,
                    "value_bytes": summary.value_bytes,
                    "pointed_values": summary.pointed_values,
                    "pointed_bytes": summary.pointed_bytes,
                    "smallest": bounds.map(|(first, _)| self.json(first)),
                    "largest": bounds.map(|(_, last)| self.json(last)),
                    "smallest_sequence": summary.sequences.map(|(first, _)| first),
                    "largest_sequence": summary.sequences.map(|(_, last)| last),
                    "damages": summary.damages,
                }
            }))?;
            return Ok(summary.damages);
        }
        self.line(format!("table of {}", size(summary.file_size)))?;
        self.line(format!("  index      {}", at(summary.index)))?;
        self.line(format!("  metaindex  {}", at(summary.metaindex)))?;
        for (name, extent) in &summary.meta_blocks {
            self.line(format!("    {name}  {}", at(*extent)))?;
        }
        let filters: Vec<_> = filter
            .into_iter()
            .chain(summary.has_table_filter().then_some("Terrace's own"))
            .collect();
        let filters = if filters.is_empty() { "none".to_string() } else { filters.join(", ") };
        self.line(format!("  filters    {filters}"))?;
        self.line(format!(
            "  blocks     {}, {} stored, {} uncompressed",
            summary.blocks,
            size(summary.stored_bytes),
            size(summary.raw_bytes)
        ))?;
        self.line(format!(
            "  entries    {}, {}; {} of keys, {} of values",
            summary.entries,
            counted(summary.deletions, "deletion", "deletions"),
            size(summary.key_bytes),
            size(summary.value_bytes)
        ))?;
        if summary.pointed_values > 0 {
            let values = counted(summary.pointed_values, "value", "values");
            let bytes = size(summary.pointed_bytes);
            self.line(format!("  points at  {values} in value files, {bytes}"))?;
        }
        if let Some((first, last)) = &summary.bounds {
            self.line(format!("  keys       {} .. {}", self.show(first), self.show(last)))?;
        }
        self.sequences(summary.sequences)?;
        self.verdict(summary.damages)
    }

    /// An entry with its value in a value file, which is not read.
    fn pointed(&mut self, sequence: u64, key: &[u8], value: PointedValue) -> Result<()> {
        let PointedValue { file, offset, length } = value;
        let file = format!("{file:06}.vlog");
        if self.form.json {
            return self.out.json(&json!({ "entry": {
                "sequence": sequence,
                "effect": "put",
                "key": self.json(key),
                "value_size": length,
                "value_file": file,
                "value_offset": offset,
            }}));
        }
        let key = self.show(key);
        self.line(format!("  {sequence}\tput\t{key}\t({length} bytes at {offset} of {file})"))
    }

    fn table_item(&mut self, item: &TableItem<'_>) -> Result<()> {
        match item {
            TableItem::Block(_) if self.args.summary => Ok(()),
            TableItem::Block(block) => {
                if self.form.json {
                    return self.out.json(&json!({ "block": {
                        "offset": block.extent.offset,
                        "size": block.extent.size,
                        "compression": block.compression,
                        "raw_size": block.raw_size,
                        "entries": block.entries,
                        "separator": self.json(block.separator),
                    }}));
                }
                let Extent { offset, size } = block.extent;
                let separator = self.show(block.separator);
                let entries = counted(block.entries, "entry", "entries");
                let packing = match block.compression {
                    "none" => "not compressed".to_string(),
                    name => format!("{name} of {}", block.raw_size),
                };
                self.line(format!(
                    "block at {offset}, {size} bytes ({packing}), {entries}, up to {separator}"
                ))
            }
            TableItem::Entry(_) if !self.shows_keys() => Ok(()),
            TableItem::Entry(entry) => {
                let effect = match entry.effect {
                    Effect::Put => "put",
                    Effect::Delete => "delete",
                    _ => "unknown",
                };
                if let Some(pointed) = entry.pointed {
                    return self.pointed(entry.sequence, entry.key, pointed);
                }
                let value = (entry.effect != Effect::Delete).then_some(entry.value);
                self.operation(effect, entry.sequence, entry.key, value)
            }
            TableItem::Damage(damage) => self.damage(damage),
            _ => Ok(()),
        }
    }
}

fn extent_as_json(extent: Extent) -> Value {
    json!({ "offset": extent.offset, "size": extent.size })
}

fn at(extent: Extent) -> String {
    format!("{} ({} bytes)", extent.offset, extent.size)
}
