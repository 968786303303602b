//! The index of a table, decoded once when the table is opened.
//!
//! For every data block it has a [separator](super::separators) and a [place](super::block_places),
//! each in a form that takes little memory: a large database has entries of all its indexes there.

use std::sync::Arc;

use crate::base::abbreviated_keys::AbbreviatedKeys;

use super::block::Block;
use super::block_error::Damage;
use super::block_iter::BlockIter;
use super::block_places::BlockPlaces;
use super::format::BlockHandle;
use super::key_allowance::KeyAllowance;
use super::order::TableOrder;
use super::separators::{KeyList, Place, Separators};

/// Separators and blocks of a table, in order.
pub(super) struct Index {
    separators: Separators,
    blocks: BlockPlaces,
}

impl Index {
    /// Decodes an index block. Blocks lie before `limit`, an offset in the file.
    pub(super) fn decode(
        block: Arc<Block>,
        order: &TableOrder,
        limit: u64,
    ) -> Result<Index, Damage> {
        let mut allowance = KeyAllowance::of_block(block.size());
        let mut keys = KeyList::with_capacity(block.size());
        let mut handles = Vec::new();
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
            handles.push(handle);
            allowance.take(iter.key())?;
            keys.push(iter.key());
            iter.next();
        }
        if let Some(damage) = iter.damage() {
            return Err(damage);
        }
        Ok(Index { separators: Separators::new(&keys, order)?, blocks: BlockPlaces::new(&handles) })
    }

    /// The number of data blocks.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    #[inline]
    pub(super) fn handle(&self, at: usize) -> Option<BlockHandle> {
        self.blocks.get(at)
    }

    pub(super) fn handles(&self) -> impl Iterator<Item = BlockHandle> {
        (0..self.len()).filter_map(|at| self.handle(at))
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.separators.memory_usage() + self.blocks.memory_usage()
    }

    /// The first block whose separator is not less than `target`; the number of blocks if all are
    /// less.
    #[inline]
    pub(super) fn search(&self, order: &TableOrder, target: &[u8]) -> Place {
        self.separators.search(order, target)
    }

    /// Those of the user keys of all separators but the last.
    pub(super) fn abbreviated_keys(&self) -> &AbbreviatedKeys {
        self.separators.abbreviated_keys()
    }

    /// The separator of data block `at`.
    pub(super) fn separator(&self, at: usize, order: &TableOrder) -> Vec<u8> {
        self.separators.get(at, order)
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
