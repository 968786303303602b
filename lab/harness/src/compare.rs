//! Two runs of the same suite, cell by cell: of two commits on one machine, or of two machines.
//!
//! 1. An interval holds the true value nineteen times in twenty and asks nothing of how rounds
//!    scatter (`interval_of_quotient`). Where there are too few rounds for one there is none.
//! 2. Where either run was cut short, the two have not done the same work: the cell is shown, and
//!    takes part in no mean and no count.

use serde::Serialize;

use crate::overview::{SUBJECT, cell_label, rate, thousands};
use crate::report::ratio;
use crate::run::{
    CostChange, Machine, Measurements, Run, Section, Spread, geometric_mean, interval_of_quotient,
};

/// Two runs side by side.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The suite of both.
    pub suite: String,
    /// Where the two were measured.
    pub machines: Machines,
    /// The settings and versions that differ between both.
    pub differences: Vec<String>,
    /// Every cell and engine that both runs measured.
    pub cells: Vec<Compared>,
    /// By engine: the geometric mean over its cells.
    pub engines: Vec<EngineMean>,
    /// Terrace ÷ engine, how it holds from one run to the other.
    pub ratios: Ratios,
}

/// The machines of the two runs.
#[derive(Debug, Serialize)]
pub struct Machines {
    /// Whether they are one machine, as far as names and costs say.
    pub alike: bool,
    /// That of the first run.
    pub before: Machine,
    /// That of the second run.
    pub after: Machine,
    /// Names that differ.
    pub differences: Vec<String>,
    /// What basic operations cost; empty if a run has not recorded it.
    pub costs: Vec<CostChange>,
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
    /// What the ratio may be.
    pub interval: Option<(f64, f64)>,
    /// What can be said of it.
    pub verdict: Verdict,
    /// Whether the rounds of the two runs lie apart, so that the difference is more than their
    /// spread.
    pub distinct: bool,
    /// Whether the time limit cut a round of either run short.
    pub cut: bool,
    /// Terrace ÷ this engine within each round, from run to run; `None` for Terrace itself.
    pub terrace: Option<RatioChange>,
}

/// What an interval says.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All of it is above 1.
    Faster,
    /// All of it is below 1.
    Slower,
    /// It holds 1.
    Unclear,
    /// There is none: too few rounds.
    TooFewRounds,
    /// Cut short: not the same work.
    CutShort,
}

/// Terrace ÷ engine in two runs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RatioChange {
    /// The median over the rounds of the first run.
    pub before: f64,
    /// That of the second run.
    pub after: f64,
    /// After ÷ before.
    pub change: f64,
    /// What that may be.
    pub interval: Option<(f64, f64)>,
}

/// An engine over all cells that were not cut short.
#[derive(Debug, Serialize)]
pub struct EngineMean {
    /// Its id.
    pub engine: String,
    /// The mean of its ratios.
    pub ratio: f64,
    /// Of how many cells.
    pub cells: usize,
    /// In how many of them it is faster, all of the interval considered.
    pub faster: usize,
    /// In how many it is slower.
    pub slower: usize,
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

type Measured = (Run, Measurements);

/// A cell in both runs: cells are found by what they are, since their places differ if the suite
/// has changed.
struct Place<'a> {
    section: &'a Section,
    before: usize,
    after: usize,
}

/// Compares two runs.
///
/// # Errors
/// If they are not of the same suite, or have no cell and engine in common.
pub fn compare(before: &Measured, after: &Measured) -> Result<Comparison, String> {
    let (first, second) = (&before.0, &after.0);
    if first.suite != second.suite {
        return Err(format!(
            "these are runs of different suites: {} and {}",
            first.suite, second.suite
        ));
    }
    let mut cells = Vec::new();
    let mut ratios = Ratios::default();
    for section in &first.sections {
        let Some(other) = second.section(&section.id) else { continue };
        // Rates of an open loop are the same wherever it is run.
        for (at, cell) in section.cells.iter().enumerate().filter(|(_, cell)| !cell.paced) {
            let Some(there) = other.cells.iter().position(|other| other == cell) else { continue };
            let place = Place { section, before: at, after: there };
            for engine in &first.engines {
                let Some(compared) = compared(before, after, &place, &engine.id) else { continue };
                if engine.id != SUBJECT && !compared.cut {
                    ratios.count(before, after, &place, &compared);
                }
                cells.push(compared);
            }
        }
    }
    if cells.is_empty() {
        return Err(format!(
            "the two runs of {} have no cell with a figure of the same engine in common",
            first.suite
        ));
    }
    Ok(Comparison {
        suite: first.suite.clone(),
        machines: Machines::of(&first.machine, &second.machine),
        differences: differences(first, second),
        engines: first.engines.iter().filter_map(|engine| mean(&cells, &engine.id)).collect(),
        cells,
        ratios,
    })
}

fn compared(
    before_run: &Measured,
    after_run: &Measured,
    place: &Place<'_>,
    engine: &str,
) -> Option<Compared> {
    let id = &place.section.id;
    let before = before_run.1.rate(before_run.0.figure, id, place.before, engine)?;
    let after = after_run.1.rate(after_run.0.figure, id, place.after, engine)?;
    if before.middle <= 0.0 || after.middle <= 0.0 {
        return None;
    }
    let rates = |run: &Measured, cell| run.1.rates(id, cell, engine);
    let (first, second) = (rates(before_run, place.before), rates(after_run, place.after));
    let interval = interval_of_quotient(&second, &first);
    let cut = !(before_run.1.is_whole(id, place.before, engine)
        && after_run.1.is_whole(id, place.after, engine));
    Some(Compared {
        section: id.clone(),
        cell: place.before,
        label: cell_label(place.section, place.before),
        engine: engine.to_owned(),
        before,
        after,
        ratio: after.middle / before.middle,
        interval,
        verdict: if cut { Verdict::CutShort } else { Verdict::of(interval) },
        distinct: after.min > before.max || after.max < before.min,
        cut,
        terrace: ratio_change(before_run, after_run, place, engine),
    })
}

fn ratio_change(
    before: &Measured,
    after: &Measured,
    place: &Place<'_>,
    engine: &str,
) -> Option<RatioChange> {
    if engine == SUBJECT {
        return None;
    }
    let id = &place.section.id;
    let (first, second) = (
        before.1.ratios(id, place.before, SUBJECT, engine),
        after.1.ratios(id, place.after, SUBJECT, engine),
    );
    let middle = |run: &Measured, cell| Some(run.1.ratio(id, cell, SUBJECT, engine)?.middle);
    let (before, after) = (middle(before, place.before)?, middle(after, place.after)?);
    let interval = interval_of_quotient(&second, &first);
    (before > 0.0).then_some(RatioChange { before, after, change: after / before, interval })
}

impl Verdict {
    fn of(interval: Option<(f64, f64)>) -> Verdict {
        match interval {
            None => Verdict::TooFewRounds,
            Some((low, _)) if low > 1.0 => Verdict::Faster,
            Some((_, high)) if high < 1.0 => Verdict::Slower,
            Some(_) => Verdict::Unclear,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Unclear => "unclear",
            Verdict::TooFewRounds => "",
            Verdict::CutShort => "cut short",
        }
    }
}

impl Ratios {
    fn count(
        &mut self,
        before: &Measured,
        after: &Measured,
        place: &Place<'_>,
        compared: &Compared,
    ) {
        let Some(own) = self::compared(before, after, place, SUBJECT).filter(|own| !own.cut) else {
            return;
        };
        let is_within_tenth = |change: f64| usize::from((1.0 / 1.1..=1.1).contains(&change));
        let change = |figure: fn(&Spread) -> f64| {
            figure(&own.after)
                / figure(&compared.after)
                / (figure(&own.before) / figure(&compared.before))
        };
        self.all += 1;
        self.within_tenth += is_within_tenth(change(|rates| rates.middle));
        self.within_tenth_by_round +=
            is_within_tenth(compared.terrace.map_or(f64::NAN, |ratio| ratio.change));
        self.within_tenth_of_best += is_within_tenth(change(|rates| rates.max));
    }
}

fn mean(cells: &[Compared], engine: &str) -> Option<EngineMean> {
    let counted = || cells.iter().filter(|cell| cell.engine == engine && !cell.cut);
    let with = |verdict| counted().filter(|cell| cell.verdict == verdict).count();
    Some(EngineMean {
        engine: engine.to_owned(),
        ratio: geometric_mean(counted().map(|cell| cell.ratio))?,
        cells: counted().count(),
        faster: with(Verdict::Faster),
        slower: with(Verdict::Slower),
    })
}

impl Machines {
    fn of(before: &Machine, after: &Machine) -> Machines {
        let differences = before.differences(after);
        let costs = match (&before.costs, &after.costs) {
            (Some(before), Some(after)) => before.changes(after),
            _ => Vec::new(),
        };
        Machines {
            alike: differences.is_empty() && !costs.iter().any(|cost| cost.notable),
            before: before.clone(),
            after: after.clone(),
            differences,
            costs,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for difference in &self.differences {
            text.push_str(&format!("  different: {difference}\n"));
        }
        for cost in self.costs.iter().filter(|cost| cost.notable) {
            text.push_str(&format!("  different: cost of a {}\n", cost.in_words()));
        }
        if self.costs.is_empty() {
            text.push_str("  unknown: what basic operations cost, which a run has not recorded\n");
        }
        if !self.alike {
            text.push_str(
                "  THE MACHINES DIFFER, or one of them was busy: ratios of rates say as much about them \
                 as about the engines.\n  Terrace ÷ engine, taken within each round, has both on the same \
                 machine.\n",
            );
        }
        text
    }
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
    for engine in &before.engines {
        if let Some(other) = after.engine(&engine.id) {
            differ(&engine.title, engine.version.clone(), other.version.clone());
            let build = |engine: &crate::run::Engine| engine.build.clone().unwrap_or_default();
            differ(&format!("{}'s build", engine.title), build(engine), build(other));
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
        text.push_str(&self.machines.text());
        let mut section = "";
        for cell in &self.cells {
            if section != cell.section {
                section = &cell.section;
                let (engine, before, after) = ("engine", "before", "after");
                text.push_str(&format!(
                    "\n{section:<50} {engine:<18} {before:>12} {after:>12} {:>7} {:>15} {:>11} {:>17}\n",
                    "ratio", "95% of it", "spreads", "Terrace ÷ engine"
                ));
            }
            text.push_str(&cell.line());
        }
        text.push_str(
            "\nfaster, slower: all of the interval is above or below 1; unclear: it holds 1. It needs \
             seven rounds in both runs.\n* the rounds of the two runs lie apart: the difference is more \
             than their spread\n\n",
        );
        for engine in &self.engines {
            text.push_str(&format!(
                "{:<20} {:.3} over {} cells: faster in {}, slower in {}\n",
                engine.engine, engine.ratio, engine.cells, engine.faster, engine.slower
            ));
        }
        let cut = self.cells.iter().filter(|cell| cell.cut).count();
        if cut > 0 {
            let cut = thousands(cut as f64);
            text.push_str(&format!("cut short in a run, which count in nothing: {cut}\n"));
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

impl Compared {
    fn line(&self) -> String {
        let spreads =
            format!("{:.0}% {:.0}%", self.before.spread * 100.0, self.after.spread * 100.0);
        let (before, after) = (rate(self.before.middle), rate(self.after.middle));
        let within = |interval: Option<(f64, f64)>| {
            interval.map_or_else(String::new, |(low, high)| format!("{low:.3} to {high:.3}"))
        };
        let terrace = self.terrace.map_or_else(String::new, |change| {
            format!("{} → {}", ratio(change.before), ratio(change.after))
        });
        let star = if self.distinct { " *" } else { "" };
        let line = format!(
            "  {:<48} {:<18} {before:>12} {after:>12} {:>7.3} {:>15} {spreads:>11} {terrace:>17}  {}{star}",
            self.label,
            self.engine,
            self.ratio,
            within(self.interval),
            self.verdict.in_words()
        );
        format!("{}\n", line.trim_end())
    }
}
