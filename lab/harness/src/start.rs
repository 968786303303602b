//! `lab run`: from the command line to a session, and from its end to the report.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use lab_harness::engine::{Column, Engines, Ready};
use lab_harness::interrupt;
use lab_harness::machine;
use lab_harness::notice::notice;
use lab_harness::overview;
use lab_harness::report;
use lab_harness::results;
use lab_harness::run::{Directory, Machine, Measurements, Run, SCHEMA, Status};
use lab_harness::schedule::{self, Ended, Session};
use lab_harness::suite::{self, Form, Plan, Scale, Suite};

use crate::arguments::RunOptions;
use crate::output::print;

/// The first seed, if no other is asked for: LevelDB's db_bench begins with it.
const SEED: u64 = 301;
/// Sections that are scaled to the machine use at most this much of the memory that is available.
const MEMORY_SHARE: f64 = 0.5;

pub(crate) fn run(lab: &Path, suite: &str, options: &RunOptions) -> Result<ExitCode, String> {
    run_suite(lab, &suite::load_named(&lab.join("suites"), suite)?, options)
}

pub(crate) fn run_suite(
    lab: &Path,
    suite: &Suite,
    options: &RunOptions,
) -> Result<ExitCode, String> {
    interrupt::install()?;
    let directory = Directory::new(&out_dir(lab, options, suite));
    let earlier = match (options.resume, directory.holds_a_run()) {
        (true, _) => Some(directory.read()?),
        (false, true) => {
            let place = directory.path().display();
            return Err(format!("{place}: there is a run here already; --resume goes on with it"));
        }
        (false, false) => None,
    };
    let form = form(suite, options, earlier.as_ref().map(|(run, _)| run))?;
    let memory = scale_to_memory(suite, &form);
    let plan =
        Plan::of(suite, &form, &memory, &sections(options, earlier.as_ref().map(|(run, _)| run)))?;
    if let Some((run, measurements)) = &earlier
        && run.sections == plan.sections
        && is_done(run, measurements, &form, options)
    {
        notice("the run is complete already: there is nothing to measure");
        return finish(&directory, Ok(Ended::Complete), options);
    }
    let engines = Engines::find(lab, &cache_dir(lab))?;
    let columns =
        columns(&engines, suite, options, form.short, earlier.as_ref().map(|(run, _)| run))?;

    let databases = options.db.clone().unwrap_or_else(|| directory.path().join("DB"));
    for dir in [directory.path(), &databases] {
        fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        writable(dir)?;
    }
    let databases =
        databases.canonicalize().map_err(|e| format!("{}: {e}", databases.display()))?;
    schedule::check(&plan, form.num, &databases)?;

    let ready = prepare(&engines, &columns);
    if ready.iter().all(|ready| ready.program.is_none()) {
        return Err("none of the engines can be run".to_owned());
    }
    let (run, measurements) = match earlier {
        Some((run, measurements)) => {
            let here = machine::here(&databases);
            (continued(run, suite, &form, &plan, options, (&ready, here))?, measurements)
        }
        None => (described(suite, &form, &plan, options, &ready, &databases), Measurements::new()),
    };
    let mut session =
        Session::new(&plan, ready, directory.clone(), run, measurements, databases.clone())?;
    session.budget = budget(suite, options, &form).map(|minutes| minutes * 60.0);
    session.grace = options.grace;
    let ended = session.run();
    // Only if nothing is left in it.
    let _ = fs::remove_dir(&databases);
    finish(&directory, ended, options)
}

/// Whether a run has every figure that it will ever have.
fn is_done(run: &Run, measurements: &Measurements, form: &Form, options: &RunOptions) -> bool {
    let is_final = |status| {
        matches!(status, Status::Ok | Status::Truncated | Status::Timeout | Status::Unsupported)
    };
    // With a precision some rounds are not measured by intent.
    let precision = options.precision.or(run.precision);
    let cells: usize = run.sections.iter().map(|section| section.cells.len()).sum();
    run.complete
        && run.rounds == form.rounds
        && precision.is_none()
        && options.engines.is_empty()
        && measurements.iter().count() == cells * run.engines.len() * run.rounds as usize
        && run.engines.iter().all(|engine| engine.missing.is_none())
        && measurements.iter().all(|measurement| is_final(measurement.status))
}

/// What makes the run a failure: an engine that ended with an error or gave wrong results, or one
/// that was asked for by its name and is not there.
fn failures(run: &Run, measurements: &Measurements, options: &RunOptions) -> Option<String> {
    let cells = measurements.iter().filter(|measurement| measurement.has_failed()).count();
    let wrong = run.engines.iter().filter(|engine| engine.disqualified.is_some());
    let missing = run
        .engines
        .iter()
        .filter(|engine| engine.missing.is_some() && options.engines.contains(&engine.id));
    let engines: Vec<_> = wrong.chain(missing).map(|engine| engine.id.as_str()).collect();
    let cells = (cells > 0).then(|| format!("{cells} cells failed"));
    let engines = (!engines.is_empty()).then(|| format!("not measured: {}", engines.join(", ")));
    let parts: Vec<_> = cells.into_iter().chain(engines).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Writes the report of what there is, whatever has happened.
fn finish(
    directory: &Directory,
    ended: Result<Ended, String>,
    options: &RunOptions,
) -> Result<ExitCode, String> {
    let (run, measurements) = match (directory.read(), &ended) {
        (Ok(run), _) => run,
        (Err(unread), Err(problem)) => return Err(format!("{problem}\nlab: {unread}")),
        (Err(unread), Ok(_)) => return Err(unread),
    };
    let path = directory.path();
    let written =
        results::write(&run, &measurements, path).and(report::write(&run, &measurements, path));
    print(&overview::text(&run, &measurements))?;
    let place = directory.path().display();
    match ended {
        Err(problem) => {
            return Err(format!(
                "{problem}\nlab: ended early; what was measured is in {place}, --resume goes on with it"
            ));
        }
        Ok(Ended::Interrupted) => {
            print(&format!("\ninterrupted; go on with --resume --out {place}\n"))?
        }
        Ok(Ended::OutOfTime) => {
            print(&format!("\nthe time was used up; go on with --resume --out {place}\n"))?
        }
        Ok(Ended::Complete) => {}
    }
    written?;
    print(&format!("\nreport: {}\n", directory.path().join("report.html").display()))?;
    if ended == Ok(Ended::Interrupted) {
        return Ok(ExitCode::from(interrupt::STATUS));
    }
    Ok(match failures(&run, &measurements, options) {
        Some(failures) => {
            notice(&failures);
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    })
}

/// Where results go unless it is said: beside what the rest of the project builds.
fn out_root(lab: &Path) -> PathBuf {
    lab.parent().unwrap_or(Path::new(".")).join("out/lab")
}

/// Where engine programs are built.
pub(crate) fn cache_dir(lab: &Path) -> PathBuf {
    out_root(lab).join("engines")
}

fn out_dir(lab: &Path, options: &RunOptions, suite: &Suite) -> PathBuf {
    let dated = || out_root(lab).join(format!("{}-{}", suite.name, machine::now("+%Y%m%d-%H%M%S")));
    options.out.clone().unwrap_or_else(dated)
}

/// The form that is asked for; that of the earlier run, if there is one.
fn form(suite: &Suite, options: &RunOptions, earlier: Option<&Run>) -> Result<Form, String> {
    let short = earlier.map_or(options.short, |run| run.short);
    let mut form = if short { Form::short(suite) } else { Form::full(suite) };
    if let Some(run) = earlier {
        form = Form {
            num: run.num,
            rounds: run.rounds,
            time_limit: run.time_limit,
            duration: run.duration,
            short,
        };
    }
    let asked = Form {
        num: options.num.or(options.items).unwrap_or(form.num),
        rounds: options.reps.unwrap_or(form.rounds),
        time_limit: options.time_limit.unwrap_or(form.time_limit),
        duration: options.minutes.map_or(form.duration, |minutes| minutes * 60.0),
        short,
    };
    if asked.num == 0 || asked.rounds == 0 {
        return Err("--num, --items and --reps must be at least 1".to_owned());
    }
    if options.precision.is_some_and(|percent| !(0.1..=1000.0).contains(&percent)) {
        return Err("--precision must be between 0.1 and 1000 percent".to_owned());
    }
    if [asked.time_limit, asked.duration, options.grace, options.budget.unwrap_or_default()]
        .iter()
        .any(|seconds| !(0.0..1e8).contains(seconds))
    {
        return Err(
            "--time-limit, --minutes and --budget must not be negative, nor years long".to_owned()
        );
    }
    // More rounds may be added to a run; everything else has to be as it was.
    if let Some(run) = earlier {
        let same = Form { rounds: form.rounds, ..asked.clone() } == form
            && options.seed.is_none_or(|seed| seed == run.seed)
            && asked.rounds >= run.rounds;
        if !same {
            return Err(format!(
                "the run there has {} entries, {} rounds, a limit of {} s and seed {}; --resume cannot change that, \
                 except for more rounds",
                run.num, run.rounds, run.time_limit, run.seed
            ));
        }
    }
    Ok(asked)
}

/// Minutes for this session.
fn budget(suite: &Suite, options: &RunOptions, form: &Form) -> Option<f64> {
    options.budget.or(suite.short.budget.filter(|_| form.short))
}

/// As a fraction.
fn precision(options: &RunOptions) -> Option<f64> {
    options.precision.map(|percent| percent / 100.0)
}

/// How far the scaled sections shrink to fit into the memory of this machine.
fn scale_to_memory(suite: &Suite, form: &Form) -> Scale {
    let wanted = suite.memory as f64 * form.num as f64 / suite.num as f64;
    let available = machine::available_memory() as f64 * MEMORY_SHARE;
    if wanted <= available || available <= 0.0 {
        return Scale::NONE;
    }
    // Rounded, so that a run can be resumed when a little more or less is available.
    Scale { memory: (available / wanted * 10.0).floor().max(1.0) / 10.0 }
}

/// The sections that are asked for; those of the earlier run, if there is one.
fn sections(options: &RunOptions, earlier: Option<&Run>) -> Vec<String> {
    match earlier {
        Some(run) if options.sections.is_empty() => {
            run.sections.iter().map(|section| section.id.clone()).collect()
        }
        _ => options.sections.clone(),
    }
}

fn columns(
    engines: &Engines,
    suite: &Suite,
    options: &RunOptions,
    short: bool,
    earlier: Option<&Run>,
) -> Result<Vec<Column>, String> {
    if !options.engines.is_empty() {
        return engines.select(&options.engines, false);
    }
    if let Some(run) = earlier {
        let ids: Vec<String> = run.engines.iter().map(|engine| engine.id.clone()).collect();
        return engines.select(&ids, false);
    }
    let ids = if short && !suite.short.engines.is_empty() {
        &suite.short.engines
    } else {
        &suite.engines
    };
    let columns = engines.select(ids, true)?;
    if columns.is_empty() {
        return engines.select(&["all".to_owned()], false);
    }
    Ok(columns)
}

fn prepare(engines: &Engines, columns: &[Column]) -> Vec<Ready> {
    let mut ready = Vec::new();
    for column in columns {
        let mut one = engines.prepare(column);
        match &one.about.missing {
            Some(reason) => notice(&format!("{}: NOT RUN: {reason}", column.id)),
            None => {
                let build = one.about.build.as_ref().map(|b| format!("; {b}")).unwrap_or_default();
                let (title, version) = (&one.about.title, &one.about.version);
                notice(&format!("{}: {title} {version}{build}", column.id));
            }
        }
        if one.about.is_terrace()
            && one.program.is_some()
            && let Some(commit) = commit()
        {
            one.about.version = format!("{} ({commit})", one.about.version);
        }
        ready.push(one);
    }
    ready
}

/// The commit of Terrace that is measured.
fn commit() -> Option<String> {
    let harness = env!("CARGO_MANIFEST_DIR");
    let output = Command::new("git")
        .args(["-C", harness, "describe", "--always", "--dirty"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

fn described(
    suite: &Suite,
    form: &Form,
    plan: &Plan,
    options: &RunOptions,
    ready: &[Ready],
    databases: &Path,
) -> Run {
    let mut notes = suite.notes.clone();
    if form.short {
        let entries = overview::thousands(form.num as f64);
        notes.push(format!(
            "The short form of the suite: {entries} entries, rounds: {}.",
            form.rounds
        ));
    } else if form.num != suite.num {
        let (entries, all) =
            (overview::thousands(form.num as f64), overview::thousands(suite.num as f64));
        notes.push(format!("{entries} entries; the suite as its source has it has {all}."));
    }
    if !options.sections.is_empty() {
        notes.push(format!("Only a part of the suite: {}.", options.sections.join(", ")));
    }
    notes.extend(plan.notes.clone());
    let words = env::args().skip(1).collect::<Vec<_>>().join(" ");
    Run {
        schema: SCHEMA,
        suite: suite.name.clone(),
        title: suite.title.clone(),
        source: suite.source.clone(),
        command: format!("lab {words}"),
        began: machine::now("+%Y-%m-%dT%H:%M:%SZ"),
        seconds: 0.0,
        complete: false,
        num: form.num,
        rounds: form.rounds,
        precision: precision(options),
        seed: options.seed.unwrap_or(SEED),
        time_limit: form.time_limit,
        budget: budget(suite, options, form),
        duration: form.duration,
        short: form.short,
        figure: suite.figure,
        notes,
        machine: machine::here(databases),
        engines: ready.iter().map(|ready| ready.about.clone()).collect(),
        sections: plan.sections.clone(),
    }
}

/// The description of a run that goes on.
fn continued(
    mut run: Run,
    suite: &Suite,
    form: &Form,
    plan: &Plan,
    options: &RunOptions,
    (ready, here): (&[Ready], Machine),
) -> Result<Run, String> {
    if run.suite != suite.name {
        return Err(format!("the run there is of the suite {}, not {}", run.suite, suite.name));
    }
    if run.sections != plan.sections {
        return Err(
            "cannot resume: the suite has changed since that run began, or --sections is not what it was".into()
        );
    }
    if run.machine.is_another(&here) {
        return Err(format!(
            "cannot resume: the run began on another machine ({}); measure anew here, and `lab compare` compares both",
            run.machine.differences(&here).join("; ")
        ));
    }
    run.notes.extend(run.machine.notes(&here));
    run.rounds = form.rounds;
    run.precision = precision(options).or(run.precision);
    run.complete = false;
    for ready in ready {
        match run.engines.iter_mut().find(|engine| engine.id == ready.about.id) {
            Some(engine) if engine.version != ready.about.version && engine.missing.is_none() => {
                let (id, old, new) = (&engine.id, &engine.version, &ready.about.version);
                run.notes.push(format!(
                    "{id} was {old:?} when the run began and {new:?} when it went on."
                ));
                *engine = ready.about.clone();
            }
            Some(engine) => *engine = ready.about.clone(),
            None => run.engines.push(ready.about.clone()),
        }
    }
    Ok(run)
}

/// Whether files can be written here, found out before anything is run.
fn writable(dir: &Path) -> Result<(), String> {
    let probe = dir.join(".lab-writable");
    fs::write(&probe, b"")
        .and_then(|()| fs::remove_file(&probe))
        .map_err(|e| format!("{}: cannot write here: {e}", dir.display()))
}
