//! What a database says of itself, as text that Java takes apart.

use std::fmt::Write;

use jni::Env;
use jni::objects::{JClass, JString};
use jni::sys::jlong;
use terrace::{Db, Stats};

use crate::database::DATABASES;
use crate::failure::{Failure, Result};

native! {
    fn property(database: jlong, name: JString) -> JString,
}

/// LevelDB's properties; null for a name that is none.
fn property<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
    name: JString<'local>,
) -> Result<JString<'local>> {
    let name = name.try_to_string(env)?;
    let text =
        DATABASES.with(database, |open| open.run(|db| Ok::<_, Failure>(db.property(&name))))?;
    match text {
        Some(text) => Ok(JString::from_str(env, text)?),
        None => Ok(JString::null()),
    }
}

native! {
    fn stats(database: jlong) -> JString,
}

/// Lines of a name, a space and a number.
fn stats<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
) -> Result<JString<'local>> {
    let text = DATABASES.with(database, |open| {
        let (stats, files) = open.run(|db| Ok::<_, Failure>((db.stats(), db.files())))?;
        let mut text = lines(&stats);
        let entries: u64 = files.iter().filter_map(|file| file.entries).sum();
        let deletions: u64 = files.iter().filter_map(|file| file.deletions).sum();
        let _ = writeln!(text, "table_entries {entries}\ntable_deletions {deletions}");
        Ok::<_, Failure>(text)
    })?;
    Ok(JString::from_str(env, text)?)
}

fn lines(stats: &Stats) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: u64| {
        let _ = writeln!(text, "{name} {value}");
    };
    line("memtable_bytes", stats.memtable_bytes);
    line("immutable_memtables", stats.immutable_memtables as u64);
    line("user_bytes_written", stats.user_bytes_written);
    line("flush_bytes_written", stats.flush_bytes_written);
    line("load_bytes_written", stats.load_bytes_written);
    line("compaction_bytes_read", stats.compaction_bytes_read);
    line("compaction_bytes_written", stats.compaction_bytes_written);
    line("pending_compaction_bytes", stats.pending_compaction_bytes);
    line("running_compactions", stats.running_compactions as u64);
    line("cache_capacity", stats.cache_capacity);
    line("cache_used", stats.cache_used);
    line("memory_budget_bytes", stats.memory_budget_bytes);
    line("memory_used_bytes", stats.memory_used_bytes);
    line("cache_hits", stats.cache_hits);
    line("cache_misses", stats.cache_misses);
    line("filter_checked", stats.filter_checked);
    line("filter_useful", stats.filter_useful);
    line("open_tables", stats.open_tables as u64);
    line("table_memory_bytes", stats.table_memory_bytes);
    line("value_files", stats.value_files as u64);
    line("value_file_bytes", stats.value_file_bytes);
    line("value_bytes_used", stats.value_bytes_used);
    line("is_extended", u64::from(stats.is_extended));
    line("snapshots", stats.snapshots as u64);
    line("stall_count", stats.stall_count);
    line("stall_micros", stats.stall_micros);
    line("sequence", stats.sequence);
    for level in &stats.levels {
        line(&format!("level_{}_files", level.level), level.files as u64);
        line(&format!("level_{}_bytes", level.level), level.bytes);
    }
    text
}

native! {
    fn verify(database: jlong) -> JString,
}

/// A line of four numbers (files, blocks, entries, bytes), and a line for each problem.
fn verify<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    database: jlong,
) -> Result<JString<'local>> {
    let open = DATABASES.with(database, |open| Ok::<_, Failure>(open.clone()))?;
    let report = open.run(Db::verify)?;
    let mut text =
        format!("{} {} {} {}", report.files, report.blocks, report.entries, report.bytes);
    for problem in &report.problems {
        let _ = write!(text, "\n{}", problem.to_string().replace('\n', " "));
    }
    Ok(JString::from_str(env, text)?)
}
