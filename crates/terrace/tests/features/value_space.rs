//! How many bytes files take beside what lives, once background work is over: half as much more at
//! most, however values came to be garbage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrace::{Db, Env, MemEnv, Options, PosixEnv};
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::watchdog::Watchdog;

/// Values of so many bytes and more lie in value files.
const THRESHOLD: usize = 1000;

/// A database of large values and what lives in it.
struct Store {
    env: Arc<dyn Env>,
    path: PathBuf,
    db: Db,
    /// The version and the length of each value.
    live: BTreeMap<usize, (usize, usize)>,
    rng: Rng,
    versions: usize,
    watchdog: Watchdog,
    /// Each value has 4 KB to one of these.
    lengths: &'static [usize],
}

/// Up to 100 KB, most of them short.
const MIXED: &[usize] = &[8_000, 20_000, 100_000];
/// The shortest alone: of those tables are largest, beside what they point at.
const SHORT: &[usize] = &[4_001];

fn options(env: &Arc<dyn Env>) -> Options {
    let options = Options::new().create_if_missing(true).env(env.clone());
    options.write_buffer_size(1 << 20).value_log(Some(THRESHOLD))
}

fn key(number: usize) -> String {
    format!("key{number:08}")
}

fn value(number: usize, (version, length): (usize, usize)) -> Vec<u8> {
    let mut value = format!("{number}, {version}:").into_bytes();
    value.resize(length, b'.');
    value
}

impl Store {
    fn open(env: Arc<dyn Env>, path: &Path, lengths: &'static [usize]) -> Store {
        Store {
            db: Db::open(path, options(&env)).expect("opens"),
            env,
            path: path.to_owned(),
            live: BTreeMap::new(),
            rng: Rng::new(7),
            versions: 0,
            watchdog: Watchdog::new(Duration::from_secs(120), "value files take much space"),
            lengths,
        }
    }

    fn reopen(&mut self) {
        self.db.clone().close().expect("closes");
        self.db = Db::open(&self.path, options(&self.env)).expect("opens");
    }

    fn length(&mut self) -> usize {
        let limit = *self.rng.pick(self.lengths);
        self.rng.between(4_000, limit)
    }

    fn put(&mut self, number: usize) {
        self.versions += 1;
        let live = (self.versions, self.length());
        self.db.put(key(number), value(number, live)).expect("puts");
        self.live.insert(number, live);
    }

    fn delete(&mut self, number: usize) {
        self.db.delete(key(number)).expect("deletes");
        self.live.remove(&number);
    }

    /// One that lives, at random.
    fn any(&mut self) -> usize {
        let at = self.rng.below(self.live.len());
        *self.live.keys().nth(at).expect("lives")
    }

    /// Waits until background work is over.
    fn rest(&self) {
        self.watchdog.feed("background work".to_owned());
        self.db.flush().expect("flushes");
        self.db.wait_idle().expect("comes to rest");
    }

    fn live_bytes(&self) -> u64 {
        self.live.iter().map(|(&number, (_, length))| (key(number).len() + length) as u64).sum()
    }

    /// The bytes of all files whose names end so.
    fn bytes(&self, suffix: &str) -> u64 {
        let mut names = self.env.list(&self.path).expect("lists");
        names.retain(|name| name.ends_with(suffix));
        names.iter().filter_map(|name| self.env.file_size(&self.path.join(name)).ok()).sum()
    }

    /// How many times the bytes of what lives all files have.
    fn ratio(&self) -> f64 {
        self.rest();
        self.bytes("") as f64 / self.live_bytes() as f64
    }

    fn check(&self) {
        let mut entries = self.db.iter().expect("scans");
        for (&number, &live) in &self.live {
            let (found, bytes) = entries.next().expect("an entry").expect("reads");
            assert_eq!(found, key(number).into_bytes());
            assert!(bytes == value(number, live), "the value of {number}");
        }
        assert!(entries.next().is_none());
        let stats = self.db.stats();
        assert!(stats.value_bytes_used >= self.live.values().map(|live| live.1 as u64).sum());
    }
}

/// Runs in memory and on the real file system.
fn everywhere(run: impl Fn(&str, Arc<dyn Env>, &Path)) {
    run("memory", Arc::new(MemEnv::new()), Path::new("/db"));
    let dir = tempfile::tempdir().expect("a directory");
    run("disk", PosixEnv::shared(), &dir.path().join("db"));
}

/// A program deletes nine values in ten, some at a time.
#[test]
fn large_values_deleted_at_random_leave_their_space() {
    everywhere(|place, env, path| {
        let mut store = Store::open(env, path, MIXED);
        let count = scaled(4_000).max(1_000) as usize;
        (0..count).for_each(|number| store.put(number));
        let before = store.ratio();
        assert!(store.db.stats().value_files > 8, "{}", store.db.stats().value_files);
        let mut ratios = Vec::new();
        for _ in 0..18 {
            for _ in 0..count / 20 {
                let number = store.any();
                store.delete(number);
            }
            ratios.push(store.ratio());
        }
        let live = store.live_bytes();
        let compacted = store.db.stats().compaction_bytes_written;
        println!(
            "{place}: {count} values, {before:.3} before, then {ratios:.3?} of what lives, {live} \
             bytes in the end, tables {}, values {}, logs {}; {compacted} bytes compacted, {} written",
            store.bytes(".ldb"),
            store.bytes(".vlog"),
            store.bytes(".log"),
            store.db.stats().user_bytes_written,
        );
        store.check();
        let worst = ratios.iter().copied().fold(before, f64::max);
        assert!(worst <= 1.5, "{place}: files have {worst:.3} times the bytes of what lives");
    });
}

/// Overwrites, deletions and new values without an end, as a cache has them.
fn overwrite(place: &str, mut store: Store) {
    let count = scaled(4_000).max(1_000) as usize;
    (0..count).for_each(|number| store.put(number));
    store.rest();
    let before = store.db.stats();
    let mut ratios = Vec::new();
    for round in 0..40 {
        for _ in 0..count / 10 {
            let number = store.any();
            match round % 4 {
                3 => {
                    store.delete(number);
                    let number = store.rng.below(2 * count);
                    store.put(number);
                }
                _ => store.put(number),
            }
        }
        ratios.push(store.ratio());
    }
    let after = store.db.stats();
    let compacted = after.compaction_bytes_written - before.compaction_bytes_written;
    let written = after.user_bytes_written - before.user_bytes_written;
    println!(
        "{place}: {ratios:.3?} of what lives; {written} bytes overwritten, {compacted} compacted: \
         {:.3} each",
        compacted as f64 / written as f64
    );
    store.check();
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    assert!(worst <= 1.5, "{place}: files have {worst:.3} times the bytes of what lives");
    // The copies of collections are bounded, too: three for each byte that they free.
    assert!(compacted < 2 * written, "{compacted} bytes compacted for {written} overwritten");
}

#[test]
fn large_values_overwritten_at_random_leave_their_space() {
    everywhere(|place, env, path| overwrite(place, Store::open(env, path, MIXED)));
    let env = Arc::new(MemEnv::new());
    overwrite("short values", Store::open(env, Path::new("/db"), SHORT));
}

/// An open finds what an earlier process left to do, and what a snapshot kept goes after it.
#[test]
fn values_that_a_snapshot_kept_leave_their_space_and_so_they_do_after_an_open() {
    everywhere(|place, env, path| {
        let mut store = Store::open(env, path, MIXED);
        (0..1_000).for_each(|number| store.put(number));
        store.rest();
        for round in 0..6 {
            let snapshot = store.db.snapshot();
            for _ in 0..150 {
                let number = store.any();
                store.delete(number);
                let number = store.any();
                store.put(number);
            }
            if round % 2 == 0 {
                store.rest();
                let kept = snapshot.iter().expect("scans").count();
                assert!(kept > store.live.len(), "{kept} entries are seen");
            }
            drop(snapshot);
            if round % 3 == 0 {
                store.reopen();
            }
            let ratio = store.ratio();
            println!("{place}: {ratio:.3} of what lives after round {round}");
            assert!(ratio <= 1.5, "{place}: files have {ratio:.3} times the bytes of what lives");
        }
        store.check();
    });
}

/// New values in random order hide nothing, which tables of them cannot tell: to look costs a quarter
/// of what is written at most.
#[test]
fn new_large_values_in_random_order_are_not_copied() {
    let env = Arc::new(MemEnv::new());
    let mut store = Store::open(env, Path::new("/db"), SHORT);
    let count = scaled(20_000).max(5_000) as usize;
    // Coprime to the count, so that each number comes once.
    (0..count).for_each(|number| store.put(number * 7_919 % count));
    let ratio = store.ratio();
    let stats = store.db.stats();
    let (written, compacted) = (stats.user_bytes_written, stats.compaction_bytes_written);
    println!("{written} bytes written, {compacted} compacted, {ratio:.3} of what lives");
    assert!(ratio < 1.1 && compacted < written / 4, "{compacted} of {written}, {ratio:.3}");
    assert_eq!(stats.value_bytes_used, store.live.values().map(|live| live.1 as u64).sum());
}
