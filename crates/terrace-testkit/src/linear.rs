//! Whether what several threads saw of one register can have happened in some order: a check of
//! linearisability.
//!
//! Keys are independent registers, and a history of operations on all of them is linearisable if
//! and only if the history of each key is (Herlihy and Wing, "Linearizability", theorem 1). So one
//! key at a time is checked, by Wing and Gong's search: take an operation that began before every
//! operation that is left has ended, check its result, and go on; states that were tried before,
//! with the same operations left and the same value, is not tried again.

use std::collections::HashSet;

/// The effect of one call on a register, or its result. `None` is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It set the register.
    Write(Option<u64>),
    /// Its result.
    Read(Option<u64>),
    /// It saw the first and set the register to the second, at one moment.
    Update(Option<u64>, Option<u64>),
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// A moment before it began.
    pub began: u64,
    /// A moment after it returned. No two moments of a history are equal.
    pub ended: u64,
    /// Its effect.
    pub action: Action,
}

/// Whether `calls`, on a register that held nothing at first, can have happened in an order that
/// agrees with real time: a call that ended before another began comes first.
pub fn is_linearisable(calls: &[Call]) -> bool {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.began);
    let mut tried = HashSet::new();
    // Calls before `first` are done, and those behind it that are in the list.
    let mut open = vec![(0usize, Vec::<usize>::new(), None::<u64>)];
    while let Some((mut first, mut done, value)) = open.pop() {
        while let Some(at) = done.iter().position(|&call| call == first) {
            done.swap_remove(at);
            first += 1;
        }
        if first == calls.len() {
            return true;
        }
        done.sort_unstable();
        if !tried.insert((first, done.clone(), value)) {
            continue;
        }
        let left = (first..calls.len()).filter(|call| !done.contains(call));
        let mut earliest_end = u64::MAX;
        for call in left {
            if calls[call].began > earliest_end {
                break;
            }
            earliest_end = earliest_end.min(calls[call].ended);
            let next = match calls[call].action {
                Action::Write(next) => next,
                Action::Read(seen) if seen == value => value,
                Action::Update(seen, next) if seen == value => next,
                Action::Read(_) | Action::Update(..) => continue,
            };
            let done = done.iter().copied().chain([call]).collect();
            open.push((first, done, next));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use Action::{Read, Update, Write};

    fn history(calls: &[(u64, u64, Action)]) -> bool {
        let calls: Vec<_> =
            calls.iter().map(|&(began, ended, action)| Call { began, ended, action }).collect();
        is_linearisable(&calls)
    }

    #[test]
    fn orders_are_found_or_refused() {
        assert!(history(&[]));
        assert!(history(&[(0, 1, Write(Some(1))), (2, 3, Read(Some(1)))]));
        assert!(!history(&[(0, 1, Write(Some(1))), (2, 3, Read(None))]), "a stale read");
        assert!(history(&[(0, 9, Write(Some(1))), (2, 3, Read(None)), (4, 5, Read(Some(1)))]));
        assert!(
            !history(&[(0, 9, Write(Some(1))), (2, 3, Read(Some(1))), (4, 5, Read(None))]),
            "back in time"
        );
        let two = [(0, 8, Write(Some(1))), (1, 9, Write(Some(2)))];
        assert!(history(&[two[0], two[1], (10, 11, Read(Some(1)))]));
        assert!(history(&[two[0], two[1], (10, 11, Read(Some(2)))]));
        assert!(!history(&[two[0], two[1], (10, 11, Read(Some(1))), (12, 13, Read(Some(2)))]));
        assert!(!history(&[(0, 1, Read(Some(7)))]), "never written");
    }

    #[test]
    fn a_lost_update_is_refused() {
        let (one, two) = (Some(1), Some(2));
        assert!(history(&[(0, 5, Update(None, one)), (1, 4, Update(one, two))]));
        assert!(!history(&[(0, 5, Update(None, one)), (1, 4, Update(None, two))]));
        assert!(!history(&[(0, 1, Update(None, one)), (2, 3, Read(None))]));
    }

    #[test]
    fn many_writers_at_once_are_checked_in_time() {
        // Forty overlapping pairs, each read between.
        let calls: Vec<_> = (0..40u64)
            .flat_map(|round| {
                let at = round * 10;
                [
                    (at, at + 5, Write(Some(round * 2))),
                    (at + 1, at + 4, Write(Some(round * 2 + 1))),
                    (at + 6, at + 7, Read(Some(round * 2))),
                ]
            })
            .collect();
        assert!(history(&calls));
    }
}
