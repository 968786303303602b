//! Batches of writes, and group commit.

pub(crate) mod batch;
pub(crate) mod log_sync;
pub(crate) mod throttle;

#[cfg(all(test, loom))]
mod interleavings;
