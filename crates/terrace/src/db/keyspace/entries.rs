//! The entries of a range of a keyspace.

use crate::base::error::Result;
use crate::db::read::entries::Entries;

/// The entries of a range of a [`Keyspace`](crate::Keyspace), from either end, with keys as they
/// are within it. After an error it ends.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
/// users.put("7", "Ada")?;
/// let newest = users.iter()?.next_back().transpose()?;
/// assert_eq!(newest, Some((b"7".to_vec(), b"Ada".to_vec())));
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct KeyspaceEntries {
    entries: Entries,
    /// Bytes of the keyspace's prefix.
    prefix: usize,
}

impl KeyspaceEntries {
    pub(super) fn new(entries: Entries, prefix: usize) -> Self {
        KeyspaceEntries { entries, prefix }
    }

    /// Returns the next entry from the front where it lies, until the next call.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let (mut entries, mut bytes) = (users.iter()?, 0);
    /// while let Some((_, name)) = entries.next_ref()? {
    ///     bytes += name.len(); // without an allocation for each
    /// }
    /// assert_eq!(bytes, 3);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with). There are no entries after an error.
    pub fn next_ref(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let prefix = self.prefix;
        let entry = self.entries.next_ref()?;
        Ok(entry.map(|(key, value)| (key.get(prefix..).unwrap_or_default(), value)))
    }

    /// Returns the next entry from the back where it lies, until the next call.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let mut entries = users.iter()?;
    /// assert_eq!(entries.next_back_ref()?, Some((&b"7"[..], &b"Ada"[..])));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`next_ref`](Self::next_ref).
    pub fn next_back_ref(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let prefix = self.prefix;
        let entry = self.entries.next_back_ref()?;
        Ok(entry.map(|(key, value)| (key.get(prefix..).unwrap_or_default(), value)))
    }
}

impl Iterator for KeyspaceEntries {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.next_ref().transpose()?;
        Some(entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }
}

impl DoubleEndedIterator for KeyspaceEntries {
    fn next_back(&mut self) -> Option<Self::Item> {
        let entry = self.next_back_ref().transpose()?;
        Some(entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }
}

impl std::iter::FusedIterator for KeyspaceEntries {}

impl std::fmt::Debug for KeyspaceEntries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyspaceEntries").finish_non_exhaustive()
    }
}
