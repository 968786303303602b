//! Writes of a [`Db`].

use std::ops::RangeBounds;

use crate::base::error::{Error, Result};
use crate::write::batch::WriteBatch;

use crate::db::db::Db;
use crate::db::key_range::KeyRange;
use crate::db::options::WriteOptions;
use crate::db::range_delete::delete_ranges;
use crate::db::range_delete::terms::Terms;
use crate::db::view::catalogue::entry;

/// Writes. Each is one commit, and is there for every read that begins after it has
/// returned.
impl Db {
    /// Sets `key` to `value`. The write survives the death of the process; for the loss of power
    /// see [`put_with`](Self::put_with) and [`sync`](Self::sync).
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.put(7_u64.to_be_bytes(), [1, 2, 3])?; // any bytes; big-endian numbers sort as numbers
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.core().writes.write_one(key.as_ref(), Some(value.as_ref()), WriteOptions::new())
    }

    /// Sets `key` to `value`, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put_with("balance", "100", WriteOptions::sync())?; // survives the loss of power
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        self.core().writes.write_one(key.as_ref(), Some(value.as_ref()), options)
    }

    /// Removes `key`. Removing an absent key is no error.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.delete("apple")?;
    /// assert_eq!(db.get("apple")?, None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.core().writes.write_one(key.as_ref(), None, WriteOptions::new())
    }

    /// Removes `key`, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.delete_with("secret", WriteOptions::sync())?; // gone for good, power or not
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: WriteOptions) -> Result<()> {
        self.core().writes.write_one(key.as_ref(), None, options)
    }

    /// Removes every key in `range`, as one step: a reader sees all of them or none. A crash leaves
    /// either.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/delete_range.db", options.create_if_missing(true))?;
    /// db.put("2026-11-23", "rain")?;
    /// db.put("2026-11-24", "sun")?;
    /// db.put("2026-12-01", "snow")?;
    /// db.delete_range("2026-11".."2026-12")?;
    /// assert_eq!(db.first()?, Some((b"2026-12-01".to_vec(), b"snow".to_vec())));
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`delete_range_with`](Self::delete_range_with).
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.delete_range_with(range, WriteOptions::new())
    }

    /// Removes every key in `range` as one step, as durably as `options` say.
    ///
    /// Where the range holds few entries
    /// ([`Options::range_delete_batch`](crate::Options::range_delete_batch)) and less than 32 MiB
    /// of tables lie inside it, this is a batch of deletions. Otherwise the tables inside it go and
    /// those across its ends are written anew without it, whatever `options` say durably: this
    /// takes time by the number of tables, not of entries, leaves no tombstones behind, and gives
    /// the space back at once, or when the last snapshot or cursor from before goes. It first waits
    /// for the compactions of these tables; writers wait while one memtable is flushed and the
    /// MANIFEST synced. Readers never wait.
    ///
    /// Snapshots, cursors and transactions that began before see the range as it was; a transaction
    /// that writes a key of it, or has read one for update, conflicts. A [`WriteBatch`] has no
    /// range delete, for it knows no database; a transaction has
    /// [one of its own](crate::Transaction::delete_range).
    ///
    /// Entries of [keyspaces](crate::Keyspace) are keys of the database and go with the range. The
    /// engine's own entries, whose keys begin with `!$terrace!`, stay, and keyspaces with their
    /// settings; unless the range begins with such a key.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// for number in 0..1000_u32 {
    ///     db.put(number.to_be_bytes(), "value")?;
    /// }
    /// let (from, to) = (100_u32.to_be_bytes(), 900_u32.to_be_bytes());
    /// db.delete_range_with(from..to, WriteOptions::sync())?;
    /// assert_eq!(db.iter()?.count(), 200);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with). Besides,
    /// [`Corruption`](crate::ErrorKind::Corruption) or [`Io`](crate::ErrorKind::Io) if a table
    /// across an end of the range cannot be read: nothing is deleted then.
    pub fn delete_range_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: WriteOptions,
    ) -> Result<()> {
        self.delete_key_range(KeyRange::new(&range), options)
    }

    /// Removes every key that begins with `prefix`, as
    /// [`delete_range_with`](Self::delete_range_with) does.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("user:1:name", "Ada")?;
    /// db.put("user:1:mail", "ada@example.org")?;
    /// db.put("user:2:name", "Grace")?;
    /// db.delete_prefix("user:1:", WriteOptions::new())?;
    /// assert_eq!(db.iter()?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`delete_range_with`](Self::delete_range_with), and
    /// [`NotSupported`](crate::ErrorKind::NotSupported) under a custom comparator, where such keys
    /// need not be a range.
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>, options: WriteOptions) -> Result<()> {
        let range = KeyRange::prefix(&self.core().files.order.keys, prefix.as_ref())?;
        self.delete_key_range(range, options)
    }

    fn delete_key_range(&self, range: KeyRange, options: WriteOptions) -> Result<()> {
        let core = self.core();
        let spared = range.clone().sparing(&core.files.order.keys, entry::PREFIX);
        // Tables that hold keys before and behind the engine's entries are dropped as long as there
        // are none of those.
        if spared.len() > 1 {
            let terms = NoOwnEntries(self);
            let result = terms.check().and_then(|()| delete_ranges(core, [range], options, &terms));
            // One may have come meanwhile that a transaction has locked.
            if result.is_ok() || terms.check().is_ok() {
                return result;
            }
        }
        delete_ranges(core, spared, options, &())
    }

    /// Applies every operation of `batch`, or none.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut batch = WriteBatch::new();
    /// batch.delete("old name");
    /// batch.put("new name", "value");
    /// db.write(&batch)?; // nobody sees one without the other
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, WriteOptions::new())
    }

    /// Applies every operation of `batch`, or none, as durably as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut batch = WriteBatch::new();
    /// batch.put("from", "70");
    /// batch.put("to", "30");
    /// db.write_with(&batch, WriteOptions::sync())?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument), before anything is written, if the
    ///   batch has 4 GiB or more, or a key and its value together have 4 GiB − 8 MiB or more.
    /// - [`NotSupported`](crate::ErrorKind::NotSupported) in a database that was opened read-only.
    /// - [`Closed`](crate::ErrorKind::Closed) after [`close`](Self::close).
    /// - [`Io`](crate::ErrorKind::Io) if the write-ahead log could not be appended to or synced, or
    ///   if a flush or a compaction failed earlier and the failure lasts: the batch is not
    ///   acknowledged then, and whether it is there after the next open is not known.
    /// - [`Corruption`](crate::ErrorKind::Corruption) if background work met damage that stops
    ///   writes.
    pub fn write_with(&self, batch: &WriteBatch, options: WriteOptions) -> Result<()> {
        self.core().writes.write(batch, options).map(drop)
    }

    /// Applies every operation of `batch`, or none, if that needs no waiting: for threads that must
    /// not wait, such as one that runs an event loop. Returns false, and nothing has happened,
    /// while another writer is at work, where a transaction has locked one of the keys, where the
    /// memtable is full or the log has no space prepared, where writers are slowed down for the
    /// sake of compactions, and in a database with a [`MemoryBudget`](crate::MemoryBudget); have a
    /// thread that may wait call [`write`](Self::write) then. Nothing is synced.
    ///
    /// The batch is copied into the log and the memtable, so a large one takes its time. The system
    /// may hold any thread up that writes to a file, where it writes out more than the device
    /// takes.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut batch = WriteBatch::new();
    /// batch.put("apple", "red");
    /// if !db.try_write(&batch)? {
    ///     let db = db.clone();
    ///     std::thread::spawn(move || db.write(&batch)).join().unwrap()?;
    /// }
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn try_write(&self, batch: &WriteBatch) -> Result<bool> {
        self.core().writes.try_write(batch)
    }

    /// Makes every earlier write survive the loss of power: waits until the write-ahead log is
    /// synced. Concurrent callers share one sync.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/sync.db", options.create_if_missing(true))?;
    /// for number in 0..1000_u32 {
    ///     db.put(number.to_be_bytes(), "fast")?;
    /// }
    /// db.sync()?; // all of them are durable
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with). After an error the earlier writes may or may not
    /// be durable.
    pub fn sync(&self) -> Result<()> {
        self.write_with(&WriteBatch::new(), WriteOptions::sync())
    }
}

/// That the engine is known to have no entries.
struct NoOwnEntries<'a>(&'a Db);

impl Terms for NoOwnEntries<'_> {
    fn check(&self) -> Result<()> {
        match self.0.prefix(entry::PREFIX)?.next() {
            None => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(_)) => Err(Error::invalid_argument("the range holds entries of the engine")),
        }
    }
}
