//! Tables that are read with `pread`, more of them than may hold a descriptor: what stays in
//! memory, how many descriptors are open, and what becomes of a file that is opened again.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use terrace::{
    Compression, Db, Env, Error, ErrorKind, MemEnv, MemoryBudget, Options, RandomAccessFile,
    ReadAccess, Result, TableFile,
};
use terrace_testkit::env_methods;
use terrace_testkit::rng::Rng;

const EMFILE: i32 = 24;
/// Of one key each.
const TABLES: u32 = 160;
/// The least that `max_open_files` can be, and what it leaves to tables.
const MAX_OPEN_FILES: usize = 74;
const ROOM: usize = 64;

/// What happened to table files, and what is to happen.
pub(crate) struct Counts {
    opened: AtomicUsize,
    reads: AtomicUsize,
    live: AtomicUsize,
    most_live: AtomicUsize,
    /// So many handles may be open in the process.
    limit: AtomicUsize,
    available_memory: AtomicU64,
}

impl Counts {
    /// Files opened and reads since the last call.
    pub(crate) fn take(&self) -> [usize; 2] {
        [&self.opened, &self.reads].map(|count| count.swap(0, Ordering::SeqCst))
    }
}

/// Files in memory that are read with `pread`, whose handles count as descriptors.
#[derive(Clone)]
pub(crate) struct Disk {
    files: MemEnv,
    pub(crate) counts: Arc<Counts>,
}

struct Handle {
    file: Arc<dyn RandomAccessFile>,
    counts: Arc<Counts>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.counts.live.fetch_sub(1, Ordering::SeqCst);
    }
}

impl RandomAccessFile for Handle {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.counts.reads.fetch_add(1, Ordering::SeqCst);
        self.file.read_at(offset, buffer)
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn reads_in_background(&self) -> bool {
        true
    }
}

impl Env for Disk {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        if path.extension().is_none_or(|extension| extension != "ldb") {
            return self.files.open_random(path, access);
        }
        let counts = self.counts.clone();
        let live = counts.live.fetch_add(1, Ordering::SeqCst) + 1;
        let handle = |file| Handle { file, counts: counts.clone() };
        if live > counts.limit.load(Ordering::SeqCst) {
            counts.live.fetch_sub(1, Ordering::SeqCst);
            return Err(Error::io("open", path, io::Error::from_raw_os_error(EMFILE)));
        }
        let opened = self.files.open_random(path, ReadAccess::Pread).map(handle);
        let opened = opened.inspect_err(|_| {
            counts.live.fetch_sub(1, Ordering::SeqCst);
        })?;
        counts.most_live.fetch_max(live, Ordering::SeqCst);
        counts.opened.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(opened))
    }

    fn available_memory(&self) -> Option<u64> {
        Some(self.counts.available_memory.load(Ordering::SeqCst))
    }

    env_methods! {
        create open_append exists list remove create_dir remove_dir file_size rename sync_dir
        lock schedule set_background_threads now_micros wall_clock sleep
    }
}

impl Disk {
    pub(crate) fn new() -> Self {
        let counts = Counts {
            opened: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            most_live: AtomicUsize::new(0),
            limit: AtomicUsize::new(usize::MAX),
            available_memory: AtomicU64::new(u64::MAX),
        };
        Disk { files: MemEnv::new(), counts: Arc::new(counts) }
    }

    /// Has the system say that so much memory is available.
    pub(crate) fn limit_memory(&self, bytes: usize) {
        self.counts.available_memory.store(bytes as u64, Ordering::SeqCst);
    }

    pub(crate) fn options(&self) -> Options {
        Options::new()
            .create_if_missing(true)
            .env(Arc::new(self.clone()))
            .read_access(ReadAccess::Pread)
            .max_open_files(MAX_OPEN_FILES)
            .compression(Compression::None)
            .block_cache_size(0)
            .seek_compaction(false)
    }

    /// A database with a table for each key, all of them read once.
    fn open(&self, options: Options) -> Db {
        let db = Db::open("/db", options).expect("opens");
        for number in 0..TABLES {
            db.put(key(number), value(number)).expect("writes");
            db.flush().expect("flushes");
        }
        db.wait_idle().expect("rests");
        assert!(db.files().len() > 2 * ROOM, "{} tables", db.files().len());
        read_all(&db);
        self.counts.take();
        db
    }
}

pub(crate) fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn value(number: u32) -> Vec<u8> {
    Rng::new(u64::from(number)).bytes(20_000)
}

fn read_all(db: &Db) {
    (0..TABLES).for_each(|number| check(db, number));
}

fn check(db: &Db, number: u32) {
    assert_eq!(db.get(key(number)).expect("reads"), Some(value(number)), "{number}");
}

/// The index and the filter of a table would cost several reads more.
#[test]
fn a_lookup_in_a_table_without_a_descriptor_opens_its_file_and_reads_one_block() {
    let disk = Disk::new();
    let db = disk.open(disk.options());
    assert_eq!(db.stats().open_tables, db.files().len());
    read_all(&db);
    let [opened, reads] = disk.counts.take();
    assert_eq!(reads, TABLES as usize);
    assert!(opened > 0 && opened <= TABLES as usize, "{opened} opened");
    // Filters say no without a descriptor.
    (0..TABLES).for_each(|number| {
        let missing = [&key(number)[..], b"?"].concat();
        assert_eq!(db.get(missing).expect("reads"), None);
    });
    let [opened, reads] = disk.counts.take();
    assert!(opened == reads && reads < 10, "{opened} opened, {reads} reads");
    // Those that are used often keep theirs.
    for number in (0..200).flat_map(|round| [0, 1, 2, 3 + round % (TABLES - 3)]) {
        check(&db, number);
    }
    let [opened, _] = disk.counts.take();
    assert!(opened < 220, "{opened} opened");
    assert!(disk.counts.most_live.load(Ordering::SeqCst) <= ROOM);
}

#[test]
fn no_more_descriptors_are_open_than_may_be_whatever_threads_do() {
    let disk = Disk::new();
    let db = disk.open(disk.options());
    thread::scope(|scope| {
        for thread in 0..8_u64 {
            let db = &db;
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for round in 0..150 {
                    let numbers: Vec<_> =
                        (0..20).map(|_| rng.below(TABLES as usize) as u32).collect();
                    if round % 50 == 0 {
                        let entries = db.iter().expect("a cursor");
                        assert_eq!(entries.filter(Result::is_ok).count(), TABLES as usize);
                    } else if thread % 2 == 0 {
                        numbers.into_iter().for_each(|number| check(db, number));
                    } else {
                        let keys: Vec<_> = numbers.iter().map(|&number| key(number)).collect();
                        let found = db.multi_get(&keys).expect("reads");
                        let wanted = numbers.iter().map(|&number| Some(value(number)));
                        assert!(found.into_iter().eq(wanted));
                    }
                }
            });
        }
    });
    let most = disk.counts.most_live.load(Ordering::SeqCst);
    assert!(most > ROOM - 8 && most <= ROOM, "{most} open at once");
    assert!(disk.counts.live.load(Ordering::SeqCst) <= ROOM);
    drop(db);
    assert_eq!(disk.counts.live.load(Ordering::SeqCst), 0);
}

/// Fewer than `max_open_files` says.
#[test]
fn reads_go_on_where_the_process_has_few_descriptors() {
    const LIMIT: usize = 20;
    let disk = Disk::new();
    disk.counts.limit.store(LIMIT, Ordering::SeqCst);
    let db = disk.open(disk.options());
    read_all(&db);
    thread::scope(|scope| {
        (0..4).for_each(|_| {
            scope.spawn(|| read_all(&db));
        });
    });
    let [_, reads] = disk.counts.take();
    assert_eq!(reads, 5 * TABLES as usize);
    assert!(disk.counts.live.load(Ordering::SeqCst) <= LIMIT);
    assert_eq!(db.stats().open_tables, db.files().len());
    db.compact_range::<&[u8]>(..).expect("compacts");
    read_all(&db);
}

#[test]
fn a_file_that_is_opened_again_and_is_not_as_it_was_is_an_error() {
    for removed in [false, true] {
        let disk = Disk::new();
        let db = disk.open(disk.options());
        let of_key = |file: &TableFile| file.smallest <= key(7) && key(7) <= file.largest;
        let file = db.files().into_iter().find(of_key).expect("a table of the key");
        let name = format!("{:06}.ldb", file.number);
        let path = Path::new("/db").join(&name);
        (20..TABLES).for_each(|number| check(&db, number));
        if removed {
            disk.files.remove(&path).expect("removes");
        } else {
            disk.files.open_append(&path).expect("opens").append(b"more").expect("appends");
        }
        let error = db.get(key(7)).expect_err("not as it was");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.message().contains(&name), "{error}");
        let reason = if removed { "missing" } else { "bytes long" };
        assert!(error.message().contains(reason), "{error}");
        (0..TABLES).filter(|number| *number != 7).for_each(|number| check(&db, number));
    }
}

/// A table stays in the directory for as long as a cursor reads it, though it holds no descriptor.
#[test]
fn a_cursor_reads_on_in_tables_whose_descriptors_were_closed_and_that_were_replaced() {
    let disk = Disk::new();
    let db = disk.open(disk.options());
    // Tables of level 0, too.
    (0..3).for_each(|_| {
        db.put(key(0), value(0)).expect("writes");
        db.put(key(TABLES - 1), value(TABLES - 1)).expect("writes");
        db.flush().expect("flushes");
    });
    let mut entries = db.iter().expect("a cursor");
    let snapshot = db.snapshot();
    assert_eq!(entries.next().expect("an entry").expect("reads"), (key(0), value(0)));
    (0..TABLES).for_each(|number| db.put(key(number), b"new").expect("writes"));
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.wait_idle().expect("rests");
    (0..TABLES).for_each(|number| {
        assert_eq!(db.get(key(number)).expect("reads"), Some(b"new".to_vec()));
        assert_eq!(snapshot.get(key(number)).expect("reads"), Some(value(number)));
    });
    for number in 1..TABLES {
        let entry = entries.next().expect("an entry").expect("reads");
        assert_eq!(entry, (key(number), value(number)));
    }
    assert!(entries.next().is_none());
    assert!(disk.counts.most_live.load(Ordering::SeqCst) <= ROOM);
}

/// Indexes and filters are what a bound of memory closes tables for.
#[test]
fn tables_are_closed_where_memory_or_its_budget_are_small() {
    let disk = Disk::new();
    let budget = MemoryBudget::new(256 << 10);
    let options = disk.options().write_buffer_size(64 << 10).memory_budget(Some(budget));
    let db = disk.open(options);
    let stats = db.stats();
    // Tables have a quarter of it.
    assert!(stats.table_memory_bytes <= 64 << 10, "{stats:?}");
    assert!(stats.open_tables < db.files().len() * 2 / 3, "{stats:?}");
    drop(db);

    let db = Db::open("/db", disk.options()).expect("opens");
    read_all(&db);
    let of_all = db.stats().table_memory_bytes;
    drop(db);
    // Written once more, until the tables are weighed. Descriptors for all of them count for nothing.
    let db = Db::open("/db", disk.options().max_open_files(300)).expect("opens");
    db.put(b"large", vec![7; 17 << 20]).expect("writes");
    // Half of the memory is theirs: there is no cache.
    disk.counts.available_memory.store(of_all, Ordering::SeqCst);
    db.flush().expect("flushes");
    db.wait_idle().expect("rests");
    read_all(&db);
    let stats = db.stats();
    assert!(stats.table_memory_bytes <= of_all / 2 && stats.open_tables >= ROOM, "{stats:?}");
}

/// A MANIFEST whose first record, the whole version, is larger than `max_manifest_size` is not
/// written anew for every edit.
#[test]
fn a_manifest_of_large_keys_is_not_rewritten_for_every_edit() {
    let env = Arc::new(MemEnv::new());
    let options = Options::new().create_if_missing(true).env(env.clone());
    let db = Db::open("/db", options.max_manifest_size(4 << 10)).expect("creates");
    let flush = |number: u32| {
        db.put(format!("{number:05}{}", "k".repeat(4_000)), "value").expect("puts");
        db.flush().expect("flushes");
    };
    (0..20).for_each(flush);
    let manifest = || {
        let names = env.list(Path::new("/db")).expect("lists");
        names.into_iter().find(|name| name.starts_with("MANIFEST")).expect("a MANIFEST")
    };
    let mut manifests = BTreeSet::from([manifest()]);
    for number in 20..60 {
        flush(number);
        manifests.insert(manifest());
    }
    // Each time for as many edits as make up the version; compactions are edits as well.
    assert!(manifests.len() <= 12, "{manifests:?}");
    db.close().expect("closes");
}
