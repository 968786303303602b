//! Bulk loads: their files, their visibility, and the levels of their tables.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrace::{
    BulkLoadOptions, CreateOptions, Db, Env, ErrorKind, IngestOptions, MemEnv, Options,
    ReadOptions, TableWriter, WriteBatch, WriteOptions,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::leveldb::{Peer, PeerOptions};
use terrace_testkit::model::ReverseComparator;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{DataLoss, Fault, FaultPlan, OpKind, PowerLoss, SimFs};
use terrace_testkit::workload::Digest;

const PATH: &str = "/db";

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(env: &MemEnv) -> Db {
    Db::open(PATH, options(env)).expect("a database")
}

fn options(env: &MemEnv) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(Arc::new(env.clone()))
        .write_buffer_size(64 << 10)
        .max_file_size(1 << 20)
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

fn value(rng: &mut Rng, version: u64) -> Vec<u8> {
    [format!("{version}:").as_bytes(), &rng.bytes(100)].concat()
}

fn contents(db: &Db, options: &ReadOptions) -> Map {
    db.range_with::<Vec<u8>>(.., options)
        .expect("entries")
        .map(|entry| entry.expect("an entry"))
        .collect()
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
    let mut load = db.bulk_load_with(options).expect("a load");
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
        let options = if reverse {
            options(&env).comparator(Arc::new(ReverseComparator))
        } else {
            options(&env)
        };
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
                db.compact_range::<&[u8]>(..).expect("a compaction");
            }
            let count = *rng.pick(&[1, 1_000, 20_000]);
            let mut entries: Vec<_> = (0..count)
                .map(|_| (key(rng.below(bound) as u64), value(&mut rng, version)))
                .collect();
            match rng.below(3) {
                0 => entries.sort(),
                // In order at first, with one at the end that is not.
                1 => entries[..count - 1].sort(),
                _ => {}
            }
            let (snapshot, before) = (db.snapshot(), expected.clone());
            let memory = *rng.pick(&[0, 200_000, 1 << 20, 64 << 20]);
            let report =
                load(&db, &entries, BulkLoadOptions::new().memory(memory).threads(rng.below(4)));
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
        let mut load = db.bulk_load_with(BulkLoadOptions::new().memory(300_000)).expect("a load");
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
    let mut load = db.bulk_load_with(BulkLoadOptions::new().memory(300_000)).expect("a load");
    for number in 0..10_000 {
        load.put(key(number), value(&mut rng, 1)).expect("an entry");
    }
    db.clone().close().expect("a close");
    let error = load.finish().expect_err("the database is closed");
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    let db = open(&env);
    // The name of a fresh MANIFEST comes by way of a temporary file, too.
    db.wait_idle().expect("waits");
    assert_eq!(temporary_files(&env), [] as [&str; 0]);
    check(&db, &Map::new());
    db.close().expect("a close");
    let reader = Db::open(PATH, options(&env).read_only(true)).expect("a read-only open");
    assert_eq!(reader.bulk_load().err().map(|e| e.kind()), Some(ErrorKind::NotSupported));
}

#[test]
fn loads_happen_in_the_order_in_which_they_are_finished() {
    let env = MemEnv::new();
    let db = open(&env);
    let begin = || db.bulk_load_with(BulkLoadOptions::new().memory(200_000)).expect("a load");
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
            // At least one, however late this thread comes to run.
            while written == 0 || !done.load(Ordering::Acquire) {
                let mut batch = WriteBatch::new();
                batch.put([b"w".as_slice(), &key(written % 100)].concat(), written.to_string());
                let sync = if written.is_multiple_of(64) {
                    WriteOptions::sync()
                } else {
                    WriteOptions::new()
                };
                db.write_with(&batch, sync).expect("a write");
                written += 1;
            }
            written
        });
        let reader = scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Acquire) {
                let snapshot = db.snapshot();
                let options = ReadOptions::new().snapshot(&snapshot);
                let loaded: Map = db
                    .prefix_with("key", &options)
                    .expect("entries")
                    .map(|entry| entry.expect("an entry"))
                    .collect();
                let versions: std::collections::BTreeSet<_> = loaded.values().collect();
                assert!(versions.len() <= 1, "half a load");
                assert!(loaded.is_empty() || loaded.len() == KEYS as usize);
                let version = versions
                    .first()
                    .map_or(0, |text| String::from_utf8_lossy(text).parse().expect("a number"));
                assert!(version >= last, "loads do not go back");
                last = version;
            }
        });
        for version in 1..=15u64 {
            let entries: Vec<_> =
                (0..KEYS).map(|number| (key(number), version.to_string().into_bytes())).collect();
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
    let mut load = db.bulk_load().expect("a load");
    db.clone().close().expect("a close");
    let mut rng = Rng::new(5);
    let failed = (0..1_000_000).find_map(|number| load.put(key(number), value(&mut rng, 0)).err());
    assert!(failed.is_some() || load.finish().is_err());
}

/// A table of the keys with these numbers.
fn table(env: &MemEnv, path: &str, numbers: std::ops::Range<u64>, text: &str) -> PathBuf {
    let mut writer = TableWriter::create(path, &options(env)).expect("a table");
    numbers.for_each(|number| writer.put(key(number), text).expect("an entry"));
    writer.finish().expect("a finished table");
    PathBuf::from(path)
}

#[test]
fn tables_are_taken_in_as_they_are_where_that_is_legal() {
    let env = MemEnv::new();
    let db = open(&env);
    db.put(key(500), "written").expect("a write");
    let low = table(&env, "/low", 0..400, "low");
    let high = table(&env, "/high", 600..900, "high");
    let report = db
        .ingest_with(&[&high, &low], IngestOptions::new().move_files(true))
        .expect("an ingestion");
    assert_eq!((report.entries, report.tables, report.sequence), (700, 2, 0));
    assert!(!env.exists(&low).expect("a look") && !env.exists(&high).expect("a look"));
    let mut expected: Map = (0..400).map(|number| (key(number), b"low".to_vec())).collect();
    expected.extend((600..900).map(|number| (key(number), b"high".to_vec())));
    expected.insert(key(500), b"written".to_vec());
    check(&db, &expected);
    // Later writes and compactions treat the entries as any others.
    db.put(key(1), "newer").expect("a write");
    db.delete(key(2)).expect("a deletion");
    expected.insert(key(1), b"newer".to_vec());
    expected.remove(&key(2));
    check(&db, &expected);
    db.compact_range::<&[u8]>(..).expect("a compaction");
    check(&db, &expected);

    // Over contents, each other or a snapshot the entries are written anew.
    let over = table(&env, "/over", 300..700, "over");
    let later = table(&env, "/later", 350..360, "later");
    let snapshot = db.snapshot();
    let report = db.ingest(&[&over, &later]).expect("an ingestion");
    assert!(report.sequence > 0 && report.entries == 400);
    assert!(contents(&db, &ReadOptions::new().snapshot(&snapshot)) == expected);
    expected.extend((300..700).map(|number| (key(number), b"over".to_vec())));
    expected.extend((350..360).map(|number| (key(number), b"later".to_vec())));
    check(&db, &expected);
    let apart = table(&env, "/apart", 2_000..2_010, "apart");
    let report =
        db.ingest_with(&[&apart], IngestOptions::new().move_files(true)).expect("an ingestion");
    assert!(report.sequence > 0, "a snapshot must not see them");
    assert!(!env.exists(&apart).expect("a look"));
    drop(snapshot);
    expected.extend((2_000..2_010).map(|number| (key(number), b"apart".to_vec())));
    db.close().expect("a close");
    let db = open(&env);
    check(&db, &expected);
    assert!(env.exists(&over).expect("a look"), "copied");
    assert_eq!(
        db.ingest_with::<&str>(&[], IngestOptions::new()).expect("nothing to do").entries,
        0
    );
}

#[test]
fn tables_that_do_not_belong_are_refused() {
    let env = MemEnv::new();
    let db = open(&env);
    let good = table(&env, "/good", 0..5_000, "some value, and some more of it");
    let refuse = |path: &Path, kind: ErrorKind, part: &str| {
        let error =
            db.ingest_with(&[&good, path], IngestOptions::new().move_files(true)).expect_err(part);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(env.exists(&good).expect("a look") && db.files().is_empty());
    };
    refuse(Path::new("/missing"), ErrorKind::NotFound, "/missing");
    let reverse = options(&env).comparator(Arc::new(ReverseComparator));
    let mut writer = TableWriter::create("/reverse", &reverse).expect("a table");
    writer.put("b", "1").expect("an entry");
    writer.put("a", "2").expect("an entry");
    assert_eq!(writer.put("b", "3").expect_err("out of order").kind(), ErrorKind::InvalidArgument);
    writer.finish().expect("a finished table");
    refuse(Path::new("/reverse"), ErrorKind::InvalidArgument, "comparator");
    let mut bytes = env.read(&good).expect("bytes");
    bytes[1_000] ^= 1;
    env.write("/damaged", bytes);
    refuse(Path::new("/damaged"), ErrorKind::Corruption, "/damaged");
    env.write("/short", b"not a table".to_vec());
    refuse(Path::new("/short"), ErrorKind::Corruption, "/short");
    let empty = TableWriter::create("/empty", &options(&env))
        .expect("a table")
        .finish()
        .expect_err("no entries");
    assert_eq!(empty.kind(), ErrorKind::InvalidArgument);
    // A database's own table has sequence numbers that mean nothing here.
    let other = Db::open("/other", options(&env)).expect("a database");
    other.put("key", "value").expect("a write");
    other.flush().expect("a flush");
    let own = Path::new("/other").join(format!("{:06}.ldb", other.files()[0].number));
    refuse(&own, ErrorKind::InvalidArgument, "TableWriter");
    assert_eq!(db.ingest(&[&good]).expect("an ingestion").entries, 5_000);
}

const OUTSIDE: &str = "/data/table";

fn simulated(fs: &SimFs) -> Options {
    Options::new().create_if_missing(true).env(fs.env())
}

/// A database, and beside it a table of `key`, both durable.
fn beside_a_table(fs: &SimFs, key: &str) -> Db {
    let db = Db::open("/data/db", simulated(fs)).expect("a database");
    let mut writer = TableWriter::create(OUTSIDE, &simulated(fs)).expect("a table");
    writer.put(key, "value").expect("an entry");
    writer.finish().expect("a finished table");
    fs.sync_dir(Path::new("/data")).expect("a durable name");
    db
}

fn move_in(db: &Db) -> terrace::Result<terrace::LoadReport> {
    db.ingest_with(&[OUTSIDE], IngestOptions::new().move_files(true))
}

#[test]
fn a_table_that_cannot_be_installed_is_given_back() {
    let fs = SimFs::new();
    let db = beside_a_table(&fs, "key");
    let bytes = fs.contents(Path::new(OUTSIDE));
    for kind in [OpKind::SyncDir, OpKind::Rename] {
        fs.set_faults(Some(FaultPlan { kinds: vec![kind], ..FaultPlan::at(0, Fault::Io, false) }));
        let error = move_in(&db).expect_err("a failure");
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        fs.set_faults(None);
        assert!(fs.env().exists(Path::new(OUTSIDE)).expect("a look"));
    }
    assert_eq!(db.get("key").expect("a read"), None);
    // Whether a failed edit is durable is unknown. Its tables are removed when a fresh MANIFEST
    // does without them. The first edit records the number of the link, the second the table.
    for (kind, after) in
        [(OpKind::Append, 0), (OpKind::Append, 1), (OpKind::Sync, 0), (OpKind::Sync, 1)]
    {
        for fault in [Fault::Io, Fault::NoSpace, Fault::Short, Fault::Late] {
            // Now the MANIFEST that CURRENT names is written to.
            db.put("other", "1").expect("a write");
            db.flush().expect("a flush");
            let current = fs.contents(Path::new("/data/db/CURRENT")).expect("a name");
            let suffix = String::from_utf8(current).expect("a name").trim_end().to_owned();
            fs.set_faults(Some(FaultPlan {
                kinds: vec![kind],
                suffix,
                ..FaultPlan::at(after, fault, false)
            }));
            let error = move_in(&db).expect_err("a failure");
            assert!(error.message().contains("MANIFEST") && fs.injected() == 1, "{error}");
            fs.set_faults(None);
            let killed = fs.power_loss(PowerLoss::PROCESS_ONLY);
            db.put("other", "2").expect("a write");
            db.flush().expect("a flush");
            db.wait_idle().expect("files are removed");
            assert!(fs.contents(Path::new(OUTSIDE)) == bytes, "{kind:?}, {fault:?}");
            assert_eq!(db.get("key").expect("a read"), None);
            let db = Db::open("/data/db", simulated(&killed)).expect("a database");
            assert_eq!(db.get("other").expect("a read").as_deref(), Some(&b"1"[..]));
            assert!(
                killed.contents(Path::new(OUTSIDE)) == bytes,
                "{kind:?}, {fault:?}, then killed"
            );
        }
    }
    move_in(&db).expect("an ingestion");
    assert_eq!(db.get("key").expect("a read").as_deref(), Some(&b"value"[..]));
    assert_eq!(fs.contents(Path::new(OUTSIDE)), None);
    drop(db);
    // Cut power right after: what was acknowledged is there.
    let after = fs.power_loss(PowerLoss::STRICT);
    let db = Db::open("/data/db", Options::new().env(after.env())).expect("a database");
    assert_eq!(db.get("key").expect("a read").as_deref(), Some(&b"value"[..]));
}

/// Moved as it is, copied because it cannot be linked, and rewritten because a snapshot must not
/// see it.
#[test]
fn a_table_moved_in_is_inside_or_outside_at_every_moment() {
    let (mut states, mut only_outside, mut only_inside) = (0, 0, 0);
    for case in ["linked", "copied", "rewritten"] {
        let fs = SimFs::new();
        let db = beside_a_table(&fs, "key");
        let bytes = fs.contents(Path::new(OUTSIDE));
        fs.record();
        if case == "copied" {
            fs.set_faults(Some(FaultPlan {
                kinds: vec![OpKind::Link],
                ..FaultPlan::at(0, Fault::Access, true)
            }));
        }
        let snapshot = (case == "rewritten").then(|| db.snapshot());
        let report = move_in(&db).expect("an ingestion");
        assert_eq!(report.sequence > 0, snapshot.is_some(), "{case}");
        assert_eq!(fs.injected(), u64::from(case == "copied"), "{case}");
        drop(snapshot);
        db.close().expect("a close");
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        loop {
            let at = replay.at();
            let random = (0..3).map(|seed| PowerLoss::random(seed << 32 | at as u64));
            for loss in [PowerLoss::PROCESS_ONLY, PowerLoss::STRICT].into_iter().chain(random) {
                let mut fs = replay.power_loss(loss);
                // Then the power fails, whatever was lost before.
                for again in 0..2 {
                    let db = Db::open("/data/db", simulated(&fs)).expect("a database");
                    let taken =
                        db.get("key").expect("a read").is_some_and(|value| value == b"value");
                    db.put("other", "1").expect("a write");
                    db.flush().expect("a flush");
                    assert!(db.verify().expect("a check").is_clean());
                    assert_eq!(db.get("key").expect("a read").is_some(), taken);
                    db.close().expect("a close");
                    let left = fs.contents(Path::new(OUTSIDE));
                    let context = || {
                        format!("{case}, step {at}, {loss:?}, {again}\n{}", recording.describe(at))
                    };
                    assert!(taken || left == bytes, "neither inside nor outside: {}", context());
                    assert!(left.is_none() || left == bytes, "{}", context());
                    only_outside += u64::from(!taken);
                    only_inside += u64::from(left.is_none());
                    states += 1;
                    fs = fs.power_loss(PowerLoss::STRICT);
                }
            }
            if !replay.advance() {
                break;
            }
        }
    }
    println!(
        "{states} states, {only_outside} with the table outside alone, {only_inside} inside alone"
    );
    assert!(only_outside > 50 && only_inside >= 3, "{only_outside} and {only_inside} of {states}");
}

/// LevelDB, opening the files after a kill or a power cut, never writes through a second
/// name of the program's own file, and the entries are in that file or in the database.
#[test]
fn leveldb_never_writes_into_a_table_that_is_being_moved_in() {
    let Some(peer) = Peer::find() else { return };
    let (mut states, mut shared, mut refused, mut spoilt) = (0, 0, 0, Vec::new());
    for history in ["created", "written", "opened again", "written and not flushed"] {
        let fs = SimFs::new();
        let mut db = beside_a_table(&fs, "key");
        if history != "created" {
            // The MANIFEST then says that the number which the link will have is the next one.
            db.put("other", "value").expect("a write");
            db.flush().expect("a flush");
        }
        if history == "opened again" {
            db.close().expect("a close");
            db = Db::open("/data/db", simulated(&fs)).expect("a database");
        }
        db.wait_idle().expect("no background work");
        if history == "written and not flushed" {
            // LevelDB flushes it.
            db.put("other", "in the log").expect("a write");
        }
        let bytes = fs.contents(Path::new(OUTSIDE)).expect("a table");
        fs.record();
        assert_eq!(move_in(&db).expect("an ingestion").sequence, 0, "taken in as it is");
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        loop {
            for loss in
                [PowerLoss::PROCESS_ONLY, PowerLoss::STRICT, PowerLoss::random(replay.at() as u64)]
            {
                let dir = tempfile::tempdir().expect("a temporary directory");
                replay.power_loss(loss).export(Path::new("/data"), dir.path()).expect("files");
                let (db, outside) = (dir.path().join("db"), dir.path().join("table"));
                states += 1;
                shared += u64::from(std::fs::metadata(&outside).is_ok_and(|file| file.nlink() > 1));
                let options =
                    PeerOptions { create: false, paranoid: false, ..PeerOptions::default() };
                let has_key = || peer.get(&db, &options, b"key").map(|value| value.is_some());
                let taken = (has_key(), has_key());
                let left = std::fs::read(&outside).ok();
                let is_outside = left.as_ref() == Some(&bytes);
                let is_sound = match taken {
                    (Ok(true), Ok(true)) => is_outside || left.is_none(),
                    // A power cut may tear the last record of the MANIFEST, which LevelDB refuses,
                    // its own as well.
                    (Err(_), Err(_)) if loss.data != DataLoss::Undecided => {
                        refused += 1;
                        is_outside
                    }
                    _ => taken == (Ok(false), Ok(false)) && is_outside,
                };
                if !is_sound {
                    let steps = recording.describe(replay.at());
                    spoilt.push(format!(
                        "{history}, {loss:?}: in the database {taken:?}, the file {left:?}\n{steps}"
                    ));
                }
            }
            if !replay.advance() {
                break;
            }
        }
    }
    println!("{states} states, {shared} with a table under two names, {refused} refused");
    assert!(refused * 10 < states, "{refused} of {states} refused");
    assert!(spoilt.is_empty(), "{} of {states} states, the first: {}", spoilt.len(), spoilt[0]);
    assert!(shared > 20, "{shared} of {states}");
}

/// The load sorts in runs, so that there are temporary tables, too, under names that LevelDB gives
/// to its own files.
#[test]
fn leveldb_finds_a_killed_load_whole_or_not_at_all() {
    let Some(peer) = Peer::find() else { return };
    let fs = SimFs::new();
    let db = Db::open("/data/db", simulated(&fs)).expect("a database");
    db.put("other", "value").expect("a write");
    db.flush().expect("a flush");
    db.wait_idle().expect("no background work");
    fs.record();
    let entries: Vec<_> =
        (0..1_500).rev().map(|number| (key(number), vec![number as u8; 100])).collect();
    load(&db, &entries, BulkLoadOptions::new().memory(64 << 10).threads(1));
    let recording = fs.take_recording();
    let mut replay = recording.replay();
    let (mut without, mut whole) = (0, 0);
    loop {
        for loss in [PowerLoss::PROCESS_ONLY, PowerLoss::STRICT] {
            let dir = tempfile::tempdir().expect("a temporary directory");
            replay.power_loss(loss).export(Path::new("/data"), dir.path()).expect("files");
            let options = PeerOptions { create: false, ..PeerOptions::default() };
            match peer.digest(&dir.path().join("db"), &options).map(|digest| digest.count()) {
                Ok(1) => without += 1,
                Ok(1_501) => whole += 1,
                other => panic!("{other:?}, {loss:?}\n{}", recording.describe(replay.at())),
            }
        }
        if !replay.advance() {
            break;
        }
    }
    println!("{without} states without the load, {whole} with all of it");
    assert!(without > 30 && whole >= 2, "{without} without the load, {whole} with all of it");
}

#[test]
fn an_unsynced_table_is_durable_once_it_is_moved_in() {
    let fs = SimFs::new();
    let db = beside_a_table(&fs, "key");
    let bytes = fs.contents(Path::new(OUTSIDE)).expect("bytes");
    fs.remove(Path::new(OUTSIDE)).expect("removed");
    let mut copy = fs.create(Path::new(OUTSIDE), CreateOptions::default()).expect("a file");
    copy.append(&bytes).expect("written");
    copy.close().expect("closed");
    move_in(&db).expect("an ingestion");
    let db =
        Db::open("/data/db", simulated(&fs.power_loss(PowerLoss::STRICT))).expect("a database");
    assert_eq!(db.get("key").expect("a read").as_deref(), Some(&b"value"[..]));
}

/// The caller's own name of the table is gone by then: the database has the only one.
#[test]
fn a_flipped_bit_in_the_record_of_an_ingestion_costs_no_table() {
    let fs = SimFs::new();
    let db = beside_a_table(&fs, "key");
    db.put("other", "value").expect("a write");
    db.flush().expect("a flush");
    db.wait_idle().expect("no background work");
    let manifest = || {
        let current = fs.contents(Path::new("/data/db/CURRENT")).expect("a name");
        PathBuf::from("/data/db").join(String::from_utf8(current).expect("a name").trim_end())
    };
    let before = fs.contents(&manifest()).expect("a MANIFEST").len();
    move_in(&db).expect("an ingestion");
    drop(db);
    let (manifest, bytes) = (manifest(), fs.contents(&manifest()).expect("a MANIFEST"));
    for at in before..bytes.len() {
        let fs = fs.power_loss(PowerLoss::STRICT);
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        fs.set_contents(&manifest, &damaged);
        let has_table = |dir: &str| {
            fs.names(Path::new(dir)).iter().any(|name| {
                let bytes = fs.contents(&Path::new(dir).join(name)).unwrap_or_default();
                name.ends_with(".ldb") && bytes.windows(3).any(|bytes| bytes == b"key")
            })
        };
        match Db::open("/data/db", simulated(&fs)) {
            Ok(db) => {
                db.wait_idle().expect("no background work");
                let is_there = db.get("key").expect("a read").is_some();
                assert!(
                    is_there || has_table("/data/db/lost"),
                    "byte {at} of {before}..{}",
                    bytes.len()
                );
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert!(has_table("/data/db"));
            }
        }
    }
}

#[test]
fn a_table_of_the_database_is_not_taken_away_from_it() {
    let fs = SimFs::new();
    let db = beside_a_table(&fs, "key");
    move_in(&db).expect("an ingestion");
    let name = db.files().iter().map(|file| file.number).max().expect("a table");
    let own = format!("/data/db/{name:06}.ldb");
    let error = db
        .ingest_with(&[own.as_str()], IngestOptions::new().move_files(true))
        .expect_err("its own");
    assert!(
        error.kind() == ErrorKind::InvalidArgument && error.message().contains(&own),
        "{error}"
    );
    assert!(db.get("key").expect("a read").is_some() && fs.contents(Path::new(&own)).is_some());
}

/// It sees what was there when it was made, from both ends, and is no snapshot that would have a
/// table rewritten.
#[test]
fn a_range_is_of_one_moment_and_in_nobodys_way() {
    let fs = SimFs::new();
    let db = beside_a_table(&fs, "key");
    db.put("a", "1").expect("a write");
    db.put("b", "1").expect("a write");
    let mut entries = db.iter().expect("entries");
    assert_eq!(entries.next().expect("an entry").expect("a read").0, b"a");
    db.delete("b").expect("a deletion");
    assert_eq!(db.stats().snapshots, 0);
    assert_eq!(move_in(&db).expect("an ingestion").sequence, 0, "taken in as it is");
    db.close().expect("a close");
    assert_eq!(entries.next_back().expect("an entry").expect("a read").0, b"b");
    assert!(entries.next().is_none() && entries.next_back().is_none());
}

/// Taken away from it, its table would be missing.
#[test]
fn a_table_of_the_database_is_its_own_under_any_path() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, outside) = (dir.path().join("db"), dir.path().join("outside"));
    let db = Db::open(&path, Options::new().create_if_missing(true)).expect("a database");
    let mut writer = TableWriter::create(&outside, &Options::new()).expect("a table");
    writer.put("key", "value").expect("an entry");
    writer.finish().expect("a finished table");
    db.ingest_with(&[&outside], IngestOptions::new().move_files(true)).expect("an ingestion");
    std::os::unix::fs::symlink("db", dir.path().join("another name")).expect("a link");
    std::fs::create_dir(dir.path().join("beside")).expect("a directory");
    let table = format!("{:06}.ldb", db.files()[0].number);
    for other in ["db", "another name", "beside/../db", "./another name"] {
        let own = dir.path().join(other).join(&table);
        let error =
            db.ingest_with(&[&own], IngestOptions::new().move_files(true)).expect_err("its own");
        assert!(
            error.kind() == ErrorKind::InvalidArgument && path.join(&table).exists(),
            "{other}: {error}"
        );
    }
}

#[test]
fn a_table_that_cannot_be_linked_is_copied_and_one_that_cannot_be_removed_stays() {
    for kind in [OpKind::Link, OpKind::Remove] {
        for fault in [Fault::Access, Fault::Late] {
            let fs = SimFs::new();
            let db = beside_a_table(&fs, "key");
            let suffix = "/table".to_owned();
            fs.set_faults(Some(FaultPlan {
                kinds: vec![kind],
                suffix,
                ..FaultPlan::at(0, fault, false)
            }));
            assert_eq!(move_in(&db).expect("an ingestion").tables, 1, "{kind:?} {fault:?}");
            assert_eq!(fs.injected(), 1);
            fs.set_faults(None);
            let stays = kind == OpKind::Remove && fault == Fault::Access;
            assert_eq!(fs.contents(Path::new(OUTSIDE)).is_some(), stays, "{kind:?} {fault:?}");
            // A name that was left does no harm: the table is removed and created as any other.
            db.put("key", "newer").expect("a write");
            db.compact_range::<&[u8]>(..).expect("a compaction");
            assert_eq!(db.get("key").expect("a read").as_deref(), Some(&b"newer"[..]));
            assert_eq!(fs.contents(Path::new(OUTSIDE)).is_some(), stays, "{kind:?} {fault:?}");
            assert!(db.verify().expect("a check").is_clean());
        }
    }
}

#[test]
fn leveldb_reads_what_was_loaded_and_taken_in() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (path, outside) = (dir.path().join("db"), dir.path().join("outside"));
    let make = || {
        Options::new().create_if_missing(true).write_buffer_size(64 << 10).max_file_size(1 << 20)
    };
    let db = Db::open(&path, make()).expect("a database");
    let mut digest = Digest::default();
    let mut writer = TableWriter::create(&outside, &make()).expect("a table");
    (0..3_000).for_each(|number| writer.put(key(number), "taken in").expect("an entry"));
    writer.finish().expect("a finished table");
    db.ingest_with(&[&outside], IngestOptions::new().move_files(true)).expect("an ingestion");
    let entries: Vec<_> =
        (1_000..20_000).rev().map(|number| (key(number), b"loaded".to_vec())).collect();
    load(&db, &entries, BulkLoadOptions::new().memory(1 << 20));
    (0..20_000).step_by(3).for_each(|number| db.put(key(number), "written").expect("a write"));
    db.close().expect("a close");
    for number in 0..20_000 {
        let text = if number % 3 == 0 {
            "written"
        } else if number < 1_000 {
            "taken in"
        } else {
            "loaded"
        };
        digest.add(&key(number), text.as_bytes());
    }
    assert_eq!(peer.digest(&path, &PeerOptions::default()).expect("LevelDB reads"), digest);
    peer.simple("compact", &path, &PeerOptions::default()).expect("LevelDB compacts");
    assert_eq!(peer.digest(&path, &PeerOptions::default()).expect("LevelDB reads"), digest);
    let db = Db::open(&path, make()).expect("a database");
    assert!(db.verify().expect("a check").is_clean());
}
