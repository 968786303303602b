//! The settings of a keyspace.

/// How a keyspace is created. A builder, without settings so far: compression, block size and
/// filters are the database's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceOptions {}

impl KeyspaceOptions {
    /// The database's settings.
    pub fn new() -> Self {
        Self::default()
    }
}
