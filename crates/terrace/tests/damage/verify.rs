//! A check of a database finds every kind of damage, names the place, and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use terrace::{
    BloomFilterPolicy, CompactOptions, Db, ErrorKind, Options, VerifyReport, WriteOptions, repair,
    verify, verify_with,
};
use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::workload::Workload;

use crate::database::{build, contents, contents_of, flip, manifest, names, options};

fn filtered() -> Options {
    options().filter_policy(Some(Arc::new(BloomFilterPolicy::new(10))))
}

/// Every file with its bytes and time.
fn image(dir: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let file = |name: String| {
        let path = dir.join(&name);
        let changed = fs::metadata(&path).expect("stats").modified().expect("a time");
        (name, (fs::read(&path).expect("reads"), changed))
    };
    names(dir, "").into_iter().filter(|name| dir.join(name).is_file()).map(file).collect()
}

#[track_caller]
fn finds(dir: &Path, file: &str, what: &str) -> VerifyReport {
    let before = image(dir);
    let report = verify(dir, &filtered()).expect("checks");
    assert_eq!(image(dir), before);
    let found = report
        .problems
        .iter()
        .any(|problem| problem.file == file && problem.message.contains(what));
    assert!(found, "no {what:?} in {file}: {:#?}", report.problems);
    report
}

#[test]
fn a_healthy_database_is_clean_and_stays_as_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let model = build(dir.path(), filtered(), 1);
    assert!(contents(dir.path(), filtered().read_only(true)) == model);
    let before =
        (image(dir.path()), fs::metadata(dir.path()).expect("stats").modified().expect("a time"));
    let (mut last, mut calls) = (0, 0);
    let report = verify_with(dir.path(), &filtered(), &mut |progress| {
        assert!(progress.done >= last && progress.done <= progress.total);
        (last, calls) = (progress.done, calls + 1);
    })
    .expect("checks");
    let after =
        (image(dir.path()), fs::metadata(dir.path()).expect("stats").modified().expect("a time"));
    assert_eq!(before, after);
    assert!(report.is_clean() && report.notes.is_empty(), "{report:#?}");
    assert!(calls > 100 && last > 0);
    let tables = names(dir.path(), ".ldb").len() as u64;
    assert_eq!(report.files, tables + 3, "{report:?}");
    assert!(report.entries as usize > model.len() && report.blocks > 10 * tables);
    assert!(report.log_records >= 1500 && report.bytes > 100_000);
}

/// What is behind the table is read, too.
#[test]
fn progress_does_not_go_back_at_a_table_that_is_too_long() {
    let dir = tempfile::tempdir().expect("a directory");
    build(dir.path(), filtered(), 1);
    let table = dir.path().join(&names(dir.path(), ".ldb")[0]);
    fs::write(&table, [fs::read(&table).expect("reads"), vec![0; 1 << 20]].concat())
        .expect("writes");
    let mut last = 0;
    let report = verify_with(dir.path(), &filtered(), &mut |progress| {
        assert!(progress.done >= last && progress.done <= progress.total, "{last}, {progress:?}");
        last = progress.done;
    });
    assert!(!report.expect("checks").is_clean());
}

#[test]
fn an_open_database_is_checked_under_load() {
    let dir = tempfile::tempdir().expect("a directory");
    build(dir.path(), filtered(), 2);
    let db = Db::open(dir.path(), filtered()).expect("opens");
    assert_eq!(verify(dir.path(), &filtered()).expect_err("in use").kind(), ErrorKind::Busy);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..20_000 {
                let sync = WriteOptions { sync: number % 1000 == 0 };
                let mut batch = terrace::WriteBatch::new();
                batch.put(format!("key{:05}", number * 7919 % 3000), vec![number as u8; 100]);
                db.write_with(&batch, sync).expect("writes");
            }
        });
        while !writer.is_finished() {
            let report = db.verify().expect("checks");
            assert!(report.is_clean(), "{report:#?}");
        }
    });
    let model = contents_of(&db);
    assert_eq!(model.len(), 3000);
    drop(db);
    let reader = Db::open(dir.path(), filtered().read_only(true)).expect("opens");
    assert!(reader.verify().expect("checks").is_clean());
    assert!(verify(dir.path(), &filtered()).expect("readers do not exclude each other").is_clean());
}

#[test]
fn damage_in_tables_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path();
    build(path, filtered(), 3);
    let name = names(path, ".ldb").remove(0);
    let bytes = fs::read(path.join(&name)).expect("reads");
    let healthy = verify(path, &filtered()).expect("checks");

    flip(path, &name, 5);
    let report = finds(path, &name, "block at offset 0: checksum mismatch");
    assert_eq!(report.problems.len(), 1, "the check goes on with the rest: {report:#?}");
    assert!(report.entries < healthy.entries && report.blocks == healthy.blocks - 1);

    // Filter, properties, metaindex, index: everything behind the data blocks, too.
    for from_end in [60, 100, 300, 500, 800] {
        fs::write(path.join(&name), &bytes).expect("writes");
        flip(path, &name, bytes.len() - from_end);
        finds(path, &name, "checksum mismatch");
    }
    fs::write(path.join(&name), &bytes).expect("writes");
    flip(path, &name, bytes.len() - 3);
    finds(path, &name, "not a table");
    fs::write(path.join(&name), &bytes[..bytes.len() - 10]).expect("writes");
    finds(path, &name, "the MANIFEST says");
    fs::remove_file(path.join(&name)).expect("removes");
    finds(path, &name, "missing");
    // Another table of the same database under this name: sound in itself.
    let other = names(path, ".ldb").pop().expect("another");
    fs::copy(path.join(&other), path.join(&name)).expect("copies");
    finds(path, &name, "the MANIFEST says");
}

#[test]
fn damage_in_logs_manifest_and_current_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path();
    build(path, filtered(), 4);
    let log = names(path, ".log").pop().expect("a log");
    let bytes = fs::read(path.join(&log)).expect("reads");
    flip(path, &log, 20_000);
    let report = finds(path, &log, "checksum mismatch at offset");
    assert!(report.log_records > 1000 && report.problems.len() == 1, "{report:#?}");
    // A log that ends early is a torn tail, unless a later mark shows that more was there.
    fs::write(path.join(&log), &bytes[..bytes.len() - 3]).expect("writes");
    let report = verify(path, &filtered()).expect("checks");
    let notes: Vec<_> =
        report.notes.iter().map(|note| (note.file.as_str(), note.message.as_str())).collect();
    assert!(report.is_clean(), "{report:#?}");
    assert!(
        matches!(notes[..], [(file, message)] if file == log && message.contains("incomplete record")),
        "{notes:?}"
    );
    fs::remove_file(path.join(&log)).expect("removes");
    finds(path, &log, "missing");
    fs::write(path.join(&log), &bytes).expect("writes");

    let current = fs::read(path.join("CURRENT")).expect("reads");
    let manifest = manifest(path);
    let manifest_bytes = fs::read(path.join(&manifest)).expect("reads");
    // The beginning of an edit, as a crash or a full disk leaves it.
    fs::write(path.join(&manifest), [&manifest_bytes[..], &[1, 2, 3, 4, 100, 0, 1, 2]].concat())
        .expect("writes");
    let report = verify(path, &filtered()).expect("checks");
    assert!(report.is_clean(), "{report:#?}");
    assert!(
        report.notes.iter().any(|note| note.file == manifest && note.message.contains("torn")),
        "{report:#?}"
    );
    fs::write(path.join(&manifest), &manifest_bytes).expect("writes");
    flip(path, &manifest, 12);
    let report = finds(path, &manifest, "checksum mismatch at offset 0");
    assert!(
        report.entries > 0 && report.log_records > 0,
        "tables and logs are checked all the same"
    );
    fs::write(path.join(&manifest), &manifest_bytes[..30]).expect("writes");
    finds(path, &manifest, "records no");
    fs::remove_file(path.join(&manifest)).expect("removes");
    finds(path, &manifest, "missing");
    fs::write(path.join(&manifest), manifest_bytes).expect("writes");
    for bad in [&b""[..], b"MANIFEST-000001", b"../MANIFEST-000001\n"] {
        fs::write(path.join("CURRENT"), bad).expect("writes");
        finds(path, "CURRENT", "does not name a MANIFEST");
    }
    fs::remove_file(path.join("CURRENT")).expect("removes");
    finds(path, "CURRENT", "missing");
    fs::write(path.join("CURRENT"), current).expect("writes");

    // Notes are no files of the database.
    fs::write(path.join("000999.ldb"), "not a table").expect("writes");
    fs::write(path.join("foreign"), "anything").expect("writes");
    let report = verify(path, &filtered()).expect("checks");
    assert!(report.is_clean());
    assert!(
        report.notes.iter().any(|note| note.file == "000999.ldb") && report.notes.len() == 1,
        "{report:#?}"
    );
}

#[test]
fn what_keeps_it_from_checking_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let missing = verify(dir.path().join("none"), &filtered()).expect_err("no directory");
    assert_eq!(missing.kind(), ErrorKind::InvalidArgument);
    fs::write(dir.path().join("foreign"), "").expect("writes");
    assert_eq!(
        verify(dir.path(), &filtered()).expect_err("empty").kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(names(dir.path(), ""), ["foreign"]);
    build(dir.path(), filtered(), 5);
    let reverse = filtered().comparator(Arc::new(terrace_testkit::model::ReverseComparator));
    let refused = verify(dir.path(), &reverse).expect_err("another order");
    assert!(
        refused.kind() == ErrorKind::InvalidArgument && refused.message().contains("comparator"),
        "{refused}"
    );
}

/// LevelDB ends a table between any two versions of a key, which is legal in its format.
#[test]
fn a_key_that_leveldb_split_over_two_tables_is_healthy() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path();
    let peer_options = PeerOptions {
        snappy: false,
        write_buffer: 1 << 20,
        max_file_size: 1 << 20,
        ..PeerOptions::default()
    };
    peer.split(path, &peer_options, 60).expect("LevelDB compacts");
    let newest =
        |key: &str| [format!("{key}{:016}", 59).into_bytes(), vec![b'.'; 20_000 - 17]].concat();
    let mut expected: BTreeMap<_, _> =
        ["a", "c"].map(|key| (key.as_bytes().to_vec(), newest(key))).into();
    assert!(contents(path, options().read_only(true)) == expected);

    let reader = Db::open(path, options().read_only(true)).expect("opens");
    let files = reader.files();
    let shared = files
        .windows(2)
        .filter(|pair| pair[0].level == pair[1].level && pair[0].largest == pair[1].smallest);
    assert!(shared.count() >= 2, "LevelDB did not split a key: {files:?}");
    expected
        .iter()
        .for_each(|(key, value)| assert_eq!(reader.get(key).expect("reads").as_ref(), Some(value)));
    assert!(reader.verify().expect("checks").is_clean());
    drop(reader);
    let report = verify(path, &options()).expect("checks");
    assert!(report.is_clean(), "{report:#?}");
    let tables = names(path, ".ldb");
    let before = image(path);
    let report = repair(path, &options()).expect("repairs");
    assert!(report.problems.is_empty() && report.moved.is_empty(), "{report:#?}");
    assert_eq!(names(path, ".ldb"), tables, "nothing was rewritten");
    assert!(image(path) == before);

    // A deletion hides every version, in whatever table it is, wherever it is compacted to.
    let db = Db::open(path, options()).expect("opens");
    for key in ["b", "c", "b", "c", "a", "a"] {
        if key == "c" {
            db.delete("c").expect("deletes");
            expected.remove(b"c".as_slice());
        }
        let force = CompactOptions::new().force(true);
        db.compact_range_with(key..=key, force).expect("compacts");
        assert!(contents_of(&db) == expected, "after {key}");
        ["b", key].iter().for_each(|key| {
            assert_eq!(db.get(key).expect("reads").as_ref(), expected.get(key.as_bytes()))
        });
        let report = db.verify().expect("checks");
        assert!(report.is_clean(), "{report:#?}");
    }
    db.close().expect("closes");
    assert_eq!(peer.get(path, &peer_options, b"b").expect("LevelDB reads"), None);
    assert_eq!(peer.get(path, &peer_options, b"a").expect("LevelDB reads"), Some(newest("a")));
}

#[test]
fn databases_of_leveldb_are_clean_and_its_repair_is_found_out() {
    let Some(peer) = Peer::find() else { return };
    // Which tables LevelDB's repair gets wrong depends on when it compacted what: several attempts.
    let mut found_out = 0;
    for seed in 1..=20 {
        let dir = tempfile::tempdir().expect("a directory");
        let db = dir.path().join("db");
        let (bloom, snappy, kill) =
            (if seed % 2 == 0 { 10 } else { 0 }, seed % 3 == 0, seed % 4 == 0);
        let peer_options =
            PeerOptions { bloom, snappy, write_buffer: 1 << 16, ..PeerOptions::default() };
        let workload = Workload::new(seed);
        let fill = Fill { workload, from: 0, to: 20_000, batch: 5, sync_every: 100, kill };
        peer.fill(&db, &peer_options, &fill).expect("fills");
        let report = verify(&db, &filtered()).expect("checks");
        assert!(report.is_clean() && report.entries > 1000, "seed {seed}: {report:#?}");
        if kill {
            // Tables that a compaction has replaced may remain, and a repair
            // cannot tell them from data.
            continue;
        }
        peer.simple("repair", &db, &peer_options).expect("repairs");
        let report = verify(&db, &filtered()).expect("checks");
        let spoilt =
            report.problems.iter().any(|problem| problem.message.contains("hides a newer entry"));
        let still_right = peer.verify(&db, &peer_options, workload, 20_000).is_ok();
        assert!(spoilt || still_right, "seed {seed}: {report:#?}");
        found_out += u32::from(spoilt);
        if found_out > 1 && seed > 3 {
            return;
        }
    }
    panic!("the repair of LevelDB never brought an old value back");
}
