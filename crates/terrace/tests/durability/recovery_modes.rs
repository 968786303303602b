//! The result of an open of damaged files, by recovery mode; and sequence numbers that run out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use terrace::{
    Db, ErrorKind, Event, EventListener, Options, RecoveryMode, WriteBatch, WriteOptions, repair,
    verify,
};
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, PowerLoss, SimFs};

use crate::frames::{batch, fragment, mark, record};

const MAX_SEQUENCE: u64 = (1 << 56) - 1;

pub(crate) fn options(mode: RecoveryMode) -> Options {
    Options::new().create_if_missing(true).recovery_mode(mode)
}

/// A database with a table of `a`, and `b`, `c` and `d` in a log.
fn database(dir: &Path) {
    let db = Db::open(dir, options(RecoveryMode::Prefix)).expect("creates");
    db.put("a", "1").expect("puts");
    db.flush().expect("flushes");
    for key in ["b", "c", "d"] {
        db.put(key, "1").expect("puts");
    }
    db.close().expect("closes");
}

/// Damages the key of the second record of three in the log of [`database`], which are of one size.
/// Returns the log and what is in it now.
fn flip_in_log(dir: &Path) -> (PathBuf, Vec<u8>) {
    let log = path(dir, ".log");
    let mut bytes = fs::read(&log).expect("reads");
    let at = bytes.iter().position(|&byte| byte == b'c').expect("its key");
    bytes[at] ^= 1;
    fs::write(&log, &bytes).expect("writes");
    (log, bytes)
}

pub(crate) fn keys(db: &Db) -> String {
    db.iter()
        .expect("iterates")
        .map(|entry| String::from_utf8(entry.expect("reads").0).expect("text"))
        .collect()
}

pub(crate) fn path(dir: &Path, what: &str) -> PathBuf {
    let mut paths: Vec<_> =
        fs::read_dir(dir).expect("lists").map(|entry| entry.expect("lists").path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(what)));
    paths.sort();
    paths.pop().expect("such a file")
}

/// The result of an open in each mode: the keys, or words of its error.
#[track_caller]
fn outcomes(damage: impl Fn(&Path), expected: [(Options, &str); 4]) {
    for (options, expected) in expected {
        let dir = tempfile::tempdir().expect("a directory");
        database(dir.path());
        damage(dir.path());
        match Db::open(dir.path(), options) {
            Ok(db) => {
                assert_eq!(keys(&db), expected);
                db.put("z", "1").expect("puts");
                db.close().expect("closes");
                let db =
                    Db::open(dir.path(), self::options(RecoveryMode::Strict)).expect("opens again");
                assert_eq!(keys(&db), format!("{expected}z"));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert!(error.message().contains(expected), "{expected:?} in {error}");
            }
        }
    }
}

pub(crate) fn every_mode(expected: [&str; 3]) -> [(Options, &str); 4] {
    let [prefix, strict, salvage] = expected;
    let strictly = options(RecoveryMode::Strict);
    // Paranoid checks make a strict open of one that asks for nothing else.
    let paranoid = options(RecoveryMode::Prefix).paranoid_checks(true);
    [
        (options(RecoveryMode::Prefix), prefix),
        (strictly, strict),
        (paranoid, strict),
        (options(RecoveryMode::Salvage).paranoid_checks(true), salvage),
    ]
}

#[test]
fn a_torn_manifest() {
    let tear = |dir: &Path| {
        let manifest = path(dir, "MANIFEST");
        let bytes = fs::read(&manifest).expect("reads");
        fs::write(&manifest, [&bytes[..], &[1, 2, 3]].concat()).expect("writes");
    };
    // LevelDB takes a MANIFEST that the end of the file cuts off for one whose writer died,
    // paranoid or not.
    outcomes(tear, every_mode(["abcd", "abcd", "abcd"]));
}

#[test]
fn a_manifest_whose_last_record_is_damaged() {
    let damage = |dir: &Path| {
        let manifest = path(dir, "MANIFEST");
        let mut bytes = fs::read(&manifest).expect("reads");
        *bytes.last_mut().expect("bytes") ^= 1;
        fs::write(&manifest, bytes).expect("writes");
    };
    outcomes(damage, every_mode(["checksum mismatch"; 3]));
}

#[test]
fn a_missing_log() {
    let lose = |dir: &Path| fs::remove_file(path(dir, ".log")).expect("removes");
    outcomes(
        lose,
        every_mode([
            "missing, and the MANIFEST needs it",
            "missing, and the MANIFEST needs it",
            "a",
        ]),
    );
}

#[test]
fn a_damaged_log() {
    outcomes(|dir| drop(flip_in_log(dir)), every_mode(["ab", "checksum mismatch", "abd"]));
}

#[test]
fn a_missing_table() {
    let lose = |dir: &Path| fs::remove_file(path(dir, ".ldb")).expect("removes");
    outcomes(lose, every_mode(["tables that the MANIFEST names are missing"; 3]));
}

pub(crate) fn append(path: &Path, bytes: &[u8]) {
    fs::write(path, [&fs::read(path).expect("reads"), bytes].concat()).expect("writes");
}

/// LevelDB uses a number up for an append that fails, and goes on in the same log.
#[test]
fn numbers_that_an_intact_log_skips() {
    let skip = |dir: &Path| append(&path(dir, ".log"), &record(&batch(9, "e", b"1")));
    outcomes(skip, every_mode(["abcde"; 3]));
}

fn lose_first_append(dir: &Path) {
    let later = [batch(4, "c", b"1"), batch(6, "e", b"1")].map(|batch| record(&batch));
    fs::write(path(dir, ".log"), later.concat()).expect("writes");
}

fn lose_first_append_and_edit(dir: &Path) {
    lose_first_append(dir);
    // An edit as LevelDB writes it: previous log 0.
    append(&path(dir, "MANIFEST"), &record(&[9, 0]));
}

/// The append that fails may be the first one of a log: LevelDB's MANIFEST then ends before it, and
/// the log begins behind it. With `reuse_logs` it goes on in Terrace's MANIFEST and log without an
/// edit.
#[test]
fn numbers_that_the_first_append_to_a_log_of_leveldb_used_up() {
    for lose in [lose_first_append, lose_first_append_and_edit] {
        outcomes(lose, every_mode(["ace"; 3]));
        let dir = tempfile::tempdir().expect("a directory");
        database(dir.path());
        lose(dir.path());
        let report = verify(dir.path(), &Options::new()).expect("checks");
        assert!(report.problems.is_empty(), "{report:#?}");
    }
}

/// The number of a bulk load is skipped in the log, too: where the MANIFEST has lost the load's edit,
/// and its table is there, what comes later in the log does not follow.
#[test]
fn a_manifest_without_the_edit_of_a_load() {
    let lose = |dir: &Path| {
        let db = Db::open(dir, options(RecoveryMode::Prefix)).expect("opens");
        db.flush().expect("flushes");
        let manifest = path(dir, "MANIFEST");
        let before = fs::metadata(&manifest).expect("a file").len();
        let mut load = db.bulk_load().expect("begins");
        load.put("e", "1").expect("puts");
        load.finish().expect("loads");
        assert_eq!(path(dir, "MANIFEST"), manifest);
        db.put("f", "1").expect("puts");
        db.close().expect("closes");
        let bytes = fs::read(&manifest).expect("reads");
        fs::write(&manifest, &bytes[..before as usize]).expect("writes");
    };
    outcomes(lose, every_mode(["abcd", "abcd", "abcdf"]));
}

/// The name of a log that is begun later than the one that is there.
fn later_log(dir: &Path) -> PathBuf {
    let log = path(dir, ".log");
    let number = log.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
    let number: u64 = number.expect("the number of a log");
    dir.join(format!("{:06}.log", number + 10))
}

fn lose_first_append_to_later_log(dir: &Path) {
    fs::write(later_log(dir), record(&batch(6, "e", b"1"))).expect("writes");
    // An edit as LevelDB writes it: previous log 0, next file number.
    append(&path(dir, "MANIFEST"), &record(&[9, 0, 3, 99]));
}

/// The append that fails may be the first one of the log that LevelDB has just begun. A power cut
/// that took the end of the log before looks the same if it left whole records; it took no write
/// that was synced, and those behind may have been.
#[test]
fn numbers_that_the_first_append_to_a_later_log_of_leveldb_used_up() {
    let fail_later = lose_first_append_to_later_log;
    outcomes(fail_later, every_mode(["abcde"; 3]));
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    fail_later(dir.path());
    let report = verify(dir.path(), &Options::new()).expect("checks");
    assert!(report.problems.is_empty(), "{report:#?}");
    // Not where the log before it ends in the middle of a record, nor in Terrace's.
    let tear = |dir: &Path| {
        let log = path(dir, ".log");
        fail_later(dir);
        append(&log, &[1, 2, 3]);
    };
    outcomes(tear, every_mode(["abcd", "does not follow the one before", "abcde"]));
    let in_terraces = |dir: &Path| {
        fs::write(later_log(dir), record(&batch(6, "e", b"1"))).expect("writes");
    };
    outcomes(in_terraces, every_mode(["abcd", "abcd", "abcde"]));
}

/// Until an edit says that it is Terrace's, the next open takes every log for one of LevelDB's: no
/// write goes to a log before.
#[test]
fn a_log_is_not_continued_under_a_manifest_of_leveldbs() {
    let options = || options(RecoveryMode::Prefix).reuse_logs(true);
    let continues = |leveldb: bool| {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path(), options()).expect("creates");
        db.put_with("a", "1", WriteOptions::sync()).expect("puts");
        db.close().expect("closes");
        let (log, length) =
            (path(dir.path(), ".log"), |log: &Path| fs::metadata(log).map(|is| is.len()));
        let before = length(&log).expect("a log");
        if leveldb {
            // An edit as LevelDB writes it: previous log 0.
            append(&path(dir.path(), "MANIFEST"), &record(&[9, 0]));
        }
        let db = Db::open(dir.path(), options()).expect("opens");
        db.put("b", "1").expect("puts");
        let after = length(&log).unwrap_or(0);
        assert_eq!(keys(&db), "ab");
        db.close().expect("closes");
        after > before
    };
    assert!(continues(false));
    assert!(!continues(true));
}

/// Nothing is written to a log that a copy of the database may share.
#[test]
fn a_log_that_has_another_name_is_not_continued() {
    let reusing = || options(RecoveryMode::Prefix).reuse_logs(true);
    for is_shared in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        let (original, copy) = (dir.path().join("db"), dir.path().join("copy.log"));
        let db = Db::open(&original, reusing()).expect("creates");
        db.put_with("a", "1", WriteOptions::sync()).expect("puts");
        db.close().expect("closes");
        let log = path(&original, ".log");
        let bytes = fs::read(&log).expect("reads");
        if is_shared {
            fs::hard_link(&log, &copy).expect("links");
        }
        let db = Db::open(&original, reusing()).expect("opens");
        db.put("e", "1").expect("puts");
        db.close().expect("closes");
        if is_shared {
            assert!(fs::read(&copy).expect("reads") == bytes, "a copy was written to");
        } else {
            assert!(fs::read(&log).expect("is continued").len() > bytes.len());
        }
        let db = Db::open(&original, options(RecoveryMode::Strict)).expect("opens again");
        assert_eq!(keys(&db), "ae");
    }
}

/// However often it is damaged, and opened, and whatever an earlier database has left.
#[test]
fn a_damaged_log_is_kept_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let lost = dir.path().join("lost");
    let db = Db::open(dir.path(), options(RecoveryMode::Prefix)).expect("creates");
    for key in ["a", "b", "c", "d", "e"] {
        db.put(key, "1").expect("puts");
    }
    db.close().expect("closes");
    let log = path(dir.path(), ".log");
    let name = log.file_name().expect("a name").to_owned();
    let mut bytes = fs::read(&log).expect("reads");
    for damaged in *b"bd" {
        let record = bytes.windows(3).position(|at| *at == [1, damaged, 1]).expect("its key");
        bytes[record + 1] ^= 0x20;
    }
    fs::write(&log, &bytes).expect("writes");
    fs::create_dir(&lost).expect("makes");
    fs::write(lost.join(&name), "of another database").expect("writes");
    let files = fs::read_dir(dir.path()).expect("lists").map(|entry| entry.expect("an entry"));
    let files = files.filter(|entry| entry.path().is_file()).map(|entry| entry.path());
    let before: Vec<_> = files.map(|path| (fs::read(&path).expect("reads"), path)).collect();
    for _ in 0..2 {
        let db = Db::open(dir.path(), options(RecoveryMode::Salvage)).expect("opens");
        assert_eq!(keys(&db), "ace");
        drop(db);
        let mut kept: Vec<_> = fs::read_dir(&lost)
            .expect("lists")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        kept.sort();
        let name = name.to_string_lossy();
        assert_eq!(kept, [name.to_string(), format!("{name}.1")]);
        // As if the open had been killed.
        for entry in fs::read_dir(dir.path()).expect("lists").map(|entry| entry.expect("an entry"))
        {
            if entry.path().is_file() {
                fs::remove_file(entry.path()).expect("removes");
            }
        }
        for (bytes, path) in &before {
            fs::write(path, bytes).expect("writes");
        }
    }
}

/// The edits that an open makes before its first flush do not make LevelDB's log one of Terrace's.
#[test]
fn an_open_of_such_a_log_may_end_at_every_step() {
    open_ended_at_every_step(lose_first_append_and_edit, "ace");
    open_ended_at_every_step(lose_first_append_to_later_log, "abcde");
}

/// The database after this damage, in `/db` of a simulated disk.
fn on_simulated_disk(damage: impl Fn(&Path)) -> SimFs {
    let made = tempfile::tempdir().expect("a directory");
    database(made.path());
    damage(made.path());
    let disk = SimFs::new();
    let dir = Path::new("/db");
    disk.env().create_dir(dir, 0o755).expect("a directory");
    disk.env().sync_dir(Path::new("/")).expect("a synced name");
    for entry in fs::read_dir(made.path()).expect("lists") {
        let path = entry.expect("lists").path();
        let name = path.file_name().expect("a name");
        disk.set_contents(&dir.join(name), &fs::read(&path).expect("reads"));
    }
    disk
}

/// On a full disk an open starts no log, and one that was found stands for it until there is space.
/// What recovery cut off must not come back with it.
#[test]
fn what_was_cut_off_does_not_come_back_where_no_log_can_be_started() {
    let hole_before_later_log = |dir: &Path| {
        fs::write(later_log(dir), record(&batch(6, "e", b"1"))).expect("writes");
    };
    let hole_in_log = |dir: &Path| {
        let log = path(dir, ".log");
        hole_before_later_log(dir);
        append(&log, &[&[0; 50][..], &record(&batch(9, "f", b"1"))].concat());
    };
    let damages: [&dyn Fn(&Path); 2] = [&hole_before_later_log, &hole_in_log];
    for damage in damages {
        let disk = on_simulated_disk(damage);
        let kinds = vec![OpKind::Create];
        let full =
            FaultPlan { kinds, suffix: ".log".into(), ..FaultPlan::at(0, Fault::NoSpace, true) };
        disk.set_faults([full]);
        let options = || options(RecoveryMode::Prefix).env(disk.env());
        let db = Db::open("/db", options()).expect("opens on a full disk");
        assert_eq!(keys(&db), "abcd");
        db.wait_idle().expect("flushes what was recovered");
        db.put("refused", "1").expect_err("the disk is full");
        let killed = disk.power_loss(PowerLoss::PROCESS_ONLY);
        drop(db);
        for disk in [&disk, &killed] {
            disk.set_faults(None);
            let db = Db::open("/db", self::options(RecoveryMode::Prefix).env(disk.env()))
                .expect("opens again");
            assert_eq!(keys(&db), "abcd");
            db.put("g", "1").expect("there is space");
            db.close().expect("closes");
            let db = Db::open("/db", self::options(RecoveryMode::Strict).env(disk.env()))
                .expect("opens once more");
            assert_eq!(keys(&db), "abcdg");
        }
    }
}

fn open_ended_at_every_step(lose: fn(&Path), expected: &str) {
    let disk = on_simulated_disk(lose);
    let dir = Path::new("/db");
    let open = |disk: &SimFs| Db::open(dir, options(RecoveryMode::Prefix).env(disk.env()));
    disk.record();
    let db = open(&disk).expect("opens");
    db.wait_idle().expect("flushes what was recovered");
    db.close().expect("closes");
    let recording = disk.take_recording();
    let mut replay = recording.replay();
    loop {
        for loss in [PowerLoss::PROCESS_ONLY, PowerLoss::STRICT] {
            let at = replay.at();
            let db = open(&replay.power_loss(loss)).expect("opens again");
            let steps = || format!("after step {at}, {loss:?}:\n{}", recording.describe(at));
            assert_eq!(keys(&db), expected, "{}", steps());
        }
        if !replay.advance() {
            break;
        }
    }
    assert!(recording.len() > 10, "{} steps", recording.len());
}

/// Terrace syncs older writes first, so that no synced write can be behind them. With LevelDB one
/// can.
#[test]
fn numbers_that_are_skipped_where_bytes_are_missing() {
    let lose = |dir: &Path| {
        let log = path(dir, ".log");
        append(&log, &[&[0; 50][..], &record(&batch(9, "e", b"1"))].concat());
    };
    outcomes(lose, every_mode(["abcd", "abcd", "abcde"]));
    let lose_leveldb_s = |dir: &Path| {
        lose(dir);
        // An edit as LevelDB writes it: previous log 0.
        append(&path(dir, "MANIFEST"), &record(&[9, 0]));
    };
    outcomes(lose_leveldb_s, every_mode(["abcd", "does not follow the one before", "abcde"]));
}

/// A power cut can take all that a log held, and leave the one after it. The MANIFEST of LevelDB
/// records what had been handed out by then.
#[test]
fn a_log_that_lost_all_it_held() {
    let lose = |dir: &Path| {
        let log = path(dir, ".log");
        fs::write(later_log(dir), record(&batch(5, "e", b"1"))).expect("writes");
        fs::write(&log, []).expect("writes");
        // Next file number, last sequence number.
        append(&path(dir, "MANIFEST"), &record(&[3, 99, 4, 4]));
    };
    let strict =
        "a batch at sequence number 5, which follows neither the tables nor a batch before it";
    outcomes(lose, every_mode(["a", strict, "ae"]));
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    lose(dir.path());
    let report = verify(dir.path(), &Options::new()).expect("checks");
    let told = "a batch at sequence number 5, where 2 is due";
    assert!(report.problems.iter().any(|problem| problem.message.contains(told)), "{report:#?}");
}

/// A record that was being written when the power went: LevelDB opens with paranoid checks what it
/// has of it, because its own logs then end there. In a log with prepared space behind its records,
/// zeros stand for what is missing.
#[test]
fn a_last_record_of_which_sectors_are_missing() {
    for zeros in [512..1024, 1024..1536, 1536..2100] {
        let tear = |dir: &Path| {
            let log = path(dir, ".log");
            append(&log, &record(&batch(5, "e", &[7; 2000])));
            let mut bytes = fs::read(&log).expect("reads");
            let end = bytes.len();
            bytes[zeros.start..zeros.end.min(end)].fill(0);
            fs::write(&log, [&bytes[..], &[0; 4096]].concat()).expect("writes");
        };
        outcomes(tear, every_mode(["abcd"; 3]));
    }
    let flip = |dir: &Path| {
        let log = path(dir, ".log");
        append(&log, &record(&batch(5, "e", &[7; 2000])));
        let mut bytes = fs::read(&log).expect("reads");
        bytes[1000] ^= 1;
        fs::write(&log, bytes).expect("writes");
    };
    outcomes(flip, every_mode(["abcd", "checksum mismatch", "abcd"]));
}

/// LevelDB logs the empty batches of programs, synced or not.
#[test]
fn an_empty_batch_is_no_mark() {
    let add = |dir: &Path| {
        append(&path(dir, ".log"), &record(&[&9_u64.to_le_bytes()[..], &[0; 4]].concat()))
    };
    outcomes(add, every_mode(["abcd"; 3]));
}

#[test]
fn a_mark_of_more_than_there_is() {
    // A durability mark is an empty batch, numbered behind what is durable, in two fragments.
    let mark = |dir: &Path| {
        let batch = [&9_u64.to_le_bytes()[..], &[0; 4]].concat();
        append(&path(dir, ".log"), &[fragment(2, &[]), fragment(4, &batch)].concat());
    };
    let lost = "writes up to sequence number 8 were synced, only those up to 4 can be read";
    outcomes(mark, every_mode([lost, lost, "abcd"]));
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    mark(dir.path());
    let report = verify(dir.path(), &Options::new()).expect("checks");
    let told = "writes up to sequence number 8 were synced, the last one is 4";
    assert!(report.problems.iter().any(|problem| problem.message.contains(told)), "{report:#?}");
    let report = repair(dir.path(), &Options::new()).expect("repairs");
    assert!(report.problems.iter().any(|problem| problem.message.contains(told)), "{report:#?}");
    assert!(verify(dir.path(), &Options::new()).expect("checks").is_clean());
    assert_eq!(keys(&Db::open(dir.path(), options(RecoveryMode::Strict)).expect("opens")), "abcd");
}

/// The events that a listener received.
#[derive(Default)]
struct Told(Mutex<Vec<Event>>);

impl EventListener for Told {
    fn on_event(&self, event: &Event) {
        self.0.lock().expect("sound").push(event.clone());
    }
}

#[test]
fn a_listener_is_told_of_damage_and_of_work() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    let (log, _) = flip_in_log(dir.path());
    let told = Arc::new(Told::default());
    let db = Db::open(dir.path(), options(RecoveryMode::Prefix).listener(Some(told.clone())))
        .expect("opens");
    for key in ["a", "z"] {
        db.put(key, "2").expect("puts");
    }
    db.flush().expect("flushes");
    db.compact_range::<&[u8]>(..).expect("compacts");
    let mut load = db.bulk_load().expect("begins");
    load.put("load", "1").expect("puts");
    load.finish().expect("finishes");
    db.close().expect("closes");
    let told = std::mem::take(&mut *told.0.lock().expect("sound"));
    let name = log.file_name().expect("a name").to_string_lossy().into_owned();
    let is_damage = |event: &Event| {
        matches!(event, Event::RecoveryDamage { file, message, kept_as: Some(kept) }
            if *file == name && message.contains("checksum mismatch") && *kept == format!("lost/{name}"))
    };
    assert!(told.iter().any(is_damage), "{told:#?}");
    assert!(dir.path().join("lost").join(&name).is_file());
    assert!(
        told.iter()
            .any(|event| matches!(event, Event::FlushFinished { table: Some(_), bytes: 1.., .. }))
    );
    assert!(
        told.iter().any(|event| matches!(event, Event::CompactionFinished { files_read: 1.., .. })),
        "{told:#?}"
    );
    assert!(
        told.iter().any(|event| matches!(event, Event::LoadFinished { tables: 1, entries: 1, .. })),
        "{told:#?}"
    );
}

/// A MANIFEST has lost the edit of a load, and the record behind the load is damaged: a repair takes
/// the load's table, whatever the first batch is that can be read.
#[test]
fn a_load_before_a_damaged_record_is_repaired() {
    for is_damaged in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path(), options(RecoveryMode::Prefix)).expect("creates");
        db.put("a", "1").expect("puts");
        db.flush().expect("flushes");
        db.wait_idle().expect("rests");
        let manifest = path(dir.path(), "MANIFEST");
        let before = fs::read(&manifest).expect("reads");
        let mut load = db.bulk_load().expect("a load");
        load.put("b", "1").expect("puts");
        load.put("c", "1").expect("puts");
        load.finish().expect("loads");
        db.put("x", "1").expect("puts");
        db.put("y", "1").expect("puts");
        db.close().expect("closes");
        fs::write(&manifest, before).expect("writes");
        let log = path(dir.path(), ".log");
        let mut bytes = fs::read(&log).expect("reads");
        bytes[20] ^= u8::from(is_damaged);
        fs::write(&log, bytes).expect("writes");
        // Who reads only has cut the history there, and a check says so.
        let readers = Options::new().read_only(true);
        let db = Db::open(dir.path(), readers).expect("opens");
        assert_eq!(keys(&db), "a");
        assert!(!db.verify().expect("checks").problems.is_empty());
        db.close().expect("closes");
        repair(dir.path(), &Options::new()).expect("repairs");
        let db = Db::open(dir.path(), options(RecoveryMode::Strict)).expect("opens");
        assert_eq!(keys(&db), if is_damaged { "abcy" } else { "abcxy" });
    }
}

/// A load stands in no log: where the MANIFEST's record of it rots, the load must not be gone in
/// silence.
#[test]
fn a_load_whose_record_is_damaged_is_repaired() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    let db = Db::open(dir.path(), options(RecoveryMode::Prefix)).expect("opens");
    let mut load = db.bulk_load().expect("begins");
    (0..1000).for_each(|n| load.put(format!("load{n:04}"), "1").expect("takes"));
    load.finish().expect("finishes");
    let all = keys(&db);
    db.close().expect("closes");
    let manifest = path(dir.path(), "MANIFEST-");
    let mut bytes = fs::read(&manifest).expect("reads");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&manifest, bytes).expect("writes");
    let refused = Db::open(dir.path(), options(RecoveryMode::Prefix)).expect_err("damaged");
    assert!(
        refused.kind() == ErrorKind::Corruption && refused.message().contains("MANIFEST"),
        "{refused}"
    );
    repair(dir.path(), &Options::new()).expect("repairs");
    let db = Db::open(dir.path(), options(RecoveryMode::Strict)).expect("opens");
    assert_eq!(keys(&db), all);
}

/// The bytes of a damaged log are there whatever comes between its discovery and its end.
#[test]
fn a_damaged_log_is_kept_whenever_recovery_is_interrupted() {
    let fs = SimFs::new();
    let dir = Path::new("/data/db");
    let options = |fs: &SimFs| options(RecoveryMode::Prefix).env(fs.env());
    let db = Db::open(dir, options(&fs)).expect("creates");
    for key in ["a", "b", "c"] {
        db.put(key, "1").expect("puts");
    }
    db.close().expect("closes");
    let log = fs.names(dir).into_iter().find(|name| name.ends_with(".log")).expect("a log");
    let mut bytes = fs.contents(&dir.join(&log)).expect("a log");
    let at = bytes.iter().position(|&byte| byte == b'b').expect("its key");
    bytes[at] ^= 1;
    fs.set_contents(&dir.join(&log), &bytes);
    fs.record();
    let db = Db::open(dir, options(&fs)).expect("opens");
    db.flush().expect("flushes");
    db.close().expect("closes");
    let recording = fs.take_recording();
    let mut moment = recording.replay();
    loop {
        for loss in [PowerLoss::PROCESS_ONLY, PowerLoss::STRICT] {
            let left = moment.power_loss(loss);
            let db = Db::open(dir, options(&left)).expect("opens");
            db.put("z", "1").expect("puts");
            db.flush().expect("flushes");
            db.close().expect("closes");
            let lost = dir.join("lost");
            let mut kept =
                left.names(&lost).into_iter().map(|name| lost.join(name)).chain([dir.join(&log)]);
            let is_there = kept.any(|path| left.contents(&path).is_some_and(|kept| kept == bytes));
            assert!(
                is_there,
                "{loss:?}, after {} steps:\n{}",
                moment.at(),
                recording.describe(moment.at())
            );
        }
        if !moment.advance() {
            break;
        }
    }
}

/// The next open after an interrupted recovery, by LevelDB above all, reads the log from its
/// beginning.
#[test]
fn nothing_of_a_large_log_is_in_a_table_before_all_of_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options(RecoveryMode::Prefix)).expect("creates");
    // Less than from which tables are written before the end of the log: those are installed
    // together.
    for number in 0..20u8 {
        db.put([number], vec![number; 9_000]).expect("puts");
    }
    db.close().expect("closes");
    let told = Arc::new(Told::default());
    let small =
        options(RecoveryMode::Prefix).write_buffer_size(64 << 10).listener(Some(told.clone()));
    let db = Db::open(dir.path(), small).expect("opens");
    db.flush().expect("flushes");
    db.close().expect("closes");
    let told = std::mem::take(&mut *told.0.lock().expect("sound"));
    let tables =
        told.iter().filter(|event| matches!(event, Event::FlushFinished { table: Some(_), .. }));
    assert_eq!(tables.count(), 1, "{told:#?}");
}

#[test]
fn sequence_numbers_run_out_with_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    let log = path(dir.path(), ".log");
    append(&log, &record(&batch(MAX_SEQUENCE - 1, "late", b"1")));
    let mut batch = WriteBatch::new();
    batch.put("late", "1");

    let db = Db::open(dir.path(), options(RecoveryMode::Strict)).expect("opens");
    assert_eq!(keys(&db), "abcdlate");
    let snapshot = db.snapshot();
    db.put_with("last", "1", WriteOptions::sync()).expect("one is left");
    for outcome in [
        db.put("more", "1"),
        db.delete("a"),
        db.write_with(&batch, WriteOptions::sync()),
        db.bulk_load().and_then(|mut load| {
            load.put("k", "v")?;
            load.finish().map(drop)
        }),
    ] {
        let error = outcome.expect_err("none is left");
        assert!(
            error.kind() == ErrorKind::NotSupported && error.message().contains("exhausted"),
            "{error}"
        );
    }
    assert_eq!(keys(&db), "abcdlastlate");
    drop(snapshot);
    // The very last write stands in the log alone, its mark behind it.
    db.close().expect("closes");
    for mode in [RecoveryMode::Strict, RecoveryMode::Prefix] {
        let db = Db::open(dir.path(), options(mode).read_only(true)).expect("opens");
        assert_eq!(keys(&db), "abcdlastlate", "{mode:?}");
    }
    let db = Db::open(dir.path(), options(RecoveryMode::Strict)).expect("opens");
    db.flush().expect("flushes");
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.close().expect("closes");
    let db = Db::open(dir.path(), options(RecoveryMode::Strict)).expect("opens");
    assert_eq!(keys(&db), "abcdlastlate");
}

/// A database whose log holds `puts`, each synced and with its mark.
fn synced_database(dir: &Path, puts: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let db = Db::open(dir, options(RecoveryMode::Prefix)).expect("creates");
    for (key, value) in puts {
        db.put_with(key, value, WriteOptions::sync()).expect("puts");
    }
    db.close().expect("closes");
    fs::read(path(dir, ".log")).expect("reads")
}

/// The opens of a database with `log` in place of its log, by mode: how many entries it has.
fn opens_with(dir: &Path, log: &[u8]) -> [terrace::Result<usize>; 2] {
    fs::write(path(dir, ".log"), log).expect("writes");
    [RecoveryMode::Prefix, RecoveryMode::Strict].map(|mode| {
        let db = Db::open(dir, options(mode).create_if_missing(false).read_only(true))?;
        Ok(db.iter()?.count())
    })
}

/// Zeros in the place of a header look like the end of what a killed process wrote, unless the marks
/// behind them say otherwise.
#[test]
fn zeroed_bytes_of_a_synced_log_are_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys: Vec<String> = (0..12).map(|number| format!("{number:02}")).collect();
    // Values that end in zeros, so that more zeros are hard to see.
    let puts: Vec<_> =
        keys.iter().map(|key| (&key[..], [&[7; 12][..], &[0; 20]].concat())).collect();
    let log = synced_database(dir.path(), &puts);
    // Without the last mark nothing says that the last write was synced.
    let last_mark = log.len() - mark(0).len();
    for length in [1, 7, 8, 16, 64, 200] {
        for begin in 0..last_mark - length {
            let mut zeroed = log.clone();
            zeroed[begin..begin + length].fill(0);
            for found in opens_with(dir.path(), &zeroed) {
                match found {
                    Ok(count) => assert_eq!(count, 12, "{length} bytes from {begin} on"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
                }
            }
        }
    }
}

/// Records in a value do not discredit the mark behind it.
#[test]
fn a_mark_behind_a_value_that_holds_foreign_records_counts() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys: Vec<String> = (0..300).map(|number| format!("{number:03}")).collect();
    let foreign: Vec<u8> =
        (3..23).flat_map(|number| record(&batch(number, "alien", &[7; 90]))).collect();
    let mut puts: Vec<_> = keys.iter().map(|key| (&key[..], b"value".to_vec())).collect();
    puts.push(("holder", foreign));
    let mut log = synced_database(dir.path(), &puts);
    // Record header, batch header, kind and length of the key are before it.
    let key = log.windows(6).position(|bytes| bytes == b"holder").expect("the key");
    let length_at = key - 21 + 5;
    log[length_at] ^= 0x40;
    for found in opens_with(dir.path(), &log) {
        let error = found.expect_err("a synced write is lost");
        assert!(error.message().contains("were synced"), "{error}");
    }
}

/// A damaged log whose bytes cannot be kept would be removed by the next open: there is none.
#[test]
fn an_open_fails_where_a_damaged_log_cannot_be_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    database(dir.path());
    let (log, bytes) = flip_in_log(dir.path());
    let lost = dir.path().join("lost");
    fs::write(&lost, "a file").expect("writes");
    for _ in 0..3 {
        let error = Db::open(dir.path(), options(RecoveryMode::Prefix)).expect_err("is kept");
        assert!(error.message().contains("could not be kept in lost"), "{error}");
        assert_eq!(fs::read(&log).expect("is there"), bytes);
    }
    let options = options(RecoveryMode::Prefix);
    let reader = Db::open(dir.path(), options.clone().read_only(true)).expect("reads");
    assert_eq!(keys(&reader), "ab");
    drop(reader);
    fs::remove_file(&lost).expect("removes");
    let db = Db::open(dir.path(), options).expect("opens");
    assert_eq!(keys(&db), "ab");
    assert_eq!(fs::read(lost.join(log.file_name().expect("a name"))).expect("is kept"), bytes);
    db.close().expect("closes");
}

/// On a full disk a damaged log is kept by a second name.
#[test]
fn a_damaged_log_is_kept_on_a_full_disk() {
    let disk = on_simulated_disk(|dir| drop(flip_in_log(dir)));
    let kinds = vec![OpKind::Append];
    let full =
        FaultPlan { kinds, suffix: ".unfinished".into(), ..FaultPlan::at(0, Fault::NoSpace, true) };
    disk.set_faults([full]);
    let db = Db::open("/db", options(RecoveryMode::Prefix).env(disk.env())).expect("opens");
    assert_eq!(keys(&db), "ab");
    db.put("e", "1").expect("puts");
    db.flush().expect("flushes");
    db.close().expect("closes");
    let lost = Path::new("/db/lost");
    let names = disk.names(lost);
    assert!(names.iter().any(|name| name.ends_with(".log")), "{names:?}");
}
