//! Compactions that are large enough for several key ranges at once give the result of one in a
//! piece gives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrace::{Db, Env, ErrorKind, Event, EventListener, MemEnv, Options, ReadOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::model::ReverseComparator;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, SimFs};
use terrace_testkit::watchdog::Watchdog;

const PATH: &str = "/db";

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(env: Arc<dyn Env>, threads: usize) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(env)
        .write_buffer_size(1 << 20)
        .max_file_size(1 << 20)
        .background_threads(threads)
}

fn contents(db: &Db, options: &ReadOptions) -> Map {
    db.range_with::<Vec<u8>>(.., options)
        .expect("entries")
        .map(|entry| entry.expect("an entry"))
        .collect()
}

#[test]
fn subcompactions_equal_the_whole() {
    campaign("subcompactions_equal_the_whole", scaled(12), |seed| {
        let mut rng = Rng::new(seed);
        let mut options = options(Arc::new(MemEnv::new()), rng.between(1, 5));
        if rng.one_in(3) {
            options = options.comparator(Arc::new(ReverseComparator));
        }
        let db = Db::open(PATH, options).map_err(|error| error.to_string())?;
        let (mut expected, mut snapshots) = (Map::new(), Vec::new());
        let keys = *rng.pick(&[200, 30_000]);
        for round in 0..3 {
            for _ in 0..9_000 {
                let key = format!("{:06}", rng.below(keys)).into_bytes();
                if rng.one_in(5) {
                    db.delete(&key).expect("a deletion");
                    expected.remove(&key);
                } else {
                    let value = rng.bytes(1_000);
                    db.put(&key, &value).expect("a write");
                    expected.insert(key, value);
                }
            }
            if rng.one_in(2) {
                snapshots.push((db.snapshot(), expected.clone()));
            }
            db.compact_range::<&[u8]>(..).expect("a compaction");
            assert!(contents(&db, &ReadOptions::new()) == expected, "round {round}");
            for (snapshot, expected) in &snapshots {
                assert!(
                    contents(&db, &ReadOptions::new().snapshot(snapshot)) == *expected,
                    "round {round}"
                );
            }
            let report = db.verify().expect("a check");
            assert!(report.is_clean(), "{report:?}");
        }
        db.close().map_err(|error| error.to_string())
    });
}

#[test]
fn a_part_that_fails_leaves_nothing_of_the_others() {
    let fs = SimFs::new();
    let dir = Path::new(PATH);
    let db = Db::open(dir, options(fs.env(), 2)).expect("a database");
    let mut rng = Rng::new(1);
    let mut expected = Map::new();
    for number in 0..24_000 {
        let (key, value) =
            (format!("{:06}", number * 7_919 % 24_000).into_bytes(), rng.bytes(1_000));
        db.put(&key, &value).expect("a write");
        expected.insert(key, value);
    }
    db.flush().expect("a flush");
    db.wait_idle().expect("idle");
    let tables = || {
        let mut names = fs.env().list(dir).expect("a directory");
        names.retain(|name| name.ends_with(".ldb"));
        names.len()
    };
    let watchdog = Watchdog::new(Duration::from_secs(120), "subcompactions that fail");
    let mut failures = 0;
    for after in [0, 1, 3, 7, 12] {
        // Work for a compaction everywhere, whatever has been compacted already.
        for number in (0..24_000).step_by(16) {
            let (key, value) = (format!("{number:06}").into_bytes(), rng.bytes(1_000));
            db.put(&key, &value).expect("a write");
            expected.insert(key, value);
        }
        db.flush().expect("a flush");
        // Of tables only: those of an edit whose sync fails stay until there is a fresh MANIFEST.
        let of_tables = FaultPlan::at(after, Fault::NoSpace, false);
        let plan = FaultPlan { kinds: vec![OpKind::Sync], suffix: ".ldb".to_owned(), ..of_tables };
        fs.set_faults(Some(plan));
        match db.compact_range::<&[u8]>(..) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                failures += 1;
            }
        }
        fs.set_faults(None);
        // A table goes when the last reader of its version has gone, which other threads may learn
        // late.
        loop {
            db.wait_idle().expect("idle");
            assert!(contents(&db, &ReadOptions::new()) == expected);
            if tables() == db.files().len() {
                break;
            }
        }
        watchdog.feed(format!("subcompactions that fail: after {after} syncs"));
    }
    assert!(failures > 0);
}

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

/// Tables of level 0 that are large pass level 1.
#[test]
fn large_tables_pass_level_1() {
    campaign("large_tables_pass_level_1", scaled(4), |seed| {
        let mut rng = Rng::new(seed);
        let compactions = Arc::new(Compactions::default());
        let small = options(Arc::new(MemEnv::new()), rng.between(1, 4))
            .max_file_size(*rng.pick(&[1, 2, 8]) << 20)
            .listener(Some(compactions.clone()));
        // Keys of the whole range, or of parts of it in turn, so that tables of level 0 have others in
        // their way than their neighbours.
        let in_parts = rng.one_in(2);
        let (mut first, mut keys) = (0, 40_000);
        let mut db = Db::open(PATH, small.clone()).map_err(|error| error.to_string())?;
        let (mut expected, mut snapshots) = (Map::new(), Vec::new());
        for round in 0..3 {
            if round == 1 {
                // What small tables left in level 1 is in the way.
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
                if rng.one_in(10) {
                    db.delete(&key).expect("a deletion");
                    expected.remove(&key);
                } else {
                    let value = rng.bytes(1_000);
                    db.put(&key, &value).expect("a write");
                    expected.insert(key, value);
                }
                if round > 0 && rng.one_in(50_000) {
                    snapshots.push((db.snapshot(), expected.clone()));
                }
            }
            db.wait_idle().expect("comes to rest");
            for (snapshot, expected) in &snapshots {
                let found: Map =
                    snapshot.iter().expect("scans").map(|entry| entry.expect("reads")).collect();
                assert_eq!(found, *expected);
            }
            assert_eq!(contents(&db, &ReadOptions::new()), expected);
        }
        assert!(db.verify().expect("checks").problems.is_empty());
        let events = compactions.0.lock().expect("no panic");
        assert!(in_parts || events.contains(&(0, 2)), "{events:?}");
        Ok(())
    });
}

/// A large table of level 0 passes level 1. Others there, which it could take along, have older entries
/// in their way.
#[test]
fn newer_entries_do_not_pass_older_ones() {
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
    // A deletion that passes what it hides is dropped.
    assert_eq!(db.get("n").expect("reads"), None);
    let events = compactions.0.lock().expect("no panic");
    assert!(events.contains(&(0, 2)), "{events:?}");
    drop(events);
    assert!(contents(&db, &ReadOptions::new()) == expected);
    assert!(db.verify().expect("checks").problems.is_empty());
}
