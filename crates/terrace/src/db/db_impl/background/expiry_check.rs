//! Looks for tables of which much has expired, in a database that nobody may be using.
//!
//! Compactions are planned when something happens. That time has passed is nothing that happens, so
//! while values can expire a look is due at the time at which half of a table has, and every
//! minute.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::db::db_impl::background::Background;

const LONGEST_WAIT: u64 = 60_000;
const SHORTEST_WAIT: u64 = 1_000;

impl Background {
    /// Has expired tables looked for later, if values can expire and no look is due yet.
    pub(in crate::db) fn schedule_expiry_check(self: &Arc<Self>) {
        let expires = self.files.catalogue.known().is_some_and(|settings| settings.any_expires());
        if !expires || self.files.options.read_only || self.files.check_own().is_err() {
            return;
        }
        if self.files.closed.load(Ordering::Relaxed)
            || self.files.catalogue.is_check_due.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let later = self.jobs.later(self);
        let job = move || {
            if let Some(core) = later.hold() {
                core.check_expired();
            }
        };
        if !self.files.env.schedule_after(self.until_next_expiry(), Box::new(job)) {
            self.files.catalogue.is_check_due.store(false, Ordering::Release);
        }
    }

    /// The time until half of some table's entries have expired, within bounds.
    fn until_next_expiry(&self) -> Duration {
        let now = self.files.catalogue.now(self.files.env.as_ref());
        let view = self.views.current.load();
        let times = view.version.files().filter_map(|(_, file)| file.contents());
        let times = times.map(|contents| contents.half_expired).filter(|&time| time > now);
        let wait = times.min().unwrap_or(u64::MAX).saturating_sub(now);
        Duration::from_millis(wait.clamp(SHORTEST_WAIT, LONGEST_WAIT))
    }

    fn check_expired(self: &Arc<Self>) {
        self.files.catalogue.is_check_due.store(false, Ordering::Release);
        if self.files.closed.load(Ordering::Relaxed) {
            return;
        }
        self.learn_contents();
        self.schedule(&mut self.state.lock());
        self.schedule_expiry_check();
    }

    /// Opens every table of which it is not known when its entries expire, once: those that are
    /// written later are known.
    fn learn_contents(&self) {
        if self.files.catalogue.has_learnt.swap(true, Ordering::Relaxed) {
            return;
        }
        let version = self.views.current.load().version.clone();
        for (_, file) in version.files().filter(|(_, file)| file.contents().is_none()) {
            if self.files.closed.load(Ordering::Relaxed) {
                return;
            }
            // A table that cannot be opened is the error of its readers.
            let _ = self.files.tables.table(file);
        }
    }
}
