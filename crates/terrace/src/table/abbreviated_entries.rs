//! Abbreviated keys of entries, for searches in a block that is in the cache.
//!
//! A search in a block reads entries one by one, and each lies on other lines of memory than the
//! one before: a search for one of many blocks waits for memory, not for the processor. So a block
//! that is searched again and again learns the abbreviated keys (see
//! [`AbbreviatedKeys`](crate::base::abbreviated_keys::AbbreviatedKeys)) of its entries, as numbers
//! side by side. They say where a search ends, but for a step or two, and only the entry there has
//! to be read.
//!
//! Abbreviated keys are kept as four bytes, the greatest of those that differ within the block.
//! Every entry before the first one whose number is not less than that of the key sought for is
//! less than the key; whether that one is the key's is for the entry itself to say.

use crate::base::abbreviated_keys::abbreviated;

use super::entry::Entry;
use super::order::TableOrder;

/// Entries of which the abbreviated keys are kept.
const MOST: usize = 40;

/// Abbreviated keys and places of a block's entries.
pub(super) struct AbbreviatedEntries {
    /// The number that is 0.
    base: u64,
    /// Bits of abbreviated keys that are left out.
    shift: u32,
    /// Bytes at the beginning of keys that are the same where numbers are.
    told: usize,
    count: usize,
    /// Greater than any where there is no entry.
    numbers: [u32; MOST],
    offsets: [u16; MOST],
}

/// Where a search begins.
pub(super) struct Start {
    /// Of the first entry that may not be less than the key sought for.
    pub(super) offset: usize,
    /// The key sought for has what that entry shares with the one before it, too, if it is no more
    /// than this.
    pub(super) told: usize,
}

impl AbbreviatedEntries {
    /// The abbreviated keys of `entries`, in which groups begin at `restarts`. `None` if there are
    /// too many or too large ones, if their user keys do not all begin with `prefix`, if their
    /// abbreviated keys are too far apart, and if anything looks damaged.
    pub(super) fn new(
        entries: &[u8],
        restarts: impl Iterator<Item = Option<usize>>,
        order: &TableOrder,
        prefix: &[u8],
    ) -> Option<AbbreviatedEntries> {
        u16::try_from(entries.len()).ok()?;
        let mut restarts = restarts.peekable();
        let mut abbreviated_keys = [0; MOST];
        let mut offsets = [0; MOST];
        // As much of the key as counts.
        let most = prefix.len() + 8;
        let mut key = Vec::with_capacity(most);
        let (mut count, mut offset, mut length) = (0, 0, 0);
        while offset < entries.len() {
            let entry = Entry::decode(entries, offset).ok()?;
            entry.check(length, order.tag_size()).ok()?;
            if restarts.next_if_eq(&Some(offset)).is_some() && entry.shared > 0 {
                return None;
            }
            let user_before = length.saturating_sub(order.tag_size());
            length = entry.key_length();
            if entry.shared < key.len() {
                key.truncate(entry.shared);
            }
            let rest = entries.get(entry.rest..entry.value)?;
            key.extend_from_slice(&rest[..rest.len().min(most - key.len())]);
            let user_key = &key[..key.len().min(length - order.tag_size())];
            *abbreviated_keys.get_mut(count)? = abbreviated(user_key.strip_prefix(prefix)?);
            offsets[count] = offset as u16;
            let abbreviated_before =
                count.checked_sub(1).map_or(0, |before| abbreviated_keys[before]);
            // A user key between the two need not begin with what this one shares of the other's
            // tag.
            if abbreviated_keys[count] < abbreviated_before
                || abbreviated_keys[count] > abbreviated_before && entry.shared > user_before
            {
                return None;
            }
            count += 1;
            offset = entry.end;
        }
        let abbreviated_keys = &abbreviated_keys[..count];
        let (first, last) = (*abbreviated_keys.first()?, *abbreviated_keys.last()?);
        if restarts.next().is_some() {
            return None;
        }
        // Whole bytes, so that one can say how many are told.
        let shift = (0..=32)
            .step_by(8)
            .find(|shift| (last >> shift) - (first >> shift) < u64::from(u32::MAX))?;
        let base = first >> shift;
        let mut numbers = [u32::MAX; MOST];
        for (number, abbreviated) in numbers.iter_mut().zip(abbreviated_keys) {
            *number = ((abbreviated >> shift) - base) as u32;
        }
        Some(AbbreviatedEntries {
            base,
            shift,
            told: prefix.len() + 8 - shift as usize / 8,
            count,
            numbers,
            offsets,
        })
    }

    /// Where to search for a key with this abbreviated key: everything before is less. `None` if
    /// everything is.
    #[inline]
    pub(super) fn start(&self, abbreviated: u64) -> Option<Start> {
        // The first entry shares nothing, so it does not matter what is told where all are greater.
        let number = (abbreviated >> self.shift).saturating_sub(self.base);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let at = self.numbers.iter().map(|other| usize::from(*other < number)).sum::<usize>();
        if at >= self.count {
            return None;
        }
        let told = if self.numbers[at] == number { self.told } else { usize::MAX };
        Some(Start { offset: usize::from(self.offsets[at]), told })
    }
}
