//! What the lab's suite `configurations` measured, as far as it was there when the command was built.

use serde::{Deserialize, Serialize};

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

#[derive(Deserialize)]
struct Figure {
    section: String,
    setting: Option<String>,
    engine: String,
    benchmark: String,
    rate: f64,
}

/// All figures.
pub(super) struct Figures {
    all: Vec<Figure>,
}

impl Figures {
    /// Those that the command was built with.
    pub(super) fn built_in() -> Self {
        Self::parse(include_str!(concat!(env!("OUT_DIR"), "/measured.json")))
    }

    fn parse(text: &str) -> Self {
        Figures { all: serde_json::from_str(text).unwrap_or_default() }
    }

    pub(super) fn are_missing(&self) -> bool {
        self.all.is_empty()
    }

    /// What the suite says about a setting.
    pub(super) fn of(&self, evidence: &Evidence) -> Vec<Measured> {
        let rate = |setting: &str, benchmark: &str| {
            let fits = |figure: &&Figure| {
                (figure.engine.as_str(), figure.section.as_str()) == (evidence.engine, evidence.section)
                    && (figure.setting.as_deref(), figure.benchmark.as_str()) == (Some(setting), benchmark)
            };
            self.all.iter().find(fits).map(|figure| figure.rate).filter(|&rate| rate > 0.0)
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
        format!("{benchmark} runs at {times:.2} times the defaults with {setting} on {engine} (section {section})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_compared_with_the_defaults_of_its_section() {
        let figure = |section: &str, setting: &str, benchmark: &str, rate: f64| {
            format!(
                r#"{{"section":"{section}","setting":"{setting}","engine":"terrace","benchmark":"{benchmark}","rate":{rate}}}"#
            )
        };
        let text = [
            figure("a", "defaults", "fillseq", 100.0),
            figure("b", "defaults", "fillseq", 200.0),
            figure("b", "x=1", "fillseq", 300.0),
            figure("b", "x=1", "readseq", 300.0),
        ];
        let figures = Figures::parse(&format!("[{}]", text.join(",")));
        let evidence =
            Evidence { engine: "terrace", section: "b", setting: "x=1", benchmarks: &["fillseq", "readseq", "none"] };
        let measured = figures.of(&evidence);
        assert_eq!(measured.len(), 1, "{measured:?}");
        assert_eq!(measured[0].times_the_defaults, 1.5);
        assert!(figures.of(&Evidence { section: "a", ..evidence }).is_empty());
        assert!(Figures::parse("").are_missing());
    }
}
