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
    /// The block. Always there: a slot's hold is only made of a filled slot.
    #[inline]
    pub(super) fn get(&self) -> Option<&Block> {
        match self {
            BlockRef::Cached(cached) => cached.as_deref(),
            BlockRef::Owned(block) => Some(block),
        }
    }

    /// A reference of its own.
    pub(super) fn into_owned(self) -> Option<Arc<Block>> {
        match self {
            BlockRef::Cached(cached) => arc_swap::Guard::into_inner(cached),
            BlockRef::Owned(block) => Some(block),
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
        let entries = self.block.get().map_or(&[][..], Block::entries);
        entries.get(self.range.start..self.range.end).unwrap_or_default()
    }

    /// The same bytes, held in a way that may last. A thread has only a few fast holds on cache slots; whoever keeps
    /// a value gives his back.
    pub(crate) fn detach(self) -> BlockSlice {
        match self.block.into_owned() {
            Some(block) => BlockSlice { block: BlockRef::Owned(block), range: self.range },
            None => unreachable!("a held slot is never empty"),
        }
    }
}
