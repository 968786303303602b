//! Compactions within level 0: many small tables become one there while older ones are compacted into
//! level 1, and while newer ones come.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use terrace::{
    CompactionFilter, Db, Event, EventListener, FilterDecision, Options, PosixEnv, ReadOptions,
};
use terrace_testkit::leveldb::{Peer, PeerOptions};
use terrace_testkit::watchdog::Watchdog;
use terrace_testkit::workload::Digest;

use crate::subcompactions::{Map, contents, options};

/// The key at which the compaction into level 1 waits, and the one at which that within level 0 does.
const GATES: [&[u8]; 2] = [b"gate 0", b"gate 1"];

/// Has compactions wait at their gates, and knows which have ended.
#[derive(Default)]
struct Gates {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    arrived: [bool; 2],
    open: [bool; 2],
    ended: Vec<(usize, usize)>,
}

impl Gates {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("no panic"));
        self.changed.notify_all();
    }

    fn await_that(&self, holds: impl Fn(&State) -> bool) {
        let state = self.state.lock().expect("no panic");
        drop(self.changed.wait_while(state, |state| !holds(state)).expect("no panic"));
    }
}

impl CompactionFilter for Gates {
    fn filter(&self, key: &[u8], _: &[u8]) -> FilterDecision {
        if let Some(gate) = GATES.iter().position(|gate| *gate == key) {
            self.change(|state| state.arrived[gate] = true);
            self.await_that(|state| state.open[gate]);
        }
        FilterDecision::Keep
    }
}

impl EventListener for Gates {
    fn on_event(&self, event: &Event) {
        if let Event::CompactionFinished { level, output_level, .. } = event {
            self.change(|state| state.ended.push((*level, *output_level)));
        }
    }
}

fn open(path: &Path, gates: &Arc<Gates>) -> Db {
    let options = options(PosixEnv::shared(), 4)
        .compaction_filter(Some(gates.clone()))
        .listener(Some(gates.clone()));
    Db::open(path, options).expect("opens")
}

fn digest(entries: &Map) -> Digest {
    let mut digest = Digest::default();
    entries.iter().for_each(|(key, value)| digest.add(key, value));
    digest
}

#[test]
fn tables_within_level_0_become_one_beside_flushes_and_another_compaction() {
    let _watchdog = Watchdog::new(Duration::from_secs(120), "compactions within level 0");
    let gates = Arc::new(Gates::default());
    let dir = tempfile::tempdir().expect("a directory");
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let db = open(&path, &gates);
    let mut expected = Map::new();
    let mut flush = |number: usize, gate: Option<&[u8]>| {
        for key in ["a", "m", "z"] {
            let value = number.to_string().into_bytes();
            db.put(key, &value).expect("a write");
            expected.insert(key.into(), value);
        }
        // Each table hides a key of the one before.
        let (key, deleted) = (format!("once {number}"), format!("once {}", number.wrapping_sub(1)));
        db.put(&key, "here").expect("a write");
        expected.insert(key.into(), b"here".into());
        db.delete(&deleted).expect("a deletion");
        expected.remove(deleted.as_bytes());
        if let Some(gate) = gate {
            db.put(gate, "").expect("a write");
            expected.insert(gate.into(), Vec::new());
        }
        db.flush().expect("flushes");
        expected.clone()
    };
    // In levels 2, 1 and 0: the compaction of the four in level 0 waits.
    (0..6).for_each(|number| drop(flush(number, Some(GATES[0]))));
    gates.await_that(|state| state.arrived[0]);
    let mut number = 6;
    let mut before = Map::new();
    while !gates.state.lock().expect("no panic").arrived[1] && number < 40 {
        before = flush(number, Some(GATES[1]));
        number += 1;
    }
    gates.await_that(|state| state.arrived[1]);
    let snapshot = db.snapshot();
    // Newer than what becomes one table now.
    (number..number + 3).for_each(|number| drop(flush(number, None)));
    gates.change(|state| state.open[1] = true);
    gates.await_that(|state| state.ended.contains(&(0, 0)));
    let now = ReadOptions::new();
    assert_eq!(contents(&db, &now), expected);
    assert_eq!(contents(&db, &ReadOptions::new().snapshot(&snapshot)), before);
    // As LevelDB has it, which takes the greater number in level 0 for the newer one.
    db.checkpoint(&copy).expect("a checkpoint");
    let copied = Db::open(&copy, Options::new().read_only(true)).expect("opens");
    assert_eq!(contents(&copied, &now), expected);
    copied.close().expect("closes");
    if let Some(peer) = Peer::find() {
        let found = peer.digest(&copy, &PeerOptions::default()).expect("LevelDB reads");
        assert_eq!(found, digest(&expected));
    }
    assert_eq!(gates.state.lock().expect("no panic").ended, [(0, 0)], "the other one waits");
    gates.change(|state| state.open[0] = true);
    db.wait_idle().expect("comes to rest");
    assert_eq!(contents(&db, &now), expected);
    assert_eq!(contents(&db, &ReadOptions::new().snapshot(&snapshot)), before);
    assert!(db.verify().expect("checks").problems.is_empty());
    drop(snapshot);
    db.close().expect("closes");
    let db = open(&path, &gates);
    assert_eq!(contents(&db, &now), expected);
}
