//! Replaying a log takes memory by the write buffer, not by the log.
//!
//! One test, alone in its process: it measures the process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use terrace::{Db, Options};
use terrace_testkit::scale::scaled;
use terrace_testkit::skip::skip;

/// Beside the memtables: buffers of background work, open tables, the allocator's slack.
const SLACK: u64 = 24 << 20;

/// Anonymous memory of this process, in bytes. `None` where the system does not tell.
fn anonymous_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[test]
fn a_large_log_is_replayed_in_little_memory() {
    let Some(_) = anonymous_memory() else {
        return skip("smaps", "the system does not tell a process's memory");
    };
    let dir = tempfile::tempdir().expect("a directory");
    let options = |buffer: usize| Options::new().create_if_missing(true).write_buffer_size(buffer);
    let entries = scaled(60_000).max(8_000);
    let key = |n: u64| format!("{n:08}");
    {
        let db = Db::open(dir.path(), options(1 << 30)).expect("creates");
        (0..entries).for_each(|n| db.put(key(n), [n as u8; 5_000]).expect("puts"));
        db.close().expect("closes");
    }
    let before = anonymous_memory().expect("known");
    let (peak, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let db = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous_memory().expect("known"), Ordering::Relaxed);
            }
        });
        let db = Db::open(dir.path(), options(1 << 20)).expect("opens");
        done.store(true, Ordering::Relaxed);
        db
    });
    let used = peak.into_inner().saturating_sub(before);
    println!("{used} bytes for a log of {} bytes", entries * 5_000);
    assert!(used <= SLACK, "{used} bytes");
    assert!(
        (0..entries)
            .all(|n| db.get(key(n)).expect("gets").is_some_and(|value| *value == [n as u8; 5_000]))
    );
    db.close().expect("closes");
}
