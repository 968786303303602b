//! Whether what several threads did and saw in transactions can have happened one after the other:
//! a check of strict serializability.
//!
//! It knows nothing of how a database decides. It looks for an order of all transactions that
//! agrees with real time, in which each, run alone, sees what it saw; Wing and Gong's search, as in
//! [`linear`](crate::linear), over whole maps.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// The contents of the database: small keys and numbers.
type Map = BTreeMap<u8, u64>;

/// One step of a transaction, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It saw this value, or none, under the key.
    Get(u8, Option<u64>),
    /// It saw these entries, and no others, in a range of keys.
    Scan(Range<u8>, Vec<(u8, u64)>),
    /// It set the key, or removed it.
    Set(u8, Option<u64>),
}

/// One transaction that was committed.
#[derive(Clone, Debug)]
pub struct Committed {
    /// A moment before it began.
    pub began: u64,
    /// A moment after its commit returned. No two moments of a history are equal.
    pub ended: u64,
    /// The steps that it took, and what each saw.
    pub steps: Vec<Step>,
}

/// Runs a transaction alone. Returns what the database holds then, if it sees what it saw.
fn run(steps: &[Step], before: &Map) -> Option<Map> {
    let mut map = before.clone();
    for step in steps {
        match step {
            Step::Get(key, seen) if map.get(key) != seen.as_ref() => return None,
            Step::Scan(keys, seen) => {
                let there = map.range(keys.clone()).map(|(&key, &value)| (key, value));
                if !there.eq(seen.iter().copied()) {
                    return None;
                }
            }
            Step::Get(..) => {}
            Step::Set(key, Some(value)) => drop(map.insert(*key, *value)),
            Step::Set(key, None) => drop(map.remove(key)),
        }
    }
    Some(map)
}

/// Whether `transactions`, on a database that was empty at first, can have happened in an order
/// that agrees with real time: one that ended before another began comes first.
pub fn is_serializable(transactions: &[Committed]) -> bool {
    let mut transactions = transactions.to_vec();
    transactions.sort_by_key(|transaction| transaction.began);
    let mut tried = HashSet::new();
    // Those before `first` are done, and those behind it that are in the list.
    let mut open = vec![(0usize, Vec::<usize>::new(), Map::new())];
    while let Some((mut first, mut done, map)) = open.pop() {
        while let Some(at) = done.iter().position(|&other| other == first) {
            done.swap_remove(at);
            first += 1;
        }
        if first == transactions.len() {
            return true;
        }
        done.sort_unstable();
        if !tried.insert((first, done.clone(), map.clone())) {
            continue;
        }
        let mut earliest_end = u64::MAX;
        for next in (first..transactions.len()).filter(|next| !done.contains(next)) {
            if transactions[next].began > earliest_end {
                break;
            }
            earliest_end = earliest_end.min(transactions[next].ended);
            if let Some(after) = run(&transactions[next].steps, &map) {
                open.push((first, done.iter().copied().chain([next]).collect(), after));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use Step::{Get, Scan, Set};

    fn history(transactions: &[(u64, u64, &[Step])]) -> bool {
        let committed = |&(began, ended, steps): &(u64, u64, &[Step])| Committed {
            began,
            ended,
            steps: steps.to_vec(),
        };
        is_serializable(&transactions.iter().map(committed).collect::<Vec<_>>())
    }

    #[test]
    fn orders_are_found() {
        assert!(history(&[]));
        // The second comes first.
        assert!(history(&[
            (0, 9, &[Get(1, Some(7)), Set(1, Some(8)), Get(1, Some(8))]),
            (1, 8, &[Get(1, None), Set(1, Some(7))]),
            (10, 11, &[Scan(0..9, vec![(1, 8)])]),
        ]));
    }

    #[test]
    fn write_skew_is_refused() {
        assert!(!history(&[
            (0, 9, &[Get(1, None), Set(2, Some(1))]),
            (1, 8, &[Get(2, None), Set(1, Some(1))]),
        ]));
        assert!(history(&[
            (0, 9, &[Get(1, None), Set(2, Some(1))]),
            (1, 8, &[Get(2, Some(1)), Set(1, Some(1))]),
        ]));
    }

    #[test]
    fn phantoms_and_lost_updates_and_stale_reads_are_refused() {
        let (scan, skew) = (Scan(0..9, vec![]), Set(3, Some(1)));
        assert!(!history(&[(0, 9, &[scan.clone(), skew]), (1, 8, &[scan, Set(4, Some(2))])]));
        let add = |value| [Get(1, None), Set(1, Some(value))];
        assert!(!history(&[(0, 9, &add(1)), (1, 8, &add(2))]));
        assert!(!history(&[(0, 1, &[Set(1, Some(1))]), (2, 3, &[Get(1, None)])]));
    }
}
