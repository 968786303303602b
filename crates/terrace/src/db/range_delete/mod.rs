//! Deletes every key of a range, or of several as one step.
//!
//! LevelDB's format has no record for this, so there are two ways:
//!
//! - A range with few entries becomes a batch with a deletion for each of them, written under the
//!   commit lock, where no key can have been added that it lacks.
//! - A larger one is a point in the history of writes, as the end of a bulk load is. With the
//!   commit lock held and nothing left in memtables one edit removes the tables that lie inside the
//!   range, and replaces those that lie across its ends by tables without what is inside
//!   ([`cut`], [`rewrite`], [`install`]). Nothing of the range is left in any level, so there are
//!   no tombstones either.
//!
//! # Invariants
//! 1. The edit leaves out every entry of the range, of whatever age. Where it replaces a table of
//!    level 0, it replaces the newer ones there too, in their order: the greater file number is the
//!    newer table.
//! 2. No compaction has one of these tables as its input: they are reserved.
//! 3. The edit takes a sequence number of its own. A read that sees the view without the tables
//!    reads at that number or a later one; a view from before never shows a write that came after,
//!    for the memtable is another one.
//! 4. A snapshot from before goes on reading the view from before.
//! 5. A transaction that began before conflicts if it writes a key of the range.
//! 6. When the call returns no file of a removed table has the name of a table, durably: LevelDB's
//!    repair, which takes in every table that it finds, does not bring the entries back.

mod cut;
mod install;
mod rewrite;
pub(in crate::db) mod terms;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::base::mutation::mutated;
use crate::write::batch::WriteBatch;

use crate::db::concurrency::footprint::Ranges;
use crate::db::db_impl::DbImpl;
use crate::db::key_range::{KeyRange, KeyRanges};
use crate::db::options::{RANGE_DELETE_BATCH, WriteOptions};
use crate::db::range_delete::cut::Cut;
use crate::db::range_delete::install::remove_ranges;
use crate::db::range_delete::terms::Terms;
use crate::db::read;
use crate::db::read::entries::Entries;
use crate::db::read::read_options::ReadOptions;

/// Bytes of keys that a batch of deletions holds at most.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// Bytes of tables inside the range, and of the values that they point at, from which on they are
/// removed, however few entries they hold: their space is free at once.
const REMOVE_FROM_BYTES: u64 = 32 << 20;
/// A range may have as many times the entries of a batch as there are times these bytes in tables
/// that a removal rewrites: it takes 5 ms for each MiB, a batch of 4,096 deletions about one.
const REWRITTEN_BYTES_FOR_A_BATCH: u64 = 512 << 10;
/// Its bound: writers wait for the batch.
const MOST_BATCHES: u64 = 16;

/// Deletes every key of `ranges` as one step. See
/// [`Db::delete_range_with`](crate::Db::delete_range_with).
pub(in crate::db) fn delete_ranges(
    core: &Arc<DbImpl>,
    ranges: impl IntoIterator<Item = KeyRange>,
    options: WriteOptions,
    terms: &dyn Terms,
) -> Result<()> {
    core.files.check_writable()?;
    let ranges = KeyRanges::new(&core.files.order.keys, ranges);
    if ranges.is_empty() {
        terms.check()?;
        // A synced write promises that everything before it is durable, too.
        return if options.sync {
            core.writes.write(&WriteBatch::new(), options).map(drop)
        } else {
            Ok(())
        };
    }
    let cut = Cut::of(&core.views.current.load().version, &core.files.order.keys, &ranges);
    // As long as it takes less time than rewriting the tables at the ranges' ends.
    let batch = core.files.options.range_delete_batch;
    let most_deletions = match batch == RANGE_DELETE_BATCH && !cut.rewrites_pointers() {
        true => {
            let times = cut.bytes_rewritten() / REWRITTEN_BYTES_FOR_A_BATCH;
            batch * times.clamp(1, MOST_BATCHES) as usize
        }
        // The space of values that tables point at is to be free at once.
        false => batch,
    };
    if cut.bytes_inside() < REMOVE_FROM_BYTES
        && delete_each(core, &ranges, most_deletions, options, terms)?
    {
        return Ok(());
    }
    remove_ranges(core, &ranges, terms)
}

/// Deletes each key of the ranges, if there are few.
fn delete_each(
    core: &Arc<DbImpl>,
    ranges: &KeyRanges,
    most: usize,
    options: WriteOptions,
    terms: &dyn Terms,
) -> Result<bool> {
    // Reads the keys before the lock is taken, and under it once more only if something has come in
    // meanwhile; their blocks are in the cache then. An ingest may come in without a number.
    let last_change = || {
        let ingests = core.views.ingests.load(Ordering::Acquire);
        read::present(core, &ReadOptions::new()).map(|(_, sequence)| (sequence, ingests))
    };
    let before = last_change()?;
    let Some(expected) = deletions(core, ranges, most)? else { return Ok(false) };
    let size = (expected.approximate_size(), expected.len());
    let footprint = Ranges(|| ranges.iter().map(KeyRange::as_bounds));
    let make = || {
        terms.check()?;
        let holds = last_change()? == before || mutated("deletions-hold");
        match holds {
            true => Ok(Some(expected)),
            // Not so many once more with the lock held.
            false if expected.len() > RANGE_DELETE_BATCH => Ok(None),
            false => deletions(core, ranges, most),
        }
    };
    core.writes.write_made(size, options, &footprint, make, || terms.done())
}

/// A batch that deletes every key that the ranges have now; none if they are more than `most`.
fn deletions(core: &Arc<DbImpl>, ranges: &KeyRanges, most: usize) -> Result<Option<WriteBatch>> {
    let mut batch = WriteBatch::new();
    for range in ranges.iter() {
        // What has expired is to go too.
        let as_stored = ReadOptions::new().stored_values(true).keys_only();
        let mut entries = Entries::range(core, &range.bounds(), &as_stored)?;
        while let Some((key, _)) = entries.next_ref()? {
            let is_full =
                batch.len() >= most || batch.approximate_size() + key.len() > MAX_BATCH_BYTES;
            if is_full {
                return Ok(None);
            }
            batch.delete(key);
        }
    }
    Ok(Some(batch))
}
