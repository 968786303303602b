//! Tables that are closed for want of memory: what their filters spare, and what these take.

use std::thread;

use terrace::{BlockCache, Db, MemoryBudget, Options, ReadOptions};
use terrace_testkit::rng::Rng;

use crate::open_files::{Disk, key};

const TABLES: u32 = 320;
/// Keys in a table. Those between them are absent.
const KEYS: u32 = 100;
/// Tables that stay open however little memory there is.
const FEW: usize = 64;

fn present(table: u32, at: u32) -> Vec<u8> {
    [&key(table)[..], format!("-{at:03}").as_bytes()].concat()
}

fn absent(table: u32, at: u32) -> Vec<u8> {
    [&present(table, at)[..], b"?"].concat()
}

fn value(table: u32, at: u32, round: u32) -> Vec<u8> {
    Rng::new(u64::from(table * KEYS + at) << 8 | u64::from(round)).bytes(50)
}

/// Writes every table's keys and flushes them. Tables overlap in no key, so that compactions only move
/// them.
fn write(db: &Db, round: u32) {
    for table in 0..TABLES {
        for at in 0..KEYS {
            db.put(present(table, at), value(table, at, round)).expect("writes");
        }
        db.flush().expect("flushes");
    }
    db.wait_idle().expect("rests");
}

/// A database of many tables on `disk`, and the memory that they take when they are open.
fn create(disk: &Disk) -> usize {
    let db = Db::open("/db", options(disk)).expect("opens");
    write(&db, 0);
    assert!(db.files().len() > 2 * FEW, "{} tables", db.files().len());
    (0..TABLES).for_each(|table| check(&db, table, 0, 0));
    assert_eq!(db.stats().open_tables, db.files().len());
    db.stats().table_memory_bytes as usize
}

fn options(disk: &Disk) -> Options {
    disk.options().max_open_files(1_000).max_file_size(16 << 10)
}

/// Opens the database and has its tables weighed, where `available` bytes of memory are. Half of
/// them may be indexes and filters.
fn open_with(disk: &Disk, available: usize) -> Db {
    let db = Db::open("/db", options(disk)).expect("opens");
    db.put(b"large", vec![7; 17 << 20]).expect("writes");
    disk.limit_memory(available);
    db.flush().expect("flushes");
    db.wait_idle().expect("rests");
    db
}

fn check(db: &Db, table: u32, at: u32, round: u32) {
    let found = db.get(present(table, at)).expect("reads");
    assert_eq!(found, Some(value(table, at, round)), "{table} {at}");
}

fn check_all(db: &Db, round: u32) {
    for table in 0..TABLES {
        check(db, table, table % KEYS, round);
    }
}

#[test]
fn a_closed_table_is_not_opened_for_a_key_that_its_filter_rejects() {
    let disk = Disk::new();
    let of_all = create(&disk);
    let db = open_with(&disk, of_all);
    check_all(&db, 0);
    // Opening ahead.
    db.wait_idle().expect("rests");
    let stats = db.stats();
    let closed = db.files().len() - stats.open_tables;
    assert!(closed > TABLES as usize / 4, "{stats:?}");
    assert!(stats.table_memory_bytes as usize <= of_all / 2, "{stats:?}");
    disk.counts.take();

    for table in 0..TABLES {
        assert_eq!(db.get(absent(table, 7)).expect("reads"), None);
        let keys = [absent(table, 8), absent(table, 9)];
        assert_eq!(db.multi_get(&keys).expect("reads"), [None, None]);
        let found = db.get_in_memory(absent(table, 10), &mut Vec::new(), &ReadOptions::new());
        // Unless a filter is wrong, which is then not known without the table.
        assert!(matches!(found.expect("reads"), Some(false) | None));
    }
    let [opened, _] = disk.counts.take();
    // One filter in a hundred is wrong.
    assert!(opened < 3 * TABLES as usize / 20, "{opened} files opened");
    let useful = db.stats().filter_useful - stats.filter_useful;
    assert!(useful > 38 * u64::from(TABLES) / 10, "{useful} lookups spared");
    let in_memory = (0..TABLES).filter(|&table| {
        let found = db.get_in_memory(absent(table, 11), &mut Vec::new(), &ReadOptions::new());
        found.expect("reads") == Some(false)
    });
    assert!(in_memory.count() > 9 * TABLES as usize / 10);
    assert!(db.stats().table_memory_bytes as usize <= of_all / 2);
    check_all(&db, 0);
}

#[test]
fn filters_take_what_is_left_beside_the_few_tables_that_stay_open() {
    let disk = Disk::new();
    let of_all = create(&disk);
    let a_table = of_all / TABLES as usize;
    let db = open_with(&disk, of_all / 20);
    check_all(&db, 0);
    let stats = db.stats();
    assert!(stats.open_tables <= FEW, "{stats:?}");
    let all = stats.table_memory_bytes as usize;
    assert!(all <= (FEW + 1) * a_table, "{stats:?}, {a_table} a table");
    check_all(&db, 0);
}

/// What filters take is counted until they are gone, and no longer, whatever becomes of their
/// tables.
#[test]
fn as_many_tables_stay_open_after_all_were_replaced_many_times() {
    let disk = Disk::new();
    let of_all = create(&disk);
    let db = open_with(&disk, of_all);
    check_all(&db, 0);
    let open = db.stats().open_tables;
    for round in 1..=8 {
        db.delete_range::<&[u8]>(..).expect("deletes");
        write(&db, round);
        check_all(&db, round);
        check_all(&db, round);
        let stats = db.stats();
        assert!(stats.table_memory_bytes as usize <= of_all / 2, "{stats:?}");
        assert!(stats.open_tables >= open * 9 / 10, "round {round}: {open} before, {stats:?}");
    }
}

/// A block in the cache is of no use while its table is closed.
#[test]
fn tables_that_do_not_fit_beside_the_cache_take_up_to_half_of_it() {
    let disk = Disk::new();
    let of_all = create(&disk);
    for (capacity, fits) in [(of_all / 2, false), (2 * of_all, true)] {
        let cache = BlockCache::new(capacity);
        disk.limit_memory(usize::MAX);
        let db = Db::open("/db", options(&disk).block_cache(Some(cache.clone()))).expect("opens");
        db.put(b"large", vec![7; 17 << 20]).expect("writes");
        // Half of what is left beside the cache is a quarter of what they take; half of all memory is
        // more.
        disk.limit_memory(capacity + of_all / 2);
        db.flush().expect("flushes");
        db.wait_idle().expect("rests");
        for _ in 0..3 {
            check_all(&db, 0);
        }
        let stats = db.stats();
        let tables = stats.table_memory_bytes as usize;
        assert_eq!(stats.open_tables >= TABLES as usize, fits, "{stats:?}");
        let most = of_all / 4 + capacity / 2;
        let least = if fits { of_all } else { most * 9 / 10 };
        assert!(tables >= least && tables <= most, "{tables} of {of_all}: {stats:?}");
        // Without borrowing they may take an eighth of the memory.
        let borrowed = tables.saturating_sub(of_all * 5 / 16);
        assert!(cache.used() <= capacity - borrowed / 2 * 3, "{} of {capacity}", cache.used());
        drop(db);
        assert_eq!(cache.used(), 0);
    }
}

/// What scans and compactions read is likely not read again soon, other than what the cache holds.
#[test]
fn only_lookups_borrow_from_the_cache_for_tables_and_unused_tables_give_it_back() {
    let disk = Disk::new();
    let of_all = create(&disk);
    let cache = BlockCache::new(of_all);
    let options = options(&disk).block_cache(Some(cache.clone()));
    let db = Db::open("/db", options).expect("opens");
    // A block of a few tables.
    let hot = || (0..40).for_each(|table| check(&db, table, 50, 0));
    // Half of what the cache leaves is more than twice what the tables take that always stay open.
    disk.limit_memory(of_all * 19 / 10);
    db.put(b"large", vec![7; 17 << 20]).expect("writes");
    db.flush().expect("flushes");
    db.wait_idle().expect("rests");
    hot();
    db.wait_idle().expect("rests");
    let used = cache.used();
    assert!(used > of_all / 4, "{used} of {of_all}");
    let bound = of_all * 9 / 20 + of_all / 64;
    let entries = db.iter().expect("a cursor").skip(1);
    assert_eq!(entries.filter(Result::is_ok).count(), (TABLES * KEYS) as usize);
    let stats = db.stats();
    assert!(stats.table_memory_bytes as usize <= bound, "{stats:?}");
    // The blocks of tables that were closed go with them.
    assert!(cache.used() > used / 4 * 3, "{} after {used}", cache.used());
    (0..TABLES).for_each(|table| check(&db, table, 7, 0));
    assert!(cache.used() < used && db.stats().table_memory_bytes as usize > bound);
    // Tables that are used no longer give that back.
    for _ in 0..10_000 {
        hot();
        if db.stats().table_memory_bytes as usize <= bound {
            return assert!(cache.used() > used / 4 * 3, "{} after {used}", cache.used());
        }
    }
    panic!(
        "{} open, {} of {bound}, {}",
        db.stats().open_tables,
        db.stats().table_memory_bytes,
        cache.used()
    );
}

#[test]
fn filters_count_in_a_memory_budget() {
    let disk = Disk::new();
    let of_all = create(&disk);
    // Tables have a quarter of it.
    let budget = MemoryBudget::new(2 * of_all);
    let with_budget = options(&disk).write_buffer_size(64 << 10).memory_budget(Some(budget));
    let db = Db::open("/db", with_budget).expect("opens");
    for _ in 0..3 {
        check_all(&db, 0);
        let stats = db.stats();
        assert!(stats.open_tables < db.files().len() * 3 / 4, "{stats:?}");
        assert!(stats.table_memory_bytes as usize <= of_all / 2, "{stats:?}");
    }
    disk.counts.take();
    (0..TABLES).for_each(|table| assert_eq!(db.get(absent(table, 7)).expect("reads"), None));
    let [opened, _] = disk.counts.take();
    assert!(opened < TABLES as usize / 10, "{opened} files opened");
}

#[test]
fn threads_that_open_and_close_tables_find_what_is_there_and_nothing_else() {
    let disk = Disk::new();
    let of_all = create(&disk);
    let db = open_with(&disk, of_all);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let db = &db;
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for _ in 0..2_000 {
                    let (table, at) =
                        (rng.below(TABLES as usize) as u32, rng.below(KEYS as usize) as u32);
                    check(db, table, at, 0);
                    let keys = [absent(table, at), present(table, at)];
                    let found = db.multi_get(&keys).expect("reads");
                    assert_eq!(found, [None, Some(value(table, at, 0))]);
                    assert_eq!(db.get(absent(table, at)).expect("reads"), None);
                }
            });
        }
        scope.spawn(|| {
            (0..3).for_each(|_| db.compact_range::<&[u8]>(..).expect("compacts"));
        });
    });
    db.wait_idle().expect("rests");
    assert!(db.stats().table_memory_bytes as usize <= of_all / 2);
}
