//! Repair with the real LevelDB as its judge: what LevelDB's own RepairDB gets wrong, and Terrace's
//! must not.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use terrace::{Db, Error, ErrorKind, Options};
use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::scale::scaled;
use terrace_testkit::watchdog::Watchdog;
use terrace_testkit::workload::{Digest, State, Workload};

const TIME_LIMIT: Duration = Duration::from_secs(300);

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

fn newest_log(db: &Path) -> PathBuf {
    let entries = fs::read_dir(db).expect("a database directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|e| e == "log")).max().expect("a log")
}

/// LevelDB's RepairDB returns old values: it moves every table to level 0 under its old number.
#[test]
fn a_healthy_database_is_the_same_after_repair() {
    let Some(peer) = Peer::find() else { return };
    let _watchdog = Watchdog::new(TIME_LIMIT, "repair of a healthy database");
    for (seed, kill) in [(37, false), (38, true)] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("db");
        let workload = Workload::new(seed);
        let options = PeerOptions { write_buffer: 64 << 10, ..PeerOptions::default() };
        let operations = scaled(200_000).max(20_000);
        let fill = Fill { workload, from: 0, to: operations, batch: 1, sync_every: 0, kill };
        peer.fill(&path, &options, &fill).expect("LevelDB writes");
        let report = terrace::repair(&path, &Options::new()).expect("a repair");
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        let mut state = State::new(workload);
        state.advance(operations);
        let expected = state.digest(false);
        let db = Db::open(&path, Options::new()).expect("the repaired database opens");
        assert_eq!(scan(&db).expect("a scan"), expected, "seed {seed}");
        db.compact_range::<&[u8]>(..).expect("a compaction");
        assert_eq!(scan(&db).expect("a scan"), expected, "seed {seed}, compacted");
        db.close().expect("a close");
        let seen = peer.verify(&path, &options, workload, operations).expect("LevelDB reads");
        assert_eq!(seen, expected, "seed {seed}, LevelDB");
    }
}

/// LevelDB's RepairDB replays logs without looking at checksums.
#[test]
fn repair_takes_no_damaged_record() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let options = PeerOptions { reuse_logs: true, ..PeerOptions::default() };
    for i in 0..40 {
        peer.put(&path, &options, format!("key {i:02}").as_bytes(), b"value")
            .expect("LevelDB writes");
    }
    let log = newest_log(&path);
    let mut bytes = fs::read(&log).expect("a log");
    let at = bytes
        .windows(6)
        .rposition(|window| window == b"key 20")
        .expect("LevelDB went on with its log")
        + 5;
    bytes[at] ^= 8;
    fs::write(&log, bytes).expect("the log can be replaced");
    fs::remove_file(path.join("CURRENT")).expect("CURRENT can go");
    let report = terrace::repair(&path, &Options::new()).expect("a repair");
    assert!(!report.problems.is_empty(), "the damage is not reported");
    let db = Db::open(&path, Options::new()).expect("the repaired database opens");
    let mut kept = 0;
    for entry in db.iter().expect("an iterator") {
        let (key, value) = entry.expect("an entry");
        let number = std::str::from_utf8(&key)
            .ok()
            .and_then(|key| key.strip_prefix("key ")?.parse::<u32>().ok());
        assert!(
            number.is_some_and(|n| n < 40 && n != 20) && value == b"value",
            "{key:?}: {value:?} was never written"
        );
        kept += 1;
    }
    assert!(kept >= 20, "only {kept} of 39 sound entries were kept");
    db.close().expect("a close");
    assert_eq!(peer.digest(&path, &options).expect("LevelDB reads").count(), kept);
}

#[test]
fn a_database_that_leveldb_holds_is_not_repaired() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    peer.put(&path, &PeerOptions::default(), b"key", b"value").expect("LevelDB writes");
    let held = peer.hold_open(&path, &PeerOptions::default()).expect("LevelDB opens the database");
    let error = terrace::repair(&path, &Options::new()).expect_err("LevelDB holds the database");
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    drop(held);
    terrace::repair(&path, &Options::new()).expect("nobody holds the database");
    assert_eq!(
        peer.get(&path, &PeerOptions::default(), b"key").expect("LevelDB reads").as_deref(),
        Some(&b"value"[..])
    );
}

/// Everything that a killed LevelDB left is sound, and verify says so without changing a byte.
#[test]
fn verify_finds_nothing_wrong_with_what_leveldb_wrote() {
    let Some(peer) = Peer::find() else { return };
    for kill in [false, true] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("db");
        let options = PeerOptions { write_buffer: 64 << 10, bloom: 10, ..PeerOptions::default() };
        let fill = Fill {
            workload: Workload::new(39),
            from: 0,
            to: 20_000,
            batch: 5,
            sync_every: 0,
            kill,
        };
        peer.fill(&path, &options, &fill).expect("LevelDB writes");
        let report = terrace::verify(&path, &Options::new()).expect("a verification");
        assert!(report.is_clean(), "{:?}", report.problems);
        assert!(report.entries > 10_000 && report.log_records > 0, "{report:?}");
    }
}
