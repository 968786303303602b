//! Faults of LevelDB with the same files, which Terrace must not have.
//!
//! One test per known fault of LevelDB 1.23 that shows in the files or in the results. The
//! databases are written by LevelDB itself where the fault is about reading them; those tests need
//! it (see `terrace_testkit::leveldb`). What concerns failing disks and power cuts is in
//! `tests/durability`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use terrace::{Db, Error, ErrorKind, Options, ReadOptions, RecoveryMode, WriteBatch, WriteOptions};
use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::watchdog::Watchdog;
use terrace_testkit::workload::{Digest, Operation, State, Workload};

const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The files of a database with an extension, in order of their numbers.
fn files(db: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(db).expect("a database directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    paths.sort();
    paths
}

fn bytes_on_disk(db: &Path) -> u64 {
    let entries = fs::read_dir(db).expect("a database directory");
    entries.map(|entry| entry.and_then(|e| e.metadata()).map_or(0, |data| data.len())).sum()
}

fn flip(path: &Path, offset: usize, bit: u32) {
    let mut bytes = fs::read(path).expect("a file of the database");
    bytes[offset] ^= 1 << bit;
    fs::write(path, bytes).expect("the file can be replaced");
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a database directory") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("a copy");
        }
    }
}

/// Everything in order, or the error that ended the scan.
fn scan(db: &Db) -> Result<Digest, Error> {
    let mut cursor = db.cursor()?;
    let mut digest = Digest::default();
    cursor.seek_to_first();
    while cursor.valid() {
        digest.add(cursor.key(), cursor.value());
        cursor.next();
    }
    cursor.status()?;
    Ok(digest)
}

fn state_after(workload: Workload, operations: u64) -> State {
    let mut state = State::new(workload);
    state.advance(operations);
    state
}

/// A database of LevelDB's whose last operations are in a log.
fn written_by_leveldb(
    peer: &Peer,
    path: &Path,
    workload: Workload,
    operations: u64,
    options: &PeerOptions,
) {
    let fill = Fill { workload, from: 0, to: operations, batch: 1, sync_every: 100, kill: false };
    peer.fill(path, options, &fill).expect("LevelDB writes");
}

fn assert_names_file(error: &Error, path: &Path) {
    let name = path.file_name().expect("a name").to_string_lossy();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains(&*name), "{error} does not name {name}");
}

/// LevelDB opens, drops the rest of the block and replays what follows: a hole in the history.
#[test]
fn a_flipped_bit_in_a_log_of_leveldb_cuts_the_history_there() {
    let Some(peer) = Peer::find() else { return };
    let _watchdog = Watchdog::new(TIME_LIMIT, "a flipped bit in a log of LevelDB");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let healthy = dir.path().join("healthy");
    let workload = Workload::new(31);
    const OPERATIONS: u64 = 5_000;
    written_by_leveldb(&peer, &healthy, workload, OPERATIONS, &PeerOptions::default());
    let log = files(&healthy, "log").pop().expect("a log");
    let length = fs::metadata(&log).expect("a log").len() as usize;
    let mut random = Rng::new(31);
    for case in 0..scaled(100).max(5) {
        let damaged = dir.path().join(format!("damaged-{case}"));
        copy(&healthy, &damaged);
        let log = damaged.join(log.file_name().expect("a name"));
        // The last twentieth is left alone, so that good records follow.
        let (offset, bit) = (random.below(length / 20 * 19), random.below(8) as u32);
        flip(&log, offset, bit);
        println!("case {case}: offset {offset}, bit {bit}");

        let strict = Db::open(&damaged, Options::new().paranoid_checks(true))
            .expect_err("a strict open refuses");
        assert_names_file(&strict, &log);

        let db = Db::open(&damaged, Options::new()).expect("a prefix can be recovered");
        let kept = db.stats().sequence;
        assert!(kept < OPERATIONS, "the damaged record was taken");
        assert_eq!(
            scan(&db).expect("a scan"),
            state_after(workload, kept).digest(false),
            "after {kept} operations"
        );
        db.put("goes", "on").expect("the database works");
        db.close().expect("a close");
        let saved = files(&damaged.join("lost"), "log");
        assert_eq!(saved.len(), 1, "the damaged log is kept");
        assert_eq!(
            fs::metadata(&saved[0]).expect("a log").len() as usize,
            length,
            "the damaged log is kept whole"
        );
        let again = Db::open(&damaged, Options::new()).expect("a second open");
        assert_eq!(again.get("goes").expect("a read").as_deref(), Some(&b"on"[..]));
        drop(again);
        peer.digest(&damaged, &PeerOptions::default()).expect("LevelDB reads what is left");
        fs::remove_dir_all(&damaged).expect("the copy can go");
    }
}

#[test]
fn salvage_takes_what_follows_the_damage() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let workload = Workload::new(32);
    written_by_leveldb(&peer, &path, workload, 5_000, &PeerOptions::default());
    let log = files(&path, "log").pop().expect("a log");
    let third = fs::metadata(&log).expect("a log").len() as usize / 3;
    flip(&log, third, 0);
    let db = Db::open(&path, Options::new().recovery_mode(RecoveryMode::Salvage))
        .expect("salvage opens");
    assert_eq!(db.stats().sequence, 5_000);
    let Some((key, value)) = (0..5_000).rev().find_map(|i| match workload.operation(i) {
        Operation::Put { key, value } => Some((key, value)),
        Operation::Delete { .. } => None,
    }) else {
        panic!("the workload puts nothing");
    };
    assert_eq!(db.get(&key).expect("a read"), Some(value), "the last put lies behind the damage");
}

/// LevelDB loses keys that were acknowledged as synced, and reports nothing.
#[test]
fn a_flipped_bit_in_synced_data_is_an_error() {
    let _watchdog = Watchdog::new(TIME_LIMIT, "a flipped bit in synced data");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let healthy = dir.path().join("healthy");
    let options = || Options::new().create_if_missing(true);
    let db = Db::open(&healthy, options()).expect("a new database");
    let workload = Workload::new(33);
    for i in 0..3_000 {
        let mut batch = WriteBatch::new();
        match workload.operation(i) {
            Operation::Put { key, value } => batch.put(&key, &value),
            Operation::Delete { key } => batch.delete(&key),
        }
        db.write_with(&batch, WriteOptions { sync: i % 100 == 99 }).expect("a write");
    }
    db.close().expect("a close");
    let log = files(&healthy, "log").pop().expect("a log");
    let length = fs::metadata(&log).expect("a log").len();
    let mut random = Rng::new(33);
    for case in 0..scaled(100).max(5) {
        let damaged = dir.path().join(format!("damaged-{case}"));
        copy(&healthy, &damaged);
        let log = damaged.join(log.file_name().expect("a name"));
        let (offset, bit) = (random.below(length as usize / 20 * 19), random.below(8) as u32);
        flip(&log, offset, bit);
        let error = Db::open(&damaged, options()).expect_err("damage to synced data");
        assert_names_file(&error, &log);
        let error =
            Db::open(&damaged, options().read_only(true)).expect_err("damage to synced data");
        assert_names_file(&error, &log);
        assert_eq!(
            fs::metadata(&log).expect("the log").len(),
            length,
            "a refused open changes nothing"
        );
        fs::remove_dir_all(&damaged).expect("the copy can go");
    }
}

/// LevelDB's default reads check no checksums: 28 of 200 flips gave wrong results without an error.
#[test]
fn a_flipped_bit_in_a_table_is_an_error_or_harmless() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let workload = Workload::new(34);
    let options = PeerOptions { bloom: 10, write_buffer: 64 << 10, ..PeerOptions::default() };
    written_by_leveldb(&peer, &path, workload, 5_000, &options);
    peer.simple("compact", &path, &options).expect("LevelDB compacts");
    let expected = state_after(workload, 5_000).digest(false);
    let tables = files(&path, "ldb");
    let mut random = Rng::new(34);
    let mut refused = 0;
    let cases = scaled(1_000).max(40);
    for case in 0..cases {
        let table = random.pick(&tables);
        let original = fs::read(table).expect("a table");
        let (offset, bit) = (random.below(original.len()), random.below(8) as u32);
        flip(table, offset, bit);
        let place = format!(
            "case {case}: {} offset {offset} of {}, bit {bit}",
            table.display(),
            original.len()
        );
        match Db::open(&path, Options::new().read_only(true)).and_then(|db| scan(&db)) {
            Ok(digest) => assert_eq!(digest, expected, "{place}"),
            Err(error) => {
                assert_names_file(&error, table);
                refused += 1;
            }
        }
        fs::write(table, original).expect("the table can be restored");
    }
    // Only filters, metaindex and the footer's padding are not read by a scan.
    assert!(refused * 10 > cases * 8, "only {refused} of {cases} flips were noticed");
    println!("{refused} of {cases} flips were noticed, the others did no harm");
}

/// LevelDB follows the path out of the directory.
#[test]
fn current_does_not_lead_out_of_the_directory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for name in ["evil", "db"] {
        let db = Db::open(dir.path().join(name), Options::new().create_if_missing(true))
            .expect("a new database");
        db.put("owner", name).expect("a write");
        db.close().expect("a close");
    }
    let db = dir.path().join("db");
    let manifest = fs::read_to_string(dir.path().join("evil/CURRENT")).expect("CURRENT");
    fs::write(db.join("CURRENT"), format!("../evil/{manifest}")).expect("CURRENT can be replaced");
    for options in
        [Options::new(), Options::new().create_if_missing(true), Options::new().read_only(true)]
    {
        let error = Db::open(&db, options).expect_err("CURRENT names a foreign file");
        assert_names_file(&error, Path::new("CURRENT"));
    }
}

/// LevelDB may split the versions of one key over two files of a level, and then an old one comes
/// back.
#[test]
fn the_versions_of_a_key_stay_in_one_file() {
    let _watchdog = Watchdog::new(TIME_LIMIT, "the versions of a key");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let options = || {
        Options::new().create_if_missing(true).write_buffer_size(64 << 10).max_file_size(1 << 20)
    };
    let db = Db::open(&path, options()).expect("a new database");
    let mut random = Rng::new(35);
    let mut snapshots = Vec::new();
    // Snapshots keep every version: each key has several files' worth of them.
    for version in 0_u32..300 {
        for key in ["a", "b", "c"] {
            let mut value: Vec<u8> = (0..10_000).map(|_| random.next_u64() as u8).collect();
            value[..4].copy_from_slice(&version.to_be_bytes());
            db.put(key, value).expect("a write");
        }
        snapshots.push(db.snapshot());
    }
    db.compact_range::<&[u8]>(..).expect("a compaction");
    let tables = db.files();
    assert!(
        tables.iter().any(|table| table.level > 0 && table.size > 2 << 20),
        "no file outgrew its limit"
    );
    for level in 1..7 {
        let mut here: Vec<_> = tables.iter().filter(|table| table.level == level).collect();
        here.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        for pair in here.windows(2) {
            assert!(
                pair[0].largest < pair[1].smallest,
                "level {level}: {:?} is in two files",
                pair[0].largest
            );
        }
    }
    for (version, snapshot) in snapshots.iter().enumerate() {
        let value = db
            .get_with("b", &ReadOptions::new().snapshot(snapshot))
            .expect("a read")
            .expect("a value");
        assert_eq!(value[..4], (version as u32).to_be_bytes());
    }
    db.delete("b").expect("a delete");
    drop(snapshots);
    db.compact_range("b"..="b").expect("a compaction");
    assert_eq!(db.get("b").expect("a read"), None);
    db.close().expect("a close");
    if let Some(peer) = Peer::find() {
        assert_eq!(peer.get(&path, &PeerOptions::default(), b"b").expect("LevelDB reads"), None);
        assert_eq!(peer.digest(&path, &PeerOptions::default()).expect("LevelDB reads").count(), 2);
    }
}

/// LevelDB's MANIFEST grows until the database is opened again.
#[test]
fn the_manifest_rolls_over() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let options = || Options::new().create_if_missing(true).max_manifest_size(4 << 10);
    let db = Db::open(&path, options()).expect("a new database");
    let manifests = || {
        let entries = fs::read_dir(&path)
            .expect("a database directory")
            .map(|entry| entry.expect("an entry"));
        let found =
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("MANIFEST-"));
        found
            .map(|entry| (entry.file_name(), entry.metadata().map_or(0, |data| data.len())))
            .collect::<Vec<_>>()
    };
    let first = manifests();
    let mut largest = 0;
    for i in 0..300 {
        db.put(format!("key {:03}", i % 10), format!("value {i}")).expect("a write");
        db.flush().expect("a flush");
        largest = manifests().iter().map(|(_, size)| *size).max().unwrap_or(0).max(largest);
    }
    assert_ne!(manifests(), first);
    assert!(largest < 16 << 10, "a MANIFEST of {largest} bytes");
    db.wait_idle().expect("nothing to do");
    assert_eq!(manifests().len(), 1, "old MANIFESTs are removed");
    db.close().expect("a close");
    let db = Db::open(&path, options()).expect("a second open");
    assert_eq!(db.get("key 009").expect("a read").as_deref(), Some(&b"value 299"[..]));
    db.close().expect("a close");
    if let Some(peer) = Peer::find() {
        assert_eq!(peer.digest(&path, &PeerOptions::default()).expect("LevelDB reads").count(), 10);
    }
}

/// In LevelDB deleted data stays until something overlaps it by chance.
#[test]
fn deletes_give_their_space_back() {
    let _watchdog = Watchdog::new(TIME_LIMIT, "deletes give their space back");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let options =
        Options::new().create_if_missing(true).write_buffer_size(1 << 20).max_file_size(1 << 20);
    let db = Db::open(&path, options).expect("a new database");
    let mut random = Rng::new(36);
    let entries = scaled(400_000).max(40_000);
    for i in 0..entries {
        let value: Vec<u8> = (0..25).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        db.put(format!("{i:016}"), value).expect("a write");
    }
    db.flush().expect("a flush");
    db.wait_idle().expect("nothing to do");
    let full = bytes_on_disk(&path);
    for i in 0..entries {
        db.delete(format!("{i:016}")).expect("a delete");
    }
    db.flush().expect("a flush");
    db.wait_idle().expect("nothing to do");
    let by_itself = bytes_on_disk(&path);
    println!("{full} bytes, after deleting everything {by_itself}");
    assert!(by_itself < full / 3, "{full} bytes, and {by_itself} after deleting everything");
    db.compact_range::<&[u8]>(..).expect("a compaction");
    db.wait_idle().expect("nothing to do");
    let compacted = bytes_on_disk(&path);
    assert!(compacted < 1 << 20, "{compacted} bytes after compacting nothing");
}
