//! The writes of a transaction, which no other reader sees yet, in the order of keys.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::base::comparator::KeyOrder;

use crate::db::concurrency::ordered_key::OrderedKey;

/// The last write of a key.
pub(super) enum Write {
    Put(Vec<u8>),
    Delete,
}

impl Write {
    /// The value that the key has now, if it has one.
    pub(super) fn value(&self) -> Option<&[u8]> {
        match self {
            Write::Put(value) => Some(value),
            Write::Delete => None,
        }
    }
}

/// A key and its last write.
pub(super) type OwnEntry<'w> = (&'w OrderedKey, &'w Write);

/// See the [module](self).
pub(super) struct OwnWrites {
    order: KeyOrder,
    writes: BTreeMap<OrderedKey, Write>,
    /// For each savepoint what there was of the keys that were written since, up to the next one.
    savepoints: Vec<BTreeMap<OrderedKey, Option<Write>>>,
}

impl OwnWrites {
    pub(super) fn new(order: KeyOrder) -> Self {
        OwnWrites { order, writes: BTreeMap::new(), savepoints: Vec::new() }
    }

    fn key(&self, key: &[u8]) -> OrderedKey {
        OrderedKey::new(key, &self.order)
    }

    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(super) fn set(&mut self, key: &[u8], write: Write) {
        let key = self.key(key);
        let Some(before) = self.savepoints.last_mut() else {
            self.writes.insert(key, write);
            return;
        };
        let replaced = self.writes.insert(key.clone(), write);
        before.entry(key).or_insert(replaced);
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Write> {
        if self.writes.is_empty() { None } else { self.writes.get(&self.key(key)) }
    }

    pub(super) fn set_savepoint(&mut self) {
        self.savepoints.push(BTreeMap::new());
    }

    /// Undoes what was written since the last savepoint, which is gone then. False if there is
    /// none.
    pub(super) fn rollback_to_savepoint(&mut self) -> bool {
        let Some(before) = self.savepoints.pop() else { return false };
        for (key, replaced) in before {
            match replaced {
                Some(write) => self.writes.insert(key, write),
                None => self.writes.remove(&key),
            };
        }
        true
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = OwnEntry<'_>> + Clone {
        self.writes.iter()
    }

    pub(super) fn first(&self) -> Option<OwnEntry<'_>> {
        self.writes.first_key_value()
    }

    pub(super) fn last(&self) -> Option<OwnEntry<'_>> {
        self.writes.last_key_value()
    }

    pub(super) fn after(&self, key: &OrderedKey) -> Option<OwnEntry<'_>> {
        self.writes.range::<OrderedKey, _>((Bound::Excluded(key), Bound::Unbounded)).next()
    }

    pub(super) fn before(&self, key: &OrderedKey) -> Option<OwnEntry<'_>> {
        self.writes.range::<OrderedKey, _>((Bound::Unbounded, Bound::Excluded(key))).next_back()
    }

    pub(super) fn at_or_after(&self, key: &[u8]) -> Option<OwnEntry<'_>> {
        self.writes.range(self.key(key)..).next()
    }

    pub(super) fn at_or_before(&self, key: &[u8]) -> Option<OwnEntry<'_>> {
        self.writes.range(..=self.key(key)).next_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_written_again_after_a_savepoint_takes_no_space() {
        let mut writes = OwnWrites::new(KeyOrder::default());
        writes.set(b"key", Write::Put(b"first".to_vec()));
        for value in 0..2u8 {
            writes.set_savepoint();
            (0..10).for_each(|_| writes.set(b"key", Write::Put(vec![value])));
        }
        assert!(writes.savepoints.iter().all(|before| before.len() == 1));
        for value in [&[0][..], b"first"] {
            assert!(writes.rollback_to_savepoint());
            assert_eq!(writes.get(b"key").and_then(Write::value), Some(value));
        }
    }
}
