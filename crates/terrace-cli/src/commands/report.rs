//! The state of a database: `stat`, `files`.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use terrace::{Stats, TableFile};

use super::{Run, Session};
use crate::directory::{FileType, ListedFile, extended_manifest, list_files};
use crate::failure::Result;
use crate::form::{Form, FormArgs};
use crate::output::Output;
use crate::output::columns::{Columns, counted, size};
use crate::text::to_json;

/// Below this much that was flushed, write amplification says nothing.
const FLUSHED_FOR_RATIOS: u64 = 1 << 20;

#[derive(Args, Debug)]
pub(crate) struct StatArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
#[command(
    mut_arg("hex", |hex| hex.help("Print keys as pairs of hexadecimal digits")),
    mut_arg("base64", |base64| base64.help("Print keys as base64"))
)]
pub(crate) struct FilesArgs {
    #[command(flatten)]
    form: FormArgs,
}

impl Run for StatArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let db = session.db()?;
        let (stats, compressions) = (db.stats(), compressions(&db.files()));
        let files = list_files(session.path())?;
        // After a kill the MANIFEST may bear the name of what is not there any more.
        let is_extended =
            stats.is_extended || extended_manifest(session.path()).unwrap_or_default().is_some();
        if self.json || session.form().json {
            return out.json(&stats_as_json(&stats, &compressions, &files, is_extended));
        }
        print_stats(&stats, &compressions, &files, is_extended, out)
    }
}

/// How many tables have blocks of each compression that LevelDB does not read.
fn compressions(tables: &[TableFile]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for name in tables.iter().flat_map(|table| &table.compressions) {
        *counts.entry(*name).or_default() += 1;
    }
    counts
}

fn stats_as_json(
    stats: &Stats,
    compressions: &BTreeMap<&str, usize>,
    files: &[ListedFile],
    is_extended: bool,
) -> Value {
    let levels = stats.levels.iter().map(|level| {
        json!({
            "level": level.level,
            "files": level.files,
            "bytes": level.bytes,
            "compactions": level.compactions,
            "seconds": level.seconds,
            "bytes_read": level.bytes_read,
            "bytes_written": level.bytes_written,
        })
    });
    json!({
        "levels": levels.collect::<Vec<_>>(),
        "sequence": stats.sequence,
        "disk_bytes": files.iter().map(|file| file.size).sum::<u64>(),
        "log_bytes": bytes_of(files, FileType::Log),
        "value_files": stats.value_files,
        "value_file_bytes": stats.value_file_bytes,
        "extended": is_extended,
        "tables_by_compression": compressions,
        "value_bytes_used": stats.value_bytes_used,
        "memtable_bytes": stats.memtable_bytes,
        "immutable_memtables": stats.immutable_memtables,
        "user_bytes_written": stats.user_bytes_written,
        "flush_bytes_written": stats.flush_bytes_written,
        "load_bytes_written": stats.load_bytes_written,
        "rate_limited_seconds": stats.rate_limited_micros as f64 / 1e6,
        "compaction_bytes_read": stats.compaction_bytes_read,
        "compaction_bytes_written": stats.compaction_bytes_written,
        "write_amplification": stats.write_amplification,
        "live_bytes": stats.live_bytes,
        "space_amplification": stats.space_amplification,
        "pending_compaction_bytes": stats.pending_compaction_bytes,
        "running_compactions": stats.running_compactions,
        "cache": {
            "capacity": stats.cache_capacity,
            "used": stats.cache_used,
            "hits": stats.cache_hits,
            "misses": stats.cache_misses,
        },
        "memory_budget": { "bytes": stats.memory_budget_bytes, "used": stats.memory_used_bytes },
        "filter": { "checked": stats.filter_checked, "useful": stats.filter_useful },
        "open_tables": stats.open_tables,
        "table_memory_bytes": stats.table_memory_bytes,
        "snapshots": stats.snapshots,
        "oldest_snapshot_seconds": stats.oldest_snapshot_age.map(|age| age.as_secs_f64()),
        "locks": { "keys": stats.locked_keys, "waits": stats.lock_waits },
        "stalls": { "count": stats.stall_count, "seconds": stats.stall_micros as f64 / 1e6 },
        "background_error": stats.background_error,
    })
}

fn print_stats(
    stats: &Stats,
    compressions: &BTreeMap<&str, usize>,
    files: &[ListedFile],
    is_extended: bool,
    out: &mut Output,
) -> Result<()> {
    if stats.levels.iter().any(|level| level.files > 0) {
        levels(stats).print(out)?;
        out.line("")?;
    }
    facts(stats, compressions, files, is_extended).print(out)
}

fn levels(stats: &Stats) -> Columns<7> {
    let mut levels =
        Columns::new(["level", "files", "size", "compactions", "seconds", "read", "written"]);
    for level in stats.levels.iter().filter(|level| level.files > 0 || level.compactions > 0) {
        levels.row([
            level.level.to_string(),
            level.files.to_string(),
            size(level.bytes),
            level.compactions.to_string(),
            format!("{:.1}", level.seconds),
            size(level.bytes_read),
            size(level.bytes_written),
        ]);
    }
    levels
}

fn facts(
    stats: &Stats,
    compressions: &BTreeMap<&str, usize>,
    files: &[ListedFile],
    is_extended: bool,
) -> Columns<2> {
    let mut facts = Columns::unnamed();
    // A counter that counted nothing is left out.
    let mut fact = |name: &str, counts: bool, value: String| {
        if counts {
            facts.row([name.to_string(), value]);
        }
    };
    let tables: usize = stats.levels.iter().map(|level| level.files).sum();
    fact(
        "tables",
        true,
        format!("{tables}, {}", size(stats.levels.iter().map(|level| level.bytes).sum())),
    );
    let compressed =
        compressions.iter().map(|(name, tables)| format!("{name} in {tables} of them"));
    fact("compressed with", !compressions.is_empty(), compressed.collect::<Vec<_>>().join(", "));
    let (values, used) = (size(stats.value_file_bytes), size(stats.value_bytes_used));
    fact(
        "value files",
        stats.value_files > 0,
        format!("{}, {values}, {used} of it used", stats.value_files),
    );
    let what = match stats.is_extended {
        true => "yes: LevelDB refuses the database",
        false => "by name, until the database is next closed after a write: LevelDB refuses it",
    };
    fact("extended", is_extended, what.to_owned());
    fact("logs", true, size(bytes_of(files, FileType::Log)));
    fact(
        "on disk",
        true,
        format!(
            "{} in {}",
            size(files.iter().map(|file| file.size).sum()),
            counted(files.len() as u64, "file", "files")
        ),
    );
    fact("last sequence number", true, stats.sequence.to_string());
    fact("memtable", true, size(stats.memtable_bytes));
    fact(
        "memtables to flush",
        stats.immutable_memtables > 0,
        stats.immutable_memtables.to_string(),
    );
    fact("written by users", stats.user_bytes_written > 0, size(stats.user_bytes_written));
    fact("written by flushes", stats.flush_bytes_written > 0, size(stats.flush_bytes_written));
    fact("written by loads", stats.load_bytes_written > 0, size(stats.load_bytes_written));
    let compacted = stats.compaction_bytes_read + stats.compaction_bytes_written;
    let (read, written) = (size(stats.compaction_bytes_read), size(stats.compaction_bytes_written));
    fact("compactions", compacted > 0, format!("{read} read, {written} written"));
    fact(
        "compactions running",
        stats.running_compactions > 0,
        stats.running_compactions.to_string(),
    );
    fact(
        "compactions pending",
        stats.pending_compaction_bytes > 0,
        size(stats.pending_compaction_bytes),
    );
    fact(
        "write amplification",
        stats.user_bytes_written > 0 && stats.flush_bytes_written >= FLUSHED_FOR_RATIOS,
        format!("{:.2}", stats.write_amplification),
    );
    fact(
        "space amplification",
        stats.live_bytes > 0,
        format!(
            "{:.2}, about {} are not obsolete",
            stats.space_amplification,
            size(stats.live_bytes)
        ),
    );
    let (used, capacity) = (size(stats.cache_used), size(stats.cache_capacity));
    fact(
        "block cache",
        true,
        format!(
            "{used} of {capacity}, {}, {}",
            counted(stats.cache_hits, "hit", "hits"),
            counted(stats.cache_misses, "miss", "misses")
        ),
    );
    let spared = counted(stats.filter_useful, "read", "reads");
    let spared = format!("{} asked, {spared} spared", stats.filter_checked);
    fact("filters", stats.filter_checked > 0, spared);
    fact("open tables", true, stats.open_tables.to_string());
    fact("snapshots", true, stats.snapshots.to_string());
    if let Some(age) = stats.oldest_snapshot_age {
        fact("oldest snapshot", true, format!("{:.1} s", age.as_secs_f64()));
    }
    let locks = format!(
        "{}, {}",
        counted(stats.locked_keys as u64, "key", "keys"),
        counted(stats.lock_waits, "wait", "waits")
    );
    fact("locks", stats.locked_keys > 0 || stats.lock_waits > 0, locks);
    let stalled = counted(stats.stall_count, "time", "times");
    let stalled = format!("{stalled}, {:.3} s", stats.stall_micros as f64 / 1e6);
    fact("writers slowed", stats.stall_count > 0, stalled);
    if let Some(error) = &stats.background_error {
        fact("background error", true, error.clone());
    }
    facts
}

fn bytes_of(files: &[ListedFile], file_type: FileType) -> u64 {
    files.iter().filter(|file| file.file_type == file_type).map(|file| file.size).sum()
}

/// One line of `files`.
#[derive(Serialize)]
struct FileLine {
    name: String,
    #[serde(rename = "type")]
    file_type: FileType,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<usize>,
    /// Where the engine knows it without reading the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletions: Option<u64>,
    /// The compressions of its blocks that LevelDB does not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compressions: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest: Option<Value>,
}

impl Run for FilesArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let form = self.form.over(session.form());
        let mut lines = file_lines(session, form)?;
        // Tables first, in the order in which a look-up meets them; then the rest.
        lines.sort_by_key(|line| line.level.unwrap_or(usize::MAX));
        if form.json {
            return lines.iter().try_for_each(|line| out.json(line));
        }
        let mut columns =
            Columns::new(["level or type", "size", "file", "smallest key", "largest key"]);
        for line in lines {
            let level = match (line.level, line.file_type) {
                (Some(level), _) if line.compressions.is_empty() => level.to_string(),
                (Some(level), _) => format!("{level} {}", line.compressions.join("+")),
                (None, FileType::Table) => "not in use".into(),
                (None, other) => other.name().into(),
            };
            let key = |key: Option<Value>| {
                key.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            columns.row([
                level,
                line.size.to_string(),
                line.name,
                key(line.smallest),
                key(line.largest),
            ]);
        }
        columns.print(out)
    }
}

fn file_lines(session: &Session<'_>, form: Form) -> Result<Vec<FileLine>> {
    let tables = session.db()?.files();
    let listed = list_files(session.path())?;
    let show = |key: &[u8]| match form.json {
        true => to_json(form.notation, key),
        false => form.notation.encode(key).into(),
    };
    let lines = listed.into_iter().map(|file| {
        let table = file
            .table_number()
            .and_then(|number| tables.iter().find(|table| table.number == number));
        FileLine {
            level: table.map(|table| table.level),
            entries: table.and_then(|table| table.entries),
            deletions: table.and_then(|table| table.deletions),
            compressions: table.map(|table| table.compressions.clone()).unwrap_or_default(),
            smallest: table.map(|table| show(&table.smallest)),
            largest: table.map(|table| show(&table.largest)),
            name: file.name,
            file_type: file.file_type,
            size: file.size,
        }
    });
    Ok(lines.collect())
}
