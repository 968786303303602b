//! The lines that a program prints, for people and for programs.

use std::io::{self, Write};

use serde::Serialize;

use crate::meter::Latencies;
use crate::outcome::Outcome;
use crate::{Failure, Result};

const MIB: f64 = 1_048_576.0;

#[derive(Serialize)]
struct ResultLine<'a> {
    benchmark: &'a str,
    engine: &'a str,
    ops: u64,
    seconds: f64,
    micros_per_op: f64,
    ops_per_sec: f64,
    mb_per_sec: f64,
    mean_us: f64,
    p50_us: f64,
    p75_us: f64,
    p90_us: f64,
    p95_us: f64,
    p99_us: f64,
    p999_us: f64,
    p9999_us: f64,
    max_us: f64,
    cpu_seconds: f64,
    bytes_written: u64,
    bytes_read: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_reads: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_writes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_bytes_written: Option<u64>,
    disk_bytes: u64,
    peak_memory_bytes: u64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    levels: &'a [(u64, u64)],
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writer_ops_per_sec: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
}

#[derive(Serialize)]
struct SeriesLine<'a> {
    series: &'a str,
    second: f64,
    ops: u64,
    mean_us: f64,
    p50_us: f64,
    p95_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
}

#[derive(Serialize)]
struct UnsupportedLine<'a> {
    benchmark: &'a str,
    engine: &'a str,
    unsupported: &'a str,
}

/// More digits than this are noise.
fn round(number: f64, digits: i32) -> f64 {
    let unit = 10f64.powi(digits);
    (number * unit).round() / unit
}

impl<'a> ResultLine<'a> {
    fn new(outcome: &'a Outcome<'_>, engine: &'a str) -> Self {
        let meter = &outcome.meter;
        let operations = meter.operations.max(1) as f64;
        let latencies = &meter.latencies;
        ResultLine {
            benchmark: outcome.benchmark.name,
            engine,
            ops: meter.operations,
            seconds: round(outcome.seconds, 6),
            micros_per_op: round(outcome.seconds * 1e6 * outcome.threads as f64 / operations, 4),
            ops_per_sec: round(meter.operations as f64 / outcome.seconds, 1),
            mb_per_sec: round(meter.bytes as f64 / MIB / outcome.seconds, 2),
            mean_us: round(latencies.mean_micros(), 3),
            p50_us: latencies.micros_at(0.5),
            p75_us: latencies.micros_at(0.75),
            p90_us: latencies.micros_at(0.9),
            p95_us: latencies.micros_at(0.95),
            p99_us: latencies.micros_at(0.99),
            p999_us: latencies.micros_at(0.999),
            p9999_us: latencies.micros_at(0.9999),
            max_us: latencies.max_micros(),
            cpu_seconds: round(outcome.cpu_seconds, 3),
            bytes_written: outcome.bytes_written,
            bytes_read: outcome.bytes_read,
            device_reads: outcome.device.map(|device| device.reads),
            device_writes: outcome.device.map(|device| device.writes),
            device_bytes_written: outcome.device.map(|device| device.bytes_written),
            disk_bytes: outcome.disk_bytes,
            peak_memory_bytes: outcome.peak_memory_bytes,
            levels: &outcome.levels,
            found: outcome.benchmark.counts_found().then_some(meter.found),
            writer_ops_per_sec: outcome.writer_ops_per_sec.map(|rate| round(rate, 1)),
            truncated: meter.truncated,
            digest: outcome.digest.as_deref(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{:<16} : {:>11.3} micros/op; {:>10.0} ops/s; {:>8.1} MB/s",
            self.benchmark, self.micros_per_op, self.ops_per_sec, self.mb_per_sec
        );
        if let Some(found) = self.found {
            text.push_str(&format!(" ({found} found)"));
        }
        if let Some(rate) = self.writer_ops_per_sec {
            text.push_str(&format!(" (writer {rate:.0} ops/s)"));
        }
        if self.truncated {
            text.push_str(&format!(" (truncated after {})", self.ops));
        }
        if let Some(digest) = self.digest {
            text.push_str(&format!(" (digest {digest})"));
        }
        text
    }
}

pub(crate) fn print_outcome(outcome: &Outcome<'_>, engine: &str, json: bool) -> Result<()> {
    let id = column(engine, outcome.variant);
    let line = ResultLine::new(outcome, &id);
    if json { print_json(&line) } else { print_line(&line.text()) }
}

pub(crate) fn print_unsupported(benchmark: &str, engine: &str, reason: &str) -> Result<()> {
    print_json(&UnsupportedLine { benchmark, engine, unsupported: reason })
}

pub(crate) fn print_series_line(
    series: &str,
    second: f64,
    ops: u64,
    latencies: &Latencies,
) -> Result<()> {
    print_json(&SeriesLine {
        series,
        second: round(second, 3),
        ops,
        mean_us: round(latencies.mean_micros(), 3),
        p50_us: latencies.micros_at(0.5),
        p95_us: latencies.micros_at(0.95),
        p99_us: latencies.micros_at(0.99),
        p999_us: latencies.micros_at(0.999),
        max_us: latencies.max_micros(),
    })
}

/// The engine's name in a report: with its variant.
fn column(engine: &str, variant: &str) -> String {
    if variant.is_empty() { engine.to_owned() } else { format!("{engine}-{variant}") }
}

pub(crate) fn print_json(line: &impl Serialize) -> Result<()> {
    print_line(&serde_json::to_string(line).map_err(Failure::new)?)
}

/// Written at once and whole, independent of the reader and of the end of the process.
pub(crate) fn print_line(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Failure::new(format!("cannot print: {e}")))
}
