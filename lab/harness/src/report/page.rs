//! The page: everything that `assets/report.html` shows, as plain data, and the template filled
//! with it.
//!
//! Invariants:
//! 1. The template is the only place that turns text into HTML; what is marked `safe` there are
//!    charts and our own assets.
//! 2. Anchors are names: the suite's, the section's id, the benchmark or the engine's id. A link
//!    into a report holds for the next one.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use crate::run::{Chart as Kind, Run};

use super::chart::summary::{self, Layout};
use super::figures::{self, Figure, Gallery, cell_name, file_stem, slugs};
use super::model::{CellView, Figures, SectionView, Suite};
use super::pack::pack;
use super::ratios::Ratio;
use super::svg::{Tip, escape};
use super::table::{self, Table};
use super::{dataset, number, palette, words};

const TEMPLATE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
const CHART_STYLE: &str = include_str!("../../assets/chart.css");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// Around a part that is packed.
const START: &str = "<!--pack-->";
const END: &str = "<!--packed-->";

/// The width of a chart of this run, and of the one beside it with published figures.
const NOW: f64 = 400.0;
const THEN: f64 = 280.0;

#[derive(Debug, Serialize)]
struct Page<'a> {
    title: String,
    light: String,
    dark: String,
    style: &'a str,
    script: &'a str,
    /// Whether the suites are of several machines.
    machines: bool,
    suites: Vec<SuitePart<'a>>,
}

#[derive(Debug, Serialize)]
struct SuitePart<'a> {
    anchor: String,
    run: &'a Run,
    headline: String,
    with_debt: Option<String>,
    caveats: Vec<(&'static str, String)>,
    /// Whether there is anything to choose from.
    choosable: bool,
    /// Figures and charts for the script.
    packed: String,
    method: String,
    lasted: String,
    memory: String,
    costs: String,
    /// Figures of the summary: value, what it is, whether it is a bad one.
    tiles: Vec<(String, String, bool)>,
    chart: Option<Figure>,
    /// The same for narrow screens; drawn by a script.
    narrow_chart: Option<Figure>,
    ratios: Option<Table>,
    below: Option<Table>,
    sections: Vec<SectionPart<'a>>,
    engines: Vec<EnginePart<'a>>,
    raw: &'a [String],
}

#[derive(Debug, Serialize)]
struct EnginePart<'a> {
    #[serde(flatten)]
    engine: &'a crate::run::Engine,
    anchor: String,
    column_title: &'a str,
    swatch: String,
    ran: bool,
}

#[derive(Debug, Serialize)]
struct SectionPart<'a> {
    anchor: String,
    title: &'a str,
    description: &'a str,
    settings: Vec<(String, String)>,
    durabilities: Vec<&'static str>,
    /// The same in a word each, for the script.
    asked: String,
    weaker: Vec<(&'a str, &'a str)>,
    tally: Option<String>,
    behind: bool,
    cards: Vec<Card>,
    /// Whether any card has published figures.
    has_then: bool,
    charts: Vec<Figure>,
    sentences: Vec<String>,
    against_defaults: Option<Table>,
    series: Vec<SeriesPart>,
    overview: Table,
    curves: Vec<Figure>,
}

/// A cell drawn as bars.
#[derive(Debug, Serialize)]
struct Card {
    anchor: String,
    then: Option<Figure>,
    then_notes: Vec<String>,
    now: Figure,
    ratio: Option<String>,
    led: bool,
    /// Whether the ratio counts in no mean.
    cut: bool,
    verdict: String,
    with_debt: Option<String>,
    weaker: Option<String>,
    /// Whose costs stand beside the chart, and the costs: what, and of whom how much.
    cost_names: Vec<String>,
    costs: Vec<(&'static str, Vec<String>)>,
}

#[derive(Debug, Serialize)]
struct SeriesPart {
    title: String,
    charts: Vec<Figure>,
    absent: Vec<String>,
}

/// The page of some suites; their charts go into the gallery.
pub(crate) fn render(
    suites: &[Suite<'_>],
    links: &[Vec<String>],
    gallery: &mut Gallery,
) -> Result<String, String> {
    let parts = suites.iter().zip(links);
    let parts = parts.map(|(suite, raw)| suite_part(suite, raw, suites.len() > 1, gallery));
    let titles: Vec<&str> = suites.iter().map(|suite| suite.run.suite.as_str()).collect();
    let style = format!("{}{CHART_STYLE}{STYLE}", palette::slot_rules());
    let page = Page {
        title: format!("Terrace's lab: {}", titles.join(", ")),
        light: palette::declarations(false),
        dark: palette::declarations(true),
        style: &style,
        script: SCRIPT,
        machines: suites
            .windows(2)
            .any(|pair| pair[0].run.machine.is_another(&pair[1].run.machine)),
        suites: parts.collect(),
    };
    let page = fill_in(&page).map_err(|e| format!("the report's template: {e:#}"))?;
    Ok(packed_articles(&page))
}

/// The page with each part between the template's marks packed, which a script puts back: a page of
/// several suites has all but their first sentences so. The marks are comments, which no data can
/// be.
fn packed_articles(page: &str) -> String {
    let mut parts = page.split(START);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (article, rest) = part.split_once(END).unwrap_or((part, ""));
        let packed = pack(article);
        out.push_str(&format!("<script type=\"text/plain\" class=\"article\">{packed}</script>"));
        out.push_str(rest);
    }
    out
}

fn fill_in(page: &Page<'_>) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    // The same escapes as in charts; the default would also turn every slash of an address into a
    // number.
    environment.set_formatter(|out, _, value| {
        let text = value.to_string();
        let text = if value.is_safe() { text } else { escape(&text) };
        Ok(out.write_str(&text)?)
    });
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template("report.html", TEMPLATE)?;
    environment.get_template("report.html")?.render(Serde(page))
}

fn suite_part<'a>(
    suite: &'a Suite<'a>,
    raw: &'a [String],
    several: bool,
    gallery: &mut Gallery,
) -> SuitePart<'a> {
    let prefix = if several { format!("{}-", suite.run.suite) } else { String::new() };
    let rows = summary_rows(suite);
    let summary = |layout| Some(summary::draw(rows.as_ref()?, &summary_words(suite), layout));
    let chart = summary(Layout::Beside)
        .map(|chart| gallery.add(&format!("{prefix}summary"), "Summary", &chart).drawn(&chart));
    let narrow_chart = summary(Layout::Below)
        .map(|chart| gallery.add_packed(&format!("{prefix}summary-narrow"), "Summary", &chart));
    let compared = suite.terrace().is_some() && suite.columns.len() > 1;
    let sections: Vec<SectionPart<'a>> = (0..suite.sections.len())
        .map(|place| section_part(suite, place, &prefix, gallery))
        .collect();
    SuitePart {
        anchor: suite.run.suite.clone(),
        run: suite.run,
        headline: words::headline(suite, &suite.tally()),
        with_debt: words::with_debt(suite),
        caveats: words::caveats(suite, false),
        choosable: suite.columns.iter().filter(|column| column.ran()).count() > 1,
        packed: pack(&dataset::json(suite, std::mem::take(&mut gallery.elements))),
        method: words::method(suite.run),
        lasted: number::span(suite.run.seconds),
        memory: format!("{} MiB", number::thousands(suite.run.machine.memory_mib as f64)),
        costs: suite.run.machine.costs.map(|costs| costs.in_words()).unwrap_or_default(),
        tiles: tiles(suite),
        chart,
        narrow_chart,
        ratios: compared.then(|| table::ratios(suite)),
        below: table::below(suite),
        sections,
        engines: suite
            .columns
            .iter()
            .map(|column| EnginePart {
                engine: column.engine,
                anchor: format!("{}-engine-{}", suite.run.suite, file_stem(&column.engine.id)),
                ran: column.ran(),
                column_title: &column.title,
                swatch: format!("c{}", column.slot),
            })
            .collect(),
        raw,
    }
}

fn tiles(suite: &Suite<'_>) -> Vec<(String, String, bool)> {
    let tally = suite.tally();
    let (Some(mean), Some(worst), Some(best)) = (tally.mean, tally.worst, tally.best) else {
        return Vec::new();
    };
    let below = |ratio: f64| ratio < 1.0;
    vec![
        (
            number::ratio(mean),
            "geometric mean against the best of the rest".to_owned(),
            below(mean),
        ),
        (format!("{} of {}", tally.led, tally.compared()), "cells led".to_owned(), false),
        (tally.not_led.to_string(), "cells not led".to_owned(), tally.not_led > 0),
        (number::ratio(worst), "worst cell".to_owned(), below(worst)),
        (number::ratio(best), "best cell".to_owned(), below(best)),
    ]
}

/// Terrace against everyone: engines that promise as much first, the strongest of each kind first.
fn summary_rows(suite: &Suite<'_>) -> Option<Vec<summary::Row>> {
    suite.terrace()?;
    let mut first = [Vec::new(), Vec::new()];
    for (section, cell) in suite.cells() {
        let Some(against) = suite.against_best(cell) else { continue };
        let engine = suite.columns[against.column].title.as_str();
        first[panel_of(cell)].push(dot(section, cell, against.as_ratio(), Some(engine)));
    }
    if first.iter().all(Vec::is_empty) {
        return None;
    }
    let mut rows: Vec<summary::Row> = suite
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| !column.engine.is_terrace())
        .filter_map(|(at, _)| summary_row(suite, at))
        .collect();
    let strength = |row: &summary::Row| {
        crate::run::geometric_mean(row.panels.iter().filter_map(|panel| panel.mean))
    };
    let order = |row: &summary::Row| strength(row).unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| a.weaker.cmp(&b.weaker).then(order(a).total_cmp(&order(b))));
    let best = summary::Row {
        title: "The best of the rest".to_owned(),
        column: None,
        slot: None,
        weaker: false,
        panels: first.map(panel),
    };
    rows.insert(0, best);
    Some(rows)
}

/// The panel of a cell: what writes, or what only reads.
fn panel_of(cell: &CellView<'_>) -> usize {
    usize::from(!cell.cell.writes)
}

fn dot(
    section: &SectionView<'_>,
    cell: &CellView<'_>,
    ratio: Ratio,
    engine: Option<&str>,
) -> (Ratio, Tip) {
    let engine = engine.map_or_else(String::new, |engine| format!(" {engine}"));
    let cut = if ratio.cut { ", cut short, in no mean" } else { "" };
    let (title, name) = (&section.section.title, cell_name(cell.cell));
    let words = format!("{title}, {name}: {}{engine}{cut}", number::ratio(ratio.value));
    (ratio, Tip::Figure { cell: cell.number, words })
}

fn panel(dots: Vec<(Ratio, Tip)>) -> summary::Panel {
    let whole = dots.iter().filter(|(ratio, _)| !ratio.cut).map(|(ratio, _)| ratio.value);
    summary::Panel { mean: crate::run::geometric_mean(whole), dots }
}

/// The row of one engine; none if nothing can be compared.
fn summary_row(suite: &Suite<'_>, at: usize) -> Option<summary::Row> {
    let column = &suite.columns[at];
    let mut dots = [Vec::new(), Vec::new()];
    for (section, cell) in suite.cells() {
        if let Some(ratio) = suite.ratio(cell, at) {
            // The row names the engine.
            dots[panel_of(cell)].push(dot(section, cell, ratio, None));
        }
    }
    if dots.iter().all(Vec::is_empty) {
        return None;
    }
    let weaker = column.engine.weaker.is_some();
    let version = column.engine.version.split(' ').next().unwrap_or_default();
    let mark = if weaker { " †" } else { "" };
    Some(summary::Row {
        title: format!("{} {version}{mark}", column.title),
        column: Some(at),
        slot: Some(column.slot),
        weaker,
        panels: dots.map(panel),
    })
}

fn summary_words(suite: &Suite<'_>) -> summary::Words {
    let run = suite.run;
    let date = run.began.get(..10).unwrap_or(&run.began);
    let mut marks =
        "One dot is one workload, a cell; bar and number are the geometric mean of so many cells."
            .to_owned();
    if suite.cells().any(|(_, cell)| (0..suite.columns.len()).any(|column| cell.is_cut(column))) {
        marks.push_str(" Hollow: cut short, in no mean.");
    }
    if suite.columns.iter().any(|column| column.ran() && column.engine.weaker.is_some()) {
        marks.push_str(" †: its writes promise less durability.");
    }
    let best =
        "The best of the rest: the fastest other engine of each workload, in writes without †.";
    let mut caption = vec![marks, best.to_owned()];
    let own = suite.columns.iter().enumerate();
    for (at, column) in own.filter(|(_, column)| column.engine.is_terrace() && !column.is_terrace())
    {
        if let Some(mean) = suite.column_tally(at).mean {
            let share = number::ratio(1.0 / mean);
            caption.push(format!("{}: {share} the rate of Terrace itself.", column.title));
        }
    }
    summary::Words {
        heading: "How many times faster Terrace is than other storage engines".to_owned(),
        note: format!(
            "Operations a second of Terrace ÷ those of the engine · {}, {} entries · {} cores · {date}",
            run.suite,
            number::tick(run.num as f64),
            run.machine.cores
        ),
        caption,
    }
}

fn section_part<'a>(
    suite: &'a Suite<'a>,
    place: usize,
    prefix: &str,
    gallery: &mut Gallery,
) -> SectionPart<'a> {
    let section = &suite.sections[place];
    let anchor = format!("{}-{}", suite.run.suite, section.section.id);
    let stem = format!("{prefix}{}", section.section.id);
    let slugs = slugs(section);
    let named = || section.cells.iter().zip(&slugs);
    let barred = named().filter(|(cell, _)| figures::is_barred(section, cell));
    let cards: Vec<Card> = barred
        .map(|(cell, slug)| {
            let names = (format!("{anchor}-{slug}"), format!("{stem}-{slug}"));
            card(suite, section, cell, names, gallery)
        })
        .collect();
    let mut charts = Vec::new();
    if section.is(Kind::Settings) {
        charts = figures::settings(suite, section);
    } else if section.is(Kind::Threads) || section.cells.iter().any(|cell| cell.cell.x.is_some()) {
        charts = figures::sweeps(suite, section);
    }
    let charts: Vec<Figure> = charts
        .iter()
        .map(|(name, chart)| {
            gallery.add_packed(&format!("{stem}-{name}"), &section.section.title, chart)
        })
        .collect();
    let series: Vec<SeriesPart> = if section.has_series() {
        let part = |(cell, slug): (&CellView<'_>, &String)| {
            series_part(suite, cell, &format!("{stem}-{slug}-time"), gallery)
        };
        named().filter_map(part).collect()
    } else {
        Vec::new()
    };
    let curves = named().filter(|(cell, _)| has_curves(section, cell));
    let curves: Vec<Figure> = curves
        .filter_map(|(cell, slug)| {
            let chart = figures::curves(suite, cell)?;
            let name = format!("{stem}-{slug}-latency");
            Some(gallery.add_packed(&name, &cell_name(cell.cell), &chart))
        })
        .collect();
    let durabilities = words::durabilities(section);
    let asked: Vec<&str> = durabilities
        .iter()
        .map(|durability| match durability {
            crate::run::Durability::Asynchronous => "asynchronous",
            crate::run::Durability::Synchronous => "synchronous",
        })
        .collect();
    let tally = suite.section_tally(section);
    let weaker = suite
        .columns
        .iter()
        .filter(|column| section.cells.iter().any(|c| column.promises_less(c.cell)));
    SectionPart {
        anchor,
        title: &section.section.title,
        description: &section.section.description,
        settings: section
            .section
            .settings
            .iter()
            .map(|(name, value)| (name.clone(), words::setting(name, value)))
            .collect(),
        asked: asked.join(" "),
        durabilities: durabilities.into_iter().map(words::durability).collect(),
        weaker: weaker
            .filter_map(|column| Some((column.title.as_str(), column.engine.weaker.as_deref()?)))
            .collect(),
        tally: tally.mean.map(|mean| {
            format!(
                "{} the best of the rest, {} of {} cells led",
                number::ratio(mean),
                tally.led,
                tally.compared()
            )
        }),
        behind: tally.mean.is_some_and(|mean| mean < 1.0),
        has_then: cards.iter().any(|card| card.then.is_some()),
        cards,
        charts,
        sentences: words::best_settings(suite, section),
        against_defaults: section
            .is(Kind::Settings)
            .then(|| table::against_defaults(suite, section)),
        series,
        overview: table::overview(suite, place, section),
        curves,
    }
}

/// Of a sweep only the last cell's latencies are drawn, of everything else every cell's.
fn has_curves(section: &SectionView<'_>, cell: &CellView<'_>) -> bool {
    let key = |c: &CellView<'_>| (c.cell.benchmark.clone(), c.cell.setting.clone());
    let last = || section.cells.iter().rfind(|other| key(other) == key(cell));
    cell.cell.x.is_none() || last().is_some_and(|last| std::ptr::eq(last, cell))
}

fn card(
    suite: &Suite<'_>,
    section: &SectionView<'_>,
    cell: &CellView<'_>,
    (anchor, stem): (String, String),
    gallery: &mut Gallery,
) -> Card {
    let name = cell_name(cell.cell);
    let against = suite.against_best(cell);
    let then = figures::then(suite, section, cell.cell, THEN)
        .map(|chart| gallery.add_packed(&format!("{stem}-then"), &format!("Then: {name}"), &chart));
    let compared: Vec<usize> = suite
        .terrace()
        .filter(|terrace| cell.rate(*terrace).is_some())
        .into_iter()
        .chain(against.map(|a| a.column))
        .collect();
    let heading = if then.is_some() { format!("Now: {name}") } else { name.clone() };
    let now = figures::now(suite, section, cell, &heading, NOW);
    Card {
        anchor,
        then,
        then_notes: figures::published_notes(section, cell.cell),
        now: gallery.add_packed(&stem, &heading, &now),
        ratio: against.map(|against| number::ratio(against.ratio)),
        led: against.is_some_and(|against| against.ratio >= 1.0),
        cut: against.is_some_and(|against| against.cut),
        verdict: words::verdict(suite, cell, against.as_ref()),
        with_debt: words::cell_with_debt(suite, cell),
        weaker: words::faster_but_weaker(suite, cell),
        cost_names: compared.iter().map(|column| suite.columns[*column].title.clone()).collect(),
        costs: costs(cell, &compared),
    }
}

/// The costs behind the figures of some columns.
fn costs(cell: &CellView<'_>, columns: &[usize]) -> Vec<(&'static str, Vec<String>)> {
    let figures: Vec<&Figures> =
        columns.iter().filter_map(|column| cell.outcomes[*column].figures()).collect();
    let row = |name, value: &dyn Fn(&Figures) -> Option<String>| {
        let values: Vec<Option<String>> = figures.iter().map(|figures| value(figures)).collect();
        let known = values.iter().any(Option::is_some);
        known.then(|| {
            (
                name,
                values.into_iter().map(|v| v.unwrap_or_else(|| number::NONE.to_owned())).collect(),
            )
        })
    };
    let bytes = |bytes: f64| (bytes > 0.0).then(|| number::bytes(bytes));
    let rows = [
        row("Median", &|f| f.latency(50.0).map(number::duration_us)),
        row("p99", &|f| f.latency(99.0).map(number::duration_us)),
        row("CPU", &|f| (f.cpu_seconds > 0.0).then(|| number::duration_us(f.cpu_seconds * 1e6))),
        row("Written to files", &|f| bytes(f.bytes_written)),
        row("Written per operation", &|f| {
            (f.per_op.written > 0.0).then(|| number::bytes_per_op(f.per_op.written))
        }),
        row("Read from the device", &|f| bytes(f.bytes_read)),
        row("Device reads per operation", &|f| f.per_op.reads_in_words()),
        row("Device writes per operation", &|f| f.per_op.writes_in_words()),
        row("Memory", &|f| bytes(f.peak_memory)),
        row("On disk", &|f| bytes(f.disk_bytes)),
        row("Levels before: files, size", &|f| f.shape()),
        row("Debt", &|f| f.debt.map(|(seconds, _)| number::duration_us(seconds * 1e6))),
    ];
    rows.into_iter().flatten().collect()
}

fn series_part(
    suite: &Suite<'_>,
    cell: &CellView<'_>,
    stem: &str,
    gallery: &mut Gallery,
) -> Option<SeriesPart> {
    let (charts, absent) = figures::courses(suite, cell);
    let figure = |(column, chart): &(usize, super::svg::Chart)| {
        let column_of = &suite.columns[*column];
        let stem = format!("{stem}-{}", column_of.engine.id);
        gallery.add_packed(&stem, &column_of.title, chart).of_column(*column)
    };
    let charts: Vec<Figure> = charts.iter().map(figure).collect();
    (!charts.is_empty()).then(|| SeriesPart { title: cell_name(cell.cell), charts, absent })
}
