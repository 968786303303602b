//! Crashes at every step of garbage collection in value files: while values are copied, while the
//! edit is written, and while the files that were emptied are removed.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrace::Logger;
use terrace_testkit::campaign::campaign;
use terrace_testkit::driver::Driver;
use terrace_testkit::history::History;
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::{Rng, mix};
use terrace_testkit::scale::scaled;
use terrace_testkit::script::Script;
use terrace_testkit::simfs::{PowerLoss, Recording, SimFs};
use terrace_testkit::watchdog::Watchdog;

use crate::crash::{Counts, report, trial};

/// How many times values are overwritten and files collected.
const ROUNDS: usize = 12;
/// The kinds of power cut tried at each moment, besides the death of the process alone and the loss
/// of all that was not synced.
const RANDOM_LOSSES: usize = 4;
/// One state in so many is written to under recording and crashes again.
const SECOND_CRASH_ONE_IN: usize = 400;

/// Notes at which step of the disk each background job was over, and whether it was a collection.
struct Jobs {
    fs: SimFs,
    over: Mutex<Vec<(usize, bool)>>,
}

impl Logger for Jobs {
    fn log(&self, message: &str) {
        let is_collection = message.ends_with(": value files with much garbage");
        self.over.lock().expect("no panic").push((self.fs.steps(), is_collection));
    }
}

impl Jobs {
    /// The moments in the middle of each collection. One thread does all jobs, one after another.
    fn collections(&self, recording: &Recording) -> Vec<RangeInclusive<usize>> {
        let over = self.over.lock().expect("no panic");
        let of_pair = |pair: &[(usize, bool)]| match pair {
            [(from, _), (to, true)] => Some(recording.moments_of_job(*from, *to)),
            _ => None,
        };
        over.windows(2).filter_map(of_pair).collect()
    }
}

#[test]
fn collections_of_value_files_survive_a_crash_at_every_step() {
    const NAME: &str = "collections_of_value_files_survive_a_crash_at_every_step";
    let counts = Counts::default();
    let (runs, collections, moments) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let watchdog = Watchdog::new(Duration::from_secs(120), NAME);
    campaign(NAME, scaled(60).max(4), |seed| {
        let mut rng = Rng::new(mix(seed));
        let settings = OptionSet {
            background_threads: 1,
            mapped_log: rng.one_in(2),
            reuse_logs: rng.one_in(2),
            max_manifest_size: *rng.pick(&[4 << 10, 64 << 20]),
            value_log: *rng.pick(&[1, 100, 250]),
            ..OptionSet::default()
        };
        let trial = trial(seed, settings, &counts, &watchdog);
        let fs = SimFs::new();
        fs.set_log_kind(trial.log_kind);
        if trial.is_unrestful {
            fs.set_unrest(seed);
        }
        fs.record();
        let jobs = Arc::new(Jobs { fs: fs.clone(), over: Mutex::default() });
        let driver = Driver::new(&fs, &trial.path, &trial.settings, History::new());
        let mut driver = driver.logger(jobs.clone());
        driver.play(&Script::large_values(seed, ROUNDS))?;
        let history = driver.finish()?;
        let recording = fs.take_recording();
        let synced = history.writes().iter().filter(|write| write.sync).count();
        counts.synced.set(counts.synced.get() + synced as u64);
        runs.set(runs.get() + 1);
        // Which compactions run depends on how the threads run: one on a busy machine had none.
        let found = jobs.collections(&recording);
        let mut replay = recording.replay();
        for collection in found {
            collections.set(collections.get() + 1);
            for at in collection {
                replay.advance_to(at);
                moments.set(moments.get() + 1);
                let random = (0..RANDOM_LOSSES).map(|_| PowerLoss::random(rng.next_u64()));
                let random: Vec<_> = random.collect();
                for loss in [PowerLoss::STRICT, PowerLoss::PROCESS_ONLY].into_iter().chain(random) {
                    watchdog.feed(format!("{NAME}: seed {seed}, moment {at}, {loss:?}"));
                    let crash_again = rng.one_in(SECOND_CRASH_ONE_IN).then_some(0);
                    let disk = replay.power_loss(loss);
                    trial.check(&disk, &history, loss, at, crash_again).map_err(|error| {
                        let steps = recording.describe(at);
                        format!("crash after step {at}, {loss:?}: {error}\n{steps}")
                    })?;
                }
            }
        }
        Ok(())
    });
    let (runs, collections, moments) = (runs.get(), collections.get(), moments.get());
    assert!(collections >= runs || runs == 1, "{collections} collections in {runs} runs");
    println!(
        "{NAME}: {} crash states at {moments} moments of {collections} collections",
        moments * (2 + RANDOM_LOSSES)
    );
    report(NAME, &counts);
}
