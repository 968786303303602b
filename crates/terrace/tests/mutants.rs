//! The list of safeties that `make mutants` removes is complete, and names tests that exist.
//!
//! Removing them needs a build of its own; this test only compares the list with the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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
    sources(&package.join("tests"), &mut paths);
    let mut in_code = BTreeSet::new();
    let mut functions = BTreeSet::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a source file");
        if path.starts_with(package.join("src")) {
            let uses = text.split("mutated(\"").skip(1);
            in_code.extend(uses.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
        let names = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
        functions.extend(names.map(|(name, _)| name.to_owned()));
    }
    let list = fs::read_to_string(package.join("tests/mutants.txt")).expect("the list");
    let (mut listed, mut rows) = (BTreeSet::new(), BTreeSet::new());
    for line in list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let fields: Vec<_> = line.split('|').map(str::trim).collect();
        let &[name, target, test, scale] = fields.as_slice() else {
            panic!("four fields, not {line:?}")
        };
        listed.insert(name.to_owned());
        assert!(
            rows.insert((name.to_owned(), test.to_owned())),
            "{name} is listed twice with {test}"
        );
        let known = ["", ".rs", "/main.rs"]
            .iter()
            .any(|end| package.join(format!("tests/{target}{end}")).is_file());
        assert!(target == "lib" || known, "{name}: no test target {target}");
        let function = test.rsplit("::").next().unwrap_or(test);
        assert!(functions.contains(function), "{name}: no test {test}");
        assert!(scale.parse::<f64>().is_ok_and(|scale| scale > 0.0), "{name}: scale {scale}");
    }
    assert_eq!(in_code, listed, "left: mutated(\"…\") in src, right: tests/mutants.txt");
    assert!(listed.len() >= 30);
}
