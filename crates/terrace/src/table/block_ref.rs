//! Blocks and parts of blocks, held.

use std::ops::Range;
use std::sync::Arc;

use crate::cache::Cached;

use super::block::Block;
use super::external_cache::HeldBlock;

/// A block, held by what was at hand: a look-up's short hold on a cache slot, a reference of its
/// own, or an entry of a cache of the program's.
pub(super) enum BlockRef {
    Cached(Cached<Block>),
    Owned(Arc<Block>),
    External(Box<HeldBlock>),
}

impl BlockRef {
    #[inline]
    pub(super) fn get(&self) -> &Block {
        match self {
            BlockRef::Cached(cached) => cached,
            BlockRef::Owned(block) => block,
            BlockRef::External(held) => held.get(),
        }
    }

    /// The same block, held in a way that may last.
    pub(super) fn into_lasting(self) -> BlockRef {
        match self {
            BlockRef::Cached(cached) => BlockRef::Owned(cached.into_arc()),
            lasting => lasting,
        }
    }

    /// A reference of its own, and what is to be dropped with it.
    pub(super) fn into_owned(self) -> (Arc<Block>, Option<Box<HeldBlock>>) {
        match self {
            BlockRef::Cached(cached) => (cached.into_arc(), None),
            BlockRef::Owned(block) => (block, None),
            BlockRef::External(held) => (held.share(), Some(held)),
        }
    }
}

/// A value inside a block, which stays in memory for as long as this does.
pub(crate) struct BlockSlice {
    block: BlockRef,
    range: Range<usize>,
}

impl BlockSlice {
    /// The bytes `range` of the entries of `block`.
    pub(super) fn new(block: BlockRef, range: Range<usize>) -> Self {
        BlockSlice { block, range }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        let entries = self.block.get().entries();
        entries.get(self.range.start..self.range.end).unwrap_or_default()
    }

    /// The same bytes, held in a way that may last: a short hold keeps what caches evict from being
    /// freed.
    pub(crate) fn detach(self) -> BlockSlice {
        BlockSlice { block: self.block.into_lasting(), range: self.range }
    }
}
