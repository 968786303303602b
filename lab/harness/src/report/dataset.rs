//! What the page's script is given: the figures of a suite, each once, and the charts that it
//! draws. From the figures it makes the tables of all figures, what a pointer on a figure shows, and
//! all ratios and means of a reader's choice.
//!
//! Invariants:
//! 1. A figure is the text that a reader sees, as `number` writes it: the script puts texts together
//!    and formats ratios only.
//! 2. Lists of figures have an entry for every column, empty where there is no figure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::run::Chart;

use super::figures::{cell_name, percentile, setting_name, x_name};
use super::model::{CellView, Figures, Outcome, PERCENTILES, SectionView, Suite};
use super::number;

/// Columns that a suite without such figures does not have.
const OPTIONAL: [&str; 4] = ["Device read/op", "Reads/op", "Device written/op", "Writes/op"];

/// A column of the tables of all figures: its header, what that means, and what stands in it.
type Header = (&'static str, &'static str, Content);

#[derive(Clone, Copy)]
enum Content {
    Figure(fn(&Figures) -> String),
    /// One of `PERCENTILES`.
    Latency(f64),
    /// Of rates, which the script makes.
    Ratio,
    /// The same with debt.
    DebtRatio,
}

use Content::{DebtRatio, Figure, Latency, Ratio};

/// Between the engine with the workload and the remarks.
const HEADERS: [Header; 24] = [
    ("Rate", "operations a second: the figure of the cell", Figure(|f| precise(f.rate.middle))),
    ("Lowest", "of all rounds", Figure(|f| precise(f.rate.min))),
    ("Highest", "of all rounds", Figure(|f| precise(f.rate.max))),
    ("Spread", "(highest − lowest) ÷ median; above 10% it is marked", Figure(spread)),
    ("Terrace ÷", "Terrace's rate divided by this one", Ratio),
    (
        "With debt",
        "the same, the time for the work that writes put off included on both sides",
        DebtRatio,
    ),
    ("ns/op", "wall time × threads ÷ operations", Figure(|f| precise(f.ns_per_op))),
    ("p50", "median latency", Latency(50.0)),
    ("p99", "99 in 100 operations are not slower", Latency(99.0)),
    ("p99.9", "999 in 1,000 operations are not slower", Latency(99.9)),
    ("Max", "the slowest operation", Latency(100.0)),
    (
        "CPU",
        "user and system time of all threads, background threads included",
        Figure(|f| seconds(f.cpu_seconds)),
    ),
    (
        "Written to files",
        "bytes written to files through the page cache; the storage device may write more or less",
        Figure(|f| bytes(f.bytes_written)),
    ),
    (
        "Written/op",
        "the same divided by the operations, for the work that writes put off as well",
        Figure(|f| counted((f.per_op.written > 0.0).then_some(f.per_op.written), bytes_per_op)),
    ),
    (
        "Device read",
        "bytes that the storage device had to read; none where the page cache had them",
        Figure(|f| bytes(f.bytes_read)),
    ),
    (
        "Device read/op",
        "the same divided by the operations",
        Figure(|f| counted((f.per_op.read > 0.0).then_some(f.per_op.read), bytes_per_op)),
    ),
    (
        "Reads/op",
        "read requests to the storage device divided by the operations",
        Figure(|f| counted(f.per_op.device_reads, number::si)),
    ),
    (
        "Device written/op",
        "bytes that the storage device wrote during the benchmark, divided by the operations",
        Figure(|f| counted(f.per_op.device_written, bytes_per_op)),
    ),
    (
        "Writes/op",
        "write requests to the storage device divided by the operations",
        Figure(|f| counted(f.per_op.device_writes, number::si)),
    ),
    ("Memory", "the most memory resident", Figure(|f| bytes(f.peak_memory))),
    ("On disk", "what the database's files occupy", Figure(|f| bytes(f.disk_bytes))),
    (
        "Levels",
        "files and bytes of each level of an LSM tree when the first round's benchmark began",
        Figure(|f| f.shape().unwrap_or_else(none)),
    ),
    (
        "Debt",
        "time for the work that the writes put off, done afterwards",
        Figure(|f| f.debt.map_or_else(none, |(time, _)| seconds(time))),
    ),
    (
        "Debt written",
        "bytes written to files for that",
        Figure(|f| f.debt.map_or_else(none, |(_, written)| bytes(written))),
    ),
];

/// Between the texts of a list.
const SEPARATOR: &str = "|";

/// A suite. Names are short because there are thousands of them.
#[derive(Debug, Serialize)]
struct Dataset<'a> {
    /// The column of Terrace itself.
    terrace: Option<usize>,
    engines: Vec<Column<'a>>,
    /// Of the tables of all figures: header, meaning, and where the texts are: in the next list of
    /// `f`, in a list of `p`, or nowhere, since they are ratios of `r` or `d`.
    headers: Vec<(&'static str, &'static str, String)>,
    percentiles: Vec<String>,
    sections: Vec<Section<'a>>,
    /// The charts: the file that has one too, and its element.
    charts: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct Column<'a> {
    title: &'a str,
    /// The class of its colour.
    swatch: String,
    /// Whether it is Terrace, a variant of it or the drop-in, which are never the rest.
    own: bool,
    /// Whether it ran. Who did not is shown only beside all the others.
    ran: bool,
    /// What its writes promise less, if they do.
    weaker: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Section<'a> {
    title: &'a str,
    /// Whether its charts have a group of bars for each cell.
    grouped: bool,
    cells: Vec<Cell<'a>>,
}

#[derive(Debug, Serialize)]
struct Cell<'a> {
    name: String,
    /// What sets it apart from the others of a chart.
    at: String,
    unit: &'a str,
    writes: bool,
    /// By column the rate that can be compared.
    r: Vec<Option<f64>>,
    /// By column the rate with the time for the work that was put off; empty if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    d: Vec<Option<f64>>,
    /// The columns that were cut short.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    c: Vec<usize>,
    /// The columns whose writes promise less than was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    l: Vec<usize>,
    /// By column how many rounds a figure is of, 0 where there is none.
    n: Vec<usize>,
    /// The columns whose rounds scatter so far that it is marked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    s: Vec<usize>,
    /// By header, but for ratios and latencies, a list of figures.
    f: Vec<String>,
    /// By percentile a list of latencies.
    p: Vec<String>,
    /// Remarks by column.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    m: BTreeMap<usize, String>,
    /// By column the rate of the writer beside the readers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    w: BTreeMap<usize, String>,
    /// By column why there is no figure: in a word or two, and in full.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    a: BTreeMap<usize, (&'static str, &'a str)>,
}

impl Content {
    fn place(self) -> String {
        match self {
            Figure(_) => "f".to_owned(),
            Ratio => "r".to_owned(),
            DebtRatio => "d".to_owned(),
            Latency(percentile) => {
                let place = PERCENTILES.iter().position(|other| *other == percentile);
                place.unwrap_or_default().to_string()
            }
        }
    }
}

/// The suite with its charts as JSON.
pub(crate) fn json(suite: &Suite<'_>, charts: BTreeMap<String, String>) -> String {
    let headers = headers(suite);
    let dataset = Dataset {
        terrace: suite.terrace(),
        engines: suite
            .columns
            .iter()
            .map(|column| Column {
                title: &column.title,
                swatch: format!("c{}", column.slot),
                own: column.engine.is_terrace(),
                ran: column.ran(),
                weaker: column.engine.weaker.as_deref(),
            })
            .collect(),
        headers: headers
            .iter()
            .map(|(name, meaning, content)| (*name, *meaning, content.place()))
            .collect(),
        percentiles: PERCENTILES.into_iter().map(percentile).collect(),
        sections: suite
            .sections
            .iter()
            .map(|section| Section {
                title: &section.section.title,
                grouped: section.is(Chart::Settings),
                cells: section
                    .cells
                    .iter()
                    .map(|cell| of(suite, section, cell, &headers))
                    .collect(),
            })
            .collect(),
        charts,
    };
    serde_json::to_string(&dataset).unwrap_or_default()
}

/// The columns of a suite's tables of all figures.
fn headers(suite: &Suite<'_>) -> Vec<Header> {
    let figures: Vec<&Figures> =
        suite.cells().flat_map(|(_, cell)| &cell.outcomes).filter_map(Outcome::figures).collect();
    let is_shown = |(name, _, content): &Header| match content {
        Figure(text) if OPTIONAL.contains(name) => {
            figures.iter().any(|figures| text(figures) != number::NONE)
        }
        _ => true,
    };
    HEADERS.into_iter().filter(is_shown).collect()
}

fn of<'a>(
    suite: &Suite<'_>,
    section: &SectionView<'_>,
    cell: &'a CellView<'_>,
    headers: &[Header],
) -> Cell<'a> {
    let columns = || 0..suite.columns.len();
    let outcomes = || cell.outcomes.iter().enumerate();
    let figures = || outcomes().filter_map(|(at, outcome)| Some((at, outcome.figures()?)));
    let list = |text: &dyn Fn(&Figures) -> String| {
        let texts =
            cell.outcomes.iter().map(|outcome| outcome.figures().map_or_else(String::new, text));
        texts.collect::<Vec<_>>().join(SEPARATOR)
    };
    let d: Vec<Option<f64>> =
        columns().map(|column| cell.rate_with_debt(column).and_then(rounded)).collect();
    let figure = |content: &Content| match content {
        Figure(text) => Some(list(text)),
        Latency(_) | Ratio | DebtRatio => None,
    };
    Cell {
        name: cell_name(cell.cell),
        at: if section.is(Chart::Settings) { setting_name(cell.cell) } else { x_name(cell.cell) },
        unit: if cell.cell.paced { "op/s" } else { &cell.cell.unit },
        writes: cell.cell.writes,
        r: columns().map(|at| cell.rate(at).and_then(|rate| rounded(rate.middle))).collect(),
        d: if d.iter().any(Option::is_some) { d } else { Vec::new() },
        c: columns().filter(|at| cell.is_cut(*at)).collect(),
        l: columns().filter(|at| suite.columns[*at].promises_less(cell.cell)).collect(),
        n: outcomes().map(|(_, o)| o.figures().map_or(0, |f| f.rate.rounds)).collect(),
        s: figures().filter(|(_, f)| f.rate.is_notable()).map(|(at, _)| at).collect(),
        f: headers.iter().filter_map(|(_, _, content)| figure(content)).collect(),
        p: PERCENTILES.iter().map(|percentile| list(&|f| latency(f, *percentile))).collect(),
        m: figures()
            .filter(|(_, f)| !f.remarks.is_empty())
            .map(|(at, f)| (at, f.remarks.join("; ")))
            .collect(),
        w: figures().filter_map(|(at, f)| Some((at, precise(f.writer_rate?)))).collect(),
        a: outcomes()
            .filter_map(|(at, outcome)| match outcome {
                Outcome::Figures(_) => None,
                Outcome::Absent { word, reason } => Some((at, (*word, reason.as_str()))),
            })
            .collect(),
    }
}

/// To eight digits, which leave ratios as they are shown; `None` unless it is positive.
fn rounded(rate: f64) -> Option<f64> {
    let known = rate.is_finite() && rate > 0.0;
    known.then(|| format!("{rate:.7e}").parse().unwrap_or(rate)).filter(|rate| *rate > 0.0)
}

fn none() -> String {
    number::NONE.to_owned()
}

fn bytes(value: f64) -> String {
    number::bytes(value)
}

fn precise(value: f64) -> String {
    number::precise(value)
}

fn bytes_per_op(value: f64) -> String {
    number::bytes_per_op(value)
}

/// A number that some suites do not have.
fn counted(value: Option<f64>, text: fn(f64) -> String) -> String {
    value.map_or_else(none, text)
}

fn seconds(value: f64) -> String {
    number::duration_us(value * 1e6)
}

fn latency(figures: &Figures, percentile: f64) -> String {
    figures.latency(percentile).map_or_else(none, number::duration_us)
}

fn spread(figures: &Figures) -> String {
    if figures.rate.rounds > 1 { number::percent(figures.rate.spread) } else { none() }
}
