//! Blocks and parts of blocks, held.

use std::ops::Range;
use std::sync::Arc;

use crate::cache::Cached;

use super::block::Block;

/// A block, held by what was at hand: a look-up's short hold on a cache slot, or a reference of its own.
pub(super) enum BlockRef {
    Cached(Cached<Block>),
    Owned(Arc<Block>),
}

impl BlockRef {
    #[inline]
    pub(super) fn get(&self) -> &Block {
        match self {
            BlockRef::Cached(cached) => cached,
            BlockRef::Owned(block) => block,
        }
    }

    /// A reference of its own.
    pub(super) fn into_owned(self) -> Arc<Block> {
        match self {
            BlockRef::Cached(cached) => cached.into_arc(),
            BlockRef::Owned(block) => block,
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

    /// The same bytes, held in a way that may last: a short hold keeps what caches evict from being freed.
    pub(crate) fn detach(self) -> BlockSlice {
        BlockSlice { block: BlockRef::Owned(self.block.into_owned()), range: self.range }
    }
}
