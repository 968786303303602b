//! A range of keys, scanned from both ends.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::Result;
use crate::iterator::scan_bounds::ScanBounds;

use crate::db::key_range::{check_prefixes, prefix_end};

/// A cursor that scans a range: [`Cursor`](crate::Cursor), or [that of a
/// transaction](crate::TransactionCursor).
pub(in crate::db) trait ScanCursor {
    fn seek_to_first(&mut self);
    fn seek_to_last(&mut self);
    fn seek(&mut self, key: &[u8]);
    fn seek_for_prev(&mut self, key: &[u8]);
    fn next(&mut self);
    fn prev(&mut self);
    fn entry(&self) -> Option<(&[u8], &[u8])>;
    fn status(&self) -> Result<()>;
}

/// A cursor's own methods are those of [`ScanCursor`].
macro_rules! implements_scan_cursor {
    ($cursor:ty) => {
        impl $crate::db::read::range::ScanCursor for $cursor {
            fn seek_to_first(&mut self) {
                <$cursor>::seek_to_first(self);
            }

            fn seek_to_last(&mut self) {
                <$cursor>::seek_to_last(self);
            }

            fn seek(&mut self, key: &[u8]) {
                <$cursor>::seek(self, key);
            }

            fn seek_for_prev(&mut self, key: &[u8]) {
                <$cursor>::seek_for_prev(self, key);
            }

            fn next(&mut self) {
                <$cursor>::next(self);
            }

            fn prev(&mut self) {
                <$cursor>::prev(self);
            }

            fn entry(&self) -> Option<(&[u8], &[u8])> {
                <$cursor>::entry(self)
            }

            fn status(&self) -> $crate::base::error::Result<()> {
                <$cursor>::status(self)
            }
        }
    };
}

pub(in crate::db) use implements_scan_cursor;

/// One entry.
pub(in crate::db) type Entry = (Vec<u8>, Vec<u8>);

/// See the [module](self). After an error it ends.
pub(in crate::db) struct RangeIter<C> {
    keys: KeyOrder,
    bounds: Arc<ScanBounds>,
    /// Each stands at what its end gave last; the two meet where they pass each other.
    front: Option<C>,
    back: Option<C>,
    done: bool,
}

/// A copy of an entry.
pub(in crate::db) fn owned((key, value): (&[u8], &[u8])) -> Entry {
    (key.to_vec(), value.to_vec())
}

fn owned_bound<K: AsRef<[u8]>>(bound: Bound<&K>) -> Bound<Vec<u8>> {
    bound.map(|key| key.as_ref().to_vec())
}

impl<C: ScanCursor> RangeIter<C> {
    /// The keys in `range`.
    pub(in crate::db) fn new<K: AsRef<[u8]>>(keys: &KeyOrder, range: &impl RangeBounds<K>) -> Self {
        Self::bounded(keys, owned_bound(range.start_bound()), owned_bound(range.end_bound()))
    }

    /// The keys that begin with `prefix`. These are a range in bytewise order only.
    pub(in crate::db) fn prefix(keys: &KeyOrder, prefix: &[u8]) -> Result<Self> {
        check_prefixes(keys)?;
        let to = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        Ok(Self::bounded(keys, Bound::Included(prefix.to_vec()), to))
    }

    fn bounded(keys: &KeyOrder, from: Bound<Vec<u8>>, to: Bound<Vec<u8>>) -> Self {
        let bounds = Arc::new(ScanBounds::new(keys, from, to));
        RangeIter { keys: keys.clone(), bounds, front: None, back: None, done: false }
    }

    pub(in crate::db) fn bounds(&self) -> &ScanBounds {
        &self.bounds
    }

    /// The next entry from the front. `cursor` makes a cursor that shows nothing beyond the bounds,
    /// if there is none yet.
    pub(in crate::db) fn next(
        &mut self,
        cursor: impl FnOnce(&Arc<ScanBounds>) -> Result<C>,
    ) -> Result<Option<(&[u8], &[u8])>> {
        if self.done {
            return Ok(None);
        }
        // Until then both cursors stand at entries.
        self.done = true;
        self.done = !self.step_front(cursor)?;
        Ok(self.front.as_ref().filter(|_| !self.done).and_then(ScanCursor::entry))
    }

    /// The next entry from the back, as [`next`](Self::next).
    pub(in crate::db) fn next_back(
        &mut self,
        cursor: impl FnOnce(&Arc<ScanBounds>) -> Result<C>,
    ) -> Result<Option<(&[u8], &[u8])>> {
        if self.done {
            return Ok(None);
        }
        self.done = true;
        self.done = !self.step_back(cursor)?;
        Ok(self.back.as_ref().filter(|_| !self.done).and_then(ScanCursor::entry))
    }

    /// Moves the cursor at the front. Returns whether it is at an entry of the range that the
    /// other end has not given.
    fn step_front(&mut self, cursor: impl FnOnce(&Arc<ScanBounds>) -> Result<C>) -> Result<bool> {
        let cursor = match &mut self.front {
            Some(cursor) => {
                cursor.next();
                cursor
            }
            None => {
                let mut cursor = cursor(&self.bounds)?;
                match self.bounds.lower() {
                    Bound::Unbounded => cursor.seek_to_first(),
                    Bound::Included(key) | Bound::Excluded(key) => cursor.seek(key),
                }
                if stands_at(&cursor, &self.keys, self.bounds.lower()) {
                    cursor.next();
                }
                self.front.insert(cursor)
            }
        };
        let Some((key, _)) = cursor.entry() else { return cursor.status().map(|()| false) };
        let behind = self.back.as_ref().and_then(ScanCursor::entry);
        let met = behind.is_some_and(|(behind, _)| self.keys.compare(key, behind).is_ge());
        Ok(!met)
    }

    /// Moves the cursor at the back, as [`step_front`](Self::step_front).
    fn step_back(&mut self, cursor: impl FnOnce(&Arc<ScanBounds>) -> Result<C>) -> Result<bool> {
        let cursor = match &mut self.back {
            Some(cursor) => {
                cursor.prev();
                cursor
            }
            None => {
                let mut cursor = cursor(&self.bounds)?;
                match self.bounds.upper() {
                    Bound::Unbounded => cursor.seek_to_last(),
                    Bound::Included(key) | Bound::Excluded(key) => cursor.seek_for_prev(key),
                }
                if stands_at(&cursor, &self.keys, self.bounds.upper()) {
                    cursor.prev();
                }
                self.back.insert(cursor)
            }
        };
        let Some((key, _)) = cursor.entry() else { return cursor.status().map(|()| false) };
        let ahead = self.front.as_ref().and_then(ScanCursor::entry);
        let met = ahead.is_some_and(|(ahead, _)| self.keys.compare(key, ahead).is_le());
        Ok(!met)
    }
}

/// Whether the cursor is at the key that the range leaves out.
fn stands_at(cursor: &impl ScanCursor, keys: &KeyOrder, bound: &Bound<Vec<u8>>) -> bool {
    let Bound::Excluded(left_out) = bound else { return false };
    cursor.entry().is_some_and(|(key, _)| keys.compare(key, left_out).is_eq())
}
