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
    let mut suite: Suite = toml::from_str(&text).map_err(|e| problem(&e))?;
    suite.name =
        path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    // A suite that cannot be planned is found before anything is run.
    Plan::of(&suite, &Form::full(&suite), &Scale::NONE, &[]).map_err(|e| problem(&e))?;
    Ok(suite)
}

/// Loads all suites of a directory, in the order of their names.
///
/// # Errors
/// Names the directory or file, and what is wrong with it.
pub fn load_all(dir: &Path) -> Result<Vec<Suite>, String> {
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut suites = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", dir.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            suites.push(load(&path)?);
        }
    }
    suites.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(suites)
}
