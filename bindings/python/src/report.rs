//! Reports of the engine as dictionaries.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use terrace::{CheckpointReport, LevelStats, Problem, RepairReport, Stats, VerifyReport};

/// A dictionary of fields by their own names.
macro_rules! dict {
    ($py:expr, $from:expr, $($field:ident),*) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(stringify!($field), &$from.$field)?;)*
        dict
    }};
}

pub(crate) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = dict!(
        py,
        stats,
        memtable_bytes,
        immutable_memtables,
        user_bytes_written,
        flush_bytes_written,
        load_bytes_written,
        compaction_bytes_read,
        compaction_bytes_written,
        write_amplification,
        live_bytes,
        space_amplification,
        cache_capacity,
        cache_used,
        memory_budget_bytes,
        memory_used_bytes,
        cache_hits,
        cache_misses,
        filter_checked,
        filter_useful,
        open_tables,
        table_memory_bytes,
        value_files,
        value_file_bytes,
        value_bytes_used,
        is_extended,
        snapshots,
        stall_count,
        stall_micros,
        rate_limited_micros,
        sequence,
        pending_compaction_bytes,
        running_compactions,
        background_error
    );
    let age = stats.oldest_snapshot_age.map(|age| age.as_secs_f64());
    dict.set_item("oldest_snapshot_seconds", age)?;
    let levels: PyResult<Vec<_>> =
        stats.levels.iter().map(|level| level_stats(py, level)).collect();
    dict.set_item("levels", levels?)?;
    Ok(dict)
}

fn level_stats<'py>(py: Python<'py>, level: &LevelStats) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, level, level, files, bytes, compactions, seconds, bytes_read, bytes_written))
}

pub(crate) fn checkpoint<'py>(
    py: Python<'py>,
    report: &CheckpointReport,
) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, report, tables, value_files, linked, table_bytes, value_bytes, sequence))
}

pub(crate) fn verification<'py>(
    py: Python<'py>,
    report: &VerifyReport,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = dict!(py, report, files, blocks, entries, bytes, log_records);
    dict.set_item("is_clean", report.is_clean())?;
    dict.set_item("problems", problems(py, &report.problems)?)?;
    dict.set_item("notes", problems(py, &report.notes)?)?;
    Ok(dict)
}

pub(crate) fn repair<'py>(py: Python<'py>, report: &RepairReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = dict!(py, report, tables, logs, log_entries, entries, moved);
    dict.set_item("problems", problems(py, &report.problems)?)?;
    Ok(dict)
}

/// Pairs of a file's name and what is wrong with it.
fn problems<'py>(py: Python<'py>, problems: &[Problem]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, problems.iter().map(|problem| (&problem.file, &problem.message)))
}
