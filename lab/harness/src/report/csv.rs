//! `results.csv`: a line for every section, cell and engine, after RFC 4180.
//!
//! Invariants:
//! 1. Every line has as many fields as the head.
//! 2. A field that a spreadsheet would take for a formula begins with an apostrophe.

use super::model::{Outcome, Suite};

const HEAD: [&str; 40] = [
    "suite",
    "section",
    "benchmark",
    "label",
    "x_name",
    "x",
    "setting",
    "durability",
    "engine",
    "title",
    "version",
    "status",
    "reason",
    "unit",
    "rate",
    "rate_min",
    "rate_max",
    "spread",
    "rounds",
    "terrace_ratio",
    "promises_less",
    "ns_per_op",
    "p50_us",
    "p90_us",
    "p99_us",
    "p999_us",
    "max_us",
    "cpu_seconds",
    "bytes_written",
    "bytes_read",
    "disk_bytes",
    "peak_memory_bytes",
    "debt_seconds",
    "debt_bytes_written",
    "baseline_ratio",
    "bytes_written_per_op",
    "bytes_read_per_op",
    "device_reads_per_op",
    "device_writes_per_op",
    "device_bytes_written_per_op",
];

/// The text of the file.
pub(crate) fn render(suites: &[Suite<'_>]) -> String {
    let mut out = line(&HEAD.map(str::to_owned));
    for suite in suites {
        for (section, cell) in suite.cells() {
            for (at, column) in suite.columns.iter().enumerate() {
                let axis = cell.cell.x.as_ref();
                let durability = match cell.cell.durability {
                    crate::run::Durability::Asynchronous => "asynchronous",
                    crate::run::Durability::Synchronous => "synchronous",
                };
                let (status, reason) = match &cell.outcomes[at] {
                    Outcome::Figures(figures) => ("measured", figures.remarks.join("; ")),
                    Outcome::Absent { word, reason } => (*word, reason.clone()),
                };
                let mut fields = vec![
                    text(&suite.run.suite),
                    text(&section.section.id),
                    text(&cell.cell.benchmark),
                    text(&cell.cell.label),
                    text(axis.map_or("", |axis| &axis.name)),
                    axis.map_or(String::new(), |axis| number(axis.value)),
                    text(cell.cell.setting.as_deref().unwrap_or_default()),
                    durability.to_owned(),
                    text(&column.engine.id),
                    text(&column.title),
                    text(&column.engine.version),
                    status.to_owned(),
                    text(&reason),
                    text(&cell.cell.unit),
                ];
                if let Some(f) = cell.outcomes[at].figures() {
                    let rate = [f.rate.middle, f.rate.min, f.rate.max, f.rate.spread];
                    fields.extend(rate.map(number));
                    fields.push(f.rate.rounds.to_string());
                    fields.push(suite.against(cell, at).map_or(String::new(), number));
                    fields.push(
                        if column.promises_less(cell.cell) { "yes" } else { "no" }.to_owned(),
                    );
                    fields.push(number(f.ns_per_op));
                    let latencies =
                        [50.0, 90.0, 99.0, 99.9, 100.0].map(|percentile| f.latency(percentile));
                    fields.extend(latencies.map(|us| us.map_or(String::new(), number)));
                    fields.extend(
                        [f.cpu_seconds, f.bytes_written, f.bytes_read, f.disk_bytes, f.peak_memory]
                            .map(number),
                    );
                    let debt = f
                        .debt
                        .map_or([None, None], |(seconds, bytes)| [Some(seconds), Some(bytes)]);
                    fields.extend(debt.map(|value| value.map_or(String::new(), number)));
                    let baseline = suite.against_baseline(section, cell, at);
                    fields.push(baseline.map_or(String::new(), |ratio| number(ratio.value)));
                    let per_op = [
                        Some(f.per_op.written),
                        Some(f.per_op.read),
                        f.per_op.device_reads,
                        f.per_op.device_writes,
                        f.per_op.device_written,
                    ];
                    fields.extend(per_op.map(|value| value.map_or(String::new(), number)));
                }
                fields.resize(HEAD.len(), String::new());
                out.push_str(&line(&fields));
            }
        }
    }
    out
}

/// A text that stays a text.
fn text(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{}", (value * 1e6).round() / 1e6) } else { String::new() }
}

fn line(fields: &[String]) -> String {
    let quoted = fields.iter().map(|field| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.clone()
        }
    });
    format!("{}\r\n", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted() {
        let fields = ["a", "b,c", "d\"e", "f\ng"].map(str::to_owned);
        assert_eq!(line(&fields), "a,\"b,c\",\"d\"\"e\",\"f\ng\"\r\n");
        assert_eq!([text("=SUM(A1)"), text("a=b"), text("-1")], ["'=SUM(A1)", "a=b", "'-1"]);
        assert_eq!([number(f64::NAN), number(0.1 + 0.2), number(4e6)], ["", "0.3", "4000000"]);
    }
}
