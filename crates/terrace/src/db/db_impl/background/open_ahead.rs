//! Opens tables before lookups need them, where a lookup would wait for the device: in a database
//! that exceeds memory. (RocksDB opens all of them with the database.)
//!
//! The first reads ask for it, so that a program that only writes, or reads little, does not pay.
//! Tables that are written later are opened by the first lookup in each: the pages of their ends
//! were written a moment ago.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::env::Priority;

use crate::db::db_impl::background::Background;

impl Background {
    /// Has tables opened, once, if the database exceeds memory. For each of the sampled reads.
    #[inline]
    pub(in crate::db) fn open_tables_ahead(self: &Arc<Self>) {
        if self.files.tables.exceed_memory() && !self.has_opened_ahead.load(Ordering::Relaxed) {
            self.schedule_opening();
        }
    }

    #[cold]
    fn schedule_opening(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.closing || self.has_opened_ahead.swap(true, Ordering::Relaxed) {
            return;
        }
        state.is_opening = true;
        self.in_background(Priority::Compaction, |background| background.opening_job());
    }

    /// Opens tables, the newest first, until all are open or there is room for no more.
    fn opening_job(&self) {
        let _opening = Opening(self);
        let version = self.views.current.load().version.clone();
        for (_, file) in version.files() {
            if self.files.closed.load(Ordering::Relaxed) || !self.files.tables.have_room() {
                break;
            }
            // A table that cannot be opened is the error of its readers.
            let _ = self.files.tables.table(file);
        }
    }
}

/// Ends with the job, whether that returns or panics.
struct Opening<'a>(&'a Background);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_opening = false;
        self.0.changed.notify_all();
    }
}
