//! Takes along what the lab's suite `configurations` measured, for `terrace advise`: the figures of the newest run under
//! `docs/results`. Without one the command is built all the same, and says that it has none.

use std::path::Path;
use std::{env, fs};

use serde_json::{Value, json};

const SUITE: &str = "configurations";

fn main() {
    let docs = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by Cargo")).join("../../docs");
    let results = docs.join("results");
    // Of what is missing Cargo would say every time that it has changed.
    let watched = [results.as_path(), docs.as_path(), Path::new("build.rs")];
    if let Some(path) = watched.into_iter().find(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let figures = newest_run(&results).map_or_else(Vec::new, |run| figures_of(&run));
    let out = Path::new(&env::var("OUT_DIR").expect("set by Cargo")).join("measured.json");
    fs::write(out, Value::from(figures).to_string()).expect("the build directory can be written");
}

/// The run of the suite that began last.
fn newest_run(results: &Path) -> Option<Value> {
    let directories = fs::read_dir(results).ok()?.flatten().map(|entry| entry.path().join("results.json"));
    let runs = directories.filter_map(|path| {
        let text = fs::read_to_string(&path).ok()?;
        println!("cargo::rerun-if-changed={}", path.display());
        serde_json::from_str::<Value>(&text).ok()
    });
    let of_suite = runs.filter(|run| run["run"]["suite"] == SUITE);
    of_suite.max_by_key(|run| run["run"]["began"].as_str().map(str::to_owned))
}

fn figures_of(run: &Value) -> Vec<Value> {
    let figures = run["figures"].as_array().into_iter().flatten();
    let taken = figures.filter_map(|figure| {
        let rate = figure["ops_per_sec"]["middle"].as_f64()?;
        let benchmark = figure["benchmark"].as_str()?;
        let (section, setting, engine) = (&figure["section"], &figure["setting"], &figure["engine"]);
        Some(json!({"section": section, "setting": setting, "engine": engine, "benchmark": benchmark, "rate": rate}))
    });
    taken.collect()
}
