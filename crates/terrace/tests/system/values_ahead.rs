//! How readers of several values in value files ask the device for them, seen from the files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use terrace::{Cursor, Db, Env, MemEnv, Options, RandomAccessFile, ReadAccess, Result};
use terrace_testkit::env_methods;

const PAGE: u64 = 4096;

/// The pages of value files that are in memory, and how often the device was waited for.
#[derive(Default)]
struct Pages {
    cached: Mutex<BTreeSet<(PathBuf, u64)>>,
    all: AtomicBool,
    waits: AtomicU64,
    asked: AtomicU64,
}

impl Pages {
    /// Brings a range into memory. Whether all of it was there.
    fn bring(&self, path: &Path, offset: u64, length: usize) -> bool {
        let pages = offset / PAGE..(offset + length as u64).div_ceil(PAGE);
        let mut cached = self.cached.lock().unwrap();
        let new = pages.filter(|page| cached.insert((path.into(), *page))).count();
        new == 0 || self.all.load(Ordering::SeqCst)
    }

    fn is_cached(&self, path: &Path, offset: u64, length: usize) -> bool {
        let mut pages = offset / PAGE..(offset + length as u64).div_ceil(PAGE);
        let cached = self.cached.lock().unwrap();
        self.all.load(Ordering::SeqCst) || pages.all(|page| cached.contains(&(path.into(), page)))
    }

    /// Waits and bytes asked for since the last call. Nothing is in memory afterwards.
    fn take(&self) -> [u64; 2] {
        self.cached.lock().unwrap().clear();
        [&self.waits, &self.asked].map(|count| count.swap(0, Ordering::SeqCst))
    }
}

/// Files in memory, of which value files are as those on a disk.
#[derive(Default)]
struct Disk {
    files: MemEnv,
    pages: Arc<Pages>,
}

struct ValueFile {
    file: Arc<dyn RandomAccessFile>,
    path: PathBuf,
    pages: Arc<Pages>,
}

impl RandomAccessFile for ValueFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if !self.pages.bring(&self.path, offset, buffer.len()) {
            self.pages.waits.fetch_add(1, Ordering::SeqCst);
        }
        self.file.read_at(offset, buffer)
    }

    fn read_in_memory(&self, offset: u64, buffer: &mut [u8]) -> Option<usize> {
        let is_cached = self.pages.is_cached(&self.path, offset, buffer.len());
        is_cached.then(|| self.file.read_at(offset, buffer).ok())?
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn will_need(&self, offset: u64, length: usize) {
        self.pages.asked.fetch_add(length as u64, Ordering::SeqCst);
        self.pages.bring(&self.path, offset, length);
    }

    fn reads_in_background(&self) -> bool {
        true
    }
}

impl Env for Disk {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.files.open_random(path, access)?;
        if path.extension().is_none_or(|extension| extension != "vlog") {
            return Ok(file);
        }
        Ok(Arc::new(ValueFile { file, path: path.into(), pages: self.pages.clone() }))
    }

    env_methods! {
        create open_append exists list remove create_dir remove_dir file_size rename sync_dir
        lock schedule set_background_threads now_micros wall_clock sleep
    }
}

const KEYS: u32 = 4000;
const SIZE: usize = 6000;

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn value(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(SIZE / 4)
}

fn options(disk: Disk) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(Arc::new(disk))
        .value_log(Some(1000))
        .write_buffer_size(1 << 20)
        .seek_compaction(false)
}

/// Written in an order in which neighbouring keys lie in different value files.
fn filled() -> (Db, Arc<Pages>) {
    let disk = Disk::default();
    let pages = disk.pages.clone();
    let db = Db::open("/db", options(disk)).unwrap();
    for number in 0..KEYS {
        let number = number * 1009 % KEYS;
        db.put(key(number), value(number)).unwrap();
    }
    db.compact_range::<&[u8]>(..).unwrap();
    pages.take();
    (db, pages)
}

fn is_at(cursor: &Cursor, number: u32) {
    assert_eq!((cursor.key(), cursor.value()), (&key(number)[..], &value(number)[..]));
}

#[test]
fn a_scan_waits_for_few_of_the_values_that_it_reads() {
    let (db, pages) = filled();
    let mut cursor = db.cursor().unwrap();
    cursor.seek_to_first();
    for number in 0..KEYS {
        is_at(&cursor, number);
        cursor.next();
    }
    let [waits, asked] = pages.take();
    assert!(waits < u64::from(KEYS) / 20, "{waits} waits");
    assert!(asked < u64::from(KEYS) * (SIZE as u64 + 100), "{asked} bytes asked for");
    cursor.seek_to_last();
    for number in (0..KEYS).rev() {
        is_at(&cursor, number);
        cursor.prev();
    }
    let [waits, asked] = pages.take();
    assert!(waits < u64::from(KEYS) / 20, "{waits} waits backward");
    assert!(asked < u64::from(KEYS) * (SIZE as u64 + 100), "{asked} bytes asked for backward");
    assert_eq!(db.iter().unwrap().count() as u32, KEYS);
    assert!(pages.take()[0] < u64::from(KEYS) / 20);
}

#[test]
fn a_scan_asks_for_no_value_behind_its_bound() {
    let (db, pages) = filled();
    for backward in [false, true] {
        let entries = db.range(key(1000)..key(1070)).unwrap();
        let count = if backward { entries.rev().count() } else { entries.count() };
        assert_eq!(count, 70);
        let [waits, asked] = pages.take();
        assert!(waits < 20, "{waits} waits");
        assert!(asked < 70 * (SIZE as u64 + 100), "{asked} bytes asked for");
    }
}

#[test]
fn what_is_in_memory_is_not_asked_for() {
    let (db, pages) = filled();
    pages.all.store(true, Ordering::SeqCst);
    assert_eq!(db.iter().unwrap().count() as u32, KEYS);
    assert_eq!(pages.take(), [0, 0]);
}

/// As many as scans went on to before; nothing for a reader of single values.
#[test]
fn short_scans_ask_for_what_scans_before_have_read() {
    let (db, pages) = filled();
    // Waits and values asked for by a hundred scans of so many steps, of a cursor each.
    let scans = |steps: u32| {
        pages.take();
        let mut counts = [0, 0];
        for number in 0..100 {
            let from = number * 7919 % (KEYS - 100);
            let mut cursor = db.cursor().unwrap();
            cursor.seek(key(from));
            for number in from..from + steps {
                is_at(&cursor, number);
                cursor.next();
            }
            is_at(&cursor, from + steps);
            drop(cursor);
            let [waits, asked] = pages.take();
            counts = [counts[0] + waits, counts[1] + asked / SIZE as u64];
        }
        counts
    };
    assert_eq!(scans(0), [100, 0]);
    for _ in 0..3 {
        scans(10);
    }
    let [waits, asked] = scans(10);
    assert!(waits < 200 && asked < 1150, "{waits} waits for 1100 values, {asked} asked for");
    for _ in 0..8 {
        scans(0);
    }
    assert_eq!(scans(0), [100, 0]);
    // One long scan is no habit.
    assert_eq!(db.iter().unwrap().count() as u32, KEYS);
    assert_eq!(scans(0), [100, 0]);
}

/// Which of several runs has the next entry is not known, so each is asked for as many.
#[test]
fn short_scans_of_several_runs_wait_for_few_values() {
    let (db, pages) = filled();
    for number in (0..KEYS).filter(|number| number % 3 == 1) {
        db.put(key(number), value(number)).unwrap();
    }
    db.flush().unwrap();
    let scans = || {
        pages.take();
        let mut counts = [0, 0];
        for number in 0..300 {
            let mut cursor = db.cursor().unwrap();
            cursor.seek(key(number * 7919 % (KEYS - 100)));
            (0..10).for_each(|_| cursor.next());
            assert!(cursor.valid());
            let [waits, asked] = pages.take();
            counts = [counts[0] + waits, counts[1] + asked / SIZE as u64];
        }
        counts
    };
    scans();
    let [waits, asked] = scans();
    println!("{waits} waits, {asked} asked for");
    assert!(waits < 300 * 4 && asked < 300 * 25, "{waits} waits, {asked} asked for, of 3300");
}

/// Pointers here and there among values that are in the tables.
#[test]
fn a_scan_of_few_pointers_asks_for_them() {
    let disk = Disk::default();
    let pages = disk.pages.clone();
    let db = Db::open("/db", options(disk)).unwrap();
    let is_large = |number: u32| number.is_multiple_of(10);
    for number in 0..KEYS {
        let value = if is_large(number) { value(number) } else { b"small".to_vec() };
        db.put(key(number), value).unwrap();
    }
    db.compact_range::<&[u8]>(..).unwrap();
    for backward in [false, true] {
        pages.take();
        let entries = db.iter().unwrap();
        let count = if backward { entries.rev().count() } else { entries.count() };
        let [waits, asked] = pages.take();
        assert_eq!(count as u32, KEYS);
        let large = u64::from(KEYS / 10);
        assert!(waits < large / 5, "{waits} waits for {large} values");
        assert!(asked < large * (SIZE as u64 + 100), "{asked} bytes asked for");
    }
}

/// A scan of a cursor that has looked ahead to the end of the same block before.
#[test]
fn a_scan_from_before_the_last_one_waits_for_few_values() {
    let (db, pages) = filled();
    let mut cursor = db.cursor().unwrap();
    cursor.seek(key(100));
    (0..200).for_each(|_| cursor.next());
    for from in (0..300).rev().step_by(10) {
        pages.take();
        cursor.seek(key(from));
        (0..100).for_each(|_| cursor.next());
        is_at(&cursor, from + 100);
        let [waits, _] = pages.take();
        assert!(waits < 25, "{waits} waits for 101 values from {from}");
        // And back, from the other end.
        (0..100).for_each(|_| cursor.prev());
        is_at(&cursor, from);
        let [waits, _] = pages.take();
        assert!(waits < 25, "{waits} waits for 100 values before {}", from + 100);
    }
}

/// A cursor that turns at each step is no scan.
#[test]
fn a_cursor_that_turns_asks_for_little() {
    let (db, pages) = filled();
    let mut cursor = db.cursor().unwrap();
    cursor.seek(key(100));
    (0..100).for_each(|_| cursor.next());
    pages.take();
    for _ in 0..100 {
        cursor.prev();
        cursor.next();
    }
    is_at(&cursor, 200);
    let [_, asked] = pages.take();
    assert!(asked < 100 * SIZE as u64, "{asked} bytes asked for by 200 turns");
}

#[test]
fn lookups_of_several_keys_wait_for_one_of_a_group() {
    let (db, pages) = filled();
    let keys: Vec<_> = (0..200).map(|number| number * 17).collect();
    let found = db.multi_get(&keys.iter().map(|&number| key(number)).collect::<Vec<_>>()).unwrap();
    let [waits, asked] = pages.take();
    assert!(found.into_iter().eq(keys.iter().map(|&number| Some(value(number)))));
    assert!(waits <= 200 / 8 + 1, "{waits} waits for 200 values");
    assert!(asked <= 200 * (SIZE as u64 + 100), "{asked} bytes asked for");
    pages.all.store(true, Ordering::SeqCst);
    db.multi_get(&[key(1), key(2)]).unwrap();
    assert_eq!(pages.take(), [0, 0]);
}

/// More bytes than the device is asked for at once.
#[test]
fn lookups_of_large_values_ask_again() {
    let disk = Disk::default();
    let pages = disk.pages.clone();
    let db = Db::open("/db", options(disk)).unwrap();
    for number in 0..16 {
        db.put(key(number), vec![number as u8; 300_000]).unwrap();
    }
    db.compact_range::<&[u8]>(..).unwrap();
    pages.take();
    let keys: Vec<_> = (0..16).map(key).collect();
    assert!(db.multi_get(&keys).unwrap().iter().flatten().all(|value| value.len() == 300_000));
    let [waits, _] = pages.take();
    assert!(waits <= 4, "{waits} waits for 16 values");
}

/// Garbage collection copies what is left of value files.
#[test]
fn compactions_wait_for_few_of_the_values_that_they_copy() {
    let (db, pages) = filled();
    for number in (0..KEYS).filter(|number| number % 4 > 0) {
        db.delete(key(number)).unwrap();
    }
    pages.take();
    db.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    let [waits, asked] = pages.take();
    assert!(asked > u64::from(KEYS) / 8 * SIZE as u64, "{asked} bytes asked for");
    assert!(waits < u64::from(KEYS) / 4 / 5, "{waits} waits for {} values", KEYS / 4);
    let left = db.iter().unwrap().map(|entry| entry.unwrap().1);
    assert!(left.eq((0..KEYS).step_by(4).map(value)));
}

/// A check reads every value.
#[test]
fn checks_wait_for_few_of_the_values_that_they_read() {
    let (db, pages) = filled();
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    let [waits, _] = pages.take();
    assert!(waits < u64::from(KEYS) / 5, "{waits} waits for {KEYS} values");
}
