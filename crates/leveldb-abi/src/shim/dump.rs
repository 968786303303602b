//! `DumpFile`: what a file of a database holds, as text in LevelDB's form.

use std::ffi::c_void;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use terrace::inspect::{self, EditItem, Effect, FileKind, LogItem, ManifestItem, TableItem};
use terrace::{Error, Options, Result};

use super::calls::EnvHandle;
use super::env::CustomEnv;
use super::outcome::{Bytes, Outcome, Put, Sink};
use crate::guard::export;
use crate::options::path;

/// Bytes as LevelDB shows them.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text
}

fn dump(path: &Path, options: &Options, sink: Sink) -> Result<()> {
    let put = |text: String| {
        sink.put(text.as_bytes());
        ControlFlow::Continue(())
    };
    match inspect::kind(path, options)? {
        Some(FileKind::Table) => inspect::table(path, options, &mut |item| match item {
            TableItem::Entry(entry) => {
                let kind = if entry.effect == Effect::Put { "val" } else { "del" };
                let (key, value) = (escape(entry.key), escape(entry.value));
                put(format!("'{key}' @ {} : {kind} => '{value}'\n", entry.sequence))
            }
            TableItem::Damage(damage) => put(format!("--- offset {}; {}\n", damage.offset, damage.message)),
            _ => ControlFlow::Continue(()),
        })
        .map(drop),
        Some(FileKind::Log) => inspect::log(path, options, &mut |item| match item {
            LogItem::Batch(batch) => put(format!("--- offset {}; sequence {}\n", batch.offset, batch.sequence)),
            LogItem::Operation(operation) => {
                let key = escape(operation.key);
                put(match operation.value {
                    Some(value) => format!("  put '{key}' '{}'\n", escape(value)),
                    None => format!("  del '{key}'\n"),
                })
            }
            LogItem::Damage(damage) => put(format!("--- offset {}; {}\n", damage.offset, damage.message)),
            _ => ControlFlow::Continue(()),
        })
        .map(drop),
        Some(FileKind::Manifest) => inspect::manifest(path, options, &mut |item| match item {
            ManifestItem::Edit(edit) => put(describe_edit(&edit)),
            ManifestItem::Damage(damage) => put(format!("--- offset {}; {}\n", damage.offset, damage.message)),
            _ => ControlFlow::Continue(()),
        })
        .map(drop),
        None => Err(Error::invalid_argument(format!("{}: unknown file type", path.display()))),
    }
}

fn describe_edit(edit: &EditItem) -> String {
    let mut text = format!("--- offset {}; VersionEdit {{", edit.offset);
    let numbers = [
        ("LogNumber", edit.log_number),
        ("PrevLogNumber", edit.previous_log_number),
        ("NextFile", edit.next_file_number),
        ("LastSeq", edit.last_sequence),
    ];
    if let Some(comparator) = &edit.comparator {
        let _ = write!(text, "\n  Comparator: {comparator}");
    }
    for (name, number) in numbers {
        if let Some(number) = number {
            let _ = write!(text, "\n  {name}: {number}");
        }
    }
    for (level, key) in &edit.compact_pointers {
        let _ = write!(text, "\n  CompactPointer: {level} '{}'", escape(key));
    }
    for (level, number) in &edit.removed {
        let _ = write!(text, "\n  RemoveFile: {level} {number}");
    }
    for table in &edit.added {
        let (smallest, largest) = (escape(&table.smallest), escape(&table.largest));
        let _ =
            write!(text, "\n  AddFile: {} {} {} '{smallest}' .. '{largest}'", table.level, table.number, table.size);
    }
    text.push_str("\n}\n");
    text
}

export! {
    /// Puts the file as text, line by line.
    fn shim_dump(env: *const EnvHandle, name: Bytes, target: *mut c_void, put: Put) -> Outcome {
        Outcome::of(|| {
            let options = CustomEnv::adapter(*env).map_or_else(Options::new, |env| Options::new().env(env));
            dump(&path(name.get()), &options, Sink::new(target, put))
        })
    }
}
