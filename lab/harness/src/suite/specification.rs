//! The form of a suite's file. Plain data; what a file says wrongly is found when it is loaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{Form, Plan, Scale, Settings};
use crate::run::{Chart, Figure, Published};

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
    /// What a reader has to know about all of it.
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

/// What the short form has instead.
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
    /// What it shows.
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
    /// What the source published.
    #[serde(default)]
    pub published: Vec<Published>,
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
    /// What is measured, in order.
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
/// cells' `x`, or `points` that have a label each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The setting. `num_times` is shown as the number of entries.
    pub name: Option<String>,
    /// Its values.
    #[serde(default)]
    pub values: Vec<f64>,
    /// Labelled settings.
    #[serde(default)]
    pub points: Vec<PointSpec>,
}

/// One point of a sweep over settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointSpec {
    /// The label.
    pub setting: String,
    /// What is set.
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
