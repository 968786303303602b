//! Runs everything that is planned: round by round, group by group, the engines in turn.
//!
//! 1. A measurement is on disk before the next group begins, so that an end at any moment loses at
//!    most one group of one engine.
//! 2. Nothing that an engine does ends the run: it becomes a cell with a reason. Only the files of
//!    the run itself and the user end it.
//! 3. The engines run one at a time, in an order that moves on by one place from group to group and
//!    round to round.
//! 4. Engines that read the same have to find the same; an engine that does not has no figure.
//! 5. With a precision asked for, a group whose ratios are known as well as that is in no further
//!    round.

mod answers;
mod attempt;
mod limits;
mod pace;
mod progress;
mod space;

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, io};

use crate::engine::Ready;
use crate::interrupt;
use crate::overview::SUBJECT;
use crate::process::{self, End};
use crate::run::{Appender, Directory, Measurement, Measurements, OUT_OF_TIME, Run, Status};
use crate::selftest::Digests;
use crate::suite::{Group, Plan, Role, Settings};
use answers::Answer;
use attempt::{Attempt, Done};
use limits::Limits;
use pace::Pace;
use progress::Progress;
pub use space::check;

/// The directory of an engine's database begins with this.
const DATABASE: &str = "lab-db-";
/// Seconds for opening and closing a database, beyond the limits of benchmarks.
const GRACE: f64 = 60.0;

/// How a session ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// Everything was done, or has its reason.
    Complete,
    /// The user ended it.
    Interrupted,
    /// The time that was given was used up.
    OutOfTime,
}

/// A run in progress.
#[derive(Debug)]
pub struct Session<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// By whom.
    pub engines: Vec<Ready>,
    /// Where the databases lie.
    pub databases: PathBuf,
    /// Seconds that the whole run should take. Benchmarks are cut short so that it does.
    pub budget: Option<f64>,
    /// Seconds beyond its limit before an engine program is killed.
    pub grace: f64,
    directory: Directory,
    appender: Appender,
    run: Run,
    measurements: Measurements,
    pace: Pace,
    /// The counts of engines in the group that is being measured.
    answers: Vec<Answer>,
    /// Seconds from the beginning.
    round_ends: Option<f64>,
    began: Instant,
}

impl<'a> Session<'a> {
    /// A session of `run` in `directory`, where `measurements` have been made already. Those that
    /// failed for a reason that may be gone by now are tried again.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn new(
        plan: &'a Plan,
        engines: Vec<Ready>,
        directory: Directory,
        run: Run,
        mut measurements: Measurements,
        databases: PathBuf,
    ) -> Result<Self, String> {
        measurements.retain(|measurement| match measurement.status {
            Status::Ok | Status::Truncated | Status::Timeout | Status::Unsupported => true,
            Status::Failed | Status::Missing | Status::Disqualified | Status::Skipped => false,
        });
        let logs = directory.path().join("logs");
        fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
        directory.write_run(&run)?;
        let appender = directory.appender()?;
        let mut pace = Pace::default();
        measurements.iter().for_each(|measurement| pace.learn(measurement));
        let began = Instant::now();
        Ok(Session {
            plan,
            engines,
            databases,
            budget: None,
            grace: GRACE,
            directory,
            appender,
            run,
            measurements,
            pace,
            answers: Vec::new(),
            round_ends: None,
            began,
        })
    }

    /// Runs what is left to do.
    ///
    /// # Errors
    /// Names the file of the run that cannot be written; what was measured before stays.
    pub fn run(&mut self) -> Result<Ended, String> {
        let earlier = self.run.seconds;
        let mut progress = Progress::new(self.work());
        let ended = match self.self_tests(&progress)? {
            Ended::Complete => self.rounds(&mut progress)?,
            ended => ended,
        };
        progress.finish();
        self.run.seconds = earlier + self.began.elapsed().as_secs_f64();
        self.run.complete = ended == Ended::Complete && self.nothing_is_missing()?;
        self.directory.write_run(&self.run)?;
        Ok(ended)
    }

    /// Groups that are still to do, each with its name.
    fn work(&self) -> Vec<(u32, usize, usize)> {
        (0..self.run.rounds).flat_map(|round| self.work_of(round)).collect()
    }

    fn work_of(&self, round: u32) -> Vec<(u32, usize, usize)> {
        let mut work = Vec::new();
        for group in 0..self.plan.groups.len() {
            if self.is_decided(&self.plan.groups[group], round) {
                continue;
            }
            for engine in 0..self.engines.len() {
                if self.engines[engine].program.is_some()
                    && !self.is_done(&self.plan.groups[group], engine, round)
                {
                    work.push((round, group, engine));
                }
            }
        }
        work
    }

    fn rounds(&mut self, progress: &mut Progress) -> Result<Ended, String> {
        let plan = self.plan;
        for round in 0..self.run.rounds {
            let work = self.work_of(round);
            let engines = &self.engines;
            let named = |(_, group, engine): &(u32, usize, usize)| {
                (engines[*engine].column.id.as_str(), &plan.groups[*group])
            };
            self.pace
                .begin_round(work.iter().map(named), self.run.time_limit * pace::PREPARING_FACTOR);
            self.round_ends = self.end_of_round(round);
            for (place, group) in plan.groups.iter().enumerate() {
                if self.is_decided(group, round) {
                    progress.spare(round, place);
                    continue;
                }
                self.answers.clear();
                for turn in 0..self.engines.len() {
                    let engine = (turn + place + round as usize) % self.engines.len();
                    if self.is_done(group, engine, round) {
                        continue;
                    }
                    if interrupt::requested() {
                        return Ok(Ended::Interrupted);
                    }
                    if self.out_of_time() {
                        self.give_up_rest()?;
                        return Ok(Ended::OutOfTime);
                    }
                    if self.one(round, place, engine, progress)? == Ended::Interrupted {
                        return Ok(Ended::Interrupted);
                    }
                }
                self.compare_answers(round, progress)?;
            }
        }
        Ok(Ended::Complete)
    }

    /// Drops the figures of engines that did not find what the others found.
    fn compare_answers(&mut self, round: u32, progress: &Progress) -> Result<(), String> {
        let answers = std::mem::take(&mut self.answers);
        for (answer, reason) in answers::odd_ones(&answers) {
            let (section, cell) = (&self.plan.sections[answer.section].id, answer.cell);
            let Some(measured) =
                self.measurements.get(section, cell, &answer.engine, round).cloned()
            else {
                continue;
            };
            progress.note(&format!("{section}, {}: {reason}", answer.engine));
            let (status, reason, series) = (Status::Failed, Some(reason), Vec::new());
            self.record(Measurement {
                status,
                reason,
                debt: None,
                result: None,
                series,
                ..measured
            })?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        round: u32,
        place: usize,
        engine: usize,
        progress: &mut Progress,
    ) -> Result<Ended, String> {
        let group = &self.plan.groups[place];
        let (status, reason) = {
            let about = &self.engines[engine].about;
            match (&about.missing, &about.disqualified) {
                (Some(reason), _) => (Status::Missing, reason.clone()),
                (None, Some(reason)) => (Status::Disqualified, reason.clone()),
                (None, None) => return self.measure(round, place, engine, progress),
            }
        };
        self.record_all(group, engine, round, status, &reason)?;
        Ok(Ended::Complete)
    }

    fn measure(
        &mut self,
        round: u32,
        place: usize,
        engine: usize,
        progress: &mut Progress,
    ) -> Result<Ended, String> {
        let group = &self.plan.groups[place];
        let id = self.engines[engine].column.id.clone();
        progress.begin(round, self.run.rounds, place, &group.name, &id);
        let seed = self.run.seed + u64::from(round);
        let database = self.database(&id);
        remove(&database)?;
        self.pace.begin(
            &id,
            group,
            self.round_ends.map(|end| end - self.began.elapsed().as_secs_f64()),
        );
        let (time_limit, grace) = (self.run.time_limit, self.grace);
        let limits = Limits { time_limit, grace, engine: &id, pace: &self.pace, refill: None };
        if let Err(reason) = space::enough(
            group,
            &self.engines[engine].column.settings_of,
            self.run.num,
            &self.databases,
        ) {
            self.record_all(group, engine, round, Status::Skipped, &reason)?;
            progress.end(&format!("skipped: {reason}"));
            return Ok(Ended::Complete);
        }
        let attempt = Attempt {
            ready: &self.engines[engine],
            group,
            num: self.run.num,
            seed,
            limits,
            database: &database,
            log: &self.log(&id),
        };
        let began = Instant::now();
        let Done { cells, refills, interrupted } =
            attempt.run(&|benchmark| progress.doing(benchmark))?;
        remove(&database)?;
        let measured: f64 =
            cells.iter().filter_map(|cell| cell.result.as_ref()).map(|result| result.seconds).sum();
        let anew: f64 = refills.iter().map(|refilled| refilled.seconds).sum();
        let longest = limits.longest();
        self.pace.took_beside(began.elapsed().as_secs_f64() - measured - anew);
        refills.iter().for_each(|refilled| self.pace.refilled(&id, &group.name, refilled, longest));
        let troubles = cells.iter().filter(|cell| cell.status > Status::Truncated).count();
        let has_trouble = |cell: &&attempt::Attempted| {
            cell.status > Status::Truncated && cell.status != Status::Unsupported
        };
        let why = cells.iter().find(has_trouble).and_then(|cell| cell.reason.clone());
        for cell in cells {
            if let Some((question, found)) = cell.answer {
                let (engine, section, cell) = (id.clone(), cell.section, cell.cell);
                self.answers.push(Answer { engine, section, cell, question, found });
            }
            let section = self.plan.sections[cell.section].id.clone();
            self.record(Measurement {
                section,
                cell: cell.cell,
                engine: id.clone(),
                round,
                status: cell.status,
                reason: cell.reason,
                partial: cell.partial,
                debt: cell.debt,
                result: cell.result,
                series: cell.series,
            })?;
        }
        progress.end(&match (interrupted, troubles) {
            (true, _) => "interrupted".to_owned(),
            (false, 0) => String::new(),
            (false, troubles) => {
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                format!("{troubles} of its cells without a figure{why}")
            }
        });
        Ok(if interrupted { Ended::Interrupted } else { Ended::Complete })
    }

    /// Tests every engine that is going to be measured; a wrong result disqualifies it.
    fn self_tests(&mut self, progress: &Progress) -> Result<Ended, String> {
        let digests = Digests::of(self.run.seed);
        for engine in 0..self.engines.len() {
            let ready = &self.engines[engine];
            let to_do = (0..self.run.rounds).any(|round| {
                self.plan.groups.iter().any(|group| {
                    ready.program.is_some()
                        && !self.is_decided(group, round)
                        && !self.is_done(group, engine, round)
                })
            });
            if !to_do || ready.about.disqualified.is_some() {
                continue;
            }
            let id = ready.column.id.clone();
            progress.say(&format!("self-test of {id}"));
            let database = self.database(&id);
            remove(&database)?;
            let verdict = self.self_test(&self.engines[engine], &digests, &database)?;
            remove(&database)?;
            match verdict {
                Verdict::Right => {}
                Verdict::Interrupted => return Ok(Ended::Interrupted),
                Verdict::Wrong(reason) => {
                    progress.note(&format!("{id} is DISQUALIFIED: {reason}"));
                    self.engines[engine].about.disqualified = Some(reason.clone());
                    if let Some(about) = self.run.engines.iter_mut().find(|about| about.id == id) {
                        about.disqualified = Some(reason);
                    }
                }
            }
        }
        self.directory.write_run(&self.run)?;
        Ok(Ended::Complete)
    }

    fn self_test(
        &self,
        ready: &Ready,
        digests: &Digests,
        database: &Path,
    ) -> Result<Verdict, String> {
        let Some(program) = &ready.program else { return Ok(Verdict::Right) };
        let mut command = program.command();
        command.args(Settings::default().flags(attempt::SELF_TEST_ENTRIES)).args([
            "--benchmarks=selftest".to_owned(),
            format!("--seed={}", self.run.seed),
            format!("--db={}", database.display()),
            "--json".to_owned(),
        ]);
        let limit = limits::SELF_TEST;
        let log = self.log(&ready.column.id);
        let outcome = process::run(command, &["selftest"], &[Some(limit)], &log, &mut |_| {})?;
        let answer = outcome.results.first().map(|(result, _)| result);
        Ok(match (outcome.end, answer) {
            (End::Interrupted, _) => Verdict::Interrupted,
            (
                End::Failed(reason)
                | End::OutOfMemory(reason)
                | End::Timeout(reason)
                | End::NotClosed(reason),
                None,
            ) => Verdict::Wrong(format!("self-test: {reason}")),
            (_, Some(result)) => match (&result.digest, &result.unsupported) {
                (Some(digest), _) if digests.accepts(digest, &ready.about.limits) => Verdict::Right,
                (Some(digest), _) => Verdict::Wrong(format!(
                    "wrong results in the self-test: its digest is {digest}, that of the model {}",
                    digests.exact
                )),
                (None, Some(reason)) => {
                    Verdict::Wrong(format!("its program has no self-test: {reason}"))
                }
                (None, None) => Verdict::Wrong("it reports no digest of the self-test".to_owned()),
            },
            (End::Complete, None) => Verdict::Wrong("it reports no self-test".to_owned()),
        })
    }

    /// Seconds from the session's beginning: what is left of the budget is divided evenly over the
    /// rounds.
    fn end_of_round(&self, round: u32) -> Option<f64> {
        let now = self.began.elapsed().as_secs_f64();
        self.budget.map(|budget| now + (budget - now) / f64::from(self.run.rounds - round))
    }

    fn out_of_time(&self) -> bool {
        self.budget
            .is_some_and(|budget| self.began.elapsed().as_secs_f64() > budget * pace::OVERTIME)
    }

    fn give_up_rest(&mut self) -> Result<(), String> {
        let plan = self.plan;
        for round in 0..self.run.rounds {
            for group in plan
                .groups
                .iter()
                .filter(|group| !self.is_decided(group, round))
                .collect::<Vec<_>>()
            {
                for engine in 0..self.engines.len() {
                    if !self.is_done(group, engine, round) {
                        self.record_all(group, engine, round, Status::Skipped, OUT_OF_TIME)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn has(&self, section: &str, cell: usize, id: &str, round: u32) -> bool {
        self.measurements.get(section, cell, id, round).is_some()
    }

    /// Whether all cells of a group have an outcome.
    fn is_done(&self, group: &Group, engine: usize, round: u32) -> bool {
        let id = &self.engines[engine].column.id;
        cells(group)
            .all(|(section, cell)| self.has(&self.plan.sections[section].id, cell, id, round))
    }

    /// Whether every engine of the run has an outcome everywhere, also those that this session
    /// leaves alone. What they failed in before stands in the file, where this session has
    /// forgotten it.
    fn nothing_is_missing(&self) -> Result<bool, String> {
        let written = self.directory.read_measurements()?;
        let ids: Vec<&str> = self.run.engines.iter().map(|engine| engine.id.as_str()).collect();
        Ok((0..self.run.rounds).all(|round| {
            self.plan.groups.iter().all(|group| {
                let all = ids.iter().all(|id| {
                    cells(group).all(|(section, cell)| {
                        written.get(&self.plan.sections[section].id, cell, id, round).is_some()
                    })
                });
                all || self.is_decided_for(&ids, group, round)
            })
        }))
    }

    /// Whether the rounds before this one say as much of a group as was asked for, so that it needs
    /// no other.
    fn is_decided(&self, group: &Group, round: u32) -> bool {
        let ids: Vec<&str> = self.engines.iter().map(|engine| engine.column.id.as_str()).collect();
        self.is_decided_for(&ids, group, round)
    }

    /// The same for these engines. A round that was begun is ended.
    fn is_decided_for(&self, engines: &[&str], group: &Group, round: u32) -> bool {
        let Some(precision) = self.run.precision else { return false };
        let ids = || engines.iter().copied();
        let Some(subject) = ids().find(|id| *id == SUBJECT).or(ids().next()) else { return false };
        let section = |at: usize| self.plan.sections[at].id.as_str();
        let begun =
            cells(group).any(|(at, cell)| ids().any(|id| self.has(section(at), cell, id, round)));
        !begun
            && cells(group).all(|(at, cell)| {
                let uncertainty =
                    |id| self.measurements.uncertainty(section(at), cell, subject, id);
                ids().filter(|id| *id != subject).all(|id| match uncertainty(id) {
                    Some(uncertainty) => uncertainty <= precision,
                    // A cell without a figure in the first round does not count.
                    None => self.has(section(at), cell, id, 0),
                })
            })
    }

    fn record_all(
        &mut self,
        group: &Group,
        engine: usize,
        round: u32,
        status: Status,
        reason: &str,
    ) -> Result<(), String> {
        let id = self.engines[engine].column.id.clone();
        for (section, cell) in cells(group) {
            let section = self.plan.sections[section].id.clone();
            let reason = Some(reason.to_owned());
            let engine = id.clone();
            self.record(Measurement {
                section,
                cell,
                engine,
                round,
                status,
                reason,
                partial: false,
                debt: None,
                result: None,
                series: Vec::new(),
            })?;
        }
        Ok(())
    }

    fn record(&mut self, measurement: Measurement) -> Result<(), String> {
        self.appender.append(&measurement)?;
        self.pace.learn(&measurement);
        self.measurements.add(measurement);
        Ok(())
    }

    fn database(&self, id: &str) -> PathBuf {
        self.databases.join(format!("{DATABASE}{id}"))
    }

    fn log(&self, id: &str) -> PathBuf {
        self.directory.path().join("logs").join(format!("{id}.txt"))
    }
}

enum Verdict {
    Right,
    Wrong(String),
    Interrupted,
}

fn cells(group: &Group) -> impl Iterator<Item = (usize, usize)> {
    group.steps.iter().filter_map(|step| match step.role {
        Role::Cell { section, cell } => Some((section, cell)),
        Role::Prepare | Role::Debt { .. } => None,
    })
}

fn remove(dir: &Path) -> Result<(), String> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(format!("{}: {e}", dir.display())),
        _ => Ok(()),
    }
}
