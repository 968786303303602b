//! Compactions within level 0: many small tables become one there while older ones are compacted
//! into level 1, and while newer ones come.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use terrace::{
    CompactionFilter, Db, Env, Event, EventListener, FilterDecision, Options, PosixEnv, ReadOptions,
};
use terrace_testkit::leveldb::{Peer, PeerOptions};
use terrace_testkit::simfs::{PowerLoss, SimFs};
use terrace_testkit::watchdog::Watchdog;
use terrace_testkit::workload::Digest;

use crate::subcompactions::{Map, PATH, contents, options};

/// The key at which the compaction into level 1 waits, and the one at which that within level 0
/// does: the first one, so that it has not begun its output.
const GATES: [&[u8]; 2] = [b"gate 0", b"0 gate 1"];
/// Tables that go to levels 2 and 1.
const DEEPER: usize = 2;

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

fn open(env: Arc<dyn Env>, path: &Path, gates: &Arc<Gates>) -> Db {
    let options =
        options(env, 4).compaction_filter(Some(gates.clone())).listener(Some(gates.clone()));
    Db::open(path, options).expect("opens")
}

/// A database of which a compaction from level 0 into level 1 and one within level 0 wait at their
/// gates.
struct Waiting {
    db: Db,
    expected: Map,
    /// Of the next table.
    number: usize,
}

impl Waiting {
    fn new(env: Arc<dyn Env>, path: &Path, gates: &Arc<Gates>) -> Self {
        let db = open(env, path, gates);
        let mut waiting = Waiting { db, expected: Map::new(), number: 0 };
        // In levels 2, 1 and 0: the compaction of the four in level 0 waits.
        (0..DEEPER + 4).for_each(|_| waiting.flush(Some(GATES[0])));
        gates.await_that(|state| state.arrived[0]);
        while !gates.state.lock().expect("no panic").arrived[1] && waiting.number < 40 {
            waiting.flush(Some(GATES[1]));
        }
        gates.await_that(|state| state.arrived[1]);
        waiting
    }

    /// Makes a table, which hides a key of the one before.
    fn flush(&mut self, gate: Option<&[u8]>) {
        let number = self.number;
        // Behind all that levels 1 and 2 have: level 0 alone says that a deletion is needed.
        let once = |number: usize| format!("~once {number}").into_bytes();
        let value = number.to_string().into_bytes();
        let puts = [b"a".to_vec(), b"m".to_vec(), b"z".to_vec()];
        let once_now = (number >= DEEPER).then(|| once(number));
        for key in puts.into_iter().chain(once_now).chain(gate.map(<[u8]>::to_vec)) {
            self.db.put(&key, &value).expect("a write");
            self.expected.insert(key, value.clone());
        }
        if number > DEEPER {
            self.db.delete(once(number - 1)).expect("a deletion");
            self.expected.remove(&once(number - 1));
        }
        self.db.flush().expect("flushes");
        self.number += 1;
    }
}

/// Opens all gates at the end, also of a test that fails: a database waits for its compactions.
struct OpenAtEnd(Arc<Gates>);

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.change(|state| state.open = [true; 2]);
    }
}

/// A scan looks at sequence numbers, a get takes what the newest table of level 0 has.
fn check(db: &Db, options: &ReadOptions, expected: &Map) {
    assert_eq!(contents(db, options), *expected);
    for number in 0..50 {
        let key = format!("~once {number}").into_bytes();
        let found = db.get_with(&key, options).expect("a read");
        assert_eq!(found.as_ref(), expected.get(&key), "~once {number}");
    }
    for (key, value) in expected {
        let found = db.get_with(key, options).expect("a read");
        assert_eq!(found.as_ref(), Some(value), "{}", String::from_utf8_lossy(key));
    }
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
    let mut waiting = Waiting::new(PosixEnv::shared(), &path, &gates);
    let _open = OpenAtEnd(gates.clone());
    let (snapshot, before) = (waiting.db.snapshot(), waiting.expected.clone());
    let then = ReadOptions::new().snapshot(&snapshot);
    // Newer than what becomes one table now.
    (0..3).for_each(|_| waiting.flush(None));
    gates.change(|state| state.open[1] = true);
    gates.await_that(|state| state.ended.contains(&(0, 0)));
    let (db, expected, now) = (&waiting.db, &waiting.expected, ReadOptions::new());
    check(db, &now, expected);
    check(db, &then, &before);
    // As LevelDB has it, which takes the greater number in level 0 for the newer one.
    db.checkpoint(&copy).expect("a checkpoint");
    let copied = Db::open(&copy, Options::new().read_only(true)).expect("opens");
    check(&copied, &now, expected);
    copied.close().expect("closes");
    if let Some(peer) = Peer::find() {
        let options = PeerOptions::default();
        // Before it compacts anything.
        let found = peer.get(&copy, &options, b"a").expect("LevelDB reads");
        assert_eq!(found.as_ref(), expected.get(&b"a"[..]));
        assert_eq!(peer.digest(&copy, &options).expect("LevelDB reads"), digest(expected));
    }
    let ended = gates.state.lock().expect("no panic").ended.clone();
    assert!(ended.iter().all(|&levels| levels == (0, 0)), "the other one waits: {ended:?}");
    gates.change(|state| state.open[0] = true);
    db.wait_idle().expect("comes to rest");
    check(db, &now, expected);
    check(db, &then, &before);
    assert!(db.verify().expect("checks").problems.is_empty());
    drop((then, snapshot));
    waiting.db.close().expect("closes");
    let db = open(PosixEnv::shared(), &path, &gates);
    check(&db, &now, &waiting.expected);
}

/// At each step of both compactions, and of flushes between them.
#[test]
fn power_may_go_at_any_step() {
    let _watchdog = Watchdog::new(Duration::from_secs(300), "compactions within level 0");
    let gates = Arc::new(Gates::default());
    let fs = SimFs::new();
    let path = Path::new(PATH);
    let mut waiting = Waiting::new(fs.env(), path, &gates);
    let _open = OpenAtEnd(gates.clone());
    fs.record();
    gates.change(|state| state.open[1] = true);
    gates.await_that(|state| state.ended.contains(&(0, 0)));
    gates.change(|state| state.open[0] = true);
    waiting.db.wait_idle().expect("comes to rest");
    let recording = fs.take_recording();
    let expected = std::mem::take(&mut waiting.expected);
    let mut replay = recording.replay();
    loop {
        let at = replay.at();
        let random = (0..3).map(|seed| PowerLoss::random(seed << 32 | at as u64));
        for loss in [PowerLoss::PROCESS_ONLY, PowerLoss::STRICT].into_iter().chain(random) {
            let fs = replay.power_loss(loss);
            let db = Db::open(path, options(fs.env(), 2)).expect("opens");
            let found = contents(&db, &ReadOptions::new());
            assert_eq!(found, expected, "{loss:?} before {}", recording.describe(at));
            check(&db, &ReadOptions::new(), &expected);
            db.put("after", "the cut").expect("a write");
            db.compact_range::<&[u8]>(..).expect("a compaction");
            let mut found = contents(&db, &ReadOptions::new());
            found.remove(&b"after"[..]);
            assert_eq!(found, expected, "{loss:?} before {}", recording.describe(at));
        }
        if !replay.advance() {
            break;
        }
    }
    assert!(recording.len() > 20, "{}", recording.len());
}
