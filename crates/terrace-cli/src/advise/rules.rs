//! Which settings to change: a pure function of what a database looks like.
//!
//! A rule speaks only where it has a reason in this database, or in the kind of application that the user named.

use serde::Serialize;

use super::measured::Evidence;
use super::survey::Survey;
use crate::columns::{counted, size};
use crate::opening::PresetName;

/// Open files that are kept for other uses than tables.
const FILES_FOR_OTHER_USES: u64 = 10;
/// `Options::max_open_files` is clipped to these.
const LEAST_OPEN_FILES: u64 = 74;
const MOST_OPEN_FILES: u64 = 50_000;
/// So many tables are handled better as fewer and larger ones.
const MANY_TABLES: u64 = 5_000;
/// Level 0 is due for a merge from so many tables on; each of them is asked in every look-up.
const LEVEL_0_TABLES: u64 = 4;
/// Deletions among a hundred entries that make a merge worth while.
const MANY_DELETIONS: u64 = 20;
/// Fewer entries than this say nothing about shares.
const ENTRIES_FOR_SHARES: u64 = 1_000;
/// From here on a value makes the default write buffer small.
const LARGE_VALUE: u64 = 16 << 10;
/// A block that costs a look-up much more than the entry in it.
const LARGE_BLOCK: u64 = 16 << 10;
/// A log that takes a while to replay.
const LONG_LOGS: u64 = 64 << 20;
/// Below this, compression and caches hardly matter.
const SMALL_DATABASE: u64 = 8 << 20;
/// Percent that snappy has to leave away, as a block has to shrink by an eighth to be kept compressed.
const WORTH_COMPRESSING: u64 = 87;

/// What the application sets; LevelDB's defaults where nobody said.
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
    /// What to set it to, or what to run.
    pub(super) change: String,
    pub(super) why: String,
    /// What is to be expected of it.
    pub(super) gain: String,
    #[serde(skip)]
    pub(super) evidence: Vec<Evidence>,
}

const fn on_terrace(section: &'static str, setting: &'static str, benchmarks: &'static [&'static str]) -> Evidence {
    Evidence { engine: "terrace", section, setting, benchmarks }
}

/// All advice, the most effective first.
pub(super) fn advise(survey: &Survey, in_use: &InUse, workload: Option<PresetName>) -> Vec<Advice> {
    let rules = [
        merges_due(survey),
        deletions(survey),
        open_files(survey, in_use),
        filters(survey),
        write_buffer(survey, workload),
        cache(survey, in_use, workload),
        compression(survey),
        blocks(survey, workload),
        table_size(survey),
        logs(survey),
    ];
    rules.into_iter().flatten().collect()
}

fn merges_due(survey: &Survey) -> Option<Advice> {
    let level_0 = survey.tables_at(0);
    if level_0 < LEVEL_0_TABLES && survey.pending_compaction_bytes == 0 {
        return None;
    }
    let due = size(survey.pending_compaction_bytes);
    Some(Advice {
        setting: "terrace compact",
        change: "run it, or leave the database open for a while".to_owned(),
        why: format!("{} at level 0, merges over {due} are due", counted(level_0, "table lies", "tables lie")),
        gain: "A look-up asks every table of level 0 and one of each deeper level. Terrace merges in the background while \
               the database is open for writing."
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
            "The deletions and what they hide go: of {} in tables up to about {}. Scans no longer step over them.",
            size(survey.table_bytes),
            // A deletion hides one entry, most often.
            size(percent.saturating_mul(2).min(100) * (survey.table_bytes / 100)),
        ),
        evidence: vec![],
    })
}

fn open_files(survey: &Survey, in_use: &InUse) -> Option<Advice> {
    let room = in_use.max_open_files.clamp(LEAST_OPEN_FILES, MOST_OPEN_FILES) - FILES_FOR_OTHER_USES;
    if survey.tables <= room || in_use.max_open_files >= MOST_OPEN_FILES {
        return None;
    }
    // A quarter more than now, in hundreds.
    let target = (survey.tables + survey.tables / 4 + FILES_FOR_OTHER_USES).next_multiple_of(100).min(MOST_OPEN_FILES);
    Some(Advice {
        setting: "max_open_files",
        change: format!("from {} to {target}", in_use.max_open_files),
        why: format!("{}, of which {room} can be open at once", counted(survey.tables, "table", "tables")),
        gain: "A look-up in a table that is not open opens it anew and reads its index and its filter. Random reads gain, \
               scans hardly."
            .to_owned(),
        evidence: vec![
            on_terrace("settings-tenfold", "max_open_files=10", &["readrandom", "seekrandom"]),
            on_terrace("settings", "max_open_files=10", &["readrandom", "seekrandom"]),
        ],
    })
}

fn filters(survey: &Survey) -> Option<Advice> {
    let sample = &survey.sample;
    let without = sample.tables - sample.with_table_filter.max(sample.with_filter_policy).min(sample.tables);
    if survey.tables < 2 || without * 2 <= sample.tables {
        return None;
    }
    Some(Advice {
        setting: "table_filter_bits",
        change: "keep the default of 10 and run `terrace compact`; with LevelDB set a bloom filter of 10 bits"
            .to_owned(),
        why: format!(
            "{without} of {} have no filter",
            counted(sample.tables, "table looked into", "tables looked into")
        ),
        gain:
            "A filter spares the search of a table for a key that is not in it. Tables that Terrace writes have one; \
               those that are there get theirs when they are merged."
                .to_owned(),
        evidence: vec![Evidence {
            engine: "leveldb",
            section: "interactive",
            setting: "preset interactive",
            benchmarks: &["readmissing", "readwriterandom"],
        }],
    })
}

fn write_buffer(survey: &Survey, workload: Option<PresetName>) -> Option<Advice> {
    const PRESET: u64 = 16 << 20;
    const LARGE: u64 = 64 << 20;
    let waits = survey.info_log.waits;
    let value = survey.sample.average_value();
    let (target, why, evidence) = if value >= LARGE_VALUE {
        (LARGE, format!("values have {} on average: the default buffer of 4 MiB holds few", size(value)), vec![])
    } else if workload == Some(PresetName::Analytics) {
        let evidence = on_terrace("settings-tenfold", "write_buffer_size=64 MiB", &["fillrandom"]);
        (LARGE, "data are loaded in large amounts".to_owned(), vec![evidence])
    } else if waits > 0 || workload == Some(PresetName::DataLogging) {
        let why = match waits {
            0 => "the application writes without pause".to_owned(),
            _ => format!("writers had to wait {} by the info log", counted(waits, "time", "times")),
        };
        let evidence =
            on_terrace("data-logging", "preset data-logging", &["fillseq", "fillrandom", "overwrite", "readrandom"]);
        (PRESET, why, vec![evidence])
    } else {
        return None;
    };
    // A buffer becomes a table about half its size.
    if survey.info_log.largest_flush_bytes.saturating_mul(2) >= target {
        return None;
    }
    Some(Advice {
        setting: "write_buffer_size",
        change: format!("to {}", size(target)),
        why,
        gain: "Fewer and larger tables of level 0, so fewer merges for the same data; more memory, and more to replay \
               after a crash: up to two buffers."
            .to_owned(),
        evidence,
    })
}

fn cache(survey: &Survey, in_use: &InUse, workload: Option<PresetName>) -> Option<Advice> {
    const LEAST: u64 = 64 << 20;
    const MOST: u64 = 1 << 30;
    let raw = survey.raw_bytes();
    if workload == Some(PresetName::DataLogging) || raw < in_use.cache_size.saturating_mul(4) || raw < LEAST {
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
            "A block in the cache is neither read nor decompressed again. Random reads that come back to the same keys \
               gain; scans and single passes do not."
                .to_owned(),
        evidence: vec![on_terrace("analytics", "preset analytics", &["readrandom", "seekrandom"])],
    })
}

fn compression(survey: &Survey) -> Option<Advice> {
    let sample = &survey.sample;
    let left = sample.would_compress_to_percent?;
    if survey.table_bytes < SMALL_DATABASE || sample.uncompressed_blocks * 10 < sample.blocks * 9 {
        return None;
    }
    let evidence = vec![on_terrace("settings", "compression=none", &["fillseq", "fillrandom", "readrandom"])];
    let blocks = "blocks lie uncompressed";
    Some(if left < WORTH_COMPRESSING {
        Advice {
            setting: "compression",
            change: "to snappy, and run `terrace compact`".to_owned(),
            why: format!("{blocks}, and snappy would leave {left} of 100 bytes"),
            gain: format!("About {} less on disk, and less to read.", size((100 - left) * (survey.table_bytes / 100))),
            evidence,
        }
    } else {
        Advice {
            setting: "compression",
            change: "to none".to_owned(),
            why: format!("{blocks}, because they would not shrink: snappy would leave {left} of 100 bytes"),
            gain: "With snappy every block is tried in vain when it is written. The file sizes stay.".to_owned(),
            evidence,
        }
    })
}

fn blocks(survey: &Survey, workload: Option<PresetName>) -> Option<Advice> {
    const FOR_LOOK_UPS: u64 = 4 << 10;
    let sample = &survey.sample;
    let block = sample.raw_bytes / sample.blocks.max(1);
    let entry = sample.raw_bytes / sample.entries.max(1);
    if workload == Some(PresetName::Analytics) || block < LARGE_BLOCK || entry > FOR_LOOK_UPS {
        return None;
    }
    Some(Advice {
        setting: "block_size",
        change: format!("to {}, if look-ups matter more than scans, and run `terrace compact`", size(FOR_LOOK_UPS)),
        why: format!("blocks have {} on average, entries {}", size(block), size(entry)),
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
        why: format!("{} of {} on average", counted(survey.tables, "table", "tables"), size(average)),
        gain: "Fewer files to hold open, to list and to check, at the price of longer single merges. Tables that are \
               there change as they are merged."
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
