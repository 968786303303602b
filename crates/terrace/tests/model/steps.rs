//! The drop-in's steps, which show the entry they lead to, go where those of a cursor go: over
//! versions that a snapshot hides, over deletions, across blocks and tables, and with switches of
//! direction on the way.

use terrace::abi::{next_with, prev_with};
use terrace::{Cursor, Db, Options, ReadOptions, Snapshot};
use terrace_testkit::campaign::{campaign, chosen_seed};
use terrace_testkit::rng::Rng;

type Entry = (Vec<u8>, Vec<u8>);

fn here(cursor: &Cursor) -> Option<Entry> {
    cursor.entry().map(|(key, value)| (key.to_vec(), value.to_vec()))
}

/// The entry that the last step shows, if there is one.
fn shown(step: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])) -> bool) -> Option<Entry> {
    let mut last = None;
    let is_one = step(&mut |key, value| last = Some((key.to_vec(), value.to_vec())));
    last.filter(|_| is_one)
}

fn random_steps(db: &Db, options: &ReadOptions, random: &mut Rng, seed: u64) -> (usize, usize) {
    let (mut plain, mut showing) =
        (db.cursor_with(options).unwrap(), db.cursor_with(options).unwrap());
    let (mut forwards, mut backwards) = (0, 0);
    for _ in 0..30 {
        match random.below(4) {
            0 => (plain.seek_to_first(), showing.seek_to_first()),
            1 => (plain.seek_to_last(), showing.seek_to_last()),
            _ => {
                let key = random.below(300).to_string();
                (plain.seek(&key), showing.seek(&key))
            }
        };
        for _ in 0..random.below(6) {
            let onwards = random.below(2) == 0;
            for _ in 0..random.below(40) {
                let found = if onwards {
                    plain.next();
                    shown(|mut show| next_with(&mut showing, &mut show))
                } else {
                    plain.prev();
                    shown(|mut show| prev_with(&mut showing, &mut show))
                };
                assert_eq!(found, here(&plain), "seed {seed}");
                assert_eq!(here(&showing), here(&plain), "seed {seed}");
                *if onwards { &mut forwards } else { &mut backwards } +=
                    usize::from(found.is_some());
            }
        }
    }
    assert!(plain.status().is_ok() && showing.status().is_ok());
    (forwards, backwards)
}

#[test]
fn steps_that_show_go_where_steps_go() {
    let (mut forwards, mut backwards) = (0, 0);
    campaign("steps_that_show_go_where_steps_go", 20, |seed| {
        let mut random = Rng::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().create_if_missing(true).block_size(1 << (7 + random.below(5)));
        let db = Db::open(dir.path(), options).unwrap();
        let mut snapshots: Vec<Snapshot> = Vec::new();
        for _ in 0..5 {
            for _ in 0..random.below(300) {
                let key = random.below(300).to_string();
                match random.below(4) {
                    0 => db.delete(&key).unwrap(),
                    _ => db.put(&key, vec![b'v'; random.below(60)]).unwrap(),
                }
            }
            match random.below(4) {
                0 => db.flush().unwrap(),
                1 => db.compact_range::<&[u8]>(..).unwrap(),
                2 => snapshots.push(db.snapshot()),
                _ => {}
            }
            for snapshot in &snapshots {
                random_steps(&db, &ReadOptions::new().snapshot(snapshot), &mut random, seed);
            }
            let (on, back) = random_steps(&db, &ReadOptions::new(), &mut random, seed);
            (forwards, backwards) = (forwards + on, backwards + back);
        }
        db.close().map_err(|error| error.to_string())
    });
    let enough = if chosen_seed().is_some() { 100 } else { 10_000 };
    assert!(forwards > enough && backwards > enough, "{forwards} steps on, {backwards} back");
}
