//! Merges sources into one order.
//!
//! The sources form a loser tree: each inner node of a complete binary tree remembers the loser of
//! its match, so that after the winner moves, one path of log2(n) comparisons finds the next winner
//! (Knuth, *The Art of Computer Programming* 3, 5.4.1). The first 16 bytes of every source's user
//! key are kept as one number, its *abbreviated key*; only ties compare keys. Where different keys
//! tie repeatedly, abbreviated keys leave out the prefix that they share. Where one source wins
//! repeatedly, the best of the others, the *runner-up*, is remembered: until the winner reaches it,
//! a step compares two numbers.
//!
//! # Invariants
//! 1. The current source is the one with the least key (forward) or the greatest (backward) among
//!    the valid ones.
//! 2. Forward, every other source stands at its first key after the current one; backward, at its
//!    last before it.
//! 3. While there is a runner-up, the keys of all other sources are at or beyond its abbreviated
//!    key, and the current key is before it: no other source has an entry of the current user key
//!    at or beyond its position.
//! 4. An error of any source makes the whole invalid: a result without that source could be wrong.

use std::cmp::Ordering;

use crate::base::abbreviated_keys::common_prefix;
use crate::base::error::{Error, Result};
use crate::base::internal_key::{self, InternalOrder, user_key};
use crate::base::mutation::mutated;
use crate::cache::pin;
use crate::table::TableIter;

use super::source::Source;
use super::standing::{EXHAUSTED, MORE, Standing, abbreviated};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Ties of different keys after which abbreviated keys leave out other bytes than before.
const MOST_TIES: u32 = 4;

/// How many bytes before the first one that tells two keys apart abbreviated keys begin then: other
/// keys may differ earlier.
const KEPT_BYTES: usize = 8;

/// Steps after which another source seeks rather than steps when the direction switches.
/// Mostly there is one to go; in a memtable there is also what came in between since it was sought.
const MOST_STEPS_BACK: usize = 8;

/// An iterator over the union of its sources. Equal internal keys come in the order of the sources.
pub(crate) struct MergingIter {
    sources: Vec<Source>,
    order: InternalOrder,
    direction: Direction,
    /// The current source's may be of an earlier entry while there is a runner-up.
    standings: Vec<Standing>,
    /// `tree[0]` is the winner; `tree[1..n]` the losers of the inner nodes. Source `i` is leaf `n +
    /// i`.
    tree: Vec<u32>,
    /// In bytewise order only.
    runner_up: Option<u128>,
    /// The prefix that abbreviated keys leave out. Any bytes will do: abbreviated keys order as
    /// keys do, whatever these begin with.
    common: Vec<u8>,
    /// Of different keys, since abbreviated keys were last looked at.
    ties: u32,
    error: Option<Error>,
}

impl MergingIter {
    pub(crate) fn new(sources: Vec<Source>, order: InternalOrder) -> Self {
        let count = sources.len();
        MergingIter {
            sources,
            order,
            direction: Direction::Forward,
            standings: vec![EXHAUSTED; count],
            tree: vec![0; count.max(1)],
            runner_up: None,
            common: Vec::new(),
            ties: 0,
            error: None,
        }
    }

    /// The source that the present entry is from.
    #[inline]
    pub(super) fn current(&self) -> Option<&Source> {
        if self.error.is_some() {
            return None;
        }
        self.sources.get(self.tree[0] as usize)
    }

    /// The same, for looks ahead of it.
    pub(super) fn current_mut(&mut self) -> Option<&mut Source> {
        if self.error.is_some() {
            return None;
        }
        self.sources.get_mut(self.tree[0] as usize)
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.current().is_some_and(Source::valid)
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.current().map_or(&[], Source::key)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.current().map_or(&[], Source::value)
    }

    #[inline]
    pub(crate) fn entry(&self) -> (&[u8], &[u8]) {
        self.current().map_or((&[], &[]), Source::entry)
    }

    /// Which source the present entry is from.
    pub(crate) fn source(&self) -> usize {
        self.tree[0] as usize
    }

    pub(crate) fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.reposition(Direction::Forward, Source::seek_to_first);
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.reposition(Direction::Backward, Source::seek_to_last);
    }

    /// Moves to the first entry at or after `target`, an internal key. What the sources have to
    /// wait for is asked for in all of them before the first one waits.
    pub(crate) fn seek(&mut self, target: &[u8]) {
        self.sources.iter_mut().for_each(|source| source.aim(target));
        {
            // Every look into the cache needs this, and it costs less in one piece.
            let _pin = pin();
            self.sources.iter().for_each(Source::prefetch_block);
            self.sources.iter().for_each(Source::prefetch_entries);
        }
        self.reposition(Direction::Forward, |source| source.land(target));
    }

    /// Takes the current source to its first entry at or after `target`, an internal key. Entries
    /// of other sources before that come first. Forward only.
    pub(super) fn pass(&mut self, target: &[u8]) {
        self.step(|source| source.seek(target));
    }

    #[inline]
    pub(crate) fn next(&mut self) {
        if self.direction != Direction::Forward {
            self.switch_forward();
        }
        self.step(Source::next);
    }

    #[inline]
    pub(crate) fn prev(&mut self) {
        if self.direction != Direction::Backward {
            self.switch_backward();
        }
        self.step(Source::prev);
    }

    #[inline]
    fn step(&mut self, advance: impl Fn(&mut Source)) {
        if !self.valid() {
            return;
        }
        let winner = self.tree[0] as usize;
        advance(&mut self.sources[winner]);
        self.refresh(winner);
        if !self.leads(winner) {
            self.sift(winner);
        }
    }

    /// Goes to the next entry if it is in the same table block, of another user key, and the entry
    /// here is the only one of its own from here on. Returns its tag and what `look` makes of the
    /// table's iterator if all this can be said of the next entry as well; nothing, if it takes a
    /// closer look. `None`: nothing happened.
    #[inline]
    pub(super) fn next_of_other_key<R>(
        &mut self,
        look: impl FnOnce(&TableIter) -> R,
    ) -> Option<Option<(u64, R)>> {
        if self.direction != Direction::Forward || self.runner_up.is_none() {
            return None;
        }
        let winner = self.tree[0] as usize;
        let table = self.sources[winner].table_mut()?;
        let tag = table.next_of_other_key()?;
        if self
            .runner_up
            .is_some_and(|runner_up| abbreviated(&self.common, user_key(table.key())).0 < runner_up)
        {
            return Some(Some((tag, look(table))));
        }
        self.refresh(winner);
        self.sift(winner);
        Some(None)
    }

    /// Goes to the entry before, where the entry here [is the only one of its user
    /// key](Self::is_only_version). Returns as [`next_of_other_key`](Self::next_of_other_key) does.
    #[inline]
    pub(super) fn prev_of_other_key<R>(
        &mut self,
        look: impl FnOnce(&TableIter) -> R,
    ) -> Option<Option<(u64, R)>> {
        if self.direction != Direction::Backward || self.runner_up.is_none() || self.error.is_some()
        {
            return None;
        }
        let winner = self.tree[0] as usize;
        let table = self.sources[winner].table_mut()?;
        if !table.follows_other_key() {
            return None;
        }
        // Within the block, as the entry that follows another one knows.
        table.prev();
        if let Some((key, tag)) = internal_key::split(table.key())
            && self.runner_up.is_some_and(|runner_up| abbreviated(&self.common, key).0 > runner_up)
        {
            return Some(table.follows_other_key().then(|| (tag, look(table))));
        }
        // At or beyond the runner-up, or damaged.
        self.refresh(winner);
        self.sift(winner);
        Some(None)
    }

    /// Whether the entry here, reached backwards as the first of its user key, is known to be the
    /// only one.
    #[inline]
    pub(super) fn is_only_version(&self) -> bool {
        self.direction == Direction::Backward
            && self.runner_up.is_some()
            && self.current().is_some_and(Source::follows_other_key)
    }

    fn reposition(&mut self, direction: Direction, mut seek: impl FnMut(&mut Source)) {
        self.direction = direction;
        self.runner_up = None;
        self.error = None;
        for index in 0..self.sources.len() {
            seek(&mut self.sources[index]);
            self.refresh(index);
        }
        self.rebuild();
    }

    /// Puts every other source behind the current key, so that all of them stand as going forward
    /// requires.
    #[cold]
    fn switch_forward(&mut self) {
        self.switch_direction(Direction::Forward, |source, order, key| {
            // It stands at its last entry before the current one, or before its first.
            if source.valid() {
                source.next();
            } else {
                source.seek_to_first();
            }
            // Going backward the current source holds the greatest key; an equal one elsewhere
            // comes after it.
            let is_behind = |source: &Source| {
                source.valid() && order.compare(source.key(), key) != Ordering::Greater
            };
            for _ in 0..MOST_STEPS_BACK {
                if !is_behind(source) || mutated("switch-beside-writes") {
                    return;
                }
                source.next();
            }
            source.seek(key);
            if source.valid() && order.compare(source.key(), key) == Ordering::Equal {
                source.next();
            }
        });
    }

    #[cold]
    fn switch_backward(&mut self) {
        self.switch_direction(Direction::Backward, |source, order, key| {
            // It stands at its first entry after the current one, or behind its last.
            if source.valid() {
                source.prev();
            } else {
                source.seek_to_last();
            }
            let is_ahead = |source: &Source| {
                source.valid() && order.compare(source.key(), key) != Ordering::Less
            };
            for _ in 0..MOST_STEPS_BACK {
                if !is_ahead(source) || mutated("switch-beside-writes") {
                    return;
                }
                source.prev();
            }
            source.seek(key);
            if source.valid() {
                source.prev();
            } else if source.status().is_ok() {
                source.seek_to_last();
            }
            // What came in between these two.
            while is_ahead(source) {
                source.prev();
            }
        });
    }

    fn switch_direction(
        &mut self,
        direction: Direction,
        place: impl Fn(&mut Source, &InternalOrder, &[u8]),
    ) {
        if !self.valid() {
            return;
        }
        let winner = self.tree[0] as usize;
        let key = self.key().to_vec();
        self.direction = direction;
        self.runner_up = None;
        for index in (0..self.sources.len()).filter(|&index| index != winner) {
            place(&mut self.sources[index], &self.order, &key);
            self.refresh(index);
        }
        self.refresh(winner);
        // The current source wins again: every other one is beyond it now.
        self.rebuild();
    }

    /// Takes note of where source `index` stands now.
    #[inline]
    fn refresh(&mut self, index: usize) {
        let source = &self.sources[index];
        let standing = Standing::of(source, self.order.keys.is_bytewise(), &self.common);
        self.standings[index] = standing;
        if !standing.valid
            && !mutated("source-errors")
            && let Err(error) = source.status()
        {
            self.error = Some(error);
        }
    }

    /// Whether source `a` comes before source `b` in the present direction. Exhausted sources come
    /// last.
    #[inline]
    fn before(&self, a: u32, b: u32) -> bool {
        let (first, second) = (&self.standings[a as usize], &self.standings[b as usize]);
        if !(first.valid && second.valid) {
            return first.valid && !second.valid;
        }
        if first.abbreviated != second.abbreviated {
            return (first.abbreviated < second.abbreviated)
                == (self.direction == Direction::Forward);
        }
        let ordering = if first.length != MORE && second.length != MORE {
            // Of two that are the same with zeros behind them the shorter one is less. The greatest
            // tag comes first.
            first.length.cmp(&second.length).then(second.tag.cmp(&first.tag))
        } else {
            let (first, second) = (&self.sources[a as usize], &self.sources[b as usize]);
            self.order.compare(first.key(), second.key())
        };
        let ordering = ordering.then(a.cmp(&b));
        match self.direction {
            Direction::Forward => ordering == Ordering::Less,
            Direction::Backward => ordering == Ordering::Greater,
        }
    }

    /// Whether source `index`, the last winner, is still before its runner-up.
    #[inline]
    fn leads(&self, index: usize) -> bool {
        let Standing { valid, abbreviated, .. } = self.standings[index];
        self.runner_up.is_some_and(|runner_up| match self.direction {
            Direction::Forward => valid && abbreviated < runner_up,
            Direction::Backward => valid && abbreviated > runner_up,
        })
    }

    /// Finds the next winner after source `index`, the last one, and its runner-up if it is the
    /// same.
    #[inline]
    fn sift(&mut self, index: usize) {
        self.replay(index);
        self.runner_up = None;
        let winner = self.tree[0] as usize;
        if self.order.keys.is_bytewise() && self.standings[winner].valid {
            self.runner_up = Some(self.nearest_abbreviated(winner));
            if !self.leads(winner) && !mutated("runner-up-is-beyond") {
                self.runner_up = None;
                if self.standings[winner].length == MORE {
                    self.note_tie(winner);
                }
            }
        }
    }

    /// The abbreviated key of source `winner` does not tell it from the others. Unless that is for
    /// a key that another source has as well, abbreviated keys begin elsewhere from now on, if it
    /// happens again and again: little before the first byte that tells.
    #[cold]
    fn note_tie(&mut self, winner: usize) {
        let tied = self.standings[winner].abbreviated;
        let key = user_key(self.sources[winner].key());
        let others = (0..self.sources.len()).filter(|&other| other != winner);
        let tied = others.filter(|&other| {
            self.standings[other].valid && self.standings[other].abbreviated == tied
        });
        let tied = tied.map(|other| user_key(self.sources[other].key()));
        if tied.clone().any(|other| other == key) {
            return;
        }
        // No source can tie when the key is beyond all that begin with `common`.
        let shared = tied.map(|other| common_prefix(key, other)).max().unwrap_or(0);
        self.ties += 1;
        if self.ties < MOST_TIES {
            return;
        }
        self.ties = 0;
        self.common.clear();
        self.common.extend_from_slice(&key[..shared.saturating_sub(KEPT_BYTES)]);
        // The order of the keys is as before, and so is the tree.
        (0..self.sources.len()).for_each(|index| self.refresh(index));
    }

    /// The abbreviated key of the runner-up: the source that has lost to the winner, `index`, only.
    #[inline]
    fn nearest_abbreviated(&self, index: usize) -> u128 {
        let mut node = (self.sources.len() + index) / 2;
        let forward = self.direction == Direction::Forward;
        let mut nearest = if forward { u128::MAX } else { 0 };
        while node > 0 {
            let other = self.standings[self.tree[node] as usize];
            if other.valid {
                nearest = if forward {
                    nearest.min(other.abbreviated)
                } else {
                    nearest.max(other.abbreviated)
                };
            }
            node /= 2;
        }
        nearest
    }

    /// Plays the path of source `index`, the last winner, from its leaf to the root.
    #[inline]
    fn replay(&mut self, index: usize) {
        let mut winner = index as u32;
        let mut node = (self.sources.len() + index) / 2;
        while node > 0 {
            if self.before(self.tree[node], winner) {
                std::mem::swap(&mut self.tree[node], &mut winner);
            }
            node /= 2;
        }
        self.tree[0] = winner;
    }

    fn rebuild(&mut self) {
        if !self.sources.is_empty() {
            self.tree[0] = self.play(1);
        }
    }

    /// Plays all matches below a node and returns the winner.
    fn play(&mut self, node: usize) -> u32 {
        if let Some(leaf) = node.checked_sub(self.sources.len()) {
            return leaf as u32;
        }
        let (left, right) = (self.play(2 * node), self.play(2 * node + 1));
        let (winner, loser) = if self.before(right, left) { (right, left) } else { (left, right) };
        self.tree[node] = loser;
        winner
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::base::comparator::KeyOrder;
    use crate::base::internal_key::{EntryKind, encode};
    use crate::memtable::MemTable;

    /// A user key and its first version.
    type Place = (Vec<u8>, u64);

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }
    }

    /// Each step leads on, and past no entry that was there when the scan began, whatever comes in
    /// beside it.
    #[test]
    fn steps_and_direction_switches_beside_writes() {
        let order = InternalOrder::new(KeyOrder::default());
        let mut switches = 0;
        for seed in 1..=300 {
            let mut random = Random(seed);
            let beginning = ["", "tenant-0001/user/"][random.below(2)];
            let key =
                |random: &mut Random| format!("{beginning}{:03}", random.below(300)).into_bytes();
            let mut memtables: Vec<_> = (0..4).map(|_| MemTable::new(order.clone(), 0).0).collect();
            let mut old = BTreeSet::new();
            let mut sequence = 0;
            for _ in 0..random.below(200) {
                // The last one is empty at first.
                let (table, key) = (random.below(3), key(&mut random));
                sequence += 1;
                memtables[table].insert(sequence, EntryKind::Value, &key, b"");
                old.insert((key, u64::MAX - sequence));
            }
            let place = |entry: &[u8]| {
                let (key, tag) = internal_key::split(entry).expect("an internal key");
                (key.to_vec(), u64::MAX - internal_key::tag_sequence(tag))
            };
            let sources = memtables
                .iter()
                .map(|table| Source::Memtable(Arc::clone(table.table()).iter()))
                .collect();
            let mut iter = MergingIter::new(sources, order.clone());
            let mut forward = true;
            for _ in 0..300 {
                for _ in 0..[0, 0, 1, 8, 9, 30][random.below(6)] {
                    let (table, key) = (random.below(4), key(&mut random));
                    sequence += 1;
                    memtables[table].insert(sequence, EntryKind::Value, &key, b"");
                }
                if !iter.valid() {
                    match random.below(3) {
                        0 => iter.seek_to_first(),
                        1 => iter.seek_to_last(),
                        _ => iter.seek(&encode(&key(&mut random), sequence, EntryKind::Value)),
                    }
                    continue;
                }
                let before = place(iter.key());
                let switch = random.below(3) == 0;
                forward ^= switch;
                switches += usize::from(switch);
                if forward {
                    iter.next();
                } else {
                    iter.prev();
                }
                let after = iter.valid().then(|| place(iter.key()));
                let passed = match (&after, forward) {
                    (Some(after), true) => {
                        assert!(*after > before, "seed {seed}");
                        old.range::<Place, _>(&before..after).find(|entry| **entry != before)
                    }
                    (Some(after), false) => {
                        assert!(*after < before, "seed {seed}");
                        old.range::<Place, _>(after..&before).find(|entry| *entry != after)
                    }
                    (None, true) => {
                        old.range::<Place, _>(&before..).find(|entry| **entry != before)
                    }
                    (None, false) => old.range::<Place, _>(..&before).next_back(),
                };
                assert_eq!(passed, None, "seed {seed}");
            }
        }
        assert!(switches > 1000, "{switches} switches");
    }
}
