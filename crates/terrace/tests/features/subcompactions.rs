//! Compactions that are large enough for several key ranges at once give the result of one in a
//! piece gives.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::{Db, Env, ErrorKind, MemEnv, Options, ReadOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::model::ReverseComparator;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, SimFs};
use terrace_testkit::watchdog::Watchdog;

pub(crate) const PATH: &str = "/db";

pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn options(env: Arc<dyn Env>, threads: usize) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(env)
        .write_buffer_size(1 << 20)
        .max_file_size(1 << 20)
        .background_threads(threads)
}

pub(crate) fn contents(db: &Db, options: &ReadOptions) -> Map {
    db.range_with::<Vec<u8>>(.., options)
        .expect("entries")
        .map(|entry| entry.expect("an entry"))
        .collect()
}

/// Deletes `key`, once in so many times, or gives it another value.
pub(crate) fn change(db: &Db, expected: &mut Map, rng: &mut Rng, key: Vec<u8>, deletes: usize) {
    if rng.one_in(deletes) {
        db.delete(&key).expect("a deletion");
        expected.remove(&key);
    } else {
        let value = rng.bytes(1_000);
        db.put(&key, &value).expect("a write");
        expected.insert(key, value);
    }
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
                change(&db, &mut expected, &mut rng, key, 5);
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
