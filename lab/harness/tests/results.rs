//! The results that are kept in the repository.

use std::fs;
use std::path::Path;

/// Figures, notes and one chart are kept; reports are made by `lab run`.
const KEPT: [&str; 4] = ["notes.md", "results.csv", "run.json", "summary.svg"];
const LIMIT: u64 = 1 << 20;

#[test]
fn kept_results_are_figures_and_notes_of_less_than_a_megabyte() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let mut size = 0;
    for run in fs::read_dir(&results).expect("results").map(|entry| entry.expect("an entry")) {
        if !run.path().is_dir() {
            continue;
        }
        for file in fs::read_dir(run.path()).expect("a run").map(|entry| entry.expect("an entry")) {
            let name = file.file_name();
            assert!(KEPT.iter().any(|kept| name == *kept), "{}", file.path().display());
            size += file.metadata().expect("a file").len();
        }
        let path = run.path().join("run.json");
        if path.exists() {
            let text = fs::read_to_string(&path).expect("a run's description");
            let run: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert!(run["engines"].is_array(), "{}", path.display());
        }
    }
    assert!(size < LIMIT, "{size} bytes");
}
