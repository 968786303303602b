//! `terrace/c.h`: what checks, repairs and statistics tell.

use std::ffi::{CString, c_char};
use std::ptr;

use serde_json::{Value, json};
use terrace::{Problem, RepairReport, Stats, VerifyReport, repair, verify};

use super::database::Database;
use super::error::{reporting, required};
use super::options::COptions;
use crate::guard::export;
use crate::memory::{c_string, hand_out, malloc_c_string, release, store};
use crate::options::path;

/// `terrace_report_t`.
#[derive(Debug)]
pub struct Report {
    problems: Vec<CString>,
    json: Value,
}

fn listed(problems: &[Problem]) -> Vec<Value> {
    problems
        .iter()
        .map(|problem| json!({ "file": problem.file, "message": problem.message }))
        .collect()
}

impl Report {
    fn new(problems: &[Problem], json: Value) -> Self {
        // A zero in a message would end it.
        let text = |problem: &Problem| {
            CString::new(problem.to_string().replace('\0', "\\0")).unwrap_or_default()
        };
        Report { problems: problems.iter().map(text).collect(), json }
    }

    fn of_check(report: &VerifyReport) -> Self {
        let json = json!({
            "files": report.files,
            "blocks": report.blocks,
            "entries": report.entries,
            "bytes": report.bytes,
            "log_records": report.log_records,
            "problems": listed(&report.problems),
            "notes": listed(&report.notes),
        });
        Report::new(&report.problems, json)
    }

    fn of_repair(report: &RepairReport) -> Self {
        let json = json!({
            "tables": report.tables,
            "logs": report.logs,
            "log_entries": report.log_entries,
            "entries": report.entries,
            "problems": listed(&report.problems),
            "moved": report.moved,
        });
        Report::new(&report.problems, json)
    }
}

/// Every number of the statistics, by its name.
fn numbers(stats: &Stats) -> [(&'static str, u64); 32] {
    [
        ("sequence", stats.sequence),
        ("memtable_bytes", stats.memtable_bytes),
        ("immutable_memtables", stats.immutable_memtables as u64),
        ("user_bytes_written", stats.user_bytes_written),
        ("flush_bytes_written", stats.flush_bytes_written),
        ("load_bytes_written", stats.load_bytes_written),
        ("compaction_bytes_read", stats.compaction_bytes_read),
        ("compaction_bytes_written", stats.compaction_bytes_written),
        ("cache_capacity", stats.cache_capacity),
        ("cache_used", stats.cache_used),
        ("memory_budget_bytes", stats.memory_budget_bytes),
        ("memory_used_bytes", stats.memory_used_bytes),
        ("cache_hits", stats.cache_hits),
        ("cache_misses", stats.cache_misses),
        ("filter_checked", stats.filter_checked),
        ("filter_useful", stats.filter_useful),
        ("open_tables", stats.open_tables as u64),
        ("table_memory_bytes", stats.table_memory_bytes),
        ("value_files", stats.value_files as u64),
        ("value_file_bytes", stats.value_file_bytes),
        ("value_bytes_used", stats.value_bytes_used),
        ("live_bytes", stats.live_bytes),
        // 1 or 0.
        ("is_extended", u64::from(stats.is_extended)),
        ("snapshots", stats.snapshots as u64),
        // 0 without one, too.
        (
            "oldest_snapshot_micros",
            stats.oldest_snapshot_age.map_or(0, |age| age.as_micros() as u64),
        ),
        ("locked_keys", stats.locked_keys as u64),
        ("lock_waits", stats.lock_waits),
        ("stall_count", stats.stall_count),
        ("stall_micros", stats.stall_micros),
        ("rate_limited_micros", stats.rate_limited_micros),
        ("pending_compaction_bytes", stats.pending_compaction_bytes),
        ("running_compactions", stats.running_compactions as u64),
    ]
}

fn stats_json(stats: &Stats) -> Value {
    let levels = stats.levels.iter().map(|level| {
        json!({
            "files": level.files,
            "bytes": level.bytes,
            "compactions": level.compactions,
            "seconds": level.seconds,
            "bytes_read": level.bytes_read,
            "bytes_written": level.bytes_written,
        })
    });
    let mut all = json!({
        "levels": levels.collect::<Vec<_>>(),
        "write_amplification": stats.write_amplification,
        "space_amplification": stats.space_amplification,
        "background_error": stats.background_error,
    });
    for (name, number) in numbers(stats) {
        all[name] = number.into();
    }
    all
}

fn malloc_json(value: &Value) -> *mut c_char {
    malloc_c_string(value.to_string().as_bytes())
}

export! {
    /// Every statistic as JSON.
    fn terrace_stats_json(db: *mut Database) -> *mut c_char {
        db.as_ref().map_or(ptr::null_mut(), |db| malloc_json(&stats_json(&db.db().stats())))
    }

    /// One number of the statistics.
    fn terrace_stat(db: *mut Database, name: *const c_char, value: *mut u64) -> u8 {
        let Some(db) = db.as_ref() else { return 0 };
        let name = c_string(name);
        let stats = db.db().stats();
        let number = numbers(&stats).into_iter().find(|(known, _)| known.as_bytes() == name);
        if let Some((_, number)) = number {
            store(value, number);
        }
        number.is_some().into()
    }

    /// Checks an open database.
    fn terrace_verify(db: *mut Database, errptr: *mut *mut c_char) -> *mut Report {
        reporting(errptr, || Ok(hand_out(Report::of_check(&required(db, "db")?.db().verify()?))))
    }

    /// Checks a database without a writer.
    fn terrace_verify_db(
        options: *const COptions, name: *const c_char, errptr: *mut *mut c_char,
    ) -> *mut Report {
        reporting(errptr, || {
            let options = required(options, "options")?.settings().to_options();
            required(name, "name")?;
            Ok(hand_out(Report::of_check(&verify(path(c_string(name)), &options)?)))
        })
    }

    /// Saves what can be saved of a database.
    fn terrace_repair_db(
        options: *const COptions, name: *const c_char, errptr: *mut *mut c_char,
    ) -> *mut Report {
        reporting(errptr, || {
            let options = required(options, "options")?.settings().to_options();
            required(name, "name")?;
            Ok(hand_out(Report::of_repair(&repair(path(c_string(name)), &options)?)))
        })
    }

    /// How many problems a report has.
    fn terrace_report_problems(report: *const Report) -> usize {
        report.as_ref().map_or(0, |report| report.problems.len())
    }

    /// A problem, for as long as the report.
    fn terrace_report_problem(report: *const Report, index: usize) -> *const c_char {
        let problem = report.as_ref().and_then(|report| report.problems.get(index));
        problem.map_or(ptr::null(), |problem| problem.as_ptr())
    }

    /// All that a report says.
    fn terrace_report_json(report: *const Report) -> *mut c_char {
        report.as_ref().map_or(ptr::null_mut(), |report| malloc_json(&report.json))
    }

    /// Releases a report.
    fn terrace_report_destroy(report: *mut Report) {
        drop(release(report));
    }
}
