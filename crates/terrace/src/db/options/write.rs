//! How writes are done.

/// How a write is done.
///
/// # Example
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options)?;
/// db.put_with("apple", "red", WriteOptions::sync())?; // survives the loss of power
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Wait until the write, and every write before it, would survive the death of the machine.
    /// Without it a write survives the death of the process. Default: false.
    pub sync: bool,
}

impl WriteOptions {
    /// Not synced: survives the death of the process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Synced: survives the death of the machine.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put_with("apple", "red", WriteOptions::sync())?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn sync() -> Self {
        WriteOptions { sync: true }
    }
}
