//! Block caches that are not the engine's own.
//!
//! A program that wants to account for blocks itself, or to share memory with caches of another
//! kind, gives the engine a map from keys to blocks. The engine's own cache finds a block with one
//! load; this one asks the map for every block, so it is for programs that need it.
//!
//! Any thread calls a cache at any time, while it holds no lock of the engine but perhaps that of a
//! table being opened.
//!
//! # Invariants
//! 1. A block that a reader uses is held: the cache hears of its release when the reader moves on.
//! 2. A block in such a cache owns its bytes. Blocks that are parts of mapped files stay with the
//!    engine.

use std::fmt;
use std::sync::Arc;

use super::block::Block;
use super::format::BlockHandle;

/// The key of a block: the number of its table, from [`ExternalBlockCache::new_id`], and its offset
/// in the file, both little-endian.
pub type BlockKey = [u8; 16];

/// A block, as a cache keeps it. Clones share its bytes.
///
/// ```
/// # use terrace::*;
/// /// How a cache returns a block that it never evicts.
/// fn hold(block: &ExternalBlock) -> HeldBlock {
///     println!("{} bytes", block.charge());
///     HeldBlock { block: block.clone(), hold: Box::new(()) }
/// }
/// ```
#[derive(Clone)]
pub struct ExternalBlock(Arc<Block>);

impl ExternalBlock {
    /// Bytes of the block, uncompressed: what it counts for in a cache.
    pub fn charge(&self) -> usize {
        self.0.size()
    }
}

impl fmt::Debug for ExternalBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalBlock({} bytes)", self.charge())
    }
}

/// A block in use. Dropping it tells the cache, through what is in `hold`.
///
/// ```
/// # use terrace::*;
/// /// How a cache returns a block that it never evicts.
/// fn hold(block: &ExternalBlock) -> HeldBlock {
///     println!("{} bytes", block.charge());
///     HeldBlock { block: block.clone(), hold: Box::new(()) }
/// }
/// ```
pub struct HeldBlock {
    /// The block.
    pub block: ExternalBlock,
    /// Whatever releases the cache's entry when it is dropped.
    pub hold: Box<dyn Send + Sync>,
}

impl fmt::Debug for HeldBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldBlock").field(&self.block).finish()
    }
}

impl HeldBlock {
    #[inline]
    pub(super) fn get(&self) -> &Block {
        &self.block.0
    }

    pub(super) fn share(&self) -> Arc<Block> {
        Arc::clone(&self.block.0)
    }
}

/// A cache of blocks of the program's own: see
/// [`BlockCache::external`](crate::BlockCache::external).
///
/// ```
/// # use terrace::*;
/// use std::collections::HashMap;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::{Arc, Mutex};
///
/// /// Keeps every block for ever; `hold` would tell one that evicts what is in use.
/// #[derive(Default)]
/// struct Everything {
///     ids: AtomicU64,
///     blocks: Mutex<HashMap<BlockKey, ExternalBlock>>,
/// }
///
/// impl ExternalBlockCache for Everything {
///     fn new_id(&self) -> u64 {
///         self.ids.fetch_add(1, Ordering::Relaxed)
///     }
///
///     fn lookup(&self, key: &BlockKey) -> Option<HeldBlock> {
///         let block = self.blocks.lock().unwrap().get(key)?.clone();
///         Some(HeldBlock { block, hold: Box::new(()) })
///     }
///
///     fn insert(&self, key: &BlockKey, block: ExternalBlock, _charge: usize) -> HeldBlock {
///         self.blocks.lock().unwrap().insert(*key, block.clone());
///         HeldBlock { block, hold: Box::new(()) }
///     }
///
///     fn used(&self) -> usize {
///         self.blocks.lock().unwrap().values().map(ExternalBlock::charge).sum()
///     }
/// }
///
/// let cache = BlockCache::external(Arc::new(Everything::default()));
/// let options = Options::new().block_cache(Some(cache));
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
pub trait ExternalBlockCache: Send + Sync {
    /// Returns a number that this cache has not returned before. Every table that is opened takes
    /// one.
    fn new_id(&self) -> u64;

    /// The block of `key`, if the cache has it.
    fn lookup(&self, key: &BlockKey) -> Option<HeldBlock>;

    /// Keeps `block`, which counts for `charge` bytes, in place of what `key` had, and holds it for
    /// the caller.
    fn insert(&self, key: &BlockKey, block: ExternalBlock, charge: usize) -> HeldBlock;

    /// Bytes that the cache holds.
    fn used(&self) -> usize;
}

/// The blocks of one table in such a cache.
pub(super) struct ExternalBlocks {
    cache: Arc<dyn ExternalBlockCache>,
    table: u64,
}

impl ExternalBlocks {
    pub(super) fn new(cache: &Arc<dyn ExternalBlockCache>) -> Self {
        ExternalBlocks { cache: Arc::clone(cache), table: cache.new_id() }
    }

    fn key(&self, handle: BlockHandle) -> BlockKey {
        (u128::from(self.table) | u128::from(handle.offset) << 64).to_le_bytes()
    }

    pub(super) fn get(&self, handle: BlockHandle) -> Option<HeldBlock> {
        self.cache.lookup(&self.key(handle))
    }

    /// Keeps a block that was just loaded.
    pub(super) fn keep(&self, handle: BlockHandle, block: Arc<Block>) -> HeldBlock {
        let block = ExternalBlock(block);
        let charge = block.charge();
        self.cache.insert(&self.key(handle), block, charge)
    }
}
