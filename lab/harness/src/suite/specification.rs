//! The form of a suite's file. Plain data; what a file says wrongly is found when it is loaded.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::settings::Settings;
use crate::run::{Baseline, Chart, Figure, Published};

/// Settings for single engines, by name (not by column), which lie over all others. Those of a cell
/// lie over those of its group, these over those of its section, and these over the suite's.
pub(crate) type ForEngine = BTreeMap<String, toml::Table>;

/// A suite.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// In words.
    pub title: String,
    /// Where the published figures come from.
    pub source: String,
    /// Remarks on all of it.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Entries.
    pub num: u64,
    /// Rounds.
    pub rounds: u32,
    /// Seconds for one benchmark; 0 for no limit.
    pub time_limit: f64,
    /// Seconds of a timed benchmark.
    #[serde(default)]
    pub duration: f64,
    /// How the figure of a cell comes from its rounds.
    #[serde(default)]
    pub figure: Figure,
    /// Columns that are run unless others are asked for; all if there is no such list. A `*` at the
    /// end stands for every variant.
    #[serde(default)]
    pub engines: Vec<String>,
    /// The short form.
    pub short: Short,
    /// Bytes of memory that the scaled sections need in full.
    #[serde(default)]
    pub memory: u64,
    /// Settings of all sections.
    #[serde(default)]
    pub settings: toml::Table,
    /// Settings for single engines.
    #[serde(default)]
    pub for_engine: ForEngine,
    /// The sections.
    #[serde(rename = "section")]
    pub sections: Vec<SectionSpec>,
}

/// The values of the short form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Short {
    /// Entries.
    pub num: u64,
    /// Rounds.
    pub rounds: u32,
    /// Seconds for one benchmark.
    pub time_limit: f64,
    /// Seconds of a timed benchmark.
    #[serde(default)]
    pub duration: f64,
    /// Minutes for all of it, beyond which benchmarks are cut short.
    pub budget: Option<f64>,
    /// Columns, if they are others.
    #[serde(default)]
    pub engines: Vec<String>,
}

/// A section.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionSpec {
    /// Unique; fit for a file name.
    pub id: String,
    /// In words.
    pub title: String,
    /// Its subject.
    pub description: String,
    /// How it is drawn.
    pub chart: Chart,
    /// Settings of all its cells.
    #[serde(default)]
    pub settings: toml::Table,
    /// Settings for single engines.
    #[serde(default)]
    pub for_engine: ForEngine,
    /// Whether memory and data shrink together with the entries and with the machine.
    #[serde(default)]
    pub scaled: bool,
    /// The source's figures.
    #[serde(default)]
    pub published: Vec<Published>,
    /// The section of which it varies one setting.
    pub baseline: Option<Baseline>,
    /// Databases and what is measured on them. A section whose cells are all measured in another's
    /// groups has none.
    #[serde(default, rename = "group")]
    pub groups: Vec<GroupSpec>,
}

/// One database, and what is measured on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Benchmarks that make the database; not reported.
    #[serde(default)]
    pub prepare: Vec<String>,
    /// Settings of all its cells and of the preparation.
    #[serde(default)]
    pub settings: toml::Table,
    /// Settings for single engines, of the preparation as well.
    #[serde(default)]
    pub for_engine: ForEngine,
    /// The whole group is repeated for every point.
    pub sweep: Option<Sweep>,
    /// The cells, in order.
    pub cells: Vec<CellSpec>,
}

/// One thing measured. A text alone is the benchmark.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "CellForm")]
pub struct CellSpec {
    /// The benchmark.
    pub benchmark: String,
    /// In words, if not the benchmark's own.
    pub label: Option<String>,
    /// The section that shows it, if it is not the one with the database. That section's settings
    /// hold then.
    pub section: Option<String>,
    /// Benchmarks to run just before, in the same process; not reported.
    pub before: Vec<String>,
    /// How often it is run in a row in each round; the pass with the median rate counts. For what
    /// is over so soon that one pass says little.
    pub passes: u32,
    /// Its settings.
    pub settings: toml::Table,
    /// The cell is repeated for every point, on the same database.
    pub sweep: Option<Sweep>,
    /// Settings for single engines.
    pub for_engine: ForEngine,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CellForm {
    Name(String),
    Full(Box<FullCell>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullCell {
    benchmark: String,
    label: Option<String>,
    section: Option<String>,
    #[serde(default)]
    before: Vec<String>,
    #[serde(default = "once")]
    passes: u32,
    #[serde(default)]
    settings: toml::Table,
    sweep: Option<Sweep>,
    #[serde(default)]
    for_engine: ForEngine,
}

fn once() -> u32 {
    1
}

impl From<CellForm> for CellSpec {
    fn from(form: CellForm) -> CellSpec {
        match form {
            CellForm::Name(benchmark) => CellSpec {
                benchmark,
                label: None,
                section: None,
                before: Vec::new(),
                passes: once(),
                settings: toml::Table::new(),
                sweep: None,
                for_engine: BTreeMap::new(),
            },
            CellForm::Full(full) => CellSpec {
                benchmark: full.benchmark,
                label: full.label,
                section: full.section,
                before: full.before,
                passes: full.passes,
                settings: full.settings,
                sweep: full.sweep,
                for_engine: full.for_engine,
            },
        }
    }
}

/// Repetition under changing settings: either `values` of the setting `name`, which become the
/// cells' `x`, or `points` that have a label each, or `points` that have a value of `name` each and
/// more settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The setting. `num_times` is shown as the number of entries, `value_size` as bytes.
    pub name: Option<String>,
    /// Its values.
    #[serde(default)]
    pub values: Vec<f64>,
    /// Settings with a label or a value.
    #[serde(default)]
    pub points: Vec<PointSpec>,
}

/// One point of a sweep over settings: it has `setting`, or `value` where the sweep has a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointSpec {
    /// The label.
    pub setting: Option<String>,
    /// The value of the sweep's setting.
    pub value: Option<f64>,
    /// The settings.
    #[serde(default)]
    pub settings: toml::Table,
    /// Benchmarks instead of the cells' own: `fillrandom = "fillsync"`.
    #[serde(default)]
    pub instead: BTreeMap<String, String>,
}

impl Suite {
    /// The settings that hold for all sections.
    pub(crate) fn all_settings(&self) -> Result<Settings, String> {
        Settings::parse(&self.settings)
    }
}
