//! The operating system: its files, limits, refusals and ways to read.

mod bad_input;
mod bounded_scans;
mod environments;
mod handles;
mod kept_filters;
mod limits;
mod open_files;
mod read_access;
mod scans_ahead;
mod values_ahead;
