//! Notices a load: much is written and nothing read. Then level 0 gathers files.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::db::db_impl::background::state::State;
use crate::db::db_impl::background::{Background, LEVEL_0_COMFORTABLE};

/// A load is over when no memtable has been flushed for so long.
const PAUSE: Duration = Duration::from_millis(250);

impl Background {
    /// Whether level 0 gathers files. The caller holds the state lock.
    pub(super) fn gathers(self: &Arc<Self>, state: &mut State) -> bool {
        if !state.is_loading && self.is_only_written(state) {
            state.is_loading = self.look_for_pause();
        }
        self.is_gathering(state)
    }

    pub(super) fn is_gathering(&self, state: &State) -> bool {
        state.is_loading && state.awaited == 0 && !self.has_readers(state)
    }

    /// Whether compactions fall behind what is written, and nothing is read.
    pub(super) fn is_only_written(&self, state: &State) -> bool {
        let files = self.views.current.load().version.levels[0].len();
        files > LEVEL_0_COMFORTABLE && !self.has_readers(state)
    }

    fn has_readers(&self, state: &State) -> bool {
        self.read_stats.has_read_since(state.switched_at[0])
    }

    /// Has a thread look, later, whether the load is over. `false` where that is not possible: then
    /// nobody would notice.
    fn look_for_pause(self: &Arc<Self>) -> bool {
        let later = self.jobs.later(self);
        let look = move || {
            if let Some(background) = later.hold() {
                background.end_load();
            }
        };
        self.files.env.schedule_after(PAUSE, Box::new(look))
    }

    fn end_load(self: &Arc<Self>) {
        if self.files.closed.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        let goes_on = std::mem::take(&mut state.has_flushed) || !state.immutables.is_empty();
        state.is_loading = goes_on && state.error.is_none() && self.look_for_pause();
        self.schedule(&mut state);
    }
}
