//! The separators of a table's blocks, and the search among them.
//!
//! A *separator* is a key that is not less than any of its block's and less than all of the next
//! block's. The search wants the first separator that is not less than a key. In the bytewise order
//! most of it needs no key at all: what all separators have in common is cut off, the next eight
//! bytes of each are kept as one number, and only equal numbers lead to a comparison. The last
//! separator stays out of that, because nothing follows it: it was shortened to a byte or two and
//! has little in common with any other.
//!
//! Kept for a comparison is what follows the common bytes. A tag is kept unless it is the one that
//! builders give to a separator that they shortened.

use std::cmp::Ordering;

use crate::base::abbreviated_keys::AbbreviatedKeys;
use crate::base::internal_key::SHORTENED_TAG;

use super::block_error::Damage;
use super::offsets::Offsets;
use super::order::TableOrder;

/// Where a key belongs.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The number of the block.
    pub(super) at: usize,
    /// The key abbreviated, if it begins as all separators do.
    pub(super) abbreviated: Option<u64>,
}

impl Place {
    /// In no table.
    pub(super) const NOWHERE: Place = Place { at: usize::MAX, abbreviated: None };
}

/// See the [module](self).
pub(super) struct Separators {
    /// Of the user keys of all but the last. Empty unless the order is bytewise.
    abbreviated_keys: AbbreviatedKeys,
    /// What is kept of each, one after the other.
    rests: Box<[u8]>,
    /// For each, twice the number of bytes up to its end, and one more if its tag is among them.
    ends: Offsets,
}

/// Keys one after the other.
#[derive(Default)]
pub(super) struct KeyList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyList {
    /// With room for keys of so many bytes together.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        KeyList { bytes: Vec::with_capacity(bytes), ends: Vec::new() }
    }

    pub(super) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }
}

impl Separators {
    /// Keeps `keys`, which have to ascend in `order`.
    pub(super) fn new(keys: &KeyList, order: &TableOrder) -> Result<Self, Damage> {
        let abbreviated_keys = match keys.ends.len().checked_sub(1) {
            Some(last) if order.is_bytewise() => match abbreviate(keys, last, order) {
                // A program of LevelDB's may look at tables of a database, which are in another
                // order, as at tables of user keys.
                Err(_) if !order.is_internal() => AbbreviatedKeys::default(),
                abbreviated_keys => abbreviated_keys?,
            },
            _ => AbbreviatedKeys::default(),
        };
        let cut = abbreviated_keys.prefix().len();
        let kept = |at: usize| {
            let (user_key, tag) = order.split(keys.get(at));
            let cut = if at < abbreviated_keys.len() { cut } else { 0 };
            let tag = (order.is_internal() && tag != SHORTENED_TAG).then(|| tag.to_le_bytes());
            (&user_key[cut..], tag)
        };
        let mut bytes = Vec::with_capacity(keys.bytes.len());
        let mut ends = Vec::with_capacity(keys.ends.len());
        for (rest, tag) in (0..keys.ends.len()).map(kept) {
            bytes.extend_from_slice(rest);
            bytes.extend_from_slice(tag.as_ref().map_or(&[], |tag| &tag[..]));
            ends.push(2 * bytes.len() as u64 + u64::from(tag.is_some()));
        }
        let ends = Offsets::new(&ends);
        // By a copy: an allocation that shrinks leaves a hole behind itself.
        Ok(Separators { abbreviated_keys, rests: bytes.as_slice().into(), ends })
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.abbreviated_keys.memory_usage() + self.rests.len() + self.ends.memory_usage()
    }

    /// The user keys of all but the last, abbreviated.
    pub(super) fn abbreviated_keys(&self) -> &AbbreviatedKeys {
        &self.abbreviated_keys
    }

    /// The first separator that is not less than `target`; their number if all are less.
    #[inline]
    pub(super) fn search(&self, order: &TableOrder, target: &[u8]) -> Place {
        let abbreviated = match self.abbreviated_keys.abbreviate(order.user_key(target)) {
            Ok(abbreviated) => abbreviated,
            // Out of line with all separators but perhaps the last.
            Err(Ordering::Less) => return Place { at: 0, abbreviated: None },
            Err(ordering) => {
                let low =
                    if ordering == Ordering::Greater { self.abbreviated_keys.len() } else { 0 };
                return Place {
                    at: self.search_between(low, self.ends.len(), order, target),
                    abbreviated: None,
                };
            }
        };
        let mut same = self.abbreviated_keys.with_abbreviated(abbreviated);
        if same.end == self.abbreviated_keys.len() {
            same.end = self.ends.len();
        }
        Place {
            at: self.search_between(same.start, same.end, order, target),
            abbreviated: Some(abbreviated),
        }
    }

    /// Separators are less than `target` below `low`, and not from `high` on. Those of which
    /// something is cut off begin as `target` does.
    fn search_between(
        &self,
        mut low: usize,
        mut high: usize,
        order: &TableOrder,
        target: &[u8],
    ) -> usize {
        let (user_key, tag) = order.split(target);
        let is_less = |at: usize| {
            let (rest, own_tag) = self.parts(at, order);
            let target_rest = user_key.get(self.cut(at)..).unwrap_or_default();
            // Newer entries of a key come first.
            order.compare_user(rest, target_rest).then_with(|| tag.cmp(&own_tag)) == Ordering::Less
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if is_less(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// How many bytes of separator `at` are cut off.
    fn cut(&self, at: usize) -> usize {
        if at < self.abbreviated_keys.len() { self.abbreviated_keys.prefix().len() } else { 0 }
    }

    /// What is kept of the user key of separator `at`, and its tag.
    fn parts(&self, at: usize, order: &TableOrder) -> (&[u8], u64) {
        let place = |at: usize| self.ends.get(at).map(|end| ((end / 2) as usize, end % 2 == 1));
        let start = at.checked_sub(1).map_or(Some(0), |before| Some(place(before)?.0));
        let Some((start, (end, has_tag))) = start.zip(place(at)) else { return (&[], 0) };
        let kept = self.rests.get(start..end).unwrap_or_default();
        match has_tag {
            true => order.split(kept),
            false if order.is_internal() => (kept, SHORTENED_TAG),
            false => (kept, 0),
        }
    }

    /// Separator `at`.
    pub(super) fn get(&self, at: usize, order: &TableOrder) -> Vec<u8> {
        let (rest, tag) = self.parts(at, order);
        let begin = &self.abbreviated_keys.prefix()[..self.cut(at)];
        [begin, rest, &tag.to_le_bytes()[..order.tag_size()]].concat()
    }
}

/// Abbreviates the user keys of the separators before `last`, once it is sure that all ascend.
fn abbreviate(keys: &KeyList, last: usize, order: &TableOrder) -> Result<AbbreviatedKeys, Damage> {
    let abbreviated_keys = AbbreviatedKeys::new((0..last).map(|at| order.user_key(keys.get(at))));
    let ascends = |at: usize| match (abbreviated_keys.get(at - 1), abbreviated_keys.get(at)) {
        (Some(before), Some(abbreviated)) if before != abbreviated => before < abbreviated,
        _ => order.compare(keys.get(at - 1), keys.get(at)) == Ordering::Less,
    };
    if !(1..=last).all(ascends) {
        return Err("its keys do not ascend");
    }
    Ok(abbreviated_keys)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::comparator::{Comparator, KeyOrder};
    use crate::base::random::Random;

    struct Backward;

    impl Comparator for Backward {
        fn name(&self) -> &str {
            "test.Backward"
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            b.cmp(a)
        }
    }

    /// Separators as builders write them, and others: families of keys that share more than eight
    /// bytes behind what all share, several entries of a key, the end shortened or not.
    fn random_keys(random: &mut Random, order: &TableOrder) -> Vec<Vec<u8>> {
        let begin = [&b""[..], b"key", b"common beginning/"][random.below(3)];
        let middle = [&b""[..], b"\0", b"family-of-keys"][random.below(3)];
        let key = |random: &mut Random| {
            let mut key = begin.to_vec();
            if random.below(2) == 0 {
                key.extend_from_slice(middle);
            }
            let length = random.below(12);
            key.extend((0..length).map(|_| [0, 1, b'a', b'b', 255][random.below(5)]));
            if order.is_internal() {
                let tag = if random.below(2) == 0 {
                    SHORTENED_TAG
                } else {
                    ((random.below(4) as u64) << 8) | 1
                };
                key.extend_from_slice(&tag.to_le_bytes());
            }
            key
        };
        let count = [0, 1, 2, 5, 60][random.below(5)];
        let mut keys: Vec<_> = (0..count).map(|_| key(random)).collect();
        if random.below(2) == 0 && order.is_bytewise() {
            let mut last = b"z".to_vec();
            if order.is_internal() {
                last.extend_from_slice(&SHORTENED_TAG.to_le_bytes());
            }
            keys.push(last);
        }
        keys.sort_by(|a, b| order.compare(a, b));
        keys.dedup();
        keys
    }

    #[test]
    fn searches_find_what_comparisons_of_whole_keys_find() {
        let backward = || KeyOrder::new(Arc::new(Backward));
        let orders = [
            TableOrder::internal(KeyOrder::default()),
            TableOrder::user(KeyOrder::default()),
            TableOrder::internal(backward()),
            TableOrder::user(backward()),
        ];
        let seed = 7;
        println!("seed {seed}");
        let mut random = Random(seed);
        for round in 0..2000 {
            let order = &orders[round % 4];
            let keys = random_keys(&mut random, order);
            let mut list = KeyList::default();
            keys.iter().for_each(|key| list.push(key));
            let separators = Separators::new(&list, order).expect("they ascend");
            for (at, key) in keys.iter().enumerate() {
                assert_eq!(&separators.get(at, order), key, "{keys:?}");
            }
            let others = random_keys(&mut random, order);
            for target in keys.iter().chain(&others) {
                let expected = keys
                    .iter()
                    .position(|key| order.compare(key, target) != Ordering::Less)
                    .unwrap_or(keys.len());
                let found = separators.search(order, target).at;
                assert_eq!(found, expected, "{target:?} in {keys:?}, round {round}");
            }
        }
    }

    #[test]
    fn shortened_separators_take_few_bytes() {
        let order = TableOrder::internal(KeyOrder::default());
        let mut list = KeyList::default();
        for number in 0..1000 {
            let key = format!("00000000000{number:03}");
            list.push(&[key.as_bytes(), &SHORTENED_TAG.to_le_bytes()].concat());
        }
        let separators = Separators::new(&list, &order).expect("they ascend");
        // Three digits, a place and a number each; the last one is whole.
        assert_eq!(separators.memory_usage(), 1000 * (3 + 4) + 999 * 8 + 11 + 11);
    }
}
