//! Writes into a keyspace.

use std::ops::RangeBounds;

use crate::base::error::{Error, Result};
use crate::base::expiry;
use crate::db::key_range::KeyRange;
use crate::db::options::WriteOptions;
use crate::db::range_delete::delete_ranges;
use crate::db::range_delete::terms::Terms;
use crate::write::batch::WriteBatch;
use crate::write::batch_view::Operation;

use super::clock_mark::mark_clock;
use super::keyspace::Keyspace;
use super::name;
use super::put_options::PutOptions;

impl Keyspace {
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
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put_with("7", "Ada", WriteOptions::sync())?; // survives the loss of power
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed) if the keyspace was dropped;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if `options` say when the entry
    /// expires and the keyspace was created without [expiry](crate::KeyspaceOptions::expiry); else
    /// those of [`Db::write_with`](crate::Db::write_with).
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
    /// # let options = terrace::Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(terrace::MemEnv::new()));
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

    /// The bytes that are stored for a value of a key of the database, if they differ from it.
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
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// users.delete("7")?;
    /// assert_eq!(users.get("7")?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`put_with`](Self::put_with).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, WriteOptions::new())
    }

    /// Removes `key`, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.delete_with("7", WriteOptions::sync())?; // gone, even after the loss of power
    /// # Ok::<_, terrace::Error>(())
    /// ```
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
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// use std::time::Duration;
    ///
    /// let sessions = db.create_keyspace("sessions", KeyspaceOptions::new().expiry(true))?;
    /// let mut batch = WriteBatch::new();
    /// batch.put("ada", "1");
    /// batch.put("eve", "2");
    /// sessions.write_with(&batch, PutOptions::new().ttl(Duration::from_secs(60)))?; // both
    /// # Ok::<_, terrace::Error>(())
    /// ```
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
        let (batch, check) = (within.view(), || self.incarnation.check());
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
    /// [`Db::delete_range_with`](crate::Db::delete_range_with).
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.delete_range_with(range, WriteOptions::new())
    }

    /// Removes every key in `range` as one step, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// users.delete_range_with("5".."8", WriteOptions::sync())?;
    /// assert_eq!(users.get("7")?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
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
}
