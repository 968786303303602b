//! Two runs of the same suite, cell by cell.

use serde::Serialize;

use crate::overview::{SUBJECT, cell_label, rate};
use crate::run::{Measurements, Run, Spread, geometric_mean};

/// Two runs side by side.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The suite of both.
    pub suite: String,
    /// Every cell and engine that both runs measured.
    pub cells: Vec<Compared>,
    /// By engine: the geometric mean over its cells.
    pub engines: Vec<EngineMean>,
    /// Terrace ÷ engine, how it holds from one run to the other.
    pub ratios: Ratios,
    /// The settings that differ between both.
    pub differences: Vec<String>,
}

/// One engine in one cell.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// The section's id.
    pub section: String,
    /// The cell's place.
    pub cell: usize,
    /// The cell in words.
    pub label: String,
    /// The engine's id.
    pub engine: String,
    /// In the first run.
    pub before: Spread,
    /// In the second run.
    pub after: Spread,
    /// After ÷ before.
    pub ratio: f64,
    /// Whether the rounds of the two runs lie apart, so that the difference is more than their
    /// spread.
    pub distinct: bool,
}

/// An engine over all cells.
#[derive(Debug, Serialize)]
pub struct EngineMean {
    /// Its id.
    pub engine: String,
    /// The mean of its ratios.
    pub ratio: f64,
    /// Of how many cells.
    pub cells: usize,
}

/// How far Terrace ÷ engine is the same in both runs.
#[derive(Debug, Default, Serialize)]
pub struct Ratios {
    /// Cells and engines that can be compared.
    pub all: usize,
    /// Where the two ratios are within 10% of each other.
    pub within_tenth: usize,
    /// Where the medians of the ratios within each round are.
    pub within_tenth_by_round: usize,
    /// Where those of each engine's best rounds are. What else goes on in a machine only ever slows
    /// a round down, so that the best of many is nearest to what an idle one does.
    pub within_tenth_of_best: usize,
}

/// Compares two runs.
///
/// # Errors
/// If they are not of the same suite.
pub fn compare(
    before_run: &(Run, Measurements),
    after_run: &(Run, Measurements),
) -> Result<Comparison, String> {
    let (first, second) = (&before_run.0, &after_run.0);
    if first.suite != second.suite {
        return Err(format!(
            "these are runs of different suites: {} and {}",
            first.suite, second.suite
        ));
    }
    let mut comparison = Comparison {
        suite: first.suite.clone(),
        cells: Vec::new(),
        engines: Vec::new(),
        ratios: Ratios::default(),
        differences: differences(first, second),
    };
    for section in &first.sections {
        let Some(other) = second.section(&section.id) else { continue };
        for place in 0..section.cells.len() {
            // Cells are found by what they are: their places differ if the suite has changed.
            let Some(there) = other.cells.iter().position(|cell| *cell == section.cells[place])
            else {
                continue;
            };
            let rates = |engine: &str| {
                let before = before_run.1.rate(first.figure, &section.id, place, engine)?;
                let after = after_run.1.rate(second.figure, &section.id, there, engine)?;
                (before.middle > 0.0 && after.middle > 0.0).then_some((before, after))
            };
            let subject = rates(SUBJECT);
            for engine in &first.engines {
                let Some((before, after)) = rates(&engine.id) else { continue };
                let ratio = after.middle / before.middle;
                if let Some((own_before, own_after)) = subject.filter(|_| engine.id != SUBJECT) {
                    let is_within_tenth =
                        |change: f64| usize::from((1.0 / 1.1..=1.1).contains(&change));
                    let change = |figure: fn(&Spread) -> f64| {
                        figure(&own_after)
                            / figure(&after)
                            / (figure(&own_before) / figure(&before))
                    };
                    let by_round =
                        |(_, measurements): &(Run, Measurements), section: &str, cell: usize| {
                            measurements
                                .ratio(section, cell, SUBJECT, &engine.id)
                                .map_or(f64::NAN, |ratio| ratio.middle)
                        };
                    let change_by_round = by_round(after_run, &section.id, there)
                        / by_round(before_run, &section.id, place);
                    comparison.ratios.all += 1;
                    comparison.ratios.within_tenth += is_within_tenth(change(|rates| rates.middle));
                    comparison.ratios.within_tenth_by_round += is_within_tenth(change_by_round);
                    comparison.ratios.within_tenth_of_best +=
                        is_within_tenth(change(|rates| rates.max));
                }
                comparison.cells.push(Compared {
                    section: section.id.clone(),
                    cell: place,
                    label: cell_label(section, place),
                    engine: engine.id.clone(),
                    before,
                    after,
                    ratio,
                    distinct: after.min > before.max || after.max < before.min,
                });
            }
        }
    }
    for engine in &first.engines {
        let ratios: Vec<f64> = comparison
            .cells
            .iter()
            .filter(|cell| cell.engine == engine.id)
            .map(|cell| cell.ratio)
            .collect();
        if let Some(ratio) = geometric_mean(ratios.iter().copied()) {
            comparison.engines.push(EngineMean {
                engine: engine.id.clone(),
                ratio,
                cells: ratios.len(),
            });
        }
    }
    Ok(comparison)
}

fn differences(before: &Run, after: &Run) -> Vec<String> {
    let mut differences = Vec::new();
    let mut differ = |what: &str, before: String, after: String| {
        if before != after {
            differences.push(format!("{what}: {before}, then {after}"));
        }
    };
    differ("entries", before.num.to_string(), after.num.to_string());
    differ("rounds", before.rounds.to_string(), after.rounds.to_string());
    differ("time limit", before.time_limit.to_string(), after.time_limit.to_string());
    let minutes =
        |run: &Run| run.budget.map_or("none".to_owned(), |minutes| format!("{minutes} minutes"));
    differ("budget", minutes(before), minutes(after));
    differ("seed", before.seed.to_string(), after.seed.to_string());
    differ("processor", before.machine.cpu.clone(), after.machine.cpu.clone());
    differ("cores", before.machine.cores.to_string(), after.machine.cores.to_string());
    differ("system", before.machine.kernel.clone(), after.machine.kernel.clone());
    differ("file system", before.machine.file_system.clone(), after.machine.file_system.clone());
    for engine in &before.engines {
        if let Some(other) = after.engine(&engine.id) {
            differ(&engine.title, engine.version.clone(), other.version.clone());
        }
    }
    differences
}

impl Comparison {
    /// For a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}: the second run over the first\n", self.suite);
        for difference in &self.differences {
            text.push_str(&format!("  different: {difference}\n"));
        }
        let mut section = "";
        for cell in &self.cells {
            if section != cell.section {
                section = &cell.section;
                let (engine, before, after) = ("engine", "before", "after");
                text.push_str(&format!(
                    "\n{section:<40} {engine:<18} {before:>12} {after:>12} {:>7} {:>15}\n",
                    "ratio", "spreads"
                ));
            }
            let spreads =
                format!("{:.0}% {:.0}%", cell.before.spread * 100.0, cell.after.spread * 100.0);
            let mark = if cell.distinct { "  *" } else { "" };
            let (before, after) = (rate(cell.before.middle), rate(cell.after.middle));
            text.push_str(&format!(
                "  {:<38} {:<18} {before:>12} {after:>12} {:>7.3} {spreads:>15}{mark}\n",
                cell.label, cell.engine, cell.ratio
            ));
        }
        text.push_str("\n* the rounds of the two runs lie apart: the difference is more than their spread\n\n");
        for engine in &self.engines {
            text.push_str(&format!(
                "{:<20} {:.3} over {} cells\n",
                engine.engine, engine.ratio, engine.cells
            ));
        }
        let Ratios { all, within_tenth, within_tenth_by_round, within_tenth_of_best } = self.ratios;
        if all > 0 {
            text.push_str(&format!(
                "Terrace ÷ engine: {within_tenth} of {all} ratios within 10% of the first run's; taken within each \
                 round {within_tenth_by_round}; of the best rounds {within_tenth_of_best}\n"
            ));
        }
        text
    }
}
