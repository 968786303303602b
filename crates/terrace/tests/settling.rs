//! A database that is only read becomes one sorted run: at once where that is cheap, and otherwise when the reads have
//! been worth it.

use std::path::Path;

use terrace::{Db, Options, ReadOptions};
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
    db.compact_range(None, None).expect("compacts");
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
    let mut cursor = db.cursor(&ReadOptions::new()).expect("a cursor");
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
    let newer = db.iter().expect("iterates").filter(|entry| entry.as_ref().expect("an entry").1 == b"newer").count();
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
