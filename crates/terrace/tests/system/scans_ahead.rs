//! How scans, and lookups of several keys, read ahead of themselves, seen from the files: what they ask for, read and open.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrace::{Compression, Db, Env, MemEnv, Options, RandomAccessFile, ReadAccess, Result};
use terrace_testkit::env_methods;

/// Bytes read and asked for, tables opened, and ends of tables asked for.
#[derive(Default)]
struct Counts {
    read: AtomicU64,
    asked: AtomicU64,
    opened: AtomicU64,
    ends: AtomicU64,
    /// Requests since the last read, and the most of them before one.
    in_a_row: AtomicU64,
    most_in_a_row: AtomicU64,
}

impl Counts {
    fn take(&self) -> [u64; 4] {
        [&self.read, &self.asked, &self.opened, &self.ends]
            .map(|count| count.swap(0, Ordering::SeqCst))
    }
}

/// Files in memory that take hints as those on a disk do.
#[derive(Default)]
struct Disk {
    files: MemEnv,
    counts: Arc<Counts>,
    memory: Option<u64>,
}

struct Counted {
    file: Arc<dyn RandomAccessFile>,
    counts: Arc<Counts>,
}

impl RandomAccessFile for Counted {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.counts.read.fetch_add(buffer.len() as u64, Ordering::SeqCst);
        let in_a_row = self.counts.in_a_row.swap(0, Ordering::SeqCst);
        self.counts.most_in_a_row.fetch_max(in_a_row, Ordering::SeqCst);
        self.file.read_at(offset, buffer)
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn will_need(&self, offset: u64, length: usize) {
        self.counts.asked.fetch_add(length as u64, Ordering::SeqCst);
        self.counts.in_a_row.fetch_add(1, Ordering::SeqCst);
        if offset + length as u64 == self.size() {
            self.counts.ends.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn reads_in_background(&self) -> bool {
        true
    }
}

impl Env for Disk {
    fn open_random(&self, path: &Path, access: ReadAccess) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.files.open_random(path, access)?;
        if path.extension().is_none_or(|extension| extension != "ldb") {
            return Ok(file);
        }
        self.counts.opened.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(Counted { file, counts: self.counts.clone() }))
    }

    fn available_memory(&self) -> Option<u64> {
        self.memory
    }

    env_methods! {
        create open_append exists list remove create_dir remove_dir file_size rename sync_dir
        lock schedule set_background_threads now_micros wall_clock sleep
    }
}

const KEYS: u32 = 30_000;

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// Four tables of three megabytes in one level, whose blocks no cache holds.
fn filled() -> (Db, Arc<Counts>) {
    filled_on(Disk::default())
}

/// [`filled`], on this disk.
fn filled_on(disk: Disk) -> (Db, Arc<Counts>) {
    let counts = disk.counts.clone();
    let options = Options::new()
        .create_if_missing(true)
        .env(Arc::new(disk))
        .read_access(ReadAccess::Pread)
        .compression(Compression::None)
        .block_cache_size(0)
        .seek_compaction(false);
    let db = Db::open("/db", options).unwrap();
    for number in 0..KEYS {
        db.put(key(number), [number as u8; 400]).unwrap();
    }
    db.compact_range::<&[u8]>(..).unwrap();
    counts.take();
    (db, counts)
}

/// [`filled_on`], and as much behind it: enough to be compared with the memory that there is.
fn filled_twice(disk: Disk) -> (Db, Arc<Counts>) {
    let (db, counts) = filled_on(disk);
    for number in KEYS..2 * KEYS {
        db.put(key(number), [number as u8; 400]).unwrap();
    }
    db.compact_range::<&[u8]>(..).unwrap();
    counts.take();
    (db, counts)
}

#[test]
fn a_scan_asks_for_all_it_reads_and_reads_it_once() {
    let (db, counts) = filled();
    let size: u64 = db.files().iter().map(|file| file.size).sum();
    for backwards in [false, true] {
        let entries = db.iter().unwrap();
        let count = if backwards { entries.rev().count() } else { entries.count() };
        assert_eq!(count as u32, KEYS);
        let [read, asked, ..] = counts.take();
        assert!(read < size + size / 10, "{read} bytes of {size}");
        assert!(asked > size - size / 10 && asked < size + size / 10, "{asked} bytes of {size}");
    }
}

/// A cursor that has scanned does not take seeks to neighbouring tables for a scan.
#[test]
fn seeks_after_a_scan_read_no_more_than_others() {
    let (db, counts) = filled();
    let mut tables: Vec<_> = db.files().into_iter().map(|file| file.smallest).collect();
    tables.sort();
    let border = String::from_utf8_lossy(&tables[2][3..9]).parse::<u32>().unwrap();
    let run = |scans_before: bool| {
        let mut cursor = db.cursor().unwrap();
        if scans_before {
            cursor.seek(key(border - 2000));
            (0..60).for_each(|_| cursor.next());
        }
        counts.take();
        for number in 0..200 {
            let away = 200 + number * 7919 % 2500;
            cursor.seek(key(if number % 2 == 0 { border + away } else { border - away }));
            assert!(cursor.valid());
        }
        counts.take()
    };
    run(false);
    let ([read, asked, opened, _], after_a_scan) = (run(false), run(true));
    assert!(after_a_scan[0] <= read + read / 10, "{after_a_scan:?} bytes read, {read} without");
    assert!(after_a_scan[1] <= asked + (1 << 20), "{after_a_scan:?} bytes asked for, {asked}");
    assert!(after_a_scan[2] <= opened + 1, "{after_a_scan:?} tables opened, {opened}");
}

/// What a scan has asked for in the next table says nothing about one that comes there from the other
/// side.
#[test]
fn a_scan_that_comes_from_the_other_side_asks_for_all_it_reads() {
    let (db, counts) = filled();
    let mut tables: Vec<_> = db.files().into_iter().map(|file| file.smallest).collect();
    tables.sort();
    let first = |table: usize| String::from_utf8_lossy(&tables[table][3..9]).parse().unwrap();
    let (first, second, third): (u32, u32, u32) = (first(1), first(2), first(3));
    let mut cursor = db.cursor().unwrap();
    // Into table 1, so that the beginning of table 2 is asked for.
    cursor.seek(key(first - 300));
    (0..600).for_each(|_| cursor.next());
    cursor.seek(key(third + 300));
    counts.take();
    (0..third + 300 - second).for_each(|_| cursor.prev());
    assert_eq!(cursor.key(), key(second));
    let [read, asked, ..] = counts.take();
    assert!(asked > read - read / 10, "{asked} bytes asked for of {read}");
}

/// Each block that a short scan goes on to would be waited for, one after the other.
#[test]
fn seeks_ask_for_the_blocks_that_scans_went_on_to_before() {
    let (db, counts) = filled();
    // Bytes asked for by a seek and those read by it and so many steps, of a cursor each.
    let scans = |steps: u32, backward: bool| {
        let (mut asked, mut read) = (0, 0);
        for number in 0..100_u32 {
            let mut cursor = db.cursor().unwrap();
            let from = 50 + number * 7919 % (KEYS - 100);
            counts.take();
            cursor.seek(key(from));
            asked += counts.asked.load(Ordering::SeqCst);
            (0..steps).for_each(|_| if backward { cursor.prev() } else { cursor.next() });
            assert_eq!(cursor.key(), key(if backward { from - steps } else { from + steps }));
            read += counts.take()[0];
        }
        [asked / 100, read / 100]
    };
    // Opens the tables.
    scans(0, false);
    let alone = scans(0, false);
    assert!(alone[0] < 5_000, "{alone:?} bytes asked for and read");
    scans(12, false);
    let [asked, read] = scans(12, false);
    assert!(read > 8_000 && asked > 8_000 && asked < 2 * read, "{asked} bytes asked for, {read}");
    // What lies before is not behind.
    scans(12, true);
    let backward = scans(12, true);
    assert!(backward[0] < 5_000 && backward[1] > 8_000, "{backward:?} bytes asked for and read");
    assert_eq!(scans(0, false), alone);
}

/// Where the tables exceed memory, the first reads have all of them opened, and the device reads
/// several of their ends at a time.
#[test]
fn tables_are_opened_before_they_are_needed() {
    let (db, counts) = filled_twice(Disk { memory: Some(8 << 20), ..Disk::default() });
    for _ in 0..1000 {
        assert!(db.get(key(1)).unwrap().is_some());
    }
    db.wait_idle().unwrap();
    let tables = db.files().len() as u64;
    assert_eq!(db.stats().open_tables as u64, tables);
    // By the table that is opened, and before that, but for the one that the gets opened.
    let [.., ends] = counts.take();
    assert!(ends >= 2 * (tables - 1), "{ends} ends asked for of {tables} tables");
}

/// Where data exceed memory the device is asked for the blocks of 64 keys before one is waited for.
#[test]
fn lookups_of_several_keys_ask_for_all_they_read() {
    for (memory, at_once) in [(None, 16), (Some(8 << 20), 64)] {
        let (db, counts) = filled_twice(Disk { memory, ..Disk::default() });
        // The tables are open before.
        for number in (0..1000).map(|number| number * 2 * KEYS / 1000) {
            assert!(db.get(key(number)).unwrap().is_some());
        }
        db.wait_idle().unwrap();
        counts.take();
        for store in [&counts.in_a_row, &counts.most_in_a_row] {
            store.store(0, Ordering::SeqCst);
        }
        // No two in one block, and none of every third.
        let numbers: Vec<_> = (0..200).map(|number| (number * 7919) % KEYS).collect();
        let name = |number: u32| match number % 3 {
            0 => [&key(number)[..], b"."].concat(),
            _ => key(number),
        };
        let keys: Vec<_> = numbers.iter().map(|&number| name(number)).collect();
        for (number, value) in numbers.iter().zip(db.multi_get(&keys).unwrap()) {
            let wanted = (number % 3 != 0).then(|| vec![*number as u8; 400]);
            assert_eq!(value, wanted, "{number}");
        }
        let [read, asked, ..] = counts.take();
        let found = keys.iter().filter(|key| key.len() == 9).count() as u64;
        assert!(read >= found * 4000 && asked + found >= read, "{read} bytes, {asked} asked for");
        let most = counts.most_in_a_row.load(Ordering::SeqCst);
        assert!(most > at_once / 2 && most <= at_once, "{most} in a row with {memory:?}");
    }
}
