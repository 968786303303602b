//! The lab's engine program for fjall.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
    PartitioningPolicy, PinningPolicy,
};
use fjall::{
    CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, KvSeparationOptions,
    PersistMode,
};
use lab_driver::{
    Description, Durability, Engine, Failure, Operation, Operations, Result, Session, Settings,
    Start, Variant, Visit,
};

const KEYSPACE: &str = "lab";
/// The variant that keeps large values apart.
const SEPARATED: &str = "separated";
/// fjall takes blocks of these sizes and no others.
const BLOCK_SIZES: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 20;
/// Open files below this are refused.
const LEAST_OPEN_FILES: usize = 10;
/// Between two looks at whether background work has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Looks in a row that have to find nothing to do: a finished flush may be followed by a
/// compaction.
const IDLE_LOOKS: u32 = 10;

struct Fjall {
    keyspace: Keyspace,
    /// Those of the benchmarks that are about many.
    keyspaces: Vec<Keyspace>,
    settings: Settings,
    db: Database,
}

struct FjallSession<'a> {
    fjall: &'a Fjall,
}

fn main() -> ExitCode {
    lab_driver::run::<Fjall>()
}

fn failed(error: fjall::Error) -> Failure {
    Failure::new(format!("{error:?}"))
}

fn keyspace_options(settings: &Settings) -> KeyspaceCreateOptions {
    // Its default pins them in the first levels only, where they are not divided into blocks that
    // the cache holds. The other trees of tables keep them in memory beside their caches, and a
    // cache of a few megabytes holds little else.
    let mut options = KeyspaceCreateOptions::default()
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(false))
        .index_block_partitioning_policy(PartitioningPolicy::all(false));
    if let Some(bytes) = Settings::chosen(settings.write_buffer_size) {
        options = options.max_memtable_size(bytes);
    }
    if let Some(bytes) = Settings::chosen::<u64>(settings.block_size) {
        let bytes = bytes.clamp(*BLOCK_SIZES.start(), *BLOCK_SIZES.end());
        options = options.data_block_size_policy(BlockSizePolicy::all(bytes as u32));
    }
    if let Some(bits) = Settings::chosen::<u64>(settings.bloom_bits) {
        let bits = BloomConstructionPolicy::BitsPerKey(bits as f32);
        options = options.filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bits)));
    }
    if !settings.compress() {
        options = options.data_block_compression_policy(CompressionPolicy::disabled());
    }
    if settings.variant == SEPARATED {
        let compression =
            if settings.compress() { CompressionType::Lz4 } else { CompressionType::None };
        options = options
            .with_kv_separation(Some(KvSeparationOptions::default().compression(compression)));
    }
    options
}

impl Engine for Fjall {
    type Session<'a> = FjallSession<'a>;

    const NAME: &'static str = "fjall";

    fn describe(variant: &str) -> Option<Description> {
        let variants = vec![
            Variant { name: "", title: "fjall" },
            Variant { name: SEPARATED, title: "fjall, large values apart" },
        ];
        let title = variants.iter().find(|known| known.name == variant)?.title;
        Some(Description {
            engine: Self::NAME,
            title,
            version: env!("LAB_ENGINE_VERSION").to_owned(),
            variants,
            asynchronous: "written to the journal by a system call (PersistMode::Buffer, the default): survives the process",
            synchronous: "written to the journal, then Database::persist(SyncData), its fdatasync: survives the machine",
            settings: "One Database with one Keyspace, but for the benchmarks of keyspaces. A range is deleted key by key in a batch. cache_size is its cache, write_buffer_size max_memtable_size, \
                       max_open_files max_cached_files (at least 10), bloom_bits a bloom filter policy for all levels \
                       (its default has filters: one in 10,000 wrong in the first level, 10 bits per key below). \
                       Filters and indexes are in one piece and pinned in every level, so that they lie beside the \
                       cache and not in it. \
                       Compression is LZ4, from its third level down, and of journal entries from 4 KiB; none turns both \
                       off. The journal keeps its default limit of 512 MiB. Worker threads: as many as processors, at most \
                       4. A bulk load is an ingestion. A full compaction is a rotated memtable and major_compact. The \
                       variant `separated` keeps values from 1 KiB in files of their own, by its default key-value \
                       separation. The system's allocator."
                .to_owned(),
            limits: vec!["keys have at most 65,536 bytes, and at least one"],
            unsupported: BTreeMap::new(),
        })
    }

    fn open(settings: &Settings) -> Result<Self> {
        let mut builder = Database::builder(settings.db());
        if let Some(bytes) = Settings::chosen(settings.cache_size) {
            builder = builder.cache_size(bytes);
        }
        if let Some(files) = Settings::chosen::<usize>(settings.max_open_files) {
            builder = builder.max_cached_files(Some(files.max(LEAST_OPEN_FILES)));
        }
        if !settings.compress() {
            builder = builder.journal_compression(CompressionType::None);
        }
        let db = builder.open().map_err(failed)?;
        let keyspace = db.keyspace(KEYSPACE, || keyspace_options(settings)).map_err(failed)?;
        Ok(Fjall { keyspace, keyspaces: Vec::new(), settings: settings.clone(), db })
    }

    fn session(&self) -> Self::Session<'_> {
        FjallSession { fjall: self }
    }

    fn compact(&mut self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait().map_err(failed)?;
        self.keyspace.major_compact().map_err(failed)
    }

    fn wait_compact(&mut self) -> Result<Duration> {
        for keyspace in &self.keyspaces {
            keyspace.rotate_memtable().map_err(failed)?;
        }
        self.keyspace.rotate_memtable_and_wait().map_err(failed)?;
        let mut idle = 0;
        let mut last_busy = Instant::now();
        let mut completed = self.db.compactions_completed();
        while idle < IDLE_LOOKS {
            thread::sleep(POLL_INTERVAL);
            let busy = self.db.outstanding_flushes() > 0
                || self.db.active_compactions() > 0
                || self.keyspaces.iter().any(|keyspace| keyspace.sealed_memtable_count() > 0)
                || self.keyspace.sealed_memtable_count() > 0;
            let before = std::mem::replace(&mut completed, self.db.compactions_completed());
            idle += 1;
            if busy || completed != before {
                (idle, last_busy) = (0, Instant::now());
            }
        }
        Ok(last_busy.elapsed())
    }

    const HAS_KEYSPACES: bool = true;

    fn open_keyspaces(&mut self, count: u64) -> Result<()> {
        for number in self.keyspaces.len() as u64..count {
            let name = format!("keyspace-{number}");
            let keyspace = self.db.keyspace(&name, || keyspace_options(&self.settings));
            self.keyspaces.push(keyspace.map_err(failed)?);
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        // The last handle closes the database; it syncs the journal then.
        self.db.persist(PersistMode::SyncAll).map_err(failed)
    }
}

impl Session for FjallSession<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.fjall.keyspace.insert(key, value).map_err(failed)?;
        match durability {
            Durability::Asynchronous => Ok(()),
            Durability::Synchronous => self.fjall.db.persist(PersistMode::SyncData).map_err(failed),
        }
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.fjall.keyspace.remove(key).map_err(failed)
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.fjall.keyspace.get(key).map_err(failed)?.map(|value| look(&value)))
    }

    fn put_in(&mut self, keyspace: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.fjall.keyspaces[keyspace].insert(key, value).map_err(failed)
    }

    fn get_in<R>(
        &mut self,
        keyspace: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let value = self.fjall.keyspaces[keyspace].get(key).map_err(failed)?;
        Ok(value.map(|value| look(&value)))
    }

    fn write_batch(&mut self, operations: &mut impl Operations) -> Result<()> {
        let mut batch = self.fjall.db.batch().durability(Some(PersistMode::Buffer));
        while let Some(operation) = operations.next() {
            match operation {
                Operation::Put(key, value) => batch.insert(&self.fjall.keyspace, key, value),
                Operation::Delete(key) => batch.remove(&self.fjall.keyspace, key),
            }
        }
        batch.commit().map_err(failed)
    }

    fn bulk_load(&mut self, entries: &mut impl Operations) -> Result<()> {
        let mut ingestion = self.fjall.keyspace.start_ingestion().map_err(failed)?;
        while let Some(operation) = entries.next() {
            match operation {
                Operation::Put(key, value) => ingestion.write(key, value).map_err(failed)?,
                Operation::Delete(key) => ingestion.write_tombstone(key).map_err(failed)?,
            }
        }
        ingestion.finish().map_err(failed)
    }

    fn scan(&mut self, start: Start<'_>, visit: impl FnMut(&[u8], &[u8]) -> Visit) -> Result<()> {
        match start {
            Start::First => show(self.fjall.keyspace.iter(), visit),
            Start::Last => show(self.fjall.keyspace.iter().rev(), visit),
            Start::Key(key) => show(self.fjall.keyspace.range(key..), visit),
        }
    }
}

fn show(
    entries: impl Iterator<Item = Guard>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Visit,
) -> Result<()> {
    for entry in entries {
        let (key, value) = entry.into_inner().map_err(failed)?;
        if visit(&key, &value).is_break() {
            break;
        }
    }
    Ok(())
}
