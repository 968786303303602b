//! Reports, summaries and comparisons of invented runs.

mod brief;
mod browser;
mod compare;
mod content;
mod data;
mod markup;
mod read;
mod size;
mod suites;
