//! A run of a suite, as it lies in its directory: `run.json` says what was run, where and by whom,
//! and `measurements.jsonl` has one line for every cell × engine × round.
//!
//! Everything here is plain data that any thread may use. The harness writes these files; the
//! report, `lab compare` and `--resume` read them.
//!
//! 1. A measurement names its cell by section id and the cell's place in that section, its engine
//!    by id.
//! 2. A line of `measurements.jsonl` is never changed once it is complete. Where two lines speak of
//!    the same cell, engine and round, the later one counts.

mod describe;
mod directory;
mod measurement;
mod rest;
mod summary;

pub use describe::{
    Axis, Baseline, Cell, Chart, CostChange, Costs, Durability, Engine, Figure, Machine, Published,
    Run, Section,
};
pub use directory::{Appender, Directory, MEASUREMENTS, RUN, write_whole};
pub(crate) use measurement::keep_whole;
pub use measurement::{
    Debt, DriverResult, Interval, Measurement, Measurements, OUT_OF_TIME, Status, counted,
};
pub use rest::best_of_rest;
pub use summary::{Spread, geometric_mean, interval_of_median, interval_of_quotient, spread_of};

/// The version of both files that this program writes, and the only one that it reads.
pub const SCHEMA: u32 = 1;
