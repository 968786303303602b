//! `lab summary`: a page of Markdown, compared with a golden one. `LAB_GOLDEN=1` writes it anew.

use std::path::Path;
use std::{env, fs};

use lab_harness::report::{self, Source};
use lab_harness::run::{Costs, Run};

use crate::{data, suites};

fn source(run: Run) -> Source {
    Source { measurements: data::measure(&run, 7, true), run, paths: Vec::new() }
}

#[test]
fn a_page_for_a_readme() {
    let mut run = suites::leveldb_2011();
    run.machine.costs =
        Some(Costs { write_ns: 912.0, page_fault_ns: 480.0, fdatasync_us: 731.0, memory_ns: 92.0 });
    let build = "without assertions; CRC-32C instruction in bench".to_owned();
    for engine in &mut run.engines[..3] {
        engine.build = Some(build.clone());
    }
    run.engines[3].build =
        Some("WITH ASSERTIONS (librocksdb.so.9); no CRC-32C instruction".to_owned());
    let page = report::markdown(&[source(run)], &[]).expect("a page");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/brief.md");
    if env::var_os("LAB_GOLDEN").is_some() {
        fs::write(&golden, &page).expect("written");
    }
    let expected = fs::read_to_string(&golden).expect("the golden page");
    assert_eq!(page, expected, "LAB_GOLDEN=1 writes it anew");
}

#[test]
fn tables_are_as_wide_as_their_heads() {
    for run in suites::all() {
        let suite = run.suite.clone();
        let page = report::markdown(&[source(run)], &[]).expect("a page");
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        let rows: Vec<usize> = page.lines().filter(|l| l.starts_with('|')).map(columns).collect();
        assert!(rows.len() > 3, "{suite}: {page}");
        assert!(rows.iter().all(|columns| *columns == rows[0]), "{suite}: {page}");
        assert!(page.lines().count() < 60, "{suite}: {page}");
    }
}

#[test]
fn workloads_are_chosen_by_name() {
    let sources = [source(suites::leveldb_2011()), source(suites::modern())];
    let page = report::markdown(&sources, &["readreverse".to_owned()]).expect("a page");
    assert!(page.contains("| Engine | All cells | Reverse reads |"), "{page}");
    assert_eq!(page.matches("\n### ").count(), 1, "two suites: {page}");
    let unknown = report::markdown(&sources, &["readbackward".to_owned()]).expect_err("no such");
    assert!(unknown.contains("\"readbackward\""), "{unknown}");
    assert!(report::markdown(&[], &[]).is_err());
}
