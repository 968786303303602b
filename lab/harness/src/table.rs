//! What a reader gets: a table on the terminal, the same as Markdown, and the raw data as JSON.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::machine::Machine;
use crate::plan::{BENCHMARKS, CONFIGURATIONS};
use crate::results::{Results, Summary};

/// Spreads above this are shown.
const NOTABLE_SPREAD: f64 = 0.10;

/// A session and its setting.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) engines: Vec<String>,
    /// Why an engine is not in the report.
    pub(crate) missing: Option<String>,
    pub(crate) num: u64,
    pub(crate) rounds: u32,
    pub(crate) seconds: f64,
    pub(crate) results: Results,
}

/// One line of the table.
struct Row {
    benchmark: &'static str,
    terrace: Summary,
    leveldb: Option<Summary>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.leveldb.map(|leveldb| self.terrace.rate.middle / leveldb.rate.middle)
    }
}

impl Report {
    /// The workloads in which Terrace is slower, over all configurations.
    pub(crate) fn below_one(&self) -> usize {
        self.below().len()
    }

    fn below(&self) -> Vec<String> {
        let below = |row: &Row| row.ratio().is_some_and(|ratio| ratio < 1.0);
        CONFIGURATIONS
            .iter()
            .flat_map(|c| {
                self.rows(c.name).into_iter().filter(below).map(|row| format!("{}/{}", c.name, row.benchmark))
            })
            .collect()
    }

    fn rows(&self, configuration: &str) -> Vec<Row> {
        let summary = |benchmark, engine| self.results.summary(configuration, benchmark, engine);
        BENCHMARKS
            .into_iter()
            .filter_map(|benchmark| {
                let terrace = summary(benchmark, "terrace")?;
                Some(Row { benchmark, terrace, leveldb: summary(benchmark, "leveldb") })
            })
            .collect()
    }

    fn setting(&self) -> String {
        let machine = &self.machine;
        let mut text = format!(
            "{}; {} entries of 16+100 bytes, medians of {} rounds, {:.0} s\n{}, {} cores, {} MiB, {}, {}, {}\n",
            self.engines.join(" and "),
            self.num,
            self.rounds,
            self.seconds,
            machine.processor,
            machine.cores,
            machine.memory_mib,
            machine.system,
            machine.file_system,
            machine.date,
        );
        if let Some(missing) = &self.missing {
            text.push_str(missing);
            text.push('\n');
        }
        text
    }

    fn verdict(&self) -> String {
        let below = self.below();
        match (&self.missing, below.is_empty()) {
            (Some(_), _) => "no ratios: Terrace ran alone\n".to_owned(),
            (None, true) => "no ratio is below 1.0\n".to_owned(),
            (None, false) => format!("{} below 1.0: {}\n", below.len(), below.join(", ")),
        }
    }

    /// The table for a terminal.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("\n{}", self.setting());
        for configuration in &CONFIGURATIONS {
            let rows = self.rows(configuration.name);
            if rows.is_empty() {
                continue;
            }
            let name = configuration.name;
            let _ = writeln!(text, "\n{name:<18}{:>14}{:>14}{:>9}   spread", "terrace op/s", "leveldb op/s", "ratio");
            for row in rows {
                let leveldb = row.leveldb.map_or("-".to_owned(), |leveldb| rate(leveldb.rate.middle));
                let ratio = row.ratio().map_or("-".to_owned(), quotient);
                let flag = if row.ratio().is_some_and(|ratio| ratio < 1.0) { "  BELOW 1.0" } else { "" };
                let _ = writeln!(
                    text,
                    "{:<18}{:>14}{leveldb:>14}{ratio:>9}   {}{flag}",
                    row.benchmark,
                    rate(row.terrace.rate.middle),
                    spread(&row),
                );
            }
        }
        let _ = write!(text, "\n{}", self.verdict());
        text
    }

    fn markdown(&self) -> String {
        let mut text = format!("# Terrace and LevelDB\n\n{}\n{}", self.setting(), self.verdict());
        text.push_str(
            "\nIn each pair Terrace comes first. p99 in µs, processor time in s, written and on disk in MB.\n",
        );
        for configuration in &CONFIGURATIONS {
            let rows = self.rows(configuration.name);
            if rows.is_empty() {
                continue;
            }
            let _ = write!(
                text,
                "\n## {}\n\n| workload | Terrace op/s | LevelDB op/s | ratio | spread | p99 | processor | written | on disk |\n\
                 | --- | ---: | ---: | ---: | --- | --- | --- | --- | --- |\n",
                configuration.name
            );
            for row in rows {
                let pair = |field: fn(&Summary) -> String| match &row.leveldb {
                    Some(leveldb) => format!("{} / {}", field(&row.terrace), field(leveldb)),
                    None => field(&row.terrace),
                };
                let ratio = match row.ratio() {
                    Some(ratio) if ratio < 1.0 => format!("**{}**", quotient(ratio)),
                    Some(ratio) => quotient(ratio),
                    None => "-".to_owned(),
                };
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {ratio} | {} | {} | {} | {} | {} |",
                    row.benchmark,
                    rate(row.terrace.rate.middle),
                    row.leveldb.map_or("-".to_owned(), |leveldb| rate(leveldb.rate.middle)),
                    spread(&row),
                    pair(|s| format!("{:.1}", s.p99_us)),
                    pair(|s| format!("{:.2}", s.cpu_seconds)),
                    pair(|s| format!("{:.0}", s.bytes_written / 1e6)),
                    pair(|s| format!("{:.0}", s.disk_bytes / 1e6)),
                );
            }
        }
        text
    }

    /// Writes `compare.md` and `compare.json`.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), String> {
        let raw = json!({
            "machine": self.machine,
            "engines": self.engines,
            "missing": self.missing,
            "num": self.num,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "samples": self.results.samples(),
        });
        let raw = serde_json::to_string_pretty(&raw).map_err(|e| e.to_string())?;
        for (name, text) in [("compare.md", self.markdown()), ("compare.json", raw)] {
            let path = dir.join(name);
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(())
    }
}

/// A ratio, rounded down, so that what is shown as 1.00 is not below 1.
fn quotient(ratio: f64) -> String {
    format!("{:.2}", (ratio * 100.0).floor() / 100.0)
}

/// Operations a second with three significant digits or more.
fn rate(rate: f64) -> String {
    if rate >= 100.0 {
        let digits = format!("{rate:.0}");
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    } else {
        format!("{rate:.2}")
    }
}

/// The spread of each engine whose figures lie more than a tenth apart.
fn spread(row: &Row) -> String {
    let one = |name, summary: &Summary| {
        let spread = summary.rate.spread;
        (spread > NOTABLE_SPREAD).then(|| format!("{name} {:.0}%", spread * 100.0))
    };
    let both = [one("terrace", &row.terrace), row.leveldb.as_ref().and_then(|leveldb| one("leveldb", leveldb))];
    both.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SECTIONS;
    use crate::results::Measurement;

    fn measurement(engine: &str, ops_per_sec: f64) -> Measurement {
        Measurement {
            benchmark: "fillsync".to_owned(),
            engine: engine.to_owned(),
            ops: 10,
            seconds: 1.0,
            micros_per_op: 1.0,
            ops_per_sec,
            mb_per_sec: 1.0,
            p50_us: 1.0,
            p99_us: 1.0,
            p999_us: 1.0,
            max_us: 1.0,
            cpu_seconds: 1.0,
            bytes_written: 1,
            disk_bytes: 1,
            found: None,
            writer_ops_per_sec: None,
        }
    }

    fn report(leveldb: Option<f64>) -> Report {
        let section = SECTIONS.iter().find(|section| section.name == "sync").expect("a section");
        let mut results = Results::default();
        results.add("4MB", section, 0, vec![measurement("terrace", 9_000.0)]);
        if let Some(rate) = leveldb {
            results.add("4MB", section, 0, vec![measurement("leveldb", rate)]);
        }
        let machine = Machine::here(Path::new("/"));
        let missing = leveldb.is_none().then(|| "LevelDB was not run: gone".to_owned());
        Report { machine, engines: vec!["terrace 0".to_owned()], missing, num: 1, rounds: 1, seconds: 1.0, results }
    }

    #[test]
    fn a_slower_workload_is_flagged() {
        let slower = report(Some(10_000.0));
        assert_eq!(slower.below_one(), 1);
        assert!(slower.text().contains("0.90") && slower.text().contains("BELOW 1.0"), "{}", slower.text());
        assert!(slower.markdown().contains("**0.90**"), "{}", slower.markdown());
        let faster = report(Some(4_500.0));
        assert_eq!(faster.below_one(), 0);
        assert!(faster.text().contains("9,000") && faster.text().contains("2.00"), "{}", faster.text());
    }

    #[test]
    fn a_missing_engine_is_said() {
        let alone = report(None);
        assert!(alone.text().contains("LevelDB was not run: gone") && alone.text().contains("Terrace ran alone"));
        assert_eq!(alone.below_one(), 0);
    }
}
