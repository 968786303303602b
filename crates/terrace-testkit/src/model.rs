//! The expected results of a database: an ordered map in memory, with snapshots that cost nothing.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use terrace::Comparator;

/// The reverse of bytewise order, to find code that takes bytewise order for granted.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReverseComparator;

impl Comparator for ReverseComparator {
    fn name(&self) -> &str {
        "terrace.test.ReverseBytewise"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// One change of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets a key.
    Put(Vec<u8>, Vec<u8>),
    /// Removes a key.
    Delete(Vec<u8>),
}

impl Change {
    /// The key that changes.
    pub fn key(&self) -> &[u8] {
        match self {
            Change::Put(key, _) | Change::Delete(key) => key,
        }
    }
}

/// The state of a database. A clone is a snapshot and shares everything.
#[derive(Clone, Debug, Default)]
pub struct Model {
    entries: Arc<BTreeMap<Vec<u8>, Arc<[u8]>>>,
    reverse: bool,
}

impl Model {
    /// An empty database in bytewise order, or in the order of [`ReverseComparator`].
    pub fn new(reverse: bool) -> Model {
        Model { entries: Arc::default(), reverse }
    }

    /// Makes the changes of a batch, in order.
    pub fn apply(&mut self, changes: &[Change]) {
        let entries = Arc::make_mut(&mut self.entries);
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    entries.insert(key.clone(), value.as_slice().into());
                }
                Change::Delete(key) => {
                    entries.remove(key);
                }
            }
        }
    }

    /// Removes all keys between two bounds.
    pub fn delete_range(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>) {
        let keys = self.range(from, to).into_iter().map(|(key, _)| Change::Delete(key));
        self.apply(&keys.collect::<Vec<_>>());
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.entries.get(key).map(AsRef::as_ref)
    }

    /// The first entry in the database's order.
    pub fn first(&self) -> Option<(&[u8], &[u8])> {
        self.above(Bound::Unbounded)
    }

    /// The last entry in the database's order.
    pub fn last(&self) -> Option<(&[u8], &[u8])> {
        self.under(Bound::Unbounded)
    }

    /// The first entry in the database's order that lies behind `from`.
    pub fn above(&self, from: Bound<&[u8]>) -> Option<(&[u8], &[u8])> {
        let entry = if self.reverse {
            self.entries.range::<[u8], _>((Bound::Unbounded, from)).next_back()
        } else {
            self.entries.range::<[u8], _>((from, Bound::Unbounded)).next()
        };
        entry.map(|(key, value)| (key.as_slice(), value.as_ref()))
    }

    /// The last entry in the database's order that lies before `to`.
    pub fn under(&self, to: Bound<&[u8]>) -> Option<(&[u8], &[u8])> {
        let entry = if self.reverse {
            self.entries.range::<[u8], _>((to, Bound::Unbounded)).next()
        } else {
            self.entries.range::<[u8], _>((Bound::Unbounded, to)).next_back()
        };
        entry.map(|(key, value)| (key.as_slice(), value.as_ref()))
    }

    /// All entries between two bounds, in the database's order. Empty if the bounds are the wrong
    /// way round.
    pub fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Vec<Pair> {
        let (low, high) = if self.reverse { (to, from) } else { (from, to) };
        let inverted = match (low, high) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(a), Bound::Included(b)) => a > b,
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => {
                a >= b
            }
        };
        if inverted {
            return Vec::new();
        }
        let mut pairs: Vec<Pair> = self
            .entries
            .range::<[u8], _>((low, high))
            .map(|(key, value)| (key.clone(), value.to_vec()))
            .collect();
        if self.reverse {
            pairs.reverse();
        }
        pairs
    }

    /// All entries whose keys begin with `prefix`, in the database's order.
    pub fn prefix(&self, prefix: &[u8]) -> Vec<Pair> {
        self.range(Bound::Unbounded, Bound::Unbounded)
            .into_iter()
            .filter(|(key, _)| key.starts_with(prefix))
            .collect()
    }

    /// All entries, in the database's order.
    pub fn entries(&self) -> Vec<Pair> {
        self.range(Bound::Unbounded, Bound::Unbounded)
    }
}

/// The position of a cursor over a [`Model`].
#[derive(Clone, Debug)]
pub struct ModelCursor {
    model: Model,
    key: Option<Vec<u8>>,
}

impl ModelCursor {
    /// A cursor over `model` as it is now, on no entry.
    pub fn new(model: &Model) -> ModelCursor {
        ModelCursor { model: model.clone(), key: None }
    }

    /// Where it stands.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        let key = self.key.as_deref()?;
        Some((key, self.model.get(key)?))
    }

    /// Makes one move.
    pub fn step(&mut self, step: &CursorStep) {
        let at = self.key.as_deref();
        let found = match step {
            CursorStep::First => self.model.first(),
            CursorStep::Last => self.model.last(),
            CursorStep::Seek(key) => self.model.above(Bound::Included(key)),
            CursorStep::SeekForPrev(key) => self.model.under(Bound::Included(key)),
            CursorStep::Next => at.and_then(|at| self.model.above(Bound::Excluded(at))),
            CursorStep::Prev => at.and_then(|at| self.model.under(Bound::Excluded(at))),
        };
        self.key = found.map(|(key, _)| key.to_vec());
    }
}

/// A move of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorStep {
    /// To the first entry.
    First,
    /// To the last entry.
    Last,
    /// To the first entry at or behind a key.
    Seek(Vec<u8>),
    /// To the last entry at or before a key.
    SeekForPrev(Vec<u8>),
    /// To the next entry.
    Next,
    /// To the previous entry.
    Prev,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(reverse: bool) -> Model {
        let mut model = Model::new(reverse);
        model.apply(&["a", "c", "e"].map(|k| Change::Put(k.into(), k.into())));
        model
    }

    #[test]
    fn both_orders_mirror_each_other() {
        let keys = |pairs: Vec<Pair>| pairs.into_iter().map(|(key, _)| key[0]).collect::<Vec<u8>>();
        assert_eq!(keys(model(false).entries()), b"ace");
        assert_eq!(keys(model(true).entries()), b"eca");
        let reverse = model(true);
        assert_eq!(reverse.above(Bound::Included(b"d")).unwrap().0, b"c");
        assert_eq!(reverse.under(Bound::Excluded(b"c")).unwrap().0, b"e");
        assert_eq!(keys(reverse.range(Bound::Included(b"e"), Bound::Excluded(b"a"))), b"ec");
        assert!(model(false).range(Bound::Included(b"e"), Bound::Excluded(b"a")).is_empty());
    }

    #[test]
    fn snapshots_stay_as_they_were() {
        let mut present = model(false);
        let mut cursor = ModelCursor::new(&present);
        cursor.step(&CursorStep::Seek(b"b".to_vec()));
        present.apply(&[Change::Delete(b"e".to_vec()), Change::Put(b"c".to_vec(), b"2".to_vec())]);
        assert_eq!(cursor.entry(), Some((&b"c"[..], &b"c"[..])));
        cursor.step(&CursorStep::Next);
        assert_eq!(cursor.entry().unwrap().0, b"e");
        cursor.step(&CursorStep::Next);
        cursor.step(&CursorStep::Prev);
        assert_eq!(cursor.entry(), None);
        assert_eq!(present.len(), 2);
    }
}
