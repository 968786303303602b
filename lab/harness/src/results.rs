//! `results.json`: a run and all of its measurements in one file, with the figures of every cell
//! and engine.

use std::path::Path;

use serde::Serialize;

use crate::run::{Axis, DriverResult, Measurement, Measurements, Run, Spread, Status, write_whole};

/// The name of the file.
pub const RESULTS: &str = "results.json";

#[derive(Serialize)]
struct Results<'a> {
    run: &'a Run,
    figures: Vec<Figures<'a>>,
    measurements: Vec<&'a Measurement>,
}

/// One engine in one cell, over all rounds.
#[derive(Serialize)]
struct Figures<'a> {
    section: &'a str,
    cell: usize,
    benchmark: &'a str,
    label: &'a str,
    x: Option<&'a Axis>,
    setting: Option<&'a str>,
    engine: &'a str,
    /// Of the last round, if they are not all the same.
    status: Option<Status>,
    reason: Option<&'a str>,
    ops_per_sec: Option<Spread>,
    p50_us: Option<Spread>,
    p99_us: Option<Spread>,
    p999_us: Option<Spread>,
    max_us: Option<Spread>,
    cpu_seconds: Option<Spread>,
    bytes_written: Option<Spread>,
    bytes_read: Option<Spread>,
    bytes_read_per_op: Option<Spread>,
    device_reads_per_op: Option<Spread>,
    device_writes_per_op: Option<Spread>,
    device_bytes_written_per_op: Option<Spread>,
    disk_bytes: Option<Spread>,
    peak_memory_bytes: Option<Spread>,
    debt_seconds: Option<Spread>,
}

/// Writes it.
///
/// # Errors
/// Names the file.
pub fn write(run: &Run, measurements: &Measurements, dir: &Path) -> Result<(), String> {
    let mut all = Vec::new();
    for section in &run.sections {
        for cell in 0..section.cells.len() {
            all.extend(
                run.engines
                    .iter()
                    .map(|engine| figures(run, measurements, (&section.id, cell), &engine.id)),
            );
        }
    }
    let results = Results { run, figures: all, measurements: measurements.iter().collect() };
    let path = dir.join(RESULTS);
    let mut bytes = serde_json::to_vec(&results).map_err(|e| format!("{}: {e}", path.display()))?;
    bytes.push(b'\n');
    write_whole(&path, &bytes)
}

fn figures<'a>(
    run: &'a Run,
    measurements: &'a Measurements,
    at: (&'a str, usize),
    engine: &'a str,
) -> Figures<'a> {
    let (section, cell) = at;
    let described = run.section(section).and_then(|section| section.cells.get(cell));
    let of = |number: fn(&DriverResult) -> f64| {
        measurements.summary(run.figure, section, cell, engine, number)
    };
    let rounds = measurements.of(section, cell, engine);
    let counted = |number: fn(&DriverResult) -> Option<u64>| {
        let results = rounds.iter().filter(|m| m.is_measured()).filter_map(|m| m.result.as_ref());
        let per_op = results.filter_map(|result| Some(result.per_op(number(result)?)));
        Spread::of(per_op, run.figure)
    };
    let last = rounds.last();
    let debts = rounds.iter().filter_map(|m| m.debt).map(|debt| debt.seconds);
    Figures {
        section,
        cell,
        benchmark: described.map_or("", |cell| &cell.benchmark),
        label: described.map_or("", |cell| &cell.label),
        x: described.and_then(|cell| cell.x.as_ref()),
        setting: described.and_then(|cell| cell.setting.as_deref()),
        engine,
        status: last.map(|m| m.status),
        reason: last.and_then(|m| m.reason.as_deref()),
        ops_per_sec: of(|result| result.ops_per_sec),
        p50_us: of(|result| result.p50_us),
        p99_us: of(|result| result.p99_us),
        p999_us: of(|result| result.p999_us),
        max_us: of(|result| result.max_us),
        cpu_seconds: of(|result| result.cpu_seconds),
        bytes_written: of(|result| result.bytes_written as f64),
        bytes_read: of(|result| result.bytes_read as f64),
        bytes_read_per_op: of(|result| result.per_op(result.bytes_read)),
        device_reads_per_op: counted(|result| result.device_reads),
        device_writes_per_op: counted(|result| result.device_writes),
        device_bytes_written_per_op: counted(|result| result.device_bytes_written),
        disk_bytes: of(|result| result.disk_bytes as f64),
        peak_memory_bytes: of(|result| result.peak_memory_bytes as f64),
        debt_seconds: Spread::of(debts, run.figure),
    }
}
