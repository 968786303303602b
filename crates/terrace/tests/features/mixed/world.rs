//! A database in which everything happens at random, and a map of what it is to hold.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use terrace::{
    Append, CompactionFilter, Compression, Cursor, Db, FilterDecision, Isolation, Keyspace,
    KeyspaceOptions, Options, PutOptions, ReadOptions, Snapshot, Transaction, TransactionOptions,
    WriteBatch, WriteOptions,
};
use terrace_testkit::clocked::Clocked;
use terrace_testkit::model::Pair;
use terrace_testkit::rng::Rng;
use terrace_testkit::simfs::{PowerLoss, SimFs};

const PATH: &str = "/db";
const MINUTE: Duration = Duration::from_secs(60);

/// The keyspaces: a plain one, one whose entries expire, one within that whose do not, and one with
/// a filter.
const PREFIXES: [&[u8]; 4] = [b"!p!", b"!e!", b"!e!!n!", b"!f!"];

/// Keys with values and the minute at which they expire.
pub(super) type Model = BTreeMap<Vec<u8>, Valued>;
type Valued = (Vec<u8>, Option<u64>);
type Pairs = Vec<Pair>;
pub(super) type Tried<T = ()> = Result<T, String>;
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Of the keyspace `f`: what it leaves of a value, now or later.
struct Odd;

fn filtered(value: &[u8]) -> Option<Vec<u8>> {
    match value.first() {
        Some(b'r') => None,
        Some(b'o') => Some([b"n", &value[1..]].concat()),
        _ => Some(value.to_vec()),
    }
}

impl CompactionFilter for Odd {
    fn filter(&self, _key: &[u8], value: &[u8]) -> FilterDecision {
        match filtered(value) {
            None => FilterDecision::Remove,
            Some(new) if new == value => FilterDecision::Keep,
            Some(new) => FilterDecision::Replace(new),
        }
    }
}

pub(super) fn text(error: terrace::Error) -> String {
    error.to_string()
}

/// Entries as the filter leaves them in the end, without the catalogue.
fn filtered_entries(entries: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Pairs {
    let entries = entries.filter(|(key, _)| !key.starts_with(b"!$terrace!"));
    let keep = |(key, value): (Vec<u8>, Vec<u8>)| match key.starts_with(b"!f!") {
        true => Some((key, filtered(&value)?)),
        false => Some((key, value)),
    };
    entries.filter_map(keep).collect()
}

pub(super) fn alive(model: &Model, now: u64) -> Pairs {
    let alive = model.iter().filter(|(_, (_, end))| end.is_none_or(|end| end > now));
    filtered_entries(alive.map(|(key, (value, _))| (key.clone(), value.clone())))
}

fn value_of(model: &Model, key: &[u8], now: u64) -> Option<Vec<u8>> {
    let (value, end) = model.get(key)?;
    end.is_none_or(|end| end > now).then(|| value.clone())
}

/// A reader that lasts, with what it is to see.
struct Kept<R> {
    reader: R,
    model: Model,
    now: u64,
}

pub(super) struct World {
    rng: Rng,
    fs: SimFs,
    loses: bool,
    env: Arc<Clocked>,
    db: Option<Db>,
    batch: usize,
    default: Option<u64>,
    pub(super) model: Model,
    /// Minutes that have passed.
    pub(super) now: u64,
    snapshots: Vec<Kept<Snapshot>>,
    cursors: Vec<Kept<Cursor>>,
    checkpoints: usize,
    /// How many values were made: no two are alike.
    values: u32,
}

impl World {
    /// Over `fs`, which loses its power now and then if `loses`.
    pub(super) fn new(seed: u64, fs: SimFs, loses: bool) -> Tried<World> {
        let mut rng = Rng::new(seed);
        let env = Clocked::over(fs.env());
        let (batch, default) = (*rng.pick(&[0, 10, 4096]), *rng.pick(&[None, Some(7)]));
        let mut world = World {
            rng,
            fs,
            loses,
            env,
            db: None,
            batch,
            default,
            model: Model::new(),
            now: 0,
            snapshots: Vec::new(),
            cursors: Vec::new(),
            checkpoints: 0,
            values: 0,
        };
        world.open()?;
        for at in 0..3 {
            world.create(at)?;
        }
        Ok(world)
    }

    fn options(&self) -> Options {
        Options::new()
            .create_if_missing(true)
            .write_buffer_size(64 << 10)
            .max_file_size(1 << 20)
            .range_delete_batch(self.batch)
            .env(self.env.clone())
    }

    fn open(&mut self) -> Tried {
        self.db = Some(Db::open(PATH, self.options()).map_err(text)?);
        self.set_filter()
    }

    fn set_filter(&self) -> Tried {
        match self.db().keyspace("f") {
            Ok(keyspace) => keyspace.set_compaction_filter(Arc::new(Odd)).map_err(text),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn db(&self) -> &Db {
        self.db.as_ref().expect("an open database")
    }

    /// Creates the first, second or last keyspace, the second with the one within it.
    fn create(&self, at: usize) -> Tried {
        let db = self.db();
        match at {
            0 => db.create_keyspace("p", KeyspaceOptions::new()).map(drop),
            1 => {
                let ttl = self.default.map(|minutes| MINUTE * minutes as u32);
                let options = KeyspaceOptions::new().expiry(true).default_ttl(ttl);
                let within = KeyspaceOptions::new().block_size(1 << 10);
                db.create_keyspace("e", options)
                    .and_then(|e| e.create_keyspace("n", within).map(drop))
            }
            _ => {
                let options = KeyspaceOptions::new().compression(Compression::None);
                db.create_keyspace("f", options.filter_bits(0)).map(drop)
            }
        }
        .map_err(text)?;
        self.set_filter()
    }

    fn keyspace(&self, prefix: &[u8]) -> Tried<Keyspace> {
        let db = self.db();
        match prefix {
            b"!p!" => db.keyspace("p"),
            b"!e!" => db.keyspace("e"),
            b"!f!" => db.keyspace("f"),
            _ => db.keyspace("e").and_then(|e| e.keyspace("n")),
        }
        .map_err(text)
    }

    fn within(&mut self) -> Vec<u8> {
        format!("{:02}", self.rng.below(30)).into_bytes()
    }

    /// A key of the database, in a keyspace or not.
    fn key(&mut self) -> Vec<u8> {
        let prefix = *self.rng.pick(&[PREFIXES[0], PREFIXES[1], PREFIXES[2], PREFIXES[3], b"z"]);
        [prefix, &self.within()].concat()
    }

    /// One of a keyspace without a filter, or of none.
    fn exact_key(&mut self) -> Vec<u8> {
        loop {
            let key = self.key();
            if !key.starts_with(b"!f!") {
                return key;
            }
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let first = *self.rng.pick(b"kor");
        let length = self.rng.below(80);
        self.values += 1;
        [&[first], &*self.rng.bytes(length), &self.values.to_be_bytes()].concat()
    }

    fn range(&mut self) -> Range {
        let mut bound = |inclusive: bool| match self.rng.below(8) {
            0 => Bound::Unbounded,
            _ if inclusive => Bound::Included(self.exact_key()),
            _ => Bound::Excluded(self.exact_key()),
        };
        let range = (bound(true), bound(false));
        match &range {
            // Not the catalogue.
            (Bound::Unbounded, to) => (Bound::Included(b"!e!".to_vec()), to.clone()),
            _ => range,
        }
    }

    /// How an entry of the second keyspace is put, and the minute at which it expires.
    fn lifetime(&mut self) -> (PutOptions, Option<u64>) {
        // Odd minutes, while time passes by even ones: never the very minute of a look.
        let minutes = 2 * self.rng.below(10) as u64 + 1;
        match self.rng.below(4) {
            0 => (PutOptions::new(), self.default.map(|minutes| self.now + minutes)),
            1 => (PutOptions::new().never_expires(), None),
            _ => (PutOptions::new().ttl(MINUTE * minutes as u32), Some(self.now + minutes)),
        }
    }

    /// A random entry, as it is stored, and what it is to the model.
    fn entry(&mut self) -> Tried<(Pair, Valued)> {
        let (prefix, key, value) = (*self.rng.pick(&PREFIXES), self.within(), self.value());
        let (options, end) = match prefix {
            b"!e!" => self.lifetime(),
            _ => (PutOptions::new(), None),
        };
        let stored = self.keyspace(prefix)?.entry(key, &value, options).map_err(text)?;
        Ok((stored, (value, end)))
    }

    fn put(&mut self) -> Tried {
        let (prefix, key, value) = (*self.rng.pick(&PREFIXES), self.within(), self.value());
        let (options, end) = match prefix {
            b"!e!" => self.lifetime(),
            _ => (PutOptions::new(), None),
        };
        let options = options.sync(self.rng.one_in(8));
        self.keyspace(prefix)?.put_with(&key, &value, options).map_err(text)?;
        self.model.insert([prefix, &key].concat(), (value, end));
        Ok(())
    }

    fn write_batch(&mut self) -> Tried {
        let mut batch = WriteBatch::new();
        for _ in 0..self.rng.below(8) {
            if self.rng.one_in(4) {
                let key = self.key();
                batch.delete(&key);
                self.model.remove(&key);
            } else {
                let ((key, stored), entry) = self.entry()?;
                batch.put(&key, stored);
                self.model.insert(key, entry);
            }
        }
        self.db().write(&batch).map_err(text)
    }

    fn delete_range(&mut self) -> Tried {
        let range = self.range();
        self.db().delete_range(range.clone()).map_err(text)?;
        self.model.retain(|key, _| !holds(&range, key));
        Ok(())
    }

    fn update(&mut self) -> Tried {
        let (key, new) = (self.exact_key(), self.value());
        let present = value_of(&self.model, &key, self.now);
        let (way, is_wrong) = (self.rng.below(4), self.rng.one_in(3));
        let db = self.db();
        let result = match way {
            0 => {
                let change = |value: Option<&[u8]>| match value {
                    Some(value) if value.len() % 3 == 0 => None,
                    Some(value) => Some([value, b"+"].concat()),
                    None => Some(new.clone()),
                };
                db.update(&key, change).map_err(text)?;
                change(present.as_deref())
            }
            1 => {
                let expected = if is_wrong { None } else { present.clone() };
                let swapped =
                    db.compare_and_swap(&key, expected.as_deref(), Some(&new)).map_err(text)?;
                same("compare_and_swap", &swapped, &(expected == present))?;
                if !swapped {
                    return Ok(());
                }
                Some(new)
            }
            2 => {
                let inserted = db.insert_if_absent(&key, &new).map_err(text)?;
                same("insert_if_absent", &inserted, &present.is_none())?;
                if !inserted {
                    return Ok(());
                }
                Some(new)
            }
            _ => {
                let merged = db.merge(&key, &new, &Append::new()).map_err(text)?;
                let expected = [present.as_deref().unwrap_or_default(), &new].concat();
                same("merge", &merged, &expected)?;
                Some(merged)
            }
        };
        match result {
            Some(value) => _ = self.model.insert(key, (value, None)),
            None => _ = self.model.remove(&key),
        }
        Ok(())
    }

    fn pop(&mut self) -> Tried {
        // No values that the filter may have changed.
        let prefix = *self.rng.pick(&PREFIXES[..3]);
        let from = [prefix, &self.within()].concat();
        let range = (Bound::Included(from), Bound::Excluded([&prefix[..2], b"\""].concat()));
        let all = alive(&self.model, self.now);
        let mut there = all.into_iter().filter(|(key, _)| holds(&range, key));
        let (popped, expected) = match self.rng.one_in(2) {
            true => (self.db().pop_first_in(range.clone(), WriteOptions::new()), there.next()),
            false => (self.db().pop_last_in(range.clone(), WriteOptions::new()), there.next_back()),
        };
        same("pop", &popped.map_err(text)?, &expected)?;
        if let Some((key, _)) = expected {
            self.model.remove(&key);
        }
        Ok(())
    }

    /// A transaction in the midst of which time passes, which others do not disturb.
    fn transact(&mut self) -> Tried {
        let isolation = *self.rng.pick(&[Isolation::Snapshot, Isolation::Serializable]);
        let locking = self.rng.one_in(2);
        let options = TransactionOptions::new().isolation(isolation).locking(locking);
        let mut transaction = self.db().transaction_with(options);
        // A lock moves the moment that is read on, until something else is read.
        let (mut began, mut moves, mut locked) = (self.now, locking, Vec::new());
        let (mut model, mut saved) = (self.model.clone(), Vec::new());
        for _ in 0..self.rng.below(10) {
            match self.rng.below(10) {
                0..=2 => {
                    let ((key, stored), entry) = self.entry()?;
                    transaction.put(&key, stored);
                    model.insert(key, entry);
                }
                3 => {
                    let key = self.key();
                    transaction.delete(&key);
                    model.remove(&key);
                }
                4 => {
                    let range = self.range();
                    transaction.delete_range(range.clone()).map_err(text)?;
                    moves = false;
                    // It deletes what it sees.
                    model.retain(|key, (_, end)| {
                        !holds(&range, key) || end.is_some_and(|end| end <= began)
                    });
                }
                5 => {
                    transaction.set_savepoint();
                    saved.push(model.clone());
                }
                6 => {
                    if let Some(earlier) = saved.pop() {
                        transaction.rollback_to_savepoint().map_err(text)?;
                        model = earlier;
                    }
                }
                7 => self.pass(),
                8 => {
                    let key = self.exact_key();
                    let value = transaction.get_for_update(&key).map_err(text)?;
                    if moves && !locked.contains(&key) {
                        began = self.now;
                    }
                    locked.push(key.clone());
                    same("get_for_update", &value, &value_of(&model, &key, began))?;
                }
                _ => {
                    check_transaction(&transaction, &model, began)?;
                    moves = false;
                }
            }
        }
        check_transaction(&transaction, &model, began)?;
        if !self.rng.one_in(4) {
            transaction.commit().map_err(text)?;
            self.model = model;
        }
        Ok(())
    }

    fn pass(&mut self) {
        let minutes = 2 * self.rng.below(4) as u64;
        self.env.advance(MINUTE * minutes as u32);
        self.now += minutes;
    }

    fn drop_keyspace(&mut self) -> Tried {
        let at = *self.rng.pick(&[0, 1, 2, 3]);
        let dropped = match at {
            0 => self.db().drop_keyspace("p"),
            1 => self.db().drop_keyspace("e"),
            2 => self.db().keyspace("e").and_then(|e| e.drop_keyspace("n")),
            _ => self.db().drop_keyspace("f"),
        };
        same("drop", &dropped.map_err(text)?, &true)?;
        self.model.retain(|key, _| !key.starts_with(PREFIXES[at]));
        match at {
            2 => {
                let within = KeyspaceOptions::new().block_size(1 << 10);
                let parent = self.db().keyspace("e").map_err(text)?;
                parent.create_keyspace("n", within).map(drop).map_err(text)
            }
            at => self.create(at),
        }
    }

    /// Closes, dies, or loses its power after a sync; then opens.
    fn reopen(&mut self) -> Tried {
        let loss = match self.rng.below(3) {
            _ if !self.loses => None,
            0 => None,
            1 => Some(PowerLoss::PROCESS_ONLY),
            _ => {
                self.db().sync().map_err(text)?;
                Some(PowerLoss::random(self.rng.next_u64()))
            }
        };
        let after = loss.map(|loss| self.fs.power_loss(loss));
        self.close();
        if let Some(fs) = after {
            self.fs = fs;
            self.env = Clocked::over(self.fs.env());
            self.env.advance(MINUTE * self.now as u32);
        }
        self.open()
    }

    pub(super) fn close(&mut self) {
        self.snapshots.clear();
        self.cursors.clear();
        self.db = None;
    }

    fn checkpoint(&mut self) -> Tried {
        self.checkpoints += 1;
        let path = PathBuf::from(format!("/checkpoint{}", self.checkpoints));
        self.db().checkpoint(&path).map_err(text)?;
        let copy = Db::open(&path, self.options()).map_err(text)?;
        let entries = copy.iter().and_then(Iterator::collect).map_err(text)?;
        same(
            "a checkpoint",
            &filtered_entries(Pairs::into_iter(entries)),
            &alive(&self.model, self.now),
        )
    }

    fn keep(&mut self) -> Tried {
        let (model, now) = (self.model.clone(), self.now);
        if self.rng.one_in(2) && self.snapshots.len() < 3 {
            self.snapshots.push(Kept { reader: self.db().snapshot(), model, now });
        } else if self.cursors.len() < 3 {
            let reader = self.db().cursor().map_err(text)?;
            self.cursors.push(Kept { reader, model, now });
        }
        Ok(())
    }

    pub(super) fn look(&mut self) -> Tried {
        let from = self.key();
        for kept in &self.snapshots {
            let options = ReadOptions::new().snapshot(&kept.reader);
            check(self.db(), &options, &kept.model, kept.now)?;
        }
        for kept in &mut self.cursors {
            let mut found = Vec::new();
            kept.reader.seek(&from);
            while let Some((key, value)) = kept.reader.entry() {
                found.push((key.to_vec(), value.to_vec()));
                kept.reader.next();
            }
            kept.reader.status().map_err(text)?;
            let expected = alive(&kept.model, kept.now);
            let expected: Pairs = expected.into_iter().filter(|(key, _)| *key >= from).collect();
            same("a cursor", &filtered_entries(found.into_iter()), &expected)?;
        }
        if self.rng.one_in(4) {
            self.snapshots.pop();
            self.cursors.pop();
        }
        check(self.db(), &ReadOptions::new(), &self.model, self.now)
    }

    pub(super) fn step(&mut self) -> Tried {
        match self.rng.below(40) {
            0..=9 => self.put(),
            10..=13 => self.write_batch(),
            14 => {
                // As a program that knows nothing of keyspaces.
                let (key, value) = (self.key(), self.value());
                self.db().put(&key, &value).map_err(text)?;
                self.model.insert(key, (value, None));
                Ok(())
            }
            15 => {
                let key = self.key();
                self.db().delete(&key).map_err(text)?;
                self.model.remove(&key);
                Ok(())
            }
            16 | 17 => self.delete_range(),
            18..=20 => self.update(),
            21 => self.pop(),
            22..=24 => self.transact(),
            25 | 26 => {
                self.pass();
                Ok(())
            }
            27 => self.drop_keyspace(),
            28 => self.reopen(),
            29 if self.rng.one_in(3) => self.checkpoint(),
            30 => self.db().flush().map_err(text),
            31 => self.db().wait_idle().map_err(text),
            32 | 33 => {
                let force = terrace::CompactOptions::new().force(self.rng.one_in(2));
                self.db().compact_range_with::<&[u8]>(.., force).map_err(text)
            }
            34 | 35 => self.keep(),
            _ => self.look(),
        }
    }
}

/// What a database holds that is opened over `fs` in minute `now`, with settings that make no
/// difference to it.
pub(super) fn found_after(fs: &SimFs, now: u64) -> Tried<Pairs> {
    let env = Clocked::over(fs.env());
    env.advance(MINUTE * now as u32);
    let db = Db::open(PATH, Options::new().env(env)).map_err(text)?;
    for name in db.keyspaces().map_err(text)? {
        db.keyspace(name).map_err(text)?;
    }
    let entries: Pairs = db.iter().and_then(Iterator::collect).map_err(text)?;
    Ok(filtered_entries(entries.into_iter()))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Tried {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, must be {expected:?}")),
    }
}

fn holds((from, to): &Range, key: &[u8]) -> bool {
    let after = match from {
        Bound::Included(from) => key >= from.as_slice(),
        Bound::Excluded(from) => key > from.as_slice(),
        Bound::Unbounded => true,
    };
    let before = match to {
        Bound::Included(to) => key <= to.as_slice(),
        Bound::Excluded(to) => key < to.as_slice(),
        Bound::Unbounded => true,
    };
    after && before
}

/// Compares every way to read.
fn check(db: &Db, options: &ReadOptions, model: &Model, now: u64) -> Tried {
    let expected = alive(model, now);
    let all = || db.iter_with(options).map_err(text);
    let forwards: Pairs = all()?.collect::<terrace::Result<_>>().map_err(text)?;
    let mut backwards: Pairs = all()?.rev().collect::<terrace::Result<_>>().map_err(text)?;
    backwards.reverse();
    same("forwards", &filtered_entries(forwards.into_iter()), &expected)?;
    same("backwards", &filtered_entries(backwards.into_iter()), &expected)?;
    let keys: Vec<_> = model.keys().collect();
    let values = db.multi_get_with(&keys, options).map_err(text)?;
    for (key, value) in keys.into_iter().zip(values) {
        let single = db.get_with(key, options).map_err(text)?;
        let found = single.map(|value| (key.clone(), value));
        let again = value.map(|value| (key.clone(), value));
        let expected = expected.iter().filter(|(other, _)| other == key).cloned().collect();
        same("get", &filtered_entries(found.into_iter()), &expected)?;
        same("multi_get", &filtered_entries(again.into_iter()), &expected)?;
    }
    Ok(())
}

fn check_transaction(transaction: &Transaction, model: &Model, now: u64) -> Tried {
    let seen = transaction.iter().collect::<terrace::Result<Pairs>>().map_err(text)?;
    same("a transaction", &filtered_entries(seen.into_iter()), &alive(model, now))
}
