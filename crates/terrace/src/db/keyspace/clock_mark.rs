//! The clock's mark in the catalogue, so that the clock of a later open is not far behind.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::write::batch::WriteBatch;

use crate::db::concurrency::footprint::Keys;
use crate::db::db_impl::DbImpl;
use crate::db::options::WriteOptions;
use crate::db::view::catalogue::entry;

/// The mark is as old as this at most, in milliseconds of the clock, when a value that expires is
/// written.
const INTERVAL: u64 = 60_000;

/// Writes the mark if it is due.
pub(super) fn mark_clock(core: &Arc<DbImpl>) -> Result<()> {
    let (files, mark) = (&core.files, &core.files.catalogue.mark);
    let (now, last) = (files.catalogue.now(files.env.as_ref()), mark.load(Ordering::Relaxed));
    let is_due = now >= last.saturating_add(INTERVAL);
    // Of several threads one writes it.
    let exchange = || mark.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
    if !is_due || exchange().is_err() {
        return Ok(());
    }
    let mut batch = WriteBatch::new();
    batch.put(entry::CLOCK, entry::encode_clock(now));
    // It is nothing that others have written: a transaction that scans everything, and has it
    // written by an entry of its own, does not conflict.
    let (size, nothing) = ((batch.approximate_size(), 1), Keys(iter::empty));
    let make = || Ok(Some(batch));
    let written = core.writes.write_made(size, WriteOptions::new(), &nothing, make, || ());
    if written.is_err() {
        mark.store(last, Ordering::Relaxed);
    }
    written.map(drop)
}
