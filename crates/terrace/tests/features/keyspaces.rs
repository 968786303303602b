//! Keyspaces: what belongs to them, what other programs see of them, and how they begin and end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrace::{
    Compression, Db, ErrorKind, Keyspace, KeyspaceOptions, MemEnv, Options, ReadOptions,
    TransactionOptions, WriteBatch, WriteOptions, inspect,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::driver::read_all;
use terrace_testkit::hooked::Hooked;
use terrace_testkit::leveldb::{Peer, PeerOptions};
use terrace_testkit::model::{Pair, ReverseComparator};
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{PowerLoss, SimFs};

const PATH: &str = "/db";

fn options() -> Options {
    Options::new().create_if_missing(true).write_buffer_size(64 << 10).max_file_size(1 << 20)
}

fn open_new() -> Db {
    Db::open(PATH, options().env(Arc::new(MemEnv::new()))).expect("opens")
}

fn create(db: &Db, name: &str) -> Keyspace {
    db.create_keyspace(name, KeyspaceOptions::new()).expect("a keyspace")
}

fn entries(keyspace: &Keyspace) -> Vec<(String, String)> {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let entries = keyspace.iter().expect("entries").map(|entry| entry.expect("an entry"));
    entries.map(|(key, value)| (text(key), text(value))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn keys_of_a_keyspace_are_those_of_a_sublevel() {
    let db = open_new();
    let fruit = create(&db, "fruit");
    fruit.put("apple", "red").expect("a put");
    fruit.put("", "the empty key").expect("a put");
    db.put("!fruit!banana", "yellow").expect("a put");
    // Neighbours that are not in it.
    for key in ["!fruit", "!fruit\"", "!fruits!a", "fruit", "!", "!!x!a"] {
        db.put(key, "").expect("a put");
    }
    let there = [("", "the empty key"), ("apple", "red"), ("banana", "yellow")];
    assert_eq!(entries(&fruit), pairs(&there));
    assert_eq!(db.get("!fruit!apple").expect("a read").as_deref(), Some(&b"red"[..]));
    assert_eq!(fruit.key("apple"), b"!fruit!apple");
    assert_eq!(db.keyspaces().expect("names"), ["fruit", "fruits"]);
    assert_eq!(
        fruit.multi_get(&["banana", "none"]).expect("reads"),
        [Some(b"yellow".to_vec()), None]
    );
    assert_eq!(fruit.get_pinned("apple").expect("a read").as_deref(), Some(&b"red"[..]));
    assert!(fruit.contains_key("apple").expect("a read"));
    assert_eq!(fruit.first().expect("a read").map(|(key, _)| key), Some(Vec::new()));
    assert_eq!(fruit.last().expect("a read").map(|(key, _)| key), Some(b"banana".to_vec()));
    let mut cursor = fruit.cursor().expect("a cursor");
    cursor.seek_for_prev("b");
    assert_eq!(cursor.entry(), Some((&b"apple"[..], &b"red"[..])));
    cursor.next();
    assert_eq!(cursor.key(), b"banana");
    cursor.next();
    assert!(!cursor.valid() && cursor.key().is_empty() && cursor.status().is_ok());
    cursor.seek_to_last();
    assert_eq!(cursor.key(), b"banana");
    cursor.seek_to_first();
    assert_eq!(cursor.value(), b"the empty key");
    cursor.prev();
    assert!(!cursor.valid());
    let bounded = ReadOptions::new().lower_bound("a").upper_bound("b");
    let seen = |entries: terrace::Result<terrace::KeyspaceEntries>| {
        entries.expect("entries").map(|entry| entry.expect("an entry").0).collect::<Vec<_>>()
    };
    assert_eq!(seen(fruit.range_with::<&[u8]>(.., &bounded)), [b"apple"]);
    assert_eq!(seen(fruit.range("b"..)), [b"banana"]);
    assert_eq!(seen(fruit.prefix("a")), [b"apple"]);
    let mut batch = WriteBatch::new();
    batch.put("cherry", "dark");
    batch.delete("apple");
    fruit.write(&batch).expect("a batch");
    fruit.delete("").expect("a delete");
    assert_eq!(entries(&fruit), pairs(&[("banana", "yellow"), ("cherry", "dark")]));
    fruit.delete_range("a".."c").expect("a range delete");
    assert_eq!(entries(&fruit), pairs(&[("cherry", "dark")]));
    assert!(fruit.approximate_size().is_ok());
    fruit.delete_range::<&[u8]>(..).expect("a range delete");
    assert_eq!(entries(&fruit), []);
    assert!(db.get("!fruits!a").expect("a read").is_some());
    assert!(db.get("!fruit").expect("a read").is_some());
}

#[test]
fn keyspaces_nest_and_a_parent_holds_what_is_within_it() {
    let db = open_new();
    let outer = create(&db, "outer");
    let inner = outer.create_keyspace("inner", KeyspaceOptions::new()).expect("a keyspace");
    let deep = inner.create_keyspace("deep", KeyspaceOptions::new()).expect("a keyspace");
    outer.put("a", "1").expect("a put");
    inner.put("b", "2").expect("a put");
    assert_eq!(db.get("!outer!!inner!b").expect("a read").as_deref(), Some(&b"2"[..]));
    assert_eq!(entries(&outer), pairs(&[("!inner!b", "2"), ("a", "1")]));
    assert_eq!(db.keyspaces().expect("names"), ["outer"]);
    assert_eq!(outer.keyspaces().expect("names"), ["inner"]);
    assert_eq!(inner.keyspaces().expect("names"), ["deep"]);
    assert!(deep.keyspaces().expect("names").is_empty());
    assert!(outer.drop_keyspace("inner").expect("a drop"));
    assert!(!outer.drop_keyspace("inner").expect("nothing to drop"));
    for dropped in [&inner, &deep] {
        let error = dropped.put("x", "").expect_err("it was dropped");
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    }
    assert_eq!(entries(&outer), pairs(&[("a", "1")]));
    assert!(outer.keyspaces().expect("names").is_empty());
    let error = outer.keyspace("inner").expect_err("it was dropped");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("no keyspace outer > inner"), "{error}");
}

#[test]
fn names_and_orders_that_cannot_be_are_refused() {
    let db = open_new();
    let long = "n".repeat(256);
    for name in ["", "a!b", "a b", "\"", "\u{e4}", "$terrace", &long] {
        for error in [
            db.create_keyspace(name, KeyspaceOptions::new()).expect_err(name),
            db.keyspace(name).expect_err(name),
            db.drop_keyspace(name).expect_err(name),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name}: {error}");
        }
    }
    create(&db, "twice");
    let error = db.create_keyspace("twice", KeyspaceOptions::new()).expect_err("it is there");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    db.put("!by keys", "").expect("a put");
    db.put("!bykeys!a", "").expect("a put");
    let error = db.create_keyspace("bykeys", KeyspaceOptions::new()).expect_err("it has keys");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert_eq!(db.keyspaces().expect("names"), ["bykeys", "twice"]);
    db.put("!$terrace!keyspace!later!", "keyspace 1\ncipher aes\n").expect("a put");
    let error = db.keyspace("later").expect_err("an unknown setting");
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    assert!(error.to_string().contains("later") && error.to_string().contains("cipher"), "{error}");
    let reverse = options().env(Arc::new(MemEnv::new())).comparator(Arc::new(ReverseComparator));
    let db = Db::open(PATH, reverse).expect("opens");
    for error in [
        db.create_keyspace("a", KeyspaceOptions::new()).expect_err("another order"),
        db.keyspace("a").expect_err("another order"),
        db.keyspaces().expect_err("another order"),
        db.drop_keyspace("a").expect_err("another order"),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    }
}

#[test]
fn a_keyspace_is_there_until_it_is_dropped_also_without_keys() {
    let env = Arc::new(MemEnv::new());
    let db = Db::open(PATH, options().env(env.clone())).expect("opens");
    create(&db, "empty");
    create(&db, "full").put("a", "1").expect("a put");
    db.close().expect("closes");
    let db = Db::open(PATH, options().env(env.clone())).expect("opens again");
    assert_eq!(db.keyspaces().expect("names"), ["empty", "full"]);
    assert_eq!(entries(&db.keyspace("full").expect("it is there")), pairs(&[("a", "1")]));
    assert_eq!(entries(&db.keyspace("empty").expect("it is there")), []);
    // Another program clears all of it.
    db.delete_range::<&[u8]>(..).expect("a range delete");
    db.delete_prefix("!$terrace!", WriteOptions::new()).expect("a range delete");
    db.put("!full!b", "2").expect("a put");
    db.close().expect("closes");
    let db = Db::open(PATH, options().env(env).read_only(true)).expect("opens to read");
    assert_eq!(db.keyspaces().expect("names"), ["full"]);
    assert_eq!(entries(&db.keyspace("full").expect("it is there")), pairs(&[("b", "2")]));
    let error = db.create_keyspace("new", KeyspaceOptions::new()).expect_err("read-only");
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
}

/// A keyspace that is there only by another one within it is one as any other.
#[test]
fn what_is_listed_can_be_opened_and_dropped() {
    let env = Arc::new(MemEnv::new());
    let open = || Db::open(PATH, options().env(env.clone())).expect("opens");
    let db = open();
    db.put("!a!k", "of another program").expect("a put");
    let within = KeyspaceOptions::new().block_size(1 << 10);
    db.keyspace("a").and_then(|a| a.create_keyspace("b", within.clone())).expect("a keyspace");
    db.delete("!a!k").expect("a deletion");
    db.close().expect("closes");
    let db = open();
    assert_eq!(db.keyspaces().expect("names"), ["a"]);
    let parent = db.keyspace("a").expect("it is listed");
    assert_eq!(parent.keyspaces().expect("names"), ["b"]);
    let error = db.create_keyspace("a", KeyspaceOptions::new()).expect_err("it is there");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    parent.keyspace_with("b", &within).expect("with its settings");
    drop(parent);
    assert!(db.drop_keyspace("a").expect("a drop"));
    assert_eq!(db.keyspaces().expect("names"), [""; 0]);
    let again = create(&db, "a");
    assert_eq!(again.keyspaces().expect("names"), [""; 0]);
}

#[test]
fn a_dropped_keyspace_takes_no_writes_though_its_name_comes_back() {
    for batch in [0, 4096] {
        let options = options().env(Arc::new(MemEnv::new())).range_delete_batch(batch);
        let db = Db::open(PATH, options).expect("opens");
        let old = create(&db, "name");
        for number in 0..100 {
            old.put(format!("{number}"), "old").expect("a put");
        }
        let snapshot = db.snapshot();
        let cursor = old.iter().expect("entries");
        let mut transaction = db.transaction();
        transaction.put(old.key("7"), "of a transaction");
        assert!(db.drop_keyspace("name").expect("a drop"));
        let new = create(&db, "name");
        new.put("fresh", "new").expect("a put");
        let mut one = WriteBatch::new();
        one.put("a", "b");
        for error in [
            old.put("a", "b").expect_err("dropped"),
            old.delete("fresh").expect_err("dropped"),
            old.write(&one).expect_err("dropped"),
            old.delete_range::<&[u8]>(..).expect_err("dropped"),
            old.get("fresh").expect_err("dropped"),
            old.iter().expect_err("dropped"),
            old.create_keyspace("in", KeyspaceOptions::new()).expect_err("dropped"),
        ] {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        }
        assert_eq!(entries(&new), pairs(&[("fresh", "new")]));
        assert_eq!(cursor.count(), 100);
        let before = ReadOptions::new().snapshot(&snapshot);
        let range = old.range_with::<&[u8]>(.., &before);
        assert_eq!(range.expect("a snapshot is read").count(), 100);
        assert_eq!(old.get_with("7", &before).expect("a read").as_deref(), Some(&b"old"[..]));
        let error = transaction.commit().expect_err("its key was deleted");
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}

/// Batches, snapshots, transactions and checkpoints span keyspaces.
#[test]
fn what_the_database_does_spans_keyspaces() {
    let env = Arc::new(MemEnv::new());
    let db = Db::open(PATH, options().env(env.clone())).expect("opens");
    let (a, b) = (create(&db, "a"), create(&db, "b"));
    let mut batch = WriteBatch::new();
    batch.put(a.key("k"), "1");
    batch.put(b.key("k"), "1");
    db.write(&batch).expect("a batch");
    let snapshot = db.snapshot();
    db.transact(|transaction| {
        transaction.put(a.key("k"), "2");
        transaction.put(b.key("k"), "2");
        terrace::Result::Ok(())
    })
    .expect("a transaction");
    let before = ReadOptions::new().snapshot(&snapshot);
    for keyspace in [&a, &b] {
        assert_eq!(keyspace.get_with("k", &before).expect("a read").as_deref(), Some(&b"1"[..]));
        assert_eq!(entries(keyspace), pairs(&[("k", "2")]));
    }
    db.checkpoint("/copy").expect("a checkpoint");
    let copy = Db::open("/copy", options().env(env)).expect("the copy opens");
    assert_eq!(copy.keyspaces().expect("names"), ["a", "b"]);
    assert_eq!(entries(&copy.keyspace("b").expect("it is there")), pairs(&[("k", "2")]));
}

/// A keyspace keeps the database open, as a clone does.
#[test]
fn a_keyspace_outlives_the_handle_of_its_database() {
    let db = open_new();
    let keyspace = create(&db, "a");
    drop(db);
    keyspace.put("k", "v").expect("the database is open");
    keyspace.db().clone().close().expect("closes");
    assert_eq!(keyspace.get("k").expect_err("closed").kind(), ErrorKind::Closed);
}

/// The contents of keyspaces, by name.
type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

fn compare(db: &Db, model: &Contents, raw: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), String> {
    let text = |error: terrace::Error| error.to_string();
    let names: Vec<_> = model.keys().cloned().collect();
    if db.keyspaces().map_err(text)? != names {
        return Err(format!("{:?}, must be {names:?}", db.keyspaces()));
    }
    let mut all: BTreeMap<Vec<u8>, Vec<u8>> = raw.clone();
    for (name, expected) in model {
        let keyspace = db.keyspace(name).map_err(text)?;
        let forwards = keyspace.iter().and_then(|entries| entries.collect()).map_err(text)?;
        let expected: Vec<Pair> = expected.clone().into_iter().collect();
        let mut backwards: Vec<Pair> =
            keyspace.iter().and_then(|entries| entries.rev().collect()).map_err(text)?;
        backwards.reverse();
        if Vec::<Pair>::clone(&forwards) != expected || backwards != expected {
            return Err(format!("{name}: {} entries", forwards.len()));
        }
        all.extend(expected.into_iter().map(|(key, value)| (keyspace.key(key), value)));
    }
    let found = read_all(db).map_err(text)?;
    let found: Vec<_> =
        found.into_iter().filter(|(key, _)| !key.starts_with(b"!$terrace!")).collect();
    let all: Vec<_> = all.into_iter().collect();
    if found == all { Ok(()) } else { Err(format!("{} entries in all", found.len())) }
}

#[test]
fn random_work_in_keyspaces_equals_a_model() {
    campaign("random_work_in_keyspaces_equals_a_model", scaled(300), |seed| {
        let text = |error: terrace::Error| error.to_string();
        let mut rng = Rng::new(seed);
        let env = Arc::new(MemEnv::new());
        let batch = *rng.pick(&[0, 10, 4096]);
        let open =
            || Db::open(PATH, options().env(env.clone()).range_delete_batch(batch)).map_err(text);
        let mut db = open()?;
        let names = ["a", "ab", "b", "~", "#", "users"];
        let (mut model, mut raw) = (Contents::new(), BTreeMap::new());
        for _ in 0..300 {
            let name = *rng.pick(&names);
            let key = format!("key{}", rng.below(30)).into_bytes();
            let value = rng.bytes(300);
            match rng.below(20) {
                0 => match db.create_keyspace(name, KeyspaceOptions::new()) {
                    Ok(_) if !model.contains_key(name) => {
                        model.insert(name.to_owned(), BTreeMap::new());
                    }
                    Err(error)
                        if model.contains_key(name)
                            && error.kind() == ErrorKind::InvalidArgument => {}
                    outcome => return Err(format!("create {name}: {outcome:?}")),
                },
                1 => {
                    let dropped = db.drop_keyspace(name).map_err(text)?;
                    if dropped != model.remove(name).is_some() {
                        return Err(format!("drop {name}: {dropped}"));
                    }
                }
                2 => {
                    drop(db);
                    db = open()?;
                }
                3 => db.flush().map_err(text)?,
                4 => {
                    db.put(&key, &value).map_err(text)?;
                    raw.insert(key, value);
                }
                5 if model.contains_key(name) => {
                    let to = format!("key{}", rng.below(30)).into_bytes();
                    let keyspace = db.keyspace(name).map_err(text)?;
                    keyspace.delete_range(key.clone()..to.clone()).map_err(text)?;
                    let entries = model.entry(name.to_owned()).or_default();
                    let range = key..to;
                    entries.retain(|other, _| !range.contains(other));
                }
                6 if model.contains_key(name) => {
                    db.keyspace(name).and_then(|k| k.delete(&key)).map_err(text)?;
                    model.entry(name.to_owned()).or_default().remove(&key);
                }
                7 => {
                    // A write of its keys creates a keyspace, too.
                    let full = [b"!", name.as_bytes(), b"!", &key].concat();
                    db.put(full, &value).map_err(text)?;
                    model.entry(name.to_owned()).or_default().insert(key, value);
                }
                8 => compare(&db, &model, &raw)?,
                _ if model.contains_key(name) => {
                    db.keyspace(name).and_then(|k| k.put(&key, &value)).map_err(text)?;
                    model.entry(name.to_owned()).or_default().insert(key, value);
                }
                _ => match db.keyspace(name) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    outcome => return Err(format!("keyspace {name}: {outcome:?}")),
                },
            }
            // One that was found by its keys alone goes with the last of them, once it is looked
            // for anew; the model keeps those that the catalogue has.
            let names: Vec<_> = model.keys().cloned().collect();
            for name in names {
                let entry = db.get(format!("!$terrace!keyspace!{name}!")).map_err(text)?;
                if model[&name].is_empty() && entry.is_none() {
                    drop(db);
                    db = open()?;
                    model.remove(&name);
                }
            }
        }
        compare(&db, &model, &raw)
    });
}

/// A keyspace is created or not, and dropped as a whole or not, whenever the power fails.
#[test]
fn keyspaces_begin_and_end_as_a_whole_at_every_crash() {
    let mut states = 0;
    for batch in [0, 4096] {
        let open = |fs: &SimFs| Db::open(PATH, options().range_delete_batch(batch).env(fs.env()));
        let fs = SimFs::new();
        fs.record();
        let db = open(&fs).expect("opens");
        let outer = create(&db, "outer");
        let inner = outer.create_keyspace("inner", KeyspaceOptions::new()).expect("a keyspace");
        let mut all = WriteBatch::new();
        for number in 0..60 {
            all.put(outer.key(format!("{number:02}")), [b'v'; 100]);
            all.put(inner.key(format!("{number:02}")), [b'v'; 100]);
        }
        all.put("beside", "1");
        all.put("!outers!x", "1");
        db.write(&all).expect("a batch");
        db.sync().expect("a sync");
        let created = fs.steps();
        assert!(db.drop_keyspace("outer").expect("a drop"));
        let dropped = fs.steps();
        drop((outer, inner));
        db.close().expect("closes");
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        let mut rng = Rng::new(batch as u64);
        loop {
            let at = replay.at();
            let random = (0..scaled(4).max(1)).map(|_| PowerLoss::random(rng.next_u64()));
            let losses: Vec<_> =
                [PowerLoss::STRICT, PowerLoss::PROCESS_ONLY].into_iter().chain(random).collect();
            for loss in losses {
                states += 1;
                let case = format!("batch {batch}, moment {at}, {loss:?}");
                let db = open(&replay.power_loss(loss))
                    .unwrap_or_else(|error| panic!("{case}: {error}"));
                let found = read_all(&db).unwrap_or_else(|error| panic!("{case}: {error}"));
                let with = |prefix: &str| {
                    found.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes())).count()
                };
                let counts =
                    (with("!outer!"), with("!outer!!inner!"), with("!$terrace!keyspace!outer!"));
                let names: BTreeSet<_> = db.keyspaces().expect("names").into_iter().collect();
                let has_outer = names.contains("outer");
                match counts {
                    (120, 60, 2) => assert!(has_outer && at < dropped, "{case}: {names:?}"),
                    (0, 0, entries) if entries > 0 => assert!(has_outer, "{case}"),
                    (0, 0, 0) => assert!(!has_outer, "{case}: {names:?}"),
                    _ => panic!("{case}: half of a keyspace: {counts:?}"),
                }
                if (created..dropped).contains(&at) {
                    assert!(counts.0 == 120 || counts == (0, 0, 0), "{case}: {counts:?}");
                    assert!(with("beside") == 1 && with("!outers!") == 1, "{case}");
                }
                if at >= dropped {
                    assert_eq!(counts, (0, 0, 0), "{case}");
                    assert!(with("beside") == 1 && with("!outers!") == 1, "{case}");
                }
            }
            if !replay.advance() {
                break;
            }
        }
    }
    println!("keyspaces_begin_and_end_as_a_whole_at_every_crash: {states} crash states");
}

/// Writers of a keyspace that is dropped and made again beside them: whatever is there was written
/// by a handle of the present one.
#[test]
fn writers_beside_drops_write_into_no_later_keyspace() {
    campaign("writers_beside_drops", scaled(10), |seed| {
        let options = options().env(Arc::new(MemEnv::new()));
        let batch = if seed.is_multiple_of(2) { 0 } else { 4096 };
        let db = Db::open(PATH, options.range_delete_batch(batch)).expect("opens");
        let (done, db) = (AtomicBool::new(false), &db);
        let done = &done;
        std::thread::scope(|scope| {
            for round in 0..20_u32 {
                let keyspace = create(db, "k");
                scope.spawn(move || {
                    for number in 0_u32.. {
                        let key = [round.to_be_bytes(), number.to_be_bytes()].concat();
                        if keyspace.put(key, [b'v'; 50]).is_err() || done.load(Ordering::Acquire) {
                            break;
                        }
                    }
                });
                while db.keyspace("k").and_then(|k| k.first()).expect("a read").is_none() {
                    std::thread::yield_now();
                }
                for entry in db.keyspace("k").and_then(|k| k.iter()).expect("entries") {
                    let (key, _) = entry.expect("an entry");
                    assert_eq!(key[..4], round.to_be_bytes(), "of an earlier keyspace");
                }
                if round < 19 {
                    assert!(db.drop_keyspace("k").expect("a drop"));
                }
            }
            done.store(true, Ordering::Release);
        });
        Ok(())
    });
}

/// Threads that open a keyspace beside its end: it is not there afterwards.
#[test]
fn a_keyspace_that_is_opened_beside_its_drop_does_not_outlive_it() {
    campaign("opened_beside_drops", scaled(10), |seed| {
        let options = options().env(Arc::new(MemEnv::new()));
        let batch = if seed.is_multiple_of(2) { 0 } else { 4096 };
        let db = Db::open(PATH, options.range_delete_batch(batch)).expect("opens");
        let (done, db) = (AtomicBool::new(false), &db);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let _ = db.keyspace("k");
                }
            });
            for _ in 0..500 {
                create(db, "k").put("a", "b").expect("a put");
                assert!(db.drop_keyspace("k").expect("a drop"));
                let found = db.keyspace("k").map_err(|error| error.kind());
                if !matches!(found, Err(ErrorKind::NotFound)) {
                    done.store(true, Ordering::Release);
                    panic!("after its drop: {found:?}");
                }
            }
            done.store(true, Ordering::Release);
        });
        Ok(())
    });
}

/// Nothing begins within a keyspace that was dropped meanwhile.
#[test]
fn a_keyspace_begins_in_no_parent_that_is_dropped_beside_it() {
    campaign("created_beside_drops", scaled(10), |_| {
        let db = open_new();
        for _ in 0..200 {
            let parent = create(&db, "a");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    (0..).find_map(|number| {
                        let none = KeyspaceOptions::new();
                        parent.create_keyspace(format!("b{number}"), none).err()
                    })
                });
                while parent.keyspaces().is_ok_and(|names| names.is_empty()) {
                    std::thread::yield_now();
                }
                assert!(db.drop_keyspace("a").expect("a drop"));
            });
            assert_eq!(db.keyspaces().expect("names"), [""; 0]);
        }
        Ok(())
    });
}

/// What LevelDB's programs write under a prefix is in the keyspace, and what is there they see.
#[test]
fn keyspaces_go_to_leveldb_and_back() {
    let Some(peer) = Peer::find() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let peer_options = PeerOptions::default();
    let mut names = BTreeSet::new();
    for round in 0..6 {
        let db = Db::open(&path, options().range_delete_batch(0)).expect("opens");
        let name = format!("k{round}");
        let keyspace = create(&db, &name);
        for number in 0..200 {
            keyspace.put(format!("{number}"), "of Terrace").expect("a put");
        }
        if round % 2 == 1 {
            let earlier = format!("k{}", round - 1);
            assert!(db.drop_keyspace(&earlier).expect("a drop"));
            names.remove(&earlier);
        }
        names.insert(name.clone());
        let expected = read_all(&db).expect("entries");
        drop(keyspace);
        db.close().expect("closes");
        assert!(peer.entries(&path, &peer_options).expect("LevelDB reads") == expected);
        peer.simple("compact", &path, &peer_options).expect("LevelDB compacts");
        for (key, value) in [(format!("!{name}!7"), "of LevelDB"), (format!("!of{name}!a"), "1")] {
            peer.put(&path, &peer_options, key.as_bytes(), value.as_bytes()).expect("a put");
        }
        names.insert(format!("of{name}"));
        let db = Db::open(&path, options()).expect("opens");
        let found: BTreeSet<_> = db.keyspaces().expect("names").into_iter().collect();
        assert_eq!(found, names);
        let keyspace = db.keyspace(&name).expect("it is there");
        assert_eq!(keyspace.get("7").expect("a read").as_deref(), Some(&b"of LevelDB"[..]));
        assert_eq!(keyspace.iter().expect("entries").count(), 200);
    }
    assert!(Path::new(&path).exists());
}

/// Settings are stored, hold for what is written from then on, and contradictions are refused.
#[test]
fn settings_of_keyspaces_are_stored_and_followed() {
    let env = Arc::new(MemEnv::new());
    let open = || {
        let options = options().env(env.clone()).table_filter_bits(10);
        Db::open(PATH, options).expect("opens")
    };
    let db = open();
    let raw = KeyspaceOptions::new().compression(Compression::None).block_size(64 << 10);
    let filtered = KeyspaceOptions::new().filter_bits(20);
    db.create_keyspace("raw", raw.clone()).expect("a keyspace");
    db.create_keyspace("filtered", filtered.clone()).expect("a keyspace");
    create(&db, "plain");
    db.close().expect("closes");
    let db = open();
    let error = db.keyspace_with("raw", &filtered).expect_err("it has others");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("raw was created with"), "{error}");
    let keyspace = db.keyspace_with("raw", &raw).expect("it has these");
    assert_eq!(keyspace.options(), &raw);
    assert_eq!(db.keyspace("filtered").expect("it is there").options(), &filtered);
    assert_eq!(db.keyspace("plain").expect("it is there").options(), &KeyspaceOptions::new());
    let inner = keyspace.create_keyspace("in", KeyspaceOptions::new()).expect("a keyspace");
    let value = b"compressible ".repeat(40);
    for number in 0..400 {
        for name in ["filtered", "plain", "raw"] {
            db.put(format!("!{name}!{number:04}"), &value).expect("a put");
        }
        inner.put(format!("{number:04}"), &value).expect("a put");
    }
    db.flush().expect("a flush");
    db.compact_range::<&[u8]>(..).expect("a compaction");
    let size = |keyspace: &Keyspace| keyspace.approximate_size().expect("a size");
    let (plain, inner_size) = (size(&db.keyspace("plain").expect("one")), size(&inner));
    let all_raw = size(&keyspace);
    assert!(all_raw > 5 * plain, "{all_raw} bytes are not compressed, {plain} are");
    assert!(inner_size < 2 * plain, "{inner_size} bytes within, as the database says");
    // Blocks as large as that are few, and hold nothing of others; the filter is for all keys.
    let file = db.files().into_iter().find(|file| file.entries > Some(1600)).expect("one table");
    let path = Path::new(PATH).join(format!("{:06}.ldb", file.number));
    let (mut of_block, mut blocks) = (Vec::new(), Vec::new());
    let summary = inspect::table(&path, &options().env(env.clone()), &mut |item| {
        match item {
            inspect::TableItem::Block(block) => {
                blocks.extend((block.raw_size > 60 << 10).then_some(block.compression));
                of_block.clear();
            }
            inspect::TableItem::Entry(entry) => {
                let name = entry.key.iter().rposition(|&byte| byte == b'!').map(|at| at + 1);
                of_block.push(entry.key[..name.unwrap_or(0)].to_vec());
                let is_raw = of_block.iter().any(|name| name == b"!raw!");
                assert!(!is_raw || of_block.iter().all(|name| name == b"!raw!"), "{of_block:?}");
            }
            other => panic!("{other:?}"),
        }
        ControlFlow::Continue(())
    });
    let summary = summary.expect("a table");
    assert!(blocks.len() >= 3 && blocks.iter().all(|&how| how == "none"), "{blocks:?}");
    let filter = summary.meta_blocks.iter().find(|(name, _)| name == "terrace.filter");
    let bits = filter.expect("a filter").1.size * 8 / summary.entries;
    assert!((19..=22).contains(&bits), "{bits} bits for a key");
    for (key, found) in db.iter().expect("entries").map(|entry| entry.expect("an entry")) {
        assert!(key.starts_with(b"!$") || found == value, "{}", String::from_utf8_lossy(&key));
    }
    assert_eq!(db.verify().expect("a report").problems, []);
}

/// Another one is created under the name of the one that an open has just found.
#[test]
fn an_open_beside_a_drop_does_not_bring_settings_back() {
    let env = Arc::new(Hooked::default());
    let open = || Db::open(PATH, options().env(env.clone()).block_cache_size(0)).expect("opens");
    let sized = |bytes| KeyspaceOptions::new().block_size(bytes);
    let db = open();
    for name in ["s", "t"] {
        drop(db.create_keyspace(name, sized(1 << 20)).expect("a keyspace"));
    }
    db.flush().expect("a flush");
    db.close().expect("closes");
    let db = open();
    // Has the settings read, so that no background job reads them when the hook waits.
    drop(db.keyspace("t").expect("the other"));
    db.wait_idle().expect("idle");
    let other = db.clone();
    env.once_at("read .ldb", move |_| {
        assert!(other.drop_keyspace("s").expect("a drop"));
        other.create_keyspace("s", sized(1 << 10)).expect("a keyspace");
    });
    let keyspace = db.keyspace("s").expect("one of them");
    assert_eq!(keyspace.options(), &sized(1 << 10));
    for number in 0..400 {
        keyspace.put(format!("{number:03}"), [b'v'; 100]).expect("a put");
    }
    db.flush().expect("a flush");
    db.wait_idle().expect("idle");
    let file = db.files().into_iter().max_by_key(|file| file.entries).expect("a table");
    let path = Path::new(PATH).join(format!("{:06}.ldb", file.number));
    inspect::table(&path, &options().env(env.clone()), &mut |item| {
        if let inspect::TableItem::Block(block) = item {
            assert!(block.raw_size < 4 << 10, "a block of {} bytes", block.raw_size);
        }
        ControlFlow::Continue(())
    })
    .expect("a table");
}

/// The catalogue is no program's to pop.
#[test]
fn a_pop_leaves_the_catalogue() {
    let db = open_new();
    let jobs = create(&db, "jobs");
    db.put("\u{1}", "first").expect("a put");
    jobs.put("1", "mail").expect("a put");
    for number in 0..2 {
        create(&db, &format!("{number}"));
    }
    let pair = |key: &str, value: &str| Some((key.into(), value.into()));
    assert_eq!(db.pop_first().expect("a pop"), pair("\u{1}", "first"));
    assert_eq!(db.pop_first().expect("a pop"), pair("!jobs!1", "mail"));
    assert_eq!((db.pop_first().expect("none"), db.pop_last().expect("none")), (None, None));
    db.put("!!", "before").expect("a put");
    assert_eq!(db.pop_last().expect("a pop"), pair("!!", "before"));
    assert_eq!(db.keyspaces().expect("names"), ["0", "1", "jobs"]);
    jobs.put("2", "print").expect("it is there");
    assert_eq!(jobs.pop_last().expect("a pop"), pair("2", "print"));
}

/// Nor to delete with a range that spans it: entries of a keyspace that lost its settings would show
/// the bytes of their times.
#[test]
fn a_range_delete_leaves_the_catalogue() {
    for batch in [0, 4096] {
        let env: Arc<MemEnv> = Arc::new(MemEnv::new());
        let options = options().env(env).range_delete_batch(batch);
        let db = Db::open(PATH, options.clone()).expect("opens");
        let hour = Some(Duration::from_secs(3600));
        let timed = KeyspaceOptions::new().expiry(true).default_ttl(hour);
        let sessions = db.create_keyspace("sessions", timed.clone()).expect("a keyspace");
        let fill = || {
            db.put("\u{1}", "v").expect("a put");
            db.put("z", "v").expect("a put");
            sessions.put("ada", "1").expect("a put");
            db.flush().expect("a flush");
        };
        let shown = || {
            let entries = db.iter().expect("entries").map(|entry| entry.expect("an entry").0);
            entries.filter(|key| !key.starts_with(b"!$terrace!")).count()
        };
        fill();
        db.delete_range::<&[u8]>(..).expect("a range delete");
        assert_eq!(shown(), 0);
        fill();
        db.delete_prefix("", WriteOptions::new()).expect("a range delete");
        assert_eq!(shown(), 0);
        fill();
        let mut transaction = db.transaction();
        transaction.delete_range::<&[u8]>(..).expect("reads");
        transaction.commit().expect("a commit");
        assert_eq!(shown(), 0);
        sessions.put("eve", "2").expect("it is there");
        drop(sessions);
        db.close().expect("closes");

        let db = Db::open(PATH, options).expect("opens");
        let sessions = db.keyspace("sessions").expect("it is there");
        assert_eq!(sessions.options(), &timed);
        assert_eq!(sessions.get("eve").expect("reads").as_deref(), Some(&b"2"[..]));
        // Who names them can remove them.
        db.delete_prefix("!$terrace!keyspace", WriteOptions::new()).expect("a range delete");
        assert_eq!(
            db.iter()
                .expect("entries")
                .filter(|entry| {
                    entry.as_ref().is_ok_and(|(key, _)| key.starts_with(b"!$terrace!keyspace"))
                })
                .count(),
            0
        );
    }
}

/// As many keyspaces as there are users take no memory of their own.
#[test]
fn ten_thousand_keyspaces_are_one_tree() {
    let db = open_new();
    let count = scaled(10_000).max(500);
    for round in 0..3 {
        for number in 0..count {
            let name = format!("user{number}");
            let keyspace = match round {
                0 => create(&db, &name),
                _ => db.keyspace(&name).expect("it is there"),
            };
            keyspace.put(format!("{round}"), "v").expect("a put");
        }
    }
    assert_eq!(db.keyspaces().expect("names").len(), usize::try_from(count).expect("small"));
    let range = (Bound::Included("!user7!"), Bound::Excluded("!user7\""));
    assert_eq!(db.range::<&str>(range).expect("entries").count(), 3);
    db.flush().expect("a flush");
    db.wait_idle().expect("idle");
    assert!(db.files().len() < 40, "{} tables", db.files().len());
}

/// Entries of all keyspaces together, and bytes of a value, in the comparison below.
const COMPARED: u64 = 1_000_000;
const VALUE: usize = 100;

/// Writes the entries round robin into so many keyspaces, or in the same order into one, and prints
/// microseconds, tables and KiB of memory that the process has more than before.
fn write_round_robin(count: u64, is_one: bool) {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0)
    };
    let all = scaled(COMPARED);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let open = || Db::open(dir.path().join("db"), Options::new().create_if_missing(true));
    let db = open().expect("opens");
    let name = |number: u64| if is_one { "users".into() } else { format!("user{number:06}") };
    let mut names = WriteBatch::new();
    for number in 0..count {
        // As a creation does, but for its sync.
        names.put(format!("!$terrace!keyspace!{}!", name(number)), "keyspace 1\n");
    }
    db.write(&names).expect("a batch");
    db.close().expect("closes");
    let db = open().expect("opens");
    let before = resident();
    let keyspace = |number| db.keyspace(name(number)).expect("it is there");
    let keyspaces: Vec<_> = (0..count).map(keyspace).collect();
    let start = std::time::Instant::now();
    let mut rng = Rng::new(7);
    for number in 0..all {
        let (user, round) = (number % count, number / count);
        let key = if is_one { format!("{user:06}{round:06}") } else { format!("{round:06}") };
        let keyspace = &keyspaces[usize::try_from(user).expect("few")];
        keyspace.put(key, rng.bytes(VALUE)).expect("a put");
    }
    let micros = start.elapsed().as_micros();
    // How many memtables wait for their flush at one moment is chance, and so is what remains in
    // level 0, in tables of any size, when a load ends.
    db.flush().expect("a flush");
    db.wait_idle().expect("idle");
    let memory = resident().saturating_sub(before);
    db.compact_range::<&[u8]>(..).expect("a compaction");
    println!("figures {micros} {} {memory}", db.files().len());
}

/// Ten thousand keyspaces cost memory and tables as one does. In processes of their own, so that
/// memory can be told apart.
#[test]
fn many_keyspaces_cost_what_one_does() {
    const MODE: &str = "TERRACE_KEYSPACES";
    let many = scaled(10_000).max(100);
    if let Ok(mode) = std::env::var(MODE) {
        return write_round_robin(many, mode == "one");
    }
    let measured = |mode: &str| {
        let name = "keyspaces::many_keyspaces_cost_what_one_does";
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args([name, "--exact", "--nocapture"])
            .env(MODE, mode)
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.split_once("figures ")).expect("figures").1;
        let figures: Vec<u64> =
            line.split(' ').map(|number| number.parse().expect("a number")).collect();
        <[u64; 3]>::try_from(figures).expect("three figures")
    };
    let [micros, tables, memory] = measured("many");
    let [one_micros, one_tables, one_memory] = measured("one");
    println!(
        "many_keyspaces_cost_what_one_does: {} entries in {many} keyspaces: {micros} µs, {tables} \
         tables, {memory} KiB; in one: {one_micros} µs, {one_tables} tables, {one_memory} KiB",
        scaled(COMPARED)
    );
    assert!(tables * 10 <= one_tables * 12, "{tables} tables, not {one_tables}");
    assert!(memory <= one_memory + (20 << 10), "{memory} KiB, not {one_memory}");
}

/// Threads that open or make the same keyspace at once all get it, with their options or an error.
#[test]
fn threads_that_open_or_create_a_keyspace_share_it() {
    let db = Db::open(PATH, options()).expect("opens");
    for round in 0..scaled(200) {
        let name = format!("k{round}");
        let both = std::thread::scope(|scope| {
            let open = || db.open_or_create_keyspace(&name, KeyspaceOptions::new().expiry(true));
            [scope.spawn(open), scope.spawn(open)].map(|thread| thread.join().expect("a thread"))
        });
        let [one, other] = both.map(|keyspace| keyspace.expect("a keyspace"));
        one.put("a", "1").expect("a put");
        assert_eq!(other.get("a").expect("a read").as_deref(), Some(&b"1"[..]));
        let plain = db.open_or_create_keyspace(&name, KeyspaceOptions::new());
        assert_eq!(plain.expect_err("other options").kind(), ErrorKind::InvalidArgument);
    }
    let invalid = db.open_or_create_keyspace("a!b", KeyspaceOptions::new());
    assert_eq!(invalid.expect_err("no name").kind(), ErrorKind::InvalidArgument);
}

/// A drop that waits for a lock keeps nobody from opening another keyspace.
#[test]
fn a_keyspace_is_opened_beside_a_drop_that_waits() {
    let options = options().env(Arc::new(MemEnv::new()));
    let db = Db::open(PATH, options.clone()).expect("opens");
    for name in ["s", "t"] {
        create(&db, name).put("k", "v").expect("a put");
    }
    db.close().expect("closes");
    let db = Db::open(PATH, options).expect("opens");
    let locking = TransactionOptions::new().locking(true);
    let mut holder = db.transaction_with(locking);
    holder.get_for_update("!s!k").expect("a lock");
    std::thread::scope(|scope| {
        let dropped = scope.spawn(|| db.drop_keyspace("s"));
        while db.stats().lock_waits == 0 {
            std::thread::yield_now();
        }
        let other = db.keyspace("t").expect("a keyspace");
        assert_eq!(other.get("k").expect("a read").as_deref(), Some(&b"v"[..]));
        assert!(!dropped.is_finished(), "it waits for the lock");
        holder.rollback();
        assert!(dropped.join().expect("a thread").expect("a drop"));
    });
}
