//! Values that have a weight.

/// A value that can be cached.
pub(crate) trait Weighted: Send + Sync + 'static {
    /// The memory that this value takes, in bytes, everything included. The same at every call.
    fn weight(&self) -> usize;
}
