//! Terrace's part of a hand-over: reads everything, changes it, and ends by a close or by being
//! killed.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpid, kill_process};
use terrace::{BulkLoadOptions, Db, Options, ReadOptions, WriteBatch, WriteOptions};
use terrace_testkit::rng::Rng;
use terrace_testkit::workload::{Digest, Operation, State, Workload};

use super::settings::Settings;

/// A run of operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) workload: Workload,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Up to this many operations in one write.
    pub(crate) batch: u64,
    /// Every how many writes one is synchronous; 0 for none.
    pub(crate) sync_every: u64,
    /// Compact the whole range after half of the operations.
    pub(crate) compact: bool,
    /// End with SIGKILL instead of closing the database.
    pub(crate) kill: bool,
}

/// The name of the test that [`run`] starts as a child, and how it learns what to do.
const CHILD_TEST: &str = "hand_over::child_that_may_be_killed";
const CHILD_TASK: &str = "TERRACE_HAND_OVER_TASK";
const CHILD_DB: &str = "TERRACE_HAND_OVER_DB";

/// One write in so many is preceded by a bulk load.
const LOADS_ONE_IN: usize = 300;

/// Does a segment, in a process of its own if that is to be killed.
pub(crate) fn run(path: &Path, settings: &Settings, segment: &Segment) {
    if !segment.kill {
        let db = Db::open(path, settings.terrace()).expect("Terrace opens the database");
        write(&db, segment);
        db.close().expect("Terrace closes the database");
        return;
    }
    let Segment { workload, from, to, batch, sync_every, compact, .. } = segment;
    let task = format!(
        "{settings} {} {from} {to} {batch} {sync_every} {}",
        workload.seed(),
        u8::from(*compact)
    );
    let output = Command::new(env::current_exe().expect("the test program"))
        .args(["--exact", CHILD_TEST, "--nocapture", "--test-threads=1"])
        .env(CHILD_TASK, task)
        .env(CHILD_DB, path)
        .stdin(Stdio::null())
        .output()
        .expect("the child starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("every write acknowledged") && !output.status.success(),
        "the child should have been killed after its last write: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The child's side of [`run`]: nothing, unless it was started with a task.
pub(crate) fn child() {
    let (Ok(task), Some(path)) = (env::var(CHILD_TASK), env::var_os(CHILD_DB)) else { return };
    let mut words = task.split(' ');
    let settings: Settings = words.next().and_then(|word| word.parse().ok()).expect("settings");
    let numbers: Vec<u64> = words.map(|word| word.parse().expect("a number")).collect();
    let [seed, from, to, batch, sync_every, compact] = numbers[..] else {
        panic!("cannot read {task:?}")
    };
    let workload = Workload::new(seed);
    let segment =
        Segment { workload, from, to, batch, sync_every, compact: compact == 1, kill: true };
    let db = Db::open(Path::new(&path), settings.terrace()).expect("Terrace opens the database");
    write(&db, &segment);
    println!("every write acknowledged");
    kill_process(getpid(), Signal::KILL).expect("a signal to ourselves");
}

fn write(db: &Db, segment: &Segment) {
    let mut random = Rng::new(segment.workload.seed() ^ segment.from);
    let half = segment.from + (segment.to - segment.from) / 2;
    let mut compacted = !segment.compact;
    let mut writes = 0;
    let mut next = segment.from;
    while next < segment.to {
        if random.one_in(LOADS_ONE_IN) {
            next += load(db, segment, next, random.between(1, 500) as u64);
        }
        let mut batch = WriteBatch::new();
        for _ in 0..random.between(1, segment.batch.max(1) as usize) {
            if next == segment.to {
                break;
            }
            match segment.workload.operation(next) {
                Operation::Put { key, value } => batch.put(&key, &value),
                Operation::Delete { key } => batch.delete(&key),
            }
            next += 1;
        }
        writes += 1;
        let sync = segment.sync_every != 0 && writes % segment.sync_every == 0;
        db.write_with(&batch, WriteOptions { sync }).expect("a write");
        if !compacted && next >= half {
            db.compact_range::<&[u8]>(..).expect("a compaction");
            compacted = true;
        }
    }
}

/// Does the operations up to the next deletion, `most` at most, by a bulk load, and says how many
/// those were.
fn load(db: &Db, segment: &Segment, from: u64, most: u64) -> u64 {
    let mut load = db.bulk_load_with(BulkLoadOptions::new().memory(1 << 20)).expect("a bulk load");
    let end = segment.to.min(from + most);
    let puts = (from..end).map_while(|index| match segment.workload.operation(index) {
        Operation::Put { key, value } => Some((key, value)),
        Operation::Delete { .. } => None,
    });
    let mut count = 0;
    for (key, value) in puts {
        load.put(key, value).expect("an entry of a bulk load");
        count += 1;
    }
    load.finish().expect("the end of a bulk load");
    count
}

/// Reads every entry forwards and backwards, and some by key, and compares them with `state`.
pub(crate) fn compare(path: &Path, settings: &Settings, read_only: bool, state: &State) {
    compare_with(path, settings.terrace().read_only(read_only), settings, state);
}

/// The same, under other options.
pub(crate) fn compare_with(path: &Path, options: Options, settings: &Settings, state: &State) {
    let db = Db::open(path, options).expect("Terrace opens the database");
    let options = ReadOptions::new().fill_cache(false);
    let mut cursor = db.cursor_with(&options).expect("a cursor");
    let mut digest = Digest::default();
    cursor.seek_to_first();
    while cursor.valid() {
        digest.add(cursor.key(), cursor.value());
        cursor.next();
    }
    cursor.status().expect("a scan without errors");
    assert_eq!(digest, state.digest(settings.reverse()), "forwards");

    let mut digest = Digest::default();
    cursor.seek_to_last();
    while cursor.valid() {
        digest.add(cursor.key(), cursor.value());
        cursor.prev();
    }
    cursor.status().expect("a scan without errors");
    assert_eq!(digest, state.digest(!settings.reverse()), "backwards");

    for (key, value) in state.entries().step_by(7) {
        assert_eq!(
            db.get(key).expect("a read").as_deref(),
            Some(value.as_slice()),
            "key {key:02x?}"
        );
    }
    for (key, _) in state.entries().step_by(11) {
        let absent = [key, b"\x01absent"].concat();
        assert_eq!(db.get(&absent).expect("a read"), state.get(&absent), "key {absent:02x?}");
    }
    drop(cursor);
    db.close().expect("Terrace closes the database");
}
