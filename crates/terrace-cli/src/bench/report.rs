//! Results of benchmarks, for people and for programs.

use std::path::Path;

use serde::Serialize;
use terrace::Db;

use super::args::BenchArgs;
use super::data::KEY_SIZE;
use super::meter::Work;
use super::runner::Outcome;
use crate::failure::Result;
use crate::output::Output;

const MIB: f64 = 1_048_576.0;

/// A line of `--json`: the fields that every engine program of the lab prints, in the same units.
#[derive(Serialize)]
struct ResultLine<'a> {
    benchmark: &'a str,
    engine: &'static str,
    ops: u64,
    seconds: f64,
    micros_per_op: f64,
    ops_per_sec: f64,
    mb_per_sec: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
    cpu_seconds: f64,
    bytes_written: u64,
    disk_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writer_ops_per_sec: Option<f64>,
}

impl<'a> ResultLine<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        let work = &outcome.work;
        let operations = work.operations.max(1) as f64;
        // More digits than this are noise.
        let round = |number: f64, unit: f64| (number * unit).round() / unit;
        let micros_at = |quantile: f64| work.latencies.value_at_quantile(quantile) as f64 / 1e3;
        ResultLine {
            benchmark: outcome.benchmark.name(),
            engine: "terrace",
            ops: work.operations,
            seconds: round(outcome.seconds, 1e6),
            micros_per_op: round(outcome.seconds * 1e6 * outcome.threads as f64 / operations, 1e4),
            ops_per_sec: round(operations / outcome.seconds, 10.0),
            mb_per_sec: round(work.bytes as f64 / MIB / outcome.seconds, 100.0),
            p50_us: micros_at(0.5),
            p99_us: micros_at(0.99),
            p999_us: micros_at(0.999),
            max_us: work.latencies.max() as f64 / 1e3,
            cpu_seconds: round(outcome.cpu_seconds, 1e6),
            bytes_written: outcome.bytes_written,
            disk_bytes: outcome.disk_bytes,
            found: outcome.benchmark.counts_found().then_some(work.found),
            writer_ops_per_sec: outcome.writer_ops_per_sec.map(|rate| round(rate, 10.0)),
        }
    }
}

pub(super) fn print_header(args: &BenchArgs, path: &Path, out: &mut Output) -> Result<()> {
    let raw = args.num as f64 * (KEY_SIZE + args.value_size) as f64 / MIB;
    out.line(format!("Terrace:    version {}", env!("CARGO_PKG_VERSION")))?;
    out.line(format!("Keys:       {KEY_SIZE} bytes each"))?;
    out.line(format!("Values:     {} bytes each, compressible to about half", args.value_size))?;
    out.line(format!("Entries:    {}", args.num))?;
    out.line(format!("RawSize:    {raw:.1} MB"))?;
    out.line(format!("Database:   {}", path.display()))?;
    if cfg!(debug_assertions) {
        out.line("WARNING:    built without optimisation: the figures mean nothing")?;
    }
    out.line("------------------------------------------------")
}

pub(super) fn print_result(outcome: &Outcome, args: &BenchArgs, out: &mut Output) -> Result<()> {
    let line = ResultLine::new(outcome);
    if args.json {
        return out.json(&line);
    }
    let mut text = format!(
        "{:<16} : {:>11.3} micros/op; {:>10.0} ops/s; {:>8.1} MB/s; p50 {:.1} p99 {:.1} p99.9 {:.1} max {:.0} us",
        line.benchmark,
        line.micros_per_op,
        line.ops_per_sec,
        line.mb_per_sec,
        line.p50_us,
        line.p99_us,
        line.p999_us,
        line.max_us
    );
    if let Some(found) = line.found {
        text.push_str(&format!(" ({found} of {} found)", line.ops));
    }
    if let Some(rate) = line.writer_ops_per_sec {
        text.push_str(&format!(" (writer {rate:.0} ops/s)"));
    }
    out.line(text)?;
    if args.histogram {
        print_histogram(&outcome.work, out)?;
    }
    Ok(())
}

fn print_histogram(work: &Work, out: &mut Output) -> Result<()> {
    let micros = |nanos: f64| nanos / 1e3;
    let latencies = &work.latencies;
    out.line(format!(
        "  Microseconds per op: count {}, average {:.3}, standard deviation {:.3}",
        latencies.len(),
        micros(latencies.mean()),
        micros(latencies.stdev())
    ))?;
    for quantile in [0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1.0] {
        let value = micros(latencies.value_at_quantile(quantile) as f64);
        out.line(format!("  {:>8}% {value:>12.3}", quantile * 100.0))?;
    }
    Ok(())
}

pub(super) fn print_stats(db: &Db, json: bool, out: &mut Output) -> Result<()> {
    // Standard output is for measurements alone where a program reads it.
    match db.property("leveldb.stats") {
        Some(stats) if !json => out.lines(stats.trim_end()),
        _ => Ok(()),
    }
}
