//! One engine, one group, one round: the group's steps on one database.
//!
//! 1. Steps whose flags are the same run in one process; what takes other flags begins a new one on
//!    the same database.
//! 2. What is read when the writes that should make the database were cut short is a database
//!    written in batches. If these are cut short as well, its figures are marked: they are of a
//!    smaller database.
//! 3. A step that needs a database which could not be made has no figure but that reason.
//! 4. Of a cell that is measured several times in a row the pass with the median rate counts.
//! 5. A program that fails after all its results leaves figures, and a database that nothing is
//!    read from.
//! 6. After a failure the group goes on in a new process with the next step that can be done.

use std::path::Path;
use std::time::Duration;

use super::limits::Limits;
use super::pace::{Refill, Refilled};
use crate::engine::Ready;
use crate::machine;
use crate::memory_limit::MemoryLimit;
use crate::process::{self, End};
use crate::run::{Debt, DriverResult, Interval, Status, keep_whole};
use crate::suite::{Group, Role, Step};

/// Bytes of memory for each entry that are at hand when a program begins: what a database takes,
/// with its log and what the system keeps of it.
const TOUCHED: u64 = 512;

/// The self-test has its own number of entries; the flag only has to be valid.
pub(super) const SELF_TEST_ENTRIES: u64 = 5000;

/// The task.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) ready: &'a Ready,
    pub(super) group: &'a Group,
    pub(super) num: u64,
    pub(super) seed: u64,
    pub(super) limits: Limits<'a>,
    pub(super) database: &'a Path,
    pub(super) log: &'a Path,
}

/// The result of a cell.
#[derive(Debug)]
pub(super) struct Attempted {
    pub(super) section: usize,
    pub(super) cell: usize,
    pub(super) status: Status,
    pub(super) reason: Option<String>,
    pub(super) partial: bool,
    pub(super) debt: Option<Debt>,
    pub(super) result: Option<DriverResult>,
    pub(super) series: Vec<Interval>,
    /// How the database was made and what was asked of it, and what was found: where both follow
    /// from the seed alone.
    pub(super) answer: Option<(String, u64)>,
}

/// The result of a group.
#[derive(Debug)]
pub(super) struct Done {
    /// The cells in order. An interrupted step has none.
    pub(super) cells: Vec<Attempted>,
    /// Databases that were written anew.
    pub(super) refills: Vec<Refilled>,
    /// Whether the user ended it.
    pub(super) interrupted: bool,
}

/// The progress so far.
#[derive(Default)]
struct State {
    cells: Vec<Attempted>,
    refills: Vec<Refilled>,
    /// Why the database is not what the next steps need.
    unusable: Option<(Status, String)>,
    /// The writes of the database were cut short at this step, with this result.
    cut: Option<(usize, DriverResult)>,
    /// How the database was made instead, and whether it is complete.
    instead: Option<(String, bool)>,
    /// The writes since the database was empty, if its entries follow from that.
    history: Option<String>,
}

impl Attempt<'_> {
    /// Does it.
    pub(super) fn run(&self, doing: &dyn Fn(&str)) -> Result<Done, String> {
        let mut state = State::default();
        let interrupted = self.passes(&mut state, doing)?;
        let cells = medians(state.cells, &self.group.steps, interrupted);
        Ok(Done { cells, refills: state.refills, interrupted })
    }

    /// Does every pass of every cell; whether the user ended it.
    fn passes(&self, state: &mut State, doing: &dyn Fn(&str)) -> Result<bool, String> {
        let steps = &self.group.steps;
        let mut at = 0;
        while at < steps.len() {
            if let (false, Some((status, reason))) = (steps[at].workload.empty, &state.unusable) {
                let (status, reason) = (*status, reason.clone());
                state.without_result(&steps[at], status, reason);
                at += 1;
                continue;
            }
            if !steps[at].workload.empty
                && let Some((place, result)) = state.cut.take()
            {
                match self.refill(&steps[place], &result, &mut state.refills, doing)? {
                    Some(instead) => {
                        state.instead = Some(instead);
                        // Batches have other keys.
                        state.history = None;
                    }
                    None => return Ok(true),
                }
            }
            let flags = self.flags(&steps[at]);
            let task = &steps[at..at + self.task_length(&steps[at..], &flags)];
            let outcome = self.run_task(task, &flags, &|place| {
                if let Some(step) = task.get(place) {
                    doing(step.workload.name);
                }
            })?;
            for (result, series) in outcome.results {
                state.result(steps, at, result, series, &Extent::of(&flags));
                at += 1;
            }
            match outcome.end {
                End::Complete => {}
                End::Interrupted => return Ok(true),
                End::Failed(reason) => at = state.failed(steps, at, Status::Failed, reason),
                End::OutOfMemory(reason) => {
                    at = state.failed(steps, at, Status::Unsupported, reason)
                }
                End::Timeout(reason) => at = state.failed(steps, at, Status::Timeout, reason),
                End::NotClosed(reason) => state.not_closed(task, &reason),
            }
        }
        Ok(false)
    }

    /// A database that is to be written by `step`, since its writes were cut short at this rate.
    fn written_by<'s>(&'s self, step: &'s Step, rate: f64) -> Refill<'s> {
        let engine = self.limits.engine;
        let entries = step.settings(&self.ready.column.settings_of).entries(self.num);
        Refill { engine, step, entries, rate }
    }

    /// How many steps run in one process. What uses the database that a step makes begins a new
    /// one.
    fn task_length(&self, steps: &[Step], flags: &[String]) -> usize {
        let follows = |step: &&Step| {
            let is_alike = self.flags(step) == *flags
                && self.memory_limit(step) == self.memory_limit(&steps[0]);
            pays_debt(step) || (!steps[0].makes_database() && is_alike)
        };
        1 + steps[1..].iter().take_while(follows).count()
    }

    /// Writes in batches what a step was cut short in; once more as it was, with more time, if the
    /// engine fails in that. Says how, and whether to the end; `None` if the user ended it.
    fn refill(
        &self,
        step: &Step,
        cut: &DriverResult,
        refills: &mut Vec<Refilled>,
        doing: &dyn Fn(&str),
    ) -> Result<Option<(String, bool)>, String> {
        let name = step.workload.name;
        let mut done = cut.ops;
        for task in step.ways_to_prepare() {
            let wanted = self.written_by(&task[0], cut.ops_per_sec);
            let patient = Attempt { limits: self.limits.while_refilling(&wanted), ..*self };
            let outcome = patient
                .run_task(&task, &patient.flags(&task[0]), &|_| doing(task[0].workload.name))?;
            if outcome.end == End::Interrupted {
                return Ok(None);
            }
            // The end of the work put off may fail; what was written is there. Unless it was not
            // closed.
            let closed = !matches!(outcome.end, End::NotClosed(_));
            let filled = outcome
                .results
                .first()
                .filter(|(filled, _)| closed && filled.unsupported.is_none());
            let Some((filled, _)) = filled else {
                done = 0;
                continue;
            };
            let (seconds, complete) = (filled.seconds, !filled.truncated);
            refills.push(Refilled { entries: wanted.entries, seconds, complete });
            if complete {
                let how = task[0].workload.label.to_lowercase();
                let seconds = cut.seconds;
                let reason = format!(
                    "the database was made by {how} of its own, since {name} was cut short at {seconds:.1} s"
                );
                return Ok(Some((reason, true)));
            }
            done = filled.ops;
            break;
        }
        let reason = format!(
            "read from a database that is not complete: its writes were cut short after {done} operations"
        );
        Ok(Some((reason, false)))
    }

    fn run_task(
        &self,
        task: &[Step],
        flags: &[String],
        doing: &dyn Fn(usize),
    ) -> Result<process::Outcome, String> {
        let Some(program) = &self.ready.program else {
            let end = End::Failed("there is no program".to_owned());
            return Ok(process::Outcome { results: Vec::new(), end });
        };
        let benchmarks: Vec<&str> = task.iter().map(|step| step.workload.name).collect();
        let limits: Vec<Option<Duration>> = task
            .iter()
            .map(|step| self.limits.killed(step, &step.settings(&self.ready.column.settings_of)))
            .collect();
        let mut command = program.command();
        command
            .arg(format!("--benchmarks={}", benchmarks.join(",")))
            .args(flags)
            .arg(format!("--seed={}", self.seed))
            .arg(format!("--db={}", self.database.display()))
            .arg("--json");
        machine::touch_memory(self.num.saturating_mul(TOUCHED));
        let limited = match self.memory_limit(&task[0]).map(MemoryLimit::new).transpose() {
            Ok(limited) => limited,
            Err(reason) => {
                let end = End::Failed(reason);
                return Ok(process::Outcome { results: Vec::new(), end });
            }
        };
        if let Some(limited) = &limited {
            command = limited.around(&command);
        }
        let run = &mut |place| doing(place);
        let mut outcome = process::run(command, &benchmarks, &limits, self.log, run)?;
        if matches!(outcome.end, End::Failed(_))
            && let Some(bytes) = limited.as_ref().and_then(MemoryLimit::has_killed)
        {
            outcome.end = End::OutOfMemory(format!(
                "the system killed it, because it took more than the {} MiB of memory of this cell",
                bytes >> 20
            ));
        }
        Ok(outcome)
    }

    fn memory_limit(&self, step: &Step) -> Option<u64> {
        step.settings(&self.ready.column.settings_of).memory_limit()
    }

    fn flags(&self, step: &Step) -> Vec<String> {
        let mut flags = step.settings(&self.ready.column.settings_of).flags(self.num);
        let limit = self.limits.told(step);
        if limit > 0.0 {
            flags.push(format!("--time_limit={limit}"));
        }
        flags
    }
}

/// Of each cell one pass: the median of those with a figure, or the failure if there was one. A
/// cell whose passes were interrupted is left out.
fn medians(passes: Vec<Attempted>, steps: &[Step], interrupted: bool) -> Vec<Attempted> {
    let place = |pass: &Attempted| (pass.section, pass.cell);
    let mut cells: Vec<Vec<Attempted>> = Vec::new();
    for pass in passes {
        match cells.last_mut().filter(|cell| place(&cell[0]) == place(&pass)) {
            Some(cell) => cell.push(pass),
            None => cells.push(vec![pass]),
        }
    }
    let planned = |(section, cell)| {
        steps.iter().filter(|step| step.role == Role::Cell { section, cell }).count()
    };
    if interrupted {
        cells.retain(|cell| cell.len() == planned(place(&cell[0])));
    }
    cells.into_iter().map(median).collect()
}

fn median(mut passes: Vec<Attempted>) -> Attempted {
    let debt = passes.last().and_then(|last| last.debt);
    let failed = passes.iter().any(|pass| pass.status > Status::Truncated);
    if !failed {
        // As with rounds.
        keep_whole(&mut passes, |pass| pass.status == Status::Ok);
    }
    let rate = |pass: &Attempted| pass.result.as_ref().map_or(0.0, |result| result.ops_per_sec);
    passes.sort_by(|a, b| a.status.cmp(&b.status).then(rate(a).total_cmp(&rate(b))));
    let middle = if failed { passes.len() - 1 } else { passes.len() / 2 };
    Attempted { debt, ..passes.swap_remove(middle) }
}

/// Of a program's flags those that decide which keys it writes and asks for.
struct Extent {
    flags: String,
    threads: u64,
}

impl Extent {
    fn of(flags: &[String]) -> Extent {
        const THREADS: &str = "--threads=";
        let deciding = ["--num=", "--reads=", THREADS];
        let kept = flags.iter().filter(|flag| deciding.iter().any(|name| flag.starts_with(name)));
        let threads = flags.iter().find_map(|flag| flag.strip_prefix(THREADS)?.parse::<f64>().ok());
        let flags = kept.map(String::as_str).collect::<Vec<_>>().join(" ");
        Extent { flags, threads: threads.map_or(1, |threads| threads as u64) }
    }
}

/// What is said of a writer with a pace that did not keep up, so that its readers stood beside less
/// work than those of other engines.
fn late_writer(step: &Step, result: &DriverResult) -> Option<String> {
    /// A writer that waits for its last put at the end has done a little less.
    const ENOUGH: f64 = 0.95;
    let asked = step.settings("").number("write_rate").filter(|rate| *rate > 0.0)?;
    let done = result.writer_ops_per_sec?;
    (done < ENOUGH * asked)
        .then(|| format!("the writer did {done:.0} of {asked:.0} operations a second"))
}

/// Whether it does the work that the step before it put off.
fn pays_debt(step: &Step) -> bool {
    matches!(step.role, Role::Debt { .. }) || step.workload.name == "waitcompact"
}

impl State {
    /// The program reported a result for the step at a place.
    fn result(
        &mut self,
        steps: &[Step],
        at: usize,
        result: DriverResult,
        series: Vec<Interval>,
        extent: &Extent,
    ) {
        let step = &steps[at];
        if step.workload.empty {
            (self.unusable, self.cut, self.instead, self.history) =
                (None, None, None, Some(String::new()));
        }
        let answer = self.answer(step, &result, extent);
        if let Some((status, reason)) = self.unusable.clone() {
            return self.without_result(step, status, reason);
        }
        if let Some(reason) = &result.unsupported {
            let reason = reason.clone();
            if step.workload.empty {
                self.unusable =
                    Some((Status::Unsupported, format!("{}: {reason}", step.workload.name)));
            }
            return self.without_result(step, Status::Unsupported, reason);
        }
        if result.truncated && step.makes_database() {
            self.cut = Some((at, result.clone()));
        }
        match step.role {
            Role::Prepare => {}
            Role::Debt { .. } => {
                if let Some(cell) = self.cells.last_mut() {
                    cell.debt =
                        Some(Debt { seconds: result.seconds, bytes_written: result.bytes_written });
                }
            }
            Role::Cell { section, cell } => {
                let cut = result.truncated.then(|| {
                    format!(
                        "cut short after {:.1} s; the rate is of {} operations",
                        result.seconds, result.ops
                    )
                });
                let partial = self.instead.as_ref().is_some_and(|(_, complete)| !complete);
                let status =
                    if result.truncated || partial { Status::Truncated } else { Status::Ok };
                let instead = self.instead.as_ref().map(|(how, _)| how.clone());
                let late = late_writer(step, &result);
                let words: Vec<String> = cut.into_iter().chain(late).chain(instead).collect();
                let reason = (!words.is_empty()).then(|| words.join("; "));
                let result = Some(result);
                let debt = None;
                self.cells.push(Attempted {
                    section,
                    cell,
                    status,
                    reason,
                    partial,
                    debt,
                    result,
                    series,
                    answer,
                });
            }
        }
    }

    /// Takes in what a step wrote; of one that reads what was asked and found, if every engine has
    /// to find the same.
    fn answer(
        &mut self,
        step: &Step,
        result: &DriverResult,
        extent: &Extent,
    ) -> Option<(String, u64)> {
        let workload = step.workload;
        let history = self.history.take()?;
        let said = format!("{history}{} {}; ", workload.name, extent.flags);
        let complete = !result.truncated && result.unsupported.is_none();
        if workload.is_whole() {
            self.history = Some(history);
        } else if workload.writes {
            self.history =
                Some(said).filter(|_| complete && workload.is_repeatable(extent.threads));
        } else {
            self.history = Some(history);
            let scanned = matches!(workload.name, "readseq" | "readreverse").then_some(result.ops);
            let found = result.found.or(scanned).filter(|_| complete && !workload.timed);
            return found.map(|found| (said, found));
        }
        None
    }

    /// The program ended before it had a result for the step at a place; returns the place to go on
    /// at.
    fn failed(&mut self, steps: &[Step], at: usize, status: Status, reason: String) -> usize {
        let step = &steps[at];
        if step.workload.writes {
            self.unusable = Some((status, format!("{}: {reason}", step.workload.name)));
        }
        self.without_result(step, status, reason);
        at + 1
    }

    /// The program reported all of `task`, and failed or was killed while it closed the database:
    /// the figures stand, with the fault beside the last of them, but it is unknown how much of the
    /// writes is in the database.
    fn not_closed(&mut self, task: &[Step], reason: &str) {
        if task.iter().any(|step| step.workload.writes) {
            let name = task[0].workload.name;
            self.unusable = Some((
                Status::Failed,
                format!("the database was not closed after {name}: {reason}"),
            ));
        }
        let Some(last) = self.cells.last().map(|cell| (cell.section, cell.cell)) else { return };
        if !task.iter().any(|step| step.role == Role::Cell { section: last.0, cell: last.1 }) {
            return;
        }
        // Whichever of its passes counts.
        for cell in self.cells.iter_mut().rev().take_while(|cell| (cell.section, cell.cell) == last)
        {
            let before =
                cell.reason.take().map_or_else(String::new, |before| format!("{before}; "));
            cell.reason = Some(format!("{before}the database was not closed: {reason}"));
        }
    }

    fn without_result(&mut self, step: &Step, status: Status, reason: String) {
        match step.role {
            Role::Prepare => {}
            Role::Debt { .. } => {
                if let Some(cell) =
                    self.cells.last_mut().filter(|cell| cell.status <= Status::Truncated)
                {
                    let before =
                        cell.reason.take().map_or_else(String::new, |before| format!("{before}; "));
                    // A B-tree that was cut short has not done its background work, and that is no
                    // news.
                    cell.reason =
                        Some(format!("{before}the work put off was not measured: {reason}"));
                }
            }
            Role::Cell { section, cell } => {
                let reason = Some(reason);
                let series = Vec::new();
                let (partial, debt, result, answer) = (false, None, None, None);
                self.cells.push(Attempted {
                    section,
                    cell,
                    status,
                    reason,
                    partial,
                    debt,
                    result,
                    series,
                    answer,
                });
            }
        }
    }
}
