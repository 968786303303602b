//! Sentences of the page: verdicts, durability, settings. Every sentence states what the
//! figures show, good or bad.

use crate::run::{Chart, Durability, Run};

use super::figures::setting_name;
use super::model::{CellView, Column, Figures, Reliability, SectionView, Suite};
use super::number;
use super::ratios::{Against, Tally};

/// The durability of a write.
pub(crate) fn durability(durability: Durability) -> &'static str {
    match durability {
        Durability::Asynchronous => {
            "asynchronous writes: every write reaches the operating system before the call returns; no write waits for the disk"
        }
        Durability::Synchronous => {
            "synchronous writes: every write is on the disk before the call returns"
        }
    }
}

/// Which durabilities the writes of a section have; a section that only reads has none.
pub(crate) fn durabilities(section: &SectionView<'_>) -> Vec<Durability> {
    let writes =
        |asked| section.cells.iter().any(|cell| cell.cell.writes && cell.cell.durability == asked);
    [Durability::Asynchronous, Durability::Synchronous]
        .into_iter()
        .filter(|asked| writes(*asked))
        .collect()
}

/// The whole run in a sentence.
pub(crate) fn headline(suite: &Suite<'_>, tally: &Tally) -> String {
    if suite.terrace().is_none() {
        return "Terrace is not among the engines of this run, so there is nothing to compare it with.".to_owned();
    }
    if tally.mean.is_none() && tally.cut > 0 {
        return format!(
            "All {} cells that could be compared were cut short, so there is no mean.",
            tally.cut
        );
    }
    let Some(mean) = tally.mean else {
        return "No cell has a figure of both Terrace and another engine, so there is nothing to compare.".to_owned();
    };
    let led = match (tally.led, tally.not_led) {
        (led, 0) => format!("leads all {led} cells"),
        (led, _) => format!("leads {led} of {} cells", tally.compared()),
    };
    let slower = if mean < 1.0 { ", so it is slower over all" } else { "" };
    let mean = number::ratio(mean);
    let without = match tally.without {
        0 => String::new(),
        1 => " One cell has nothing to compare.".to_owned(),
        n => format!(" {n} cells have nothing to compare."),
    };
    let cut = match tally.cut {
        0 => String::new(),
        1 => " One cell was cut short and counts in nothing.".to_owned(),
        n => format!(" {n} cells were cut short and count in nothing."),
    };
    let rounds = match suite.run.rounds {
        0 | 1 => " One round only: the figures have no spread, and small differences mean nothing.",
        _ => "",
    };
    format!(
        "Terrace {led}; its geometric mean is {mean} the best of the rest with the same durability{slower}.{without}{cut}{rounds}"
    )
}

/// What the mean becomes if work that writes put off is counted; `None` where nothing was put off.
pub(crate) fn with_debt(suite: &Suite<'_>) -> Option<String> {
    let (with, without) = suite.debt_tallies();
    let (with_mean, without) = (with.mean?, without.mean?);
    let cells = match with.compared() {
        1 => "one cell that writes".to_owned(),
        n => format!("{n} cells that write"),
    };
    Some(format!(
        "Writes put work off. With the time for it on both sides, Terrace’s mean over the {cells} is {} the best \
         of the rest, instead of {}.",
        number::ratio(with_mean),
        number::ratio(without)
    ))
}

/// What a reader has to know before the first figure, as a title and a sentence each: what was cut
/// short, what scatters, how peers were built, which of them promise less; with the reasons if they
/// stand nowhere else.
pub(crate) fn caveats(suite: &Suite<'_>, reasons: bool) -> Vec<(&'static str, String)> {
    let found = suite.reliability(|_| true);
    let mut caveats = Vec::new();
    let part = |count: usize| {
        let share = number::percent(count as f64 / found.figures.max(1) as f64);
        format!("{count} of {} figures ({share})", found.figures)
    };
    if found.cut > 0 {
        let by_engine = counts(suite, |found| found.cut);
        let words = "were cut short by a time limit, a benchmark's or the whole run's, \
                     which takes them out of every mean";
        caveats.push(("Cut short", format!("{} {words}: {by_engine}.", part(found.cut))));
    }
    if found.partial > 0 {
        let words = "are of a database that is not complete, and are compared with nothing";
        caveats.push(("Not complete", format!("{} {words}.", part(found.partial))));
    }
    if found.spread > 0 {
        let words =
            "scatter over the rounds by more than 10%; smaller differences mean nothing there";
        caveats.push(("Spread", format!("{} {words}.", part(found.spread))));
    }
    let engines = |chosen: &dyn Fn(&Column<'_>) -> Option<String>| {
        suite.columns.iter().filter_map(chosen).collect::<Vec<_>>().join("; ")
    };
    let assertions = engines(&|column| {
        let build = column.engine.build.as_ref()?;
        build.contains("WITH ASSERTIONS").then(|| column.title.clone())
    });
    if !assertions.is_empty() {
        let words = "compiled with assertions, which may slow it down";
        caveats.push(("Assertions", format!("{assertions}: {words}.")));
    }
    let weaker = engines(&|column| {
        let why = column.engine.weaker.as_ref().filter(|_| column.ran())?;
        Some(if reasons { format!("{} ({why})", column.title) } else { column.title.clone() })
    });
    if !weaker.is_empty() {
        let words = "not counted as the best of the rest where something is written";
        caveats.push(("Promise less †", format!("{weaker}; {words}.")));
    }
    let absent = engines(&|column| {
        let engine = column.engine;
        let why = engine.disqualified.as_ref().map(|why| format!("disqualified: {why}"));
        let why = why.or_else(|| engine.missing.clone())?;
        Some(if reasons { format!("{} ({why})", column.title) } else { column.title.clone() })
    });
    if !absent.is_empty() {
        caveats.push(("No figures", format!("{absent}.")));
    }
    caveats
}

/// The engines with a count that is not zero, the greatest first: `InnoDB 8; SQLite 4`.
fn counts(suite: &Suite<'_>, count: impl Fn(Reliability) -> usize) -> String {
    let mut counts: Vec<(usize, &str)> = suite
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| (count(suite.reliability(|other| other == at)), column.title.as_str()))
        .filter(|(count, _)| *count > 0)
        .collect();
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    counts.iter().map(|(count, title)| format!("{title} {count}")).collect::<Vec<_>>().join("; ")
}

/// A cell in a sentence.
pub(crate) fn verdict(suite: &Suite<'_>, cell: &CellView<'_>, against: Option<&Against>) -> String {
    if cell.cell.paced {
        return paced_verdict(suite, cell);
    }
    let Some(against) = against else {
        return match suite.terrace().and_then(|terrace| cell.rate(terrace)) {
            Some(_) => "no other engine to compare with".to_owned(),
            None => "Terrace has no figure here".to_owned(),
        };
    };
    let best = &suite.columns[against.column].title;
    let close = if against.is_close() { "; the ranges of their rounds overlap" } else { "" };
    let cut = if against.cut { "; cut short, in no mean" } else { "" };
    format!("the best of the rest, {best}{close}{cut}")
}

/// An open loop in a sentence: the latencies of Terrace and of the best of the rest.
fn paced_verdict(suite: &Suite<'_>, cell: &CellView<'_>) -> String {
    let own = suite.terrace().and_then(|terrace| cell.p99(terrace)).map(number::duration_us);
    let competitors =
        (0..suite.columns.len()).filter(|column| suite.columns[*column].competes_in(cell.cell));
    let best = competitors
        .filter_map(|column| Some((cell.p99(column)?, &suite.columns[column].title)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let best = best.map(|(us, title)| format!("{}, {title}", number::duration_us(us)));
    let said = [("Terrace", own), ("the best of the rest", best)];
    let said = said.into_iter().filter_map(|(who, us)| Some(format!("{who}: {}", us?)));
    let said: Vec<String> = said.collect();
    format!("An open loop at a fixed rate: p99 is compared, less is better. {}", said.join("; "))
}

/// The ratio of a cell that put work off, with the time for it on both sides.
pub(crate) fn cell_with_debt(suite: &Suite<'_>, cell: &CellView<'_>) -> Option<String> {
    let (column, ratio) = suite.against_best_with_debt(cell)?;
    let (ratio, best) = (number::ratio(ratio.value), &suite.columns[column].title);
    Some(format!(
        "{ratio} the best of the rest, {best}, with the time for write debt on both sides"
    ))
}

/// The engines that are faster than Terrace here, but promise less.
pub(crate) fn faster_but_weaker(suite: &Suite<'_>, cell: &CellView<'_>) -> Option<String> {
    let faster: Vec<String> = suite
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.promises_less(cell.cell))
        .filter_map(|(at, column)| {
            Some((column, suite.against(cell, at).filter(|ratio| *ratio < 1.0)?))
        })
        .map(|(column, ratio)| format!("{} ({})", column.title, number::ratio(ratio)))
        .collect();
    (!faster.is_empty()).then(|| format!("Faster, but promising less: {}.", faster.join(", ")))
}

/// How the figures came about.
pub(crate) fn method(run: &Run) -> String {
    let figure = match run.figure {
        crate::run::Figure::Median => "medians",
        crate::run::Figure::MeanWithoutExtremes => "means without the lowest and the highest round",
    };
    let rounds = match (run.rounds, run.precision) {
        (1, _) => "one round".to_owned(),
        (rounds, None) => format!("{rounds} rounds, {figure}"),
        (rounds, Some(precision)) => format!(
            "{figure} of up to {rounds} rounds, until the ratios were known to within {}",
            number::percent(precision)
        ),
    };
    let limit = if run.time_limit > 0.0 {
        format!("at most {} for a benchmark", number::span(run.time_limit))
    } else {
        "no time limit".to_owned()
    };
    let limit = match run.budget {
        Some(minutes) => format!(
            "{limit}, less where {} for the whole run ask for it",
            number::span(minutes * 60.0)
        ),
        None => limit,
    };
    let duration = if run.duration > 0.0 {
        format!("; {} for a phase of steady load", number::span(run.duration))
    } else {
        String::new()
    };
    format!(
        "{} entries; {rounds}; {limit}{duration}; seed {}",
        number::thousands(run.num as f64),
        run.seed
    )
}

/// A setting as a reader writes it.
pub(crate) fn setting(name: &str, value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Number(n) => {
            let plain = n.as_f64().unwrap_or(f64::NAN);
            let bytes = name.ends_with("_size") || name.ends_with("_bytes");
            // Caches and buffers are powers of two; 2,097,152 is better read as 2 MiB.
            let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
            let unit = n
                .as_u64()
                .and_then(|n| units.into_iter().find(|(size, _)| n >= *size && n % size == 0));
            match (bytes, n.as_u64(), unit) {
                (true, Some(n), Some((size, unit))) => format!("{} {unit}", n / size),
                (true, Some(n), None) => format!("{} bytes", number::thousands(n as f64)),
                _ if plain.fract() == 0.0 => number::thousands(plain),
                _ => n.to_string(),
            }
        }
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// For a section of settings: which one serves each engine best in each workload.
pub(crate) fn best_settings(suite: &Suite<'_>, section: &SectionView<'_>) -> Vec<String> {
    let mut benchmarks: Vec<&str> = Vec::new();
    for cell in section.cells.iter().filter(|_| section.is(Chart::Settings)) {
        if !benchmarks.contains(&cell.cell.benchmark.as_str()) {
            benchmarks.push(&cell.cell.benchmark);
        }
    }
    let columns = || (0..suite.columns.len()).filter(|column| suite.columns[*column].ran());
    benchmarks
        .iter()
        .flat_map(|benchmark| columns().filter_map(|c| best_setting(suite, section, benchmark, c)))
        .collect()
}

fn best_setting(
    suite: &Suite<'_>,
    section: &SectionView<'_>,
    benchmark: &str,
    column: usize,
) -> Option<String> {
    let cells = section.cells.iter().filter(|cell| cell.cell.benchmark == benchmark);
    let measured: Vec<(&CellView<'_>, &Figures)> =
        cells.filter_map(|cell| Some((cell, cell.outcomes[column].figures()?))).collect();
    let (first, base) = measured.first().filter(|_| measured.len() > 1)?;
    let fastest = measured.iter().max_by(|a, b| a.1.rate.middle.total_cmp(&b.1.rate.middle))?;
    let p99 = |figures: &Figures| figures.latency(99.0);
    let calmest = measured
        .iter()
        .filter(|m| p99(m.1).is_some())
        .min_by(|a, b| p99(a.1).unwrap_or(f64::MAX).total_cmp(&p99(b.1).unwrap_or(f64::MAX)));
    let name = setting_name(first.cell);
    let gain = fastest.1.rate.middle / base.rate.middle;
    // A difference within the spread, or within a few per cent of a single round, does not count.
    let clear = fastest.1.rate.min > base.rate.max && gain >= 1.03;
    let mut said = if clear {
        format!("{} is fastest, {} {name}", setting_name(fastest.0.cell), number::ratio(gain))
    } else {
        format!("nothing is clearly faster than {name}")
    };
    if let Some((cell, figures)) = calmest {
        let us = p99(figures).map_or(number::NONE.to_owned(), number::duration_us);
        said.push_str(&format!("; lowest p99 with {}, {us}", setting_name(cell.cell)));
    }
    Some(format!("{}, {}: {said}.", first.cell.label, suite.columns[column].title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_readable() {
        let said = |name, value: serde_json::Value| setting(name, &value);
        assert_eq!(said("cache_size", 2_097_152.into()), "2 MiB");
        assert_eq!(said("value_size", 100.into()), "100 bytes");
        assert_eq!(said("value_size", 100_000.into()), "100,000 bytes");
        assert_eq!(said("max_open_files", 1024.into()), "1,024");
        assert_eq!(said("compression", "none".into()), "none");
        assert_eq!(said("sync", true.into()), "true");
    }
}
