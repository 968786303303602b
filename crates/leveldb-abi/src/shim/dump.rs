//! `DumpFile`: what a file of a database holds, as text in LevelDB's form.

use std::ffi::c_void;
use std::ops::ControlFlow;
use std::path::Path;

use terrace::abi::{self, escape};
use terrace::inspect::{self, Effect, FileKind, LogItem, TableItem};
use terrace::{Error, Options, Result};

use super::calls::EnvHandle;
use super::env::CustomEnv;
use super::outcome::{Bytes, Outcome, Put, Sink};
use crate::guard::export;
use crate::options::path;

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
            TableItem::Damage(damage) => {
                put(format!("--- offset {}; {}\n", damage.offset, damage.message))
            }
            _ => ControlFlow::Continue(()),
        })
        .map(drop),
        Some(FileKind::Log) => inspect::log(path, options, &mut |item| match item {
            LogItem::Batch(batch) => {
                put(format!("--- offset {}; sequence {}\n", batch.offset, batch.sequence))
            }
            LogItem::Operation(operation) => {
                let key = escape(operation.key);
                put(match operation.value {
                    Some(value) => format!("  put '{key}' '{}'\n", escape(value)),
                    None => format!("  del '{key}'\n"),
                })
            }
            LogItem::Damage(damage) => {
                put(format!("--- offset {}; {}\n", damage.offset, damage.message))
            }
            _ => ControlFlow::Continue(()),
        })
        .map(drop),
        Some(FileKind::Manifest) => {
            abi::dump_manifest(path, options, &mut |text| sink.put(text.as_bytes()))
        }
        None => {
            let what =
                if is_known(path) { "not a dump-able file type" } else { "unknown file type" };
            Err(Error::invalid_argument(format!("{}: {what}", path.display())))
        }
    }
}

/// Whether a database's file without records may have this name.
fn is_known(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_temporary = |name: &str| {
        let number = name.strip_suffix(".dbtmp");
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    matches!(&*name, "CURRENT" | "LOCK" | "LOG" | "LOG.old") || is_temporary(&name)
}

export! {
    /// Puts the file as text, line by line.
    fn shim_dump(env: *const EnvHandle, name: Bytes, target: *mut c_void, put: Put) -> Outcome {
        Outcome::of(|| {
            let own = CustomEnv::adapter(*env);
            let options = own.map_or_else(Options::new, |env| Options::new().env(env));
            dump(&path(name.get()), &options, Sink::new(target, put))
        })
    }
}
