//! The tables that stand in the page, as rows of cells. What a reader points at in them and the
//! tables of all figures are made by the page's script (`dataset`), which also finds what a cell is
//! about by its place: its row's engine, its column's cell or section.
//!
//! Invariants:
//! 1. Every row of a table has as many cells as the table has columns, spans counted.
//! 2. A cell without a figure says why.

use serde::Serialize;

use super::figures::cell_name;
use super::model::{CellView, Column, Figures, Outcome, SectionView, Suite};
use super::number;
use super::ratios::Tally;

/// A table.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Table {
    caption: String,
    /// The place of the section that it is of.
    section: Option<usize>,
    /// Whether it has means that follow the choice of engines.
    means: bool,
    /// The column whose row is shown for another reference only: Terrace's own.
    own: Option<usize>,
    head: Vec<Head>,
    pub(crate) rows: Vec<Vec<Item>>,
}

/// The head of a column.
#[derive(Debug, Serialize)]
struct Head {
    text: String,
    tip: String,
    /// Whether it holds figures, which stand to the right.
    figures: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Item {
    text: String,
    /// Below the text, smaller.
    under: String,
    tip: String,
    class: &'static str,
    /// Columns that it takes.
    span: usize,
    /// Whether it names its row.
    head: bool,
    /// The engine's colour, as a class.
    swatch: Option<String>,
    /// The column that its row is about.
    column: Option<usize>,
    /// Ratios below the text that follow the reference, before what else stands there, and whether
    /// they are below 1.
    below: Vec<(String, bool)>,
}

impl Item {
    pub(crate) fn text(text: impl Into<String>) -> Item {
        Item { text: text.into(), span: 1, ..Item::default() }
    }

    fn head(self) -> Item {
        Item { head: true, ..self }
    }

    fn nothing() -> Item {
        Item { class: "nil", ..Item::text(number::NONE) }
    }

    fn ratio(ratio: Option<f64>) -> Item {
        let Some(ratio) = ratio else { return Item::nothing() };
        let class = if ratio < 1.0 { "bad" } else { "" };
        Item { class, ..Item::text(number::ratio(ratio)) }
    }

    fn under(self, under: impl Into<String>) -> Item {
        Item { under: under.into(), ..self }
    }

    fn tip(self, tip: impl Into<String>) -> Item {
        Item { tip: tip.into(), ..self }
    }

    /// The name of a column's engine, with its colour and marks.
    fn engine(at: usize, column: &Column<'_>) -> Item {
        let mark = if column.engine.weaker.is_some() { " †" } else { "" };
        Item {
            column: Some(at),
            swatch: Some(format!("c{}", column.slot)),
            ..Item::text(format!("{}{mark}", column.title))
        }
        .head()
    }

    /// A mean and how many cells are led.
    fn tally(tally: &Tally) -> Item {
        let item = Item::ratio(tally.mean);
        match tally.compared() {
            0 => item,
            compared => item.under(format!("{}/{compared}", tally.led)),
        }
    }
}

impl Table {
    fn new(caption: impl Into<String>, head: &[(&str, &str)]) -> Table {
        let mut table = Table { caption: caption.into(), ..Table::default() };
        for (at, (text, tip)) in head.iter().enumerate() {
            table.column(*text, *tip, at > 0);
        }
        table
    }

    fn column(&mut self, text: impl Into<String>, tip: impl Into<String>, figures: bool) {
        self.head.push(Head { text: text.into(), tip: tip.into(), figures });
    }
}

/// Engines against sections: means of ratios.
pub(crate) fn ratios(suite: &Suite<'_>) -> Table {
    let caption =
        "Terrace ÷ engine: geometric mean over the cells, and in how many of them it is 1 or more";
    let head = [
        ("Engine", ""),
        ("All", "all sections"),
        ("Writes with debt", "cells that put work off, the time for it included on both sides"),
    ];
    let mut table = Table { means: true, own: suite.terrace(), ..Table::new(caption, &head) };
    for section in &suite.sections {
        table.column(&section.section.title, &section.section.description, true);
    }
    let mut best = vec![
        Item { class: "strong", ..Item::text("Best of the rest").head() }
            .tip("in each cell the fastest other engine that promises as much as was asked for"),
        Item::tally(&suite.tally()),
        Item::tally(&suite.debt_tallies().0),
    ];
    best.extend(suite.sections.iter().map(|section| Item::tally(&suite.section_tally(section))));
    table.rows.push(best);
    for (at, column) in suite.columns.iter().enumerate() {
        let reason = column.engine.missing.as_ref().or(column.engine.disqualified.as_ref());
        if let Some(reason) = reason {
            let span = table.head.len() - 1;
            let item = Item { span, class: "none", ..Item::text(format!("not run: {reason}")) };
            table.rows.push(vec![Item::engine(at, column), item]);
            continue;
        }
        let mut row = vec![
            Item::engine(at, column),
            Item::tally(&suite.column_tally(at)),
            Item::tally(&suite.column_debt_tally(at)),
        ];
        row.extend(suite.sections.iter().map(|section| {
            let ratios = section.cells.iter().map(|cell| suite.ratio(cell, at));
            Item::tally(&Tally::of(ratios))
        }));
        table.rows.push(row);
    }
    table
}

/// The cells that Terrace does not lead; none if there are none.
pub(crate) fn below(suite: &Suite<'_>) -> Option<Table> {
    let head = [
        ("Workload", ""),
        ("Ratio", "Terrace ÷ the best of the rest"),
        ("Terrace", ""),
        ("Best of the rest", ""),
    ];
    let mut table = Table::new("Cells in which an engine is faster that promises as much", &head);
    for (section, cell) in suite.cells() {
        let Some(against) = suite.against_best(cell).filter(|against| against.ratio < 1.0) else {
            continue;
        };
        let best = &suite.columns[against.column];
        let close = if against.is_close() { "the ranges of the rounds overlap" } else { "" };
        table.rows.push(vec![
            Item::text(cell_name(cell.cell)).under(&section.section.title).head(),
            Item::ratio(Some(against.ratio)).under(close),
            Item::text(number::precise(against.terrace.middle)),
            Item::text(number::precise(against.best.middle)).under(&best.title),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Engines against the cells of a section, which stands at a place of the suite.
pub(crate) fn overview(suite: &Suite<'_>, place: usize, section: &SectionView<'_>) -> Table {
    let units: Vec<&str> = section.cells.iter().map(|cell| cell.cell.unit.as_str()).collect();
    let unit =
        units.first().copied().filter(|unit| units.iter().all(|u| u == unit)).unwrap_or("op/s");
    let compared = |cell, column| suite.against_baseline(section, cell, column).is_some();
    let columns = || 0..suite.columns.len();
    let varies = section.cells.iter().any(|cell| columns().any(|column| compared(cell, column)));
    let baseline = if varies {
        "; baseline: the rate ÷ the same engine’s in the experiment that this one varies"
    } else {
        ""
    };
    let device = if section.cells.iter().any(reads_device) {
        "; what the storage device read and wrote for an operation"
    } else {
        ""
    };
    let mut table = Table::new(
        format!(
            "{unit}, and Terrace ÷ engine below, of writes also with the time for their debt{baseline}{device}; a spread above 10% is shown as ± of the figure; * has a remark under All figures"
        ),
        &[("Engine", "")],
    );
    table.section = Some(place);
    for cell in &section.cells {
        table.column(cell_name(cell.cell), &cell.cell.benchmark, true);
    }
    for (at, column) in suite.columns.iter().enumerate() {
        let mut row = vec![Item::engine(at, column)];
        match same_gap(section, at) {
            Some(words) => {
                let span = section.cells.len();
                row.push(Item { span, class: "none", ..Item::text(words) });
            }
            None => {
                let item = |cell| overview_item(suite, section, cell, at);
                row.extend(section.cells.iter().map(item));
            }
        }
        table.rows.push(row);
    }
    table
}

/// Why a column has no figure in a whole section, if it is the same everywhere.
fn same_gap(section: &SectionView<'_>, column: usize) -> Option<String> {
    let words = |cell: &CellView<'_>| match &cell.outcomes[column] {
        Outcome::Figures(_) => None,
        Outcome::Absent { word, reason } => Some(format!("{word}: {reason}")),
    };
    let first = words(section.cells.first()?)?;
    section.cells.iter().all(|cell| words(cell).as_ref() == Some(&first)).then_some(first)
}

fn overview_item(
    suite: &Suite<'_>,
    section: &SectionView<'_>,
    cell: &CellView<'_>,
    column: usize,
) -> Item {
    let figures = match &cell.outcomes[column] {
        Outcome::Figures(figures) => figures,
        Outcome::Absent { word, reason } => {
            return Item { class: "none", ..Item::text(*word) }.under(shortened(reason));
        }
    };
    if cell.cell.paced {
        let us = |percentile| figures.latency(percentile).unwrap_or_default();
        let rarest = format!("p99.9 {}", number::duration_us(us(99.9)));
        return Item::text(number::duration_us(us(99.0)))
            .under(super::figures::marked(rarest, figures));
    }
    let mut item = Item::text(number::precise(figures.rate.middle));
    if !suite.columns[column].is_terrace() {
        let ratios =
            [("", suite.against(cell, column)), ("debt ", suite.against_with_debt(cell, column))];
        item.below = ratios
            .into_iter()
            .filter_map(|(word, ratio)| Some((word, ratio?)))
            .map(|(word, ratio)| (format!("{word}{}", number::ratio(ratio)), ratio < 1.0))
            .collect();
    }
    let spread = figures.rate.is_notable().then(|| number::percent(figures.rate.spread / 2.0));
    let spread = spread.map(|half| format!("±{half}"));
    let baseline = suite.against_baseline(section, cell, column);
    let baseline = baseline
        .map(|ratio| format!("baseline {}", super::figures::baseline_ratio(ratio, figures)));
    let mark = figures.mark().map(str::to_owned);
    let device = device_per_op(cell, figures);
    let under: Vec<String> = baseline.into_iter().chain(spread).chain(mark).chain(device).collect();
    item.under(under.join(" "))
}

/// Whether an engine had the storage device read at least a byte for an operation.
fn reads_device(cell: &CellView<'_>) -> bool {
    cell.outcomes.iter().filter_map(Outcome::figures).any(|figures| figures.per_op.read >= 1.0)
}

/// What the storage device read and wrote for an operation, where it had to read, or where its
/// requests are counted.
fn device_per_op(cell: &CellView<'_>, figures: &Figures) -> Option<String> {
    let reads = figures.per_op.reads_in_words().filter(|_| reads_device(cell));
    let writes = figures.per_op.writes_in_words().filter(|_| cell.cell.writes);
    let said: Vec<String> = reads
        .map(|words| format!("device read {words}/op"))
        .into_iter()
        .chain(writes.map(|words| format!("device wrote {words}/op")))
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// The beginning of a long reason; the whole stands in the table of all figures.
fn shortened(reason: &str) -> String {
    const MOST: usize = 60;
    if reason.chars().count() <= MOST {
        return reason.to_owned();
    }
    format!("{}…", reason.chars().take(MOST).collect::<String>().trim_end())
}

/// For a settings section: every setting against the first of the same benchmark, engine by engine.
pub(crate) fn against_defaults(suite: &Suite<'_>, section: &SectionView<'_>) -> Table {
    let mut table = Table::new(
        "Each setting ÷ the first one of the same workload and engine: rate, and p99 latency below",
        &[("Setting", "")],
    );
    let mut settings: Vec<String> = Vec::new();
    let mut benchmarks: Vec<&str> = Vec::new();
    for cell in &section.cells {
        let name = super::figures::setting_name(cell.cell);
        if !settings.contains(&name) {
            settings.push(name);
        }
        if !benchmarks.contains(&cell.cell.benchmark.as_str()) {
            benchmarks.push(&cell.cell.benchmark);
        }
    }
    let columns: Vec<usize> =
        (0..suite.columns.len()).filter(|column| suite.columns[*column].ran()).collect();
    let find = |benchmark: &str, setting: Option<&String>| {
        section.cells.iter().find(|cell| {
            cell.cell.benchmark == benchmark
                && setting.is_none_or(|s| *s == super::figures::setting_name(cell.cell))
        })
    };
    for benchmark in &benchmarks {
        let label = find(benchmark, None).map_or(*benchmark, |cell| cell.cell.label.as_str());
        for column in &columns {
            table.column(format!("{label}, {}", suite.columns[*column].title), *benchmark, true);
        }
    }
    for setting in &settings {
        let mut row = vec![Item::text(setting.clone()).head()];
        for benchmark in &benchmarks {
            let (cell, base) = (find(benchmark, Some(setting)), find(benchmark, None));
            row.extend(columns.iter().map(|column| setting_item(cell, base, *column)));
        }
        table.rows.push(row);
    }
    table
}

fn setting_item(cell: Option<&CellView<'_>>, base: Option<&CellView<'_>>, column: usize) -> Item {
    let figures = |cell: Option<&CellView<'_>>| {
        cell.and_then(|cell| cell.outcomes[column].figures().map(summary))
    };
    let Some(cell) = cell else { return Item::nothing().tip("not measured with this setting") };
    if let Outcome::Absent { word, reason } = &cell.outcomes[column] {
        return Item { class: "none", ..Item::text(*word) }.tip(reason.clone());
    }
    match (figures(Some(cell)), figures(base)) {
        (Some((rate, p99)), Some((base, base_p99))) if base > 0.0 => {
            let item = Item::ratio(Some(rate / base));
            let latency =
                p99.zip(base_p99).map(|(p99, base)| format!("p99 {}", number::ratio(p99 / base)));
            item.under(latency.unwrap_or_default()).tip(format!("{} op/s", number::precise(rate)))
        }
        _ => Item::nothing().tip("the first setting has no figure"),
    }
}

fn summary(figures: &Figures) -> (f64, Option<f64>) {
    (figures.rate.middle, figures.latency(99.0))
}
