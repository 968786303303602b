//! `lab report` and `lab compare`: what is done with finished runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab_harness::compare;
use lab_harness::overview;
use lab_harness::pool::pool;
use lab_harness::report;
use lab_harness::results;
use lab_harness::run::Directory;

pub(crate) fn report(dirs: &[PathBuf], out: Option<&Path>) -> Result<ExitCode, String> {
    let out = match (dirs, out) {
        (_, Some(out)) => out,
        ([one], None) => one.as_path(),
        _ => return Err("the report of several runs needs --out DIR".to_owned()),
    };
    let runs = dirs.iter().map(|dir| Directory::new(dir).read()).collect::<Result<Vec<_>, _>>()?;
    let (run, measurements) = pool(runs)?;
    fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
    // A pooled run can be compared and reported like any other.
    let directory = Directory::new(out);
    if !dirs.iter().any(|dir| dir == out) {
        if directory.holds_a_run() {
            return Err(format!("{}: there is a run here already", out.display()));
        }
        let mut appender = directory.appender()?;
        measurements.iter().try_for_each(|measurement| appender.append(measurement))?;
        directory.write_run(&run)?;
    } else if dirs.len() > 1 {
        return Err(format!("{}: the report of several runs goes into a directory of its own", out.display()));
    }
    results::write(&run, &measurements, out)?;
    report::write(&run, &measurements, out)?;
    print!("{}", overview::text(&run, &measurements));
    println!("\nreport: {}", out.join("report.html").display());
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn compare(before: &Path, after: &Path, json: bool) -> Result<ExitCode, String> {
    let comparison = compare::compare(&Directory::new(before).read()?, &Directory::new(after).read()?)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&comparison).map_err(|e| e.to_string())?);
    } else {
        print!("{}", comparison.text());
    }
    Ok(ExitCode::SUCCESS)
}
