//! The index of a table, decoded once when the table is opened.
//!
//! For every data block there is a *separator*: a key that is not less than any of the block's and
//! less than all of the next block's. The search wants the first separator that is not less than a
//! key. In the bytewise order most of it needs no key at all: what all separators have in common is
//! cut off, the next eight bytes of each are kept as one number, and only equal numbers lead to a
//! comparison. The last separator stays out of that, because nothing follows it: it was shortened
//! to a byte or two and has little in common with any other.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::abbreviated_keys::AbbreviatedKeys;

use super::block::Block;
use super::block_iter::BlockIter;
use super::entry::Damage;
use super::format::BlockHandle;
use super::key_allowance::KeyAllowance;
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

/// Separators and blocks of a table, in order.
pub(super) struct Index {
    /// The separators, one after the other.
    keys: Vec<u8>,
    /// Where each separator ends in `keys`.
    ends: Vec<usize>,
    handles: Vec<BlockHandle>,
    /// Of the user keys of all separators but the last. Empty unless the order is bytewise.
    abbreviated_keys: AbbreviatedKeys,
}

impl Index {
    /// Decodes an index block. Blocks lie before `limit`, an offset in the file.
    pub(super) fn decode(
        block: Arc<Block>,
        order: &TableOrder,
        limit: u64,
    ) -> Result<Index, Damage> {
        let mut allowance = KeyAllowance::of_block(block.size());
        let mut index = Index {
            keys: Vec::new(),
            ends: Vec::new(),
            handles: Vec::new(),
            abbreviated_keys: AbbreviatedKeys::default(),
        };
        let mut iter = BlockIter::new(order.tag_size());
        iter.set_block(Some(block));
        iter.seek_to_first();
        let mut end = 0;
        while iter.valid() {
            let handle =
                BlockHandle::decode(&mut iter.value()).filter(|handle| handle.fits_before(limit));
            let handle = handle.ok_or("it points outside the file")?;
            // One block for many entries could make hours of a small file.
            if handle.offset < end {
                return Err("its blocks overlap");
            }
            end = handle.end();
            index.handles.push(handle);
            allowance.take(iter.key())?;
            index.keys.extend_from_slice(iter.key());
            index.ends.push(index.keys.len());
            iter.next();
        }
        if let Some(damage) = iter.damage() {
            return Err(damage);
        }
        if order.is_bytewise() {
            index.shorten_abbreviated(order)?;
        }
        index.keys.shrink_to_fit();
        index.ends.shrink_to_fit();
        index.handles.shrink_to_fit();
        Ok(index)
    }

    fn shorten_abbreviated(&mut self, order: &TableOrder) -> Result<(), Damage> {
        let Some(last) = self.len().checked_sub(1) else { return Ok(()) };
        let abbreviated_keys =
            AbbreviatedKeys::new((0..last).map(|at| order.user_key(self.key(at))));
        let ascends = |at: usize| match (abbreviated_keys.get(at - 1), abbreviated_keys.get(at)) {
            (Some(before), Some(abbreviated)) if before != abbreviated => before < abbreviated,
            _ => order.compare(self.key(at - 1), self.key(at)) == Ordering::Less,
        };
        if !(1..=last).all(ascends) {
            return Err("its keys do not ascend");
        }
        self.abbreviated_keys = abbreviated_keys;
        Ok(())
    }

    /// The number of data blocks.
    pub(super) fn len(&self) -> usize {
        self.handles.len()
    }

    pub(super) fn handle(&self, at: usize) -> Option<BlockHandle> {
        self.handles.get(at).copied()
    }

    pub(super) fn handles(&self) -> &[BlockHandle] {
        &self.handles
    }

    pub(super) fn memory_usage(&self) -> usize {
        let handles = self.handles.capacity() * size_of::<BlockHandle>();
        self.keys.capacity()
            + self.ends.capacity() * 8
            + self.abbreviated_keys.memory_usage()
            + handles
    }

    /// The first block whose separator is not less than `target`; the number of blocks if all are
    /// less.
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
                    at: self.search_between(low, self.len(), order, target),
                    abbreviated: None,
                };
            }
        };
        let mut same = self.abbreviated_keys.with_abbreviated(abbreviated);
        if same.start == self.abbreviated_keys.len() {
            same.end = self.len();
        }
        Place {
            at: self.search_between(same.start, same.end, order, target),
            abbreviated: Some(abbreviated),
        }
    }

    /// Those of the user keys of all separators but the last.
    pub(super) fn abbreviated_keys(&self) -> &AbbreviatedKeys {
        &self.abbreviated_keys
    }

    fn search_between(
        &self,
        mut low: usize,
        mut high: usize,
        order: &TableOrder,
        target: &[u8],
    ) -> usize {
        while low < high {
            let middle = low + (high - low) / 2;
            if order.compare(self.key(middle), target) == Ordering::Less {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low
    }

    /// The separator of data block `at`.
    pub(super) fn key(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        let end = self.ends.get(at).copied();
        start.zip(end).and_then(|(start, end)| self.keys.get(start..end)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::KeyOrder;
    use crate::table::block_builder::BlockBuilder;
    use crate::table::format::BlockData;

    /// An index of separators with `length` bytes before the last two, all in one group that shares
    /// them.
    fn decode(length: usize, separators: u16) -> Result<Index, Damage> {
        let mut builder = BlockBuilder::new(usize::MAX);
        for number in 0..separators {
            let mut handle = Vec::new();
            BlockHandle { offset: u64::from(number) * 100, size: 10 }.encode(&mut handle);
            builder.add(&[&vec![b'x'; length][..], &number.to_be_bytes()].concat(), &handle);
        }
        let block = Block::parse(BlockData::Owned(builder.finish().to_vec().into()))?;
        Index::decode(
            Arc::new(block),
            &TableOrder::user(KeyOrder::default()),
            100 * u64::from(separators),
        )
    }

    /// Each of them is read for itself: a small file of many would take hours.
    #[test]
    fn no_two_entries_lead_to_the_same_bytes() {
        for (offsets, agrees) in
            [([0, 15, 30], true), ([0, 0, 0], false), ([0, 15, 29], false), ([15, 0, 30], false)]
        {
            let mut builder = BlockBuilder::new(16);
            for (key, offset) in offsets.into_iter().enumerate() {
                let mut handle = Vec::new();
                BlockHandle { offset, size: 10 }.encode(&mut handle);
                builder.add(&[key as u8], &handle);
            }
            let block =
                Block::parse(BlockData::Owned(builder.finish().to_vec().into())).expect("a block");
            let index = Index::decode(Arc::new(block), &TableOrder::user(KeyOrder::default()), 100);
            assert_eq!(index.is_ok(), agrees, "{offsets:?}");
        }
    }

    #[test]
    fn few_bytes_do_not_stand_for_many_keys() {
        // Up to the floor, and up to so many times the block's size, an index may expand.
        assert_eq!(decode(1000, 1000).map(|index| index.len()), Ok(1000));
        assert_eq!(decode(1 << 20, 20).map(|index| index.len()), Ok(20));
        assert_eq!(decode(50_000, 40).err(), Some("its keys are out of proportion"));
        assert_eq!(decode(1000, 2000).err(), Some("its keys are out of proportion"));
    }
}
