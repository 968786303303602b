//! The entries of a range, as a Rust iterator.

use std::ops::RangeBounds;
use std::sync::Arc;

use crate::base::error::Result;
use crate::base::internal_key::SequenceNumber;
use crate::iterator::deleted_ranges::Beginning;

use crate::db::db_impl::DbImpl;
use crate::db::read;
use crate::db::read::cursor::Cursor;
use crate::db::read::expiring::expiry_check;
use crate::db::read::held::Held;
use crate::db::read::range::{Entry, RangeIter, owned};
use crate::db::read::read_options::ReadOptions;
use crate::db::view::catalogue::ExpiryCheck;

/// The entries of a range, from either end, each as an owned key and value; with
/// [`next_ref`](Self::next_ref) and [`next_back_ref`](Self::next_back_ref) without a copy.
///
/// After an error it ends.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
/// # let db = Db::open("/db", options.create_if_missing(true))?;
/// for key in ["a", "b", "c"] {
///     db.put(key, "")?;
/// }
/// let mut entries = db.range("a"..="c")?;
/// assert_eq!(entries.next().transpose()?.map(|(key, _)| key), Some(b"a".to_vec()));
/// assert_eq!(entries.next_back().transpose()?.map(|(key, _)| key), Some(b"c".to_vec()));
/// assert_eq!(entries.count(), 1); // the ends have met
/// # Ok::<_, terrace::Error>(())
/// ```
pub struct Entries {
    range: RangeIter<Cursor>,
    sequence: SequenceNumber,
    beginning: Beginning,
    expiry: Option<Result<ExpiryCheck>>,
    options: ReadOptions,
    /// The view that cursors at both ends read. The last one: fields are dropped in this order.
    held: Held,
}

impl Entries {
    pub(in crate::db) fn range<K: AsRef<[u8]>>(
        core: &Arc<DbImpl>,
        range: &impl RangeBounds<K>,
        options: &ReadOptions,
    ) -> Result<Self> {
        Self::over(core, RangeIter::new(&core.files.order.keys, range), options)
    }

    pub(in crate::db) fn prefix(
        core: &Arc<DbImpl>,
        prefix: &[u8],
        options: &ReadOptions,
    ) -> Result<Self> {
        Self::over(core, RangeIter::prefix(&core.files.order.keys, prefix)?, options)
    }

    fn over(core: &Arc<DbImpl>, range: RangeIter<Cursor>, options: &ReadOptions) -> Result<Self> {
        let beginning = core.views.beginning();
        let (view, sequence) = read::present(core, options)?;
        let expiry = expiry_check(core, options);
        let held = Held { view: Some(view), core: core.clone() };
        Ok(Entries { range, sequence, beginning, expiry, options: options.clone(), held })
    }
}

impl Entries {
    /// Returns the next entry from the front where it lies, until the next call.
    ///
    /// ```
    /// # fn main() -> terrace::Result<()> {
    /// # let options = terrace::Options::new().env(std::sync::Arc::new(terrace::MemEnv::new()));
    /// # let db = terrace::Db::open("/lend.db", options.create_if_missing(true))?;
    /// # db.put("a", "12")?;
    /// # db.put("b", "345")?;
    /// let mut entries = db.iter()?;
    /// let mut bytes = 0;
    /// while let Some((_, value)) = entries.next_ref()? {
    ///     bytes += value.len();
    /// }
    /// assert_eq!(bytes, 5);
    /// # drop(entries);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::get_with`](crate::Db::get_with). There are no entries after an error.
    pub fn next_ref(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Entries { range, sequence, beginning, expiry, options, held } = self;
        range.next(|bounds| {
            let (view, expiry) = (held.view()?.clone(), expiry.clone());
            Cursor::over(&held.core, view, *sequence, *beginning, expiry, Some(bounds), options)
        })
    }

    /// Returns the next entry from the back where it lies, until the next call.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// db.put("2026-11-23", "rain")?;
    /// db.put("2026-11-24", "sun")?;
    /// let mut entries = db.prefix("2026-")?;
    /// let newest = entries.next_back_ref()?.map(|(_, weather)| weather.len());
    /// assert_eq!(newest, Some(3));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`next_ref`](Self::next_ref).
    pub fn next_back_ref(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Entries { range, sequence, beginning, expiry, options, held } = self;
        range.next_back(|bounds| {
            let (view, expiry) = (held.view()?.clone(), expiry.clone());
            Cursor::over(&held.core, view, *sequence, *beginning, expiry, Some(bounds), options)
        })
    }
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_ref().map(|entry| entry.map(owned)).transpose()
    }
}

impl DoubleEndedIterator for Entries {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_back_ref().map(|entry| entry.map(owned)).transpose()
    }
}

impl std::iter::FusedIterator for Entries {}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bounds = self.range.bounds();
        f.debug_struct("Entries")
            .field("from", bounds.lower())
            .field("to", bounds.upper())
            .finish_non_exhaustive()
    }
}
