//! What an append to a log costs, and what a sync: a `write` per record against a mapped log.
//!
//! `cargo run --release --example log_append [directory]`

use std::path::{Path, PathBuf};
use std::time::Instant;

use terrace::{CreateOptions, Env, PosixEnv, Result};

const RECORD: [u8; 140] = [b'r'; 140];
const APPENDS: usize = 100_000;
const SYNCS: usize = 3_000;
/// Rounds of work between two paced appends: some 200 ns.
const PACE: u64 = 400;
/// What a default memtable's log is expected to grow to.
const LOG_SIZE: u64 = 4 << 20;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let env = PosixEnv::shared();
    env.set_background_threads(2).expect("background threads");
    println!(
        "{:>8} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "", "append", "create+close", "sync p50", "sync mean", "sync p99"
    );
    for round in 0..6 {
        let mapped = round % 2 == 1;
        let (append, fixed) = appends(&*env, &dir, mapped, 0)?;
        let (paced, _) = appends(&*env, &dir, mapped, PACE)?;
        let syncs = syncs(&*env, &dir, mapped)?;
        let mean = syncs.iter().sum::<f64>() / syncs.len() as f64;
        println!(
            "{:>8} {append:>9.1} ns {paced:>9.1} ns {fixed:>9.1} us {:>9.1} us {mean:>9.1} us {:>9.1} us",
            if mapped { "mapped" } else { "write" },
            syncs[syncs.len() / 2],
            syncs[syncs.len() * 99 / 100],
        );
    }
    Ok(())
}

fn create(env: &dyn Env, path: &Path, mapped: bool) -> Result<Box<dyn terrace::WritableFile>> {
    match mapped {
        true => env.create_log(path, CreateOptions::default(), LOG_SIZE),
        false => env.create(path, CreateOptions::default()),
    }
}

/// Something else to do, about as long as the rest of a put.
fn work(rounds: u64) {
    (0..rounds).for_each(|round| {
        std::hint::black_box(round);
    });
}

/// Nanoseconds an append with some work after each, without that work, over logs of the usual size;
/// microseconds to create and close one.
fn appends(env: &dyn Env, dir: &Path, mapped: bool, pace: u64) -> Result<(f64, f64)> {
    let start = Instant::now();
    (0..APPENDS).for_each(|_| work(pace));
    let working = start.elapsed().as_secs_f64();
    let path = dir.join("terrace-log-append");
    let (mut appending, mut fixed, mut logs) = (0.0, 0.0, 0);
    let per_log = LOG_SIZE as usize / RECORD.len();
    let mut left = APPENDS;
    while left > 0 {
        let start = Instant::now();
        let mut file = create(env, &path, mapped)?;
        let created = start.elapsed();
        let count = left.min(per_log);
        let start = Instant::now();
        for _ in 0..count {
            file.append(&RECORD)?;
            work(pace);
        }
        appending += start.elapsed().as_secs_f64();
        let start = Instant::now();
        file.close()?;
        fixed += (created + start.elapsed()).as_secs_f64();
        env.remove(&path)?;
        left -= count;
        logs += 1;
    }
    Ok(((appending - working) * 1e9 / APPENDS as f64, fixed * 1e6 / f64::from(logs)))
}

/// Sorted microseconds of append and sync.
fn syncs(env: &dyn Env, dir: &Path, mapped: bool) -> Result<Vec<f64>> {
    let path = dir.join("terrace-log-append");
    let mut file = create(env, &path, mapped)?;
    let syncer = file.syncer();
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let start = Instant::now();
        file.append(&RECORD)?;
        match &syncer {
            Some(syncer) => syncer.sync()?,
            None => file.sync()?,
        }
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    file.close()?;
    env.remove(&path)?;
    times.sort_by(f64::total_cmp);
    Ok(times)
}
