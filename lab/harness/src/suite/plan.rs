//! From a suite to what is run: sections with their cells for the report, groups of steps for the
//! engines. A pure function; nothing here touches a file or a clock.
//!
//! 1. Every cell of the sections is measured by one step, or by several in a row that are the same:
//!    its passes.
//! 2. The steps of a group work on one database, in order. The first of them that is not a
//!    preparation of nothing begins with an empty one.

use std::collections::{BTreeMap, BTreeSet};

use super::Settings;
use super::specification::{CellSpec, ForEngine, GroupSpec, PointSpec, SectionSpec, Suite, Sweep};
use crate::run::{Axis, Cell, Chart, Durability, Section};
use crate::workload::Workload;

/// Seconds of an interval of a time series, however long it is: a stall of one second is to be seen
/// as such.
const SERIES_INTERVAL: f64 = 1.0;

/// The size of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Entries.
    pub num: u64,
    /// Rounds.
    pub rounds: u32,
    /// Seconds for one benchmark; 0 for no limit.
    pub time_limit: f64,
    /// Seconds of a timed benchmark.
    pub duration: f64,
    /// Whether it is the short form.
    pub short: bool,
}

impl Form {
    /// The suite as its source has it.
    #[must_use]
    pub fn full(suite: &Suite) -> Form {
        let Suite { num, rounds, time_limit, duration, .. } = *suite;
        Form { num, rounds, time_limit, duration, short: false }
    }

    /// The suite's short form.
    #[must_use]
    pub fn short(suite: &Suite) -> Form {
        let short = &suite.short;
        let (num, rounds, time_limit, duration) =
            (short.num, short.rounds, short.time_limit, short.duration);
        Form { num, rounds, time_limit, duration, short: true }
    }
}

/// How far the sections marked `scaled` are scaled down, beside the run's entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Of memory and data.
    pub memory: f64,
}

impl Scale {
    /// Not at all.
    pub const NONE: Scale = Scale { memory: 1.0 };
}

/// The suite.
#[derive(Clone, Debug)]
pub struct Plan {
    /// For the report.
    pub sections: Vec<Section>,
    /// For the engines, in order.
    pub groups: Vec<Group>,
    /// Remarks for the report.
    pub notes: Vec<String>,
}

/// One database and what is done with it, by every engine in every round.
#[derive(Clone, Debug)]
pub struct Group {
    /// For the progress display.
    pub name: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One benchmark.
#[derive(Clone, Debug)]
pub struct Step {
    /// The benchmark.
    pub workload: &'static Workload,
    /// Its purpose.
    pub role: Role,
    /// Whether it makes the database for later steps, so that it gets more time.
    pub patient: bool,
    settings: Settings,
    for_engine: BTreeMap<String, Settings>,
}

/// The purpose of a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It makes a database; not reported.
    Prepare,
    /// It is the cell at these places.
    Cell {
        /// The section's place.
        section: usize,
        /// The cell's place in it.
        cell: usize,
    },
    /// It does the work that the cell just before it put off.
    Debt {
        /// The section's place.
        section: usize,
        /// The cell's place in it.
        cell: usize,
    },
}

impl Step {
    /// The settings under which an engine does it.
    #[must_use]
    pub fn settings(&self, engine: &str) -> Settings {
        match self.for_engine.get(engine) {
            Some(own) => self.settings.with(own),
            None => self.settings.clone(),
        }
    }

    /// Whether it begins with nothing and makes a database that later steps need.
    #[must_use]
    pub fn makes_database(&self) -> bool {
        self.workload.empty && self.patient
    }

    /// Other ways to the same database, the quickest first: the same keys in batches, the same once
    /// more. Each with the end of the work put off.
    #[must_use]
    pub fn ways_to_prepare(&self) -> Vec<[Step; 2]> {
        let batches = match self.workload.name {
            "fillseq" => Some("fillseqbatch"),
            "fillrandom" => Some("fillrandbatch"),
            _ => None,
        };
        let step = |name| {
            Some(Step {
                workload: Workload::named(name)?,
                role: Role::Prepare,
                patient: true,
                ..self.clone()
            })
        };
        let ways = batches.into_iter().chain([self.workload.name]);
        ways.filter_map(|name| Some([step(name)?, step("waitcompact")?])).collect()
    }
}

impl Plan {
    /// The plan of a suite in a form, with these sections only, or all if there are none.
    ///
    /// # Errors
    /// Says what is wrong with the suite, or which section it does not have.
    pub fn of(suite: &Suite, form: &Form, scale: &Scale, only: &[String]) -> Result<Plan, String> {
        let mut planner = Planner {
            suite,
            form,
            scale,
            sections: Vec::new(),
            groups: Vec::new(),
            notes: Vec::new(),
        };
        planner.sections(only)?;
        for home in 0..suite.sections.len() {
            for group in &suite.sections[home].groups {
                let id = &suite.sections[home].id;
                planner.group(home, group, only).map_err(|e| format!("section {id}: {e}"))?;
            }
        }
        planner.finish(only)
    }
}

struct Planner<'a> {
    suite: &'a Suite,
    form: &'a Form,
    scale: &'a Scale,
    /// Of all sections, selected or not.
    sections: Vec<Section>,
    groups: Vec<Group>,
    notes: Vec<String>,
}

impl Planner<'_> {
    fn sections(&mut self, only: &[String]) -> Result<(), String> {
        let ids: Vec<&str> =
            self.suite.sections.iter().map(|section| section.id.as_str()).collect();
        if let Some(unknown) = only.iter().find(|id| !ids.contains(&id.as_str())) {
            return Err(format!(
                "{} has no section {unknown:?}, only {}",
                self.suite.name,
                ids.join(", ")
            ));
        }
        let factors = self.suite.sections.iter().map(|section| self.size_factor(section));
        if let Some(factor) = factors.into_iter().find(|factor| (factor - 1.0).abs() > 1e-9) {
            let scaled = self.suite.sections.iter().filter(|section| section.scaled);
            let titles: Vec<&str> =
                scaled.map(|section| section.title.trim_end_matches('.')).collect();
            let percent = format!("{:.3}", factor * 100.0);
            let percent = percent.trim_end_matches('0').trim_end_matches('.');
            let titles = titles.join("; ");
            self.notes.push(format!(
                "Memory and data are {percent}% of what the source used in: {titles}."
            ));
        }
        let mut seen = BTreeSet::new();
        for specification in &self.suite.sections {
            let id = &specification.id;
            if !seen.insert(id.clone())
                || id.is_empty()
                || !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            {
                return Err(format!(
                    "the section id {id:?} occurs twice, or is not of letters, digits and -"
                ));
            }
            let settings =
                self.section_settings(specification).map_err(|e| format!("section {id}: {e}"))?;
            self.sections.push(Section {
                id: id.clone(),
                title: specification.title.clone(),
                description: specification.description.clone(),
                chart: specification.chart,
                settings: settings.to_json(),
                cells: Vec::new(),
                published: specification.published.clone(),
                baseline: specification.baseline.clone(),
            });
        }
        Ok(())
    }

    /// Of a section's memory, compared with the source.
    fn size_factor(&self, section: &SectionSpec) -> f64 {
        if !section.scaled {
            return 1.0;
        }
        self.form.num as f64 / self.suite.num as f64 * self.scale.memory
    }

    fn section_settings(&self, section: &SectionSpec) -> Result<Settings, String> {
        let mut settings = self.suite.all_settings()?.with(&Settings::parse(&section.settings)?);
        if section.scaled {
            settings.scale_sizes(self.size_factor(section));
            let times = settings.number("num_times").unwrap_or(1.0);
            settings.set("num_times", times * self.scale.memory);
        }
        Ok(settings)
    }

    fn group(&mut self, home: usize, group: &GroupSpec, only: &[String]) -> Result<(), String> {
        for point in points(group.sweep.as_ref())? {
            let base = Settings::parse(&group.settings)?.with(&point.settings);
            let base = self.scaled(home, base);
            let home_settings = self.section_settings(&self.suite.sections[home])?.with(&base);
            let for_engine = self.for_engine(home, &[&group.for_engine])?;
            let mut steps = Vec::new();
            for name in &group.prepare {
                let workload = workload(&point.replaced(name))?;
                let settings = self.timed(workload, home, home_settings.clone());
                steps.push(Step {
                    for_engine: for_engine.clone(),
                    ..step(workload, Role::Prepare, settings)
                });
            }
            for cell in &group.cells {
                for inner in points(cell.sweep.as_ref())? {
                    self.cell(home, (group, cell), &point, &inner, &base, &mut steps)?;
                }
            }
            let mut steps = self.selected(steps, only);
            mark_patient(&mut steps);
            if !steps.is_empty() {
                let name = self.group_name(home, &point, &steps);
                self.groups.push(Group { name, steps });
            }
        }
        Ok(())
    }

    /// The section, the point of a sweep, and what is measured first.
    fn group_name(&self, home: usize, point: &Point, steps: &[Step]) -> String {
        let mut name = self.suite.sections[home].id.clone();
        let label = point
            .setting
            .clone()
            .or_else(|| point.x.as_ref().map(|x| format!("{} {}", x.value, x.name)));
        if let Some(label) = label {
            name.push_str(&format!(", {label}"));
        }
        if let Some(first) = steps.iter().find(|step| step.role != Role::Prepare) {
            name.push_str(&format!(", {}", first.workload.name));
        }
        name
    }

    fn cell(
        &mut self,
        home: usize,
        (group, cell): (&GroupSpec, &CellSpec),
        outer: &Point,
        inner: &Point,
        base: &Settings,
        steps: &mut Vec<Step>,
    ) -> Result<(), String> {
        let section = match &cell.section {
            None => home,
            Some(id) => self
                .suite
                .sections
                .iter()
                .position(|section| section.id == *id)
                .ok_or_else(|| format!("{}: there is no section {id:?}", cell.benchmark))?,
        };
        let workload = workload(&inner.replaced(&outer.replaced(&cell.benchmark)))?;
        let own = Settings::parse(&cell.settings)?.with(&inner.settings);
        if own.number("reads_times").is_some() && !workload.counts_reads() {
            return Err(format!("{}: reads_times has no meaning for it", cell.benchmark));
        }
        let settings = self
            .section_settings(&self.suite.sections[section])?
            .with(base)
            .with(&self.scaled(section, own));
        let settings = self.timed(workload, section, settings);
        let for_engine = self.for_engine(section, &[&group.for_engine, &cell.for_engine])?;
        for name in &cell.before {
            let workload = self::workload(name)?;
            let settings = self.timed(workload, section, settings.clone());
            steps.push(Step {
                for_engine: for_engine.clone(),
                ..step(workload, Role::Prepare, settings)
            });
        }
        let x = inner.x.clone().or_else(|| outer.x.clone()).map(|x| self.axis(x, &settings));
        let place = self.sections[section].cells.len();
        let paced = settings.number("rate").is_some_and(|rate| rate > 0.0);
        self.sections[section].cells.push(Cell {
            benchmark: workload.name.to_owned(),
            label: cell.label.clone().unwrap_or_else(|| workload.label.to_owned()),
            unit: if paced { "p99".to_owned() } else { "op/s".to_owned() },
            paced,
            x,
            setting: inner.setting.clone().or_else(|| outer.setting.clone()),
            durability: if workload.synchronous {
                Durability::Synchronous
            } else {
                Durability::Asynchronous
            },
            writes: workload.writes,
        });
        if cell.passes == 0 || (cell.passes > 1 && workload.writes && !workload.empty) {
            return Err(format!(
                "{}: it cannot be measured {} times in a row",
                cell.benchmark, cell.passes
            ));
        }
        let add = |role, workload| Step {
            for_engine: for_engine.clone(),
            ..step(workload, role, settings.clone())
        };
        steps.extend((0..cell.passes).map(|_| add(Role::Cell { section, cell: place }, workload)));
        if workload.leaves_debt() {
            steps.push(add(Role::Debt { section, cell: place }, self::workload("waitcompact")?));
        }
        Ok(())
    }

    /// Settings of single engines: by the suite, by a section, and by what lies within it, the
    /// outermost first.
    fn for_engine(
        &self,
        section: usize,
        within: &[&ForEngine],
    ) -> Result<BTreeMap<String, Settings>, String> {
        let mut all: BTreeMap<String, Settings> = BTreeMap::new();
        let outer = [&self.suite.for_engine, &self.suite.sections[section].for_engine];
        for (engine, table) in outer.iter().chain(within).flat_map(|tables| tables.iter()) {
            let own = self.scaled(
                section,
                Settings::parse(table).map_err(|e| format!("for_engine.{engine}: {e}"))?,
            );
            let known = all.entry(engine.clone()).or_default();
            *known = known.with(&own);
        }
        Ok(all)
    }

    /// Sizes that a group, point or cell sets in a scaled section.
    fn scaled(&self, section: usize, mut settings: Settings) -> Settings {
        let specification = &self.suite.sections[section];
        if specification.scaled {
            settings.scale_sizes(self.size_factor(specification));
            if let Some(times) = settings.number("num_times") {
                settings.set("num_times", times * self.scale.memory);
            }
        }
        settings
    }

    /// Adds what depends on time.
    fn timed(&self, workload: &Workload, section: usize, mut settings: Settings) -> Settings {
        if workload.timed && settings.number("duration").is_none() {
            settings.set("duration", self.form.duration);
        }
        if self.suite.sections[section].chart == Chart::Series
            && settings.number("interval").is_none()
        {
            settings.set("interval", SERIES_INTERVAL);
        }
        settings
    }

    fn axis(&self, x: Axis, settings: &Settings) -> Axis {
        if x.name == "num_times" {
            let value = settings.entries(self.form.num) as f64;
            return Axis { name: "entries".to_owned(), value };
        }
        if x.name == "value_size" {
            return Axis { name: "bytes".to_owned(), ..x };
        }
        x
    }

    /// The steps that the selected sections need: what is not selected but writes becomes
    /// preparation.
    fn selected(&self, steps: Vec<Step>, only: &[String]) -> Vec<Step> {
        let is_selected = |step: &Step| match step.role {
            Role::Prepare => false,
            Role::Cell { section, .. } | Role::Debt { section, .. } => {
                only.is_empty() || only.contains(&self.sections[section].id)
            }
        };
        let Some(last) = steps.iter().rposition(is_selected) else { return Vec::new() };
        let mut kept: Vec<Step> = Vec::new();
        for step in steps.into_iter().take(last + 1) {
            let selected = is_selected(&step);
            if selected || matches!(step.role, Role::Prepare) {
                kept.push(step);
            } else if step.workload.writes {
                kept.push(Step { role: Role::Prepare, ..step });
            }
        }
        // A database that no cell reads is not prepared.
        let mut needed = Vec::with_capacity(kept.len());
        for (at, step) in kept.iter().enumerate() {
            let until_empty = kept[at + 1..].iter().take_while(|later| !later.workload.empty);
            let used = until_empty.clone().any(|later| later.role != Role::Prepare);
            needed.push(step.role != Role::Prepare || used);
        }
        let mut needed = needed.into_iter();
        kept.retain(|_| needed.next().unwrap_or(true));
        kept
    }

    /// A baseline is another section; the benchmarks of other names are measured on both sides.
    fn check_baseline(&self, section: &Section) -> Result<(), String> {
        let Some(baseline) = &section.baseline else { return Ok(()) };
        let other = self.sections.iter().find(|other| other.id == baseline.section);
        let Some(other) = other.filter(|other| other.id != section.id) else {
            return Err(format!("the baseline {:?} is no other section", baseline.section));
        };
        for (own, of_baseline) in &baseline.benchmarks {
            for (section, benchmark) in [(section, own), (other, of_baseline)] {
                if !section.cells.iter().any(|cell| cell.benchmark == *benchmark) {
                    return Err(format!("baseline: {} has no {benchmark}", section.id));
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, only: &[String]) -> Result<Plan, String> {
        for section in &self.sections {
            if section.cells.is_empty() {
                return Err(format!("section {}: nothing is measured in it", section.id));
            }
            let measured = |name: &str| section.cells.iter().any(|cell| cell.benchmark == name);
            if let Some(published) =
                section.published.iter().find(|published| !measured(&published.benchmark))
            {
                return Err(format!(
                    "section {}: {} is published, not measured",
                    section.id, published.benchmark
                ));
            }
        }
        for section in &self.sections {
            self.check_baseline(section).map_err(|e| format!("section {}: {e}", section.id))?;
        }
        if !only.is_empty() {
            let places: BTreeMap<usize, usize> = (0..self.sections.len())
                .filter(|place| only.contains(&self.sections[*place].id))
                .enumerate()
                .map(|(new, old)| (old, new))
                .collect();
            for step in self.groups.iter_mut().flat_map(|group| &mut group.steps) {
                if let Role::Cell { section, .. } | Role::Debt { section, .. } = &mut step.role {
                    *section = places[section];
                }
            }
            self.sections.retain(|section| only.contains(&section.id));
        }
        Ok(Plan { sections: self.sections, groups: self.groups, notes: self.notes })
    }
}

fn step(workload: &'static Workload, role: Role, settings: Settings) -> Step {
    Step { workload, role, settings, for_engine: BTreeMap::new(), patient: false }
}

fn workload(name: &str) -> Result<&'static Workload, String> {
    Workload::named(name).ok_or_else(|| format!("there is no benchmark {name:?}"))
}

/// A step that makes a database for a later one gets more time than one that is only measured.
fn mark_patient(steps: &mut [Step]) {
    for at in 0..steps.len() {
        let mut later = steps[at + 1..].iter().take_while(|later| !later.workload.empty);
        let wanted = later.any(|later| {
            !matches!(later.role, Role::Debt { .. }) && later.workload.name != "waitcompact"
        });
        let makes = steps[at].workload.empty && wanted;
        steps[at].patient = makes || (steps[at].workload.writes && steps[at].role == Role::Prepare);
    }
}

/// One repetition.
#[derive(Default)]
struct Point {
    x: Option<Axis>,
    setting: Option<String>,
    settings: Settings,
    instead: BTreeMap<String, String>,
}

impl Point {
    fn replaced(&self, benchmark: &str) -> String {
        self.instead.get(benchmark).cloned().unwrap_or_else(|| benchmark.to_owned())
    }
}

fn points(sweep: Option<&Sweep>) -> Result<Vec<Point>, String> {
    let Some(sweep) = sweep else { return Ok(vec![Point::default()]) };
    match (&sweep.name, sweep.values.as_slice(), sweep.points.as_slice()) {
        (Some(name), values @ [_, ..], []) => {
            values.iter().map(|value| along(name, *value)).collect()
        }
        (name, [], points @ [_, ..]) => {
            points.iter().map(|point| with_settings(name.as_deref(), point)).collect()
        }
        _ => Err("a sweep has a name and values, or points".to_owned()),
    }
}

fn along(name: &str, value: f64) -> Result<Point, String> {
    let whole = value.fract() == 0.0 && name != "num_times";
    let toml = if whole { toml::Value::Integer(value as i64) } else { toml::Value::Float(value) };
    let settings = Settings::parse(&toml::Table::from_iter([(name.to_owned(), toml)]))?;
    Ok(Point { x: Some(Axis { name: name.to_owned(), value }), settings, ..Point::default() })
}

fn with_settings(name: Option<&str>, point: &PointSpec) -> Result<Point, String> {
    let place = match (name, point.value, &point.setting) {
        (Some(name), Some(value), None) => along(name, value)?,
        (None, None, Some(setting)) => Point { setting: Some(setting.clone()), ..Point::default() },
        _ => {
            let rule = "a point has a setting, or a value where the sweep has a name";
            return Err(rule.to_owned());
        }
    };
    let settings = place.settings.with(&Settings::parse(&point.settings)?);
    Ok(Point { settings, instead: point.instead.clone(), ..place })
}
