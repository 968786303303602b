//! The first things anybody does with a database.

use terrace::{Db, MemEnv, Options, ReadOptions, WriteBatch, WriteOptions};

fn options() -> Options {
    Options::new().create_if_missing(true).write_buffer_size(64 << 10)
}

#[test]
fn values_survive_memtables_tables_and_reopening() {
    let dir = tempfile::tempdir().expect("a directory");
    let key = |n: u32| format!("key{n:06}");
    let db = Db::open(dir.path(), options()).expect("opens");
    for n in 0..20_000u32 {
        db.put(key(n * 7919 % 20_000), format!("value {n}")).expect("puts");
    }
    for n in (0..20_000).step_by(3) {
        db.delete(key(n)).expect("deletes");
    }
    let check = |db: &Db| {
        for n in 0..20_000u32 {
            let found = db.get(key(n * 7919 % 20_000)).expect("gets");
            let expected = (n * 7919 % 20_000 % 3 != 0).then(|| format!("value {n}").into_bytes());
            assert_eq!(found, expected, "{n}");
        }
        let keys: Vec<_> = db.iter().expect("iterates").map(|entry| entry.expect("reads").0).collect();
        let expected: Vec<_> = (0..20_000).filter(|n| n % 3 != 0).map(|n| key(n).into_bytes()).collect();
        assert_eq!(keys, expected);
        let backwards: Vec<_> = db.iter().expect("iterates").rev().map(|entry| entry.expect("reads").0).collect();
        assert!(backwards.iter().rev().eq(&expected));
    };
    check(&db);
    db.compact_range(None, None).expect("compacts");
    check(&db);
    db.close().expect("closes");
    for _ in 0..3 {
        let db = Db::open(dir.path(), options()).expect("opens again");
        check(&db);
    }
    check(&Db::open(dir.path(), Options::new().read_only(true)).expect("opens read-only"));
}

#[test]
fn a_memory_database_needs_no_disk() {
    let env = std::sync::Arc::new(MemEnv::new());
    let db = Db::open("/db", options().env(env.clone())).expect("opens");
    let mut batch = WriteBatch::new();
    batch.put("a", "1");
    batch.put("b", "2");
    batch.delete("a");
    db.write(&batch, WriteOptions::sync()).expect("writes");
    let before = db.snapshot();
    db.put("b", "3").expect("puts");
    assert_eq!(db.get("a").expect("gets"), None);
    assert_eq!(db.get("b").expect("gets").as_deref(), Some(&b"3"[..]));
    let old = db.get_with("b", &ReadOptions::new().snapshot(&before)).expect("gets");
    assert_eq!(old.as_deref(), Some(&b"2"[..]));
    drop((before, db));
    let db = Db::open("/db", options().env(env)).expect("opens again");
    assert_eq!(db.get("b").expect("gets").as_deref(), Some(&b"3"[..]));
}

#[test]
fn a_database_that_is_only_read_becomes_one_sorted_run() {
    let dir = tempfile::tempdir().expect("a directory");
    for settles in [true, false] {
        let options = Options::new().create_if_missing(true).write_buffer_size(512 << 10).seek_compaction(settles);
        let db = Db::open(dir.path().join(settles.to_string()), options).expect("opens");
        let key = |n: u32| format!("key{:06}", n * 7919 % 20_000);
        for n in 0..20_000 {
            db.put(key(n), [7; 100]).expect("puts");
        }
        db.wait_idle().expect("settles");
        let runs = |db: &Db| {
            let stats = db.stats();
            let runs = |(level, files): (usize, u64)| if level == 0 { files } else { files.min(1) };
            let levels = stats.levels.iter().map(|level| level.files as u64).enumerate().map(runs).sum::<u64>();
            levels + u64::from(stats.memtable_bytes >= 64 << 10)
        };
        let before = runs(&db);
        for n in 0..20_000 {
            assert!(db.get(key(n)).expect("gets").is_some());
        }
        db.wait_idle().expect("settles");
        assert!(before > 1);
        assert_eq!(runs(&db), if settles { 1 } else { before });
    }
}
