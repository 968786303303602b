//! Several runs in one report.
//!
//! Invariants:
//! 1. Runs are taken together only if a cell means the same in all of them: same suite, entries, sections, time limit,
//!    machine and way to a figure, and the same version of every engine that both have.
//! 2. Rounds keep their order; the rounds of a later run come after those of the earlier ones.

use std::path::{Path, PathBuf};

use crate::run::{Engine, Measurements, Run};

/// A run that has been read, and where from.
#[derive(Clone, Debug)]
pub struct Source {
    /// `run.json`.
    pub run: Run,
    /// `measurements.jsonl`.
    pub measurements: Measurements,
    /// The run's directory.
    pub path: PathBuf,
}

/// Runs taken together.
pub(crate) struct Pool {
    pub(crate) run: Run,
    pub(crate) measurements: Measurements,
    pub(crate) paths: Vec<PathBuf>,
}

/// Where the raw data of a suite lie, as links from the page.
#[derive(Debug)]
pub(crate) struct Raw {
    /// Directories, each ending in a slash or empty.
    pub(crate) directories: Vec<String>,
}

impl Raw {
    /// Beside the page.
    pub(crate) fn here() -> Raw {
        Raw { directories: vec![String::new()] }
    }

    /// In other directories, seen from `dir`.
    pub(crate) fn of(paths: &[PathBuf], dir: &Path) -> Raw {
        Raw { directories: paths.iter().map(|path| link(path, dir)).collect() }
    }
}

/// Takes together what belongs together, in the order of the first run of each.
pub(crate) fn pools(sources: &[Source]) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    for source in sources {
        match pools.iter_mut().find(|pool| matches(&pool.run, &source.run)) {
            Some(pool) => pool.add(source),
            None => pools.push(Pool {
                run: source.run.clone(),
                measurements: source.measurements.clone(),
                paths: vec![source.path.clone()],
            }),
        }
    }
    pools
}

fn matches(a: &Run, b: &Run) -> bool {
    let versions = |engine: &Engine| b.engine(&engine.id).is_none_or(|other| other.version == engine.version);
    a.suite == b.suite
        && (a.num, a.figure, a.short) == (b.num, b.figure, b.short)
        && a.time_limit == b.time_limit
        && a.sections == b.sections
        && a.machine == b.machine
        && a.engines.iter().all(versions)
}

impl Pool {
    fn add(&mut self, source: &Source) {
        let shift = self.run.rounds;
        for measurement in source.measurements.iter() {
            let mut later = measurement.clone();
            later.round = later.round.saturating_add(shift);
            self.measurements.add(later);
        }
        for engine in &source.run.engines {
            match self.run.engines.iter_mut().find(|known| known.id == engine.id) {
                // What one of the runs had is not missing.
                Some(known) if known.missing.is_some() && engine.missing.is_none() => *known = engine.clone(),
                Some(_) => {}
                None => self.run.engines.push(engine.clone()),
            }
        }
        self.run.rounds = shift.saturating_add(source.run.rounds);
        self.run.seconds += source.run.seconds;
        self.run.complete &= source.run.complete;
        let added = format!(
            "{} rounds of a run that began {} are taken together with the first run's: {}",
            source.run.rounds, source.run.began, source.run.command
        );
        let notes = source.run.notes.iter().filter(|note| !self.run.notes.contains(note)).cloned();
        let notes: Vec<String> = notes.collect();
        self.run.notes.extend(notes);
        self.run.notes.push(added);
        self.paths.push(source.path.clone());
    }
}

/// The way from a page in `dir` to `path`, as a link.
fn link(path: &Path, dir: &Path) -> String {
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (path, dir) = (absolute(path), absolute(dir));
    let common = path.components().zip(dir.components()).take_while(|(a, b)| a == b).count();
    let up = dir.components().skip(common).map(|_| "..".to_owned());
    let down = path.components().skip(common).map(|part| encoded(&part.as_os_str().to_string_lossy()));
    up.chain(down).map(|part| part + "/").collect()
}

/// A name as a part of an address.
fn encoded(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_page_to_the_data() {
        let link = |path, dir| link(Path::new(path), Path::new(dir));
        assert_eq!(link("/none/a", "/none/a"), "");
        assert_eq!(link("/none/a/run 1", "/none/b"), "../a/run%201/");
        assert_eq!(link("/none/out/x#", "/none/out"), "x%23/");
    }
}
