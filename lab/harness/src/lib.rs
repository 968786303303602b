//! The lab's harness: runs storage engines side by side, each in its own process, and reports how
//! they compare.
//!
//! `run` is what a run leaves on disk, `report` the page that shows it. `suite` says what is run,
//! `engine` finds and builds the engine programs, `process` runs one of them, `schedule` all of
//! them in turn. `overview`, `compare`, `pool` and `results` are about finished runs. `notice`
//! tells a user what goes on. What an engine program does is specified in `lab/WORKLOADS.md`.

#![warn(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic where the output is closed; see `notice`"
)]

pub mod compare;
pub mod costs;
pub mod engine;
pub mod interrupt;
pub mod machine;
mod memory_limit;
pub mod notice;
pub mod overview;
pub mod pool;
pub mod process;
pub mod report;
pub mod results;
pub mod run;
pub mod schedule;
pub mod selftest;
pub mod suite;
pub mod workload;
