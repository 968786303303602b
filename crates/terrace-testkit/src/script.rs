//! Writes and upkeep of one writer, for tests that crash or fail at every step of it.

use std::ops::Bound;

use crate::model::{Change, Pair};
use crate::ops::{Generator, Shape};
use crate::rng::Rng;

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Writes a batch, synced or not.
    Write(Vec<Change>, bool),
    /// Deletes a range of keys, synced or not.
    DeleteRange(Bound<Vec<u8>>, Bound<Vec<u8>>, bool),
    /// Loads entries in bulk, in this order.
    Load(Vec<Pair>),
    /// Writes the memtable out and waits.
    Flush,
    /// Compacts everything and waits.
    Compact,
    /// Waits for background work.
    WaitIdle,
    /// Closes and opens.
    Reopen,
    /// Reads everything.
    Scan,
}

/// A named list of actions.
#[derive(Clone, Debug)]
pub struct Script {
    /// For messages.
    pub name: String,
    /// The operations after opening.
    pub actions: Vec<Action>,
}

impl Script {
    fn new(name: &str, actions: Vec<Action>) -> Script {
        Script { name: name.to_owned(), actions }
    }

    /// Short scripts that between them meet every kind of file and every kind of change to the
    /// directory.
    pub fn all() -> Vec<Script> {
        use Action::{Compact, Flush, Reopen, Scan, WaitIdle};
        let many = |from: usize, count: usize, size: usize, every: usize| {
            (from..from + count)
                .map(move |i| put(i % 40, i, size, every > 0 && i % every == 0))
                .collect::<Vec<_>>()
        };
        let of = |parts: &[&[Action]]| parts.concat();
        vec![
            Script::new("open and close", vec![]),
            Script::new("asynchronous puts", many(0, 12, 50, 0)),
            Script::new("synchronous puts", many(0, 12, 50, 1)),
            Script::new("some synchronous puts", many(0, 30, 80, 5)),
            Script::new("batches", (0..10).map(|i| batch(i * 5, 7, i, 60, i % 3 == 0)).collect()),
            Script::new("values larger than a log block", many(0, 5, 70_000, 2)),
            Script::new(
                "flush",
                of(&[&many(0, 8, 100, 3), &[Flush], &many(8, 4, 100, 2), &[Flush, Scan]]),
            ),
            Script::new(
                "reopen",
                of(&[&many(0, 8, 100, 3), &[Reopen], &many(8, 8, 100, 2), &[Reopen, Reopen, Scan]]),
            ),
            Script::new(
                "reopen after flush",
                of(&[
                    &many(0, 8, 100, 3),
                    &[Flush, Reopen],
                    &many(8, 3, 100, 1),
                    &[Flush, Reopen, Scan],
                ]),
            ),
            Script::new(
                "compaction",
                of(&[
                    &many(0, 20, 200, 7),
                    &[Flush],
                    &many(10, 20, 200, 0),
                    &[Flush],
                    &deletes(0, 15),
                    &[Compact, Scan],
                    &many(30, 3, 10, 1),
                ]),
            ),
            Script::new(
                "memtables filling up",
                of(&[
                    &many(0, 30, 9_000, 11),
                    &[WaitIdle],
                    &many(30, 20, 9_000, 0),
                    &[WaitIdle, Scan],
                ]),
            ),
            Script::new(
                "loads in bulk",
                of(&[
                    &[load(0..30, 1_000)],
                    &many(0, 9, 100, 4),
                    &[load((5..25).rev(), 2_000), Scan],
                    &many(7, 4, 50, 0),
                    &[load(100..130, 3_000), Flush, Reopen, Scan],
                    &many(20, 3, 10, 1),
                ]),
            ),
            Script::new(
                "ranges deleted",
                of(&[
                    &[load(0..30, 1_000)],
                    &many(0, 20, 300, 9),
                    &[Flush],
                    &many(10, 12, 200, 0),
                    &[delete_range(5, 25, false)],
                    &many(8, 4, 100, 0),
                    &[Flush, delete_range(9, 10, true), Scan],
                    &many(0, 9, 100, 4),
                    &[delete_range(0, 40, false), Reopen, Scan],
                    &many(20, 3, 10, 1),
                ]),
            ),
            Script::new(
                "everything deleted",
                of(&[
                    &many(0, 20, 300, 9),
                    &[Flush],
                    &deletes(0, 40),
                    &[Compact, Reopen],
                    &many(0, 2, 5, 1),
                ]),
            ),
        ]
    }

    /// Large values of few keys that are overwritten and deleted, so that value files become garbage
    /// again and again. `rounds` times.
    pub fn large_values(seed: u64, rounds: usize) -> Script {
        let mut rng = Rng::new(seed);
        let keys = *rng.pick(&[12, 30]);
        let size = *rng.pick(&[300, 3_000, 12_000]);
        let mut actions: Vec<_> =
            (0..keys).map(|number| put(number, number, size, false)).collect();
        actions.push(Action::Flush);
        for round in 1..=rounds {
            for change in 0..rng.between(keys / 3, keys) {
                let (number, sync) = (rng.below(keys), rng.one_in(4));
                actions.push(match rng.below(5) {
                    0 => Action::Write(vec![Change::Delete(key(number))], sync),
                    1 => batch(number, 3, round * 100 + change, size / 2, sync),
                    _ => put(number, round * 100 + change, rng.between(1, 2 * size), sync),
                });
            }
            actions.push(Action::Flush);
            // Else what follows is written beside background work.
            if rng.one_in(2) {
                actions.push(Action::WaitIdle);
            }
            if rng.one_in(5) {
                actions.push(Action::Reopen);
            }
        }
        actions.push(Action::WaitIdle);
        Script { name: format!("large values {seed}"), actions }
    }

    /// A script at random.
    pub fn random(seed: u64, length: usize) -> Script {
        let mut rng = Rng::new(seed);
        let shape = Shape {
            keys: *rng.pick(&[3, 20, 60]),
            value: *rng.pick(&[20, 200, 3_000]),
            large_one_in: *rng.pick(&[0, 20]),
            large: 70_000,
            heavy_one_in: 0,
            synced_of_16: *rng.pick(&[1, 4, 8]),
        };
        let heavy_one_in = *rng.pick(&[6, 15, 40]);
        let mut generator = Generator::new(rng.next_u64(), shape);
        let actions = (0..length).map(|_| {
            if rng.one_in(heavy_one_in) {
                return match rng.below(10) {
                    9 => {
                        let (from, to) = (generator.key(), generator.key());
                        let (from, to) = (Bound::Included(from), Bound::Excluded(to));
                        Action::DeleteRange(from, to, generator.synced())
                    }
                    8 => Action::Load(generator.load().0),
                    0..3 => Action::Flush,
                    3 => Action::Compact,
                    4 => Action::WaitIdle,
                    _ => Action::Reopen,
                };
            }
            let changes = if rng.one_in(2) { vec![generator.change()] } else { generator.batch() };
            Action::Write(changes, generator.synced())
        });
        Script { name: format!("random {seed}"), actions: actions.collect() }
    }
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

fn value(version: usize, size: usize) -> Vec<u8> {
    let mut value = format!("{version}:").into_bytes();
    value.extend(Rng::new(version as u64).bytes(size));
    value
}

fn put(number: usize, version: usize, size: usize, sync: bool) -> Action {
    Action::Write(vec![Change::Put(key(number), value(version, size))], sync)
}

fn batch(from: usize, count: usize, version: usize, size: usize, sync: bool) -> Action {
    let put = |number| Change::Put(key(number % 40), value(version * 100 + number, size));
    Action::Write((from..from + count).map(put).collect(), sync)
}

fn load(numbers: impl Iterator<Item = usize>, version: usize) -> Action {
    Action::Load(numbers.map(|number| (key(number), value(version + number, 4_000))).collect())
}

fn delete_range(from: usize, to: usize, sync: bool) -> Action {
    Action::DeleteRange(Bound::Included(key(from)), Bound::Excluded(key(to)), sync)
}

fn deletes(from: usize, count: usize) -> Vec<Action> {
    (from..from + count)
        .map(|number| Action::Write(vec![Change::Delete(key(number))], false))
        .collect()
}
