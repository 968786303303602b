//! The results that are kept in the repository.

use std::fs;
use std::path::Path;

/// Figures, notes, a summary and one chart are kept; reports are made by `lab run`.
const KEPT: [&str; 6] =
    ["notes.md", "README.md", "results.csv", "run.json", "summary.md", "summary.svg"];
const LIMIT: u64 = 1 << 20;

#[test]
fn kept_results_are_figures_and_notes_of_less_than_a_megabyte() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let runs =
        fs::read_dir(&results).expect("results").map(|entry| entry.expect("an entry").path());
    let size: u64 = runs.filter(|path| path.is_dir()).map(|run| check(&run)).sum();
    assert!(size < LIMIT, "{size} bytes");
}

/// Checks a run, or a folder of runs. Returns the bytes of its files.
fn check(run: &Path) -> u64 {
    let mut size = 0;
    for file in fs::read_dir(run).expect("a run").map(|entry| entry.expect("an entry")) {
        if file.path().is_dir() {
            size += check(&file.path());
            continue;
        }
        let name = file.file_name();
        assert!(KEPT.iter().any(|kept| name == *kept), "{}", file.path().display());
        size += file.metadata().expect("a file").len();
    }
    let path = run.join("run.json");
    if path.exists() {
        let text = fs::read_to_string(&path).expect("a run's description");
        let run: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(run["engines"].is_array(), "{}", path.display());
    }
    size
}
