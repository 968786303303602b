//! The private interface under the C++ classes: `cxx/engine.h` in Rust, type by type and function
//! by function.
//!
//! Names begin with `shim_`; the version script hides them. The C++ side passes what it got from
//! here and what a program passed to it, in LevelDB's terms. Objects of the program (environments,
//! comparators, …) are addresses that mean something only to the calls that come with them.
#![allow(unsafe_code)]

mod cache;
mod calls;
mod components;
mod cursor;
mod database;
mod dump;
mod env;
mod env_files;
mod options;
mod outcome;
mod system;
mod table;

pub use cache::*;
pub use calls::*;
pub use components::*;
pub use cursor::*;
pub use database::*;
pub use dump::*;
pub use options::*;
pub use outcome::*;
pub use system::*;
pub use table::*;
