//! The settings of a keyspace.

/// How a keyspace is created. A builder, without settings so far: compression, block size and
/// filters are the database's.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// let users = db.create_keyspace("users", KeyspaceOptions::new())?;
/// # users.put("7", "Ada")?;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceOptions {}

impl KeyspaceOptions {
    /// The database's settings.
    pub fn new() -> Self {
        Self::default()
    }
}
