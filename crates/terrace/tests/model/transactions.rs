//! Transactions: against a model, beside all other ways to write, and between threads.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use terrace::{Comparator, Db, ErrorKind, MemEnv, Options, Transaction, WriteBatch, WriteOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;

const ASYNC: WriteOptions = WriteOptions { sync: false };

type Pair = (Vec<u8>, Vec<u8>);

fn options() -> Options {
    Options::new().create_if_missing(true).env(Arc::new(MemEnv::new())).write_buffer_size(64 << 10)
}

fn open() -> Db {
    Db::open("/db", options()).unwrap()
}

fn conflicts(transaction: Transaction) -> bool {
    match transaction.commit_with(ASYNC) {
        Ok(()) => false,
        Err(error) if error.kind() == ErrorKind::Conflict => true,
        Err(error) => panic!("{error}"),
    }
}

/// Keys from the greatest to the least.
struct Descending;

impl Comparator for Descending {
    fn name(&self) -> &str {
        "test.Descending"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// One transaction, and what it should see.
struct Open {
    transaction: Transaction,
    began: u64,
    base: BTreeMap<Vec<u8>, Vec<u8>>,
    own: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    relied_on: BTreeSet<Vec<u8>>,
    savepoints: Vec<BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
}

impl Open {
    fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        match self.own.get(key) {
            Some(own) => own.as_ref(),
            None => self.base.get(key),
        }
    }

    fn seen(&self, descending: bool) -> Vec<Pair> {
        let keys: BTreeSet<_> = self.base.keys().chain(self.own.keys()).collect();
        let mut seen: Vec<_> = keys
            .into_iter()
            .filter_map(|key| Some((key.clone(), self.get(key)?.clone())))
            .collect();
        if descending {
            seen.reverse();
        }
        seen
    }
}

struct Play {
    db: Db,
    descending: bool,
    random: Rng,
    /// Counts writes.
    now: u64,
    last: BTreeMap<Vec<u8>, Vec<u8>>,
    written: BTreeMap<Vec<u8>, u64>,
    open: Vec<Open>,
    committed: u64,
    refused: u64,
}

impl Play {
    fn new(seed: u64) -> Self {
        let descending = seed.is_multiple_of(3);
        let options = match descending {
            true => options().comparator(Arc::new(Descending)),
            false => options().prepared_transactions(true),
        };
        Play {
            db: Db::open("/db", options).unwrap(),
            descending,
            random: Rng::new(seed),
            now: 0,
            last: BTreeMap::new(),
            written: BTreeMap::new(),
            open: Vec::new(),
            committed: 0,
            refused: 0,
        }
    }

    fn key(&mut self) -> Vec<u8> {
        format!("{:03}", self.random.below(120)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        vec![b'a' + self.random.below(26) as u8; self.random.below(300)]
    }

    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.now += 1;
        self.written.insert(key.clone(), self.now);
        match value {
            Some(value) => self.last.insert(key, value),
            None => self.last.remove(&key),
        };
    }

    /// A write outside of transactions, or work on the files.
    fn write(&mut self) {
        let (key, value) = (self.key(), self.value());
        match self.random.below(20) {
            0 => self.db.flush().unwrap(),
            1 => self.db.compact_range::<&[u8]>(..).unwrap(),
            2 => {
                let mut load = self.db.bulk_load().unwrap();
                let keys: BTreeSet<_> = (0..5).map(|_| self.key()).collect();
                for key in keys {
                    load.put(&key, &value).unwrap();
                    self.set(key, Some(value.clone()));
                }
                load.finish().unwrap();
            }
            3..8 => {
                self.db.delete(&key).unwrap();
                self.set(key, None);
            }
            _ => {
                self.db.put(&key, &value).unwrap();
                self.set(key, Some(value));
            }
        }
    }

    fn begin(&mut self) {
        self.open.push(Open {
            transaction: self.db.transaction(),
            began: self.now,
            base: self.last.clone(),
            own: BTreeMap::new(),
            relied_on: BTreeSet::new(),
            savepoints: Vec::new(),
        });
    }

    fn act(&mut self, at: usize) {
        let (key, value, what) = (self.key(), self.value(), self.random.below(12));
        let open = &mut self.open[at];
        let transaction = &mut open.transaction;
        match what {
            0..3 => {
                transaction.put(&key, &value);
                open.own.insert(key, Some(value));
            }
            3 => {
                transaction.delete(&key);
                open.own.insert(key, None);
            }
            4 => {
                let mut batch = WriteBatch::new();
                batch.put(&key, &value);
                batch.delete(b"050");
                transaction.apply(&batch).unwrap();
                open.own.insert(key, Some(value));
                open.own.insert(b"050".to_vec(), None);
            }
            5 => {
                transaction.set_savepoint();
                open.savepoints.push(open.own.clone());
            }
            6 => match open.savepoints.pop() {
                Some(own) => {
                    transaction.rollback_to_savepoint().unwrap();
                    open.own = own;
                }
                None => assert!(transaction.rollback_to_savepoint().is_err()),
            },
            7 => {
                let found = transaction.get_for_update(&key).unwrap();
                open.relied_on.insert(key.clone());
                assert_eq!(found.as_ref(), open.get(&key));
            }
            8 => {
                assert_eq!(transaction.get(&key).unwrap().as_ref(), open.get(&key));
                assert_eq!(open.transaction.contains_key(&key).unwrap(), open.get(&key).is_some());
            }
            9 => self.compare_ranges(at, &key),
            _ => self.scan(at, &key),
        }
        let open = &self.open[at];
        assert_eq!(open.transaction.len(), open.own.len());
        assert_eq!(open.transaction.is_empty(), open.own.is_empty());
    }

    fn compare_ranges(&mut self, at: usize, key: &[u8]) {
        let other = self.key();
        let (open, descending) = (&self.open[at], self.descending);
        let seen = open.seen(descending);
        let all = |entries: terrace::TransactionEntries<'_>| {
            entries.collect::<Result<Vec<_>, _>>().unwrap()
        };
        let ordered = |a: &[u8], b: &[u8]| if descending { b.cmp(a) } else { a.cmp(b) };
        assert_eq!(all(open.transaction.iter()), seen);
        let (from, to) =
            if ordered(key, &other).is_le() { (key, &other[..]) } else { (&other[..], key) };
        let within: Vec<_> = seen
            .iter()
            .filter(|(key, _)| ordered(key, from).is_ge() && ordered(key, to).is_lt())
            .cloned()
            .collect();
        assert_eq!(all(open.transaction.range(from..to)), within);
        let mut backwards =
            open.transaction.range(from..to).rev().collect::<Result<Vec<_>, _>>().unwrap();
        backwards.reverse();
        assert_eq!(backwards, within);
        let mut entries = open.transaction.range(from..=to);
        let (mut front, mut back) = (Vec::new(), Vec::new());
        while let Some(entry) = if self.random.one_in(2) { entries.next() } else { None } {
            front.push(entry.unwrap());
            back.extend(entries.next_back().map(Result::unwrap));
        }
        front.extend(entries.map(Result::unwrap));
        front.extend(back.into_iter().rev());
        let within =
            seen.iter().filter(|(key, _)| ordered(key, from).is_ge() && ordered(key, to).is_le());
        assert_eq!(front, within.cloned().collect::<Vec<_>>());
        match open.transaction.prefix("05") {
            Ok(entries) => {
                let within = seen
                    .iter()
                    .filter(|(key, _)| key.starts_with(b"05"))
                    .cloned()
                    .collect::<Vec<_>>();
                assert_eq!(all(entries), within);
            }
            Err(error) => assert!(descending && error.kind() == ErrorKind::NotSupported),
        }
    }

    /// Steps to and fro.
    fn scan(&mut self, at: usize, key: &[u8]) {
        let (open, descending) = (&self.open[at], self.descending);
        let seen = open.seen(descending);
        let ordered = |a: &[u8], b: &[u8]| if descending { b.cmp(a) } else { a.cmp(b) };
        let mut cursor = open.transaction.cursor().unwrap();
        assert!(!cursor.valid());
        let mut here = match self.random.below(4) {
            0 => {
                cursor.seek_to_first();
                0
            }
            1 => {
                cursor.seek_to_last();
                seen.len().wrapping_sub(1)
            }
            2 => {
                cursor.seek(key);
                seen.partition_point(|(other, _)| ordered(other, key).is_lt())
            }
            _ => {
                cursor.seek_for_prev(key);
                seen.partition_point(|(other, _)| ordered(other, key).is_le()).wrapping_sub(1)
            }
        };
        for _ in 0..20 {
            let expected = seen.get(here).map(|(key, value)| (&key[..], &value[..]));
            assert_eq!(cursor.entry(), expected);
            assert_eq!(
                (cursor.valid(), cursor.key(), cursor.value()),
                match expected {
                    Some((key, value)) => (true, key, value),
                    None => (false, &[][..], &[][..]),
                }
            );
            if self.random.one_in(2) {
                cursor.next();
                here = if expected.is_some() { here.wrapping_add(1) } else { here };
            } else {
                cursor.prev();
                here = if expected.is_some() { here.wrapping_sub(1) } else { here };
            }
        }
        cursor.status().unwrap();
    }

    fn end(&mut self, at: usize) {
        let open = self.open.swap_remove(at);
        if self.random.one_in(5) {
            return open.transaction.rollback();
        }
        let mut keys = open.own.keys().chain(&open.relied_on);
        let later = keys.any(|key| self.written.get(key).is_some_and(|&when| when > open.began));
        if !self.descending && self.random.one_in(3) {
            return self.prepare(open, later);
        }
        let expected = later && !open.own.is_empty();
        assert_eq!(
            conflicts(open.transaction),
            expected,
            "{:?} and {:?}",
            open.own,
            open.relied_on
        );
        if expected {
            self.refused += 1;
        } else {
            self.committed += 1;
            open.own.into_iter().for_each(|(key, value)| self.set(key, value));
        }
    }

    /// Commits in two phases, or rolls back between them. What others write meanwhile would wait.
    fn prepare(&mut self, open: Open, later: bool) {
        let prepared = open.transaction.prepare("one");
        if later {
            assert_eq!(prepared.unwrap_err().kind(), ErrorKind::Conflict);
            self.refused += 1;
            return;
        }
        prepared.unwrap();
        let listed = self.db.prepared_transactions().unwrap();
        assert_eq!((listed.len(), listed[0].writes), (1, open.own.len()));
        match self.random.below(4) {
            0 => self.db.flush().unwrap(),
            1 => self.db.compact_range::<&[u8]>(..).unwrap(),
            _ => {}
        }
        for key in open.own.keys() {
            assert_eq!(self.db.get(key).unwrap().as_ref(), self.last.get(key));
        }
        if self.random.one_in(3) {
            return self.db.rollback_prepared("one").unwrap();
        }
        self.db.commit_prepared("one").unwrap();
        self.committed += 1;
        open.own.into_iter().for_each(|(key, value)| self.set(key, value));
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..3 => self.write(),
            3..5 if self.open.len() < 4 => self.begin(),
            _ if self.open.is_empty() => self.begin(),
            5 => {
                let at = self.random.below(self.open.len());
                self.end(at);
            }
            _ => {
                let at = self.random.below(self.open.len());
                self.act(at);
            }
        }
    }
}

#[test]
fn transactions_equal_a_model() {
    let (mut committed, mut refused) = (0, 0);
    campaign("transactions", scaled(200), |seed| {
        let mut play = Play::new(seed);
        (0..600).for_each(|_| play.step());
        while !play.open.is_empty() {
            play.end(0);
        }
        let mut last: Vec<_> = play.last.clone().into_iter().collect();
        if play.descending {
            last.reverse();
        }
        let found = play.db.iter().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(found, last);
        committed += play.committed;
        refused += play.refused;
        play.db.close().map_err(|error| error.to_string())
    });
    assert!(committed > 0 && refused > 0, "{committed} committed, {refused} refused");
}

/// Wherever what came in between has gone meanwhile.
#[test]
fn the_second_committer_gets_a_conflict() {
    let ways: [fn(&Db); 6] = [
        |db| db.put("key", "other").unwrap(),
        |db| db.delete("key").unwrap(),
        |db| {
            db.delete("key").unwrap();
            db.compact_range::<&[u8]>(..).unwrap();
        },
        |db| {
            db.put("key", "other").unwrap();
            db.flush().unwrap();
            db.put("another", "later").unwrap();
        },
        |db| {
            let mut load = db.bulk_load().unwrap();
            load.put("key", "loaded").unwrap();
            load.finish().unwrap();
        },
        |db| {
            let written: terrace::Result<()> = db.transact(|other| {
                other.put("key", "other");
                Ok(())
            });
            written.unwrap();
        },
    ];
    for (number, come_between) in ways.into_iter().enumerate() {
        let db = open();
        db.put("key", "first").unwrap();
        db.put("bystander", "first").unwrap();
        let (mut writes, mut relies, mut reads) =
            (db.transaction(), db.transaction(), db.transaction());
        let mut other = db.transaction();
        writes.put("key", "mine");
        assert_eq!(relies.get_for_update("key").unwrap().as_deref(), Some(&b"first"[..]));
        relies.put("elsewhere", "mine");
        assert_eq!(reads.get("key").unwrap().as_deref(), Some(&b"first"[..]));
        reads.put("place", "mine");
        other.delete("bystander");
        come_between(&db);
        let now = db.get("key").unwrap();
        assert!(conflicts(writes), "way {number}");
        assert!(conflicts(relies), "way {number}");
        assert!(!conflicts(reads), "way {number}");
        assert!(!conflicts(other), "way {number}");
        assert_eq!(db.get("key").unwrap(), now, "way {number}");
        let contents: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0).collect();
        assert!(
            contents.contains(&b"place".to_vec()) && !contents.contains(&b"elsewhere".to_vec())
        );
        assert!(!contents.contains(&b"bystander".to_vec()));
        db.close().unwrap();
    }
}

#[test]
fn a_transaction_survives_a_reopen_as_a_whole() {
    let env = Arc::new(MemEnv::new());
    let options = Options::new().create_if_missing(true).env(env);
    let db = Db::open("/db", options.clone()).unwrap();
    db.put("a", "old").unwrap();
    let mut transaction = db.transaction();
    transaction.put("a", "new");
    transaction.put("b", "new");
    transaction.delete("c");
    assert_eq!(db.get("b").unwrap(), None, "seen before it is committed");
    transaction.commit_with(WriteOptions::sync()).unwrap();
    let mut lost = db.transaction();
    lost.put("d", "never");
    drop(lost);
    db.close().unwrap();
    let db = Db::open("/db", options).unwrap();
    let found = db.iter().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    let expected: Vec<Pair> =
        [("a", "new"), ("b", "new")].map(|(key, value)| (key.into(), value.into())).into();
    assert_eq!(found, expected);
    db.close().unwrap();
}

#[test]
fn what_cannot_be_committed_says_why() {
    let env = Arc::new(MemEnv::new());
    let options = Options::new().create_if_missing(true).env(env);
    let db = Db::open("/db", options.clone()).unwrap();
    db.put("key", "value").unwrap();
    let (mut late, idle) = (db.transaction(), db.transaction());
    late.put("key", "late");
    let failure = db.transact(|transaction| {
        transaction.put("key", "never");
        transaction.rollback_to_savepoint()
    });
    assert_eq!(failure.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    db.close().unwrap();
    for error in [
        late.get("other").unwrap_err(),
        late.commit_with(ASYNC).unwrap_err(),
        idle.commit_with(ASYNC).unwrap_err(),
    ] {
        assert!(error.to_string().contains("closed"), "{error}");
    }
    let db = Db::open("/db", options.read_only(true)).unwrap();
    let mut transaction = db.transaction();
    assert!(transaction.get_for_update("key").unwrap().is_some());
    transaction.put("key", "new");
    assert_eq!(transaction.commit_with(ASYNC).unwrap_err().kind(), ErrorKind::NotSupported);
    let long = [b'x'; 200];
    let conflict = {
        let db = open();
        let mut transaction = db.transaction();
        transaction.put(long, "mine");
        db.put(long, "other").unwrap();
        transaction.commit_with(ASYNC).unwrap_err().to_string()
    };
    assert!(conflict.starts_with("conflict: ") && conflict.len() < 160, "{conflict}");
}

/// Money goes from account to account, and none is lost or made, at any moment of a read.
#[test]
fn conflicting_threads_all_commit_in_the_end() {
    const ACCOUNTS: usize = 8;
    const EACH: u64 = 100;
    let db = open();
    let account = |number: usize| format!("account {number}");
    (0..ACCOUNTS).for_each(|number| db.put(account(number), EACH.to_string()).unwrap());
    let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse::<u64>().unwrap();
    let (rounds, done, moved) = (scaled(4000), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let (db, done, moved) = (&db, &done, &moved);
        let movers: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    let mut random = Rng::new(thread + 1);
                    for _ in 0..rounds {
                        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                        let amount = random.below(20) as u64;
                        let done: terrace::Result<u64> = db.transact(|transaction| {
                            let has = number(&transaction.get_for_update(account(from))?.unwrap());
                            if has < amount || from == to {
                                return Ok(0);
                            }
                            let gets = number(&transaction.get(account(to))?.unwrap());
                            transaction.put(account(from), (has - amount).to_string());
                            transaction.put(account(to), (gets + amount).to_string());
                            Ok(amount)
                        });
                        moved.fetch_add(done.unwrap(), Relaxed);
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            while !done.load(Relaxed) {
                let transaction = db.transaction();
                let sum: u64 = transaction
                    .prefix("account")
                    .unwrap()
                    .map(|entry| number(&entry.unwrap().1))
                    .sum();
                assert_eq!(sum, ACCOUNTS as u64 * EACH);
                db.flush().unwrap();
            }
        });
        let outcomes: Vec<_> = movers.into_iter().map(|mover| mover.join()).collect();
        done.store(true, Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
    });
    assert!(moved.load(Relaxed) > 0);
    let sum: u64 = db.range::<&str>(..).unwrap().map(|entry| number(&entry.unwrap().1)).sum();
    assert_eq!(sum, ACCOUNTS as u64 * EACH);
    db.close().unwrap();
}
