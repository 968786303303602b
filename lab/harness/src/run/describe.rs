//! `run.json`: what was run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A run of one suite.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Run {
    /// [`crate::run::SCHEMA`].
    pub schema: u32,
    /// The suite's name, `leveldb-2011`.
    pub suite: String,
    /// The suite in words.
    pub title: String,
    /// Where the published figures come from.
    pub source: String,
    /// The command line that began the run.
    pub command: String,
    /// When, in UTC: `2026-11-21T10:00:00Z`.
    pub began: String,
    /// How long it has taken, all sessions of a resumed run together.
    pub seconds: f64,
    /// Whether every cell has been measured, or has a stated reason.
    pub complete: bool,
    /// Entries of a database.
    pub num: u64,
    /// Rounds: every cell is measured that often by every engine.
    pub rounds: u32,
    /// How well the ratios of a group of cells have to be known, as a fraction, so that it needs no
    /// more rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// The first seed; round *r* uses `seed + r`.
    pub seed: u64,
    /// Seconds after which one benchmark is cut short; 0 for no limit.
    pub time_limit: f64,
    /// Minutes for the whole run, so that benchmarks were cut short sooner than by the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// Seconds that a benchmark under steady load runs; 0 where there is none.
    #[serde(default)]
    pub duration: f64,
    /// Whether this is the suite's short form.
    #[serde(default)]
    pub short: bool,
    /// How the figure of a cell comes from its rounds.
    #[serde(default)]
    pub figure: Figure,
    /// Remarks: scaled down, sections left out, interrupted.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where it was run.
    pub machine: Machine,
    /// The columns of the report, in order; Terrace first.
    pub engines: Vec<Engine>,
    /// The sections, in order.
    pub sections: Vec<Section>,
}

/// How the figure of a cell comes from its rounds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// The median.
    #[default]
    Median,
    /// The mean of what is left without the lowest and the highest; of fewer than three rounds the
    /// median.
    MeanWithoutExtremes,
}

/// The machine.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: usize,
    /// Memory.
    pub memory_mib: u64,
    /// The operating system and its version.
    pub kernel: String,
    /// Type and device of the file system that holds the databases: `ext4 on /dev/vda`.
    pub file_system: String,
    /// What basic operations cost, measured at the run's beginning.
    #[serde(default)]
    pub costs: Option<Costs>,
}

/// What basic operations cost on a machine.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Costs {
    /// A `write` of 128 bytes to the end of a file, in nanoseconds.
    pub write_ns: f64,
    /// The first touch of a page of memory, in nanoseconds.
    pub page_fault_ns: f64,
    /// An `fdatasync` after such a write, in microseconds: the median.
    pub fdatasync_us: f64,
    /// A load from anywhere in 64 MiB that depends on the one before it, in nanoseconds.
    pub memory_ns: f64,
}

impl Costs {
    /// For readers.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!(
            "write of 128 bytes {:.0} ns, page fault {:.0} ns, fdatasync {:.0} µs, load from memory {:.0} ns",
            self.write_ns, self.page_fault_ns, self.fdatasync_us, self.memory_ns
        )
    }
}

impl Machine {
    /// How another machine differs in its names: processor, cores, system, file system. Empty if it
    /// is the same machine, as far as names say.
    #[must_use]
    pub fn differences(&self, other: &Machine) -> Vec<String> {
        let mut found = Vec::new();
        for (what, one, another) in [
            ("processor", self.cpu.clone(), other.cpu.clone()),
            ("cores", self.cores.to_string(), other.cores.to_string()),
            ("system", self.kernel.clone(), other.kernel.clone()),
            ("file system", self.file_system.clone(), other.file_system.clone()),
        ] {
            if one != another {
                found.push(format!("{what}: {one}, then {another}"));
            }
        }
        found
    }

    /// Whether rounds on the two cannot be of one run: another processor, other cores or another
    /// file system. A system that was updated is worth a note.
    #[must_use]
    pub fn is_another(&self, other: &Machine) -> bool {
        (&self.cpu, self.cores, &self.file_system) != (&other.cpu, other.cores, &other.file_system)
    }

    /// What a reader of rounds on both has to know: a system that was updated, costs that changed.
    #[must_use]
    pub fn notes(&self, other: &Machine) -> Vec<String> {
        let mut notes = Vec::new();
        if self.kernel != other.kernel {
            notes.push(format!("The system was {}, then {}.", self.kernel, other.kernel));
        }
        let changes = match (&self.costs, &other.costs) {
            (Some(before), Some(after)) => before.changes(after),
            _ => Vec::new(),
        };
        let notable: Vec<String> =
            changes.iter().filter(|change| change.notable).map(CostChange::in_words).collect();
        if !notable.is_empty() {
            notes.push(format!(
                "Basic operations did not cost the same in all rounds, so another machine or a busy one had a part \
                 in them: {}.",
                notable.join("; ")
            ));
        }
        notes
    }
}

/// What an operation costs on two machines, or on one machine on two days.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostChange {
    /// The operation.
    pub operation: &'static str,
    /// What it cost first, in nanoseconds.
    pub before_ns: f64,
    /// What it cost then.
    pub after_ns: f64,
    /// The second over the first.
    pub ratio: f64,
    /// Whether that is more than the same machine shows from day to day.
    pub notable: bool,
}

impl CostChange {
    /// For readers.
    #[must_use]
    pub fn in_words(&self) -> String {
        let time = |ns: f64| match ns {
            ns if ns < 10_000.0 => format!("{ns:.0} ns"),
            ns => format!("{:.0} µs", ns / 1e3),
        };
        let (before, after) = (time(self.before_ns), time(self.after_ns));
        format!("{}: {before}, then {after} ({:.2} times)", self.operation, self.ratio)
    }
}

impl Costs {
    /// What became of each cost.
    #[must_use]
    pub fn changes(&self, after: &Costs) -> Vec<CostChange> {
        // A device's time for a sync varies far more than a processor's for anything.
        [
            ("write of 128 bytes", self.write_ns, after.write_ns, 1.4),
            ("page fault", self.page_fault_ns, after.page_fault_ns, 1.4),
            ("fdatasync", self.fdatasync_us * 1e3, after.fdatasync_us * 1e3, 2.5),
            ("load from memory", self.memory_ns, after.memory_ns, 1.4),
        ]
        .into_iter()
        .filter(|(_, before, after, _)| *before > 0.0 && *after > 0.0)
        .map(|(operation, before_ns, after_ns, usual)| {
            let ratio = after_ns / before_ns;
            let notable = ratio > usual || ratio < 1.0 / usual;
            CostChange { operation, before_ns, after_ns, ratio, notable }
        })
        .collect()
    }
}

/// A column of the report: an engine, or a variant of one.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Engine {
    /// `leveldb`, or with a variant `wiredtiger-lsm`.
    pub id: String,
    /// The name for readers.
    pub title: String,
    /// Its version; empty if it is missing.
    pub version: String,
    /// The promise of an asynchronous write when it returns.
    pub asynchronous: String,
    /// The promise of a synchronous write when it returns.
    pub synchronous: String,
    /// How it was set up.
    pub settings: String,
    /// What its program and libraries show of how they were built: assertions, checksums.
    #[serde(default)]
    pub build: Option<String>,
    /// Promises and abilities that it lacks.
    pub limits: Vec<String>,
    /// Why an asynchronous write promises less than to have reached the operating system, and that
    /// a crash of the machine costs the last writes and no more. Such an engine is shown, and
    /// marked, and does not count as the best of the rest where something is written.
    #[serde(default)]
    pub weaker: Option<String>,
    /// Why it was not run at all.
    pub missing: Option<String>,
    /// The wrong result that disqualified it.
    pub disqualified: Option<String>,
}

/// A section of a suite.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Section {
    /// Unique in the suite; fit for a file name.
    pub id: String,
    /// In words.
    pub title: String,
    /// Its subject, and how it is set up.
    pub description: String,
    /// How it is drawn.
    pub chart: Chart,
    /// The settings of every engine: `cache_size`, `write_buffer_size`, `value_size`, …
    pub settings: Map<String, Value>,
    /// The cells, in order.
    pub cells: Vec<Cell>,
    /// The source's figures for it.
    #[serde(default)]
    pub published: Vec<Published>,
    /// The experiment of which it varies one setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

/// The experiment that others vary: each engine's rate is compared with its own rate there.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The section's id.
    pub section: String,
    /// The baseline's benchmark for a benchmark of another name. Others are compared with the
    /// benchmark of the same name, if the baseline has it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub benchmarks: BTreeMap<String, String>,
}

impl Baseline {
    /// The baseline's benchmark that one of another section is compared with.
    #[must_use]
    pub fn benchmark<'a>(&'a self, name: &'a str) -> &'a str {
        self.benchmarks.get(name).map_or(name, String::as_str)
    }
}

/// How a section is drawn.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chart {
    /// Bars, a group for every cell.
    Bars,
    /// Lines over the cells' `x`, for every benchmark.
    Threads,
    /// Throughput and latency over time.
    Series,
    /// A row for every setting, a column for every benchmark.
    Settings,
}

/// One thing measured.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Cell {
    /// The benchmark's name in `WORKLOADS.md`.
    pub benchmark: String,
    /// In words.
    pub label: String,
    /// Of the figure, `op/s`.
    pub unit: String,
    /// Where the cell stands in a sweep.
    #[serde(default)]
    pub x: Option<Axis>,
    /// The settings that differ from the section's: `max_open_files=10`.
    #[serde(default)]
    pub setting: Option<String>,
    /// The durability of the cell's writes.
    pub durability: Durability,
    /// Whether anything is written, so that durability matters.
    #[serde(default)]
    pub writes: bool,
    /// Whether it is an open loop at a fixed rate: all engines do the same number of operations a
    /// second, so that latencies are compared and rates are not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paced: bool,
}

/// A value on the axis of a sweep.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Axis {
    /// `threads`, `entries`.
    pub name: String,
    /// The value.
    pub value: f64,
}

/// The durability of a write.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Every write reaches the operating system before the call returns; no write waits for the
    /// disk.
    Asynchronous,
    /// Every write is on the disk before the call returns.
    Synchronous,
}

/// A published figure.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Published {
    /// The cell's benchmark.
    pub benchmark: String,
    /// The engine as the source names it.
    pub engine: String,
    /// Operations a second, or a multiple of what `relative_to` did.
    pub value: f64,
    /// Set where the source gives ratios only: the engine that counts as 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<String>,
    /// The cell's `x`, where a benchmark stands in a section more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// The cell's setting, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The source's remark beside the figure: "over", "almost".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Run {
    /// The section with an id.
    #[must_use]
    pub fn section(&self, id: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }

    /// The engine with an id.
    #[must_use]
    pub fn engine(&self, id: &str) -> Option<&Engine> {
        self.engines.iter().find(|engine| engine.id == id)
    }
}

impl Engine {
    /// Whether it is Terrace itself, a variant of it, or the drop-in over it.
    #[must_use]
    pub fn is_terrace(&self) -> bool {
        let id = self.id.as_str();
        id == "terrace" || id.starts_with("terrace-") || id == "dropin" || id.starts_with("dropin-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_that_differ_are_told_from_noise() {
        let costs = |write_ns, fdatasync_us| Costs {
            write_ns,
            page_fault_ns: 500.0,
            fdatasync_us,
            memory_ns: 90.0,
        };
        let notable = |after: Costs| {
            let changes = costs(900.0, 700.0).changes(&after);
            assert_eq!(changes.len(), 4);
            changes.into_iter().filter(|c| c.notable).map(|c| c.operation).collect::<Vec<_>>()
        };
        assert!(notable(costs(1100.0, 1600.0)).is_empty());
        assert_eq!(notable(costs(450.0, 1800.0)), ["write of 128 bytes", "fdatasync"]);
        let words = costs(900.0, 700.0).changes(&costs(450.0, 700.0))[0].in_words();
        assert_eq!(words, "write of 128 bytes: 900 ns, then 450 ns (0.50 times)");
        let words = costs(900.0, 700.0).changes(&costs(900.0, 70.0))[2].in_words();
        assert_eq!(words, "fdatasync: 700 µs, then 70 µs (0.10 times)");
    }
}
