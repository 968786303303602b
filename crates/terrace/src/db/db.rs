//! The database as its users hold it.

use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;

use crate::base::error::{ErrorKind, Result};
use crate::env::pace;
use crate::write::batch::WriteBatch;

use crate::db::background::manual::CompactOptions;
use crate::db::bulk::{self, BulkLoad, BulkLoadOptions, IngestOptions, LoadReport};
use crate::db::check::VerifyReport;
use crate::db::checkpoint::CheckpointReport;
use crate::db::db_impl::DbImpl;
use crate::db::open;
use crate::db::options::{Options, ReadOptions, WriteOptions};
use crate::db::read::cursor::{Cursor, Entries};
use crate::db::read::pinned::PinnedValue;
use crate::db::read::snapshot::Snapshot;
use crate::db::stats::{Stats, TableFile};
use crate::db::transaction::Transaction;

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
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

/// Closes the database when the last clone goes.
struct Handle {
    core: Arc<DbImpl>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Whoever wants to know of errors calls `close`.
        let _ = self.core.shut_down();
    }
}

impl Db {
    /// Opens the database in the directory `path`.
    ///
    /// Fails with `InvalidArgument` if there is none and `create_if_missing` is not set, or if an
    /// option is out of range or the comparator is not the one the database was created with; with
    /// `Busy` if it is open already, here or in another process, Terrace or LevelDB; with
    /// `Corruption` if data that is known to have been durable is damaged.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let core = open::open(path.as_ref(), options)?;
        Ok(Db { handle: Arc::new(Handle { core }) })
    }

    pub(in crate::db) fn core(&self) -> &Arc<DbImpl> {
        pace::before_call();
        &self.handle.core
    }

    /// The directory of the database, as it was opened.
    pub fn path(&self) -> &Path {
        self.handle.core.dir()
    }

    /// Sets `key` to `value`, asynchronously (see [`WriteOptions`]).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.core().write_one(key.as_ref(), Some(value.as_ref()), WriteOptions::new())
    }

    /// Removes `key`, asynchronously. Removing an absent key is no error.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.core().write_one(key.as_ref(), None, WriteOptions::new())
    }

    /// Sets `key` to `value`, as durably as `options` say.
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        self.core().write_one(key.as_ref(), Some(value.as_ref()), options)
    }

    /// Removes `key`, as durably as `options` say.
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: WriteOptions) -> Result<()> {
        self.core().write_one(key.as_ref(), None, options)
    }

    /// Applies every operation of `batch`, or none. With `sync` an empty batch makes all earlier
    /// writes durable.
    ///
    /// Fails with `InvalidArgument`, before anything is written, if the batch has 4 GiB or more, or
    /// a key and its value together 8 MiB less, which is more than a table can hold.
    pub fn write(&self, batch: &WriteBatch, options: WriteOptions) -> Result<()> {
        self.core().write(batch, options).map(drop)
    }

    /// The value of `key`, if it has one.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, &ReadOptions::new())
    }

    /// The value of `key`, read as `options` say.
    pub fn get_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        self.core().get(key.as_ref(), options, <[u8]>::to_vec)
    }

    /// Replaces the contents of `buffer` by the value of `key`, reusing its memory. Answers whether
    /// there was one; if not, the buffer is as it was.
    pub fn get_into(
        &self,
        key: impl AsRef<[u8]>,
        buffer: &mut Vec<u8>,
        options: &ReadOptions,
    ) -> Result<bool> {
        let found = self.core().get(key.as_ref(), options, |value| {
            buffer.clear();
            buffer.extend_from_slice(value);
        })?;
        Ok(found.is_some())
    }

    /// The value of `key` where it lies in memory, for large values and brief looks. Small values
    /// that are not in a table yet are copied.
    pub fn get_pinned(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        self.core().get_pinned(key.as_ref(), options)
    }

    /// The values of `keys`, in their order, all as of one moment.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.core().multi_get(keys, options)
    }

    /// Whether `key` has a value.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.contains_key_with(key, &ReadOptions::new())
    }

    /// Whether `key` has a value, read as `options` say.
    pub fn contains_key_with(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<bool> {
        Ok(self.core().get(key.as_ref(), options, |_| ())?.is_some())
    }

    /// A cursor over the whole database. Seek it first.
    pub fn cursor(&self, options: &ReadOptions) -> Result<Cursor> {
        Cursor::new(self.core(), options)
    }

    /// Every entry, in order of keys, from either end.
    pub fn iter(&self) -> Result<Entries> {
        self.iter_with(&ReadOptions::new())
    }

    /// Every entry, read as `options` say.
    pub fn iter_with(&self, options: &ReadOptions) -> Result<Entries> {
        self.range::<&[u8]>(.., options)
    }

    /// The entries whose keys are in `range`.
    pub fn range<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        options: &ReadOptions,
    ) -> Result<Entries> {
        Entries::range(self.core(), &range, options)
    }

    /// The entries whose keys begin with `prefix`. `NotSupported` under a custom comparator, where
    /// such keys need not be neighbours.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Entries> {
        Entries::prefix(self.core(), prefix.as_ref(), options)
    }

    /// The database as it is now, for any number of reads later.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.core())
    }

    /// Begins a transaction. Others neither wait for it nor see anything of it until it is
    /// committed.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.core())
    }

    /// Does `work` in a transaction and commits it; does it again, with the database as it is then,
    /// for as long as others come in between (see [`Transaction`]). An error of `work` ends it, and
    /// nothing has happened.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().create_if_missing(true).env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/stock.db", options)?;
    /// # db.put("apples", "3")?;
    /// let number = |value: Option<Vec<u8>>| value.and_then(|value| String::from_utf8(value).ok()?.parse::<u32>().ok());
    /// let sold = db.transact(terrace::WriteOptions::sync(), |transaction| {
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
    pub fn transact<T>(
        &self,
        options: WriteOptions,
        mut work: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        loop {
            let mut transaction = self.transaction();
            let result = work(&mut transaction)?;
            match transaction.commit(options) {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                committed => return committed.map(|()| result),
            }
        }
    }

    /// Begins to load many entries at once: much faster than writing them, and all of them visible
    /// at the same moment.
    pub fn bulk_load(&self, options: BulkLoadOptions) -> Result<BulkLoad> {
        BulkLoad::new(self, options)
    }

    /// Takes in tables that [`TableWriter`](crate::TableWriter)s made, all at the same moment. Of
    /// several values of one key the one in the later table counts.
    ///
    /// Every table is read first: comparator, order, checksums. Where the database holds nothing
    /// between a table's first and last key, and there is no snapshot, the files become part of the
    /// database as they are; otherwise their entries are loaded as [`bulk_load`](Db::bulk_load)
    /// does it, with the same guarantees.
    pub fn ingest<P: AsRef<Path>>(
        &self,
        paths: &[P],
        options: IngestOptions,
    ) -> Result<LoadReport> {
        let paths: Vec<_> = paths.iter().map(AsRef::as_ref).collect();
        bulk::ingest(self, &paths, options)
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
    /// an open would take for a database: remove it then, and begin anew. Fails with
    /// `InvalidArgument` if there is anything in the directory, with `Busy` if somebody else is
    /// making a database there.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<CheckpointReport> {
        self.core().checkpoint(path.as_ref())
    }

    /// Writes what is in memory to tables and waits for it.
    pub fn flush(&self) -> Result<()> {
        self.core().flush()
    }

    /// Merges everything between `from` and `to`, both inclusive, down to as few tables as
    /// possible, dropping overwritten and deleted entries; an absent end is open. Waits for it.
    pub fn compact_range(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<()> {
        self.compact_range_with(from, to, CompactOptions::new())
    }

    /// Does what [`compact_range`](Self::compact_range) does, as `options` say.
    pub fn compact_range_with(
        &self,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
        options: CompactOptions,
    ) -> Result<()> {
        self.core().compact_range(from, to, options)
    }

    /// Waits until no flush or merge is due or running.
    pub fn wait_idle(&self) -> Result<()> {
        self.core().wait_idle()
    }

    /// About how many bytes the keys in each range, from inclusive to exclusive, take on disk. What
    /// is only in memory does not count.
    pub fn approximate_sizes(&self, ranges: &[(&[u8], &[u8])]) -> Result<Vec<u64>> {
        self.core().approximate_sizes(ranges)
    }

    /// LevelDB's properties by their names: `leveldb.num-files-at-level<N>`, `leveldb.stats`,
    /// `leveldb.sstables`, `leveldb.approximate-memory-usage`. `None` for any other name.
    pub fn property(&self, name: &str) -> Option<String> {
        self.core().property(name)
    }

    /// Numbers about the database and its work since it was opened.
    pub fn stats(&self) -> Stats {
        self.core().stats()
    }

    /// The table files, level by level.
    pub fn files(&self) -> Vec<TableFile> {
        self.core().files()
    }

    /// Checks every file of the database while it is in use. Damage is in the report; see
    /// [`verify`](crate::verify).
    pub fn verify(&self) -> Result<VerifyReport> {
        self.core().verify(&mut |_| ())
    }

    /// Stops background work, closes every file and releases the lock, and reports what went wrong.
    ///
    /// Other clones, should there be any, fail from then on; live cursors and snapshots stay valid
    /// in memory.
    pub fn close(self) -> Result<()> {
        self.core().shut_down()
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Db").field(&self.core().dir()).finish()
    }
}
