//! Value files that flushes and compactions append to: when, what a failure leaves, and what else
//! looks at them meanwhile.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrace::{
    CompactionFilter, Db, Env, Event, EventListener, FilterDecision, MemEnv, Options, repair,
};
use terrace_testkit::hooked::Hooked;
use terrace_testkit::simfs::{Fault, FaultPlan, OpKind, PowerLoss, SimFs};
use terrace_testkit::watchdog::Watchdog;

use crate::value_log::{
    THRESHOLD, check, fill, key, manifest_name, open, rewrite, simulated, value, value_files,
};

#[test]
fn flushes_append_to_a_value_file_until_it_is_full() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    fill(&db, 0..3);
    let snapshot = db.snapshot();
    let mut cursor = db.cursor().expect("a cursor");
    cursor.seek(key(0));
    let before = db.stats();
    for number in 3..40 {
        fill(&db, number..number + 1);
        assert_eq!(db.get(key(number)).expect("reads"), Some(value(number)));
    }
    assert_eq!(value_files(&env).0.len(), 1);
    let stats = db.stats();
    assert_eq!((before.value_files, stats.value_files), (1, 1));
    let appended: usize = (3..40).map(|number| value(number).len()).sum();
    assert_eq!(stats.value_bytes_used, before.value_bytes_used + appended as u64);
    // Readers of earlier versions go on.
    assert_eq!(snapshot.iter().expect("scans").count(), 3);
    for number in 0..3 {
        assert_eq!(cursor.value(), value(number));
        cursor.next();
    }
    check(&db, &(0..40).collect::<Vec<_>>());
    assert!(db.verify().expect("checks").problems.is_empty());
    // What compactions copy goes to files of their own, which grow as well.
    (0..40)
        .filter(|number| number % 4 > 0)
        .for_each(|number| db.delete(key(number)).expect("deletes"));
    drop((snapshot, cursor));
    rewrite(&db);
    assert_eq!(value_files(&env).0.len(), 1);
    let kept: Vec<_> = (0..40).filter(|number| number % 4 == 0).collect();
    check(&db, &kept);
    // A MiB is enough for one.
    fill(&db, 40..41);
    db.put("large", vec![7; 1 << 20]).expect("puts");
    db.flush().expect("flushes");
    let full = value_files(&env).0;
    db.put("later", vec![8; 1 << 10]).expect("puts");
    db.flush().expect("flushes");
    assert_eq!(value_files(&env).0.len(), full.len() + 1);
    // What another process left is not appended to: nobody knows its end.
    drop(db);
    let db = open(&env);
    let before = value_files(&env).0.len();
    db.put("last", vec![9; 1 << 10]).expect("puts");
    db.flush().expect("flushes");
    assert_eq!(value_files(&env).0.len(), before + 1);
    assert_eq!(db.get("large").expect("reads"), Some(vec![7; 1 << 20]));
    assert!(db.verify().expect("checks").problems.is_empty());
}

#[test]
fn a_value_file_goes_when_no_table_uses_it_though_flushes_would_append_to_it() {
    let env = Arc::new(MemEnv::new());
    let db = open(&env);
    for round in 0..3 {
        let numbers: Vec<_> = (3 * round..3 * round + 3).collect();
        fill(&db, numbers.iter().copied());
        check(&db, &numbers);
        numbers.iter().for_each(|&number| db.delete(key(number)).expect("deletes"));
        rewrite(&db);
        assert_eq!(value_files(&env).0.len(), 0);
    }
}

/// Has the first compaction that it is asked by wait, once it has said so.
struct Waits(Mutex<Option<(Sender<()>, Receiver<()>)>>);

impl CompactionFilter for Waits {
    fn filter(&self, _: &[u8], _: &[u8]) -> FilterDecision {
        let first = self.0.lock().expect("no panic").take();
        if let Some((begins, goes_on)) = first {
            begins.send(()).expect("somebody listens");
            goes_on.recv().expect("a flush appends to the value file");
        }
        FilterDecision::Keep
    }
}

struct Finished(Mutex<Sender<()>>);

impl EventListener for Finished {
    fn on_event(&self, event: &Event) {
        if let Event::CompactionFinished { .. } = event {
            let _ = self.0.lock().expect("no panic").send(());
        }
    }
}

/// A compaction that drops all that tables use of it would have it removed.
#[test]
fn a_value_file_stays_while_a_flush_appends_to_it() {
    let env = Arc::new(Hooked::default());
    let (finished, compaction_finished) = channel();
    let (begins, compaction_begins) = channel();
    let (go_on, goes_on) = channel();
    let options = Options::new()
        .create_if_missing(true)
        .env(env.clone())
        .value_log(Some(THRESHOLD))
        .compaction_filter(Some(Arc::new(Waits(Mutex::new(Some((begins, goes_on)))))))
        .listener(Some(Arc::new(Finished(Mutex::new(finished)))));
    let db = Db::open("/db", options).expect("opens");
    // One table in each of levels 2, 1 and 0, and above them the one that uses the value file.
    for _ in 0..3 {
        db.put("a", "").expect("puts");
        db.put("z", "").expect("puts");
        db.flush().expect("flushes");
    }
    fill(&db, 0..3);
    let _watchdog = Watchdog::new(Duration::from_secs(60), "the flush waits for the compaction");
    for numbers in [0..2, 2..3] {
        numbers.for_each(|number| db.delete(key(number)).expect("deletes"));
        db.flush().expect("flushes");
    }
    compaction_begins.recv().expect("level 0 is full");
    env.once_at("open_append .vlog", move |_| {
        go_on.send(()).expect("the compaction waits");
        compaction_finished.recv().expect("the compaction finishes");
    });
    fill(&db, 3..4);
    db.wait_idle().expect("comes to rest");
    assert_eq!(db.get(key(3)).expect("reads"), Some(value(3)));
    assert_eq!(db.get(key(2)).expect("reads"), None);
    assert_eq!(db.stats().value_files, 1);
    assert!(db.verify().expect("checks").problems.is_empty());
    let names = env.list(Path::new("/db")).expect("lists");
    assert_eq!(names.iter().filter(|name| name.ends_with(".vlog")).count(), 1, "{names:?}");
}

/// The only value file, and its bytes.
fn only_value_file(fs: &SimFs) -> (String, usize) {
    let mut names = fs.names(Path::new("/db"));
    names.retain(|name| name.ends_with(".vlog"));
    assert_eq!(names.len(), 1, "{names:?}");
    let path = Path::new("/db").join(&names[0]);
    (names.remove(0), fs.contents(&path).expect("is there").len())
}

#[test]
fn a_value_file_is_as_it_was_when_the_flush_that_appends_to_it_fails() {
    let operations = [
        (OpKind::Append, ".vlog"),
        (OpKind::Sync, ".vlog"),
        (OpKind::Append, ".ldb"),
        (OpKind::Append, "MANIFEST"),
        (OpKind::Sync, "MANIFEST"),
    ];
    for (kind, suffix) in operations {
        for fault in [Fault::Io, Fault::NoSpace, Fault::Short, Fault::Late] {
            let fs = SimFs::new();
            let db = Db::open("/db", simulated(&fs)).expect("opens");
            fill(&db, 0..2);
            let (name, size) = only_value_file(&fs);
            db.put(key(2), value(2)).expect("puts");
            let has_edit = suffix == "MANIFEST";
            let suffix = if has_edit { manifest_name(&fs) } else { suffix.to_owned() };
            let what = format!("{kind:?} of {suffix}, {fault:?}");
            // All attempts, and no fresh MANIFEST after the first.
            let lasting = |kind, suffix| FaultPlan {
                kinds: vec![kind],
                suffix,
                ..FaultPlan::at(0, fault, true)
            };
            fs.set_faults([lasting(kind, suffix), lasting(OpKind::Rename, String::new())]);
            assert!(db.flush().is_err(), "{what}");
            assert!(fs.injected() > 0, "{what}");
            let found = || fs.contents(&Path::new("/db").join(&name)).expect("is there").len();
            let left = found();
            // A crash may bring the edit to life.
            assert_eq!(left > size, has_edit, "{what}: {left} bytes, {size} before");
            check(&db, &[0, 1, 2]);
            fs.set_faults(None);
            fill(&db, 3..4);
            db.wait_idle().expect("waits");
            check(&db, &[0, 1, 2, 3]);
            assert!(db.verify().expect("checks").problems.is_empty(), "{what}");
            assert_eq!(found(), left, "{what}: nothing is appended behind a failure");
            for loss in [PowerLoss::PROCESS_ONLY, PowerLoss::STRICT] {
                let killed = fs.power_loss(loss);
                let db = Db::open("/db", simulated(&killed)).expect("opens");
                check(&db, &[0, 1, 2, 3]);
                assert!(db.verify().expect("checks").problems.is_empty(), "{what}");
            }
        }
    }
}

/// An environment may be unable to append, or the descriptors may be used up.
#[test]
fn a_flush_that_cannot_append_begins_a_value_file() {
    let fs = SimFs::new();
    let db = Db::open("/db", simulated(&fs)).expect("opens");
    fill(&db, 0..2);
    let kinds = vec![OpKind::Open];
    fs.set_faults([FaultPlan {
        kinds,
        suffix: ".vlog".into(),
        ..FaultPlan::at(0, Fault::Io, false)
    }]);
    fill(&db, 2..3);
    assert_eq!((fs.injected(), db.stats().value_files), (1, 2));
    check(&db, &[0, 1, 2]);
}

/// What was appended when the process was killed is in the page cache, and no edit names it.
#[test]
fn a_repair_names_no_more_of_a_value_file_than_is_durable() {
    let fs = SimFs::new();
    let db = Db::open("/db", simulated(&fs)).expect("opens");
    fill(&db, 0..3);
    db.close().expect("closes");
    let (name, _) = only_value_file(&fs);
    let mut end = fs.env().open_append(&Path::new("/db").join(name)).expect("opens");
    end.append(&[7; 100]).expect("appends");
    drop(end);
    fs.env().remove(Path::new("/db/CURRENT")).expect("removes");
    repair("/db", &simulated(&fs)).expect("repairs");
    let killed = fs.power_loss(PowerLoss::STRICT);
    let db = Db::open("/db", simulated(&killed)).expect("opens");
    check(&db, &[0, 1, 2]);
}

#[test]
fn what_flushes_append_is_not_in_a_checkpoint() {
    let env = Arc::new(Hooked::default());
    let options =
        Options::new().create_if_missing(true).env(env.clone()).value_log(Some(THRESHOLD));
    let db = Db::open("/db", options.clone()).expect("opens");
    let copied = |copy: &str| {
        let mut names = env.list(Path::new(copy)).expect("lists");
        names.retain(|name| name.ends_with(".vlog"));
        assert_eq!(names.len(), 1, "{names:?}");
        env.file_size(&Path::new(copy).join(&names[0])).expect("a size")
    };
    fill(&db, 0..2);
    let _watchdog = Watchdog::new(Duration::from_secs(60), "the flush waits for the checkpoint");
    // Once while a flush appends, and once between two.
    let (appends, flush_appends) = channel();
    let (go_on, goes_on) = channel();
    env.once_at("open_append .vlog", move |_| {
        appends.send(()).expect("somebody listens");
        goes_on.recv().expect("the checkpoint is made");
    });
    std::thread::scope(|scope| {
        scope.spawn(|| fill(&db, 2..3));
        flush_appends.recv().expect("the flush appends");
        db.checkpoint("/beside").expect("copies");
        go_on.send(()).expect("the flush waits");
    });
    let beside = copied("/beside");
    db.checkpoint("/between").expect("copies");
    let between = copied("/between");
    fill(&db, 3..4);
    fill(&db, 4..5);
    assert!(beside < between, "{beside}, {between}");
    assert_eq!((copied("/beside"), copied("/between")), (beside, between));
    db.close().expect("closes");
    for (copy, numbers) in [("/beside", 0..3), ("/between", 0..3), ("/db", 0..5)] {
        let db = Db::open(copy, options.clone()).expect("opens");
        check(&db, &numbers.collect::<Vec<_>>());
        assert!(db.verify().expect("checks").problems.is_empty(), "{copy}");
    }
}
