//! The writes to a database, their acknowledgements, and the states that these allow after a
//! crash.
//!
//! For one writer: its writes have one order. Moments are counts of [`SimFs`](crate::simfs::SimFs)
//! steps.

use std::collections::{BTreeSet, HashMap};
use std::ops::{Bound, RangeBounds};

use crate::model::{Change, Model, Pair};
use crate::rng::mix;

/// One write.
#[derive(Clone, Debug)]
pub struct Write {
    /// The changes of one step.
    pub changes: Vec<Change>,
    /// Whether it was to be durable when acknowledged.
    pub sync: bool,
    /// The moment at which the call began.
    pub began: usize,
    /// The moment after it returned success; none if it failed or never returned.
    pub acknowledged: Option<usize>,
}

/// Every write so far, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    writes: Vec<Write>,
    /// Fingerprints of the state after so many writes.
    prints: Vec<u128>,
    last: Model,
    /// Moments from which on everything before a number of writes is durable by other means than a
    /// synced write.
    floors: Vec<(usize, usize)>,
}

/// The key that a numbered write puts besides its changes, so that what survived of it can be told.
pub fn number_key(number: usize) -> Vec<u8> {
    format!("{NUMBER}{number:06}").into_bytes()
}

/// The prefix of keys of numbers; no other key has it.
const NUMBER: &str = "!number ";

/// The number of the write that put `key`, if it is the key of a number.
fn number_of(key: &[u8]) -> Option<usize> {
    std::str::from_utf8(key).ok()?.strip_prefix(NUMBER)?.parse().ok()
}

/// The operations that survived a power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survived {
    /// So many writes are in effect, the first ones.
    pub writes: usize,
    /// So many had to be.
    pub required: usize,
}

impl History {
    /// No writes yet.
    pub fn new() -> History {
        History { prints: vec![0], ..History::default() }
    }

    /// The rest of this history after a power loss that `survived`: the later writes never
    /// happened, and the moments of the earlier ones are past.
    pub fn after(&self, survived: Survived) -> History {
        let mut next = History::new();
        for write in &self.writes[..survived.writes] {
            let at = next.begin(write.changes.clone(), false, 0);
            next.acknowledge(at, 0);
        }
        next.floors.push((0, survived.required));
        next
    }

    /// A deletion of every key in a range that any write so far has named.
    pub fn deletions(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Vec<Change> {
        let named = self.writes.iter().flat_map(|write| &write.changes).map(Change::key);
        let keys: BTreeSet<&[u8]> = named.filter(|&key| (from, to).contains(key)).collect();
        keys.into_iter().map(|key| Change::Delete(key.to_vec())).collect()
    }

    /// Notes that a write begins.
    pub fn begin(&mut self, changes: Vec<Change>, sync: bool, now: usize) -> usize {
        let mut print = self.prints.last().copied().unwrap_or(0);
        for change in &changes {
            if let Some(old) = self.last.get(change.key()) {
                print = print.wrapping_sub(fingerprint(change.key(), old));
            }
            if let Change::Put(key, value) = change {
                print = print.wrapping_add(fingerprint(key, value));
            }
            self.last.apply(std::slice::from_ref(change));
        }
        self.prints.push(print);
        self.writes.push(Write { changes, sync, began: now, acknowledged: None });
        self.writes.len() - 1
    }

    /// Notes that the write numbered `at` returned success.
    pub fn acknowledge(&mut self, at: usize, now: usize) {
        self.writes[at].acknowledged = Some(now);
    }

    /// Notes that numbered writes that are not in `found` are no more.
    pub fn forget_all_but(&mut self, found: &[Pair]) {
        let there: BTreeSet<usize> = found.iter().filter_map(|(key, _)| number_of(key)).collect();
        let lost = self.writes.iter_mut().enumerate().filter(|(number, _)| !there.contains(number));
        lost.for_each(|(_, write)| write.acknowledged = None);
    }

    /// Notes that everything written so far is durable from `now` on, for example because `flush`
    /// returned success.
    pub fn all_durable(&mut self, now: usize) {
        self.floors.push((now, self.writes.len()));
    }

    /// All writes.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// How many writes must survive a power loss at moment `at`.
    pub fn required(&self, at: usize) -> usize {
        let synced =
            |write: &Write| write.sync && write.acknowledged.is_some_and(|moment| moment <= at);
        let writes = self.writes.iter().rposition(synced).map_or(0, |last| last + 1);
        let floor =
            self.floors.iter().filter(|(moment, _)| *moment <= at).map(|(_, writes)| *writes).max();
        writes.max(floor.unwrap_or(0))
    }

    /// How many writes must survive the death of the process at moment `at`.
    pub fn required_without_power_loss(&self, at: usize) -> usize {
        let acknowledged = |write: &Write| write.acknowledged.is_some_and(|moment| moment <= at);
        self.writes.iter().rposition(acknowledged).map_or(0, |last| last + 1)
    }

    /// How many writes may be there at moment `at`.
    pub fn begun(&self, at: usize) -> usize {
        self.writes.iter().rposition(|write| write.began <= at).map_or(0, |last| last + 1)
    }

    /// The state after the first `writes` writes.
    pub fn state(&self, writes: usize) -> Model {
        let mut model = Model::default();
        for write in &self.writes[..writes] {
            model.apply(&write.changes);
        }
        model
    }

    /// Finds which prefix of the history `found` is; it must be one between `required` and `begun`
    /// writes.
    ///
    /// # Errors
    /// A message that begins with LOST or says where there is a hole.
    pub fn check(&self, found: &[Pair], required: usize, begun: usize) -> Result<Survived, String> {
        let print =
            found.iter().fold(0u128, |sum, (key, value)| sum.wrapping_add(fingerprint(key, value)));
        let matching = |n: &usize| self.prints.get(*n) == Some(&print);
        if let Some(writes) = (required..=begun).rev().find(matching) {
            return Ok(Survived { writes, required });
        }
        if let Some(writes) = (0..required).rev().find(matching) {
            return Err(format!(
                "LOST: the first {writes} writes are there, the first {required} must be"
            ));
        }
        if let Some(writes) = (begun..self.prints.len()).find(matching) {
            return Err(format!("the first {writes} writes are there, but only {begun} had begun"));
        }
        Err(format!(
            "NOT A PREFIX ({required} to {begun} writes possible): {}",
            self.explain(found)
        ))
    }

    /// Checks `found` where writes that failed may or may not have taken effect. The numbered
    /// writes that are there must contain every acknowledged one among the first `required`, and
    /// every acknowledged one before another that is there; none of them may be later than the
    /// first `begun`; and the entries must be those that these writes make, in order, each as a
    /// whole. Returns how many of them are there.
    ///
    /// # Errors
    /// A message that begins with LOST, says where there is a hole, or which entries differ.
    pub fn check_numbered(
        &self,
        found: &[Pair],
        required: usize,
        begun: usize,
    ) -> Result<usize, String> {
        let there: BTreeSet<usize> = found.iter().filter_map(|(key, _)| number_of(key)).collect();
        let last = there.last().map_or(0, |last| last + 1);
        if last > begun {
            return Err(format!("write {} is there, but only {begun} had begun", last - 1));
        }
        let mut model = Model::default();
        for (number, write) in self.writes.iter().enumerate().take(begun) {
            let is_numbered =
                write.changes.last().is_some_and(|change| number_of(change.key()) == Some(number));
            if there.contains(&number) || !is_numbered {
                model.apply(&write.changes);
            } else if write.acknowledged.is_some() && number < required {
                return Err(format!(
                    "LOST: write {number} was acknowledged (sync: {}), and is not among {there:?}; \
                     {required} must be",
                    write.sync
                ));
            } else if write.acknowledged.is_some() && number < last {
                return Err(format!(
                    "A HOLE: write {number} was acknowledged, and is not there: {there:?}"
                ));
            }
        }
        let expected = model.entries();
        if expected == found {
            return Ok(there.len());
        }
        let differs = expected.iter().zip(found).find(|(expected, found)| expected != found);
        let shown = |(key, value): &Pair| format!("{}: {}", show(key), show(value));
        let first = match differs {
            Some((expected, found)) => {
                format!("expected {}, found {}", shown(expected), shown(found))
            }
            None => format!("{} entries expected, {} found", expected.len(), found.len()),
        };
        Err(format!(
            "NOT WHOLE: the writes {there:?} are there, the entries are not theirs: {first}"
        ))
    }

    /// Checks one key where writes that failed may or may not have taken effect: its value must be
    /// that of the last acknowledged write among the first `required`, or of any write after that
    /// one.
    ///
    /// # Errors
    /// A message if it is none of these.
    pub fn check_key(
        &self,
        key: &[u8],
        found: Option<&[u8]>,
        required: usize,
    ) -> Result<(), String> {
        let mut newest = None;
        for (at, write) in self.writes.iter().enumerate().rev() {
            let Some(change) = write.changes.iter().rfind(|change| change.key() == key) else {
                continue;
            };
            let value = match change {
                Change::Put(_, value) => Some(value.as_slice()),
                Change::Delete(_) => None,
            };
            if value == found {
                return Ok(());
            }
            newest = newest.or(Some(at));
            if at < required && write.acknowledged.is_some() {
                return Err(format!(
                    "{} is {:?}: not what the acknowledged write {at} (sync: {}) set, nor any \
                     write up to {newest:?}",
                    show(key),
                    found.map(show),
                    write.sync
                ));
            }
        }
        if found.is_none() {
            Ok(())
        } else {
            Err(format!("{} was never set to {:?}", show(key), found.map(show)))
        }
    }

    /// Whether some write set `key` to `found`, or removed it, at the time of the last one that set
    /// it to `floor` or later.
    pub fn is_as_new(&self, key: &[u8], found: Option<&[u8]>, floor: &[u8]) -> bool {
        let of_key = self
            .writes
            .iter()
            .flat_map(|write| &write.changes)
            .filter(|change| change.key() == key);
        let values = of_key.map(|change| match change {
            Change::Put(_, value) => Some(value.as_slice()),
            Change::Delete(_) => None,
        });
        let values: Vec<_> = values.collect();
        let from = values.iter().rposition(|value| *value == Some(floor)).unwrap_or(0);
        values[from..].contains(&found)
    }

    /// Checks all keys as [`History::check_key`] does.
    ///
    /// # Errors
    /// The first message.
    pub fn check_keys(&self, found: &[Pair], required: usize) -> Result<(), String> {
        let values: HashMap<&[u8], &[u8]> =
            found.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
        let mut keys: Vec<&[u8]> =
            self.writes.iter().flat_map(|w| w.changes.iter().map(Change::key)).collect();
        keys.extend(values.keys());
        keys.sort_unstable();
        keys.dedup();
        keys.iter().try_for_each(|key| self.check_key(key, values.get(key).copied(), required))
    }

    /// For each key that differs from the newest possible state: which write its value comes from.
    fn explain(&self, found: &[Pair]) -> String {
        let found: HashMap<&[u8], &[u8]> =
            found.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
        let mut lines = Vec::new();
        let mut keys: Vec<&[u8]> =
            self.writes.iter().flat_map(|w| w.changes.iter().map(Change::key)).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in &keys {
            let value = found.get(key);
            // The writes after which the key has this value.
            let mut spans = Vec::new();
            let mut current: Option<&[u8]> = None;
            let mut since = 0;
            for (at, write) in self.writes.iter().enumerate() {
                for change in write.changes.iter().filter(|change| change.key() == *key) {
                    if current == value.copied() && at + 1 > since {
                        spans.push(format!("{since}..{}", at));
                    }
                    since = at + 1;
                    current = match change {
                        Change::Put(_, value) => Some(value),
                        Change::Delete(_) => None,
                    };
                }
            }
            if current == value.copied() {
                spans.push(format!("{since}.."));
            }
            lines.push(format!("{}: state after writes {}", show(key), spans.join(" or ")));
        }
        for key in found.keys().filter(|key| keys.binary_search(key).is_err()) {
            lines.push(format!("{}: never written", show(key)));
        }
        lines.truncate(60);
        lines.join("\n    ")
    }
}

/// Bytes for a message.
pub fn show(bytes: &[u8]) -> String {
    let text: String = bytes
        .iter()
        .take(24)
        .flat_map(|b| std::ascii::escape_default(*b))
        .map(char::from)
        .collect();
    if bytes.len() > 24 { format!("\"{text}…\"({})", bytes.len()) } else { format!("\"{text}\"") }
}

fn fingerprint(key: &[u8], value: &[u8]) -> u128 {
    let half = |seed: u64| {
        let mut hash = mix(seed ^ key.len() as u64);
        for bytes in [key, value] {
            let mut chunks = bytes.chunks_exact(8);
            for chunk in &mut chunks {
                hash = mix(hash ^ u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
            }
            let mut rest = [0; 8];
            rest[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
            hash = mix(hash ^ u64::from_le_bytes(rest)) ^ bytes.len() as u64;
        }
        u128::from(mix(hash))
    };
    half(1) << 64 | half(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &str) -> Vec<Change> {
        vec![Change::Put(key.into(), value.into())]
    }

    #[test]
    fn holes_and_halves_are_found_where_writes_failed() {
        let mut history = History::new();
        for number in 0..4 {
            let mut changes = put("same", &number.to_string());
            changes.extend(put(&format!("own {number}"), "1"));
            changes.push(Change::Put(number_key(number), Vec::new()));
            let at = history.begin(changes, false, number);
            // The write numbered 1 fails.
            if number != 1 {
                history.acknowledge(at, number);
            }
        }
        let of = |numbers: &[usize]| {
            let mut model = Model::default();
            numbers.iter().for_each(|&number| model.apply(&history.writes()[number].changes));
            model.entries()
        };
        for whole in [&[][..], &[0], &[0, 1], &[0, 2], &[0, 1, 2], &[0, 2, 3], &[0, 1, 2, 3]] {
            assert_eq!(history.check_numbered(&of(whole), 0, 4), Ok(whole.len()));
        }
        let refused = |found: &[Pair], required, begun| {
            history.check_numbered(found, required, begun).unwrap_err()
        };
        assert!(refused(&of(&[0]), 3, 4).starts_with("LOST: write 2"));
        assert!(refused(&of(&[0, 3]), 0, 4).starts_with("A HOLE: write 2"));
        assert!(refused(&of(&[0, 2, 3]), 0, 3).contains("only 3 had begun"));
        let mut half = of(&[0, 1, 2]);
        half.retain(|(key, _)| key != b"own 1");
        assert!(refused(&half, 0, 4).starts_with("NOT WHOLE"));
        // Each key alone is what some write set.
        assert_eq!(history.check_keys(&half, 0), Ok(()));
        assert_eq!(history.check_keys(&of(&[0, 3]), 0), Ok(()));
    }

    #[test]
    fn prefixes_are_told_from_holes_and_losses() {
        let mut history = History::new();
        for (moment, (key, sync)) in
            [("a", false), ("b", true), ("c", false)].into_iter().enumerate()
        {
            let at = history.begin(put(key, "1"), sync, moment * 10);
            history.acknowledge(at, moment * 10 + 5);
        }
        assert_eq!((history.required(14), history.required(15)), (0, 2));
        assert_eq!((history.begun(9), history.begun(10)), (1, 2));
        assert_eq!(history.required_without_power_loss(25), 3);
        let survived = |n: usize| history.state(n).entries();
        assert_eq!(history.check(&survived(2), 2, 3), Ok(Survived { writes: 2, required: 2 }));
        assert!(history.check(&survived(1), 2, 3).unwrap_err().starts_with("LOST"));
        assert!(history.check(&survived(3), 0, 2).unwrap_err().contains("only 2"));
        let hole = [(b"a".to_vec(), b"1".to_vec()), (b"c".to_vec(), b"1".to_vec())];
        assert!(history.check(&hole, 0, 3).unwrap_err().contains("NOT A PREFIX"));
    }
}
