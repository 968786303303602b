//! Suites as files.

use std::fs;
use std::path::Path;

use super::plan::{Form, Plan, Scale};
use super::specification::Suite;

/// Loads one suite's file.
///
/// # Errors
/// Names the file, and what is wrong with it.
pub fn load(path: &Path) -> Result<Suite, String> {
    let problem = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = fs::read_to_string(path).map_err(|e| problem(&e))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    parse(&name, &text).map_err(|e| problem(&e))
}

/// The suite of this name and text.
///
/// # Errors
/// Says what is wrong with it.
pub fn parse(name: &str, text: &str) -> Result<Suite, String> {
    let mut suite: Suite = toml::from_str(text).map_err(|e| e.to_string())?;
    suite.name = name.to_owned();
    // A suite that cannot be planned is found before anything is run.
    Plan::of(&suite, &Form::full(&suite), &Scale::NONE, &[])?;
    Ok(suite)
}

/// Loads the suite with a name. Others may have errors.
///
/// # Errors
/// Names the suites that there are, or the file and what is wrong with it.
pub fn load_named(dir: &Path, name: &str) -> Result<Suite, String> {
    let names = names(dir)?;
    if names.iter().any(|known| known == name) {
        return load(&dir.join(format!("{name}.toml")));
    }
    Err(format!("there is no suite {name:?}, only {}", names.join(", ")))
}

/// The names of a directory's suites, in order.
///
/// # Errors
/// Names the directory.
pub fn names(dir: &Path) -> Result<Vec<String>, String> {
    let problem = |e: std::io::Error| format!("{}: {e}", dir.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let suite = path.extension().is_some_and(|extension| extension == "toml");
        names.extend(stem.filter(|_| suite).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Loads all suites of a directory, in the order of their names.
///
/// # Errors
/// Names the directory or file, and what is wrong with it.
pub fn load_all(dir: &Path) -> Result<Vec<Suite>, String> {
    names(dir)?.iter().map(|name| load(&dir.join(format!("{name}.toml")))).collect()
}
