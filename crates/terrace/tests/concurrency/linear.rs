//! The results that concurrent threads see are linearizable, and snapshots do not
//! change.
//!
//! Threads write, delete and read a few keys while memtables are flushed and tables compacted, and
//! note when each call began and ended. Afterwards every key's history is checked
//! (`terrace_testkit::linear`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrace::{Db, MemEnv, ReadOptions, WriteBatch, WriteOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::linear::{Action, Call, is_linearisable};
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::watchdog::Watchdog;

const THREADS: u64 = 4;
const CALLS: u64 = 400;
const KEYS: usize = 8;

/// The number that a value was made from.
fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().expect("a value begins with its number"))
}

/// The calls of one thread: of which key, and what.
fn work(db: &Db, clock: &AtomicU64, seed: u64, thread: u64) -> Result<Vec<(usize, Call)>, String> {
    let mut rng = Rng::new(seed ^ (thread << 32));
    let mut calls = Vec::new();
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    let text = |error: terrace::Error| error.to_string();
    for at in 0..CALLS {
        let key = rng.below(KEYS);
        let name = [b'k', key as u8];
        let began = now();
        let action = match rng.below(24) {
            20..24 => match update(db, &name, thread << 32 | at, &mut rng).map_err(text)? {
                Some(action) => action,
                None => continue,
            },
            0..8 => {
                let value = thread << 32 | at;
                let length = *rng.pick(&[8, 30, 3_000]);
                let mut bytes = value.to_le_bytes().to_vec();
                bytes.resize(length, b'.');
                let mut batch = WriteBatch::new();
                batch.put(name, bytes);
                db.write_with(&batch, WriteOptions { sync: rng.one_in(30) }).map_err(text)?;
                Action::Write(Some(value))
            }
            8..10 => {
                db.delete(name).map_err(text)?;
                Action::Write(None)
            }
            10..17 => Action::Read(db.get(name).map_err(text)?.as_deref().map(number)),
            17 => {
                let entry = db.range(name..=name).map_err(text)?.next();
                Action::Read(entry.transpose().map_err(text)?.map(|(_, value)| number(&value)))
            }
            18 => {
                // A snapshot is a read of the moment it was taken, whenever it is asked.
                let snapshot = db.snapshot();
                let ended = now();
                let options = ReadOptions::new().snapshot(&snapshot);
                let look = || db.get_with(name, &options).map_err(text);
                let first = look()?;
                std::thread::yield_now();
                if look()? != first {
                    return Err("a snapshot changed".to_owned());
                }
                calls.push((
                    key,
                    Call { began, ended, action: Action::Read(first.as_deref().map(number)) },
                ));
                continue;
            }
            _ => {
                match rng.below(8) {
                    0 => db.flush().map_err(text)?,
                    1 => db.compact_range::<&[u8]>(..).map_err(text)?,
                    _ => {}
                }
                continue;
            }
        };
        calls.push((key, Call { began, ended: now(), action }));
    }
    Ok(calls)
}

/// One atomic update, and what it saw and did, if it did anything.
fn update(db: &Db, key: &[u8], new: u64, rng: &mut Rng) -> terrace::Result<Option<Action>> {
    let bytes = new.to_le_bytes();
    let mut seen = None;
    if rng.one_in(3) {
        let value = db.get(key)?;
        seen = value.as_deref().map(number);
        let swapped = db.compare_and_swap(key, value.as_deref(), Some(&bytes))?;
        return Ok(swapped.then_some(Action::Update(seen, Some(new))));
    }
    if rng.one_in(3) {
        let inserted = db.insert_if_absent(key, bytes)?;
        return Ok(inserted.then_some(Action::Update(None, Some(new))));
    }
    let deletes = rng.one_in(3);
    db.update(key, |value| {
        seen = value.map(number);
        (!deletes).then_some(bytes)
    })?;
    Ok(Some(Action::Update(seen, (!deletes).then_some(new))))
}

#[test]
fn concurrent_histories_are_linearisable() {
    let watchdog = Watchdog::new(Duration::from_secs(120), "linear");
    let mut checked = 0;
    campaign("concurrent_histories_are_linearisable", scaled(50), |seed| {
        watchdog.feed(format!("linear: seed {seed}"));
        let settings = OptionSet { reverse: false, ..OptionSet::random(&mut Rng::new(seed)) };
        let db = Db::open(Path::new("/db"), settings.options(Arc::new(MemEnv::new())))
            .map_err(|e| e.to_string())?;
        let clock = AtomicU64::new(0);
        let mut histories = vec![Vec::new(); KEYS];
        std::thread::scope(|scope| {
            let (db, clock) = (&db, &clock);
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || work(db, clock, seed, thread)))
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .expect("no panic")?
                    .into_iter()
                    .for_each(|(key, call)| histories[key].push(call));
                Ok::<(), String>(())
            })
        })?;
        for (key, calls) in histories.iter().enumerate() {
            checked += calls.len();
            if !is_linearisable(calls) {
                return Err(format!(
                    "no order explains what happened to key {key}: {calls:?}\n  under {settings:?}"
                ));
            }
        }
        db.close().map_err(|error| error.to_string())
    });
    println!("concurrent_histories_are_linearisable: {checked} calls checked");
}
