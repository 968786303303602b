//! Which settings to change: a pure function of what a database looks like.
//!
//! A rule speaks only where it has a reason in this database, or in the kind of application that
//! the user named.

use serde::Serialize;

use super::measured::Evidence;
use super::survey::Survey;
use crate::opening::{PresetName, USUAL_VALUE_LOG};
use crate::output::columns::{counted, size};

/// Open files that are kept for other uses than tables.
const FILES_FOR_OTHER_USES: u64 = 10;
/// `Options::max_open_files` is clipped to these.
const LEAST_OPEN_FILES: u64 = 74;
const MOST_OPEN_FILES: u64 = 50_000;
/// So many tables are handled better as fewer and larger ones.
const MANY_TABLES: u64 = 5_000;
/// A compaction of level 0 is due from so many tables on; every lookup searches each of them.
const LEVEL_0_TABLES: u64 = 4;
/// Deletions among a hundred entries that make a compaction worth while.
const MANY_DELETIONS: u64 = 20;
/// Fewer entries than this say nothing about shares.
const ENTRIES_FOR_SHARES: u64 = 1_000;
/// From here on a value makes the default write buffer small.
const LARGE_VALUE: u64 = 16 << 10;
/// From here on compactions of tables mostly copy values.
const VALUE_FOR_VALUE_LOG: u64 = 2 * USUAL_VALUE_LOG as u64;
/// A block that costs a look-up much more than the entry in it.
const LARGE_BLOCK: u64 = 16 << 10;
/// A log that takes a while to replay.
const LONG_LOGS: u64 = 64 << 20;
/// Below this, compression and caches hardly matter.
const SMALL_DATABASE: u64 = 8 << 20;
/// Percent that snappy has to leave away, as a block has to shrink by an eighth to be kept
/// compressed.
const WORTH_COMPRESSING: u64 = 87;

/// The application's settings; LevelDB's defaults where none is given.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct InUse {
    pub(super) cache_size: u64,
    pub(super) max_open_files: u64,
}

/// A change.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    /// The option, or the command.
    pub(super) setting: &'static str,
    /// The value to set, or the command to run.
    pub(super) change: String,
    pub(super) why: String,
    /// The expected gain.
    pub(super) gain: String,
    #[serde(skip)]
    pub(super) evidence: Vec<Evidence>,
}

const fn on_terrace(
    section: &'static str,
    setting: &'static str,
    benchmarks: &'static [&'static str],
) -> Evidence {
    Evidence { engine: "terrace", section, setting, benchmarks }
}

/// All advice, the most effective first.
pub(super) fn advise(survey: &Survey, in_use: &InUse, workload: Option<PresetName>) -> Vec<Advice> {
    let rules = [
        compactions_due(survey),
        deletions(survey),
        open_files(survey, in_use),
        filters(survey),
        value_log(survey),
        write_buffer(survey, workload),
        cache(survey, in_use, workload),
        compression(survey),
        blocks(survey, workload),
        table_size(survey),
        logs(survey),
    ];
    rules.into_iter().flatten().collect()
}

fn compactions_due(survey: &Survey) -> Option<Advice> {
    let level_0 = survey.tables_at(0);
    if level_0 < LEVEL_0_TABLES && survey.pending_compaction_bytes == 0 {
        return None;
    }
    let due = size(survey.pending_compaction_bytes);
    Some(Advice {
        setting: "terrace compact",
        change: "run it, or leave the database open for a while".to_owned(),
        why: match level_0 {
            0 => format!("compactions over {due} are due"),
            _ => format!(
                "{} at level 0, compactions over {due} are due",
                counted(level_0, "table lies", "tables lie")
            ),
        },
        gain: "A lookup searches every table of level 0 and one of each deeper level. Terrace \
               compacts in the background while the database is open for writing."
            .to_owned(),
        evidence: vec![],
    })
}

fn deletions(survey: &Survey) -> Option<Advice> {
    let sample = &survey.sample;
    let percent = sample.deletion_percent();
    if percent < MANY_DELETIONS || sample.entries < ENTRIES_FOR_SHARES {
        return None;
    }
    Some(Advice {
        setting: "terrace compact",
        change: "run it after large deletions".to_owned(),
        why: format!("{percent} of 100 entries in the sample are deletions"),
        gain: format!(
            "The deletions and what they hide go: of {} in tables up to about {}. Scans no longer \
             step over them.",
            size(survey.table_bytes),
            // A deletion hides one entry, most often.
            size(percent.saturating_mul(2).min(100) * (survey.table_bytes / 100)),
        ),
        evidence: vec![],
    })
}

fn open_files(survey: &Survey, in_use: &InUse) -> Option<Advice> {
    let room =
        in_use.max_open_files.clamp(LEAST_OPEN_FILES, MOST_OPEN_FILES) - FILES_FOR_OTHER_USES;
    if survey.tables <= room || in_use.max_open_files >= MOST_OPEN_FILES {
        return None;
    }
    // A quarter more than now, in hundreds.
    let target = survey.tables.min(MOST_OPEN_FILES) * 5 / 4 + FILES_FOR_OTHER_USES;
    let target = target.next_multiple_of(100).min(MOST_OPEN_FILES);
    Some(Advice {
        setting: "max_open_files",
        change: format!("from {} to {target}", in_use.max_open_files),
        why: format!(
            "{}, of which {room} can hold a descriptor",
            counted(survey.tables, "table", "tables")
        ),
        gain: "Where tables are not mapped, for instance because they exceed memory, a look-up in \
               a table without a descriptor opens its file again. Random reads gain, scans hardly. \
               How much memory indexes and filters take has bounds of its own."
            .to_owned(),
        evidence: vec![
            on_terrace("settings-tenfold", "max_open_files=10", &["readrandom", "seekrandom"]),
            on_terrace("settings", "max_open_files=10", &["readrandom", "seekrandom"]),
        ],
    })
}

fn filters(survey: &Survey) -> Option<Advice> {
    let sample = &survey.sample;
    let without =
        sample.tables - sample.with_table_filter.max(sample.with_filter_policy).min(sample.tables);
    if survey.tables < 2 || without <= sample.tables / 2 {
        return None;
    }
    Some(Advice {
        setting: "table_filter_bits",
        change: "keep the default of 10 and run `terrace compact --force`; with LevelDB set a \
                 bloom filter of 10 bits"
            .to_owned(),
        why: format!(
            "{without} of {} have no filter",
            counted(sample.tables, "table looked into", "tables looked into")
        ),
        gain: "A filter spares the search of a table for a key that is not in it. Tables that \
             Terrace writes have one; existing ones get theirs when they are compacted."
            .to_owned(),
        evidence: vec![Evidence {
            engine: "leveldb",
            section: "interactive",
            setting: "preset interactive",
            benchmarks: &["readmissing", "readwriterandom"],
        }],
    })
}

fn value_log(survey: &Survey) -> Option<Advice> {
    let value = survey.sample.average_value();
    if survey.value_files > 0 || survey.table_bytes < SMALL_DATABASE || value < VALUE_FOR_VALUE_LOG
    {
        return None;
    }
    Some(Advice {
        setting: "value_log",
        change: format!(
            "to {}, and run `terrace convert DB --to extended`, if no LevelDB has to open the \
             database",
            size(USUAL_VALUE_LOG as u64)
        ),
        why: format!("values have {} on average, and lie in tables", size(value)),
        gain: "Compactions move pointers in place of the values, so that much less is written \
               where entries are overwritten or come in random order. Values in value files are \
               not compressed, and a scan reads each of them by itself."
            .to_owned(),
        evidence: vec![],
    })
}

fn write_buffer(survey: &Survey, workload: Option<PresetName>) -> Option<Advice> {
    const PRESET: u64 = 16 << 20;
    const LARGE: u64 = 64 << 20;
    let waits = survey.info_log.waits;
    let value = survey.sample.average_value();
    let (target, why, evidence) = if value >= LARGE_VALUE {
        (
            LARGE,
            format!(
                "values have {} on average: the default buffer of 4 MiB holds few",
                size(value)
            ),
            vec![],
        )
    } else if workload == Some(PresetName::Analytics) {
        let evidence = on_terrace("settings-tenfold", "write_buffer_size=64 MiB", &["fillrandom"]);
        (LARGE, "data are loaded in large amounts".to_owned(), vec![evidence])
    } else if waits > 0 || workload == Some(PresetName::DataLogging) {
        let why = match waits {
            0 => "the application writes without pause".to_owned(),
            _ => format!("writers had to wait {} by the info log", counted(waits, "time", "times")),
        };
        let evidence = on_terrace(
            "data-logging",
            "preset data-logging",
            &["fillseq", "fillrandom", "overwrite", "readrandom"],
        );
        (PRESET, why, vec![evidence])
    } else {
        return None;
    };
    // A buffer is flushed to a table of about half its size.
    if survey.info_log.largest_flush_bytes.saturating_mul(2) >= target {
        return None;
    }
    Some(Advice {
        setting: "write_buffer_size",
        change: format!("to {}", size(target)),
        why,
        gain: "Fewer and larger tables of level 0, so fewer compactions for the same data; more \
               memory, and more to replay after a crash: up to two buffers."
            .to_owned(),
        evidence,
    })
}

fn cache(survey: &Survey, in_use: &InUse, workload: Option<PresetName>) -> Option<Advice> {
    const LEAST: u64 = 64 << 20;
    const MOST: u64 = 1 << 30;
    let raw = survey.raw_bytes();
    if workload == Some(PresetName::DataLogging)
        || raw < in_use.cache_size.saturating_mul(4)
        || raw < LEAST
    {
        return None;
    }
    let target = (raw / 10).next_power_of_two().clamp(LEAST, MOST);
    if target <= in_use.cache_size {
        return None;
    }
    let percent = in_use.cache_size.saturating_mul(100) / raw.max(1);
    Some(Advice {
        setting: "block_cache_size",
        change: format!("from {} to {}, if memory allows", size(in_use.cache_size), size(target)),
        why: format!("the cache holds {percent} of 100 bytes of {} of blocks", size(raw)),
        gain:
            "A block in the cache is neither read nor decompressed again. Random reads that come \
             back to the same keys gain; scans and single passes do not."
                .to_owned(),
        evidence: vec![on_terrace("analytics", "preset analytics", &["readrandom", "seekrandom"])],
    })
}

fn compression(survey: &Survey) -> Option<Advice> {
    let sample = &survey.sample;
    let left = sample.would_compress_to_percent?;
    if survey.table_bytes < SMALL_DATABASE || sample.uncompressed_blocks < sample.blocks / 10 * 9 {
        return None;
    }
    let evidence =
        vec![on_terrace("settings", "compression=none", &["fillseq", "fillrandom", "readrandom"])];
    let blocks = "blocks lie uncompressed";
    Some(if left < WORTH_COMPRESSING {
        Advice {
            setting: "compression",
            change: "to snappy, and run `terrace compact --force`".to_owned(),
            why: format!("{blocks}, and snappy would leave {left} of 100 bytes"),
            gain: format!(
                "About {} less on disk, and less to read.",
                size((100 - left) * (survey.table_bytes / 100))
            ),
            evidence,
        }
    } else {
        Advice {
            setting: "compression",
            change: "to none".to_owned(),
            why: format!(
                "{blocks}, because they would not shrink: snappy would leave {left} of 100 bytes"
            ),
            gain: "With snappy every block is compressed without a gain when it is written. The \
                 file sizes stay."
                .to_owned(),
            evidence,
        }
    })
}

fn blocks(survey: &Survey, workload: Option<PresetName>) -> Option<Advice> {
    const FOR_LOOK_UPS: u64 = 4 << 10;
    let sample = &survey.sample;
    let block = sample.median_block;
    let entry = sample.raw_bytes / sample.entries.max(1);
    if workload == Some(PresetName::Analytics) || block < LARGE_BLOCK || entry > FOR_LOOK_UPS {
        return None;
    }
    Some(Advice {
        setting: "block_size",
        change: format!(
            "to {}, if look-ups matter more than scans, and run `terrace compact --force`",
            size(FOR_LOOK_UPS)
        ),
        why: format!(
            "half of the blocks have {} or more, entries {} on average",
            size(block),
            size(entry)
        ),
        gain: "A look-up reads, checks and decompresses a whole block for one entry.".to_owned(),
        evidence: vec![],
    })
}

fn table_size(survey: &Survey) -> Option<Advice> {
    const TARGET: u64 = 16 << 20;
    let average = survey.table_bytes / survey.tables.max(1);
    if survey.tables < MANY_TABLES || average > TARGET / 4 {
        return None;
    }
    Some(Advice {
        setting: "max_file_size",
        change: format!("to {}", size(TARGET)),
        why: format!(
            "{} of {} on average",
            counted(survey.tables, "table", "tables"),
            size(average)
        ),
        gain: "Fewer files to hold open, to list and to check, at the price of longer single \
               compactions. Tables that are there change as they are compacted."
            .to_owned(),
        evidence: vec![],
    })
}

fn logs(survey: &Survey) -> Option<Advice> {
    if survey.log_bytes < LONG_LOGS {
        return None;
    }
    Some(Advice {
        setting: "write_buffer_size",
        change: "smaller, if the time that opening takes matters".to_owned(),
        why: format!("{} of logs are replayed at the next open", size(survey.log_bytes)),
        gain: "An open replays at most what two write buffers hold.".to_owned(),
        evidence: vec![],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::survey::{Level, Sample};

    fn survey(tables: u64, table_bytes: u64, sample: Sample) -> Survey {
        let levels = vec![Level { level: 2, tables, bytes: table_bytes }];
        Survey { levels, tables, table_bytes, sample, ..Survey::default() }
    }

    fn healthy() -> Sample {
        Sample {
            tables: 32,
            blocks: 8000,
            stored_bytes: 16 << 20,
            raw_bytes: 32 << 20,
            median_block: 4 << 10,
            entries: 260_000,
            key_bytes: 16 * 260_000,
            value_bytes: 100 * 260_000,
            largest_value: 100,
            with_table_filter: 32,
            ..Sample::default()
        }
    }

    fn settings(survey: &Survey, workload: Option<PresetName>) -> Vec<&'static str> {
        let in_use = InUse { cache_size: 8 << 20, max_open_files: 1000 };
        advise(survey, &in_use, workload).iter().map(|advice| advice.setting).collect()
    }

    #[test]
    fn every_rule_has_its_cause() {
        let small = |sample| survey(10, 16 << 20, sample);
        assert_eq!(settings(&small(healthy()), None), [""; 0]);
        assert_eq!(
            settings(&survey(5000, 8 << 30, healthy()), None),
            ["max_open_files", "block_cache_size", "max_file_size"]
        );
        let logging = Some(PresetName::DataLogging);
        assert_eq!(settings(&survey(900, 8 << 30, healthy()), logging), ["write_buffer_size"]);
        assert_eq!(
            settings(&small(Sample { deletions: 60_000, ..healthy() }), None),
            ["terrace compact"]
        );
        assert_eq!(
            settings(&small(Sample { with_table_filter: 3, ..healthy() }), None),
            ["table_filter_bits"]
        );
        assert_eq!(
            settings(&small(Sample { value_bytes: 260_000 * LARGE_VALUE, ..healthy() }), None),
            ["value_log", "write_buffer_size"]
        );
        let extended = Survey {
            value_files: 1,
            ..small(Sample { value_bytes: 260_000 * LARGE_VALUE, ..healthy() })
        };
        assert_eq!(settings(&extended, None), ["write_buffer_size"]);
        let large_blocks = || small(Sample { blocks: 1000, median_block: 32 << 10, ..healthy() });
        assert_eq!(settings(&large_blocks(), None), ["block_size"]);
        assert_eq!(settings(&large_blocks(), Some(PresetName::Analytics)), ["write_buffer_size"]);
        let due = Survey { pending_compaction_bytes: 1, ..small(healthy()) };
        assert_eq!(settings(&due, None), ["terrace compact"]);
        assert_eq!(
            settings(&Survey { log_bytes: 1 << 30, ..small(healthy()) }, None),
            ["write_buffer_size"]
        );
        let mut waited = small(healthy());
        waited.info_log.waits = 1;
        assert_eq!(settings(&waited, None), ["write_buffer_size"]);
        waited.info_log.largest_flush_bytes = 12 << 20;
        assert_eq!(settings(&waited, None), [""; 0], "the buffer is that large already");
    }

    /// Numbers from damaged files are as large as they like.
    #[test]
    fn absurd_numbers_are_survived() {
        let most = || Sample {
            tables: u64::MAX,
            blocks: u64::MAX,
            stored_bytes: 1,
            raw_bytes: u64::MAX,
            median_block: u64::MAX,
            entries: u64::MAX,
            deletions: u64::MAX,
            value_bytes: u64::MAX,
            would_compress_to_percent: Some(u64::MAX),
            ..Sample::default()
        };
        for sample in [most(), Sample { uncompressed_blocks: u64::MAX, deletions: 0, ..most() }] {
            let survey = Survey { log_bytes: u64::MAX, ..survey(u64::MAX, u64::MAX, sample) };
            for workload in [None, Some(PresetName::Analytics), Some(PresetName::DataLogging)] {
                assert!(!settings(&survey, workload).is_empty());
            }
        }
    }

    /// The measurements behind the advice are in the lab's suite under these names.
    #[test]
    fn the_suite_measures_what_the_advice_rests_on() {
        let suite = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/suites/configurations.toml");
        let suite = std::fs::read_to_string(suite).expect("the suite");
        let loose =
            Sample { uncompressed_blocks: 8000, would_compress_to_percent: Some(50), ..healthy() };
        let large = survey(50_000, 80 << 30, Sample { with_table_filter: 0, ..loose });
        let in_use = InUse { cache_size: 8 << 20, max_open_files: 1000 };
        let workloads = [
            Some(PresetName::DataLogging),
            Some(PresetName::Analytics),
            Some(PresetName::Interactive),
        ];
        let all: Vec<_> =
            workloads.into_iter().flat_map(|workload| advise(&large, &in_use, workload)).collect();
        let evidence: Vec<_> = all.iter().flat_map(|advice| &advice.evidence).collect();
        assert!(evidence.len() > 10, "{evidence:?}");
        for Evidence { section, setting, benchmarks, .. } in evidence {
            let (_, rest) = suite.split_once(&format!("id = \"{section}\"")).expect(section);
            let section = rest.split("[[section]]").next().unwrap_or_default();
            assert!(section.contains(&format!("setting = \"{setting}\"")), "{setting}");
            assert!(
                benchmarks.iter().all(|name| section.contains(&format!("\"{name}\""))),
                "{benchmarks:?}"
            );
        }
    }
}
