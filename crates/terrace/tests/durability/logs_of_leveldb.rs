//! Logs that LevelDB wrote, or went on writing, while its MANIFEST says less of them than Terrace's
//! does: LevelDB takes each of these databases, so nothing of them may be refused or cut off.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use terrace::{Db, Options, RecoveryMode, WriteOptions, repair, verify};
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, PowerLoss, SimFs};

use crate::frames::{batch, record};
use crate::recovery_modes::{append, every_mode, keys, options, path};

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A copy of the files, as a killed process leaves them.
fn copy(from: &Path) -> TempDir {
    let to = directory();
    for entry in fs::read_dir(from).expect("lists") {
        let path = entry.expect("lists").path();
        if path.is_file() {
            fs::copy(&path, to.path().join(path.file_name().expect("a name"))).expect("copies");
        }
    }
    to
}

/// The same in `/db` of a simulated disk.
fn on_simulated_disk(from: &Path) -> SimFs {
    let (disk, at) = (SimFs::new(), Path::new("/db"));
    disk.env().create_dir(at, 0o755).expect("creates");
    disk.env().sync_dir(Path::new("/")).expect("syncs");
    for entry in fs::read_dir(from).expect("lists") {
        let path = entry.expect("lists").path();
        let name = path.file_name().expect("a name");
        disk.set_contents(&at.join(name), &fs::read(&path).expect("reads"));
    }
    disk
}

/// What an open in each mode finds, and whether a check finds something.
#[track_caller]
fn opens(dir: &Path, is_clean: bool, expected: [&str; 3]) {
    let report = verify(copy(dir).path(), &Options::new()).expect("checks");
    assert_eq!(report.problems.is_empty(), is_clean, "{report:#?}");
    for (options, expected) in every_mode(expected) {
        let dir = copy(dir);
        let db = Db::open(dir.path(), options).expect("opens");
        assert_eq!(keys(&db), expected);
    }
}

/// A database as LevelDB leaves it when it opens one whose three writes are in no table any more: a
/// MANIFEST with a snapshot and the edit that names `log`, which is empty.
fn opened_by_leveldb(dir: &Path, log: u8) {
    let name = b"leveldb.BytewiseComparator";
    let snapshot = [&[1, name.len() as u8][..], name].concat();
    let records = [record(&snapshot), record(&[2, log, 9, 0, 3, 60, 4, 3])];
    fs::write(dir.join("MANIFEST-000049"), records.concat()).expect("writes");
    fs::write(dir.join("CURRENT"), b"MANIFEST-000049\n").expect("writes");
    fs::write(dir.join(format!("0000{log}.log")), []).expect("writes");
}

/// A later log with one write.
fn write_log(dir: &Path, sequence: u64) {
    fs::write(dir.join("000055.log"), record(&batch(sequence, "z", b"1"))).expect("writes");
}

#[track_caller]
fn is_cut(dir: &Path) {
    let cut = copy(dir);
    let db = Db::open(cut.path(), options(RecoveryMode::Prefix)).expect("opens");
    assert_eq!(keys(&db), "");
    assert!(Db::open(dir, options(RecoveryMode::Strict)).is_err());
}

/// LevelDB begins a log for each manual compaction, also if the one before is empty. It is killed
/// while it writes the edit, and the log has synced writes already.
#[test]
fn a_log_behind_an_empty_one_may_follow_a_write_that_no_table_has() {
    let dir = directory();
    opened_by_leveldb(dir.path(), 50);
    write_log(dir.path(), 4);
    opens(dir.path(), true, ["z"; 3]);
    // It does not become less when the MANIFEST is Terrace's, before anything is flushed.
    let disk = on_simulated_disk(dir.path());
    let full = FaultPlan::at(0, Fault::NoSpace, true);
    disk.set_faults([FaultPlan { kinds: vec![OpKind::Create], suffix: ".ldb".into(), ..full }]);
    for _ in 0..3 {
        let db = Db::open("/db", options(RecoveryMode::Strict).env(disk.env())).expect("opens");
        assert_eq!(keys(&db), "z");
    }
    // Number 4 is missing.
    write_log(dir.path(), 5);
    is_cut(dir.path());
}

/// What was in a log that ends within its first record, or is full of zeros, is lost, and the write
/// behind it does not follow. Nor does one behind zeros of its own log.
#[test]
fn a_log_behind_one_that_lost_all_does_not_follow() {
    let torn = record(&batch(4, "k", b"1"))[..10].to_vec();
    for lost in [torn, vec![0; 4096], vec![0; 1 << 16]] {
        let dir = directory();
        opened_by_leveldb(dir.path(), 50);
        fs::write(dir.path().join("000050.log"), lost).expect("writes");
        write_log(dir.path(), 4);
        is_cut(dir.path());
    }
    let dir = directory();
    opened_by_leveldb(dir.path(), 50);
    let behind_zeros = [&vec![0; 1 << 15][..], &record(&batch(4, "z", b"1"))].concat();
    fs::write(dir.path().join("000055.log"), behind_zeros).expect("writes");
    is_cut(dir.path());
}

/// However many numbers a later edit says have been handed out. A log whose number is not the one
/// behind the MANIFEST's was found, with writes in it perhaps.
#[test]
fn the_edit_that_opens_a_database_tells_where_its_new_log_begins() {
    for (log, sequence, expected) in
        [(50, 4, "z"), (50, 10, ""), (48, 10, ""), (48, 4, ""), (51, 4, "")]
    {
        let dir = directory();
        opened_by_leveldb(dir.path(), log);
        append(&path(dir.path(), "MANIFEST"), &record(&[9, 0, 3, 60, 4, 9]));
        write_log(dir.path(), sequence);
        let db = Db::open(dir.path(), options(RecoveryMode::Prefix)).expect("opens");
        assert_eq!(keys(&db), expected, "log {log}, number {sequence}");
    }
}

/// LevelDB, which has not come to an edit of its own, has left a MANIFEST and no log. What Terrace
/// logs then must not be taken for LevelDB's logs.
#[test]
fn a_manifest_of_leveldbs_without_logs_is_left_before_a_write() {
    let dir = directory();
    let name = b"leveldb.BytewiseComparator";
    let edit = [&[1, name.len() as u8][..], name, &[2, 0, 9, 0, 3, 2, 4, 0]].concat();
    fs::write(dir.path().join("MANIFEST-000001"), record(&edit)).expect("writes");
    fs::write(dir.path().join("CURRENT"), b"MANIFEST-000001\n").expect("writes");
    let db = Db::open(dir.path(), options(RecoveryMode::Strict)).expect("opens");
    db.put("a", "1").expect("puts");
    for key in ["b", "c"] {
        db.put(key, vec![7; 40_000]).expect("puts");
    }
    // A power cut: the second page did not come to the disk, what follows did.
    let cut = copy(dir.path());
    let log = path(cut.path(), ".log");
    let mut bytes = fs::read(&log).expect("reads");
    bytes[4096..8192].fill(0);
    fs::write(&log, bytes).expect("writes");
    opens(cut.path(), false, ["a", "a", "ac"]);
}

/// A database that only the mode "salvage" opens, because its first log is missing, is a healthy
/// one once that has written to it.
#[test]
fn a_salvaged_database_without_its_log_opens_normally_afterwards() {
    let dir = directory();
    opened_by_leveldb(dir.path(), 50);
    fs::remove_file(dir.path().join("000050.log")).expect("removes");
    let missing = Db::open(copy(dir.path()).path(), options(RecoveryMode::Prefix));
    assert!(missing.expect_err("refused").message().contains("missing"));
    let db = Db::open(dir.path(), options(RecoveryMode::Salvage)).expect("opens");
    for key in ["a", "b"] {
        db.put_with(key, "1", WriteOptions::sync()).expect("puts");
    }
    opens(copy(dir.path()).path(), true, ["ab"; 3]);
    db.close().expect("closes");
    opens(dir.path(), true, ["ab"; 3]);
}

/// `a` in a table, and LevelDB's log whose first append has failed: the write behind it is the
/// third.
fn first_append_failed(dir: &Path) {
    let db = Db::open(dir, options(RecoveryMode::Prefix)).expect("creates");
    db.put("a", "1").expect("puts");
    db.flush().expect("flushes");
    db.put("b", "1").expect("puts");
    db.close().expect("closes");
    let log = path(dir, ".log");
    let number = log.file_stem().and_then(|name| name.to_str()).expect("a number");
    let number: u8 = number.parse().expect("a number");
    fs::write(&log, record(&batch(3, "c", b"1"))).expect("writes");
    append(&path(dir, "MANIFEST"), &record(&[2, number, 9, 0, 3, 99, 4, 1]));
}

/// The same, but LevelDB reuses log and MANIFEST, and adds no edit.
fn first_append_failed_without_edit(dir: &Path) {
    first_append_failed(dir);
    let manifest = path(dir, "MANIFEST");
    let bytes = fs::read(&manifest).expect("reads");
    let edit = record(&[2, 0, 9, 0, 3, 99, 4, 1]).len();
    fs::write(&manifest, &bytes[..bytes.len() - edit]).expect("writes");
}

/// A check of the open database judges its logs as the open has.
#[test]
fn a_check_of_an_open_database_knows_of_failed_appends() {
    let dir = directory();
    first_append_failed(dir.path());
    let disk = on_simulated_disk(dir.path());
    // What was found stays in the log.
    let full = FaultPlan::at(0, Fault::NoSpace, true);
    disk.set_faults([FaultPlan { kinds: vec![OpKind::Create], suffix: ".ldb".into(), ..full }]);
    let options = options(RecoveryMode::Strict).env(disk.env());
    let db = Db::open("/db", options).expect("opens");
    assert_eq!(keys(&db), "ac");
    let report = db.verify().expect("checks");
    assert!(report.problems.is_empty(), "{report:#?}");
}

/// Nor does an edit that may be on the disk or not make it find something.
#[test]
fn a_check_while_an_edit_is_in_doubt_finds_nothing() {
    let disk = SimFs::new();
    let options = options(RecoveryMode::Prefix).env(disk.env());
    let db = Db::open("/db", options).expect("creates");
    db.put("a", "1").expect("puts");
    db.flush().expect("flushes");
    db.put("k", "1").expect("puts");
    db.delete("k").expect("deletes");
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.put("z", "1").expect("puts");
    let manifest = disk.names(Path::new("/db")).into_iter().find(|name| name.contains("MANIFEST"));
    let sync = FaultPlan::at(0, Fault::Io, false);
    let full = FaultPlan::at(0, Fault::NoSpace, true);
    disk.set_faults([
        FaultPlan { kinds: vec![OpKind::Sync], suffix: manifest.expect("a MANIFEST"), ..sync },
        FaultPlan { kinds: vec![OpKind::Create], suffix: ".dbtmp".into(), ..full },
    ]);
    assert!(db.flush().is_err());
    let report = db.verify().expect("checks");
    assert!(report.problems.is_empty(), "{report:#?}");
}

/// A repair trusts the MANIFEST of such a database. Beside it lies a table that a compaction has
/// replaced: it would bring a deleted entry back.
#[test]
fn a_repair_of_a_healthy_database_brings_nothing_back() {
    for prepare in [first_append_failed, first_append_failed_without_edit] {
        repair_brings_nothing_back(prepare);
    }
}

#[track_caller]
fn repair_brings_nothing_back(prepare: impl Fn(&Path)) {
    let dir = directory();
    prepare(dir.path());
    let other = directory();
    let db = Db::open(other.path(), options(RecoveryMode::Prefix)).expect("creates");
    db.put("k", "deleted").expect("puts");
    db.close().expect("closes");
    let db = Db::open(other.path(), options(RecoveryMode::Prefix)).expect("opens");
    db.wait_idle().expect("flushes");
    db.close().expect("closes");
    fs::copy(path(other.path(), ".ldb"), dir.path().join("000090.ldb")).expect("copies");
    opens(dir.path(), true, ["ac"; 3]);
    let db = Db::open(dir.path(), Options::new().read_only(true)).expect("opens");
    let report = db.verify().expect("checks");
    assert!(report.problems.is_empty(), "{report:#?}");
    drop(db);
    let report = repair(dir.path(), &Options::new()).expect("repairs");
    assert!(report.problems.is_empty(), "{report:#?}");
    opens(dir.path(), true, ["ac"; 3]);
}

/// Terrace, on a disk that takes no new MANIFEST, begins a log and is killed. LevelDB goes on in it.
#[test]
fn leveldb_may_go_on_in_a_log_that_no_manifest_names() {
    let dir = directory();
    opened_by_leveldb(dir.path(), 50);
    let (disk, at) = (on_simulated_disk(dir.path()), Path::new("/db"));
    let full = FaultPlan::at(0, Fault::NoSpace, true);
    disk.set_faults([FaultPlan { kinds: vec![OpKind::Create], suffix: ".dbtmp".into(), ..full }]);
    let db = Db::open(at, options(RecoveryMode::Prefix).env(disk.env())).expect("opens");
    assert!(db.put("q", "1").is_err());
    let left = disk.power_loss(PowerLoss::PROCESS_ONLY);
    let mut names = left.names(at);
    names.retain(|name| name.ends_with(".log"));
    let log = at.join(names.iter().max().expect("a log"));
    let bytes = left.contents(&log).unwrap_or_default();
    let batches = [record(&batch(4, "x", b"1")), record(&batch(5, "y", b"1"))].concat();
    left.set_contents(&log, &[bytes, batches].concat());
    for mode in [RecoveryMode::Strict, RecoveryMode::Prefix] {
        let db = Db::open(at, options(mode).env(left.env())).expect("opens");
        assert_eq!(keys(&db), "xy");
    }
}
