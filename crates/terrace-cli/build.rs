//! Takes along what the lab's suite `configurations` measured, for `terrace advise`: the figures of
//! the newest run under `measured`, each the output directory of a `lab run`. Without one the
//! command is built all the same, and says that it has none.

use std::path::Path;
use std::{env, fs};

use serde_json::{Value, json};

const SUITE: &str = "configurations";

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").expect("set by Cargo");
    let package = Path::new(&package);
    let results = package.join("measured");
    // Of what is missing Cargo would say every time that it has changed.
    let watched = [results.as_path(), package];
    if let Some(path) = watched.into_iter().find(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let run = newest_run(&results).map_or(Value::Null, |run| needed(&run));
    let out = Path::new(&env::var("OUT_DIR").expect("set by Cargo")).join("measured.json");
    fs::write(out, run.to_string()).expect("the build directory can be written");
}

/// The run of the suite that began last.
fn newest_run(results: &Path) -> Option<Value> {
    let directories =
        fs::read_dir(results).ok()?.flatten().map(|entry| entry.path().join("results.json"));
    let runs = directories.filter_map(|path| {
        let text = fs::read_to_string(&path).ok()?;
        println!("cargo::rerun-if-changed={}", path.display());
        serde_json::from_str::<Value>(&text).ok()
    });
    let of_suite = runs.filter(|run| run["run"]["suite"] == SUITE);
    of_suite.max_by_key(|run| run["run"]["began"].as_str().map(str::to_owned))
}

/// The part of a run's `results.json` that `src/advise/measured.rs` reads, in the same form.
fn needed(run: &Value) -> Value {
    let figures = run["figures"].as_array().into_iter().flatten();
    let taken = figures.filter(|figure| figure["ops_per_sec"]["middle"].is_f64()).map(|figure| {
        let names = ["section", "setting", "engine", "benchmark"];
        let mut taken: serde_json::Map<_, _> =
            names.map(|name| (name.to_owned(), figure[name].clone())).into_iter().collect();
        taken
            .insert("ops_per_sec".to_owned(), json!({ "middle": figure["ops_per_sec"]["middle"] }));
        Value::from(taken)
    });
    let about = json!({"suite": run["run"]["suite"], "began": run["run"]["began"], "num": run["run"]["num"]});
    json!({"run": about, "figures": taken.collect::<Vec<_>>()})
}
