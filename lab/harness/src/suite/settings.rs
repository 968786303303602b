//! Settings of a suite: the flags of an engine program, and three that depend on the run.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Flags whose value is a size in bytes.
const SIZES: [&str; 4] = ["cache_size", "write_buffer_size", "block_size", MEMORY_LIMIT];
/// What a program may use with all that the system caches for it: not its flag, but its limit.
const MEMORY_LIMIT: &str = "memory_limit";
/// Flags whose value is a whole number.
const NUMBERS: [&str; 10] = [
    "max_open_files",
    "bloom_bits",
    "threads",
    "batch",
    "write_rate",
    "keyspaces",
    "rate",
    "key_size",
    "value_size",
    "value_size_max",
];
/// Multiples of the run's entries.
const MULTIPLES: [&str; 2] = ["num_times", "reads_times"];
/// A cache or buffer is not scaled down below this.
const LEAST_SIZE: f64 = 4_194_304.0;
/// Nor is a limit of memory below this.
const LEAST_LIMIT: f64 = 67_108_864.0;
/// Seconds.
const SECONDS: [&str; 2] = ["duration", "interval"];

/// Settings by name. Those of a cell are laid over those of its group, and these over those of its
/// section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    values: BTreeMap<String, Value>,
}

impl Settings {
    /// Settings from a table of a suite.
    ///
    /// # Errors
    /// Names the setting that is unknown or has an impossible value.
    pub fn parse(table: &toml::Table) -> Result<Settings, String> {
        let mut values = BTreeMap::new();
        for (name, value) in table {
            let wrong = || format!("{name} = {value:?}: not a value for it");
            let parsed = match name.as_str() {
                name if SIZES.contains(&name) => Value::from(bytes(value).ok_or_else(wrong)?),
                name if NUMBERS.contains(&name) => Value::from(
                    value.as_integer().and_then(|n| u64::try_from(n).ok()).ok_or_else(wrong)?,
                ),
                name if MULTIPLES.contains(&name) || SECONDS.contains(&name) => {
                    let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
                    Value::from(number.filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(wrong)?)
                }
                "compression" => match value.as_str() {
                    Some(word @ ("snappy" | "none")) => Value::from(word),
                    _ => return Err(wrong()),
                },
                "trace" => Value::from(value.as_str().ok_or_else(wrong)?),
                _ => return Err(format!("there is no setting {name}")),
            };
            values.insert(name.clone(), parsed);
        }
        Ok(Settings { values })
    }

    /// These, with those of `other` in their place where both have one.
    #[must_use]
    pub fn with(&self, other: &Settings) -> Settings {
        let mut values = self.values.clone();
        values.extend(other.values.clone());
        Settings { values }
    }

    /// A number, if it is set.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.values.get(name).and_then(Value::as_f64)
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.values.insert(name.to_owned(), value.into());
    }

    /// Multiplies what has to do with memory. Some engines do not start with less than a few
    /// mebibytes.
    pub(crate) fn scale_sizes(&mut self, factor: f64) {
        for (name, least) in [
            ("cache_size", LEAST_SIZE),
            ("write_buffer_size", LEAST_SIZE),
            (MEMORY_LIMIT, LEAST_LIMIT),
        ] {
            if let Some(size) = self.number(name) {
                self.set(name, (size * factor).max(size.min(least)) as u64);
            }
        }
    }

    /// The bytes that an engine is given for its caches.
    #[must_use]
    pub fn memory(&self) -> u64 {
        ["cache_size", "write_buffer_size"].iter().filter_map(|name| self.number(name)).sum::<f64>()
            as u64
    }

    /// The bytes of memory that a program may use, the page cache for its files included.
    #[must_use]
    pub fn memory_limit(&self) -> Option<u64> {
        self.number(MEMORY_LIMIT).map(|limit| limit as u64)
    }

    /// Bytes of a key and the longest value.
    #[must_use]
    pub fn entry_size(&self) -> u64 {
        let of = |name, default: f64| self.number(name).unwrap_or(default);
        (of("key_size", 16.0) + of("value_size", 100.0).max(of("value_size_max", 0.0))) as u64
    }

    /// For the report.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        self.values.clone().into_iter().collect()
    }

    /// For an engine program, with the entries that the run has.
    #[must_use]
    pub fn flags(&self, num: u64) -> Vec<String> {
        let times = |name| self.number(name).unwrap_or(1.0);
        let num = multiple(num, times("num_times"));
        let mut flags = vec![
            format!("--num={num}"),
            format!("--reads={}", multiple(num, times("reads_times"))),
        ];
        let is_flag = |name: &str| !MULTIPLES.contains(&name) && name != MEMORY_LIMIT;
        for (name, value) in self.values.iter().filter(|(name, _)| is_flag(name)) {
            match value {
                Value::String(word) => flags.push(format!("--{name}={word}")),
                number => flags.push(format!("--{name}={number}")),
            }
        }
        flags
    }

    /// The entries that a database has under these settings.
    #[must_use]
    pub fn entries(&self, num: u64) -> u64 {
        multiple(num, self.number("num_times").unwrap_or(1.0))
    }
}

fn multiple(num: u64, times: f64) -> u64 {
    ((num as f64 * times).round() as u64).max(1)
}

/// Bytes: a number, or a text such as `"8 MiB"`.
fn bytes(value: &toml::Value) -> Option<u64> {
    if let Some(number) = value.as_integer() {
        return u64::try_from(number).ok();
    }
    let (number, unit) = value.as_str()?.split_once(' ')?;
    let shift = match unit {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse(&toml::from_str(text).expect("TOML"))
    }

    #[test]
    fn settings_become_flags() {
        let section = parse("cache_size = '2 MiB'\ncompression = 'none'").expect("settings");
        let cell = parse(
            "num_times = 0.5\nreads_times = 0.1\nthreads = 4\nduration = 2.5\ncache_size = 5",
        )
        .expect("");
        let flags = section.with(&cell).flags(1000);
        let expected = [
            "--num=500",
            "--reads=50",
            "--cache_size=5",
            "--compression=none",
            "--duration=2.5",
            "--threads=4",
        ];
        assert_eq!(flags, expected);
        assert_eq!(section.memory(), 2 << 20);

        let mut limited = parse("memory_limit = '1 GiB'").expect("settings");
        assert_eq!(limited.memory_limit(), Some(1 << 30));
        assert_eq!(limited.flags(7), ["--num=7", "--reads=7"]);
        limited.scale_sizes(0.001);
        assert_eq!(limited.memory_limit(), Some(64 << 20));
    }

    #[test]
    fn wrong_settings_are_named() {
        for (text, name) in [
            ("cash_size = 1", "cash_size"),
            ("cache_size = '2 megs'", "cache_size"),
            ("threads = -1", "threads"),
            ("threads = 'two'", "threads"),
            ("compression = 'zip'", "compression"),
            ("duration = -1.0", "duration"),
        ] {
            let problem = parse(text).expect_err(text);
            assert!(problem.contains(name), "{problem}");
        }
    }
}
