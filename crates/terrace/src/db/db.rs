//! The database as its users hold it.

use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::write::batch::WriteBatch;

use crate::db::bulk::{self, BulkLoad, BulkLoadOptions, IngestOptions, LoadReport};
use crate::db::check::{self, VerifyReport};
use crate::db::checkpoint::{CheckpointReport, checkpoint};
use crate::db::close::close;
use crate::db::db_impl::DbImpl;
use crate::db::db_impl::background::manual::CompactOptions;
use crate::db::handle::Handle;
use crate::db::key_range::KeyRange;
use crate::db::open;
use crate::db::options::{Options, ReadOptions, WriteOptions};
use crate::db::range_delete::delete_ranges;
use crate::db::read;
use crate::db::read::cursor::{Cursor, Entries};
use crate::db::read::pinned::PinnedValue;
use crate::db::read::snapshot::Snapshot;
use crate::db::stats::property;
use crate::db::stats::{self, Stats, TableFile};
use crate::db::transaction::{TransactOptions, Transaction, TransactionOptions};

/// An open database.
///
/// Cheap to clone; clones are the same database. Any number of threads may read and write through
/// one or many clones at once: readers never wait for writers. The last clone to be dropped closes
/// the database; [`Db::close`] does so at once and reports errors.
///
/// # Durability
/// A write that has returned survives the death of the process. With [`WriteOptions::sync`] it
/// survives the death of the machine, and so does every write before it. After any crash the
/// database is a prefix of its history of writes, batches whole.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// db.put("apple", "red")?;
/// let other = db.clone(); // the same database
/// std::thread::spawn(move || other.put("banana", "yellow")).join().unwrap()?;
/// assert_eq!(db.iter()?.count(), 2);
/// db.close()?;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

impl Db {
    /// Opens the database in the directory `path`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// let db = Db::open("fruit.db", options.clone().create_if_missing(true))?;
    /// // A database has one owner at a time.
    /// assert_eq!(Db::open("fruit.db", options).unwrap_err().kind(), ErrorKind::Busy);
    /// db.close()?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if there is none and `create_if_missing` is not set, or if an option is
    /// out of range or the comparator is not the one the database was created with; `Busy` if it is
    /// open already, here or in another process, Terrace or LevelDB; `Corruption` if data that is
    /// known to have been durable is damaged; `Io`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let core = open::open(path.as_ref(), options)?;
        Ok(Db { handle: Arc::new(Handle::new(core)) })
    }

    #[inline]
    pub(in crate::db) fn core(&self) -> &Arc<DbImpl> {
        self.handle.core()
    }

    /// The directory of the database, as it was opened.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// assert_eq!(db.path(), std::path::Path::new("/db"));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        self.handle.dir()
    }

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
    /// Where the range holds few entries ([`Options::range_delete_batch`]) and less than 32 MiB of
    /// tables lie inside it, this is a batch of deletions. Otherwise the tables inside it go and
    /// those across its ends are written anew without it, whatever `options` say durably: this
    /// takes time by the number of tables, not of entries, leaves no tombstones behind, and gives
    /// the space back at once, or when the last snapshot or cursor from before goes. It first waits
    /// for the compactions of these tables; writers wait while one memtable is flushed and the
    /// MANIFEST synced. Readers never wait.
    ///
    /// Snapshots, cursors and transactions that began before see the range as it was; a transaction
    /// that writes a key of it, or has read one for update, conflicts. A [`WriteBatch`] has no
    /// range delete, for it knows no database; a transaction has
    /// [one of its own](Transaction::delete_range).
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
    /// Those of [`write_with`](Self::write_with). Besides, [`Corruption`](ErrorKind::Corruption) or
    /// [`Io`](ErrorKind::Io) if a table across an end of the range cannot be read: nothing is
    /// deleted then.
    pub fn delete_range_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: WriteOptions,
    ) -> Result<()> {
        delete_ranges(self.core(), [KeyRange::new(&range)], options, &())
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
    /// [`NotSupported`](ErrorKind::NotSupported) under a custom comparator, where such keys need
    /// not be a range.
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>, options: WriteOptions) -> Result<()> {
        let range = KeyRange::prefix(&self.core().files.order.keys, prefix.as_ref())?;
        delete_ranges(self.core(), [range], options, &())
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
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument), before anything is written, if the batch
    ///   has 4 GiB or more, or a key and its value together have 4 GiB − 8 MiB or more.
    /// - [`NotSupported`](ErrorKind::NotSupported) in a database that was opened read-only.
    /// - [`Closed`](ErrorKind::Closed) after [`close`](Self::close).
    /// - [`Io`](ErrorKind::Io) if the write-ahead log could not be appended to or synced, or if a
    ///   flush or a compaction failed earlier and the failure lasts: the batch is not acknowledged
    ///   then, and whether it is there after the next open is not known.
    /// - [`Corruption`](ErrorKind::Corruption) if background work met damage that stops writes.
    pub fn write_with(&self, batch: &WriteBatch, options: WriteOptions) -> Result<()> {
        self.core().writes.write(batch, options).map(drop)
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

    /// Returns the value of `key`, if it has one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// assert_eq!(db.get("banana")?, None);
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
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.put("apple", "green")?;
    /// let then = ReadOptions::new().snapshot(&before).fill_cache(false);
    /// assert_eq!(db.get_with("apple", &then)?.as_deref(), Some(&b"red"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Corruption`](ErrorKind::Corruption), naming file and offset, if a block that the lookup
    ///   needs is damaged; [`Io`](ErrorKind::Io) if it cannot be read.
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument) if the snapshot is another database's.
    /// - [`Closed`](ErrorKind::Closed) after [`close`](Self::close).
    pub fn get_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        read::get(self.core(), key.as_ref(), options, <[u8]>::to_vec)
    }

    /// Replaces the contents of `buffer` by the value of `key`, reusing its memory. Returns whether
    /// there is a value; if not, the buffer is as it was.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("a", "12")?;
    /// db.put("b", "345")?;
    /// let (mut buffer, mut bytes) = (Vec::new(), 0);
    /// for key in ["a", "b", "c"] {
    ///     if db.get_into(key, &mut buffer)? {
    ///         bytes += buffer.len();
    ///     }
    /// }
    /// assert_eq!(bytes, 5);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_into(&self, key: impl AsRef<[u8]>, buffer: &mut Vec<u8>) -> Result<bool> {
        self.get_into_with(key, buffer, &ReadOptions::new())
    }

    /// Does what [`get_into`](Self::get_into) does, reading as `options` say.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_into_with(
        &self,
        key: impl AsRef<[u8]>,
        buffer: &mut Vec<u8>,
        options: &ReadOptions,
    ) -> Result<bool> {
        let found = read::get(self.core(), key.as_ref(), options, |value| {
            buffer.clear();
            buffer.extend_from_slice(value);
        })?;
        Ok(found.is_some())
    }

    /// Does what [`get_into_with`](Self::get_into_with) does, but reads no file: `None` if neither
    /// memtables nor cached blocks of open tables tell whether there is a value. For threads that
    /// must not wait for a device, such as those of an event loop; they leave the lookup to another
    /// thread then.
    ///
    /// A cached block of a mapped file is still read from its mapping, whose pages the system may
    /// have taken back in the meantime, as it may take any memory of a process that is short of it.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().create_if_missing(true).env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/get_in_memory.db", options)?;
    /// db.put("apple", "red")?;
    /// let mut value = Vec::new();
    /// let found = db.get_in_memory("apple", &mut value, &terrace::ReadOptions::new())?;
    /// assert_eq!(found, Some(true), "it is in the memtable");
    /// assert_eq!(value, b"red");
    /// # db.close()
    /// # }
    /// ```
    pub fn get_in_memory(
        &self,
        key: impl AsRef<[u8]>,
        buffer: &mut Vec<u8>,
        options: &ReadOptions,
    ) -> Result<Option<bool>> {
        let found = read::get_in_memory(self.core(), key.as_ref(), options, |value| {
            buffer.clear();
            buffer.extend_from_slice(value);
        })?;
        Ok(found.map(|found| found.is_some()))
    }

    /// Returns the value of `key` where it lies in memory, for large values. A small value that is
    /// still in a memtable is copied.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("photo", vec![7; 100_000])?;
    /// if let Some(photo) = db.get_pinned("photo")? {
    ///     assert_eq!(photo[99_999], 7); // a slice of bytes, not copied
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedValue>> {
        self.get_pinned_with(key, &ReadOptions::new())
    }

    /// Does what [`get_pinned`](Self::get_pinned) does, reading as `options` say.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn get_pinned_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        read::get_pinned(self.core(), key.as_ref(), options)
    }

    /// Returns the values of `keys`, in their order, all as of one moment.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.put("cherry", "dark red")?;
    /// let found = db.multi_get(&["apple", "banana", "cherry"])?;
    /// assert_eq!(found, [Some(b"red".to_vec()), None, Some(b"dark red".to_vec())]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
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
        read::multi_get(self.core(), keys, options)
    }

    /// Returns whether `key` has a value.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// assert!(db.contains_key("apple")? && !db.contains_key("banana")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.contains_key_with(key, &ReadOptions::new())
    }

    /// Returns whether `key` has a value, read as `options` say.
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn contains_key_with(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<bool> {
        Ok(read::get(self.core(), key.as_ref(), options, |_| ())?.is_some())
    }

    /// Returns the entry with the smallest key, if there is an entry.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// assert_eq!(db.first()?, None);
    /// db.put("banana", "yellow")?;
    /// db.put("apple", "red")?;
    /// assert_eq!(db.first()?, Some((b"apple".to_vec(), b"red".to_vec())));
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
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("2026-11-23", "rain")?;
    /// db.put("2026-11-24", "sun")?;
    /// let (day, _) = db.last()?.expect("there are entries");
    /// assert_eq!(day, b"2026-11-24");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.iter()?.next_back().transpose()
    }

    /// Returns a cursor over the whole database, at no entry: seek it first.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.put("banana", "yellow")?;
    /// let mut cursor = db.cursor()?;
    /// cursor.seek("b");
    /// assert_eq!(cursor.key(), b"banana");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn cursor(&self) -> Result<Cursor> {
        self.cursor_with(&ReadOptions::new())
    }

    /// Returns a cursor that reads as `options` say, between their
    /// [bounds](ReadOptions::lower_bound).
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// for key in ["a", "b", "c", "d"] {
    ///     db.put(key, "")?;
    /// }
    /// let mut cursor = db.cursor_with(&ReadOptions::new().lower_bound("b").upper_bound("d"))?;
    /// cursor.seek_to_last();
    /// assert_eq!(cursor.key(), b"c");
    /// cursor.seek("a");
    /// assert_eq!(cursor.key(), b"b");
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn cursor_with(&self, options: &ReadOptions) -> Result<Cursor> {
        Cursor::new(self.core(), options)
    }

    /// Returns every entry, in the order of keys, from either end.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.put("banana", "yellow")?;
    /// for entry in db.iter()?.rev() {
    ///     let (fruit, colour) = entry?;
    ///     println!("{}: {}", String::from_utf8_lossy(&fruit), String::from_utf8_lossy(&colour));
    /// }
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn iter(&self) -> Result<Entries> {
        self.iter_with(&ReadOptions::new())
    }

    /// Returns every entry, read as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// // A scan of everything that leaves the cache to others.
    /// assert_eq!(db.iter_with(&ReadOptions::new().fill_cache(false))?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn iter_with(&self, options: &ReadOptions) -> Result<Entries> {
        self.range_with::<&[u8]>(.., options)
    }

    /// Returns the entries whose keys are in `range`, from either end.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/range.db", options.create_if_missing(true))?;
    /// db.put("2026-11-23", "rain")?;
    /// db.put("2026-11-24", "sun")?;
    /// db.put("2026-12-01", "snow")?;
    /// for entry in db.range("2026-11".."2026-12")? {
    ///     let (day, weather) = entry?;
    ///     println!("{}: {}", String::from_utf8_lossy(&day), String::from_utf8_lossy(&weather));
    /// }
    /// # assert_eq!(db.range("2026-11".."2026-12")?.count(), 2);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Entries> {
        self.range_with(range, &ReadOptions::new())
    }

    /// Returns the entries whose keys are in `range`, read as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.put("banana", "yellow")?;
    /// let then = ReadOptions::new().snapshot(&before);
    /// assert_eq!(db.range_with("a"..="z", &then)?.count(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_with`](Self::get_with).
    pub fn range_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: &ReadOptions,
    ) -> Result<Entries> {
        Entries::range(self.core(), &range, options)
    }

    /// Returns the entries whose keys begin with `prefix`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("user:1", "Ada")?;
    /// db.put("user:2", "Grace")?;
    /// db.put("visit:1", "2026-11-24")?;
    /// assert_eq!(db.prefix("user:")?.count(), 2);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`prefix_with`](Self::prefix_with).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Entries> {
        self.prefix_with(prefix, &ReadOptions::new())
    }

    /// Returns the entries whose keys begin with `prefix`, read as `options` say.
    ///
    /// # Errors
    /// [`NotSupported`](ErrorKind::NotSupported) under a custom comparator, where such keys need
    /// not be neighbours; else those of [`get_with`](Self::get_with).
    pub fn prefix_with(&self, prefix: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Entries> {
        Entries::prefix(self.core(), prefix.as_ref(), options)
    }

    /// Returns the database as it is now, for any number of reads later.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let before = db.snapshot();
    /// db.delete("apple")?;
    /// assert!(before.contains_key("apple")? && !db.contains_key("apple")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.core())
    }

    /// Begins a transaction. Others neither wait for it nor see any of its writes before it is
    /// committed.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # db.put("apples", "3")?;
    /// let mut transaction = db.transaction();
    /// if transaction.get_for_update("apples")?.as_deref() == Some(b"3") {
    ///     transaction.put("apples", "2");
    /// }
    /// transaction.commit()?; // or `Conflict`, if the apples have changed meanwhile
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(TransactionOptions::new())
    }

    /// Begins a transaction that reads and locks as `options` say.
    ///
    /// ```
    /// use terrace::{Isolation, TransactionOptions};
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/rooms.db", options.create_if_missing(true))?;
    ///
    /// let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
    /// let mut mine = db.transaction_with(serializable);
    /// let is_free = mine.prefix("room 7/monday/")?.next().is_none();
    /// assert!(is_free);
    /// mine.put("room 7/monday/10:00", "me");
    /// // Another writer is quicker, with a key that was not there.
    /// db.put("room 7/monday/10:30", "other")?;
    /// assert_eq!(mine.commit().unwrap_err().kind(), terrace::ErrorKind::Conflict);
    /// # db.close()
    /// # }
    /// ```
    pub fn transaction_with(&self, options: TransactionOptions) -> Transaction {
        let core = self.core();
        Transaction::new(core, options, core.writes.control.locks.next_age())
    }

    /// Runs `work` in a transaction and commits it; runs it again, on the database as it is then,
    /// for as long as it [conflicts](ErrorKind::Conflict) with other writes or has to give way in a
    /// [deadlock](ErrorKind::Deadlock) (see [`Transaction`]).
    ///
    /// Of several transactions in a deadlock the one gives way that was begun last, counted from
    /// the first attempt: each comes to be the oldest at some time, and goes on then.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/stock.db", options.create_if_missing(true))?;
    /// # db.put("apples", "3")?;
    /// let number = |value: Option<Vec<u8>>| -> Option<u32> {
    ///     String::from_utf8(value?).ok()?.parse().ok()
    /// };
    /// let sold = db.transact(|transaction| -> terrace::Result<bool> {
    ///     let left = number(transaction.get("apples")?).unwrap_or(0);
    ///     if left > 0 {
    ///         transaction.put("apples", (left - 1).to_string());
    ///     }
    ///     Ok(left > 0)
    /// })?;
    /// assert!(sold);
    /// # assert_eq!(number(db.get("apples")?), Some(2));
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// An error of `work`, of whatever type, ends the transaction without a trace, unless that was
    /// due to run again; else those of [`Transaction::commit`], but for conflicts and deadlocks.
    pub fn transact<T, E: From<Error>>(
        &self,
        work: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.transact_with(TransactOptions::new(), work)
    }

    /// Does what [`transact`](Self::transact) does, as durably and as often as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let options = TransactOptions::new().write_options(WriteOptions::sync()).retry_limit(10);
    /// db.transact_with(options, |transaction| -> Result<()> {
    ///     if transaction.get_for_update("leader")?.is_none() {
    ///         transaction.put("leader", "me");
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!(db.get("leader")?.as_deref(), Some(&b"me"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`transact`](Self::transact); [`Conflict`](ErrorKind::Conflict) when the
    /// [limit of retries](TransactOptions::retry_limit) is reached.
    pub fn transact_with<T, E: From<Error>>(
        &self,
        options: TransactOptions,
        mut work: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let core = self.core();
        let age = core.writes.control.locks.next_age();
        let mut retries = 0;
        loop {
            let mut transaction = Transaction::new(core, options.transaction, age);
            let outcome = match work(&mut transaction) {
                Ok(result) => transaction.commit_with(options.write).map(|()| result),
                // What it says of a transaction that cannot be committed is beside the point.
                Err(error) => match transaction.failure() {
                    Some(failure) => Err(failure),
                    None => return Err(error),
                },
            };
            let again =
                |error: &Error| matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Deadlock);
            match outcome {
                Err(error) if again(&error) && retries < options.retries => retries += 1,
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Begins a load of many entries: much faster than writes, and all of them become visible at
    /// the same moment.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut load = db.bulk_load()?;
    /// for number in 0..1000_u32 {
    ///     load.put(number.to_be_bytes(), "value")?;
    /// }
    /// load.finish()?;
    /// assert_eq!(db.iter()?.count(), 1000);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn bulk_load(&self) -> Result<BulkLoad> {
        self.bulk_load_with(BulkLoadOptions::new())
    }

    /// Begins a load, as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let mut load = db.bulk_load_with(BulkLoadOptions::new().memory(16 << 20).threads(1))?;
    /// load.put("apple", "red")?;
    /// assert_eq!(load.finish()?.entries, 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_with`](Self::write_with).
    pub fn bulk_load_with(&self, options: BulkLoadOptions) -> Result<BulkLoad> {
        BulkLoad::new(&self.handle, options)
    }

    /// Takes in tables that [`TableWriter`](crate::TableWriter)s made, all at the same moment. Of
    /// several values of one key the one in the later table counts.
    ///
    /// Every table is read first: comparator, order, checksums. Where the database holds nothing
    /// between a table's first and last key, and there is no snapshot, the files become part of the
    /// database as they are; otherwise their entries are loaded as [`bulk_load`](Db::bulk_load)
    /// does it, with the same guarantees.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().create_if_missing(true);
    /// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.clone())?;
    /// let mut table = TableWriter::create("/fruit.ldb", &options)?;
    /// table.put("apple", "red")?;
    /// table.put("banana", "yellow")?;
    /// table.finish()?;
    /// assert_eq!(db.ingest(&["/fruit.ldb"])?.entries, 2);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Corruption`](ErrorKind::Corruption) if a table is damaged;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if one has another comparator. Nothing is
    /// taken in then. Else those of [`write_with`](Self::write_with).
    pub fn ingest<P: AsRef<Path>>(&self, paths: &[P]) -> Result<LoadReport> {
        self.ingest_with(paths, IngestOptions::new())
    }

    /// Does what [`ingest`](Self::ingest) does, as `options` say.
    ///
    /// # Errors
    /// Those of [`ingest`](Self::ingest).
    pub fn ingest_with<P: AsRef<Path>>(
        &self,
        paths: &[P],
        options: IngestOptions,
    ) -> Result<LoadReport> {
        let paths: Vec<_> = paths.iter().map(AsRef::as_ref).collect();
        bulk::ingest(&self.handle, &paths, options)
    }

    /// Makes a copy of the database in the directory `path`, which must be absent or empty, while
    /// it is in use. The copy is a database of its own; LevelDB opens it, too.
    ///
    /// It holds every write that was acknowledged before the call and is durable when this returns.
    /// Tables are shared by hard links where the file system allows that, which costs neither time
    /// nor space, and copied otherwise; what is in memory is written to one table more. The
    /// database itself is not changed, and writes go on meanwhile. It may be open read-only.
    ///
    /// CURRENT is written last. So after an error there is nothing, and after a crash nothing that
    /// an open would take for a database: remove it then, and begin anew.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.checkpoint("/backups/monday")?; // a database of its own
    /// db.put("apple", "green")?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if there is anything in the directory; `Busy` if another process is making
    /// a database there; `Io`; `Closed`.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<CheckpointReport> {
        checkpoint(self.core(), path.as_ref())
    }

    /// Writes what is in memory to tables and waits for it.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.flush()?;
    /// assert_eq!(db.files().len(), 1);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` if a table or the MANIFEST cannot be written; `NotSupported` where the database is open
    /// read-only; `Closed`.
    pub fn flush(&self) -> Result<()> {
        self.core().writes.flush()
    }

    /// Compacts the tables that hold keys in `range` down to as few as possible, dropping
    /// overwritten and deleted entries, and waits for it. `compact_range::<&[u8]>(..)` compacts
    /// everything. An excluded bound is treated as included.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// for number in 0..1000_u32 {
    ///     db.put(number.to_be_bytes(), "value")?;
    ///     db.delete(number.to_be_bytes())?;
    /// }
    /// db.compact_range::<&[u8]>(..)?; // of everything; `"a".."b"` would do for a part
    /// assert!(db.files().is_empty());
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the flushes and compactions: [`Io`](ErrorKind::Io),
    /// [`Corruption`](ErrorKind::Corruption); [`Closed`](ErrorKind::Closed) if the database is
    /// closed meanwhile.
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.compact_range_with(range, CompactOptions::new())
    }

    /// Does what [`compact_range`](Self::compact_range) does, as `options` say.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// // Writes every table anew, for instance after a change of the compression.
    /// db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true))?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`compact_range`](Self::compact_range).
    pub fn compact_range_with<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: CompactOptions,
    ) -> Result<()> {
        let key = |bound: Bound<&K>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.as_ref().to_vec()),
            Bound::Unbounded => None,
        };
        let (from, to) = (key(range.start_bound()), key(range.end_bound()));
        let DbImpl { files, background, writes, .. } = &**self.core();
        files.check_writable()?;
        writes.flush()?;
        background.compact_range(from.as_deref(), to.as_deref(), options)
    }

    /// Waits until no flush or compaction is due or running.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// for number in 0..10_000_u32 {
    ///     db.put(number.to_be_bytes(), [7; 1000])?;
    /// }
    /// db.wait_idle()?;
    /// assert_eq!(db.stats().running_compactions, 0);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// The background error that stops the work, if there is one.
    pub fn wait_idle(&self) -> Result<()> {
        self.core().background.wait_idle()
    }

    /// About how many bytes the keys in each range, from inclusive to exclusive, take on disk. What
    /// is only in memory does not count.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// for number in 0..1000_u32 {
    ///     db.put(number.to_be_bytes(), number.to_be_bytes())?;
    /// }
    /// db.flush()?;
    /// let sizes = db.approximate_sizes(&[(b"\0", b"\xff"), (b"\xf0", b"\xff")])?;
    /// assert!(sizes[0] > 1000 && sizes[1] == 0);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` or `Corruption` if the index of a table cannot be read; `Closed`.
    pub fn approximate_sizes(&self, ranges: &[(&[u8], &[u8])]) -> Result<Vec<u64>> {
        property::approximate_sizes(self.core(), ranges)
    }

    /// LevelDB's properties by their names: `leveldb.num-files-at-level<N>`, `leveldb.stats`,
    /// `leveldb.sstables`, `leveldb.approximate-memory-usage`. `None` for any other name.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// assert_eq!(db.property("leveldb.num-files-at-level0").as_deref(), Some("0"));
    /// assert_eq!(db.property("no such property"), None);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn property(&self, name: &str) -> Option<String> {
        property::property(self.core(), name)
    }

    /// Numbers about the database and its work since it was opened.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// let stats = db.stats();
    /// println!("{} bytes in memtables, {} stalls", stats.memtable_bytes, stats.stall_count);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        stats::stats(self.core())
    }

    /// The table files, level by level.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.put("cherry", "dark red")?;
    /// db.flush()?;
    /// let table = &db.files()[0];
    /// assert_eq!((&table.smallest[..], &table.largest[..]), (&b"apple"[..], &b"cherry"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    pub fn files(&self) -> Vec<TableFile> {
        stats::files(self.core())
    }

    /// Checks every file of the database while it is in use. Damage is in the report; see
    /// [`verify`](crate::verify).
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// assert!(db.verify()?.is_clean());
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io` if the directory cannot be read; `Closed`.
    pub fn verify(&self) -> Result<VerifyReport> {
        check::live::verify(self.core(), &mut |_| ())
    }

    /// Stops background work, closes every file and releases the lock, and reports what went wrong.
    ///
    /// Other clones, should there be any, fail from then on; live cursors and snapshots stay valid
    /// in memory.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("apple", "red")?;
    /// db.close()?; // dropping it closes it too, and keeps errors to itself
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of what a close writes and of background work that no call was told of.
    pub fn close(self) -> Result<()> {
        close(self.core())
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.handle.fmt(f)
    }
}
