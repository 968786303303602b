//! The report of invented runs.

mod browser;
mod content;
mod data;
mod markup;
mod suites;
