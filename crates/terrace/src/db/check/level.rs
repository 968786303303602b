//! Checks what holds between tables: for each key, what is higher up is newer.
//!
//! Look-ups stop at the first entry of a key that they meet, from level 0 down. Nothing in a single
//! table shows that it is the newest one: only a scan of all levels at once does. Within a level
//! deeper than 0 the version itself is checked for overlaps when it is made
//! ([`Version::check`](crate::version::version::Version::check)): tables may share a user key,
//! whose versions LevelDB splits where a table is full, but no internal key.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::{InternalOrder, user_key};
use crate::iterator::level::LevelIter;
use crate::iterator::merging::MergingIter;
use crate::iterator::source::Source;
use crate::version::file_meta::FileMeta;
use crate::version::filename;
use crate::version::level::Level;
use crate::version::table_set::TableSet;

use crate::db::check::problem::{Problem, shown_key};

/// Problems that one check reports at most.
const MAX_PROBLEMS: usize = 20;

/// The tables of one level that can be read.
pub(in crate::db) type SoundLevel = (usize, Vec<Arc<FileMeta>>);

/// A table of level 0, or a whole deeper level: what a look-up asks as one.
struct Rank {
    level: usize,
    files: Arc<Level>,
}

/// Entries that hide newer ones. Levels are from 0 down, level 0 newest first; every table in them
/// is sound. `on_bytes` is told of bytes gone through.
pub(in crate::db) fn check_recency(
    levels: &[SoundLevel],
    tables: &Arc<TableSet>,
    order: &InternalOrder,
    on_bytes: &mut dyn FnMut(u64),
) -> Result<Vec<Problem>> {
    let mut ranks = Vec::new();
    let mut sources = Vec::new();
    for (level, files) in levels {
        if *level == 0 {
            for file in files {
                sources.push(Source::Table(tables.table(file)?.into_arc().iter(false)));
                ranks.push(Rank { level: 0, files: Arc::new(vec![file.clone()].into()) });
            }
        } else if !files.is_empty() {
            let files = Arc::new(Level::from(files.clone()));
            let run = LevelIter::new(files.clone(), tables.clone(), order.clone(), false);
            sources.push(Source::Level(run));
            ranks.push(Rank { level: *level, files });
        }
    }
    let mut problems = Vec::new();
    if sources.len() < 2 {
        return Ok(problems);
    }
    let mut merged = MergingIter::new(sources, order.clone());
    let (mut last_key, mut last_rank): (Vec<u8>, Option<usize>) = (Vec::new(), None);
    merged.seek_to_first();
    while merged.valid() {
        let (key, rank) = (merged.key(), merged.source());
        on_bytes((key.len() + merged.value().len()) as u64);
        // Of one key the newest entry comes first, so that going on at a higher rank means an older
        // one there.
        if last_rank.is_some_and(|last| rank < last)
            && order.keys.compare(user_key(&last_key), user_key(key)) == Ordering::Equal
            && let Some(Rank { level, files }) = ranks.get(rank)
        {
            let file = files.get(files.find(order, key)).map_or(0, |file| file.number);
            let message = format!(
                "key {} hides a newer entry that is deeper than level {level}",
                shown_key(key)
            );
            problems.push(Problem::new(filename::table(file), message));
            if problems.len() == MAX_PROBLEMS {
                return Ok(problems);
            }
        }
        last_key.clear();
        last_key.extend_from_slice(key);
        last_rank = Some(rank);
        merged.next();
    }
    merged.status()?;
    Ok(problems)
}
