//! The contents of the page, computed from a run's two files: columns in their order, and for every
//! cell and engine either figures or the reason why there are none. Plain data without layout; made
//! once for each report.
//!
//! Invariants:
//! 1. Every cell has one outcome for each column, in the columns' order.
//! 2. An outcome without figures has a reason in words, also where the run was interrupted before
//!    it got there.

use std::collections::HashMap;

use crate::run::{
    Cell, Chart, DriverResult, Durability, Engine, Interval, Measurement, Measurements, Run,
    Section, Spread, Status, counted,
};

use super::{number, palette};

/// A suite: one run, or several runs of it taken together.
#[derive(Debug)]
pub(crate) struct Suite<'a> {
    pub(crate) run: &'a Run,
    pub(crate) columns: Vec<Column<'a>>,
    pub(crate) sections: Vec<SectionView<'a>>,
}

/// A column: an engine, or a variant of one.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    pub(crate) engine: &'a Engine,
    /// Its title, with the id where another engine has the same.
    pub(crate) title: String,
    /// Of its colour.
    pub(crate) slot: usize,
}

/// A section with its outcomes.
#[derive(Debug)]
pub(crate) struct SectionView<'a> {
    pub(crate) section: &'a Section,
    pub(crate) cells: Vec<CellView<'a>>,
}

/// A cell with its outcomes.
#[derive(Debug)]
pub(crate) struct CellView<'a> {
    pub(crate) cell: &'a Cell,
    /// Its place among all cells of the suite.
    pub(crate) number: usize,
    pub(crate) outcomes: Vec<Outcome>,
}

/// The result of one cell for one engine.
#[derive(Debug)]
pub(crate) enum Outcome {
    Figures(Box<Figures>),
    Absent {
        /// In a word or two.
        word: &'static str,
        reason: String,
    },
}

/// The figures of one cell and engine over all rounds. All but the rate are medians, or what the
/// run takes in their place.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Operations a second.
    pub(crate) rate: Spread,
    /// The same of every round that counts, in the order of the rounds.
    pub(crate) rates: Vec<f64>,
    pub(crate) ns_per_op: f64,
    /// Percentile and latency in microseconds, ascending; 100 stands for the maximum.
    pub(crate) latencies: Vec<(f64, f64)>,
    pub(crate) cpu_seconds: f64,
    pub(crate) bytes_written: f64,
    pub(crate) bytes_read: f64,
    pub(crate) per_op: PerOp,
    pub(crate) peak_memory: f64,
    pub(crate) disk_bytes: f64,
    /// Files and bytes of each level when the first of the rounds began.
    pub(crate) levels: Vec<(u64, u64)>,
    /// Seconds and bytes of the work that was put off.
    pub(crate) debt: Option<(f64, f64)>,
    /// The rate of the writer beside the readers.
    pub(crate) writer_rate: Option<f64>,
    /// Remarks on it: cut short, rounds that failed.
    pub(crate) remarks: Vec<String>,
    /// Whether all of it is of a database that is complete, so that it can be compared.
    pub(crate) comparable: bool,
    /// Whether the time limit cut a round short, so that it takes part in no mean.
    pub(crate) cut: bool,
    /// Operations a second, the time for the work that was put off included.
    pub(crate) rate_with_debt: Option<f64>,
    /// Interval by interval, of the round whose rate is nearest to the figure.
    pub(crate) series: Vec<Interval>,
}

/// What an operation wrote to files and asked of the storage device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerOp {
    /// Bytes written to files, for the work that was put off as well.
    pub(crate) written: f64,
    /// Bytes that the device had to read.
    pub(crate) read: f64,
    /// Requests to the device and bytes that it wrote, where the control group counts them.
    pub(crate) device_reads: Option<f64>,
    pub(crate) device_writes: Option<f64>,
    pub(crate) device_written: Option<f64>,
}

impl PerOp {
    fn of(run: &Run, measured: &[&Measurement]) -> PerOp {
        let results = || measured.iter().filter_map(|m| m.result.as_ref());
        let middle = |values: &mut dyn Iterator<Item = f64>| {
            Spread::of(values, run.figure).map(|spread| spread.middle)
        };
        let counted = |number: fn(&DriverResult) -> Option<u64>| {
            middle(&mut results().filter_map(|result| Some(result.per_op(number(result)?))))
        };
        let written = measured.iter().filter_map(|m| {
            let result = m.result.as_ref()?;
            let debt = m.debt.map_or(0, |debt| debt.bytes_written);
            Some(result.per_op(result.bytes_written.saturating_add(debt)))
        });
        PerOp {
            written: middle(&mut written.into_iter()).unwrap_or_default(),
            read: counted(|result| Some(result.bytes_read)).unwrap_or_default(),
            device_reads: counted(|result| result.device_reads),
            device_writes: counted(|result| result.device_writes),
            device_written: counted(|result| result.device_bytes_written),
        }
    }

    /// What the device read for an operation: "8.60 kB in 2.10 requests"; `None` if it read no byte
    /// and no request is counted.
    pub(crate) fn reads_in_words(&self) -> Option<String> {
        let bytes = number::bytes_per_op(self.read);
        match self.device_reads {
            Some(reads) => Some(format!("{bytes} in {} requests", number::si(reads))),
            None => (self.read > 0.0).then_some(bytes),
        }
    }

    /// The same of what it wrote; `None` where that is not counted.
    pub(crate) fn writes_in_words(&self) -> Option<String> {
        let (writes, bytes) = (self.device_writes?, self.device_written?);
        Some(format!("{} in {} requests", number::bytes_per_op(bytes), number::si(writes)))
    }
}

/// The percentiles of latencies; 100 stands for the maximum.
pub(crate) const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0];

/// What the marks of [`Figures::mark`] stand for.
pub(crate) const MARKS: [(&str, &str); 3] = [
    ("*", "cut short, in no mean"),
    ("‡", "of a database that is not complete"),
    ("°", "with a remark"),
];

impl Figures {
    /// The levels that hold files, in words: "L0 2, 4.10 MB; L2 31, 60 MB".
    pub(crate) fn shape(&self) -> Option<String> {
        let held = self.levels.iter().enumerate().filter(|(_, (files, _))| *files > 0);
        let words = held.map(|(level, (files, bytes))| {
            format!("L{level} {files}, {}", number::bytes(*bytes as f64))
        });
        Some(words.collect::<Vec<_>>().join("; ")).filter(|words| !words.is_empty())
    }

    /// The mark of a figure that counts for less than it seems, or has a remark: one of [`MARKS`].
    pub(crate) fn mark(&self) -> Option<&'static str> {
        let [(cut, _), (partial, _), (remark, _)] = MARKS;
        match () {
            () if !self.comparable => Some(partial),
            () if self.cut => Some(cut),
            () => (!self.remarks.is_empty()).then_some(remark),
        }
    }
}

impl Outcome {
    pub(crate) fn figures(&self) -> Option<&Figures> {
        match self {
            Outcome::Figures(figures) => Some(figures),
            Outcome::Absent { .. } => None,
        }
    }
}

impl Figures {
    pub(crate) fn latency(&self, percentile: f64) -> Option<f64> {
        self.latencies.iter().find(|(at, _)| *at == percentile).map(|(_, us)| *us)
    }
}

impl Column<'_> {
    pub(crate) fn is_terrace(&self) -> bool {
        self.engine.id == "terrace"
    }

    /// Whether it counts among the rest that Terrace is compared with where `cell` is best.
    pub(crate) fn competes_in(&self, cell: &Cell) -> bool {
        !self.engine.is_terrace() && !self.promises_less(cell)
    }

    /// Whether its writes in `cell` promise less than was asked.
    pub(crate) fn promises_less(&self, cell: &Cell) -> bool {
        self.engine.weaker.is_some() && cell.writes && cell.durability == Durability::Asynchronous
    }

    /// Whether it ran.
    pub(crate) fn ran(&self) -> bool {
        self.engine.missing.is_none() && self.engine.disqualified.is_none()
    }
}

impl CellView<'_> {
    /// The rate of a column, if it can be compared with others: not that of an open loop.
    pub(crate) fn rate(&self, column: usize) -> Option<Spread> {
        self.comparable(column).map(|figures| figures.rate)
    }

    /// The same with the time for the work that was put off.
    pub(crate) fn rate_with_debt(&self, column: usize) -> Option<f64> {
        self.comparable(column)?.rate_with_debt.filter(|rate| *rate > 0.0)
    }

    fn comparable(&self, column: usize) -> Option<&Figures> {
        let figures = self.outcomes.get(column)?.figures()?;
        (figures.comparable && !self.cell.paced).then_some(figures)
    }

    /// The 99th percentile of a column's latencies, if it can be compared with others.
    pub(crate) fn p99(&self, column: usize) -> Option<f64> {
        let figures = self.outcomes.get(column)?.figures()?;
        figures.latency(99.0).filter(|_| figures.comparable)
    }

    /// Whether a column's figure is of a part of the work.
    pub(crate) fn is_cut(&self, column: usize) -> bool {
        self.outcomes.get(column).and_then(Outcome::figures).is_some_and(|figures| figures.cut)
    }
}

impl<'a> Suite<'a> {
    pub(crate) fn new(run: &'a Run, measurements: &Measurements) -> Suite<'a> {
        let slots = palette::slots(run.engines.iter().map(|engine| engine.id.as_str()));
        let slot = |engine: &Engine| slots.get(&engine.id).copied().unwrap_or_default();
        let column = |engine: &'a Engine| {
            let alike = run.engines.iter().filter(|other| other.title == engine.title).count();
            let title = if alike > 1 {
                format!("{} ({})", engine.title, engine.id)
            } else {
                engine.title.clone()
            };
            Column { engine, title, slot: slot(engine) }
        };
        let mut columns: Vec<Column<'a>> = run.engines.iter().map(column).collect();
        // Terrace, then what is Terrace too, then the others by title.
        columns.sort_by_cached_key(|column| {
            let engine = column.engine;
            (
                !column.is_terrace(),
                !engine.is_terrace(),
                column.title.to_lowercase(),
                engine.id.clone(),
            )
        });
        let mut found: HashMap<(&str, usize, &str), Vec<&Measurement>> = HashMap::new();
        for m in measurements.iter() {
            found.entry((m.section.as_str(), m.cell, m.engine.as_str())).or_default().push(m);
        }
        let mut numbers = 0..;
        let mut cell_view = |section: &'a Section, at: usize, cell: &'a Cell| {
            let outcome = |column: &Column<'a>| {
                let rounds = found.get(&(section.id.as_str(), at, column.engine.id.as_str()));
                outcome(run, column.engine, rounds.map_or(&[], Vec::as_slice))
            };
            let outcomes = columns.iter().map(outcome).collect();
            CellView { cell, number: numbers.next().unwrap_or_default(), outcomes }
        };
        let sections = run
            .sections
            .iter()
            .map(|section| SectionView {
                section,
                cells: section
                    .cells
                    .iter()
                    .enumerate()
                    .map(|(at, cell)| cell_view(section, at, cell))
                    .collect(),
            })
            .collect();
        Suite { run, columns, sections }
    }

    /// The column of Terrace itself.
    pub(crate) fn terrace(&self) -> Option<usize> {
        self.columns.iter().position(Column::is_terrace)
    }

    /// All cells, with their sections.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (&SectionView<'a>, &CellView<'a>)> {
        self.sections
            .iter()
            .flat_map(|section| section.cells.iter().map(move |cell| (section, cell)))
    }

    /// The fastest competitor of a cell: its column and figure.
    pub(crate) fn best_competitor(&self, cell: &CellView<'_>) -> Option<(usize, Spread)> {
        let competitors =
            (0..self.columns.len()).filter(|column| self.columns[*column].competes_in(cell.cell));
        competitors
            .filter_map(|column| Some((column, cell.rate(column)?)))
            .max_by(|a, b| a.1.middle.total_cmp(&b.1.middle))
    }
}

/// How many figures of a suite a reader should not lean on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reliability {
    /// All figures.
    pub(crate) figures: usize,
    /// Those with a round that the time limit cut short.
    pub(crate) cut: usize,
    /// Those with a spread that has to be shown.
    pub(crate) spread: usize,
    /// Those of a database that is not complete.
    pub(crate) partial: usize,
}

impl Suite<'_> {
    /// Of some columns, in all cells.
    pub(crate) fn reliability(&self, column: impl Fn(usize) -> bool) -> Reliability {
        let mut found = Reliability::default();
        for (_, cell) in self.cells() {
            let chosen = cell.outcomes.iter().enumerate().filter(|(at, _)| column(*at));
            for figures in chosen.filter_map(|(_, outcome)| outcome.figures()) {
                found.figures += 1;
                found.cut += usize::from(figures.cut);
                found.spread += usize::from(figures.rate.is_notable());
                found.partial += usize::from(!figures.comparable);
            }
        }
        found
    }
}

impl SectionView<'_> {
    pub(crate) fn is(&self, chart: Chart) -> bool {
        self.section.chart == chart
    }

    /// Whether any engine reported intervals.
    pub(crate) fn has_series(&self) -> bool {
        self.cells
            .iter()
            .flat_map(|cell| &cell.outcomes)
            .filter_map(Outcome::figures)
            .any(|f| !f.series.is_empty())
    }
}

fn outcome(run: &Run, engine: &Engine, rounds: &[&Measurement]) -> Outcome {
    let all: Vec<&Measurement> = rounds.iter().copied().filter(|m| m.is_measured()).collect();
    let complete = counted(all.clone());
    let comparable = !complete.is_empty();
    let measured = if comparable { complete } else { all };
    let results = || measured.iter().filter_map(|m| m.result.as_ref());
    let rates: Vec<f64> = results()
        .map(|result| result.ops_per_sec)
        .filter(|rate| rate.is_finite() && *rate >= 0.0)
        .collect();
    let rate = Spread::of(rates.iter().copied(), run.figure);
    let Some(rate) = rate else { return absent(run, engine, rounds) };
    let middle = |values: &mut dyn Iterator<Item = f64>| {
        Spread::of(values, run.figure).map_or(0.0, |s| s.middle)
    };
    let latencies = PERCENTILES.into_iter().filter_map(|percentile| {
        let us = middle(&mut results().map(|r| match percentile {
            50.0 => r.p50_us,
            75.0 => r.p75_us,
            90.0 => r.p90_us,
            95.0 => r.p95_us,
            99.0 => r.p99_us,
            99.9 => r.p999_us,
            99.99 => r.p9999_us,
            _ => r.max_us,
        }));
        (us > 0.0).then_some((percentile, us))
    });
    let debts = || measured.iter().filter_map(|m| m.debt);
    let debt = debts().next().is_some().then(|| {
        (
            middle(&mut debts().map(|d| d.seconds)),
            middle(&mut debts().map(|d| d.bytes_written as f64)),
        )
    });
    let nearest = measured.iter().filter(|m| !m.series.is_empty()).min_by(|a, b| {
        let distance = |m: &Measurement| {
            m.result.as_ref().map_or(f64::MAX, |r| (r.ops_per_sec - rate.middle).abs())
        };
        distance(a).total_cmp(&distance(b))
    });
    Outcome::Figures(Box::new(Figures {
        rate,
        rates,
        ns_per_op: middle(&mut results().map(|r| r.micros_per_op * 1e3)),
        latencies: latencies.collect(),
        cpu_seconds: middle(&mut results().map(|r| r.cpu_seconds)),
        bytes_written: middle(&mut results().map(|r| r.bytes_written as f64)),
        bytes_read: middle(&mut results().map(|r| r.bytes_read as f64)),
        per_op: PerOp::of(run, &measured),
        peak_memory: middle(&mut results().map(|r| r.peak_memory_bytes as f64)),
        levels: results().next().map(|r| r.levels.clone()).unwrap_or_default(),
        disk_bytes: middle(&mut results().map(|r| r.disk_bytes as f64)),
        debt,
        writer_rate: Spread::of(results().filter_map(|r| r.writer_ops_per_sec), run.figure)
            .map(|s| s.middle),
        remarks: remarks(rounds),
        comparable,
        cut: results().any(|result| result.truncated),
        rate_with_debt: rate_with_debt(run, &measured),
        series: nearest.map(|m| m.series.clone()).unwrap_or_default(),
    }))
}

/// Operations a second of those rounds in which work was put off, with the time that it took.
fn rate_with_debt(run: &Run, measured: &[&Measurement]) -> Option<f64> {
    let rates = measured.iter().filter_map(|m| {
        let (debt, result) = (m.debt?, m.result.as_ref()?);
        Some(result.ops as f64 / (result.seconds + debt.seconds))
    });
    Spread::of(rates, run.figure).map(|rate| rate.middle)
}

fn remarks(rounds: &[&Measurement]) -> Vec<String> {
    let mut remarks = Vec::new();
    let cut = rounds.iter().filter(|m| m.result.as_ref().is_some_and(|r| r.truncated)).count();
    if cut > 0 {
        let done: u64 = rounds
            .iter()
            .filter_map(|m| m.result.as_ref())
            .map(|r| r.ops)
            .min()
            .unwrap_or_default();
        let seconds = rounds
            .iter()
            .filter_map(|m| m.result.as_ref())
            .map(|r| r.seconds)
            .fold(f64::MAX, f64::min);
        remarks.push(format!(
            "cut short in {cut} of {} rounds, after {} operations and {} at least",
            rounds.len(),
            number::thousands(done as f64),
            number::span(seconds)
        ));
    }
    let partial = rounds.iter().filter(|m| m.is_measured() && m.partial).count();
    if partial > 0 {
        remarks.push(format!(
            "of a database that is not complete in {partial} of {} rounds, and not compared",
            rounds.len()
        ));
    }
    for reason in rounds.iter().filter(|m| m.status == Status::Ok).filter_map(|m| m.reason.as_ref())
    {
        if !remarks.contains(reason) {
            remarks.push(reason.clone());
        }
    }
    for m in rounds.iter().filter(|m| !m.is_measured()) {
        let reason = m.reason.as_deref().unwrap_or("without a stated reason");
        remarks.push(format!("round {}: {}: {reason}", m.round + 1, word(m.status)));
    }
    remarks
}

fn absent(run: &Run, engine: &Engine, rounds: &[&Measurement]) -> Outcome {
    if let Some(reason) = &engine.disqualified {
        return Outcome::Absent { word: word(Status::Disqualified), reason: reason.clone() };
    }
    if let Some(reason) = &engine.missing {
        return Outcome::Absent { word: word(Status::Missing), reason: reason.clone() };
    }
    if let Some(last) = rounds.last() {
        let reason = last.reason.clone().unwrap_or_else(|| "no reason was recorded".to_owned());
        return Outcome::Absent { word: word(last.status), reason };
    }
    let reason = if run.complete {
        "there is no measurement of it"
    } else {
        "the run ended before it was measured"
    };
    Outcome::Absent { word: "not run", reason: reason.to_owned() }
}

/// A status in a word.
fn word(status: Status) -> &'static str {
    match status {
        Status::Ok | Status::Truncated => "no figure",
        Status::Failed => "failed",
        Status::Timeout => "out of time",
        Status::Unsupported => "cannot",
        Status::Missing => "not available",
        Status::Disqualified => "disqualified",
        Status::Skipped => "skipped",
    }
}
