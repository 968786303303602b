//! Parts of Terrace's tests: random numbers from a seed, a model of a database, operations
//! and options at random, a log of what was acknowledged when, a file system that crashes, fails
//! and fills up, and the real LevelDB.

pub mod campaign;
pub mod clocked;
pub mod driver;
mod env_methods;
pub mod history;
pub mod hooked;
pub mod leveldb;
pub mod linear;
pub mod maintenance;
pub mod model;
pub mod ops;
pub mod option_set;
pub mod rng;
pub mod runner;
pub mod scale;
pub mod script;
pub mod serial;
pub mod simfs;
pub mod skip;
pub mod watchdog;
pub mod workload;
