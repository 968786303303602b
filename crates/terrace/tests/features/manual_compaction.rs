//! Manual compactions beside writers: automatic ones go on, and neither starves the other.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use terrace::{
    CompactOptions, CompactionFilter, Compression, Db, ErrorKind, FilterDecision, MemEnv, Options,
    ReadOptions,
};
use terrace_testkit::watchdog::Watchdog;

use crate::subcompactions::{Map, PATH, contents, options};

/// A key at which compactions wait.
const GATE: &[u8] = b"gate";
/// A key of which compactions note the value that they meet.
const NOTED: &[u8] = b"k79";
/// The number of level-0 tables at which a compaction is due, and that of small ones that become
/// one within level 0.
const TRIGGER: usize = 4;
const SMALL_TABLES: usize = 12;

#[derive(Default)]
struct State {
    arrived: bool,
    open: bool,
    noted: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock().expect("no panic"));
        self.changed.notify_all();
        changed
    }

    fn await_that(&self, holds: impl Fn(&State) -> bool) {
        let state = self.state.lock().expect("no panic");
        drop(self.changed.wait_while(state, |state| !holds(state)).expect("no panic"));
    }

    fn await_arrival(&self) {
        self.await_that(|state| state.arrived);
    }

    fn open(&self) {
        self.change(|state| state.open = true);
    }
}

impl CompactionFilter for Gate {
    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        if key == GATE {
            self.change(|state| state.arrived = true);
            self.await_that(|state| state.open);
        }
        if key == NOTED {
            self.change(|state| state.noted.push(value.to_vec()));
        }
        FilterDecision::Keep
    }
}

/// Opens the gate at the end, also of a test that fails: a database waits for its compactions.
struct OpenAtEnd(Arc<Gate>);

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

fn open(gate: &Arc<Gate>) -> Db {
    let options = with_gate(gate).write_buffer_size(64 << 20);
    Db::open(Path::new(PATH), options).expect("opens")
}

fn with_gate(gate: &Arc<Gate>) -> Options {
    options(Arc::new(MemEnv::new()), 3)
        .compression(Compression::None)
        .compaction_filter(Some(gate.clone()))
}

/// Makes a table.
fn flush(db: &Db, expected: &mut Map, keys: &[&[u8]], value: &[u8]) {
    for key in keys {
        db.put(key, value).expect("a write");
        expected.insert(key.to_vec(), value.to_vec());
    }
    db.flush().expect("flushes");
}

fn tables(db: &Db, level: usize) -> usize {
    db.files().iter().filter(|table| table.level == level).count()
}

fn numbers(db: &Db) -> BTreeSet<u64> {
    db.files().iter().map(|table| table.number).collect()
}

fn check(db: &Db, expected: &Map) {
    assert!(contents(db, &ReadOptions::new()) == *expected);
    for (key, value) in expected {
        let found = db.get(key).expect("a read");
        assert_eq!(found.as_ref(), Some(value), "{}", String::from_utf8_lossy(key));
    }
    assert!(db.verify().expect("checks").is_clean());
}

/// A database whose levels 2 and 1 have a table each, and a manual compaction of level 1 up to the
/// key m that waits at the gate.
fn with_manual_compaction(gate: &Arc<Gate>) -> (Db, Map, thread::JoinHandle<()>) {
    let (db, mut expected) = (open(gate), Map::new());
    for level in [2, 1] {
        flush(&db, &mut expected, &[b"a", GATE, b"m"], b"0");
        assert_eq!(tables(&db, level), 1);
    }
    let manual = {
        let db = db.clone();
        thread::spawn(move || db.compact_range(..="m").expect("compacts"))
    };
    gate.await_arrival();
    (db, expected, manual)
}

/// Their keys are not those of the manual compaction.
#[test]
fn level_0_goes_down_beside_a_manual_compaction_of_other_keys() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "manual compactions");
    let gate = Arc::new(Gate::default());
    let _open = OpenAtEnd(gate.clone());
    let (db, mut expected, manual) = with_manual_compaction(&gate);
    for round in 0..40 {
        let value = round.to_string().into_bytes();
        flush(&db, &mut expected, &[b"w", b"x", b"y"], &value);
        db.wait_idle().expect("comes to rest");
        let count = tables(&db, 0);
        assert!(count < TRIGGER, "{count} tables after {round} flushes");
    }
    assert!(!manual.is_finished());
    check(&db, &expected);
    gate.open();
    manual.join().expect("no panic");
    check(&db, &expected);
    assert!(db.files().iter().all(|table| table.level > 1 || table.smallest > b"m".to_vec()));
    db.close().expect("closes");
}

/// Their keys are those of the manual compaction, whose inputs they would have to take.
#[test]
fn tables_of_level_0_become_one_there_beside_a_manual_compaction_of_their_keys() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "manual compactions");
    let gate = Arc::new(Gate::default());
    let _open = OpenAtEnd(gate.clone());
    let (db, mut expected, manual) = with_manual_compaction(&gate);
    let before = expected.clone();
    let snapshot = db.snapshot();
    for round in 0..100 {
        let value = round.to_string().into_bytes();
        flush(&db, &mut expected, &[b"a", b"b", b"z"], &value);
        db.wait_idle().expect("comes to rest");
        let count = tables(&db, 0);
        assert!(count < SMALL_TABLES, "{count} tables after {round} flushes");
    }
    assert!(!manual.is_finished());
    check(&db, &expected);
    assert_eq!(contents(&db, &ReadOptions::new().snapshot(&snapshot)), before);
    gate.open();
    manual.join().expect("no panic");
    db.wait_idle().expect("comes to rest");
    assert!(tables(&db, 0) < TRIGGER);
    check(&db, &expected);
    assert_eq!(contents(&db, &ReadOptions::new().snapshot(&snapshot)), before);
    drop(snapshot);
    db.close().expect("closes");
}

/// Level 0 waits for one step at most.
#[test]
fn level_0_goes_down_between_two_steps_of_a_manual_compaction() {
    const KEYS: usize = 80;
    const FLUSHES: usize = 8;
    let _watchdog = Watchdog::new(Duration::from_secs(120), "manual compactions");
    let gate = Arc::new(Gate::default());
    let _open = OpenAtEnd(gate.clone());
    let (db, mut expected) = (open(&gate), Map::new());
    let keys: Vec<_> = (0..KEYS).map(|at| format!("k{at:02}").into_bytes()).collect();
    // 80 MB in level 2, of which a step rewrites 50.
    let mut load = db.bulk_load().expect("begins");
    for key in &keys {
        load.put(key, [7; 1 << 20]).expect("loads");
    }
    load.finish().expect("ends");
    assert_eq!(tables(&db, 2), KEYS);
    let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    // In level 1, in tables that overlap few others each: these end at ends of blocks. The first
    // one has the gate.
    let with_gate: Vec<_> = [GATE].into_iter().chain(keys.iter().copied()).collect();
    let [before, beside] = [[b'0'; 5_000], [b'1'; 5_000]];
    gate.open();
    for _ in 0..TRIGGER {
        flush(&db, &mut expected, &with_gate, &before);
    }
    db.wait_idle().expect("comes to rest");
    assert_eq!(tables(&db, 0), 0);
    assert!(tables(&db, 1) > 1);
    gate.change(|state| *state = State::default());
    let manual = {
        let db = db.clone();
        thread::spawn(move || db.compact_range::<&[u8]>(..).expect("compacts"))
    };
    gate.await_arrival();
    for _ in 0..FLUSHES {
        flush(&db, &mut expected, &keys, &beside);
    }
    assert_eq!(tables(&db, 0), FLUSHES, "the step has all of level 1");
    gate.open();
    manual.join().expect("no panic");
    db.wait_idle().expect("comes to rest");
    // That of level 0, and then the second step, which found what it had brought.
    let noted = gate.change(|state| std::mem::take(&mut state.noted));
    assert!(noted == [beside, beside], "{} times", noted.len());
    assert_eq!(tables(&db, 0), 0);
    check(&db, &expected);
    db.close().expect("closes");
}

/// What lies behind the last key may go deeper meanwhile.
#[test]
fn a_forced_compaction_replaces_every_table_beside_a_writer_behind_the_last_key() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "manual compactions");
    let gate = Arc::new(Gate::default());
    let _open = OpenAtEnd(gate.clone());
    let (db, mut expected) = (open(&gate), Map::new());
    let large = vec![7; 1 << 20];
    // In level 2, whose limit is 100 MB.
    let mut load = db.bulk_load().expect("begins");
    for key in [GATE.to_vec()].into_iter().chain((0..80).map(|at| format!("k{at:02}").into())) {
        load.put(&key, &large).expect("loads");
        expected.insert(key, large.clone());
    }
    load.finish().expect("ends");
    flush(&db, &mut expected, &[GATE], b"1");
    assert_eq!((tables(&db, 1), tables(&db, 2)), (1, 81));
    let before = numbers(&db);
    let manual = {
        let db = db.clone();
        let options = CompactOptions::new().force(true);
        thread::spawn(move || db.compact_range_with::<&[u8]>(.., options).expect("compacts"))
    };
    gate.await_arrival();
    for at in 0..30 {
        flush(&db, &mut expected, &[format!("z{at:02}").as_bytes()], &large);
    }
    db.wait_idle().expect("comes to rest");
    assert!(tables(&db, 3) > 0, "level 2 has {} tables", tables(&db, 2));
    gate.open();
    manual.join().expect("no panic");
    let after = numbers(&db);
    assert!(before.is_disjoint(&after), "{:?} were left", before.intersection(&after));
    check(&db, &expected);
    db.close().expect("closes");
}

/// It writes keys behind all others, too, which nobody has to wait for.
#[test]
fn a_manual_compaction_ends_beside_a_writer_that_does_not_pause() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "manual compactions");
    let gate = Arc::new(Gate::default());
    gate.open();
    let options = with_gate(&gate).write_buffer_size(256 << 10);
    let (db, mut expected) = (Db::open(Path::new(PATH), options).expect("opens"), Map::new());
    let put = |expected: &mut Map, key: String, value: Vec<u8>| {
        db.put(&key, &value).expect("a write");
        expected.insert(key.into_bytes(), value);
    };
    for number in 0..30_000_usize {
        put(&mut expected, format!("{:06}", number * 7919 % 20_000), vec![1; 1000]);
    }
    db.flush().expect("flushes");
    let done = Arc::new(AtomicBool::new(false));
    let before = numbers(&db);
    let manuals = [true, false].map(|force| {
        let (db, done) = (db.clone(), done.clone());
        thread::spawn(move || {
            let options = CompactOptions::new().force(force);
            db.compact_range_with::<&[u8]>(.., options).expect("compacts");
            done.fetch_or(force, Ordering::Relaxed);
        })
    });
    let mut number = 0_usize;
    while !done.load(Ordering::Relaxed) {
        put(&mut expected, format!("{:06}", number * 7919 % 20_000), vec![2; 1000]);
        put(&mut expected, format!("{:06}", 20_000 + number), vec![3; 1000]);
        number += 1;
    }
    manuals.into_iter().for_each(|manual| manual.join().expect("no panic"));
    assert!(before.is_disjoint(&numbers(&db)), "a table was left as it was");
    db.wait_idle().expect("comes to rest");
    check(&db, &expected);
    db.close().expect("closes");
}

#[test]
fn a_manual_compaction_that_waits_for_an_automatic_one_ends_with_a_close() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "manual compactions");
    let gate = Arc::new(Gate::default());
    let _open = OpenAtEnd(gate.clone());
    let (db, mut expected) = (open(&gate), Map::new());
    for _ in 0..2 + TRIGGER {
        flush(&db, &mut expected, &[b"a", GATE, b"m"], b"0");
    }
    gate.await_arrival();
    let start = |work: fn(Db) -> terrace::Result<()>| {
        let db = db.clone();
        thread::spawn(move || work(db))
    };
    let manual = start(|db| db.compact_range::<&[u8]>(..));
    let close = start(Db::close);
    let error = manual.join().expect("no panic").expect_err("the gate is shut");
    assert_eq!(error.kind(), ErrorKind::Closed);
    gate.open();
    close.join().expect("no panic").expect("closes");
}
