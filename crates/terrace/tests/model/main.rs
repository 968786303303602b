//! Results equal a sorted map's, whatever the operations, options and file system.

mod basics;
mod bounded_scans;
mod cursors;
mod deleted_ranges;
mod operations;
mod steps;
mod transactions;
mod updates;
