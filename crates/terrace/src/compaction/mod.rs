//! Merging tables so that reads stay short and space is given back.
//!
//! [`plan`] chooses, purely, from a version, what to merge; [`job`] merges and writes, in several
//! key ranges at once ([`subcompactions`]); [`drop_rules`] decides which entries survive;
//! [`output`] writes tables for merges and flushes alike, [`rate_limiter`] keeps it from writing
//! too fast. Nobody here installs anything.

pub(crate) mod drop_rules;
pub(crate) mod job;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod rate_limiter;
pub(crate) mod subcompactions;
