//! The native half of the Node package `terrace-level`.
//!
//! The JavaScript half (`index.js`, `lib/`) does what every AbstractLevel does; this half opens the
//! database, queues reads and writes, and runs them on libuv's thread pool.
//!
//! # Invariants
//! 1. A method that is called on the event loop does no I/O, except those that are documented as
//!    synchronous. Everything else is a [`job`].
//! 2. A job owns a clone of the open database, so that no order of closing, dropping and garbage
//!    collection frees what a job uses.
//! 3. A panic in a job is an error of its promise and never unwinds into Node.
//! 4. Bytes cross the boundary as [`frames`]: one call moves any number of keys and values.

pub mod cursor;
pub mod database;
pub mod error;
pub mod frames;
pub mod handles;
pub mod job;
pub mod lookups;
pub mod maintenance;
pub mod options;
pub mod outputs;
pub mod range;
pub mod reports;
pub mod snapshot;
pub mod writes;
