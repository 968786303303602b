//! Terrace against the others: ratios of a cell, geometric means of a section and of everything.
//! Pure.
//!
//! Invariants:
//! 1. A ratio is Terrace's figure divided by the other's, both of the same cell of the same
//!    session; above 1 Terrace is faster. Only a ratio to a baseline is of one engine in two cells.
//! 2. Against "the best of the rest" count only engines that promise as much as the cell asks for.
//! 3. Where one side was cut short, the two have not done the same work: the ratio is shown, and
//!    takes part in no mean and no count of cells led.
//! 4. A cell in which one side has no positive figure has no ratio, and is counted as such, not
//!    left out silently.

use crate::run::{Spread, geometric_mean};

use super::model::{CellView, SectionView, Suite};

/// A figure divided by another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    /// Whether one of the two was cut short.
    pub(crate) cut: bool,
}

/// Terrace against the best of the rest in one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Against {
    pub(crate) terrace: Spread,
    pub(crate) best: Spread,
    /// The column of the best.
    pub(crate) column: usize,
    pub(crate) ratio: f64,
    /// Whether one of the two was cut short.
    pub(crate) cut: bool,
}

impl Against {
    pub(crate) fn as_ratio(&self) -> Ratio {
        Ratio { value: self.ratio, cut: self.cut }
    }

    /// Whether the ranges of the two figures overlap, so that another run might turn it round.
    pub(crate) fn is_close(&self) -> bool {
        self.terrace.min <= self.best.max && self.best.min <= self.terrace.max
    }
}

/// How many cells Terrace leads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) led: usize,
    pub(crate) not_led: usize,
    /// Cells in which there is nothing to compare.
    pub(crate) without: usize,
    /// Cells in which one of the two was cut short.
    pub(crate) cut: usize,
    pub(crate) mean: Option<f64>,
    pub(crate) worst: Option<f64>,
    pub(crate) best: Option<f64>,
}

impl Tally {
    pub(crate) fn compared(&self) -> usize {
        self.led + self.not_led
    }

    pub(crate) fn of(ratios: impl Iterator<Item = Option<Ratio>>) -> Tally {
        let mut tally = Tally::default();
        let mut known = Vec::new();
        for ratio in ratios {
            match ratio {
                Some(ratio) if ratio.cut => tally.cut += 1,
                Some(ratio) if ratio.value >= 1.0 => tally.led += 1,
                Some(_) => tally.not_led += 1,
                None => tally.without += 1,
            }
            known.extend(ratio.filter(|ratio| !ratio.cut).map(|ratio| ratio.value));
        }
        tally.mean = geometric_mean(known.iter().copied());
        tally.worst = known.iter().copied().min_by(f64::total_cmp);
        tally.best = known.iter().copied().max_by(f64::total_cmp);
        tally
    }
}

/// A figure divided by another; `None` unless both are positive.
pub(crate) fn quotient(one: Option<Spread>, other: Option<Spread>) -> Option<f64> {
    let (one, other) = (one?.middle, other?.middle);
    (one > 0.0 && other > 0.0).then(|| one / other).filter(|ratio| ratio.is_finite())
}

impl Suite<'_> {
    /// Terrace against the best of the rest.
    pub(crate) fn against_best(&self, cell: &CellView<'_>) -> Option<Against> {
        let own = self.terrace()?;
        let terrace = cell.rate(own)?;
        let (column, best) = self.best_competitor(cell)?;
        let ratio = quotient(Some(terrace), Some(best))?;
        let cut = cell.is_cut(own) || cell.is_cut(column);
        Some(Against { terrace, best, column, ratio, cut })
    }

    /// Terrace against one column.
    pub(crate) fn against(&self, cell: &CellView<'_>, column: usize) -> Option<f64> {
        quotient(cell.rate(self.terrace()?), cell.rate(column))
    }

    /// The same, with whether one of the two was cut short.
    pub(crate) fn ratio(&self, cell: &CellView<'_>, column: usize) -> Option<Ratio> {
        let cut = cell.is_cut(self.terrace()?) || cell.is_cut(column);
        self.against(cell, column).map(|value| Ratio { value, cut })
    }

    /// Terrace against one column, the time for the work that writes put off included on both
    /// sides.
    pub(crate) fn against_with_debt(&self, cell: &CellView<'_>, column: usize) -> Option<f64> {
        Some(cell.rate_with_debt(self.terrace()?)? / cell.rate_with_debt(column)?)
    }

    /// Terrace against the best of the rest, the time for the work that writes put off included on
    /// both sides, and which column that is; `None` where nothing was put off.
    pub(crate) fn against_best_with_debt(&self, cell: &CellView<'_>) -> Option<(usize, Ratio)> {
        let own = self.terrace()?;
        let competitors =
            (0..self.columns.len()).filter(|column| self.columns[*column].competes_in(cell.cell));
        let ratios = competitors.filter_map(|column| {
            let cut = cell.is_cut(own) || cell.is_cut(column);
            Some((column, Ratio { value: self.against_with_debt(cell, column)?, cut }))
        });
        ratios.min_by(|a, b| a.1.value.total_cmp(&b.1.value))
    }

    /// Of the cells in which work was put off: with the time for it, and without.
    pub(crate) fn debt_tallies(&self) -> (Tally, Tally) {
        let cells = || {
            self.cells().filter_map(|(_, cell)| {
                let (_, ratio) = self.against_best_with_debt(cell)?;
                Some((cell, Some(ratio).filter(|ratio| !ratio.cut)?))
            })
        };
        (
            Tally::of(cells().map(|(_, ratio)| Some(ratio))),
            Tally::of(cells().map(|(cell, _)| self.against_best(cell).map(|a| a.as_ratio()))),
        )
    }

    /// A column's rate in a cell divided by its own rate in the baseline of the cell's section.
    pub(crate) fn against_baseline(
        &self,
        section: &SectionView<'_>,
        cell: &CellView<'_>,
        column: usize,
    ) -> Option<Ratio> {
        let baseline = section.section.baseline.as_ref()?;
        let benchmark = baseline.benchmark(&cell.cell.benchmark);
        let of_baseline =
            self.sections.iter().find(|other| other.section.id == baseline.section)?;
        let base = of_baseline.cells.iter().find(|other| {
            other.cell.benchmark == benchmark
                && (&other.cell.x, &other.cell.setting) == (&cell.cell.x, &cell.cell.setting)
        })?;
        let cut = cell.is_cut(column) || base.is_cut(column);
        quotient(cell.rate(column), base.rate(column)).map(|value| Ratio { value, cut })
    }

    /// Of one section, against the best of the rest.
    pub(crate) fn section_tally(&self, section: &SectionView<'_>) -> Tally {
        Tally::of(section.cells.iter().map(|cell| self.against_best(cell).map(|a| a.as_ratio())))
    }

    /// Of all sections, against the best of the rest.
    pub(crate) fn tally(&self) -> Tally {
        Tally::of(self.cells().map(|(_, cell)| self.against_best(cell).map(|a| a.as_ratio())))
    }

    /// Of all cells in which work was put off, against one column, with the time for it.
    pub(crate) fn column_debt_tally(&self, column: usize) -> Tally {
        Tally::of(self.cells().filter_map(|(_, cell)| {
            let cut = cell.is_cut(self.terrace()?) || cell.is_cut(column);
            Some(Some(Ratio { value: self.against_with_debt(cell, column)?, cut }))
        }))
    }

    /// Of all sections, against one column.
    pub(crate) fn column_tally(&self, column: usize) -> Tally {
        Tally::of(self.cells().map(|(_, cell)| self.ratio(cell, column)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_everything() {
        let of = |value, cut| Some(Ratio { value, cut });
        let ratios = [of(4.0, false), of(1.0, false), None, of(0.25, false), of(9.0, true)];
        let tally = Tally::of(ratios.into_iter());
        assert_eq!((tally.led, tally.not_led, tally.without, tally.cut), (2, 1, 1, 1));
        assert_eq!((tally.worst, tally.best), (Some(0.25), Some(4.0)));
        assert!((tally.mean.expect("a mean") - 1.0).abs() < 1e-12);
        assert_eq!(Tally::of(std::iter::empty()), Tally::default());
    }

    #[test]
    fn no_ratio_of_nothing() {
        let of = |middle| Some(Spread { middle, min: middle, max: middle, spread: 0.0, rounds: 1 });
        assert_eq!(quotient(of(3.0), of(2.0)), Some(1.5));
        for (a, b) in
            [(of(0.0), of(1.0)), (of(1.0), of(0.0)), (None, of(1.0)), (of(1e300), of(1e-300))]
        {
            assert_eq!(quotient(a, b), None);
        }
    }
}
