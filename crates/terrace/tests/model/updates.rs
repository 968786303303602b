//! Atomic updates: against a model, beside everything that may come between the read and the write,
//! and from many threads at once.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use terrace::{
    Append, Counter, Db, Error, ErrorKind, KeyspaceOptions, MemEnv, MergeOperator, Options,
    PutOptions, Result, SetUnion, TableWriter, WriteOptions,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::clocked::Clocked;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;

fn options() -> Options {
    Options::new().create_if_missing(true).env(Arc::new(MemEnv::new())).write_buffer_size(64 << 10)
}

fn open() -> Db {
    Db::open("/db", options()).unwrap()
}

/// Appends to a value what it appended.
fn appended(value: Option<&[u8]>, more: &[u8]) -> Vec<u8> {
    [value.unwrap_or_default(), more].concat()
}

struct Play {
    db: Db,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    random: Rng,
}

impl Play {
    fn write_options(&mut self) -> WriteOptions {
        WriteOptions { sync: self.random.one_in(10) }
    }

    fn step(&mut self) {
        let key = format!("{:02}", self.random.below(40)).into_bytes();
        let value = vec![b'a' + self.random.below(3) as u8; self.random.below(200)];
        let present = self.model.get(&key).cloned();
        let options = self.write_options();
        match self.random.below(12) {
            0 => self.db.flush().unwrap(),
            1 if self.random.one_in(4) => self.db.compact_range::<&[u8]>(..).unwrap(),
            1 => {
                self.db.delete(&key).unwrap();
                self.model.remove(&key);
            }
            2..5 => {
                let change = |present: Option<&[u8]>| match present {
                    Some(present) if present.len() > 300 => None,
                    present => Some(appended(present, &value)),
                };
                let expected = change(present.as_deref());
                assert_eq!(self.db.update_with(&key, change, options).unwrap(), expected);
                self.set(key, expected);
            }
            5..7 => {
                let guess =
                    if self.random.one_in(3) { Some(value.clone()) } else { present.clone() };
                let new = if self.random.one_in(3) { None } else { Some(value) };
                let swapped = self
                    .db
                    .compare_and_swap_with(&key, guess.as_deref(), new.as_deref(), options)
                    .unwrap();
                assert_eq!(swapped, guess == present);
                if swapped {
                    self.set(key, new);
                }
            }
            7..9 => {
                let inserted = self.db.insert_if_absent_with(&key, &value, options).unwrap();
                assert_eq!(inserted, present.is_none());
                if inserted {
                    self.set(key, Some(value));
                }
            }
            _ => {
                let operator = Append::new().separator(",");
                let merged = self.db.merge_with(&key, &value, &operator, options).unwrap();
                let expected = match &present {
                    Some(present) => [present, &b","[..], &value].concat(),
                    None => value,
                };
                assert_eq!(merged, expected);
                self.set(key, Some(expected));
            }
        }
    }

    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        match value {
            Some(value) => self.model.insert(key, value),
            None => self.model.remove(&key),
        };
    }
}

#[test]
fn updates_equal_a_model() {
    campaign("updates", scaled(200), |seed| {
        let mut play = Play { db: open(), model: BTreeMap::new(), random: Rng::new(seed) };
        (0..500).for_each(|_| play.step());
        let found = play.db.iter().unwrap().collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(found, play.model.into_iter().collect::<Vec<_>>());
        play.db.close().map_err(|error| error.to_string())
    });
}

type ComeBetween = fn(&Db, &Options);

/// Any operation between the read and the write, wherever its entries are stored by then.
#[test]
fn an_update_follows_every_write_that_comes_between() {
    let ways: [(ComeBetween, &str); 8] = [
        (|db, _| db.put("key", "other").unwrap(), "other+"),
        (|db, _| db.delete("key").unwrap(), "+"),
        (
            |db, _| {
                db.put("key", "other").unwrap();
                db.flush().unwrap();
            },
            "other+",
        ),
        (
            |db, _| {
                db.delete("key").unwrap();
                db.compact_range::<&[u8]>(..).unwrap();
            },
            "+",
        ),
        (
            |db, _| {
                let mut load = db.bulk_load().unwrap();
                load.put("key", "loaded").unwrap();
                load.finish().unwrap();
            },
            "loaded+",
        ),
        (
            |db, _| {
                let written: Result<()> = db.transact(|transaction| {
                    transaction.put("key", "transacted");
                    Ok(())
                });
                written.unwrap();
            },
            "transacted+",
        ),
        (|db, _| db.flush().unwrap(), "first+"),
        (
            |db, options| {
                // Where the database holds nothing the table comes in as it is.
                db.delete("key").unwrap();
                db.compact_range::<&[u8]>(..).unwrap();
                let mut table = TableWriter::create("/table", options).unwrap();
                table.put("key", "ingested").unwrap();
                table.finish().unwrap();
                db.ingest(&["/table"]).unwrap();
            },
            "ingested+",
        ),
    ];
    for (number, (come_between, expected)) in ways.into_iter().enumerate() {
        for in_a_table in [false, true] {
            let options = options();
            let db = Db::open("/db", options.clone()).unwrap();
            db.put("key", "first").unwrap();
            if in_a_table {
                db.flush().unwrap();
            }
            let mut calls = 0;
            let new = db.update("key", |value| {
                calls += 1;
                if calls == 1 {
                    come_between(&db, &options);
                }
                Some(appended(value, b"+"))
            });
            assert_eq!(new.unwrap().as_deref(), Some(expected.as_bytes()), "way {number}");
            assert_eq!(db.get("key").unwrap().as_deref(), Some(expected.as_bytes()));
            assert!(calls <= 2, "way {number}: {calls} calls");
            db.close().unwrap();
        }
    }
}

/// An ingest leaves no sequence number that tells of it.
#[test]
fn an_insertion_sees_what_is_ingested_meanwhile() {
    let options = options();
    let db = Db::open("/db", options.clone()).unwrap();
    let mut calls = 0;
    let new = db.update("key", |value| {
        calls += 1;
        if calls == 1 {
            let mut table = TableWriter::create("/table", &options).unwrap();
            table.put("key", "ingested").unwrap();
            table.finish().unwrap();
            db.ingest(&["/table"]).unwrap();
        }
        Some(appended(value, b"+"))
    });
    assert_eq!(new.unwrap().as_deref(), Some(&b"ingested+"[..]));
    db.close().unwrap();
}

#[test]
fn a_write_of_another_key_does_not_repeat_an_update() {
    let db = open();
    let mut calls = 0;
    db.update("key", |_| {
        calls += 1;
        db.put("other", "value").unwrap();
        Some("value")
    })
    .unwrap();
    assert_eq!(calls, 1);
    db.close().unwrap();
}

/// Refuses some operands, and panics at others.
struct Picky;

impl MergeOperator for Picky {
    fn merge(&self, key: &[u8], value: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>> {
        match operand {
            b"refuse" => Err(Error::invalid_argument(format!("{} is full", key.escape_ascii()))),
            b"panic" => panic!("made to panic"),
            _ => Ok(appended(value, operand)),
        }
    }
}

#[test]
fn an_operator_that_fails_or_panics_changes_nothing() {
    let db = open();
    db.merge("key", "one", &Picky).unwrap();
    let error = db.merge("key", "refuse", &Picky).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArgument, "key is full"));
    let panicked = catch_unwind(AssertUnwindSafe(|| db.merge("key", "panic", &Picky)));
    assert!(panicked.is_err());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.update("key", |_| -> Option<Vec<u8>> { panic!("made to panic") })
    }));
    assert!(panicked.is_err());
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"one"[..]));
    let dynamic: &dyn MergeOperator = &Picky;
    assert_eq!(db.merge("key", "two", dynamic).unwrap(), b"onetwo");
    db.close().unwrap();
}

#[test]
fn built_in_operators_refuse_what_is_not_theirs() {
    let db = open();
    let refused = |outcome: Result<Vec<u8>>| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    };
    db.put("text", "a text").unwrap();
    refused(db.merge("text", Counter::encode(1), &Counter));
    refused(db.merge("text", SetUnion::encode(["a"]), &SetUnion));
    refused(db.merge("new", "1", &Counter));
    refused(db.merge("new", [9, b'a'], &SetUnion));
    refused(db.merge("new", [1, b'b', 1, b'a'], &SetUnion));
    refused(db.merge("new", [1, b'a', 1, b'a'], &SetUnion));
    db.merge("most", Counter::encode(i64::MAX), &Counter).unwrap();
    refused(db.merge("most", Counter::encode(1), &Counter));
    db.merge("most", Counter::encode(i64::MIN), &Counter).unwrap();
    assert_eq!(Counter::decode(&db.get("most").unwrap().unwrap()).unwrap(), -1);
    assert_eq!(db.get("text").unwrap().as_deref(), Some(&b"a text"[..]));
    assert_eq!(db.get("new").unwrap(), None);
    let empty: [&str; 0] = [];
    assert_eq!(db.merge("set", SetUnion::encode(empty), &SetUnion).unwrap(), b"");
    db.merge("set", SetUnion::encode(["b", "", "b", "a"]), &SetUnion).unwrap();
    let set = db.get("set").unwrap().unwrap();
    assert_eq!(SetUnion::decode(&set).unwrap(), [&b""[..], b"a", b"b"]);
    db.close().unwrap();
}

#[test]
fn an_update_that_fails_writes_nothing_and_keeps_the_time_to_live() {
    let env = Clocked::over(Arc::new(MemEnv::new()));
    let db = Db::open("/db", options().env(env.clone())).unwrap();
    let leases = db.create_keyspace("leases", KeyspaceOptions::new().expiry(true)).unwrap();
    let hour = Duration::from_secs(3600);
    leases.put_with("leader", "anna", PutOptions::new().ttl(hour)).unwrap();
    leases.put_with("deputy", "berta", PutOptions::new().ttl(hour)).unwrap();
    db.put("key", "value").unwrap();
    let written = db.snapshot().sequence();
    let fails = |_: Option<&[u8]>| Err::<Option<&str>, _>(Error::busy("not now"));
    for refused in [
        db.try_update("key", fails),
        db.try_update_with("absent", fails, WriteOptions::sync()),
        leases.try_update("leader", fails),
        leases.try_update_with("leader", fails, PutOptions::new()),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Busy);
    }
    assert_eq!(db.snapshot().sequence(), written);
    let added = |value: Option<&[u8]>| Ok::<_, Error>(Some(appended(value, b"+")));
    assert_eq!(db.try_update("key", added).unwrap().as_deref(), Some(&b"value+"[..]));
    assert_eq!(leases.try_update("deputy", added).unwrap().as_deref(), Some(&b"berta+"[..]));
    env.advance(2 * hour);
    assert_eq!(leases.get("leader").unwrap(), None);
    assert!(leases.get("deputy").unwrap().is_some(), "the keyspace's default: no time to live");
    let gone = |_: Option<&[u8]>| Ok::<_, Error>(None::<&str>);
    assert_eq!(db.try_update("key", gone).unwrap(), None);
    assert_eq!(db.get("key").unwrap(), None);
}

#[test]
fn updates_of_a_database_that_takes_no_writes_say_why() {
    let env = Arc::new(MemEnv::new());
    let options = Options::new().create_if_missing(true).env(env);
    let db = Db::open("/db", options.clone()).unwrap();
    db.put("key", "value").unwrap();
    let clone = db.clone();
    db.close().unwrap();
    let add = |db: &Db| db.update("key", |value| Some(appended(value, b"+")));
    assert_eq!(add(&clone).unwrap_err().kind(), ErrorKind::Closed);
    drop(clone);
    let db = Db::open("/db", options.read_only(true)).unwrap();
    assert_eq!(add(&db).unwrap_err().kind(), ErrorKind::NotSupported);
    let swap = db.compare_and_swap("key", Some(b"other"), None);
    assert_eq!(swap.unwrap_err().kind(), ErrorKind::NotSupported);
}

/// Every way to count once more.
fn count(db: &Db, key: &str, way: usize) {
    let number = |value: Option<&[u8]>| value.map_or(0, |value| Counter::decode(value).unwrap());
    match way {
        0 => drop(db.merge(key, Counter::encode(1), &Counter).unwrap()),
        1 => drop(db.update(key, |value| Some(Counter::encode(number(value) + 1))).unwrap()),
        2 => loop {
            let value = db.get(key).unwrap();
            let next = Counter::encode(number(value.as_deref()) + 1);
            if db.compare_and_swap(key, value.as_deref(), Some(&next)).unwrap() {
                break;
            }
        },
        _ => {
            let counted: Result<()> = db.transact(|transaction| {
                let value = transaction.get(key)?;
                transaction.put(key, Counter::encode(number(value.as_deref()) + 1));
                Ok(())
            });
            counted.unwrap();
        }
    }
}

#[test]
fn threads_lose_no_update() {
    const THREADS: u64 = 4;
    let rounds = scaled(20_000);
    for keys in [1, 50] {
        let db = open();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let db = &db;
                scope.spawn(move || {
                    let mut random = Rng::new(thread + 1);
                    for round in 0..rounds {
                        let key = format!("counter {}", random.below(keys));
                        count(db, &key, random.below(4));
                        db.put(format!("other {}", random.below(100)), [0; 300]).unwrap();
                        if round % 100 == 99 {
                            db.flush().unwrap();
                        }
                    }
                });
            }
        });
        let counted = db.prefix("counter").unwrap().map(|entry| {
            let (_, value) = entry.unwrap();
            Counter::decode(&value).unwrap() as u64
        });
        assert_eq!(counted.sum::<u64>(), THREADS * rounds);
        db.close().unwrap();
    }
}

/// Every entry of a queue goes to one caller, and each gets later and later ones.
#[test]
fn every_caller_pops_another_entry() {
    let entries = scaled(5_000);
    let db = open();
    db.put("other", "stays").unwrap();
    let key = |number: u64| format!("queue {number:08}").into_bytes();
    let left = AtomicU64::new(entries);
    let popped = thread::scope(|scope| {
        let (db, left) = (&db, &left);
        let consumer = move || {
            let mut popped = Vec::new();
            while left.load(Relaxed) > 0 {
                match db.pop_first_in("queue".."queue!", WriteOptions::new()).unwrap() {
                    Some((key, _)) => {
                        popped.push(key);
                        left.fetch_sub(1, Relaxed);
                    }
                    None => thread::yield_now(),
                }
            }
            popped
        };
        let consumers: Vec<_> = (0..3).map(|_| scope.spawn(consumer)).collect();
        for number in 0..entries {
            db.put(key(number), "task").unwrap();
            if number % 256 == 255 {
                db.flush().unwrap();
            }
        }
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(popped.iter().all(|popped| popped.is_sorted()));
    let mut all = popped.concat();
    all.sort();
    assert_eq!(all, (0..entries).map(key).collect::<Vec<_>>());
    assert_eq!(db.pop_last().unwrap().unwrap().0, b"other");
    assert_eq!((db.pop_first().unwrap(), db.pop_last().unwrap()), (None, None));
    db.close().unwrap();
}
