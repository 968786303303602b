//! The keys and ranges that a write changes, for locks and for serializable transactions.

use crate::base::internal_key::SequenceNumber;

use super::conflict_set::ConflictSet;
use super::lock_manager::{LockManager, LockOwner};
use super::ordered_key::OrderedKey;
use super::ordered_range::KeyBounds;

/// See the [module](self).
pub(in crate::db) trait Footprint {
    /// The first key of it that another than `owner` has locked.
    fn locked_key(&self, locks: &LockManager, owner: Option<&LockOwner>) -> Option<OrderedKey>;

    /// Puts it into the conflict set, as of `sequence`.
    fn record(&self, conflicts: &ConflictSet, sequence: SequenceNumber);
}

/// Single keys, as often as they are asked for.
pub(in crate::db) struct Keys<F>(pub(in crate::db) F);

/// Whole ranges, as often as they are asked for.
pub(in crate::db) struct Ranges<F>(pub(in crate::db) F);

impl<'k, F, K> Footprint for Keys<F>
where
    F: Fn() -> K,
    K: Iterator<Item = &'k [u8]>,
{
    fn locked_key(&self, locks: &LockManager, owner: Option<&LockOwner>) -> Option<OrderedKey> {
        locks.locked_key(owner, (self.0)())
    }

    fn record(&self, conflicts: &ConflictSet, sequence: SequenceNumber) {
        conflicts.record((self.0)(), sequence);
    }
}

impl<'k, F, R> Footprint for Ranges<F>
where
    F: Fn() -> R,
    R: Iterator<Item = KeyBounds<'k>>,
{
    fn locked_key(&self, locks: &LockManager, owner: Option<&LockOwner>) -> Option<OrderedKey> {
        locks.locked_in_ranges(owner, (self.0)())
    }

    fn record(&self, conflicts: &ConflictSet, sequence: SequenceNumber) {
        conflicts.record_ranges((self.0)(), sequence);
    }
}
