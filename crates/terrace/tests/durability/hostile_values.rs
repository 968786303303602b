//! Values that look like logs, in the logs of processes that were killed while they copied them:
//! what is in a value is never taken for a write, and never keeps a database from opening.

use std::path::Path;

use terrace::{Db, Options, RecoveryMode, WriteOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{LogKind, PowerLoss, SimFs};

use crate::frames::{batch, mark, record};

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Marks that say that far more is durable than was ever written.
    Marks,
    /// Records of another database's log.
    ForeignRecords,
    /// Behind zeros the very write that would come next.
    NextWrite,
    /// Behind zeros a mark.
    LateMark,
}

const KINDS: [Kind; 4] = [Kind::Marks, Kind::ForeignRecords, Kind::NextWrite, Kind::LateMark];

/// A value of `size` bytes that is written as the operation `sequence`.
fn value(kind: Kind, sequence: u64, size: usize, at: usize) -> Vec<u8> {
    let behind_zeros = |part: Vec<u8>| {
        let mut value = vec![0; size];
        value[at..at + part.len()].copy_from_slice(&part);
        value
    };
    match kind {
        Kind::Marks => mark(1 << 40).repeat(size / 26),
        Kind::ForeignRecords => {
            let record = record(&batch(77, "alien", &[7; 90]));
            record.repeat(size / record.len())
        }
        Kind::NextWrite => behind_zeros(record(&batch(sequence, "alien", b"x"))),
        Kind::LateMark => behind_zeros(mark(1 << 40)),
    }
}

#[test]
fn what_is_in_a_value_is_no_write_and_no_mark() {
    let mut states = 0;
    campaign("what_is_in_a_value_is_no_write_and_no_mark", scaled(60), |seed| {
        let mut rng = Rng::new(seed);
        let (kind, size) = (*rng.pick(&KINDS), *rng.pick(&[5_000, 20_000, 60_000, 200_000]));
        let is_prepared = !rng.one_in(4);
        let fs = SimFs::new();
        fs.set_log_kind(if is_prepared { LogKind::Prepared } else { LogKind::Plain });
        let options = Options::new().create_if_missing(true).env(fs.env());
        let db = Db::open("/db", options).map_err(|error| error.to_string())?;
        fs.record();
        fs.set_unrest(seed);
        let tears = rng.one_in(3);
        if tears {
            fs.tear_headers();
        }
        let syncs = rng.one_in(3);
        let mut acknowledged = Vec::new();
        for number in 1..=6_u64 {
            let at = rng.between(100, size - 100);
            let sync =
                if syncs && rng.one_in(3) { WriteOptions::sync() } else { WriteOptions::new() };
            db.put_with(number.to_be_bytes(), value(kind, number, size, at), sync)
                .map_err(|error| error.to_string())?;
            acknowledged.push(fs.steps());
        }
        drop(db);
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        while replay.at() < recording.len() {
            replay.advance();
            let least = acknowledged.iter().filter(|&&step| step <= replay.at()).count();
            for mode in [RecoveryMode::Prefix, RecoveryMode::Strict, RecoveryMode::Salvage] {
                let left = replay.power_loss(PowerLoss::PROCESS_ONLY);
                if left.contents(Path::new("/db/CURRENT")).is_none() {
                    continue;
                }
                states += 1;
                let found = Db::open("/db", Options::new().env(left.env()).recovery_mode(mode))
                    .and_then(|db| Ok((db.iter()?.count(), db.get("alien")?.is_some())));
                match found {
                    Ok((count, false)) if (least..=least + 1).contains(&count) => {}
                    // An end of the file that cuts a record off may as well be a damaged length.
                    Err(_) if mode == RecoveryMode::Strict && !is_prepared => {}
                    // It takes whatever may be a write.
                    Ok((_, true)) if mode == RecoveryMode::Salvage => {}
                    other => {
                        let place = recording.describe(replay.at());
                        return Err(format!(
                            "{kind:?} of {size} bytes, prepared: {is_prepared}, torn headers: \
                             {tears}, {syncs}: {mode:?} has {other:?}, {least} were acknowledged\n{place}"
                        ));
                    }
                }
            }
        }
        Ok(())
    });
    println!("what_is_in_a_value_is_no_write_and_no_mark: {states} states");
}
