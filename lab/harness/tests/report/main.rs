//! Reports and comparisons of invented runs.

mod browser;
mod compare;
mod content;
mod data;
mod markup;
mod suites;
