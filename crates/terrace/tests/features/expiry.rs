//! Expiry: what reads see of entries with a time to live, when they go, and by which clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, UNIX_EPOCH};

use terrace::{
    Append, CompactOptions, CompactionFilter, Db, ErrorKind, FilterDecision, Isolation, Keyspace,
    KeyspaceOptions, MemEnv, Options, PutOptions, ReadOptions, TransactionOptions, WriteBatch,
    WriteOptions,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::clocked::{Clocked, START};
use terrace_testkit::hooked::Hooked;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;

pub(crate) const PATH: &str = "/db";
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn options() -> Options {
    Options::new().create_if_missing(true).write_buffer_size(64 << 10).max_file_size(1 << 20)
}

fn clocked() -> (Arc<Clocked>, Db) {
    let env = Clocked::over(Arc::new(MemEnv::new()));
    let db = Db::open(PATH, options().env(env.clone())).expect("opens");
    (env, db)
}

pub(crate) fn expiring() -> KeyspaceOptions {
    KeyspaceOptions::new().expiry(true)
}

pub(crate) fn ttl(minutes: u32) -> PutOptions {
    PutOptions::new().ttl(MINUTE * minutes)
}

pub(crate) fn force() -> CompactOptions {
    CompactOptions::new().force(true)
}

pub(crate) fn keys(keyspace: &Keyspace) -> Vec<String> {
    let entries = keyspace.iter().expect("entries");
    entries.map(|entry| String::from_utf8(entry.expect("an entry").0).expect("text")).collect()
}

/// Entries as they are stored, those that have expired included.
pub(crate) fn stored(db: &Db) -> usize {
    let as_stored = ReadOptions::new().stored_values(true);
    let entries = db.iter_with(&as_stored).expect("entries");
    entries.filter(|entry| !entry.as_ref().expect("an entry").0.starts_with(b"!$terrace!")).count()
}

#[test]
fn expired_entries_are_invisible_at_once_in_every_read() {
    let (env, db) = clocked();
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    for (number, key) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let options = if number % 2 == 0 { ttl(10) } else { ttl(20) };
        sessions.put_with(key, format!("value {key}"), options).expect("a put");
    }
    sessions.put("f", "for ever").expect("a put");
    for flushed in [false, true] {
        if flushed {
            db.flush().expect("a flush");
        }
        assert_eq!(sessions.get("a").expect("a read").as_deref(), Some(&b"value a"[..]));
        assert_eq!(sessions.get_pinned("a").expect("a read").as_deref(), Some(&b"value a"[..]));
        assert_eq!(db.get("!s!b").expect("a read").as_deref(), Some(&b"value b"[..]));
        assert_eq!(keys(&sessions), ["a", "b", "c", "d", "e", "f"]);
    }
    env.advance(MINUTE * 10);
    assert_eq!(keys(&sessions), ["b", "d", "f"]);
    let backwards = sessions.iter().expect("entries").rev();
    let backwards: Vec<_> = backwards.map(|entry| entry.expect("an entry")).collect();
    assert_eq!(backwards.len(), 3);
    assert_eq!(backwards[2], (b"b".to_vec(), b"value b".to_vec()));
    assert_eq!(sessions.get("a").expect("a read"), None);
    assert!(sessions.get_pinned("c").expect("a read").is_none());
    assert!(!sessions.contains_key("e").expect("a read"));
    let mut value = Vec::new();
    let mut at_hand = |key: &str| {
        let found = db.get_in_memory(key, &mut value, &ReadOptions::new()).expect("a read");
        (found, value.clone())
    };
    assert_eq!(at_hand("!s!b"), (Some(true), b"value b".to_vec()));
    assert_eq!(at_hand("!s!a").0, Some(false));
    assert_eq!(
        sessions.multi_get(&["a", "b", "f", "x"]).expect("reads"),
        [None, Some(b"value b".to_vec()), Some(b"for ever".to_vec()), None]
    );
    assert_eq!(db.multi_get(&["!s!a", "!s!d"]).expect("reads"), [None, Some(b"value d".to_vec())]);
    assert_eq!(sessions.first().expect("a read").expect("one").0, b"b");
    assert_eq!(sessions.range("c"..="d").expect("entries").count(), 1);
    assert_eq!(db.prefix("!s!").expect("entries").count(), 3);
    let mut cursor = sessions.cursor().expect("a cursor");
    cursor.seek("c");
    assert_eq!(cursor.entry(), Some((&b"d"[..], &b"value d"[..])));
    cursor.prev();
    assert_eq!(cursor.entry(), Some((&b"b"[..], &b"value b"[..])));
    cursor.prev();
    assert!(!cursor.valid() && cursor.value().is_empty() && cursor.status().is_ok());
    cursor.seek_for_prev("e");
    assert_eq!(cursor.key(), b"d");
    cursor.seek_to_first();
    assert_eq!(cursor.value(), b"value b");
    assert_eq!(stored(&db), 6, "nothing is removed yet");
    let as_stored = ReadOptions::new().stored_values(true);
    let raw = db.get_with("!s!a", &as_stored).expect("a read").expect("it is there");
    assert_eq!((raw.len(), &raw[..7]), (23, &b"value a"[..]));
    // An atomic update finds nothing, and what it writes has no time.
    assert!(db.insert_if_absent("!s!a", "again").expect("an update"));
    assert_eq!(db.update("!s!c", |value| value.is_none().then_some("c")).expect("one"), Some("c"));
    env.advance(MINUTE * 100);
    assert_eq!(keys(&sessions), ["a", "c", "f"]);
}

#[test]
fn readers_that_last_keep_the_time_at_which_they_began() {
    let (env, db) = clocked();
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    for number in 0..400 {
        let key = format!("{number:03}");
        sessions.put_with(key, "v", ttl(5 + number % 2)).expect("a put");
    }
    let (snapshot, transaction) = (db.snapshot(), db.transaction());
    let mut entries = sessions.iter().expect("entries");
    let mut cursor = sessions.cursor().expect("a cursor");
    cursor.seek_to_first();
    env.advance(MINUTE * 5);
    let between = db.snapshot();
    env.advance(MINUTE * 5);
    assert_eq!(keys(&sessions).len(), 0);
    // Compactions keep what they see.
    db.compact_range_with::<&[u8]>(.., force()).expect("a compaction");
    assert_eq!(stored(&db), 400);
    let before = ReadOptions::new().snapshot(&snapshot);
    assert_eq!(sessions.range_with::<&[u8]>(.., &before).expect("entries").count(), 400);
    assert_eq!(snapshot.get("!s!007").expect("a read").as_deref(), Some(&b"v"[..]));
    assert_eq!(snapshot.prefix("!s!").expect("entries").count(), 400);
    assert_eq!(between.prefix("!s!").expect("entries").count(), 200);
    assert_eq!(transaction.prefix("!s!").expect("entries").count(), 400);
    assert_eq!(transaction.get("!s!007").expect("a read").as_deref(), Some(&b"v"[..]));
    assert_eq!(entries.next_ref().expect("an entry"), Some((&b"000"[..], &b"v"[..])));
    assert_eq!(entries.next_back_ref().expect("an entry"), Some((&b"399"[..], &b"v"[..])));
    drop((snapshot, before, transaction));
    // The iterator and the cursor keep their tables, and the time.
    db.compact_range_with::<&[u8]>(.., force()).expect("a compaction");
    assert_eq!(stored(&db), 400);
    assert_eq!(entries.count(), 398);
    cursor.next();
    assert_eq!(cursor.entry(), Some((&b"001"[..], &b"v"[..])));
    drop(cursor);
    db.compact_range_with::<&[u8]>(.., force()).expect("a compaction");
    assert_eq!(stored(&db), 200, "the snapshot between saw the others expired");
    assert_eq!(between.prefix("!s!").expect("entries").count(), 200);
    drop(between);
    db.compact_range_with::<&[u8]>(.., force()).expect("a compaction");
    assert_eq!(stored(&db), 0);
}

/// Several keys are looked up as of one moment, by the clock too.
#[test]
fn keys_that_are_read_at_once_expire_at_once() {
    let files = Arc::new(Hooked::default());
    let env = Clocked::over(files.clone());
    let open = || Db::open(PATH, options().env(env.clone())).expect("opens");
    let db = open();
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    // Another block than the catalogue's.
    (10..30).for_each(|key| sessions.put(format!("a{key}"), [7; 1000]).expect("a put"));
    sessions.put_with("b", "1", ttl(1)).expect("a put");
    db.flush().expect("a flush");
    db.close().expect("a close");
    // "a" is in memory, and "b" in a table that was not read yet.
    let db = open();
    let sessions = db.keyspace("s").expect("a keyspace");
    sessions.put_with("a", "1", ttl(1)).expect("a put");
    let clock = env.clone();
    files.once_at("read .ldb", move |_| clock.advance(MINUTE));
    let found = sessions.multi_get(&["a", "b"]).expect("a read");
    assert_eq!(found.iter().flatten().count(), 2);
    assert_eq!(sessions.multi_get(&["a", "b"]).expect("a read"), [None, None]);
}

#[test]
fn no_older_value_comes_back_when_one_expires() {
    let (env, db) = clocked();
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    sessions.put("a", "old").expect("a put");
    db.compact_range::<&[u8]>(..).expect("a compaction");
    let snapshot = db.snapshot();
    sessions.put_with("a", "new", ttl(1)).expect("a put");
    db.flush().expect("a flush");
    env.advance(MINUTE);
    assert_eq!(sessions.get("a").expect("a read"), None);
    db.wait_idle().expect("idle");
    assert_eq!(sessions.get("a").expect("a read"), None);
    db.compact_range_with::<&[u8]>(.., force()).expect("a compaction");
    assert_eq!(sessions.get("a").expect("a read"), None);
    assert_eq!(snapshot.get("!s!a").expect("a read").as_deref(), Some(&b"old"[..]));
    drop(snapshot);
    db.compact_range_with::<&[u8]>(.., force()).expect("a compaction");
    assert_eq!((sessions.get("a").expect("a read"), stored(&db)), (None, 0));
}

#[test]
fn batches_and_transactions_write_entries_that_expire() {
    let (env, db) = clocked();
    let options = expiring().default_ttl(Some(MINUTE * 5));
    let sessions = db.create_keyspace("s", options).expect("a keyspace");
    sessions.put("default", "1").expect("a put");
    sessions.put_with("for ever", "1", PutOptions::new().never_expires()).expect("a put");
    let at = UNIX_EPOCH + Duration::from_millis(START) + MINUTE * 7;
    sessions.put_with("at", "1", PutOptions::new().expires_at(at)).expect("a put");
    sessions.put_with("past", "1", PutOptions::new().expires_at(UNIX_EPOCH)).expect("a put");
    let mut batch = WriteBatch::new();
    batch.put("batch", "1");
    batch.delete("nothing");
    sessions.write(&batch).expect("a batch");
    batch.put("batch of ten", "1");
    batch.delete("batch");
    sessions.write_with(&batch, ttl(10).sync(true)).expect("a batch");
    let mut across = WriteBatch::new();
    let (key, value) = sessions.entry("entry", "1", ttl(3)).expect("an entry");
    across.put(key, value);
    across.put("beside", "1");
    db.write(&across).expect("a batch");
    let mut transaction = db.transaction();
    let (key, value) = sessions.entry("own", "of the transaction", ttl(3)).expect("an entry");
    transaction.put(&key, value);
    let (gone, value) = sessions.entry("own, expired", "1", ttl(0)).expect("an entry");
    transaction.put(&gone, value);
    let own = &b"of the transaction"[..];
    assert_eq!(transaction.get(&key).expect("a read").as_deref(), Some(own));
    assert_eq!(transaction.get(&gone).expect("a read"), None);
    let entries = transaction.prefix("!s!own").expect("entries");
    let entries: Vec<_> = entries.map(|entry| entry.expect("an entry").1).collect();
    assert_eq!(entries, [own.to_vec()]);
    transaction.commit().expect("a commit");
    let all = ["at", "batch of ten", "default", "entry", "for ever", "own"];
    assert_eq!(keys(&sessions), all);
    env.advance(MINUTE * 4);
    assert_eq!(keys(&sessions), ["at", "batch of ten", "default", "for ever"]);
    env.advance(MINUTE * 2);
    assert_eq!(keys(&sessions), ["at", "batch of ten", "for ever"]);
    env.advance(MINUTE * 2);
    assert_eq!(keys(&sessions), ["batch of ten", "for ever"]);
    env.advance(MINUTE * 20);
    assert_eq!(keys(&sessions), ["for ever"]);
    assert!(db.contains_key("beside").expect("a read"));
}

/// That the clock is marked now and then is no write that a transaction could conflict with.
#[test]
fn a_transaction_that_reads_everything_may_write_entries_that_expire() {
    let (env, db) = clocked();
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        env.advance(MINUTE * 5);
        let mut transaction = db.transaction_with(TransactionOptions::new().isolation(isolation));
        for entry in transaction.iter() {
            entry.expect("an entry");
        }
        let (key, value) = sessions.entry("a", "1", ttl(10)).expect("an entry");
        transaction.put(key, value);
        transaction.commit().expect("nobody else has written");
    }
}

/// What an atomic update sets expires as what a put sets does, and what has expired is no value.
#[test]
fn atomic_updates_follow_and_set_times() {
    let (env, db) = clocked();
    let options = expiring().default_ttl(Some(MINUTE * 3));
    let leases = db.create_keyspace("l", options).expect("a keyspace");
    let get = |key: &str| leases.get(key).expect("a read").map(|v| String::from_utf8(v).unwrap());
    assert!(leases.insert_if_absent_with("a", "1", ttl(10)).expect("an update"));
    assert!(!leases.insert_if_absent_with("a", "2", ttl(10)).expect("an update"));
    env.advance(MINUTE * 9);
    assert!(leases.compare_and_swap_with("a", Some(b"1"), Some(b"3"), ttl(10)).expect("an update"));
    env.advance(MINUTE * 9);
    assert_eq!(get("a").as_deref(), Some("3"), "it was renewed");
    env.advance(MINUTE);
    assert!(!leases.compare_and_swap_with("a", Some(b"3"), None, ttl(1)).expect("an update"));
    assert!(leases.insert_if_absent_with("a", "4", ttl(10)).expect("it has expired"));
    let more = |value: Option<&[u8]>| Some([value.unwrap_or_default(), b"+"].concat());
    let updated =
        leases.update_with("a", more, PutOptions::new().never_expires()).expect("an update");
    assert_eq!(updated.as_deref(), Some(&b"4+"[..]));
    let merged = leases.merge("b", "5", &Append::new()).expect("an update");
    assert_eq!(merged, b"5");
    env.advance(MINUTE * 3);
    assert_eq!((get("a").as_deref(), get("b")), (Some("4+"), None), "b by the default");
    leases.put("c", "6").expect("a put");
    leases.put("0", "7").expect("a put");
    let pair = |key: &str, value: &str| Some((key.into(), value.into()));
    assert_eq!(leases.pop_first().expect("a pop"), pair("0", "7"));
    env.advance(MINUTE * 3);
    assert_eq!(
        leases.pop_last_in::<&[u8]>(.., WriteOptions::sync()).expect("a pop"),
        pair("a", "4+")
    );
    assert_eq!(leases.pop_last().expect("a pop"), None);
    let deleted = leases.update("a", |_| None::<Vec<u8>>).expect("an update");
    assert_eq!(deleted, None);

    assert!(db.drop_keyspace("l").expect("a drop"));
    let again = db.create_keyspace("l", KeyspaceOptions::new()).expect("a keyspace");
    again.put("k", "v").expect("a put");
    let closed = |result: Result<(), terrace::Error>| {
        assert_eq!(result.expect_err("it was dropped").kind(), ErrorKind::Closed);
    };
    closed(leases.update("k", more).map(drop));
    closed(leases.insert_if_absent("n", "v").map(drop));
    closed(leases.merge("k", "v", &Append::new()).map(drop));
    closed(leases.pop_first().map(drop));
    let error = again.insert_if_absent_with("n", "v", ttl(1)).expect_err("it has no expiry");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(keys(&again), ["k"]);
}

#[test]
fn a_keyspace_without_expiry_refuses_times() {
    let (_, db) = clocked();
    let plain = db.create_keyspace("plain", KeyspaceOptions::new()).expect("a keyspace");
    db.put("!raw!a", "1").expect("a put");
    let raw = db.keyspace("raw").expect("it has keys");
    let mut batch = WriteBatch::new();
    batch.put("a", "1");
    for keyspace in [&plain, &raw] {
        for error in [
            keyspace.put_with("a", "1", ttl(1)).expect_err("no expiry"),
            keyspace.write_with(&batch, ttl(1)).expect_err("no expiry"),
            keyspace.entry("a", "1", PutOptions::new().expires_at(UNIX_EPOCH)).expect_err("none"),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains("created without expiry"), "{error}");
        }
        keyspace.put_with("b", "1", WriteOptions::new()).expect("a put");
    }
    let error = db.create_keyspace("raw", expiring()).expect_err("it is not empty");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let ttl = |ttl| KeyspaceOptions::new().default_ttl(Some(ttl));
    for options in [
        ttl(MINUTE),
        ttl(Duration::ZERO).expiry(true),
        ttl(Duration::from_micros(1)).expiry(true),
        ttl(Duration::MAX).expiry(true),
        KeyspaceOptions::new().block_size(3),
        KeyspaceOptions::new().filter_bits(33),
    ] {
        let error = db.create_keyspace("bad", options).expect_err("cannot be");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    assert_eq!(db.keyspaces().expect("names"), ["plain", "raw"]);
}

/// Whatever has read the catalogue of a database before: what is restored into it expires.
#[test]
fn settings_that_a_restore_brings_hold_from_the_opening_of_the_keyspace_on() {
    let (env, db) = clocked();
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    sessions.put_with("a", "1", ttl(10)).expect("a put");
    sessions.put_with("b", "2", ttl(20)).expect("a put");
    let restored = Db::open("/restored", options().env(env.clone())).expect("opens");
    restored.create_keyspace("other", KeyspaceOptions::new()).expect("a keyspace");
    assert_eq!(restored.get("!other!k").expect("a read"), None);
    restored.put("!other!k", "v").expect("a put");
    assert_eq!(restored.iter().expect("entries").count(), 2);
    let as_stored = ReadOptions::new().stored_values(true);
    let mut load = restored.bulk_load().expect("a load");
    for entry in db.iter_with(&as_stored).expect("entries") {
        let (key, value) = entry.expect("an entry");
        load.put(key, value).expect("a put");
    }
    load.finish().expect("loads");
    let restored = restored.keyspace("s").expect("it is there");
    assert_eq!(restored.get("a").expect("a read").as_deref(), Some(&b"1"[..]));
    env.advance(MINUTE * 15);
    assert_eq!(restored.get("a").expect("a read"), None);
    assert_eq!(keys(&restored), ["b"]);
    assert_eq!(restored.get("b").expect("a read").as_deref(), Some(&b"2"[..]));
}

/// The longest prefix in the catalogue owns a key; what only looks like a trailer is a value.
#[test]
fn values_without_a_trailer_never_expire() {
    let (env, db) = clocked();
    let outer = db.create_keyspace("o", expiring()).expect("a keyspace");
    let inner = outer.create_keyspace("i", KeyspaceOptions::new()).expect("a keyspace");
    outer.put_with("a", "v", ttl(1)).expect("a put");
    let as_stored = ReadOptions::new().stored_values(true);
    let a = db.get_with("!o!a", &as_stored).expect("a read").expect("it is there");
    // Whole values that end as that one does: of another key, cut, and in a keyspace within.
    for (key, value) in [("!o!b", &a[..]), ("!o!c", &a[1..]), ("!o!d", b""), ("!o!!i!a", &a)] {
        db.put(key, value).expect("a put");
    }
    // What this keyspace would take for its own trailer it marks as a value.
    outer.put("a", &a).expect("a put");
    inner.put("b", &a).expect("a put");
    env.advance(MINUTE * 5);
    for (key, value) in [("!o!a", &a[..]), ("!o!b", &a), ("!o!c", &a[1..]), ("!o!d", b"")] {
        assert_eq!(db.get(key).expect("a read").as_deref(), Some(value), "{key}");
    }
    assert_eq!(inner.get("a").expect("a read").as_ref(), Some(&a));
    db.compact_range_with::<&[u8]>(.., force()).expect("a compaction");
    assert_eq!(keys(&outer), ["!i!a", "!i!b", "a", "b", "c", "d"]);
    assert_eq!(stored(&db), 6);
}

#[test]
fn the_clock_neither_jumps_nor_goes_back() {
    let env = Clocked::over(Arc::new(MemEnv::new()));
    let open = || Db::open(PATH, options().env(env.clone())).expect("opens");
    let db = open();
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    sessions.put_with("a", "1", ttl(60)).expect("a put");
    // Set wrong by a year for a while: an hour lasts half an hour at least, and two at most.
    let year = 365 * 24 * 3600;
    env.jump(year);
    assert_eq!(keys(&sessions), ["a"]);
    env.advance(MINUTE * 20);
    assert_eq!(keys(&sessions), ["a"]);
    env.jump(-2 * year);
    env.advance(MINUTE * 10);
    assert_eq!(keys(&sessions), ["a"]);
    env.advance(MINUTE * 50);
    assert_eq!(keys(&sessions), [] as [&str; 0]);
    env.jump(2 * year);
    assert_eq!(keys(&sessions), [] as [&str; 0], "it never comes back");
    sessions.put_with("b", "1", ttl(1)).expect("a put, with the clock's mark");
    drop(sessions);
    db.close().expect("closes");
    // An earlier clock at the next open begins at the mark.
    env.jump(-2 * year);
    let db = open();
    let sessions = db.keyspace("s").expect("it is there");
    assert_eq!(keys(&sessions), ["b"]);
    sessions.put_with("c", "1", ttl(10)).expect("a put");
    env.advance(MINUTE * 2);
    assert_eq!(keys(&sessions), ["c"], "it goes at half the speed until it is right again");
    env.advance(MINUTE * 20);
    assert_eq!(keys(&sessions), [] as [&str; 0]);
}

/// A thread may be suspended between its readings of the two clocks for as long as one likes.
#[test]
fn time_that_passes_amid_a_look_at_the_clocks_is_not_lost() {
    let (env, db) = clocked();
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    sessions.put_with("a", "1", ttl(5)).expect("a put");
    env.amid_the_next_look(|env| env.advance(MINUTE * 6));
    // A read does not look where another one has looked in the same millisecond.
    env.advance(Duration::from_secs(1));
    assert!(keys(&sessions).len() <= 1);
    assert_eq!(keys(&sessions), [] as [&str; 0]);
    sessions.put_with("b", "1", ttl(3)).expect("a put");
    env.advance(MINUTE * 2);
    assert_eq!(keys(&sessions), ["b"], "it does not catch up with what it did not lose");
}

/// A read beside another one's look at the clocks does not take the time of the look before.
#[test]
fn a_look_beside_another_one_is_not_in_the_past() {
    let (env, db) = clocked();
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    sessions.put_with("a", "1", ttl(5)).expect("a put");
    assert_eq!(keys(&sessions), ["a"]);
    let (within, is_within) = mpsc::channel();
    let (read, is_read) = mpsc::channel::<()>();
    env.amid_the_next_look(move |_| {
        within.send(()).expect("a reader");
        // The other one may wait for this look: then nothing comes.
        let _ = is_read.recv_timeout(Duration::from_millis(100));
    });
    // The look may also be one of the background's.
    env.advance(MINUTE * 6);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| sessions.get("a"));
        is_within.recv().expect("a look");
        assert_eq!(sessions.get("a").expect("a read"), None);
        let _ = read.send(());
        assert_eq!(first.join().expect("a thread").expect("a read"), None);
    });
}

/// The filter of a keyspace sees values without their times, and does not change these.
#[test]
fn a_filter_of_a_keyspace_is_asked_about_its_entries_alone() {
    struct Shout(&'static str, AtomicU64);
    impl CompactionFilter for Shout {
        fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
            self.1.fetch_add(1, Ordering::Relaxed);
            match key {
                b"gone" => FilterDecision::Remove,
                b"kept" => FilterDecision::Keep,
                _ => FilterDecision::Replace([value, self.0.as_bytes()].concat()),
            }
        }
    }
    let env = Clocked::over(Arc::new(MemEnv::new()));
    let everywhere = Arc::new(Shout("?", AtomicU64::new(0)));
    let db = options().env(env.clone()).compaction_filter(Some(everywhere));
    let db = Db::open(PATH, db).expect("opens");
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    let inner = sessions.create_keyspace("i", KeyspaceOptions::new()).expect("a keyspace");
    let filter = Arc::new(Shout("!", AtomicU64::new(0)));
    sessions.set_compaction_filter(filter.clone()).expect("a filter");
    for key in ["a", "gone", "kept"] {
        sessions.put_with(key, "v", ttl(5)).expect("a put");
    }
    inner.put("b", "v").expect("a put");
    db.put("plain", "v").expect("a put");
    db.flush().expect("a flush");
    db.compact_range_with::<&[u8]>(.., force()).expect("a compaction");
    assert!(filter.1.load(Ordering::Relaxed) >= 4);
    let value = |key: &str| String::from_utf8(db.get(key).expect("a read").unwrap_or_default());
    assert!(value("!s!a").expect("text").starts_with("v!"));
    assert_eq!(value("!s!kept").expect("text"), "v");
    assert_eq!(value("!s!gone").expect("text"), "");
    assert!(value("!s!!i!b").expect("text").starts_with("v!"));
    assert!(value("plain").expect("text").starts_with("v?"));
    env.advance(MINUTE * 5);
    assert_eq!(keys(&sessions), ["!i!b"]);
    assert!(db.drop_keyspace("s").expect("a drop"));
    sessions.set_compaction_filter(filter).expect_err("it was dropped");
}

/// Compactions begin by themselves where half of a table has expired.
#[test]
fn space_comes_back_without_a_call() {
    let count = scaled(1_000_000).max(20_000);
    let env = Clocked::over(Arc::new(MemEnv::new()));
    let options = Options::new().create_if_missing(true).env(env.clone());
    let db = Db::open(PATH, options).expect("opens");
    let sessions = db.create_keyspace("s", expiring()).expect("a keyspace");
    let mut rng = Rng::new(7);
    let mut batch = WriteBatch::new();
    for number in 0..count {
        let options = if number % 10 == 0 { PutOptions::new() } else { ttl(60) };
        let key = format!("{:016x}", rng.next_u64());
        let (key, value) = sessions.entry(key, rng.bytes(100), options).expect("an entry");
        batch.put(key, value);
        if batch.len() == 1000 {
            db.write(&batch).expect("a batch");
            batch.clear();
        }
    }
    db.write(&batch).expect("a batch");
    db.flush().expect("a flush");
    db.wait_idle().expect("idle");
    let size = || db.files().iter().map(|file| file.size).sum::<u64>();
    let (before, entries) = (size(), stored(&db));
    env.advance(MINUTE * 30);
    env.advance(MINUTE * 31);
    // Nobody calls the database: its files say when it is done.
    let deadline = std::time::Instant::now() + Duration::from_secs(600);
    while size() as f64 > 0.15 * before as f64 {
        assert!(std::time::Instant::now() < deadline, "{} of {before} bytes", size());
        env.advance(Duration::from_secs(1));
        std::thread::sleep(Duration::from_millis(10));
    }
    db.wait_idle().expect("idle");
    let ratio = size() as f64 / before as f64;
    println!(
        "space_comes_back_without_a_call: {entries} entries in {before} bytes, {} in {} after, \
         {ratio:.3}",
        stored(&db),
        size()
    );
    assert_eq!(sessions.iter().expect("entries").count() as u64, count.div_ceil(10));
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// Puts with and without times, deletes, reopens, compactions and time that passes.
#[test]
fn random_work_with_times_equals_a_model() {
    campaign("random_work_with_times_equals_a_model", scaled(400), |seed| {
        let text = |error: terrace::Error| error.to_string();
        let mut rng = Rng::new(seed);
        let env = Clocked::over(Arc::new(MemEnv::new()));
        let default = *rng.pick(&[None, Some(MINUTE * 7)]);
        let open = || Db::open(PATH, options().env(env.clone())).map_err(text);
        let mut db = open()?;
        db.create_keyspace("k", expiring().default_ttl(default)).map_err(text)?;
        // Minutes; the clock's own progress is far less than one.
        let mut now = 0_u64;
        let mut model = Model::new();
        for _ in 0..300 {
            let keyspace = db.keyspace("k").map_err(text)?;
            let key = format!("key{}", rng.below(40)).into_bytes();
            let value = rng.bytes(60);
            match rng.below(24) {
                0..=6 => {
                    // Odd and even minutes: never the very minute of a look.
                    let minutes = 2 * rng.below(10) as u64 + 1;
                    keyspace.put_with(&key, &value, ttl(minutes as u32)).map_err(text)?;
                    model.insert(key, (value, Some(now + minutes)));
                }
                7..=9 => {
                    keyspace.put(&key, &value).map_err(text)?;
                    model.insert(key, (value, default.map(|_| now + 7)));
                }
                10 => {
                    db.put(keyspace.key(&key), &value).map_err(text)?;
                    model.insert(key, (value, None));
                }
                11 | 12 => {
                    keyspace.delete(&key).map_err(text)?;
                    model.remove(&key);
                }
                13 => {
                    let to = format!("key{}", rng.below(40)).into_bytes();
                    keyspace.delete_range(key.clone()..to.clone()).map_err(text)?;
                    let range = key..to;
                    model.retain(|other, _| !range.contains(other));
                }
                14 | 15 => {
                    let minutes = 2 * rng.below(4) as u64;
                    env.advance(MINUTE * minutes as u32);
                    now += minutes;
                }
                16 => db.flush().map_err(text)?,
                17 => db.wait_idle().map_err(text)?,
                18 => db.compact_range_with::<&[u8]>(.., force()).map_err(text)?,
                19 => {
                    drop(keyspace);
                    drop(db);
                    db = open()?;
                }
                20 => {
                    let snapshot = db.snapshot();
                    env.advance(MINUTE * 2);
                    db.compact_range_with::<&[u8]>(.., force()).map_err(text)?;
                    let then = ReadOptions::new().snapshot(&snapshot);
                    compare(&keyspace, &then, &model, now)?;
                    now += 2;
                }
                _ => compare(&keyspace, &ReadOptions::new(), &model, now)?,
            }
        }
        Ok(())
    });
}

fn compare(
    keyspace: &Keyspace,
    options: &ReadOptions,
    model: &Model,
    now: u64,
) -> Result<(), String> {
    let text = |error: terrace::Error| error.to_string();
    let alive = model.iter().filter(|(_, (_, end))| end.is_none_or(|end| end > now));
    let expected: Vec<_> = alive.map(|(key, (value, _))| (key.clone(), value.clone())).collect();
    let range = || keyspace.range_with::<&[u8]>(.., options).map_err(text);
    let forwards = range()?.collect::<terrace::Result<Vec<_>>>().map_err(text)?;
    let mut backwards = range()?.rev().collect::<terrace::Result<Vec<_>>>().map_err(text)?;
    backwards.reverse();
    if forwards != expected || backwards != expected {
        let (forwards, backwards) = (forwards.len(), backwards.len());
        return Err(format!("{forwards} and {backwards} entries, {} expected", expected.len()));
    }
    for key in model.keys() {
        let value = keyspace.get_with(key, options).map_err(text)?;
        let entry = expected.iter().find(|(other, _)| other == key);
        if value.as_ref() != entry.map(|(_, value)| value) {
            return Err(format!("{}: {value:?}", String::from_utf8_lossy(key)));
        }
    }
    Ok(())
}
