//! Range deletes: the remaining keys, the reads that still see the range, and crashes, failures and
//! LevelDB make of it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use terrace::{
    CompactionFilter, Comparator, Db, ErrorKind, FilterDecision, Logger, MemEnv, Options,
    ReadOptions, TableWriter, WriteBatch, WriteOptions,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::driver::{read_all, read_all_ways};
use terrace_testkit::leveldb::{Peer, PeerOptions};
use terrace_testkit::model::{Change, Model, Pair, ReverseComparator};
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, PowerLoss, SimFs};
use terrace_testkit::watchdog::Watchdog;

const PATH: &str = "/db";
const TIME_LIMIT: Duration = Duration::from_secs(120);

fn small() -> Options {
    Options::new().create_if_missing(true).write_buffer_size(64 << 10).max_file_size(1 << 20)
}

/// Options under which every range delete removes tables.
fn removing() -> Options {
    small().range_delete_batch(0)
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn value(rng: &mut Rng) -> Vec<u8> {
    rng.bytes(100)
}

/// A database with entries on several levels, tombstones among them.
fn fill(db: &Db, seed: u64, count: usize) -> Model {
    let mut rng = Rng::new(seed);
    let mut model = Model::default();
    for number in 0..3 * count {
        let key = key(rng.below(count));
        let change =
            if rng.one_in(5) { Change::Delete(key) } else { Change::Put(key, value(&mut rng)) };
        match &change {
            Change::Put(key, value) => db.put(key, value).expect("a put"),
            Change::Delete(key) => db.delete(key).expect("a delete"),
        }
        model.apply(std::slice::from_ref(&change));
        if number == count {
            db.compact_range::<&[u8]>(..).expect("a compaction");
        }
    }
    model
}

fn check(db: &Db, model: &Model) {
    assert!(read_all_ways(db).expect("entries") == model.entries(), "not what the model says");
    let report = db.verify().expect("a check");
    assert!(report.is_clean(), "{report:?}");
}

fn tables(fs: &SimFs) -> Vec<String> {
    let names = fs.names(Path::new(PATH)).into_iter();
    names.filter(|name| name.ends_with(".ldb") || name.ends_with(".sst")).collect()
}

#[test]
fn bounds_count_as_in_ranges_whichever_way_it_is_done() {
    let bounds = |rng: &mut Rng| {
        let mut bound = || match rng.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Included(key(rng.below(40))),
            _ => Bound::Excluded(key(rng.below(40))),
        };
        (bound(), bound())
    };
    for reverse in [false, true] {
        for batch in [0, 4, 4096] {
            let mut options = small().env(Arc::new(MemEnv::new())).range_delete_batch(batch);
            if reverse {
                options = options.comparator(Arc::new(ReverseComparator));
            }
            let db = Db::open(PATH, options).expect("opens");
            let (mut rng, mut model) = (Rng::new(batch as u64), Model::new(reverse));
            for _ in 0..200 {
                let puts: Vec<_> =
                    (0..10).map(|_| Change::Put(key(rng.below(40)), value(&mut rng))).collect();
                for change in &puts {
                    let Change::Put(key, value) = change else { continue };
                    db.put(key, value).expect("a put");
                }
                model.apply(&puts);
                if rng.one_in(3) {
                    db.flush().expect("a flush");
                }
                let range = bounds(&mut rng);
                db.delete_range(range.clone()).expect("a range delete");
                let (from, to) = &range;
                model
                    .delete_range(from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
                assert_eq!(read_all(&db).expect("entries"), model.entries(), "{range:?}");
            }
            check(&db, &model);
            db.close().expect("closes");
        }
    }
}

#[test]
fn all_of_a_database_goes_and_its_tables_with_it() {
    let fs = SimFs::new();
    let db = Db::open(PATH, removing().env(fs.env())).expect("opens");
    fill(&db, 1, 5_000);
    db.delete_range::<&[u8]>(..).expect("a range delete");
    assert_eq!(read_all(&db).expect("entries"), []);
    assert!(db.files().is_empty() && tables(&fs).is_empty(), "{:?}", tables(&fs));
    db.put("a", "1").expect("a put");
    db.close().expect("closes");
    let db = Db::open(PATH, removing().env(fs.env())).expect("opens again");
    assert_eq!(read_all(&db).expect("entries"), [(b"a".to_vec(), b"1".to_vec())]);
}

/// After most of a database has gone, scans of the rest need not merge several levels.
#[test]
fn what_a_range_delete_leaves_becomes_one_sorted_run() {
    let fs = SimFs::new();
    let db = Db::open(PATH, small().env(fs.env())).expect("opens");
    let count = 40_000;
    let mut model = fill(&db, 3, count);
    db.flush().expect("a flush");
    let runs = || {
        let levels = db.stats().levels;
        levels[0].files + levels[1..].iter().filter(|level| level.files > 0).count()
    };
    assert!(runs() > 1, "{:?}", db.stats().levels);
    db.delete_range(key(count / 20)..).expect("a range delete");
    model.apply(&(count / 20..count).map(|number| Change::Delete(key(number))).collect::<Vec<_>>());
    db.wait_idle().expect("background work");
    assert_eq!(runs(), 1, "{:?}", db.stats().levels);
    check(&db, &model);
}

#[test]
fn a_prefix_goes_and_under_another_order_it_cannot() {
    let db = Db::open(PATH, removing().env(Arc::new(MemEnv::new()))).expect("opens");
    for key in ["a", "b", "b1", "bz", "c", "b\u{ff}"] {
        db.put(key, "").expect("a put");
    }
    db.delete_prefix("b", WriteOptions::new()).expect("a range delete");
    let left: Vec<_> = read_all(&db).expect("entries").into_iter().map(|(key, _)| key).collect();
    assert_eq!(left, [b"a", b"c"]);
    let options = removing().env(Arc::new(MemEnv::new())).comparator(Arc::new(ReverseComparator));
    let db = Db::open(PATH, options).expect("opens");
    let error = db.delete_prefix("b", WriteOptions::new()).expect_err("another order");
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
}

/// A table's file may be closed and have another name when it is opened again.
#[test]
fn what_began_before_opens_files_again_that_are_out_of_sight() {
    let fs = SimFs::new();
    let options = removing().env(fs.env()).max_open_files(74).block_cache_size(0);
    let db = Db::open(PATH, options).expect("opens");
    for number in 0..200 {
        db.put(key(number), "value").expect("a put");
        db.flush().expect("a table of its own");
    }
    assert!(db.files().len() > 150, "{}", db.files().len());
    let snapshot = db.snapshot();
    let expect_all = || {
        for number in 0..200 {
            let found = snapshot.get(key(number)).expect("a read");
            assert_eq!(found.as_deref(), Some(&b"value"[..]), "{number}");
        }
    };
    expect_all();
    db.delete_range(key(1)..key(199)).expect("a range delete");
    assert!(fs.names(Path::new(PATH)).iter().any(|name| name.ends_with(".dbtmp")));
    expect_all();
    assert_eq!(db.iter().expect("entries").count(), 2);
}

/// Snapshots, cursors and transactions from before go on seeing the range, from files that no
/// repair would take for tables; and when they go, so do these.
#[test]
fn what_began_before_sees_the_range_and_keeps_its_files_out_of_sight() {
    let fs = SimFs::new();
    // Few enough open tables that they have to be opened again.
    let options = removing().env(fs.env()).max_open_files(74).block_cache_size(0);
    let db = Db::open(PATH, options).expect("opens");
    let before = fill(&db, 2, 20_000);
    let snapshot = db.snapshot();
    let of_snapshot = ReadOptions::new().snapshot(&snapshot);
    let mut cursor = db.cursor().expect("a cursor");
    cursor.seek(key(3_000));
    let transaction = db.transaction();
    let mut after = before.clone();
    let (from, to) = (key(1_000), key(19_000));
    db.delete_range(from.clone()..to.clone()).expect("a range delete");
    after.delete_range(Bound::Included(&from), Bound::Excluded(&to));
    db.put(key(5_000), "later").expect("a put");
    after.apply(&[Change::Put(key(5_000), b"later".to_vec())]);
    check(&db, &after);
    // A compaction's outputs have their names before the version has them.
    db.wait_idle().expect("idle");

    let live: Vec<_> = db.files().iter().map(|file| file.number).collect();
    let named: Vec<u64> =
        tables(&fs).iter().filter_map(|name| name.split('.').next()?.parse().ok()).collect();
    assert!(named.iter().all(|number| live.contains(number)), "{named:?} of {live:?}");
    assert!(fs.names(Path::new(PATH)).iter().any(|name| name.ends_with(".dbtmp")));

    let seen: Vec<Pair> = db
        .iter_with(&of_snapshot)
        .and_then(|entries| entries.collect())
        .expect("entries of a snapshot");
    assert!(seen == before.entries());
    let numbers = (0..20_000).step_by(37);
    for key in numbers.clone().map(key) {
        let expected = before.get(&key);
        assert_eq!(snapshot.get(&key).expect("a read").as_deref(), expected);
        assert_eq!(transaction.get(&key).expect("a read").as_deref(), expected);
        assert_eq!(db.get_pinned_with(&key, &of_snapshot).expect("a read").as_deref(), expected);
    }
    let keys: Vec<_> = numbers.map(key).collect();
    let found = db.multi_get_with(&keys, &of_snapshot).expect("reads");
    assert!(keys.iter().zip(&found).all(|(key, found)| found.as_deref() == before.get(key)));
    let mut rest = 0;
    while cursor.valid() {
        assert_eq!(before.get(cursor.key()), Some(cursor.value()));
        rest += 1;
        cursor.next();
    }
    cursor.status().expect("no error");
    let key = key(3_000);
    let (from, to) = (Bound::Included(key.as_slice()), Bound::Unbounded);
    assert_eq!(rest, before.range(from, to).len());
    // A later one sees what there is, though others live.
    let later = db.snapshot();
    assert_eq!(later.iter().expect("entries").count(), after.len());

    // A checkpoint may be under way when its tables go, and so may a check.
    assert!(db.verify().expect("a check").is_clean());
    drop((cursor, transaction, of_snapshot, later));
    assert_eq!(snapshot.iter().expect("entries").count(), before.len());
    drop(snapshot);
    db.wait_idle().expect("idle");
    let names = fs.names(Path::new(PATH));
    assert!(!names.iter().any(|name| name.ends_with(".dbtmp")), "{names:?}");
    db.close().expect("closes");
}

/// Names of files may have to wait for readers that outlive the database.
#[test]
fn a_snapshot_reads_on_after_a_close_and_the_next_open_cleans_up() {
    let fs = SimFs::new();
    let db = Db::open(PATH, removing().env(fs.env())).expect("opens");
    let before = fill(&db, 3, 3_000);
    let snapshot = db.snapshot();
    let cursor = snapshot.iter().expect("entries");
    db.delete_range(key(100)..).expect("a range delete");
    db.close().expect("closes");
    assert_eq!(cursor.count(), before.len());
    drop(snapshot);
    let db = Db::open(PATH, removing().env(fs.env())).expect("opens again");
    let mut after = before;
    after.delete_range(Bound::Included(&key(100)), Bound::Unbounded);
    check(&db, &after);
    // The open's own flush makes CURRENT anew, by way of such a file.
    db.wait_idle().expect("idle");
    let names = fs.names(Path::new(PATH));
    assert!(!names.iter().any(|name| name.ends_with(".dbtmp")), "{names:?}");
}

#[test]
fn transactions_that_touch_the_range_conflict() {
    for batch in [0, 4096] {
        let options = small().env(Arc::new(MemEnv::new())).range_delete_batch(batch);
        let db = Db::open(PATH, options).expect("opens");
        fill(&db, 4, 1_000);
        db.put(key(500), "there").expect("a put");
        let mut inside = db.transaction();
        inside.put(key(500), "mine");
        let mut relies = db.transaction();
        relies.get_for_update(key(500)).expect("a read");
        relies.put("elsewhere", "1");
        let mut outside = db.transaction();
        outside.get(key(500)).expect("a read");
        outside.put(key(10), "2");
        db.delete_range(key(100)..key(900)).expect("a range delete");
        let mut later = db.transaction();
        later.put(key(501), "3");
        for (name, transaction) in [("inside", inside), ("relies", relies)] {
            let error = transaction.commit().expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Conflict, "{name}: {error}");
        }
        outside.commit().expect("nobody came in between");
        later.commit().expect("it began later");
        assert_eq!(db.get(key(500)).expect("a read"), None);
        assert_eq!(db.get(key(501)).expect("a read").as_deref(), Some(&b"3"[..]));
    }
}

#[test]
fn a_transaction_deletes_the_range_that_it_sees() {
    let db = Db::open(PATH, removing().env(Arc::new(MemEnv::new()))).expect("opens");
    for number in 0..10 {
        db.put(key(number), "").expect("a put");
    }
    let mut transaction = db.transaction();
    transaction.put(key(20), "own");
    transaction.delete_range(key(3)..key(30)).expect("a range delete");
    transaction.put(key(5), "again");
    db.put(key(25), "of another").expect("a put");
    transaction.commit().expect("a commit");
    let left: Vec<_> = read_all(&db).expect("entries").into_iter().map(|(key, _)| key).collect();
    assert_eq!(left, [0, 1, 2, 5, 25].map(key));
}

/// Of a range nothing is half there, wherever the disk fails; and what is written afterwards stays.
#[test]
fn every_failure_leaves_all_of_the_range_or_nothing() {
    let _watchdog = Watchdog::new(TIME_LIMIT, "every_failure_leaves_all_of_the_range_or_nothing");
    let base = SimFs::new();
    let db = Db::open(PATH, removing().env(base.env())).expect("opens");
    let before = fill(&db, 5, 1_500);
    db.close().expect("closes");
    let (from, to) = (key(200), key(1_300));
    let mut after = before.clone();
    after.delete_range(Bound::Included(&from), Bound::Excluded(&to));
    let later = [Change::Put(key(700), b"later".to_vec())];
    let mut failed = 0;
    for (fault, forever) in
        [(Fault::Io, false), (Fault::Late, false), (Fault::NoSpace, true), (Fault::Late, true)]
    {
        let stride = if scaled(100) < 100 { 3 } else { 1 };
        for operation in (0..).step_by(stride) {
            let case = format!("operation {operation} fails, {fault:?}, for good: {forever}");
            let fs = base.power_loss(PowerLoss::PROCESS_ONLY);
            let db = Db::open(PATH, removing().env(fs.env())).expect("opens");
            db.put("other", "written before").expect("a put");
            let snapshot = db.snapshot();
            fs.set_faults(Some(FaultPlan::at(operation, fault, forever)));
            let deleted = db.delete_range(from.clone()..to.clone()).is_ok();
            let injected = fs.injected();
            fs.set_faults(None);
            failed += u32::from(!deleted);
            let mut rest = snapshot.iter().expect("entries").collect::<terrace::Result<Vec<_>>>();
            if let Ok(entries) = &mut rest {
                entries.pop();
                assert!(*entries == before.entries(), "{case}: a snapshot has changed");
            }
            drop(snapshot);
            let written = db.put(key(700), "later").and_then(|()| db.sync()).is_ok();
            let states = |later: Option<&[Change]>, model: &Model| {
                let mut model = model.clone();
                model.apply(&[Change::Put(b"other".to_vec(), b"written before".to_vec())]);
                model.apply(later.unwrap_or_default());
                model.entries()
            };
            let mut allowed = vec![states(Some(&later), &after)];
            if !written {
                allowed.push(states(None, &after));
            }
            if !deleted {
                allowed.push(states(Some(&later), &before));
                if !written {
                    allowed.push(states(None, &before));
                }
            }
            let found = read_all_ways(&db).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert!(allowed.contains(&found), "{case}: deleted {deleted}, written {written}");
            let after_crash = fs.power_loss(PowerLoss::STRICT);
            drop(db);
            let db = Db::open(PATH, removing().env(after_crash.env()))
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            let found = read_all_ways(&db).unwrap_or_else(|error| panic!("{case}: {error}"));
            let shown = found.len();
            assert!(allowed.contains(&found), "{case}: {shown} entries after a power cut");
            assert!(db.verify().expect("a check").is_clean(), "{case}");
            if injected == 0 {
                break;
            }
        }
    }
    println!("every_failure_leaves_all_of_the_range_or_nothing: {failed} range deletes failed");
    assert!(failed > 20, "only {failed} range deletes failed");
}

/// Within level 0 the greater number is the newer table, so what is newer than a table that is
/// replaced is replaced too.
#[test]
fn tables_of_level_0_keep_their_order() {
    let env = Arc::new(MemEnv::new());
    let db = Db::open(PATH, removing().env(env.clone())).expect("opens");
    for (round, with_range) in [true, true, true, false].into_iter().enumerate() {
        db.put("a", format!("{round}")).expect("a put");
        if with_range {
            (0..10).for_each(|number| db.put(format!("r{number}"), "").expect("a put"));
        }
        db.flush().expect("a flush");
    }
    let level_0 = db.files().iter().filter(|file| file.level == 0).count();
    assert_eq!(level_0, 2, "{:?}", db.files());
    db.delete_range("r".."s").expect("a range delete");
    let expected = [(b"a".to_vec(), b"3".to_vec())];
    assert_eq!(read_all(&db).expect("entries"), expected);
    assert!(db.verify().expect("a check").is_clean());
    drop(db);
    let db = Db::open(PATH, removing().env(env)).expect("opens again");
    assert_eq!(read_all(&db).expect("entries"), expected);
}

/// A range delete that failed may be installed all the same at the next open of the database. No
/// write may come before that is decided: others have read the range as it was, and what they write
/// may rest on it.
#[test]
fn no_write_comes_after_a_range_delete_in_doubt() {
    let options = || removing().mapped_log(false);
    let mut in_doubt = 0;
    for (forever, again) in [(false, false), (true, false), (true, true)] {
        for operation in 0.. {
            let fs = SimFs::new();
            let db = Db::open(PATH, options().env(fs.env())).expect("opens");
            db.put("key", "first").expect("a put");
            fs.set_faults(Some(FaultPlan::at(operation, Fault::Late, forever)));
            let deleted = db.delete_range("a".."z").is_ok();
            if fs.injected() == 0 {
                break;
            }
            let mut acknowledged = db.put("other", "second").is_ok();
            fs.set_faults(None);
            if again && !acknowledged {
                db.put("other", "second").expect("a put");
                acknowledged = true;
            }
            let seen = db.get("key").expect("a read");
            assert!(!deleted || seen.is_none());
            let fs = fs.power_loss(PowerLoss::PROCESS_ONLY);
            let db = Db::open(PATH, options().env(fs.env())).expect("opens again");
            let case = format!("operation {operation}, for good: {forever}, again: {again}");
            let found = db.get("key").unwrap_or_else(|error| panic!("{case}: {error}"));
            if acknowledged {
                assert_eq!(found, seen, "{case}");
                assert!(db.get("other").expect("a read").is_some(), "{case}");
            } else if deleted {
                assert_eq!(found, None, "{case}");
            }
            in_doubt += u32::from(!deleted);
        }
    }
    assert!(in_doubt > 15, "only {in_doubt} range deletes failed");
}

/// Data of one generation is written as a whole and deleted as a whole, and then a marker says so:
/// no reader sees a part of it, or the marker with it.
#[test]
fn readers_see_all_of_a_range_or_nothing_beside_writers_and_compactions() {
    const ENTRIES: usize = 200;
    campaign("readers_see_all_of_a_range_or_nothing", scaled(6), |seed| {
        let _watchdog = Watchdog::new(TIME_LIMIT, format!("readers beside range deletes, {seed}"));
        let batch = if seed.is_multiple_of(3) { 4096 } else { 0 };
        let options = small().env(Arc::new(MemEnv::new())).range_delete_batch(batch);
        let db = Db::open(PATH, options).map_err(|error| error.to_string())?;
        let done = AtomicBool::new(false);
        let generations = 40;
        let write = || -> terrace::Result<()> {
            for generation in 0_u64..generations {
                let mut data = WriteBatch::new();
                for number in 0..ENTRIES {
                    let value = [&generation.to_be_bytes()[..], &[b'v'; 400]].concat();
                    data.put([b"d", key(number).as_slice()].concat(), value);
                }
                db.write(&data)?;
                if generation % 3 == 0 {
                    db.flush()?;
                }
                db.delete_range("d".."e")?;
                db.put("marker", generation.to_be_bytes())?;
            }
            Ok(())
        };
        let fill = |side: u8| -> terrace::Result<()> {
            let mut rng = Rng::new(seed ^ u64::from(side));
            while !done.load(Ordering::Acquire) {
                let number = rng.below(3_000);
                db.put([&[side][..], &key(number)].concat(), rng.bytes(200))?;
            }
            Ok(())
        };
        let reads = AtomicU64::new(0);
        let read = |with_snapshot: bool| -> Result<(), String> {
            while !done.load(Ordering::Acquire) {
                let snapshot = with_snapshot.then(|| db.snapshot());
                let options = match &snapshot {
                    Some(snapshot) => ReadOptions::new().snapshot(snapshot),
                    None => ReadOptions::new(),
                };
                let entries = db.range_with("d".."n", &options).map_err(|e| e.to_string())?;
                let entries: Vec<Pair> =
                    entries.collect::<terrace::Result<_>>().map_err(|e| e.to_string())?;
                let number = |value: &[u8]| u64::from_be_bytes(value[..8].try_into().expect("8"));
                let (markers, data): (Vec<_>, Vec<_>) =
                    entries.iter().partition(|(key, _)| key == b"marker");
                if !(data.is_empty() || data.len() == ENTRIES) {
                    return Err(format!("{} of {ENTRIES} entries", data.len()));
                }
                let marker = markers.first().map(|(_, value)| number(value));
                let oldest = data.iter().map(|(_, value)| number(value)).min();
                if let (Some(marker), Some(oldest)) = (marker, oldest)
                    && oldest <= marker
                {
                    return Err(format!("data of {oldest} beside the marker of {marker}"));
                }
                if let Some(snapshot) = snapshot {
                    let key = [b"d", key(ENTRIES / 2).as_slice()].concat();
                    let found = snapshot.get(&key).map_err(|e| e.to_string())?;
                    if found.as_deref().map(number) != oldest {
                        return Err("a snapshot changed".to_owned());
                    }
                }
                reads.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let readers = [true, false].map(|snapshot| scope.spawn(move || read(snapshot)));
            let fillers = [b'a', b'z'].map(|side| scope.spawn(move || fill(side)));
            let compactor = scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    db.compact_range::<&[u8]>(..)?;
                }
                terrace::Result::Ok(())
            });
            let written = write();
            done.store(true, Ordering::Release);
            for reader in readers {
                reader.join().expect("no panic")?;
            }
            for filler in fillers {
                filler.join().expect("no panic").map_err(|error| error.to_string())?;
            }
            compactor.join().expect("no panic").map_err(|error| error.to_string())?;
            written.map_err(|error| error.to_string())
        })?;
        let report = db.verify().map_err(|error| error.to_string())?;
        if !report.is_clean() {
            return Err(format!("{report:?}"));
        }
        db.close().map_err(|error| error.to_string())
    });
}

/// An update that read a key before it was deleted with its range is not made of what it read.
#[test]
fn updates_begin_anew_after_a_range_delete() {
    campaign("updates_begin_anew_after_a_range_delete", scaled(20), |seed| {
        let _watchdog = Watchdog::new(TIME_LIMIT, format!("updates beside range deletes, {seed}"));
        let db = Db::open(PATH, removing().env(Arc::new(MemEnv::new())))
            .map_err(|error| error.to_string())?;
        let number = |value: Option<&[u8]>| {
            value.map_or(0, |value| u64::from_be_bytes(value.try_into().expect("8 bytes")))
        };
        let (begun, ended) = (AtomicU64::new(0), AtomicU64::new(0));
        let done = AtomicBool::new(false);
        let count = || -> terrace::Result<()> {
            while !done.load(Ordering::Acquire) {
                begun.fetch_add(1, Ordering::SeqCst);
                db.update("counter", |value| Some((number(value) + 1).to_be_bytes()))?;
                ended.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let counters = [(); 2].map(|()| scope.spawn(count));
            let mut outcome = Ok(());
            for _ in 0..30 {
                let before = ended.load(Ordering::SeqCst);
                let deleted = db.delete_range("a".."z");
                let found = db.get("counter");
                let most = begun.load(Ordering::SeqCst) - before;
                outcome = match (deleted, found) {
                    (Ok(()), Ok(found)) if number(found.as_deref()) <= most => Ok(()),
                    (deleted, found) => Err(format!("{deleted:?}, {found:?}, {most} updates")),
                };
                if outcome.is_err() {
                    break;
                }
            }
            done.store(true, Ordering::Release);
            for counter in counters {
                counter.join().expect("no panic").map_err(|error| error.to_string())?;
            }
            outcome
        })
    });
}

/// Bytewise. Holds the thread that has the deletion made up at one key, until it is let go on.
struct Holding {
    thread: Mutex<Option<ThreadId>>,
    arrived: Sender<()>,
    goes_on: Mutex<Receiver<()>>,
}

impl Comparator for Holding {
    fn name(&self) -> &str {
        "terrace.tests.holding"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        let is_there = a == key(5) || b == key(5);
        if is_there && *self.thread.lock().expect("a lock") == Some(thread::current().id()) {
            *self.thread.lock().expect("a lock") = None;
            self.arrived.send(()).expect("someone waits");
            self.goes_on.lock().expect("a lock").recv().expect("someone lets it go on");
        }
        a.cmp(b)
    }
}

/// A small range's keys are read before the commit lock is taken. An ingest beneath all sequence
/// numbers, which comes in meanwhile, has no number by which the deletion could notice it.
#[test]
fn an_ingest_beside_a_small_range_delete_is_deleted_too() {
    let _watchdog = Watchdog::new(TIME_LIMIT, "an ingest beside a small range delete");
    let (arrived, arrival) = channel();
    let (let_go, goes_on) = channel();
    let order =
        Arc::new(Holding { thread: Mutex::default(), arrived, goes_on: Mutex::new(goes_on) });
    let options = small().env(Arc::new(MemEnv::new())).comparator(order.clone());
    let db = Db::open(PATH, options.clone()).expect("opens");
    (0..10).for_each(|number| db.put(key(number), "v").expect("a put"));
    db.flush().expect("a flush");
    let mut table = TableWriter::create("/one.ldb", &options).expect("a table");
    table.put(key(20), "ingested").expect("an entry");
    table.finish().expect("a table");
    thread::scope(|scope| {
        let deletes = scope.spawn(|| {
            *order.thread.lock().expect("a lock") = Some(thread::current().id());
            db.delete_range(key(0)..key(30))
        });
        arrival.recv().expect("it has read some keys");
        let before = db.stats().sequence;
        db.ingest(&["/one.ldb"]).expect("an ingest");
        assert_eq!(db.stats().sequence, before, "beneath all numbers");
        assert!(
            db.get(key(20)).expect("a get").is_some() && db.get(key(9)).expect("a get").is_some()
        );
        let_go.send(()).expect("it waits");
        deletes.join().expect("no panic").expect("a range delete");
    });
    assert_eq!(db.iter().expect("entries").count(), 0);
}

/// LevelDB reads, compacts and changes what is left, and gives it back.
#[test]
fn databases_with_deleted_ranges_go_to_leveldb_and_back() {
    let Some(peer) = Peer::find() else { return };
    campaign("databases_with_deleted_ranges_go_to_leveldb_and_back", scaled(20), |seed| {
        let mut rng = Rng::new(seed);
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = dir.path().join("db");
        let options = PeerOptions { write_buffer: 64 << 10, ..PeerOptions::default() };
        let mut model = Model::default();
        for turn in 0..3 {
            let batch = *rng.pick(&[0, 0, 20]);
            let db = Db::open(&path, small().range_delete_batch(batch))
                .map_err(|error| format!("turn {turn}: {error}"))?;
            if read_all_ways(&db)? != model.entries() {
                return Err(format!("turn {turn}: not what LevelDB left"));
            }
            for _ in 0..rng.between(1, 6) {
                let (span, size) = (*rng.pick(&[200, 3_000]), *rng.pick(&[10, 200]));
                for _ in 0..rng.below(1_500) {
                    let key = key(rng.below(span));
                    let change = match rng.one_in(5) {
                        true => Change::Delete(key),
                        false => Change::Put(key, rng.bytes(size)),
                    };
                    match &change {
                        Change::Put(key, value) => db.put(key, value),
                        Change::Delete(key) => db.delete(key),
                    }
                    .map_err(|error| error.to_string())?;
                    model.apply(&[change]);
                }
                let (from, to) = (key(rng.below(span)), key(rng.below(2 * span)));
                db.delete_range(from.clone()..to.clone()).map_err(|error| error.to_string())?;
                model.delete_range(Bound::Included(&from), Bound::Excluded(&to));
            }
            db.close().map_err(|error| error.to_string())?;
            let seen = |when: &str| {
                let entries = peer.entries(&path, &options).map_err(|error| format!("{error}"))?;
                if entries == model.entries() {
                    return Ok(());
                }
                Err(format!("turn {turn}, {when}: LevelDB sees {} entries", entries.len()))
            };
            seen("as it is")?;
            if rng.one_in(2) {
                peer.simple("compact", &path, &options).map_err(|error| format!("{error}"))?;
                seen("compacted")?;
            }
            let (key, value) = (key(rng.below(3_000)), b"of LevelDB".to_vec());
            peer.put(&path, &options, &key, &value).map_err(|error| format!("{error}"))?;
            model.apply(&[Change::Put(key, value)]);
        }
        Ok(())
    });
}

/// LevelDB's RepairDB takes in every table that it finds, by its number. Those of a deleted range
/// are not there to be found, though a reader still keeps them.
#[test]
fn leveldbs_repair_does_not_bring_a_range_back() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let db = Db::open(&path, removing()).expect("opens");
    fill(&db, 6, 3_000);
    let snapshot = db.snapshot();
    db.delete_range::<&[u8]>(..).expect("a range delete");
    db.put("left", "1").expect("a put");
    db.flush().expect("a flush");
    db.wait_idle().expect("rests");
    std::fs::create_dir(&copy).expect("a directory");
    for entry in std::fs::read_dir(&path).expect("a directory") {
        let entry = entry.expect("an entry");
        match std::fs::copy(entry.path(), copy.join(entry.file_name())) {
            // The database goes on removing logs that it does not need.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => _ = copied.expect("a copy"),
        }
    }
    assert!(snapshot.iter().expect("entries").count() > 1_000);
    let options = PeerOptions::default();
    peer.simple("repair", &copy, &options).expect("LevelDB repairs");
    let found: BTreeMap<_, _> =
        peer.entries(&copy, &options).expect("LevelDB reads").into_iter().collect();
    assert_eq!(found, BTreeMap::from([(b"left".to_vec(), b"1".to_vec())]));
}

/// As with a synced batch without operations.
#[test]
fn a_synced_deletion_of_nothing_makes_durable_what_came_before() {
    for (from, to) in [("b", "a"), ("x", "y")] {
        let fs = SimFs::new();
        let open = |fs: &SimFs| {
            Db::open("/db", Options::new().create_if_missing(true).env(fs.env())).expect("opens")
        };
        let db = open(&fs);
        db.put("key", "value").expect("puts");
        db.delete_range_with(from..to, WriteOptions::sync()).expect("deletes");
        let after_crash = open(&fs.power_loss(PowerLoss::STRICT));
        assert_eq!(after_crash.get("key").expect("reads").as_deref(), Some(&b"value"[..]));
    }
}

/// Keeps the first compaction from going on until a range delete has asked it to stop.
struct Gate {
    entered: AtomicBool,
    entries: AtomicU64,
    stop: Mutex<Receiver<()>>,
}

impl CompactionFilter for Gate {
    fn filter(&self, _key: &[u8], _value: &[u8]) -> FilterDecision {
        self.entries.fetch_add(1, Ordering::SeqCst);
        if !self.entered.swap(true, Ordering::SeqCst) {
            let asked = self.stop.lock().expect("a lock").recv_timeout(TIME_LIMIT);
            asked.expect("the range delete waits for the compaction");
        }
        FilterDecision::Keep
    }
}

struct Messages(Mutex<Sender<()>>);

impl Logger for Messages {
    fn log(&self, message: &str) {
        if message.contains("compactions stopped for a range delete: 1") {
            self.0.lock().expect("a lock").send(()).expect("the filter listens");
        }
    }
}

/// A compaction of what a range delete removes is not carried out to its end, and later ones are.
#[test]
fn compactions_of_what_is_removed_stop() {
    let (asked, stop) = channel();
    let gate = Arc::new(Gate {
        entered: AtomicBool::new(false),
        entries: AtomicU64::new(0),
        stop: Mutex::new(stop),
    });
    let options = removing()
        .env(Arc::new(MemEnv::new()))
        .compaction_filter(Some(gate.clone()))
        .logger(Some(Arc::new(Messages(Mutex::new(asked)))));
    let db = Db::open(PATH, options).expect("opens");
    let mut rng = Rng::new(5);
    let mut rounds = 0;
    while !gate.entered.load(Ordering::SeqCst) {
        for number in 0..1_000 {
            db.put(key(number), value(&mut rng)).expect("a put");
        }
        db.flush().expect("a flush");
        rounds += 1;
        assert!(rounds < 100, "no compaction has begun");
    }
    db.put("other", "stays").expect("a put");
    db.delete_range(&b"key"[..]..&b"kez"[..]).expect("a range delete");
    let seen = gate.entries.load(Ordering::SeqCst);
    assert!(seen <= 1_024, "{seen} entries of what was removed were compacted");
    assert_eq!(read_all(&db).expect("reads"), [(b"other".to_vec(), b"stays".to_vec())]);
    // The compactions that follow are carried out, and a stopped one is no failure.
    for _ in 0..2 {
        for number in 0..1_000 {
            db.put(key(number), value(&mut rng)).expect("a put");
        }
        db.flush().expect("a flush");
    }
    db.compact_range::<&[u8]>(..).expect("a compaction");
    assert!(gate.entries.load(Ordering::SeqCst) >= 1_000 + seen, "the filter was asked");
    assert_eq!(db.stats().background_error, None);
    db.close().expect("closes");
}

/// Keys before and behind the engine's own entries lie in one table, and there are none of those.
#[test]
fn the_space_of_a_whole_database_is_free_at_once() {
    let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
    let db = Db::open("/db", options).expect("opens");
    for number in 0..40u8 {
        let value = Rng::new(number.into()).bytes(1 << 20);
        db.put([number * 3 + 1], value).expect("a put");
    }
    db.flush().expect("a flush");
    db.wait_idle().expect("rests");
    assert!(!db.files().is_empty());
    db.delete_range::<&[u8]>(..).expect("a range delete");
    assert_eq!(db.files().len(), 0);
}
