//! How manual and automatic compactions take turns.
//!
//! Both hold reservations, so those in progress do not conflict. These rules keep each from
//! starving the other:
//!
//! # Invariants
//! 1. While a step of a manual compaction waits, no compaction begins that it would have to wait
//!    for: it waits for those that run, each once.
//! 2. Steps begin in the order in which they came to wait.
//! 3. After each step automatic compactions may begin before the next one, also if that waits.
//! 4. Beside a manual compaction only compactions begin that are due for the size of a level, and
//!    none that takes files of its range deeper than it does itself.
//! 5. While tables of a deleted range are removed, no automatic compaction begins.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::base::mutation::mutated;
use crate::compaction::plan::Reservation;

/// Which automatic compactions may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) enum Automatic {
    All,
    /// Of levels that have too many files or bytes.
    Due,
    /// Due ones within level 0.
    WithinLevel0,
    None,
}

/// Manual compactions and other work that automatic compactions give way to.
#[derive(Default)]
pub(in crate::db) struct Manuals {
    /// All of that in progress: a close waits for it.
    pub(in crate::db) running: usize,
    /// Removals of the tables of ranges.
    pub(in crate::db) removals: usize,
    /// The levels of waiting steps, by their tickets, first come first.
    waiting: VecDeque<(u64, usize)>,
    next_ticket: u64,
    /// Ranges of levels below those that manual compactions write to: automatic ones do not write
    /// there. Nobody else's plans are kept from it: two manual compactions might wait for each
    /// other.
    floors: Vec<Reservation>,
}

impl Manuals {
    /// Has a step of a manual compaction of `level` wait. Returns its ticket.
    pub(in crate::db) fn wait(&mut self, level: usize) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.push_back((ticket, level));
        ticket
    }

    pub(in crate::db) fn end_wait(&mut self, ticket: u64) {
        self.waiting.retain(|(other, _)| *other != ticket);
    }

    /// Whether no other step came earlier.
    pub(in crate::db) fn is_first(&self, ticket: u64) -> bool {
        self.waiting.front().is_some_and(|(first, _)| *first == ticket)
    }

    /// Keeps automatic compactions from writing to a level and range. Returns the number to
    /// [lift](Self::lift_floor) it by.
    pub(in crate::db) fn lay_floor(&mut self, level: usize, from: Vec<u8>, to: Vec<u8>) -> u64 {
        let id = self.next_ticket;
        self.next_ticket += 1;
        self.floors.push(Reservation { id, files: Vec::new(), output_level: level, from, to });
        id
    }

    pub(in crate::db) fn lift_floor(&mut self, id: u64) {
        self.floors.retain(|floor| floor.id != id);
    }

    /// What automatic compactions are kept from: what is `reserved`, and what lies too deep.
    pub(in crate::db) fn kept_from<'a>(
        &self,
        reserved: &'a [Reservation],
    ) -> Cow<'a, [Reservation]> {
        match self.floors.is_empty() || mutated("manual-floors") {
            true => Cow::Borrowed(reserved),
            false => reserved.iter().chain(&self.floors).cloned().collect(),
        }
    }

    #[cfg(test)]
    pub(in crate::db) fn is_idle(&self) -> bool {
        self.running == 0 && self.removals == 0 && self.waiting.is_empty() && self.floors.is_empty()
    }

    /// Which automatic compactions may begin. `is_their_turn`: a step has ended just now.
    pub(in crate::db) fn allowed(&self, is_their_turn: bool) -> Automatic {
        if self.running == 0 {
            Automatic::All
        } else if self.removals > 0 {
            Automatic::None
        } else if self.waiting.is_empty() || is_their_turn || mutated("manual-steps-wait-once") {
            Automatic::Due
        } else if self.waiting.iter().all(|(_, level)| *level > 0) {
            Automatic::WithinLevel0
        } else {
            Automatic::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_compactions_give_way_to_a_step_that_waits_and_get_a_turn_behind_each() {
        let mut manuals = Manuals::default();
        assert_eq!(manuals.allowed(false), Automatic::All);
        manuals.running = 1;
        assert_eq!(manuals.allowed(false), Automatic::Due);
        let deep = manuals.wait(3);
        assert_eq!(manuals.allowed(false), Automatic::WithinLevel0);
        assert_eq!(manuals.allowed(true), Automatic::Due);
        // Those within level 0 are in the way of this one.
        let of_level_0 = manuals.wait(0);
        assert_eq!(manuals.allowed(false), Automatic::None);
        assert!(manuals.is_first(deep) && !manuals.is_first(of_level_0));
        manuals.end_wait(deep);
        assert!(manuals.is_first(of_level_0));
        manuals.removals = 1;
        assert_eq!(manuals.allowed(true), Automatic::None);
        manuals.end_wait(of_level_0);
        assert_eq!(manuals.allowed(false), Automatic::None);
        assert!(!manuals.is_idle());
        (manuals.removals, manuals.running) = (0, 0);
        assert!(manuals.is_idle());
        assert_eq!(manuals.allowed(false), Automatic::All);
    }

    #[test]
    fn automatic_compactions_are_kept_from_the_floor_of_a_manual_one() {
        let reserved = |id, output_level| {
            let (from, to) = (b"a".to_vec(), b"c".to_vec());
            Reservation { id, files: vec![7], output_level, from, to }
        };
        let levels = |manuals: &Manuals| -> Vec<_> {
            let kept_from = manuals.kept_from(&[reserved(1, 2)]).into_owned();
            kept_from.into_iter().map(|other| (other.output_level, other.files.len())).collect()
        };
        let mut manuals = Manuals::default();
        let ids = [3, 4].map(|level| manuals.lay_floor(level, b"a".to_vec(), b"z".to_vec()));
        assert_eq!(levels(&manuals), [(2, 1), (3, 0), (4, 0)]);
        manuals.lift_floor(ids[0]);
        assert_eq!(levels(&manuals), [(2, 1), (4, 0)]);
        manuals.lift_floor(ids[1]);
        assert_eq!(levels(&manuals), [(2, 1)]);
    }
}
