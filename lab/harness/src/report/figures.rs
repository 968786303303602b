//! From a suite's values to its charts: what each chart is given, and the words that stand beside
//! it.
//!
//! Invariants:
//! 1. Every chart of the page goes through a `Gallery`, so that it also becomes a file, and each
//!    file has its own name.
//! 2. Columns keep their order and colour on every chart.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::run::{Axis, Cell, Chart as Kind, Interval, Published};

use super::chart::lines::{Frame, Line, Point, XAxis};
use super::chart::series::{Course, Shared, Step};
use super::chart::{Pen, bars, groups, lines, series};
use super::model::{CellView, Column, Figures, MARKS, Outcome, PERCENTILES, SectionView, Suite};
use super::ratios::Ratio;
use super::svg::{Chart, Tip};
use super::{number, palette};

/// A longer note of a published figure does not fit beside its bar.
const SHORT_NOTE: usize = 8;

/// A chart on the page, and the file that has it too.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    /// What it shows, for readers who see only the link.
    title: String,
    /// Empty where a script draws it.
    svg: String,
    file: String,
    /// The column that the whole chart is about.
    column: Option<usize>,
}

impl Figure {
    /// Of one column alone.
    pub(crate) fn of_column(self, column: usize) -> Figure {
        Figure { column: Some(column), ..self }
    }

    /// Drawn without a script.
    pub(crate) fn drawn(self, chart: &Chart) -> Figure {
        Figure { svg: chart.inline(), ..self }
    }
}

/// The files of all charts.
#[derive(Debug, Default)]
pub(crate) struct Gallery {
    /// Name below `charts/`, and text.
    pub(crate) files: Vec<(String, String)>,
    /// What a script draws: name of the file, and element of the page.
    pub(crate) elements: BTreeMap<String, String>,
}

impl Gallery {
    /// Takes in a chart under `stem`, which should be its own: names hold from one report to the
    /// next. Numbered only if several have the same all the same.
    pub(crate) fn add(&mut self, stem: &str, title: &str, chart: &Chart) -> Figure {
        let stem = file_stem(stem);
        let taken = |name: &str| self.files.iter().any(|(file, _)| file == name);
        let numbers = (2..).map(|n| format!("{stem}-{n}.svg"));
        let plain = std::iter::once(format!("{stem}.svg"));
        let name = plain.chain(numbers).find(|name| !taken(name)).unwrap_or_default();
        self.files.push((name.clone(), chart.file()));
        let file = format!("charts/{name}");
        Figure { title: title.to_owned(), svg: String::new(), file, column: None }
    }

    /// The same with a script to draw it.
    pub(crate) fn add_packed(&mut self, stem: &str, title: &str, chart: &Chart) -> Figure {
        let figure = self.add(stem, title, chart);
        self.elements.insert(figure.file.clone(), chart.inline());
        figure
    }
}

/// Names of a section's cells for anchors and files: the benchmark, and what sets the cell apart
/// from others of it.
pub(crate) fn slugs(section: &SectionView<'_>) -> Vec<String> {
    let base = |cell: &Cell| {
        let value = |x: f64| if x.is_finite() { x.to_string() } else { "odd".to_owned() };
        let x = cell.x.as_ref().map(|axis| format!("-{}-{}", value(axis.value), axis.name));
        let setting = cell.setting.as_ref().map(|setting| format!("-{setting}"));
        [Some(cell.benchmark.clone()), x, setting].into_iter().flatten().collect::<String>()
    };
    let all: Vec<String> = section.cells.iter().map(|cell| base(cell.cell)).collect();
    let slugs = all.iter().zip(&section.cells).enumerate().map(|(at, (slug, cell))| {
        let first = all.iter().position(|other| other == slug) == Some(at);
        file_stem(&if first { slug.clone() } else { format!("{slug}-{}", cell.cell.label) })
    });
    slugs.collect()
}

/// A text as a part of a file name.
pub(crate) fn file_stem(text: &str) -> String {
    let stem: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' })
        .take(100)
        .collect();
    if stem.is_empty() { "chart".to_owned() } else { stem }
}

/// A cell in words: its label and what sets it apart from its neighbours.
pub(crate) fn cell_name(cell: &Cell) -> String {
    let x = cell.x.as_ref().map(|axis| {
        let name = if axis.value == 1.0 { axis.name.trim_end_matches('s') } else { &axis.name };
        format!("{} {name}", number::thousands(axis.value))
    });
    [Some(cell.label.clone()), x, cell.setting.clone()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · ")
}

/// How a column is drawn in a cell.
fn pen(suite: &Suite<'_>, column: usize, cell: &Cell) -> Pen {
    let Column { title, slot, .. } = &suite.columns[column];
    let weaker = suite.columns[column].promises_less(cell);
    Pen { title: title.clone(), column: Some(column), slot: *slot, weaker }
}

/// What is drawn beside a figure: its rounds, if there was more than one.
fn rounds(figures: &Figures) -> Vec<f64> {
    if figures.rates.len() > 1 { figures.rates.clone() } else { Vec::new() }
}

/// The tooltip of a figure. The page's script says the same of it.
fn tip(title: &str, unit: &str, figures: &Figures) -> String {
    let rate = &figures.rate;
    let mut tip = format!("{title}: {} {unit}", number::precise(rate.middle));
    if rate.rounds > 1 {
        let (min, max) = (number::precise(rate.min), number::precise(rate.max));
        tip.push_str(&format!(
            " ({min} to {max} in {} rounds, spread {})",
            rate.rounds,
            number::percent(rate.spread)
        ));
    }
    if let (Some(p50), Some(p99)) = (figures.latency(50.0), figures.latency(99.0)) {
        tip.push_str(&format!(
            "; median {}, p99 {}",
            number::duration_us(p50),
            number::duration_us(p99)
        ));
    }
    figures.remarks.iter().for_each(|remark| tip.push_str(&format!("; {remark}")));
    tip
}

/// A figure with its mark.
pub(crate) fn marked(text: String, figures: &Figures) -> String {
    match figures.mark() {
        Some(mark) => format!("{text} {mark}"),
        None => text,
    }
}

/// The measured figure.
pub(crate) fn now(
    suite: &Suite<'_>,
    section: &SectionView<'_>,
    cell: &CellView<'_>,
    heading: &str,
    width: f64,
) -> Chart {
    let reference = reference(suite, section, cell.cell);
    let mut with_baseline = false;
    let mut cut = false;
    let bars: Vec<bars::Bar> = cell
        .outcomes
        .iter()
        .enumerate()
        .map(|(column, outcome)| {
            let pen = pen(suite, column, cell.cell);
            let (value, words) = match outcome {
                Outcome::Figures(figures) if cell.cell.paced => {
                    let us = figures.latency(99.0).unwrap_or_default();
                    let value = bars::Value::Figure {
                        value: us,
                        rounds: Vec::new(),
                        text: marked(number::duration_us(us), figures),
                    };
                    (value, tip(&pen.title, "op/s", figures))
                }
                Outcome::Figures(figures) => {
                    let mut text = number::si(figures.rate.middle);
                    if let Some(ratio) = suite.against_baseline(section, cell, column) {
                        (with_baseline, cut) = (true, cut || ratio.cut && !figures.cut);
                        text = format!("{text} · {}", baseline_ratio(ratio, figures));
                    }
                    let base = reference
                        .and_then(|reference| cell.rate(reference))
                        .map(|rate| rate.middle);
                    if let Some(base) = base.filter(|base| *base > 0.0) {
                        text = format!("{text} · {}", number::ratio(figures.rate.middle / base));
                    }
                    let value = bars::Value::Figure {
                        value: figures.rate.middle,
                        rounds: rounds(figures),
                        text: marked(text, figures),
                    };
                    (value, tip(&pen.title, &cell.cell.unit, figures))
                }
                Outcome::Absent { word, reason } => (
                    bars::Value::Nothing(format!("{word}: {reason}")),
                    format!("{}: {word}: {reason}", pen.title),
                ),
            };
            bars::Bar { pen, value, tip: Tip::Figure { cell: cell.number, words } }
        })
        .collect();
    let figures = || cell.outcomes.iter().filter_map(Outcome::figures);
    let unit = if cell.cell.paced { "p99, less is better" } else { cell.cell.unit.as_str() };
    let has = |mark: &str| {
        figures().any(|figures| figures.mark() == Some(mark)) || cut && mark == MARKS[0].0
    };
    let marks = MARKS.iter().filter(|(mark, _)| has(mark));
    let unit = if with_baseline { format!("{unit} · × baseline") } else { unit.to_owned() };
    let note = marks.fold(unit, |note, (mark, words)| format!("{note} · {mark} {words}"));
    bars::draw(&bars, heading, &note, width)
}

/// A ratio to the baseline, with a mark if only the baseline was cut short.
pub(crate) fn baseline_ratio(ratio: Ratio, figures: &Figures) -> String {
    let mark = if ratio.cut && !figures.cut { MARKS[0].0 } else { "" };
    format!("{}{mark}", number::ratio(ratio.value))
}

/// A published figure divided by the same engine's in the baseline of the section.
fn published_against_baseline(
    suite: &Suite<'_>,
    section: &SectionView<'_>,
    figure: &Published,
) -> Option<f64> {
    let baseline = section.section.baseline.as_ref()?;
    let benchmark = baseline.benchmark(&figure.benchmark);
    let of_baseline = suite.run.section(&baseline.section)?.published.iter().find(|other| {
        other.benchmark == benchmark
            && other.engine == figure.engine
            && other.relative_to == figure.relative_to
            && other.x == figure.x
            && other.setting == figure.setting
    })?;
    Some(figure.value / of_baseline.value).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

/// The source's published figure for a cell; none if there is none.
pub(crate) fn then(
    suite: &Suite<'_>,
    section: &SectionView<'_>,
    cell: &Cell,
    width: f64,
) -> Option<Chart> {
    let published: Vec<&Published> = published(section, cell).collect();
    let first = published.first()?;
    let reference =
        first.relative_to.as_ref().filter(|name| !published.iter().any(|p| p.engine == **name));
    let of_reference = reference.map(|name| (name.as_str(), 1.0, true, None, None));
    let mut with_baseline = false;
    let others = published.iter().map(|p| {
        let ratio = published_against_baseline(suite, section, p);
        (p.engine.as_str(), p.value, p.relative_to.is_some(), p.note.as_deref(), ratio)
    });
    let bars: Vec<bars::Bar> = of_reference
        .into_iter()
        .chain(others)
        .map(|(engine, value, relative, note, ratio)| {
            let text = if relative { number::ratio(value) } else { number::si(value) };
            // "over 7×" fits beside a bar; a sentence does not.
            let text = match note.filter(|note| note.len() <= SHORT_NOTE) {
                Some(note) => format!("{note} {text}"),
                None => text,
            };
            let text = match ratio {
                Some(ratio) => format!("{text} · {}", number::ratio(ratio)),
                None => text,
            };
            with_baseline |= ratio.is_some();
            let precise = if relative { text.clone() } else { number::precise(value) };
            let note = note
                .filter(|note| note.len() > SHORT_NOTE)
                .map_or(String::new(), |note| format!(", {note}"));
            let tip = format!("{engine}: {precise}{note}");
            let pen = Pen {
                title: engine.to_owned(),
                column: None,
                slot: palette::slot_of_published(engine),
                weaker: false,
            };
            bars::Bar {
                pen,
                value: bars::Value::Figure { value, rounds: Vec::new(), text },
                tip: Tip::Words(format!("{tip} (published)")),
            }
        })
        .collect();
    let unit = first.relative_to.as_ref().map_or(cell.unit.clone(), |name| format!("{name} = 1"));
    let unit = if with_baseline { format!("{unit} · × baseline") } else { unit };
    Some(bars::draw(&bars, &format!("Then: {}", cell_name(cell)), &unit, width))
}

/// The source's remark beside its figures of a cell, where that is more than a word.
pub(crate) fn published_notes(section: &SectionView<'_>, cell: &Cell) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for published in published(section, cell) {
        let Some(note) = published.note.as_ref().filter(|note| note.len() > SHORT_NOTE) else {
            continue;
        };
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

fn published<'a>(section: &SectionView<'a>, cell: &Cell) -> impl Iterator<Item = &'a Published> {
    let (benchmark, x, setting) =
        (cell.benchmark.clone(), cell.x.as_ref().map(|x| x.value), cell.setting.clone());
    section.section.published.iter().filter(move |p| {
        p.benchmark == benchmark
            && (p.x.is_none() || p.x == x)
            && (p.setting.is_none() || p.setting == setting)
            && p.value.is_finite()
    })
}

/// The column that a section's published ratios refer to.
fn reference(suite: &Suite<'_>, section: &SectionView<'_>, cell: &Cell) -> Option<usize> {
    let name = published(section, cell).find_map(|p| p.relative_to.clone())?;
    let is_meant =
        |engine: &crate::run::Engine| engine.title == name || engine.id == name.to_lowercase();
    suite.columns.iter().position(|column| !column.engine.is_terrace() && is_meant(column.engine))
}

/// The latencies of all engines in one cell; none if no engine reported any.
pub(crate) fn curves(suite: &Suite<'_>, cell: &CellView<'_>) -> Option<Chart> {
    let mut absent = Vec::new();
    let mut all = Vec::new();
    for (column, outcome) in cell.outcomes.iter().enumerate() {
        let pen = pen(suite, column, cell.cell);
        match outcome.figures().filter(|figures| !figures.latencies.is_empty()) {
            Some(figures) => {
                let points = figures.latencies.iter().map(|(x, y)| {
                    let place = PERCENTILES.iter().position(|percentile| percentile == x);
                    let at = place.unwrap_or_default();
                    let name = percentile(*x);
                    let words = format!("{}: {name} {}", pen.title, number::duration_us(*y));
                    let tip = Tip::Latency { cell: cell.number, at, words };
                    Point { x: *x, y: *y, rounds: Vec::new(), tip }
                });
                all.push(Line { points: points.collect(), pen });
            }
            None => absent.push(format!("{}: {}", pen.title, why(outcome))),
        }
    }
    let heading = cell_name(cell.cell);
    let frame = Frame {
        heading: &heading,
        x_title: "percentile",
        y_title: "latency of an operation",
        absent,
    };
    (!all.is_empty()).then(|| lines::draw(&all, &frame, XAxis::Percentiles))
}

/// A percentile as a tip names it.
pub(crate) fn percentile(x: f64) -> String {
    if x >= 100.0 { "max".to_owned() } else { format!("{x}%") }
}

/// Why there is nothing to draw.
fn why(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Figures(_) => "it reported none".to_owned(),
        Outcome::Absent { word, reason } => format!("{word}: {reason}"),
    }
}

/// Cells that differ in their `x` only: one line chart for each, with a name for its file.
pub(crate) fn sweeps(suite: &Suite<'_>, section: &SectionView<'_>) -> Vec<(String, Chart)> {
    let mut sweeps: Vec<Vec<&CellView<'_>>> = Vec::new();
    for cell in section.cells.iter().filter(|cell| cell.cell.x.is_some()) {
        let key = |c: &CellView<'_>| {
            (
                c.cell.benchmark.clone(),
                c.cell.setting.clone(),
                c.cell.x.as_ref().map(|x| x.name.clone()),
            )
        };
        match sweeps.iter_mut().find(|sweep| key(sweep[0]) == key(cell)) {
            Some(sweep) => sweep.push(cell),
            None => sweeps.push(vec![cell]),
        }
    }
    let name = |cell: &Cell| {
        let x = cell.x.as_ref().map_or("", |axis| axis.name.as_str());
        let setting = cell.setting.as_ref().map(|setting| format!("-{setting}"));
        format!("{}-{x}{}", cell.benchmark, setting.unwrap_or_default())
    };
    sweeps.iter().map(|sweep| (name(sweep[0].cell), draw_sweep(suite, sweep))).collect()
}

fn draw_sweep(suite: &Suite<'_>, cells: &[&CellView<'_>]) -> Chart {
    let mut absent = Vec::new();
    let mut all = Vec::new();
    for column in 0..suite.columns.len() {
        let pen = pen(suite, column, cells[0].cell);
        let mut points: Vec<Point> = cells
            .iter()
            .filter_map(|cell| {
                let figures = cell.outcomes[column].figures()?;
                let axis = cell.cell.x.as_ref()?;
                let title = format!("{}, {}", pen.title, x_name(cell.cell));
                let words = tip(&title, &cell.cell.unit, figures);
                let tip = Tip::Figure { cell: cell.number, words };
                let (x, y) = (axis.value, figures.rate.middle);
                Some(Point { x, y, rounds: rounds(figures), tip })
            })
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let missing = cells.iter().find(|cell| cell.outcomes[column].figures().is_none());
        if let Some(missing) = missing {
            let at = if points.is_empty() {
                String::new()
            } else {
                format!(", {}", cell_name(missing.cell))
            };
            absent.push(format!("{}{at}: {}", pen.title, why(&missing.outcomes[column])));
        }
        if !points.is_empty() {
            all.push(Line { pen, points });
        }
    }
    let cell = cells[0].cell;
    let heading = [Some(cell.label.as_str()), cell.setting.as_deref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    let (heading, x_title) =
        (heading.join(" · "), cell.x.as_ref().map_or("", |axis| axis.name.as_str()));
    let values = || cells.iter().filter_map(|cell| cell.cell.x.as_ref()).map(|axis| axis.value);
    let wide = values().fold(0.0, f64::max) / values().fold(f64::INFINITY, f64::min) > 20.0;
    let axis = if wide { XAxis::Log } else { XAxis::Values };
    lines::draw(&all, &Frame { heading: &heading, x_title, y_title: &cell.unit, absent }, axis)
}

/// One chart for every engine with intervals, with its column, all with the same axes; and those
/// without, in words.
pub(crate) fn courses(
    suite: &Suite<'_>,
    cell: &CellView<'_>,
) -> (Vec<(usize, Chart)>, Vec<String>) {
    let mut absent = Vec::new();
    let mut courses = Vec::new();
    let mut columns = Vec::new();
    for (column, outcome) in cell.outcomes.iter().enumerate() {
        let pen = pen(suite, column, cell.cell);
        match outcome.figures().filter(|figures| !figures.series.is_empty()) {
            Some(figures) => {
                columns.push(column);
                courses.push(Course::new(pen, figures.series.iter().map(step).collect()));
            }
            None => absent.push(format!("{}: {}", pen.title, why(outcome))),
        }
    }
    let shared = Shared::of(&courses);
    let charts = courses.iter().map(|course| series::draw(course, shared));
    (columns.into_iter().zip(charts).collect(), absent)
}

fn step(interval: &Interval) -> Step {
    Step {
        second: interval.second,
        ops: interval.ops as f64,
        latencies: [
            interval.mean_us,
            interval.p95_us,
            interval.p99_us,
            interval.p999_us,
            interval.max_us,
        ],
    }
}

/// For every benchmark of a settings section its name and a chart with a group for every setting.
pub(crate) fn settings(suite: &Suite<'_>, section: &SectionView<'_>) -> Vec<(String, Chart)> {
    let mut benchmarks: Vec<&str> = Vec::new();
    for cell in &section.cells {
        if !benchmarks.contains(&cell.cell.benchmark.as_str()) {
            benchmarks.push(&cell.cell.benchmark);
        }
    }
    let chart = |benchmark: &str| {
        let cells = || section.cells.iter().filter(|cell| cell.cell.benchmark == benchmark);
        let groups: Vec<groups::Group> = cells().map(|cell| group(suite, cell)).collect();
        let first = cells().next().map(|cell| cell.cell);
        let (heading, unit) = first.map_or((benchmark, ""), |cell| (&cell.label, &cell.unit));
        let note = format!("{unit}, p99 latency beside it");
        (format!("{benchmark}-settings"), groups::draw(&groups, heading, &note, 420.0))
    };
    benchmarks.into_iter().map(chart).collect()
}

fn group(suite: &Suite<'_>, cell: &CellView<'_>) -> groups::Group {
    let label = setting_name(cell.cell);
    let bars = cell.outcomes.iter().enumerate().filter(|(column, _)| suite.columns[*column].ran());
    let bars = bars.map(|(column, outcome)| {
        let pen = pen(suite, column, cell.cell);
        match outcome {
            Outcome::Figures(figures) => groups::GroupBar {
                value: bars::Value::Figure {
                    value: figures.rate.middle,
                    rounds: rounds(figures),
                    text: number::si(figures.rate.middle),
                },
                beside: figures.latency(99.0).map_or(String::new(), number::duration_us),
                tip: Tip::Figure {
                    cell: cell.number,
                    words: tip(&format!("{}, {label}", pen.title), &cell.cell.unit, figures),
                },
                pen,
            },
            Outcome::Absent { word, reason } => groups::GroupBar {
                value: bars::Value::Nothing(format!("{word}: {reason}")),
                beside: String::new(),
                tip: Tip::Figure {
                    cell: cell.number,
                    words: format!("{}, {label}: {word}: {reason}", pen.title),
                },
                pen,
            },
        }
    });
    groups::Group { bars: bars.collect(), label }
}

/// Where a cell of a sweep stands, in words.
pub(crate) fn x_name(cell: &Cell) -> String {
    let words = |axis: &Axis| format!("{} {}", number::thousands(axis.value), axis.name);
    cell.x.as_ref().map(words).unwrap_or_default()
}

/// The setting of a cell in words.
pub(crate) fn setting_name(cell: &Cell) -> String {
    let setting = cell.setting.clone().unwrap_or_else(|| "defaults".to_owned());
    match &cell.x {
        Some(axis) => format!("{setting} · {} {}", number::thousands(axis.value), axis.name),
        None => setting,
    }
}

/// Whether a cell of a section is drawn as bars.
pub(crate) fn is_barred(section: &SectionView<'_>, cell: &CellView<'_>) -> bool {
    match section.section.chart {
        Kind::Bars | Kind::Series => true,
        Kind::Threads => cell.cell.x.is_none(),
        Kind::Settings => false,
    }
}
