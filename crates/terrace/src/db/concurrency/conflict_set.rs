//! The keys and ranges written since the oldest serializable transaction began, in
//! memory, each with the sequence number of its last write.
//!
//! FoundationDB's resolvers decide in the same way. Looking into tables instead would have to read
//! every range of a transaction once more, and a compaction or a load would have changed most of
//! what it finds.
//!
//! # Invariants
//! 1. While a transaction is in the set, every commit puts what it writes into it, under the commit
//!    lock.
//! 2. A write that is left out is not later than the oldest transaction, or than `forgotten`.
//! 3. In a child of a fork, where nobody commits, transactions neither enter nor leave: a thread
//!    may hold the lock that is not there.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, Result};
use crate::base::fork::Origin;
use crate::base::internal_key::SequenceNumber;
use crate::base::locks::Mutex;
use crate::base::mutation::mutated;

use super::ordered_key::{OrderedKey, shown};
use super::ordered_range::{KeyBounds, OrderedRange};
use super::read_set::ReadSet;
use super::users::Users;

/// Bytes that the set may take. A transaction that is older than what fits conflicts.
const CAPACITY: usize = 16 << 20;
/// Bytes that a key in the set takes besides its own, about.
const OVERHEAD: usize = 96;

/// See the [module](self).
pub(in crate::db) struct ConflictSet {
    order: KeyOrder,
    /// Counts every transaction in the set.
    users: Arc<Users>,
    inner: Mutex<Inner>,
    origin: Origin,
}

#[derive(Default)]
struct Inner {
    /// When the transactions began, and how many began then.
    began: BTreeMap<SequenceNumber, usize>,
    writes: BTreeMap<OrderedKey, SequenceNumber>,
    ranges: Vec<(OrderedRange, SequenceNumber)>,
    bytes: usize,
    /// At how many bytes old writes are looked for next.
    collect_at: usize,
    /// Writes up to this one may be missing.
    forgotten: SequenceNumber,
}

impl ConflictSet {
    pub(in crate::db) fn new(order: KeyOrder, users: Arc<Users>) -> Self {
        ConflictSet { order, users, inner: Mutex::default(), origin: Origin::here() }
    }

    /// Has commits recorded from the next one on that begins after the caller has taken the commit
    /// lock. [`leave`](Self::leave) takes it back.
    pub(in crate::db) fn enter(&self, visible: SequenceNumber) {
        if self.origin.is_ancestor() {
            return;
        }
        let mut inner = self.inner.lock();
        *inner.began.entry(visible).or_insert(0) += 1;
        self.users.add();
    }

    /// Ends what [`enter`](Self::enter) began at `visible`.
    pub(in crate::db) fn leave(&self, visible: SequenceNumber) {
        if self.origin.is_ancestor() {
            return;
        }
        let mut inner = self.inner.lock();
        self.users.remove();
        if let Some(count) = inner.began.get_mut(&visible) {
            *count -= 1;
            if *count == 0 {
                inner.began.remove(&visible);
            }
        }
        if inner.began.is_empty() {
            *inner = Inner::default();
        }
    }

    /// Puts in the keys of a commit, under the commit lock.
    pub(in crate::db) fn record<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        sequence: SequenceNumber,
    ) {
        let mut inner = self.inner.lock();
        if inner.began.is_empty() || mutated("conflict-set") {
            return;
        }
        for key in keys {
            let known = inner.writes.insert(OrderedKey::new(key, &self.order), sequence);
            if known.is_none() {
                inner.bytes += key.len() + OVERHEAD;
            }
            if inner.is_full(sequence) {
                return;
            }
        }
        inner.make_room(sequence);
    }

    /// Puts in every key of some ranges.
    pub(in crate::db) fn record_ranges<'k>(
        &self,
        ranges: impl Iterator<Item = KeyBounds<'k>>,
        sequence: SequenceNumber,
    ) {
        let mut inner = self.inner.lock();
        if inner.began.is_empty() || mutated("conflict-set") {
            return;
        }
        for range in ranges {
            let range = OrderedRange::new(range, &self.order);
            inner.bytes += range.len() + 2 * OVERHEAD;
            inner.ranges.push((range, sequence));
            if inner.is_full(sequence) {
                return;
            }
        }
        inner.make_room(sequence);
    }

    /// Whether what a transaction has read as of `since` is what it would read now. The caller
    /// holds the commit lock.
    ///
    /// # Errors
    /// `Conflict`, with a key that was written since, or because too much was written since.
    pub(in crate::db) fn check(&self, reads: &ReadSet, since: SequenceNumber) -> Result<()> {
        let inner = self.inner.lock();
        if since < inner.forgotten {
            return Err(Error::conflict(
                "more was written since the transaction began than is kept for such checks",
            ));
        }
        let written = |key: &OrderedKey| {
            let key = shown(key.as_slice());
            Error::conflict(format!(
                "the key {key}, which the transaction has read or not found, was written since"
            ))
        };
        let later = inner.ranges.iter().filter(|(_, sequence)| *sequence > since);
        let conflict_if = |is_written: bool| match is_written {
            true => Err(Error::conflict(
                "a range that has keys which the transaction has read was written since",
            )),
            false => Ok(()),
        };
        reads.try_for_each_key(|key| {
            if inner.writes.get(key).is_some_and(|sequence| *sequence > since) {
                return Err(written(key));
            }
            conflict_if(later.clone().any(|(written, _)| written.bounds().contains(key)))
        })?;
        reads.try_for_each_range(|range| {
            let mut writes = inner.writes.range(range.bounds());
            if let Some((key, _)) = writes.find(|(_, sequence)| **sequence > since) {
                return Err(written(key));
            }
            conflict_if(later.clone().any(|(written, _)| range.overlaps(written)))
        })
    }
}

impl Inner {
    /// Whether nothing more needs to be put in of the commit at `sequence`: it has come to more than
    /// the set may take, and conflicts with every transaction as a whole.
    fn is_full(&mut self, sequence: SequenceNumber) -> bool {
        if self.bytes > CAPACITY {
            self.make_room(sequence);
        }
        self.forgotten == sequence
    }

    /// Drops writes that no transaction needs, and, where that does not suffice, all of them.
    fn make_room(&mut self, sequence: SequenceNumber) {
        if self.bytes < self.collect_at.max(CAPACITY / 16) {
            return;
        }
        let oldest = self.began.keys().next().copied().unwrap_or(sequence);
        self.writes.retain(|_, written| *written > oldest);
        self.ranges.retain(|(_, written)| *written > oldest);
        let of_keys = self.writes.keys().map(|key| key.as_slice().len() + OVERHEAD);
        let of_ranges = self.ranges.iter().map(|(range, _)| range.len() + 2 * OVERHEAD);
        self.bytes = of_keys.sum::<usize>() + of_ranges.sum::<usize>();
        if self.bytes > CAPACITY {
            self.writes.clear();
            self.ranges.clear();
            self.bytes = 0;
            self.forgotten = sequence;
        }
        self.collect_at = (2 * self.bytes).min(CAPACITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit of more than the set may take conflicts as a whole, and is not put in first.
    #[test]
    fn a_commit_of_any_size_takes_no_more_than_the_set_may() {
        let set = ConflictSet::new(KeyOrder::default(), Arc::default());
        set.enter(1);
        let keys: Vec<_> = (0..1_000_000u32).map(u32::to_be_bytes).collect();
        let mut taken = 0;
        set.record(keys.iter().map(<[u8; 4]>::as_slice).inspect(|_| taken += 1), 2);
        assert!(taken <= CAPACITY / OVERHEAD, "{taken} keys");
        let reads = ReadSet::new(KeyOrder::default());
        assert!(set.check(&reads, 1).is_err() && set.check(&reads, 2).is_ok());
        set.enter(2);
        set.record(keys.iter().map(<[u8; 4]>::as_slice).take(10), 3);
        reads.add_key(&keys[10]);
        assert!(set.check(&reads, 2).is_ok());
        reads.add_key(&keys[9]);
        assert!(set.check(&reads, 2).is_err());
    }
}
