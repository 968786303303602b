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
fn properties_and_sizes_tell_where_the_data_is() {
    let env = std::sync::Arc::new(MemEnv::new());
    let db = Db::open("/db", options().env(env)).expect("opens");
    // Less than a write buffer holds: nothing is written before it is asked for.
    for n in 0..40u8 {
        db.put([b'k', 0, n], vec![n; 1000]).expect("puts");
    }
    assert_eq!(db.approximate_sizes(&[(b"a", b"z")]).expect("sizes"), [0], "only in memory");
    let property = |name: &str| db.property(&format!("leveldb.{name}"));
    assert!(property("approximate-memory-usage").expect("a text").parse::<u64>().expect("a number") > 0);
    db.compact_range(None, None).expect("compacts");
    db.put([b'k', 0, 200], "later").expect("puts");
    db.flush().expect("flushes");
    let files: usize = (0..7)
        .map(|level| property(&format!("num-files-at-level{level}")).expect("a level"))
        .map(|files| files.parse::<usize>().expect("a number"))
        .sum();
    assert_eq!(files, db.files().len());
    assert!(property("stats").expect("a text").contains("Compactions"));
    let tables = property("sstables").expect("a text");
    assert!(tables.contains("--- level 6 ---") && tables.contains("['k\\x00\\x00' @ 1 : 1 .. "), "{tables}");
    for unknown in
        ["num-files-at-level7", "num-files-at-level", "num-files-at-level+1", "num-files-at-levelx", "none", ""]
    {
        assert_eq!(property(unknown), None, "{unknown}");
    }
    assert_eq!(db.property("stats"), None);
    let sizes = db.approximate_sizes(&[(b"a", b"z"), (b"x", b"z"), (b"z", b"a"), (b"k\x00\x14", b"z")]).expect("sizes");
    assert!(sizes[0] > 0 && sizes[1..3] == [0, 0] && sizes[3] < sizes[0], "{sizes:?}");
    assert!(db.verify().expect("verifies").is_clean());
    db.clone().close().expect("closes");
    assert!(db.approximate_sizes(&[(b"a", b"z")]).is_err());
}

#[test]
fn destroying_takes_what_is_the_databases_own() {
    let env = std::sync::Arc::new(MemEnv::new());
    let options = || options().env(env.clone());
    let fs: &dyn terrace::Env = env.as_ref();
    let path = std::path::Path::new("/db");
    terrace::destroy(path, &options()).expect("nothing is there");
    let db = Db::open(path, options()).expect("opens");
    db.put("a", "1").expect("puts");
    db.flush().expect("flushes");
    db.close().expect("closes");
    let foreign = fs.create(&path.join("notes.txt"), terrace::CreateOptions { mode: 0o644, exclusive: true });
    foreign.expect("creates").close().expect("closes");
    terrace::destroy(path, &options()).expect("destroys");
    assert_eq!(fs.list(path).expect("lists"), ["notes.txt"]);
    terrace::destroy(path, &options()).expect("nothing of a database is there");
    fs.remove(&path.join("notes.txt")).expect("removes");
    Db::open(path, options()).expect("opens").close().expect("closes");
    terrace::destroy(path, &options()).expect("destroys");
    assert!(!fs.exists(path).expect("looks"));
}
