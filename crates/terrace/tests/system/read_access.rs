//! How tables are read, and what becomes of a database whose disk cannot read a part of one.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use terrace::{
    Compression, Db, Env, Error, ErrorKind, MemEnv, Options, RandomAccessFile, ReadAccess, Result,
};
use terrace_testkit::env_methods;

const EIO: i32 = 5;
const TABLES: u32 = 4;
/// Of a table: several of the regions that are populated at once.
const KEYS: u32 = 2_000;

/// A disk in memory that writes down how tables are opened, and that cannot read the middle of
/// table files when told.
#[derive(Clone)]
struct Disk {
    files: MemEnv,
    fails: Arc<AtomicBool>,
    opened: Arc<Mutex<Vec<ReadAccess>>>,
    available_memory: Arc<AtomicU64>,
}

struct Mapped {
    file: Arc<dyn RandomAccessFile>,
    fails: Arc<AtomicBool>,
}

impl Mapped {
    fn check(&self) -> Result<()> {
        match self.fails.load(Ordering::Relaxed) {
            true => Err(Error::io("read", Path::new("a table"), io::Error::from_raw_os_error(EIO))),
            false => Ok(()),
        }
    }
}

impl RandomAccessFile for Mapped {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.check()?;
        self.file.read_at(offset, buffer)
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.file.mapped()
    }

    fn populate(&self, _: u64, _: u64) -> Result<()> {
        self.check()
    }
}

impl Env for Disk {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.files.open_random(path, access)?;
        if path.extension().is_none_or(|extension| extension != "ldb") {
            return Ok(file);
        }
        self.opened.lock().expect("sound").push(access);
        Ok(Arc::new(Mapped { file, fails: self.fails.clone() }))
    }

    fn available_memory(&self) -> Option<u64> {
        Some(self.available_memory.load(Ordering::Relaxed))
    }

    env_methods! {
        create open_append exists list remove create_dir remove_dir file_size rename sync_dir
        lock schedule set_background_threads now_micros wall_clock sleep
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn value(number: u32) -> Vec<u8> {
    format!("value {number:0100}").into_bytes()
}

impl Disk {
    fn new() -> Self {
        let available_memory = Arc::new(AtomicU64::new(u64::MAX));
        Disk {
            files: MemEnv::new(),
            fails: Arc::default(),
            opened: Arc::default(),
            available_memory,
        }
    }

    fn open(&self, path: &Path, access: ReadAccess) -> Db {
        let options =
            Options::new().create_if_missing(true).env(Arc::new(self.clone())).read_access(access);
        let options =
            options.compression(Compression::None).block_size(1 << 10).block_cache_size(0);
        Db::open(path, options.seek_compaction(false)).expect("opens")
    }

    fn opened(&self) -> Vec<ReadAccess> {
        std::mem::take(&mut *self.opened.lock().expect("sound"))
    }
}

/// Tables without overlaps.
fn fill(db: &Db) {
    for table in 0..TABLES {
        for number in table * KEYS..(table + 1) * KEYS {
            db.put(key(number), value(number)).expect("writes");
        }
        db.flush().expect("flushes");
    }
    db.wait_idle().expect("rests");
}

#[test]
fn tables_are_read_with_pread_after_the_first_read_error() {
    let (disk, path) = (Disk::new(), Path::new("/db"));
    let db = disk.open(path, ReadAccess::Auto);
    fill(&db);
    for number in (0..TABLES * KEYS).step_by(KEYS as usize) {
        assert_eq!(db.get(key(number)).expect("reads"), Some(value(number)));
    }
    let opened = disk.opened();
    assert!(
        !opened.is_empty() && opened.iter().all(|access| *access != ReadAccess::Pread),
        "{opened:?}"
    );

    disk.fails.store(true, Ordering::Relaxed);
    // In a region of the table that was never loaded.
    let error = db.get(key(KEYS / 2)).expect_err("cannot be read");
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(EIO)), "{error}");
    disk.fails.store(false, Ordering::Relaxed);
    assert_eq!(disk.opened(), []);

    for number in 0..TABLES * KEYS {
        assert_eq!(db.get(key(number)).expect("reads"), Some(value(number)));
    }
    let entries: Vec<_> = db.iter().expect("iterates").collect::<Result<_>>().expect("reads");
    assert_eq!(entries.len(), (TABLES * KEYS) as usize);
    let opened = disk.opened();
    assert!(
        !opened.is_empty() && opened.len() <= TABLES as usize,
        "each table is opened once more: {opened:?}"
    );
    assert!(opened.iter().all(|access| *access == ReadAccess::Pread), "{opened:?}");
    // And what is written from now on.
    db.put(b"new", b"value").expect("writes");
    db.flush().expect("flushes");
    assert_eq!(db.get(b"new").expect("reads"), Some(b"value".to_vec()));
    assert!(disk.opened().iter().all(|access| *access == ReadAccess::Pread));
}

#[test]
fn scans_and_compactions_report_what_cannot_be_read() {
    let (disk, path) = (Disk::new(), Path::new("/db"));
    fill(&disk.open(path, ReadAccess::Auto));
    // Opened anew, so that no block is known to be resident.
    let db = disk.open(path, ReadAccess::Auto);
    assert_eq!(db.get(key(0)).expect("reads"), Some(value(0)));
    disk.fails.store(true, Ordering::Relaxed);
    let read: Vec<_> = db.iter().expect("iterates").collect();
    let (last, before) = read.split_last().expect("something");
    assert_eq!(last.as_ref().expect_err("cannot be read").kind(), ErrorKind::Io);
    for (number, entry) in before.iter().enumerate() {
        assert_eq!(entry.as_ref().expect("reads").0, key(number as u32));
    }
    disk.fails.store(false, Ordering::Relaxed);
    assert_eq!(
        db.iter().expect("iterates").filter(Result::is_ok).count(),
        (TABLES * KEYS) as usize
    );
}

#[test]
fn tables_are_read_with_pread_once_they_take_more_than_half_of_the_available_memory() {
    let (disk, path) = (Disk::new(), Path::new("/db"));
    let value = [7; 10_000];
    let accesses = |db: &Db, keys: std::ops::Range<u32>| {
        disk.opened();
        keys.for_each(|number| {
            assert!(db.get(key(number)).expect("reads").is_some_and(|found| found == value))
        });
        disk.opened()
    };
    let db = disk.open(path, ReadAccess::Auto);
    (0..1_000).for_each(|number| db.put(key(number), value).expect("writes"));
    db.flush().expect("flushes");
    db.wait_idle().expect("rests");
    assert!(accesses(&db, 0..1_000).iter().all(|access| *access != ReadAccess::Pread));
    disk.available_memory.store(30 << 20, Ordering::Relaxed);
    (1_000..2_000).for_each(|number| db.put(key(number), value).expect("writes"));
    db.flush().expect("flushes");
    db.wait_idle().expect("rests");
    let opened = accesses(&db, 0..2_000);
    assert!(
        !opened.is_empty() && opened.iter().all(|access| *access == ReadAccess::Pread),
        "{opened:?}"
    );
    // And from the beginning when it is opened again.
    db.close().expect("closes");
    let db = disk.open(path, ReadAccess::Auto);
    let opened = accesses(&db, 0..2_000);
    assert!(
        !opened.is_empty() && opened.iter().all(|access| *access == ReadAccess::Pread),
        "{opened:?}"
    );
}

#[test]
fn the_other_ways_of_reading_stay_what_they_were_asked_to_be() {
    for access in [ReadAccess::Mapped, ReadAccess::Pread] {
        let (disk, path) = (Disk::new(), Path::new("/db"));
        let db = disk.open(path, access);
        fill(&db);
        disk.fails.store(access == ReadAccess::Pread, Ordering::Relaxed);
        assert_eq!(db.get(key(25)).is_err(), access == ReadAccess::Pread);
        disk.fails.store(false, Ordering::Relaxed);
        assert_eq!(db.get(key(25)).expect("reads"), Some(value(25)));
        assert!(disk.opened().iter().all(|opened| *opened == access));
    }
}

/// As many as `max_open_files`, and more while they take little memory.
#[test]
fn mapped_tables_stay_open_beyond_max_open_files() {
    // More than LevelDB keeps open by default.
    const TABLES: u32 = 1_200;
    const ROOM: usize = 64;
    // Without memory for all of them as many as before.
    for (access, few) in [(ReadAccess::Auto, ROOM), (ReadAccess::Mapped, 1_000)] {
        stay_open(access, TABLES, ROOM, few);
    }
}

/// Opens so many tables under `max_open_files` of `room`, of which `few` stay open when they exceed
/// memory of which their indexes and filters would take more than half.
fn stay_open(access: ReadAccess, count: u32, room: usize, few: usize) {
    let (disk, path) = (Disk::new(), Path::new("/db"));
    let options = Options::new()
        .create_if_missing(true)
        .env(Arc::new(disk.clone()))
        .read_access(access)
        .max_open_files(room + 10);
    let options = options.seek_compaction(false);
    let db = Db::open(path, options.clone()).expect("opens");
    let mut rest = 1_u32;
    let value: Vec<u8> = std::iter::repeat_with(|| {
        rest = rest.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (rest >> 24) as u8
    })
    .take(20_000)
    .collect();
    for number in 0..count {
        db.put(key(number), &value).expect("writes");
        db.flush().expect("flushes");
    }
    let read_all = |db: &Db| {
        (0..count).for_each(|number| assert!(db.get(key(number)).expect("reads").is_some()));
        db.stats().open_tables
    };
    db.wait_idle().expect("rests");
    let tables = db.files().len();
    assert!(tables > 1_000, "{tables}");
    assert_eq!(read_all(&db), tables);
    disk.available_memory.store(40 << 10, Ordering::Relaxed);
    db.put(b"more", &value).expect("writes");
    db.flush().expect("flushes");
    if access == ReadAccess::Auto {
        // No reader closes all that are too many.
        assert!(db.get(key(0)).expect("reads").is_some());
        let left = db.stats().open_tables;
        assert!(left > few && left + 16 >= tables, "{left} of {tables}");
        assert!(read_all(&db) <= few);
    }
    drop(db);
    assert!(read_all(&Db::open(path, options).expect("opens")) <= few);
}

/// With a filter a run more costs lookups little, and compactions take the device and the page
/// cache from them. A seek reads a block of each run.
#[test]
fn lookups_in_more_data_than_memory_compact_nothing_that_filters_spare_them() {
    // Odd, so that whatever reads are sampled come to both halves.
    const KEYS: u32 = 2_001;
    let cases = [ReadAccess::Auto, ReadAccess::Pread].map(|access| [(access, 10), (access, 0)]);
    for (access, bits) in cases.into_iter().flatten() {
        let disk = Disk::new();
        let options = || {
            Options::new()
                .create_if_missing(true)
                .env(Arc::new(disk.clone()))
                .write_buffer_size(64 << 20)
                .read_access(access)
                .table_filter_bits(bits)
                .compression(Compression::None)
        };
        let db = Db::open("/db", options().seek_compaction(false)).expect("opens");
        let value = [7; 10_000];
        (0..KEYS).for_each(|number| db.put(key(number), value).expect("writes"));
        db.compact_range::<&[u8]>(..).expect("compacts");
        (0..KEYS).step_by(2).for_each(|number| db.put(key(number), value).expect("writes"));
        db.flush().expect("flushes");
        db.close().expect("closes");

        disk.available_memory.store(30 << 20, Ordering::Relaxed);
        let db = Db::open("/db", options()).expect("opens");
        let runs = || db.files().iter().map(|file| file.level).collect::<BTreeSet<_>>().len();
        assert_eq!(runs(), 2);
        for number in (0..KEYS).cycle().take(20_000) {
            assert!(db.get(key(number)).expect("reads").is_some());
        }
        db.wait_idle().expect("rests");
        assert_eq!(runs() == 2, bits > 0, "{access:?}, {bits} bits");
        let mut cursor = db.cursor().expect("a cursor");
        for number in (0..KEYS).cycle().take(20_000) {
            cursor.seek(key(number));
            assert!(cursor.valid());
        }
        db.wait_idle().expect("rests");
        assert_eq!(runs(), 1);
    }
}

/// A lookup in a table that is not open waits for the device before it begins.
#[test]
fn the_first_reads_of_more_data_than_memory_have_all_tables_opened() {
    const TABLES: u32 = 100;
    let disk = Disk::new();
    let options = || {
        Options::new()
            .create_if_missing(true)
            .env(Arc::new(disk.clone()))
            .compression(Compression::None)
            .seek_compaction(false)
    };
    let db = Db::open("/db", options()).expect("opens");
    for number in 0..TABLES {
        db.put(key(number), [7; 200_000]).expect("writes");
        db.flush().expect("flushes");
    }
    db.wait_idle().expect("rests");
    let tables = db.files().len();
    assert!(tables > 80, "{tables}");
    db.close().expect("closes");

    // Opened tables after a few reads of one key, by the memory that there is and `max_open_files`,
    // which is no bound where they take little.
    let opened = |available: u64, max_open_files: usize, seeks: bool| {
        disk.available_memory.store(available, Ordering::Relaxed);
        let db = Db::open("/db", options().max_open_files(max_open_files)).expect("opens");
        let mut cursor = db.cursor().expect("a cursor");
        for _ in 0..100 {
            match seeks {
                true => cursor.seek(key(1)),
                false => assert!(db.get(key(1)).expect("reads").is_some()),
            }
        }
        db.wait_idle().expect("rests");
        db.stats().open_tables
    };
    assert_eq!(opened(30 << 20, 1_000, false), tables);
    assert_eq!(opened(30 << 20, 1_000, true), tables);
    assert!(opened(u64::MAX, 1_000, false) < tables / 2);
    assert_eq!(opened(30 << 20, 74, false), tables);
    assert!(opened(100 << 10, 74, false) < 64);
}
