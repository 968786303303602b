//! Merges sources into one order.
//!
//! A tournament of losers: each inner node of a complete binary tree remembers who lost there, so that after the
//! winner moves, one path of log2(n) comparisons finds the next one (Knuth, *The Art of Computer Programming* 3,
//! 5.4.1). The first 16 bytes of every source's user key are kept as one number, and only ties look at keys.
//!
//! # Invariants
//! 1. The current source is the one with the least key (forward) or the greatest (backward) among the valid ones.
//! 2. Forward, every other source stands at its first key after the current one; backward, at its last before it.
//! 3. An error of any source makes the whole invalid: an answer that misses a source could be wrong.

use std::cmp::Ordering;

use crate::base::error::{Error, Result};
use crate::base::internal_key::{InternalOrder, user_key};
use crate::base::sabotage::sabotaged;

use super::source::Source;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// An iterator over the union of its sources. Equal internal keys come in the order of the sources.
pub(crate) struct MergingIter {
    sources: Vec<Source>,
    order: InternalOrder,
    direction: Direction,
    /// The key of each source begins with this. Meaningful in bytewise order only.
    heads: Vec<u128>,
    /// `tree[0]` is the winner; `tree[1..n]` the losers of the inner nodes. Source `i` is leaf `n + i`.
    tree: Vec<u32>,
    error: Option<Error>,
}

impl MergingIter {
    pub(crate) fn new(sources: Vec<Source>, order: InternalOrder) -> Self {
        let count = sources.len();
        MergingIter {
            sources,
            order,
            direction: Direction::Forward,
            heads: vec![0; count],
            tree: vec![0; count.max(1)],
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
        self.replay(winner);
    }

    fn reposition(&mut self, direction: Direction, mut seek: impl FnMut(&mut Source)) {
        self.direction = direction;
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
            } else {
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
        if source.valid() {
            if self.order.keys.is_bytewise() {
                self.heads[index] = head(user_key(source.key()));
            }
        } else if !sabotaged("source-errors")
            && let Err(error) = source.status()
        {
            self.error = Some(error);
        }
    }

    /// Whether source `a` comes before source `b` in the present direction. Exhausted sources come last.
    #[inline]
    fn before(&self, a: u32, b: u32) -> bool {
        let (first, second) = (&self.sources[a as usize], &self.sources[b as usize]);
        match (first.valid(), second.valid()) {
            (true, true) => {}
            (first_valid, second_valid) => return first_valid && !second_valid,
        }
        let by_head = match self.order.keys.is_bytewise() {
            true => self.heads[a as usize].cmp(&self.heads[b as usize]),
            false => Ordering::Equal,
        };
        let ordering = by_head.then_with(|| self.order.compare(first.key(), second.key())).then_with(|| a.cmp(&b));
        match self.direction {
            Direction::Forward => ordering == Ordering::Less,
            Direction::Backward => ordering == Ordering::Greater,
        }
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
