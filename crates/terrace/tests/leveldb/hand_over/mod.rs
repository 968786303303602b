//! Databases go back and forth between Terrace and the real LevelDB, and both read every entry.
//!
//! The expected contents are computed a third time, by the workload's own state, so that a mistake
//! that both engines share is seen too. Needs LevelDB: see `terrace_testkit::leveldb`.

mod crashed;
mod killed;
mod settings;
mod terrace_side;

use std::fs;
use std::path::Path;

use terrace::{Db, ErrorKind, Options};
use terrace_testkit::campaign::campaign;
use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::workload::{State, Workload};

use super::faults::copy;
use settings::Settings;
use terrace_side::Segment;

/// LevelDB's operations at full size; they leave a little more than a million entries.
const MILLION: u64 = 1_700_000;
/// For settings of which one at full size is enough on every change; `make crash` has ten times as
/// many.
const TENTH: u64 = MILLION / 10;

/// LevelDB writes entries, `full` of them at full size, and ends one way; Terrace reads all,
/// changes some, compacts, changes more and ends the other way; LevelDB, paranoid, reads all.
fn there_and_back(full: u64, seed: u64, snappy: bool, bloom_bits: usize, leveldb_killed: bool) {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = dir.path().join("db");
    let settings = Settings::Plain { snappy, bloom_bits };
    let workload = Workload::new(seed);
    let written = scaled(full);
    let changed = written + written / 8;

    let fill = Fill {
        workload,
        from: 0,
        to: written,
        batch: 3,
        sync_every: 100_000,
        kill: leveldb_killed,
    };
    peer.fill(&db, &settings.leveldb(), &fill).expect("LevelDB writes");
    let mut state = State::new(workload);
    state.advance(written);
    eprintln!("seed {seed}, {settings}: LevelDB wrote {} entries", state.len());
    terrace_side::compare(&db, &settings, true, &state);
    terrace_side::compare(&db, &settings, false, &state);

    let kill = !leveldb_killed;
    let segment = Segment {
        workload,
        from: written,
        to: changed,
        batch: 3,
        sync_every: 10_000,
        compact: true,
        kill,
    };
    terrace_side::run(&db, &settings, &segment);
    state.advance(changed);
    let seen =
        peer.verify(&db, &settings.leveldb_paranoid(), workload, changed).expect("LevelDB reads");
    assert_eq!(seen, state.digest(false));
}

#[test]
fn there_and_back_snappy_closed() {
    there_and_back(TENTH, 1, true, 0, false);
}

#[test]
fn there_and_back_snappy_killed() {
    there_and_back(TENTH, 2, true, 0, true);
}

#[test]
fn a_million_entries_snappy_bloom_closed() {
    there_and_back(MILLION, 3, true, 10, false);
}

#[test]
fn there_and_back_snappy_bloom_killed() {
    there_and_back(TENTH, 4, true, 10, true);
}

#[test]
fn there_and_back_raw_closed() {
    there_and_back(TENTH, 5, false, 0, false);
}

#[test]
fn a_million_entries_raw_killed() {
    there_and_back(MILLION, 6, false, 0, true);
}

#[test]
fn there_and_back_raw_bloom_closed() {
    there_and_back(TENTH, 7, false, 10, false);
}

#[test]
fn there_and_back_raw_bloom_killed() {
    there_and_back(TENTH, 8, false, 10, true);
}

/// One database that changes hands several times, each time under other settings.
fn hand_overs(peer: &Peer, seed: u64) {
    let mut random = Rng::new(seed);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = dir.path().join("db");
    let workload = Workload::new(seed);
    let reverse = random.one_in(5);
    let mut state = State::new(workload);
    let mut done = 0;
    for turn in 0..4 {
        let settings = Settings::Random { seed: random.next_u64(), reverse };
        let longest = *random.pick(&[600, 600, 600, 6_000]);
        let to = done + random.between(1, longest) as u64;
        let batch = *random.pick(&[1, 1, 4, 200]);
        let sync_every = *random.pick(&[0, 0, 5, 50]);
        let kill = random.one_in(2);
        // Both programs take turns, whichever begins.
        let leveldb = (turn + seed).is_multiple_of(2);
        println!(
            "  turn {turn}: {} {done}..{to} kill {kill}",
            if leveldb { "LevelDB" } else { "Terrace" }
        );
        if leveldb {
            let fill = Fill { workload, from: done, to, batch, sync_every, kill };
            peer.fill(&db, &settings.leveldb(), &fill).expect("LevelDB writes");
        } else {
            let compact = random.one_in(3);
            let segment = Segment { workload, from: done, to, batch, sync_every, compact, kill };
            terrace_side::run(&db, &settings, &segment);
        }
        done = to;
        state.advance(done);
        if leveldb {
            terrace_side::compare(&db, &settings, random.one_in(2), &state);
        } else {
            let seen = peer
                .verify(&db, &settings.leveldb_paranoid(), workload, done)
                .expect("LevelDB reads");
            assert_eq!(seen, state.digest(reverse));
        }
    }
}

#[test]
fn hand_overs_in_a_row() {
    let Some(peer) = Peer::find() else { return };
    campaign("four hand-overs in a row", scaled(250), |seed| {
        hand_overs(&peer, seed);
        Ok(())
    });
}

#[test]
fn child_that_may_be_killed() {
    terrace_side::child();
}

fn new_database(path: &Path) -> Db {
    let db = Db::open(path, Options::new().create_if_missing(true)).expect("a new database");
    db.put("key", "value").expect("a write");
    db
}

#[test]
fn the_lock_keeps_leveldb_out() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let db = new_database(&path);
    let refused = |why: &str| {
        let error = peer.simple("open", &path, &PeerOptions::default()).expect_err(why);
        assert!(error.0.contains("lock"), "{why}: {error}");
    };
    refused("Terrace holds the database");

    // A second open in the same process fails, and does not take the first one's lock away.
    let again = Db::open(&path, Options::new()).expect_err("the database is open");
    assert_eq!(again.kind(), ErrorKind::Busy, "{again}");
    refused("Terrace still holds the database");
    // So does reading the lock file and closing it, which drops a lock of fcntl's: other systems
    // have no other kind (docs/platforms.md).
    if !cfg!(terrace_portable) {
        drop(fs::File::open(path.join("LOCK")).expect("the lock file"));
        refused("Terrace still holds the database");
    }

    db.put("other", "value").expect("a write");
    db.close().expect("a close");
    let seen = peer.digest(&path, &PeerOptions::default()).expect("nobody holds the database");
    assert_eq!(seen.count(), 2);

    let reader = Db::open(&path, Options::new().read_only(true)).expect("a read-only open");
    refused("Terrace reads the database");
    let another =
        Db::open(&path, Options::new().read_only(true)).expect("readers do not exclude each other");
    drop((reader, another));
    peer.simple("open", &path, &PeerOptions::default()).expect("nobody holds the database");
}

#[test]
fn the_lock_keeps_terrace_out() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    new_database(&path).close().expect("a close");
    let held = peer.hold_open(&path, &PeerOptions::default()).expect("LevelDB opens the database");
    for options in [Options::new(), Options::new().read_only(true)] {
        let error = Db::open(&path, options).expect_err("LevelDB holds the database");
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    }
    let error = terrace::destroy(&path, &Options::new()).expect_err("LevelDB holds the database");
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    drop(held);
    let db = Db::open(&path, Options::new()).expect("nobody holds the database");
    assert_eq!(db.get("key").expect("a read").as_deref(), Some(&b"value"[..]));
}

#[test]
fn a_foreign_comparator_is_refused_both_ways() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    new_database(&path).close().expect("a close");
    let reverse = PeerOptions { reverse: true, ..PeerOptions::default() };
    let error = peer.simple("open", &path, &reverse).expect_err("another comparator");
    assert!(error.0.contains("comparator"), "{error}");
    let settings = Settings::Random { seed: 1, reverse: true };
    let error = Db::open(&path, settings.terrace()).expect_err("another comparator");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("comparator"), "{error}");
}

/// A killed Terrace leaves prepared space behind the records of its log, and LevelDB's `reuse_logs`
/// appends behind that. Neither may lose what the other wrote.
#[test]
fn leveldb_continues_a_log_that_terrace_prepared() {
    let Some(peer) = Peer::find() else { return };
    for (seed, first) in [(51, 0), (52, 1), (53, 400)] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("db");
        let workload = Workload::new(seed);
        let settings = Settings::Plain { snappy: true, bloom_bits: 0 };
        let options = PeerOptions { reuse_logs: true, ..settings.leveldb_paranoid() };
        let segment = Segment {
            workload,
            from: 0,
            to: first,
            batch: 1,
            sync_every: 0,
            compact: false,
            kill: true,
        };
        terrace_side::run(&path, &settings, &segment);
        for (from, kill) in [(first, true), (first + 300, false)] {
            let fill = Fill { workload, from, to: from + 300, batch: 1, sync_every: 0, kill };
            peer.fill(&path, &options, &fill).expect("LevelDB writes");
            let seen = peer.verify(&path, &options, workload, from + 300).expect("LevelDB reads");
            let mut state = State::new(workload);
            state.advance(from + 300);
            assert_eq!(seen, state.digest(false), "seed {seed}");
        }
        let mut state = State::new(workload);
        state.advance(first + 600);
        compare_strictly_and_not(&path, &settings, &state);
        assert!(!path.join("lost").exists(), "nothing was damaged");
    }
}

fn compare_strictly_and_not(path: &Path, settings: &Settings, state: &State) {
    for strict in [true, false] {
        let options = settings.terrace().paranoid_checks(strict).read_only(strict);
        terrace_side::compare_with(path, options, settings, state);
    }
}

/// The same for a log that is empty and begins behind writes of which tables hold nothing: a
/// compaction dropped what they deleted, or a range delete removed it.
#[test]
fn leveldb_continues_an_empty_log_behind_writes_that_no_table_holds() {
    let Some(peer) = Peer::find() else { return };
    type End = fn(&Db) -> terrace::Result<()>;
    let ends: [(&str, End); 2] = [
        ("a compaction", |db| db.delete("key").and_then(|()| db.compact_range::<&[u8]>(..))),
        ("a range delete", |db| db.delete_range::<&[u8]>(..)),
    ];
    for ((what, end), seed) in ends.into_iter().zip(61..) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (live, path) = (dir.path().join("live"), dir.path().join("db"));
        let settings = Settings::Plain { snappy: true, bloom_bits: 0 };
        let options = settings.terrace().range_delete_batch(0).create_if_missing(true);
        let db = Db::open(&live, options).expect("a new database");
        db.put("key", "value").expect("a write");
        end(&db).expect(what);
        // As a killed process leaves it, once no file of it changes any more.
        db.wait_idle().expect("idle");
        copy(&live, &path);
        db.close().expect("a close");

        let workload = Workload::new(seed);
        let options = PeerOptions { reuse_logs: true, ..settings.leveldb_paranoid() };
        let fill = Fill { workload, from: 0, to: 300, batch: 1, sync_every: 0, kill: false };
        peer.fill(&path, &options, &fill).expect("LevelDB writes");
        let mut state = State::new(workload);
        state.advance(300);
        let report = terrace::verify(&path, &settings.terrace()).expect(what);
        assert!(report.is_clean(), "{what}: {:?}", report.problems);
        compare_strictly_and_not(&path, &settings, &state);
        assert!(!path.join("lost").exists(), "{what}: nothing was damaged");
    }
}

/// Everything LevelDB can do to a database that Terrace made: compact, describe, destroy.
#[test]
fn leveldb_maintains_what_terrace_made() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let workload = Workload::new(77);
    let settings = Settings::Random { seed: 3, reverse: false };
    let options = settings.leveldb_paranoid();
    let mut state = State::new(workload);
    for (from, to) in [(0, 4_000), (4_000, 8_000)] {
        let segment =
            Segment { workload, from, to, batch: 1, sync_every: 0, compact: true, kill: from == 0 };
        terrace_side::run(&path, &settings, &segment);
    }
    state.advance(8_000);
    let sizes = peer.property(&path, &options, "leveldb.sstables").expect("a property");
    assert!(sizes.contains("level"), "{sizes}");
    peer.simple("compact", &path, &options).expect("LevelDB compacts");
    assert_eq!(
        peer.verify(&path, &options, workload, 8_000).expect("LevelDB reads"),
        state.digest(false)
    );
    terrace_side::compare(&path, &settings, false, &state);
    peer.simple("destroy", &path, &options).expect("LevelDB destroys");
    assert!(!path.exists(), "LevelDB's DestroyDB leaves no file that Terrace made");
}
