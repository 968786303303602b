//! Scans over ranges of deleted keys, which other scans have passed before: against a model, and
//! between threads.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use terrace::{Db, Options, ReadOptions, Snapshot, WriteBatch};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: usize = 3000;

fn key(number: usize) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

/// Changes both in one of the ways that there are.
fn change(db: &Db, model: &mut Model, random: &mut Rng) {
    let from = random.below(KEYS);
    let to = (from + random.below(600)).min(KEYS);
    match random.below(12) {
        0..4 => {
            for number in from..to {
                db.delete(key(number)).unwrap();
                model.remove(&key(number));
            }
        }
        4 => {
            let mut batch = WriteBatch::new();
            for number in (from..to).step_by(1 + random.below(9)) {
                batch.put(key(number), b"batch");
                model.insert(key(number), b"batch".to_vec());
            }
            db.write(&batch).unwrap();
        }
        5 => {
            let mut load = db.bulk_load().unwrap();
            for number in (from..to).step_by(100) {
                load.put(key(number), b"load").unwrap();
                model.insert(key(number), b"load".to_vec());
            }
            load.finish().unwrap();
        }
        6 => db.flush().unwrap(),
        7 if random.one_in(8) => db.compact_range::<&[u8]>(..).unwrap(),
        _ => {
            for _ in 0..random.below(4) {
                let key = key(random.below(KEYS));
                db.put(&key, b"single").unwrap();
                model.insert(key, b"single".to_vec());
            }
        }
    }
}

/// Looks at a place from both sides, as long as a few steps take.
fn compare(db: &Db, model: &Model, options: &ReadOptions, random: &mut Rng, seed: u64) {
    let mut cursor = db.cursor_with(options).unwrap();
    let sought = key(random.below(KEYS + 1));
    let entry = |entry: Option<(&Vec<u8>, &Vec<u8>)>| {
        entry.map(|(key, value)| (key.clone(), value.clone()))
    };
    let mut here = match random.below(4) {
        0 => {
            cursor.seek_to_first();
            entry(model.first_key_value())
        }
        1 => {
            cursor.seek_to_last();
            entry(model.last_key_value())
        }
        2 => {
            cursor.seek(&sought);
            entry(model.range(sought..).next())
        }
        _ => {
            cursor.seek_for_prev(&sought);
            entry(model.range(..=sought).next_back())
        }
    };
    for _ in 0..6 {
        assert_eq!(
            cursor.entry().map(|(key, value)| (key.to_vec(), value.to_vec())),
            here,
            "seed {seed}"
        );
        let Some((key, _)) = here else { break };
        if random.one_in(2) {
            cursor.next();
            here = entry(model.range((Excluded(key), Unbounded)).next());
        } else {
            cursor.prev();
            here = entry(model.range(..key).next_back());
        }
    }
    cursor.status().unwrap();
}

#[test]
fn scans_over_deleted_keys_equal_a_model() {
    campaign("scans_over_deleted_keys_equal_a_model", scaled(25), |seed| {
        let mut random = Rng::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), Options::new().create_if_missing(true)).unwrap();
        let mut model = Model::new();
        let mut before: Option<(Snapshot, Model)> = None;
        for _ in 0..150 {
            change(&db, &mut model, &mut random);
            for _ in 0..random.below(12) {
                compare(&db, &model, &ReadOptions::new(), &mut random, seed);
            }
            if let Some((snapshot, model)) = &before {
                compare(&db, model, &ReadOptions::new().snapshot(snapshot), &mut random, seed);
            }
            if random.one_in(10) {
                before = random.one_in(2).then(|| (db.snapshot(), model.clone()));
            }
        }
        drop(before);
        db.close().map_err(|error| error.to_string())
    });
}

/// Everything that producers put into a queue comes out of it, once, beside scans in both
/// directions.
#[test]
fn queues_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().create_if_missing(true).write_buffer_size(256 << 10);
    let db = Db::open(dir.path(), options).unwrap();
    let (next, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let each = scaled(20_000);
    let put = || {
        for _ in 0..each {
            let number = next.fetch_add(1, Ordering::Relaxed);
            db.put(format!("{number:010}"), b"message").unwrap();
        }
    };
    // Both ends of a queue that may be anything but where the other one says that it is not.
    let look = || {
        while !done.load(Ordering::Acquire) {
            let mut cursor = db.cursor().unwrap();
            cursor.seek_to_last();
            let last = cursor.entry().map(|(key, _)| key.to_vec());
            cursor.seek_to_first();
            let first = cursor.entry().map(|(key, _)| key.to_vec());
            assert!(first <= last && first.is_some() == last.is_some(), "{first:?} {last:?}");
        }
    };
    let pop = || {
        let mut popped = Vec::new();
        while popped.len() < 2 * each as usize {
            let is_over = done.load(Ordering::Acquire);
            let mut cursor = db.cursor().unwrap();
            cursor.seek_to_first();
            let Some((key, _)) = cursor.entry() else {
                assert!(!is_over, "{} of {} came out", popped.len(), 2 * each);
                continue;
            };
            db.delete(key).unwrap();
            popped.push(key.to_vec());
        }
        popped
    };
    let mut popped = std::thread::scope(|scope| {
        let consumer = scope.spawn(pop);
        scope.spawn(look);
        let producers = [scope.spawn(put), scope.spawn(put)];
        let results = producers.map(|producer| producer.join());
        done.store(true, Ordering::Release);
        results.into_iter().for_each(|result| result.unwrap());
        consumer.join().unwrap()
    });
    popped.sort();
    assert!(
        popped.iter().zip(0..).all(|(key, number)| **key == *format!("{number:010}").into_bytes())
    );
    db.close().unwrap();
}
