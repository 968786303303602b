//! A repair saves what can be saved, brings nothing deleted back, and leaves a healthy database as
//! it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrace::{
    BloomFilterPolicy, Compression, Db, ErrorKind, Logger, Options, Problem, RepairReport,
    WriteBatch, WriteOptions, repair, verify,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::leveldb::{Fill, Peer, PeerOptions};
use terrace_testkit::rng::Rng;
use terrace_testkit::simfs::{Fault, FaultPlan, PowerLoss, SimFs};
use terrace_testkit::workload::{State, Workload};

use crate::database::{Contents, build, contents, contents_of, flip, manifest, names, options};

/// Every file of a directory with its bytes, those in `lost` too.
fn image(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for dir in [dir.to_owned(), dir.join("lost")] {
        let names = if dir.is_dir() { names(&dir, "") } else { Vec::new() };
        for path in names.iter().map(|name| dir.join(name)).filter(|path| path.is_file()) {
            files.insert(path.clone(), fs::read(path).expect("reads"));
        }
    }
    files
}

/// Repairs, checks what every repair promises, and hands back report and contents.
#[track_caller]
fn repaired(dir: &Path, options: Options) -> (RepairReport, Contents) {
    let before = image(dir);
    let report = repair(dir, &options).expect("repairs");
    let after = image(dir);
    // Nothing but CURRENT, LOCK and the log for people has changed in place, and everything that is
    // gone is under `lost`.
    for (path, bytes) in &before {
        let name = path.file_name().expect("a name").to_str().expect("text");
        if ["CURRENT", "LOCK", "LOG", "LOG.old"].contains(&name) {
            continue;
        }
        let there = after.get(path) == Some(bytes);
        let moved = after
            .iter()
            .any(|(other, theirs)| other.starts_with(dir.join("lost")) && theirs == bytes);
        assert!(there || moved, "{name} is gone; {report:#?}");
    }
    for name in &report.moved {
        assert!(dir.join(name).is_file(), "{name}");
    }
    let check = verify(dir, &options).expect("checks");
    assert!(check.is_clean() && check.notes.is_empty(), "{check:#?}\n{report:#?}");
    assert!(report.entries <= check.entries, "{report:?} {check:?}");
    // Repairing again finds nothing to do.
    let image = image_without_lock(dir);
    let again = repair(dir, &options).expect("repairs again");
    assert!(again.problems.is_empty() && again.moved.is_empty(), "{again:#?}");
    assert_eq!(image_without_lock(dir), image);
    (report, contents(dir, options))
}

fn image_without_lock(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    image(dir).into_iter().filter(|(path, _)| !path.ends_with("LOCK")).collect()
}

/// The real LevelDB finds the same.
fn leveldb_agrees(dir: &Path, expected: &Contents) {
    let Some(peer) = Peer::find() else { return };
    let options = PeerOptions { create: false, ..PeerOptions::default() };
    let found: Contents =
        peer.entries(dir, &options).expect("LevelDB opens it").into_iter().collect();
    assert!(
        &found == expected,
        "LevelDB finds {} entries instead of {}",
        found.len(),
        expected.len()
    );
}

/// Whether one of the first `operations` of a workload put this entry.
fn was_ever_put(workload: Workload, operations: u64, key: &[u8], value: &[u8]) -> bool {
    let mut state = State::new(workload);
    (1..=operations).any(|end| {
        state.advance(end);
        state.get(key).is_some_and(|put| put == value)
    })
}

#[test]
fn a_healthy_database_stays_as_it_is() {
    for (seed, options) in
        [(1, options()), (2, options().filter_policy(Some(Arc::new(BloomFilterPolicy::new(10)))))]
    {
        let dir = tempfile::tempdir().expect("a directory");
        let model = build(dir.path(), options.clone(), seed);
        let before = image(dir.path());
        let (report, found) = repaired(dir.path(), options.clone());
        assert!(report.problems.is_empty() && report.moved.is_empty(), "{report:#?}");
        assert!(report.tables > 1 && report.logs == 1 && report.entries > 0);
        assert!(found == model);
        drop(before);
        leveldb_agrees(dir.path(), &model);
    }
}

#[test]
fn a_healthy_database_of_leveldb_comes_out_equal_with_and_without_its_manifest() {
    let Some(peer) = Peer::find() else { return };
    for (seed, kill, keep) in
        [(1, false, true), (2, true, true), (3, false, false), (4, true, false)]
    {
        let dir = tempfile::tempdir().expect("a directory");
        let db = dir.path().join("db");
        let peer_options = PeerOptions { write_buffer: 1 << 16, ..PeerOptions::default() };
        let workload = Workload::new(seed);
        let fill = Fill { workload, from: 0, to: 20_000, batch: 5, sync_every: 100, kill };
        peer.fill(&db, &peer_options, &fill).expect("fills");
        if !keep {
            fs::remove_file(db.join(manifest(&db))).expect("removes");
            fs::remove_file(db.join("CURRENT")).expect("removes");
            fs::remove_file(db.join("LOCK")).expect("removes");
        }
        let report = repair(&db, &options()).expect("repairs");
        assert_eq!(report.problems.is_empty(), keep, "{report:#?}");
        assert!(verify(&db, &options()).expect("checks").is_clean());
        let mut state = State::new(workload);
        state.advance(20_000);
        let expected: Contents =
            state.entries().map(|(key, value)| (key.to_vec(), value)).collect();
        let found = contents(&db, options());
        leveldb_agrees(&db, &found);
        let (returned, kept): (Contents, Contents) =
            found.into_iter().partition(|(key, _)| !expected.contains_key(key));
        assert!(
            kept == expected,
            "seed {seed}: {} entries instead of {}",
            kept.len(),
            expected.len()
        );
        // A kill may leave tables that a compaction has replaced. Only the MANIFEST tells them from
        // the others, and the tombstones of what they hold may be gone: without it deleted entries
        // can return, but none that never was.
        assert!(
            returned.is_empty() || (kill && !keep),
            "seed {seed}: {} entries too many",
            returned.len()
        );
        let made_up = returned
            .iter()
            .filter(|&(key, value)| !was_ever_put(workload, 20_000, key, value))
            .count();
        assert_eq!(made_up, 0, "seed {seed}");
    }
}

#[test]
fn what_the_repair_of_leveldb_spoils_is_made_good() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    let peer_options = PeerOptions { write_buffer: 1 << 16, ..PeerOptions::default() };
    let workload = Workload::new(7);
    let fill = Fill { workload, from: 0, to: 20_000, batch: 5, sync_every: 100, kill: false };
    peer.fill(&db, &peer_options, &fill).expect("fills");
    peer.simple("repair", &db, &peer_options).expect("repairs");
    repair(&db, &options()).expect("repairs");
    peer.verify(&db, &peer_options, workload, 20_000).expect("all is as it was");
}

#[test]
fn current_and_manifest_can_be_done_without() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 7] = [
        ("no CURRENT", |dir| fs::remove_file(dir.join("CURRENT")).expect("removes")),
        ("an empty CURRENT", |dir| fs::write(dir.join("CURRENT"), "").expect("writes")),
        ("no MANIFEST", |dir| fs::remove_file(dir.join(manifest(dir))).expect("removes")),
        ("neither, and no LOCK", |dir| {
            fs::remove_file(dir.join(manifest(dir))).expect("removes");
            fs::remove_file(dir.join("CURRENT")).expect("removes");
            fs::remove_file(dir.join("LOCK")).expect("removes");
        }),
        ("half a MANIFEST", |dir| {
            let path = dir.join(manifest(dir));
            let bytes = fs::read(&path).expect("reads");
            fs::write(path, &bytes[..bytes.len() / 2]).expect("writes");
        }),
        ("a flipped bit at the beginning of the MANIFEST", |dir| flip(dir, &manifest(dir), 20)),
        ("a flipped bit at the end of the MANIFEST", |dir| {
            let name = manifest(dir);
            let length = fs::metadata(dir.join(&name)).expect("stats").len() as usize;
            flip(dir, &name, length - 2);
        }),
    ];
    for (what, damage) in damages {
        let dir = tempfile::tempdir().expect("a directory");
        let model = build(dir.path(), options(), 3);
        damage(dir.path());
        let (report, found) = repaired(dir.path(), options());
        assert!(!report.problems.is_empty(), "{what}");
        assert!(
            found == model,
            "{what}: {} entries instead of {}; {report:#?}",
            found.len(),
            model.len()
        );
        leveldb_agrees(dir.path(), &model);
        // And life goes on.
        let db = Db::open(dir.path(), options()).expect("opens");
        db.put("key00000", "new").expect("puts");
        db.compact_range::<&[u8]>(..).expect("compacts");
        assert_eq!(db.get("key00000").expect("gets").as_deref(), Some(&b"new"[..]), "{what}");
    }
}

#[test]
fn a_manifest_cut_off_between_records_loses_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path();
    let mut model = build(path, options(), 4);
    let db = Db::open(path, options()).expect("opens");
    db.put("first", "1").expect("puts");
    db.flush().expect("flushes");
    let name = manifest(path);
    let short = fs::read(path.join(&name)).expect("reads");
    // Tables and logs that this MANIFEST has never heard of; those it names are gone.
    db.delete("key00001").expect("deletes");
    db.put("second", "2").expect("puts");
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.put("third", "3").expect("puts");
    db.close().expect("closes");
    assert_eq!(manifest(path), name);
    fs::write(path.join(&name), short).expect("writes");
    model.remove(&b"key00001"[..]);
    for (key, value) in [("first", "1"), ("second", "2"), ("third", "3")] {
        model.insert(key.into(), value.into());
    }
    let (_, found) = repaired(path, options());
    assert!(found == model);
    leveldb_agrees(path, &model);
}

/// A database in levels without a log: what is in which table is known exactly.
fn leveled(dir: &Path) -> Contents {
    let db = Db::open(dir, options()).expect("creates");
    let mut model = Contents::new();
    for number in 0..30_000u32 {
        let (key, value) =
            (format!("key{number:06}").into_bytes(), format!("{number}").repeat(20).into_bytes());
        db.put(&key, &value).expect("puts");
        model.insert(key, value);
    }
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.close().expect("closes");
    assert!(names(dir, ".ldb").len() > 1);
    model
}

/// The keys of a table, from another database's point of view: its range in the MANIFEST.
fn range_of(dir: &Path, name: &str) -> (Vec<u8>, Vec<u8>) {
    let db = Db::open(dir, options().read_only(true)).expect("opens");
    let number: u64 = name.trim_end_matches(".ldb").parse().expect("a number");
    let file = db.files().into_iter().find(|file| file.number == number).expect("a table");
    (file.smallest, file.largest)
}

#[test]
fn a_missing_table_costs_its_entries_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let model = leveled(dir.path());
    let name = names(dir.path(), ".ldb").remove(0);
    let (smallest, largest) = range_of(dir.path(), &name);
    fs::remove_file(dir.path().join(&name)).expect("removes");
    let tables = names(dir.path(), ".ldb");
    let (report, found) = repaired(dir.path(), options());
    assert!(
        report
            .problems
            .iter()
            .any(|problem| problem.file == name && problem.message.contains("missing"))
    );
    let left: Contents =
        model.into_iter().filter(|(key, _)| *key < smallest || *key > largest).collect();
    assert!(found == left);
    assert!(
        tables.iter().all(|name| dir.path().join(name).is_file()),
        "the others stay where they are"
    );
    leveldb_agrees(dir.path(), &left);
}

#[test]
fn a_flipped_bit_costs_a_block() {
    let dir = tempfile::tempdir().expect("a directory");
    let model = leveled(dir.path());
    let name = names(dir.path(), ".ldb").remove(0);
    flip(dir.path(), &name, 5000);
    let (report, found) = repaired(dir.path(), options());
    assert_eq!(report.problems.len(), 1, "{report:#?}");
    let message = &report.problems[0].message;
    assert!(report.problems[0].file == name && message.contains("checksum mismatch"), "{message}");
    assert!(report.moved.contains(&format!("lost/{name}")));
    let lost: Vec<_> = model.keys().filter(|key| !found.contains_key(*key)).collect();
    assert!(!lost.is_empty() && lost.len() < 30, "{} entries", lost.len());
    assert!(found.iter().all(|(key, value)| model.get(key) == Some(value)));
    // One damaged range, which the report names.
    let of = |key: &Vec<u8>| String::from_utf8(key.clone()).expect("text");
    let between: Vec<_> = model.range(lost[0].clone()..=lost[lost.len() - 1].clone()).collect();
    assert_eq!(between.len(), lost.len());
    let quoted: Vec<_> = message.split('"').collect();
    let (after, up_to) = (quoted[1].to_owned(), quoted[3].to_owned());
    assert!(after < of(lost[0]) && up_to >= of(lost[lost.len() - 1]), "{message}");
    leveldb_agrees(dir.path(), &found);
}

#[test]
fn a_lost_filter_index_or_footer_costs_nothing() {
    let filtered = || options().filter_policy(Some(Arc::new(BloomFilterPolicy::new(10))));
    for (seed, options) in [(11, filtered()), (12, filtered().compression(Compression::Snappy))] {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path();
        let model = build(path, options.clone(), seed);
        for from_end in [3, 46, 60, 130, 200, 900] {
            let name = names(path, ".ldb")
                .into_iter()
                .max_by_key(|name| fs::metadata(path.join(name)).unwrap().len());
            let name = name.expect("a table");
            let length = fs::metadata(path.join(&name)).expect("stats").len() as usize;
            flip(path, &name, length - from_end);
            let (report, found) = repaired(path, options.clone());
            assert!(
                report.problems.iter().any(|problem| problem.file == name),
                "{from_end}: {report:#?}"
            );
            assert!(found == model, "{from_end} from the end: {report:#?}");
        }
        leveldb_agrees(path, &model);
    }
}

#[test]
fn half_a_table_with_a_damaged_block_is_worth_its_sound_blocks() {
    let dir = tempfile::tempdir().expect("a directory");
    let model = leveled(dir.path());
    let name = names(dir.path(), ".ldb").remove(0);
    let bytes = fs::read(dir.path().join(&name)).expect("reads");
    fs::write(dir.path().join(&name), &bytes[..bytes.len() / 2]).expect("writes");
    flip(dir.path(), &name, 100_000);
    let (report, found) = repaired(dir.path(), options());
    assert!(report.problems.iter().all(|problem| problem.file == name), "{report:#?}");
    assert!(found.iter().all(|(key, value)| model.get(key) == Some(value)));
    let (entries, lost) =
        (model.len() / (names(dir.path(), ".ldb").len()), model.len() - found.len());
    assert!(lost > entries / 4 && lost < entries, "{lost} of {entries}");
    leveldb_agrees(dir.path(), &found);
}

#[test]
fn damage_in_level_0_keeps_the_order_of_its_tables() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options()).expect("creates");
    let key = |number: u32| format!("key{number:04}");
    // Generations of the same keys, each in a table of its own above the ones before: in levels 2
    // and 1, then 0.
    for generation in 0..5u32 {
        for number in 0..1000 {
            if generation == 4 && number % 10 == 0 {
                db.delete(key(number)).expect("deletes");
            } else {
                db.put(key(number), format!("generation {generation} of {number}").repeat(4))
                    .expect("puts");
            }
        }
        db.flush().expect("flushes");
    }
    let files = db.files();
    assert_eq!(files.iter().filter(|file| file.level == 0).count(), 3);
    let oldest_at_0 =
        files.iter().filter(|file| file.level == 0).map(|file| file.number).min().expect("level 0");
    db.close().expect("closes");
    // In the oldest table of level 0: everything in it is overwritten or deleted.
    let before = contents(dir.path(), options());
    let name = format!("{oldest_at_0:06}.ldb");
    flip(dir.path(), &name, 20_000);
    let (report, found) = repaired(dir.path(), options());
    assert!(report.problems.iter().any(|problem| problem.file == name), "{report:#?}");
    assert!(before.iter().all(|(key, value)| found.get(key) == Some(value)), "newest values win");
    assert_eq!(before.len(), 900);
    assert_eq!(found.len(), before.len(), "nothing deleted comes back");
    leveldb_agrees(dir.path(), &before);
}

#[test]
fn a_flipped_bit_in_a_log_costs_a_batch() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options()).expect("creates");
    for number in 0..500u32 {
        let mut batch = WriteBatch::new();
        batch.put(format!("a{number:04}"), "x".repeat(100));
        batch.put(format!("b{number:04}"), "y".repeat(100));
        db.write_with(&batch, WriteOptions { sync: number % 50 == 0 }).expect("writes");
    }
    let model = contents_of(&db);
    db.close().expect("closes");
    let log = names(dir.path(), ".log").pop().expect("a log");
    flip(dir.path(), &log, 40_000);
    let refused = Db::open(dir.path(), options()).expect_err("synced writes are damaged");
    assert_eq!(refused.kind(), ErrorKind::Corruption);
    let (report, found) = repaired(dir.path(), options());
    assert!(
        report
            .problems
            .iter()
            .any(|problem| problem.file == log && problem.message.contains("offset"))
    );
    assert!(report.moved.contains(&format!("lost/{log}")), "{report:#?}");
    let lost: Vec<_> =
        model.keys().filter(|key| !found.contains_key(*key)).map(|key| key[1..].to_vec()).collect();
    assert!(lost.len() == 2 && lost[0] == lost[1], "one batch as a whole: {lost:?}");
    leveldb_agrees(dir.path(), &found);
}

#[test]
fn tables_that_nothing_names_do_not_come_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path();
    let db = Db::open(path, options()).expect("creates");
    for number in 0..100u32 {
        db.put(format!("key{number}"), "deleted later").expect("puts");
    }
    db.flush().expect("flushes");
    let old = names(path, ".ldb").pop().expect("a table");
    let bytes = fs::read(path.join(&old)).expect("reads");
    db.put("kept", "value").expect("puts");
    for number in 0..100u32 {
        db.delete(format!("key{number}")).expect("deletes");
    }
    db.compact_range::<&[u8]>(..).expect("compacts");
    db.close().expect("closes");
    // An open removes what the last one left.
    Db::open(path, options()).expect("opens").close().expect("closes");
    assert!(!path.join(&old).exists());
    let expected = Contents::from([(b"kept".to_vec(), b"value".to_vec())]);
    // The obsolete table comes back, as after an interrupted clean-up.
    fs::write(path.join(&old), &bytes).expect("writes");
    fs::copy(path.join(&old), path.join("900000.ldb")).expect("copies");
    let (report, found) = repaired(path, options());
    assert!(found == expected, "{report:#?}");
    assert!(
        report.moved.contains(&format!("lost/{old}"))
            && report.moved.contains(&"lost/900000.ldb".to_owned())
    );
    // Nor when the MANIFEST is damaged, as long as it tells that the table was removed.
    fs::write(path.join(&old), &bytes).expect("writes");
    let db = Db::open(path, options().reuse_logs(true)).expect("opens");
    db.close().expect("closes");
    fs::write(path.join(&old), &bytes).expect("writes");
    let (_, found) = repaired(path, options());
    assert!(found == expected);
    leveldb_agrees(path, &expected);
}

#[test]
fn what_cannot_be_repaired_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let none = repair(dir.path().join("none"), &options()).expect_err("no directory");
    assert_eq!(none.kind(), ErrorKind::InvalidArgument);
    fs::write(dir.path().join("foreign"), "").expect("writes");
    assert_eq!(
        repair(dir.path(), &options()).expect_err("nothing").kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(names(dir.path(), ""), ["foreign"]);
    build(dir.path(), options(), 9);
    let before = image(dir.path());
    let reverse = options().comparator(Arc::new(terrace_testkit::model::ReverseComparator));
    assert_eq!(
        repair(dir.path(), &reverse).expect_err("another order").kind(),
        ErrorKind::InvalidArgument
    );
    fs::remove_file(dir.path().join("CURRENT")).expect("removes");
    assert_eq!(
        repair(dir.path(), &reverse).expect_err("another order").kind(),
        ErrorKind::InvalidArgument
    );
    let read_only = repair(dir.path(), &options().read_only(true)).expect_err("must write");
    assert_eq!(read_only.kind(), ErrorKind::InvalidArgument);
    fs::write(dir.path().join("CURRENT"), &before[&dir.path().join("CURRENT")]).expect("writes");
    assert_eq!(image(dir.path()), before);
    let db = Db::open(dir.path(), options()).expect("opens");
    assert_eq!(repair(dir.path(), &options()).expect_err("open").kind(), ErrorKind::Busy);
    drop(db);
}

#[test]
fn custom_orders_are_repaired_in_their_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let reverse = options().comparator(Arc::new(terrace_testkit::model::ReverseComparator));
    let model = build(dir.path(), reverse.clone(), 10);
    fs::remove_file(dir.path().join(manifest(dir.path()))).expect("removes");
    let (_, found) = repaired(dir.path(), reverse.clone());
    assert!(found == model);
    let db = Db::open(dir.path(), reverse).expect("opens");
    let keys: Vec<_> = db.iter().expect("iterates").map(|entry| entry.expect("reads").0).collect();
    assert!(keys.is_sorted_by(|a, b| a > b));
}

/// Every value that each key ever had, oldest first; `None` for a deletion.
type History = BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>;

/// Where values go to value files.
const VALUE_LOG: Option<usize> = Some(40);

fn on_simfs(rng: &mut Rng, value_log: Option<usize>) -> (SimFs, History) {
    let fs = SimFs::new();
    let options = options().env(fs.env()).write_buffer_size(64 << 10).value_log(value_log);
    let db = Db::open(DB, options).expect("creates");
    let mut history = History::new();
    for number in 0..900u32 {
        let key = format!("key{:03}", rng.below(300)).into_bytes();
        let value =
            (!rng.one_in(7)).then(|| format!("{number}").repeat(rng.between(1, 40)).into_bytes());
        match &value {
            Some(value) => db.put(&key, value).expect("puts"),
            None => db.delete(&key).expect("deletes"),
        }
        history.entry(key).or_default().push(value);
        match number {
            300 => db.compact_range::<&[u8]>(..).expect("compacts"),
            500 | 700 => db.flush().expect("flushes"),
            _ => {}
        }
    }
    db.close().expect("closes");
    (fs, history)
}

const DB: &str = "/db";

fn change(fs: &SimFs, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = Path::new(DB).join(name);
    let mut bytes = fs.contents(&path).expect("a file");
    change(&mut bytes);
    fs.set_contents(&path, &bytes);
}

/// A damaged database, and what a repair that nothing disturbs saves of it.
fn damaged_on_simfs(what: &str, value_log: Option<usize>) -> (SimFs, Contents) {
    let (fs, _) = on_simfs(&mut Rng::new(1), value_log);
    let names = fs.names(Path::new(DB));
    let last = |part: &str| names.iter().rfind(|name| name.contains(part)).expect("a file");
    match what {
        "manifest" => change(&fs, last("MANIFEST"), |bytes| bytes[9] ^= 1),
        "table" => change(&fs, last(".ldb"), |bytes| bytes[100] ^= 1),
        "log" => change(&fs, last(".log"), |bytes| bytes[3000] ^= 1),
        "current" => change(&fs, "CURRENT", Vec::clear),
        _ => {}
    }
    let undisturbed = fs.power_loss(PowerLoss::PROCESS_ONLY);
    let options = options().env(undisturbed.env());
    repair(DB, &options).expect("repairs");
    let expected = contents(Path::new(DB), options);
    assert!(expected.len() > 200);
    (fs.power_loss(PowerLoss::LUCKY), expected)
}

#[test]
fn any_damage_can_be_repaired_and_no_value_is_made_up() {
    let (mut cases, mut refused, mut exact) = (0u64, 0u64, 0u64);
    campaign("random damage", 250, |seed| {
        cases += 1;
        let mut rng = Rng::new(seed);
        let value_log = rng.one_in(2).then_some(rng.between(1, 80));
        let (fs, history) = on_simfs(&mut rng, value_log);
        let options = options().env(fs.env());
        let pristine = fs.power_loss(PowerLoss::PROCESS_ONLY);
        let mut hit = BTreeSet::new();
        for _ in 0..rng.between(1, 4) {
            hit.insert(damage_at_random(&fs, &mut rng));
        }
        let told = |what: &str, message: String| format!("{what}: {message}");
        match verify(DB, &options) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                refused += 1;
                return Ok(());
            }
            Err(error) => return Err(told("verify", error.to_string())),
        }
        let report = repair(DB, &options).map_err(|error| told("repair", error.to_string()))?;
        let check =
            verify(DB, &options).map_err(|error| told("verify again", error.to_string()))?;
        // A repair leaves a healthy database as it is, with what is no damage.
        let is_ordinary =
            |note: &Problem| report.problems.is_empty() && note.message.contains("as a crash");
        if !check.is_clean() || !check.notes.iter().all(is_ordinary) {
            return Err(told("not clean", format!("{check:#?} after {report:#?}")));
        }
        let found = contents(Path::new(DB), options);
        let described = |name: &String| name == "CURRENT" || name.starts_with("MANIFEST");
        let nothing_is_lost = hit.iter().all(described);
        let floor = without_files(&pristine, &hit);
        for (key, values) in &history {
            let value = found.get(key).cloned();
            // No version is older than what the other files alone hold.
            let oldest = floor
                .get(key)
                .and_then(|held| values.iter().rposition(|value| value.as_ref() == Some(held)));
            if let Some(oldest) = oldest {
                exact += u64::from(oldest + 1 == values.len());
                if !values[oldest..].contains(&value) {
                    let (key, have) = (
                        String::from_utf8_lossy(key),
                        values.iter().position(|other| *other == value),
                    );
                    return Err(format!(
                        "{key} is the version {have:?}, the undamaged files hold {oldest}; \
                         {hit:?}: {report:#?}"
                    ));
                }
            }
            let right = match nothing_is_lost {
                true => values.last() == Some(&value),
                false => value.is_none() || values.contains(&value),
            };
            if !right {
                let (key, at) =
                    (String::from_utf8_lossy(key), values.iter().position(|other| *other == value));
                return Err(format!(
                    "{key} is the version {at:?} of {}, with damage in {hit:?}: {report:#?}",
                    values.len()
                ));
            }
        }
        if found.keys().all(|key| history.contains_key(key)) {
            Ok(())
        } else {
            Err("a key is made up".to_owned())
        }
    });
    println!(
        "random damage: {cases} databases, {refused} without any file of one; {exact} keys exact"
    );
    assert!(refused * 10 <= cases.max(10), "{refused} of {cases} were no databases any more");
}

/// The result of a repair without the files of these names.
fn without_files(pristine: &SimFs, names: &BTreeSet<String>) -> Contents {
    for name in names {
        let _ = pristine.env().remove(&Path::new(DB).join(name));
    }
    let options = || options().env(pristine.env());
    let db = repair(DB, &options()).and_then(|_| Db::open(DB, options().create_if_missing(false)));
    db.map_or_else(|_| Contents::new(), |db| contents_of(&db))
}

/// Damages one file and names it.
fn damage_at_random(fs: &SimFs, rng: &mut Rng) -> String {
    let names = fs.names(Path::new(DB));
    let victims: Vec<_> =
        names.iter().filter(|name| name.contains(['.', '-']) || *name == "CURRENT").collect();
    let (name, other) = (*rng.pick(&victims), *rng.pick(&victims));
    let length = fs.contents(&Path::new(DB).join(name)).expect("a file").len();
    let at = rng.below(length.max(1));
    match rng.below(6) {
        0 | 1 if length > 0 => change(fs, name, |bytes| bytes[at] ^= 1 << rng.below(8)),
        2 => change(fs, name, |bytes| bytes.truncate(at)),
        3 => change(fs, name, |bytes| bytes[at..length.min(at + 512)].fill(0)),
        0 | 1 | 4 => fs.env().remove(&Path::new(DB).join(name)).expect("removes"),
        _ => {
            let theirs = fs.contents(&Path::new(DB).join(other)).expect("a file");
            change(fs, name, |bytes| *bytes = theirs);
        }
    }
    name.clone()
}

/// Without a footer blocks are found by their checksums, the index among them, and it points to
/// blocks that cannot be found.
#[test]
fn an_index_is_not_taken_for_data_where_blocks_are_damaged() {
    for blocks in [1, 2, 5] {
        let fs = SimFs::new();
        // Without a filter an empty block stands before the index.
        let options =
            || options().env(fs.env()).filter_policy(Some(Arc::new(BloomFilterPolicy::new(10))));
        let db = Db::open(DB, options()).expect("creates");
        // One block, or just more than each other one takes.
        (0..blocks)
            .for_each(|block| db.put(format!("key{block}"), vec![b'v'; 1100]).expect("puts"));
        db.flush().expect("flushes");
        db.close().expect("closes");
        let table = fs
            .names(Path::new(DB))
            .into_iter()
            .find(|name| name.ends_with(".ldb"))
            .expect("a table");
        change(&fs, &table, |bytes| {
            (0..blocks)
                .skip(usize::from(blocks == 2))
                .for_each(|block| bytes[1120 * block + 500] ^= 1);
            // The filter, too, which would be taken for the end of the data.
            let names =
                bytes.windows(7).position(|part| part == b"filter.").expect("a filter's name");
            bytes[names - 40..names - 10].fill(0);
            let footer = bytes.len() - 1;
            bytes[footer] ^= 1;
        });
        let report = repair(DB, &options()).expect("repairs");
        for (key, value) in contents(Path::new(DB), options()) {
            let key = String::from_utf8_lossy(&key).into_owned();
            assert!(
                key.starts_with("key") && value.len() == 1100,
                "{blocks} blocks: {key} is made up: {report:#?}"
            );
        }
    }
}

/// Sectors of two tables have changed places: the index behind the data is another table's, and
/// points to a block of another size.
#[test]
fn the_index_of_another_table_is_not_taken_for_data() {
    let fs = SimFs::new();
    let options = || options().env(fs.env());
    let db = Db::open(DB, options()).expect("creates");
    for length in [1100, 900] {
        db.put("key0", vec![b'v'; length]).expect("puts");
        db.flush().expect("flushes");
    }
    db.close().expect("closes");
    let mut tables = fs.names(Path::new(DB));
    tables.retain(|name| name.ends_with(".ldb"));
    let read = |name: &String| fs.contents(&Path::new(DB).join(name)).expect("a table");
    // Behind the block are its restart points and its trailer.
    let halves = |bytes: Vec<u8>| {
        let end = bytes.windows(2).position(|pair| pair[0] == b'v' && pair[1] != b'v');
        let (block, rest) = bytes.split_at(end.expect("the end of a value") + 1 + 8 + 5);
        (block.to_vec(), rest.to_vec())
    };
    let [(first, _), (_, rest)] = [&tables[0], &tables[1]].map(|name| halves(read(name)));
    change(&fs, &tables[0], |bytes| *bytes = [first, rest].concat());
    let report = repair(DB, &options()).expect("repairs");
    for (key, value) in contents(Path::new(DB), options()) {
        let is_one = key == b"key0" && [900, 1100].contains(&value.len());
        assert!(is_one, "{} is made up: {report:#?}", String::from_utf8_lossy(&key));
    }
}

#[test]
fn an_interrupted_repair_can_be_repeated() {
    let dir = Path::new(DB);
    let mut states = 0;
    let kinds = ["manifest", "table", "log", "current", "nothing"];
    for (what, value_log) in kinds.into_iter().flat_map(|what| [(what, None), (what, VALUE_LOG)]) {
        let (fs, expected) = damaged_on_simfs(what, value_log);
        fs.record();
        repair(dir, &options().env(fs.env())).expect("repairs");
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        loop {
            let losses = [PowerLoss::PROCESS_ONLY, PowerLoss::STRICT].into_iter();
            for loss in
                losses.chain((0..3).map(|seed| PowerLoss::random(seed + 3 * replay.at() as u64)))
            {
                let after = replay.power_loss(loss);
                let options = options().env(after.env());
                let told = || format!("{what}, {loss:?}\n{}", recording.describe(replay.at()));
                if let Err(error) = repair(dir, &options) {
                    panic!("{error}: {}", told());
                }
                let found = contents(dir, options);
                assert!(
                    found == expected,
                    "{} entries, not {}: {}",
                    found.len(),
                    expected.len(),
                    told()
                );
                states += 1;
            }
            if !replay.advance() {
                break;
            }
        }
    }
    println!("{states} crash states");
    assert!(states > 300);
}

#[test]
fn a_failed_repair_leaves_everything_and_can_be_repeated() {
    let dir = Path::new(DB);
    let mut failures = 0;
    let kinds = ["manifest", "table", "log", "nothing"];
    for (what, value_log) in kinds.into_iter().flat_map(|what| [(what, None), (what, VALUE_LOG)]) {
        let (pristine, expected) = damaged_on_simfs(what, value_log);
        for fault in Fault::ALL {
            // Whether a failure goes on or not makes no difference to most operations.
            for (after, forever) in
                (0..).map(|after| (after, (after + fault as u64).is_multiple_of(5)))
            {
                let fs = pristine.power_loss(PowerLoss::PROCESS_ONLY);
                let options = options().env(fs.env());
                fs.set_faults(Some(FaultPlan::at(after, fault, forever)));
                let result = repair(dir, &options);
                let hit = fs.injected() > 0;
                fs.set_faults(None);
                if result.is_err() {
                    failures += 1;
                    repair(dir, &options).expect("repairs, left in peace");
                }
                let found = contents(dir, options);
                assert!(
                    found == expected,
                    "{what}, {fault:?} {after} {forever}: {} entries",
                    found.len()
                );
                if !hit {
                    break;
                }
            }
        }
    }
    println!("{failures} failed repairs");
    assert!(failures > 200);
}

/// Keeps what it is told.
#[derive(Default)]
struct Lines(std::sync::Mutex<Vec<String>>);

impl Logger for Lines {
    fn log(&self, message: &str) {
        self.0.lock().expect("no panic").push(message.to_owned());
    }
}

#[test]
fn the_log_for_people_says_what_a_repair_found() {
    let dir = tempfile::tempdir().expect("a directory");
    for to_file in [false, true] {
        let path = dir.path().join(if to_file { "file" } else { "program" });
        build(&path, options(), 1);
        let table = names(&path, ".ldb").remove(0);
        flip(&path, &table, 100);
        let lines = Arc::new(Lines::default());
        let logger = (!to_file).then(|| lines.clone() as Arc<dyn Logger>);
        repair(&path, &options().logger(logger)).expect("repairs");
        let told = match to_file {
            true => fs::read_to_string(path.join("LOG")).expect("reads"),
            false => lines.0.lock().expect("no panic").join("\n"),
        };
        for part in ["repair: ", &table, "repair: moved to lost/", "some data may have been lost"] {
            assert!(told.contains(part), "{part} is not in\n{told}");
        }
    }
}
