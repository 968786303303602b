//! Which entries survive a compaction or a flush.
//!
//! Live snapshots cut history into stripes: two sequence numbers are in the same stripe if no
//! snapshot lies between them. Of the versions of one key, only the newest of each stripe can ever
//! be read again.

use std::cmp::Ordering;

use crate::base::comparator::KeyOrder;
use crate::base::internal_key::{EntryKind, ParsedKey, SequenceNumber};
use crate::base::mutation::mutated;

/// Fed with entries in internal order, says of each whether it is needed.
pub(crate) struct DropRules {
    keys: KeyOrder,
    /// Ascending.
    snapshots: Vec<SequenceNumber>,
    /// The user key last seen and the stripe of its entry, which is newer than the ones that
    /// follow.
    last: Option<usize>,
    last_key: Vec<u8>,
    starts_key: bool,
}

impl DropRules {
    /// `snapshots`: the sequence numbers of live snapshots.
    pub(crate) fn new(keys: KeyOrder, mut snapshots: Vec<SequenceNumber>) -> Self {
        snapshots.sort_unstable();
        if mutated("versions-for-snapshots") {
            snapshots.clear();
        }
        DropRules { keys, snapshots, last: None, last_key: Vec::new(), starts_key: false }
    }

    /// Whether the entry that was asked about last is the first of its user key.
    #[inline]
    pub(crate) fn starts_key(&self) -> bool {
        self.starts_key
    }

    /// Whether `entry`, about which [`keep`](Self::keep) is to be asked next, is the first of its
    /// user key and later than every snapshot.
    pub(crate) fn is_unseen(&self, entry: &ParsedKey<'_>) -> bool {
        let is_later = self.snapshots.last().is_none_or(|newest| *newest < entry.sequence)
            || mutated("filter-under-snapshots");
        let is_first = self.last.is_none()
            || self.keys.compare(entry.user_key, &self.last_key) != Ordering::Equal;
        is_later && is_first
    }

    /// Whether `entry` must be kept. `is_base` returns whether no older entry of its key can lie
    /// below the output.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        entry: &ParsedKey<'_>,
        is_base: impl FnOnce(&[u8]) -> bool,
    ) -> bool {
        let stripe = match self.snapshots.is_empty() {
            true => 0,
            false => self.snapshots.partition_point(|&snapshot| snapshot < entry.sequence),
        };
        let same_key = self.last.is_some()
            && self.keys.compare(entry.user_key, &self.last_key) == Ordering::Equal;
        let shadowed = same_key && self.last == Some(stripe);
        if !same_key {
            self.last_key.clear();
            self.last_key.extend_from_slice(entry.user_key);
        }
        self.starts_key = !same_key;
        self.last = Some(stripe);
        if shadowed {
            return false;
        }
        // A tombstone in the oldest stripe hides only what is older than every reader, and that
        // goes along with it.
        let is_in_oldest_stripe = stripe == 0 || mutated("tombstones-under-snapshots");
        let hides_nothing = || is_base(entry.user_key) || mutated("tombstones-above-older-data");
        !(entry.kind == EntryKind::Deletion && is_in_oldest_stripe && hides_nothing())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs entries `(key, sequence, is_value)` through the rules and returns the sequences that
    /// survive.
    fn survivors(snapshots: &[u64], base: bool, entries: &[(&str, u64, bool)]) -> Vec<u64> {
        let mut rules = DropRules::new(KeyOrder::default(), snapshots.to_vec());
        let keep = |&&(key, sequence, is_value): &&(&str, u64, bool)| {
            let kind = if is_value { EntryKind::Value } else { EntryKind::Deletion };
            rules.keep(&ParsedKey { user_key: key.as_bytes(), sequence, kind }, |_| base)
        };
        entries.iter().filter(keep).map(|entry| entry.1).collect()
    }

    #[test]
    fn without_snapshots_only_the_newest_version_survives() {
        assert_eq!(
            survivors(&[], false, &[("a", 9, true), ("a", 5, true), ("b", 7, true)]),
            [9, 7]
        );
        assert_eq!(survivors(&[], false, &[("a", 9, false), ("a", 5, true)]), [9]);
        assert_eq!(survivors(&[], true, &[("a", 9, false), ("a", 5, true), ("b", 1, true)]), [1]);
    }

    #[test]
    fn each_snapshot_keeps_what_it_can_see() {
        let versions = [("a", 9, true), ("a", 7, true), ("a", 5, true), ("a", 3, true)];
        assert_eq!(survivors(&[7], false, &versions), [9, 7]);
        assert_eq!(survivors(&[6], false, &versions), [9, 5]);
        assert_eq!(survivors(&[8, 4], false, &versions), [9, 7, 3]);
        assert_eq!(survivors(&[20], false, &versions), [9]);
    }

    #[test]
    fn a_tombstone_stays_while_a_snapshot_sees_what_it_hides() {
        let versions = [("a", 9, false), ("a", 5, true)];
        assert_eq!(survivors(&[6], true, &versions), [9, 5]);
        assert_eq!(survivors(&[9], true, &versions), [] as [u64; 0]);
        assert_eq!(
            survivors(&[4], true, &versions),
            [9],
            "no read sees the value at 5, the snapshot at 4 is older"
        );
    }

    #[test]
    fn an_empty_user_key_is_a_key() {
        assert_eq!(survivors(&[], false, &[("", 9, true), ("", 5, true)]), [9]);
    }
}
