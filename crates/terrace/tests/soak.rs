//! Mixed load for a long time: memory and descriptors do not grow, and in the end everything is as
//! it must be.
//!
//! One test, alone in its process: it measures the process. `TERRACE_TEST_SCALE` sets how long.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrace::{Db, ReadOptions, WriteBatch, WriteOptions, verify};
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::watchdog::Watchdog;

const WRITERS: u64 = 3;
const KEYS: usize = 4_000;
/// Rounds before anything is compared: caches and pools fill up first.
const WARM: u64 = 10;

/// Kilobytes in memory, and open descriptors.
fn measure() -> (u64, usize) {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux");
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a resident size");
    let kilobytes = line.trim().trim_end_matches(" kB").parse().expect("a number");
    (kilobytes, fs::read_dir("/proc/self/fd").expect("a Linux").count())
}

/// One round of a writer: it owns the keys that begin with its number, and keeps their model.
fn write(
    db: &Db,
    writer: u64,
    model: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    rng: &mut Rng,
) -> terrace::Result<()> {
    for _ in 0..400 {
        let mut batch = WriteBatch::new();
        for _ in 0..rng.between(1, 4) {
            let key = format!("{writer}{:06}", rng.below(KEYS)).into_bytes();
            if rng.one_in(5) {
                batch.delete(&key);
                model.remove(&key);
            } else {
                let length = rng.below(400);
                let value = rng.bytes(length);
                batch.put(&key, &value);
                model.insert(key, value);
            }
        }
        db.write_with(&batch, WriteOptions { sync: rng.one_in(100) })?;
    }
    Ok(())
}

fn read(db: &Db, rng: &mut Rng) -> terrace::Result<()> {
    let snapshot = db.snapshot();
    let options = ReadOptions::new().snapshot(&snapshot);
    for _ in 0..200 {
        db.get_with(format!("{}{:06}", rng.below(3), rng.below(KEYS)), &options)?;
    }
    let forwards = db
        .range_with::<Vec<u8>>(.., &options)?
        .try_fold(0, |count, entry| entry.map(|_| count + 1))?;
    let backwards = db
        .range_with::<Vec<u8>>(.., &options)?
        .rev()
        .try_fold(0, |count, entry| entry.map(|_| count + 1))?;
    assert_eq!(forwards, backwards, "a snapshot changed");
    Ok(())
}

#[test]
fn memory_and_descriptors_stay_flat_under_mixed_load() {
    let watchdog = Watchdog::new(Duration::from_secs(300), "soak");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let options = || {
        OptionSet { bloom_bits: 10, ..OptionSet::default() }.options(terrace::PosixEnv::shared())
    };
    let models: Vec<_> = (0..WRITERS).map(|_| Mutex::new(BTreeMap::new())).collect();
    let rounds = WARM + scaled(300);
    let (mut first, mut most) = ((0, 0), (0, 0));
    let writes = AtomicU64::new(0);
    for round in 0..rounds {
        watchdog.feed(format!("soak: round {round}"));
        let db = Db::open(&path, options()).expect("open");
        std::thread::scope(|scope| {
            for (writer, model) in models.iter().enumerate() {
                let (db, writes) = (&db, &writes);
                scope.spawn(move || {
                    let mut rng = Rng::new(round << 8 | writer as u64);
                    write(db, writer as u64, &mut model.lock().expect("no panic"), &mut rng)
                        .expect("write");
                    writes.fetch_add(400, Ordering::Relaxed);
                });
            }
            scope.spawn(|| read(&db, &mut Rng::new(round)).expect("read"));
        });
        let mut entries = db.iter().expect("an iterator");
        for (key, value) in models.iter().flat_map(|model| model.lock().expect("no panic").clone())
        {
            assert_eq!(
                entries.next().expect("as many as in the model").expect("read"),
                (key, value),
                "round {round}"
            );
        }
        assert!(entries.next().is_none(), "round {round}: more than in the model");
        drop(entries);
        if round % 10 == 9 {
            db.compact_range::<&[u8]>(..).expect("compact");
        }
        db.close().expect("close");
        if round % 50 == 49 {
            let report = verify(&path, &options()).expect("verify");
            assert!(report.problems.is_empty(), "{report:?}");
        }
        let (memory, descriptors) = measure();
        if round + 1 == WARM {
            first = (memory, descriptors);
        }
        most = (most.0.max(memory), most.1.max(descriptors));
    }
    let (memory, descriptors) = measure();
    println!(
        "memory_and_descriptors_stay_flat: {rounds} rounds, {} batches; {} kB and {} descriptors \
         after {WARM} rounds, {memory} kB and {descriptors} at the end, {} kB and {} at most",
        writes.load(Ordering::Relaxed),
        first.0,
        first.1,
        most.0,
        most.1
    );
    assert!(
        memory < first.0 + first.0 / 2 + (16 << 10),
        "memory grows: {} kB, then {memory} kB",
        first.0
    );
    assert!(descriptors <= first.1 + 8, "descriptors leak: {}, then {descriptors}", first.1);
}
