//! What tests of Terrace are made of.

pub mod leveldb;
pub mod scale;
pub mod workload;
