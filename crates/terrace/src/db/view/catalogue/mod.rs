//! The catalogue as an open database knows it: the settings of keyspaces and their filters, and the
//! clock of expiry.
//!
//! Entries of some keyspaces have a time from which on they are not there. Reads hide what has
//! expired, compactions remove it. A read looks at the clock once it holds its view, so that what a
//! compaction has removed from the view has expired for it; one that lasts keeps that time to its
//! end.
//!
//! # Invariants
//! 1. The clock never goes back while the database is open.
//! 2. A compaction removes an entry only if it has expired for every reader that is alive.
//! 3. The settings of a prefix are known before the first write of a key that begins with it, and
//!    readers look at them after they have their view.

mod check;
mod clock;
pub(in crate::db) mod entry;
pub(in crate::db) mod keyspace_options;
mod read_times;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::fork::Origin;
use crate::base::locks::{ArcSwap, AtomicBool, AtomicU64, Mutex};
use crate::base::prefix_map::PrefixMap;
use crate::compaction::filter::CompactionFilter;
use crate::env::Env;
use crate::table::PrefixSettings;

pub(in crate::db) use self::check::{ExpiryCheck, shown_at};
pub(in crate::db) use self::read_times::ReadTime;

use self::clock::ExpiryClock;
use self::read_times::ReadTimes;

/// See the [module](self). Any thread.
pub(in crate::db) struct Catalogue {
    /// Empty until they are [known](Self::known).
    settings: ArcSwap<PrefixSettings>,
    is_known: AtomicBool,
    /// Whether they are known and no value expires: each new cursor asks.
    expires_nothing: AtomicBool,
    /// Held while the settings change, which they do not in a child of a fork.
    changing: Mutex<()>,
    origin: Origin,
    /// The compaction filters of keyspaces.
    pub(in crate::db) filters: Mutex<PrefixMap<Arc<dyn CompactionFilter>>>,
    clock: ExpiryClock,
    times: Arc<ReadTimes>,
    /// The clock's mark in the catalogue, in milliseconds.
    pub(in crate::db) mark: AtomicU64,
    /// Whether a look for expired tables is to come.
    pub(in crate::db) is_check_due: AtomicBool,
    /// Whether it was found out once when entries of all tables expire.
    pub(in crate::db) has_learnt: AtomicBool,
}

impl Default for Catalogue {
    fn default() -> Self {
        Catalogue {
            settings: ArcSwap::from_pointee(PrefixSettings::default()),
            is_known: AtomicBool::new(false),
            expires_nothing: AtomicBool::new(false),
            changing: Mutex::new(()),
            origin: Origin::here(),
            filters: Mutex::default(),
            clock: ExpiryClock::default(),
            times: Arc::default(),
            mark: AtomicU64::new(0),
            is_check_due: AtomicBool::new(false),
            has_learnt: AtomicBool::new(false),
        }
    }
}

impl Catalogue {
    /// The settings, if the catalogue was read.
    #[inline]
    pub(in crate::db) fn known(&self) -> Option<arc_swap::Guard<Arc<PrefixSettings>>> {
        self.is_known.load(Ordering::Acquire).then(|| self.settings.load())
    }

    /// Whether it is known that no value expires.
    #[inline]
    pub(in crate::db) fn expires_nothing(&self) -> bool {
        self.expires_nothing.load(Ordering::Acquire)
    }

    /// Changes the settings, which `load` returns if they are not known yet.
    pub(in crate::db) fn change<E>(
        &self,
        load: impl FnOnce() -> Result<PrefixSettings, E>,
        change: impl FnOnce(&mut PrefixSettings),
    ) -> Result<Arc<PrefixSettings>, E> {
        let _changing = (!self.origin.is_ancestor()).then(|| self.changing.lock());
        let mut settings = match self.known() {
            Some(known) => PrefixSettings::clone(&known),
            None => load()?,
        };
        change(&mut settings);
        let settings = Arc::new(settings);
        if settings.any_expires() {
            // First: a child that is forked in between must not miss it.
            self.expires_nothing.store(false, Ordering::Release);
        }
        self.settings.swap(settings.clone());
        self.is_known.store(true, Ordering::Release);
        self.expires_nothing.store(!settings.any_expires(), Ordering::Release);
        Ok(settings)
    }

    /// The time, in milliseconds since 1970.
    pub(in crate::db) fn now(&self, env: &dyn Env) -> u64 {
        self.clock.now(env)
    }

    /// Takes over the mark that the catalogue has.
    pub(in crate::db) fn take_mark(&self, env: &dyn Env, mark: u64) {
        self.mark.store(mark, Ordering::Relaxed);
        self.clock.raise(env, mark);
    }

    /// The time of a reader that lasts, from now on.
    pub(in crate::db) fn begin_read(&self, env: &dyn Env) -> ReadTime {
        self.times.begin(|| self.now(env))
    }

    /// The time up to which what expires is there for no reader, if anything expires at all; else
    /// zero.
    pub(in crate::db) fn expired_before(&self, env: &dyn Env) -> u64 {
        match self.known() {
            Some(settings) if settings.any_expires() => self.times.oldest(|| self.now(env)),
            _ => 0,
        }
    }
}
