//! The overview of a run on a terminal: Terrace, the best of the rest, and every engine.

use crate::report::ratio;
use crate::run::{
    DriverResult, Measurement, Measurements, Run, Section, Status, best_of_rest, geometric_mean,
};

/// The column that is compared with the others.
pub const SUBJECT: &str = "terrace";
/// So many cells that failed are listed with their reasons.
const SHOWN_FAILURES: usize = 20;

/// A table of all cells, and one of all engines.
#[must_use]
pub fn text(run: &Run, measurements: &Measurements) -> String {
    let mut text = format!("{}: {}\n", run.suite, run.title);
    for note in &run.notes {
        text.push_str(&format!("  {note}\n"));
    }
    for section in &run.sections {
        text.push_str(&cells(run, measurements, section));
    }
    text.push_str(&engines(run, measurements));
    text.push_str(&failures(run, measurements));
    text
}

/// What failed, and why: a line for each cell.
fn failures(run: &Run, measurements: &Measurements) -> String {
    let failed = || measurements.iter().filter(|measurement| measurement.has_failed());
    let mut text = String::new();
    for measurement in failed().take(SHOWN_FAILURES) {
        let Measurement { section, cell, engine, round, reason, .. } = measurement;
        let section = run.sections.iter().find(|known| known.id == *section);
        let label = section.map_or_else(String::new, |section| cell_label(section, *cell));
        let reason = reason.as_deref().unwrap_or("no reason is known");
        text.push_str(&format!("  FAILED: {engine}, {label}, round {}: {reason}\n", round + 1));
    }
    match failed().count() {
        0 => text,
        count if count > SHOWN_FAILURES => {
            format!("\n{text}  and {} more\n", count - SHOWN_FAILURES)
        }
        _ => format!("\n{text}"),
    }
}

fn cells(run: &Run, measurements: &Measurements, section: &Section) -> String {
    let mut text = format!(
        "\n{:<46} {:>12} {:>7} {:>8}  best of the rest\n",
        section.title, "Terrace", "spread", "ratio"
    );
    for (place, cell) in section.cells.iter().enumerate() {
        if cell.paced {
            text.push_str(&paced(run, measurements, section, place));
            continue;
        }
        let own = measurements.rate(run.figure, &section.id, place, SUBJECT);
        let best = best_of_rest(run, measurements, section, place);
        let rate = own.map_or_else(|| "-".to_owned(), |own| rate(own.middle));
        let spread =
            own.filter(|own| own.rounds > 1).map_or_else(String::new, |own| percent(own.spread));
        let (against, rest) = match (own, best) {
            (Some(own), Some((id, best))) if best.middle > 0.0 => {
                (ratio(own.middle / best.middle), format!("{} {id}", self::rate(best.middle)))
            }
            (None, Some((id, best))) => {
                (String::new(), format!("{} {id}", self::rate(best.middle)))
            }
            _ => (String::new(), "-".to_owned()),
        };
        let label = cell_label(section, place);
        text.push_str(&format!("  {label:<44} {rate:>12} {spread:>7} {against:>8}  {rest}\n"));
    }
    text
}

/// An open loop: the 99th percentile of Terrace, and the lowest of another engine.
fn paced(run: &Run, measurements: &Measurements, section: &Section, place: usize) -> String {
    let p99 = |engine: &str| {
        let of = |result: &DriverResult| result.p99_us;
        let p99 = measurements.summary(run.figure, &section.id, place, engine, of)?.middle;
        Some(p99).filter(|us| *us > 0.0)
    };
    let own = p99(SUBJECT).map_or_else(|| "-".to_owned(), |us| format!("{us:.0} µs"));
    let others = run.engines.iter().filter(|engine| !engine.is_terrace());
    let best = others
        .filter_map(|engine| Some((p99(&engine.id)?, engine.id.as_str())))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let rest = best.map_or_else(|| "-".to_owned(), |(us, id)| format!("{us:.0} µs {id}"));
    let label = format!("{}, p99", cell_label(section, place));
    format!("  {label:<44} {own:>12} {:>7} {:>8}  {rest}\n", "", "")
}

fn engines(run: &Run, measurements: &Measurements) -> String {
    let title = "Terrace ÷ each engine";
    let mut text = format!("\n{title:<46} {:>8} {:>10} {:>12}\n", "mean", "ahead in", "of cells");
    for engine in run.engines.iter().filter(|engine| engine.id != SUBJECT) {
        let name = format!("{} ({})", engine.title, engine.id);
        if let Some(reason) = engine.missing.as_ref().or(engine.disqualified.as_ref()) {
            let what = if engine.missing.is_some() { "not run" } else { "DISQUALIFIED" };
            text.push_str(&format!("  {name:<44} {what}: {reason}\n"));
            continue;
        }
        let ratios = ratios(run, measurements, &engine.id);
        let ahead = ratios.iter().filter(|ratio| **ratio >= 1.0).count();
        let mean = geometric_mean(ratios.iter().copied()).map_or_else(|| "-".to_owned(), ratio);
        let marks = marks(run, measurements, &engine.id);
        text.push_str(&format!(
            "  {name:<44} {mean:>8} {ahead:>10} {:>12}  {marks}\n",
            ratios.len()
        ));
    }
    text
}

/// Terrace's rate over an engine's, of every cell that both have done to the end.
fn ratios(run: &Run, measurements: &Measurements, engine: &str) -> Vec<f64> {
    let mut ratios = Vec::new();
    for section in &run.sections {
        for (place, _) in section.cells.iter().enumerate().filter(|(_, cell)| !cell.paced) {
            let rate = |engine| {
                let whole = measurements.is_whole(&section.id, place, engine);
                measurements.rate(run.figure, &section.id, place, engine).filter(|_| whole)
            };
            if let (Some(own), Some(other)) = (rate(SUBJECT), rate(engine))
                && own.middle > 0.0
                && other.middle > 0.0
            {
                ratios.push(own.middle / other.middle);
            }
        }
    }
    ratios
}

/// The remarks on an engine's line.
fn marks(run: &Run, measurements: &Measurements, engine: &str) -> String {
    let count =
        |status| measurements.iter().filter(|m| m.engine == engine && m.status == status).count();
    let mut marks = Vec::new();
    for (status, words) in [
        (Status::Truncated, "cut short"),
        (Status::Failed, "FAILED"),
        (Status::Timeout, "not in time"),
        (Status::Unsupported, "it cannot do"),
        (Status::Skipped, "skipped"),
    ] {
        match count(status) {
            0 => {}
            count => marks.push(format!("{count} {words}")),
        }
    }
    if run.engine(engine).is_some_and(|engine| engine.weaker.is_some()) {
        marks.push("writes promise less".to_owned());
    }
    marks.join(", ")
}

/// A cell in words, with its place in a sweep.
#[must_use]
pub fn cell_label(section: &Section, place: usize) -> String {
    let Some(cell) = section.cells.get(place) else { return String::new() };
    let x = cell.x.as_ref().map(|x| format!("{} {}", x.value, x.name));
    match cell.setting.clone().or(x) {
        Some(more) => format!("{}, {more}", cell.label),
        None => cell.label.clone(),
    }
}

/// A rate with as many digits as mean something.
#[must_use]
pub fn rate(rate: f64) -> String {
    if rate < 100.0 {
        return format!("{rate:.2}");
    }
    thousands(rate)
}

/// A whole number with its digits in groups.
#[must_use]
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn percent(fraction: f64) -> String {
    format!("{:.0}%", fraction * 100.0)
}
