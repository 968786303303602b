//! Sorted keys as numbers, for searches that seldom need the keys.
//!
//! The prefix that all keys share is cut off, and the next eight bytes of each are kept as one
//! number. In the bytewise order, keys with different numbers are ordered as these are; only equal
//! numbers lead to a comparison.

use std::cmp::Ordering;
use std::ops::Range;

/// Equal abbreviated keys that are looked at one by one: mostly there is one, or none.
const FEW: usize = 4;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct AbbreviatedKeys {
    prefix: Box<[u8]>,
    abbreviated_keys: Box<[u64]>,
}

impl AbbreviatedKeys {
    /// Abbreviates `keys`, which ascend in bytewise order.
    pub(crate) fn new<'a>(keys: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let Some(first) = keys.clone().next() else { return AbbreviatedKeys::default() };
        let prefix =
            keys.clone().fold(first.len(), |prefix, key| prefix.min(common_prefix(first, key)));
        let abbreviated_keys = keys.map(|key| abbreviated(&key[prefix..])).collect();
        AbbreviatedKeys { prefix: first[..prefix].into(), abbreviated_keys }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.abbreviated_keys.len()
    }

    /// What all keys begin with, and what is cut off of them.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    pub(crate) fn get(&self, at: usize) -> Option<u64> {
        self.abbreviated_keys.get(at).copied()
    }

    pub(crate) fn memory_usage(&self) -> usize {
        self.prefix.len() + size_of_val(&*self.abbreviated_keys)
    }

    /// The abbreviated key of a key that begins as all do; otherwise how it compares to all of
    /// them. Of no keys, `Equal`.
    #[inline]
    pub(crate) fn abbreviate(&self, key: &[u8]) -> Result<u64, Ordering> {
        if self.abbreviated_keys.is_empty() {
            return Err(Ordering::Equal);
        }
        let begin = key.get(..self.prefix.len()).unwrap_or(key);
        match begin.cmp(&self.prefix) {
            Ordering::Equal => Ok(abbreviated(&key[self.prefix.len()..])),
            ordering => Err(ordering),
        }
    }

    /// The keys with this abbreviated key: those before are less than any such key, those behind
    /// greater.
    #[inline]
    pub(crate) fn with_abbreviated(&self, abbreviated: u64) -> Range<usize> {
        let low = self.abbreviated_keys.partition_point(|&other| other < abbreviated);
        let same = self.abbreviated_keys[low..]
            .iter()
            .take(FEW)
            .take_while(|&&other| other == abbreviated)
            .count();
        let beyond = low + same;
        // Keys of several families may have any number of equal abbreviated keys.
        let more = if same < FEW {
            0
        } else {
            self.abbreviated_keys[beyond..].partition_point(|&other| other == abbreviated)
        };
        low..beyond + more
    }

    /// The keys of which the abbreviated keys do not tell how they compare to `key`.
    #[inline]
    pub(crate) fn undecided(&self, key: &[u8]) -> Range<usize> {
        match self.abbreviate(key) {
            Ok(abbreviated) => self.with_abbreviated(abbreviated),
            Err(Ordering::Greater) => self.len()..self.len(),
            Err(_) => 0..0,
        }
    }
}

/// The length of the longest common prefix.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let shorter = a.len().min(b.len());
    let (a, b) = (&a[..shorter], &b[..shorter]);
    let (a_words, _) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    let mut at = 0;
    for (x, y) in a_words.iter().zip(b_words) {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return at + difference.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}

/// The first eight bytes as a number that orders as they do, zeros where there are fewer.
#[inline]
pub(crate) fn abbreviated(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => bytes
            .iter()
            .rev()
            .fold(0, |abbreviated, &byte| (abbreviated >> 8) | (u64::from(byte) << 56)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decided_is_decided_right() {
        let keys: [&[u8]; 8] = [
            b"pre",
            b"pre\0",
            b"preabcdefgh",
            b"preabcdefgh\0",
            b"preabcdefghij",
            b"preabd",
            b"preb",
            b"pre\xff\xff",
        ];
        let sought: [&[u8]; 9] = [
            b"",
            b"pr",
            b"pre",
            b"preabcdefghi",
            b"preabcdefgh",
            b"prec",
            b"prf",
            b"zz",
            b"pre\xff\xff\xff",
        ];
        for from in 0..keys.len() {
            for to in from..=keys.len() {
                let keys = &keys[from..to];
                let abbreviated_keys = AbbreviatedKeys::new(keys.iter().copied());
                for key in sought {
                    let undecided = abbreviated_keys.undecided(key);
                    assert!(
                        keys[..undecided.start].iter().all(|other| *other < key),
                        "{key:?} in {keys:?}"
                    );
                    assert!(
                        keys[undecided.end..].iter().all(|other| *other > key),
                        "{key:?} in {keys:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn equal_abbreviated_keys_are_all_found() {
        for count in 0..20usize {
            let families = ["another".to_owned()].into_iter();
            let keys: Vec<String> = families
                .chain((0..count).map(|at| format!("customer:{at:04}")))
                .chain(["z".into()])
                .collect();
            let abbreviated_keys = AbbreviatedKeys::new(keys.iter().map(String::as_bytes));
            assert_eq!(abbreviated_keys.undecided(b"customer:0003"), 1..1 + count, "{count}");
            assert_eq!(abbreviated_keys.undecided(b"d"), 1 + count..1 + count);
        }
    }
}
