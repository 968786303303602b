//! `convert`: large values into value files, or back into tables.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use terrace::CompactOptions;

use super::upkeep::Held;
use crate::directory::{FileType, extended_manifest, list_files};
use crate::failure::{Failure, Result};
use crate::opening::{Missing, USUAL_VALUE_LOG, WriteArgs};
use crate::output::Output;
use crate::output::columns::{counted, size};
use crate::progress::Progress;

#[derive(Args, Debug)]
pub(crate) struct ConvertCommand {
    /// Directory of the database
    db: PathBuf,
    /// What it becomes
    #[arg(long, value_name = "FORM")]
    to: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    write: WriteArgs,
}

// No comments on the variants: clap would print a paragraph for each.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Plain,
    Extended,
}

impl ConvertCommand {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        let threshold = match (self.to, self.write.value_log()) {
            (Target::Extended, threshold) => Some(threshold.unwrap_or(USUAL_VALUE_LOG)),
            (Target::Plain, None) => None,
            (Target::Plain, Some(_)) => {
                return Err(Failure::other("a plain database has no value log: drop --value-log"));
            }
        };
        if self.to == Target::Plain && !self.write.compression().is_leveldbs() {
            return Err(Failure::other("LevelDB does not read that: drop --compression"));
        }
        let db = self.write.open_with_value_log(&self.db, threshold, Missing::Fail)?.db;
        let progress = Progress::spinner("converting");
        let before = Held::by(&db);
        db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true))?;
        db.wait_idle()?;
        let after = Held::by(&db);
        db.close()?;
        drop(progress);
        if self.to == Target::Plain {
            check_plain(&self.db)?;
        }
        if self.json {
            return out.json(&json!({
                "extended": after.is_extended,
                "value_log": threshold,
                "before": as_json(before),
                "after": as_json(after),
            }));
        }
        out.line(format!("before: {}", shown(before)))?;
        out.line(format!("after: {}", shown(after)))?;
        out.line(match (self.to, after.is_extended) {
            (_, true) => "the database is extended: LevelDB does not open it".to_owned(),
            (Target::Plain, false) => "the database is plain: LevelDB opens it".to_owned(),
            (Target::Extended, false) if before.is_extended && before.value_files == 0 => {
                "the database is plain: its LZ4 or zstd is gone, as --compression did not ask for it"
                    .to_owned()
            }
            (Target::Extended, false) => format!(
                "the database is plain: it has no value of {} bytes or more",
                threshold.unwrap_or_default()
            ),
        })
    }
}

/// Fails if value files are left, or LevelDB refuses the MANIFEST.
fn check_plain(path: &Path) -> Result<()> {
    let mut files = list_files(path)?;
    files.retain(|file| file.file_type == FileType::Values);
    let values = files.first().map(|file| path.join(&file.name));
    match values.or(extended_manifest(path)?) {
        None => Ok(()),
        Some(file) => Err(Failure::other(format!(
            "{} is left: the database is not plain yet; run the command again",
            file.display()
        ))),
    }
}

fn as_json(held: Held) -> Value {
    json!({
        "tables": held.tables,
        "table_bytes": held.table_bytes,
        "value_files": held.value_files,
        "value_file_bytes": held.value_bytes,
    })
}

fn shown(held: Held) -> String {
    let tables = counted(held.tables as u64, "table", "tables");
    let tables = format!("{tables} of {}", size(held.table_bytes));
    if held.value_files == 0 {
        return format!("{tables}, no value files");
    }
    let values = counted(held.value_files as u64, "value file", "value files");
    format!("{tables}, {values} of {}", size(held.value_bytes))
}
