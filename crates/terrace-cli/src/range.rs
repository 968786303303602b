//! A range of keys as the options `--from`, `--to` and `--prefix` give it, and the scan of it.

use std::ffi::OsString;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;

use clap::Args;
use terrace::{Db, ReadOptions, Transaction};

use crate::failure::{Failure, Result};
use crate::text::Notation;

/// The options that choose keys.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct RangeArgs {
    /// Begin at this key, or at the first one after it
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<OsString>,
    /// End before this key: it is not part of the range
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<OsString>,
    /// Only keys that begin with these bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) prefix: Option<OsString>,
}

impl RangeArgs {
    pub(crate) fn range(&self, notation: Notation) -> Result<KeyRange> {
        let mut range = KeyRange {
            from: decode_option("--from", self.from.as_ref(), notation)?,
            to: decode_option("--to", self.to.as_ref(), notation)?,
        };
        require_order(range.from.as_deref(), range.to.as_deref(), notation)?;
        if let Some(prefix) = decode_option("--prefix", self.prefix.as_ref(), notation)? {
            range = range.intersection(KeyRange::of_prefix(&prefix));
        }
        Ok(range)
    }
}

/// The bytes that an argument named `name` stands for.
pub(crate) fn decode_argument(
    name: &str,
    argument: &OsString,
    notation: Notation,
) -> Result<Vec<u8>> {
    notation
        .decode(argument.as_bytes())
        .map_err(|mistake| Failure::other(format!("{name}: {mistake}")))
}

/// Fails if a range ends before it begins: a mistake, not a wish for no entries.
pub(crate) fn require_order(
    from: Option<&[u8]>,
    to: Option<&[u8]>,
    notation: Notation,
) -> Result<()> {
    match (from, to) {
        (Some(from), Some(to)) if from > to => Err(Failure::other(format!(
            "the range from {} to {} ends before it begins",
            notation.in_message(from),
            notation.in_message(to)
        ))),
        _ => Ok(()),
    }
}

fn decode_option(
    name: &str,
    argument: Option<&OsString>,
    notation: Notation,
) -> Result<Option<Vec<u8>>> {
    argument.map(|argument| decode_argument(name, argument, notation)).transpose()
}

/// The first key after all keys that begin with `prefix`; `None` if there is no such key.
fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Keys in bytewise order from `from`, included, to `to`, not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) from: Option<Vec<u8>>,
    pub(crate) to: Option<Vec<u8>>,
}

impl KeyRange {
    /// The keys that are in both.
    pub(crate) fn intersection(self, other: KeyRange) -> KeyRange {
        let from = self.from.max(other.from);
        let to = match (self.to, other.to) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        KeyRange { from, to }
    }

    /// The keys that begin with `prefix`.
    pub(crate) fn of_prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { from: Some(prefix.to_vec()), to: end_of_prefix(prefix) }
    }

    pub(crate) fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let from = self.from.clone().map_or(Bound::Unbounded, Bound::Included);
        (from, self.to.clone().map_or(Bound::Unbounded, Bound::Excluded))
    }

    /// Calls `visit` with every entry of the range, last to first if `reverse`, until it returns
    /// false.
    pub(crate) fn for_each(
        &self,
        db: &Db,
        options: ReadOptions,
        reverse: bool,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        // A scan reads each block once: keeping them would only push others out of the cache.
        let mut options = options.fill_cache(false);
        if let Some(from) = &self.from {
            options = options.lower_bound(from.as_slice());
        }
        if let Some(to) = &self.to {
            options = options.upper_bound(to.as_slice());
        }
        let mut cursor = db.cursor_with(&options)?;
        if reverse {
            cursor.seek_to_last();
        } else {
            cursor.seek_to_first();
        }
        while cursor.valid() {
            if !visit(cursor.key(), cursor.value())? {
                return Ok(());
            }
            if reverse {
                cursor.prev();
            } else {
                cursor.next();
            }
        }
        Ok(cursor.status()?)
    }

    /// The same with the entries that a transaction sees.
    pub(crate) fn for_each_in_transaction(
        &self,
        transaction: &Transaction,
        reverse: bool,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let mut entries = transaction.range(self.bounds());
        while let Some(entry) = if reverse { entries.next_back() } else { entries.next() } {
            let (key, value) = entry?;
            if !visit(&key, &value)? {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.from.as_deref().is_none_or(|from| from <= key)
            && self.to.as_deref().is_none_or(|to| key < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(
        from: Option<&str>,
        to: Option<&str>,
        prefix: Option<&str>,
    ) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let args = RangeArgs {
            from: from.map(Into::into),
            to: to.map(Into::into),
            prefix: prefix.map(Into::into),
        };
        let range = args.range(Notation::Text).expect("a range");
        (range.from, range.to)
    }

    #[test]
    fn a_prefix_narrows_a_range() {
        let bytes = |key: &[u8]| Some(key.to_vec());
        assert_eq!(range(None, None, Some("ab")), (bytes(b"ab"), bytes(b"ac")));
        assert_eq!(range(Some("abc"), Some("abx"), Some("ab")), (bytes(b"abc"), bytes(b"abx")));
        assert_eq!(range(Some("a"), Some("z"), Some("ab")), (bytes(b"ab"), bytes(b"ac")));
        assert_eq!(range(None, None, Some("a\\xff\\xff")), (bytes(b"a\xff\xff"), bytes(b"b")));
        assert_eq!(range(None, None, Some("\\xff")), (bytes(b"\xff"), None));
        assert_eq!(range(None, Some("k"), Some("")), (bytes(b""), bytes(b"k")));
    }
}
