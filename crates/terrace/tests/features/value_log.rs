//! Values in value files: what is read, what goes, what is refused.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrace::{
    CompactOptions, CompactionFilter, Db, Entries, ErrorKind, FilterDecision, KeyspaceOptions,
    MemEnv, Options, ReadOptions, repair, verify,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, PowerLoss, SimFs};
use terrace_testkit::watchdog::Watchdog;

pub(crate) const THRESHOLD: usize = 1000;

pub(crate) fn options(env: &Arc<MemEnv>) -> Options {
    Options::new()
        .create_if_missing(true)
        .env(env.clone())
        .write_buffer_size(64 << 10)
        .value_log(Some(THRESHOLD))
}

pub(crate) fn open(env: &Arc<MemEnv>) -> Db {
    Db::open("/db", options(env)).expect("opens")
}

pub(crate) fn value(number: usize) -> Vec<u8> {
    format!("{number}-").into_bytes().into_iter().cycle().take(THRESHOLD + number * 37).collect()
}

pub(crate) fn key(number: usize) -> String {
    format!("key{number:04}")
}

pub(crate) fn fill(db: &Db, numbers: impl Iterator<Item = usize>) {
    numbers.for_each(|number| db.put(key(number), value(number)).expect("puts"));
    db.flush().expect("flushes");
}

/// Names of files, and their bytes together.
pub(crate) fn value_files(env: &MemEnv) -> (Vec<String>, usize) {
    use terrace::Env;
    let mut names = env.list(Path::new("/db")).expect("lists");
    names.retain(|name| name.ends_with(".vlog"));
    names.sort();
    let size = |name: &String| env.read(Path::new("/db").join(name)).map_or(0, |bytes| bytes.len());
    let bytes = names.iter().map(size).sum();
    (names, bytes)
}

pub(crate) fn rewrite(db: &Db) {
    db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true)).expect("compacts");
    db.wait_idle().expect("waits");
}

pub(crate) fn check(db: &Db, numbers: &[usize]) {
    for &number in numbers {
        assert_eq!(db.get(key(number)).expect("reads"), Some(value(number)));
        let pinned = db.get_pinned(key(number)).expect("reads").expect("is there");
        assert_eq!(*pinned, *value(number));
    }
    let keys: Vec<_> = numbers.iter().map(|&number| key(number)).collect();
    let values: Vec<_> = numbers.iter().map(|&number| Some(value(number))).collect();
    assert_eq!(db.multi_get(&keys).expect("reads"), values);
    let entries: Vec<_> =
        numbers.iter().map(|&number| (key(number).into_bytes(), value(number))).collect();
    let forward: Vec<_> = db.iter().expect("scans").map(|entry| entry.expect("reads")).collect();
    assert_eq!(forward, entries);
    let mut backward: Vec<_> =
        db.iter().expect("scans").rev().map(|entry| entry.expect("reads")).collect();
    backward.reverse();
    assert_eq!(backward, entries);
    let mut cursor = db.cursor().expect("a cursor");
    for (at, (key, value)) in entries.iter().enumerate() {
        cursor.seek(key);
        assert_eq!(cursor.entry(), Some((&key[..], &value[..])));
        cursor.prev();
        assert_eq!(cursor.valid(), at > 0);
        if at > 0 {
            assert_eq!(cursor.value(), entries[at - 1].1);
            cursor.next();
            assert_eq!(cursor.value(), *value);
        }
        cursor.status().expect("reads");
    }
}

#[test]
fn large_values_lie_in_value_files_and_are_read_from_there() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    let all: Vec<_> = (0..100).collect();
    fill(&db, 0..50);
    drop(db);
    let db = open(&env);
    fill(&db, (50..100).rev());
    check(&db, &all);
    let (names, bytes) = value_files(&env);
    let large: usize = all.iter().map(|&number| value(number).len()).sum();
    assert!(names.len() >= 2 && bytes > large && bytes < large + 10_000, "{names:?}, {bytes}");
    let tables: u64 = db.files().iter().map(|table| table.size).sum();
    assert!(tables < 20_000, "{tables} bytes of tables");
    rewrite(&db);
    check(&db, &all);
    assert_eq!(value_files(&env), (names, bytes), "a compaction moves pointers only");
    assert!(db.verify().expect("checks").problems.is_empty());
    db.close().expect("closes");
    assert!(verify("/db", &options(&env)).expect("checks").problems.is_empty());
    // With the option or without.
    for options in [options(&env).value_log(None), options(&env).read_only(true), options(&env)] {
        check(&Db::open("/db", options).expect("opens"), &all);
    }
}

#[test]
fn a_small_value_makes_no_value_file() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    db.put("a", vec![1; THRESHOLD - 1]).expect("puts");
    rewrite(&db);
    assert_eq!(value_files(&env).0.len(), 0);
    db.put("a", vec![1; THRESHOLD]).expect("puts");
    db.flush().expect("flushes");
    assert_eq!(value_files(&env).0.len(), 1);
}

#[test]
fn value_files_that_are_mostly_garbage_go_and_snapshots_keep_them() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    fill(&db, 0..40);
    let before = value_files(&env);
    let snapshot = db.snapshot();
    let mut cursor = db.cursor().expect("a cursor");
    cursor.seek(key(7));
    // Nine in ten.
    for number in (0..40).filter(|number| number % 10 > 0) {
        db.delete(key(number)).expect("deletes");
    }
    rewrite(&db);
    assert_eq!(value_files(&env), before, "the snapshot needs them");
    assert_eq!(snapshot.get(key(7)).expect("reads"), Some(value(7)));
    drop(snapshot);
    rewrite(&db);
    assert_eq!(cursor.value(), value(7), "its files are kept");
    cursor.next();
    assert_eq!(cursor.value(), value(8));
    // In a file that was not open until now.
    cursor.seek(key(39));
    cursor.status().expect("its files are kept");
    assert_eq!(cursor.value(), value(39));
    drop(cursor);
    db.wait_idle().expect("waits");
    check(&db, &[0, 10, 20, 30]);
    let (names, bytes) = value_files(&env);
    assert!(names.len() == 1 && bytes < before.1 / 4, "{names:?}, {bytes} of {}", before.1);
    assert!(db.verify().expect("checks").problems.is_empty());
    db.close().expect("closes");
    check(&open(&env), &[0, 10, 20, 30]);
}

/// Without the option compactions bring values back, and the database is plain in the end.
#[test]
fn values_come_back_into_tables() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    fill(&db, 0..40);
    db.close().expect("closes");
    let db = Db::open("/db", options(&env).value_log(None)).expect("opens");
    fill(&db, 40..50);
    (0..40).filter(|number| number % 3 > 0).for_each(|number| {
        db.delete(key(number)).expect("deletes");
    });
    rewrite(&db);
    let left: Vec<_> = (0..50).filter(|&number| number >= 40 || number % 3 == 0).collect();
    check(&db, &left);
    assert_eq!(value_files(&env).0.len(), 0);
    db.close().expect("closes");
    let manifest = newest_manifest(&env);
    assert!(!contains(&manifest, b"terrace.extended."), "it is plain");
    check(&open(&env), &left);
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

fn newest_manifest(env: &MemEnv) -> Vec<u8> {
    let current = env.read("/db/CURRENT").expect("CURRENT");
    let name = String::from_utf8(current).expect("text");
    env.read(Path::new("/db").join(name.trim_end())).expect("a MANIFEST")
}

#[test]
fn a_database_is_extended_from_its_first_value_file_on() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    db.put("small", "1").expect("puts");
    db.flush().expect("flushes");
    assert!(!contains(&newest_manifest(&env), b"terrace.extended."));
    fill(&db, 0..1);
    assert!(contains(&newest_manifest(&env), b"terrace.extended.leveldb.BytewiseComparator"));
    db.delete(key(0)).expect("deletes");
    rewrite(&db);
    db.close().expect("closes");
    assert!(!contains(&newest_manifest(&env), b"terrace.extended."));
}

#[test]
fn a_checkpoint_has_the_value_files() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    fill(&db, 0..20);
    db.put(key(20), value(20)).expect("puts");
    let report = db.checkpoint("/copy").expect("copies");
    assert!(report.value_files > 0 && report.value_bytes > 20 * THRESHOLD as u64, "{report:?}");
    rewrite(&db);
    (0..20).for_each(|number| db.delete(key(number)).expect("deletes"));
    rewrite(&db);
    let copy = Db::open("/copy", options(&env)).expect("opens");
    check(&copy, &(0..=20).collect::<Vec<_>>());
    assert!(copy.verify().expect("checks").problems.is_empty());
}

/// Flips a bit of the value of `key`, in the first value file.
fn damage_value(env: &MemEnv, key: &[u8]) {
    let path = Path::new("/db").join(&value_files(env).0[0]);
    let mut bytes = env.read(&path).expect("reads");
    let at = bytes.windows(key.len()).position(|window| window == key).expect("its record");
    bytes[at + 100] ^= 1;
    env.write(&path, bytes);
}

#[test]
fn a_flipped_bit_of_a_value_is_told_and_repaired() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    fill(&db, 0..20);
    db.close().expect("closes");
    let (names, _) = value_files(&env);
    damage_value(&env, key(10).as_bytes());
    let db = open(&env);
    let error = db.get(key(10)).expect_err("is damaged");
    assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains(&names[0]));
    assert_eq!(db.get(key(9)).expect("reads"), Some(value(9)));
    let mut cursor = db.cursor().expect("a cursor");
    cursor.seek(key(9));
    cursor.next();
    assert!(!cursor.valid() && cursor.status().is_err());
    cursor.seek_to_last();
    assert_eq!(cursor.value(), value(19));
    // Nothing that is not asked for is read.
    cursor.seek_for_prev("key0009z");
    assert_eq!(cursor.value(), value(9));
    let bounds = ReadOptions::new().lower_bound(key(7)).upper_bound(key(10));
    let mut bounded = db.cursor_with(&bounds).expect("a cursor");
    bounded.seek_to_first();
    (7..10).for_each(|number| {
        assert_eq!(bounded.value(), value(number));
        bounded.next();
    });
    assert!(!bounded.valid());
    bounded.status().expect("nothing failed");
    drop(bounded);
    let count = |entries: Entries| entries.collect::<Result<Vec<_>, _>>().expect("reads").len();
    assert_eq!(count(db.range(key(7)..key(10)).expect("a range")), 3);
    assert_eq!(count(db.range(key(7)..=key(9)).expect("a range")), 3);
    assert_eq!(count(db.prefix("key000").expect("a range")), 10);
    let transaction = db.transaction();
    let mut after = transaction.range(key(11)..key(13)).rev().map(|entry| entry.expect("reads"));
    (11..13).rev().for_each(|number| {
        assert_eq!(after.next(), Some((key(number).into_bytes(), value(number))));
    });
    assert_eq!(after.next(), None);
    drop(after);
    transaction.rollback();
    let problems = db.verify().expect("checks").problems;
    assert!(problems.len() == 1 && problems[0].message.contains("key0010"), "{problems:?}");
    drop(cursor);
    db.close().expect("closes");
    let report = repair("/db", &options(&env)).expect("repairs");
    assert!(!report.problems.is_empty());
    let left: Vec<_> = (0..20).filter(|&number| number != 10).collect();
    check(&open(&env), &left);
}

#[test]
fn whether_a_key_is_there_is_told_beside_a_damaged_value() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    fill(&db, 0..20);
    db.close().expect("closes");
    damage_value(&env, key(10).as_bytes());
    let db = open(&env);
    assert_eq!(db.get(key(10)).expect_err("is damaged").kind(), ErrorKind::Corruption);
    for (key, is_there) in [(key(10), true), (key(9), true), (key(20), false)] {
        assert_eq!(db.contains_key(&key).expect("tells"), is_there);
        assert_eq!(db.snapshot().contains_key(&key).expect("tells"), is_there);
        assert_eq!(db.transaction().contains_key(&key).expect("tells"), is_there);
    }
    db.delete_range(key(5)..key(15)).expect("deletes");
    check(&db, &(0..5).chain(15..20).collect::<Vec<_>>());
    assert!(!db.contains_key(key(10)).expect("tells"));
}

/// Their names are in keys.
#[test]
fn keyspaces_are_found_made_and_dropped_beside_a_damaged_value() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    // One of the catalogue, and one of another program's.
    let photos = db.create_keyspace("photos", KeyspaceOptions::new()).expect("creates");
    photos.put("1", value(1)).expect("puts");
    db.put("!films!1", value(2)).expect("puts");
    db.flush().expect("flushes");
    drop(photos);
    db.close().expect("closes");
    damage_value(&env, b"!photos!1");
    damage_value(&env, b"!films!1");
    let db = open(&env);
    for name in ["photos", "films"] {
        let keyspace = db.keyspace(name).expect("opens");
        assert_eq!(keyspace.get("1").expect_err("is damaged").kind(), ErrorKind::Corruption);
    }
    assert_eq!(db.keyspaces().expect("lists"), ["films", "photos"]);
    db.create_keyspace("films", KeyspaceOptions::new()).expect_err("is there");
    db.create_keyspace("songs", KeyspaceOptions::new()).expect("creates");
    for name in ["photos", "films"] {
        assert!(db.drop_keyspace(name).expect("drops"));
    }
    assert_eq!(db.keyspaces().expect("lists"), ["songs"]);
}

#[test]
fn a_value_file_of_another_size_is_told_and_repaired() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    fill(&db, 0..20);
    db.close().expect("closes");
    let (names, _) = value_files(&env);
    let path = Path::new("/db").join(&names[0]);
    let whole = env.read(&path).expect("reads");
    let problems = || verify("/db", &options(&env)).expect("checks").problems;
    // As a flush leaves it that was killed.
    env.write(&path, [&whole[..], &[0; 100]].concat());
    assert!(problems().is_empty(), "{:?}", problems());
    check(&open(&env), &(0..20).collect::<Vec<_>>());
    env.write(&path, whole[..whole.len() - 1].to_vec());
    let db = open(&env);
    assert_eq!(db.get(key(19)).expect_err("its end is lost").kind(), ErrorKind::Corruption);
    (0..19).for_each(|number| {
        assert_eq!(db.get(key(number)).expect("reads"), Some(value(number)));
    });
    db.close().expect("closes");
    assert!(problems().iter().any(|problem| problem.file == names[0]), "{:?}", problems());
    let report = repair("/db", &options(&env)).expect("repairs");
    assert!(report.problems.iter().any(|problem| problem.file == names[0]), "{report:?}");
    assert!(problems().is_empty(), "{:?}", problems());
    check(&open(&env), &(0..19).collect::<Vec<_>>());
}

#[test]
fn a_database_without_manifest_is_repaired_with_its_value_files() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    fill(&db, 0..20);
    fill(&db, 20..40);
    db.put(key(40), value(40)).expect("puts");
    db.close().expect("closes");
    env.write("/db/CURRENT", b"nonsense".to_vec());
    use terrace::Env;
    for name in env.list(Path::new("/db")).expect("lists") {
        if name.starts_with("MANIFEST") {
            env.remove(&Path::new("/db").join(name)).expect("removes");
        }
    }
    repair("/db", &options(&env)).expect("repairs");
    check(&open(&env), &(0..=40).collect::<Vec<_>>());
}

/// Nothing is known of its size then.
#[test]
fn a_check_takes_no_failed_look_at_a_value_file_for_its_size() {
    let fs = SimFs::new();
    let options = || Options::new().create_if_missing(true).env(fs.env()).value_log(Some(100));
    let db = Db::open("/db", options()).expect("opens");
    fill(&db, 0..3);
    db.close().expect("closes");
    let check = |fault, forever| {
        let kinds = vec![OpKind::Look];
        let suffix = ".vlog".to_owned();
        fs.set_faults([FaultPlan { kinds, suffix, ..FaultPlan::at(0, fault, forever) }]);
        let report = verify("/db", &options());
        assert!(fs.injected() > 0);
        fs.set_faults(None);
        report
    };
    assert!(check(Fault::Io, false).expect("goes by").problems.is_empty());
    let problems = check(Fault::Io, true).expect("checks the rest").problems;
    assert!(problems.len() == 1 && !problems[0].message.contains("bytes long"), "{problems:?}");
    assert_eq!(check(Fault::NoSpace, true).expect_err("no damage").kind(), ErrorKind::Io);
}

#[test]
fn a_missing_value_file_is_an_error() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    fill(&db, 0..3);
    db.close().expect("closes");
    let (names, _) = value_files(&env);
    use terrace::Env;
    env.remove(&Path::new("/db").join(&names[0])).expect("removes");
    let error = Db::open("/db", options(&env)).map(drop).expect_err("is missing");
    let told = format!("value files that tables point into are missing: {}", names[0]);
    assert!(error.to_string().contains(&told), "{error}");
    let report = verify("/db", &options(&env)).expect("checks");
    assert!(report.problems.iter().any(|problem| problem.file == names[0]), "{report:?}");
}

/// What CURRENT names.
pub(crate) fn manifest_name(fs: &SimFs) -> String {
    let current = fs.contents(Path::new("/db/CURRENT")).expect("a name");
    String::from_utf8(current).expect("a name").trim_end().to_owned()
}

pub(crate) fn simulated(fs: &SimFs) -> Options {
    Options::new().create_if_missing(true).env(fs.env()).value_log(Some(THRESHOLD))
}

/// Whether a failed edit is durable is unknown: what it names is there for an open after a crash, and
/// goes once a fresh MANIFEST does without it.
#[test]
fn a_value_file_whose_edit_failed_stays_until_a_fresh_manifest() {
    for fault in [Fault::Io, Fault::NoSpace, Fault::Short, Fault::Late] {
        let fs = SimFs::new();
        let db = Db::open("/db", simulated(&fs)).expect("opens");
        // So much that the next flush begins a value file.
        db.put("a", vec![1; 1 << 20]).expect("puts");
        fill(&db, 0..1);
        db.delete("a").expect("deletes");
        let suffix = manifest_name(&fs);
        db.put(key(1), value(1)).expect("puts");
        let kinds = vec![OpKind::Append, OpKind::Sync];
        let edit = FaultPlan { kinds, suffix, ..FaultPlan::at(0, fault, false) };
        let kinds = vec![OpKind::Rename];
        let fresh = FaultPlan { kinds, ..FaultPlan::at(0, Fault::Io, true) };
        fs.set_faults([edit, fresh]);
        db.flush().expect_err("the edit fails, and no fresh MANIFEST begins");
        // A reader that ends has obsolete files removed.
        drop(db.cursor());
        let _ = db.wait_idle();
        fs.set_faults(None);
        for (loss, keeps) in [(PowerLoss::PROCESS_ONLY, true), (PowerLoss::STRICT, false)] {
            let killed = fs.power_loss(loss);
            let db = Db::open("/db", simulated(&killed)).expect("opens");
            assert_eq!(db.get(key(0)).expect("reads"), Some(value(0)));
            if keeps {
                check(&db, &[0, 1]);
            }
        }
        fill(&db, 2..3);
        db.wait_idle().expect("waits");
        check(&db, &[0, 1, 2]);
        let names = fs.names(Path::new("/db"));
        let values = names.iter().filter(|name| name.ends_with(".vlog")).count();
        assert_eq!(values, db.stats().value_files, "{names:?}");
    }
}

/// What a record has beside its value is no garbage.
#[test]
fn short_values_are_not_copied_for_ever() {
    let env = Arc::new(MemEnv::new());
    let db = Db::open("/db", options(&env).value_log(Some(1))).expect("opens");
    (0..300).for_each(|number| db.put(key(number), "v").expect("puts"));
    db.flush().expect("flushes");
    let before = value_files(&env);
    assert!(before.1 > 300 * 20);
    let _watchdog = Watchdog::new(Duration::from_secs(60), "values are copied for ever");
    db.wait_idle().expect("comes to rest");
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.wait_idle().expect("comes to rest");
    assert_eq!(value_files(&env), before);
    let stats = db.stats();
    assert_eq!(stats.compaction_bytes_written, 0);
    assert_eq!((stats.value_files, stats.value_bytes_used), (1, 300));
}

/// A few entries of tables are the names of many bytes.
#[test]
fn a_deleted_range_of_large_values_is_free_at_once() {
    let env = Arc::new(MemEnv::new());
    let db = Db::open("/db", options(&env).write_buffer_size(64 << 20)).expect("opens");
    (0..40).for_each(|number| db.put(key(number), vec![1; 1 << 20]).expect("puts"));
    db.flush().expect("flushes");
    let cases = [("few bytes of the range", 8), ("most of them", 40)];
    for (what, end) in cases {
        // A flush or a compaction holds files until it is through.
        db.flush().expect("flushes");
        db.wait_idle().expect("comes to rest");
        let (_, before) = value_files(&env);
        let compacted = db.stats().compaction_bytes_written;
        db.delete_range(key(0)..key(end)).expect("deletes");
        // And so does its own flush, for a moment.
        db.wait_idle().expect("comes to rest");
        let (_, after) = value_files(&env);
        assert_eq!(after == 0, end == 40, "{what}: {after} bytes of {before}");
        assert_eq!(db.stats().compaction_bytes_written, compacted, "{what}: not by the deletion");
    }
    assert_eq!(db.iter().expect("scans").count(), 0);
}

struct Shorten;

impl CompactionFilter for Shorten {
    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        match key.last() {
            Some(b'0') => FilterDecision::Remove,
            Some(b'1') => FilterDecision::Replace(value[..2].to_vec()),
            Some(b'2') => FilterDecision::Replace([value, value].concat()),
            _ => FilterDecision::Keep,
        }
    }
}

#[test]
fn a_compaction_filter_is_shown_values() {
    let env = Arc::new(MemEnv::new());
    let options = options(&env).compaction_filter(Some(Arc::new(Shorten)));
    let db = Db::open("/db", options).expect("opens");
    fill(&db, 0..5);
    let twice = |number| [value(number), value(number)].concat();
    let first = db.get(key(2)).expect("reads");
    assert_eq!(first, Some(value(2)));
    db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true)).expect("compacts");
    let found: Vec<_> = (0..5).map(|number| db.get(key(number)).expect("reads")).collect();
    assert_eq!(found[0], None);
    assert_eq!(found[1].as_deref(), Some(&value(1)[..2]));
    assert!(found[2].as_ref().is_some_and(|value| value.starts_with(&twice(2))));
    assert_eq!(found[3..], [Some(value(3)), Some(value(4))]);
}

/// Loads and what is read of them, ranges deleted, updates and reopens in between.
#[test]
fn value_files_under_everything_else() {
    campaign("value_files_under_everything_else", scaled(200), |seed| {
        let mut rng = Rng::new(seed);
        let env = Arc::new(MemEnv::new());
        let threshold = *rng.pick(&[1, 10, 200]);
        let options = |rng: &mut Rng| {
            let value_log = (!rng.one_in(4)).then_some(threshold);
            options(&env).value_log(value_log).range_delete_batch(*rng.pick(&[0, 4096]))
        };
        let mut db = Db::open("/db", options(&mut rng)).expect("opens");
        let mut model = std::collections::BTreeMap::new();
        for _ in 0..120 {
            let key = |rng: &mut Rng| format!("{:03}", rng.below(300)).into_bytes();
            let value = |rng: &mut Rng| vec![rng.below(256) as u8; rng.below(600)];
            match rng.below(12) {
                0..=4 => {
                    for _ in 0..rng.between(1, 60) {
                        let (key, value) = (key(&mut rng), value(&mut rng));
                        db.put(&key, &value).expect("puts");
                        model.insert(key, value);
                    }
                }
                5 => {
                    let key = key(&mut rng);
                    db.delete(&key).expect("deletes");
                    model.remove(&key);
                }
                6 => {
                    let mut ends = [key(&mut rng), key(&mut rng)];
                    ends.sort();
                    let [from, to] = ends;
                    db.delete_range(from.clone()..to.clone()).expect("deletes");
                    model.retain(|key, _| *key < from || *key >= to);
                }
                7 => {
                    let mut load = db.bulk_load().expect("begins");
                    for _ in 0..rng.between(1, 30) {
                        let (key, value) = (key(&mut rng), value(&mut rng));
                        load.put(&key, &value).expect("puts");
                        model.insert(key, value);
                    }
                    load.finish().expect("loads");
                }
                8 => {
                    let key = key(&mut rng);
                    db.update(&key, |old| Some([old.unwrap_or_default(), b"+"].concat()))
                        .expect("updates");
                    model.entry(key).or_insert_with(Vec::new).push(b'+');
                }
                9 => db.flush().expect("flushes"),
                10 => db.compact_range::<&[u8]>(..).expect("compacts"),
                _ => {
                    db.close().expect("closes");
                    db = Db::open("/db", options(&mut rng)).expect("opens");
                }
            }
            let (at, limit) = (key(&mut rng), rng.between(1, 20));
            let range = (Bound::Included(at.clone()), Bound::Unbounded);
            let found: Vec<_> = db
                .range(range.clone())
                .expect("scans")
                .take(limit)
                .map(|entry| entry.expect("reads"))
                .collect();
            let expected: Vec<_> = model
                .range::<Vec<u8>, _>(range)
                .take(limit)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            assert_eq!(found, expected);
            assert_eq!(db.get(&at).expect("reads"), model.get(&at).cloned());
        }
        let problems = db.verify().expect("checks").problems;
        assert!(problems.is_empty(), "{problems:?}");
        let back: Vec<_> =
            db.iter().expect("scans").rev().map(|entry| entry.expect("reads")).collect();
        let expected: Vec<_> =
            model.iter().rev().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(back, expected);
        Ok(())
    });
}
