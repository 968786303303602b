//! Terrace against the others: ratios of a cell, geometric means of a section and of everything.
//! Pure.
//!
//! Invariants:
//! 1. A ratio is Terrace's figure divided by the other's, both of the same cell of the same
//!    session; above 1 Terrace is faster.
//! 2. Against "the best of the rest" count only engines that promise as much as the cell asks for.
//! 3. A cell in which one side has no positive figure has no ratio, and is counted as such, not
//!    left out silently.

use crate::run::{Spread, geometric_mean};

use super::model::{CellView, SectionView, Suite};

/// Terrace against the best of the rest in one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Against {
    pub(crate) terrace: Spread,
    pub(crate) best: Spread,
    /// The column of the best.
    pub(crate) column: usize,
    pub(crate) ratio: f64,
}

impl Against {
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
    pub(crate) mean: Option<f64>,
    pub(crate) worst: Option<f64>,
    pub(crate) best: Option<f64>,
}

impl Tally {
    pub(crate) fn compared(&self) -> usize {
        self.led + self.not_led
    }

    pub(crate) fn of(ratios: impl Iterator<Item = Option<f64>>) -> Tally {
        let mut tally = Tally::default();
        let mut known = Vec::new();
        for ratio in ratios {
            match ratio {
                Some(ratio) if ratio >= 1.0 => tally.led += 1,
                Some(_) => tally.not_led += 1,
                None => tally.without += 1,
            }
            known.extend(ratio);
        }
        tally.mean = geometric_mean(known.iter().copied());
        tally.worst = known.iter().copied().min_by(f64::total_cmp);
        tally.best = known.iter().copied().max_by(f64::total_cmp);
        tally
    }
}

/// Terrace divided by another figure; `None` unless both are positive.
pub(crate) fn quotient(terrace: Option<Spread>, other: Option<Spread>) -> Option<f64> {
    let (terrace, other) = (terrace?.middle, other?.middle);
    (terrace > 0.0 && other > 0.0).then(|| terrace / other).filter(|ratio| ratio.is_finite())
}

impl Suite<'_> {
    /// Terrace against the best of the rest.
    pub(crate) fn against_best(&self, cell: &CellView<'_>) -> Option<Against> {
        let terrace = cell.rate(self.terrace()?)?;
        let (column, best) = self.best_competitor(cell)?;
        let ratio = quotient(Some(terrace), Some(best))?;
        Some(Against { terrace, best, column, ratio })
    }

    /// Terrace against one column.
    pub(crate) fn against(&self, cell: &CellView<'_>, column: usize) -> Option<f64> {
        quotient(cell.rate(self.terrace()?), cell.rate(column))
    }

    /// Of one section, against the best of the rest.
    pub(crate) fn section_tally(&self, section: &SectionView<'_>) -> Tally {
        Tally::of(section.cells.iter().map(|cell| self.against_best(cell).map(|a| a.ratio)))
    }

    /// Of all sections, against the best of the rest.
    pub(crate) fn tally(&self) -> Tally {
        Tally::of(self.cells().map(|(_, cell)| self.against_best(cell).map(|a| a.ratio)))
    }

    /// Of all sections, against one column.
    pub(crate) fn column_tally(&self, column: usize) -> Tally {
        Tally::of(self.cells().map(|(_, cell)| self.against(cell, column)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_everything() {
        let tally = Tally::of([Some(4.0), Some(1.0), None, Some(0.25)].into_iter());
        assert_eq!((tally.led, tally.not_led, tally.without), (2, 1, 1));
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
