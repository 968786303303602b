//! A database behaves as an ordered map would, whatever the operations, the options and the file
//! system.
//!
//! `TERRACE_TEST_SCALE` sets the size, `TERRACE_SEED` repeats one run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrace::{Db, Env, MemEnv, Options, PosixEnv, ReadOptions, WriteBatch, WriteOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::ops::{Generator, Op, Shape};
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::Rng;
use terrace_testkit::runner::Runner;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::SimFs;
use terrace_testkit::watchdog::Watchdog;
use terrace_testkit::workload::{Operation, Workload};

const TIME_LIMIT: Duration = Duration::from_secs(120);

fn run_all(path: &Path, env: Arc<dyn Env>, settings: &OptionSet, ops: &[Op]) -> Result<(), String> {
    let mut runner = Runner::open(path, env, settings.clone())?;
    for (number, op) in ops.iter().enumerate() {
        runner.run(op).map_err(|error| format!("operation {number}, {op:?}: {error}"))?;
    }
    runner.check_all().map_err(|error| format!("at the end: {error}"))?;
    runner.close()
}

fn with_settings(settings: &OptionSet, error: String) -> String {
    format!("{error}\n  under {settings:?}")
}

#[test]
fn random_operations_equal_the_model() {
    let watchdog = Watchdog::new(TIME_LIMIT, "random_operations_equal_the_model");
    campaign("random_operations_equal_the_model", scaled(2_000), |seed| {
        watchdog.feed(format!("random_operations_equal_the_model: seed {seed}"));
        let mut rng = Rng::new(seed);
        let settings = OptionSet::random(&mut rng);
        let ops = Generator::new(rng.next_u64(), Shape::random(&mut rng)).ops(200);
        let outcome = match rng.below(16) {
            0 => {
                let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
                run_all(&dir.path().join("db"), PosixEnv::shared(), &settings, &ops)
            }
            1 => run_all(Path::new("/db"), SimFs::new().env(), &settings, &ops),
            _ => run_all(Path::new("/db"), Arc::new(MemEnv::new()), &settings, &ops),
        };
        outcome.map_err(|error| with_settings(&settings, error))
    });
}

#[test]
fn the_same_operations_give_equal_results_under_eight_option_sets() {
    let watchdog = Watchdog::new(TIME_LIMIT, "eight option sets");
    campaign("the_same_operations_give_equal_results_under_eight_option_sets", scaled(8), |seed| {
        let mut rng = Rng::new(seed);
        let ops = Generator::new(rng.next_u64(), Shape::random(&mut rng)).ops(5_000);
        for (number, settings) in OptionSet::eight().iter().enumerate() {
            watchdog.feed(format!("eight option sets: seed {seed}, set {number}"));
            let settings = OptionSet { reverse: seed.is_multiple_of(5), ..settings.clone() };
            run_all(Path::new("/db"), Arc::new(MemEnv::new()), &settings, &ops)
                .map_err(|error| with_settings(&settings, error))?;
        }
        Ok(())
    });
}

#[test]
fn readers_see_whole_batches_while_writers_write_and_tables_move() {
    const PAIRS: u64 = 50;
    campaign("readers_see_whole_batches", scaled(20), |seed| {
        let watchdog = Watchdog::new(TIME_LIMIT, format!("readers_see_whole_batches: seed {seed}"));
        let settings = OptionSet::random(&mut Rng::new(seed));
        let db = Db::open("/db", settings.options(Arc::new(MemEnv::new())))
            .map_err(|error| error.to_string())?;
        let done = AtomicBool::new(false);
        let key = |side: &str, pair: u64| format!("{side}{pair:03}");
        let write = |writer: u64| -> terrace::Result<()> {
            let mut rng = Rng::new(seed ^ writer);
            for version in 0..400u64 {
                let pair = rng.below(PAIRS as usize) as u64;
                let value = format!("{writer}.{version}.{}", "x".repeat(rng.below(600)));
                let mut batch = WriteBatch::new();
                batch.put(key("a", pair), &value);
                batch.put(key("z", pair), &value);
                db.write_with(
                    &batch,
                    if rng.one_in(50) { WriteOptions::sync() } else { WriteOptions::new() },
                )?;
            }
            Ok(())
        };
        let read = |reader: u64| -> Result<u64, String> {
            let mut rng = Rng::new(seed ^ (reader << 32));
            let mut rounds = 0;
            while !done.load(Ordering::Acquire) || rounds == 0 {
                let snapshot = db.snapshot();
                let options = ReadOptions::new().snapshot(&snapshot);
                let pair = rng.below(PAIRS as usize) as u64;
                let sides = ["a", "z"].map(|side| db.get_with(key(side, pair), &options));
                let [a, z] = sides.map(|found| found.map_err(|error| error.to_string()));
                if a? != z? {
                    return Err(format!("half a batch at pair {pair}"));
                }
                let whole = |backwards: bool| -> terrace::Result<Vec<_>> {
                    let entries = db.range_with::<Vec<u8>>(.., &options)?;
                    if backwards { entries.rev().collect() } else { entries.collect() }
                };
                let forwards = whole(false).map_err(|error| error.to_string())?;
                let mut backwards = whole(true).map_err(|error| error.to_string())?;
                backwards.reverse();
                if forwards != backwards || forwards.len() % 2 != 0 {
                    return Err("a snapshot changed".to_owned());
                }
                rounds += 1;
            }
            Ok(rounds)
        };
        std::thread::scope(|scope| {
            let readers: Vec<_> = (1..3).map(|reader| scope.spawn(move || read(reader))).collect();
            let writers: Vec<_> = (1..4).map(|writer| scope.spawn(move || write(writer))).collect();
            let written: Vec<_> =
                writers.into_iter().map(|writer| writer.join().expect("no panic")).collect();
            done.store(true, Ordering::Release);
            for reader in readers {
                reader.join().expect("no panic")?;
            }
            written.into_iter().collect::<terrace::Result<()>>().map_err(|error| error.to_string())
        })?;
        drop(watchdog);
        db.close().map_err(|error| error.to_string())
    });
}

/// Keys of one memtable that share long prefixes with some and nothing with others: a node may have
/// to be split more than once before an entry fits.
#[test]
fn keys_of_many_shapes_meet_in_one_memtable() {
    for (seed, from) in [(7, 680_000), (1, 0), (2, 40_000), (3, 90_000)] {
        let workload = Workload::new(seed);
        let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
        let db = Db::open("/db", options.write_buffer_size(64 << 20)).expect("opens");
        let mut model = BTreeMap::new();
        for number in 0..4_000_u64 {
            let (Operation::Put { key, .. } | Operation::Delete { key }) =
                workload.operation(from + number);
            let value = number.to_be_bytes().to_vec();
            db.put(&key, &value).expect("puts");
            model.insert(key, value);
        }
        let entries: Vec<_> = db.iter().expect("reads").collect::<Result<_, _>>().expect("reads");
        assert!(entries.into_iter().eq(model.clone()), "seed {seed}");
        for (key, value) in model {
            let found = db.get(&key).expect("reads");
            assert_eq!(found, Some(value), "seed {seed}: {key:?}");
        }
        assert!(db.files().is_empty(), "all of it is in the memtable");
        db.close().expect("closes");
    }
}
