//! Bulk loads: what they leave behind, who sees them when, and where their tables go.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrace::{BulkLoadOptions, Db, Env, ErrorKind, MemEnv, Options, ReadOptions, WriteBatch, WriteOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::model::ReverseComparator;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;

const PATH: &str = "/db";

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(env: &MemEnv) -> Db {
    Db::open(PATH, options(env)).expect("a database")
}

fn options(env: &MemEnv) -> Options {
    Options::new().create_if_missing(true).env(Arc::new(env.clone())).write_buffer_size(64 << 10).max_file_size(1 << 20)
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

fn value(rng: &mut Rng, version: u64) -> Vec<u8> {
    [format!("{version}:").as_bytes(), &rng.bytes(100)].concat()
}

fn contents(db: &Db, options: &ReadOptions) -> Map {
    db.range::<Vec<u8>>(.., options).expect("entries").map(|entry| entry.expect("an entry")).collect()
}

/// Compares everything with `expected`, and has every file and the order of the levels checked.
fn check(db: &Db, expected: &Map) {
    assert!(contents(db, &ReadOptions::new()) == *expected, "{} entries expected", expected.len());
    for (key, value) in expected.iter().step_by(17) {
        assert_eq!(db.get(key).expect("a read").as_deref(), Some(value.as_slice()));
    }
    let report = db.verify().expect("a check");
    assert!(report.is_clean(), "{report:?}");
}

fn temporary_files(env: &MemEnv) -> Vec<String> {
    let names = env.list(Path::new(PATH)).expect("a directory");
    names.into_iter().filter(|name| name.ends_with(".dbtmp")).collect()
}

fn load(db: &Db, entries: &[(Vec<u8>, Vec<u8>)], options: BulkLoadOptions) -> terrace::LoadReport {
    let mut load = db.bulk_load(options).expect("a load");
    entries.iter().for_each(|(key, value)| load.put(key, value).expect("an entry"));
    load.finish().expect("a finished load")
}

#[test]
fn a_load_in_order_goes_where_it_can_stay() {
    let env = MemEnv::new();
    let db = open(&env);
    let mut rng = Rng::new(1);
    let entries: Vec<_> = (0..60_000).map(|number| (key(number), value(&mut rng, 1))).collect();
    let report = load(&db, &entries, BulkLoadOptions::new());
    assert_eq!(report.entries, 60_000);
    let files = db.files();
    assert_eq!(files.len(), report.tables);
    assert!(files.iter().all(|file| file.level == 1 && file.size < 11 << 17), "{files:?}");
    assert_eq!(files.iter().map(|file| file.size).sum::<u64>(), report.table_bytes);
    let stats = db.stats();
    assert_eq!((stats.flush_bytes_written, stats.compaction_bytes_written), (0, 0));
    assert_eq!(stats.load_bytes_written, report.table_bytes);
    assert!(stats.write_amplification < 1.2, "{}", stats.write_amplification);
    let expected: Map = entries.into_iter().collect();
    check(&db, &expected);
    // Level 1 has no room left: the next part goes below it.
    let more: Vec<_> = (60_000..120_000).map(|number| (key(number), value(&mut rng, 1))).collect();
    load(&db, &more, BulkLoadOptions::new());
    assert!(db.files().iter().any(|file| file.level == 2));
    db.close().expect("a close");
    let expected: Map = expected.into_iter().chain(more).collect();
    check(&open(&env), &expected);
}

#[test]
fn loads_of_any_order_over_any_contents_equal_a_map() {
    campaign("loads_of_any_order_over_any_contents", scaled(60), |seed| {
        let mut rng = Rng::new(seed);
        let env = MemEnv::new();
        let reverse = rng.one_in(4);
        let options = if reverse { options(&env).comparator(Arc::new(ReverseComparator)) } else { options(&env) };
        let db = Db::open(PATH, options).map_err(|error| error.to_string())?;
        let mut expected = Map::new();
        for version in 0..6 {
            let bound = *rng.pick(&[50, 5_000, 100_000]);
            for _ in 0..rng.below(2_000) {
                let key = key(rng.below(bound) as u64);
                if rng.one_in(4) {
                    db.delete(&key).expect("a deletion");
                    expected.remove(&key);
                } else {
                    let value = value(&mut rng, version);
                    db.put(&key, &value).expect("a write");
                    expected.insert(key, value);
                }
            }
            if rng.one_in(3) {
                db.compact_range(None, None).expect("a compaction");
            }
            let count = *rng.pick(&[1, 1_000, 20_000]);
            let mut entries: Vec<_> =
                (0..count).map(|_| (key(rng.below(bound) as u64), value(&mut rng, version))).collect();
            match rng.below(3) {
                0 => entries.sort(),
                // In order at first, with one at the end that is not.
                1 => entries[..count - 1].sort(),
                _ => {}
            }
            let (snapshot, before) = (db.snapshot(), expected.clone());
            let memory = *rng.pick(&[0, 200_000, 1 << 20, 64 << 20]);
            let report = load(&db, &entries, BulkLoadOptions::new().memory(memory).threads(rng.below(4)));
            let loaded: Map = entries.into_iter().collect();
            assert_eq!(report.entries, loaded.len() as u64);
            expected.extend(loaded);
            let seen = contents(&db, &ReadOptions::new().snapshot(&snapshot));
            assert!(seen == before, "a snapshot from before does not see the load");
        }
        if !reverse {
            check(&db, &expected);
        } else {
            assert!(contents(&db, &ReadOptions::new()) == expected);
            assert!(db.verify().expect("a check").is_clean());
        }
        assert_eq!(temporary_files(&env), [] as [&str; 0]);
        db.wait_idle().expect("idle");
        db.close().expect("a close");
        Ok(())
    });
}

#[test]
fn a_dropped_load_leaves_no_trace() {
    let env = MemEnv::new();
    let db = open(&env);
    db.put("key", "value").expect("a write");
    let mut rng = Rng::new(3);
    for ordered in [true, false] {
        let mut load = db.bulk_load(BulkLoadOptions::new().memory(300_000)).expect("a load");
        for number in 0..30_000 {
            let number = if ordered { number } else { rng.below(30_000) as u64 };
            load.put(key(number), value(&mut rng, 1)).expect("an entry");
        }
        assert!(!temporary_files(&env).is_empty());
        drop(load);
        assert_eq!(temporary_files(&env), [] as [&str; 0]);
    }
    assert_eq!(db.files().len(), 0);
    check(&db, &Map::from([(b"key".to_vec(), b"value".to_vec())]));
}

#[test]
fn a_load_ends_with_its_database() {
    let env = MemEnv::new();
    let db = open(&env);
    let mut rng = Rng::new(4);
    let mut load = db.bulk_load(BulkLoadOptions::new().memory(300_000)).expect("a load");
    for number in 0..10_000 {
        load.put(key(number), value(&mut rng, 1)).expect("an entry");
    }
    db.clone().close().expect("a close");
    let error = load.finish().expect_err("the database is closed");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let db = open(&env);
    assert_eq!(temporary_files(&env), [] as [&str; 0]);
    check(&db, &Map::new());
    db.close().expect("a close");
    let reader = Db::open(PATH, options(&env).read_only(true)).expect("a read-only open");
    assert_eq!(reader.bulk_load(BulkLoadOptions::new()).err().map(|e| e.kind()), Some(ErrorKind::NotSupported));
}

#[test]
fn loads_happen_in_the_order_in_which_they_are_finished() {
    let env = MemEnv::new();
    let db = open(&env);
    let begin = || db.bulk_load(BulkLoadOptions::new().memory(200_000)).expect("a load");
    let (mut first, mut second, mut third) = (begin(), begin(), begin());
    for number in 0..5_000 {
        first.put(key(number), "first").expect("an entry");
        second.put(key(number * 7 % 5_000), "second").expect("an entry");
        third.put(key(number), "third").expect("an entry");
    }
    db.put(key(1), "before").expect("a write");
    third.finish().expect("a finished load");
    let between = db.snapshot();
    db.put(key(2), "between").expect("a write");
    first.finish().expect("a finished load");
    assert_eq!(db.get(key(2)).expect("a read").as_deref(), Some(&b"first"[..]));
    second.finish().expect("a finished load");
    db.put(key(3), "after").expect("a write");
    let mut expected: Map = (0..5_000).map(|number| (key(number), b"second".to_vec())).collect();
    expected.insert(key(3), b"after".to_vec());
    check(&db, &expected);
    let seen = contents(&db, &ReadOptions::new().snapshot(&between));
    assert!(seen.len() == 5_000 && seen.values().all(|value| value == b"third"));
}

#[test]
fn others_read_and_write_while_loads_come_in_whole() {
    const KEYS: u64 = 3_000;
    let env = MemEnv::new();
    let db = open(&env);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0u64;
            while !done.load(Ordering::Acquire) {
                let mut batch = WriteBatch::new();
                batch.put([b"w".as_slice(), &key(written % 100)].concat(), written.to_string());
                let sync = if written.is_multiple_of(64) { WriteOptions::sync() } else { WriteOptions::new() };
                db.write(&batch, sync).expect("a write");
                written += 1;
            }
            written
        });
        let reader = scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Acquire) {
                let snapshot = db.snapshot();
                let options = ReadOptions::new().snapshot(&snapshot);
                let loaded: Map =
                    db.prefix("key", &options).expect("entries").map(|entry| entry.expect("an entry")).collect();
                let versions: std::collections::BTreeSet<_> = loaded.values().collect();
                assert!(versions.len() <= 1, "half a load");
                assert!(loaded.is_empty() || loaded.len() == KEYS as usize);
                let version =
                    versions.first().map_or(0, |text| String::from_utf8_lossy(text).parse().expect("a number"));
                assert!(version >= last, "loads do not go back");
                last = version;
            }
        });
        for version in 1..=15u64 {
            let entries: Vec<_> = (0..KEYS).map(|number| (key(number), version.to_string().into_bytes())).collect();
            load(&db, &entries, BulkLoadOptions::new().memory(200_000));
        }
        done.store(true, Ordering::Release);
        reader.join().expect("no panic");
        assert!(writer.join().expect("no panic") > 0);
    });
    assert!(db.verify().expect("a check").is_clean());
    db.close().expect("a close");
    let db = open(&env);
    assert_eq!(db.get(key(5)).expect("a read").as_deref(), Some(&b"15"[..]));
}

#[test]
fn a_failed_load_says_so_again() {
    let env = MemEnv::new();
    let db = open(&env);
    let mut load = db.bulk_load(BulkLoadOptions::new()).expect("a load");
    db.clone().close().expect("a close");
    let mut rng = Rng::new(5);
    let failed = (0..1_000_000).find_map(|number| load.put(key(number), value(&mut rng, 0)).err());
    assert!(failed.is_some() || load.finish().is_err());
}
