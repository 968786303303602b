//! Two-phase commit: what is prepared survives and keeps others away until it is decided.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use terrace::{
    Db, Env, ErrorKind, Isolation, MemEnv, Options, Result, Transaction, TransactionOptions,
    WriteOptions,
};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{DataLoss, EntryLoss, Fault, FaultPlan, OpKind, PowerLoss, SimFs};

const PATH: &str = "/db";

fn open(env: Arc<dyn Env>) -> Db {
    let options = Options::new().create_if_missing(true).prepared_transactions(true).env(env);
    Db::open(PATH, options).expect("opens")
}

fn names(db: &Db) -> Vec<String> {
    let name = |name: Vec<u8>| String::from_utf8(name).expect("text");
    db.prepared_transactions().into_iter().map(|prepared| name(prepared.name)).collect()
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
            true
        }
    }
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
        assert_eq!(db.prepared_transactions()[0].writes, 2);
        for key in ["a", "b", "read"] {
            assert!(is_locked(&db, key), "{key}");
        }
        assert!(!is_locked(&db, "c"));
        let mut other = db.transaction();
        other.put("c", "1");
        let refused = other.prepare("pay").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| db.put("a", "from another"));
            let waits = db.stats().lock_waits;
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
    assert!(plain.prepared_transactions().is_empty());
    plain.close().unwrap();
    let db = open(env);
    db.commit_prepared("holder").unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"4"[..]));
}

#[test]
fn a_transaction_of_which_others_wrote_a_key_can_only_be_rolled_back() {
    for (key, is_overtaken) in [("a", true), ("read", true), ("other", false)] {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let db = open(env.clone());
        let mut transaction = db.transaction();
        transaction.get_for_update("read").unwrap();
        transaction.put("a", "mine");
        transaction.prepare("pay").unwrap();
        db.close().unwrap();
        // As LevelDB would: without a look at locks.
        let plain = Db::open(PATH, Options::new().env(env.clone())).unwrap();
        plain.put(key, "theirs").unwrap();
        plain.compact_range::<&[u8]>(..).unwrap();
        plain.close().unwrap();
        let db = open(env);
        assert_eq!(db.prepared_transactions()[0].is_overtaken, is_overtaken, "{key}");
        assert_eq!(is_locked(&db, "a"), !is_overtaken);
        match db.commit_prepared("pay") {
            Ok(()) => assert!(!is_overtaken),
            Err(error) => {
                assert!(is_overtaken && error.kind() == ErrorKind::Conflict, "{error}");
                assert_eq!(names(&db), ["pay"]);
                db.rollback_prepared("pay").unwrap();
            }
        }
        let expected = if is_overtaken { 1 } else { 2 };
        assert_eq!(entries(&db).len(), expected, "{key}");
        assert_eq!(db.stats().locked_keys, 0);
    }
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

/// Transactions on disjoint keys are prepared and decided at random, then the power fails at any
/// step: each is there as a whole, prepared or decided, as it was acknowledged.
#[test]
fn every_crash_finds_what_was_prepared_and_decided() {
    let mut states = 0;
    campaign("every_crash_finds_what_was_prepared_and_decided", scaled(200), |seed| {
        let mut rng = Rng::new(seed);
        let fs = SimFs::new();
        let db = open(fs.env());
        // What was acknowledged: a state for each transaction.
        let mut acknowledged = Vec::new();
        let stop = 5 + rng.below(120) as u64;
        fs.set_faults([FaultPlan::at(stop, Fault::Io, true)]);
        for number in 0..rng.between(1, 8) {
            let mut transaction = db.transaction();
            for part in 0..3 {
                transaction.put(format!("{number}/{part}"), format!("{seed}"));
            }
            let name = format!("{number}");
            let mut state = (transaction.prepare(&name).is_ok(), None);
            if rng.one_in(2) {
                let commits = rng.one_in(2);
                let decided = match commits {
                    true => db.commit_prepared(&name),
                    false => db.rollback_prepared(&name),
                };
                state.1 = Some((commits, decided.is_ok()));
            }
            acknowledged.push(state);
            match rng.below(4) {
                0 => drop(db.flush()),
                1 => drop(db.put_with(format!("x{number}"), "1", WriteOptions::sync())),
                _ => {}
            }
        }
        drop(db);
        fs.set_faults(None);
        let data = *rng.pick(&[DataLoss::All, DataLoss::Nothing]);
        let entries_lost = *rng.pick(&[EntryLoss::All, EntryLoss::Nothing]);
        let found = fs.power_loss(PowerLoss { data, entries: entries_lost, seed });
        let db = open(found.env());
        let prepared = names(&db);
        for (number, &(is_prepared, decision)) in acknowledged.iter().enumerate() {
            states += 1;
            let case = format!("transaction {number}: {is_prepared} {decision:?}");
            let name = format!("{number}");
            let is_there = prepared.contains(&name);
            let parts = (0..3).filter(|part| db.get(format!("{number}/{part}")).unwrap().is_some());
            let parts = parts.count();
            if matches!(parts, 1 | 2) || is_there && parts != 0 {
                return Err(format!("{case}: half done, {parts} parts"));
            }
            let agrees = match (is_prepared, decision) {
                (true, None) => is_there,
                (true, Some((commits, true))) => !is_there && (parts == 3) == commits,
                // Nobody was told.
                (true, Some((commits, false))) => is_there || (parts == 3) == commits,
                (false, Some((false, _)) | None) => parts == 0,
                (false, Some((true, _))) => true,
            };
            if !agrees {
                return Err(format!("{case}: prepared {is_there}, {parts} parts"));
            }
            if is_there {
                db.commit_prepared(&name).map_err(|error| error.to_string())?;
                let last = db.get(format!("{number}/2")).unwrap();
                assert!(last.is_some(), "{case}");
            }
        }
        assert_eq!(db.stats().locked_keys, 0);
        db.close().map_err(|error| error.to_string())
    });
    println!("every_crash_finds_what_was_prepared_and_decided: {states} states");
}
