//! The report of a run: `report.html`, one file that needs no network, `results.csv` and every
//! chart as a file in `charts/`.
//!
//! `run` says what was measured; here it is summed up (`model`, `ratios`), drawn (`chart`, `svg`,
//! `palette`, `scale`), tabulated (`table`), put into words (`number`, `words`) and laid out
//! (`page` with `assets/report.html`), with the figures and charts that its script makes the rest from
//! (`dataset`, compressed by `pack`), or put on a page of Markdown (`brief`).
//! Any thread may call `write`; two writers of the same directory must not run at once.
//!
//! Invariants:
//! 1. What comes from data is escaped exactly once: by `svg` in charts, by the template everywhere
//!    else.
//! 2. The page asks for nothing outside itself; its links lead to files beside it.
//! 3. Any run that can be read gives a report: engines without figures, unfinished runs and odd
//!    values included.

mod brief;
mod chart;
mod csv;
mod dataset;
mod figures;
mod model;
mod number;
mod pack;
mod page;
mod palette;
mod ratios;
mod scale;
mod source;
mod svg;
mod table;
mod words;

use std::fs;
use std::path::Path;

use crate::run::{Measurements, Run, write_whole};

use figures::Gallery;
use model::Suite;
pub(crate) use number::ratio;
pub use source::Source;

/// Writes the report of a run into its directory. It may be called again after more measurements.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write(run: &Run, measurements: &Measurements, dir: &Path) -> Result<(), String> {
    write_suites(&[Suite::new(run, measurements)], &[vec![String::new()]], dir)
}

/// Writes one report of several suites, one after the other, into `dir`.
///
/// # Errors
/// Names the file that cannot be written; says so if there is no suite.
pub fn write_together(sources: &[Source], dir: &Path) -> Result<(), String> {
    if sources.is_empty() {
        return Err("there is no run to report".to_owned());
    }
    let suites: Vec<Suite<'_>> =
        sources.iter().map(|source| Suite::new(&source.run, &source.measurements)).collect();
    let links: Vec<Vec<String>> =
        sources.iter().map(|source| source::links(&source.paths, dir)).collect();
    write_suites(&suites, &links, dir)
}

/// The suites on one page of Markdown: engines with their versions, a few workloads, what a reader
/// should not lean on, the machine. The table has the benchmarks that are named, or if none is the
/// most telling ones.
///
/// # Errors
/// If there is no suite, or none with a benchmark that is named.
pub fn markdown(sources: &[Source], benchmarks: &[String]) -> Result<String, String> {
    if sources.is_empty() {
        return Err("there is no run to sum up".to_owned());
    }
    let suites: Vec<Suite<'_>> =
        sources.iter().map(|source| Suite::new(&source.run, &source.measurements)).collect();
    brief::render(&suites, benchmarks)
}

/// The links lead to the directories of each suite's raw data.
fn write_suites(suites: &[Suite<'_>], links: &[Vec<String>], dir: &Path) -> Result<(), String> {
    let mut gallery = Gallery::default();
    let page = page::render(suites, links, &mut gallery)?;
    let charts = dir.join("charts");
    fs::create_dir_all(&charts).map_err(|e| format!("{}: {e}", charts.display()))?;
    remove_old(&charts, &gallery)?;
    for (name, text) in &gallery.files {
        write_whole(&charts.join(name), text.as_bytes())?;
    }
    write_whole(&dir.join("results.csv"), csv::render(suites).as_bytes())?;
    write_whole(&dir.join("report.html"), page.as_bytes())
}

/// Removes the charts of an earlier report that this one does not have.
fn remove_old(charts: &Path, gallery: &Gallery) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", charts.display());
    for entry in fs::read_dir(charts).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.ends_with(".svg")) else { continue };
        if !gallery.files.iter().any(|(file, _)| file == name) {
            fs::remove_file(entry.path())
                .map_err(|e| format!("{}: {e}", entry.path().display()))?;
        }
    }
    Ok(())
}
