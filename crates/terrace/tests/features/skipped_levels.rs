//! Compactions of large tables of level 0, which skip levels that have no room for them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use terrace::{Db, Event, EventListener, MemEnv, ReadOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;

use crate::subcompactions::{Map, PATH, change, contents, options};

/// From which levels to which compactions went.
#[derive(Default)]
struct Compactions(Mutex<BTreeSet<(usize, usize)>>);

impl EventListener for Compactions {
    fn on_event(&self, event: &Event) {
        if let Event::CompactionFinished { level, output_level, .. } = event {
            self.0.lock().expect("no panic").insert((*level, *output_level));
        }
    }
}

#[test]
fn large_tables_skip_level_1() {
    campaign("large_tables_skip_level_1", scaled(4), |seed| {
        let mut rng = Rng::new(seed);
        let compactions = Arc::new(Compactions::default());
        let small = options(Arc::new(MemEnv::new()), rng.between(1, 4))
            .max_file_size(*rng.pick(&[1, 2, 8]) << 20)
            .listener(Some(compactions.clone()));
        // Keys of the whole range, or of parts of it in turn, so that tables of level 0 overlap other
        // tables than their neighbours do.
        let in_parts = rng.one_in(2);
        let (mut first, mut keys) = (0, 40_000);
        let mut db = Db::open(PATH, small.clone()).map_err(|error| error.to_string())?;
        let (mut expected, mut snapshots) = (Map::new(), Vec::new());
        for round in 0..3 {
            if round == 1 {
                // Small tables have left older entries in level 1.
                snapshots.clear();
                db.close().expect("closes");
                db = Db::open(PATH, small.clone().write_buffer_size(9 << 20)).expect("opens");
            }
            for write in 0..[12, 100, 100][round] * 1000 {
                if in_parts && write % 4_000 == 0 {
                    keys = rng.between(500, 20_000);
                    first = rng.below(40_000 - keys);
                }
                let key = format!("{:06}", first + rng.below(keys)).into_bytes();
                change(&db, &mut expected, &mut rng, key, 10);
                if round > 0 && rng.one_in(50_000) {
                    snapshots.push((db.snapshot(), expected.clone()));
                }
            }
            db.wait_idle().expect("comes to rest");
            for (snapshot, expected) in &snapshots {
                assert_eq!(contents(&db, &ReadOptions::new().snapshot(snapshot)), *expected);
            }
            assert_eq!(contents(&db, &ReadOptions::new()), expected);
        }
        assert!(db.verify().expect("checks").problems.is_empty());
        let events = compactions.0.lock().expect("no panic");
        assert!(in_parts || events.contains(&(0, 2)), "{events:?}");
        Ok(())
    });
}

/// A large table of level 0 skips level 1. The other tables of level 0 have older entries there.
#[test]
fn newer_entries_do_not_skip_older_ones() {
    let compactions = Arc::new(Compactions::default());
    let options = options(Arc::new(MemEnv::new()), 2)
        .write_buffer_size(64 << 20)
        .max_file_size(8 << 20)
        .listener(Some(compactions.clone()));
    let db = Db::open(PATH, options).expect("opens");
    let mut rng = Rng::new(7);
    let mut expected = Map::new();
    let mut flush = |entries: &[(&str, usize)]| {
        for &(key, length) in entries {
            if length == 0 {
                db.delete(key).expect("deletes");
                expected.remove(key.as_bytes());
                continue;
            }
            let value: Vec<u8> =
                (0..length / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
            db.put(key, &value).expect("puts");
            expected.insert(key.into(), value);
        }
        db.flush().expect("flushes");
    };
    // Two tables in level 2, and above them two in level 1.
    flush(&[("b", 8), ("o", 8)]);
    flush(&[("q", 8), ("r", 8)]);
    flush(&[("m", 8), ("n", 8), ("q", 8)]);
    flush(&[("b", 8)]);
    // Above those level 0, with a large table and three others.
    flush(&[("a", 16 << 20), ("b", 8), ("c", 15 << 20)]);
    (0..3).for_each(|_| flush(&[("m", 2 << 20), ("n", 0), ("p", 8)]));
    db.wait_idle().expect("comes to rest");
    // A deletion that skips what it hides would be dropped.
    assert_eq!(db.get("n").expect("reads"), None);
    let events = compactions.0.lock().expect("no panic");
    assert!(events.contains(&(0, 2)), "{events:?}");
    drop(events);
    assert!(contents(&db, &ReadOptions::new()) == expected);
    assert!(db.verify().expect("checks").problems.is_empty());
}
