//! The program's say in which entries compactions keep.
//!
//! A filter is shown a value that nothing but the present can see, decides about it, and that is
//! what the compaction writes: a removal is a deletion with the sequence number of the value, so
//! that no older value comes back, and is dropped where any deletion is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::error::{Error, Result};
use crate::base::internal_key::check_entry_size;

/// What becomes of an entry.
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
/// snapshot sees it; never about what a snapshot sees, about deletions, or about what is in memory.
/// So it may be asked about a value any number of times, or not for long:
/// [`Db::compact_range_with`](crate::Db::compact_range_with) with `force` asks about all of a range.
/// What it decides must depend on the entry and on things that only become truer with time.
///
/// Its decisions are no writes: they take no sequence number, and a transaction or an update that
/// read the entry before does not conflict. Snapshots that are taken while the compaction runs do
/// not see them.
///
/// Called by background threads, several at once, and by the thread that compacts by hand. If it
/// panics the compaction fails and leaves everything as it was, and background work stops with that
/// error until the database is opened again.
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

/// The filter of one compaction.
pub(crate) struct AppliedFilter {
    filter: Arc<dyn CompactionFilter>,
    has_changed: AtomicBool,
}

impl AppliedFilter {
    pub(crate) fn new(filter: Arc<dyn CompactionFilter>) -> Self {
        AppliedFilter { filter, has_changed: AtomicBool::new(false) }
    }

    /// Asks the filter about an entry.
    pub(super) fn decide(&self, key: &[u8], value: &[u8]) -> Result<FilterDecision> {
        let decision = catch_unwind(AssertUnwindSafe(|| self.filter.filter(key, value)))
            .map_err(|_| Error::invalid_argument("the compaction filter panicked"))?;
        if let FilterDecision::Replace(value) = &decision {
            check_entry_size(key.len(), value.len())?;
        }
        if decision != FilterDecision::Keep {
            self.has_changed.store(true, Ordering::Relaxed);
        }
        Ok(decision)
    }

    /// Whether the tables differ from what there was. To be asked once the compaction is done.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Relaxed)
    }
}
