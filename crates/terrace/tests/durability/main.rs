//! What was acknowledged survives power cuts, killed processes, and operations that fail.

mod collection;
mod crash;
mod failing_calls;
mod faults;
mod frames;
mod full_disks;
mod hostile_values;
mod killed;
mod logs_of_leveldb;
mod prepared;
mod recovery_modes;
