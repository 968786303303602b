//! Upkeep of a [`Db`], and numbers about it.

use std::ops::{Bound, RangeBounds};
use std::path::Path;

use crate::base::error::Result;

use crate::db::check::{self, VerifyReport};
use crate::db::checkpoint::{CheckpointReport, checkpoint};
use crate::db::db::Db;
use crate::db::db_impl::DbImpl;
use crate::db::db_impl::background::manual::CompactOptions;
use crate::db::stats::property;
use crate::db::stats::{self, Stats, TableFile};

/// Upkeep and numbers. Any of it may run while the database is in use.
impl Db {
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
    /// Writes go on meanwhile, and automatic compactions do, beside this one and between its steps.
    /// What is written after the call is compacted where it comes in the way.
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
    /// Those of the flushes and compactions: [`Io`](crate::ErrorKind::Io),
    /// [`Corruption`](crate::ErrorKind::Corruption); [`Closed`](crate::ErrorKind::Closed) if the
    /// database is closed meanwhile.
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
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{CompactOptions, Compression, Db, MemEnv, Options};

    const MIB: u64 = 1 << 20;

    fn put(db: &Db, numbers: std::ops::Range<u64>) {
        for number in numbers {
            db.put(format!("{:08}", number * 7919 % 100_000_000), [7; 1000]).expect("writes");
        }
    }

    fn sizes_after_compaction(db: &Db) -> Vec<u64> {
        let all = CompactOptions::new().force(true);
        db.compact_range_with::<&[u8]>(.., all).expect("compacts");
        db.files().iter().map(|file| file.size).collect()
    }

    #[test]
    fn tables_are_larger_while_a_database_is_large() {
        for chosen in [None, Some(3 << 20)] {
            let mut options = Options::new()
                .create_if_missing(true)
                .env(Arc::new(MemEnv::new()))
                .compression(Compression::None)
                .write_buffer_size(MIB as usize);
            if let Some(size) = chosen {
                options = options.max_file_size(size);
            }
            options.large_database = 12 * MIB;
            let db = Db::open("/db", options).expect("opens");
            let most = |sizes: &[u64]| sizes.iter().max().copied().unwrap_or_default();

            put(&db, 0..8_000);
            let of_small = most(&sizes_after_compaction(&db));
            put(&db, 8_000..24_000);
            let of_large = most(&sizes_after_compaction(&db));
            let mut load = db.bulk_load().expect("begins");
            for number in 0..20_000 {
                load.put(format!("x{number:08}"), [7; 1000]).expect("loads");
            }
            load.finish().expect("ends");
            let loaded = db.files().into_iter().filter(|file| file.smallest.starts_with(b"x"));
            let of_loads = most(&loaded.map(|file| file.size).collect::<Vec<_>>());
            match chosen {
                None => {
                    assert!(of_small <= 2 * MIB + MIB / 8, "{of_small}");
                    assert!(of_large > 7 * MIB && of_large <= 8 * MIB + MIB / 8, "{of_large}");
                    assert!(of_loads > 7 * MIB && of_loads < 10 * MIB, "{of_loads}");
                }
                Some(chosen) => {
                    let chosen = chosen as u64;
                    for most in [of_small, of_large, of_loads] {
                        assert!(most > chosen - MIB && most <= chosen + MIB / 2, "{most}");
                    }
                }
            }
            // Small again.
            db.delete_range::<&str>("00020000"..).expect("deletes");
            db.wait_idle().expect("rests");
            put(&db, 0..10_000);
            let of_small = most(&sizes_after_compaction(&db));
            assert!(of_small <= chosen.unwrap_or(2 << 20) as u64 + MIB / 2, "{of_small}");
        }
    }
}
