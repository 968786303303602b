//! A whole database under schedules: readers and snapshots beside writes, flushes and compactions;
//! scans that skip known deleted ranges into which others put; callers that wait for the queue of
//! full memtables, with flushes that fail; transactions that conflict; a close beside all of them.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p terrace --lib interleavings`. The database is the real
//! one, over files in memory and with the real pool of background threads. Others run at every
//! lock, at every use of the live view, and at every use of the visible sequence number.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use shuttle::thread;
use terrace_testkit::scale::scaled;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::MAX_SEQUENCE;
use crate::base::locks::{Mutex, explore};
use crate::compaction::limits::LEVEL_0_TRIGGER;
use crate::env::explored::ExploredEnv;
use crate::write::batch::WriteBatch;

use crate::db::bulk::BulkLoadOptions;
use crate::db::db::Db;
use crate::db::db_impl::DbImpl;
use crate::db::db_impl::background::manual::CompactOptions;
use crate::db::options::{Options, WriteOptions};
use crate::db::read::read_options::ReadOptions;
use crate::db::transaction::{Isolation, TransactionOptions};

const DIR: &str = "/db";

/// Two memtables may wait for a flush with the largest of buffers.
const QUEUE: usize = 2;

struct NoLogger;

impl crate::env::Logger for NoLogger {
    fn log(&self, _: &str) {}
}

fn options(env: &Arc<ExploredEnv>) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(env.clone())
        .logger(Some(Arc::new(NoLogger)))
        .write_buffer_size(32 << 20)
        .block_cache_size(64 << 10)
}

fn open(env: &Arc<ExploredEnv>) -> Db {
    Db::open(DIR, options(env)).expect("opens")
}

fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).expect("text").parse().expect("a number")
}

const SYNCED: WriteOptions = WriteOptions { sync: true };

/// Both keys always have the same value, and values ascend.
fn write_pairs(db: &Db, last: u64) {
    for value in 1..=last {
        let mut batch = WriteBatch::new();
        batch.put("left", value.to_string());
        batch.put("right", value.to_string());
        let options = if value == last { SYNCED } else { WriteOptions::new() };
        db.write_with(&batch, options).expect("writes");
        if value.is_multiple_of(2) {
            db.flush().expect("flushes");
        }
    }
}

fn pair(values: &[Option<Vec<u8>>]) -> (u64, u64) {
    let value = |at: usize| values[at].as_deref().map_or(0, number);
    (value(0), value(1))
}

/// Reads never go back in time, and a snapshot stays as it was.
fn read_pairs(db: &Db) {
    let get = |key: &str, options: &ReadOptions| {
        db.get_with(key, options).expect("reads").as_deref().map_or(0, number)
    };
    let both = |options: &ReadOptions| {
        let (left, right) = pair(&db.multi_get_with(&["left", "right"], options).expect("reads"));
        assert_eq!(left, right, "half a batch");
        left
    };
    let now = ReadOptions::new();
    let first = both(&now);
    let snapshot = db.snapshot();
    let then = ReadOptions::new().snapshot(&snapshot);
    let kept = get("left", &then);
    assert!(kept >= first, "a snapshot has {kept}, after {first}");
    drop((snapshot, then));
    let next = both(&now);
    assert!(next >= kept, "{next} after {kept}");
    let snapshot = db.snapshot();
    let then = ReadOptions::new().snapshot(&snapshot);
    let kept = get("right", &then);
    assert!(kept >= next, "a snapshot has {kept}, after {next}");
    let entries: Vec<_> =
        db.iter().expect("reads").map(|entry| number(&entry.expect("reads").1)).collect();
    assert!(
        entries.iter().all(|&value| value == entries[0] && value >= kept),
        "{entries:?} after {kept}"
    );
    assert_eq!(both(&then), kept, "a snapshot changed");
}

/// Two readers of pairs beside `work`, which writes them up to `last`, under many schedules.
fn read_pairs_beside(work: &'static [fn(&Db)], last: u64, count: u64) {
    explore(count, move || {
        let env = ExploredEnv::new();
        let db = open(&env);
        let start = |work: fn(&Db)| {
            let db = db.clone();
            thread::spawn(move || work(&db))
        };
        let readers: [fn(&Db); 2] = [read_pairs; 2];
        let threads: Vec<_> = work.iter().copied().chain(readers).map(start).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(db.get("left").expect("reads").as_deref().map(number), Some(last));
        db.close().expect("closes");
    });
}

#[test]
fn readers_see_whole_batches_under_every_schedule() {
    const LAST: u64 = 4;
    const WORK: &[fn(&Db)] =
        &[|db| write_pairs(db, LAST), |db| db.compact_range::<&[u8]>(..).expect("compacts")];
    let count = scaled(10_000);
    read_pairs_beside(WORK, LAST, count);
    println!(
        "readers_see_whole_batches: {count} schedules of readers, snapshots, a writer, flushes and \
         compactions"
    );
}

/// The same where the pairs come as bulk loads.
fn load_pairs(db: &Db, last: u64) {
    for value in 1..=last {
        let mut load = db.bulk_load_with(BulkLoadOptions::new().threads(1)).expect("begins");
        load.put("left", value.to_string()).expect("loads");
        load.put("right", value.to_string()).expect("loads");
        load.finish().expect("finishes");
    }
}

#[test]
fn readers_see_whole_loads_under_every_schedule() {
    const LAST: u64 = 3;
    const WORK: &[fn(&Db)] = &[|db| load_pairs(db, LAST)];
    let count = scaled(2_000);
    read_pairs_beside(WORK, LAST, count);
    println!("readers_see_whole_loads: {count} schedules of readers, snapshots and bulk loads");
}

/// Keys side by side, all deleted but for one, which moves.
const PLACES: Range<u32> = 0..200;
const MOVES: [u32; 5] = [50, 150, 149, 20, 180];

fn place(at: u32) -> String {
    format!("{at:03}")
}

/// All places are deleted before the first move.
fn delete_places(db: &Db, first: u32) {
    let (mut puts, mut deletes) = (WriteBatch::new(), WriteBatch::new());
    PLACES.for_each(|at| puts.put(place(at), "0"));
    PLACES.filter(|&at| at != first).for_each(|at| deletes.delete(place(at)));
    for batch in [puts, deletes] {
        db.write_with(&batch, WriteOptions::new()).expect("writes");
    }
}

/// From place to place, into deleted ranges that others know of, from one memtable to the next.
fn move_about(db: &Db, first: u32) {
    let mut before = first;
    for (value, at) in (1..).zip(MOVES) {
        let mut batch = WriteBatch::new();
        batch.delete(place(before));
        batch.put(place(at), value.to_string());
        if value % 2 == 0 {
            db.flush().expect("flushes");
        }
        db.write_with(&batch, WriteOptions::new()).expect("writes");
        before = at;
    }
}

/// The entries that a scan from either end finds, and no others.
fn only_entry(db: &Db, options: &ReadOptions) -> (Vec<u8>, u64) {
    let mut cursor = db.cursor_with(options).expect("reads");
    cursor.seek_to_first();
    assert!(cursor.valid(), "forward there is nothing");
    let first = (cursor.key().to_vec(), number(cursor.value()));
    cursor.next();
    assert!(!cursor.valid(), "{first:?}, and then {:?}", cursor.key());
    cursor.seek_to_last();
    assert!(cursor.valid(), "forward there is {first:?}, backward nothing");
    assert_eq!((cursor.key().to_vec(), number(cursor.value())), first);
    cursor.prev();
    assert!(!cursor.valid(), "{first:?}, and before it {:?}", cursor.key());
    first
}

fn follow(db: &Db) {
    let now = ReadOptions::new();
    let first = only_entry(db, &now);
    let snapshot = db.snapshot();
    let then = ReadOptions::new().snapshot(&snapshot);
    let kept = only_entry(db, &then);
    assert!(kept.1 >= first.1, "a snapshot has {kept:?}, after {first:?}");
    let next = only_entry(db, &now);
    assert!(next.1 >= kept.1, "{next:?} after {kept:?}");
    assert_eq!(only_entry(db, &then), kept, "a snapshot changed");
}

#[test]
fn scans_skip_nothing_that_is_there_under_every_schedule() {
    const FIRST: u32 = 100;
    let count = scaled(10_000);
    explore(count, || {
        let env = ExploredEnv::new();
        let db = open(&env);
        delete_places(&db, FIRST);
        // Two scans: what the first one finds is watched, and known as deleted after the second.
        (0..2).for_each(|_| assert_eq!(only_entry(&db, &ReadOptions::new()).1, 0));
        let start = |work: fn(&Db)| {
            let db = db.clone();
            thread::spawn(move || work(&db))
        };
        let threads = [start(|db| move_about(db, FIRST)), start(follow), start(follow)];
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let last = MOVES.len();
        assert_eq!(
            only_entry(&db, &ReadOptions::new()),
            (place(MOVES[last - 1]).into_bytes(), last as u64)
        );
        db.close().expect("closes");
    });
    println!(
        "scans_skip_nothing_that_is_there: {count} schedules of deleted ranges, moves and flushes"
    );
}

/// Whether `key` is in a memtable that is being written or waits.
fn is_in_memory(core: &DbImpl, key: &str) -> bool {
    let view = core.views.current.load_full();
    std::iter::once(&view.memtable)
        .chain(&view.immutables)
        .any(|table| table.get(key.as_bytes(), MAX_SEQUENCE).is_some())
}

fn check_queue(core: &DbImpl) {
    let waiting = core.background.state.lock().immutables.len();
    assert!(waiting <= QUEUE, "{waiting} memtables wait");
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// Puts a key of the caller's own, and one that all of them have. Returns when.
fn put_both(db: &Db, key: &'static str) -> (u64, &'static str) {
    let mut batch = WriteBatch::new();
    batch.put(key, "value");
    batch.put("all", key);
    (db.core().writes.write(&batch, WriteOptions::new()).expect("writes"), key)
}

/// Every call returns, a flush that returned has done its work, and a failure is over once
/// a later flush was asked for. Tables rank as their memtables did.
fn flush_in_turn(failing: Range<i32>) {
    let env = ExploredEnv::new();
    let db = open(&env);
    // Two tables that go below level 0; those that follow have versions of the same key and stay
    // there.
    for _ in 0..2 {
        put_both(&db, "before");
        db.flush().expect("flushes");
    }
    let must_succeed = failing.is_empty();
    env.fail_tables(failing);
    let last = Arc::new(Mutex::new((0, "")));
    let threads = KEYS.map(|key| {
        let (db, last) = (db.clone(), last.clone());
        thread::spawn(move || {
            let written = put_both(&db, key);
            let mut last = last.lock();
            *last = written.max(*last);
            drop(last);
            let flushed = db.flush();
            check_queue(db.core());
            if flushed.is_ok() {
                assert!(!is_in_memory(db.core(), key), "{key} was flushed, yet no table has it");
            }
            flushed.is_err()
        })
    });
    let failed = threads
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .filter(|&failed| failed)
        .count();
    assert!(!must_succeed || failed == 0, "a flush failed that nothing kept from it");
    env.fail_tables(0..0);
    db.flush().expect("flushes once the disk is well");
    db.wait_idle().expect("comes to rest");
    for key in KEYS {
        assert!(!is_in_memory(db.core(), key));
        assert!(db.get(key).expect("reads").is_some(), "{key} is lost");
    }
    let (_, newest) = *last.lock();
    assert_eq!(
        db.get("all").expect("reads").as_deref(),
        Some(newest.as_bytes()),
        "an older version hides a newer one"
    );
    let state = db.core().background.state.lock();
    assert!(state.is_idle() && state.immutables.is_empty() && state.reservations.is_empty());
    drop(state);
    db.close().expect("closes");
}

#[test]
fn every_waiter_for_a_flush_is_woken_under_every_schedule() {
    let failing = [0..0, 0..2, 0..1, 1..2];
    let each = scaled(10_000).div_ceil(failing.len() as u64);
    let count = each * failing.len() as u64;
    for failing in failing {
        explore(each, move || flush_in_turn(failing.clone()));
    }
    println!(
        "every_waiter_for_a_flush_is_woken: {count} schedules of full memtables, flushes that fail"
    );
}

/// The error of a call that came too late. No other may happen.
fn too_late(error: &Error) {
    let message = error.to_string();
    assert!(message.contains("closed"), "{message}");
}

/// Counts once more. Returns what it has counted.
fn count(db: &Db) -> u64 {
    db.transact(|transaction| -> Result<u64> {
        let counted = transaction.get("count")?.as_deref().map_or(0, number) + 1;
        transaction.put("count", counted.to_string());
        Ok(counted)
    })
    .expect("commits")
}

/// Does the same with a lock, and never meets a conflict.
fn count_with_lock(db: &Db) -> u64 {
    let options = TransactionOptions::new().locking(true).lock_timeout(Duration::MAX);
    let mut transaction = db.transaction_with(options);
    let value = transaction.get_for_update("count").expect("locks");
    let counted = value.as_deref().map_or(0, number) + 1;
    transaction.put("count", counted.to_string());
    transaction.commit().expect("commits");
    counted
}

/// Does the same in two phases. The key is locked when the transaction is prepared.
fn count_in_two_phases(db: &Db) -> u64 {
    let options = TransactionOptions::new().locking(true).lock_timeout(Duration::MAX);
    loop {
        let mut transaction = db.transaction_with(options);
        let value = transaction.get("count").expect("reads");
        let counted = value.as_deref().map_or(0, number) + 1;
        transaction.put("count", counted.to_string());
        match transaction.prepare("count") {
            Ok(()) => db.commit_prepared("count").expect("commits"),
            Err(error) if error.kind() == ErrorKind::Conflict => continue,
            Err(error) => panic!("{error}"),
        }
        return counted;
    }
}

/// Does the same by an atomic update.
fn count_by_update(db: &Db) -> u64 {
    let next = |value: Option<&[u8]>| Some((value.map_or(0, number) + 1).to_string());
    let counted = db.update("count", next).expect("updates");
    counted.map_or(0, |counted| number(counted.as_bytes()))
}

#[test]
fn no_transaction_and_no_update_is_lost_under_every_schedule() {
    const TIMES: u64 = 2;
    let schedules = scaled(10_000);
    explore(schedules, || {
        let env = ExploredEnv::new();
        let options = options(&env).prepared_transactions(true);
        let db = Db::open(DIR, options).expect("opens");
        let counted = Arc::new(Mutex::new(Vec::new()));
        let counters = [count, count_by_update, count_with_lock, count_in_two_phases];
        let all = counters.len() as u64 * TIMES;
        let counters = counters.map(|count| {
            let (db, counted) = (db.clone(), counted.clone());
            thread::spawn(move || {
                for _ in 0..TIMES {
                    let value = count(&db);
                    counted.lock().push(value);
                }
            })
        });
        let others = [
            thread::spawn({
                let db = db.clone();
                move || (0..2).for_each(|_| db.flush().expect("flushes"))
            }),
            thread::spawn({
                let db = db.clone();
                move || db.compact_range::<&[u8]>(..).expect("compacts")
            }),
        ];
        counters.into_iter().chain(others).for_each(|thread| thread.join().expect("no panic"));
        let mut counted = std::mem::take(&mut *counted.lock());
        counted.sort_unstable();
        assert_eq!(counted, (1..=all).collect::<Vec<_>>());
        assert_eq!(db.get("count").expect("reads").as_deref().map(number), Some(all));
        db.close().expect("closes");
    });
    println!(
        "no_transaction_and_no_update_is_lost: {schedules} schedules of both, flushes and \
         compactions"
    );
}

/// Level 0 has enough tables for automatic compactions again and again, whose inputs are those of
/// two manual ones.
#[test]
fn manual_and_automatic_compactions_end_under_every_schedule() {
    const LAST: u64 = 8;
    let count = scaled(10_000);
    explore(count, || {
        let env = ExploredEnv::new();
        let db = open(&env);
        write_pairs(&db, LAST);
        let start = |work: fn(&Db)| {
            let db = db.clone();
            thread::spawn(move || work(&db))
        };
        let threads = [
            start(|db| {
                for value in LAST + 1..=2 * LAST {
                    let mut batch = WriteBatch::new();
                    batch.put("left", value.to_string());
                    batch.put("right", value.to_string());
                    db.write_with(&batch, WriteOptions::new()).expect("writes");
                    db.flush().expect("flushes");
                }
            }),
            start(read_pairs),
            start(|db| db.compact_range::<&[u8]>(..).expect("compacts")),
            start(|db| {
                let all = CompactOptions::new().force(true);
                db.compact_range_with(..="left", all).expect("compacts");
            }),
            start(|db| db.delete_range("middle".."middle 2").expect("deletes")),
        ];
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(db.get("left").expect("reads").as_deref().map(number), Some(2 * LAST));
        db.wait_idle().expect("comes to rest");
        assert!(db.files().iter().filter(|table| table.level == 0).count() < LEVEL_0_TRIGGER);
        let state = db.core().background.state.lock();
        assert!(state.is_idle() && state.reservations.is_empty() && state.manual.is_idle());
        drop(state);
        db.close().expect("closes");
    });
    println!(
        "manual_and_automatic_compactions_end: {count} schedules of both, flushes, readers and a \
         range delete"
    );
}

/// Writes `mine` if a scan does not find `other`. Returns whether it did.
fn write_unless_there(db: &Db, mine: &str, other: &str) -> bool {
    let options = TransactionOptions::new().isolation(Isolation::Serializable);
    let mut transaction = db.transaction_with(options);
    let mut entries = transaction.range(other..=other);
    let is_there = entries.next().transpose().expect("reads").is_some();
    drop(entries);
    if is_there {
        return false;
    }
    transaction.put(mine, "here");
    transaction.commit().is_ok()
}

#[test]
fn no_write_skew_under_any_schedule() {
    let schedules = scaled(10_000);
    explore(schedules, || {
        let env = ExploredEnv::new();
        let db = open(&env);
        let pairs = [("left", "right"), ("right", "left"), ("other", "left")];
        let writers = pairs.map(|(mine, other)| {
            let db = db.clone();
            thread::spawn(move || write_unless_there(&db, mine, other))
        });
        let flusher = thread::spawn({
            let db = db.clone();
            move || db.flush().expect("flushes")
        });
        let wrote = writers.map(|writer| writer.join().expect("no panic"));
        flusher.join().expect("no panic");
        assert!(!(wrote[0] && wrote[1]), "both found nothing of the other");
        for ((key, _), wrote) in pairs.iter().zip(wrote) {
            assert_eq!(db.contains_key(key).expect("reads"), wrote, "{key}");
        }
        db.close().expect("closes");
    });
    println!("no_write_skew: {schedules} schedules of serializable transactions and a flush");
}

#[test]
fn a_close_loses_nothing_under_every_schedule() {
    let count = scaled(10_000);
    explore(count, || {
        let env = ExploredEnv::new();
        let db = open(&env);
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let writers = [0, 1].map(|writer| {
            let (db, acknowledged) = (db.clone(), acknowledged.clone());
            thread::spawn(move || {
                for (at, options) in [(0, WriteOptions::new()), (1, SYNCED)] {
                    let key = format!("{writer}{at}");
                    match db.put_with(&key, "value", options) {
                        Ok(()) => acknowledged.lock().push(key),
                        Err(error) => too_late(&error),
                    }
                }
            })
        });
        let flusher = thread::spawn({
            let db = db.clone();
            move || db.flush().err().iter().for_each(too_late)
        });
        let reader = thread::spawn({
            let (db, acknowledged) = (db.clone(), acknowledged.clone());
            move || {
                let keys = acknowledged.lock().clone();
                let found = db.iter().and_then(|entries| entries.collect::<Result<Vec<_>>>());
                match found {
                    Ok(found) => {
                        assert!(
                            found.len() >= keys.len(),
                            "{keys:?} were acknowledged, a reader finds {found:?}"
                        )
                    }
                    Err(error) => too_late(&error),
                }
            }
        });
        let core = db.core().clone();
        db.close().expect("closes");
        let written = core.views.visible_sequence();
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        [flusher, reader].into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(core.views.visible_sequence(), written, "a write after the close");
        assert!(core.background.state.lock().is_idle(), "background work after the close");
        drop(core);
        let db = open(&env);
        for key in acknowledged.lock().iter() {
            assert!(db.get(key).expect("reads").is_some(), "LOST: {key}");
        }
        db.close().expect("closes");
    });
    println!(
        "a_close_loses_nothing: {count} schedules of a close beside writers, a flush and a reader"
    );
}
