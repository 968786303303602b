//! Entries that expire, beside crashes, faults and the real LevelDB.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::{Db, Keyspace, KeyspaceOptions, PosixEnv, PutOptions, ReadOptions, Result};
use terrace_testkit::campaign::campaign;
use terrace_testkit::clocked::Clocked;
use terrace_testkit::leveldb::{Peer, PeerOptions};
use terrace_testkit::rng::{Rng, mix};
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, PowerLoss, SimFs};
use terrace_testkit::watchdog::Watchdog;

use crate::expiry::{MINUTE, PATH, expiring, force, keys, options, stored, ttl};

/// Whatever is lost with the power, nothing that has expired comes back, and what is there still
/// expires.
#[test]
fn a_crash_leaves_no_entry_without_its_time() {
    let mut states = 0;
    let fs = SimFs::new();
    fs.record();
    let env = Clocked::over(fs.env());
    let db = Db::open(PATH, options().env(env.clone())).expect("opens");
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    for number in 0..60 {
        let options = if number % 4 == 0 { PutOptions::new() } else { ttl(5) };
        sessions.put_with(format!("{number:02}"), [b'v'; 100], options.sync(true)).expect("a put");
    }
    let written = fs.steps();
    db.flush().expect("a flush");
    env.advance(MINUTE * 5);
    db.wait_idle().expect("idle");
    db.compact_range_with::<&[u8]>(.., force()).expect("a compaction");
    assert_eq!(stored(&db), 15);
    drop(sessions);
    db.close().expect("closes");
    let recording = fs.take_recording();
    let mut replay = recording.replay();
    let mut rng = Rng::new(1);
    loop {
        let at = replay.at();
        let random = (0..scaled(4).max(1)).map(|_| PowerLoss::random(rng.next_u64()));
        for loss in [PowerLoss::STRICT, PowerLoss::PROCESS_ONLY].into_iter().chain(random) {
            states += 1;
            let case = format!("moment {at}, {loss:?}");
            let env = Clocked::over(replay.power_loss(loss).env());
            let db = Db::open(PATH, options().env(env.clone()))
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            let Ok(sessions) = db.keyspace("s") else {
                assert!(at < written, "{case}: no keyspace");
                continue;
            };
            let entries = sessions.iter().expect("entries");
            assert!(
                entries.map(|entry| entry.expect("an entry")).all(|entry| entry.1 == [b'v'; 100]),
                "{case}"
            );
            env.advance(MINUTE * 10);
            let left = keys(&sessions);
            let lasting = left.iter().filter(|key| key.parse::<u32>().expect("one") % 4 == 0);
            assert_eq!(lasting.count(), left.len(), "{case}");
            assert!(at < written || left.len() == 15, "{case}: {left:?}");
        }
        if !replay.advance() {
            break;
        }
    }
    println!("a_crash_leaves_no_entry_without_its_time: {states} crash states");
}

/// Entries with and without a time, a flush, time that passes, a compaction, a reopening. Returns
/// which puts were acknowledged.
fn work(env: &Arc<Clocked>) -> (Vec<bool>, Result<()>) {
    let mut acknowledged = vec![false; 40];
    let mut all = || {
        let db = Db::open(PATH, options().env(env.clone()))?;
        let sessions = db.create_keyspace("s", expiring())?;
        for (number, is_there) in acknowledged.iter_mut().enumerate() {
            let options = if number % 4 == 0 { PutOptions::new() } else { ttl(5) };
            let put = sessions.put_with(format!("{number:02}"), [b'v'; 100], options.sync(true));
            *is_there = put.is_ok();
            if number == 20 {
                let _ = db.flush();
            }
        }
        let _ = db.flush();
        env.advance(MINUTE * 5);
        let _ = db.compact_range_with::<&[u8]>(.., force());
        drop(sessions);
        let _ = db.close();
        let db = Db::open(PATH, options().env(env.clone()))?;
        let _ = db.keyspace("s")?.iter()?.count();
        db.close()
    };
    let outcome = all();
    (acknowledged, outcome)
}

/// Whichever operation of the file system fails: what was acknowledged is there for as long as it
/// is to be, and nothing else is shown.
#[test]
fn any_failure_leaves_entries_and_their_times() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "faults of expiry");
    let fs = SimFs::new();
    work(&Clocked::over(fs.env())).1.expect("no faults");
    let operations = fs.operations();
    let (full, mut cases, mut injected) = (100_000, 0, 0);
    let share = scaled(full / 8);
    for after in 0..operations {
        for fault in Fault::ALL {
            for forever in [false, true] {
                if mix(mix(after) ^ (fault as u64) << 1 ^ u64::from(forever)) % full >= share {
                    continue;
                }
                let plan = FaultPlan::at(after, fault, forever);
                let label = format!("faults of expiry: {plan:?}");
                watchdog.feed(label.clone());
                let fs = SimFs::new();
                let env = Clocked::over(fs.env());
                fs.set_faults([plan]);
                let (acknowledged, _) = work(&env);
                cases += 1;
                injected += u64::from(fs.injected() > 0);
                fs.set_faults([]);
                // An open whose clock was never set: minutes have passed or not.
                let env = Clocked::over(fs.env());
                let db = Db::open(PATH, options().env(env.clone()))
                    .unwrap_or_else(|error| panic!("{label}: {error}"));
                let Ok(sessions) = db.keyspace("s") else {
                    assert!(acknowledged.iter().all(|there| !there), "{label}: no keyspace");
                    continue;
                };
                let mut entries = sessions.iter().expect("entries");
                let whole = entries.all(|entry| entry.expect("an entry").1 == [b'v'; 100]);
                assert!(whole, "{label}");
                env.advance(MINUTE * 10);
                let left = keys(&sessions);
                let number = |key: &String| key.parse::<usize>().expect("a number");
                assert!(left.iter().all(|key| number(key) % 4 == 0), "{label}: {left:?}");
                for (number, _) in acknowledged.iter().enumerate().filter(|(_, there)| **there) {
                    let is_left = left.contains(&format!("{number:02}"));
                    assert!(is_left || number % 4 > 0, "{label}: {number} is lost");
                }
            }
        }
    }
    println!("any_failure_leaves_entries_and_their_times: {cases} cases, {injected} failures met");
}

/// What the keys of the database hold, with the minute at which they expire.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn alive(model: &Model, prefix: &str, now: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let within = model.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes()));
    let alive = within.filter(|(_, (_, end))| end.is_none_or(|end| end > now));
    alive.map(|(key, (value, _))| (key[prefix.len()..].to_vec(), value.clone())).collect()
}

/// A few changes by Terrace: puts with times, deletes, range deletes, keyspaces that come and go.
fn change_by_terrace(db: &Db, rng: &mut Rng, model: &mut Model, now: u64) -> Result<()> {
    for _ in 0..rng.below(40) + 5 {
        let (name, key) = (*rng.pick(&["s", "p"]), format!("{:02}", rng.below(50)));
        let value = rng.bytes(200);
        let keyspace = match db.keyspace(name) {
            Ok(keyspace) => keyspace,
            Err(_) => db.create_keyspace(name, KeyspaceOptions::new().block_size(2048))?,
        };
        let full = keyspace.key(&key);
        match rng.below(12) {
            0..=5 if name == "s" => {
                let minutes = 2 * rng.below(5) as u64 + 1;
                keyspace.put_with(&key, &value, ttl(minutes as u32))?;
                model.insert(full, (value, Some(now + minutes)));
            }
            6 => {
                keyspace.delete(&key)?;
                model.remove(&full);
            }
            7 => {
                let to = format!("{:02}", rng.below(50));
                keyspace.delete_range(key.as_str()..to.as_str())?;
                let range = full..keyspace.key(&to);
                model.retain(|key, _| !range.contains(key));
            }
            8 if name == "p" && rng.one_in(3) => {
                db.drop_keyspace(name)?;
                model.retain(|key, _| !key.starts_with(b"!p!"));
            }
            9 => db.flush()?,
            10 => db.compact_range_with::<&[u8]>(.., force())?,
            _ => {
                keyspace.put(&key, &value)?;
                model.insert(full, (value, None));
            }
        }
    }
    Ok(())
}

fn compare(db: &Db, model: &Model, now: u64) -> std::result::Result<(), String> {
    for name in ["s", "p"] {
        let prefix = format!("!{name}!");
        let expected = alive(model, &prefix, now);
        let entries = |keyspace: Keyspace| keyspace.iter()?.collect::<Result<Vec<_>>>();
        let found = match db.keyspace(name).and_then(entries) {
            Ok(found) => found,
            Err(_) if expected.is_empty() => continue,
            Err(error) => return Err(format!("{name}: {error}")),
        };
        if found != expected {
            return Err(format!("{name}: {} entries, not {}", found.len(), expected.len()));
        }
    }
    Ok(())
}

/// Histories of keyspaces, range deletes and expiry that Terrace and LevelDB write by turns.
#[test]
fn histories_with_times_go_to_leveldb_and_back() {
    let Some(peer) = Peer::find() else { return };
    campaign("histories_with_times_go_to_leveldb_and_back", scaled(50).max(2), |seed| {
        let text = |error: terrace::Error| error.to_string();
        let mut rng = Rng::new(seed);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("db");
        let env = Clocked::over(PosixEnv::shared());
        let batch = *rng.pick(&[0, 4096]);
        let open = |path: &Path| {
            Db::open(path, options().range_delete_batch(batch).env(env.clone())).map_err(text)
        };
        let (mut model, mut now) = (Model::new(), 0);
        let peer_options = PeerOptions::default();
        for round in 0..4 {
            let db = open(&path)?;
            if round == 0 {
                db.create_keyspace("s", expiring()).map_err(text)?;
            }
            compare(&db, &model, now)?;
            change_by_terrace(&db, &mut rng, &mut model, now).map_err(text)?;
            compare(&db, &model, now)?;
            let as_stored = ReadOptions::new().stored_values(true);
            let entries = db.iter_with(&as_stored).map_err(text)?;
            let expected: Vec<_> = entries.collect::<Result<_>>().map_err(text)?;
            db.close().map_err(text)?;
            let seen = peer.entries(&path, &peer_options).map_err(|error| error.to_string())?;
            // A compaction may have removed what has expired before the database was closed.
            let is_alive = |(key, _): &&(Vec<u8>, Vec<u8>)| {
                let end = model.get(key).map(|(_, end)| end.is_none_or(|end| end > now));
                end.unwrap_or_else(|| key.starts_with(b"!$terrace!"))
            };
            let all_known = seen.iter().all(|entry| expected.contains(entry));
            if !all_known || !expected.iter().filter(is_alive).all(|entry| seen.contains(entry)) {
                return Err("LevelDB reads something else".to_owned());
            }
            // What it writes has no time; what it copies with its trailer keeps it.
            for _ in 0..rng.below(4) {
                let key = format!("!s!{:02}", rng.below(50)).into_bytes();
                let value = rng.bytes(50);
                peer.put(&path, &peer_options, &key, &value).map_err(|error| error.to_string())?;
                model.insert(key, (value, None));
            }
            if rng.one_in(2) {
                peer.simple("compact", &path, &peer_options).map_err(|error| error.to_string())?;
            }
            let minutes = 2 * rng.below(3) as u64;
            env.advance(MINUTE * minutes as u32);
            now += minutes;
        }
        compare(&open(&path)?, &model, now)
    });
}
