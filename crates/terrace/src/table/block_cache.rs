//! The cache of blocks that tables share.

use std::fmt;

use crate::cache::SlotCache;

use super::block::Block;

/// A cache for blocks of tables. Clones share it, and so can any number of databases.
///
/// The capacity is exact: the blocks that the cache holds never take more. Blocks that readers still use when they
/// are evicted stay in memory until they are released. An uncompressed block of a mapped file counts for what it
/// costs in memory, which is little: its bytes stay in the system's page cache.
#[derive(Clone)]
pub struct BlockCache {
    slots: SlotCache<Block>,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes. With 0, every read of a block loads it.
    pub fn new(capacity: usize) -> Self {
        BlockCache { slots: SlotCache::new(capacity) }
    }

    /// The most bytes that the cache holds.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// The bytes that the cache holds now.
    pub fn used(&self) -> usize {
        self.slots.used()
    }

    /// Drops every block.
    pub fn prune(&self) {
        self.slots.prune();
    }

    pub(super) fn slots(&self) -> &SlotCache<Block> {
        &self.slots
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache").field("capacity", &self.capacity()).field("used", &self.used()).finish()
    }
}
