//! Flushes the memtable of a database that is only read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::Result;
use crate::env::Priority;

use crate::db::db_impl::background::Background;
use crate::db::db_impl::background::failure::caught;
use crate::db::db_impl::background::state::State;
use crate::db::db_impl::write_path::WritePath;

/// A smaller memtable costs reads less than a table of its own would cost.
const IDLE_FLUSH_MIN_BYTES: usize = 64 << 10;

impl WritePath {
    /// Has the memtable of a database that is only read flushed, so that reads find one sorted run
    /// less.
    pub(in crate::db) fn schedule_idle_flush(self: &Arc<Self>, state: &mut State) {
        self.schedule_switch(state, "an idle memtable", |writes| writes.switch_idle_memtable());
    }

    /// Has a background thread switch to another memtable, unless one is about to. The caller holds
    /// the state lock.
    pub(super) fn schedule_switch(
        self: &Arc<Self>,
        state: &mut State,
        memtable: &'static str,
        switch: fn(&WritePath) -> Result<()>,
    ) {
        let Background { files, jobs, .. } = &*self.background;
        if state.closing || state.flushing_idle || files.options.read_only || state.error.is_some()
        {
            return;
        }
        state.flushing_idle = true;
        jobs.run(self, files.env.as_ref(), Priority::Flush, move |writes| {
            let flushed = caught("switching a memtable", || switch(writes));
            let WritePath { files, background, .. } = &**writes;
            if let Err(failure) = flushed {
                let error = failure.error;
                files.log(format!("could not switch {memtable}: {error}"));
            }
            let mut state = background.state.lock();
            state.flushing_idle = false;
            background.schedule(&mut state);
            background.changed.notify_all();
        });
    }

    fn switch_idle_memtable(&self) -> Result<()> {
        // The holder of the lock writes: the database is not idle.
        let Some(mut guard) = self.commit.try_lock() else { return Ok(()) };
        let Some(commit) = guard.as_mut() else { return Ok(()) };
        let is_worth_it = commit.memtable.table().memory_usage() >= IDLE_FLUSH_MIN_BYTES;
        if is_worth_it
            && !self.logs.suspect.load(Ordering::Relaxed)
            && self.background.state.lock().immutables.is_empty()
        {
            self.switch_memtable(commit)?;
            // It still is: no write can have come in between.
            self.background.state.lock().is_write_idle = true;
        }
        Ok(())
    }
}
