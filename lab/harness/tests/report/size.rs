//! How large a page is.

use std::fs;
use std::path::Path;

use lab_harness::report::{self, Source};
use lab_harness::run::{Chart, Engine, Measurements, Run};
use tempfile::TempDir;

use crate::read;
use crate::{data, suites};

/// As many columns as the lab has, with as much to say of each.
fn columns() -> Vec<Engine> {
    let engines = data::engines();
    let variants = engines.iter().map(|engine| Engine {
        id: format!("{}-variant", engine.id),
        title: format!("{}, a variant", engine.title),
        ..engine.clone()
    });
    let mut all: Vec<Engine> = engines.iter().cloned().chain(variants).collect();
    for engine in &mut all {
        engine.settings = format!("{}: {}", engine.title, engine.settings).repeat(6);
    }
    all
}

/// Measurements, a third of which have a remark.
fn measure(run: &Run) -> Measurements {
    let remark = "the database was made by random writes in batches of its own";
    data::measure(run, 7, true)
        .iter()
        .cloned()
        .enumerate()
        .map(|(at, mut m)| {
            if at % 3 == 0 && m.is_measured() {
                m.reason = Some(remark.to_owned());
            }
            m
        })
        .collect()
}

fn assert_small(run: &Run, most: usize) {
    let measurements = measure(run);
    if let Some(kept) = std::env::var_os("LAB_SCREENSHOTS") {
        let dir = Path::new(&kept).join("sizes").join(&run.suite);
        fs::create_dir_all(&dir).expect("a directory");
        report::write(run, &measurements, &dir).expect("a report");
    }
    let size = read::report(run, &measurements).size;
    assert!(size < most, "{}: {size} bytes", run.suite);
}

#[test]
fn a_page_of_every_suite_stays_under_a_megabyte() {
    let mut with_all = 0;
    for run in suites::real() {
        // Charts over time have a figure for every second, settings one for each setting: such
        // suites keep their own columns.
        let many = |chart| chart == Chart::Series || chart == Chart::Settings;
        let own = run.sections.iter().any(|section| many(section.chart));
        let engines = if own { run.engines.clone() } else { columns() };
        with_all += usize::from(!own);
        assert_small(&Run { engines, rounds: 3, ..run }, 1_000_000);
    }
    assert!(with_all >= 6, "{with_all}");
}

/// As `lab report A B C --out X` in `make bench-all` makes it: all suites but those against Terrace's
/// targets, in their short form.
#[test]
fn a_page_of_all_suites_stays_under_a_megabyte() {
    let runs = suites::short().into_iter().filter(|run| !run.suite.starts_with("against-"));
    let with_all = ["leveldb-2011", "wiredtiger-2012", "modern"];
    let runs = runs.map(|run| match with_all.contains(&run.suite.as_str()) {
        true => Run { engines: columns(), rounds: 1, ..run },
        false => Run { rounds: 1, ..run },
    });
    let sources: Vec<Source> =
        runs.map(|run| Source { measurements: measure(&run), run, paths: Vec::new() }).collect();
    assert!(sources.len() >= 8, "{}", sources.len());
    let dir = TempDir::new().expect("a directory");
    let kept = std::env::var_os("LAB_SCREENSHOTS").map(|kept| Path::new(&kept).join("sizes/all"));
    let dir = kept.unwrap_or_else(|| dir.path().to_owned());
    report::write_together(&sources, &dir).expect("a report");
    let size = fs::metadata(dir.join("report.html")).expect("the page").len();
    assert!(size < 1_000_000, "{size} bytes");
}

#[test]
fn a_page_of_a_kept_run_stays_under_half_a_megabyte() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let mut kept = 0;
    for entry in fs::read_dir(results).expect("results").map(|entry| entry.expect("an entry")) {
        let Ok(text) = fs::read_to_string(entry.path().join("run.json")) else { continue };
        let run: Run = serde_json::from_str(&text).expect("a run");
        assert_small(&run, 500_000);
        kept += 1;
    }
    assert!(kept >= 3, "{kept}");
}
