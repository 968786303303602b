//! Compactions keep reads short and give space back.
//!
//! [`planner`] is a pure function from a version to a [`plan`], within the [`limits`] of levels
//! ([`level_0`] and [`value_garbage`] have rules of their own), which [`inputs`] completes; [`job`]
//! executes it, in several key ranges at once ([`subcompactions`]); [`drop_rules`] decides which
//! entries survive, the program's [`filter`] which of those nobody but the present sees; [`output`]
//! writes the tables of compactions and flushes, and appends to the value files that
//! [`growing_values`] keeps for it; [`rate_limiter`] bounds its rate. Nothing here installs a
//! version.

pub(crate) mod drop_rules;
pub(crate) mod filter;
pub(crate) mod growing_values;
pub(crate) mod inputs;
pub(crate) mod job;
mod level_0;
pub(crate) mod limits;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod planner;
pub(crate) mod rate_limiter;
pub(crate) mod subcompactions;
mod value_garbage;
mod value_writer;
