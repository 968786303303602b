//! Group commit under random schedules and under schedules with few thread switches at every place,
//! with logs that are switched and flushed meanwhile and a sync that fails.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p terrace --lib interleavings`. The log sync is the real
//! one; the code around it does what `db::commit` does, and the simulated disk knows what is
//! durable.

use std::sync::Arc;

use shuttle::sync::atomic::Ordering;
use shuttle::thread;
use terrace_testkit::scale::scaled;

use super::log_sync::LogSync;
use crate::base::error::{Error, Result};
use crate::base::locks::{AtomicU64, Condvar, Mutex, explore};
use crate::env::FileSyncer;

/// A log on the disk. Sequence numbers stand for what was written under them.
#[derive(Clone, Copy, Default)]
struct LogFile {
    /// The last sequence number of the log before.
    before: u64,
    appended: u64,
    durable: u64,
    named: bool,
    /// A sync has failed: no later one writes what it left.
    failed: bool,
    closed: bool,
}

#[derive(Default)]
struct Contents {
    logs: Vec<LogFile>,
    in_tables: u64,
    syncs: u32,
    failing_sync: Option<u32>,
}

impl Contents {
    /// Everything up to here survives a power cut.
    fn durable(&self) -> u64 {
        let mut durable = self.in_tables;
        for log in &self.logs {
            if log.before > durable || !log.named {
                break;
            }
            durable = durable.max(log.durable);
            if log.durable < log.appended && log.appended > self.in_tables {
                break;
            }
        }
        durable
    }
}

type Disk = Arc<Mutex<Contents>>;

struct Syncer {
    disk: Disk,
    log: usize,
}

impl FileSyncer for Syncer {
    fn sync(&self) -> Result<()> {
        let mut disk = self.disk.lock();
        assert!(!disk.logs[self.log].closed, "a closed log is synced");
        disk.syncs += 1;
        let fails = disk.failing_sync == Some(disk.syncs);
        let target = disk.logs[self.log].appended;
        drop(disk);
        thread::yield_now();
        let mut disk = self.disk.lock();
        if fails {
            disk.logs[self.log].failed = true;
            return Err(Error::io_message("the disk fails".to_owned()));
        }
        let in_tables = disk.in_tables;
        for log in &disk.logs[..self.log] {
            let whole = log.appended <= in_tables || log.durable == log.appended;
            assert!(whole, "a later log became durable before an earlier one");
        }
        let log = &mut disk.logs[self.log];
        if !log.failed {
            log.durable = log.durable.max(target);
        }
        Ok(())
    }
}

struct Commit {
    last: u64,
    suspect: bool,
    /// Last sequence numbers of the memtables that wait for a flush.
    immutables: Vec<u64>,
    finished: bool,
}

/// Writes into the log for a memtable.
const MEMTABLE: u64 = 2;

struct Engine {
    commit: Mutex<Commit>,
    changed: Condvar,
    visible: AtomicU64,
    log_sync: LogSync,
    disk: Disk,
    /// Whether full logs are closed before each flush.
    is_scarce: bool,
}

impl Engine {
    fn new(failing_sync: Option<u32>, is_scarce: bool) -> Engine {
        let commit = Commit { last: 0, suspect: false, immutables: Vec::new(), finished: false };
        let contents = Contents { failing_sync, ..Contents::default() };
        let engine = Engine {
            commit: Mutex::new(commit),
            changed: Condvar::default(),
            visible: AtomicU64::new(0),
            log_sync: LogSync::default(),
            disk: Arc::new(Mutex::new(contents)),
            is_scarce,
        };
        engine.start_log(0);
        engine
    }

    fn start_log(&self, last: u64) {
        let mut disk = self.disk.lock();
        let log = disk.logs.len();
        disk.logs.push(LogFile {
            before: last,
            appended: last,
            durable: last,
            ..LogFile::default()
        });
        drop(disk);
        self.log_sync.start_log(log as u64, Arc::new(Syncer { disk: self.disk.clone(), log }));
    }

    fn switch(&self, commit: &mut Commit) {
        commit.immutables.push(commit.last);
        self.start_log(commit.last);
        self.changed.notify_all();
    }

    fn write(&self, sync: bool) {
        let mut commit = self.commit.lock();
        if commit.suspect {
            self.switch(&mut commit);
            while !commit.immutables.is_empty() {
                self.changed.wait(&mut commit);
            }
            // Another writer may have done it while this one waited; doing it twice is no harm.
            commit.suspect = false;
            self.log_sync.reset();
        }
        let first = self.disk.lock().logs.last().map_or(0, |log| log.before);
        if commit.last - first >= MEMTABLE {
            self.switch(&mut commit);
        }
        commit.last += 1;
        let sequence = commit.last;
        if let Some(log) = self.disk.lock().logs.last_mut() {
            log.appended = sequence;
        }
        self.visible.store(sequence, Ordering::Release);
        drop(commit);
        if !sync {
            return;
        }
        let sync_dir = |_| {
            self.disk.lock().logs.iter_mut().for_each(|log| log.named = true);
            Ok(())
        };
        match self.log_sync.wait(sequence, || self.visible.load(Ordering::Acquire), sync_dir) {
            Ok(_) => {
                let durable = self.disk.lock().durable();
                assert!(
                    durable >= sequence,
                    "LOST: {sequence} was acknowledged, durable up to {durable}"
                );
            }
            Err(_) => self.commit.lock().suspect = true,
        }
    }

    /// As where a flush finds no descriptor left.
    fn close_full_logs(&self) {
        let close = |newest: u64| {
            let mut disk = self.disk.lock();
            disk.logs[..newest as usize].iter_mut().for_each(|log| log.closed = true);
        };
        if self.log_sync.close_older(close).is_err() {
            self.commit.lock().suspect = true;
        }
    }

    /// Flushes memtables, oldest first, until all writers are done.
    fn flush(&self) {
        loop {
            let mut commit = self.commit.lock();
            while commit.immutables.is_empty() && !commit.finished {
                self.changed.wait(&mut commit);
            }
            let Some(&last) = commit.immutables.first() else { return };
            drop(commit);
            if self.is_scarce {
                self.close_full_logs();
            }
            let mut disk = self.disk.lock();
            disk.in_tables = last;
            let needed =
                disk.logs.iter().position(|log| log.before >= last).unwrap_or(disk.logs.len());
            drop(disk);
            self.log_sync.flushed(needed as u64, last);
            self.commit.lock().immutables.remove(0);
            self.changed.notify_all();
        }
    }
}

/// Writes of three writers, synced or not, with the sync of that number failing.
fn write(writers: [&'static [bool]; 3], failing_sync: Option<u32>) {
    run(writers, Engine::new(failing_sync, false));
}

fn run(writers: [&'static [bool]; 3], engine: Engine) {
    let engine = Arc::new(engine);
    let flusher = thread::spawn({
        let engine = engine.clone();
        move || engine.flush()
    });
    let threads = writers.map(|writes| {
        let engine = engine.clone();
        thread::spawn(move || writes.iter().for_each(|&sync| engine.write(sync)))
    });
    threads.into_iter().for_each(|writer| writer.join().expect("no panic"));
    engine.commit.lock().finished = true;
    engine.changed.notify_all();
    flusher.join().expect("no panic");
    let last = engine.commit.lock().last;
    assert_eq!(last, writers.iter().map(|writes| writes.len() as u64).sum::<u64>());
}

const SOME_SYNCED: [&[bool]; 3] = [&[true, false, true], &[false, true], &[true, true]];
/// All of them come back at once: those whom a sync has met are waited for.
const ALL_SYNCED: [&[bool]; 3] = [&[true, true, true], &[true, true, true], &[true, true]];

#[test]
fn synced_writes_are_durable_under_every_schedule() {
    let count = scaled(10_000);
    explore(count, || write(SOME_SYNCED, None));
    println!("synced_writes_are_durable: {count} schedules of group commit");
}

#[test]
fn a_failed_sync_is_never_acknowledged_under_every_schedule() {
    let failures = [1, 2, 3];
    let each = scaled(10_000).div_ceil(failures.len() as u64);
    for failing_sync in failures {
        explore(each, move || write(SOME_SYNCED, Some(failing_sync)));
    }
    println!(
        "a_failed_sync_is_never_acknowledged: {} schedules of group commit",
        each * failures.len() as u64
    );
}

#[test]
fn logs_that_give_their_descriptors_back_lose_nothing_under_every_schedule() {
    let failures = [None, Some(1), Some(2), Some(3)];
    let each = scaled(10_000).div_ceil(failures.len() as u64);
    for failing_sync in failures {
        explore(each, move || run(SOME_SYNCED, Engine::new(failing_sync, true)));
    }
    println!("logs_that_give_their_descriptors_back: {} schedules", each * failures.len() as u64);
}

#[test]
fn every_member_of_a_sync_group_is_served_under_every_schedule() {
    let count = scaled(10_000);
    explore(count, || write(ALL_SYNCED, None));
    println!("every_member_of_a_sync_group_is_served: {count} schedules of group commit");
}
