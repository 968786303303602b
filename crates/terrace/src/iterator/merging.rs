//! Merges sources into one order.
//!
//! A tournament of losers: each inner node of a complete binary tree remembers who lost there, so that after the
//! winner moves, one path of log2(n) comparisons finds the next one (Knuth, *The Art of Computer Programming* 3,
//! 5.4.1). The first 16 bytes of every source's user key are kept as one number, and only ties look at keys. Sources are
//! seldom of one size: where the same one wins again, the best of the others, its *rival*, is remembered, and until that
//! one is reached nothing is compared but two numbers.
//!
//! # Invariants
//! 1. The current source is the one with the least key (forward) or the greatest (backward) among the valid ones.
//! 2. Forward, every other source stands at its first key after the current one; backward, at its last before it.
//! 3. While there is a rival, the key of every other source begins with it or with what is beyond it, and the current
//!    key with what is not: no other source has an entry of the current user key at or beyond where it stands.
//! 4. An error of any source makes the whole invalid: an answer that misses a source could be wrong.

use std::cmp::Ordering;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{self, InternalOrder, user_key};
use crate::base::sabotage::sabotaged;
use crate::table::TableIter;

use super::source::Source;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// What of a source decides most comparisons.
#[derive(Clone, Copy, Default)]
struct Standing {
    /// Whether it has an entry. The exhausted come last.
    valid: bool,
    /// How its key begins, in the bytewise order; 0 in others.
    head: u128,
}

/// An iterator over the union of its sources. Equal internal keys come in the order of the sources.
pub(crate) struct MergingIter {
    sources: Vec<Source>,
    order: InternalOrder,
    direction: Direction,
    standings: Vec<Standing>,
    /// `tree[0]` is the winner; `tree[1..n]` the losers of the inner nodes. Source `i` is leaf `n + i`.
    tree: Vec<u32>,
    /// In bytewise order only.
    rival: Option<u128>,
    error: Option<Error>,
}

impl MergingIter {
    pub(crate) fn new(sources: Vec<Source>, order: InternalOrder) -> Self {
        let count = sources.len();
        MergingIter {
            sources,
            order,
            direction: Direction::Forward,
            standings: vec![Standing::default(); count],
            tree: vec![0; count.max(1)],
            rival: None,
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

    pub(crate) fn seek(&mut self, target: &[u8]) {
        self.reposition(Direction::Forward, |source| source.seek(target));
    }

    #[inline]
    pub(crate) fn next(&mut self) {
        if self.direction != Direction::Forward {
            self.turn_forward();
        }
        self.step(Source::next);
    }

    #[inline]
    pub(crate) fn prev(&mut self) {
        if self.direction != Direction::Backward {
            self.turn_backward();
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
            self.settle(winner);
        }
    }

    /// Goes to the next entry if it is in the same table block, of another user key, and the entry here is the only one
    /// of its own from here on. Answers its tag and what `look` makes of the table's iterator if all this can be said of
    /// the next entry as well; nothing, if it takes a closer look. `None`: nothing happened.
    #[inline]
    pub(super) fn next_of_other_key<R>(&mut self, look: impl FnOnce(&TableIter) -> R) -> Option<Option<(u64, R)>> {
        if self.direction != Direction::Forward || self.rival.is_none() {
            return None;
        }
        let winner = self.tree[0] as usize;
        let table = self.sources[winner].table_mut()?;
        let tag = table.next_of_other_key()?;
        self.standings[winner].head = head(user_key(table.key()));
        if !self.leads(winner) {
            self.settle(winner);
            return Some(None);
        }
        Some(self.sources[winner].table().map(|table| (tag, look(table))))
    }

    /// Goes to the entry before, where the entry here [is the only one of its user key](Self::is_only_version). Answers as
    /// [`next_of_other_key`](Self::next_of_other_key) does.
    #[inline]
    pub(super) fn prev_of_other_key<R>(&mut self, look: impl FnOnce(&TableIter) -> R) -> Option<Option<(u64, R)>> {
        if self.direction != Direction::Backward || self.rival.is_none() || self.error.is_some() {
            return None;
        }
        let winner = self.tree[0] as usize;
        let table = self.sources[winner].table_mut()?;
        if !table.follows_other_key() {
            return None;
        }
        // Within the block, as the entry that follows another one knows.
        table.prev();
        let Some((key, tag)) = internal_key::split(table.key()) else {
            // Damage.
            self.refresh(winner);
            self.settle(winner);
            return Some(None);
        };
        self.standings[winner].head = head(key);
        if self.leads(winner) {
            let table = self.sources[winner].table()?;
            return Some(table.follows_other_key().then(|| (tag, look(table))));
        }
        self.settle(winner);
        Some(None)
    }

    /// Whether the entry here, reached backwards as the first of its user key, is known to be the only one.
    #[inline]
    pub(super) fn is_only_version(&self) -> bool {
        self.direction == Direction::Backward
            && self.rival.is_some()
            && self.current().is_some_and(Source::follows_other_key)
    }

    fn reposition(&mut self, direction: Direction, mut seek: impl FnMut(&mut Source)) {
        self.direction = direction;
        self.rival = None;
        self.error = None;
        for index in 0..self.sources.len() {
            seek(&mut self.sources[index]);
            self.refresh(index);
        }
        self.rebuild();
    }

    /// Puts every other source behind the current key, so that all of them stand as going forward requires.
    #[cold]
    fn turn_forward(&mut self) {
        self.turn(Direction::Forward, |source, order, key| {
            source.seek(key);
            // Going backward the current source holds the greatest key; an equal one elsewhere comes after it.
            if source.valid() && order.compare(source.key(), key) == Ordering::Equal {
                source.next();
            }
        });
    }

    #[cold]
    fn turn_backward(&mut self) {
        self.turn(Direction::Backward, |source, _, key| {
            source.seek(key);
            if source.valid() {
                source.prev();
            } else if source.status().is_ok() || sabotaged("errors-while-turning") {
                source.seek_to_last();
            }
        });
    }

    fn turn(&mut self, direction: Direction, place: impl Fn(&mut Source, &InternalOrder, &[u8])) {
        if !self.valid() {
            return;
        }
        let winner = self.tree[0] as usize;
        let key = self.key().to_vec();
        self.direction = direction;
        self.rival = None;
        for index in (0..self.sources.len()).filter(|&index| index != winner) {
            place(&mut self.sources[index], &self.order, &key);
            self.refresh(index);
        }
        // The current source wins again: every other one is beyond it now.
        self.rebuild();
    }

    /// Takes note of where source `index` stands now.
    #[inline]
    fn refresh(&mut self, index: usize) {
        let source = &self.sources[index];
        let valid = source.valid();
        let head = if valid && self.order.keys.is_bytewise() { head(user_key(source.key())) } else { 0 };
        self.standings[index] = Standing { valid, head };
        if !valid
            && !sabotaged("source-errors")
            && let Err(error) = source.status()
        {
            self.error = Some(error);
        }
    }

    /// Whether source `a` comes before source `b` in the present direction. Exhausted sources come last.
    #[inline]
    fn before(&self, a: u32, b: u32) -> bool {
        let (first, second) = (self.standings[a as usize], self.standings[b as usize]);
        if !(first.valid && second.valid) {
            return first.valid && !second.valid;
        }
        if first.head != second.head {
            return (first.head < second.head) == (self.direction == Direction::Forward);
        }
        let (first, second) = (&self.sources[a as usize], &self.sources[b as usize]);
        let ordering = self.order.compare(first.key(), second.key()).then_with(|| a.cmp(&b));
        match self.direction {
            Direction::Forward => ordering == Ordering::Less,
            Direction::Backward => ordering == Ordering::Greater,
        }
    }

    /// Whether source `index`, the last winner, is still before its rival.
    #[inline]
    fn leads(&self, index: usize) -> bool {
        let Standing { valid, head } = self.standings[index];
        self.rival.is_some_and(|rival| match self.direction {
            Direction::Forward => valid && head < rival,
            Direction::Backward => valid && head > rival,
        })
    }

    /// Finds the next winner after source `index`, the last one, and its rival if it is the same.
    #[inline]
    fn settle(&mut self, index: usize) {
        self.replay(index);
        self.rival = None;
        let winner = self.tree[0] as usize;
        if self.order.keys.is_bytewise() && self.standings[winner].valid {
            self.rival = Some(self.nearest_head(winner));
            if !self.leads(winner) && !sabotaged("rival-is-beyond") {
                self.rival = None;
            }
        }
    }

    /// What the key of the best source but the winner, `index`, begins with: that one has lost to nobody else.
    #[inline]
    fn nearest_head(&self, index: usize) -> u128 {
        let mut node = (self.sources.len() + index) / 2;
        let forward = self.direction == Direction::Forward;
        let mut nearest = if forward { u128::MAX } else { 0 };
        while node > 0 {
            let other = self.standings[self.tree[node] as usize];
            if other.valid {
                nearest = if forward { nearest.min(other.head) } else { nearest.max(other.head) };
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
        let count = self.sources.len();
        if count == 0 {
            return;
        }
        // Winners of every node, leaves behind the inner ones; the losers stay in the tree.
        let mut winners = vec![0u32; 2 * count];
        for (index, leaf) in winners[count..].iter_mut().enumerate() {
            *leaf = index as u32;
        }
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if self.before(right, left) { (right, left) } else { (left, right) };
            winners[node] = winner;
            self.tree[node] = loser;
        }
        self.tree[0] = winners[1];
    }
}

/// The first 16 bytes of a key as a number that orders as they do. Shorter keys are padded with zeros: a tie says
/// nothing.
#[inline]
fn head(key: &[u8]) -> u128 {
    if let Some(bytes) = key.first_chunk::<16>() {
        return u128::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 16];
    bytes[..key.len()].copy_from_slice(key);
    u128::from_be_bytes(bytes)
}
