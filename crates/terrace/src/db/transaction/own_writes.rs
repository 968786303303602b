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
    /// The writes that those since the first savepoint have replaced.
    replaced: Vec<(Vec<u8>, Option<Write>)>,
    /// How much had been replaced at each savepoint.
    savepoints: Vec<usize>,
}

impl OwnWrites {
    pub(super) fn new(order: KeyOrder) -> Self {
        OwnWrites { order, writes: BTreeMap::new(), replaced: Vec::new(), savepoints: Vec::new() }
    }

    fn key(&self, key: &[u8]) -> OrderedKey {
        OrderedKey::new(key, &self.order)
    }

    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(super) fn set(&mut self, key: &[u8], write: Write) {
        let replaced = self.writes.insert(self.key(key), write);
        if !self.savepoints.is_empty() {
            self.replaced.push((key.to_vec(), replaced));
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Write> {
        if self.writes.is_empty() { None } else { self.writes.get(&self.key(key)) }
    }

    pub(super) fn set_savepoint(&mut self) {
        self.savepoints.push(self.replaced.len());
    }

    /// Undoes what was written since the last savepoint, which is gone then. False if there is
    /// none.
    pub(super) fn rollback_to_savepoint(&mut self) -> bool {
        let Some(replaced_then) = self.savepoints.pop() else { return false };
        while self.replaced.len() > replaced_then
            && let Some((key, replaced)) = self.replaced.pop()
        {
            let key = self.key(&key);
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
