//! Serializable transactions: what must conflict, what must not, and recorded histories.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use terrace::{
    Db, ErrorKind, Isolation, MemEnv, Options, Result, TransactOptions, Transaction,
    TransactionOptions, WriteOptions,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::serial::{Committed, Step, is_serializable};
use terrace_testkit::watchdog::Watchdog;

fn options() -> Options {
    Options::new().create_if_missing(true).env(Arc::new(MemEnv::new())).write_buffer_size(64 << 10)
}

fn open() -> Db {
    Db::open("/db", options()).unwrap()
}

const SERIALIZABLE: fn() -> TransactionOptions =
    || TransactionOptions::new().isolation(Isolation::Serializable);

fn begin(db: &Db) -> Transaction {
    db.transaction_with(SERIALIZABLE())
}

fn conflicts(transaction: Transaction) -> bool {
    match transaction.commit() {
        Ok(()) => false,
        Err(error) if error.kind() == ErrorKind::Conflict => true,
        Err(error) => panic!("{error}"),
    }
}

/// Two doctors may not both go home.
#[test]
fn write_skew_conflicts_where_reads_count() {
    for (isolation, both_commit) in [(Isolation::Snapshot, true), (Isolation::Serializable, false)]
    {
        let db = open();
        db.put("anna", "on call").unwrap();
        db.put("berta", "on call").unwrap();
        let options = TransactionOptions::new().isolation(isolation);
        let (mut anna, mut berta) = (db.transaction_with(options), db.transaction_with(options));
        assert!(anna.get("berta").unwrap().is_some() && berta.get("anna").unwrap().is_some());
        anna.delete("anna");
        berta.delete("berta");
        assert!(!conflicts(anna));
        assert_eq!(!conflicts(berta), both_commit, "{isolation:?}");
        db.close().unwrap();
    }
}

/// What a transaction reads before it writes "mine".
type Read = fn(&Transaction);

const READS: [(&str, Read); 9] = [
    ("a get", |t| drop(t.get("m").unwrap())),
    ("contains_key", |t| _ = t.contains_key("m").unwrap()),
    ("a range", |t| t.range("k".."n").for_each(|entry| drop(entry.unwrap()))),
    ("a range backward", |t| t.range("k".."n").rev().for_each(|entry| drop(entry.unwrap()))),
    ("a range from both ends", |t| {
        let mut entries = t.range("b"..="x");
        while entries.next().is_some() && entries.next_back().is_some() {}
    }),
    ("a prefix", |t| t.prefix("m").unwrap().for_each(|entry| drop(entry.unwrap()))),
    ("a cursor", |t| {
        let mut cursor = t.cursor().unwrap();
        cursor.seek("k");
        while cursor.valid() {
            cursor.next();
        }
        cursor.prev();
    }),
    ("a cursor that switches direction", |t| {
        let mut cursor = t.cursor().unwrap();
        cursor.seek("c");
        (0..3).for_each(|_| cursor.next());
        (0..2).for_each(|_| cursor.prev());
    }),
    ("a cursor that is kept", |t| {
        let mut cursor = t.cursor().unwrap();
        cursor.seek_to_last();
        (0..3).for_each(|_| cursor.prev());
        std::mem::forget(cursor);
    }),
];

/// Ways to change what is at "m", or to have it appear there.
const WAYS: [fn(&Db); 7] = [
    |db| db.put("m", "new").unwrap(),
    |db| {
        db.put("m", "new").unwrap();
        db.delete("m").unwrap();
        db.compact_range::<&[u8]>(..).unwrap();
    },
    |db| _ = db.update("m", |_| Some("new")).unwrap(),
    |db| {
        let mut load = db.bulk_load().unwrap();
        load.put("l", "loaded").unwrap();
        load.put("m", "loaded").unwrap();
        load.finish().unwrap();
    },
    |db| {
        db.put("m", "brief").unwrap();
        db.delete_range("l"..="o").unwrap();
    },
    |db| {
        (0..5_000_u32).for_each(|key| db.put([b"m", &key.to_be_bytes()[..]].concat(), "").unwrap());
        db.delete_range("l".."n").unwrap();
    },
    |db| {
        let mut other = begin(db);
        other.put("m", "new");
        other.commit().unwrap();
        db.flush().unwrap();
    },
];

#[test]
fn what_was_read_must_not_change_and_nothing_may_appear_there() {
    for is_there in [true, false] {
        for (name, read) in READS {
            for (number, way) in WAYS.into_iter().enumerate() {
                let db = open();
                for key in ["a", "c", "e", "p", "r", "t"] {
                    db.put(key, "old").unwrap();
                }
                if is_there {
                    db.put("m", "old").unwrap();
                }
                let mut mine = begin(&db);
                read(&mine);
                mine.put("mine", "1");
                way(&db);
                assert!(conflicts(mine), "{name}, way {number}, there before: {is_there}");
                assert_eq!(db.get("mine").unwrap(), None);
                db.close().unwrap();
            }
        }
    }
}

#[test]
fn what_was_not_read_may_change() {
    let db = open();
    for key in ["a", "c", "e", "p", "r", "t"] {
        db.put(key, "old").unwrap();
    }
    let mut mine = begin(&db);
    mine.put("own", "1");
    assert!(mine.get("own").unwrap().is_some());
    assert_eq!(mine.get("x").unwrap(), None);
    assert_eq!(mine.range("b".."d").count(), 1);
    assert_eq!(mine.range("d".."d").count(), 0);
    assert_eq!(mine.range("q".."o").count(), 0);
    assert_eq!(mine.range("r"..).next().unwrap().unwrap().0, b"r");
    assert_eq!(mine.range(.."t").next_back().unwrap().unwrap().0, b"r");
    for key in ["a", "p", "q", "t", "own", "d"] {
        db.put(key, "new").unwrap();
    }
    assert!(!conflicts(mine), "everything outside of what was read was written");
    // It read nothing but its own write, which it wrote in the dark.
    assert_eq!(db.get("own").unwrap().as_deref(), Some(&b"1"[..]));
    let reader = begin(&db);
    assert_eq!(reader.iter().count(), 9);
    db.put("z", "new").unwrap();
    assert!(!conflicts(reader), "what only reads has its place before the write");
    db.close().unwrap();
}

/// A write of its own that a transaction has read for update may be undone, and be all that it saw.
#[test]
fn what_was_read_for_update_must_not_change_where_it_was_its_own_write() {
    for is_undone in [false, true] {
        let db = open();
        let mut mine = begin(&db);
        mine.set_savepoint();
        mine.put("key", "mine");
        assert!(mine.get_for_update("key").unwrap().is_some());
        if is_undone {
            mine.rollback_to_savepoint().unwrap();
        }
        mine.put("other", "1");
        db.put("key", "theirs").unwrap();
        assert!(conflicts(mine), "undone: {is_undone}");
        db.close().unwrap();
    }
}

/// More is written than is kept.
#[test]
fn a_transaction_that_is_too_old_to_be_checked_conflicts() {
    let db = Db::open("/db", options().write_buffer_size(4 << 20)).unwrap();
    let mut old = begin(&db);
    assert_eq!(old.get("key").unwrap(), None);
    old.put("mine", "1");
    let name = |number: u32| [&[b'x'; 2_000][..], &number.to_be_bytes()].concat();
    (0..4_000_u32).for_each(|number| db.put(name(number), "").unwrap());
    let mut young = begin(&db);
    assert!(young.get(name(7)).unwrap().is_some());
    young.put("young", "1");
    (4_000..9_000_u32).for_each(|number| db.put(name(number), "").unwrap());
    let error = old.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("than is kept"), "{error}");
    drop(young);
    let mut next = begin(&db);
    assert!(next.get(name(7)).unwrap().is_some());
    next.put("next", "1");
    assert!(!conflicts(next));
    db.close().unwrap();
}

const KEYS: u8 = 6;

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("eight bytes"))
}

fn numbered((key, value): (Vec<u8>, Vec<u8>)) -> (u8, u64) {
    (key[0], number(&value))
}

struct Player<'a> {
    db: &'a Db,
    clock: &'a AtomicU64,
    random: Rng,
    /// Makes values that nobody else writes.
    next: u64,
    history: Vec<Committed>,
}

impl Player<'_> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn key(&mut self) -> u8 {
        self.random.below(usize::from(KEYS)) as u8
    }

    fn range(&mut self) -> Range<u8> {
        let (a, b) = (self.key(), self.key());
        a.min(b)..a.max(b) + 1
    }

    fn value(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn step(&mut self, transaction: &mut Transaction) -> Result<Step> {
        let key = self.key();
        Ok(match self.random.below(8) {
            0..2 => Step::Get(key, transaction.get([key])?.as_deref().map(number)),
            2 => Step::Get(key, transaction.get_for_update([key])?.as_deref().map(number)),
            3 => {
                let keys = self.range();
                let mut seen = if self.random.one_in(2) {
                    let entries = transaction.range([keys.start]..[keys.end]);
                    entries.map(|entry| entry.map(numbered)).collect::<Result<Vec<_>>>()?
                } else {
                    let entries = transaction.range([keys.start]..[keys.end]).rev();
                    entries.map(|entry| entry.map(numbered)).collect::<Result<Vec<_>>>()?
                };
                seen.sort_unstable();
                Step::Scan(keys, seen)
            }
            4 => {
                transaction.delete([key]);
                Step::Set(key, None)
            }
            _ => {
                let value = self.value();
                transaction.put([key], value.to_le_bytes());
                Step::Set(key, Some(value))
            }
        })
    }

    /// A transaction, which may be refused.
    fn transact(&mut self) -> Result<()> {
        let began = self.now();
        let locking = self.random.one_in(3);
        let options = SERIALIZABLE().locking(locking).lock_timeout(Duration::MAX);
        let mut transaction = self.db.transaction_with(options);
        let mut steps = Vec::new();
        for _ in 0..1 + self.random.below(5) {
            steps.push(self.step(&mut transaction)?);
            if self.random.one_in(2) {
                thread::yield_now();
            }
        }
        transaction.commit()?;
        self.note(began, steps);
        Ok(())
    }

    fn note(&mut self, began: u64, steps: Vec<Step>) {
        let ended = self.now();
        self.history.push(Committed { began, ended, steps });
    }

    fn act(&mut self) -> Result<()> {
        let began = self.now();
        let (key, value) = (self.key(), self.value());
        match self.random.below(16) {
            0..2 => {
                self.db.put([key], value.to_le_bytes())?;
                self.note(began, vec![Step::Set(key, Some(value))]);
            }
            2 => {
                let mut seen = None;
                self.db.update([key], |present| {
                    seen = present.map(number);
                    Some(value.to_le_bytes())
                })?;
                self.note(began, vec![Step::Get(key, seen), Step::Set(key, Some(value))]);
            }
            3..5 => {
                let popped = if self.random.one_in(2) {
                    let popped = self.db.pop_first()?.map(numbered);
                    popped.map(|entry| (entry, 0..entry.0 + 1))
                } else {
                    let popped = self.db.pop_last()?.map(numbered);
                    popped.map(|entry| (entry, entry.0..KEYS))
                };
                let steps = match popped {
                    Some((entry, keys)) => {
                        vec![Step::Scan(keys, vec![entry]), Step::Set(entry.0, None)]
                    }
                    None => vec![Step::Scan(0..KEYS, Vec::new())],
                };
                self.note(began, steps);
            }
            5 => {
                let mut load = self.db.bulk_load()?;
                load.put([key], value.to_le_bytes())?;
                load.finish()?;
                self.note(began, vec![Step::Set(key, Some(value))]);
            }
            6 => self.db.flush()?,
            _ => match self.transact() {
                Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Deadlock) => {
                }
                outcome => outcome?,
            },
        }
        Ok(())
    }
}

#[test]
fn concurrent_histories_are_serializable() {
    let watchdog = Watchdog::new(Duration::from_secs(120), "serializable");
    let mut committed = 0;
    campaign("concurrent_histories_are_serializable", scaled(500), |seed| {
        watchdog.feed(format!("serializable: seed {seed}"));
        let db = open();
        let clock = AtomicU64::new(0);
        let mut history = Vec::new();
        thread::scope(|scope| {
            let players: Vec<_> = (0..4)
                .map(|thread: u64| {
                    let (db, clock) = (&db, &clock);
                    scope.spawn(move || {
                        let random = Rng::new(seed ^ (thread << 32));
                        let (next, history) = (thread << 32, Vec::new());
                        let mut player = Player { db, clock, random, next, history };
                        (0..30).try_for_each(|_| player.act()).map(|()| player.history)
                    })
                })
                .collect();
            players.into_iter().try_for_each(|player| {
                let played = player.join().expect("no panic").map_err(|error| error.to_string())?;
                history.extend(played);
                Ok::<(), String>(())
            })
        })?;
        committed += history.len();
        if !is_serializable(&history) {
            return Err(format!("no order explains {history:?}"));
        }
        assert_eq!((db.stats().locked_keys, db.stats().snapshots), (0, 0));
        db.close().map_err(|error| error.to_string())
    });
    println!("concurrent_histories_are_serializable: {committed} transactions checked");
}

/// Every thread takes from one account what it puts into another, as ranges and keys say.
#[test]
fn transact_repeats_serializable_transactions() {
    let db = open();
    let rounds = scaled(400);
    let options = TransactOptions::new()
        .transaction_options(SERIALIZABLE())
        .write_options(WriteOptions::new());
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (db, options) = (&db, options);
            scope.spawn(move || {
                for round in 0..rounds {
                    // Every key is the number of those before it.
                    let added: Result<()> = db.transact_with(options, |transaction| {
                        let count = transaction.iter().count() as u64;
                        transaction.put(count.to_be_bytes(), [thread as u8]);
                        Ok(())
                    });
                    added.unwrap();
                    if round % 64 == 63 {
                        db.flush().unwrap();
                    }
                }
            });
        }
    });
    let keys: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0).collect();
    let expected: Vec<_> = (0..4 * rounds).map(|key| key.to_be_bytes().to_vec()).collect();
    assert_eq!(keys, expected);
    db.close().unwrap();
}
