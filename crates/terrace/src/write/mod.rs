//! Batches of writes, and group commit.

pub(crate) mod batch;
pub(crate) mod batch_view;
pub(crate) mod log_sync;
pub(crate) mod single_frame;
pub(crate) mod throttle;

#[cfg(all(test, loom))]
mod interleavings;
