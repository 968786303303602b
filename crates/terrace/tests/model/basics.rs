//! The first things anybody does with a database.

use std::collections::BTreeMap;
use std::time::Duration;

use terrace::{
    CompactOptions, Compression, Db, Env, ErrorKind, Event, EventListener, LockMode, MemEnv,
    Options, ReadOptions, WriteBatch, WriteOptions,
};
use terrace_testkit::hooked::Hooked;
use terrace_testkit::watchdog::Watchdog;

fn options() -> Options {
    Options::new().create_if_missing(true).write_buffer_size(64 << 10)
}

#[test]
fn values_survive_memtables_tables_and_reopening() {
    let dir = tempfile::tempdir().expect("a directory");
    let key = |n: u32| format!("key{n:06}");
    let db = Db::open(dir.path(), options()).expect("opens");
    for n in 0..20_000u32 {
        db.put(key(n * 7919 % 20_000), format!("value {n}")).expect("puts");
    }
    for n in (0..20_000).step_by(3) {
        db.delete(key(n)).expect("deletes");
    }
    let check = |db: &Db| {
        for n in 0..20_000u32 {
            let found = db.get(key(n * 7919 % 20_000)).expect("gets");
            let expected = (n * 7919 % 20_000 % 3 != 0).then(|| format!("value {n}").into_bytes());
            assert_eq!(found, expected, "{n}");
        }
        let keys: Vec<_> =
            db.iter().expect("iterates").map(|entry| entry.expect("reads").0).collect();
        let expected: Vec<_> =
            (0..20_000).filter(|n| n % 3 != 0).map(|n| key(n).into_bytes()).collect();
        assert_eq!(keys, expected);
        let backwards: Vec<_> =
            db.iter().expect("iterates").rev().map(|entry| entry.expect("reads").0).collect();
        assert!(backwards.iter().rev().eq(&expected));
    };
    check(&db);
    db.compact_range::<&[u8]>(..).expect("compacts");
    check(&db);
    db.close().expect("closes");
    for _ in 0..3 {
        let db = Db::open(dir.path(), options()).expect("opens again");
        check(&db);
    }
    check(&Db::open(dir.path(), Options::new().read_only(true)).expect("opens read-only"));
}

#[test]
fn a_read_from_memory_tells_what_memory_tells() {
    let dir = tempfile::tempdir().expect("a directory");
    let filtered = || options().table_filter_bits(10);
    let db = Db::open(dir.path(), filtered()).expect("opens");
    let in_memory = |db: &Db, key: &str, options: &ReadOptions| {
        let mut value = b"as it was".to_vec();
        let found = db.get_in_memory(key, &mut value, options).expect("reads");
        (found, String::from_utf8(value).expect("text"))
    };
    let (now, found) = (ReadOptions::new(), |value: &str| (Some(true), value.to_owned()));
    let (absent, unknown) = ((Some(false), "as it was".into()), (None, "as it was".into()));
    db.put("a", "1").expect("puts");
    let snapshot = db.snapshot();
    db.put("a", "2").expect("puts");
    let then = ReadOptions::new().snapshot(&snapshot);
    assert_eq!(in_memory(&db, "a", &now), found("2"));
    assert_eq!(in_memory(&db, "a", &then), found("1"));
    assert_eq!(in_memory(&db, "b", &now), absent);
    db.put("c", "3").expect("puts");
    db.flush().expect("flushes");
    db.close().expect("closes");

    let db = Db::open(dir.path(), filtered()).expect("opens again");
    assert_eq!(in_memory(&db, "a", &now), unknown, "its table is not open");
    assert_eq!(in_memory(&db, "z", &now), absent, "no table has it in its range");
    db.get_with("a", &ReadOptions::new().fill_cache(false)).expect("reads");
    assert_eq!(in_memory(&db, "a", &now), unknown, "its block is not in the cache");
    assert_eq!(in_memory(&db, "b", &now), absent, "the filter knows");
    db.get("a").expect("reads");
    assert_eq!(in_memory(&db, "a", &now), found("2"));
    db.delete("a").expect("deletes");
    assert_eq!(in_memory(&db, "a", &now), absent);
    let stays = db.clone();
    db.close().expect("closes");
    let error = stays.get_in_memory("a", &mut Vec::new(), &now).expect_err("it is closed");
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[test]
fn a_memory_database_needs_no_disk() {
    let env = std::sync::Arc::new(MemEnv::new());
    let db = Db::open("/db", options().env(env.clone())).expect("opens");
    let mut batch = WriteBatch::new();
    batch.put("a", "1");
    batch.put("b", "2");
    batch.delete("a");
    db.write_with(&batch, WriteOptions::sync()).expect("writes");
    let before = db.snapshot();
    db.put("b", "3").expect("puts");
    assert_eq!(db.get("a").expect("gets"), None);
    assert_eq!(db.get("b").expect("gets").as_deref(), Some(&b"3"[..]));
    let old = db.get_with("b", &ReadOptions::new().snapshot(&before)).expect("gets");
    assert_eq!(old.as_deref(), Some(&b"2"[..]));
    drop((before, db));
    let db = Db::open("/db", options().env(env)).expect("opens again");
    assert_eq!(db.get("b").expect("gets").as_deref(), Some(&b"3"[..]));
}

#[test]
fn properties_and_sizes_tell_where_the_data_is() {
    let env = std::sync::Arc::new(MemEnv::new());
    let db = Db::open("/db", options().env(env)).expect("opens");
    // Less than a write buffer holds: nothing is written before it is asked for.
    for n in 0..40u8 {
        db.put([b'k', 0, n], vec![n; 1000]).expect("puts");
    }
    assert_eq!(db.approximate_sizes(&[(b"a", b"z")]).expect("sizes"), [0], "only in memory");
    let property = |name: &str| db.property(&format!("leveldb.{name}"));
    assert!(
        property("approximate-memory-usage").expect("a text").parse::<u64>().expect("a number") > 0
    );
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.put([b'k', 0, 200], "later").expect("puts");
    db.flush().expect("flushes");
    let files: usize = (0..7)
        .map(|level| property(&format!("num-files-at-level{level}")).expect("a level"))
        .map(|files| files.parse::<usize>().expect("a number"))
        .sum();
    assert_eq!(files, db.files().len());
    assert!(property("stats").expect("a text").contains("Compactions"));
    let tables = property("sstables").expect("a text");
    assert!(
        tables.contains("--- level 6 ---") && tables.contains("['k\\x00\\x00' @ 1 : 1 .. "),
        "{tables}"
    );
    for unknown in [
        "num-files-at-level7",
        "num-files-at-level",
        "num-files-at-level+1",
        "num-files-at-levelx",
        "none",
        "",
    ] {
        assert_eq!(property(unknown), None, "{unknown}");
    }
    assert_eq!(db.property("stats"), None);
    let sizes = db
        .approximate_sizes(&[(b"a", b"z"), (b"x", b"z"), (b"z", b"a"), (b"k\x00\x14", b"z")])
        .expect("sizes");
    assert!(sizes[0] > 0 && sizes[1..3] == [0, 0] && sizes[3] < sizes[0], "{sizes:?}");
    assert!(db.verify().expect("verifies").is_clean());
    db.clone().close().expect("closes");
    assert!(db.approximate_sizes(&[(b"a", b"z")]).is_err());
}

/// So that a changed option, such as a compression, reaches tables that no compaction would touch.
#[test]
fn a_forced_compaction_rewrites_the_bottommost_level_of_its_range() {
    let env = MemEnv::new();
    let open = |compression| {
        let options = options()
            .env(std::sync::Arc::new(env.clone()))
            .max_file_size(1 << 20)
            .compression(compression);
        Db::open("/db", options).expect("opens")
    };
    let key = |n: u32| format!("key{n:06}").into_bytes();
    let db = open(Compression::Snappy);
    (0..40_000).for_each(|n| db.put(key(n), [n as u8; 100]).expect("puts"));
    db.compact_range::<&[u8]>(..).expect("compacts");
    let files =
        || db.files().into_iter().map(|file| (file.number, file.size)).collect::<BTreeMap<_, _>>();
    let before = files();
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.compact_range_with::<&[u8]>(.., CompactOptions::new()).expect("compacts");
    assert_eq!(files(), before, "nothing has to be rewritten");
    db.close().expect("closes");

    let db = open(Compression::None);
    let files =
        || db.files().into_iter().map(|file| (file.number, file.size)).collect::<BTreeMap<_, _>>();
    let bytes = |files: &BTreeMap<u64, u64>| files.values().sum::<u64>();
    let force = CompactOptions::new().force(true);
    db.compact_range_with(key(0)..=key(1), force).expect("compacts");
    let partly = files();
    let kept = before.keys().filter(|number| partly.contains_key(number)).count();
    assert!(kept > 0 && kept < before.len(), "{kept} of {} tables are left", before.len());
    db.compact_range_with::<&[u8]>(.., force).expect("compacts");
    let after = files();
    assert!(partly.keys().all(|number| !after.contains_key(number)), "{after:?}");
    assert!(
        bytes(&after) > 2 * bytes(&before) && bytes(&after) > 4_000_000,
        "{before:?}, {after:?}"
    );
    let entries = db.iter().expect("iterates").map(|entry| entry.expect("reads"));
    assert!(entries.eq((0..40_000).map(|n| (key(n), vec![n as u8; 100]))));
    assert!(db.verify().expect("checks").is_clean());
}

#[test]
fn destroying_takes_what_is_the_databases_own() {
    let env = std::sync::Arc::new(MemEnv::new());
    let options = || options().env(env.clone());
    let fs: &dyn Env = env.as_ref();
    let path = std::path::Path::new("/db");
    terrace::destroy(path, &options()).expect("nothing is there");
    fs.create_dir(path, 0o755).expect("creates");
    terrace::destroy(path, &options()).expect("an empty directory");
    assert_eq!(fs.list(path).expect_err("removed").kind(), ErrorKind::NotFound);
    let db = Db::open(path, options()).expect("opens");
    db.put("a", "1").expect("puts");
    db.flush().expect("flushes");
    db.close().expect("closes");
    let foreign =
        fs.create(&path.join("notes.txt"), terrace::CreateOptions { mode: 0o644, exclusive: true });
    foreign.expect("creates").close().expect("closes");
    terrace::destroy(path, &options()).expect("destroys");
    assert_eq!(fs.list(path).expect("lists"), ["notes.txt"]);
    terrace::destroy(path, &options()).expect("nothing of a database is there");
    fs.remove(&path.join("notes.txt")).expect("removes");
    Db::open(path, options()).expect("opens").close().expect("closes");
    terrace::destroy(path, &options()).expect("destroys");
    assert!(!fs.exists(path).expect("looks"));
}

#[test]
fn a_database_that_is_not_there_leaves_no_trace() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["LOG", "LOG.old", "notes.txt"] {
        std::fs::write(dir.path().join(name), "somebody's").expect("writes");
    }
    for (options, reason) in [
        (Options::new(), "create_if_missing is not set"),
        (Options::new().read_only(true), "a read-only open creates none"),
        (Options::new().read_only(true).create_if_missing(true), "a read-only open creates none"),
    ] {
        let error = Db::open(dir.path(), options).expect_err("there is none");
        assert!(
            error.kind() == ErrorKind::InvalidArgument && error.message().ends_with(reason),
            "{error}"
        );
        let mut names: Vec<_> = std::fs::read_dir(dir.path())
            .expect("lists")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["LOG", "LOG.old", "notes.txt"]);
    }
}

#[test]
fn the_log_for_people_has_no_alarm_without_a_fire() {
    let dir = tempfile::tempdir().expect("a directory");
    for round in 0..3 {
        let db = Db::open(dir.path(), Options::new().create_if_missing(true)).expect("opens");
        assert_eq!(db.path(), dir.path());
        db.put("key", round.to_string()).expect("puts");
        if round == 0 {
            db.flush().expect("flushes");
        }
        db.close().expect("closes");
        let log = std::fs::read_to_string(dir.path().join("LOG")).expect("reads");
        assert!(log.contains("opened: ") && !log.contains("could not"), "{log}");
    }
}

#[test]
fn a_snapshot_is_read_through_every_door() {
    let db = Db::open("/db", options().env(std::sync::Arc::new(MemEnv::new()))).expect("opens");
    db.put("a", "1").expect("puts");
    let past = ReadOptions::new().snapshot(&db.snapshot());
    db.delete("a").expect("deletes");
    assert!(
        db.contains_key_with("a", &past).expect("looks") && !db.contains_key("a").expect("looks")
    );
    assert_eq!(
        (db.iter_with(&past).expect("reads").count(), db.iter().expect("reads").count()),
        (1, 0)
    );
}

/// Between the two there could be a second writer of one directory.
#[test]
fn destroying_removes_the_lock_before_it_lets_go() {
    let env = std::sync::Arc::new(Hooked::default());
    let options = || options().env(env.clone());
    Db::open("/db", options()).expect("opens").close().expect("closes");
    let (looked, tells) = std::sync::mpsc::channel();
    let other = env.clone();
    env.once_at("remove LOCK", move |path| {
        let held = other.lock(path, LockMode::Exclusive).map(drop).map_err(|error| error.kind());
        looked.send(held).expect("somebody listens");
    });
    terrace::destroy("/db", &options()).expect("destroys");
    assert_eq!(tells.recv().expect("looked"), Err(ErrorKind::Busy));
}

#[test]
fn a_clock_that_goes_back_does_no_harm() {
    let env = std::sync::Arc::new(Hooked::default());
    let db =
        Db::open("/db", options().env(env.clone()).write_buffer_size(64 << 10)).expect("opens");
    env.set_the_clock_back();
    for number in 0..5_000u32 {
        db.put(number.to_be_bytes(), [7; 100]).expect("puts");
    }
    db.compact_range::<&[u8]>(..).expect("compacts");
    assert_eq!(db.iter().expect("reads").count(), 5_000);
    db.close().expect("closes");
}

/// Panics at one key, as long as it is told to.
struct PanicsAt(std::sync::atomic::AtomicBool);

impl terrace::Comparator for PanicsAt {
    fn name(&self) -> &str {
        "panics"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        let is_on = self.0.load(std::sync::atomic::Ordering::SeqCst);
        assert!(!(is_on && (a == b"b" || b == b"b")), "made to panic");
        a.cmp(b)
    }
}

#[test]
fn a_comparator_that_panics_in_a_write_leaves_no_half_batch() {
    let env = std::sync::Arc::new(MemEnv::new());
    let comparator = std::sync::Arc::new(PanicsAt(true.into()));
    let options = || options().env(env.clone()).comparator(comparator.clone());
    let db = Db::open("/db", options()).expect("opens");
    db.put("0", "old").expect("puts");
    let mut batch = WriteBatch::new();
    for key in ["a", "b", "c"] {
        batch.put(key, "new");
    }
    let write = || db.write(&batch);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).is_err(), "it panicked");
    comparator.0.store(false, std::sync::atomic::Ordering::SeqCst);
    let refused = |result: terrace::Result<()>| {
        assert!(result.is_err_and(|error| error.message().contains("panicked")))
    };
    refused(db.put("d", "new"));
    refused(db.flush());
    refused(db.compact_range::<&[u8]>(..));
    assert_eq!(
        (db.get("a").expect("gets"), db.get("0").expect("gets").as_deref()),
        (None, Some(&b"old"[..]))
    );
    drop(db);
    // The batch is in the log as a whole.
    let db = Db::open("/db", options()).expect("opens");
    let keys: Vec<_> = db.iter().expect("iterates").map(|entry| entry.expect("reads").0).collect();
    assert_eq!(keys, [b"0", b"a", b"b", b"c"]);
}

/// Panics at the end of a compaction.
struct Panics;

impl EventListener for Panics {
    fn on_event(&self, event: &Event) {
        assert!(!matches!(event, Event::CompactionFinished { .. }), "made to panic");
    }
}

#[test]
fn a_listener_that_panics_in_a_manual_compaction_blocks_no_caller() {
    let env = std::sync::Arc::new(MemEnv::new());
    let listener: std::sync::Arc<dyn EventListener> = std::sync::Arc::new(Panics);
    let db = Db::open("/db", options().env(env).listener(Some(listener))).expect("opens");
    for _ in 0..2 {
        for value in ["1", "2"] {
            db.put("a", value).expect("puts");
            db.flush().expect("flushes");
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            db.compact_range::<&[u8]>(..)
        }));
        assert!(outcome.is_err(), "it panicked");
    }
    db.wait_idle().expect("no work");
    db.close().expect("closes");
}

/// Panics whatever it is told.
struct AlwaysPanics;

impl EventListener for AlwaysPanics {
    fn on_event(&self, _: &Event) {
        panic!("made to panic");
    }
}

#[test]
fn a_listener_that_panics_in_the_background_blocks_no_caller() {
    let watchdog = Watchdog::new(Duration::from_secs(120), "a_listener_that_panics");
    let env = std::sync::Arc::new(MemEnv::new());
    let listener: std::sync::Arc<dyn EventListener> = std::sync::Arc::new(AlwaysPanics);
    let db = Db::open("/db", options().env(env).listener(Some(listener))).expect("opens");
    // The table is there before the listener is told of it.
    let error = std::iter::repeat_with(|| db.put("a", "1").and_then(|()| db.flush()))
        .find_map(Result::err)
        .expect("it panicked");
    assert!(error.message().contains("panic"), "{error}");
    // All return, whatever: the failure may have healed meanwhile.
    let _ = (db.flush(), db.wait_idle(), db.put("b", "1"), db.close());
    drop(watchdog);
}
