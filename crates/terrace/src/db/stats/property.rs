//! LevelDB's properties, in LevelDB's form, and approximate sizes.

use std::fmt::Write as _;

use crate::base::error::Result;
use crate::base::internal_key::{KIND_FOR_SEEK, MAX_SEQUENCE, encode};
use crate::version::NUM_LEVELS;

use crate::db::db_impl::DbImpl;
use crate::db::stats::leveldb_text::internal_key;
use crate::db::stats::stats;

pub(in crate::db) fn property(core: &DbImpl, name: &str) -> Option<String> {
    let name = name.strip_prefix("leveldb.")?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        let digits = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
        let level: usize = level.parse().ok().filter(|&level| digits && level < NUM_LEVELS)?;
        return Some(core.views.current.load().version.levels[level].len().to_string());
    }
    match name {
        "stats" => Some(stats_property(core)),
        "sstables" => Some(sstables_property(core)),
        "approximate-memory-usage" => {
            let stats = stats(core);
            Some((stats.cache_used + stats.memtable_bytes).to_string())
        }
        _ => None,
    }
}

fn stats_property(core: &DbImpl) -> String {
    const MEGABYTE: f64 = 1_048_576.0;
    let mut text = String::from(
        "                               Compactions\n\
         Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
         --------------------------------------------------\n",
    );
    for level in stats(core).levels {
        if level.files == 0 && level.seconds == 0.0 {
            continue;
        }
        let _ = writeln!(
            text,
            "{:3} {:8} {:8.0} {:9.0} {:8.0} {:9.0}",
            level.level,
            level.files,
            level.bytes as f64 / MEGABYTE,
            level.seconds,
            level.bytes_read as f64 / MEGABYTE,
            level.bytes_written as f64 / MEGABYTE,
        );
    }
    text
}

fn sstables_property(core: &DbImpl) -> String {
    let version = core.views.current.load().version.clone();
    let mut text = String::new();
    for (level, files) in version.levels.iter().enumerate() {
        let _ = writeln!(text, "--- level {level} ---");
        for file in files.iter() {
            let (smallest, largest) = (internal_key(&file.smallest), internal_key(&file.largest));
            let _ = writeln!(text, " {}:{}[{smallest} .. {largest}]", file.number, file.size);
        }
    }
    text
}

pub(in crate::db) fn approximate_sizes(
    core: &DbImpl,
    ranges: &[(&[u8], &[u8])],
) -> Result<Vec<u64>> {
    core.files.check_open()?;
    let version = core.views.current.load().version.clone();
    let offset = |key: &[u8]| {
        let key = encode(key, MAX_SEQUENCE, KIND_FOR_SEEK);
        version.approximate_offset(&core.files.tables, &core.files.order, &key)
    };
    ranges.iter().map(|(from, to)| Ok(offset(to)?.saturating_sub(offset(from)?))).collect()
}
