//! The measurements of a session, and what is computed from them.

use serde::{Deserialize, Serialize};

use crate::plan::Section;

/// What an engine program prints for one benchmark.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Measurement {
    pub(crate) benchmark: String,
    pub(crate) engine: String,
    pub(crate) ops: u64,
    pub(crate) seconds: f64,
    pub(crate) micros_per_op: f64,
    pub(crate) ops_per_sec: f64,
    pub(crate) mb_per_sec: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) bytes_written: u64,
    pub(crate) disk_bytes: u64,
    /// Reads that found their key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<u64>,
    /// The rate of the writer beside the readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) writer_ops_per_sec: Option<f64>,
}

/// A measurement and where it belongs.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) configuration: &'static str,
    pub(crate) section: &'static str,
    pub(crate) round: u32,
    pub(crate) preparation: bool,
    #[serde(flatten)]
    pub(crate) measurement: Measurement,
}

/// Every measurement of a session.
#[derive(Debug, Default)]
pub(crate) struct Results {
    samples: Vec<Sample>,
}

impl Results {
    pub(crate) fn add(&mut self, configuration: &'static str, section: &Section, round: u32, run: Vec<Measurement>) {
        self.samples.extend(run.into_iter().enumerate().map(|(at, measurement)| Sample {
            configuration,
            section: section.name,
            round,
            preparation: at < section.prepared(),
            measurement,
        }));
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// What one engine did in one benchmark; `None` if it was not run.
    pub(crate) fn summary(&self, configuration: &str, benchmark: &str, engine: &str) -> Option<Summary> {
        let chosen: Vec<&Measurement> = self
            .samples
            .iter()
            .filter(|s| !s.preparation && s.configuration == configuration)
            .map(|s| &s.measurement)
            .filter(|m| m.benchmark == benchmark && m.engine == engine)
            .collect();
        let of = |field: fn(&Measurement) -> f64| Median::of(chosen.iter().map(|m| field(m)));
        Some(Summary {
            rate: of(|m| m.ops_per_sec)?,
            p99_us: of(|m| m.p99_us)?.middle,
            cpu_seconds: of(|m| m.cpu_seconds)?.middle,
            bytes_written: of(|m| m.bytes_written as f64)?.middle,
            disk_bytes: of(|m| m.disk_bytes as f64)?.middle,
        })
    }
}

/// Medians over all rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    /// Operations a second.
    pub(crate) rate: Median,
    pub(crate) p99_us: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) bytes_written: f64,
    pub(crate) disk_bytes: f64,
}

/// A median and how far the middle half of the values lies apart, as a fraction of the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Median {
    pub(crate) middle: f64,
    pub(crate) spread: f64,
}

impl Median {
    fn of(values: impl Iterator<Item = f64>) -> Option<Median> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        // Between two values the quantile is interpolated.
        let at = |quantile: f64| {
            let place = quantile * last as f64;
            let (low, high) = (place.floor(), place.ceil());
            values[low as usize] + (values[high as usize] - values[low as usize]) * (place - low)
        };
        let middle = at(0.5);
        let spread = if middle > 0.0 { (at(0.75) - at(0.25)) / middle } else { 0.0 };
        Some(Median { middle, spread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(Median::of([].into_iter()), None);
        assert_eq!(Median::of([3.0].into_iter()), Some(Median { middle: 3.0, spread: 0.0 }));
        let median = Median::of([4.0, 1.0, 2.0, 3.0].into_iter()).expect("values");
        assert_eq!(median, Median { middle: 2.5, spread: 0.6 });
    }
}
