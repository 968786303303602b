//! Writes that wait for nobody, for threads that must not.

use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::base::mutation::mutated;
use crate::write::batch::{WriteBatch, check_size};
use crate::write::batch_view::HEADER_SIZE;

use crate::db::concurrency::footprint::{Footprint, Keys};
use crate::db::db_impl::write_path::commit::Commit;
use crate::db::db_impl::write_path::{WritePath, keys_of};

impl WritePath {
    /// Writes a batch unless something would have to be waited for. False, and nothing has
    /// happened, if so.
    pub(in crate::db) fn try_write(&self, batch: &WriteBatch) -> Result<bool> {
        batch.check()?;
        self.files.check_writable()?;
        let batch = batch.view();
        let bytes = HEADER_SIZE + batch.operation_bytes().len();
        check_size(bytes)?;
        if self.files.options.memory_budget.is_some() {
            return Ok(false);
        }
        let Some(mut guard) = self.commit.try_lock() else { return Ok(false) };
        let commit = self.usable(&mut guard)?;
        let keys = Keys(|| keys_of(batch));
        let is_watched = self.control.is_used();
        let is_locked = is_watched && keys.locked_key(&self.control.locks, None).is_some();
        if is_locked && !mutated("obey-locks") || !self.has_room(commit, bytes) {
            return Ok(false);
        }
        let write = |writes: &Self, commit: &mut Commit| writes.apply(commit, batch);
        self.publish(commit, bytes, is_watched.then_some(&keys), write, || ())?;
        Ok(true)
    }

    /// Whether [`make_room`](Self::make_room) would have nothing to do, and the log takes a record
    /// of `bytes` without waiting.
    fn has_room(&self, commit: &Commit, bytes: usize) -> bool {
        !self.logs.suspect.load(Ordering::Relaxed)
            && !self.background.throttle.slows_down()
            && (commit.memtable.table().memory_usage() as u64)
                < self.switch_at.load(Ordering::Relaxed)
            && commit.log.takes_at_once(bytes)
    }
}
