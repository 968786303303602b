//! Opens tables before lookups need them, where a lookup would wait for the device: in a database
//! that exceeds memory. (RocksDB opens all of them with the database.)
//!
//! The first reads ask for it, so that a program that only writes, or reads little, does not pay, and
//! reads ask again when there are twice as many tables. Tables that are written in between are
//! opened by the first lookup in each. Indexes and filters that nobody asked for take half of what
//! those of open tables may take, or an eighth of a memory budget.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::env::Priority;

use crate::db::db_impl::background::Background;

/// Tables whose reads are under way while one is opened: as many as keep a device busy.
const ASKED_AHEAD: usize = 8;

impl Background {
    /// Has tables opened, if the database exceeds memory and they were not before. For each of the
    /// sampled reads.
    #[inline]
    pub(in crate::db) fn open_tables_ahead(self: &Arc<Self>) {
        if self.files.tables.exceed_memory() {
            let version = &self.views.current.load().version;
            let count = version.levels.iter().map(|files| files.len() as u64).sum::<u64>();
            if count >= 2 * self.opened_ahead.load(Ordering::Relaxed) {
                self.schedule_opening(count);
            }
        }
    }

    #[cold]
    fn schedule_opening(self: &Arc<Self>, count: u64) {
        let mut state = self.state.lock();
        if state.closing || state.is_opening {
            return;
        }
        // Not again and again without a table.
        self.opened_ahead.store(count.max(1), Ordering::Relaxed);
        state.is_opening = true;
        self.in_background(Priority::Compaction, |background| background.opening_job());
    }

    /// Opens tables, the newest first, until all are open or they would take too much.
    fn opening_job(&self) {
        let _opening = Opening(self);
        let version = self.views.current.load().version.clone();
        self.files.tables.forget_gone();
        let mut room = self.files.tables.room_ahead();
        let files: Vec<_> = version.files().map(|(_, file)| file).collect();
        let mut not_asked = files.iter();
        let mut asks = self.files.tables.have_room()
            && not_asked
                .by_ref()
                .take(ASKED_AHEAD)
                .all(|next| self.files.tables.prefetch_opening(next));
        for file in &files {
            if self.files.closed.load(Ordering::Relaxed) || !self.files.tables.have_room() {
                break;
            }
            asks = asks
                && not_asked.next().is_none_or(|next| self.files.tables.prefetch_opening(next));
            // A table that cannot be opened is the error of its readers.
            if let Ok(table) = self.files.tables.table(file) {
                match room.checked_sub(table.memory_usage()) {
                    Some(left) => room = left,
                    None => break,
                }
            }
            self.files.env.yield_to_flushes();
        }
        drop(version);
        self.files.purge();
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
