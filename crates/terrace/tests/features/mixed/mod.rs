//! Everything of keyspaces, range deletes, expiry, filters, atomic updates and transactions at
//! once, beside snapshots and cursors that last, reopens, deaths and power cuts, against a map.

mod world;

use terrace_testkit::campaign::campaign;
use terrace_testkit::rng::Rng;
use terrace_testkit::scale::scaled;
use terrace_testkit::simfs::{PowerLoss, SimFs};

use self::world::{World, alive, found_after, text};

#[test]
fn everything_at_once_equals_a_model() {
    campaign("everything_at_once_equals_a_model", scaled(200), |seed| {
        let mut world = World::new(seed, SimFs::new(), true)?;
        for _ in 0..300 {
            world.step()?;
        }
        world.look()?;
        // A log that a power cut has left is damaged where nothing was synced, until it is flushed.
        world.db().flush().map_err(text)?;
        let problems = world.db().verify().map_err(text)?.problems;
        if problems.is_empty() { Ok(()) } else { Err(format!("{problems:?}")) }
    });
}

/// Where a history was after one of its steps.
struct Mark {
    /// Steps of the file system.
    steps: usize,
    now: u64,
    /// Up to this step of the history everything is durable.
    durable: usize,
}

#[test]
fn a_crash_amid_everything_leaves_a_prefix() {
    let mut checked = 0;
    campaign("a_crash_amid_everything_leaves_a_prefix", scaled(20), |seed| {
        let (fs, mut rng) = (SimFs::new(), Rng::new(seed));
        fs.record();
        let mut world = World::new(seed, fs.clone(), false)?;
        let mut states = vec![world.model.clone()];
        let mut marks = vec![Mark { steps: fs.steps(), now: 0, durable: 0 }];
        let mut durable = 0;
        for step in 1..=80 {
            world.step()?;
            if rng.one_in(8) {
                world.db().sync().map_err(text)?;
                durable = step;
            }
            states.push(world.model.clone());
            marks.push(Mark { steps: fs.steps(), now: world.now, durable });
        }
        world.close();
        let recording = fs.take_recording();
        let mut replay = recording.replay();
        let stride = 1 + fs.steps() / 400;
        loop {
            // The step that the crash comes into.
            let step = marks.partition_point(|mark| mark.steps < replay.at());
            if step > 0 && step < marks.len() && rng.one_in(stride) {
                let now = marks[step].now;
                for (loss, from) in [
                    (PowerLoss::PROCESS_ONLY, step - 1),
                    (PowerLoss::STRICT, marks[step - 1].durable),
                    (PowerLoss::random(rng.next_u64()), marks[step - 1].durable),
                ] {
                    checked += 1;
                    let case = || format!("in step {step} at {}, {loss:?}", replay.at());
                    let found = found_after(&replay.power_loss(loss), now)
                        .map_err(|error| format!("{}: {error}", case()))?;
                    let is_one = |state| alive(state, now) == found;
                    if !states[from..=step].iter().any(is_one) {
                        return Err(format!("{}: {} entries", case(), found.len()));
                    }
                }
            }
            if !replay.advance() {
                return Ok(());
            }
        }
    });
    println!("a_crash_amid_everything_leaves_a_prefix: {checked} crash states");
}
