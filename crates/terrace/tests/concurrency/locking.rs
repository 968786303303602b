//! Locking transactions: who waits for whom, deadlocks, time limits, and turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use terrace::{
    Counter, Db, Error, ErrorKind, Isolation, MemEnv, Options, Result, TransactOptions,
    Transaction, TransactionOptions, WriteBatch, WriteOptions,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::clocked::Clocked;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, SimFs};
use terrace_testkit::watchdog::Watchdog;

fn options() -> Options {
    Options::new().create_if_missing(true).env(Arc::new(MemEnv::new())).write_buffer_size(64 << 10)
}

fn open() -> Db {
    Db::open("/db", options()).unwrap()
}

fn locking() -> TransactionOptions {
    TransactionOptions::new().locking(true).lock_timeout(Duration::MAX)
}

fn begin(db: &Db) -> Transaction {
    db.transaction_with(locking())
}

fn text(value: Option<Vec<u8>>) -> String {
    value.map_or(String::new(), |value| String::from_utf8(value).unwrap())
}

/// Waits until so many have waited for a lock, or a thread that should wait has ended.
fn await_waits<T>(db: &Db, waits: u64, thread: &ScopedJoinHandle<'_, T>) {
    while db.stats().lock_waits < waits && !thread.is_finished() {
        thread::yield_now();
    }
}

type Way = fn(&Db) -> Result<()>;

/// Every way to write "key" sets it to "other", after the holder of the lock has set it to "mine".
#[test]
fn every_writer_obeys_a_lock() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "every_writer_obeys_a_lock");
    let ways: [(&str, Way); 10] = [
        ("put", |db| db.put("key", "other")),
        ("synced put", |db| db.put_with("key", "other", WriteOptions::sync())),
        ("batch", |db| {
            let mut batch = WriteBatch::new();
            batch.put("before", "1");
            batch.delete("key");
            batch.put("key", "other");
            db.write(&batch)
        }),
        ("load", |db| {
            let mut load = db.bulk_load()?;
            load.put("before", "1")?;
            load.put("key", "other")?;
            load.put("later", "1")?;
            load.finish().map(drop)
        }),
        ("update", |db| {
            db.update("key", |value| {
                let is_mine = value == Some(b"mine");
                Some(if is_mine { "other" } else { "too early" })
            })
            .map(drop)
        }),
        ("small range delete", |db| {
            db.delete_range("k".."l")?;
            db.put("key", "other")
        }),
        ("large range delete", |db| {
            db.delete_range::<&str>(..)?;
            db.put("key", "other")
        }),
        ("transaction", |db| {
            db.transact(|transaction| {
                transaction.put("key", "other");
                Ok(())
            })
        }),
        ("locking transaction that reads", |db| {
            let options = TransactOptions::new().transaction_options(locking()).retry_limit(0);
            db.transact_with(options, |transaction| {
                let value = text(transaction.get_for_update("key")?);
                transaction.put("key", if value == "mine" { "other" } else { "too early" });
                Ok(())
            })
        }),
        ("locking transaction that only writes", |db| {
            let options = TransactOptions::new().transaction_options(locking()).retry_limit(0);
            db.transact_with(options, |transaction| {
                transaction.put("key", "other");
                Ok(())
            })
        }),
    ];
    for (name, way) in ways {
        let db = open();
        (0..5_000_u32).for_each(|key| db.put(key.to_be_bytes(), "many").unwrap());
        db.put("key", "first").unwrap();
        let mut holder = begin(&db);
        assert_eq!(text(holder.get_for_update("key").unwrap()), "first");
        assert_eq!(db.stats().locked_keys, 1);
        thread::scope(|scope| {
            let other = scope.spawn(|| way(&db));
            await_waits(&db, 1, &other);
            // Reads, and writes of other keys, do not wait.
            assert_eq!(text(db.get("key").unwrap()), "first", "{name}");
            db.put("free", "1").unwrap();
            holder.put("key", "mine");
            holder.commit().unwrap_or_else(|error| panic!("{name}: {error}"));
            other.join().unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
        });
        assert_eq!(text(db.get("key").unwrap()), "other", "{name}");
        assert_eq!(db.stats().locked_keys, 0, "{name}");
        db.close().unwrap();
    }
}

/// A range delete reads the keys of a small range before it waits for its turn. What is written
/// until then comes before it, a new key as well as one that it has read.
#[test]
fn a_range_delete_that_waits_deletes_what_is_written_meanwhile() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "a_range_delete_that_waits");
    let db = open();
    db.put("d1", "before").unwrap();
    db.put("d2", "locked").unwrap();
    let mut holder = begin(&db);
    holder.get_for_update("d2").unwrap();
    thread::scope(|scope| {
        let deletes = scope.spawn(|| db.delete_range("d".."e"));
        await_waits(&db, 1, &deletes);
        db.put("d1", "meanwhile").unwrap();
        db.put("d3", "meanwhile").unwrap();
        drop(holder);
        deletes.join().unwrap().unwrap();
    });
    assert_eq!(db.range("d".."e").unwrap().count(), 0);
}

#[test]
fn a_transaction_that_reads_only_what_it_has_locked_does_not_conflict() {
    let db = open();
    db.put("a", "1").unwrap();
    let mut transaction = begin(&db);
    assert_eq!(text(transaction.get_for_update("a").unwrap()), "1");
    db.put("b", "2").unwrap();
    assert_eq!(text(transaction.get_for_update("b").unwrap()), "2", "the newest value");
    db.put("c", "3").unwrap();
    transaction.put("c", "blind");
    db.put("c", "4").unwrap();
    transaction.commit().unwrap();
    assert_eq!(text(db.get("c").unwrap()), "blind");
    // One that has read something else keeps its moment.
    let mut fixed = begin(&db);
    assert_eq!(text(fixed.get("c").unwrap()), "blind");
    db.put("a", "5").unwrap();
    assert_eq!(fixed.get_for_update("a").unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(fixed.get_for_update("b").unwrap_err().kind(), ErrorKind::Conflict);
    fixed.put("d", "never");
    assert_eq!(fixed.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let mut fixed = begin(&db);
    assert_eq!(fixed.iter().count(), 3);
    fixed.put("a", "late");
    db.put("a", "6").unwrap();
    assert_eq!(fixed.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let mut fixed = begin(&db);
    assert_eq!(text(fixed.get_for_update("a").unwrap()), "6");
    assert_eq!(text(fixed.get("b").unwrap()), "2");
    db.put("b", "7").unwrap();
    fixed.put("a", "8");
    fixed.commit().unwrap();
    assert_eq!((text(db.get("a").unwrap()), text(db.get("b").unwrap())), ("8".into(), "7".into()));
    db.close().unwrap();
}

/// The lock is had, but nobody knows whether the key was written before.
#[test]
fn a_transaction_whose_key_could_not_be_looked_at_is_not_committed() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let fs = SimFs::new();
        let db = Db::open("/db", options().env(fs.env())).unwrap();
        db.put("a", "1").unwrap();
        let mut fixed = db.transaction_with(locking().isolation(isolation));
        assert_eq!(text(fixed.get("a").unwrap()), "1");
        db.put("b", "theirs").unwrap();
        db.flush().unwrap();
        fs.set_faults([OpKind::Open, OpKind::Read].map(|kind| FaultPlan {
            kinds: vec![kind],
            suffix: ".ldb".into(),
            ..FaultPlan::at(0, Fault::Io, false)
        }));
        assert_eq!(fixed.get_for_update("b").unwrap_err().kind(), ErrorKind::Io);
        fs.set_faults(None);
        assert_eq!(fixed.get_for_update("b").unwrap_err().kind(), ErrorKind::Io);
        fixed.put("b", "mine");
        assert_eq!(fixed.commit().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(text(db.get("b").unwrap()), "theirs");
        db.close().unwrap();
    }
}

/// Three transactions in a circle: the youngest gives way, and the message names all of it.
#[test]
fn a_deadlock_is_found_and_its_cycle_named() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "a_deadlock_is_found");
    let db = open();
    let (mut first, mut second, mut third) = (begin(&db), begin(&db), begin(&db));
    first.get_for_update("a").unwrap();
    second.get_for_update("b").unwrap();
    third.get_for_update("c").unwrap();
    thread::scope(|scope| {
        let one = scope.spawn(move || {
            first.get_for_update("b").unwrap();
            first.put("b", "first");
            first.commit().unwrap();
        });
        await_waits(&db, 1, &one);
        let two = scope.spawn(move || {
            second.get_for_update("c").unwrap();
            second.put("b", "second");
            second.commit().unwrap();
        });
        await_waits(&db, 2, &two);
        let error = third.get_for_update("a").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Deadlock);
        let message = error.message();
        for part in ["waits for \"a\"", "waits for \"b\"", "waits for \"c\""] {
            assert!(message.contains(part), "{message}");
        }
        // Its locks are gone, so the others go on, and it comes to nothing.
        one.join().unwrap();
        two.join().unwrap();
        assert_eq!(third.get_for_update("z").unwrap_err().kind(), ErrorKind::Deadlock);
        third.put("z", "never");
        assert_eq!(third.commit().unwrap_err().kind(), ErrorKind::Deadlock);
    });
    assert_eq!(text(db.get("b").unwrap()), "first");
    assert_eq!((db.get("z").unwrap(), db.stats().locked_keys), (None, 0));
    db.close().unwrap();
}

/// A transaction that is begun anew by hand does not take back what it gave up before the other
/// wakes: it would close the same cycle again and again.
#[test]
fn who_gives_way_hands_its_locks_over() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "who_gives_way_hands_its_locks_over");
    let db = open();
    let brief = locking().lock_timeout(Duration::from_millis(1));
    for round in 0..20 {
        let (mut first, mut second) = (begin(&db), begin(&db));
        first.get_for_update("a").unwrap();
        second.get_for_update("b").unwrap();
        let (done, until_done) = std::sync::mpsc::channel::<()>();
        let waits = db.stats().lock_waits;
        thread::scope(|scope| {
            let one = scope.spawn(move || {
                first.get_for_update("b").unwrap();
                until_done.recv().unwrap();
            });
            await_waits(&db, waits + 1, &one);
            let error = second.get_for_update("a").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Deadlock);
            let again = db.transaction_with(brief).get_for_update("b");
            assert_eq!(again.unwrap_err().kind(), ErrorKind::TimedOut, "round {round}");
            done.send(()).unwrap();
            one.join().unwrap();
        });
    }
    assert_eq!(db.stats().locked_keys, 0);
}

/// The one that was begun first goes on, whichever closes the circle.
#[test]
fn the_oldest_of_a_cycle_goes_on() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "the_oldest_of_a_cycle_goes_on");
    let db = open();
    let (mut old, mut young) = (begin(&db), begin(&db));
    old.get_for_update("a").unwrap();
    young.get_for_update("b").unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let error = young.get_for_update("a").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Deadlock);
        });
        await_waits(&db, 1, &waiting);
        old.get_for_update("b").unwrap();
        waiting.join().unwrap();
        old.put("a", "old");
        old.commit().unwrap();
    });
    db.close().unwrap();
}

/// A commit that waits for another's lock, and a batch, can be in a cycle too.
#[test]
fn commits_and_batches_that_wait_are_part_of_cycles() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "commits_and_batches");
    let db = open();
    let (mut old, mut young) = (begin(&db), begin(&db));
    old.get_for_update("a").unwrap();
    young.get_for_update("b").unwrap();
    young.put("a", "young");
    thread::scope(|scope| {
        let waiting = scope.spawn(move || young.commit().unwrap_err().kind());
        await_waits(&db, 1, &waiting);
        old.get_for_update("b").unwrap();
        assert_eq!(waiting.join().unwrap(), ErrorKind::Deadlock);
        old.put("b", "old");
        old.commit().unwrap();
    });
    // A batch comes to hold "a", waits for "b", and lets go of "a" for the transaction.
    let (mut first, mut second) = (begin(&db), begin(&db));
    first.get_for_update("a").unwrap();
    second.get_for_update("b").unwrap();
    let waits = db.stats().lock_waits;
    thread::scope(|scope| {
        let batch = scope.spawn(|| {
            let mut batch = WriteBatch::new();
            batch.put("a", "batch");
            batch.put("b", "batch");
            db.write(&batch)
        });
        await_waits(&db, waits + 1, &batch);
        first.rollback();
        await_waits(&db, waits + 2, &batch);
        second.get_for_update("a").unwrap();
        second.put("a", "second");
        second.commit().unwrap();
        batch.join().unwrap().unwrap();
    });
    assert_eq!(text(db.get("a").unwrap()), "batch");
    assert_eq!(db.stats().locked_keys, 0);
    db.close().unwrap();
}

#[test]
fn a_lock_that_is_not_to_be_had_in_time_is_an_error() {
    let db = open();
    let mut holder = begin(&db);
    holder.get_for_update("key").unwrap();
    let brief = locking().lock_timeout(Duration::from_millis(1));
    let mut other = db.transaction_with(brief);
    other.get_for_update("mine").unwrap();
    let error = other.get_for_update("key").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.message().contains("\"key\""), "{error}");
    // It keeps what it has, and may try again.
    assert_eq!(other.get_for_update("key").unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(db.stats().locked_keys, 2);
    other.put("key", "other");
    assert_eq!(other.commit().unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(db.stats().locked_keys, 1);
    holder.put("key", "holder");
    holder.commit().unwrap();
    let mut next = db.transaction_with(brief);
    assert_eq!(text(next.get_for_update("key").unwrap()), "holder");
    next.put("key", "next");
    next.set_savepoint();
    next.delete("key");
    next.rollback_to_savepoint().unwrap();
    next.commit().unwrap();
    assert_eq!(text(db.get("key").unwrap()), "next");
    db.close().unwrap();
}

#[test]
fn a_close_ends_every_wait() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "a_close_ends_every_wait");
    let db = open();
    let mut holder = begin(&db);
    holder.get_for_update("key").unwrap();
    thread::scope(|scope| {
        let clone = db.clone();
        let transaction = scope.spawn({
            let mut other = begin(&db);
            move || other.get_for_update("key").unwrap_err()
        });
        let put = scope.spawn(move || clone.put("key", "value").unwrap_err());
        while db.stats().lock_waits < 2 {
            thread::yield_now();
        }
        db.close().unwrap();
        let is_closed = |error: Error| assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        is_closed(transaction.join().unwrap());
        is_closed(put.join().unwrap());
        is_closed(holder.get_for_update("other").unwrap_err());
        holder.put("key", "mine");
        is_closed(holder.commit().unwrap_err());
    });
}

/// Locks go from hand to hand in the order in which they were asked for.
#[test]
fn a_lock_is_had_in_turn() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "a_lock_is_had_in_turn");
    let db = open();
    let mut holder = begin(&db);
    holder.get_for_update("key").unwrap();
    thread::scope(|scope| {
        for turn in 1..=6_u64 {
            let db = &db;
            let waiting = scope.spawn(move || {
                let more = [b'0' + turn as u8];
                if turn % 3 == 0 {
                    db.update("key", |value| Some([value.unwrap_or_default(), &more].concat()))
                        .unwrap();
                    return;
                }
                let mut next = begin(db);
                let value = next.get_for_update("key").unwrap().unwrap_or_default();
                next.put("key", [&value[..], &more].concat());
                next.commit().unwrap();
            });
            await_waits(db, turn, &waiting);
        }
        holder.put("key", "0");
        holder.commit().unwrap();
    });
    assert_eq!(text(db.get("key").unwrap()), "0123456");
    db.close().unwrap();
}

/// A thread that gives a lock up and wants it again gets it after another that has waited for a
/// millisecond.
#[test]
fn a_lock_goes_to_a_request_that_has_waited() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "a_lock_goes_to_a_request_that_has");
    let env = Clocked::over(Arc::new(MemEnv::new()));
    let db = Db::open("/db", options().env(env.clone())).unwrap();
    for round in 1..=10 {
        db.put("key", "before").unwrap();
        let waits = db.stats().lock_waits;
        let mut holder = begin(&db);
        holder.get_for_update("key").unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut other = begin(&db);
                other.get_for_update("key").unwrap();
                other.put("key", "other");
                other.commit().unwrap();
            });
            await_waits(&db, waits + 1, &waiting);
            env.advance(Duration::from_millis(1));
            holder.commit().unwrap();
            let mut again = begin(&db);
            assert_eq!(text(again.get_for_update("key").unwrap()), "other", "round {round}");
        });
    }
    db.close().unwrap();
}

/// Sixteen threads want the same few keys, in any order. Nobody is refused over and over: each
/// transaction comes to be the oldest.
#[test]
fn nobody_starves() {
    const THREADS: u64 = 16;
    let rounds = scaled(2_000);
    let watchdog = Watchdog::new(Duration::from_secs(120), "nobody_starves");
    let db = open();
    let attempts = AtomicU64::new(0);
    let most = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, attempts, most, watchdog) = (&db, &attempts, &most, &watchdog);
            scope.spawn(move || {
                let mut random = Rng::new(thread + 1);
                let options = TransactOptions::new().transaction_options(locking());
                for round in 0..rounds {
                    let keys = [random.below(4), random.below(4), random.below(4)];
                    let mut tried = 0;
                    let added: Result<()> = db.transact_with(options, |transaction| {
                        tried += 1;
                        for key in keys {
                            let value = transaction.get_for_update([key as u8])?;
                            let count = value.as_deref().map_or(Ok(0), Counter::decode)?;
                            transaction.put([key as u8], Counter::encode(count + 1));
                            thread::yield_now();
                        }
                        Ok(())
                    });
                    added.unwrap();
                    attempts.fetch_add(tried, Ordering::Relaxed);
                    most.fetch_max(tried, Ordering::Relaxed);
                    if round % 16 == 0 {
                        db.put(format!("other {thread}"), "value").unwrap();
                        watchdog.feed("nobody_starves");
                    }
                }
            });
        }
    });
    let counted = (0..4_u8).map(|key| Counter::decode(&db.get([key]).unwrap().unwrap()).unwrap());
    assert_eq!(counted.sum::<i64>() as u64, 3 * THREADS * rounds);
    let (attempts, most) = (attempts.into_inner(), most.into_inner());
    println!(
        "nobody_starves: {attempts} attempts for {} transactions, {most} at most for one",
        THREADS * rounds
    );
    // Whoever is refused gives way to an older one, of which there are fifteen, and each of these
    // may be refused itself first.
    assert!(most <= THREADS * THREADS, "{most} attempts");
    db.close().unwrap();
}

/// Money goes from account to account by locks, batches and updates, and none is lost or made.
#[test]
fn threads_that_lock_lose_nothing() {
    const ACCOUNTS: usize = 6;
    campaign("threads_that_lock_lose_nothing", scaled(100), |seed| {
        let _watchdog = Watchdog::new(Duration::from_secs(60), format!("locking: seed {seed}"));
        let db = open();
        let account = |number: usize| [b'a', number as u8];
        (0..ACCOUNTS).for_each(|number| db.put(account(number), Counter::encode(100)).unwrap());
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let db = &db;
                scope.spawn(move || {
                    let mut random = Rng::new(seed ^ (thread << 32));
                    for _ in 0..50 {
                        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                        let amount = random.below(20) as i64;
                        let options = match random.below(3) {
                            0 => TransactionOptions::new(),
                            _ => locking(),
                        };
                        let options = TransactOptions::new().transaction_options(options);
                        let moved: Result<()> = db.transact_with(options, |transaction| {
                            for (account, change) in
                                [(account(from), -amount), (account(to), amount)]
                            {
                                let has = transaction.get_for_update(account)?.unwrap();
                                let has = Counter::decode(&has)? + change;
                                transaction.put(account, Counter::encode(has));
                            }
                            Ok(())
                        });
                        moved.unwrap();
                        match random.below(10) {
                            0 => db.flush().unwrap(),
                            1 => {
                                drop(db.merge(account(from), Counter::encode(0), &Counter).unwrap())
                            }
                            _ => {}
                        }
                    }
                });
            }
        });
        let sum: i64 =
            db.iter().unwrap().map(|entry| Counter::decode(&entry.unwrap().1).unwrap()).sum();
        assert_eq!((sum, db.stats().locked_keys), (100 * ACCOUNTS as i64, 0));
        db.close().map_err(|error| error.to_string())
    });
}
