//! The search for a key among the entries of a block, one after the other.
//!
//! Entries are not trusted: what contradicts itself is damage. What is searched is a block's bytes,
//! or a block that is decoded meanwhile, no further than its entry.

use std::cmp::Ordering;

use crate::base::abbreviated_keys::common_prefix;
use crate::base::internal_key;
use crate::base::mutation::mutated;

use super::block_error::Damage;
use super::entry::{Entry, MOST_LENGTHS};
use super::order::TableOrder;
use super::snappy::SnappyDecoder;

/// The first entry that is not less than a key sought for.
pub(super) struct Found {
    pub(super) entry: Entry,
    /// Whether its user key is the one sought for.
    pub(super) same_user_key: bool,
    /// Its key, if it had to be put together. Otherwise what it shares with the key before it, it
    /// also shares with the key sought for.
    pub(super) key: Option<Vec<u8>>,
    /// Its tag; 0 in a table of plain keys.
    pub(super) tag: u64,
}

/// The first entry that is not less than `target`, in a block of internal keys in bytewise order
/// that is decoded meanwhile: up to the end of that entry if it has the same user key. `None` if
/// the whole block is needed to tell.
pub(super) fn find_while_decoding(
    block: &mut SnappyDecoder<'_>,
    order: &TableOrder,
    target: &[u8],
) -> Option<Found> {
    // Behind the entries are the restart points, of which the first, in a sound block, is 0: as an
    // entry that were a key without a tag, and damage. What is unsound behind the entry is not
    // seen.
    let found = scan_bytewise(&mut *block, 0, 0, order, target).ok()???;
    if found.same_user_key && !mutated("undecoded-value") {
        block.up_to(found.entry.end).ok()?;
    }
    Some(found)
}

/// The bytes of a block that a search goes through.
pub(super) trait Entries {
    /// All of them, of which those before `end` can be read.
    fn up_to(&mut self, end: usize) -> Result<&[u8], Damage>;
}

impl Entries for &[u8] {
    #[inline(always)]
    fn up_to(&mut self, _end: usize) -> Result<&[u8], Damage> {
        Ok(self)
    }
}

impl Entries for &mut SnappyDecoder<'_> {
    #[inline]
    fn up_to(&mut self, end: usize) -> Result<&[u8], Damage> {
        SnappyDecoder::up_to(self, end)
    }
}

/// Looks for the first entry that is at least `target`, from `start` on, without putting keys
/// together. `start` is a restart point, or an entry that shares `shared` bytes of its user key
/// with `target`, and no more than those with the one before.
///
/// `matched` is how much of the sought user key the key before has in common with it. An entry that
/// shares more than that with the key before is as small as that one, whatever else it holds; of
/// one that shares less, the shared part is the sought key's too, and only the rest needs a look.
/// Where tags come into it (versions of one user key, or a user key that is the beginning of
/// another) this does not hold: `None`, and [`scan`] takes over.
pub(super) fn scan_bytewise(
    mut entries: impl Entries,
    start: usize,
    shared: usize,
    order: &TableOrder,
    target: &[u8],
) -> Result<Option<Option<Found>>, Damage> {
    let tag_size = order.tag_size();
    let (user, tag) = target.split_at(target.len() - tag_size);
    let (mut matched, mut previous_user, mut previous_key) = (shared, shared, shared);
    let mut offset = start;
    loop {
        let bytes = entries.up_to(offset + MOST_LENGTHS)?;
        if offset >= bytes.len() {
            return Ok(Some(None));
        }
        let entry = Entry::decode(bytes, offset)?;
        entry.check(previous_key, tag_size)?;
        offset = entry.end;
        previous_key = entry.key_length();
        let length = previous_key - tag_size;
        if entry.shared > matched && matched < previous_user.min(length) {
            previous_user = length;
            continue;
        }
        if entry.shared > matched || entry.shared > length {
            return Ok(None);
        }
        let bytes = entries.up_to(entry.value)?;
        let (rest, entry_tag) = bytes[entry.rest..entry.value].split_at(length - entry.shared);
        let remaining = &user[entry.shared..];
        let common = common_prefix(rest, remaining);
        let ordering = match (rest.get(common), remaining.get(common)) {
            (Some(a), Some(b)) => a.cmp(b),
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        if ordering == Ordering::Less
            || (ordering == Ordering::Equal && read_tag(entry_tag) > read_tag(tag))
        {
            matched = entry.shared + common;
            previous_user = length;
            continue;
        }
        let same_user_key = ordering == Ordering::Equal;
        return Ok(Some(Some(Found { entry, same_user_key, key: None, tag: read_tag(entry_tag) })));
    }
}

/// Looks for the first entry that is at least `target`, from the restart point `start` on, in any
/// order.
pub(super) fn scan(
    entries: &[u8],
    start: usize,
    order: &TableOrder,
    target: &[u8],
) -> Result<Option<Found>, Damage> {
    let mut key = Vec::with_capacity(target.len() + 64);
    let mut offset = start;
    while offset < entries.len() {
        let entry = Entry::decode(entries, offset)?;
        entry.check(key.len(), order.tag_size())?;
        offset = entry.end;
        key.truncate(entry.shared);
        key.extend_from_slice(&entries[entry.rest..entry.value]);
        if order.compare(&key, target) == Ordering::Less {
            continue;
        }
        let same_user_key =
            order.compare_user(order.user_key(&key), order.user_key(target)) == Ordering::Equal;
        let tag = if order.is_internal() {
            internal_key::split(&key).map_or(0, |(_, tag)| tag)
        } else {
            0
        };
        return Ok(Some(Found { entry, same_user_key, key: Some(key), tag }));
    }
    Ok(None)
}

/// The tag of an internal key; the tag of a plain one, which has none, is 0.
#[inline]
fn read_tag(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |tag| u64::from_le_bytes(*tag))
}
