//! Two-phase commit: what is prepared survives and keeps others away until it is decided.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use terrace::{
    CompactOptions, CompactionFilter, Comparator, Db, Env, ErrorKind, FilterDecision, Isolation,
    KeyspaceOptions, MemEnv, MemoryBudget, Options, PutOptions, Result, TableWriter, Transaction,
    TransactionOptions, WriteOptions,
};
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, PowerLoss, SimFs};

const PATH: &str = "/db";

fn open(env: Arc<dyn Env>) -> Db {
    let options = Options::new().create_if_missing(true).prepared_transactions(true).env(env);
    Db::open(PATH, options).expect("opens")
}

fn names(db: &Db) -> Vec<String> {
    let name = |name: Vec<u8>| String::from_utf8(name).expect("text");
    db.prepared_transactions().unwrap().into_iter().map(|prepared| name(prepared.name)).collect()
}

/// A transaction that gives up soon where another one has locked a key.
fn impatient(db: &Db) -> Transaction {
    let timeout = Duration::from_millis(1);
    db.transaction_with(TransactionOptions::new().locking(true).lock_timeout(timeout))
}

fn is_locked(db: &Db, key: &str) -> bool {
    match impatient(db).get_for_update(key) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            assert!(error.message().contains("the prepared transaction"), "{error}");
            true
        }
    }
}

fn is_free(db: &Db, key: &str) -> bool {
    impatient(db).get_for_update(key).is_ok()
}

fn entries(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.iter().expect("iterates").collect::<Result<_>>().expect("reads")
}

#[test]
fn a_prepared_transaction_waits_for_its_decision() {
    let db = open(Arc::new(MemEnv::new()));
    db.put("a", "0").unwrap();
    for commits in [true, false] {
        let mut transaction = db.transaction();
        assert!(transaction.get_for_update("read").unwrap().is_none());
        transaction.put("a", format!("{commits}"));
        transaction.delete("b");
        transaction.prepare("pay").unwrap();
        let before = db.get("a").unwrap();
        assert_eq!(names(&db), ["pay"]);
        assert_eq!(db.prepared_transactions().unwrap()[0].writes, 2);
        for key in ["a", "b", "read"] {
            assert!(is_locked(&db, key), "{key}");
        }
        assert!(!is_locked(&db, "c"));
        let mut other = db.transaction();
        other.put("c", "1");
        let refused = other.prepare("pay").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        let waits = db.stats().lock_waits;
        thread::scope(|scope| {
            let waiting = scope.spawn(|| db.put("a", "from another"));
            while db.stats().lock_waits == waits {
                assert!(!waiting.is_finished(), "nothing to wait for");
                thread::yield_now();
            }
            assert_eq!(db.get("a").unwrap(), before);
            match commits {
                true => db.commit_prepared("pay").unwrap(),
                false => db.rollback_prepared("pay").unwrap(),
            }
            waiting.join().unwrap().unwrap();
        });
        assert_eq!(names(&db), [""; 0]);
        assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"from another"[..]));
        assert_eq!(db.stats().locked_keys, 0);
        for decided in [db.commit_prepared("pay"), db.rollback_prepared("pay")] {
            assert_eq!(decided.unwrap_err().kind(), ErrorKind::NotFound);
        }
    }
    assert_eq!(entries(&db).len(), 1, "no record is left");
}

/// A refusal that says nothing about the transaction leaves it open: for another name, or a commit.
#[test]
fn a_refused_name_leaves_the_transaction_as_it_was() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let db = open(env.clone());
    db.put("read", "0").unwrap();
    let mut first = db.transaction();
    first.put("a", "1");
    first.prepare("pay").unwrap();
    let too_long = [0; 1025];
    for locking in [false, true] {
        let names_refused: [&[u8]; 2] = [b"pay", &too_long];
        let options = TransactionOptions::new().locking(locking);
        let mut transaction = db.transaction_with(options);
        assert!(transaction.get_for_update("read").unwrap().is_some());
        transaction.put("b", "1");
        transaction.set_savepoint();
        transaction.put("b", "2");
        for name in names_refused {
            let refused = transaction.prepare(name).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
            transaction = refused.into_transaction().expect("it is open");
            assert_eq!(transaction.get("b").unwrap().as_deref(), Some(&b"2"[..]));
            assert_eq!(is_free(&db, "read"), !locking, "locks are kept, and no others taken");
            assert!(is_free(&db, "b"));
        }
        // Its savepoint is there, and what it rests on counts.
        transaction.rollback_to_savepoint().unwrap();
        if !locking {
            db.put("read", "1").unwrap();
            let overtaken = transaction.prepare("late").unwrap_err();
            assert_eq!(overtaken.kind(), ErrorKind::Conflict, "{overtaken}");
            assert!(overtaken.into_transaction().is_none(), "it is rolled back");
            continue;
        }
        transaction.prepare("another").unwrap();
        for key in ["read", "b"] {
            assert!(is_locked(&db, key), "{key}");
        }
        db.commit_prepared("another").unwrap();
        assert_eq!(db.get("b").unwrap().as_deref(), Some(&b"1"[..]));
    }
    // It can be committed, too.
    let mut last = db.transaction();
    last.put("c", "1");
    last = last.prepare("pay").unwrap_err().into_transaction().expect("it is open");
    last.commit().unwrap();
    assert!(db.contains_key("c").unwrap());
    // So it is where the database has no prepared transactions, and for one that is serializable.
    let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
    let refused = db.transaction_with(serializable).prepare("serial").unwrap_err();
    refused.into_transaction().expect("it is open").commit().unwrap();
    db.rollback_prepared("pay").unwrap();
    db.close().unwrap();
    let plain = Db::open(PATH, Options::new().env(env)).unwrap();
    let mut transaction = plain.transaction();
    transaction.put("d", "1");
    let refused = transaction.prepare("plain").unwrap_err();
    refused.into_transaction().expect("it is open").commit().unwrap();
    assert!(plain.contains_key("d").unwrap());
}

#[test]
fn what_cannot_be_committed_cannot_be_prepared() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let db = open(env.clone());
    let mut late = db.transaction();
    late.put("a", "1");
    db.put("a", "2").unwrap();
    assert_eq!(late.prepare("late").unwrap_err().kind(), ErrorKind::Conflict);
    let mut holder = impatient(&db);
    holder.get_for_update("a").unwrap();
    let mut second = impatient(&db);
    second.put("a", "3");
    assert_eq!(second.prepare("second").unwrap_err().kind(), ErrorKind::TimedOut);
    holder.put("a", "4");
    holder.prepare("holder").unwrap();
    let serializable = TransactionOptions::new().isolation(Isolation::Serializable);
    let refused = db.transaction_with(serializable).prepare("serial").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported);
    let refused = db.transaction().prepare([0; 1025]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert_eq!(names(&db), ["holder"]);
    db.close().unwrap();
    let plain = Db::open(PATH, Options::new().env(env.clone())).unwrap();
    let refused = plain.transaction().prepare("plain").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let refused = plain.prepared_transactions().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    plain.close().unwrap();
    let db = open(env);
    db.commit_prepared("holder").unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"4"[..]));
}

/// A program without locks, as LevelDB is.
fn without_locks(env: &Arc<dyn Env>, write: impl FnOnce(&Db)) {
    let plain = Db::open(PATH, Options::new().env(env.clone())).unwrap();
    write(&plain);
    plain.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true)).unwrap();
    plain.close().unwrap();
}

fn ingest(db: &Db, env: &Arc<dyn Env>, key: &str) {
    let mut table = TableWriter::create("/one.ldb", &Options::new().env(env.clone())).unwrap();
    table.put(key, "theirs").unwrap();
    table.finish().unwrap();
    db.ingest(&["/one.ldb"]).unwrap();
}

#[test]
fn a_transaction_of_which_others_wrote_a_key_can_only_be_rolled_back() {
    type Write = fn(&Db, &Arc<dyn Env>);
    let writes: [(&str, bool, Write); 12] = [
        ("nothing", false, |_, _| ()),
        ("a put of another key", false, |db, _| db.put("other", "theirs").unwrap()),
        ("a put of a written key", true, |db, _| db.put("old", "theirs").unwrap()),
        ("a put of an absent key", true, |db, _| db.put("new", "theirs").unwrap()),
        ("a put of a key that was read", true, |db, _| db.put("read", "theirs").unwrap()),
        // Nothing is left that has a sequence number.
        ("a deletion of a written key", true, |db, _| db.delete("old").unwrap()),
        ("a deletion of a key that was read", true, |db, _| db.delete("read").unwrap()),
        ("a deletion of an absent key", false, |db, _| db.delete("new").unwrap()),
        ("a range delete", true, |db, _| db.delete_range("old".."old~").unwrap()),
        ("a range delete of tables", true, |db, _| {
            db.flush().unwrap();
            db.delete_range("a".."z").unwrap();
        }),
        // Its entries have the sequence number 0.
        ("an ingested table", true, |db, env| ingest(db, env, "new")),
        ("a bulk load", true, |db, _| {
            let mut load = db.bulk_load().unwrap();
            load.put("old", "theirs").unwrap();
            load.finish().unwrap();
        }),
    ];
    for (what, is_overtaken, write) in writes {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let db = open(env.clone());
        db.put("old", "0").unwrap();
        db.put("read", "0").unwrap();
        let mut transaction = db.transaction();
        transaction.get_for_update("read").unwrap();
        transaction.put("old", "mine");
        transaction.put("new", "mine");
        transaction.prepare("pay").unwrap();
        db.close().unwrap();
        without_locks(&env, |db| write(db, &env));
        for _ in 0..2 {
            let db = open(env.clone());
            assert_eq!(db.prepared_transactions().unwrap()[0].is_overtaken, is_overtaken, "{what}");
            assert_eq!(is_locked(&db, "new"), !is_overtaken, "{what}");
            db.close().unwrap();
        }
        let db = open(env);
        let before = entries(&db).len();
        if is_overtaken {
            let refused = db.commit_prepared("pay").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict, "{what}");
            assert_eq!(entries(&db).len(), before, "{what}");
            db.rollback_prepared("pay").unwrap();
            assert_eq!(entries(&db).len(), before - 1, "{what}");
        } else {
            db.commit_prepared("pay").unwrap();
            assert_eq!(db.get("new").unwrap().as_deref(), Some(&b"mine"[..]), "{what}");
        }
        assert_eq!(db.stats().locked_keys, 0);
    }
}

/// Removes everything that it is asked about.
struct RemoveAll;

impl CompactionFilter for RemoveAll {
    fn filter(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
        assert!(!key.starts_with(b"!$terrace!"), "asked about the reserved keyspace");
        FilterDecision::Remove
    }
}

#[test]
fn what_filters_and_expiry_remove_overtakes_nothing() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let options = || {
        let options = Options::new().create_if_missing(true).env(env.clone());
        options.prepared_transactions(true).compaction_filter(Some(Arc::new(RemoveAll)))
    };
    let db = Db::open(PATH, options()).unwrap();
    let sessions = db.create_keyspace("sessions", KeyspaceOptions::new().expiry(true)).unwrap();
    let at_once = PutOptions::new().ttl(Duration::ZERO);
    sessions.put_with("old", "0", at_once).unwrap();
    db.put("old", "0").unwrap();
    let mut transaction = db.transaction();
    let (key, value) = sessions.entry("late", "1", at_once).unwrap();
    transaction.put(key, value);
    let (key, value) = sessions.entry("old", "1", PutOptions::new()).unwrap();
    transaction.put(key, value);
    transaction.put("old", "1");
    transaction.prepare("pay").unwrap();
    let force = || CompactOptions::new().force(true);
    db.flush().unwrap();
    db.compact_range_with::<&[u8]>(.., force()).unwrap();
    assert_eq!(db.get("old").unwrap(), None, "filtered");
    db.close().unwrap();
    let db = Db::open(PATH, options()).unwrap();
    assert!(!db.prepared_transactions().unwrap()[0].is_overtaken);
    db.commit_prepared("pay").unwrap();
    let sessions = db.keyspace("sessions").unwrap();
    assert_eq!(sessions.get("old").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(sessions.get("late").unwrap(), None, "expired before the commit");
    assert_eq!(db.get("old").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(db.keyspaces().unwrap(), ["sessions"], "the filter leaves the catalogue alone");
}

#[test]
fn names_and_keys_are_checked_before_anything_is_written() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let db = open(env.clone());
    let longest = "x".repeat(1024);
    let names = ["", "\0", "a\0b", "!", &longest];
    for name in names {
        let mut transaction = db.transaction();
        transaction.put(format!("key {name}"), "1");
        transaction.prepare(name).unwrap();
    }
    db.transaction().prepare("without writes").unwrap();
    for key in ["!$terrace!prepared!", "!$terrace!prepared!other"] {
        let mut writes = db.transaction();
        writes.put(key, "1");
        let mut reads = db.transaction();
        reads.get_for_update(key).unwrap();
        for transaction in [writes, reads] {
            let refused = transaction.prepare("other").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        }
    }
    let locked = db.stats().locked_keys;
    drop(db);
    let db = Db::open(PATH, Options::new().env(env.clone())).unwrap();
    for refused in [db.commit_prepared(""), db.rollback_prepared("!")] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}: it was not looked for");
    }
    drop(db);
    let db = open(env);
    assert_eq!(db.stats().locked_keys, locked);
    assert_eq!(db.prepared_transactions().unwrap().len(), names.len() + 1);
    for name in names {
        db.commit_prepared(name).unwrap();
        assert!(db.contains_key(format!("key {name}")).unwrap());
    }
    db.rollback_prepared("without writes").unwrap();
    assert_eq!(entries(&db).len(), names.len());
}

#[test]
fn every_kind_of_write_waits_for_a_prepared_transaction() {
    type Write = fn(&Db, &Arc<dyn Env>);
    let writes: [(&str, Write); 8] = [
        ("put", |db, _| db.put("!users!a", "1").unwrap()),
        ("update", |db, _| drop(db.update("!users!a", |_| Some(b"1".to_vec())).unwrap())),
        ("range delete", |db, _| db.delete_range("!users!".."!users!b").unwrap()),
        ("everything", |db, _| db.delete_range::<&[u8]>(..).unwrap()),
        ("the record", |db, _| db.delete("!$terrace!prepared!pay").unwrap()),
        ("keyspace", |db, _| assert!(db.drop_keyspace("users").unwrap())),
        ("ingest", |db, env| ingest(db, env, "!users!a")),
        ("bulk load", |db, _| {
            let mut load = db.bulk_load().unwrap();
            load.put("!users!a", "1").unwrap();
            load.finish().unwrap();
        }),
    ];
    for (what, write) in writes {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let db = open(env.clone());
        db.create_keyspace("users", KeyspaceOptions::new()).unwrap().put("b", "0").unwrap();
        let mut transaction = db.transaction();
        transaction.put("!users!a", "mine");
        transaction.prepare("pay").unwrap();
        drop(db);
        let db = open(env.clone());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| write(&db, &env));
            while db.stats().lock_waits == 0 {
                assert!(!waiting.is_finished(), "{what}: nothing to wait for");
                thread::yield_now();
            }
            db.commit_prepared("pay").unwrap();
            waiting.join().unwrap();
        });
        assert_ne!(db.get("!users!a").unwrap().as_deref(), Some(&b"0"[..]), "{what}");
        assert_eq!(db.stats().locked_keys, 0, "{what}");
    }
}

#[test]
fn a_failed_sync_leaves_a_transaction_listed_until_it_is_decided() {
    let failing_sync = || {
        let fault = FaultPlan::at(0, Fault::Io, false);
        FaultPlan { kinds: vec![OpKind::Sync], suffix: ".log".to_owned(), ..fault }
    };
    for commits in [true, false] {
        let decide = |db: &Db, commits| match commits {
            true => db.commit_prepared("pay"),
            false => db.rollback_prepared("pay"),
        };
        let fs = SimFs::new();
        let db = open(fs.env());
        db.put_with("a", "0", WriteOptions::sync()).unwrap();
        let mut transaction = db.transaction();
        transaction.put("a", "1");
        fs.set_faults([failing_sync()]);
        assert_eq!(transaction.prepare("pay").unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(names(&db), ["pay"]);
        assert!(is_locked(&db, "a"));
        fs.set_faults([failing_sync()]);
        assert_eq!(decide(&db, commits).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(names(&db), ["pay"], "not known to be durable");
        let opposite = decide(&db, !commits).unwrap_err();
        assert_eq!(opposite.kind(), ErrorKind::InvalidArgument, "{opposite}");
        let mut again = db.transaction();
        again.put("b", "1");
        assert_eq!(again.prepare("pay").unwrap_err().kind(), ErrorKind::InvalidArgument);
        decide(&db, commits).unwrap();
        assert_eq!(decide(&db, commits).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(names(&db), [""; 0]);
        let db = open(fs.power_loss(PowerLoss::STRICT).env());
        assert_eq!(names(&db), [""; 0]);
        let expected: &[u8] = if commits { b"1" } else { b"0" };
        assert_eq!(db.get("a").unwrap().as_deref(), Some(expected));
    }
}

#[test]
fn of_two_threads_that_decide_one_does() {
    let db = open(Arc::new(MemEnv::new()));
    for round in 0..100 {
        let mut transaction = db.transaction();
        transaction.put("a", format!("{round}"));
        transaction.prepare("pay").unwrap();
        let decided = thread::scope(|scope| {
            let commit = scope.spawn(|| db.commit_prepared("pay"));
            let rollback = scope.spawn(|| db.rollback_prepared("pay"));
            [commit.join().unwrap(), rollback.join().unwrap()]
        });
        let is_committed = db.get("a").unwrap() == Some(format!("{round}").into_bytes());
        assert_eq!(decided[0].is_ok(), is_committed);
        assert_ne!(decided[0].is_ok(), decided[1].is_ok());
        let refused = decided.into_iter().find_map(Result::err).expect("one is too late");
        assert_eq!(refused.kind(), ErrorKind::NotFound);
    }
}

#[test]
fn copies_and_read_only_opens_show_prepared_transactions() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let db = open(env.clone());
    let mut transaction = db.transaction();
    transaction.put("a", "1");
    transaction.prepare("pay").unwrap();
    db.checkpoint("/copy").unwrap();
    db.rollback_prepared("pay").unwrap();
    db.close().unwrap();
    let options = || Options::new().env(env.clone()).prepared_transactions(true);
    let copy = Db::open("/copy", options().read_only(true)).unwrap();
    assert_eq!(names(&copy), ["pay"]);
    assert_eq!(copy.commit_prepared("pay").unwrap_err().kind(), ErrorKind::NotSupported);
    copy.close().unwrap();
    terrace::repair("/copy", &options()).unwrap();
    let copy = Db::open("/copy", options()).unwrap();
    assert!(is_locked(&copy, "a"));
    copy.commit_prepared("pay").unwrap();
    assert_eq!(copy.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// Orders as the bytewise comparator does.
struct Custom;

impl Comparator for Custom {
    fn name(&self) -> &str {
        "test.Custom"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

#[test]
fn a_custom_comparator_has_no_prepared_transactions() {
    let options = Options::new().create_if_missing(true).env(Arc::new(MemEnv::new()));
    let options = options.comparator(Arc::new(Custom)).prepared_transactions(true);
    let refused = Db::open(PATH, options).map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported);
}

/// The record and what it becomes are larger than a memtable, and than what the budget leaves.
#[test]
fn large_transactions_are_prepared_within_a_memory_budget() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let options = || {
        let options = Options::new().create_if_missing(true).env(env.clone());
        let options = options.memory_budget(Some(MemoryBudget::new(4 << 20)));
        options.prepared_transactions(true).write_buffer_size(64 << 10)
    };
    let db = Db::open(PATH, options()).unwrap();
    let mut transaction = db.transaction();
    for key in 0..20_000 {
        transaction.put(format!("{key:05}"), [b'v'; 100]);
    }
    transaction.prepare("large").unwrap();
    db.put("other", "1").unwrap();
    db.close().unwrap();
    let db = Db::open(PATH, options()).unwrap();
    assert_eq!(db.prepared_transactions().unwrap()[0].writes, 20_000);
    assert_eq!(db.stats().locked_keys, 20_001);
    db.commit_prepared("large").unwrap();
    assert_eq!(entries(&db).len(), 20_001);
    assert_eq!(db.stats().locked_keys, 0);
}

#[test]
fn what_is_no_record_is_no_transaction_and_a_copy_locks_nothing() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let db = open(env.clone());
    let mut transaction = db.transaction();
    transaction.put("a", "1");
    transaction.prepare("one").unwrap();
    let key = |name: &str| format!("!$terrace!prepared!{name}");
    let record = db.get(key("one")).unwrap().expect("a record");
    db.put(key("copy"), &record).unwrap();
    db.put(key("empty"), "").unwrap();
    db.put(key(""), "prepared 1\n").unwrap();
    for cut in 1..record.len() {
        db.put(key(&format!("cut {cut}")), &record[..cut]).unwrap();
    }
    db.close().unwrap();
    let db = open(env);
    assert_eq!(names(&db), ["one"]);
    db.commit_prepared("one").unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn an_open_that_cannot_look_for_them_fails() {
    let fs = SimFs::new();
    let db = open(fs.env());
    let mut transaction = db.transaction();
    transaction.put("a", "1");
    transaction.prepare("one").unwrap();
    db.compact_range::<&[u8]>(..).unwrap();
    db.close().unwrap();
    fs.set_faults([FaultPlan {
        kinds: vec![OpKind::Open, OpKind::Read],
        suffix: ".ldb".to_owned(),
        ..FaultPlan::at(0, Fault::Io, true)
    }]);
    let options = Options::new().env(fs.env());
    Db::open(PATH, options.clone().prepared_transactions(true)).map(drop).unwrap_err();
    Db::open(PATH, options).expect("without the option nothing is read").close().unwrap();
    fs.set_faults(None);
    assert_eq!(names(&open(fs.env())), ["one"]);
}
