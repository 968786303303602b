//! Obsolete files: tables and logs that no version and no reader needs are removed, and logs are
//! recycled.

use std::sync::Arc;

use crate::base::error::ErrorKind;
use crate::base::mutation::mutated;
use crate::cache::hand_on;
use crate::env::Priority;
use crate::version::filename;

use crate::db::db_impl::DbImpl;
use crate::db::state::Immutable;

impl DbImpl {
    /// Removes table files that nobody needs any more.
    pub(in crate::db) fn purge(&self) {
        if self.options.read_only {
            return;
        }
        let mut left = Vec::new();
        for number in self.obsolete_files.take() {
            let removed = filename::names_of_table(number).iter().find_map(|name| {
                match self.env.remove(&self.path(name)) {
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    result => Some(result),
                }
            });
            match removed {
                Some(Err(_)) => left.push(number),
                _ => self.obsolete_files.removed(number),
            }
        }
        if !left.is_empty() {
            self.obsolete_files.put_back(left);
        }
        // Readers that were pinned when a table went away left its blocks to be dropped.
        hand_on();
    }

    /// Has files removed that a reader just let go of, on a background thread.
    pub(in crate::db) fn purge_later(self: &Arc<Self>) {
        if self.is_inherited() || self.options.read_only || self.obsolete_files.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        if state.closing || state.purging {
            return;
        }
        state.purging = true;
        self.in_background(Priority::Compaction, |core| {
            core.purge();
            core.state.lock().purging = false;
            core.changed.notify_all();
        });
    }

    /// Does away with the logs of a memtable that is a table now, but for those from `needed` on.
    /// One may be kept for a memtable to come, if there seems to come one.
    pub(super) fn retire_logs(&self, immutable: &Immutable, needed: u64) {
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
                let (from, to) =
                    (self.path(&filename::log(number)), self.path(&filename::temp(number)));
                self.env.rename(&from, &to).is_ok()
            };
            if writer.is_none_or(|writer| !self.recycled_logs.keep(number, writer, rename)) {
                self.retire_log(number);
            }
        }
        if !is_written {
            self.delete_recycled_logs();
        }
    }

    /// Removes the logs that were kept.
    pub(in crate::db) fn delete_recycled_logs(&self) {
        while let Some(spare) = self.recycled_logs.take() {
            let number = spare.number;
            drop(spare);
            self.delete_recycled_log(number);
        }
    }

    /// A leftover is harmless: the next open removes it.
    pub(in crate::db) fn delete_recycled_log(&self, number: u64) {
        let _ = self.env.remove(&self.path(&filename::temp(number)));
    }

    /// Removes a log that is not needed any more; a damaged one moves to `lost/`.
    pub(in crate::db) fn retire_log(&self, number: u64) {
        let name = filename::log(number);
        let path = self.path(&name);
        let damaged = self.state.lock().damaged_logs.remove(&number);
        let result = match damaged && !mutated("keep-damaged-logs") {
            false => self.env.remove(&path),
            true => self.move_to_lost(&name).map(drop),
        };
        // A leftover is harmless: the next open tries again.
        if let Err(error) = result {
            self.log(format!("could not retire {name}: {error}"));
        }
    }
}
