//! A database that is only read becomes one sorted run: at once where that is cheap, and otherwise
//! when the reads have been worth it. One that is searched much and written little is compacted
//! below its memtable.

use std::path::Path;

use terrace::{Db, Options};
use terrace_testkit::rng::Rng;

const ENTRIES: usize = 20_000;

fn key(n: usize) -> String {
    format!("{n:08}")
}

/// A large sorted run, and above it a small one over the same keys.
fn layered(dir: &Path, options: Options) -> Db {
    let db = Db::open(dir, options.create_if_missing(true)).expect("opens");
    let mut rng = Rng::new(1);
    for n in 0..ENTRIES {
        db.put(key(n), rng.bytes(100)).expect("puts");
    }
    db.compact_range::<&[u8]>(..).expect("compacts");
    for n in (0..ENTRIES).step_by(1000) {
        db.put(key(n), "newer").expect("puts");
    }
    db.flush().expect("flushes");
    assert_eq!(runs(&db), 2);
    db
}

fn runs(db: &Db) -> usize {
    db.wait_idle().expect("idle");
    let levels = db.stats().levels;
    levels[0].files + levels[1..].iter().filter(|level| level.files > 0).count()
}

fn seek(db: &Db, times: usize) {
    let mut cursor = db.cursor().expect("a cursor");
    for n in (0..ENTRIES).cycle().take(times) {
        cursor.seek(key(n));
        assert!(cursor.valid());
    }
}

#[test]
fn what_is_searched_much_becomes_one_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = layered(dir.path(), Options::new());
    seek(&db, 3_000);
    assert_eq!(runs(&db), 2, "the small run is not worth the large one's rewriting yet");
    seek(&db, 12_000);
    assert_eq!(runs(&db), 1);
    let newer = db
        .iter()
        .expect("iterates")
        .filter(|entry| entry.as_ref().expect("an entry").1 == b"newer")
        .count();
    assert_eq!(newer, ENTRIES / 1000);
}

#[test]
fn a_write_in_between_makes_searches_count_from_the_beginning() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = layered(dir.path(), Options::new());
    for _ in 0..5 {
        seek(&db, 3_000);
        db.put(key(0), "newer").expect("puts");
    }
    assert_eq!(runs(&db), 2);
}

#[test]
fn without_seek_compaction_reads_change_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = layered(dir.path(), Options::new().seek_compaction(false));
    seek(&db, 15_000);
    assert_eq!(runs(&db), 2);
}

#[test]
fn a_database_that_is_only_read_becomes_one_sorted_run() {
    let dir = tempfile::tempdir().expect("a directory");
    for compacts in [true, false] {
        let options = Options::new()
            .create_if_missing(true)
            .write_buffer_size(512 << 10)
            .seek_compaction(compacts);
        let db = Db::open(dir.path().join(compacts.to_string()), options).expect("opens");
        let key = |n: u32| format!("key{:06}", n * 7919 % 20_000);
        for n in 0..20_000 {
            db.put(key(n), [7; 100]).expect("puts");
        }
        db.wait_idle().expect("waits");
        let runs = |db: &Db| {
            let stats = db.stats();
            let runs = |(level, files): (usize, u64)| if level == 0 { files } else { files.min(1) };
            let levels = stats
                .levels
                .iter()
                .map(|level| level.files as u64)
                .enumerate()
                .map(runs)
                .sum::<u64>();
            levels + u64::from(stats.memtable_bytes >= 64 << 10)
        };
        let before = runs(&db);
        for n in 0..20_000 {
            assert!(db.get(key(n)).expect("gets").is_some());
        }
        db.wait_idle().expect("waits");
        assert!(before > 1);
        assert_eq!(runs(&db), if compacts { 1 } else { before });
    }
}

#[test]
fn scans_beside_few_writes_find_one_sorted_run_below_the_memtable() {
    let dir = tempfile::tempdir().expect("a directory");
    for writes_beside in [1, 10] {
        let options = Options::new().create_if_missing(true).write_buffer_size(512 << 10);
        let db = Db::open(dir.path().join(writes_beside.to_string()), options).expect("opens");
        let key = |n: u32| format!("key{:06}", n * 7919 % 20_000);
        for n in 0..20_000 {
            db.put(key(n), [7; 100]).expect("puts");
        }
        db.compact_range::<&[u8]>(..).expect("compacts");
        for n in 0..10_000 {
            db.put(key(n), [8; 100]).expect("puts");
        }
        db.flush().expect("flushes");
        db.wait_idle().expect("waits");
        let levels = |db: &Db| db.stats().levels.iter().filter(|level| level.files > 0).count();
        let before = levels(&db);
        let mut cursor = db.cursor().expect("a cursor");
        // The values are small: the memtable is not full before the end.
        for n in 0..5_000 {
            cursor.seek(key(n));
            assert!(cursor.valid());
            for n in 0..if n % 10 == 0 { writes_beside } else { 0 } {
                db.put(key(n), []).expect("puts");
            }
        }
        drop(cursor);
        db.wait_idle().expect("waits");
        assert!(before > 1);
        assert_eq!(
            levels(&db),
            if writes_beside == 1 { 1 } else { before },
            "{writes_beside} writes for ten scans"
        );
    }
}
