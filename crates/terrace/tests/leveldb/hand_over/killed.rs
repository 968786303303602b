//! LevelDB reads the log of a process that was killed at any moment.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use terrace::{Db, Options, RecoveryMode, WriteOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::leveldb::{Peer, PeerOptions};
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{LogKind, PowerLoss, SimFs};

/// The process dies between any two stores of writes of all sizes around that of a log's block.
/// LevelDB with paranoid checks, which refuses whatever it does not take for a clean end, opens
/// every state, and finds all that was acknowledged, and at most the write that was being made
/// besides.
#[test]
fn leveldb_with_paranoid_checks_opens_what_a_killed_process_leaves() {
    let Some(peer) = Peer::find() else { return };
    let mut states = 0;
    campaign(
        "leveldb_with_paranoid_checks_opens_what_a_killed_process_leaves",
        scaled(12),
        |seed| {
            let mut rng = Rng::new(seed);
            let fs = SimFs::new();
            fs.set_log_kind(if rng.one_in(6) { LogKind::Plain } else { LogKind::Prepared });
            let options = Options::new().create_if_missing(true).env(fs.env());
            let db = Db::open("/db", options).map_err(|error| error.to_string())?;
            fs.record();
            fs.set_unrest(seed);
            let largest = *rng.pick(&[40, 200, 2_000, 9_000, 26_000, 80_000]);
            let mut acknowledged = Vec::new();
            for number in 0_u32.. {
                let length = if rng.one_in(20) {
                    rng.between(0, 2 * largest)
                } else {
                    rng.between(largest / 3, largest)
                };
                let options =
                    if rng.one_in(4) { WriteOptions::sync() } else { WriteOptions::new() };
                db.put_with(number.to_be_bytes(), vec![number as u8; length], options)
                    .map_err(|error| error.to_string())?;
                acknowledged.push(fs.steps());
                if acknowledged.len() * largest > 400_000 || acknowledged.len() > 1_200 {
                    break;
                }
            }
            drop(db);
            let recording = fs.take_recording();
            let mut replay = recording.replay();
            // Most states of small writes lie within a block.
            let step = (recording.len() / 100).max(1);
            while replay.at() < recording.len() {
                replay.advance_to((replay.at() + rng.between(1, 2 * step)).min(recording.len()));
                states += 1;
                let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
                let db = dir.path().join("db");
                let left = replay.power_loss(PowerLoss::PROCESS_ONLY);
                left.export(Path::new("/db"), &db).map_err(|error| error.to_string())?;
                let options = PeerOptions { create: false, ..PeerOptions::default() };
                let least = acknowledged.iter().filter(|&&step| step <= replay.at()).count() as u64;
                match peer.digest(&db, &options) {
                    Ok(found) if (least..=least + 1).contains(&found.count()) => {}
                    other => {
                        let found = other.map(|digest| digest.count());
                        let place = recording.describe(replay.at());
                        return Err(format!(
                            "values of up to {largest} bytes: {least} were acknowledged, LevelDB: \
                             {found:?}\n{place}"
                        ));
                    }
                }
                let options = Options::new().env(left.env()).recovery_mode(RecoveryMode::Strict);
                let count = Db::open("/db", options).and_then(|db| Ok(db.iter()?.count() as u64));
                if !count.as_ref().is_ok_and(|count| (least..=least + 1).contains(count)) {
                    let place = recording.describe(replay.at());
                    return Err(format!("{least} were acknowledged, Terrace: {count:?}\n{place}"));
                }
            }
            Ok(())
        },
    );
    println!("{states} states");
}

/// The child's name and what it needs to know.
const CHILD: &str = "hand_over::killed::child_that_writes_large_values";
const CHILD_DB: &str = "TERRACE_LARGE_VALUES_DB";
const CHILD_SEED: &str = "TERRACE_LARGE_VALUES_SEED";

/// Entries of up to 80 KB, of which each tells its number, until the process is killed: nothing,
/// unless it was started by the test below.
#[test]
fn child_that_writes_large_values() {
    let (Some(path), Ok(seed)) = (env::var_os(CHILD_DB), env::var(CHILD_SEED)) else { return };
    let mut rng = Rng::new(seed.parse().expect("a seed"));
    let db = Db::open(Path::new(&path), Options::new().create_if_missing(true)).expect("an open");
    for number in 0_u32.. {
        let value = vec![number as u8 | 1; rng.between(6_000, 80_000)];
        db.put(number.to_be_bytes(), value).expect("a write");
    }
}

/// The same with real processes and the real system, which are killed within a record more often
/// than not: all that they do is copying values.
#[test]
fn leveldb_with_paranoid_checks_opens_what_killed_processes_leave() {
    let Some(peer) = Peer::find() else { return };
    let (mut entries, mut kills) = (0, 0);
    campaign(
        "leveldb_with_paranoid_checks_opens_what_killed_processes_leave",
        scaled(60),
        |seed| {
            let mut rng = Rng::new(seed);
            let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
            let db = dir.path().join("db");
            let mut child = Command::new(env::current_exe().expect("the test program"))
                .args(["--exact", CHILD, "--nocapture", "--test-threads=1"])
                .env(CHILD_DB, &db)
                .env(CHILD_SEED, seed.to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?;
            // From its first log on, some time or other.
            while !db.join("CURRENT").exists() {
                if let Ok(Some(status)) = child.try_wait() {
                    return Err(format!("the child ended by itself: {status}"));
                }
                std::thread::yield_now();
            }
            let end = Instant::now() + Duration::from_micros(rng.between(0, 40_000) as u64);
            while Instant::now() < end {
                std::thread::yield_now();
            }
            child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
            kills += 1;
            let options = PeerOptions { create: false, ..PeerOptions::default() };
            let found = peer.digest(&db, &options).map_err(|error| error.to_string())?;
            entries += found.count();
            // LevelDB has closed it; what it found is what was written first.
            let db = Db::open(&db, Options::new()).map_err(|error| error.to_string())?;
            let last = db.last().map_err(|error| error.to_string())?.map(|entry| entry.0);
            let expected = found.count().checked_sub(1).map(|last| (last as u32).to_be_bytes());
            match last.as_deref() == expected.as_ref().map(|key| &key[..]) {
                true => Ok(()),
                false => Err(format!("{} entries, the last is {last:?}", found.count())),
            }
        },
    );
    println!("{kills} kills, {entries} entries");
}
