//! LevelDB 1.23's C functions over Terrace, a few more (`terrace/c.h`), and the private interface
//! under its C++ classes.
//!
//! This is one half of the drop-in `libleveldb.so`. The other half, in `cxx/`, is the C++ classes:
//! a thin layer that keeps LevelDB's vtables and layouts and calls [`shim`]. `tools/build-dropin`
//! links both under a version script that hides everything that is not LevelDB's.
//!
//! # Invariants
//! 1. Nothing unwinds out of this crate: every exported function catches panics. Callbacks must not
//!    unwind into it.
//! 2. Memory that a C caller frees comes from `malloc`.
//! 3. Objects that a caller made and passed in (comparators, filters, caches, environments,
//!    loggers) are used by their address, never owned: as with LevelDB they must outlive the
//!    database.

pub mod c;
mod guard;
mod memory;
mod memory_budget;
mod options;
pub mod shim;
mod size;
mod status;
mod trace;
