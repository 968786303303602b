//! Atomic updates of a key.

use std::result;

use crate::base::error::{Error, Result};
use crate::db::db::Db;
use crate::db::options::WriteOptions;
use crate::db::update::{Change, MergeOperator, change_key, fallible};

/// Atomic updates. Each is one commit: nothing that others write is lost, whether they write by an
/// update, a batch, a transaction or a bulk load, and no loop is needed around them.
///
/// A value that is set in a keyspace with expiry has no time to live: use the methods of
/// [`Keyspace`](crate::Keyspace#atomic-updates), which set one.
impl Db {
    /// Sets `key` to what `change` makes of its value, and returns that. `None` stands for no
    /// value, on both sides.
    ///
    /// `change` runs again if others have written the key in between, and then, in the end, with the
    /// key locked. It should do nothing but compute: writes of its own may wait for that lock.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/update.db", options.create_if_missing(true))?;
    /// let visits = |value: Option<&[u8]>| match value {
    ///     Some(value) => String::from_utf8_lossy(value).parse().unwrap_or(0),
    ///     None => 0,
    /// };
    /// db.update("visits", |value| Some((visits(value) + 1).to_string()))?;
    /// let new = db.update("visits", |value| Some((visits(value) + 1).to_string()))?;
    /// assert_eq!(new.as_deref(), Some("2"));
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with) and [`write_with`](Self::write_with). A panic of
    /// `change` goes on to the caller; nothing is written then.
    pub fn update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<Option<V>> {
        self.update_with(key, change, WriteOptions::new())
    }

    /// Does what [`update`](Self::update) does, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// // A counter that the loss of power does not set back.
    /// let next = |value: Option<&[u8]>| value.map_or(0, |value| value[0]) + 1;
    /// db.update_with("number", |value| Some([next(value)]), WriteOptions::sync())?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
    pub fn update_with<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Option<V>,
        options: WriteOptions,
    ) -> Result<Option<V>> {
        let decide = |value: Option<&[u8]>| Ok(Change::to(value, change(value)));
        Ok(change_key(self.core(), key.as_ref(), options, || Ok(()), decide)?.flatten())
    }

    /// Does what [`update`](Self::update) does with a `change` that may fail: nothing is written
    /// then, and its error is returned.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let next = |value: Option<&[u8]>| match value {
    ///     None => Ok(Some([1])),
    ///     Some([number]) if *number < 9 => Ok(Some([number + 1])),
    ///     Some(_) => Err(Error::invalid_argument("no digit comes after this value")),
    /// };
    /// assert_eq!(db.try_update("digit", next)?, Some([1]));
    /// db.put("digit", "text")?;
    /// assert!(db.try_update("digit", next).is_err());
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`update`](Self::update), and those of `change`.
    pub fn try_update<V: AsRef<[u8]>, E: From<Error>>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<&[u8]>) -> result::Result<Option<V>, E>,
    ) -> result::Result<Option<V>, E> {
        self.try_update_with(key, change, WriteOptions::new())
    }

    /// Does what [`try_update`](Self::try_update) does, as durably as `options` say.
    ///
    /// # Errors
    /// Those of [`try_update`](Self::try_update).
    pub fn try_update_with<V: AsRef<[u8]>, E: From<Error>>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<&[u8]>) -> result::Result<Option<V>, E>,
        options: WriteOptions,
    ) -> result::Result<Option<V>, E> {
        let mut failed = None;
        let decide = fallible(change, &mut failed);
        let changed = change_key(self.core(), key.as_ref(), options, || Ok(()), decide)?;
        failed.map_or(Ok(changed.flatten()), Err)
    }

    /// Sets `key` to `new` if its value is `expected`, and returns whether it was. `None` stands
    /// for no value: `compare_and_swap(key, Some(value), None)` deletes.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/cas.db", options.create_if_missing(true))?;
    /// assert!(db.compare_and_swap("leader", None, Some(b"anna"))?);
    /// assert!(!db.compare_and_swap("leader", None, Some(b"berta"))?);
    /// assert!(db.compare_and_swap("leader", Some(b"anna"), None)?);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with) and [`write_with`](Self::write_with).
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        self.compare_and_swap_with(key, expected, new, WriteOptions::new())
    }

    /// Does what [`compare_and_swap`](Self::compare_and_swap) does, as durably as `options` say.
    /// Where the value is another one nothing is written, and nothing waited for.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let sync = WriteOptions::sync();
    /// assert!(db.compare_and_swap_with("leader", None, Some(b"anna"), sync)?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`compare_and_swap`](Self::compare_and_swap).
    pub fn compare_and_swap_with(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        options: WriteOptions,
    ) -> Result<bool> {
        let decide = |value: Option<&[u8]>| Ok(Change::if_expected(value, expected, new));
        Ok(change_key(self.core(), key.as_ref(), options, || Ok(()), decide)?.is_some())
    }

    /// Sets `key` to `value` if it has no value, and returns whether it had none.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/insert.db", options.create_if_missing(true))?;
    /// assert!(db.insert_if_absent("user:anna", "1")?);
    /// assert!(!db.insert_if_absent("user:anna", "2")?);
    /// assert_eq!(db.get("user:anna")?.as_deref(), Some(&b"1"[..]));
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with) and [`write_with`](Self::write_with).
    pub fn insert_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.insert_if_absent_with(key, value, WriteOptions::new())
    }

    /// Does what [`insert_if_absent`](Self::insert_if_absent) does, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// assert!(db.insert_if_absent_with("user:anna", "1", WriteOptions::sync())?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`insert_if_absent`](Self::insert_if_absent).
    pub fn insert_if_absent_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: WriteOptions,
    ) -> Result<bool> {
        self.compare_and_swap_with(key, None, Some(value.as_ref()), options)
    }

    /// Sets `key` to what `operator` makes of its value and `operand`, and returns that.
    ///
    /// The operator is applied when the write commits: what is stored is the result, an ordinary
    /// value, which any program that reads LevelDB's files can read.
    ///
    /// ```
    /// use terrace::Counter;
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/merge.db", options.create_if_missing(true))?;
    ///
    /// db.merge("hits", Counter::encode(1), &Counter)?;
    /// let hits = db.merge("hits", Counter::encode(41), &Counter)?;
    /// assert_eq!(Counter::decode(&hits)?, 42);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// The operator's; nothing is written then. Else those of [`get_with`](Self::get_with) and
    /// [`write_with`](Self::write_with). A panic of the operator goes on to the caller; nothing is
    /// written then either.
    pub fn merge(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        operator: &(impl MergeOperator + ?Sized),
    ) -> Result<Vec<u8>> {
        self.merge_with(key, operand, operator, WriteOptions::new())
    }

    /// Does what [`merge`](Self::merge) does, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.merge_with("hits", Counter::encode(1), &Counter, WriteOptions::sync())?;
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
        options: WriteOptions,
    ) -> Result<Vec<u8>> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        let decide =
            |value: Option<&[u8]>| Ok(Change::Set(Some(operator.merge(key, value, operand)?)));
        Ok(change_key(self.core(), key, options, || Ok(()), decide)?.flatten().unwrap_or_default())
    }
}
