//! The order of user keys.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A total order over user keys, and two ways to shorten keys within it.
///
/// Called from any thread, background threads included. An implementation must not panic, and must
/// order the same two keys the same way for as long as a database exists: its
/// [`name`](Comparator::name) is recorded in the database, which refuses to open under another
/// name.
///
/// ```
/// # use terrace::*;
/// use std::cmp::Ordering;
///
/// /// ASCII letters without regard to case; keys that differ in nothing else are the same key.
/// struct IgnoringCase;
///
/// impl Comparator for IgnoringCase {
///     fn name(&self) -> &str {
///         "ignoring-case"
///     }
///
///     fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
///         a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
///     }
/// }
///
/// let options = Options::new().comparator(std::sync::Arc::new(IgnoringCase));
/// # let options = options.create_if_missing(true).env(std::sync::Arc::new(MemEnv::new()));
/// let db = Db::open("/names", options)?;
/// db.put("Ada", "1815")?;
/// assert_eq!(db.get("ADA")?.as_deref(), Some(&b"1815"[..]));
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait Comparator: Send + Sync {
    /// The name recorded in the MANIFEST. Change it whenever the order changes.
    fn name(&self) -> &str;

    /// The name as it is recorded: the bytes of [`name`](Comparator::name), unless a C program's
    /// name is not UTF-8.
    fn name_bytes(&self) -> &[u8] {
        self.name().as_bytes()
    }

    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// May replace `start` by a shorter key in `[start, limit)`, given `start < limit`. Doing
    /// nothing is correct.
    fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        let _ = (start, limit);
    }

    /// May replace `key` by a shorter key that is not less. Doing nothing is correct.
    fn find_short_successor(&self, key: &mut Vec<u8>) {
        let _ = key;
    }
}

/// Lexicographic order of unsigned bytes: LevelDB's default, by the same name.
///
/// ```
/// # use terrace::*;
/// let mut key = b"apple pie".to_vec();
/// BytewiseComparator.find_shortest_separator(&mut key, b"cherry");
/// assert_eq!(key, b"b"); // what an index stores: between the two, and short
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BytewiseComparator;

/// The name LevelDB records for its default order.
pub(crate) const BYTEWISE_NAME: &str = "leveldb.BytewiseComparator";

impl Comparator for BytewiseComparator {
    fn name(&self) -> &str {
        BYTEWISE_NAME
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        let Some(at) = start.iter().zip(limit).position(|(a, b)| a != b) else { return };
        let byte = start[at];
        if byte < 0xff && byte + 1 < limit[at] {
            start[at] = byte + 1;
            start.truncate(at + 1);
        }
    }

    fn find_short_successor(&self, key: &mut Vec<u8>) {
        if let Some(at) = key.iter().position(|&byte| byte != 0xff) {
            key[at] += 1;
            key.truncate(at + 1);
        }
    }
}

/// The order of user keys as the engine uses it: the bytewise order inlined, any other by a virtual
/// call.
#[derive(Clone, Default)]
pub(crate) struct KeyOrder {
    custom: Option<Arc<dyn Comparator>>,
}

impl KeyOrder {
    /// The order of `comparator`. One that bears the bytewise order's name is taken for it.
    pub(crate) fn new(comparator: Arc<dyn Comparator>) -> Self {
        let custom = (comparator.name_bytes() != BYTEWISE_NAME.as_bytes()).then_some(comparator);
        KeyOrder { custom }
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> &str {
        self.custom.as_ref().map_or(BYTEWISE_NAME, |c| c.name())
    }

    /// The name as files record it.
    pub(crate) fn name_bytes(&self) -> &[u8] {
        self.custom.as_ref().map_or(BYTEWISE_NAME.as_bytes(), |c| c.name_bytes())
    }

    /// Whether keys are ordered as plain bytes, so that their first bytes alone may decide.
    #[inline]
    pub(crate) fn is_bytewise(&self) -> bool {
        self.custom.is_none()
    }

    #[inline]
    pub(crate) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match &self.custom {
            None => a.cmp(b),
            Some(comparator) => comparator.compare(a, b),
        }
    }

    pub(crate) fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        match &self.custom {
            None => BytewiseComparator.find_shortest_separator(start, limit),
            Some(comparator) => comparator.find_shortest_separator(start, limit),
        }
    }

    /// Does what `find_shortest_separator` does, for tables that need not have LevelDB's bytes: in
    /// the bytewise order shorter where the keys differ first in neighbouring bytes, as every other
    /// pair of random digits does. LevelDB leaves those as they are.
    pub(crate) fn shorten_towards(&self, start: &mut Vec<u8>, limit: &[u8]) {
        if !self.is_bytewise() {
            return self.find_shortest_separator(start, limit);
        }
        let Some(at) = start.iter().zip(limit).position(|(a, b)| a != b) else { return };
        if start[at] > limit[at] {
            return;
        }
        // One more there is less than the limit, or begins it and is shorter.
        let grows = if start[at] + 1 < limit[at] || at + 1 < limit.len() {
            Some(at)
        } else {
            (at + 1..start.len()).find(|&behind| start[behind] != 0xff)
        };
        if let Some(grows) = grows {
            start[grows] += 1;
            start.truncate(grows + 1);
        }
    }

    pub(crate) fn find_short_successor(&self, key: &mut Vec<u8>) {
        match &self.custom {
            None => BytewiseComparator.find_short_successor(key),
            Some(comparator) => comparator.find_short_successor(key),
        }
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyOrder").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    fn separator(start: &[u8], limit: &[u8]) -> Vec<u8> {
        let mut key = start.to_vec();
        BytewiseComparator.find_shortest_separator(&mut key, limit);
        key
    }

    #[test]
    fn separators_are_between_and_short() {
        assert_eq!(separator(b"abcdefgh", b"abxyz"), b"abd");
        assert_eq!(separator(b"abc", b"abd"), b"abc");
        assert_eq!(separator(b"abc", b"abcd"), b"abc");
        assert_eq!(separator(b"", b"a"), b"");
        assert_eq!(separator(&[0xff, 1], &[0xff, 3]), [0xff, 2]);
        // LevelDB's rule leaves neighbouring bytes alone.
        assert_eq!(separator(b"ab4567", b"ab51"), b"ab4567");
    }

    fn shortened(start: &[u8], limit: &[u8]) -> Vec<u8> {
        let mut key = start.to_vec();
        KeyOrder::default().shorten_towards(&mut key, limit);
        key
    }

    #[test]
    fn keys_with_neighbouring_bytes_are_shortened() {
        assert_eq!(shortened(b"abcdefgh", b"abxyz"), b"abd");
        assert_eq!(shortened(b"ab4567", b"ab51"), b"ab5");
        assert_eq!(shortened(b"ab4567", b"ab5"), b"ab46");
        assert_eq!(shortened(b"ab4\xff\xff7", b"ab5"), b"ab4\xff\xff8");
        assert_eq!(shortened(b"ab4\xff", b"ab5"), b"ab4\xff");
        assert_eq!(shortened(&[0xfe, 7, 7], &[0xff, 1]), [0xff]);
        // The wrong way round.
        assert_eq!(shortened(b"abd", b"abcd"), b"abd");
    }

    #[test]
    fn separators_of_any_keys_are_between() {
        let seed = 11;
        println!("seed {seed}");
        let mut random = Random(seed);
        let key = |random: &mut Random| -> Vec<u8> {
            let length = random.below(6);
            (0..length).map(|_| [0, 1, 2, 0xfe, 0xff][random.below(5)]).collect()
        };
        for _ in 0..20_000 {
            let (start, limit) = (key(&mut random), key(&mut random));
            for found in [separator(&start, &limit), shortened(&start, &limit)] {
                if start < limit {
                    assert!(start <= found && found < limit, "{start:?} {found:?} {limit:?}");
                    assert!(found.len() <= start.len());
                } else {
                    assert_eq!(found, start);
                }
            }
        }
    }

    #[test]
    fn successors_are_not_less_and_short() {
        let successor = |key: &[u8]| {
            let mut key = key.to_vec();
            BytewiseComparator.find_short_successor(&mut key);
            key
        };
        assert_eq!(successor(b"abc"), b"b");
        assert_eq!(successor(&[0xff, 0xff, 7, 7]), [0xff, 0xff, 8]);
        assert_eq!(successor(&[0xff, 0xff]), [0xff, 0xff]);
        assert_eq!(successor(b""), b"");
    }
}
