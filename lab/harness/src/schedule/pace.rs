//! The time that a run with a budget gives each benchmark, so that every engine gets to every cell. Reads no clock: the
//! session tells it how much time is left.
//!
//! 1. What is left is divided evenly over the rounds, then over the groups and engines that the round still has to do, by
//!    their steps. What one does not use, those after it share.
//! 2. A benchmark may take several even shares while the engine has never been cut short; then one, and less than one
//!    where it was cut short in the same benchmark.
//! 3. Nobody gets less than [`LEAST`], so that there is a figure even when the budget is used up.

use std::collections::BTreeSet;

use crate::run::{Measurement, Status};
use crate::suite::{Group, Role, Step};

/// Even shares for a benchmark of an engine that has not been cut short yet.
const GENEROUS: f64 = 6.0;
/// Even shares for one that has been, in other benchmarks.
const CAREFUL: f64 = 1.0;
/// Even shares for one that has been cut short in the same benchmark.
const STRICT: f64 = 0.4;
/// Seconds for the shortest look at a benchmark.
const LEAST: f64 = 0.5;
/// A run may take so much of its budget more before what is left is skipped.
pub(super) const OVERTIME: f64 = 1.2;

/// How the rest of a round is divided.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Even shares that the round still has to give.
    shares: f64,
    /// Seconds of benchmarks that run for a fixed time.
    fixed: f64,
    /// Groups that the round still has to do.
    groups: f64,
    /// Seconds that groups took beside what can be cut short, and how many groups.
    beside: (f64, f64),
    /// Seconds of a share; `None` without a budget.
    share: Option<f64>,
    /// Engine and benchmark that were cut short before.
    slow: BTreeSet<(String, String)>,
}

impl Pace {
    /// A round begins, in which these groups are to do, one for each engine.
    pub(super) fn begin_round<'a>(&mut self, groups: impl Iterator<Item = &'a Group>) {
        (self.shares, self.fixed, self.groups) =
            groups.fold((0.0, 0.0, 0.0), |sum, group| (sum.0 + shares(group), sum.1 + fixed(group), sum.2 + 1.0));
    }

    /// A group begins, with so many seconds left for the round; without, there is no budget.
    pub(super) fn begin(&mut self, group: &Group, left: Option<f64>) {
        let beside = self.beside.0 / self.beside.1.max(1.0) * self.groups;
        self.share = left.map(|left| (left - self.fixed - beside).max(0.0) / self.shares.max(f64::MIN_POSITIVE));
        self.groups -= 1.0;
        self.shares = (self.shares - shares(group)).max(0.0);
        self.fixed = (self.fixed - fixed(group)).max(0.0);
    }

    /// A group took so many seconds beside its benchmarks: opening, closing, work that was put off.
    pub(super) fn took_beside(&mut self, seconds: f64) {
        self.beside = (self.beside.0 + seconds.max(0.0), self.beside.1 + 1.0);
    }

    pub(super) fn has_budget(&self) -> bool {
        self.share.is_some()
    }

    /// The seconds that an engine may take for a step which may take `limit` at most; 0 is no limit.
    pub(super) fn allowed(&self, engine: &str, step: &Step, limit: f64) -> f64 {
        let Some(share) = self.share else { return limit };
        let slow_in = || self.slow.iter().filter(|(slow, _)| slow == engine);
        let times = if slow_in().any(|(_, benchmark)| benchmark == step.workload.name) {
            STRICT
        } else if slow_in().next().is_some() {
            CAREFUL
        } else {
            GENEROUS
        };
        let seconds = (share * times * shares_of(step)).max(LEAST);
        // Tenths are enough, and keep steps with the same limit in one process.
        let seconds = (seconds * 10.0).round() / 10.0;
        if limit > 0.0 { seconds.min(limit) } else { seconds }
    }

    /// Takes in what was measured, now or in an earlier session.
    pub(super) fn learn(&mut self, measurement: &Measurement) {
        if let (Status::Truncated, Some(result)) = (measurement.status, &measurement.result) {
            self.slow.insert((measurement.engine.clone(), result.benchmark.clone()));
        }
    }
}

fn shares(group: &Group) -> f64 {
    group.steps.iter().map(shares_of).sum()
}

fn fixed(group: &Group) -> f64 {
    let timed = group.steps.iter().filter(|step| step.workload.timed);
    timed.filter_map(|step| step.settings("").number("duration")).sum()
}

fn shares_of(step: &Step) -> f64 {
    match step.role {
        _ if step.workload.timed => 0.0,
        Role::Prepare => 2.0,
        Role::Cell { .. } if step.patient => 2.0,
        Role::Cell { .. } => 1.0,
        // Nothing cuts it short.
        Role::Debt { .. } => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::DriverResult;
    use crate::suite::{Form, Plan, Scale, load};

    const TIME_LIMIT: f64 = 10.0;

    /// What a run of `leveldb-2011` takes that has engines of these speeds: seconds, and how often each was cut short.
    fn simulated(speeds: &[f64], rounds: u32, budget: f64) -> (f64, Vec<u32>) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../suites/leveldb-2011.toml");
        let suite = load(path.as_ref()).expect("a suite");
        let plan = Plan::of(&suite, &Form::full(&suite), &Scale::NONE, &[]).expect("a plan");
        let mut pace = Pace::default();
        let mut cut = vec![0; speeds.len()];
        let mut now = 0.0;
        for round in 0..rounds {
            pace.begin_round(plan.groups.iter().flat_map(|group| speeds.iter().map(move |_| group)));
            let end = now + (budget - now) / f64::from(rounds - round);
            for (at, group) in plan.groups.iter().enumerate() {
                for turn in 0..speeds.len() {
                    let engine = (turn + at) % speeds.len();
                    pace.begin(group, Some(end - now));
                    // A second for opening and closing.
                    let mut beside = 1.0;
                    for step in &group.steps {
                        let quicker = match step.workload.name {
                            "readseq" => 8.0,
                            "readrandom" => 1.5,
                            name if name.contains("100K") || step.workload.synchronous => 20.0,
                            _ => 1.0,
                        };
                        let wanted = suite.num as f64 / speeds[engine] / quicker;
                        let allowed = pace.allowed(&engine.to_string(), step, TIME_LIMIT);
                        assert!((LEAST..=TIME_LIMIT).contains(&allowed));
                        if matches!(step.role, Role::Debt { .. }) {
                            beside += wanted.min(0.5);
                            continue;
                        }
                        now += wanted.min(allowed);
                        if wanted > allowed {
                            cut[engine] += 1;
                            pace.learn(&truncated(engine, step));
                        }
                    }
                    now += beside;
                    pace.took_beside(beside);
                }
            }
        }
        (now, cut)
    }

    fn truncated(engine: usize, step: &Step) -> Measurement {
        Measurement {
            section: String::new(),
            cell: 0,
            engine: engine.to_string(),
            round: 0,
            status: Status::Truncated,
            reason: None,
            partial: false,
            debt: None,
            result: Some(DriverResult { benchmark: step.workload.name.to_owned(), ..DriverResult::default() }),
            series: Vec::new(),
        }
    }

    #[test]
    fn slow_engines_make_room_for_all() {
        // Operations a second: what takes a second or two, what just fits into the limit, and what never does.
        let speeds = [1e6, 8e5, 8e5, 6e5, 5e5, 4e5, 3e5, 2e5, 1.5e5, 4e4, 2e4, 2e4, 1e4, 1e4, 5e3, 1e3];
        for (rounds, minutes) in [(1, 13.0), (3, 38.0)] {
            let budget = minutes * 60.0;
            let (seconds, cut) = simulated(&speeds, rounds, budget);
            assert!(seconds < budget * 1.05, "{seconds:.0} of {budget} s");
            assert!(cut[..7].iter().all(|count| *count == 0), "the quick ones are measured to the end: {cut:?}");
            assert!(cut[15] > 0);
        }
    }

    #[test]
    fn a_budget_that_is_gone_leaves_a_short_look() {
        let (seconds, cut) = simulated(&[1e6, 1e3], 1, 0.0);
        assert!(seconds < 200.0 && cut.iter().all(|count| *count > 0), "{seconds} {cut:?}");
    }
}
