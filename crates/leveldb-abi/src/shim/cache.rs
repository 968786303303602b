//! Block caches: the engine's inside one from `NewLRUCache`, and a program's own under the engine.

use std::ffi::c_void;
use std::sync::Arc;

use terrace::{BlockCache, BlockKey, ExternalBlock, ExternalBlockCache, HeldBlock};

use super::outcome::Bytes;
use crate::guard::export;
use crate::memory::{hand_out, release};

/// `shim_cache`: the block cache inside a cache from `NewLRUCache`.
#[derive(Debug)]
pub struct ShimCache(BlockCache);

impl ShimCache {
    pub(super) fn cache(&self) -> BlockCache {
        self.0.clone()
    }
}

/// `shim_block`: what a program's cache keeps for the engine.
#[derive(Debug)]
pub struct ShimBlock(ExternalBlock);

/// `shim_custom_cache`. Without an object: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CacheCalls {
    pub(super) object: *mut c_void,
    pub(super) new_id: Option<unsafe extern "C" fn(*mut c_void) -> u64>,
    pub(super) lookup: Option<unsafe extern "C" fn(*mut c_void, Bytes) -> *mut c_void>,
    pub(super) insert:
        Option<unsafe extern "C" fn(*mut c_void, Bytes, *mut ShimBlock, usize) -> *mut c_void>,
    pub(super) value: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> *const ShimBlock>,
    pub(super) release: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub(super) total_charge: Option<unsafe extern "C" fn(*const c_void) -> usize>,
}

/// A cache of the program's. The object and all of its calls.
#[derive(Clone, Copy)]
pub(super) struct CustomCache {
    object: *mut c_void,
    new_id: unsafe extern "C" fn(*mut c_void) -> u64,
    lookup: unsafe extern "C" fn(*mut c_void, Bytes) -> *mut c_void,
    insert: unsafe extern "C" fn(*mut c_void, Bytes, *mut ShimBlock, usize) -> *mut c_void,
    value: unsafe extern "C" fn(*mut c_void, *mut c_void) -> *const ShimBlock,
    release: unsafe extern "C" fn(*mut c_void, *mut c_void),
    total_charge: unsafe extern "C" fn(*const c_void) -> usize,
}

// SAFETY: LevelDB's header asks of caches that any thread may call them.
unsafe impl Send for CustomCache {}
// SAFETY: likewise.
unsafe impl Sync for CustomCache {}

impl CustomCache {
    /// # Safety
    /// The object outlives the result and every block that is read through it.
    pub(super) unsafe fn adapter(calls: CacheCalls) -> Option<BlockCache> {
        if calls.object.is_null() {
            return None;
        }
        Some(BlockCache::external(Arc::new(CustomCache {
            object: calls.object,
            new_id: calls.new_id?,
            lookup: calls.lookup?,
            insert: calls.insert?,
            value: calls.value?,
            release: calls.release?,
            total_charge: calls.total_charge?,
        })))
    }

    /// The engine's hold on what `handle`, which may be null, leads to.
    fn held(&self, block: ExternalBlock, handle: *mut c_void) -> HeldBlock {
        HeldBlock { block, hold: Box::new(Hold { cache: *self, handle }) }
    }
}

/// A handle to be released.
struct Hold {
    cache: CustomCache,
    handle: *mut c_void,
}

// SAFETY: handles of a cache may be released by any thread.
unsafe impl Send for Hold {}
// SAFETY: a shared hold does nothing.
unsafe impl Sync for Hold {}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the cache is alive, by `adapter`, and gave the handle for one release.
            unsafe { (self.cache.release)(self.cache.object, self.handle) };
        }
    }
}

impl ExternalBlockCache for CustomCache {
    fn new_id(&self) -> u64 {
        // SAFETY: the object is alive, by `adapter`.
        unsafe { (self.new_id)(self.object) }
    }

    fn lookup(&self, key: &BlockKey) -> Option<HeldBlock> {
        // SAFETY: as above. Under this key there is only the value that `insert` put there, which
        // exists while the handle is held.
        unsafe {
            let handle = (self.lookup)(self.object, Bytes::of(key));
            if handle.is_null() {
                return None;
            }
            let block = (self.value)(self.object, handle).as_ref().map(|block| block.0.clone());
            if block.is_none() {
                (self.release)(self.object, handle);
            }
            Some(self.held(block?, handle))
        }
    }

    fn insert(&self, key: &BlockKey, block: ExternalBlock, charge: usize) -> HeldBlock {
        let value = hand_out(ShimBlock(block.clone()));
        // SAFETY: as above; the cache passes the value to its deleter once.
        let handle = unsafe { (self.insert)(self.object, Bytes::of(key), value, charge) };
        self.held(block, handle)
    }

    fn used(&self) -> usize {
        // SAFETY: as above.
        unsafe { (self.total_charge)(self.object) }
    }
}

export! {
    /// A block cache.
    fn shim_cache_new(capacity: usize) -> *mut ShimCache {
        hand_out(ShimCache(BlockCache::new(capacity)))
    }

    /// Gives a block cache back; databases that use it keep it.
    fn shim_cache_release(cache: *mut ShimCache) {
        drop(release(cache));
    }

    /// The bytes in a block cache.
    fn shim_cache_used(cache: *const ShimCache) -> usize {
        cache.as_ref().map_or(0, |cache| cache.0.used())
    }

    /// Empties a block cache.
    fn shim_cache_prune(cache: *const ShimCache) {
        if let Some(cache) = cache.as_ref() {
            cache.0.prune();
        }
    }

    /// Gives back what a program's cache kept.
    fn shim_block_release(block: *mut ShimBlock) {
        drop(release(block));
    }
}
