//! Memory and space stay within what the settings say, at ten million entries (scaled by
//! `TERRACE_TEST_SCALE`).
//!
//! One test, alone in its process: it measures the process.

use std::path::Path;
use std::time::Instant;

use terrace::{Db, Options};
use terrace_testkit::rng::mix;
use terrace_testkit::scale::scaled;

const CACHE: u64 = 8 << 20;
/// Beside memtables and cache: indexes and filters of open tables, buffers of background work, the
/// allocator's slack.
const SLACK: u64 = 64 << 20;

fn options() -> Options {
    Options::new().create_if_missing(true).block_cache_size(CACHE as usize)
}

/// Anonymous memory of this process, in bytes. `None` where the system does not tell.
fn anonymous_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn space(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir)
        .expect("lists")
        .map(|entry| entry.expect("lists").metadata().expect("stats").len());
    files.sum()
}

/// 100 bytes that compress to about half.
fn value(n: u64) -> [u8; 100] {
    let mut value = [0; 100];
    let (random, repeated) = value.split_at_mut(48);
    for (at, word) in random.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mix(n ^ (at as u64) << 40).to_le_bytes());
    }
    repeated[..48].copy_from_slice(random);
    value
}

#[test]
fn memory_and_space_stay_within_bounds() {
    let dir = tempfile::tempdir().expect("a directory");
    let entries = scaled(10_000_000);
    let key = |n: u64| format!("{n:016}");
    let mut db = Db::open(dir.path(), options()).expect("opens");
    let before = anonymous_memory().unwrap_or(0);
    let (mut peak, mut worst) = (0, 0);
    let mut measure = |db: &Db| {
        let used = anonymous_memory().unwrap_or(0).saturating_sub(before);
        let beyond = used.saturating_sub(db.stats().memtable_bytes + CACHE);
        (peak, worst) = (used.max(peak), beyond.max(worst));
        assert!(beyond <= SLACK, "{beyond} bytes beside memtables and cache");
    };
    for n in 0..entries {
        db.put(key(mix(n) % entries), value(n)).expect("puts");
        if n % 20_000 == 0 {
            measure(&db);
        }
    }
    db.close().expect("closes");
    let start = Instant::now();
    db = Db::open(dir.path(), options()).expect("opens again");
    println!("opening took {:?} with {entries} entries written", start.elapsed());
    let found =
        (0..entries).step_by(997).filter(|&n| db.get(key(n)).expect("gets").is_some()).count()
            as f64;
    let share = found / (entries as f64 / 997.0);
    assert!((0.6..0.66).contains(&share), "uniform keys leave about 63% written: {share}");
    measure(&db);
    for n in 0..entries {
        db.delete(key(n)).expect("deletes");
        if n % 20_000 == 0 {
            measure(&db);
        }
    }
    db.compact_range::<&[u8]>(..).expect("compacts");
    assert!(db.iter().expect("iterates").next().is_none());
    db.close().expect("closes");
    let left = space(dir.path());
    println!(
        "{entries} entries: {peak} bytes of memory at most, {worst} beside memtables and cache; \
         {left} on disk at the end"
    );
    assert!(left < 1 << 20, "{left} bytes left on disk");
}
