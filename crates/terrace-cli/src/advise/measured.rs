//! Measurements of the lab's suite `configurations`: in a run that is named, or else in the newest
//! of `crates/terrace-cli/measured` when the command was built, if there was one.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};

const SUITE: &str = "configurations";
/// The file of a run's directory that has everything.
const RESULTS: &str = "results.json";

/// A setting of the suite that an advice rests on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    pub(super) engine: &'static str,
    pub(super) section: &'static str,
    pub(super) setting: &'static str,
    pub(super) benchmarks: &'static [&'static str],
}

/// A setting against the defaults of its section.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Measured {
    engine: String,
    section: String,
    setting: String,
    benchmark: String,
    /// Operations a second, as a multiple of what the defaults reach.
    times_the_defaults: f64,
}

/// `results.json`, as far as it is of use here.
#[derive(Deserialize)]
struct Run {
    run: About,
    figures: Vec<Figure>,
}

#[derive(Deserialize)]
struct About {
    suite: String,
    /// When: `2026-11-21T10:00:00Z`.
    began: String,
    /// Entries.
    num: u64,
}

#[derive(Deserialize)]
struct Figure {
    section: String,
    setting: Option<String>,
    engine: String,
    benchmark: String,
    ops_per_sec: Option<Rate>,
}

#[derive(Deserialize)]
struct Rate {
    middle: f64,
}

/// All figures of a run, if there is one.
pub(super) struct Figures {
    run: Option<Run>,
}

impl Figures {
    /// Those that the command was built with.
    pub(super) fn built_in() -> Self {
        let run = serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/measured.json")));
        Figures { run: run.unwrap_or_default() }
    }

    /// Those of a run, by its directory.
    pub(super) fn of_run(directory: &Path) -> Result<Self> {
        let path = directory.join(RESULTS);
        let text = fs::read_to_string(&path).map_err(|e| Failure::io("read", &path, &e))?;
        let run: Run = serde_json::from_str(&text)
            .map_err(|e| Failure::other(format!("{}: no run of the lab: {e}", path.display())))?;
        let About { suite, .. } = &run.run;
        if suite != SUITE {
            return Err(Failure::other(format!(
                "{}: a run of the suite {suite}, not of {SUITE}",
                path.display()
            )));
        }
        Ok(Figures { run: Some(run) })
    }

    /// Of which run they are.
    pub(super) fn source(&self) -> Option<String> {
        let About { suite, began, num } = &self.run.as_ref()?.run;
        let day = began.split('T').next().unwrap_or_default();
        Some(format!("the lab's suite {suite}, {num} entries, {day}"))
    }

    pub(super) fn are_missing(&self) -> bool {
        self.all().next().is_none()
    }

    fn all(&self) -> impl Iterator<Item = &Figure> {
        self.run.iter().flat_map(|run| &run.figures)
    }

    /// The suite's figures for a setting.
    pub(super) fn of(&self, evidence: &Evidence) -> Vec<Measured> {
        let rate = |setting: &str, benchmark: &str| {
            let fits = |figure: &&Figure| {
                (figure.engine.as_str(), figure.section.as_str())
                    == (evidence.engine, evidence.section)
                    && (figure.setting.as_deref(), figure.benchmark.as_str())
                        == (Some(setting), benchmark)
            };
            let rate = self.all().find(fits)?.ops_per_sec.as_ref()?.middle;
            (rate > 0.0).then_some(rate)
        };
        let of = |&benchmark: &&str| {
            let times = rate(evidence.setting, benchmark)? / rate("defaults", benchmark)?;
            Some(Measured {
                engine: evidence.engine.to_owned(),
                section: evidence.section.to_owned(),
                setting: evidence.setting.to_owned(),
                benchmark: benchmark.to_owned(),
                times_the_defaults: (times * 100.0).round() / 100.0,
            })
        };
        evidence.benchmarks.iter().filter_map(of).collect()
    }
}

impl Measured {
    pub(super) fn text(&self) -> String {
        let Measured { engine, section, setting, benchmark, times_the_defaults: times } = self;
        format!(
            "{benchmark} runs at {times:.2} times the defaults with {setting} on {engine} (section \
             {section})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_compared_with_the_defaults_of_its_section() {
        let figure = |section: &str, setting: &str, benchmark: &str, rate: f64| {
            format!(
                r#"{{"section":"{section}","setting":"{setting}","engine":"terrace","benchmark":"{benchmark}","ops_per_sec":{{"middle":{rate}}}}}"#
            )
        };
        let text = [
            figure("a", "defaults", "fillseq", 100.0),
            figure("b", "defaults", "fillseq", 200.0),
            figure("b", "x=1", "fillseq", 300.0),
            figure("b", "x=1", "readseq", 300.0),
        ];
        let run = r#"{"suite":"configurations","began":"2026-11-21T10:00:00Z","num":5}"#;
        let text = format!(r#"{{"run":{run},"figures":[{}]}}"#, text.join(","));
        let figures = Figures { run: serde_json::from_str(&text).expect("a run") };
        let evidence = Evidence {
            engine: "terrace",
            section: "b",
            setting: "x=1",
            benchmarks: &["fillseq", "readseq", "none"],
        };
        let measured = figures.of(&evidence);
        assert_eq!(measured.len(), 1, "{measured:?}");
        assert_eq!(measured[0].times_the_defaults, 1.5);
        assert!(figures.of(&Evidence { section: "a", ..evidence }).is_empty());
        assert!(!figures.are_missing() && Figures { run: None }.are_missing());
    }
}
