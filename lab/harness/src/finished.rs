//! `lab report`, `lab summary` and `lab compare`: what is done with finished runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab_harness::compare;
use lab_harness::notice::notice;
use lab_harness::overview;
use lab_harness::pool::pool;
use lab_harness::report::{self, Source};
use lab_harness::results;
use lab_harness::run::{Directory, MEASUREMENTS, Measurements, Run};

use crate::output::print;

pub(crate) fn report(dirs: &[PathBuf], out: Option<&Path>) -> Result<ExitCode, String> {
    let out = match (dirs, out) {
        (_, Some(out)) => out,
        ([one], None) => one.as_path(),
        _ => return Err("the report of several runs needs --out DIR".to_owned()),
    };
    let in_place = dirs.iter().any(|dir| same(dir, out));
    if in_place && dirs.len() > 1 {
        return Err(format!(
            "{}: the report of several runs goes into a directory of its own",
            out.display()
        ));
    }
    if !in_place && Directory::new(out).holds_a_run() {
        return Err(format!("{}: there is a run here already", out.display()));
    }
    let mut sources = sources(dirs)?;
    if let [first, others @ ..] = sources.as_slice()
        && let Some(other) = others.iter().find(|s| s.run.machine.is_another(&first.run.machine))
    {
        let differences = first.run.machine.differences(&other.run.machine).join("; ");
        notice(&format!("these suites were measured on different machines: {differences}"));
    }
    fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
    for source in &sources {
        print(&overview::text(&source.run, &source.measurements))?;
    }
    match sources.pop() {
        Some(one) if sources.is_empty() => {
            if !in_place {
                write_run(&one, out)?;
            }
            results::write(&one.run, &one.measurements, out)?;
            report::write(&one.run, &one.measurements, out)?;
        }
        Some(last) => {
            sources.push(last);
            report::write_together(&sources, out)?;
        }
        None => return Err("there is no run to report".to_owned()),
    }
    print(&format!("\nreport: {}\n", out.join("report.html").display()))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn summary(dirs: &[PathBuf], benchmarks: &[String]) -> Result<ExitCode, String> {
    print(&report::markdown(&sources(dirs)?, benchmarks)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The runs in these directories; those of the same suite as one.
fn sources(dirs: &[PathBuf]) -> Result<Vec<Source>, String> {
    let mut suites: Vec<(String, Vec<PathBuf>)> = Vec::new();
    for dir in dirs {
        let suite = Directory::new(dir).read_run()?.suite;
        match suites.iter_mut().find(|(known, _)| *known == suite) {
            Some((_, paths)) => paths.push(dir.clone()),
            None => suites.push((suite, vec![dir.clone()])),
        }
    }
    let pooled = |(_, paths): (String, Vec<PathBuf>)| {
        let runs = paths.iter().map(|path| measured(path)).collect::<Result<Vec<_>, _>>()?;
        pool(runs).map(|(run, measurements)| Source { run, measurements, paths })
    };
    suites.into_iter().map(pooled).collect()
}

/// A run that has measurements: figures alone, as `docs/results` keeps them, are no run.
fn measured(dir: &Path) -> Result<(Run, Measurements), String> {
    let (run, measurements) = Directory::new(dir).read()?;
    if measurements.iter().next().is_none() {
        let dir = dir.display();
        return Err(format!(
            "{dir}: nothing was measured here ({MEASUREMENTS} is missing or empty)"
        ));
    }
    Ok((run, measurements))
}

/// A pooled run can be compared and reported like any other.
fn write_run(source: &Source, out: &Path) -> Result<(), String> {
    let directory = Directory::new(out);
    let mut appender = directory.appender()?;
    source.measurements.iter().try_for_each(|measurement| appender.append(measurement))?;
    directory.write_run(&source.run)
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

pub(crate) fn compare(before: &Path, after: &Path, json: bool) -> Result<ExitCode, String> {
    let comparison = compare::compare(&measured(before)?, &measured(after)?)?;
    if json {
        let json = serde_json::to_string_pretty(&comparison).map_err(|e| e.to_string())?;
        print(&format!("{json}\n"))?;
    } else {
        print(&comparison.text())?;
    }
    Ok(ExitCode::SUCCESS)
}
