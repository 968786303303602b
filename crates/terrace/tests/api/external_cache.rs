//! A block cache of the program's own: the engine's calls to it, and that no result of it does
//! harm.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use terrace::{
    BlockCache, BlockKey, Db, ExternalBlock, ExternalBlockCache, HeldBlock, Options, ReadOptions,
};

/// Keeps at most `limit` blocks and forgets one at random, so to say, when there are more.
#[derive(Default)]
struct Forgetful {
    limit: usize,
    blocks: Mutex<HashMap<BlockKey, ExternalBlock>>,
    ids: AtomicU64,
    lookups: AtomicUsize,
    inserts: AtomicUsize,
    held: Arc<AtomicUsize>,
}

struct Hold(Arc<AtomicUsize>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Forgetful {
    fn hold(&self, block: ExternalBlock) -> HeldBlock {
        self.held.fetch_add(1, Ordering::Relaxed);
        HeldBlock { block, hold: Box::new(Hold(self.held.clone())) }
    }
}

impl ExternalBlockCache for Forgetful {
    fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn lookup(&self, key: &BlockKey) -> Option<HeldBlock> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.blocks.lock().unwrap().get(key).cloned().map(|block| self.hold(block))
    }

    fn insert(&self, key: &BlockKey, block: ExternalBlock, charge: usize) -> HeldBlock {
        assert_eq!(charge, block.charge());
        self.inserts.fetch_add(1, Ordering::Relaxed);
        let mut blocks = self.blocks.lock().unwrap();
        blocks.insert(*key, block.clone());
        if blocks.len() > self.limit {
            let victim = *blocks.keys().next().unwrap();
            blocks.remove(&victim);
        }
        drop(blocks);
        self.hold(block)
    }

    fn used(&self) -> usize {
        self.blocks.lock().unwrap().values().map(ExternalBlock::charge).sum()
    }
}

fn key(i: usize) -> String {
    format!("key{i:05}")
}

#[test]
fn blocks_are_kept_in_the_programs_cache() {
    const ENTRIES: usize = 5_000;
    let dir = tempfile::tempdir().unwrap();
    for limit in [0, 3, 1_000] {
        let cache = Arc::new(Forgetful { limit, ..Forgetful::default() });
        let options = Options::new()
            .create_if_missing(true)
            .block_cache(Some(BlockCache::external(cache.clone())));
        let db = Db::open(dir.path().join(limit.to_string()), options).unwrap();
        for i in 0..ENTRIES {
            db.put(key(i), [b'v'; 100]).unwrap();
        }
        db.compact_range::<&[u8]>(..).unwrap();
        let mut unkept = db.cursor_with(&ReadOptions::new().fill_cache(false)).unwrap();
        unkept.seek_to_first();
        while unkept.valid() {
            unkept.next();
        }
        drop(unkept);
        assert_eq!(cache.inserts.load(Ordering::Relaxed), 0);
        assert_eq!(db.stats().cache_used, 0);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let db = &db;
                scope.spawn(move || {
                    let mut cursor = db.cursor().unwrap();
                    cursor.seek_to_first();
                    for i in 0..ENTRIES {
                        assert_eq!(cursor.key(), key(i).as_bytes());
                        if i % 4 == thread {
                            assert_eq!(db.get_pinned(key(i)).unwrap().unwrap().len(), 100);
                            assert_eq!(db.get(key(ENTRIES - 1 - i)).unwrap().unwrap().len(), 100);
                        }
                        cursor.next();
                    }
                    assert!(!cursor.valid() && cursor.status().is_ok());
                });
            }
        });
        assert_eq!(cache.held.load(Ordering::Relaxed), 0, "limit {limit}");
        assert!(cache.lookups.load(Ordering::Relaxed) > cache.inserts.load(Ordering::Relaxed));
        assert_eq!(db.stats().cache_used, cache.used() as u64);
        let pinned = db.get_pinned(key(77)).unwrap().unwrap();
        assert_eq!(cache.held.load(Ordering::Relaxed), 1);
        db.close().unwrap();
        cache.blocks.lock().unwrap().clear();
        assert_eq!(*pinned, [b'v'; 100]);
        drop(pinned);
        assert_eq!(cache.held.load(Ordering::Relaxed), 0);
    }
}
