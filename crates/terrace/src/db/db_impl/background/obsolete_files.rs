//! Obsolete files: tables and logs that no version and no reader needs are removed, and logs are
//! recycled.

use std::sync::Arc;

use crate::base::mutation::mutated;
use crate::env::Priority;
use crate::version::filename;

use crate::db::db_impl::background::Background;
use crate::db::db_impl::background::state::Immutable;
use crate::db::db_impl::lost::move_to_lost;
use crate::db::view::snapshot_list::SnapshotOwner;

impl Background {
    /// Has files removed that a reader just let go of, on a background thread.
    pub(in crate::db) fn purge_later(self: &Arc<Self>) {
        if self.files.is_inherited()
            || self.files.options.read_only
            || self.files.obsolete_files.is_empty()
        {
            return;
        }
        let mut state = self.state.lock();
        if state.closing || state.purging {
            return;
        }
        state.purging = true;
        self.in_background(Priority::Compaction, |background| {
            background.files.purge();
            background.state.lock().purging = false;
            background.changed.notify_all();
        });
    }

    /// Does away with the logs of a flushed memtable, but for those from `needed` on.
    /// One may be kept for a memtable to come, if there seems to come one.
    pub(in crate::db) fn retire_logs(&self, immutable: &Immutable, needed: u64) {
        let mut log = immutable.log.lock().take();
        let is_written = {
            let state = self.state.lock();
            let damaged = immutable.logs.iter().any(|number| state.damaged_logs.contains(number));
            !(state.is_write_idle || state.closing || state.awaited > 0 || damaged)
        };
        for &number in immutable.logs.iter().filter(|&&number| number < needed) {
            // The writer is that of the last one.
            let mut writer = log.take_if(|_| immutable.logs.last() == Some(&number));
            if !is_written && let Some(writer) = writer.take() {
                // Closed before it is removed, which a program's environment may count on.
                writer.retire();
            }
            let rename = || {
                let (from, to) = (
                    self.files.path(&filename::log(number)),
                    self.files.path(&filename::temp(number)),
                );
                self.files.env.rename(&from, &to).is_ok()
            };
            if writer.is_none_or(|writer| !self.logs.recycled.keep(number, writer, rename)) {
                self.retire_log(number);
            }
        }
        if !is_written {
            self.logs.delete_recycled_logs();
        }
    }

    /// Removes a log that is not needed any more; a damaged one moves to `lost/`.
    pub(in crate::db) fn retire_log(&self, number: u64) {
        let name = filename::log(number);
        let path = self.files.path(&name);
        let damaged = self.state.lock().damaged_logs.remove(&number);
        let result = match damaged && !mutated("keep-damaged-logs") {
            false => self.files.env.remove(&path),
            true => move_to_lost(&self.files, &name).map(drop),
        };
        // A leftover is harmless: the next open tries again.
        if let Err(error) = result {
            self.files.log(format!("could not retire {name}: {error}"));
        }
    }
}

impl SnapshotOwner for Background {
    fn purge_later(self: Arc<Self>) {
        Background::purge_later(&self);
    }
}
