//! Checkpoints: what they hold, that they and the database they are of leave each other alone, and
//! and their files after a failure or a crash.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrace::{
    CreateOptions, Db, Env, ErrorKind, MemEnv, Options, PosixEnv, ReadOptions, WriteBatch,
    WriteOptions, destroy,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::hooked::Hooked;
use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::model::ReverseComparator;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, PowerLoss, SimFs};
use terrace_testkit::workload::{Digest, Workload};

const DB: &str = "/data/db";
const COPY: &str = "/data/copies/first";

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(env: Arc<dyn Env>) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(env)
        .write_buffer_size(64 << 10)
        .max_file_size(1 << 20)
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

fn contents(db: &Db) -> Map {
    db.iter().expect("entries").map(|entry| entry.expect("an entry")).collect()
}

/// Opens a checkpoint, checks every file of it and that it holds `expected`; then, that it is a
/// database to work with.
fn check(path: &str, options: Options, expected: &Map) {
    let db = Db::open(path, options.clone().create_if_missing(false)).expect("a database");
    assert!(
        contents(&db) == *expected,
        "{} entries, expected {}",
        contents(&db).len(),
        expected.len()
    );
    let report = db.verify().expect("a check");
    assert!(report.is_clean(), "{report:?}");
    // What it writes is newer than all that it was given.
    let mut expected = expected.clone();
    for (key, number) in expected.clone().into_keys().step_by(7).zip(0..) {
        if number % 3 == 0 {
            db.delete(&key).expect("a deletion");
            expected.remove(&key);
        } else {
            db.put(&key, "newer").expect("a write");
            expected.insert(key, b"newer".to_vec());
        }
    }
    assert!(contents(&db) == expected);
    db.compact_range::<&[u8]>(..).expect("a compaction");
    assert!(contents(&db) == expected);
    db.close().expect("a close");
}

#[test]
fn a_checkpoint_holds_what_was_written_before_it_and_nothing_else() {
    campaign("a_checkpoint_holds_what_was_written_before_it", scaled(60), |seed| {
        let mut rng = Rng::new(seed);
        let env = MemEnv::new();
        let reverse = rng.one_in(5);
        let make = || match reverse {
            true => options(Arc::new(env.clone())).comparator(Arc::new(ReverseComparator)),
            false => options(Arc::new(env.clone())),
        };
        let mut db = Db::open(DB, make()).map_err(|error| error.to_string())?;
        let mut model = Map::new();
        let bound = *rng.pick(&[50, 3_000]);
        for round in 0..4 {
            for _ in 0..rng.below(3_000) {
                let key = key(rng.below(bound));
                if rng.one_in(4) {
                    db.delete(&key).expect("a deletion");
                    model.remove(&key);
                } else {
                    let value = [format!("{round}:").as_bytes(), &rng.bytes(60)].concat();
                    db.put(&key, &value).expect("a write");
                    model.insert(key, value);
                }
            }
            match rng.below(6) {
                0 => db.compact_range::<&[u8]>(..).expect("a compaction"),
                1 => db.flush().expect("a flush"),
                2 => {
                    let mut load = db.bulk_load().expect("a load");
                    for number in 0..rng.below(500) {
                        load.put(key(number), "loaded").expect("an entry");
                        model.insert(key(number), b"loaded".to_vec());
                    }
                    load.finish().expect("a finished load");
                }
                3 => {
                    db.close().expect("a close");
                    db = Db::open(DB, make().read_only(rng.one_in(2))).expect("a database");
                }
                _ => {}
            }
            let copy = format!("/copies/{round}");
            let report = db.checkpoint(&copy).expect("a checkpoint");
            assert_eq!(report.sequence, db.stats().sequence);
            if db.put("later", "x").is_err() {
                // It was read-only.
                db.close().expect("a close");
                db = Db::open(DB, make()).expect("a database");
                db.put("later", "x").expect("a write");
            }
            check(&copy, make(), &model);
            model.insert(b"later".to_vec(), b"x".to_vec());
            assert!(contents(&db) == model, "the database is as it was");
        }
        assert!(db.verify().expect("a check").is_clean());
        Ok(())
    });
}

/// The moment counts at which the checkpoint begins, whatever happens while it is being made.
#[test]
fn concurrent_writes_and_compactions_are_not_in_it_and_do_it_no_harm() {
    let env = Arc::new(Hooked::default());
    let db = Db::open(DB, options(env.clone())).expect("a database");
    (0..2_000).for_each(|number| db.put(key(number), "in a table").expect("a write"));
    db.flush().expect("a flush");
    (0..2_000).step_by(2).for_each(|number| db.put(key(number), "in memory").expect("a write"));
    let expected = contents(&db);
    let meanwhile = db.clone();
    env.once_at("link", move |_| {
        let db = meanwhile;
        // Into the memtable that is being copied; and then every table that it is made of goes.
        (0..500).for_each(|number| db.put(key(number), "later").expect("a write"));
        (500..600).for_each(|number| db.delete(key(number)).expect("a deletion"));
        db.compact_range::<&[u8]>(..).expect("a compaction");
        db.wait_idle().expect("no work");
        // Nor can anybody else make one in this place.
        assert_eq!(db.checkpoint(COPY).expect_err("busy").kind(), ErrorKind::Busy);
    });
    let before = db.files().len();
    let report = db.checkpoint(COPY).expect("a checkpoint");
    assert_eq!((report.tables, report.linked), (before + 1, before));
    assert_eq!(report.sequence, 3_000);
    check(COPY, options(env.clone()), &expected);
    db.wait_idle().expect("no work");
    let tables = env
        .list(Path::new(DB))
        .expect("names")
        .iter()
        .filter(|name| name.ends_with(".ldb"))
        .count();
    assert_eq!(tables, db.files().len(), "tables that only the checkpoint kept are gone");
    assert!(db.verify().expect("a check").is_clean());
}

#[test]
fn a_checkpoint_beside_writers_holds_a_prefix() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path().join("db"), options(PosixEnv::shared())).expect("a database");
    let stop = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each batch has its number under every key: a prefix of the history holds the same one
            // everywhere.
            for number in 1u64.. {
                let mut batch = WriteBatch::new();
                (0..20).for_each(|at| batch.put(key(at), number.to_be_bytes()));
                batch.put(key(100 + number as usize), vec![7; 500]);
                db.write(&batch).expect("a write");
                written.store(number, Ordering::Release);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for round in 0..scaled(30) {
            let copy = dir.path().join(format!("copy{round}"));
            let before = written.load(Ordering::Acquire);
            db.checkpoint(&copy).expect("a checkpoint");
            let copy = Db::open(&copy, Options::new()).expect("a database");
            let found = contents(&copy);
            let number = found
                .get(&key(0))
                .map_or(0, |value| u64::from_be_bytes(value[..].try_into().expect("8 bytes")));
            assert!(
                number >= before,
                "batch {before} was acknowledged, {number} is the last one there"
            );
            let batches = (1..=number).map(|number| key(100 + number as usize));
            let whole: Vec<_> = (0..20).map(key).filter(|_| number > 0).chain(batches).collect();
            assert!(
                found.keys().eq(&whole),
                "round {round}: {} of {} entries",
                found.len(),
                whole.len()
            );
            assert!(
                (0..20).all(|at| number == 0 || found[&key(at)] == number.to_be_bytes()),
                "round {round}"
            );
            assert!(copy.verify().expect("a check").is_clean());
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn leveldb_opens_a_checkpoint() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let db = Db::open(&path, options(PosixEnv::shared())).expect("a database");
    let mut digest = Digest::default();
    for number in 0..20_000 {
        db.put(key(number), "first").expect("a write");
    }
    (0..20_000).step_by(3).for_each(|number| db.put(key(number), "second").expect("a write"));
    for number in 0..20_000 {
        digest.add(&key(number), if number % 3 == 0 { b"second" } else { b"first" });
    }
    let report = db.checkpoint(&copy).expect("a checkpoint");
    assert!(report.linked > 0 && report.linked < report.tables, "{report:?}");
    // LevelDB writes to the copy and compacts it, while the database is open and goes on.
    peer.put(&copy, &PeerOptions::default(), &key(1), b"LevelDB's").expect("LevelDB writes");
    db.put(key(1), "ours").expect("a write");
    db.compact_range::<&[u8]>(..).expect("a compaction");
    peer.simple("compact", &copy, &PeerOptions::default()).expect("LevelDB compacts");
    assert_eq!(
        peer.get(&copy, &PeerOptions::default(), &key(1)).expect("reads").as_deref(),
        Some(&b"LevelDB's"[..])
    );
    peer.put(&copy, &PeerOptions::default(), &key(1), b"first").expect("LevelDB writes");
    assert_eq!(peer.digest(&copy, &PeerOptions::default()).expect("LevelDB reads"), digest);
    assert_eq!(db.get(key(1)).expect("a read").as_deref(), Some(&b"ours"[..]));
    // One of LevelDB's making, old names of tables and all.
    db.close().expect("a close");
    let tables =
        std::fs::read_dir(&copy).expect("a directory").map(|entry| entry.expect("an entry").path());
    for table in tables.filter(|path| path.extension().is_some_and(|extension| extension == "ldb"))
    {
        std::fs::rename(&table, table.with_extension("sst")).expect("renamed");
    }
    let db = Db::open(&copy, Options::new().read_only(true)).expect("a database");
    let second = dir.path().join("second");
    assert!(db.checkpoint(&second).expect("a checkpoint").linked > 0);
    assert_eq!(peer.digest(&second, &PeerOptions::default()).expect("LevelDB reads"), digest);
}

#[test]
fn the_directory_must_be_empty_and_unowned() {
    let env = MemEnv::new();
    let make = || options(Arc::new(env.clone()));
    let db = Db::open(DB, make()).expect("a database");
    db.put("key", "value").expect("a write");
    let refused = |path: &str, kind: ErrorKind, part: &str| {
        let error = db.checkpoint(path).expect_err("refused");
        assert!(error.kind() == kind && error.message().contains(part), "{error}");
    };
    refused(DB, ErrorKind::InvalidArgument, "not empty");
    let mut file = env.create(Path::new("/data/file"), CreateOptions::default()).expect("a file");
    file.append(b"somebody's").expect("written");
    file.close().expect("closed");
    assert!(db.checkpoint("/data/file").is_err());
    assert_eq!(env.file_size(Path::new("/data/file")).expect("a size"), 10);
    refused("/data", ErrorKind::InvalidArgument, "not empty");
    // A LOCK that cannot be locked has another owner.
    let dir = tempfile::tempdir().expect("a directory");
    let (real, copy) = (dir.path().join("db"), dir.path().join("copy"));
    std::fs::create_dir(&copy).expect("a directory");
    std::os::unix::fs::symlink("nowhere", copy.join("LOCK")).expect("a link");
    let on_disk = Db::open(&real, Options::new().create_if_missing(true)).expect("a database");
    on_disk.checkpoint(&copy).expect_err("refused");
    assert!(copy.join("LOCK").is_symlink(), "it is gone");
    // An empty directory will do, and one that is not there with those above it.
    env.create_dir(Path::new("/data/empty"), 0o755).expect("a directory");
    db.checkpoint("/data/empty").expect("a checkpoint");
    db.checkpoint(COPY).expect("a checkpoint");
    refused(COPY, ErrorKind::InvalidArgument, "not empty");
    let expected = Map::from([(b"key".to_vec(), b"value".to_vec())]);
    check("/data/empty", make(), &expected);
    check(COPY, make(), &expected);
    // An empty database has an empty checkpoint.
    let empty = Db::open("/data/nothing", make()).expect("a database");
    assert_eq!(empty.checkpoint("/data/copy of nothing").expect("a checkpoint").tables, 0);
    check("/data/copy of nothing", make(), &Map::new());
    let again = db.clone();
    db.close().expect("a close");
    assert!(again.checkpoint("/data/late").is_err());
    assert!(!env.exists(Path::new("/data/late")).expect("a look"));
}

/// A database with tables on two levels and something in memory, durable but for that.
fn filled(fs: &SimFs) -> (Db, Map) {
    let db = Db::open(DB, options(fs.env())).expect("a database");
    (0..300).for_each(|number| db.put(key(number), "compacted").expect("a write"));
    db.compact_range::<&[u8]>(..).expect("a compaction");
    (0..300).step_by(3).for_each(|number| db.put(key(number), "in a table").expect("a write"));
    db.flush().expect("a flush");
    (0..300).step_by(5).for_each(|number| db.put(key(number), "in memory").expect("a write"));
    db.wait_idle().expect("no work");
    let contents = contents(&db);
    (db, contents)
}

#[test]
fn of_a_checkpoint_that_fails_nothing_stays() {
    let mut failed = 0;
    for fault in [Fault::Io, Fault::NoSpace, Fault::Late] {
        for after in 0.. {
            let fs = SimFs::new();
            let (db, expected) = filled(&fs);
            fs.create_dir(Path::new("/data/copies"), 0o755).expect("a directory");
            fs.set_faults(Some(FaultPlan::at(after, fault, false)));
            let result = db.checkpoint(COPY);
            let injected = fs.injected();
            let shown = fs.injections();
            fs.set_faults(None);
            match result {
                // A link that fails is made up for by a copy, and what goes wrong too late changes
                // nothing.
                Ok(_) => check(COPY, options(fs.env()), &expected),
                Err(error) => {
                    failed += 1;
                    let left = fs.names(Path::new("/data/copies"));
                    assert!(left.is_empty(), "{left:?}: {error}, {shown:?}");
                    db.checkpoint(COPY).expect("a checkpoint, this time");
                    check(COPY, options(fs.env()), &expected);
                }
            }
            assert!(contents(&db) == expected, "{shown:?}");
            db.put("on", "it goes").expect("a write");
            db.flush().expect("a flush");
            if injected == 0 {
                break;
            }
        }
    }
    assert!(failed > 30, "{failed} failures");
}

#[test]
fn tables_that_cannot_be_linked_are_copied_and_a_full_disk_is_an_error() {
    let fs = SimFs::new();
    let (db, expected) = filled(&fs);
    fs.set_faults(Some(FaultPlan {
        kinds: vec![OpKind::Link],
        ..FaultPlan::at(0, Fault::Access, true)
    }));
    let used = fs.used();
    fs.set_capacity(Some(used + 600));
    let error = db.checkpoint(COPY).expect_err("no space");
    assert!(error.kind() == ErrorKind::Io && fs.used() <= used, "{error}");
    fs.set_capacity(None);
    let report = db.checkpoint(COPY).expect("a checkpoint");
    assert!(report.linked == 0 && report.tables > 2, "{report:?}");
    fs.set_faults(None);
    // Right after it the power fails.
    let after = fs.power_loss(PowerLoss::STRICT);
    check(COPY, options(after.env()), &expected);
}

#[test]
fn a_crash_leaves_a_whole_checkpoint_or_none() {
    let (mut whole, mut none) = (0, 0);
    for linked in [true, false] {
        let fs = SimFs::new();
        let (db, expected) = filled(&fs);
        db.put_with("synced", "all before it", WriteOptions::sync()).expect("a write");
        let expected = Map::from_iter(
            expected.into_iter().chain([(b"synced".to_vec(), b"all before it".to_vec())]),
        );
        if !linked {
            fs.set_faults(Some(FaultPlan {
                kinds: vec![OpKind::Link],
                ..FaultPlan::at(0, Fault::Access, true)
            }));
        }
        fs.record();
        db.checkpoint(COPY).expect("a checkpoint");
        fs.set_faults(None);
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        loop {
            let at = replay.at();
            let random = (0..3).map(|seed| PowerLoss::random(seed << 32 | at as u64));
            for loss in [PowerLoss::PROCESS_ONLY, PowerLoss::STRICT].into_iter().chain(random) {
                let context =
                    || format!("linked {linked}, step {at}, {loss:?}\n{}", recording.describe(at));
                let fs = replay.power_loss(loss);
                let has_current = fs.contents(Path::new(&format!("{COPY}/CURRENT"))).is_some();
                let has_files = fs.names(Path::new(COPY)).iter().any(|name| name.ends_with(".ldb"));
                if has_current {
                    whole += 1;
                    check(COPY, options(fs.env()), &expected);
                } else if has_files {
                    none += 1;
                    let error = Db::open(COPY, options(fs.env())).expect_err(&context());
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}\n{}", context());
                    destroy(COPY, &options(fs.env())).expect("removed");
                }
                let db = Db::open(DB, options(fs.env())).expect("a database");
                assert!(contents(&db) == expected, "{}", context());
            }
            if !replay.advance() {
                break;
            }
        }
        assert!(
            fs.power_loss(PowerLoss::STRICT)
                .contents(Path::new(&format!("{COPY}/CURRENT")))
                .is_some()
        );
    }
    assert!(whole >= 10 && none > 30, "{whole} whole, {none} not");
}

/// The tables of a checkpoint are links to those of the database. Without a CURRENT beside them
/// LevelDB makes a new database there, whose numbers begin with 1.
#[test]
fn leveldb_never_writes_into_the_tables_of_a_checkpoint_that_was_killed() {
    let Some(peer) = Peer::find() else { return };
    let fs = SimFs::new();
    let (db, _) = filled(&fs);
    fs.record();
    db.checkpoint(COPY).expect("a checkpoint");
    let recording = fs.take_recording();
    let mut replay = recording.replay();
    let mut shared = 0;
    loop {
        let fs = replay.power_loss(PowerLoss::PROCESS_ONLY);
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs.export(Path::new("/data"), dir.path()).expect("files");
        let (db, copy) = (dir.path().join("db"), dir.path().join("copies/first"));
        let tables: Vec<_> =
            fs.names(Path::new(DB)).into_iter().filter(|name| name.ends_with(".ldb")).collect();
        shared += tables.iter().filter(|name| copy.join(name).exists()).count();
        let options = PeerOptions { write_buffer: 64 << 10, ..PeerOptions::default() };
        let fill = Fill {
            workload: Workload::new(1),
            from: 0,
            to: 2_000,
            batch: 5,
            sync_every: 0,
            kill: false,
        };
        std::fs::create_dir_all(&copy).expect("a directory");
        peer.fill(&copy, &options, &fill).expect("LevelDB writes");
        for name in tables {
            let before = fs.contents(&Path::new(DB).join(&name));
            let after = std::fs::read(db.join(&name)).ok();
            assert!(
                after == before,
                "LevelDB wrote into {name}:\n{}",
                recording.describe(replay.at())
            );
        }
        if !replay.advance() {
            break;
        }
    }
    assert!(shared > 20, "{shared} tables under two names");
}

#[test]
fn a_table_that_is_not_as_long_as_it_was_is_noticed() {
    let fs = SimFs::new();
    let (db, _) = filled(&fs);
    let table = db.files().iter().map(|file| file.number).min().expect("a table");
    let path = format!("{DB}/{table:06}.ldb");
    let bytes = fs.contents(Path::new(&path)).expect("bytes");
    fs.set_contents(Path::new(&path), &bytes[..bytes.len() - 1]);
    let error = db.checkpoint(COPY).expect_err("damage");
    assert!(error.kind() == ErrorKind::Corruption && error.message().contains(&path), "{error}");
    assert!(fs.names(Path::new(COPY)).is_empty());
}

#[test]
fn snapshots_are_no_part_of_it() {
    let env = MemEnv::new();
    let db = Db::open(DB, options(Arc::new(env.clone()))).expect("a database");
    db.put("key", "old").expect("a write");
    let snapshot = db.snapshot();
    db.put("key", "new").expect("a write");
    db.checkpoint(COPY).expect("a checkpoint");
    let past = ReadOptions::new().snapshot(&snapshot);
    assert_eq!(db.get_with("key", &past).expect("a read").as_deref(), Some(&b"old"[..]));
    check(COPY, options(Arc::new(env)), &Map::from([(b"key".to_vec(), b"new".to_vec())]));
}
