//! Power cuts and process deaths at every step of the disk: no acknowledged synced write is lost,
//! and what is there afterwards is a prefix of what was written, whole batches only.
//!
//! A script is played on a simulated file system that records every step. Then, for every moment of
//! the recording, disks are made as they may be after a power cut, opened, compared with the
//! history of writes, and used again: a synced write, and the power fails once more. Some of them
//! crash at every step of their recovery and of what follows, where nothing may be lost that had
//! come back from the disk; some are opened read-only, too. `TERRACE_TEST_SCALE` sets the size,
//! `TERRACE_SEED` repeats one run.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use terrace::{Db, ErrorKind, Options, TableWriter, WriteOptions};
use terrace_testkit::campaign::{campaign, seed};
use terrace_testkit::driver::{Driver, read_all, read_all_ways};
use terrace_testkit::history::{History, Survived};
use terrace_testkit::model::{Change, Model, Pair};
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::{Rng, mix};
use terrace_testkit::runner::batch_of;
use terrace_testkit::scale::scaled;
use terrace_testkit::script::{Action, Script};
use terrace_testkit::simfs::{
    DataLoss, EntryLoss, Fault, FaultPlan, LogKind, OpKind, PowerLoss, Recording, SimFs,
};
use terrace_testkit::watchdog::Watchdog;

/// The kinds of power cut tried at each moment, besides the death of the process alone.
const RANDOM_LOSSES: u64 = 2;
/// One state in so many is written to under recording and crashes again.
const SECOND_CRASH_ONE_IN: usize = 60;
/// One state in so many is opened read-only, too.
const READ_ONLY_ONE_IN: u64 = 4;

/// How many states were opened, and how.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) states: Cell<u64>,
    after_second_crash: Cell<u64>,
    pub(crate) synced: Cell<u64>,
}

pub(crate) struct Trial<'a> {
    pub(crate) seed: u64,
    pub(crate) settings: OptionSet,
    pub(crate) log_kind: LogKind,
    /// Whether the system writes pages back by itself, and writes take several steps.
    pub(crate) is_unrestful: bool,
    /// Whether the opens after a crash that tears nothing are paranoid.
    is_paranoid: bool,
    pub(crate) path: PathBuf,
    counts: &'a Counts,
    watchdog: &'a Watchdog,
}

impl Trial<'_> {
    /// Plays `script` under recording, then crashes at every moment of it, `depth` times in a row
    /// at some.
    fn run(
        &self,
        fs: &SimFs,
        script: &Script,
        history: History,
        depth: usize,
    ) -> Result<(), String> {
        fs.set_log_kind(self.log_kind);
        if self.is_unrestful {
            fs.set_unrest(self.seed);
        }
        fs.record();
        let mut driver = Driver::new(fs, &self.path, &self.settings, history);
        driver.play(script)?;
        let history = driver.finish()?;
        let recording = fs.take_recording();
        let synced = history.writes().iter().filter(|write| write.sync).count();
        self.counts.synced.set(self.counts.synced.get() + synced as u64);
        self.crash_everywhere(&recording, &history, depth).map_err(|error| {
            format!("script \"{}\", log {:?}: {error}", script.name, self.log_kind)
        })
    }

    fn crash_everywhere(
        &self,
        recording: &Recording,
        history: &History,
        depth: usize,
    ) -> Result<(), String> {
        let mut replay = recording.replay();
        let mut rng = Rng::new(mix(self.seed) ^ depth as u64);
        // Crashes of crashes multiply: try fewer moments the second and third time.
        let stride = [13, 3, 1][depth.min(2)];
        loop {
            let at = replay.at();
            if at.is_multiple_of(stride) || at == recording.len() {
                let random: Vec<_> =
                    (0..RANDOM_LOSSES).map(|_| PowerLoss::random(rng.next_u64())).collect();
                for loss in [PowerLoss::STRICT, PowerLoss::PROCESS_ONLY].into_iter().chain(random) {
                    self.watchdog.feed(format!("crash: seed {}, moment {at}, {loss:?}", self.seed));
                    let crash_again = depth > 0 && rng.one_in(SECOND_CRASH_ONE_IN);
                    self.check(
                        &replay.power_loss(loss),
                        history,
                        loss,
                        at,
                        crash_again.then(|| depth - 1),
                    )
                    .map_err(|error| {
                        format!(
                            "crash after step {at}, {loss:?}: {error}\n{}",
                            recording.describe(at)
                        )
                    })?;
                }
            }
            if !replay.advance() {
                return Ok(());
            }
        }
    }

    /// Opens the disk after the crash, checks what is there, and goes on with it.
    pub(crate) fn check(
        &self,
        fs: &SimFs,
        history: &History,
        loss: PowerLoss,
        at: usize,
        crash_again: Option<usize>,
    ) -> Result<(), String> {
        self.counts.states.set(self.counts.states.get() + 1);
        let durable = history.required(at);
        let required =
            if loss.loses_nothing() { history.required_without_power_loss(at) } else { durable };
        let before = fs.power_loss(PowerLoss::PROCESS_ONLY);
        // Everything that was not synced is lost, or nothing: then nothing healthy is refused.
        let tears = !matches!(
            (loss.data, loss.entries),
            (DataLoss::All, EntryLoss::All) | (DataLoss::Undecided, EntryLoss::Undecided)
        );
        let paranoid = self.is_paranoid && !tears;
        let open = |fs: &SimFs| {
            Db::open(&self.path, self.settings.options(fs.env()).paranoid_checks(paranoid))
        };
        let db = open(fs).map_err(|error| format!("open, paranoid: {paranoid}: {error}"))?;
        let found = read_all_ways(&db)?;
        let survived = history.check(&found, required, history.begun(at))?;
        if self.counts.states.get().is_multiple_of(READ_ONLY_ONE_IN) {
            self.check_read_only(&before, &found)?;
        }
        db.write_with(&marker(), WriteOptions::sync())
            .map_err(|error| format!("write after recovery: {error}"))?;
        let cut = fs.power_loss(PowerLoss::STRICT);
        db.close().map_err(|error| format!("close after recovery: {error}"))?;
        let mut expected = found;
        expected.retain(|(key, _)| key != MARKER);
        expected.push((MARKER.to_vec(), b"1".to_vec()));
        for (how, fs) in [("a close", fs), ("a power cut", &cut)] {
            let db = open(fs)
                .map_err(|error| format!("open after a synced write and {how}: {error}"))?;
            let again = read_all(&db).map_err(|error| error.to_string())?;
            if again != expected {
                let (had, has) = (expected.len(), again.len());
                return Err(format!(
                    "LOST: {had} entries at a synced write, {has} or others after {how}"
                ));
            }
            db.close().map_err(|error| format!("close: {error}"))?;
        }
        let Some(depth) = crash_again else { return Ok(()) };
        self.counts.after_second_crash.set(self.counts.after_second_crash.get() + 1);
        // What a process left in memory may still be lost with the power. What came back from a
        // disk may not.
        let required = if loss.data == DataLoss::Undecided { durable } else { survived.writes };
        let survived = Survived { required, ..survived };
        // What was torn once is so after the next crash.
        let again = Trial {
            is_paranoid: paranoid,
            settings: self.settings.clone(),
            path: self.path.clone(),
            ..*self
        };
        again.go_on(&before, history, survived, depth).map_err(|error| format!("then {error}"))
    }

    /// A read-only open of the same disk finds the same entries, or no database where there are
    /// none.
    fn check_read_only(&self, fs: &SimFs, expected: &[Pair]) -> Result<(), String> {
        let fs = fs.power_loss(PowerLoss::PROCESS_ONLY);
        let (names, options) = (fs.names(&self.path), self.settings.options(fs.env()));
        let db = match Db::open(&self.path, options.read_only(true)) {
            Err(error) if error.kind() == ErrorKind::InvalidArgument && expected.is_empty() => {
                return Ok(());
            }
            opened => opened.map_err(|error| format!("read-only open of {names:?}: {error}"))?,
        };
        let found = read_all_ways(&db).map_err(|error| format!("read only: {error}"))?;
        db.close().map_err(|error| format!("close of what is read only: {error}"))?;
        if found != expected {
            return Err(format!(
                "{} entries after recovery, {} or others read only",
                expected.len(),
                found.len()
            ));
        }
        if fs.names(&self.path) != names {
            return Err(format!(
                "a read-only open changed {names:?} to {:?}",
                fs.names(&self.path)
            ));
        }
        Ok(())
    }

    /// Recovers once more, under recording, writes a little, and crashes everywhere in that.
    fn go_on(
        &self,
        fs: &SimFs,
        history: &History,
        survived: Survived,
        depth: usize,
    ) -> Result<(), String> {
        let script = Script::random(mix(self.seed ^ survived.writes as u64), 12);
        self.run(fs, &script, history.after(survived), depth)
    }
}

/// A key behind every other.
const MARKER: &[u8] = &[0xff; 40];

fn marker() -> terrace::WriteBatch {
    let mut batch = terrace::WriteBatch::new();
    batch.put(MARKER, b"1");
    batch
}

pub(crate) fn trial<'a>(
    seed: u64,
    settings: OptionSet,
    counts: &'a Counts,
    watchdog: &'a Watchdog,
) -> Trial<'a> {
    let log_kind = if settings.mapped_log { LogKind::Prepared } else { LogKind::Plain };
    // The reversed order has no place for the marker at the end.
    let settings = OptionSet { reverse: false, paranoid_checks: false, ..settings };
    let is_unrestful = Rng::new(seed ^ 0x0e57).one_in(2);
    let is_paranoid = Rng::new(seed ^ 0xa401d).one_in(2);
    Trial {
        seed,
        settings,
        log_kind,
        is_unrestful,
        is_paranoid,
        path: Path::new("/data/db").to_owned(),
        counts,
        watchdog,
    }
}

pub(crate) fn report(name: &str, counts: &Counts) {
    println!(
        "{name}: {} crash states, {} of them crashed again; {} acknowledged synced writes, 0 lost",
        counts.states.get(),
        counts.after_second_crash.get(),
        counts.synced.get()
    );
}

#[test]
fn scripts_survive_a_crash_at_every_step() {
    let counts = Counts::default();
    let watchdog = Watchdog::new(Duration::from_secs(120), "scripts_survive_a_crash_at_every_step");
    let rounds = scaled(1);
    campaign("scripts_survive_a_crash_at_every_step", rounds, |seed| {
        let mut rng = Rng::new(seed);
        for (number, script) in Script::all().iter().enumerate() {
            let settings = OptionSet {
                mapped_log: rng.one_in(2),
                reuse_logs: rng.one_in(2),
                range_delete_batch: 0,
                value_log: *rng.pick(&[0, 1, 100]),
                lz4: rng.one_in(2),
                ..OptionSet::default()
            };
            trial(seed ^ number as u64, settings, &counts, &watchdog).run(
                &SimFs::new(),
                script,
                History::new(),
                2,
            )?;
        }
        Ok(())
    });
    report("scripts_survive_a_crash_at_every_step", &counts);
}

#[test]
fn random_work_survives_a_crash_at_every_step() {
    let counts = Counts::default();
    let watchdog =
        Watchdog::new(Duration::from_secs(120), "random_work_survives_a_crash_at_every_step");
    campaign("random_work_survives_a_crash_at_every_step", scaled(4), |seed| {
        let settings = OptionSet::random(&mut Rng::new(seed));
        let script = Script::random(seed, 60);
        trial(seed, settings.clone(), &counts, &watchdog)
            .run(&SimFs::new(), &script, History::new(), 2)
            .map_err(|error| format!("{error}\n  under {settings:?}"))
    });
    report("random_work_survives_a_crash_at_every_step", &counts);
}

/// A process dies while it makes a database, another one opens what it left, and then the power
/// fails.
#[test]
fn a_creation_survives_a_kill_and_then_a_power_cut() {
    let counts = Counts::default();
    let watchdog = Watchdog::new(Duration::from_secs(120), "a_creation_survives");
    campaign("a_creation_survives_a_kill_and_then_a_power_cut", scaled(1), |seed| {
        let trial = trial(seed, OptionSet::default(), &counts, &watchdog);
        let fs = SimFs::new();
        fs.record();
        Driver::new(&fs, &trial.path, &trial.settings, History::new()).play(&Script::all()[0])?;
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        let script =
            Script { name: "one put".to_owned(), actions: Script::all()[2].actions[..1].to_vec() };
        loop {
            let killed = replay.power_loss(PowerLoss::PROCESS_ONLY);
            trial
                .run(&killed, &script, History::new(), 2)
                .map_err(|error| format!("killed after step {}: {error}", replay.at()))?;
            if !replay.advance() {
                return Ok(());
            }
        }
    });
    report("a_creation_survives_a_kill_and_then_a_power_cut", &counts);
}

/// An installed bulk load is recorded in the MANIFEST only, and a process may have died in
/// before it was synced.
#[test]
fn loads_survive_a_kill_and_then_a_power_cut() {
    let counts = Counts::default();
    let watchdog = Watchdog::new(Duration::from_secs(120), "loads_survive_a_kill");
    let script = Script::all()
        .into_iter()
        .find(|script| script.name == "loads in bulk")
        .expect("the script");
    campaign("loads_survive_a_kill_and_then_a_power_cut", scaled(1), |seed| {
        let trial = trial(seed, OptionSet::default(), &counts, &watchdog);
        let fs = SimFs::new();
        fs.record();
        let mut driver = Driver::new(&fs, &trial.path, &trial.settings, History::new());
        driver.play(&script)?;
        let history = driver.finish()?;
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        loop {
            let at = replay.at();
            trial
                .check(
                    &replay.power_loss(PowerLoss::PROCESS_ONLY),
                    &history,
                    PowerLoss::PROCESS_ONLY,
                    at,
                    Some(0),
                )
                .map_err(|error| {
                    format!("killed after step {at}: {error}\n{}", recording.describe(at))
                })?;
            if !replay.advance() {
                return Ok(());
            }
        }
    });
    report("loads_survive_a_kill_and_then_a_power_cut", &counts);
}

/// Were the first part of a large log a table and the rest lost, the next recovery would put older
/// versions above newer ones.
#[test]
fn a_log_larger_than_the_buffer_survives_a_power_cut_in_its_recovery() {
    let watchdog = Watchdog::new(Duration::from_secs(120), "a_log_larger_than_the_buffer");
    let path = Path::new("/data/db");
    let mut states = 0;
    campaign("a_log_larger_than_the_buffer", scaled(6), |seed| {
        let mut rng = Rng::new(seed);
        let settings = OptionSet { mapped_log: seed.is_multiple_of(2), ..OptionSet::default() };
        let fs = SimFs::new();
        fs.set_log_kind(if settings.mapped_log { LogKind::Prepared } else { LogKind::Plain });
        let generous = OptionSet { write_buffer_size: 4 << 20, ..settings.clone() };
        let mut driver = Driver::new(&fs, path, &generous, History::new());
        let put = |n: usize| {
            Change::Put(vec![b'k', rng.below(12) as u8], Rng::new(n as u64).bytes(9_000))
        };
        let actions = (0..70).map(put).map(|change| Action::Write(vec![change], false)).collect();
        driver.play(&Script { name: "a large log".to_owned(), actions })?;
        let killed = fs.power_loss(PowerLoss::PROCESS_ONLY);
        let history = driver.finish()?;
        killed.record();
        let db =
            Db::open(path, settings.options(killed.env())).map_err(|error| error.to_string())?;
        db.close().map_err(|error| error.to_string())?;
        let recording = killed.take_recording();
        let mut replay = recording.replay();
        loop {
            let at = replay.at();
            for loss in [
                PowerLoss::STRICT,
                PowerLoss::PROCESS_ONLY,
                PowerLoss::random(mix(seed ^ at as u64)),
            ] {
                watchdog.feed(format!("a_log_larger_than_the_buffer: seed {seed}, step {at}"));
                states += 1;
                let fs = replay.power_loss(loss);
                let context = |error: String| {
                    format!("crash after step {at}, {loss:?}: {error}\n{}", recording.describe(at))
                };
                let db = Db::open(path, settings.options(fs.env()))
                    .map_err(|error| context(error.to_string()))?;
                let found = read_all_ways(&db).map_err(context)?;
                let required = if loss.loses_nothing() { history.writes().len() } else { 0 };
                history.check(&found, required, history.writes().len()).map_err(context)?;
                db.close().map_err(|error| context(error.to_string()))?;
            }
            if !replay.advance() {
                return Ok(());
            }
        }
    });
    println!("a_log_larger_than_the_buffer: {states} crash states, 0 lost");
}

/// A log may hold nothing but a durability mark, which was never synced. Later writes do not depend
/// on it.
#[test]
fn a_log_of_marks_alone_does_not_stand_before_later_writes() {
    let path = Path::new("/data/db");
    let settings = OptionSet::default();
    let fs = SimFs::new();
    let open = |fs: &SimFs| Db::open(path, settings.options(fs.env())).expect("open");
    let db = open(&fs);
    db.put("first", "1").expect("put");
    db.flush().expect("flush");
    db.close().expect("close");
    let db = open(&fs);
    db.write_with(&terrace::WriteBatch::new(), WriteOptions::sync()).expect("a mark");
    db.close().expect("close");
    // As long as the MANIFEST cannot leave the log behind, nothing is acknowledged.
    let kinds = vec![OpKind::Create];
    fs.set_faults(Some(FaultPlan {
        kinds,
        suffix: ".dbtmp".into(),
        ..FaultPlan::at(0, Fault::Io, true)
    }));
    let db = open(&fs);
    if db.write_with(&marker(), WriteOptions::sync()).is_err() {
        fs.set_faults(None);
        db.write_with(&marker(), WriteOptions::sync()).expect("put");
    }
    let first = seed();
    for number in 0..scaled(1_000).max(500) {
        let loss = PowerLoss::random(mix(first ^ number));
        let found = read_all(&open(&fs.power_loss(loss)))
            .unwrap_or_else(|error| panic!("{loss:?}: {error}"));
        assert_eq!(found.len(), 2, "{loss:?}");
    }
}

/// One write of several threads' work; one of its keys says whose and which it is.
#[derive(Clone, Debug)]
struct Done {
    changes: Vec<Change>,
    sync: bool,
    began: usize,
    acknowledged: usize,
}

const WRITERS: usize = 3;

fn key_of(writer: usize, number: usize) -> Vec<u8> {
    format!("{writer}/{number:05}").into_bytes()
}

/// All puts of all writers.
const SHARED: &[u8] = b"shared";

/// A batch of one writer: a key of its own, keys that its other batches overwrite and delete, and
/// the one that all put.
fn changes_of(writer: usize, number: usize, rng: &mut Rng) -> Vec<Change> {
    let own = |key: usize| format!("{writer}~{key}").into_bytes();
    let mut changes = vec![Change::Put(
        key_of(writer, number),
        rng.bytes(*rng.clone().pick(&[0, 30, 400, 9_000])),
    )];
    if rng.one_in(2) {
        changes.push(Change::Put(own(number % 5), rng.bytes(50)));
        changes.push(Change::Delete(own((number + 2) % 5)));
    }
    changes.push(Change::Put(SHARED.to_vec(), key_of(writer, number)));
    changes
}

/// Several threads write under recording; each notes what it did.
fn write_at_once(fs: &SimFs, db: &Db, seed: u64) -> Result<Vec<Vec<Done>>, String> {
    let write = |writer: usize| -> terrace::Result<Vec<Done>> {
        let mut rng = Rng::new(seed ^ mix(writer as u64));
        let mut done = Vec::new();
        for number in 0..60 {
            let sync = rng.one_in(4);
            let changes = changes_of(writer, number, &mut rng);
            let batch = batch_of(&changes);
            let began = fs.steps();
            db.write_with(&batch, if sync { WriteOptions::sync() } else { WriteOptions::new() })?;
            done.push(Done { changes, sync, began, acknowledged: fs.steps() });
        }
        Ok(done)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        let outcomes = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        outcomes.collect::<terrace::Result<_>>().map_err(|error| error.to_string())
    })
}

/// Whether a crash at moment `at` may leave `survived[writer]` writes of each writer: every
/// acknowledged synced write, and with every write all that were acknowledged before it began.
fn check_writers(
    done: &[Vec<Done>],
    survived: &[usize],
    at: usize,
    process_only: bool,
) -> Result<(), String> {
    for (writer, writes) in done.iter().enumerate() {
        for (number, write) in writes.iter().enumerate() {
            let there = number < survived[writer];
            if !there && write.acknowledged <= at && (write.sync || process_only) {
                return Err(format!("LOST: write {number} of writer {writer}: {write:?}"));
            }
            if there && write.began > at {
                return Err(format!("write {number} of writer {writer} had not begun: {write:?}"));
            }
            if !there {
                continue;
            }
            for (other, others) in done.iter().enumerate() {
                let before = others.iter().rposition(|earlier| earlier.acknowledged <= write.began);
                if before.is_some_and(|before| before >= survived[other]) {
                    return Err(format!(
                        "A HOLE: write {number} of writer {writer} is there, write {before:?} of \
                         writer {other}, acknowledged before, is not"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Whether `found` is what the first `survived[writer]` writes of each writer make, each as a
/// whole.
fn check_values(done: &[Vec<Done>], survived: &[usize], found: &[Pair]) -> Result<(), String> {
    let mut model = Model::default();
    for (writes, survived) in done.iter().zip(survived) {
        writes[..*survived].iter().for_each(|write| model.apply(&write.changes));
    }
    // The last write of one of the writers.
    let is_last =
        |value: &[u8]| (0..WRITERS).any(|w| survived[w] > 0 && value == key_of(w, survived[w] - 1));
    if let Some((_, value)) = found.iter().find(|(key, _)| key == SHARED) {
        if !is_last(value) {
            return Err(format!(
                "the shared key is of {}, with {survived:?} writes",
                String::from_utf8_lossy(value)
            ));
        }
        model.apply(&[Change::Put(SHARED.to_vec(), value.clone())]);
    }
    let expected = model.entries();
    let differs = expected.iter().zip(found).find(|(expected, found)| expected != found);
    match differs {
        None if expected.len() == found.len() => Ok(()),
        _ => Err(format!(
            "NOT WHOLE: {survived:?} writes make other entries, first {:?}",
            differs.map(|pair| &pair.0.0)
        )),
    }
}

#[test]
fn several_writers_survive_a_crash_at_every_step() {
    let watchdog = Watchdog::new(Duration::from_secs(120), "several_writers");
    let states = Cell::new(0u64);
    let path = Path::new("/data/db");
    campaign("several_writers_survive_a_crash_at_every_step", scaled(3), |seed| {
        watchdog.feed(format!("several_writers: seed {seed}"));
        let mut rng = Rng::new(seed);
        let settings =
            OptionSet { reverse: false, paranoid_checks: false, ..OptionSet::random(&mut rng) };
        let fs = SimFs::new();
        fs.set_log_kind(if settings.mapped_log { LogKind::Prepared } else { LogKind::Plain });
        fs.set_unrest(seed);
        fs.record();
        let db = Db::open(path, settings.options(fs.env())).map_err(|error| error.to_string())?;
        let done = write_at_once(&fs, &db, seed)?;
        db.close().map_err(|error| error.to_string())?;
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        loop {
            let at = replay.at();
            watchdog.feed(format!("several_writers: seed {seed}, step {at}"));
            let random = PowerLoss::random(rng.next_u64());
            for loss in [PowerLoss::STRICT, PowerLoss::PROCESS_ONLY, random] {
                states.set(states.get() + 1);
                let fs = replay.power_loss(loss);
                let context = |error: String| {
                    format!(
                        "crash after step {at}, {loss:?}: {error}\n{}\n  under {settings:?}",
                        recording.describe(at)
                    )
                };
                let db = Db::open(path, settings.options(fs.env()))
                    .map_err(|e| context(e.to_string()))?;
                let found = read_all_ways(&db).map_err(context)?;
                let mut survived = [0; WRITERS];
                for (writer, survived) in survived.iter_mut().enumerate() {
                    let there = |number: usize| {
                        found.binary_search_by(|(key, _)| key[..].cmp(&key_of(writer, number)))
                    };
                    let of_writer = found
                        .iter()
                        .filter(|(key, _)| key.starts_with(format!("{writer}/").as_bytes()));
                    *survived = of_writer.count();
                    if (0..*survived).any(|number| there(number).is_err()) {
                        return Err(context(format!("A HOLE among the writes of writer {writer}")));
                    }
                }
                check_writers(&done, &survived, at, loss.loses_nothing()).map_err(context)?;
                check_values(&done, &survived, &found).map_err(context)?;
                db.write_with(&marker(), WriteOptions::sync())
                    .map_err(|error| context(error.to_string()))?;
                let cut = fs.power_loss(PowerLoss::STRICT);
                db.close().map_err(|error| context(error.to_string()))?;
                let db = Db::open(path, settings.options(cut.env()))
                    .map_err(|e| context(e.to_string()))?;
                let mut again = read_all(&db).map_err(|error| context(error.to_string()))?;
                again.retain(|(key, _)| key != MARKER);
                if again != found {
                    return Err(context("LOST: not what was there at a synced write".to_owned()));
                }
            }
            if !replay.advance() {
                return Ok(());
            }
        }
    });
    println!(
        "several_writers_survive_a_crash_at_every_step: {} crash states, 0 lost",
        states.get()
    );
}

/// What was ingested into an empty database has no sequence number, and is history all the same:
/// what an open after a kill finds is durable before anything behind it is.
#[test]
fn what_was_ingested_into_an_empty_database_is_durable_before_later_writes() {
    let dir = Path::new("/data/db");
    let fs = SimFs::new();
    let options = |fs: &SimFs| Options::new().create_if_missing(true).env(fs.env());
    let db = Db::open(dir, options(&fs)).expect("creates");
    let mut table = TableWriter::create("/data/table", &options(&fs)).expect("a table");
    for number in 0..100 {
        table.put(format!("{number:03}"), "value").expect("a put");
    }
    table.finish().expect("a table");
    fs.record();
    db.ingest(&["/data/table"]).expect("an ingestion");
    let recording = fs.take_recording();
    let mut moment = recording.replay();
    let mut acknowledged = 0;
    loop {
        let killed = moment.power_loss(PowerLoss::PROCESS_ONLY);
        // No fresh MANIFEST comes, which would make durable what was found.
        let (kinds, suffix) = (vec![OpKind::Create], ".dbtmp".into());
        killed.set_faults([FaultPlan { kinds, suffix, ..FaultPlan::at(0, Fault::NoSpace, true) }]);
        if let Ok(db) = Db::open(dir, options(&killed)) {
            let found = db.iter().expect("entries").count();
            let is_durable = db.put_with("z", "1", WriteOptions { sync: true }).is_ok();
            acknowledged += usize::from(is_durable);
            let left = killed.power_loss(PowerLoss::STRICT);
            drop(db);
            left.set_faults(None);
            let db = Db::open(dir, options(&left)).expect("opens");
            let is_there = db.get("z").expect("a read").is_some();
            let step = moment.at();
            assert!(is_there || !is_durable, "after step {step} a synced put is lost");
            let entries = db.iter().expect("entries").count() - usize::from(is_there);
            assert!(!is_there || entries == found, "step {step}: {entries} entries of {found}");
        }
        if !moment.advance() {
            break;
        }
    }
    println!("{acknowledged} puts acknowledged");
}
