//! Tables and their parts, fed with arbitrary bytes. See [`crate::fuzzing`].

use std::path::Path;
use std::sync::Arc;

use super::block::Block;
use super::block_iter::BlockIter;
use super::buffer::Buffer;
use super::compression::{self, Compression, Compressor};
use super::counters::ReadCounters;
use super::filter_block::FilterBlockReader;
use super::format::BlockData;
use super::full_filter::{FullFilter, hash_key};
use super::index::Index;
use super::snappy;
use super::table_dictionary::TableDictionary;
use super::{BlockCache, Table, TableDump, TableOrder, TableReadSettings};
use crate::base::comparator::KeyOrder;
use crate::base::internal_key::{EntryKind, encode};
use crate::env::{Env, MemEnv, ReadAccess};
use crate::filter::BloomFilterPolicy;

/// Steps that bytes can reasonably justify.
fn limit(data: &[u8]) -> usize {
    2 * data.len() + 16
}

fn orders() -> [TableOrder; 2] {
    [TableOrder::internal(KeyOrder::default()), TableOrder::user(KeyOrder::default())]
}

/// Steps through a block both ways, looks for keys of it and for others, and takes it for an index.
pub(crate) fn block(data: &[u8]) {
    for order in orders() {
        let Ok(block) = Block::parse(BlockData::Owned(data.to_vec().into())) else { return };
        let block = Arc::new(block);
        let mut iter = BlockIter::new(order.tag_size());
        iter.set_block(Some(block.clone()));
        iter.seek_to_first();
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while iter.valid() && keys.len() < 2_000 {
            keys.push(iter.key().to_vec());
            assert!(keys.len() <= limit(data), "a block without an end");
            iter.next();
        }
        iter.seek_to_last();
        let mut back = 0;
        while iter.valid() && back < 200 {
            back += 1;
            iter.prev();
        }
        let others = [vec![0; 9], vec![0xff; 20], data.iter().rev().take(12).copied().collect()];
        for key in keys
            .iter()
            .step_by(keys.len() / 8 + 1)
            .chain(&others)
            .filter(|key| key.len() >= order.tag_size())
        {
            iter.seek(&order, key, None);
            for _ in 0..3 {
                iter.prev();
            }
            let _ = block.find(&order, key, None);
        }
        let _ = Index::decode(block, &order, data.len() as u64);
    }
}

/// Asks filters of both kinds.
pub(crate) fn filter(data: &[u8]) {
    let policy = Arc::new(BloomFilterPolicy::new(10));
    if let Some(filter) = FilterBlockReader::new(policy, BlockData::Owned(data.to_vec().into())) {
        for offset in [0, 1, 2048, 4096, data.len() as u64, u64::from(u32::MAX), u64::MAX] {
            let _ = filter.key_may_match(offset, b"key");
            let _ = filter.key_may_match(offset, data);
        }
    }
    if let Some(filter) = FullFilter::new(BlockData::Owned(data.to_vec().into())) {
        for hash in [0, 1, u64::MAX, hash_key(data)] {
            let _ = filter.may_match(hash);
        }
    }
}

/// Decompresses by each method, snappy as its library does, and compresses and decompresses again.
pub(crate) fn compression(data: &[u8]) {
    if let Ok((length, _)) = snappy::split_header(data) {
        let mut output = vec![0; length];
        let decoded = snap::raw::Decoder::new().decompress(data, &mut output);
        let ours = compression::decompress(compression::SNAPPY, data).ok();
        let ours = ours.as_ref().map(Buffer::as_slice);
        assert_eq!(ours, decoded.ok().map(|length| &output[..length]));
    }
    for kind in (1..=5).chain([compression::LZ4]) {
        let _ = compression::decompress(kind, data);
    }
    // A dictionary, with its size before it and a block behind it.
    if let Some((&[low, high], rest)) = data.split_first_chunk::<2>() {
        let size = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (bytes, block) = rest.split_at(size);
        let dictionary = TableDictionary::new(bytes);
        let _ = dictionary.decompress(compression::ZSTD_WITH_DICTIONARY, block);
    }
    for setting in [Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let Some((kind, longest)) = Compressor::bound(setting, data.len()) else { continue };
        let mut packed = vec![0; longest];
        let size = Compressor::new().compress(setting, data, &mut packed);
        let Some(packed) = size.map(|size| &packed[..size]) else { continue };
        let unpacked =
            compression::decompress(kind, packed).expect("what was compressed can be decompressed");
        assert_eq!(unpacked.as_slice(), data, "{setting:?}");
    }
}

/// Opens a table, steps through it both ways and looks for keys.
pub(crate) fn table(data: &[u8]) {
    let env = MemEnv::new();
    env.write("table", data.to_vec());
    for (order, access) in orders().into_iter().zip([ReadAccess::Mapped, ReadAccess::Pread]) {
        let settings = TableReadSettings {
            order: order.clone(),
            filter_policy: Some(Arc::new(BloomFilterPolicy::new(10))),
            cache: BlockCache::new(1 << 16),
            counters: Arc::<ReadCounters>::default(),
            policy: Arc::default(),
            account: None,
        };
        let file = env.open_random(Path::new("table"), access).expect("it is there");
        let Ok(table) = Table::open(file, "table".to_owned(), settings) else { continue };
        let table = Arc::new(table);
        table.for_each_meta_block(&mut |_, _, _| ());
        let mut iter = table.iter(true);
        iter.seek_to_first();
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while iter.valid() && keys.len() < 2_000 {
            keys.push(iter.key().to_vec());
            iter.next();
        }
        iter.seek_to_last();
        for _ in 0..50 {
            iter.prev();
        }
        let other = encode(b"key", 7, EntryKind::Value);
        for key in keys.iter().step_by(keys.len() / 8 + 1).chain([&other]) {
            iter.seek(key);
            iter.prev();
            let user_key = order.user_key(key);
            let _ = table.get(key, hash_key(user_key), true);
            let _ = table.may_contain(user_key);
            let _ = table.approximate_offset_of(key);
        }
    }
}

/// The parts of a sound table, as examples: blocks as the file holds them with how they are
/// compressed, and unpacked.
pub(crate) fn parts(data: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let env = MemEnv::new();
    env.write("table", data.to_vec());
    let file = env.open_random(Path::new("table"), ReadAccess::Pread).expect("it is there");
    let Ok(table) = TableDump::open(file, "table".to_owned()) else { return Vec::new() };
    let mut parts = Vec::new();
    let mut handles = vec![table.index(), table.metaindex()];
    for top in [table.index(), table.metaindex()] {
        handles.extend(table.list(top).0.into_iter().filter_map(|(_, handle)| handle));
    }
    for handle in handles {
        let (start, end) = (handle.offset as usize, (handle.offset + handle.size) as usize);
        let Some(stored) = data.get(start..end) else { continue };
        match data.get(end) {
            Some(&compression::RAW) => parts
                .push((if stored.ends_with(&[11]) { "filter" } else { "block" }, stored.to_vec())),
            Some(&kind) => {
                parts.push(("compression", stored.to_vec()));
                if let Ok(unpacked) = compression::decompress(kind, stored) {
                    parts.push(("block", unpacked.as_slice().to_vec()));
                }
            }
            None => {}
        }
    }
    parts
}
