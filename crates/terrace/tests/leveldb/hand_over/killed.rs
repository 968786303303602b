//! LevelDB reads the log of a process that was killed at any moment.

use std::path::Path;

use terrace::{Db, Options, WriteOptions};
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
                replay
                    .power_loss(PowerLoss::PROCESS_ONLY)
                    .export(Path::new("/db"), &db)
                    .map_err(|error| error.to_string())?;
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
            }
            Ok(())
        },
    );
    println!("{states} states");
}
