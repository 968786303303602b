//! What a write is, and how writes become durable together.

pub(crate) mod batch;
pub(crate) mod log_sync;
pub(crate) mod throttle;

#[cfg(all(test, loom))]
mod interleavings;
