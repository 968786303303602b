//! From values to places on a chart: linear and logarithmic axes and where their ticks stand. Pure.
//!
//! Invariants:
//! 1. Every place is finite and within the axis, whatever the value: what lies outside is put at
//!    the nearer end.
//! 2. An axis has between two and about ten ticks.

/// An axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// From 0 to a round number at or above `high`.
    pub(crate) fn from_zero(high: f64, from: f64, to: f64) -> Scale {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        let step = step(high, 5.0);
        Scale { low: 0.0, high: (high / step - 1e-9).ceil() * step, from, to, log: false }
    }

    /// From 0 to exactly `high`.
    pub(crate) fn linear(low: f64, high: f64, from: f64, to: f64) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, from, to, log: false }
    }

    /// Logarithmic over the positive ones among `values`, with a little room at both ends.
    pub(crate) fn log(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|v| v.is_finite() && *v > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if high == 0.0 {
            (low, high) = (1.0, 10.0);
        }
        // More powers of ten than that are no measurements.
        low = low.max(high * 1e-15);
        let mut scale = Scale { low: low / 1.15, high: high * 1.15, from, to, log: true };
        // At least one power of ten, so that two ticks stand on the axis.
        if scale.high / scale.low < 10.0 {
            scale.low = 10f64.powf(low.log10().floor());
            scale.high = scale.high.max(scale.low * 10.0);
        }
        scale
    }

    /// Where `value` stands.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let part = if self.log {
            (value.max(f64::MIN_POSITIVE).ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let part = if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) };
        self.from + part * (self.to - self.from)
    }

    /// The values at which ticks stand.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.log { self.log_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let step = step(self.high - self.low, 5.0);
        let first = (self.low / step - 1e-9).ceil();
        let count = ((self.high - first * step) / step + 1e-9).floor().clamp(0.0, 20.0) as u32;
        (0..=count).map(|n| (first + f64::from(n)) * step).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (self.high / self.low).log10();
        let (factors, every): (&[f64], usize) = match decades {
            d if d < 2.3 => (&[1.0, 2.0, 5.0], 1),
            d if d < 9.0 => (&[1.0], 1),
            d => (&[1.0], (d / 8.0).ceil() as usize),
        };
        (first..=last)
            .step_by(every)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
            .filter(|tick| (self.low * 0.999..=self.high * 1.001).contains(tick))
            .collect()
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides `range` into about `parts`.
fn step(range: f64, parts: f64) -> f64 {
    let rough = (range / parts).max(f64::MIN_POSITIVE * 1e10);
    let power = 10f64.powf(rough.log10().floor());
    let factor = match rough / power {
        f if f <= 1.0 + 1e-9 => 1.0,
        f if f <= 2.0 + 1e-9 => 2.0,
        f if f <= 5.0 + 1e-9 => 5.0,
        _ => 10.0,
    };
    factor * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ends_on_a_round_number() {
        let scale = Scale::from_zero(4.03e6, 0.0, 100.0);
        assert_eq!(scale.ticks(), [0.0, 1e6, 2e6, 3e6, 4e6, 5e6]);
        assert!((scale.at(2.5e6) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn log_ticks_are_powers_or_parts_of_one() {
        assert_eq!(Scale::log([0.5, 800.0].into_iter(), 0.0, 1.0).ticks(), [1.0, 10.0, 100.0]);
        let near = Scale::log([3.0, 4.0].into_iter(), 0.0, 1.0);
        assert_eq!(near.ticks(), [1.0, 2.0, 5.0, 10.0]);
    }

    #[test]
    fn any_value_has_a_place() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e300, f64::MIN_POSITIVE];
        let scales = [
            Scale::from_zero(0.0, 10.0, 20.0),
            Scale::from_zero(f64::NAN, 10.0, 20.0),
            Scale::from_zero(1e300, 10.0, 20.0),
            Scale::log(odd.into_iter(), 10.0, 20.0),
            Scale::log(std::iter::empty(), 10.0, 20.0),
            Scale::linear(0.0, 0.0, 20.0, 10.0),
        ];
        for scale in scales {
            for value in odd {
                assert!((10.0..=20.0).contains(&scale.at(value)), "{scale:?} {value}");
            }
            let ticks = scale.ticks();
            assert!((2..=21).contains(&ticks.len()), "{scale:?} {ticks:?}");
        }
    }
}
