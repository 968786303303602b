//! Several runs of the same suite as one with more rounds.

use crate::run::{Measurement, Measurements, Run};

/// Pools runs. The first is the description of all.
///
/// # Errors
/// If they cannot be pooled: says why.
pub fn pool(runs: Vec<(Run, Measurements)>) -> Result<(Run, Measurements), String> {
    let mut runs = runs.into_iter();
    let Some((mut run, first)) = runs.next() else {
        return Err("there is no run to report".to_owned());
    };
    let mut all: Vec<Measurement> = first.iter().cloned().collect();
    for (other, measurements) in runs {
        if other.suite != run.suite || other.sections != run.sections {
            return Err(format!(
                "cannot pool these runs: that of {} ({}) has other sections than that of {} ({})",
                other.began, other.suite, run.began, run.suite
            ));
        }
        if (other.num, other.time_limit.to_bits()) != (run.num, run.time_limit.to_bits()) {
            return Err(format!(
                "cannot pool these runs: {} entries and a limit of {} s in one, {} and {} s in another",
                run.num, run.time_limit, other.num, other.time_limit
            ));
        }
        if other.duration.to_bits() != run.duration.to_bits() {
            return Err(format!(
                "cannot pool these runs: timed benchmarks lasted {} s in one, {} s in another",
                run.duration, other.duration
            ));
        }
        if run.machine.is_another(&other.machine) {
            return Err(format!(
                "cannot pool these runs: they are of two machines ({}); `lab compare` compares them",
                run.machine.differences(&other.machine).join("; ")
            ));
        }
        for note in run.machine.notes(&other.machine) {
            if !run.notes.contains(&note) {
                run.notes.push(note);
            }
        }
        for engine in other.engines {
            match run.engine(&engine.id) {
                None => run.engines.push(engine),
                Some(known) if known.version != engine.version => {
                    let (id, old, new) = (&engine.id, &known.version, &engine.version);
                    run.notes.push(format!(
                        "{id} is {old:?} in one of the pooled runs and {new:?} in another."
                    ));
                }
                Some(_) => {}
            }
        }
        let offset = run.rounds;
        all.extend(
            measurements.iter().cloned().map(|m| Measurement { round: m.round + offset, ..m }),
        );
        run.rounds += other.rounds;
        run.seconds += other.seconds;
        run.complete &= other.complete;
    }
    Ok((run, all.into_iter().collect()))
}
