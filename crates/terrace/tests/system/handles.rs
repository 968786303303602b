//! Calls that go elsewhere than most: another database's snapshot, ends of iterators, orders
//! without prefixes, entries that no table takes, rates and properties.

use std::sync::Arc;

use terrace::{
    Compression, Db, Env, ErrorKind, MemEnv, Options, ReadOptions, TableWriter, WriteBatch,
    WriteOptions,
};
use terrace_testkit::model::ReverseComparator;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::SimFs;

fn memory() -> Options {
    Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()))
}

#[test]
fn a_snapshot_belongs_to_its_database() {
    let (one, other) =
        (Db::open("/db", memory()).expect("opens"), Db::open("/db", memory()).expect("opens"));
    one.put("k", "1").expect("puts");
    other.put("k", "2").expect("puts");
    let theirs = ReadOptions::new().snapshot(&other.snapshot());
    for outcome in [
        one.get_with("k", &theirs).map(drop),
        one.get_pinned_with("k", &theirs).map(drop),
        one.multi_get_with(&["k"], &theirs).map(drop),
        one.cursor_with(&theirs).map(drop),
    ] {
        let error = outcome.expect_err("not this database's");
        assert!(
            error.kind() == ErrorKind::InvalidArgument
                && error.message().contains("another database"),
            "{error}"
        );
    }
    assert_eq!(other.get_with("k", &theirs).expect("gets").as_deref(), Some(&b"2"[..]));
}

#[test]
fn iterators_stay_at_their_end() {
    let db = Db::open("/db", memory()).expect("opens");
    for key in ["a", "b", "c"] {
        db.put(key, "").expect("puts");
    }
    let mut forward = db.range("b".."c").expect("iterates");
    assert_eq!(forward.next().expect("b").expect("reads").0, b"b");
    let mut backward = db.range("b"..="c").expect("iterates");
    assert_eq!(backward.next_back().expect("c").expect("reads").0, b"c");
    assert_eq!(backward.next().expect("b").expect("reads").0, b"b");
    for _ in 0..3 {
        assert!(forward.next().is_none() && forward.next_back().is_none());
        assert!(backward.next_back().is_none() && backward.next().is_none());
    }
    let mut cursor = db.cursor().expect("a cursor");
    for _ in 0..2 {
        // Not anywhere yet, and then behind the last entry.
        cursor.next();
        cursor.prev();
        assert!(!cursor.valid() && cursor.status().is_ok());
        cursor.seek("d");
    }
    cursor.seek_for_prev("bb");
    assert_eq!(cursor.key(), b"b");
}

#[test]
fn prefixes_need_the_order_of_bytes() {
    let db = Db::open("/db", memory().comparator(Arc::new(ReverseComparator))).expect("opens");
    db.put("ab", "").expect("puts");
    let error = db.prefix("a").expect_err("no order of bytes");
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    let db = Db::open("/db", memory()).expect("opens");
    for key in [&b"a"[..], b"\xff", b"\xff\xff", b"\xff\xffx"] {
        db.put(key, "").expect("puts");
    }
    let count = |prefix: &[u8]| db.prefix(prefix).expect("iterates").count();
    assert_eq!((count(b""), count(b"\xff"), count(b"\xff\xff"), count(b"b")), (4, 3, 2, 0));
}

/// Nothing of these four gigabytes is ever touched: they cost no memory.
#[test]
fn what_no_table_takes_fails_a_load_for_good() {
    let huge = vec![0u8; 1 << 32];
    let db = Db::open("/db", memory()).expect("opens");
    // The second by its tag alone.
    for size in [1 << 32, 4_286_578_680] {
        let mut load = db.bulk_load().expect("begins");
        load.put("a", "1").expect("puts");
        let refused = [load.put(&huge[..size], ""), load.put("b", "2"), load.finish().map(drop)];
        for outcome in refused {
            let error = outcome.expect_err("too large");
            assert!(
                error.kind() == ErrorKind::InvalidArgument && error.message().contains("4 GiB"),
                "{error}"
            );
        }
        assert_eq!(db.get("a").expect("gets"), None, "all or nothing");
    }

    let env = Arc::new(MemEnv::new());
    let mut writer =
        TableWriter::create("/table", &Options::new().env(env.clone())).expect("creates");
    writer.put("a", "1").expect("puts");
    let error = writer.put("b", &huge).expect_err("too large");
    assert!(
        error.kind() == ErrorKind::InvalidArgument && error.message().contains("4 GiB"),
        "{error}"
    );
    writer.put("b", "2").expect("nothing was written of it");
    assert_eq!(writer.finish().expect("finishes").entries, 2);
}

#[test]
fn a_database_of_every_rate_and_compression_reads_the_same() {
    let rated = memory().compaction_rate_limit(64 << 20).bytes_per_sync(64 << 10);
    let leveled = memory().compression_per_level(vec![Compression::None, Compression::Snappy]);
    let options = [memory(), rated, leveled]
        .map(|options| options.write_buffer_size(64 << 10).max_file_size(1 << 20));
    let contents = options.map(|options| {
        let db = Db::open("/db", options).expect("opens");
        for n in 0..6000u32 {
            db.put(format!("{:05}", n * 7919 % 3000), format!("{n:0100}")).expect("puts");
        }
        db.compact_range::<&[u8]>(..).expect("compacts");
        db.wait_idle().expect("rests");
        let stats = db.stats();
        assert!(stats.compaction_bytes_written > 0 && stats.flush_bytes_written > 0, "{stats:?}");
        let entries: Vec<_> =
            db.iter().expect("iterates").map(|entry| entry.expect("reads")).collect();
        assert!(db.verify().expect("checks").is_clean());
        entries
    });
    assert_eq!(contents[0].len(), 3000);
    assert!(contents[0] == contents[1] && contents[0] == contents[2]);
}

#[test]
fn a_rate_out_of_range_is_named() {
    for rate in [1, 1 << 41] {
        let error = Db::open("/db", memory().compaction_rate_limit(rate)).expect_err("refused");
        assert!(
            error.kind() == ErrorKind::InvalidArgument
                && error.message().contains("compaction_rate_limit"),
            "{error}"
        );
    }
}

#[test]
fn levels_that_worked_and_are_empty_are_listed() {
    let db = Db::open("/db", memory()).expect("opens");
    let lines = |db: &Db| db.property("leveldb.stats").expect("known").lines().skip(3).count();
    assert_eq!(lines(&db), 0);
    for value in ["1", "2"] {
        db.put("a", value).expect("puts");
        db.put("z", value).expect("puts");
        db.flush().expect("flushes");
    }
    db.compact_range::<&[u8]>(..).expect("compacts");
    let before = lines(&db);
    assert!(before >= 1);
    db.delete("a").expect("deletes");
    db.delete("z").expect("deletes");
    db.compact_range::<&[u8]>(..).expect("compacts");
    assert!(db.files().is_empty() && lines(&db) >= before, "{:?}", db.property("leveldb.stats"));
    assert_eq!(db.property("leveldb.nonsense"), None);
}

#[test]
fn an_empty_batch_and_an_empty_range_are_no_work() {
    let env = MemEnv::new();
    let db = Db::open("/db", memory().env(Arc::new(env.clone()))).expect("opens");
    db.write_with(&WriteBatch::new(), WriteOptions::new()).expect("writes nothing");
    db.write_with(&WriteBatch::new(), WriteOptions::sync()).expect("syncs nothing");
    db.compact_range("z"..="a").expect("an empty range");
    db.flush().expect("nothing to flush");
    assert!(db.iter().expect("iterates").next().is_none() && db.files().is_empty());
    assert_eq!(db.approximate_sizes(&[(b"a", b"z"), (b"z", b"a")]).expect("estimates"), [0, 0]);
    let names = env.list(std::path::Path::new("/db")).expect("lists");
    assert!(!names.iter().any(|name| name.ends_with(".ldb")), "{names:?}");
}

/// A C++ program deletes its environment and its logger when it has deleted the database.
#[test]
fn nothing_has_hold_of_the_environment_when_a_database_is_closed() {
    for round in 0..scaled(200) {
        let env = SimFs::new().env();
        let options =
            Options::new().env(env.clone()).create_if_missing(true).write_buffer_size(64 << 10);
        let db = Db::open("/db", options).expect("opens");
        for n in 0..600 {
            db.put(format!("{:04}", n * 7919 % 600), vec![b'v'; 1000]).expect("puts");
        }
        if round % 2 == 0 {
            db.close().expect("closes");
        } else {
            drop(db);
        }
        assert_eq!(Arc::strong_count(&env), 1, "round {round}");
    }
}
