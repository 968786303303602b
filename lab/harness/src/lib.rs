//! The lab's harness: runs storage engines side by side, each in its own process, and reports how they compare.
//!
//! `run` is what a run leaves on disk, `report` the page that shows it. What an engine program does is specified in
//! `lab/WORKLOADS.md`.

pub mod report;
pub mod run;
