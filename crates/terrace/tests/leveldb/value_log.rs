//! Databases with value files, which the real LevelDB refuses; and what it reads of them once they
//! are plain again.

use std::collections::BTreeMap;
use std::path::Path;

use terrace::{CompactOptions, Compression, Db, Options};
use terrace_testkit::leveldb::{Peer, PeerOptions};

const THRESHOLD: usize = 1000;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn open(path: &Path, threshold: Option<usize>) -> Db {
    let options = Options::new().create_if_missing(true).write_buffer_size(64 << 10);
    Db::open(path, options.value_log(threshold)).expect("opens")
}

/// Entries of which about half have values of the threshold's size and more.
fn sample(numbers: std::ops::Range<usize>) -> Entries {
    let entry = |number: usize| {
        let value = vec![number as u8; number * 397 % (2 * THRESHOLD)];
        (format!("key{number:04}").into_bytes(), value)
    };
    numbers.map(entry).collect()
}

fn fill(path: &Path, entries: &Entries) {
    let db = open(path, Some(THRESHOLD));
    for (key, value) in entries {
        db.put(key, value).expect("puts");
    }
    db.flush().expect("flushes");
    assert!(db.stats().value_files > 0);
    db.close().expect("closes");
}

fn rewrite(db: &Db) {
    db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true)).expect("compacts");
}

fn entries(db: &Db) -> Entries {
    db.iter().expect("scans").map(|entry| entry.expect("reads")).collect()
}

/// The contents of all files but those that LevelDB writes before it looks at a database.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(path).expect("lists") {
        let entry = entry.expect("lists");
        let name = entry.file_name().into_string().expect("a name");
        if !name.starts_with("LOG") && name != "LOCK" && entry.path().is_file() {
            files.insert(name, std::fs::read(entry.path()).expect("reads"));
        }
    }
    files
}

fn check_refused(peer: &Peer, path: &Path, case: &str) {
    let before = files(path);
    for paranoid in [false, true] {
        let options = PeerOptions { paranoid, ..PeerOptions::default() };
        for command in ["open", "compact"] {
            let refusal = peer.simple(command, path, &options).expect_err("LevelDB refuses");
            let case = format!("{case}: {command}, paranoid {paranoid}: {}", refusal.0);
            assert!(refusal.0.contains("terrace.extended"), "{case}");
            assert!(files(path) == before, "{case}: LevelDB changed a file");
        }
    }
}

#[test]
fn leveldb_refuses_extended_databases_and_changes_nothing() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let expected = sample(0..300);
    fill(&path, &expected);
    check_refused(&peer, &path, "its first MANIFEST");
    // An open begins a MANIFEST with a snapshot of all files.
    for threshold in [Some(THRESHOLD), None] {
        let db = open(&path, threshold);
        assert!(db.stats().value_files > 0);
        db.close().expect("closes");
        check_refused(&peer, &path, "its next MANIFEST");
    }
    let db = open(&path, None);
    db.checkpoint(dir.path().join("copy")).expect("copies");
    assert!(entries(&db) == expected);
    db.close().expect("closes");
    check_refused(&peer, &dir.path().join("copy"), "a checkpoint");
}

/// Tables that LevelDB does not read make a database extended, too.
#[test]
fn leveldb_refuses_tables_with_lz4_and_reads_them_once_they_are_rewritten() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let open = |compression| {
        let options = Options::new().create_if_missing(true).compression(compression);
        Db::open(&path, options).expect("opens")
    };
    let expected = sample(0..300);
    let db = open(Compression::Lz4);
    for (key, value) in &expected {
        db.put(key, value).expect("puts");
    }
    db.flush().expect("flushes");
    db.close().expect("closes");
    check_refused(&peer, &path, "tables with LZ4");
    let db = open(Compression::Snappy);
    assert!(db.stats().is_extended && entries(&db) == expected);
    db.close().expect("closes");
    check_refused(&peer, &path, "its next MANIFEST");
    let db = open(Compression::Snappy);
    rewrite(&db);
    db.close().expect("closes");
    let options = PeerOptions { create: false, ..PeerOptions::default() };
    assert!(peer.entries(&path, &options).expect("LevelDB reads") == expected);
}

#[test]
fn leveldb_reads_every_value_of_a_database_that_is_plain_again() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let expected = sample(0..300);
    fill(&path, &expected);
    let db = open(&path, None);
    rewrite(&db);
    db.close().expect("closes");
    assert!(!files(&path).keys().any(|name| name.ends_with(".vlog")));
    let options = PeerOptions { create: false, ..PeerOptions::default() };
    assert!(peer.entries(&path, &options).expect("LevelDB reads") == expected);
    peer.put(&path, &options, b"key9999", b"LevelDB's").expect("LevelDB writes");
    peer.simple("compact", &path, &options).expect("LevelDB compacts");
    assert!(peer.entries(&path, &options).expect("LevelDB reads")[..300] == expected[..]);
}

#[test]
fn values_of_leveldbs_databases_go_to_value_files() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let options = PeerOptions::default();
    let expected = sample(0..40);
    for (at, (key, value)) in expected.iter().enumerate() {
        peer.put(&path, &options, key, value).expect("LevelDB writes");
        if at == 20 {
            peer.simple("compact", &path, &options).expect("LevelDB compacts");
        }
    }
    let db = open(&path, Some(THRESHOLD));
    assert!(entries(&db) == expected);
    rewrite(&db);
    assert!(db.stats().value_files > 0);
    assert!(entries(&db) == expected);
    assert!(db.verify().expect("checks").problems.is_empty());
    db.close().expect("closes");
    check_refused(&peer, &path, "made of LevelDB's");
    let db = open(&path, None);
    assert!(entries(&db) == expected);
    rewrite(&db);
    db.close().expect("closes");
    assert!(peer.entries(&path, &options).expect("LevelDB reads") == expected);
}

/// LevelDB's repair looks at no comparator's name and knows no value files. As long as it has only
/// written a MANIFEST, everything comes back.
#[test]
fn what_leveldb_repaired_is_repaired_again() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let expected = sample(0..300);
    fill(&path, &expected);
    let values = |path: &Path| -> Vec<String> {
        files(path).into_keys().filter(|name| name.ends_with(".vlog")).collect()
    };
    let before = values(&path);
    peer.simple("repair", &path, &PeerOptions::default()).expect("LevelDB repairs");
    assert_eq!(values(&path), before);
    // An open does not take them for its own leftovers.
    let open_first = dir.path().join("open first");
    std::fs::create_dir(&open_first).expect("a directory");
    for (name, bytes) in files(&path) {
        std::fs::write(open_first.join(name), bytes).expect("writes");
    }
    drop(Db::open(&open_first, Options::new()).expect("opens"));
    assert_eq!(values(&open_first.join("lost")), before);
    for name in before {
        std::fs::rename(open_first.join("lost").join(&name), open_first.join(&name))
            .expect("is moved back");
    }
    for path in [path, open_first] {
        let report = terrace::repair(&path, &Options::new()).expect("repairs");
        assert!(!report.problems.is_empty());
        let db = open(&path, None);
        assert!(entries(&db) == expected, "{}: {report:#?}", path.display());
        assert!(db.verify().expect("checks").problems.is_empty());
        db.close().expect("closes");
    }
}
