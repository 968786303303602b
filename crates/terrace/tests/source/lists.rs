//! What the tools run exists: a list that names no test would pass without having looked.

use std::fs;
use std::path::Path;

use crate::programs::tests_of;

fn repository(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read_to_string(path).expect("a file of the repository")
}

/// Panics unless `program` has a test whose name contains `filter`.
fn expect_a_test(place: &str, program: &str, filter: &str) {
    let tests = tests_of(program).unwrap_or_else(|| panic!("{place}: no test program {program:?}"));
    let is_there = tests.iter().any(|test| test.contains(filter));
    assert!(is_there, "{place}: no test of {program} matches {filter:?}");
}

#[test]
fn every_row_of_a_campaign_runs_a_test() {
    let tool = repository("tools/campaign");
    let (_, rows) = tool.split_once("rows='\n").expect("the list");
    let (rows, _) = rows.split_once("\n'").expect("its end");
    for row in rows.lines() {
        let fields: Vec<_> = row.split('|').map(str::trim).collect();
        let &[claim, program, filter, ..] = fields.as_slice() else { panic!("{row:?}") };
        expect_a_test(claim, program, filter);
    }
}

/// In lines of shell and of make: a program by `--test`, filters behind it.
#[test]
fn every_scenario_under_thread_sanitizer_runs_a_test() {
    let tool = repository("tools/tsan");
    let scenarios: Vec<_> =
        tool.lines().map(str::trim).filter(|line| line.starts_with("run \"")).collect();
    assert!(scenarios.len() > 5);
    for scenario in scenarios {
        let (_, arguments) = scenario.rsplit_once("\" --").expect("a name and arguments");
        let words: Vec<_> = arguments.split_whitespace().collect();
        match words[..] {
            ["test", program] => expect_a_test(scenario, program, ""),
            ["test", program, filter] => expect_a_test(scenario, program, filter),
            ["lib", filter] => expect_a_test(scenario, "lib", filter),
            _ => panic!("{scenario}"),
        }
    }
}

#[test]
fn the_makefile_runs_tests_that_exist() {
    let makefile = repository("Makefile");
    let list = |name: &str| {
        let line = makefile.lines().find_map(|line| line.strip_prefix(&format!("{name} := ")));
        line.expect("a list").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for (list, program) in [(list("TELLING"), "model"), (list("OF_THE_SYSTEM"), "system")] {
        for filter in list {
            expect_a_test("Makefile", program, &filter);
        }
    }
    for program in list("ALONE").chunks(2) {
        expect_a_test("Makefile", &program[1], "");
    }
}
