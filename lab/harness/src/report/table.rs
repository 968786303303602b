//! The tables of the page, as rows of cells with what they show and what they are sorted by.
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
    /// The column whose row is shown for another baseline only: Terrace's own.
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
    /// The sort key, if not the text.
    sort: Option<String>,
    /// Columns that it takes.
    span: usize,
    /// Whether it names its row.
    head: bool,
    /// The engine's colour, as a class.
    swatch: Option<String>,
    /// The column that its row is about.
    column: Option<usize>,
    /// What it is if it follows the baseline: `ratio` or `debt` of a cell, `mean` of a section, or
    /// of all of them.
    follows: Option<(&'static str, Option<usize>)>,
    /// Ratios below the text that follow the baseline, before what else stands there.
    below: Vec<Below>,
}

/// A ratio of a cell below another figure.
#[derive(Clone, Debug, Serialize)]
struct Below {
    kind: &'static str,
    cell: usize,
    text: String,
    /// Whether it is below 1.
    bad: bool,
}

impl Item {
    pub(crate) fn text(text: impl Into<String>) -> Item {
        Item { text: text.into(), span: 1, ..Item::default() }
    }

    fn figure(value: f64, text: String) -> Item {
        Item { sort: Some(format!("{value:.6e}")), class: "figure", ..Item::text(text) }
    }

    fn head(self) -> Item {
        Item { head: true, ..self }
    }

    fn nothing() -> Item {
        Item { class: "figure none", ..Item::text(number::NONE) }
    }

    fn ratio(ratio: Option<f64>) -> Item {
        let Some(ratio) = ratio else { return Item::nothing() };
        let class = if ratio < 1.0 { "figure bad" } else { "figure" };
        Item { class, ..Item::figure(ratio, number::ratio(ratio)) }
    }

    fn under(self, under: impl Into<String>) -> Item {
        Item { under: under.into(), ..self }
    }

    fn tip(self, tip: impl Into<String>) -> Item {
        Item { tip: tip.into(), ..self }
    }

    fn follows(self, kind: &'static str, place: Option<usize>) -> Item {
        Item { follows: Some((kind, place)), ..self }
    }

    /// The name of a column's engine, with its colour and marks.
    fn engine(at: usize, column: &Column<'_>) -> Item {
        let mark = if column.engine.weaker.is_some() { " †" } else { "" };
        Item {
            column: Some(at),
            swatch: Some(format!("c{}", column.slot)),
            tip: column.engine.weaker.clone().unwrap_or_default(),
            ..Item::text(format!("{}{mark}", column.title))
        }
        .head()
    }

    /// A mean and how many cells are led.
    fn tally(tally: &Tally) -> Item {
        let item = Item::ratio(tally.mean);
        if tally.compared() == 0 {
            return item.tip("no cell that both have done to the end");
        }
        let span = |ratio: Option<f64>| ratio.map_or(number::NONE.to_owned(), number::ratio);
        item.under(format!("{}/{}", tally.led, tally.compared())).tip(format!(
            "geometric mean of {} cells from {} to {}; {} led; {} cut short; {} without a comparison",
            tally.compared(),
            span(tally.worst),
            span(tally.best),
            tally.led,
            tally.cut,
            tally.without
        ))
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
        Item::tally(&suite.tally()).follows("mean", None),
        Item::tally(&suite.debt_tallies().0).follows("debts", None),
    ];
    best.extend(
        suite.sections.iter().enumerate().map(|(at, section)| {
            Item::tally(&suite.section_tally(section)).follows("mean", Some(at))
        }),
    );
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
            Item::tally(&suite.column_tally(at)).follows("mean", None),
            Item::tally(&suite.column_debt_tally(at)).follows("debts", None),
        ];
        row.extend(suite.sections.iter().enumerate().map(|(place, section)| {
            let ratios = section.cells.iter().map(|cell| suite.ratio(cell, at));
            Item::tally(&Tally::of(ratios)).follows("mean", Some(place))
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
            Item::figure(against.terrace.middle, number::precise(against.terrace.middle)),
            Item::figure(against.best.middle, number::precise(against.best.middle))
                .under(&best.title),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Engines against the cells of a section, which stands at a place of the suite.
pub(crate) fn overview(suite: &Suite<'_>, place: usize, section: &SectionView<'_>) -> Table {
    let units: Vec<&str> = section.cells.iter().map(|cell| cell.cell.unit.as_str()).collect();
    let unit =
        units.first().copied().filter(|unit| units.iter().all(|u| u == unit)).unwrap_or("op/s");
    let mut table = Table::new(
        format!(
            "{unit}, and Terrace ÷ engine below, of writes also with the time for their debt; a spread above 10% is shown as ± of the figure; * has a remark under All figures"
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
            None => row.extend(
                (0..section.cells.len()).map(|cell| overview_item(suite, section, cell, at)),
            ),
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
    place: usize,
    column: usize,
) -> Item {
    let cell = &section.cells[place];
    let figures = match &cell.outcomes[column] {
        Outcome::Figures(figures) => figures,
        Outcome::Absent { word, reason } => {
            return Item { class: "none", ..Item::text(*word) }
                .under(shortened(reason))
                .tip(reason.clone());
        }
    };
    if cell.cell.paced {
        let us = |percentile| figures.latency(percentile).unwrap_or_default();
        let tip = super::figures::tip(&suite.columns[column].title, "op/s", figures);
        let rarest = format!("p99.9 {}", number::duration_us(us(99.9)));
        return Item::figure(us(99.0), number::duration_us(us(99.0)))
            .under(super::figures::marked(rarest, figures))
            .tip(tip);
    }
    let mut item = Item::figure(figures.rate.middle, number::precise(figures.rate.middle));
    let mut under = Vec::new();
    let terrace = suite.columns[column].is_terrace();
    let ratio = suite.against(cell, column).filter(|_| !terrace);
    // Terrace has none, but for another baseline.
    let mut below = |kind, ratio: Option<f64>, words: &str| {
        let text = ratio.map_or_else(String::new, |ratio| words.to_owned() + &number::ratio(ratio));
        let bad = ratio.is_some_and(|ratio| ratio < 1.0);
        item.below.push(Below { kind, cell: place, text, bad });
    };
    below("ratio", ratio, "");
    if figures.rate_with_debt.is_some() {
        below("debt", suite.against_with_debt(cell, column).filter(|_| !terrace), "debt ");
    }
    if figures.rate.is_notable() {
        under.push(format!("±{}", number::percent(figures.rate.spread / 2.0)));
    }
    under.extend(figures.mark().map(str::to_owned));
    let tip = super::figures::tip(&suite.columns[column].title, &cell.cell.unit, figures);
    item.under(under.join(" ")).tip(tip)
}

/// The beginning of a long reason; the whole stands in the table of all figures.
fn shortened(reason: &str) -> String {
    const MOST: usize = 60;
    if reason.chars().count() <= MOST {
        return reason.to_owned();
    }
    format!("{}…", reason.chars().take(MOST).collect::<String>().trim_end())
}

/// Every figure of a section: a row for each cell and engine.
pub(crate) fn details(suite: &Suite<'_>, place: usize, section: &SectionView<'_>) -> Table {
    let head = [
        ("Engine", ""),
        ("Workload", ""),
        ("Rate", "operations a second: the figure of the cell"),
        ("Lowest", "of all rounds"),
        ("Highest", "of all rounds"),
        ("Spread", "(highest − lowest) ÷ median; above 10% it is marked"),
        ("Terrace ÷", "Terrace's rate divided by this one"),
        ("With debt", "the same, the time for the work that writes put off included on both sides"),
        ("ns/op", "wall time × threads ÷ operations"),
        ("p50", "median latency"),
        ("p99", "99 in 100 operations are not slower"),
        ("p99.9", "999 in 1,000 operations are not slower"),
        ("Max", "the slowest operation"),
        ("CPU", "user and system time of all threads, background threads included"),
        ("Written", "bytes written to files"),
        ("Read", "bytes that the storage device had to read; none where the page cache had them"),
        ("Memory", "the most memory resident"),
        ("On disk", "what the database's files occupy"),
        ("Debt", "time for the work that the writes put off, done afterwards"),
        ("Debt written", "bytes written for that"),
        ("Remarks", ""),
    ];
    let mut table = Table::new("All figures of this section", &head);
    table.section = Some(place);
    for (at, figures) in [(1, false), (head.len() - 1, false)] {
        table.head[at].figures = figures;
    }
    for (cell_place, cell) in section.cells.iter().enumerate() {
        for (at, column) in suite.columns.iter().enumerate() {
            let mut row = vec![
                Item::engine(at, column),
                Item { class: "words", ..Item::text(cell_name(cell.cell)) },
            ];
            match &cell.outcomes[at] {
                Outcome::Figures(figures) => {
                    let ratio = suite.against(cell, at).filter(|_| !column.is_terrace());
                    let debt = suite.against_with_debt(cell, at).filter(|_| !column.is_terrace());
                    let mut items = detail_items(figures);
                    let ratio = Item::ratio(ratio).follows("ratio", Some(cell_place));
                    let debt = Item::ratio(debt).follows("debt", Some(cell_place));
                    items.splice(RATIOS..RATIOS, [ratio, debt]);
                    row.extend(items);
                }
                Outcome::Absent { word, reason } => {
                    let span = head.len() - 2;
                    row.push(Item {
                        span,
                        class: "none",
                        ..Item::text(format!("{word}: {reason}"))
                    });
                }
            }
            table.rows.push(row);
        }
    }
    table
}

/// Where the ratios stand among the items of a row of details.
const RATIOS: usize = 4;

/// A row of details but for its ratios.
fn detail_items(figures: &Figures) -> Vec<Item> {
    let rate = &figures.rate;
    let number = |value: f64| Item::figure(value, number::precise(value));
    let latency = |percentile| match figures.latency(percentile) {
        Some(us) => Item::figure(us, number::duration_us(us)),
        None => Item::nothing(),
    };
    let bytes = |value: f64| Item::figure(value, number::bytes(value));
    let seconds = |value: f64| Item::figure(value, number::duration_us(value * 1e6));
    let spread = match rate.rounds {
        0 | 1 => Item::nothing().tip("one round only"),
        _ => Item::figure(rate.spread, number::percent(rate.spread)),
    };
    let notable = if rate.is_notable() { Item { class: "figure mark", ..spread } } else { spread };
    let mut remarks = figures.remarks.clone();
    remarks.extend(
        figures
            .writer_rate
            .map(|rate| format!("the writer beside it: {} op/s", number::precise(rate))),
    );
    let debt = |item: Option<Item>| item.unwrap_or_else(Item::nothing);
    vec![
        number(rate.middle),
        number(rate.min),
        number(rate.max),
        notable,
        number(figures.ns_per_op),
        latency(50.0),
        latency(99.0),
        latency(99.9),
        latency(100.0),
        seconds(figures.cpu_seconds),
        bytes(figures.bytes_written),
        bytes(figures.bytes_read),
        bytes(figures.peak_memory),
        bytes(figures.disk_bytes),
        debt(figures.debt.map(|(time, _)| seconds(time))),
        debt(figures.debt.map(|(_, written)| bytes(written))),
        Item { class: "remark", ..Item::text(remarks.join("; ")) },
    ]
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
