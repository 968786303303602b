//! The cache of blocks that tables share.

use std::fmt;
use std::sync::Arc;

use crate::cache::{Loan, SlotCache};

use super::block::Block;
use super::external_cache::ExternalBlockCache;

/// Bytes of the engine's cache beside one of the program's.
const BESIDE_EXTERNAL: usize = 8 << 20;

/// A part of a cache that is in use for something else than blocks.
pub(crate) struct CacheLoan {
    slots: SlotCache<Block>,
    loan: Loan,
}

impl CacheLoan {
    /// The bytes that are lent.
    pub(crate) fn bytes(&self) -> usize {
        self.loan.bytes()
    }

    /// Gives back what is more than `most` bytes.
    pub(crate) fn lower(&self, most: usize) {
        self.loan.lower(most);
    }

    /// Makes it a loan of `wanted` bytes, or of as many as there are to lend. The cache drops blocks
    /// for them.
    pub(crate) fn adjust(&self, wanted: usize) {
        if self.loan.adjust(wanted) {
            self.slots.shrink_to_capacity();
        }
    }
}

/// A cache for blocks of tables. Clones share it, and so can any number of databases.
///
/// The capacity is exact: the blocks that the cache holds never take more. Blocks that readers
/// still use when they are evicted stay in memory until they are released. An uncompressed block of
/// a mapped file counts for what it costs in memory, which is little: its bytes stay in the
/// system's page cache.
///
/// ```
/// # use terrace::*;
/// # let options = Options::new().create_if_missing(true);
/// # let options = options.env(std::sync::Arc::new(MemEnv::new()));
/// let cache = BlockCache::new(1 << 20);
/// let db = Db::open("/one", options.block_cache(Some(cache.clone())))?;
/// # db.put("apple", "red")?;
/// # db.flush()?;
/// # db.get("apple")?;
/// assert!(cache.used() <= cache.capacity());
/// cache.prune();
/// assert_eq!(cache.used(), 0);
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone)]
pub struct BlockCache {
    slots: SlotCache<Block>,
    external: Option<Arc<dyn ExternalBlockCache>>,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes. With 0, every read of a block loads it.
    pub fn new(capacity: usize) -> Self {
        BlockCache { slots: SlotCache::new(capacity), external: None }
    }

    /// The program's own cache, for the blocks that have bytes of their own: those of compressed
    /// tables, and of files that are not mapped. For the others, which weigh little, there is an
    /// engine's cache beside it.
    pub fn external(cache: Arc<dyn ExternalBlockCache>) -> Self {
        BlockCache { slots: SlotCache::new(BESIDE_EXTERNAL), external: Some(cache) }
    }

    /// The most bytes that the cache holds; a cache of the program's not included. Up to three
    /// quarters of them may be lent to indexes and filters of tables: see [`Options::max_open_files`](crate::Options).
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// The bytes that the cache holds now.
    ///
    /// ```
    /// # use terrace::*;
    /// let cache = BlockCache::new(64 << 20);
    /// println!("{} of {} bytes", cache.used(), cache.capacity());
    /// ```
    pub fn used(&self) -> usize {
        self.slots.used() + self.external.as_ref().map_or(0, |external| external.used())
    }

    /// Drops every block, but for those in a cache of the program's.
    ///
    /// ```
    /// # use terrace::*;
    /// let cache = BlockCache::new(64 << 20);
    /// # let options = Options::new().block_cache(Some(cache.clone()));
    /// cache.prune(); // before a measurement of cold reads
    /// assert_eq!(cache.used(), 0);
    /// ```
    pub fn prune(&self) {
        self.slots.prune();
    }

    /// Drops blocks until the others take `bytes` at most, but for those in a cache of the
    /// program's. Returns whether there were any.
    pub(crate) fn shrink(&self, bytes: usize) -> bool {
        self.slots.shrink(bytes)
    }

    /// Tells this cache and its clones from all others that there are.
    pub(crate) fn address(&self) -> usize {
        self.slots.address()
    }

    /// To lend a part of the capacity; `None` of a cache of the program's.
    pub(crate) fn loan(&self) -> Option<CacheLoan> {
        let slots = self.slots.clone();
        self.external.is_none().then(|| CacheLoan { loan: slots.loan(), slots })
    }

    pub(super) fn slots(&self) -> &SlotCache<Block> {
        &self.slots
    }

    /// The memory that the cache may take; unknown of one of the program's.
    pub(crate) fn most_bytes(&self) -> Option<usize> {
        self.external.is_none().then(|| self.slots.capacity())
    }

    pub(super) fn external_cache(&self) -> Option<&Arc<dyn ExternalBlockCache>> {
        self.external.as_ref()
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache")
            .field("capacity", &self.capacity())
            .field("used", &self.used())
            .finish()
    }
}
