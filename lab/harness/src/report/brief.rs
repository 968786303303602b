//! A run on one page of Markdown, for a README or a comment of continuous integration: engines with
//! their versions, a few workloads with rates and ratios, what was cut short, who promises less, the
//! builds, the machine.
//!
//! Invariants:
//! 1. What comes from data is escaped exactly once, by `escape`.
//! 2. Every row of a table has as many cells as its head.

use super::figures::cell_name;
use super::model::{CellView, Column, Outcome, SectionView, Suite};
use super::ratios::Tally;
use super::{number, words};

/// How many workloads the table has.
pub(crate) const WORKLOADS: usize = 6;

/// Benchmarks that say most about an engine, first.
const TELLING: [&str; 14] = [
    "fillrandom",
    "readrandom",
    "fillseq",
    "readseq",
    "fillsync",
    "seekrandom",
    "overwrite",
    "readwhilewriting",
    "ycsba",
    "mixgraph",
    "fillrandbatch",
    "readmissing",
    "writepareto",
    "readpareto",
];

type Workload<'a, 'b> = (&'b SectionView<'a>, &'b CellView<'a>);

/// The page of some suites. `chosen` names the benchmarks of the table; if it is empty the most
/// telling ones are taken.
///
/// # Errors
/// If no suite has one of the benchmarks that are named.
pub(crate) fn render(suites: &[Suite<'_>], chosen: &[String]) -> Result<String, String> {
    for name in chosen {
        let known = |suite: &Suite<'_>| suite.cells().any(|(_, c)| c.cell.benchmark == *name);
        if !suites.iter().any(known) {
            return Err(format!("no section of these runs has the benchmark {name:?}"));
        }
    }
    Ok(suites.iter().map(|suite| part(suite, chosen)).collect::<Vec<_>>().join("\n"))
}

fn part(suite: &Suite<'_>, chosen: &[String]) -> String {
    let run = suite.run;
    let mut text = format!("### {} ({})\n\n", escape(&run.title), escape(&run.suite));
    text.push_str(&format!("{}\n", escape(&words::headline(suite, &suite.tally()))));
    if let Some(debt) = words::with_debt(suite) {
        text.push_str(&format!("{}\n", escape(&debt)));
    }
    if !run.complete {
        text.push_str("**This run is not complete.**\n");
    }
    text.push('\n');
    let workloads = workloads(suite, chosen);
    if !workloads.is_empty() {
        text.push_str(&table(suite, &workloads));
        text.push('\n');
    }
    for (title, sentence) in words::caveats(suite, true) {
        text.push_str(&format!("- **{title}**: {}\n", escape(&sentence)));
    }
    text.push_str(&builds(suite));
    let machine = &run.machine;
    let costs = machine.costs.map(|costs| format!("; {}", costs.in_words())).unwrap_or_default();
    let machine = format!(
        "{}, {} cores, {} MiB, {}, {}{costs}",
        machine.cpu,
        machine.cores,
        number::thousands(machine.memory_mib as f64),
        machine.kernel,
        machine.file_system
    );
    text.push_str(&format!("- **Machine**: {}.\n", escape(&machine)));
    text.push_str(&format!("- **Data**: {}.\n", escape(&words::method(run))));
    let lasted = number::span(run.seconds);
    text.push_str(&format!(
        "- **Run**: {}, {lasted}, {}\n",
        escape(&run.began),
        code(&run.command)
    ));
    text
}

/// The cells of the table, in the run's order.
fn workloads<'a, 'b>(suite: &'b Suite<'a>, chosen: &[String]) -> Vec<Workload<'a, 'b>> {
    // The first cell of a benchmark, or the first with a comparison if there is one.
    let mut found: Vec<Workload<'a, 'b>> = Vec::new();
    for (section, cell) in suite.cells().filter(|(_, cell)| !cell.cell.paced) {
        let compared = |cell: &CellView<'_>| suite.against_best(cell).is_some();
        let same = |other: &&mut Workload<'a, 'b>| other.1.cell.benchmark == cell.cell.benchmark;
        match found.iter_mut().find(same) {
            Some(first) if !compared(first.1) && compared(cell) => *first = (section, cell),
            Some(_) => {}
            None => found.push((section, cell)),
        }
    }
    let rank = |benchmark: &str| match chosen {
        [] => Some(TELLING.iter().position(|name| *name == benchmark).unwrap_or(TELLING.len())),
        names => names.iter().position(|name| *name == benchmark),
    };
    let most = if chosen.is_empty() { WORKLOADS } else { usize::MAX };
    let mut ranked: Vec<(usize, usize)> = found
        .iter()
        .enumerate()
        .filter_map(|(at, (_, cell))| Some((rank(&cell.cell.benchmark)?, at)))
        .collect();
    ranked.sort_unstable();
    let mut kept: Vec<usize> = ranked.into_iter().take(most).map(|(_, at)| at).collect();
    kept.sort_unstable();
    kept.into_iter().map(|at| found[at]).collect()
}

fn table(suite: &Suite<'_>, workloads: &[Workload<'_, '_>]) -> String {
    let several = workloads.iter().any(|(section, _)| !std::ptr::eq(*section, workloads[0].0));
    let units: Vec<&str> = workloads.iter().map(|(_, cell)| cell.cell.unit.as_str()).collect();
    let unit = units.first().copied().filter(|first| units.iter().all(|unit| unit == first));
    let mut text = format!("{}; in brackets Terrace ÷ engine. ", unit.unwrap_or("op/s"));
    text.push_str(
        "“All cells” is the geometric mean of these ratios, and how many cells Terrace leads. \\*: cut short, in no \
         mean; ‡: of a database that is not complete; °: with a remark in the report; ±: a spread over the rounds \
         above 10%; †: its writes promise less.\n\n| Engine | All cells |",
    );
    for (section, cell) in workloads {
        let name = escape(&cell_name(cell.cell));
        let title = escape(&section.section.title);
        let head = if several { format!("{name}<br><sub>{title}</sub>") } else { name };
        text.push_str(&format!(" {head} |"));
    }
    text.push_str(&format!("\n| --- |{}\n", " ---: |".repeat(workloads.len() + 1)));
    for (at, column) in suite.columns.iter().enumerate().filter(|(_, column)| column.ran()) {
        let name = escape(&name(column));
        let name = if column.is_terrace() { format!("**{name}**") } else { name };
        let mean = if column.is_terrace() { String::new() } else { tally(&suite.column_tally(at)) };
        text.push_str(&format!("| {name} | {mean} |"));
        for (_, cell) in workloads {
            text.push_str(&format!(" {} |", item(suite, cell, at)));
        }
        text.push('\n');
    }
    text
}

/// The engine with its version and mark.
fn name(column: &Column<'_>) -> String {
    let mark = if column.engine.weaker.is_some() { " †" } else { "" };
    format!("{} {}{mark}", column.title, column.engine.version)
}

fn tally(tally: &Tally) -> String {
    match tally.mean {
        Some(mean) => format!("{} ({}/{})", number::ratio(mean), tally.led, tally.compared()),
        None => number::NONE.to_owned(),
    }
}

fn item(suite: &Suite<'_>, cell: &CellView<'_>, column: usize) -> String {
    let figures = match &cell.outcomes[column] {
        Outcome::Figures(figures) => figures,
        Outcome::Absent { word, .. } => return format!("*{word}*"),
    };
    let mut text = number::si(figures.rate.middle);
    if let Some(ratio) = suite.ratio(cell, column).filter(|_| !suite.columns[column].is_terrace()) {
        text.push_str(&format!(" ({})", number::ratio(ratio.value)));
    }
    if figures.rate.is_notable() {
        text.push_str(&format!(" ±{}", number::percent(figures.rate.spread / 2.0)));
    }
    if let Some(mark) = figures.mark() {
        text.push_str(&format!(" {}", escape(mark)));
    }
    text
}

/// How the engines were built; those of equal words together.
fn builds(suite: &Suite<'_>) -> String {
    let mut builds: Vec<(&str, Vec<&str>)> = Vec::new();
    for column in suite.columns.iter().filter(|column| column.ran()) {
        let Some(build) = column.engine.build.as_deref() else { continue };
        match builds.iter_mut().find(|(known, _)| *known == build) {
            Some((_, titles)) => titles.push(&column.title),
            None => builds.push((build, vec![&column.title])),
        }
    }
    if builds.is_empty() {
        return String::new();
    }
    let lines = builds
        .iter()
        .map(|(build, titles)| format!("  - {}: {}\n", escape(&titles.join(", ")), escape(build)));
    format!("- **Builds**\n{}", lines.collect::<String>())
}

/// A text that stays a text in Markdown, on one line.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A text as code; backticks in it would end it.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("`{}`", text.replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_data_stay_words() {
        assert_eq!(escape("a|b\n<c> *d* [e](f)"), "a\\|b &lt;c&gt; \\*d\\* \\[e\\](f)");
        assert_eq!(code("lab `run`\n"), "`lab 'run' `");
    }
}
