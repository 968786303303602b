//! The real LevelDB as partner and as judge.

mod faults;
mod hand_over;
mod killed_compacting;
mod prepared;
mod repair;
mod value_log;
