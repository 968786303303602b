//! Compaction filters: what they remove and replace, and what they never see.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use terrace::{
    CompactOptions, CompactionFilter, Db, ErrorKind, FilterDecision, KeyspaceOptions, MemEnv,
    Options, PutOptions, ReadOptions, Snapshot, TableWriter,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::driver::read_all;
use terrace_testkit::leveldb::{Peer, PeerOptions};
use terrace_testkit::model::Pair;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::watchdog::Watchdog;

const PATH: &str = "/db";

fn options(filter: impl CompactionFilter + 'static) -> Options {
    Options::new()
        .create_if_missing(true)
        .write_buffer_size(64 << 10)
        .max_file_size(1 << 20)
        .compaction_filter(Some(Arc::new(filter)))
}

fn force(db: &Db) {
    let options = CompactOptions::new().force(true);
    db.compact_range_with::<&[u8]>(.., options).expect("a compaction");
}

/// Removes values that begin with `r`, and makes those that begin with `o` begin with `n`.
struct ByFirst;

/// What [`ByFirst`] makes of a value.
fn filtered(value: &[u8]) -> Option<Vec<u8>> {
    match value.first() {
        Some(b'r') => None,
        Some(b'o') => Some([b"n", &value[1..]].concat()),
        _ => Some(value.to_vec()),
    }
}

impl CompactionFilter for ByFirst {
    fn filter(&self, _key: &[u8], value: &[u8]) -> FilterDecision {
        match filtered(value) {
            None => FilterDecision::Remove,
            Some(new) if new == value => FilterDecision::Keep,
            Some(new) => FilterDecision::Replace(new),
        }
    }
}

#[test]
fn what_is_removed_is_gone_and_no_older_value_comes_back() {
    campaign("what_is_removed_is_gone_and_no_older_value_comes_back", scaled(100), |seed| {
        let text = |error: terrace::Error| error.to_string();
        let mut rng = Rng::new(seed);
        let env = Arc::new(MemEnv::new());
        let open = || Db::open(PATH, options(ByFirst).env(env.clone())).map_err(text);
        let mut db = open()?;
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut snapshots = Vec::new();
        let may_be = |model: &BTreeMap<Vec<u8>, Vec<u8>>, key: &[u8], found: Option<&[u8]>| {
            let written = model.get(key).map(Vec::as_slice);
            found == written || found == written.and_then(filtered).as_deref()
        };
        for _ in 0..400 {
            let key = format!("key{:02}", rng.below(50)).into_bytes();
            match rng.below(40) {
                0 => db.flush().map_err(text)?,
                1 => db.compact_range::<&[u8]>(..).map_err(text)?,
                2 => db.compact_range(key.clone()..).map_err(text)?,
                3 => force(&db),
                4 if snapshots.len() < 4 => {
                    let seen = read_all(&db).map_err(text)?;
                    snapshots.push((db.snapshot(), seen));
                }
                5 => snapshots.truncate(rng.below(4)),
                6 => {
                    snapshots.clear();
                    drop(db);
                    db = open()?;
                }
                7..12 => {
                    db.delete(&key).map_err(text)?;
                    model.remove(&key);
                }
                _ => {
                    let first = *rng.pick(b"krok");
                    let value = [&[first][..], &rng.bytes(1_000)].concat();
                    db.put(&key, &value).map_err(text)?;
                    model.insert(key.clone(), value);
                }
            }
            let found = db.get(&key).map_err(text)?;
            if !may_be(&model, &key, found.as_deref()) {
                return Err(format!("{:?}", String::from_utf8_lossy(&key)));
            }
            for (snapshot, seen) in &snapshots {
                let entries: Vec<Pair> =
                    snapshot.iter().and_then(|entries| entries.collect()).map_err(text)?;
                // A filter may have been at work between what was read and the snapshot.
                let same = entries.len() <= seen.len()
                    && entries.iter().all(|(key, value)| {
                        let was = seen.iter().find(|(other, _)| other == key);
                        was.is_some_and(|(_, was)| {
                            value == was || Some(value) == filtered(was).as_ref()
                        })
                    });
                if !same {
                    return Err("a snapshot changed".to_owned());
                }
            }
        }
        snapshots.clear();
        force(&db);
        force(&db);
        let expected: Vec<Pair> =
            model.into_iter().filter_map(|(key, value)| Some((key, filtered(&value)?))).collect();
        let found = read_all(&db).map_err(text)?;
        if found != expected {
            return Err(format!("{} entries, must be {}", found.len(), expected.len()));
        }
        let report = db.verify().map_err(text)?;
        if report.is_clean() { Ok(()) } else { Err(format!("{report:?}")) }
    });
}

#[test]
fn what_a_snapshot_sees_is_not_shown_to_the_filter() {
    let db = Db::open(PATH, options(ByFirst).env(Arc::new(MemEnv::new()))).expect("opens");
    for number in 0..100 {
        db.put(format!("{number:03}"), if number % 2 == 0 { "remove" } else { "old" })
            .expect("a put");
    }
    let snapshot = db.snapshot();
    force(&db);
    let seen = ReadOptions::new().snapshot(&snapshot);
    assert_eq!(db.iter_with(&seen).expect("entries").count(), 100);
    assert_eq!(db.iter().expect("entries").count(), 100, "the snapshot needs them");
    assert_eq!(db.get("001").expect("a read").as_deref(), Some(&b"old"[..]));
    drop((snapshot, seen));
    force(&db);
    assert_eq!(db.iter().expect("entries").count(), 50);
    assert_eq!(db.get("001").expect("a read").as_deref(), Some(&b"nld"[..]));
}

/// Says that it was asked, and goes on when it is told to.
struct Waiting(SyncSender<()>, std::sync::Mutex<Receiver<()>>);

impl CompactionFilter for Waiting {
    fn filter(&self, _key: &[u8], value: &[u8]) -> FilterDecision {
        if value == b"wait" {
            self.0.send(()).expect("somebody listens");
            self.1.lock().expect("no panic").recv().expect("somebody says so");
        }
        FilterDecision::Remove
    }
}

/// The other end of it.
struct Told(Receiver<()>, SyncSender<()>);

impl Waiting {
    fn new() -> (Waiting, Told) {
        let ((asked, is_asked), (go_on, goes_on)) = (sync_channel(1), sync_channel(1));
        (Waiting(asked, std::sync::Mutex::new(goes_on)), Told(is_asked, go_on))
    }
}

impl Told {
    /// A snapshot that is taken, with what is done behind it, while a compaction asks the filter.
    fn snapshot_amid(&self, db: &Db, meanwhile: impl FnOnce()) -> Snapshot {
        std::thread::scope(|scope| {
            let compaction = scope.spawn(|| force(db));
            self.0.recv().expect("the filter is asked");
            let snapshot = db.snapshot();
            meanwhile();
            self.1.send(()).expect("the filter waits");
            compaction.join().expect("no panic");
            snapshot
        })
    }
}

/// A forced compaction beside a close that begins while its filter is asked.
fn compact_beside_close() -> terrace::Result<()> {
    let (filter, told) = Waiting::new();
    let db = Db::open(PATH, options(filter).env(Arc::new(MemEnv::new())))?;
    db.put("0000", "wait")?;
    for number in 1..2_000 {
        db.put(format!("{number:04}"), "value")?;
    }
    db.flush()?;
    let all = CompactOptions::new().force(true);
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| db.compact_range_with::<&[u8]>(.., all));
        told.0.recv().expect("the filter is asked");
        let close = scope.spawn(|| db.clone().close());
        while db.put("key", "value").is_ok() {
            std::thread::yield_now();
        }
        told.1.send(()).expect("the filter waits");
        close.join().expect("no panic").expect("closes");
        compaction.join().expect("no panic")
    })
}

/// Writes and flushes when nobody needs it any more.
struct WritesAtItsEnd {
    filter: Waiting,
    db: Db,
}

impl CompactionFilter for WritesAtItsEnd {
    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        self.filter.filter(key, value)
    }
}

impl Drop for WritesAtItsEnd {
    fn drop(&mut self) {
        self.db.put("ended", "1").expect("puts");
        self.db.flush().expect("flushes");
    }
}

/// The compaction is the last one to hold it then, and holds no lock when it lets it go.
#[test]
fn a_filter_that_is_replaced_beside_a_compaction_may_write_when_it_is_dropped() {
    let _watchdog = Watchdog::new(Duration::from_secs(60), "a filter's destructor that writes");
    let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
    let db = Db::open(PATH, options).expect("creates");
    let keyspace = db.create_keyspace("users", KeyspaceOptions::new()).expect("creates");
    let (filter, told) = Waiting::new();
    let filter = WritesAtItsEnd { filter, db: db.clone() };
    keyspace.set_compaction_filter(Arc::new(filter)).expect("sets");
    keyspace.put("key", "wait").expect("puts");
    db.flush().expect("flushes");
    told.snapshot_amid(&db, || {
        keyspace.set_compaction_filter(Arc::new(ByFirst)).expect("sets");
        assert_eq!(db.get("ended").expect("reads"), None, "the compaction still holds it");
    });
    assert_eq!(db.get("ended").expect("reads").as_deref(), Some(&b"1"[..]));
    db.close().expect("closes");
}

/// As one that waits does: the database is not in use elsewhere.
#[test]
fn a_manual_compaction_that_runs_when_the_database_closes_says_so() {
    let _watchdog = Watchdog::new(Duration::from_secs(300), "a compaction beside a close");
    // Writes fail a moment before compactions are told, in which one may end.
    let error = (0..100).find_map(|_| compact_beside_close().err()).expect("one is stopped");
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

/// The compaction does not know of a snapshot that is taken while it runs.
#[test]
fn a_snapshot_that_is_taken_beside_the_filter_does_not_change() {
    let (filter, told) = Waiting::new();
    let db = Db::open(PATH, options(filter).env(Arc::new(MemEnv::new()))).expect("opens");
    for number in 0..50 {
        db.put(format!("{number:03}"), "value").expect("a put");
    }
    db.put("025", "wait").expect("a put");
    let early = told.snapshot_amid(&db, || db.put("100", "later").expect("a put"));
    let seen = read_all(&db).expect("entries");
    assert_eq!(seen, [(b"100".to_vec(), b"later".to_vec())]);
    assert_eq!(early.iter().expect("entries").count(), 50);
    assert_eq!(early.get("025").expect("a read").as_deref(), Some(&b"wait"[..]));
    assert_eq!(early.get("100").expect("a read"), None);
    drop(early);
    db.wait_idle().expect("idle");
    db.close().expect("closes");
}

/// What was ingested into an empty database has the sequence number 0, as has a snapshot of it.
#[test]
fn a_snapshot_of_ingested_entries_beside_the_filter_does_not_change() {
    let (filter, told) = Waiting::new();
    let options = options(filter).env(Arc::new(MemEnv::new()));
    let db = Db::open(PATH, options.clone()).expect("opens");
    let mut table = TableWriter::create("/table", &options).expect("a table");
    for number in 0..50 {
        let value = if number == 25 { "wait" } else { "value" };
        table.put(format!("{number:03}"), value).expect("a put");
    }
    table.finish().expect("a table");
    db.ingest(&["/table"]).expect("an ingestion");
    let early = told.snapshot_amid(&db, || ());
    assert_eq!(db.iter().expect("entries").count(), 0);
    assert_eq!(early.iter().expect("entries").count(), 50);
    assert_eq!(early.get("025").expect("a read").as_deref(), Some(&b"wait"[..]));
}

/// An old snapshot goes on reading what a filter removed; one that is taken later, without a write
/// in between, reads what everybody else does.
#[test]
fn a_snapshot_after_the_filter_reads_what_gets_read() {
    let (filter, told) = Waiting::new();
    let db = Db::open(PATH, options(filter).env(Arc::new(MemEnv::new()))).expect("opens");
    for number in 0..50 {
        db.put(format!("{number:03}"), "value").expect("a put");
    }
    db.put("025", "wait").expect("a put");
    let early = told.snapshot_amid(&db, || ());
    assert_eq!(early.iter().expect("entries").count(), 50);
    assert_eq!(db.get("001").expect("a read"), None);
    assert_eq!(db.snapshot().get("001").expect("a read"), None);
    assert_eq!(db.pop_first().expect("a read"), None);
    assert_eq!(early.get("001").expect("a read").as_deref(), Some(&b"value"[..]));
}

/// Readers of a view from before a filter removed values skip none of them, though later readers
/// have found the whole range deleted.
#[test]
fn earlier_readers_do_not_skip_what_only_the_filter_has_deleted() {
    let (filter, told) = Waiting::new();
    let db = Db::open(PATH, options(filter).env(Arc::new(MemEnv::new()))).expect("opens");
    let put = |numbers: std::ops::Range<u32>, value: &str| {
        for number in numbers {
            db.put(format!("{number:03}"), value).expect("a put");
        }
    };
    // A snapshot that sees the old values has compactions keep deletions.
    put(0..400, "old");
    let old = db.snapshot();
    for number in 0..200 {
        db.delete(format!("{number:03}")).expect("a deletion");
    }
    put(200..399, "value");
    put(399..400, "wait");
    let mut cursor = db.cursor().expect("a cursor");
    let snapshot = told.snapshot_amid(&db, || ());
    // The first one has the range watched, the second one could know of it.
    for _ in 0..3 {
        assert_eq!(db.iter().expect("entries").count(), 0);
    }
    assert_eq!(snapshot.iter().expect("entries").count(), 200);
    assert_eq!(snapshot.iter().expect("entries").rev().count(), 200);
    cursor.seek_to_first();
    assert_eq!(cursor.key(), b"200");
    // What is written later is seen by all who may.
    put(300..301, "new");
    for _ in 0..3 {
        assert_eq!(db.iter().expect("entries").count(), 1);
        assert_eq!(old.iter().expect("entries").count(), 400);
        assert_eq!(snapshot.iter().expect("entries").count(), 200);
    }
    drop((cursor, snapshot, old));
    db.wait_idle().expect("idle");
    db.close().expect("closes");
}

/// Removes everything, and notes of which keys it was asked.
#[derive(Clone, Default)]
struct RemovesAll(Arc<std::sync::Mutex<BTreeSet<Vec<u8>>>>);

impl CompactionFilter for RemovesAll {
    fn filter(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
        self.0.lock().expect("no panic").insert(key.to_vec());
        FilterDecision::Remove
    }
}

/// A filter for all of a database does not take the settings of keyspaces away.
#[test]
fn a_filter_is_not_asked_about_the_catalogue() {
    let (filter, env) = (RemovesAll::default(), Arc::new(MemEnv::new()));
    let expiring = KeyspaceOptions::new().expiry(true);
    let db = Db::open(PATH, options(filter.clone()).env(env.clone())).expect("opens");
    let sessions = db.create_keyspace("s", expiring.clone()).expect("a keyspace");
    sessions.put_with("k", "v", PutOptions::new().ttl(Duration::from_secs(60))).expect("a put");
    db.put("k", "v").expect("a put");
    force(&db);
    let asked = filter.0.lock().expect("no panic").clone();
    assert_eq!(asked, [b"!s!k".to_vec(), b"k".to_vec()].into());
    drop(sessions);
    db.close().expect("closes");
    let db = Db::open(PATH, options(ByFirst).env(env)).expect("opens again");
    let sessions = db.keyspace_with("s", &expiring).expect("with its settings");
    assert_eq!(sessions.iter().expect("entries").count(), 0);
}

/// Its compactions fail.
struct Panics;

impl CompactionFilter for Panics {
    fn filter(&self, _key: &[u8], _value: &[u8]) -> FilterDecision {
        panic!("made to panic")
    }
}

#[test]
fn a_filter_that_panics_fails_its_compaction_and_nothing_is_lost() {
    let env = Arc::new(MemEnv::new());
    let db = Db::open(PATH, options(Panics).env(env.clone())).expect("opens");
    for number in 0..100 {
        db.put(format!("{number:03}"), "value").expect("a put");
    }
    let all = CompactOptions::new().force(true);
    let error = db.compact_range_with::<&[u8]>(.., all).expect_err("the filter panics");
    assert!(error.to_string().contains("the compaction filter panicked"), "{error}");
    assert_eq!(db.iter().expect("entries").count(), 100);
    drop(db);
    let db = Db::open(PATH, options(ByFirst).env(env)).expect("opens again");
    force(&db);
    assert_eq!(db.iter().expect("entries").count(), 100);
}

/// It fails, as every write does, and does not take that for a keyspace of another thread.
#[test]
fn no_keyspace_is_made_where_a_filter_has_stopped_writes() {
    let db = Db::open(PATH, options(Panics).env(Arc::new(MemEnv::new()))).expect("opens");
    let failed =
        (0..100_000).find_map(|number| db.put(format!("{:03}", number % 100), [0; 10_000]).err());
    assert_eq!(failed.expect("writes stop").kind(), ErrorKind::InvalidArgument);
    let _watchdog = Watchdog::new(Duration::from_secs(60), "a keyspace where writes fail");
    let outcome = db.open_or_create_keyspace("new", KeyspaceOptions::new());
    assert_eq!(outcome.expect_err("an error").kind(), ErrorKind::InvalidArgument);
}

/// What a filter left is an ordinary database.
#[test]
fn a_filtered_database_goes_to_leveldb_and_back() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let mut rng = Rng::new(1);
    for round in 0..4 {
        let db = Db::open(&path, options(ByFirst)).expect("opens");
        for _ in 0..3_000 {
            let key = format!("{:04}", rng.below(1_000));
            let first = *rng.pick(b"kro");
            db.put(key, [&[first][..], &rng.bytes(50)].concat()).expect("a put");
        }
        db.flush().expect("a flush");
        if round % 2 == 1 {
            force(&db);
        }
        db.wait_idle().expect("idle");
        let expected = read_all(&db).expect("entries");
        assert!(round % 2 == 0 || expected.iter().all(|(_, value)| b"kn".contains(&value[0])));
        db.close().expect("closes");
        let peer_options = PeerOptions::default();
        assert!(peer.entries(&path, &peer_options).expect("LevelDB reads") == expected);
        peer.simple("compact", &path, &peer_options).expect("LevelDB compacts");
        assert!(peer.entries(&path, &peer_options).expect("LevelDB reads") == expected);
    }
    assert!(Path::new(&path).exists());
}
