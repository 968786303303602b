//! A keyspace as its users hold it.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::expiry;
use crate::compaction::filter::CompactionFilter;
use crate::db::db::Db;
use crate::db::db_impl::incarnations::Incarnation;
use crate::db::key_range::{KeyRange, prefix_end};
use crate::db::options::{ReadOptions, WriteOptions};
use crate::db::range_delete::delete_ranges;
use crate::db::range_delete::terms::Terms;
use crate::db::read::cursor::Cursor;
use crate::db::read::pinned::PinnedValue;
use crate::db::view::catalogue::keyspace_options::KeyspaceOptions;
use crate::write::batch::{BatchView, Operation, WriteBatch};

use super::clock_mark::mark_clock;
use super::cursor::KeyspaceCursor;
use super::entries::KeyspaceEntries;
use super::put_options::PutOptions;
use super::{
    Parent, bounds_within, create_keyspace, drop_keyspace, keyspaces_within, name, open_keyspace,
    prefix_within,
};

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
    db: Db,
    incarnation: Arc<Incarnation>,
}

impl Terms for Incarnation {
    fn check(&self) -> Result<()> {
        match self.is_alive() {
            true => Ok(()),
            false => Err(Error::closed(format!("{} was dropped", name::shown(&self.prefix)))),
        }
    }
}

impl Db {
    /// Makes the keyspace `name`, durably. Its name has 1 to 255 bytes of ASCII from `#` to `~`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// assert_eq!(db.get("!users!7")?.as_deref(), Some(&b"Ada"[..])); // without it
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the name cannot be one, or if
    /// there is such a keyspace, be it only by its keys;
    /// [`NotSupported`](crate::ErrorKind::NotSupported) under a custom comparator. Else those of
    /// [`write_with`](Self::write_with).
    pub fn create_keyspace(
        &self,
        name: impl AsRef<str>,
        options: KeyspaceOptions,
    ) -> Result<Keyspace> {
        Keyspace::create(self, None, name.as_ref(), &options)
    }

    /// Returns the keyspace `name`: one that was created, or that has keys, whichever program has
    /// written them.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// assert_eq!(db.keyspace("users").unwrap_err().kind(), ErrorKind::NotFound);
    /// db.create_keyspace("users", KeyspaceOptions::new())?;
    /// let users = db.keyspace("users")?;
    /// # users.put("7", "Ada")?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is none,
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the name cannot be one;
    /// [`NotSupported`](crate::ErrorKind::NotSupported) under a custom comparator, or if the
    /// keyspace has a setting that this version does not know. Else those of
    /// [`get_with`](Self::get_with).
    pub fn keyspace(&self, name: impl AsRef<str>) -> Result<Keyspace> {
        Keyspace::open(self, None, name.as_ref())
    }

    /// Returns the keyspace `name` if it was created with `options`: for programs that rely on them.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if it was created with other ones;
    /// else those of [`keyspace`](Self::keyspace).
    pub fn keyspace_with(
        &self,
        name: impl AsRef<str>,
        options: &KeyspaceOptions,
    ) -> Result<Keyspace> {
        self.keyspace(name)?.checked(options)
    }

    /// Returns the names of all keyspaces, in order, without those within others. Takes time by
    /// their number.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// for name in ["users", "mails"] {
    ///     db.create_keyspace(name, KeyspaceOptions::new())?;
    /// }
    /// assert_eq!(db.keyspaces()?, ["mails", "users"]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`NotSupported`](crate::ErrorKind::NotSupported) under a custom comparator; else those of
    /// [`get_with`](Self::get_with).
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        keyspaces_within(self.core(), &[])
    }

    /// Deletes the keyspace `name` with all of its entries and all keyspaces within it, as one step
    /// and durably: a [range delete](Self::delete_range_with). Returns whether there was one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// assert!(db.drop_keyspace("users")?);
    /// assert_eq!(users.get("7").unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`delete_range_with`](Self::delete_range_with), and
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the name cannot be one.
    pub fn drop_keyspace(&self, name: impl AsRef<str>) -> Result<bool> {
        drop_keyspace(self.core(), None, name.as_ref())
    }
}

impl Keyspace {
    fn create(db: &Db, parent: Parent<'_>, name: &str, options: &KeyspaceOptions) -> Result<Self> {
        let incarnation = create_keyspace(db.core(), parent, name, options)?;
        Ok(Keyspace { db: db.clone(), incarnation })
    }

    fn open(db: &Db, parent: Parent<'_>, name: &str) -> Result<Self> {
        match open_keyspace(db.core(), parent, name)? {
            Some(incarnation) => Ok(Keyspace { db: db.clone(), incarnation }),
            None => {
                let prefix = prefix_within(parent, name)?;
                Err(Error::not_found(format!("there is no {}", &name::shown(&prefix)[4..])))
            }
        }
    }

    fn prefix_bytes(&self) -> &[u8] {
        &self.incarnation.prefix
    }

    /// Fails if the keyspace was dropped, unless a snapshot is read.
    fn check(&self, options: &ReadOptions) -> Result<()> {
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
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Makes the keyspace `name` within this one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let shop = db.create_keyspace("shop", KeyspaceOptions::new())?;
    /// let orders = shop.create_keyspace("orders", KeyspaceOptions::new())?;
    /// orders.put("1", "apples")?;
    /// assert_eq!(shop.keyspaces()?, ["orders"]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::create_keyspace`].
    pub fn create_keyspace(
        &self,
        name: impl AsRef<str>,
        options: KeyspaceOptions,
    ) -> Result<Keyspace> {
        self.incarnation.check()?;
        Self::create(&self.db, Some(&self.incarnation), name.as_ref(), &options)
    }

    /// Returns the keyspace `name` within this one.
    ///
    /// # Errors
    /// Those of [`Db::keyspace`].
    pub fn keyspace(&self, name: impl AsRef<str>) -> Result<Keyspace> {
        self.incarnation.check()?;
        Self::open(&self.db, Some(&self.incarnation), name.as_ref())
    }

    /// Returns the keyspace `name` within this one if it was created with `options`.
    ///
    /// # Errors
    /// Those of [`Db::keyspace_with`].
    pub fn keyspace_with(
        &self,
        name: impl AsRef<str>,
        options: &KeyspaceOptions,
    ) -> Result<Keyspace> {
        self.keyspace(name)?.checked(options)
    }

    fn checked(self, options: &KeyspaceOptions) -> Result<Self> {
        if self.options() == options {
            return Ok(self);
        }
        let name = name::shown(self.prefix_bytes());
        let created = self.options();
        let message = format!("{name} was created with {created:?}, not with {options:?}");
        Err(Error::invalid_argument(message))
    }

    /// What the keyspace was created with; the default for one that is there by its keys alone.
    pub fn options(&self) -> &KeyspaceOptions {
        &self.incarnation.options
    }

    /// Has compactions ask `filter` about the entries of this keyspace, and of those within it that
    /// have none of their own, in place of the database's
    /// [filter](crate::Options::compaction_filter), from the next compaction on, until the database
    /// is closed or the keyspace dropped. It is asked about keys within the keyspace, and about
    /// values without the trailer of expiry; a value that replaces another one expires as that did.
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed) if the keyspace was dropped.
    pub fn set_compaction_filter(&self, filter: Arc<dyn CompactionFilter>) -> Result<()> {
        self.incarnation.check()?;
        let catalogue = &self.db.core().files.catalogue;
        catalogue.filters.lock().insert(self.prefix_bytes(), filter);
        Ok(())
    }

    /// Returns the names of the keyspaces right within this one, in order.
    ///
    /// # Errors
    /// Those of [`Db::keyspaces`].
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        self.incarnation.check()?;
        keyspaces_within(self.db.core(), self.prefix_bytes())
    }

    /// Deletes the keyspace `name` within this one.
    ///
    /// # Errors
    /// Those of [`Db::drop_keyspace`].
    pub fn drop_keyspace(&self, name: impl AsRef<str>) -> Result<bool> {
        self.incarnation.check()?;
        drop_keyspace(self.db.core(), Some(&self.incarnation), name.as_ref())
    }

    /// Sets `key` to `value`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// assert_eq!(users.get("7")?.as_deref(), Some(&b"Ada"[..]));
    /// assert_eq!(db.get("7")?, None); // the same key elsewhere is another one
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`put_with`](Self::put_with).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, PutOptions::new())
    }

    /// Sets `key` to `value`, as durably and for as long as `options` say.
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed) if the keyspace was dropped;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if `options` say when the entry
    /// expires and the keyspace was created without [expiry](KeyspaceOptions::expiry); else those of
    /// [`Db::write_with`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: impl Into<PutOptions>,
    ) -> Result<()> {
        let (key, value, options) = (self.key(key), value.as_ref(), options.into());
        let stored = self.stored(&key, value, &options)?;
        self.write_one(&key, Some(stored.as_deref().unwrap_or(value)), options.write)
    }

    /// Returns a key and a value as the database has them, for a [batch](WriteBatch) or a
    /// [transaction](crate::Transaction) that spans keyspaces, or for a bulk load:
    /// `batch.put(key, value)`. A time to live begins now. Whether such writes are durable, and
    /// whether they still find the keyspace, is not decided here.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().create_if_missing(true).env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/entry.db", options)?;
    /// use std::time::Duration;
    /// use terrace::{KeyspaceOptions, PutOptions};
    ///
    /// let sessions = db.create_keyspace("sessions", KeyspaceOptions::new().expiry(true))?;
    /// let mut transaction = db.transaction();
    /// let minute = PutOptions::new().ttl(Duration::from_secs(60));
    /// let (key, value) = sessions.entry("ada", "1", minute)?;
    /// transaction.put(key, value);
    /// transaction.put("logins", "1");
    /// transaction.commit()?;
    /// assert_eq!(sessions.get("ada")?.as_deref(), Some(&b"1"[..]));
    /// # drop(sessions);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`put_with`](Self::put_with).
    pub fn entry(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: impl Into<PutOptions>,
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        self.incarnation.check()?;
        let (key, value) = (self.key(key), value.as_ref());
        let stored = self.stored(&key, value, &options.into())?;
        Ok((key, stored.unwrap_or_else(|| value.to_vec())))
    }

    /// Fails if the keyspace was dropped.
    pub(super) fn check_alive(&self) -> Result<()> {
        self.incarnation.check()
    }

    /// What is stored for a value of a key of the database, if that is something else.
    pub(super) fn stored(
        &self,
        key: &[u8],
        value: &[u8],
        options: &PutOptions,
    ) -> Result<Option<Vec<u8>>> {
        let keyspace = &self.incarnation.options;
        if options.says_when() && !keyspace.expiry {
            let name = name::shown(self.prefix_bytes());
            return Err(Error::invalid_argument(format!("{name} was created without expiry")));
        }
        let core = self.db.core();
        let now = || core.files.catalogue.now(core.files.env.as_ref());
        // A value that would be taken for one with a time gets the time of what never expires.
        let is_misleading = || {
            let expires = expiry::split(key, value).is_some()
                && core.background.prefix_settings()?.expires(key);
            Result::Ok(expires)
        };
        let expires_at = match options.expires_at_millis(keyspace.default_ttl, now) {
            Some(time) => time,
            None if is_misleading()? => expiry::NEVER,
            None => return Ok(None),
        };
        mark_clock(core)?;
        let mut stored = value.to_vec();
        expiry::append(key, &mut stored, expires_at);
        Ok(Some(stored))
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// Those of [`put_with`](Self::put_with).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, WriteOptions::new())
    }

    /// Removes `key`, as durably as `options` say.
    ///
    /// # Errors
    /// Those of [`put_with`](Self::put_with).
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: WriteOptions) -> Result<()> {
        self.write_one(&self.key(key), None, options)
    }

    fn write_one(&self, key: &[u8], value: Option<&[u8]>, options: WriteOptions) -> Result<()> {
        let is_alive = || self.incarnation.is_alive();
        match self.db.core().writes.write_one_if(key, value, options, &mut None, is_alive)? {
            true => Ok(()),
            false => self.incarnation.check(),
        }
    }

    /// Applies every operation of `batch`, or none: its keys are keys of this keyspace.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// let mut batch = WriteBatch::new();
    /// batch.put("7", "Ada");
    /// batch.put("8", "Grace");
    /// users.write(&batch)?;
    /// assert_eq!(users.iter()?.count(), 2);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`put_with`](Self::put_with).
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, PutOptions::new())
    }

    /// Applies every operation of `batch`, or none, as durably as `options` say; what it puts is
    /// there for as long as they say.
    ///
    /// # Errors
    /// Those of [`put_with`](Self::put_with).
    pub fn write_with(&self, batch: &WriteBatch, options: impl Into<PutOptions>) -> Result<()> {
        let options = options.into();
        batch.check()?;
        let mut within = WriteBatch::new();
        for operation in batch.iter() {
            match operation? {
                Operation::Put { key, value } => {
                    let key = self.key(key);
                    let stored = self.stored(&key, value, &options)?;
                    within.put(key, stored.as_deref().unwrap_or(value));
                }
                Operation::Delete { key } => within.delete(self.key(key)),
            }
        }
        within.check()?;
        let (batch, check) = (BatchView::of(&within), || self.incarnation.check());
        self.db.core().writes.write_if(batch, options.write, &mut None, check).map(drop)
    }

    /// Removes every key in `range`, as one step. `delete_range::<&[u8]>(..)` empties the keyspace,
    /// and those within it.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// # users.put("7", "Ada")?;
    /// users.delete_range::<&[u8]>(..)?;
    /// assert_eq!(users.first()?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed) if the keyspace was dropped; else those of
    /// [`Db::delete_range_with`].
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.delete_range_with(range, WriteOptions::new())
    }

    /// Removes every key in `range` as one step, as durably as `options` say.
    ///
    /// # Errors
    /// Those of [`delete_range`](Self::delete_range).
    pub fn delete_range_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: WriteOptions,
    ) -> Result<()> {
        let range = KeyRange::new::<Vec<u8>>(&self.bounds(&range));
        delete_ranges(self.db.core(), [range], options, &*self.incarnation)
    }

    /// Returns the value of `key`, if it has one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// assert_eq!(users.get("7")?.as_deref(), Some(&b"Ada"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, &ReadOptions::new())
    }

    /// Returns the value of `key`, if it has one, read as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let before = db.snapshot(); // of the whole database
    /// users.delete("7")?;
    /// let then = ReadOptions::new().snapshot(&before);
    /// assert_eq!(users.get_with("7", &then)?.as_deref(), Some(&b"Ada"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed) if the keyspace was dropped and no snapshot is read;
    /// else those of [`Db::get_with`].
    pub fn get_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        self.check(options)?;
        self.db.get_with(self.key(key), options)
    }

    /// Returns the value of `key` where it lies in memory, for large values.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedValue>> {
        self.incarnation.check()?;
        self.db.get_pinned(self.key(key))
    }

    /// Returns the values of `keys`, in their order, all as of one moment.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.multi_get_with(keys, &ReadOptions::new())
    }

    /// Does what [`multi_get`](Self::multi_get) does, reading as `options` say.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.check(options)?;
        let keys: Vec<_> = keys.iter().map(|key| self.key(key)).collect();
        self.db.multi_get_with(&keys, options)
    }

    /// Returns whether `key` has a value.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.incarnation.check()?;
        self.db.contains_key(self.key(key))
    }

    /// Returns the entry with the smallest key, if there is an entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let jobs = db.create_keyspace("jobs", KeyspaceOptions::new())?;
    /// jobs.put("7", "mail")?;
    /// jobs.put("8", "print")?;
    /// assert_eq!(jobs.first()?, Some((b"7".to_vec(), b"mail".to_vec())));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.iter()?.next().transpose()
    }

    /// Returns the entry with the largest key, if there is an entry.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.iter()?.next_back().transpose()
    }

    /// Returns a cursor over the keyspace, at no entry: seek it first.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let mut cursor = users.cursor()?;
    /// cursor.seek("5");
    /// assert_eq!(cursor.key(), b"7");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn cursor(&self) -> Result<KeyspaceCursor> {
        self.cursor_with(&ReadOptions::new())
    }

    /// Returns a cursor that reads as `options` say; their bounds are keys of the keyspace.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn cursor_with(&self, options: &ReadOptions) -> Result<KeyspaceCursor> {
        self.check(options)?;
        let cursor = Cursor::new(self.db.core(), &self.options_within(options))?;
        Ok(KeyspaceCursor::new(cursor, self.prefix_bytes().to_vec()))
    }

    /// Returns every entry, in the order of keys, from either end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// let all: Vec<_> = users.iter()?.collect::<Result<_>>()?;
    /// assert_eq!(all, [(b"7".to_vec(), b"Ada".to_vec())]); // keys as they are within it
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn iter(&self) -> Result<KeyspaceEntries> {
        self.range::<&[u8]>(..)
    }

    /// Returns the entries whose keys are in `range`, from either end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let days = db.create_keyspace("days", KeyspaceOptions::new())?;
    /// days.put("2026-11-23", "rain")?;
    /// days.put("2026-12-01", "snow")?;
    /// assert_eq!(days.range("2026-11".."2026-12")?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<KeyspaceEntries> {
        self.range_with(range, &ReadOptions::new())
    }

    /// Returns the entries whose keys are in `range`, read as `options` say; their bounds are keys
    /// of the keyspace.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn range_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: &ReadOptions,
    ) -> Result<KeyspaceEntries> {
        self.check(options)?;
        let options = self.options_within(options);
        let entries = self.db.range_with::<Vec<u8>>(self.bounds(&range), &options)?;
        Ok(KeyspaceEntries::new(entries, self.prefix_bytes().len()))
    }

    /// Returns the entries whose keys begin with `prefix`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("ada:mail", "ada@example.org")?;
    /// users.put("grace:mail", "grace@example.org")?;
    /// assert_eq!(users.prefix("ada:")?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<KeyspaceEntries> {
        self.incarnation.check()?;
        let entries = self.db.prefix(self.key(prefix))?;
        Ok(KeyspaceEntries::new(entries, self.prefix_bytes().len()))
    }

    /// Returns about how many bytes the entries take on disk. Entries in memory alone do not
    /// count.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// assert_eq!(users.approximate_size()?, 0);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn approximate_size(&self) -> Result<u64> {
        self.incarnation.check()?;
        let from = self.prefix_bytes();
        let to = prefix_end(from).unwrap_or_default();
        Ok(self.db.approximate_sizes(&[(from, &to)])?.iter().sum())
    }

    pub(super) fn bounds<K: AsRef<[u8]>>(
        &self,
        range: &impl RangeBounds<K>,
    ) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let (from, to) = (range.start_bound(), range.end_bound());
        bounds_within(self.prefix_bytes(), from.map(AsRef::as_ref), to.map(AsRef::as_ref))
    }

    /// Options whose bounds are keys of the database, within the keyspace.
    fn options_within(&self, options: &ReadOptions) -> ReadOptions {
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
