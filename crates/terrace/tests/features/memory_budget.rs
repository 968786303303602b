//! Databases that share a memory budget: they keep to it, lose nothing by it, and never wait for
//! each other for ever.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use terrace::{
    BlockCache, Db, ErrorKind, FilterPolicy, MemEnv, MemoryBudget, Options, ReadAccess, WriteBatch,
    WriteOptions,
};
use terrace_testkit::campaign::seed;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, SimFs};
use terrace_testkit::watchdog::Watchdog;

/// Options of databases in memory that share `budget`.
fn options(budget: &MemoryBudget) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(Arc::new(MemEnv::new()))
        .memory_budget(Some(budget.clone()))
}

fn open(budget: &MemoryBudget) -> Db {
    Db::open("/db", options(budget)).expect("opens")
}

/// The same for one whose flushes wait for `gate`, with threads enough for those of all tests of
/// the process that wait.
fn held_by(gate: &Arc<Gate>, budget: &MemoryBudget) -> Options {
    options(budget).filter_policy(Some(gate.clone())).background_threads(16)
}

/// Ends the process if a test hangs.
fn watch() -> Watchdog {
    Watchdog::new(Duration::from_secs(300), "a writer waits for ever")
}

/// Puts `count` entries of about a kilobyte, and says after each one how much is used.
fn fill(db: &Db, count: usize, seed: u64, mut used: impl FnMut()) {
    let mut rng = Rng::new(seed);
    for n in 0..count {
        db.put(format!("{n:08}"), rng.bytes(1000)).expect("puts");
        used();
    }
}

/// A filter policy under which flushes wait until the gate is opened.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    waiting: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    fn closed() -> Arc<Self> {
        Arc::new(Gate { is_closed: Mutex::new(true), ..Gate::default() })
    }

    fn open(&self) {
        *self.is_closed.lock().unwrap() = false;
        self.changed.notify_all();
    }

    /// Returns once a flush waits.
    fn await_flush(&self) {
        let mut waiting = self.waiting.lock().unwrap();
        while *waiting == 0 {
            waiting = self.changed.wait(waiting).unwrap();
        }
    }
}

impl FilterPolicy for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn create_filter(&self, _keys: &[&[u8]], _filter: &mut Vec<u8>) {
        *self.waiting.lock().unwrap() += 1;
        self.changed.notify_all();
        let mut is_closed = self.is_closed.lock().unwrap();
        while *is_closed {
            is_closed = self.changed.wait(is_closed).unwrap();
        }
    }

    fn key_may_match(&self, _key: &[u8], _filter: &[u8]) -> bool {
        true
    }
}

#[test]
fn databases_together_keep_to_the_budget_and_lose_nothing() {
    let _watchdog = watch();
    let seed = seed();
    println!("TERRACE_SEED={seed}");
    let budget = MemoryBudget::new(4 << 20);
    let count = 4;
    let dbs: Vec<_> = (0..count).map(|_| open(&budget)).collect();
    let rounds = scaled(20_000).max(2_000) as usize;
    thread::scope(|scope| {
        for (number, db) in dbs.iter().enumerate() {
            let budget = &budget;
            scope.spawn(move || {
                let mut rng = Rng::new(seed ^ number as u64);
                let mut model = BTreeMap::new();
                for _ in 0..rounds {
                    let key = format!("{:05}", rng.below(5_000));
                    match rng.below(10) {
                        0..6 => {
                            let length = rng.below(4_000);
                            let value = rng.bytes(length);
                            db.put(&key, &value).expect("puts");
                            model.insert(key, value);
                        }
                        6 => {
                            db.delete(&key).expect("deletes");
                            model.remove(&key);
                        }
                        7 => {
                            let mut batch = WriteBatch::new();
                            for n in 0..rng.below(40) {
                                let key = format!("{:05}", (rng.below(5_000) + n) % 5_000);
                                batch.put(&key, b"in a batch");
                                model.insert(key, b"in a batch".to_vec());
                            }
                            db.write(&batch).expect("writes");
                        }
                        8 => {
                            let found = db.iter().expect("iterates").take(50);
                            let found: Vec<_> = found.map(|entry| entry.expect("reads")).collect();
                            let wanted = model.iter().take(50);
                            assert!(
                                found
                                    .iter()
                                    .map(|(key, value)| (&key[..], value))
                                    .eq(wanted.map(|(key, value)| (key.as_bytes(), value)))
                            );
                        }
                        _ => assert_eq!(db.get(&key).expect("gets").as_ref(), model.get(&key)),
                    }
                    let used = budget.used();
                    assert!(used <= budget.limit(), "{budget:?} uses {used}");
                }
                let all = db.iter().expect("iterates").map(|entry| entry.expect("reads"));
                let wanted = model.into_iter().map(|(key, value)| (key.into_bytes(), value));
                assert!(all.eq(wanted), "database {number}");
            });
        }
    });
    drop(dbs);
    assert_eq!(budget.memtable_bytes(), 0, "{budget:?}");
    assert_eq!(budget.table_bytes(), 0, "{budget:?}");
}

#[test]
fn a_memtable_that_nobody_writes_to_is_flushed_for_others() {
    let budget = MemoryBudget::new(8 << 20);
    let (idle, busy) = (open(&budget), open(&budget));
    fill(&idle, 900, 1, || ());
    fill(&busy, 8_000, 2, || assert!(budget.used() <= budget.limit(), "{budget:?}"));
    assert!(idle.stats().memtable_bytes < 900_000, "{:?}", idle.stats());
    assert_eq!(idle.iter().expect("iterates").count(), 900);
}

#[test]
fn a_budget_smaller_than_the_floors_slows_writers_and_stops_none() {
    let _watchdog = watch();
    let budget = MemoryBudget::new(1);
    let dbs: Vec<_> = (0..3).map(|_| open(&budget)).collect();
    thread::scope(|scope| {
        for db in &dbs {
            scope.spawn(|| fill(db, 500, 3, || ()));
        }
    });
    for db in &dbs {
        assert_eq!(db.iter().expect("iterates").count(), 500);
    }
}

/// Two hundred databases under budgets that no sensible program has, with large values, snapshots
/// that keep memtables, transactions and range deletes.
#[test]
fn many_databases_under_an_odd_budget_lose_nothing_and_end() {
    let _watchdog = watch();
    for bytes in [0, 64 << 10, usize::MAX] {
        let budget = MemoryBudget::new(bytes);
        let dbs: Vec<_> = (0..scaled(200).max(20)).map(|_| open(&budget)).collect();
        thread::scope(|scope| {
            for id in 0..4_u8 {
                let dbs = &dbs;
                scope.spawn(move || {
                    let mut rng = Rng::new(u64::from(id));
                    let mut snapshots = Vec::new();
                    for number in 0..500 {
                        let db = rng.pick(dbs);
                        let length = *rng.pick(&[10, 100, 1_000, 40_000, 200_000]);
                        let key = format!("{id} {number:04}");
                        match rng.below(8) {
                            0 => snapshots.push(db.snapshot()),
                            1 => _ = snapshots.pop(),
                            2 => db.delete_range("x".."y").expect("a range delete"),
                            3 => db
                                .transact(|transaction| {
                                    transaction.put(&key, vec![id; length]);
                                    Ok::<_, terrace::Error>(())
                                })
                                .expect("a transaction"),
                            _ => db.put(&key, vec![id; length]).expect("a put"),
                        }
                        if db
                            .get(&key)
                            .expect("a get")
                            .is_some_and(|value| value != vec![id; length])
                        {
                            panic!("{key} has another value");
                        }
                    }
                });
            }
        });
        dbs.into_iter().for_each(|db| db.close().expect("closes"));
        assert_eq!(budget.memtable_bytes(), 0, "{budget:?}");
    }
}

#[test]
fn a_batch_larger_than_the_budget_is_written() {
    let budget = MemoryBudget::new(2 << 20);
    let db = open(&budget);
    let mut batch = WriteBatch::new();
    batch.put("large", vec![7; 5 << 20]);
    db.write(&batch).expect("writes");
    fill(&db, 100, 4, || ());
    assert_eq!(db.get("large").expect("gets").map(|value| value.len()), Some(5 << 20));
    db.wait_idle().expect("idle");
    assert!(budget.used() <= budget.limit(), "{budget:?}");
}

#[test]
fn a_database_that_cannot_flush_fails_and_holds_up_no_other() {
    let _watchdog = watch();
    let budget = MemoryBudget::new(4 << 20);
    let fs = SimFs::new();
    let broken = Db::open("/broken", options(&budget).env(fs.env())).expect("opens");
    let other = open(&budget);
    broken.put("before", "all is well").expect("puts");
    let tables = |fault| FaultPlan {
        kinds: vec![OpKind::Create],
        suffix: ".ldb".to_owned(),
        ..FaultPlan::at(0, fault, true)
    };
    fs.set_faults([tables(Fault::NoSpace)]);
    let mut rng = Rng::new(5);
    let mut written = 0;
    let error = loop {
        match broken.put(format!("{written:06}"), rng.bytes(1000)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100_000, "no failure");
    };
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    fill(&other, 5_000, 6, || assert!(budget.used() <= budget.limit(), "{budget:?}"));
    fs.set_faults(None);
    broken.put("after", "again").expect("the disk has room again");
    assert_eq!(broken.iter().expect("iterates").count(), written + 2);
}

#[test]
fn a_flush_that_hangs_holds_up_its_database_alone_and_not_its_close() {
    let _watchdog = watch();
    let budget = MemoryBudget::new(4 << 20);
    let gate = Gate::closed();
    let held = held_by(&gate, &budget);
    let slow = Db::open("/db", held).expect("opens");
    let other = open(&budget);
    thread::scope(|scope| {
        let (slow, gate) = (&slow, &gate);
        let writer = scope.spawn(move || {
            let mut rng = Rng::new(7);
            (0..100_000).try_for_each(|n| slow.put(format!("{n:06}"), rng.bytes(1000)))
        });
        gate.await_flush();
        fill(&other, 5_000, 8, || assert!(budget.used() <= budget.limit(), "{budget:?}"));
        let closer = scope.spawn(|| slow.clone().close());
        let error = writer.join().expect("returns").expect_err("the database was closed");
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        gate.open();
        closer.join().expect("returns").expect("closes");
    });
}

#[test]
fn a_log_that_cannot_be_written_fails_writers_and_holds_up_none() {
    let _watchdog = watch();
    let faults = [(OpKind::Append, false), (OpKind::Sync, false), (OpKind::Create, true)];
    for (kind, forever) in faults {
        let budget = MemoryBudget::new(4 << 20);
        let fs = SimFs::new();
        let broken = Db::open("/broken", options(&budget).env(fs.env())).expect("opens");
        let other = open(&budget);
        fill(&broken, 100, 11, || ());
        let (kinds, suffix) = (vec![kind], ".log".to_owned());
        fs.set_faults([FaultPlan { kinds, suffix, ..FaultPlan::at(0, Fault::Io, forever) }]);
        // More than the floor and than all memtables together: a flush has to make room first.
        let mut batch = WriteBatch::new();
        batch.put("large", vec![7; 2 << 20]);
        if forever {
            for attempt in 1..4 {
                let error = broken.write(&batch).expect_err("there is no log");
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                assert!(fs.injected() <= 2 * attempt, "{} attempts", fs.injected());
            }
        } else {
            let synced = broken.put_with("synced", "1", WriteOptions::sync());
            assert_eq!(synced.expect_err("fails").kind(), ErrorKind::Io);
        }
        fill(&other, 2_000, 12, || assert!(budget.used() <= budget.limit(), "{budget:?}"));
        fs.set_faults(None);
        broken.write(&batch).expect("the disk is well again");
        assert_eq!(broken.get("large").expect("gets").map(|value| value.len()), Some(2 << 20));
        assert!(broken.iter().expect("iterates").count() > 100);
    }
}

#[test]
fn a_database_beyond_its_floor_awaits_its_own_flushes_alone() {
    let _watchdog = watch();
    let budget = MemoryBudget::new(4 << 20);
    let gate = Gate::closed();
    let held = held_by(&gate, &budget);
    let slow = Db::open("/db", held).expect("opens");
    let (other, _idle) = (open(&budget), open(&budget));
    // Nearly all that databases beyond their floors may have together.
    fill(&slow, 900, 13, || ());
    gate.await_flush();
    fill(&other, 3_000, 14, || assert!(budget.used() <= budget.limit(), "{budget:?}"));
    gate.open();
}

#[test]
fn a_large_batch_is_written_while_others_write() {
    let _watchdog = watch();
    let budget = MemoryBudget::new(4 << 20);
    let gate = Gate::closed();
    let held = held_by(&gate, &budget);
    let slow = Db::open("/db", held).expect("opens");
    let large = open(&budget);
    let busy: Vec<_> = (0..3).map(|_| open(&budget)).collect();
    // The flush of another database is under way all the time.
    fill(&slow, 600, 17, || ());
    gate.await_flush();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for db in busy.iter().chain([&large]) {
            let is_done = &is_done;
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    fill(db, 50, 15, || ());
                }
            });
        }
        for n in 0..5 {
            let mut batch = WriteBatch::new();
            batch.put(format!("large {n}"), vec![7; 2 << 20]);
            large.write(&batch).expect("writes");
        }
        is_done.store(true, Ordering::Relaxed);
    });
    gate.open();
}

#[test]
fn many_caches_keep_to_the_budget_together() {
    let budget = MemoryBudget::new(4 << 20);
    let dbs: Vec<_> = (0..16)
        .map(|_| {
            let cache = Some(BlockCache::new(1 << 20));
            let options = options(&budget).block_cache(cache).read_access(ReadAccess::Pread);
            Db::open("/db", options).expect("opens")
        })
        .collect();
    for db in &dbs {
        fill(db, 700, 16, || ());
        db.flush().expect("flushes");
    }
    for _ in 0..2 {
        for db in &dbs {
            db.iter().expect("iterates").for_each(|entry| drop(entry.expect("reads")));
            assert!(budget.used() <= budget.limit(), "{budget:?}");
        }
    }
    assert!(budget.block_bytes() > 512 << 10, "{budget:?}");
}

#[test]
fn caches_give_way_to_memtables_and_come_back() {
    let budget = MemoryBudget::new(8 << 20);
    let own = BlockCache::new(64 << 20);
    for cache in [None, Some(own)] {
        let options = options(&budget).block_cache(cache).read_access(ReadAccess::Pread);
        let options = options.seek_compaction(false);
        let db = Db::open("/db", options).expect("opens");
        let mut rng = Rng::new(9);
        let mut write = |count| {
            for _ in 0..count {
                let key = format!("{:05}", rng.below(20_000));
                db.put(key, rng.bytes(1000)).expect("puts");
                assert!(budget.used() <= budget.limit(), "{budget:?}");
            }
        };
        write(20_000);
        let scan = || {
            // Compactions take cached blocks away with their tables.
            db.wait_idle().expect("idle");
            db.iter().expect("iterates").for_each(|entry| drop(entry.expect("reads")));
            assert!(budget.used() <= budget.limit(), "{budget:?}");
            budget.block_bytes()
        };
        scan();
        let cached = scan();
        assert!(cached > 4 << 20, "{budget:?}");
        write(5_000);
        scan();
        let cached = scan();
        assert!(cached > 2 << 20, "{budget:?}");
    }
}

#[test]
fn statistics_say_how_much_is_used() {
    let budget = MemoryBudget::new(8 << 20);
    let db = open(&budget);
    fill(&db, 500, 10, || ());
    db.put_with("synced", "1", WriteOptions::sync()).expect("puts");
    let stats = db.stats();
    assert_eq!(stats.memory_budget_bytes, 8 << 20);
    assert_eq!(stats.memory_used_bytes, budget.used() as u64);
    assert!(stats.memory_used_bytes > 400_000, "{stats:?}");
    let without = Db::open(
        Path::new("/other"),
        Options::new().create_if_missing(true).env(Arc::new(MemEnv::new())),
    );
    assert_eq!(without.expect("opens").stats().memory_budget_bytes, 0);
}
