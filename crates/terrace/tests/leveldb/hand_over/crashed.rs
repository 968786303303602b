//! LevelDB is the first to open what a crash left, and Terrace the next.

use std::path::Path;
use std::time::Duration;

use terrace::{Db, Options};
use terrace_testkit::campaign::campaign;
use terrace_testkit::driver::{Driver, read_all};
use terrace_testkit::history::History;
use terrace_testkit::leveldb::{Peer, PeerOptions};
use terrace_testkit::model::Pair;
use terrace_testkit::option_set::OptionSet;
use terrace_testkit::rng::{Rng, mix};
use terrace_testkit::scale::scaled;
use terrace_testkit::script::Script;
use terrace_testkit::simfs::{DataLoss, EntryLoss, LogKind, PowerLoss, SimFs};
use terrace_testkit::watchdog::Watchdog;

const PATH: &str = "/data/db";
/// Crashes of one script.
const MOMENTS: usize = 25;

#[derive(Default)]
struct Counts {
    states: u64,
    torn: u64,
    /// Torn states that LevelDB refused, with and without paranoid checks.
    refused: [u64; 2],
}

struct Crashed<'a> {
    peer: &'a Peer,
    history: &'a History,
    /// Writes that must be there, and those that may be.
    required: usize,
    begun: usize,
}

impl Crashed<'_> {
    /// Opens the state with LevelDB, then with Terrace. Whether LevelDB opened it.
    fn open(&self, state: &SimFs, paranoid: bool, tears: bool) -> Result<bool, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let db = dir.path().join("db");
        state.export(Path::new(PATH), &db).map_err(|error| error.to_string())?;
        let options = PeerOptions { create: true, paranoid, ..PeerOptions::default() };
        match self.peer.entries(&db, &options) {
            Ok(found) => {
                // LevelDB leaves out what it cannot read of a torn log, so that a prefix is not to
                // be had from it.
                match tears {
                    true => self.history.check_keys(&found, self.required),
                    false => self.history.check(&found, self.required, self.begun).map(drop),
                }
                .map_err(|error| format!("LevelDB: {error}"))?;
                let left = self.entries(&db)?;
                if left != found {
                    return Err(format!(
                        "LevelDB found {} entries, Terrace then {} or others",
                        found.len(),
                        left.len()
                    ));
                }
                Ok(true)
            }
            Err(error) if tears => {
                let found =
                    self.entries(&db).map_err(|then| format!("LevelDB: {error:?}, then {then}"))?;
                let checked = self.history.check(&found, self.required, self.begun);
                checked.map_err(|then| format!("LevelDB: {error:?}, then Terrace: {then}"))?;
                Ok(false)
            }
            Err(error) => Err(format!("LevelDB refuses what is not torn: {error:?}")),
        }
    }

    fn entries(&self, db: &Path) -> Result<Vec<Pair>, String> {
        let db = Db::open(db, Options::new().create_if_missing(true))
            .map_err(|error| format!("Terrace: {error}"))?;
        let found = read_all(&db).map_err(|error| format!("Terrace: {error}"))?;
        db.close().map_err(|error| format!("Terrace: {error}"))?;
        Ok(found)
    }
}

/// Synced writes are there, whichever program opens first. Where nothing is torn, after the death
/// of the process or a power cut that spares nothing unsynced, LevelDB opens every state, with
/// paranoid checks, too, and finds a prefix of the writes.
#[test]
fn leveldb_opens_first_what_a_crash_left() {
    let Some(peer) = Peer::find() else { return };
    let mut counts = Counts::default();
    let watchdog = Watchdog::new(Duration::from_secs(120), "leveldb_opens_first");
    campaign("leveldb_opens_first_what_a_crash_left", scaled(6), |seed| {
        let mut rng = Rng::new(seed);
        let settings = OptionSet {
            reverse: false,
            paranoid_checks: false,
            value_log: 0,
            lz4: false,
            ..OptionSet::random(&mut rng)
        };
        let scripts = Script::all();
        let script =
            if rng.one_in(2) { Script::random(seed, 60) } else { rng.pick(&scripts).clone() };
        let fs = SimFs::new();
        fs.set_log_kind(if settings.mapped_log { LogKind::Prepared } else { LogKind::Plain });
        let is_unrestful = rng.one_in(2);
        if is_unrestful {
            fs.set_unrest(seed);
        }
        fs.record();
        let mut driver = Driver::new(&fs, Path::new(PATH), &settings, History::new());
        driver.play(&script)?;
        let history = driver.finish()?;
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        let stride = (recording.len() / MOMENTS).max(1);
        while replay.at() < recording.len() {
            replay.advance_to((replay.at() + rng.between(1, 2 * stride)).min(recording.len()));
            let at = replay.at();
            for loss in [
                PowerLoss::STRICT,
                PowerLoss::PROCESS_ONLY,
                PowerLoss::random(mix(seed ^ at as u64)),
            ] {
                let paranoid = rng.one_in(2);
                watchdog.feed(format!("seed {seed}, moment {at}, {loss:?}"));
                let required = match loss.loses_nothing() {
                    true => history.required_without_power_loss(at),
                    false => history.required(at),
                };
                let begun = history.begun(at);
                let crashed = Crashed { peer: &peer, history: &history, required, begun };
                // Pages that the system wrote back by itself are half of a record as well.
                let tears = match (loss.data, loss.entries) {
                    (DataLoss::Undecided, EntryLoss::Undecided) => false,
                    (DataLoss::All, EntryLoss::All) => is_unrestful,
                    _ => true,
                };
                counts.states += 1;
                counts.torn += u64::from(tears);
                let opened =
                    crashed.open(&replay.power_loss(loss), paranoid, tears).map_err(|error| {
                        let place = recording.describe(at);
                        format!(
                            "script \"{}\", moment {at}, {loss:?}, paranoid: {paranoid}: \
                             {error}\n{place}",
                            script.name
                        )
                    })?;
                counts.refused[usize::from(paranoid)] += u64::from(!opened);
            }
        }
        Ok(())
    });
    let Counts { states, torn, refused: [plain, paranoid] } = counts;
    println!(
        "leveldb_opens_first_what_a_crash_left: {states} states, {torn} of them torn: LevelDB \
         refused {paranoid} with paranoid checks and {plain} without"
    );
}
