//! Prepared transactions: power cuts at every step of the disk, and every operation fails once.
//! Each transaction is there as a whole with its locks, or not at all, and is decided once.

use std::collections::BTreeSet;
use std::time::Duration;

use terrace::{Db, ErrorKind, Options, Result, TransactionOptions, WriteOptions};
use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{Fault, FaultPlan, LogKind, PowerLoss, SimFs};

const PATH: &str = "/db";
/// Keys that a transaction writes.
const PARTS: usize = 3;

fn options(fs: &SimFs) -> Options {
    let options = Options::new().create_if_missing(true).env(fs.env());
    options.prepared_transactions(true).write_buffer_size(64 << 10)
}

fn open(fs: &SimFs) -> std::result::Result<Db, String> {
    Db::open(PATH, options(fs)).map_err(|error| format!("open: {error}"))
}

fn decide(db: &Db, name: &str, commits: bool) -> Result<()> {
    if commits { db.commit_prepared(name) } else { db.rollback_prepared(name) }
}

/// The steps of the disk between which a call ran; nothing happened of one that has not begun.
#[derive(Clone, Copy)]
struct Call {
    begin: usize,
    end: usize,
}

impl Call {
    fn of<R>(fs: &SimFs, call: impl FnOnce() -> R) -> (Call, R) {
        let begin = fs.steps();
        let result = call();
        (Call { begin, end: fs.steps() }, result)
    }

    fn has_begun(self, at: usize) -> bool {
        self.begin < at
    }

    fn is_acknowledged(self, at: usize) -> bool {
        self.end <= at
    }
}

/// What happened to one transaction.
struct Trail {
    number: usize,
    prepare: Call,
    decision: Option<(bool, Call)>,
    /// Its first key was written by others after it was decided.
    overwrite: Option<Call>,
}

impl Trail {
    fn name(&self) -> String {
        self.number.to_string()
    }

    fn key(&self, part: usize) -> String {
        format!("{}/{part}", self.number)
    }

    /// Whether its writes are there; an error if some of them are.
    fn committed(&self, db: &Db) -> std::result::Result<bool, String> {
        let mut found = BTreeSet::new();
        for part in 0..PARTS {
            let value = db.get(self.key(part)).map_err(|error| error.to_string())?;
            // Others may have written the first key since.
            if value.as_deref() != Some(b"theirs") {
                found.insert(value.is_some());
            }
        }
        match found.len() {
            1 => Ok(found.contains(&true)),
            _ => Err("half done".to_owned()),
        }
    }

    fn are_locked(&self, db: &Db) -> std::result::Result<bool, String> {
        let hasty = TransactionOptions::new().locking(true).lock_timeout(Duration::ZERO);
        let mut locked = BTreeSet::new();
        for part in 0..PARTS {
            let read = db.transaction_with(hasty).get_for_update(self.key(part));
            locked.insert(match read {
                Ok(_) => false,
                Err(error) if error.kind() == ErrorKind::TimedOut => true,
                Err(error) => return Err(error.to_string()),
            });
        }
        match locked.len() {
            1 => Ok(locked.contains(&true)),
            _ => Err("some of its keys are locked".to_owned()),
        }
    }

    /// Compares with what there is after a crash at the moment `at`.
    fn check(&self, db: &Db, at: usize) -> std::result::Result<bool, String> {
        let (name, is_committed) = (self.name(), self.committed(db)?);
        let listed = db.prepared_transactions().unwrap();
        let listed = listed.iter().find(|prepared| prepared.name == name.as_bytes());
        let is_listed = listed.is_some();
        if listed.is_some_and(|prepared| prepared.is_overtaken || prepared.writes != PARTS) {
            return Err(format!("listed as {listed:?}"));
        }
        if self.are_locked(db)? != is_listed || is_listed && is_committed {
            return Err(format!("listed {is_listed}, committed {is_committed}, or its locks"));
        }
        let may_be_undecided = match self.decision {
            Some((_, decision)) => !decision.is_acknowledged(at),
            None => true,
        };
        let may_be_decided = |commits| {
            self.decision.is_some_and(|(decided, call)| decided == commits && call.has_begun(at))
        };
        let may_be_missing = !self.prepare.is_acknowledged(at) || may_be_decided(false);
        let agrees = match (is_listed, is_committed) {
            (true, _) => self.prepare.has_begun(at) && may_be_undecided,
            (false, true) => may_be_decided(true),
            (false, false) => may_be_missing,
        };
        if !agrees {
            return Err(format!("listed {is_listed}, committed {is_committed}"));
        }
        if self.overwrite.is_some_and(|overwrite| overwrite.is_acknowledged(at)) {
            let value = db.get(self.key(0)).map_err(|error| error.to_string())?;
            if value.as_deref() != Some(b"theirs") {
                return Err("committed once more, over a later write".to_owned());
            }
        }
        Ok(is_listed)
    }
}

/// Prepares and decides transactions at random, some at the end of another process.
fn play(fs: &SimFs, rng: &mut Rng) -> std::result::Result<Vec<Trail>, String> {
    let text = |error: terrace::Error| error.to_string();
    let mut db = open(fs)?;
    let mut trails: Vec<Trail> = Vec::new();
    for number in 0..rng.between(2, 6) {
        let mut transaction = db.transaction();
        for part in 0..PARTS {
            transaction.put(format!("{number}/{part}"), "mine");
        }
        let (prepare, prepared) = Call::of(fs, || transaction.prepare(number.to_string()));
        prepared.map_err(|error| error.to_string())?;
        trails.push(Trail { number, prepare, decision: None, overwrite: None });
        match rng.below(6) {
            0 => db.flush().map_err(text)?,
            1 => db.compact_range::<&[u8]>(..).map_err(text)?,
            2 => {
                db.close().map_err(text)?;
                db = open(fs)?;
            }
            _ => {}
        }
        let undecided = trails.iter_mut().filter(|trail| trail.decision.is_none());
        for trail in undecided {
            if rng.one_in(3) {
                continue;
            }
            let commits = rng.one_in(2);
            let (call, decided) = Call::of(fs, || decide(&db, &trail.name(), commits));
            decided.map_err(text)?;
            trail.decision = Some((commits, call));
            if rng.one_in(2) {
                let write = || db.put_with(trail.key(0), "theirs", WriteOptions::sync());
                let (call, written) = Call::of(fs, write);
                written.map_err(text)?;
                trail.overwrite = Some(call);
            }
        }
    }
    db.close().map_err(text)?;
    Ok(trails)
}

/// Opens the disk after a crash, checks every transaction, decides some of those that are left, and
/// cuts the power once more: a coordinator has gone by what it saw.
fn check_crashed(
    fs: &SimFs,
    trails: &[Trail],
    at: usize,
    rng: &mut Rng,
) -> std::result::Result<(), String> {
    let db = open(fs)?;
    for trail in trails {
        let is_listed = trail
            .check(&db, at)
            .map_err(|error| format!("transaction {}: {error}", trail.number))?;
        if is_listed && rng.one_in(2) {
            decide(&db, &trail.name(), rng.one_in(2)).map_err(|error| error.to_string())?;
        }
    }
    let seen = |db: &Db| {
        let committed = trails.iter().map(|trail| trail.committed(db));
        Ok((
            db.prepared_transactions().unwrap(),
            committed.collect::<std::result::Result<Vec<_>, _>>()?,
        ))
    };
    let before: (_, _) = seen(&db)?;
    let cut = fs.power_loss(PowerLoss::STRICT);
    drop(db);
    let after: std::result::Result<_, String> = seen(&open(&cut)?);
    let after = after?;
    match before == after {
        true => Ok(()),
        false => Err(format!("{before:?} before another power cut, {after:?} after")),
    }
}

#[test]
fn prepared_transactions_survive_a_crash_at_every_step() {
    let mut states = 0;
    campaign("prepared_transactions_survive_a_crash_at_every_step", scaled(10), |seed| {
        let mut rng = Rng::new(seed);
        let fs = SimFs::new();
        fs.set_log_kind(*rng.pick(&[LogKind::Plain, LogKind::Prepared]));
        if rng.one_in(2) {
            fs.set_unrest(seed);
        }
        fs.record();
        let trails = play(&fs, &mut rng)?;
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        loop {
            let at = replay.at();
            let random = PowerLoss::random(rng.next_u64());
            for loss in [PowerLoss::STRICT, PowerLoss::PROCESS_ONLY, random] {
                states += 1;
                check_crashed(&replay.power_loss(loss), &trails, at, &mut rng)
                    .map_err(|error| format!("crash after step {at}, {loss:?}: {error}"))?;
            }
            if !replay.advance() {
                return Ok(());
            }
        }
    });
    println!("prepared_transactions_survive_a_crash_at_every_step: {states} states");
}

/// What a caller knows of a transaction after calls that may have failed.
#[derive(Debug)]
struct Known {
    prepared: bool,
    /// What was decided, and whether that was acknowledged.
    decision: Option<(bool, bool)>,
}

/// Prepares and decides, and repeats what failed as a coordinator does.
fn play_with_failures(db: &Db, number: usize, commits: bool) -> std::result::Result<Known, String> {
    let name = number.to_string();
    let mut transaction = db.transaction();
    for part in 0..PARTS {
        transaction.put(format!("{number}/{part}"), "mine");
    }
    let prepared = transaction.prepare(&name).is_ok();
    let is_listed =
        || db.prepared_transactions().unwrap().iter().any(|one| one.name == name.as_bytes());
    if prepared && !is_listed() {
        return Err("prepared and not listed".to_owned());
    }
    let mut known = Known { prepared, decision: None };
    if !is_listed() {
        return Ok(known);
    }
    for _ in 0..3 {
        let decided = decide(db, &name, commits);
        known.decision = Some((commits, decided.is_ok()));
        match decided {
            Ok(()) if is_listed() => return Err("decided and still listed".to_owned()),
            Err(_) if !is_listed() => return Err("undecided and not listed".to_owned()),
            Ok(()) => break,
            Err(_) => {}
        }
    }
    Ok(known)
}

fn agrees(known: &Known, is_listed: bool, is_committed: bool) -> bool {
    match (known.prepared, known.decision) {
        (_, Some((commits, true))) => !is_listed && is_committed == commits,
        (true, Some((commits, false))) => is_listed || is_committed == commits,
        (true, None) => is_listed,
        (false, Some((commits, false))) => !is_committed || commits,
        // Nobody knows, and nothing is half done.
        (false, None) => !is_committed,
    }
}

/// Fails the operation number `at`, once or from then on, and compares what a crash leaves with
/// what was acknowledged. Returns whether there was such an operation.
fn fail(at: u64, fault: Fault, forever: bool, rng: &mut Rng) -> std::result::Result<bool, String> {
    let fs = SimFs::new();
    open(&fs)?.close().map_err(|error| error.to_string())?;
    fs.set_faults([FaultPlan::at(at, fault, forever)]);
    let mut known = Vec::new();
    if let Ok(db) = Db::open(PATH, options(&fs)) {
        for number in 0..3 {
            known.push(play_with_failures(&db, number, rng.one_in(2))?);
            match rng.below(3) {
                0 => drop(db.flush()),
                1 => drop(db.put_with("other", "1", WriteOptions::sync())),
                _ => {}
            }
        }
        if rng.one_in(2) {
            drop(db.close());
        }
    }
    let has_failed = fs.injected() > 0;
    fs.set_faults(None);
    let random = PowerLoss::random(rng.next_u64());
    let loss = *rng.pick(&[PowerLoss::STRICT, PowerLoss::PROCESS_ONLY, random]);
    let db = open(&fs.power_loss(loss))?;
    for (number, known) in known.iter().enumerate() {
        let none = Call { begin: 0, end: 0 };
        let trail = Trail { number, prepare: none, decision: None, overwrite: None };
        let listed = db.prepared_transactions().unwrap();
        let is_listed = listed.iter().any(|one| one.name == trail.name().as_bytes());
        let is_committed = trail.committed(&db)?;
        if !agrees(known, is_listed, is_committed) || trail.are_locked(&db)? != is_listed {
            let found = format!("listed {is_listed}, committed {is_committed}");
            return Err(format!("transaction {number}, {known:?}, {loss:?}: {found}"));
        }
    }
    Ok(has_failed)
}

#[test]
fn prepared_transactions_survive_every_failure() {
    let mut cases = 0;
    campaign("prepared_transactions_survive_every_failure", scaled(2), |seed| {
        let mut rng = Rng::new(seed);
        let faults = Fault::ALL.into_iter().chain([Fault::Reverted]);
        for (fault, forever) in faults.flat_map(|fault| [(fault, false), (fault, true)]) {
            for at in 0.. {
                cases += 1;
                let failed = fail(at, fault, forever, &mut rng)
                    .map_err(|error| format!("operation {at}, {fault:?}, {forever}: {error}"))?;
                if !failed {
                    break;
                }
            }
        }
        Ok(())
    });
    println!("prepared_transactions_survive_every_failure: {cases} cases");
}

/// A directory that is gone for a while is not a transaction that was decided before.
#[test]
fn an_error_of_the_directory_does_not_read_as_no_such_transaction() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, away) = (dir.path().join("db"), dir.path().join("away"));
    let options = Options::new().create_if_missing(true).prepared_transactions(true);
    let db = Db::open(&path, options.clone()).expect("opens");
    let transaction = || {
        let mut transaction = db.transaction_with(TransactionOptions::new().locking(true));
        transaction.put("key", "value");
        transaction
    };
    db.put("first", "").expect("a put");
    // The log that is next has no durable name yet.
    db.flush().expect("a flush");
    // By its lock the database would find the directory again.
    std::fs::remove_file(path.join("LOCK")).expect("removes");
    std::fs::rename(&path, &away).expect("goes away");
    let failed = transaction().prepare("pay").expect_err("no directory");
    assert_eq!(failed.kind(), ErrorKind::Io, "{failed}");
    std::fs::rename(&away, &path).expect("comes back");
    let is_prepared = !db.prepared_transactions().unwrap().is_empty();
    assert_eq!(is_prepared, failed.into_transaction().is_none());
    if !is_prepared {
        transaction().prepare("pay").expect("prepares");
    }
    db.flush().expect("a flush");
    std::fs::rename(&path, &away).expect("goes away");
    assert_eq!(db.commit_prepared("pay").expect_err("no directory").kind(), ErrorKind::Io);
    std::fs::rename(&away, &path).expect("comes back");
    db.commit_prepared("pay").expect("commits");
    assert_eq!(db.commit_prepared("pay").expect_err("decided").kind(), ErrorKind::NotFound);
    drop(db);
    let db = Db::open(&path, options).expect("opens again");
    assert!(db.prepared_transactions().unwrap().is_empty());
    assert_eq!(db.get("key").expect("a get").as_deref(), Some(&b"value"[..]));
}
