//! The program's say in which entries compactions keep.
//!
//! A filter is shown a value that nothing but the present can see, decides about it, and that is
//! what the compaction writes: a removal is a deletion with the sequence number of the value, so
//! that no older value comes back, and is dropped where any deletion is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::error::{Error, Result};
use crate::base::expiry;
use crate::base::internal_key::check_entry_size;
use crate::base::mutation::mutated;
use crate::base::prefix_map::PrefixMap;
use crate::table::PrefixSettings;

/// A filter's decision about an entry.
///
/// ```
/// # use terrace::*;
/// /// Cuts long values off.
/// struct Shorten;
///
/// impl CompactionFilter for Shorten {
///     fn filter(&self, _key: &[u8], value: &[u8]) -> FilterDecision {
///         match value.get(..100) {
///             Some(beginning) if value.len() > 100 => FilterDecision::Replace(beginning.to_vec()),
///             _ => FilterDecision::Keep,
///         }
///     }
/// }
/// # let _ = Shorten;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// It stays as it is.
    Keep,
    /// It is removed.
    Remove,
    /// Its value is replaced by this one.
    Replace(Vec<u8>),
}

/// Decides which entries compactions keep: to remove what is out of date, or to rewrite what has an
/// old form. Set by [`Options::compaction_filter`](crate::Options::compaction_filter).
///
/// It is asked about the newest value of a key among the tables of a compaction, if no live
/// snapshot sees it; never about what a snapshot sees, about deletions, about what is in memory, or
/// about what the engine itself stores beside keyspaces.
/// So it may be asked about a value any number of times, or not for long:
/// [`Db::compact_range_with`](crate::Db::compact_range_with) with `force` asks about all of a
/// range. What it decides must depend on the entry and on things that only become truer with time.
///
/// Its decisions are no writes: they take no sequence number, and a transaction or an update that
/// read the entry before does not conflict. Snapshots that are taken while the compaction runs do
/// not see them.
///
/// Called by background threads, several at once, and by the thread that compacts by hand. If it
/// panics the compaction fails and leaves everything as it was: one by hand returns the error;
/// after one in the background, background work stops with it until the database is opened again.
///
/// ```
/// # fn main() -> terrace::Result<()> {
/// use std::sync::Arc;
/// use terrace::{CompactOptions, CompactionFilter, Db, FilterDecision, Options};
///
/// struct DropSessions;
///
/// impl CompactionFilter for DropSessions {
///     fn filter(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
///         match key.starts_with(b"session:") {
///             true => FilterDecision::Remove,
///             false => FilterDecision::Keep,
///         }
///     }
/// }
///
/// # let options = Options::new().create_if_missing(true).env(Arc::new(terrace::MemEnv::new()));
/// let options = options.compaction_filter(Some(Arc::new(DropSessions)));
/// let db = Db::open("/filtered.db", options)?;
/// db.put("session:1", "...")?;
/// db.put("user:1", "Ada")?;
/// db.compact_range_with::<&[u8]>(.., CompactOptions::new().force(true))?;
/// assert_eq!(db.iter()?.count(), 1);
/// # db.close()
/// # }
/// ```
pub trait CompactionFilter: Send + Sync {
    /// Decides about the entry of `key`.
    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision;
}

/// The filters of a database.
#[derive(Clone)]
pub(crate) struct FilterSet {
    /// The one of the keys that no other one is for.
    pub(crate) database: Option<Arc<dyn CompactionFilter>>,
    /// Those of keyspaces, which are asked about keys within them.
    pub(crate) by_prefix: PrefixMap<Arc<dyn CompactionFilter>>,
    /// The prefix of keys that no filter is asked about: those of the engine.
    pub(crate) spared: &'static [u8],
}

impl FilterSet {
    fn is_empty(&self) -> bool {
        self.database.is_none() && self.by_prefix.is_empty()
    }

    /// The filter of a user key, and the key as the filter knows it.
    fn of<'k>(&self, user_key: &'k [u8]) -> Option<(&Arc<dyn CompactionFilter>, &'k [u8])> {
        if user_key.starts_with(self.spared) && !mutated("filters-spare-the-catalogue") {
            return None;
        }
        match self.by_prefix.longest(user_key) {
            Some((prefix, filter)) => Some((filter, &user_key[prefix.len()..])),
            None => self.database.as_ref().map(|filter| (filter, user_key)),
        }
    }
}

/// The entries that one compaction leaves out or changes: expired ones, and as the program's
/// filters say.
pub(crate) struct AppliedFilter {
    filters: FilterSet,
    /// The settings of keys that may expire, and the time up to which they are removed.
    expiry: Option<(Arc<PrefixSettings>, u64)>,
    has_changed: AtomicBool,
}

impl AppliedFilter {
    /// `None` if there is nothing to decide.
    pub(crate) fn new(
        filters: FilterSet,
        expiry: Option<(Arc<PrefixSettings>, u64)>,
    ) -> Option<Self> {
        let decides = !filters.is_empty() || expiry.is_some();
        decides.then(|| AppliedFilter { filters, expiry, has_changed: AtomicBool::new(false) })
    }

    /// Whether the value of `key` has a say in what is decided.
    pub(super) fn looks_at(&self, key: &[u8], is_unseen: impl FnOnce() -> bool) -> bool {
        let may_expire = self.expiry.as_ref().is_some_and(|(settings, _)| settings.expires(key));
        may_expire || self.filters.of(key).is_some() && is_unseen()
    }

    /// Decides about a value. A program's filter is asked if nothing but the present can see it;
    /// what has expired is there for nobody.
    pub(super) fn decide(
        &self,
        key: &[u8],
        value: &[u8],
        is_unseen: impl FnOnce() -> bool,
    ) -> Result<FilterDecision> {
        let mut trailer = None;
        if let Some((settings, expired_before)) = &self.expiry
            && settings.expires(key)
            && let Some(expiring) = expiry::split(key, value)
        {
            if expiring.expires_at <= *expired_before {
                return Ok(FilterDecision::Remove);
            }
            trailer = Some(expiring);
        }
        match self.filters.of(key) {
            Some((filter, key_within)) if is_unseen() => {
                let shown = trailer.map_or(value, |expiring| expiring.value);
                let mut decision = ask(filter.as_ref(), key_within, shown)?;
                if let FilterDecision::Replace(value) = &mut decision {
                    if let Some(expiring) = trailer {
                        expiry::append(key, value, expiring.expires_at);
                    }
                    check_entry_size(key.len(), value.len())?;
                }
                if decision != FilterDecision::Keep {
                    self.has_changed.store(true, Ordering::Relaxed);
                }
                Ok(decision)
            }
            _ => Ok(FilterDecision::Keep),
        }
    }

    /// Whether a program's filter has made the tables differ from what there was. To be asked once
    /// the compaction is done.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Relaxed)
    }
}

fn ask(filter: &dyn CompactionFilter, key: &[u8], value: &[u8]) -> Result<FilterDecision> {
    catch_unwind(AssertUnwindSafe(|| filter.filter(key, value)))
        .map_err(|_| Error::invalid_argument("the compaction filter panicked"))
}
