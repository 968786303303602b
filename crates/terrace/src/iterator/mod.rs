//! Iteration over entries: one source, several merged, and the user's view of them.
//!
//! # The contract of internal iterators
//! Every source has the same inherent methods: `valid`, `seek_to_first`, `seek_to_last`, `seek`,
//! `next`, `prev`, `key`, `value`, `status`. Keys are internal keys.
//! 1. An iterator is invalid until it is positioned, off both ends, and after an error; `status`
//!    tells which.
//! 2. `next` and `prev` on an invalid iterator do nothing; `key` and `value` are empty.
//! 3. `key` and `value` stay as they are until the iterator is moved.
//! 4. An iterator keeps alive what it reads.

pub(crate) mod db_iter;
pub(crate) mod deleted_ranges;
mod deleted_run;
mod disjoint_ranges;
pub(crate) mod level;
pub(crate) mod merged;
pub(crate) mod merging;
pub(crate) mod scan_bounds;
pub(crate) mod source;
mod standing;
pub(crate) mod values_ahead;
