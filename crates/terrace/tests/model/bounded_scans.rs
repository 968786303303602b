//! Scans with bounds over keys of which many are deleted, against a map: every form of them, both
//! ways, with switches of direction.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::sync::Arc;

use terrace::{Cursor, Db, MemEnv, Options, ReadOptions, Snapshot, WriteBatch};
use terrace_testkit::campaign::campaign;
use terrace_testkit::model::ReverseComparator;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;

type Pair = (Vec<u8>, Vec<u8>);
type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

const KEYS: usize = 1200;

fn key(number: usize) -> Vec<u8> {
    format!("{number:04}").into_bytes()
}

/// A map in the order of the database.
#[derive(Clone)]
struct Model {
    map: Map,
    reverse: bool,
}

impl Model {
    fn is_before(&self, a: &[u8], b: &[u8]) -> bool {
        if self.reverse { a > b } else { a < b }
    }

    /// The entries within the bounds, in order.
    fn within(&self, (from, to): &Bounds) -> Vec<Pair> {
        let is_within = |key: &[u8]| {
            let starts = match from {
                Unbounded => true,
                Included(from) => !self.is_before(key, from),
                Excluded(from) => self.is_before(from, key),
            };
            let ends = match to {
                Unbounded => true,
                Included(to) => !self.is_before(to, key),
                Excluded(to) => self.is_before(key, to),
            };
            starts && ends
        };
        let entries = self.map.iter().filter(|(key, _)| is_within(key));
        let mut entries: Vec<_> =
            entries.map(|(key, value)| (key.clone(), value.clone())).collect();
        if self.reverse {
            entries.reverse();
        }
        entries
    }
}

/// Deletes a run of keys, mostly, or puts some.
fn change(db: &Db, model: &mut Model, random: &mut Rng) {
    let from = random.below(KEYS);
    match random.below(10) {
        0..5 => {
            for number in from..(from + random.below(400)).min(KEYS) {
                db.delete(key(number)).unwrap();
                model.map.remove(&key(number));
            }
        }
        5 => db.flush().unwrap(),
        6 if random.one_in(8) => db.compact_range::<&[u8]>(..).unwrap(),
        _ => {
            let mut batch = WriteBatch::new();
            for _ in 0..random.below(30) {
                let (key, length) = (key(random.below(KEYS)), random.below(200));
                let value = random.bytes(length);
                batch.put(&key, &value);
                model.map.insert(key, value);
            }
            db.write(&batch).unwrap();
        }
    }
}

fn bound(random: &mut Rng) -> Bound<Vec<u8>> {
    match random.below(5) {
        0 => Unbounded,
        1 | 2 => Included(key(random.below(KEYS + 1))),
        _ => Excluded(key(random.below(KEYS + 1))),
    }
}

/// Bounds as those of [`ReadOptions`], and the same as bounds.
fn bounded(random: &mut Rng, mut options: ReadOptions) -> (ReadOptions, Bounds) {
    let mut bounds = (Unbounded, Unbounded);
    if !random.one_in(4) {
        let lower = key(random.below(KEYS + 1));
        options = options.lower_bound(lower.clone());
        bounds.0 = Included(lower);
    }
    if !random.one_in(4) {
        let upper = key(random.below(KEYS + 1));
        options = options.upper_bound(upper.clone());
        bounds.1 = Excluded(upper);
    }
    (options, bounds)
}

/// Moves a cursor at random among the entries that it may show.
fn compare_cursor(cursor: &mut Cursor, model: &Model, entries: &[Pair], random: &mut Rng) {
    let mut here: Option<usize> = None;
    for _ in 0..12 {
        let sought = key(random.below(KEYS + 1));
        match random.below(7) {
            0 => {
                cursor.seek_to_first();
                here = (!entries.is_empty()).then_some(0);
            }
            1 => {
                cursor.seek_to_last();
                here = entries.len().checked_sub(1);
            }
            2 => {
                cursor.seek(&sought);
                here = entries.iter().position(|(key, _)| !model.is_before(key, &sought));
            }
            3 => {
                cursor.seek_for_prev(&sought);
                here = entries.iter().rposition(|(key, _)| !model.is_before(&sought, key));
            }
            direction => {
                for _ in 0..1 + random.below(4) {
                    if direction == 4 {
                        cursor.prev();
                        here = here.and_then(|at| at.checked_sub(1));
                    } else {
                        cursor.next();
                        here = here.map(|at| at + 1).filter(|&at| at < entries.len());
                    }
                }
            }
        }
        let expected = here.map(|at| (&entries[at].0[..], &entries[at].1[..]));
        assert_eq!(cursor.entry(), expected);
        cursor.status().unwrap();
    }
}

/// Takes entries from both ends at random, until they meet.
fn compare_ends(
    mut found: impl DoubleEndedIterator<Item = terrace::Result<Pair>>,
    expected: Vec<Pair>,
    random: &mut Rng,
) {
    let mut expected = VecDeque::from(expected);
    let from_the_back = random.below(5);
    loop {
        let (found, expected) = if random.below(4) < from_the_back {
            (found.next_back(), expected.pop_back())
        } else {
            (found.next(), expected.pop_front())
        };
        assert_eq!(found.transpose().unwrap(), expected);
        if expected.is_none() {
            break;
        }
    }
    assert!(found.next().is_none() && found.next_back().is_none());
}

fn compare(db: &Db, model: &Model, snapshot: Option<&Snapshot>, random: &mut Rng) {
    let options = snapshot.map_or(ReadOptions::new(), |at| ReadOptions::new().snapshot(at));
    let (narrow, outer) = bounded(random, options.clone());
    let mut cursor = db.cursor_with(&narrow).unwrap();
    compare_cursor(&mut cursor, model, &model.within(&outer), random);
    let bounds = (bound(random), bound(random));
    let range = db.range_with::<Vec<u8>>(bounds.clone(), &options).unwrap();
    compare_ends(range, model.within(&bounds), random);
    // Bounds of both kinds.
    let mut within_both = model.within(&bounds);
    let outer = model.within(&outer);
    within_both.retain(|entry| outer.contains(entry));
    let range = db.range_with::<Vec<u8>>(bounds.clone(), &narrow).unwrap();
    compare_ends(range, within_both, random);
    if snapshot.is_some() {
        return;
    }
    let mut transaction = db.transaction();
    let mut own = model.clone();
    for _ in 0..random.below(20) {
        let key = key(random.below(KEYS));
        if random.one_in(2) {
            transaction.delete(&key);
            own.map.remove(&key);
        } else {
            transaction.put(&key, "own");
            own.map.insert(key, b"own".to_vec());
        }
    }
    compare_ends(transaction.range::<Vec<u8>>(bounds.clone()), own.within(&bounds), random);
    if !model.reverse {
        let prefix = key(random.below(KEYS))[..1 + random.below(3)].to_vec();
        let mut entries = own.within(&(Included(prefix.clone()), Unbounded));
        entries.retain(|(key, _)| key.starts_with(&prefix));
        compare_ends(transaction.prefix(&prefix).unwrap(), entries, random);
    }
    transaction.rollback();
}

/// Takes an entry out of a range at either end.
fn pop(db: &Db, model: &mut Model, random: &mut Rng) {
    let bounds = (bound(random), bound(random));
    let mut entries = model.within(&bounds).into_iter();
    let options = terrace::WriteOptions::new();
    let (popped, expected) = if random.one_in(2) {
        (db.pop_first_in::<Vec<u8>>(bounds, options), entries.next())
    } else {
        (db.pop_last_in::<Vec<u8>>(bounds, options), entries.next_back())
    };
    assert_eq!(popped.unwrap(), expected);
    if let Some((key, _)) = expected {
        model.map.remove(&key);
    }
}

#[test]
fn bounded_scans_over_deleted_keys_equal_a_model() {
    campaign("bounded_scans_over_deleted_keys_equal_a_model", scaled(60), |seed| {
        let mut random = Rng::new(seed);
        let reverse = random.one_in(5);
        let mut options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
        if reverse {
            options = options.comparator(Arc::new(ReverseComparator));
        }
        if random.one_in(3) {
            options = options.value_log(Some(100));
        }
        let db = Db::open("/db", options).unwrap();
        let mut model = Model { map: Map::new(), reverse };
        let mut batch = WriteBatch::new();
        for number in 0..KEYS {
            batch.put(key(number), b"first");
            model.map.insert(key(number), b"first".to_vec());
        }
        db.write(&batch).unwrap();
        let mut before: Option<(Snapshot, Model)> = None;
        for _ in 0..30 {
            change(&db, &mut model, &mut random);
            for _ in 0..3 {
                compare(&db, &model, None, &mut random);
            }
            if let Some((snapshot, model)) = &before {
                compare(&db, model, Some(snapshot), &mut random);
            }
            pop(&db, &mut model, &mut random);
            if random.one_in(8) {
                before = random.one_in(2).then(|| (db.snapshot(), model.clone()));
            }
        }
        drop(before);
        db.close().map_err(|error| error.to_string())
    });
}
