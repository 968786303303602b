//! `measurements.jsonl`: what was measured.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::describe::Figure;
use super::summary::{Spread, interval_of_median};

/// The measurement of one engine in one cell in one round.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measurement {
    /// The section's id.
    pub section: String,
    /// The cell's place in the section, from 0.
    pub cell: usize,
    /// The engine's id.
    pub engine: String,
    /// The round, from 0.
    pub round: u32,
    /// How it ended.
    pub status: Status,
    /// Why, unless it is `ok`; or what a reader has to know about it.
    #[serde(default)]
    pub reason: Option<String>,
    /// Whether it was measured on a database that is not complete: shown, and not compared with
    /// anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The work that a writing cell put off.
    #[serde(default)]
    pub debt: Option<Debt>,
    /// The engine program's report; there is one if the status is `ok` or `truncated`.
    #[serde(default)]
    pub result: Option<DriverResult>,
    /// Throughput and latency interval by interval, if the section asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Interval>,
}

/// Why a cell was skipped for which a run's `--budget` left no time.
pub const OUT_OF_TIME: &str = "the time given to the run was used up";

impl Measurement {
    /// Whether something went wrong: the engine ended with an error, gave wrong results, or there
    /// was no room for it. What is too slow has not failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        match self.status {
            Status::Failed => true,
            Status::Skipped => self.reason.as_deref() != Some(OUT_OF_TIME),
            _ => false,
        }
    }
}

/// How a measurement ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Measured to the end.
    Ok,
    /// Cut short by the time limit: the rate is of what was done.
    Truncated,
    /// The engine program ended with an error, or was killed.
    Failed,
    /// The engine program did not end in time and was killed.
    Timeout,
    /// The engine cannot do this.
    Unsupported,
    /// The engine is not installed or cannot be had.
    Missing,
    /// The engine returned a wrong result in the self-test.
    Disqualified,
    /// Not attempted, for the reason stated.
    Skipped,
}

/// Background work left behind by writes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Debt {
    /// How long it took to do it.
    pub seconds: f64,
    /// How much it wrote.
    pub bytes_written: u64,
}

/// The output of an engine program for one benchmark. Fields that it leaves out are 0 or `None`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct DriverResult {
    /// The benchmark's name.
    pub benchmark: String,
    /// The engine's name, without variant.
    pub engine: String,
    /// Operations done.
    pub ops: u64,
    /// From the common start to the end of the last thread.
    pub seconds: f64,
    /// Wall time × threads ÷ operations.
    pub micros_per_op: f64,
    /// Operations a second: the figure of a cell.
    pub ops_per_sec: f64,
    /// Keys and values a second, in units of 1,048,576 bytes.
    pub mb_per_sec: f64,
    /// Latencies of an operation in microseconds.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// 75 in 100 are not above this.
    pub p75_us: f64,
    /// 90 in 100.
    pub p90_us: f64,
    /// 95 in 100.
    pub p95_us: f64,
    /// 99 in 100.
    pub p99_us: f64,
    /// 999 in 1,000.
    pub p999_us: f64,
    /// 9,999 in 10,000.
    pub p9999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// User and system time of all threads.
    pub cpu_seconds: f64,
    /// Bytes written to files, through the page cache.
    pub bytes_written: u64,
    /// Bytes that the storage device had to read; 0 where a program does not say.
    pub bytes_read: u64,
    /// Read requests to the storage device, where the control group counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_reads: Option<u64>,
    /// Write requests, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_writes: Option<u64>,
    /// Bytes that the storage device wrote, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_bytes_written: Option<u64>,
    /// The final size of the database.
    pub disk_bytes: u64,
    /// The most memory that was resident during the benchmark.
    pub peak_memory_bytes: u64,
    /// Files and bytes of each level of an LSM tree when the benchmark began, from level 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<(u64, u64)>,
    /// Reads that found their key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<u64>,
    /// The rate of a writer beside the readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_ops_per_sec: Option<f64>,
    /// Whether the time limit cut it short.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The self-test's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// Other fields of the program's output.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl DriverResult {
    /// A number divided by the operations done.
    #[must_use]
    pub fn per_op(&self, number: u64) -> f64 {
        number as f64 / self.ops.max(1) as f64
    }

    /// What is wrong with it in itself: a rate that is none, or not that of the operations.
    #[must_use]
    pub(crate) fn contradiction(&self) -> Option<String> {
        /// Programs round.
        const ROUNDING: f64 = 0.02;
        let DriverResult { benchmark, ops, seconds, ops_per_sec, .. } = self;
        if !ops_per_sec.is_finite() || !seconds.is_finite() || *ops_per_sec < 0.0 || *seconds < 0.0
        {
            return Some(format!("reported no rate for {benchmark}"));
        }
        let done = ops_per_sec * seconds;
        let expected = *ops as f64;
        (*seconds > 0.0 && (done - expected).abs() > 1.0 + ROUNDING * expected).then(|| {
            format!(
                "reported {ops_per_sec} operations a second for {benchmark}, but {ops} in \
                 {seconds} s"
            )
        })
    }
}

/// One interval of a benchmark over time.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Interval {
    /// The benchmark's name.
    pub series: String,
    /// The interval's end, in seconds from the benchmark's start.
    pub second: f64,
    /// Operations that ended in it. In an interval with none the latencies mean nothing.
    pub ops: u64,
    /// Latencies in microseconds: the mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// 95 in 100 are not above this.
    pub p95_us: f64,
    /// 99 in 100.
    pub p99_us: f64,
    /// 999 in 1,000.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// Every measurement of a run, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    all: Vec<Measurement>,
}

impl Measurement {
    /// Whether it has a figure.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        matches!(self.status, Status::Ok | Status::Truncated) && self.result.is_some()
    }

    /// Whether it has a figure that may be compared with others.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        self.is_measured() && !self.partial
    }

    fn is_of(&self, section: &str, cell: usize, engine: &str) -> bool {
        self.section == section && self.cell == cell && self.engine == engine
    }
}

/// The rounds of a cell and engine that count: those that can be compared; where most of them were
/// measured to the end, these alone, since what was cut short did other work.
#[must_use]
pub fn counted(mut rounds: Vec<&Measurement>) -> Vec<&Measurement> {
    rounds.retain(|m| m.is_comparable());
    keep_whole(&mut rounds, |m| m.result.as_ref().is_some_and(|result| !result.truncated));
    rounds
}

/// Where most of several measurements of one thing are whole, these alone.
pub(crate) fn keep_whole<T>(all: &mut Vec<T>, is_whole: impl Fn(&T) -> bool) {
    if 2 * all.iter().filter(|one| is_whole(one)).count() > all.len() {
        all.retain(is_whole);
    }
}

impl Measurements {
    /// No measurements.
    #[must_use]
    pub fn new() -> Self {
        Measurements::default()
    }

    /// Adds one. It takes the place of an earlier one of the same cell, engine and round.
    pub fn add(&mut self, measurement: Measurement) {
        let same = |m: &Measurement| {
            m.round == measurement.round
                && m.is_of(&measurement.section, measurement.cell, &measurement.engine)
        };
        match self.all.iter().rposition(same) {
            Some(at) => self.all[at] = measurement,
            None => self.all.push(measurement),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Measurement> {
        self.all.iter()
    }

    /// Forgets those for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&Measurement) -> bool) {
        self.all.retain(keep);
    }

    /// The one of a cell, engine and round.
    #[must_use]
    pub fn get(
        &self,
        section: &str,
        cell: usize,
        engine: &str,
        round: u32,
    ) -> Option<&Measurement> {
        self.iter().find(|m| m.round == round && m.is_of(section, cell, engine))
    }

    /// The measurements of one engine in one cell, in the order of the rounds.
    #[must_use]
    pub fn of(&self, section: &str, cell: usize, engine: &str) -> Vec<&Measurement> {
        let mut rounds: Vec<&Measurement> =
            self.iter().filter(|m| m.is_of(section, cell, engine)).collect();
        rounds.sort_by_key(|m| m.round);
        rounds
    }

    /// The operations a second of one engine in one cell over all rounds that can be compared;
    /// `None` if there is none.
    #[must_use]
    pub fn rate(&self, figure: Figure, section: &str, cell: usize, engine: &str) -> Option<Spread> {
        Spread::of(self.rates(section, cell, engine).into_iter(), figure)
    }

    /// The operations a second of one engine in one cell, round by round, where they can be
    /// compared.
    #[must_use]
    pub fn rates(&self, section: &str, cell: usize, engine: &str) -> Vec<f64> {
        let rounds = counted(self.of(section, cell, engine));
        let results = rounds.into_iter().filter_map(|m| m.result.as_ref());
        results.map(|result| result.ops_per_sec).filter(|rate| rate.is_finite()).collect()
    }

    /// Whether an engine has a figure of a cell that can be compared, and did all of the cell's
    /// work in the rounds that count: what was cut short takes part in no mean.
    #[must_use]
    pub fn is_whole(&self, section: &str, cell: usize, engine: &str) -> bool {
        let rounds = counted(self.of(section, cell, engine));
        let mut results = rounds.into_iter().filter_map(|m| m.result.as_ref()).peekable();
        results.peek().is_some() && results.all(|result| !result.truncated)
    }

    /// One engine's rate over another's in one cell, round by round: what goes on in a machine for
    /// minutes is in both.
    #[must_use]
    pub fn ratio(&self, section: &str, cell: usize, engine: &str, other: &str) -> Option<Spread> {
        Spread::of(self.ratios(section, cell, engine, other).into_iter(), Figure::Median)
    }

    /// How far the ratio of two engines may be off, as a fraction of it; infinite where there are
    /// too few rounds, `None` where there is no ratio at all.
    #[must_use]
    pub fn uncertainty(
        &self,
        section: &str,
        cell: usize,
        engine: &str,
        other: &str,
    ) -> Option<f64> {
        let ratios = self.ratios(section, cell, engine, other);
        let middle = Spread::of(ratios.iter().copied(), Figure::Median)?.middle;
        let off = |(low, high): (f64, f64)| (middle / low).max(high / middle) - 1.0;
        Some(interval_of_median(&ratios).map_or(f64::INFINITY, off))
    }

    /// One engine's rate over another's in one cell, of every round that counts for both.
    #[must_use]
    pub fn ratios(&self, section: &str, cell: usize, engine: &str, other: &str) -> Vec<f64> {
        let rate = |m: &Measurement| m.result.as_ref().map(|result| result.ops_per_sec);
        let others = counted(self.of(section, cell, other));
        let ratios = counted(self.of(section, cell, engine)).into_iter().filter_map(|own| {
            let other = others.iter().find(|other| other.round == own.round)?;
            Some(rate(own)? / rate(other)?)
        });
        ratios.filter(|ratio| ratio.is_finite()).collect()
    }

    /// Any number that engine programs report, over all rounds that have a figure.
    #[must_use]
    pub fn summary(
        &self,
        figure: Figure,
        section: &str,
        cell: usize,
        engine: &str,
        number: impl Fn(&DriverResult) -> f64,
    ) -> Option<Spread> {
        let rounds = self.of(section, cell, engine);
        let results = rounds.iter().filter(|m| m.is_measured()).filter_map(|m| m.result.as_ref());
        Spread::of(results.map(number), figure)
    }
}

impl FromIterator<Measurement> for Measurements {
    fn from_iter<I: IntoIterator<Item = Measurement>>(measurements: I) -> Self {
        let mut all = Measurements::new();
        for measurement in measurements {
            all.add(measurement);
        }
        all
    }
}
