//! The list of safeties that `make mutants` removes is complete, and names tests that exist.
//!
//! Removing them needs a build of its own; this test only compares the list with the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::programs::tests_of;

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_safety_that_can_be_removed_has_a_test_that_exists() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    sources(&package.join("src"), &mut paths);
    let mut in_code = BTreeSet::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a source file");
        let uses = text.split("mutated(\"").skip(1);
        in_code.extend(uses.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    let list = fs::read_to_string(package.join("tests/mutants.txt")).expect("the list");
    let (mut listed, mut rows) = (BTreeSet::new(), BTreeSet::new());
    let mut programs = BTreeMap::new();
    for line in list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let fields: Vec<_> = line.split('|').map(str::trim).collect();
        let &[name, program, test, scale] = fields.as_slice() else {
            panic!("four fields, not {line:?}")
        };
        listed.insert(name.to_owned());
        assert!(
            rows.insert((name.to_owned(), test.to_owned())),
            "{name} is listed twice with {test}"
        );
        let tests = programs.entry(program.to_owned()).or_insert_with(|| tests_of(program));
        let tests = tests.as_ref().unwrap_or_else(|| panic!("{name}: no program {program}"));
        assert!(tests.contains(test), "{name}: no test {test} in {program}");
        assert!(scale.parse::<f64>().is_ok_and(|scale| scale > 0.0), "{name}: scale {scale}");
    }
    assert_eq!(in_code, listed, "left: mutated(\"…\") in src, right: tests/mutants.txt");
    assert!(listed.len() >= 30);
}
