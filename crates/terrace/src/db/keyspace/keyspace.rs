//! A keyspace as its users hold it.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::compaction::filter::CompactionFilter;
use crate::db::db::Db;
use crate::db::db_impl::incarnations::Incarnation;
use crate::db::key_range::prefix_end;
use crate::db::range_delete::terms::Terms;
use crate::db::read::read_options::ReadOptions;
use crate::db::view::catalogue::keyspace_options::KeyspaceOptions;

use super::{bounds_within, name};

/// A named set of keys in a [`Db`]. Made by [`Db::create_keyspace`] or [`Db::keyspace`].
///
/// It reads and writes as the database does, with keys of its own: `apple` in the keyspace `fruit`
/// is the key `!fruit!apple` of the database ([`Keyspace::key`]), as in a `sublevel` of
/// abstract-level. Cheap to clone; any number of threads may use one or many clones. It keeps the
/// database open, as a clone of [`Db`] does.
///
/// Keyspaces are parts of one ordered tree: a batch, a snapshot, a transaction or a checkpoint
/// spans all of them, by full keys, and ten thousand of them take no more memory than one. They do
/// not isolate compactions, and all have the bytewise order. Some settings of the database each may
/// have in its own way: [`KeyspaceOptions`].
///
/// Keyspaces within this one are part of it: scans, range deletes and counts include their entries,
/// whose keys begin with `!name!`.
///
/// Once it is [dropped](Db::drop_keyspace) a handle fails with
/// [`Closed`](crate::ErrorKind::Closed), but for reads of snapshots from before, also if a keyspace
/// of the same name is created again.
///
/// ```
/// # fn main() -> terrace::Result<()> {
/// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
/// # let db = terrace::Db::open("/keyspaces.db", options.create_if_missing(true))?;
/// use terrace::{KeyspaceOptions, WriteBatch};
///
/// let users = db.create_keyspace("users", KeyspaceOptions::new())?;
/// let mails = db.create_keyspace("mails", KeyspaceOptions::new())?;
/// users.put("7", "Ada")?;
///
/// let mut batch = WriteBatch::new(); // all of it or nothing, in both
/// batch.put(users.key("8"), "Grace");
/// batch.put(mails.key("grace@example.org"), "8");
/// db.write(&batch)?;
///
/// assert_eq!(users.iter()?.count(), 2);
/// assert_eq!(mails.get("grace@example.org")?.as_deref(), Some(&b"8"[..]));
/// drop((users, mails));
/// db.drop_keyspace("users")?;
/// assert_eq!(db.keyspaces()?, ["mails"]);
/// # db.close()
/// # }
/// ```
#[derive(Clone)]
pub struct Keyspace {
    pub(super) db: Db,
    pub(super) incarnation: Arc<Incarnation>,
}

impl Terms for Incarnation {
    fn check(&self) -> Result<()> {
        match self.is_alive() {
            true => Ok(()),
            false => Err(Error::closed(format!("{} was dropped", name::shown(&self.prefix)))),
        }
    }
}

impl Keyspace {
    pub(super) fn prefix_bytes(&self) -> &[u8] {
        &self.incarnation.prefix
    }

    /// Fails if the keyspace was dropped.
    pub(super) fn check_alive(&self) -> Result<()> {
        self.incarnation.check()
    }

    /// Fails if the keyspace was dropped, unless a snapshot is read.
    pub(super) fn check(&self, options: &ReadOptions) -> Result<()> {
        match options.snapshot {
            Some(_) => Ok(()),
            None => self.incarnation.check(),
        }
    }

    /// Returns `key` as the database has it, for batches, snapshots and transactions. Writes of
    /// such keys do not check whether the keyspace was dropped: they begin it anew.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// assert_eq!(users.key("7"), b"!users!7");
    /// let mut batch = WriteBatch::new();
    /// batch.put(users.key("7"), "Ada");
    /// batch.put("last user", "7");
    /// db.write(&batch)?; // in the keyspace and beside it, or nothing
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn key(&self, key: impl AsRef<[u8]>) -> Vec<u8> {
        [self.prefix_bytes(), key.as_ref()].concat()
    }

    /// The database.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// users.db().sync()?; // for a function that is handed the keyspace alone
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The options with which the keyspace was created; the default for one that is there by its
    /// keys alone.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let images = KeyspaceOptions::new().compression(Compression::None);
    /// # db.create_keyspace("images", images)?;
    /// println!("{:?}", db.keyspace("images")?.options());
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn options(&self) -> &KeyspaceOptions {
        &self.incarnation.options
    }

    /// Has compactions ask `filter` about the entries of this keyspace, and of those within it that
    /// have none of their own, in place of the database's
    /// [filter](crate::Options::compaction_filter), from the next compaction on, until the database
    /// is closed or the keyspace dropped. It is asked about keys within the keyspace, and about
    /// values without the trailer of expiry; a value that replaces another one expires as that did.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// use std::sync::Arc;
    ///
    /// /// Keeps no empty values.
    /// struct NotEmpty;
    ///
    /// impl CompactionFilter for NotEmpty {
    ///     fn filter(&self, _key: &[u8], value: &[u8]) -> FilterDecision {
    ///         if value.is_empty() { FilterDecision::Remove } else { FilterDecision::Keep }
    ///     }
    /// }
    ///
    /// users.set_compaction_filter(Arc::new(NotEmpty))?;
    /// users.put("7", "")?;
    /// db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true))?;
    /// assert_eq!(users.get("7")?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed) if the keyspace was dropped.
    pub fn set_compaction_filter(&self, filter: Arc<dyn CompactionFilter>) -> Result<()> {
        let mut filters = self.db.core().files.catalogue.filters.lock();
        // A drop ends the incarnation before it removes the filters.
        self.incarnation.check()?;
        let before = filters.insert(self.prefix_bytes(), filter);
        drop(filters);
        // Programs' destructors run without the lock.
        drop(before);
        Ok(())
    }

    pub(super) fn bounds<K: AsRef<[u8]>>(
        &self,
        range: &impl RangeBounds<K>,
    ) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let (from, to) = (range.start_bound(), range.end_bound());
        bounds_within(self.prefix_bytes(), from.map(AsRef::as_ref), to.map(AsRef::as_ref))
    }

    /// Options whose bounds are keys of the database, within the keyspace.
    pub(super) fn options_within(&self, options: &ReadOptions) -> ReadOptions {
        let prefix = self.prefix_bytes();
        let mut within = options.clone();
        within.lower_bound = Some(self.key(options.lower_bound.as_deref().unwrap_or_default()));
        within.upper_bound = match &options.upper_bound {
            Some(upper) => Some(self.key(upper)),
            None => prefix_end(prefix),
        };
        within
    }
}

impl std::fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Keyspace").field(&name::shown(self.prefix_bytes())).finish()
    }
}
