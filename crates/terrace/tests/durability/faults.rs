//! One input or output operation fails, once or from then on: no panic, no hang, no lie.
//!
//! Every script is played once for every operation it makes, every kind of failure, and for
//! failures that pass and that stay. The database may return errors; acknowledged writes must
//! be there when the file system works again, and what it acknowledged as synced also after a power
//! cut. A write is there as a whole, with every acknowledged one before it; and what is found when
//! the database is opened again is durable once a later write is synced. `TERRACE_TEST_SCALE` sets
//! the share of the cases that is tried, `TERRACE_SEED` chooses another share.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use terrace::{CreateOptions, Db, Env, ErrorKind, MemEnv, Options, WritableFile, WriteOptions};
use terrace_testkit::campaign::{campaign, panics, seed};
use terrace_testkit::driver::{Driver, read_all, read_all_ways};
use terrace_testkit::env_methods;
use terrace_testkit::history::{History, Survived};
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::{Rng, mix};
use terrace_testkit::scale::scaled;
use terrace_testkit::script::{Action, Script};
use terrace_testkit::simfs::{
    DataLoss, Fault, FaultPlan, LogKind, OpKind, PowerLoss, Recording, SimFs,
};
use terrace_testkit::watchdog::Watchdog;

const PATH: &str = "/data/db";

fn file_system(settings: &OptionSet) -> SimFs {
    let fs = SimFs::new();
    fs.set_log_kind(if settings.mapped_log { LogKind::Prepared } else { LogKind::Plain });
    fs
}

/// How many operations of each kind `script` makes when all goes well.
fn operations(script: &Script, settings: &OptionSet) -> u64 {
    let fs = file_system(settings);
    let mut driver = Driver::new(&fs, Path::new(PATH), settings, History::new());
    driver.play(script).unwrap_or_else(|error| panic!("without a fault: {error}"));
    driver.finish().unwrap_or_else(|error| panic!("without a fault: {error}"));
    fs.operations()
}

/// Plays `script` on a new database while `plans` hold, then looks at what is left. Returns whether
/// something failed.
fn play(
    script: &Script,
    settings: &OptionSet,
    plans: &[FaultPlan],
    seed: u64,
) -> Result<bool, String> {
    let fs = file_system(settings);
    if plans.iter().any(|plan| plan.fault == Fault::Access) {
        // Directories above that may not be read have another owner, and are durable already.
        let dir = Path::new(PATH);
        fs.create_dir(dir, 0o755).expect("create directory");
        dir.ancestors().skip(1).for_each(|above| fs.sync_dir(above).expect("sync directory"));
    }
    play_on(&fs, History::new(), script, settings, plans, seed)
}

/// Plays `script` on what `fs` holds, which is `history`.
fn play_on(
    fs: &SimFs,
    history: History,
    script: &Script,
    settings: &OptionSet,
    plans: &[FaultPlan],
    seed: u64,
) -> Result<bool, String> {
    fs.record();
    fs.set_faults(plans.to_vec());
    let mut driver =
        Driver::new(fs, Path::new(PATH), settings, history).tolerant().forgetful(reverts(plans));
    let played = driver.play(script);
    let (at, injected, failed) = (fs.steps(), fs.injected() > 0, fs.injections());
    let errors = played.and_then(|()| check_errors(driver.errors(), injected));
    let history = driver.finish();
    fs.set_faults(None);
    let recording = fs.take_recording();
    let checked = errors.and(history).and_then(|history| {
        let everything = history.writes().len();
        let alive = if reverts(plans) { history.required(usize::MAX) } else { everything };
        after(fs, settings, &history, alive, everything, seed)
            .map_err(|error| format!("healed: {error}"))?;
        check_cuts(&recording, at, settings, &history, reverts(plans), seed)
    });
    checked.map(|()| injected).map_err(|error| {
        format!("{error}\n  failed: {failed:?}\n{}", recording.describe(recording.len()))
    })
}

/// Whether a failed sync makes the system forget what it was for.
fn reverts(plans: &[FaultPlan]) -> bool {
    plans.iter().any(|plan| plan.fault == Fault::Reverted)
}

fn check_errors(errors: &[terrace::Error], injected: bool) -> Result<(), String> {
    for error in errors {
        if error.kind() == ErrorKind::Corruption {
            return Err(format!("a failing device is reported as damage: {error}"));
        }
    }
    match errors.first() {
        Some(error) if !injected => Err(format!("an error without a fault: {error}")),
        _ => Ok(()),
    }
}

/// Cuts the power at moment `at`, when the script has been played, and stops the process or the
/// machine at a moment at random.
fn check_cuts(
    recording: &Recording,
    at: usize,
    settings: &OptionSet,
    history: &History,
    reverts: bool,
    seed: u64,
) -> Result<(), String> {
    let mut rng = Rng::new(mix(seed) ^ 0xc075);
    let earlier = rng.below(recording.len() + 1);
    let losses = [PowerLoss::STRICT, PowerLoss::PROCESS_ONLY, PowerLoss::random(rng.next_u64())];
    let mut cuts =
        vec![(earlier, *rng.pick(&losses)), (at, PowerLoss::STRICT), (at, PowerLoss::random(seed))];
    cuts.sort_by_key(|(moment, _)| *moment);
    let mut replay = recording.replay();
    for (moment, loss) in cuts {
        replay.advance_to(moment);
        let alive = history.required_without_power_loss(moment);
        let required =
            if loss.loses_nothing() && !reverts { alive } else { history.required(moment) };
        after(
            &replay.power_loss(loss),
            settings,
            history,
            required,
            history.begun(moment),
            mix(seed),
        )
        .map_err(|error| {
            format!("after step {moment} of {}, {loss:?}: {error}", recording.len())
        })?;
    }
    Ok(())
}

/// A key behind every other.
const MARKER: &[u8] = &[0xff; 40];

/// Opens what `fs` holds, which must have the first `required` writes that were acknowledged and no
/// others than the first `begun`. Then one synced write makes everything that was found durable.
fn after(
    fs: &SimFs,
    settings: &OptionSet,
    history: &History,
    required: usize,
    begun: usize,
    seed: u64,
) -> Result<(), String> {
    let open = |fs: &SimFs| Db::open(PATH, settings.options(fs.env()));
    let db = open(fs).map_err(|error| format!("open: {error}"))?;
    let mut expected = read_all_ways(&db)?;
    history.check_numbered(&expected, required, begun)?;
    let mut marker = terrace::WriteBatch::new();
    marker.put(MARKER, b"1");
    db.write_with(&marker, WriteOptions::sync())
        .map_err(|error| format!("a synced put: {error}"))?;
    expected.push((MARKER.to_vec(), b"1".to_vec()));
    let (cut, other) = (fs.power_loss(PowerLoss::STRICT), fs.power_loss(PowerLoss::random(seed)));
    db.close().map_err(|error| format!("close: {error}"))?;
    for (how, fs) in [("closed", fs), ("cut", &cut), ("cut in another way", &other)] {
        let db = open(fs).map_err(|error| format!("open, {how} after a synced put: {error}"))?;
        let found = read_all(&db).map_err(|error| error.to_string())?;
        if found != expected {
            let (had, has) = (expected.len(), found.len());
            return Err(format!(
                "LOST: {had} entries at a synced put, {has} or others when it is {how} and opened"
            ));
        }
        db.close().map_err(|error| format!("close: {error}"))?;
    }
    Ok(())
}

#[test]
fn every_single_failure_is_survived() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "faults");
    let before = panics();
    let (mut cases, mut injected) = (0u64, 0u64);
    let full = 1_000_000;
    let share = scaled(full / 8);
    let seed = seed();
    for (number, script) in Script::all().iter().enumerate() {
        let settings = OptionSet {
            mapped_log: number % 2 == 0,
            reuse_logs: number % 3 == 0,
            value_log: usize::from(number % 3 == 1),
            lz4: number % 2 == 1,
            ..OptionSet::default()
        };
        for after in 0..operations(script, &settings) {
            for fault in Fault::ALL {
                for forever in [false, true] {
                    let case = mix(seed)
                        ^ mix(number as u64)
                        ^ mix(after << 8 | (fault as u64) << 1 | u64::from(forever));
                    if mix(case) % full >= share {
                        continue;
                    }
                    let plan = FaultPlan::at(after, fault, forever);
                    let label =
                        format!("faults: script \"{}\", {plan:?}, {settings:?}", script.name);
                    watchdog.feed(label.clone());
                    cases += 1;
                    match play(script, &settings, &[plan], case) {
                        Ok(hit) => injected += u64::from(hit),
                        Err(error) => {
                            panic!("{label}: {error}\n  repeat with: TERRACE_SEED={seed}, scale 8")
                        }
                    }
                    assert_eq!(panics(), before, "{label}: a thread panicked");
                }
            }
        }
    }
    println!("every_single_failure_is_survived: {cases} cases, {injected} failures met");
    assert!(injected * 10 > cases * 8, "too many faults never happened");
}

/// Every place that syncs a file or directory, failing alone.
#[test]
fn a_failed_sync_is_never_acknowledged() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "failed syncs");
    let settings = OptionSet::default();
    let mut cases = 0;
    for script in Script::all() {
        for kind in [OpKind::Sync, OpKind::SyncDir] {
            for fault in [Fault::Io, Fault::NoSpace, Fault::Late, Fault::Reverted] {
                for after in 0.. {
                    let plan =
                        FaultPlan { kinds: vec![kind], ..FaultPlan::at(after, fault, false) };
                    let label = format!("failed syncs: script \"{}\", {plan:?}", script.name);
                    watchdog.feed(label.clone());
                    match play(&script, &settings, &[plan], after) {
                        Ok(true) => cases += 1,
                        Ok(false) => break,
                        Err(error) => panic!("{label}: {error}"),
                    }
                }
            }
        }
    }
    println!("a_failed_sync_is_never_acknowledged: {cases} syncs failed");
    assert!(cases > 100);
}

/// LevelDB's fault: after one failed append, 60 of 60 later synced puts were acknowledged and gone.
#[test]
fn a_failed_append_does_not_swallow_later_writes() {
    // In logs that are left behind meanwhile, and in one that takes everything: no flush saves what
    // it would lose.
    for write_buffer_size in [64 << 10, 1 << 20] {
        let settings = OptionSet { write_buffer_size, ..OptionSet::default() };
        for fault in [Fault::Short, Fault::NoSpace, Fault::Io, Fault::Late] {
            [0, 1, 5].into_iter().for_each(|after| sixty_puts(&settings, fault, after));
        }
    }
}

/// Sixty synced puts, of which the append of one, `after` so many, fails; then the power fails.
fn sixty_puts(settings: &OptionSet, fault: Fault, after: u64) {
    let fs = file_system(settings);
    let mut driver = Driver::new(&fs, Path::new(PATH), settings, History::new()).tolerant();
    driver.play(&Script { name: "open".to_owned(), actions: vec![] }).expect("open");
    let kinds = vec![OpKind::Append];
    fs.set_faults(Some(FaultPlan {
        kinds,
        suffix: ".log".into(),
        ..FaultPlan::at(after, fault, false)
    }));
    let put = |n: u8| terrace_testkit::model::Change::Put(vec![b'k', n], vec![n; 3000]);
    let actions = (0..60).map(|n| Action::Write(vec![put(n)], true)).collect();
    driver.play_on(&Script { name: "sixty".to_owned(), actions }).expect("tolerant");
    let acknowledged =
        driver.history().writes().iter().filter(|w| w.acknowledged.is_some()).count();
    assert_eq!(fs.injected(), 1);
    let at = fs.steps();
    let cut = fs.power_loss(PowerLoss::STRICT);
    let history = driver.finish().expect("tolerant");
    after_check(&cut, settings, &history, at);
    println!(
        "a_failed_append: {fault:?} after {after}: {acknowledged} of 60 acknowledged, all there"
    );
}

fn after_check(fs: &SimFs, settings: &OptionSet, history: &History, at: usize) {
    if let Err(error) =
        after(fs, settings, history, history.required(at), history.writes().len(), at as u64)
    {
        panic!("{error}");
    }
}

/// A read that fails while a cursor switches direction is an error, and not the end of a table.
#[test]
fn a_failed_read_never_leads_elsewhere() {
    let settings = OptionSet { block_size: 1 << 10, ..OptionSet::default() };
    let fs = file_system(&settings);
    let db = Db::open(PATH, settings.options(fs.env()).block_cache_size(0)).expect("open");
    let key = |n: usize| format!("{:04}", 20 * n);
    let put = |key: String| db.put(key, vec![b'v'; 300]).expect("put");
    (0..100).for_each(|n| put(key(n)));
    db.compact_range::<&[u8]>(..).expect("one run");
    // In memory, on both sides of what is sought, which at the end of a block leads into the next
    // one and back.
    (0..100).for_each(|n| ["4", "6"].into_iter().for_each(|end| put(key(n) + end)));
    let mut failed = 0;
    for n in 0..100 {
        let (target, expected) = (key(n) + "5", key(n) + "4");
        for after in 0.. {
            let kinds = vec![OpKind::Read];
            let plan = FaultPlan {
                kinds,
                suffix: ".ldb".into(),
                ..FaultPlan::at(after, Fault::Io, false)
            };
            fs.set_faults(Some(plan.clone()));
            let mut entries = db.range(..=target.as_str()).expect("a range");
            if let Some(Ok((found, _))) = entries.next_back() {
                assert_eq!(String::from_utf8_lossy(&found), expected, "after {after} reads");
            }
            let mut injected = fs.injected();
            fs.set_faults(Some(plan));
            let mut cursor = db.cursor().expect("a cursor");
            cursor.seek_for_prev(&target);
            match cursor.status() {
                Ok(()) => assert_eq!(
                    String::from_utf8_lossy(cursor.key()),
                    expected,
                    "after {after} reads"
                ),
                Err(_) => failed += 1,
            }
            injected += fs.injected();
            fs.set_faults(None);
            if injected == 0 {
                break;
            }
        }
    }
    assert!(failed > 100, "{failed} reads failed");
}

/// The system may go on showing what a failed sync did not write. A log that holds such data is not
/// continued.
#[test]
fn what_a_failed_sync_left_is_not_built_upon() {
    for log_kind in [LogKind::Plain, LogKind::Prepared] {
        let settings = OptionSet { reuse_logs: true, ..OptionSet::default() };
        let fs = SimFs::new();
        fs.set_log_kind(log_kind);
        let open = |fs: &SimFs| Db::open(PATH, settings.options(fs.env())).expect("open");
        let put = |db: &Db, key: &str, options| {
            let mut batch = terrace::WriteBatch::new();
            batch.put(key, vec![b'v'; 3000]);
            db.write_with(&batch, options)
        };
        let keys: Vec<_> = (0..10).map(|n| format!("key{n}")).collect();
        let db = open(&fs);
        keys.iter().for_each(|key| put(&db, key, WriteOptions::new()).expect("put"));
        let kinds = vec![OpKind::Sync];
        fs.set_faults(Some(FaultPlan {
            kinds,
            suffix: ".log".into(),
            ..FaultPlan::at(0, Fault::Io, false)
        }));
        put(&db, "failed", WriteOptions::sync()).expect_err("the sync fails");
        fs.set_faults(None);
        drop(db);
        let db = open(&fs);
        put(&db, "synced", WriteOptions::sync()).expect("put");
        let db = open(&fs.power_loss(PowerLoss::STRICT));
        for key in keys.iter().map(String::as_str).chain(["synced"]) {
            assert!(db.get(key).expect("get").is_some(), "{log_kind:?}: {key} is lost");
        }
        drop(db);
    }
}

/// A flush that ran out of descriptors is tried again with the tables that the replay has made: those
/// of the first attempt, which a fresh MANIFEST then names.
#[test]
fn an_open_that_runs_out_of_descriptors_keeps_what_it_has_recovered() {
    let dir = Path::new("/db");
    let options = |fs: &SimFs| {
        Options::new()
            .create_if_missing(true)
            .env(fs.env())
            .write_buffer_size(64 << 10)
            .max_manifest_size(4 << 10)
    };
    let key = |number: u32| format!("{number:04}");
    let made = SimFs::new();
    let large = Db::open(dir, options(&made).write_buffer_size(1 << 20)).expect("creates");
    // A key that makes the snapshot in a MANIFEST as large as a MANIFEST may be.
    large.put(vec![b'k'; 5000], "1").expect("puts");
    large.flush().expect("flushes");
    (0..360).for_each(|number| large.put(key(number), [7; 1000]).expect("puts"));
    let work = |fs: &SimFs| {
        let db = Db::open(dir, options(fs))?;
        db.wait_idle()?;
        db.close()
    };
    let mut after = 0;
    loop {
        let fs = made.power_loss(PowerLoss::PROCESS_ONLY);
        fs.set_faults(Some(FaultPlan::at(after, Fault::TooManyFiles, false)));
        let _ = work(&fs);
        if fs.injected() == 0 {
            break;
        }
        // A background thread may hold what failed for a moment more.
        let fs = fs.power_loss(PowerLoss::PROCESS_ONLY);
        work(&fs).unwrap_or_else(|error| panic!("without descriptors at {after}: {error}"));
        let db = Db::open(dir, options(&fs)).expect("opens");
        for number in 0..360 {
            let value = db.get(key(number)).expect("reads");
            assert!(value.is_some(), "{number}, without descriptors at {after}");
        }
        after += 1;
    }
    assert!(after > 50, "{after} operations");
}

/// An edit that was written and not synced may be found again: its tables stay, whatever fails
/// behind it.
#[test]
fn the_tables_of_an_edit_in_doubt_stay() {
    let settings = OptionSet { mapped_log: false, ..OptionSet::default() };
    for write_options in [WriteOptions::new(), WriteOptions::sync()] {
        let fs = file_system(&settings);
        let db = Db::open(PATH, settings.options(fs.env())).expect("creates");
        // With it there is a MANIFEST that the next edit is added to.
        db.put("a", "1").expect("puts");
        db.flush().expect("flushes");
        db.put_with("b", "1", write_options).expect("puts");
        let manifest = fs.names(Path::new(PATH)).into_iter().find(|name| name.contains("MANIFEST"));
        let sync = FaultPlan::at(0, Fault::Io, true);
        let full = FaultPlan::at(0, Fault::NoSpace, true);
        fs.set_faults([
            FaultPlan { kinds: vec![OpKind::Sync], suffix: manifest.expect("a MANIFEST"), ..sync },
            FaultPlan { kinds: vec![OpKind::Create], suffix: ".dbtmp".into(), ..full },
        ]);
        for _ in 0..3 {
            assert!(db.flush().is_err());
        }
        assert!(db.close().is_err());
        let left = fs.power_loss(PowerLoss::PROCESS_ONLY);
        let db = Db::open(PATH, settings.options(left.env())).expect("opens");
        assert_eq!(db.get("b").expect("reads").as_deref(), Some(&b"1"[..]));
        assert!(db.verify().expect("checks").problems.is_empty());
    }
}

/// A recycled log has to be renamed. Where that fails a new one is begun.
#[test]
fn logs_that_cannot_be_renamed_are_replaced() {
    let settings =
        OptionSet { write_buffer_size: 64 << 10, mapped_log: true, ..OptionSet::default() };
    for fault in [None, Some(Fault::Io), Some(Fault::NoSpace)] {
        let fs = file_system(&settings);
        let db = Db::open(PATH, settings.options(fs.env())).expect("open");
        let plan = |fault| FaultPlan {
            kinds: vec![OpKind::Rename],
            suffix: ".log".into(),
            ..FaultPlan::at(0, fault, true)
        };
        fs.set_faults(fault.map(plan));
        let value = vec![b'v'; 1000];
        for n in 0..1000 {
            db.put(format!("key{n:04}"), &value).expect("put");
        }
        assert_eq!(fs.injected() > 0, fault.is_some(), "{fault:?}: logs are used again");
        assert!(db.verify().expect("verify").problems.is_empty());
        db.flush().expect("flush");
        drop(db);
        let logs =
            fs.names(Path::new(PATH)).into_iter().filter(|name| name.ends_with(".log")).count();
        assert_eq!(logs, 1, "{fault:?}: {:?}", fs.names(Path::new(PATH)));
        let db = Db::open(PATH, settings.options(fs.env())).expect("open again");
        assert_eq!(db.iter().expect("iterate").count(), 1000);
    }
}

/// A load that failed may be installed all the same, at the next open of the database: under a
/// sequence number that is later than those of writes since. Such a write must not reach a log, not
/// even one that is refused.
#[test]
fn no_write_comes_after_a_load_in_doubt() {
    let settings = OptionSet { mapped_log: false, ..OptionSet::default() };
    let open = |fs: &SimFs| Db::open(PATH, settings.options(fs.env())).expect("opens");
    let mut in_doubt = 0;
    for (forever, again) in [(false, false), (true, false), (true, true)] {
        for after in 0.. {
            let fs = file_system(&settings);
            let db = open(&fs);
            let mut load = db.bulk_load().expect("begins");
            load.put(b"key", b"loaded").expect("takes");
            fs.set_faults(Some(FaultPlan::at(after, Fault::Late, forever)));
            let loaded = load.finish().is_ok();
            if fs.injected() == 0 {
                break;
            }
            let mut acknowledged = db.put("key", "written").is_ok();
            fs.set_faults(None);
            if again && !acknowledged {
                db.put("key", "written").expect("puts");
                acknowledged = true;
            }
            let fs = fs.power_loss(PowerLoss::PROCESS_ONLY);
            let db = open(&fs);
            let case =
                format!("operation {after} failed, forever: {forever}, tried again: {again}");
            let found = read_all_ways(&db).unwrap_or_else(|error| panic!("{case}: {error}"));
            let value = found.first().map(|(_, value)| value.as_slice());
            if acknowledged {
                assert_eq!(value, Some(&b"written"[..]), "{case}");
            } else if loaded {
                assert!(value.is_some(), "{case}");
            }
            assert!(matches!(value, None | Some(b"loaded" | b"written")), "{case}: {value:?}");
            in_doubt += u32::from(!loaded);
        }
    }
    println!("no_write_comes_after_a_load_in_doubt: {in_doubt} loads failed");
    assert!(in_doubt > 15, "only {in_doubt} loads failed");
}

/// Files that are known to be on disk are continued, so that small commands one after another make
/// no tables.
#[test]
fn a_log_that_marks_cover_is_continued() {
    let settings = OptionSet { reuse_logs: true, ..OptionSet::default() };
    let fs = file_system(&settings);
    for n in 0..5u8 {
        let db = Db::open(PATH, settings.options(fs.env())).expect("open");
        db.put([n], [n]).expect("put");
        db.close().expect("close");
    }
    let names = fs.names(Path::new(PATH));
    let logs = names.iter().filter(|name| name.ends_with(".log")).count();
    let tables = names.iter().filter(|name| name.ends_with(".ldb")).count();
    assert_eq!((logs, tables), (1, 0), "{names:?}");
    let db =
        Db::open(PATH, settings.options(fs.power_loss(PowerLoss::STRICT).env())).expect("open");
    assert_eq!(read_all(&db).expect("read").len(), 5);
}

/// A failure at random among the first `operations`, of any kind or one.
fn random_plan(rng: &mut Rng, operations: usize) -> FaultPlan {
    let after = rng.below(operations) as u64;
    let mut plan = FaultPlan::at(after, *rng.pick(&Fault::ALL), rng.one_in(2));
    if rng.one_in(3) {
        plan.kinds = vec![*rng.pick(&OpKind::ALL)];
    }
    if rng.one_in(10) {
        (plan.fault, plan.kinds, plan.after) = (Fault::Reverted, vec![OpKind::Sync], after / 5);
    }
    if rng.one_in(3) {
        plan.suffix =
            (*rng.pick(&[".log", ".ldb", "MANIFEST-000002", "CURRENT", ".dbtmp", "db"])).to_owned();
    }
    plan
}

/// One failure or two.
fn random_plans(rng: &mut Rng) -> Vec<FaultPlan> {
    let operations = *rng.clone().pick(&[10, 30, 200, 1000]);
    (0..rng.between(1, 2)).map(|_| random_plan(rng, operations)).collect()
}

/// A seed for hangs and races that only show at random moments.
#[test]
fn failures_at_random_moments_of_random_work_are_survived() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "random faults");
    campaign("failures_at_random_moments", scaled(1_000), |seed| {
        let mut rng = Rng::new(seed);
        let settings =
            OptionSet { reverse: false, paranoid_checks: false, ..OptionSet::random(&mut rng) };
        let script = Script::random(seed, 40);
        let plans = random_plans(&mut rng);
        watchdog.feed(format!("random faults: seed {seed}, {plans:?}"));
        play(&script, &settings, &plans, seed)
            .map_err(|error| format!("{plans:?}: {error}\n  under {settings:?}"))?;
        Ok(())
    });
}

/// The power fails or the process dies, and then input and output fail in the recovery or soon
/// after.
#[test]
fn failures_after_a_crash_are_survived() {
    let watchdog = Watchdog::new(Duration::from_secs(60), "faults after crashes");
    let (mut cases, mut injected) = (0u64, 0u64);
    campaign("failures_after_a_crash", scaled(100), |seed| {
        let mut rng = Rng::new(seed);
        let settings =
            OptionSet { reverse: false, paranoid_checks: false, ..OptionSet::random(&mut rng) };
        let fs = file_system(&settings);
        fs.set_unrest(seed);
        fs.record();
        let mut driver = Driver::new(&fs, Path::new(PATH), &settings, History::new()).numbered();
        driver.play(&Script::random(seed, 30))?;
        let history = driver.finish()?;
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        let mut moments: Vec<usize> = (0..10).map(|_| rng.below(recording.len() + 1)).collect();
        moments.sort_unstable();
        for at in moments {
            replay.advance_to(at);
            let losses =
                [PowerLoss::STRICT, PowerLoss::PROCESS_ONLY, PowerLoss::random(rng.next_u64())];
            let loss = *rng.pick(&losses);
            let plans = random_plans(&mut rng);
            let label = format!("seed {seed}, crash after step {at}, {loss:?}, then {plans:?}");
            watchdog.feed(label.clone());
            let context = |error: String| format!("{label}: {error}\n  under {settings:?}");
            let fs = replay.power_loss(loss);
            let history = recovered(&fs, &settings, &history, at, loss).map_err(context)?;
            fs.set_log_kind(if settings.mapped_log { LogKind::Prepared } else { LogKind::Plain });
            let script = Script::random(rng.next_u64(), 6);
            injected += u64::from(
                play_on(&fs, history, &script, &settings, &plans, seed).map_err(context)?,
            );
            cases += 1;
        }
        Ok(())
    });
    println!("failures_after_a_crash: {cases} crashes, {injected} failures met");
}

/// The result of a recovery without failures of `history` after a crash at moment `at`. `fs` stays
/// as it is.
fn recovered(
    fs: &SimFs,
    settings: &OptionSet,
    history: &History,
    at: usize,
    loss: PowerLoss,
) -> Result<History, String> {
    let copy = fs.power_loss(PowerLoss::PROCESS_ONLY);
    let db = Db::open(PATH, settings.options(copy.env()))
        .map_err(|error| format!("open without a failure: {error}"))?;
    let durable = history.required(at);
    let required =
        if loss.loses_nothing() { history.required_without_power_loss(at) } else { durable };
    let survived = history.check(&read_all_ways(&db)?, required, history.begun(at))?;
    // What a process left in memory may still be lost with the power.
    let required = if loss.data == DataLoss::Undecided { durable } else { survived.writes };
    Ok(history.after(Survived { required, ..survived }))
}

/// An Env under which the first table that a background thread creates waits until it is let go,
/// and the second one fails.
struct HeldBack {
    files: Arc<dyn Env>,
    tables: AtomicUsize,
    goes_on: Mutex<Receiver<()>>,
    has_ended: AtomicBool,
}

impl Env for HeldBack {
    fn create(
        &self,
        path: &Path,
        options: CreateOptions,
    ) -> terrace::Result<Box<dyn WritableFile>> {
        let is_background = thread::current().name() == Some("terrace-bg");
        if path.extension().is_some_and(|extension| extension == "ldb") && is_background {
            if self.tables.fetch_add(1, Ordering::SeqCst) > 0 {
                let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
                return Err(terrace::Error::io("create", path, full));
            }
            let _ = self.goes_on.lock().expect("sound").recv();
            self.has_ended.store(true, Ordering::SeqCst);
        }
        self.files.create(path, options)
    }

    fn link(&self, from: &Path, to: &Path) -> terrace::Result<()> {
        self.files.link(from, to)
    }

    env_methods! {
        open_random open_append exists list create_dir remove_dir remove file_size rename sync_dir
        lock schedule set_background_threads wall_clock sleep now_micros
    }
}

impl HeldBack {
    fn new(files: &Arc<MemEnv>) -> (Arc<HeldBack>, Sender<()>) {
        let (go_on, goes_on) = channel();
        let (tables, has_ended) = Default::default();
        let goes_on = Mutex::new(goes_on);
        (Arc::new(HeldBack { files: files.clone(), tables, goes_on, has_ended }), go_on)
    }
}

/// The files of a directory as a process leaves them that is killed now.
pub(crate) fn as_they_are(files: &MemEnv, dir: &Path) -> Arc<MemEnv> {
    let left = Arc::new(MemEnv::new());
    left.create_dir(dir, 0o755).expect("a directory");
    for name in files.list(dir).expect("lists") {
        let path = dir.join(name);
        left.write(&path, files.read(&path).expect("a file"));
    }
    left
}

/// The files of a process that was killed with seven logs whose memtables it had not flushed.
fn with_seven_logs(options: &Options) -> Arc<MemEnv> {
    let files = Arc::new(MemEnv::new());
    let (env, go_on) = HeldBack::new(&files);
    let db = Db::open("/db", options.clone().env(env)).expect("creates");
    for number in 0..6_500 {
        db.put(format!("{number:05}"), vec![number as u8; 1_000]).expect("puts");
    }
    let killed = as_they_are(&files, Path::new("/db"));
    let _ = go_on.send(());
    killed
}

/// What a failed open has begun ends before it returns: a program may free its environment then.
#[test]
fn a_failed_open_leaves_no_job_behind() {
    let watchdog = Watchdog::new(Duration::from_secs(120), "a_failed_open_leaves_no_job_behind");
    // Recovery makes tables of the first four logs; the others are flushed, two at a time.
    let options = Options::new().create_if_missing(true).write_buffer_size(1 << 20);
    let files = with_seven_logs(&options);
    let (env, go_on) = HeldBack::new(&files);
    let (fails, has_ended) = thread::scope(|scope| {
        let (returns, returned) = channel();
        let (env, options) = (&env, options.clone().env(env.clone()));
        scope.spawn(move || {
            let fails = Db::open("/db", options).is_err();
            let _ = returns.send((fails, env.has_ended.load(Ordering::SeqCst)));
        });
        // It does not return while the first flush lasts.
        let early = returned.recv_timeout(Duration::from_millis(300));
        let _ = go_on.send(());
        early.or_else(|_| returned.recv()).expect("it returns")
    });
    assert!(fails, "{} tables were flushed", env.tables.load(Ordering::SeqCst));
    assert!(has_ended, "it returns before the flush has ended");
    let db = Db::open("/db", options.env(files)).expect("opens");
    assert_eq!(db.iter().expect("entries").count(), 6_500);
    drop(watchdog);
}
