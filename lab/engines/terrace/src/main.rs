//! The lab's engine program for Terrace's own API.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

use lab_driver::{
    Description, Durability, Engine, Failure, Operation, Operations, Result, Session, Settings,
    Start, Variant, Visit,
};
use terrace::{
    Compression, Db, Keyspace, KeyspaceOptions, Options, ReadOptions, WriteBatch, WriteOptions,
};

/// The variant that keeps large values in value files.
const VALUES: &str = "values";

/// The size from which on it does: that of RocksDB's and fjall's variants.
const VALUE_LOG: usize = 1 << 10;

struct Terrace {
    db: Db,
    keyspaces: Vec<Keyspace>,
    /// The one whose entries expire.
    expiring: Option<Keyspace>,
}

struct TerraceSession<'a> {
    db: &'a Db,
    keyspaces: &'a [Keyspace],
    expiring: Option<&'a Keyspace>,
    read: ReadOptions,
    batch: WriteBatch,
    value: Vec<u8>,
}

fn main() -> ExitCode {
    lab_driver::run::<Terrace>()
}

fn failed(error: terrace::Error) -> Failure {
    Failure::new(error)
}

fn options(settings: &Settings) -> Options {
    let mut options = Options::new().create_if_missing(true);
    if let Some(bytes) = Settings::chosen(settings.cache_size) {
        options = options.block_cache_size(bytes);
    }
    if let Some(bytes) = Settings::chosen(settings.write_buffer_size) {
        options = options.write_buffer_size(bytes);
    }
    if let Some(bytes) = Settings::chosen(settings.block_size) {
        options = options.block_size(bytes);
    }
    if let Some(files) = Settings::chosen(settings.max_open_files) {
        options = options.max_open_files(files);
    }
    if let Some(bits) = Settings::chosen(settings.bloom_bits) {
        options = options.table_filter_bits(bits);
    }
    if settings.variant == VALUES {
        options = options.value_log(Some(VALUE_LOG));
    }
    options.compression(if settings.compress() { Compression::Snappy } else { Compression::None })
}

impl Engine for Terrace {
    type Session<'a> = TerraceSession<'a>;

    const NAME: &'static str = "terrace";

    fn describe(variant: &str) -> Option<Description> {
        let variants = vec![
            Variant { name: "", title: "Terrace" },
            Variant { name: VALUES, title: "Terrace, value log" },
        ];
        let title = variants.iter().find(|known| known.name == variant)?.title;
        Some(Description {
            engine: Self::NAME,
            title,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            variants,
            asynchronous: "in the write-ahead log, which lies in the operating system's memory: survives the process",
            synchronous: "the write-ahead log is on the disk: survives the machine",
            settings:
                "Defaults but for what is asked. cache_size is the cache of blocks, write_buffer_size one memtable \
                       (two to eight more may wait to be flushed: as many as 32 MiB hold), bloom_bits Terrace's own filters, which have 10 \
                       bits per key unless asked otherwise. Two background threads. A bulk load is Db::bulk_load: tables are built directly, past \
                       the log. The variant `values` keeps values from 1 KiB in value files \
                       (Options::value_log). Entries that expire lie in a keyspace with a time to live. Every write is checksummed, \
                       every block read is verified once. The system's allocator."
                    .to_owned(),
            limits: vec![],
            unsupported: BTreeMap::new(),
        })
    }

    fn open(settings: &Settings) -> Result<Self> {
        let db = Db::open(settings.db(), options(settings)).map_err(failed)?;
        Ok(Terrace { db, keyspaces: Vec::new(), expiring: None })
    }

    fn session(&self) -> Self::Session<'_> {
        TerraceSession {
            db: &self.db,
            keyspaces: &self.keyspaces,
            expiring: self.expiring.as_ref(),
            read: ReadOptions::new(),
            batch: WriteBatch::new(),
            value: Vec::new(),
        }
    }

    fn compact(&mut self) -> Result<()> {
        self.db.compact_range::<&[u8]>(..).map_err(failed)
    }

    fn wait_compact(&mut self) -> Result<Duration> {
        // Memtables count as deferred work too: LevelDB's and RocksDB's drivers flush them as well.
        self.db.flush().map_err(failed)?;
        self.db.wait_idle().map_err(failed)?;
        Ok(Duration::ZERO)
    }

    fn levels(&self) -> Vec<(u64, u64)> {
        let levels = self.db.stats().levels;
        levels.iter().map(|level| (level.files as u64, level.bytes)).collect()
    }

    fn close(self) -> Result<()> {
        drop((self.keyspaces, self.expiring));
        self.db.close().map_err(failed)
    }

    const EXPIRES: bool = true;

    fn expire_after(&mut self, time: Duration) -> Result<()> {
        let options = KeyspaceOptions::new().expiry(true).default_ttl(Some(time));
        self.expiring = Some(self.db.create_keyspace("expiring", options).map_err(failed)?);
        Ok(())
    }

    const HAS_KEYSPACES: bool = true;

    fn open_keyspaces(&mut self, count: u64) -> Result<()> {
        for number in self.keyspaces.len() as u64..count {
            let name = format!("keyspace-{number}");
            let keyspace = self.db.open_or_create_keyspace(&name, KeyspaceOptions::new());
            self.keyspaces.push(keyspace.map_err(failed)?);
        }
        Ok(())
    }
}

impl Session for TerraceSession<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        let options = WriteOptions { sync: durability == Durability::Synchronous };
        self.db.put_with(key, value, options).map_err(failed)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.db.delete(key).map_err(failed)
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let found = self.db.get_into_with(key, &mut self.value, &self.read).map_err(failed)?;
        Ok(found.then(|| look(&self.value)))
    }

    fn multi_get(&mut self, keys: &[&[u8]], mut look: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let values = self.db.multi_get_with(keys, &self.read).map_err(failed)?;
        for (key, value) in keys.iter().zip(values) {
            if let Some(value) = value {
                look(key, &value);
            }
        }
        Ok(())
    }

    fn write_batch(&mut self, operations: &mut impl Operations) -> Result<()> {
        self.batch.clear();
        while let Some(operation) = operations.next() {
            match operation {
                Operation::Put(key, value) => self.batch.put(key, value),
                Operation::Delete(key) => self.batch.delete(key),
            }
        }
        self.db.write(&self.batch).map_err(failed)
    }

    fn delete_range(&mut self, range: Range<&[u8]>, _: &mut impl Operations) -> Result<()> {
        self.db.delete_range(range).map_err(failed)
    }

    fn put_expiring(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let keyspace = self.expiring.ok_or_else(|| Failure::new("no keyspace expires"))?;
        keyspace.put(key, value).map_err(failed)
    }

    fn put_in(&mut self, keyspace: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.keyspaces[keyspace].put(key, value).map_err(failed)
    }

    fn get_in<R>(
        &mut self,
        keyspace: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let value = self.keyspaces[keyspace].get_pinned(key).map_err(failed)?;
        Ok(value.map(|value| {
            // As the other drivers copy it.
            self.value.clear();
            self.value.extend_from_slice(&value);
            look(&self.value)
        }))
    }

    fn bulk_load(&mut self, entries: &mut impl Operations) -> Result<()> {
        let mut load = self.db.bulk_load().map_err(failed)?;
        while let Some(Operation::Put(key, value)) = entries.next() {
            load.put(key, value).map_err(failed)?;
        }
        load.finish().map(drop).map_err(failed)
    }

    fn scan(
        &mut self,
        start: Start<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> Visit,
    ) -> Result<()> {
        let mut cursor = self.db.cursor_with(&self.read).map_err(failed)?;
        match start {
            Start::First => cursor.seek_to_first(),
            Start::Last => cursor.seek_to_last(),
            Start::Key(key) => cursor.seek(key),
        }
        let backwards = matches!(start, Start::Last);
        while cursor.valid() && visit(cursor.key(), cursor.value()).is_continue() {
            if backwards {
                cursor.prev();
            } else {
                cursor.next();
            }
        }
        cursor.status().map_err(failed)
    }
}
