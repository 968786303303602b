//! The time that a run with a budget gives each benchmark, so that every engine gets to every cell.
//! Reads no clock: the session tells it how much time is left.
//!
//! 1. What is left is divided evenly over the rounds, then over the groups and engines that the
//!    round still has to do, by their steps. What one does not use, those after it share.
//! 2. A benchmark may take several even shares while the engine has never been cut short; then one,
//!    and less than one where it was cut short in the same benchmark.
//! 3. What writes a database anew for other cells is not measured, and may take its time: without a
//!    complete database all of these have no ratio. Its seconds are set apart before the rest is
//!    divided, at most [`SET_ASIDE`] of a round. An engine that cannot complete it in that time has
//!    shares as for all else.
//! 4. Nobody gets less than [`LEAST`], so that there is a figure even when the budget is used up.

use std::collections::{BTreeMap, BTreeSet};

use crate::run::{Measurement, Status};
use crate::suite::{Group, Role, Step};

/// Even shares for a benchmark of an engine that has not been cut short yet.
const GENEROUS: f64 = 6.0;
/// Even shares for one that has been, in other benchmarks.
const CAREFUL: f64 = 1.0;
/// Even shares for one that has been cut short in the same benchmark.
const STRICT: f64 = 0.4;
/// Of a round, for databases that are written anew.
const SET_ASIDE: f64 = 0.4;
/// Of the longest time for that, what an engine is taken to need of which nothing is known.
const USUAL: f64 = 0.3;
/// Batches that have not been measured are taken to be at most so many times as fast as single
/// writes.
const HOPE: f64 = 2.0;
/// Seconds for the shortest look at a benchmark.
const LEAST: f64 = 0.5;
/// What makes a database for other cells may take so many times as long as what is only measured.
pub(super) const PREPARING_FACTOR: f64 = 4.0;
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
    /// The rest of the seconds set apart in this round; `None` before its first group.
    aside: Option<f64>,
    /// Seconds that one of them may take at most.
    longest: f64,
    /// Engine and group that are still to do in this round, and may need a database written anew.
    makers: BTreeSet<(String, String)>,
    /// Operations a second, by engine and benchmark, of what was measured last.
    rates: BTreeMap<(String, String), f64>,
    /// Seconds that this took before, by engine and group.
    refills: BTreeMap<(String, String), f64>,
    /// Engine and entries for which the longest time was not enough.
    hopeless: BTreeSet<(String, u64)>,
}

/// A database that is to be written anew, since its writes were cut short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refill<'a> {
    /// The engine's id.
    pub(super) engine: &'a str,
    /// The engine that writes it.
    pub(super) step: &'a Step,
    /// Entries of the whole database.
    pub(super) entries: u64,
    /// Of the writes that were cut short, a second.
    pub(super) rate: f64,
}

/// Its result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refilled {
    /// Entries of the whole database.
    pub(super) entries: u64,
    /// How long it took.
    pub(super) seconds: f64,
    /// Whether it was written to its end.
    pub(super) complete: bool,
}

impl Pace {
    /// A round begins, in which these engines have these groups to do; what writes a database anew
    /// may take `longest`.
    pub(super) fn begin_round<'a>(
        &mut self,
        work: impl Iterator<Item = (&'a str, &'a Group)>,
        longest: f64,
    ) {
        (self.shares, self.fixed, self.groups, self.aside) = (0.0, 0.0, 0.0, None);
        self.longest = longest;
        self.makers.clear();
        for (engine, group) in work {
            self.shares += shares(group);
            self.fixed += fixed(group);
            self.groups += 1.0;
            if group.steps.iter().any(Step::makes_database) {
                self.makers.insert((engine.to_owned(), group.name.clone()));
            }
        }
    }

    /// An engine begins a group, with so many seconds left for the round; without, there is no
    /// budget.
    pub(super) fn begin(&mut self, engine: &str, group: &Group, left: Option<f64>) {
        let beside = self.beside.0 / self.beside.1.max(1.0) * self.groups;
        let aside = *self.aside.get_or_insert(left.unwrap_or(0.0).max(0.0) * SET_ASIDE);
        let refills = self.makers.iter().map(|maker| self.expected(maker)).sum::<f64>().min(aside);
        let others = |left: f64| (left - self.fixed - beside - refills).max(0.0);
        self.share = left.map(|left| others(left) / self.shares.max(f64::MIN_POSITIVE));
        let maker = (engine.to_owned(), group.name.clone());
        if self.makers.remove(&maker) {
            self.refills.insert(maker, 0.0);
        }
        self.groups -= 1.0;
        self.shares = (self.shares - shares(group)).max(0.0);
        self.fixed = (self.fixed - fixed(group)).max(0.0);
    }

    /// Seconds that an engine will take to write a group's database anew: as before, or as in its
    /// other groups.
    fn expected(&self, maker: &(String, String)) -> f64 {
        let others = || {
            self.refills
                .iter()
                .filter(|((engine, _), _)| *engine == maker.0)
                .map(|(_, seconds)| *seconds)
        };
        let known = self.refills.get(maker).copied().or_else(|| others().max_by(f64::total_cmp));
        known.unwrap_or(self.longest * USUAL)
    }

    /// The seconds that a database may take to be written anew, at most `limit`; 0 is no limit.
    pub(super) fn allowed_to_refill(&self, refill: &Refill<'_>, limit: f64) -> f64 {
        let even = self.allowed(refill.engine, refill.step, limit);
        let known =
            self.rates.get(&(refill.engine.to_owned(), refill.step.workload.name.to_owned()));
        let rate = known.copied().unwrap_or(refill.rate * HOPE);
        let hopeless = refill.entries as f64 > rate * limit
            || self.hopeless.contains(&(refill.engine.to_owned(), refill.entries));
        match self.aside {
            Some(aside) if self.has_budget() && limit > 0.0 && !hopeless => {
                in_tenths(limit.min(aside)).max(even)
            }
            _ => even,
        }
    }

    /// An engine has written the database of a group anew, in `limit` seconds at most.
    pub(super) fn refilled(&mut self, engine: &str, group: &str, refilled: &Refilled, limit: f64) {
        let Refilled { entries, seconds, complete } = *refilled;
        self.aside = self.aside.map(|aside| (aside - seconds).max(0.0));
        // Not if it was the round that had no time left.
        if !complete && limit > 0.0 && seconds >= limit {
            self.hopeless.insert((engine.to_owned(), entries));
        }
        let expected = if complete { seconds } else { 0.0 };
        self.refills.insert((engine.to_owned(), group.to_owned()), expected);
    }

    /// A group took so many seconds beside its benchmarks: opening, closing, work that was put off.
    pub(super) fn took_beside(&mut self, seconds: f64) {
        self.beside = (self.beside.0 + seconds.max(0.0), self.beside.1 + 1.0);
    }

    pub(super) fn has_budget(&self) -> bool {
        self.share.is_some()
    }

    /// The seconds that an engine may take for a step which may take `limit` at most; 0 is no
    /// limit.
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
        let seconds = in_tenths((share * times * shares_of(step)).max(LEAST));
        if limit > 0.0 { seconds.min(limit) } else { seconds }
    }

    /// Takes in what was measured, now or in an earlier session.
    pub(super) fn learn(&mut self, measurement: &Measurement) {
        let Some(result) = &measurement.result else { return };
        let which = (measurement.engine.clone(), result.benchmark.clone());
        if measurement.status == Status::Truncated {
            self.slow.insert(which.clone());
        }
        self.rates.insert(which, result.ops_per_sec);
    }
}

/// Tenths are enough, and keep steps with the same limit in one process.
fn in_tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
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

    /// Batches are so many times as fast as single writes.
    const BATCHES: f64 = 1.4;

    /// The result of a run.
    struct Simulated {
        seconds: f64,
        /// How often each engine was cut short in a cell.
        cut: Vec<u32>,
        /// How often each engine's database was not complete when it was read.
        incomplete: Vec<u32>,
    }

    fn seconds_for(step: &Step, entries: u64, speed: f64) -> f64 {
        let quicker = match step.workload.name {
            "readseq" => 8.0,
            "readrandom" => 1.5,
            "fillseqbatch" | "fillrandbatch" => BATCHES,
            name if name.contains("100K") || step.workload.synchronous => 20.0,
            _ => 1.0,
        };
        entries as f64 / speed / quicker
    }

    /// The duration of a run of `leveldb-2011` with engines of these speeds.
    fn simulated(speeds: &[f64], rounds: u32, budget: f64) -> Simulated {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../suites/leveldb-2011.toml");
        let suite = load(path.as_ref()).expect("a suite");
        let plan = Plan::of(&suite, &Form::full(&suite), &Scale::NONE, &[]).expect("a plan");
        let ids: Vec<String> = (0..speeds.len()).map(|engine| engine.to_string()).collect();
        let mut pace = Pace::default();
        let (mut cut, mut incomplete) = (vec![0; speeds.len()], vec![0; speeds.len()]);
        let mut now = 0.0;
        for round in 0..rounds {
            let work =
                plan.groups.iter().flat_map(|group| ids.iter().map(move |id| (id.as_str(), group)));
            pace.begin_round(work, TIME_LIMIT * PREPARING_FACTOR);
            let end = now + (budget - now) / f64::from(rounds - round);
            for (at, group) in plan.groups.iter().enumerate() {
                for turn in 0..speeds.len() {
                    let engine = (turn + at) % speeds.len();
                    pace.begin(&ids[engine], group, Some(end - now));
                    // A second for opening and closing.
                    let mut beside = 1.0;
                    for step in &group.steps {
                        let wanted = seconds_for(step, suite.num, speeds[engine]);
                        let allowed = pace.allowed(&ids[engine], step, TIME_LIMIT);
                        assert!((LEAST..=TIME_LIMIT).contains(&allowed));
                        if matches!(step.role, Role::Debt { .. }) {
                            beside += wanted.min(0.5);
                            continue;
                        }
                        now += wanted.min(allowed);
                        pace.learn(&measured(
                            engine,
                            step,
                            suite.num as f64 / wanted,
                            wanted > allowed,
                        ));
                        if wanted <= allowed {
                            continue;
                        }
                        cut[engine] += 1;
                        if step.makes_database() {
                            let [batches, _] = &step.ways_to_prepare()[0];
                            let (id, group, entries) =
                                (ids[engine].as_str(), group.name.as_str(), suite.num);
                            let refill =
                                Refill { engine: id, step: batches, entries, rate: speeds[engine] };
                            let wanted = seconds_for(batches, entries, speeds[engine]);
                            let allowed =
                                pace.allowed_to_refill(&refill, TIME_LIMIT * PREPARING_FACTOR);
                            assert!((LEAST..=TIME_LIMIT * PREPARING_FACTOR).contains(&allowed));
                            now += wanted.min(allowed);
                            incomplete[engine] += u32::from(wanted > allowed);
                            let (seconds, complete) = (wanted.min(allowed), wanted <= allowed);
                            let refilled = Refilled { entries, seconds, complete };
                            pace.refilled(id, group, &refilled, TIME_LIMIT * PREPARING_FACTOR);
                        }
                    }
                    now += beside;
                    pace.took_beside(beside);
                }
            }
        }
        Simulated { seconds: now, cut, incomplete }
    }

    fn measured(engine: usize, step: &Step, ops_per_sec: f64, truncated: bool) -> Measurement {
        let benchmark = step.workload.name.to_owned();
        Measurement {
            section: String::new(),
            cell: 0,
            engine: engine.to_string(),
            round: 0,
            status: if truncated { Status::Truncated } else { Status::Ok },
            reason: None,
            partial: false,
            debt: None,
            result: Some(DriverResult { benchmark, ops_per_sec, ..DriverResult::default() }),
            series: Vec::new(),
        }
    }

    #[test]
    fn slow_engines_make_room_for_all() {
        // Operations a second: what takes a second or two, what just fits into the limit, and what
        // never does.
        let speeds =
            [1e6, 8e5, 8e5, 6e5, 5e5, 4e5, 3e5, 2e5, 1.5e5, 4e4, 2e4, 2e4, 1e4, 1e4, 5e3, 1e3];
        for (rounds, minutes) in [(1, 13.0), (3, 38.0)] {
            let budget = minutes * 60.0;
            let Simulated { seconds, cut, .. } = simulated(&speeds, rounds, budget);
            assert!(seconds < budget * 1.05, "{seconds:.0} of {budget} s");
            assert!(
                cut[..7].iter().all(|count| *count == 0),
                "the quick ones are measured to the end: {cut:?}"
            );
            assert!(cut[15] > 0);
        }
    }

    #[test]
    fn what_is_read_is_complete_where_there_is_time() {
        // As `make results` has it, with four engines more than above.
        let speeds = [
            1e6, 8e5, 8e5, 8e5, 6e5, 5e5, 4e5, 3e5, 2e5, 1.5e5, 1.5e5, 1e5, 6e4, 4e4, 4e4, 3e4,
            2e4, 2e4, 1e4, 1e3,
        ];
        let budget = 60.0 * 60.0;
        let Simulated { seconds, cut, incomplete } = simulated(&speeds, 3, budget);
        assert!(seconds < budget * 1.05, "{seconds:.0} of {budget} s");
        assert!(cut[..8].iter().all(|count| *count == 0), "{cut:?}");
        let enough = speeds.iter().filter(|speed| **speed >= 2e4).count();
        assert!(incomplete[..enough].iter().all(|count| *count == 0), "{incomplete:?}");
        assert!(incomplete[19] > 0);
    }

    #[test]
    fn a_budget_that_is_gone_leaves_a_short_look() {
        let Simulated { seconds, cut, .. } = simulated(&[1e6, 1e3], 1, 0.0);
        assert!(seconds < 200.0 && cut.iter().all(|count| *count > 0), "{seconds} {cut:?}");
    }
}
