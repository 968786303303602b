//! Where the entries of a block are, by the hashes of their keys.
//!
//! A search through a block takes a cache miss for every few entries that it passes. A block that is asked again and
//! again gets a map: of every entry two bytes of its user key's hash, its place, and how much of its key is the
//! predecessor's, each kind side by side. A look-up goes through the first in one or two lines of memory and then to
//! the one entry that it wants.
//!
//! Only for internal keys in the bytewise order: under another, equal keys may have different bytes.
//!
//! # Invariants
//! 1. The map is an accelerator. It names every entry of its block in order, or there is none; what it does not want
//!    to decide it leaves to the search.

use crate::base::internal_key::TAG_SIZE;

use super::block::{Damage, Entry};
use super::full_filter::hash_key;

/// What a map takes for an entry.
const ENTRY_SIZE: usize = 3 * size_of::<u16>();
/// Fingerprints that are looked at in one go.
const STRIDE: usize = 16;

/// See the [module](self).
pub(super) struct EntryMap {
    /// The fingerprints of all entries, in whole strides, with zeros behind the last; then the offsets of all, and then
    /// what each shares with its predecessor.
    words: Box<[u16]>,
    entries: usize,
}

/// What a map says about a key.
pub(super) enum Answer {
    /// The newest entry of the user key that is not newer than asked for, and its tag.
    Found(Entry, u64),
    Absent,
    /// It takes a search.
    Unknown,
}

impl EntryMap {
    /// The memory of a map of at most `entries` entries.
    pub(super) fn size(entries: usize) -> usize {
        entries.next_multiple_of(STRIDE) * ENTRY_SIZE
    }

    /// The map of a block of internal keys; none if it has more than `most` entries, is too large for small numbers,
    /// or damaged.
    pub(super) fn new(entries: &[u8], most: usize) -> Option<Self> {
        if entries.len() > usize::from(u16::MAX) {
            return None;
        }
        let mut words = Vec::with_capacity(Self::size(most) / size_of::<u16>());
        let (mut offsets, mut shared) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let mut key = Vec::with_capacity(64);
        let mut offset = 0;
        while offset < entries.len() {
            let entry = Entry::decode(entries, offset).ok()?;
            entry.check(key.len(), TAG_SIZE).ok()?;
            if offsets.len() == most {
                return None;
            }
            key.truncate(entry.shared);
            key.extend_from_slice(entries.get(entry.rest..entry.value)?);
            words.push(fingerprint(hash_key(&key[..key.len() - TAG_SIZE])));
            offsets.push(offset as u16);
            shared.push(u16::try_from(entry.shared).ok()?);
            offset = entry.end;
        }
        let count = offsets.len();
        words.resize(count.next_multiple_of(STRIDE), 0);
        words.extend(offsets);
        words.extend(shared);
        Some(EntryMap { words: words.into(), entries: count })
    }

    /// Looks for the user key `user_key`, whose hash is `hash`, and of its versions for the first whose tag is at most
    /// `tag`, in the entries that this is the map of.
    pub(super) fn find(&self, entries: &[u8], user_key: &[u8], tag: u64, hash: u64) -> Result<Answer, Damage> {
        let wanted = fingerprint(hash);
        let (fingerprints, places) = self.words.split_at(self.entries.next_multiple_of(STRIDE));
        let (offsets, shared) = places.split_at(self.entries);
        let (strides, _) = fingerprints.as_chunks::<STRIDE>();
        for (number, stride) in strides.iter().enumerate() {
            // All of a stride at once; the few that match are then told apart.
            if !stride.iter().fold(false, |any, &fingerprint| any | (fingerprint == wanted)) {
                continue;
            }
            for at in (0..STRIDE).filter(|&at| stride[at] == wanted).map(|at| number * STRIDE + at) {
                let Some(&offset) = offsets.get(at) else { break };
                let entry = Entry::decode(entries, usize::from(offset))?;
                if entry.key_length() != user_key.len() + TAG_SIZE {
                    continue;
                }
                if entry.shared > user_key.len() {
                    // A version beside others: even its tag is partly elsewhere.
                    return Ok(Answer::Unknown);
                }
                let (rest, entry_tag) = entries[entry.rest..entry.value].split_at(user_key.len() - entry.shared);
                if rest != &user_key[entry.shared..]
                    || !begins(entries, offsets, shared, at, &user_key[..entry.shared])?
                {
                    continue;
                }
                let entry_tag = entry_tag.first_chunk::<8>().map_or(0, |tag| u64::from_le_bytes(*tag));
                if entry_tag <= tag {
                    return Ok(Answer::Found(entry, entry_tag));
                }
            }
        }
        Ok(Answer::Absent)
    }
}

/// Whether what entry `at` shares with its predecessor is `prefix`. It is in the rests of the entries before, each of
/// which holds what it does not share itself.
fn begins(entries: &[u8], offsets: &[u16], shared: &[u16], at: usize, prefix: &[u8]) -> Result<bool, Damage> {
    const BAD_SHARING: Damage = "an entry shares more of a key than there is";
    let mut missing = prefix;
    for holder in (0..at).rev() {
        if missing.is_empty() {
            break;
        }
        let Some((_, held)) = missing.split_at_checked(usize::from(shared[holder])) else { continue };
        if held.is_empty() {
            continue;
        }
        let entry = Entry::decode(entries, usize::from(offsets[holder]))?;
        if entries.get(entry.rest..entry.value).is_none_or(|rest| !rest.starts_with(held)) {
            return Ok(false);
        }
        missing = &missing[..missing.len() - held.len()];
    }
    if missing.is_empty() { Ok(true) } else { Err(BAD_SHARING) }
}

/// The part of a key's hash that the map keeps. The filter's choice of a line goes by the upper half, its choice of
/// bits by the lower.
#[inline]
fn fingerprint(hash: u64) -> u16 {
    (hash >> 24) as u16
}
