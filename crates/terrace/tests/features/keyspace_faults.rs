//! Keyspaces beside failures of input and output.

use std::time::Duration;

use terrace::{
    Cursor, Db, ErrorKind, Keyspace, KeyspaceOptions, Options, PutOptions, Result, WriteOptions,
};
use terrace_testkit::clocked::Clocked;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, PowerLoss, SimFs};
use terrace_testkit::watchdog::Watchdog;

const PATH: &str = "/db";
const ENTRIES: usize = 10;

fn open(fs: &SimFs, batch: usize) -> Result<Db> {
    let options = Options::new().create_if_missing(true).write_buffer_size(64 << 10);
    Db::open(PATH, options.range_delete_batch(batch).env(Clocked::over(fs.env())))
}

fn outer() -> KeyspaceOptions {
    KeyspaceOptions::new().expiry(true).default_ttl(Some(Duration::from_secs(600)))
}

fn inner() -> KeyspaceOptions {
    KeyspaceOptions::new().block_size(1 << 10)
}

/// Creates a keyspace and one within it, with entries.
fn create(db: &Db) -> Result<(Keyspace, Keyspace)> {
    let outer = db.create_keyspace("outer", outer())?;
    let inner = outer.create_keyspace("inner", inner())?;
    for number in 0..ENTRIES {
        outer.put_with(format!("{number:02}"), "value", PutOptions::new())?;
        inner.put(format!("{number:02}"), "value")?;
    }
    db.flush()?;
    Ok((outer, inner))
}

/// Whether both are there with all that was put, or neither of them and nothing of it.
fn is_there(db: &Db, case: &str) -> bool {
    let fail = |error: terrace::Error| -> usize { panic!("{case}: {error}") };
    let names = db.keyspaces().unwrap_or_else(|error| panic!("{case}: {error}"));
    let stored = db.prefix("!outer!").map_or_else(fail, Iterator::count);
    let catalogue = db.prefix("!$terrace!keyspace!").map_or_else(fail, Iterator::count);
    if names.is_empty() {
        assert_eq!((stored, catalogue), (0, 0), "{case}");
        let error = db.keyspace("outer").expect_err(case);
        assert_eq!(error.kind(), ErrorKind::NotFound, "{case}");
        return false;
    }
    assert_eq!(names, ["outer"], "{case}");
    assert_eq!((stored, catalogue), (2 * ENTRIES, 2), "{case}");
    let found = db.keyspace_with("outer", &outer()).expect(case);
    assert_eq!(found.get("07").expect(case).as_deref(), Some(&b"value"[..]), "{case}");
    found.keyspace_with("inner", &inner()).expect(case);
    true
}

/// Whichever operation fails while a keyspace is dropped: it goes as a whole or stays as a whole,
/// here and after a power cut, and its handles write exactly if it stays.
#[test]
fn every_failure_of_a_drop_leaves_a_keyspace_whole_or_gone() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "drops of keyspaces");
    let (mut failed, mut gone) = (0, 0);
    for batch in [0, 4096] {
        let base = SimFs::new();
        let db = open(&base, batch).expect("opens");
        create(&db).expect("no faults");
        db.close().expect("closes");
        for (fault, forever) in Fault::ALL.iter().flat_map(|&fault| [(fault, false), (fault, true)])
        {
            let stride = if scaled(100) < 100 { 3 } else { 1 };
            for operation in (0..).step_by(stride) {
                let case = format!("batch {batch}: {operation} fails, {fault:?}, {forever}");
                watchdog.feed(case.clone());
                let fs = base.power_loss(PowerLoss::LUCKY);
                let db = open(&fs, batch).expect("opens");
                let handle = db.keyspace("outer").expect("it is there");
                fs.set_faults([FaultPlan::at(operation, fault, forever)]);
                let dropped = db.drop_keyspace("outer");
                let injected = fs.injected();
                fs.set_faults([]);
                failed += u32::from(dropped.is_err());
                let stays = is_there(&db, &case);
                gone += u32::from(dropped.is_err() && !stays);
                assert!(!stays || dropped.is_err(), "{case}: {dropped:?}");
                let written = handle.put_with("07", "value", WriteOptions::sync());
                assert_eq!(written.is_ok(), stays, "{case}: {dropped:?}, {written:?}");
                is_there(&db, &case);
                let after_crash = fs.power_loss(PowerLoss::STRICT);
                drop(handle);
                drop(db);
                let db = open(&after_crash, batch).unwrap_or_else(|e| panic!("{case}: {e}"));
                let stayed = is_there(&db, &case);
                // What was written to it is durable, and so is that it was dropped.
                assert!(!stays || stayed, "{case}: {dropped:?}");
                assert!(dropped.is_err() || !stayed, "{case}");
                if injected == 0 {
                    break;
                }
            }
        }
    }
    println!(
        "every_failure_of_a_drop_leaves_a_keyspace_whole_or_gone: {failed} failed, {gone} gone"
    );
    assert!(failed > 20, "only {failed} failed");
}

/// Whichever operation fails while keyspaces are created and written to: entries are never there
/// without the settings that they were written under.
#[test]
fn no_failure_of_a_creation_leaves_entries_without_their_settings() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "creations of keyspaces");
    let mut failed = 0;
    for (fault, forever) in Fault::ALL.iter().flat_map(|&fault| [(fault, false), (fault, true)]) {
        let stride = if scaled(100) < 100 { 3 } else { 1 };
        for operation in (0..).step_by(stride) {
            let case = format!("{operation} fails, {fault:?}, {forever}");
            watchdog.feed(case.clone());
            let fs = SimFs::new();
            let db = open(&fs, 4096).expect("opens");
            fs.set_faults([FaultPlan::at(operation, fault, forever)]);
            let created = create(&db);
            let injected = fs.injected();
            fs.set_faults([]);
            failed += u32::from(created.is_err());
            drop(created);
            let lost = [PowerLoss::STRICT, PowerLoss::PROCESS_ONLY].map(|loss| fs.power_loss(loss));
            check_settings(&db, &case);
            drop(db);
            for fs in lost.iter().chain([&fs]) {
                let db = open(fs, 4096).unwrap_or_else(|error| panic!("{case}: {error}"));
                check_settings(&db, &case);
            }
            if injected == 0 {
                break;
            }
        }
    }
    println!("no_failure_of_a_creation_leaves_entries_without_their_settings: {failed} failed");
    assert!(failed > 20, "only {failed} failed");
}

fn check_settings(db: &Db, case: &str) {
    for entry in db.prefix("!outer!").expect(case) {
        let (key, value) = entry.expect(case);
        assert_eq!(value, b"value", "{case}: {key:?}");
    }
    for name in db.keyspaces().expect(case) {
        let found = db.keyspace_with(&name, &outer()).expect(case);
        for name in found.keyspaces().expect(case) {
            found.keyspace_with(&name, &inner()).expect(case);
        }
    }
}

/// Whichever operation fails: a keyspace that was opened or made survives a power cut.
#[test]
fn a_keyspace_that_is_opened_or_made_is_durable() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "keyspaces that are opened or made");
    let mut failed = 0;
    for fault in Fault::ALL.iter().copied() {
        for operation in 0.. {
            let case = format!("{operation} fails, {fault:?}");
            watchdog.feed(case.clone());
            let fs = SimFs::new();
            let db = open(&fs, 0).expect("opens");
            fs.set_faults([FaultPlan::at(operation, fault, false)]);
            let made = db.open_or_create_keyspace("outer", outer());
            let injected = fs.injected();
            fs.set_faults([]);
            failed += u32::from(made.is_err());
            if made.is_ok() {
                let after = open(&fs.power_loss(PowerLoss::STRICT), 0).expect(&case);
                after.keyspace_with("outer", &outer()).expect(&case);
            }
            if injected == 0 {
                break;
            }
        }
    }
    assert!(failed > 0);
}

/// A cursor that has failed stays so until it is sought: it never seems to be at the end.
#[test]
fn steps_of_a_cursor_that_failed_do_not_end_in_peace() {
    let fs = SimFs::new();
    let db = open(&fs, 1000).expect("opens");
    db.put("~", "behind all keyspaces").expect("a put");
    drop(create(&db).expect("creates"));
    db.close().expect("closes");
    // Before the open, whose flush may read the settings.
    fs.set_faults([OpKind::Open, OpKind::Read].map(|kind| FaultPlan {
        kinds: vec![kind],
        suffix: ".ldb".into(),
        ..FaultPlan::at(0, Fault::Io, true)
    }));
    let db = open(&fs, 1000).expect("opens again");
    let mut cursor = db.cursor().expect("a cursor");
    fs.set_faults(None);
    for step in [Cursor::next, Cursor::prev] {
        cursor.seek("!outer!");
        let status = cursor.status();
        assert!(!cursor.valid() && status.is_err(), "{status:?}");
        step(&mut cursor);
        let status = cursor.status();
        assert!(!cursor.valid() && status.is_err(), "{status:?}");
        cursor.seek("~");
        assert!(cursor.valid() && cursor.status().is_ok());
    }
}
