//! A map from prefixes of keys, of which the longest one that a key begins with counts.
//!
//! A prefix is `!name!`, or several of them one behind the other: that of a keyspace
//! (`docs/format.md`).

use std::collections::HashMap;
use std::sync::Arc;

/// Longer prefixes are not looked for, so that a key of many separators costs little.
const MAX_PREFIX: usize = 4096;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct PrefixMap<V>(HashMap<Arc<[u8]>, V>);

impl<V> Default for PrefixMap<V> {
    fn default() -> Self {
        PrefixMap(HashMap::new())
    }
}

impl<V> PrefixMap<V> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, prefix: &[u8]) -> Option<&V> {
        self.0.get(prefix)
    }

    /// Returns the value that the prefix had before.
    pub(crate) fn insert(&mut self, prefix: &[u8], value: V) -> Option<V> {
        self.0.insert(prefix.into(), value)
    }

    /// Removes a prefix, and those that begin with it. Returns their values.
    pub(crate) fn remove_within(&mut self, prefix: &[u8]) -> Vec<V> {
        let removed = self.0.extract_if(|other, _| other.starts_with(prefix));
        removed.map(|(_, value)| value).collect()
    }

    /// The longest prefix that `key` begins with, and its value.
    pub(crate) fn longest<'k>(&self, key: &'k [u8]) -> Option<(&'k [u8], &V)> {
        let (mut longest, mut length) = (None, 0);
        while key.get(length) == Some(&b'!') && length < MAX_PREFIX && !self.is_empty() {
            let name = &key[length + 1..];
            let Some(name) = name.iter().position(|&byte| byte == b'!') else { break };
            length += name + 2;
            let prefix = &key[..length];
            longest = self.0.get(prefix).map(|value| (prefix, value)).or(longest);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts() {
        let mut map = PrefixMap::default();
        for prefix in ["!a!", "!a!!b!!c!", "!~!"] {
            map.insert(prefix.as_bytes(), prefix);
        }
        for (key, expected) in [
            ("!a!k", Some("!a!")),
            ("!a!", Some("!a!")),
            ("!a!!b!k", Some("!a!")),
            ("!a!!b!!c!k", Some("!a!!b!!c!")),
            ("!a!!b", Some("!a!")),
            ("!ab!k", None),
            ("!a", None),
            ("a!b!", None),
            ("", None),
        ] {
            let found = map.longest(key.as_bytes());
            assert_eq!(found.map(|(_, value)| *value), expected, "{key}");
            assert!(found.is_none_or(|(prefix, value)| prefix == value.as_bytes()), "{key}");
        }
        let many = [&b"!a!"[..], &b"!x!".repeat(10_000)].concat();
        assert_eq!(map.longest(&many).map(|(_, value)| *value), Some("!a!"));
    }
}
