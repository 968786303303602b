//! Figures over several rounds, and over several cells.

use serde::{Deserialize, Serialize};

use super::describe::Figure;

/// A number measured in several rounds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Spread {
    /// The figure, by the run's [`Figure`].
    pub middle: f64,
    /// The lowest of all rounds.
    pub min: f64,
    /// The highest of all rounds.
    pub max: f64,
    /// `(max - min) / median`, of the rounds that count towards the figure.
    pub spread: f64,
    /// How many rounds.
    pub rounds: usize,
}

impl Spread {
    /// A spread above this is shown as such.
    pub const NOTABLE: f64 = 0.10;

    /// The figure of some values; `None` if there is none.
    pub fn of(values: impl Iterator<Item = f64>, figure: Figure) -> Option<Spread> {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let median = median(&values);
        let (counted, middle) = match figure {
            Figure::MeanWithoutExtremes if values.len() >= 3 => {
                let counted = &values[1..values.len() - 1];
                (counted, counted.iter().sum::<f64>() / counted.len() as f64)
            }
            Figure::Median | Figure::MeanWithoutExtremes => (values.as_slice(), median),
        };
        let spread = spread_of(counted, median);
        Some(Spread { middle, min, max, spread, rounds: values.len() })
    }

    /// Whether the spread has to be shown.
    #[must_use]
    pub fn is_notable(&self) -> bool {
        self.spread > Spread::NOTABLE
    }
}

/// How far ordered values lie apart, as a fraction of their median.
#[must_use]
pub fn spread_of(ordered: &[f64], median: f64) -> f64 {
    match (ordered.first(), ordered.last()) {
        (Some(min), Some(max)) if median > 0.0 => (max - min) / median,
        _ => 0.0,
    }
}

/// The chance that an interval misses what it should hold.
const MISSED: f64 = 0.05;

/// How far off a median of values that scatter by chance may be: by this interval, nineteen times
/// in twenty. It is that of the order statistics, which asks nothing of how the values scatter; of
/// fewer than six values there is none.
#[must_use]
pub fn interval_of_median(values: &[f64]) -> Option<(f64, f64)> {
    interval(values, MISSED)
}

/// How far off the quotient of the medians of two independent samples may be, nineteen times in
/// twenty. Both medians are taken at the far ends of their own intervals, which are wide enough for
/// both to hold at once; of fewer than seven values on a side there is none.
#[must_use]
pub fn interval_of_quotient(values: &[f64], by: &[f64]) -> Option<(f64, f64)> {
    let missed = 1.0 - (1.0 - MISSED).sqrt();
    let (low, high) = interval(values, missed)?;
    let (least, most) = interval(by, missed)?;
    (least > 0.0).then(|| (low / most, high / least))
}

/// The interval of order statistics that misses the median of values with at most this chance.
fn interval(values: &[f64], missed: f64) -> Option<(f64, f64)> {
    let mut ordered = values.to_vec();
    ordered.sort_by(f64::total_cmp);
    let n = ordered.len();
    // The chance that at most `below` of n values lie under the true median is a sum of binomial
    // coefficients over 2^n.
    let mut chance = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut sum = 0.0;
    let mut place = None;
    for below in 0..n / 2 {
        sum += chance;
        if 2.0 * sum > missed {
            break;
        }
        place = Some(below);
        chance *= (n - below) as f64 / (below + 1) as f64;
    }
    place.map(|place| (ordered[place], ordered[n - 1 - place]))
}

fn median(ordered: &[f64]) -> f64 {
    let half = ordered.len() / 2;
    if ordered.len() % 2 == 1 { ordered[half] } else { (ordered[half - 1] + ordered[half]) / 2.0 }
}

/// The geometric mean of positive numbers; `None` if there is none.
pub fn geometric_mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for number in numbers.filter(|number| number.is_finite() && *number > 0.0) {
        sum += number.ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_several_rounds() {
        let of = |values: &[f64], figure| Spread::of(values.iter().copied(), figure);
        assert_eq!(of(&[], Figure::Median), None);
        let one = of(&[3.0], Figure::Median).expect("a figure");
        assert_eq!((one.middle, one.spread, one.rounds), (3.0, 0.0, 1));
        let four = of(&[4.0, 1.0, 2.0, 3.0], Figure::Median).expect("a figure");
        assert_eq!((four.middle, four.min, four.max, four.spread), (2.5, 1.0, 4.0, 1.2));
        let five = of(&[100.0, 4.0, 1.0, 3.0, 5.0], Figure::MeanWithoutExtremes).expect("a figure");
        assert_eq!((five.middle, five.min, five.max, five.spread), (4.0, 1.0, 100.0, 0.5));
    }

    #[test]
    fn how_far_off_a_median_may_be() {
        let values = |n: u32| (1..=n).rev().map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval_of_median(&values(5)), None);
        // From tables of confidence intervals for medians.
        for (n, interval) in
            [(6, (1.0, 6.0)), (9, (2.0, 8.0)), (15, (4.0, 12.0)), (30, (10.0, 21.0))]
        {
            assert_eq!(interval_of_median(&values(n)), Some(interval), "{n}");
        }
    }

    #[test]
    fn how_far_off_a_quotient_of_medians_may_be() {
        let values = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval_of_quotient(&values(6), &values(9)), None);
        // At 97.47%, so that both hold at 95%: of seven the extremes, of ten the second.
        assert_eq!(interval_of_quotient(&values(7), &values(10)), Some((1.0 / 9.0, 7.0 / 2.0)));
        assert_eq!(interval_of_quotient(&values(7), &[0.0; 9]), None);
    }

    #[test]
    fn geometric_means() {
        assert_eq!(geometric_mean([].into_iter()), None);
        let mean = geometric_mean([4.0, 1.0, 0.0, f64::NAN].into_iter()).expect("numbers");
        assert!((mean - 2.0).abs() < 1e-12, "{mean}");
    }
}
