//! LevelDB's C API, the 68 functions of `leveldb/c.h`, and what `terrace/c.h` adds.
//!
//! Objects may be used from any thread as in LevelDB: a database from many at once, everything else
//! from one at a time. A program that passes null where LevelDB would crash gets null, zero or
//! nothing.
#![allow(unsafe_code)]

mod batch;
mod components;
mod database;
mod error;
mod extras;
mod filters;
mod iterator;
mod keyspaces;
mod logger;
mod memory_budget;
mod options;
mod prepared;
mod report;
mod snapshot;
mod transactions;
mod updates;

pub use batch::*;
pub use components::*;
pub use database::*;
pub use extras::*;
pub use filters::*;
pub use iterator::*;
pub use keyspaces::*;
pub use logger::*;
pub use memory_budget::*;
pub use options::*;
pub use prepared::*;
pub use report::*;
pub use snapshot::*;
pub use transactions::*;
pub use updates::*;
