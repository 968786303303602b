//! Threads that share a cache, a database that goes away under them, and many keys at once, while
//! tables come and go.
//!
//! Runs under ThreadSanitizer, beside others (`tools/tsan`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use terrace::{
    BlockCache, Db, Env, ErrorKind, Logger, MemEnv, PosixEnv, Priority, ReadOptions, WriteBatch,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::watchdog::Watchdog;

const KEYS: usize = 200;

/// Comparators, filter policies and jobs of the program's own run on background threads, and
/// LevelDB's have 8 MiB.
#[test]
fn background_threads_have_the_stack_that_callbacks_of_leveldb_have() {
    let (done, finished) = std::sync::mpsc::channel();
    let job = move || {
        let locals = std::hint::black_box([1_u8; 7 << 20]);
        done.send(locals.iter().map(|&byte| u64::from(byte)).sum::<u64>()).expect("the test waits");
    };
    PosixEnv::shared().schedule(Priority::Compaction, Box::new(job));
    assert_eq!(finished.recv(), Ok(7 << 20));
}

fn key(n: usize) -> String {
    format!("key{n:04}")
}

/// Says when a close begins to end, and takes its time then.
struct SlowToClose(AtomicBool);

impl Logger for SlowToClose {
    fn log(&self, message: &str) {
        if message.ends_with("closed") {
            self.0.store(true, Ordering::SeqCst);
            (0..100_000).for_each(|_| std::thread::yield_now());
        }
    }
}

#[test]
fn the_second_close_returns_when_the_lock_is_free() {
    let dir = tempfile::tempdir().expect("a directory");
    let logger = Arc::new(SlowToClose(AtomicBool::new(false)));
    let options = || terrace::Options::new().create_if_missing(true);
    let db = Db::open(dir.path(), options().logger(Some(logger.clone()))).expect("opens");
    let first = db.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| first.close().expect("closes"));
        while !logger.0.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        db.close().expect("closes");
        Db::open(dir.path(), options()).expect("nobody has the lock any more");
    });
}

/// A block in the cache keeps the mapping of its table.
#[test]
fn a_thread_that_does_nothing_more_keeps_no_removed_table() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = terrace::Options::new()
        .create_if_missing(true)
        .compression(terrace::Compression::None)
        .read_access(terrace::ReadAccess::Mapped)
        .block_cache(Some(BlockCache::new(3_000)));
    let db = Db::open(dir.path(), options).expect("opens");
    for table in 0..3 {
        for n in 0..KEYS {
            db.put(key(n), vec![table; 1_000]).expect("puts");
        }
        db.flush().expect("flushes");
    }
    db.wait_idle().expect("no work");
    let (done, idle) = std::sync::mpsc::channel();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let db = &db;
        scope.spawn(move || {
            for n in 0..KEYS {
                assert!(db.get(key(n)).expect("gets").is_some());
            }
            done.send(()).expect("the test waits");
            let _ = stopped.recv();
        });
        idle.recv().expect("reads");
        db.compact_range_with::<&[u8]>(.., terrace::CompactOptions::new().force(true))
            .expect("compacts");
        db.wait_idle().expect("no work");
        // Other tests' threads may be pinned for a moment.
        let maps = || std::fs::read_to_string("/proc/self/maps").expect("maps");
        let own = dir.path().to_str().expect("a name").to_owned();
        let removed = || {
            maps().lines().filter(|line| line.contains(&own) && line.ends_with("(deleted)")).count()
        };
        let is_gone = (0..10_000).any(|_| {
            let is_gone = removed() == 0;
            db.put("pin", "").expect("puts");
            db.flush().expect("flushes");
            is_gone
        });
        assert!(is_gone, "{}", maps());
        drop(stop);
    });
}

fn settings(seed: u64) -> OptionSet {
    OptionSet { reverse: false, paranoid_checks: false, ..OptionSet::random(&mut Rng::new(seed)) }
}

/// Every key has a value that begins with `label`.
fn fill(db: &Db, label: &str, rng: &mut Rng) -> terrace::Result<()> {
    for n in 0..KEYS {
        let filler = "x".repeat(rng.below(300));
        db.put(key(n), format!("{label}/{}/{filler}", key(n)))?;
    }
    Ok(())
}

#[test]
fn databases_that_share_a_cache_see_only_their_own_blocks() {
    campaign("databases_that_share_a_cache", scaled(20), |seed| {
        let cache = BlockCache::new(60_000);
        let settings = settings(seed);
        let databases = ["red", "green"].map(|label| {
            let options =
                settings.options(Arc::new(MemEnv::new())).block_cache(Some(cache.clone()));
            let db = Db::open(Path::new("/db"), options).expect("opens");
            fill(&db, label, &mut Rng::new(seed)).expect("fills");
            db.flush().expect("flushes");
            (label, db)
        });
        let check = |label: &str, n: usize, value: Option<Vec<u8>>| {
            let value = value.expect("a value");
            let expected = format!("{label}/{}/", key(n));
            assert!(
                value.starts_with(expected.as_bytes()),
                "{expected} in {:?}",
                String::from_utf8_lossy(&value)
            );
        };
        std::thread::scope(|scope| {
            for reader in 0..2u64 {
                let databases = &databases;
                scope.spawn(move || {
                    let mut rng = Rng::new(seed ^ reader << 32);
                    for _ in 0..600 {
                        let (label, db) = rng.pick(databases);
                        let n = rng.below(KEYS);
                        check(label, n, db.get(key(n)).expect("reads"));
                    }
                });
            }
            for (label, db) in &databases {
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    for _ in 0..3 {
                        fill(db, label, &mut rng).expect("fills");
                        db.flush().expect("flushes");
                    }
                    db.compact_range::<&[u8]>(..).expect("compacts");
                });
            }
        });
        for (label, db) in databases {
            let found: Vec<_> =
                db.iter().expect("reads").map(|entry| entry.expect("reads")).collect();
            assert_eq!(found.len(), KEYS);
            found.into_iter().enumerate().for_each(|(n, (_, value))| check(label, n, Some(value)));
            db.close().expect("closes");
        }
        Ok(())
    });
}

#[test]
fn a_database_may_be_closed_under_its_readers() {
    let watchdog =
        Watchdog::new(Duration::from_secs(120), "a_database_may_be_closed_under_its_readers");
    campaign("a_database_may_be_closed_under_its_readers", scaled(40), |seed| {
        watchdog.feed(format!("a_database_may_be_closed_under_its_readers: seed {seed}"));
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let settings = settings(seed);
        let db = Db::open(Path::new("/db"), settings.options(env.clone()))
            .map_err(|error| error.to_string())?;
        fill(&db, "a", &mut Rng::new(seed)).expect("fills");
        db.flush().expect("flushes");
        let rounds = [0, 1].map(AtomicU64::new);
        std::thread::scope(|scope| {
            for (reader, rounds) in rounds.iter().enumerate() {
                let db = db.clone();
                scope.spawn(move || {
                    let mut rng = Rng::new(seed ^ (reader as u64) << 32);
                    let snapshot = db.snapshot();
                    let mut entries = db.iter().expect("reads");
                    let end = loop {
                        let n = rng.below(KEYS);
                        match db.get_with(key(n), &ReadOptions::new().snapshot(&snapshot)) {
                            Ok(found) => assert!(found.expect("a value").starts_with(b"a/")),
                            Err(error) => break error,
                        }
                        if let Some(entry) = entries.next() {
                            assert!(
                                entry.expect("a cursor outlives the database").1.starts_with(b"a/")
                            );
                        }
                        rounds.fetch_add(1, Ordering::Release);
                    };
                    assert_eq!(end.kind(), ErrorKind::Closed, "{end}");
                    for entry in entries {
                        assert!(
                            entry.expect("a cursor outlives the database").1.starts_with(b"a/")
                        );
                    }
                    assert!(db.put("late", "write").is_err());
                });
            }
            // Something to do in the background, too.
            fill(&db, "a", &mut Rng::new(seed)).expect("fills");
            while rounds.iter().any(|rounds| rounds.load(Ordering::Acquire) < 20) {
                std::thread::yield_now();
            }
            db.clone().close().expect("closes");
        });
        drop(db);
        let db =
            Db::open(Path::new("/db"), settings.options(env)).map_err(|error| error.to_string())?;
        assert_eq!(db.iter().expect("reads").count(), KEYS);
        db.close().map_err(|error| error.to_string())
    });
}

#[test]
fn many_keys_at_once_are_of_one_moment() {
    campaign("many_keys_at_once_are_of_one_moment", scaled(20), |seed| {
        let db = Db::open(Path::new("/db"), settings(seed).options(Arc::new(MemEnv::new())))
            .expect("opens");
        let keys: Vec<_> = (0..20).map(key).collect();
        let done = AtomicBool::new(false);
        let write = |version: u64| {
            let mut batch = WriteBatch::new();
            keys.iter().for_each(|key| {
                batch.put(key, [&version.to_le_bytes()[..], &[b'.'; 900]].concat())
            });
            db.write(&batch).expect("writes");
        };
        write(0);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut last = 0;
                        while !done.load(Ordering::Acquire) {
                            let found = db.multi_get(&keys).expect("reads");
                            let version = |value: &Option<Vec<u8>>| {
                                let value = value.as_ref().expect("a value");
                                u64::from_le_bytes(value[..8].try_into().expect("a number"))
                            };
                            let first = version(&found[0]);
                            assert!(
                                found.iter().all(|value| version(value) == first),
                                "half a batch"
                            );
                            assert!(first >= last, "time goes back");
                            last = first;
                        }
                    })
                })
                .collect();
            for version in 1..60 {
                write(version);
                if version % 20 == 0 {
                    db.compact_range::<&[u8]>(..).expect("compacts");
                }
            }
            done.store(true, Ordering::Release);
            readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
        });
        db.close().map_err(|error| error.to_string())
    });
}
