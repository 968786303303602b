//! Atomic updates in a keyspace: those of the database, with keys of the keyspace, times to live,
//! and the check that it was not dropped.

use std::ops::RangeBounds;
use std::result;

use crate::base::error::{Error, Result};
use crate::db::db::pop::End;
use crate::db::options::WriteOptions;
use crate::db::update::{Change, MergeOperator, change_key, fallible};

use super::keyspace::Keyspace;
use super::put_options::PutOptions;

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// # Atomic updates
/// Each is one commit, as [`Db::update`](crate::Db::update) and those beside it are. What is set
/// has the keyspace's default time to live, or the one that the options of a call `_with` ask for.
/// The old time to live is not kept.
impl Keyspace {
    /// Sets `key` to what `change` makes of its value, and returns that: as
    /// [`Db::update`](crate::Db::update) does.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// let next = |value: Option<&[u8]>| Some([value.map_or(0, |value| value[0]) + 1]);
    /// assert_eq!(users.update("visits", next)?, Some([1]));
    /// assert_eq!(users.update("visits", next)?, Some([2]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with) and [`put_with`](Self::put_with). A panic of `change`
    /// goes on to the caller; nothing is written then.
    pub fn update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<Option<V>> {
        self.update_with(key, change, PutOptions::new())
    }

    /// Does what [`update`](Self::update) does, as durably and for as long as `options` say.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let leases = db.create_keyspace("leases", KeyspaceOptions::new().expiry(true))?;
    /// let minute = PutOptions::new().ttl(Duration::from_secs(60));
    /// let again = |value: Option<&[u8]>| value.map(<[u8]>::to_vec); // with a new time to live
    /// assert_eq!(leases.update_with("leader", again, minute)?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
    pub fn update_with<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Option<V>,
        options: impl Into<PutOptions>,
    ) -> Result<Option<V>> {
        let decide = |value: Option<&[u8]>| Ok(Change::to(value, change(value)));
        Ok(self.change(key.as_ref(), options.into(), decide)?.flatten())
    }

    /// Does what [`update`](Self::update) does with a `change` that may fail: nothing is written
    /// then, and its error is returned.
    ///
    /// # Errors
    /// Those of [`update`](Self::update), and those of `change`.
    pub fn try_update<V: AsRef<[u8]>, E: From<Error>>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<&[u8]>) -> result::Result<Option<V>, E>,
    ) -> result::Result<Option<V>, E> {
        self.try_update_with(key, change, PutOptions::new())
    }

    /// Does what [`try_update`](Self::try_update) does, as durably and for as long as `options` say.
    ///
    /// # Errors
    /// Those of [`try_update`](Self::try_update).
    pub fn try_update_with<V: AsRef<[u8]>, E: From<Error>>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<&[u8]>) -> result::Result<Option<V>, E>,
        options: impl Into<PutOptions>,
    ) -> result::Result<Option<V>, E> {
        let mut failed = None;
        let decide = fallible(change, &mut failed);
        let changed = self.change(key.as_ref(), options.into(), decide)?;
        failed.map_or(Ok(changed.flatten()), Err)
    }

    /// Sets `key` to `new` if its value is `expected`, and returns whether it was. `None` stands
    /// for no value, that of an entry that has expired included.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// assert!(users.compare_and_swap("admin", None, Some(b"anna"))?);
    /// assert!(!users.compare_and_swap("admin", None, Some(b"berta"))?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        self.compare_and_swap_with(key, expected, new, PutOptions::new())
    }

    /// Does what [`compare_and_swap`](Self::compare_and_swap) does, as durably and for as long as
    /// `options` say.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let leases = db.create_keyspace("leases", KeyspaceOptions::new().expiry(true))?;
    /// let minute = PutOptions::new().ttl(Duration::from_secs(60));
    /// assert!(leases.compare_and_swap_with("leader", None, Some(b"anna"), minute)?);
    /// // Renewed by its holder alone.
    /// assert!(leases.compare_and_swap_with("leader", Some(b"anna"), Some(b"anna"), minute)?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
    pub fn compare_and_swap_with(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        options: impl Into<PutOptions>,
    ) -> Result<bool> {
        let decide = |value: Option<&[u8]>| Ok(Change::if_expected(value, expected, new));
        Ok(self.change(key.as_ref(), options.into(), decide)?.is_some())
    }

    /// Sets `key` to `value` if it has no value, or one that has expired, and returns whether it
    /// did.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// assert!(users.insert_if_absent("7", "Ada")?);
    /// assert!(!users.insert_if_absent("7", "Grace")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
    pub fn insert_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.insert_if_absent_with(key, value, PutOptions::new())
    }

    /// Does what [`insert_if_absent`](Self::insert_if_absent) does, as durably and for as long as
    /// `options` say.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let leases = db.create_keyspace("leases", KeyspaceOptions::new().expiry(true))?;
    /// let minute = PutOptions::new().ttl(Duration::from_secs(60));
    /// assert!(leases.insert_if_absent_with("backup", "anna", minute)?);
    /// assert!(!leases.insert_if_absent_with("backup", "berta", minute)?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
    pub fn insert_if_absent_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: impl Into<PutOptions>,
    ) -> Result<bool> {
        self.compare_and_swap_with(key, None, Some(value.as_ref()), options)
    }

    /// Sets `key` to what `operator` makes of its value and `operand`, and returns that. The
    /// operator is given the key within the keyspace.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let pages = db.create_keyspace("pages", KeyspaceOptions::new())?;
    /// let hits = pages.merge("index", Counter::encode(1), &Counter)?;
    /// assert_eq!(Counter::decode(&hits)?, 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// The operator's; nothing is written then. Else those of [`update`](Self::update).
    pub fn merge(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        operator: &(impl MergeOperator + ?Sized),
    ) -> Result<Vec<u8>> {
        self.merge_with(key, operand, operator, PutOptions::new())
    }

    /// Does what [`merge`](Self::merge) does, as durably and for as long as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let pages = db.create_keyspace("pages", KeyspaceOptions::new())?;
    /// pages.merge_with("index", Counter::encode(1), &Counter, WriteOptions::sync())?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`merge`](Self::merge).
    pub fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        operator: &(impl MergeOperator + ?Sized),
        options: impl Into<PutOptions>,
    ) -> Result<Vec<u8>> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        let decide =
            |value: Option<&[u8]>| Ok(Change::Set(Some(operator.merge(key, value, operand)?)));
        Ok(self.change(key, options.into(), decide)?.flatten().unwrap_or_default())
    }

    /// Deletes the entry with the smallest key and returns it, as
    /// [`Db::pop_first`](crate::Db::pop_first) does.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let jobs = db.create_keyspace("jobs", KeyspaceOptions::new())?;
    /// jobs.put("1", "mail")?;
    /// assert_eq!(jobs.pop_first()?, Some((b"1".to_vec(), b"mail".to_vec())));
    /// assert_eq!(jobs.pop_first()?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with) and [`put_with`](Self::put_with).
    pub fn pop_first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop_first_in::<&[u8]>(.., WriteOptions::new())
    }

    /// Deletes the entry with the largest key and returns it, as [`pop_first`](Self::pop_first)
    /// does at the other end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let stack = db.create_keyspace("stack", KeyspaceOptions::new())?;
    /// stack.put("1", "lower")?;
    /// stack.put("2", "upper")?;
    /// assert_eq!(stack.pop_last()?, Some((b"2".to_vec(), b"upper".to_vec())));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`pop_first`](Self::pop_first).
    pub fn pop_last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop_last_in::<&[u8]>(.., WriteOptions::new())
    }

    /// Does what [`pop_first`](Self::pop_first) does among the keys in `range`, as durably as
    /// `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let jobs = db.create_keyspace("jobs", KeyspaceOptions::new())?;
    /// jobs.put("mail/1", "to Ada")?;
    /// let job = jobs.pop_first_in("mail/".."mail0", WriteOptions::sync())?;
    /// assert_eq!(job, Some((b"mail/1".to_vec(), b"to Ada".to_vec())));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`pop_first`](Self::pop_first).
    pub fn pop_first_in<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: WriteOptions,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(&range, End::First, options)
    }

    /// Does what [`pop_last`](Self::pop_last) does among the keys in `range`, as durably as
    /// `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let jobs = db.create_keyspace("jobs", KeyspaceOptions::new())?;
    /// jobs.put("mail/1", "to Ada")?;
    /// assert_eq!(jobs.pop_last_in("print/".., WriteOptions::sync())?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`pop_first`](Self::pop_first).
    pub fn pop_last_in<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: WriteOptions,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(&range, End::Last, options)
    }

    fn pop<K: AsRef<[u8]>>(
        &self,
        range: &impl RangeBounds<K>,
        end: End,
        options: WriteOptions,
    ) -> Result<Option<Entry>> {
        let popped = self.db().pop(&self.bounds(range), end, options, || self.check_alive())?;
        let prefix = self.prefix_bytes().len();
        Ok(popped.map(|(key, value)| (key.get(prefix..).unwrap_or_default().to_vec(), value)))
    }

    /// [`change_key`] with a key of the keyspace and values as they are shown.
    fn change<V: AsRef<[u8]>>(
        &self,
        key: &[u8],
        options: PutOptions,
        mut decide: impl FnMut(Option<&[u8]>) -> Result<Change<V>>,
    ) -> Result<Option<Option<V>>> {
        let (key, mut set) = (self.key(key), None);
        let decide = |value: Option<&[u8]>| {
            let Change::Set(new) = decide(value)? else { return Ok(Change::Keep) };
            let stored = match &new {
                Some(new) => {
                    let stored = self.stored(&key, new.as_ref(), &options)?;
                    Some(stored.unwrap_or_else(|| new.as_ref().to_vec()))
                }
                None => None,
            };
            set = new;
            Ok(Change::Set(stored))
        };
        let alive = || self.check_alive();
        let changed = change_key(self.db().core(), &key, options.write, alive, decide)?;
        Ok(changed.map(|_| set))
    }
}
