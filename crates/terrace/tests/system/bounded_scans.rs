//! What a scan reads behind its bounds, seen from the files: next to nothing, though all of it is
//! deleted.

use std::ops::Bound::{Excluded, Included};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{ThreadId, current};

use terrace::{
    Compression, Db, Env, KeyspaceOptions, MemEnv, Options, RandomAccessFile, ReadAccess,
    ReadOptions, Result, Snapshot, WriteOptions,
};
use terrace_testkit::env_methods;

/// Files in memory, and the bytes that one thread has read from tables: compactions do not count.
#[derive(Clone)]
struct Disk {
    files: Arc<MemEnv>,
    reader: ThreadId,
    read: Arc<AtomicU64>,
}

impl Disk {
    fn new() -> Self {
        Disk { files: Arc::default(), reader: current().id(), read: Arc::default() }
    }
}

struct Counted {
    file: Arc<dyn RandomAccessFile>,
    disk: Disk,
}

impl RandomAccessFile for Counted {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if current().id() == self.disk.reader {
            self.disk.read.fetch_add(buffer.len() as u64, Ordering::SeqCst);
        }
        self.file.read_at(offset, buffer)
    }

    fn size(&self) -> u64 {
        self.file.size()
    }
}

impl Env for Disk {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.files.open_random(path, access)?;
        Ok(Arc::new(Counted { file, disk: self.clone() }))
    }

    env_methods! {
        create open_append exists list remove create_dir remove_dir file_size rename sync_dir
        lock schedule set_background_threads now_micros wall_clock sleep
    }
}

const DELETED: u32 = 40_000;

fn deleted(number: u32) -> String {
    format!("m{number:06}")
}

fn open(disk: &Disk) -> Db {
    let options = Options::new()
        .create_if_missing(true)
        .env(Arc::new(disk.clone()))
        .read_access(ReadAccess::Pread)
        .compression(Compression::None)
        .block_cache_size(0)
        .seek_compaction(false);
    Db::open("/db", options).unwrap()
}

/// A database with many tombstones, and the snapshot for which compactions keep them.
struct Filled {
    disk: Disk,
    db: Db,
    before: Snapshot,
}

/// Many tombstones, and entries before and behind them.
fn filled() -> Filled {
    let disk = Disk::new();
    let db = open(&disk);
    for side in ["a", "b", "y", "z"] {
        db.put(side, "there").unwrap();
    }
    (0..DELETED).for_each(|number| db.put(deleted(number), "soon gone").unwrap());
    let before = db.snapshot();
    (0..DELETED).for_each(|number| db.delete(deleted(number)).unwrap());
    db.flush().unwrap();
    Filled { disk, db, before }
}

impl Filled {
    /// Returns the bytes that `scan` reads from tables that are open, where no range is known to be
    /// deleted, and what it returns.
    fn counted<R>(&self, scan: impl FnOnce(&Db) -> R) -> (u64, R) {
        let db = &self.db;
        for key in ["a", "m", "z"] {
            db.get(key).unwrap();
        }
        // A load leaves no known deleted ranges.
        let mut load = db.bulk_load().unwrap();
        load.put("0", "").unwrap();
        load.finish().unwrap();
        db.wait_idle().unwrap();
        self.disk.read.store(0, Ordering::SeqCst);
        let result = scan(db);
        (self.disk.read.load(Ordering::SeqCst), result)
    }
}

/// Without what loads have put in front.
fn all_from_a(db: &Db) -> usize {
    db.range("a"..).unwrap().count()
}

/// A few blocks of some hundreds.
const FEW: u64 = 50_000;

#[test]
fn a_bounded_scan_reads_nothing_behind_its_end() {
    let filled = filled();
    let (all, count) = filled.counted(all_from_a);
    assert_eq!(count, 4);
    assert!(all > 20 * FEW, "{all} bytes in all");
    type Scan = fn(&Db) -> usize;
    let scans: [(&str, usize, Scan); 21] = [
        ("cursor, upper bound", 2, |db| {
            let mut cursor = db.cursor_with(&ReadOptions::new().upper_bound("c")).unwrap();
            cursor.seek("a");
            std::iter::from_fn(|| cursor.valid().then(|| cursor.next())).count()
        }),
        ("cursor, upper bound, sought in front of it", 0, |db| {
            let mut cursor = db.cursor_with(&ReadOptions::new().upper_bound("d")).unwrap();
            cursor.seek("c");
            usize::from(cursor.valid())
        }),
        ("cursor, lower bound", 2, |db| {
            let mut cursor = db.cursor_with(&ReadOptions::new().lower_bound("x")).unwrap();
            cursor.seek_to_last();
            std::iter::from_fn(|| cursor.valid().then(|| cursor.prev())).count()
        }),
        ("cursor, lower bound, sought behind it", 0, |db| {
            let mut cursor = db.cursor_with(&ReadOptions::new().lower_bound("w")).unwrap();
            cursor.seek_for_prev("x");
            usize::from(cursor.valid())
        }),
        ("cursor, the last before an upper bound", 1, |db| {
            let mut cursor = db.cursor_with(&ReadOptions::new().upper_bound("c")).unwrap();
            cursor.seek_to_last();
            usize::from(cursor.key() == b"b")
        }),
        ("cursor, the last before a key", 1, |db| {
            let mut cursor = db.cursor().unwrap();
            cursor.seek_for_prev("c");
            usize::from(cursor.key() == b"b")
        }),
        ("cursor, bounds among deleted keys", 0, |db| {
            let bounds = ReadOptions::new().lower_bound(deleted(20_000));
            let mut cursor = db.cursor_with(&bounds.upper_bound(deleted(20_020))).unwrap();
            cursor.seek_to_first();
            usize::from(cursor.valid())
        }),
        ("cursor, bounds among deleted keys, backward", 0, |db| {
            let bounds = ReadOptions::new().lower_bound(deleted(20_000));
            let mut cursor = db.cursor_with(&bounds.upper_bound(deleted(20_020))).unwrap();
            cursor.seek_to_last();
            usize::from(cursor.valid())
        }),
        ("cursor, sought among deleted keys", 0, |db| {
            let bounds = ReadOptions::new().lower_bound(deleted(20_000));
            let mut cursor = db.cursor_with(&bounds.upper_bound(deleted(20_020))).unwrap();
            cursor.seek_for_prev(deleted(20_010));
            usize::from(cursor.valid())
        }),
        ("range", 2, |db| db.range("a".."c").unwrap().count()),
        ("range, its end included", 2, |db| db.range("a"..="c").unwrap().count()),
        ("range, backward", 2, |db| db.range("x"..).unwrap().rev().count()),
        ("range, backward, its start left out", 2, |db| {
            db.range::<&str>((Excluded("x"), Included("z"))).unwrap().rev().count()
        }),
        ("range, backward from the end", 2, |db| db.range("a".."c").unwrap().rev().count()),
        ("range of a snapshot", 2, |db| db.snapshot().range("a".."c").unwrap().count()),
        ("prefix", 1, |db| db.prefix("b").unwrap().count()),
        ("prefix, backward", 1, |db| db.prefix("y").unwrap().rev().count()),
        ("transaction", 2, |db| {
            let mut transaction = db.transaction();
            transaction.delete("c");
            transaction.range("a".."d").count()
        }),
        ("transaction, backward", 2, |db| db.transaction().range("x"..).rev().count()),
        ("pop, first", 0, |db| {
            let popped = db.pop_first_in("c".."d", WriteOptions::new()).unwrap();
            usize::from(popped.is_some())
        }),
        ("pop, last", 0, |db| {
            let popped = db.pop_last_in("w".."x", WriteOptions::new()).unwrap();
            usize::from(popped.is_some())
        }),
    ];
    for (name, expected, scan) in scans {
        let (read, count) = filled.counted(scan);
        assert_eq!(count, expected, "{name}");
        assert!(read < FEW, "{name}: {read} bytes of {all}");
    }
    let (still, _) = filled.counted(all_from_a);
    assert!(still > 20 * FEW, "{still} bytes in all");
    let (read, ()) = filled.counted(|db| db.delete_range("c".."d").unwrap());
    assert!(read < FEW, "deletion of a range: {read} bytes of {all}");
}

#[test]
fn a_scan_of_a_keyspace_reads_nothing_of_its_neighbours() {
    let disk = Disk::new();
    let db = open(&disk);
    let [before, queue, behind] =
        ["c", "m", "x"].map(|name| db.create_keyspace(name, KeyspaceOptions::new()).unwrap());
    before.put("1", "there").unwrap();
    behind.put("1", "there").unwrap();
    (0..DELETED).for_each(|number| queue.put(deleted(number), "soon gone").unwrap());
    let before = db.snapshot();
    (0..DELETED).for_each(|number| queue.delete(deleted(number)).unwrap());
    db.flush().unwrap();
    let filled = Filled { disk, db, before };
    let (all, _) = filled.counted(|db| db.iter().unwrap().count());
    assert!(all > 20 * FEW, "{all} bytes in all");
    let of = |name: &'static str, backward: bool| {
        filled.counted(move |db| {
            let keyspace = db.keyspace(name).unwrap();
            let mut cursor = keyspace.cursor().unwrap();
            if backward {
                cursor.seek_to_last();
                cursor.prev();
                let entries = keyspace.iter().unwrap();
                (cursor.valid(), entries.rev().count())
            } else {
                cursor.seek_to_first();
                cursor.next();
                (cursor.valid(), keyspace.iter().unwrap().count())
            }
        })
    };
    for (name, backward) in [("c", false), ("c", true), ("x", false), ("x", true)] {
        let (read, found) = of(name, backward);
        assert_eq!(found, (false, 1), "{name}");
        assert!(read < FEW, "{name}, backward {backward}: {read} bytes of {all}");
    }
}

/// A known deleted range that goes on behind the bound is skipped up to the bound, not to its end.
#[test]
fn a_bounded_scan_skips_no_farther_than_to_its_bound() {
    let Filled { disk, db, before } = filled();
    for _ in 0..4 {
        assert_eq!(all_from_a(&db), 4);
        assert_eq!(db.range("a"..).unwrap().rev().count(), 4);
    }
    let bounds = ReadOptions::new().lower_bound(deleted(10_000)).upper_bound(deleted(30_000));
    disk.read.store(0, Ordering::SeqCst);
    for _ in 0..4 {
        let mut cursor = db.cursor_with(&bounds).unwrap();
        cursor.seek_to_first();
        assert!(!cursor.valid());
        cursor.seek_to_last();
        assert!(!cursor.valid());
        cursor.status().unwrap();
    }
    let read = disk.read.load(Ordering::SeqCst);
    assert!(read < 8 * FEW, "{read} bytes");
    // What was noted of it holds: nothing is hidden that is put there.
    for (number, edge) in [9_999, 10_000, 20_000, 29_999, 30_000].into_iter().enumerate() {
        db.put(deleted(edge), "back").unwrap();
        assert_eq!(all_from_a(&db), 5 + number);
        assert_eq!(db.range("a"..).unwrap().rev().count(), 5 + number);
    }
    let within = db.range(deleted(10_000)..deleted(30_000)).unwrap();
    assert_eq!(within.count(), 3);
    drop(before);
    db.close().unwrap();
}

/// Scans of a range in which all is deleted are repeated; so is what they note of it.
#[test]
fn a_range_that_was_found_deleted_up_to_its_bounds_is_skipped() {
    for backward in [false, true] {
        let Filled { disk, db, before } = filled();
        let scan = || {
            disk.read.store(0, Ordering::SeqCst);
            let range = db.range(deleted(5_000)..deleted(35_000)).unwrap();
            assert_eq!(if backward { range.rev().count() } else { range.count() }, 0);
            disk.read.load(Ordering::SeqCst)
        };
        let first = scan();
        scan();
        let third = scan();
        assert!(first > 10 * FEW && third < FEW, "{first} bytes at first, {third} in the end");
        db.put(deleted(20_000), "back").unwrap();
        assert_eq!(db.range(deleted(5_000)..deleted(35_000)).unwrap().count(), 1);
        drop(before);
        db.close().unwrap();
    }
}

/// Damage among deleted keys behind the end is none of a scan.
#[test]
fn damage_behind_the_bound_is_not_shown() {
    let Filled { disk, db, before } = filled();
    drop(before);
    db.close().unwrap();
    for file in disk.files.list(Path::new("/db")).unwrap() {
        let path = Path::new("/db").join(&file);
        if file.ends_with(".ldb") {
            let mut bytes = disk.files.read(&path).unwrap();
            // Blocks in the middle.
            let middle = bytes.len() / 3;
            bytes[middle..middle + 10_000].fill(0x55);
            disk.files.write(&path, bytes);
        }
    }
    let db = open(&disk);
    assert!(db.iter().unwrap().any(|entry| entry.is_err()));
    assert!(db.iter().unwrap().rev().any(|entry| entry.is_err()));
    let all = |entries: terrace::Entries| entries.collect::<Result<Vec<_>>>().unwrap().len();
    let back = |entries: terrace::Entries| entries.rev().collect::<Result<Vec<_>>>().unwrap().len();
    assert_eq!(all(db.range("a".."c").unwrap()), 2);
    assert_eq!(back(db.range("a".."c").unwrap()), 2);
    assert_eq!(back(db.range("x".."zz").unwrap()), 2);
    assert_eq!(all(db.range("x".."zz").unwrap()), 2);
    let mut cursor = db.cursor_with(&ReadOptions::new().lower_bound("x").upper_bound("z")).unwrap();
    cursor.seek_to_last();
    assert_eq!(cursor.key(), b"y");
    cursor.prev();
    assert!(!cursor.valid());
    cursor.status().unwrap();
    cursor.seek("y");
    assert_eq!(cursor.key(), b"y");
    cursor.next();
    assert!(!cursor.valid());
    cursor.status().unwrap();
}

/// A new name is looked for among keys, and the next ones are all deleted.
#[test]
fn a_keyspace_is_created_without_a_look_at_the_deletions_of_another_one() {
    let disk = Disk::new();
    let db = open(&disk);
    let key = |number: u32| format!("!jobs!{number:06}");
    (0..DELETED).for_each(|number| db.put(key(number), "soon gone").unwrap());
    let before = db.snapshot();
    (0..DELETED).for_each(|number| db.delete(key(number)).unwrap());
    db.put("z", "there").unwrap();
    db.flush().unwrap();
    for key in [key(0).as_str(), "z"] {
        db.get(key).unwrap();
    }
    disk.read.store(0, Ordering::SeqCst);
    db.create_keyspace("jobr", KeyspaceOptions::new()).unwrap();
    let read = disk.read.load(Ordering::SeqCst);
    assert!(read < FEW, "{read} bytes");
    drop(before);
}
