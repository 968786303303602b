//! Tables as a whole: what was built is read back, and what was damaged is noticed.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::block_builder::BlockBuilder;
use super::block_iter::BlockIter;
use super::counters::ReadCounters;
use super::table_builder::FinishedTable;
use super::*;
use crate::base::comparator::{Comparator, KeyOrder};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::{EntryKind, MAX_SEQUENCE, TAG_SIZE, encode, pack_tag};
use crate::base::random::Random;
use crate::env::{RandomAccessFile, WritableFile};
use crate::filter::{BloomFilterPolicy, FilterPolicy};

struct MemoryFile {
    bytes: Vec<u8>,
    mapped: bool,
    /// The parts that were said not to be needed: offset and length.
    not_needed: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl RandomAccessFile for MemoryFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.mapped.then_some(&self.bytes[..])
    }

    fn not_needed(&self, offset: u64, length: u64) {
        self.not_needed.lock().expect("not poisoned").push((offset, length));
    }
}

#[derive(Clone, Default)]
struct Sink {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Bytes after which appending fails.
    capacity: Option<usize>,
}

impl WritableFile for Sink {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        let mut bytes = self.bytes.lock().expect("not poisoned");
        bytes.extend_from_slice(data);
        match self.capacity {
            Some(capacity) if bytes.len() > capacity => Err(Error::io_message("full")),
            _ => Ok(()),
        }
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn settings(order: TableOrder) -> TableSettings {
    TableSettings {
        order,
        block_size: 4096,
        restart_interval: 16,
        compression: Compression::Snappy,
        dictionary: None,
        filter_policy: None,
        full_filter_bits: 10,
        is_above_more: false,
        bytes_per_sync: 0,
        comparator: None,
        prefixes: None,
    }
}

fn build(settings: &TableSettings, entries: &[(Vec<u8>, Vec<u8>)]) -> (Vec<u8>, FinishedTable) {
    let sink = Sink::default();
    let mut builder = TableBuilder::new(Box::new(sink.clone()), settings);
    for (key, value) in entries {
        builder.add(key, value).expect("adds");
    }
    let finished = builder.finish().expect("finishes");
    let bytes = sink.bytes.lock().expect("not poisoned").clone();
    assert_eq!(finished.size, bytes.len() as u64);
    (bytes, finished)
}

fn open(
    bytes: Vec<u8>,
    mapped: bool,
    settings: &TableSettings,
    cache: usize,
) -> Result<Arc<Table>> {
    open_file(MemoryFile { bytes, mapped, not_needed: Arc::default() }, settings, cache)
}

fn open_file(file: MemoryFile, settings: &TableSettings, cache: usize) -> Result<Arc<Table>> {
    let read = TableReadSettings {
        order: settings.order.clone(),
        filter_policy: settings.filter_policy.clone(),
        cache: BlockCache::new(cache),
        counters: Arc::default(),
        policy: Arc::default(),
        account: None,
    };
    Table::open(Arc::new(file), "t.ldb".to_owned(), read).map(Arc::new)
}

fn get(table: &Table, key: &[u8], fill_cache: bool) -> Result<Option<TableHit>> {
    table.get(key, hash_key(table.order().user_key(key)), fill_cache)
}

/// Every block of the file, data blocks first: offset, size, and how it is.
fn for_each_block(table: &Table, visit: &mut dyn FnMut(u64, u64, Result<()>)) {
    for handle in table.index().handles() {
        let result = table.load(handle).and_then(|(block, _)| {
            let mut iter = BlockIter::new(table.order().tag_size());
            iter.set_block(Some(Arc::new(block)));
            iter.seek_to_first();
            while iter.valid() {
                iter.next();
            }
            iter.damage().map_or(Ok(()), |damage| Err(table.damaged(handle, damage)))
        });
        visit(handle.offset, handle.size, result);
    }
    table.for_each_meta_block(&mut |offset, size, result| visit(offset, size, result.map(drop)));
}

/// Bytewise, backwards, as a foreign order.
struct Reverse;

impl Comparator for Reverse {
    fn name(&self) -> &str {
        "reverse"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// Random internal or plain keys in the table's order: several versions of a key, keys that begin
/// others, long ones.
fn random_entries(random: &mut Random, order: &TableOrder) -> Vec<(Vec<u8>, Vec<u8>)> {
    let alphabet = [2, 5, 256][random.below(3)];
    let longest = [4, 12, 40][random.below(3)];
    let common = random.below(12);
    let prefix = random.bytes(common, 256);
    let count = random.below(400);
    let mut entries = Vec::new();
    for _ in 0..count {
        let length = random.below(longest);
        let mut key = prefix.clone();
        key.extend(random.bytes(length, alphabet));
        let value_length =
            if random.below(50) == 0 { random.below(9000) } else { random.below(60) };
        let value = random.bytes(value_length, 30);
        if order.is_internal() {
            for _ in 0..=random.below(3) {
                let kind =
                    if random.below(4) == 0 { EntryKind::Deletion } else { EntryKind::Value };
                entries.push((encode(&key, random.below(1000) as u64, kind), value.clone()));
            }
        } else {
            entries.push((key, value));
        }
    }
    entries.sort_by(|a, b| order.compare(&a.0, &b.0));
    entries.dedup_by(|a, b| a.0 == b.0);
    entries
}

fn random_settings(random: &mut Random) -> TableSettings {
    let keys =
        if random.below(4) == 0 { KeyOrder::new(Arc::new(Reverse)) } else { KeyOrder::default() };
    let order =
        if random.below(3) == 0 { TableOrder::user(keys) } else { TableOrder::internal(keys) };
    TableSettings {
        block_size: [1, 256, 1024, 4096, 65_536][random.below(5)],
        restart_interval: [1, 2, 16, 1000][random.below(4)],
        compression: [Compression::None, Compression::Snappy][random.below(2)],
        dictionary: None,
        filter_policy: (random.below(2) == 0).then(|| {
            Arc::new(BloomFilterPolicy::new(1 + random.below(20))) as Arc<dyn FilterPolicy>
        }),
        ..settings(order)
    }
}

#[test]
fn everything_comes_back_under_every_setting() {
    for seed in 1..=300u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let settings = random_settings(&mut random);
        let entries = random_entries(&mut random, &settings.order);
        let (bytes, finished) = build(&settings, &entries);
        assert_eq!(finished.properties.entries, entries.len() as u64, "seed {seed}");
        let cache = [0, 3000, 1 << 20][random.below(3)];
        let table = open(bytes, random.below(2) == 0, &settings, cache)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        check_scans(&table, &entries, seed);
        check_seeks(&table, &entries, &mut random, seed);
        check_gets(&table, &entries, &mut random, seed);
        for_each_block(&table, &mut |offset, _, result| {
            result.unwrap_or_else(|e| panic!("seed {seed}, {offset}: {e}"));
        });
        assert_eq!(
            table.properties(),
            settings.order.is_internal().then_some(finished.properties),
            "seed {seed}"
        );
    }
}

/// The output of a compaction of `table` alone, and how many of its blocks could be copied.
fn rewritten(table: &Arc<Table>, settings: &TableSettings) -> (Vec<u8>, usize) {
    let sink = Sink::default();
    let mut builder = TableBuilder::new(Box::new(sink.clone()), settings);
    let mut iter = table.iter(false);
    let mut lone = 0;
    iter.seek_to_first();
    while iter.valid() {
        lone += usize::from(iter.lone_block().is_some());
        builder.add_stored(iter.key(), iter.value(), || iter.lone_block()).expect("adds");
        iter.next();
    }
    iter.status().expect("reads");
    builder.finish().expect("finishes");
    let bytes = sink.bytes.lock().expect("not poisoned").clone();
    (bytes, lone)
}

#[test]
fn a_table_is_the_same_whether_blocks_are_copied_or_written_anew() {
    let mut lone = 0;
    for seed in 1..=200u64 {
        let mut random = Random(seed.wrapping_mul(0xd134_2543_de82_ef95));
        let source = random_settings(&mut random);
        let settings =
            TableSettings { order: source.order.clone(), ..random_settings(&mut random) };
        let mut entries = random_entries(&mut random, &source.order);
        for (_, value) in &mut entries {
            if random.below(3) == 0 {
                let letter = b'a' + random.below(26) as u8;
                value.resize(value.len() + random.below(9000), letter);
            }
        }
        let mapped = random.below(4) > 0;
        let table = open(build(&source, &entries).0, mapped, &source, 0).expect("opens");
        let (bytes, copied) = rewritten(&table, &settings);
        assert!(bytes == build(&settings, &entries).0, "seed {seed}");
        assert!(mapped || copied == 0, "seed {seed}");
        lone += copied;
    }
    assert!(lone > 10_000, "only {lone} blocks could be copied");
}

#[test]
fn only_a_lone_entry_has_a_block_to_itself() {
    let settings = settings(TableOrder::internal(KeyOrder::default()));
    let large = vec![b'v'; 5000];
    let values = [&large[..], b"small", &large, &large, &large[..10]];
    let entries: Vec<_> = (1..)
        .zip(values)
        .map(|(n, value)| (encode(&[n], 7, EntryKind::Value), value.to_vec()))
        .collect();
    let (bytes, _) = build(&settings, &entries);
    for mapped in [true, false] {
        let table = open(bytes.clone(), mapped, &settings, 0).expect("opens");
        let mut iter = table.iter(false);
        assert!(iter.lone_block().is_none());
        iter.seek_to_first();
        let mut alone = Vec::new();
        while iter.valid() {
            alone.push(iter.lone_block().is_some());
            iter.next();
        }
        assert_eq!(alone, if mapped { [true, false, false, true, true] } else { [false; 5] });
        assert!(iter.lone_block().is_none());
    }
}

fn check_scans(table: &Arc<Table>, entries: &[(Vec<u8>, Vec<u8>)], seed: u64) {
    let mut iter = table.iter(true);
    iter.seek_to_first();
    for (key, value) in entries {
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]), "seed {seed}");
        iter.next();
    }
    assert!(!iter.valid() && iter.status().is_ok(), "seed {seed}");
    iter.seek_to_last();
    for (key, value) in entries.iter().rev() {
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]), "seed {seed}");
        iter.prev();
    }
    assert!(!iter.valid() && iter.status().is_ok(), "seed {seed}");
    assert_eq!((iter.key(), iter.value()), (&[][..], &[][..]));
}

/// A key of the table, or one near it.
fn sought(random: &mut Random, entries: &[(Vec<u8>, Vec<u8>)], order: &TableOrder) -> Vec<u8> {
    let mut key = match entries.len() {
        0 => Vec::new(),
        count => entries[random.below(count)].0.clone(),
    };
    let user = key.len().saturating_sub(order.tag_size());
    match random.below(4) {
        0 => return key,
        1 => key.truncate(random.below(user + 1)),
        2 if user > 0 => {
            key.truncate(user);
            key[random.below(user)] = random.below(256) as u8;
        }
        _ => {
            key.truncate(user);
            key.push(random.below(256) as u8);
        }
    }
    if order.is_internal() {
        key.extend_from_slice(&pack_tag(random.below(1100) as u64, EntryKind::Value).to_le_bytes());
    }
    key
}

fn check_seeks(table: &Arc<Table>, entries: &[(Vec<u8>, Vec<u8>)], random: &mut Random, seed: u64) {
    let mut iter = table.iter(random.below(2) == 0);
    for _ in 0..200 {
        let target = sought(random, entries, table.order());
        let mut expected = entries
            .partition_point(|(key, _)| table.order().compare(key, &target) == Ordering::Less);
        iter.seek(&target);
        for _ in 0..12 {
            let here = entries.get(expected).map(|(key, value)| (&key[..], &value[..]));
            assert_eq!(
                iter.valid().then(|| (iter.key(), iter.value())),
                here,
                "seed {seed}, target {target:?}"
            );
            if here.is_none() {
                break;
            }
            if random.below(2) == 0 {
                iter.next();
                expected += 1;
            } else {
                iter.prev();
                expected = expected.wrapping_sub(1);
            }
        }
        iter.status().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

fn check_gets(table: &Arc<Table>, entries: &[(Vec<u8>, Vec<u8>)], random: &mut Random, seed: u64) {
    let order = table.order();
    // Again and again, so that blocks in the cache get their maps.
    for (key, value) in entries.iter().chain(entries).chain(entries) {
        let hit = get(table, key, random.below(2) == 0)
            .expect("reads")
            .unwrap_or_else(|| panic!("seed {seed}"));
        assert_eq!(hit.value.as_slice(), &value[..], "seed {seed}");
        assert!(table.may_contain(order.user_key(key)), "seed {seed}");
        assert_eq!(hit.value.detach().as_slice(), &value[..], "seed {seed}");
    }
    for _ in 0..60 {
        let target = sought(random, entries, order);
        let at = entries.partition_point(|(key, _)| order.compare(key, &target) == Ordering::Less);
        let expected =
            entries.get(at).filter(|(key, _)| order.user_key(key) == order.user_key(&target));
        let hit = get(table, &target, true).expect("reads");
        assert_eq!(
            hit.as_ref().map(|hit| hit.value.as_slice()),
            expected.map(|(_, value)| &value[..]),
            "seed {seed}, target {target:?}"
        );
        if let (true, Some(hit), Some((key, _))) = (order.is_internal(), hit, expected) {
            assert_eq!(hit.tag.to_le_bytes(), key[key.len() - TAG_SIZE..], "seed {seed}");
        }
    }
}

fn small_table(compression: Compression) -> (Vec<u8>, TableSettings, BTreeMap<Vec<u8>, Vec<u8>>) {
    let settings = TableSettings {
        block_size: 128,
        restart_interval: 4,
        compression,
        filter_policy: Some(Arc::new(BloomFilterPolicy::new(10))),
        ..settings(TableOrder::internal(KeyOrder::default()))
    };
    let entry = |n: u64| {
        (encode(format!("key{n:03}").as_bytes(), n, EntryKind::Value), vec![b'v'; n as usize % 17])
    };
    let entries: Vec<_> = (0..40).map(entry).collect();
    let (bytes, _) = build(&settings, &entries);
    (bytes, settings, entries.into_iter().collect())
}

/// Reads everything there is in `bytes`; whatever comes back is right or a corruption.
fn read_damaged(
    bytes: Vec<u8>,
    mapped: bool,
    settings: &TableSettings,
    truth: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> u32 {
    let corrupted = |error: Error| assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let table = match open(bytes, mapped, settings, 1 << 16) {
        Ok(table) => table,
        Err(error) => {
            corrupted(error);
            return 1;
        }
    };
    let mut damage = 0;
    let mut iter = table.iter(false);
    iter.seek_to_first();
    let mut expected = truth.iter();
    while iter.valid() {
        assert_eq!(expected.next(), Some((&iter.key().to_vec(), &iter.value().to_vec())));
        iter.next();
    }
    match iter.status() {
        Ok(()) => assert_eq!(expected.next(), None),
        Err(error) => {
            damage += 1;
            corrupted(error);
        }
    }
    iter.seek_to_last();
    let mut expected = truth.iter().rev();
    while iter.valid() {
        assert_eq!(expected.next(), Some((&iter.key().to_vec(), &iter.value().to_vec())));
        iter.prev();
    }
    match iter.status() {
        Ok(()) => assert_eq!(expected.next(), None),
        Err(error) => corrupted(error),
    }
    for (key, value) in truth {
        match get(&table, key, true) {
            Ok(hit) => assert_eq!(hit.expect("present").value.as_slice(), &value[..]),
            Err(error) => corrupted(error),
        }
    }
    for_each_block(&table, &mut |_, _, result| {
        if let Err(error) = result {
            damage += 1;
            corrupted(error);
        }
    });
    damage
}

#[test]
fn a_scan_that_reads_once_gives_back_what_lies_behind_and_nothing_else() {
    let order = TableOrder::internal(KeyOrder::default());
    let settings = TableSettings { compression: Compression::None, ..settings(order) };
    let entries: Vec<_> = (0..1000u32)
        .map(|n| (encode(format!("{n:08}").as_bytes(), 7, EntryKind::Value), vec![n as u8; 1000]))
        .collect();
    let (bytes, _) = build(&settings, &entries);
    let size = bytes.len() as u64;
    let not_needed = Arc::<Mutex<Vec<(u64, u64)>>>::default();
    let table =
        open_file(MemoryFile { bytes, mapped: true, not_needed: not_needed.clone() }, &settings, 0)
            .expect("opens");
    for once in [false, true] {
        let mut iter = table.iter(false);
        if once {
            iter = iter.read_once();
        }
        iter.seek_to_first();
        for (n, (key, value)) in entries.iter().enumerate() {
            assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]), "{n}");
            let back: u64 =
                not_needed.lock().expect("not poisoned").iter().map(|(_, length)| length).sum();
            // The entry here, and those before it, of a thousand bytes and some each.
            let here = n as u64 * 1000;
            assert!(back <= here + here / 20, "{back} bytes given back at {here}");
            assert!(!once || back + (300 << 10) >= here, "{back} bytes given back at {here}");
            iter.next();
        }
        assert!(!iter.valid() && iter.status().is_ok());
        iter.give_back();
        let mut said = not_needed.lock().expect("not poisoned");
        // One piece behind the other, up to the end.
        let end = said
            .iter()
            .try_fold(0, |end, &(offset, length)| (offset == end).then_some(end + length));
        assert_eq!(end, Some(if once { size } else { 0 }));
        assert!(said.len() == if once { 4 } else { 0 }, "{said:?}");
        said.clear();
    }
}

#[test]
fn every_flipped_byte_is_harmless_or_noticed() {
    for compression in [Compression::None, Compression::Snappy] {
        let (bytes, settings, truth) = small_table(compression);
        assert_eq!(read_damaged(bytes.clone(), true, &settings, &truth), 0);
        let padding = bytes.len() - 48..bytes.len() - 8;
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let noticed = read_damaged(damaged, at.is_multiple_of(2), &settings, &truth);
                assert!(
                    noticed > 0 || padding.contains(&at),
                    "byte {at} changed and nobody noticed"
                );
            }
        }
    }
}

#[test]
fn every_truncation_is_noticed() {
    let (bytes, settings, truth) = small_table(Compression::Snappy);
    for length in 0..bytes.len() {
        assert!(
            read_damaged(bytes[..length].to_vec(), length.is_multiple_of(2), &settings, &truth) > 0
        );
    }
}

/// Flips bytes and repairs the checksums after it, so that only the structure can tell.
#[test]
fn lies_with_good_checksums_do_not_panic() {
    let (bytes, settings, _) = small_table(Compression::None);
    let mut blocks = Vec::new();
    let table = open(bytes.clone(), true, &settings, 0).expect("opens");
    for_each_block(&table, &mut |offset, size, _| {
        blocks.push((offset as usize, size as usize));
    });
    let read_all = |bytes: Vec<u8>, at: usize| {
        let Ok(table) = open(bytes, at.is_multiple_of(2), &settings, 1 << 16) else { return };
        let mut iter = table.iter(true);
        iter.seek_to_first();
        (0..200).for_each(|_| iter.next());
        iter.seek_to_last();
        (0..200).for_each(|_| iter.prev());
        for n in 0..40 {
            let key = encode(format!("key{n:03}").as_bytes(), MAX_SEQUENCE, EntryKind::Value);
            let _ = get(&table, &key, true);
            iter.seek(&key);
            iter.prev();
            iter.prev();
        }
        for_each_block(&table, &mut |_, _, _| {});
    };
    for &(offset, size) in &blocks {
        for at in offset..offset + size {
            for flip in [0x01, 0x03, 0x10, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let trailer = format::trailer(&damaged[offset..offset + size], 0);
                damaged[offset + size..offset + size + 5].copy_from_slice(&trailer);
                read_all(damaged, at);
            }
        }
    }
}

#[test]
fn random_blocks_do_not_panic() {
    for seed in 1..=3000u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let size = random.below(200);
        let alphabet = [4, 16, 256][random.below(3)];
        let mut bytes = random.bytes(size, alphabet);
        for n in 0..random.below(4) {
            let restart = if n == 0 { 0 } else { random.below(size + 2) };
            bytes.extend_from_slice(&(restart as u32).to_le_bytes());
        }
        let restarts = random.below(5) as u32;
        bytes.extend_from_slice(&restarts.to_le_bytes());
        let data = format::BlockData::Owned(bytes.into());
        let Ok(block) = block::Block::parse(data) else { continue };
        let block = Arc::new(block);
        for order in
            [TableOrder::user(KeyOrder::default()), TableOrder::internal(KeyOrder::default())]
        {
            let _ = index::Index::decode(Arc::clone(&block), &order, 1 << 20);
            let mut iter = BlockIter::new(order.tag_size());
            iter.set_block(Some(Arc::clone(&block)));
            iter.seek_to_first();
            (0..100).for_each(|_| iter.next());
            iter.seek_to_last();
            (0..100).for_each(|_| iter.prev());
            for _ in 0..10 {
                let length = random.below(20);
                let target = random.bytes(length, 16);
                iter.seek(&order, &target, None);
                let _ = block.find(&order, &target, None);
                (0..5).for_each(|_| if random.below(2) == 0 { iter.prev() } else { iter.next() });
            }
        }
    }
}

#[test]
fn golden_bytes_of_a_table() {
    // What leveldb::TableBuilder of LevelDB 1.23 writes for these entries and options.
    let settings = TableSettings {
        block_size: 32,
        restart_interval: 2,
        compression: Compression::None,
        filter_policy: Some(Arc::new(BloomFilterPolicy::new(10))),
        ..settings(TableOrder::user(KeyOrder::default()))
    };
    let entries: Vec<(Vec<u8>, Vec<u8>)> =
        [("apple", "1"), ("apply", "22"), ("banana", ""), ("bandana", "xyz")]
            .map(|(k, v)| (k.into(), v.into()))
            .into();
    let (bytes, finished) = build(&settings, &entries);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN);
    assert_eq!((&finished.smallest[..], &finished.largest[..]), (&b"apple"[..], &b"bandana"[..]));
}

const GOLDEN: &str = "0005016170706c653104010279323200060062616e616e61000000000f00000002000000003933af3e00070362616e64616e6178797a0000000001000000000fa30c321650105c8011d10f0600000000090000000b000e1ca1d600220266696c7465722e6c6576656c64622e4275696c74696e426c6f6f6d46696c746572324312000000000100000000887aa10f00040262616e62002400010263291500000000090000000200000000e8085ded5a2f8e011b000000000000000000000000000000000000000000000000000000000000000000000057fb808b247547db";

#[test]
fn builders_refuse_disorder_and_stay_failed() {
    let order = TableOrder::internal(KeyOrder::default());
    let mut builder = TableBuilder::new(Box::new(Sink::default()), &settings(order.clone()));
    let kind = |result: Result<()>| result.map_err(|error| error.kind());
    builder.add(&encode(b"b", 5, EntryKind::Value), b"").expect("adds");
    assert_eq!(
        kind(builder.add(&encode(b"b", 5, EntryKind::Value), b"")),
        Err(ErrorKind::InvalidArgument)
    );
    assert_eq!(
        kind(builder.add(&encode(b"b", 6, EntryKind::Value), b"")),
        Err(ErrorKind::InvalidArgument)
    );
    assert_eq!(kind(builder.add(b"c", b"")), Err(ErrorKind::InvalidArgument));
    builder.add(&encode(b"b", 4, EntryKind::Value), b"").expect("adds");
    assert_eq!(builder.entries(), 2);
    assert_eq!(builder.file_size(), 0);
    builder.flush().expect("flushes");
    assert!(builder.file_size() > 0);
    builder.abandon();

    let full = Sink { capacity: Some(10), ..Sink::default() };
    let mut builder = TableBuilder::new(Box::new(full), &settings(order));
    builder.add(&encode(b"k", 1, EntryKind::Value), &[7; 200]).expect("only collected");
    assert_eq!(kind(builder.flush()), Err(ErrorKind::Io));
    assert_eq!(kind(builder.add(&encode(b"l", 1, EntryKind::Value), b"")), Err(ErrorKind::Io));
    assert!(builder.finish().is_err());
}

#[test]
fn foreign_and_missing_filters_are_ignored() {
    struct Other;
    impl FilterPolicy for Other {
        fn name(&self) -> &str {
            "other"
        }
        fn create_filter(&self, _: &[&[u8]], _: &mut Vec<u8>) {}
        fn key_may_match(&self, _: &[u8], _: &[u8]) -> bool {
            false
        }
    }
    let (bytes, mut settings, truth) = small_table(Compression::None);
    settings.filter_policy = Some(Arc::new(Other));
    assert_eq!(read_damaged(bytes.clone(), true, &settings, &truth), 0);
    settings.filter_policy = None;
    assert_eq!(read_damaged(bytes, true, &settings, &truth), 0);
}

/// Seven bytes of the metaindex stand for a key of 100,000: two gigabytes in all.
#[test]
fn a_metaindex_of_keys_out_of_proportion_costs_the_meta_blocks() {
    let (mut bytes, settings, truth) = small_table(Compression::None);
    let file = |bytes: &[u8]| MemoryFile {
        bytes: bytes.to_vec(),
        mapped: true,
        not_needed: Arc::default(),
    };
    let sound = TableDump::open(Arc::new(file(&bytes)), "t.ldb".to_owned()).expect("a table");
    let (listed, whole) = sound.list(sound.metaindex());
    whole.expect("sound");
    assert!(open(bytes.clone(), true, &settings, 0).expect("opens").properties().is_some());

    let mut metaindex = BlockBuilder::new(usize::MAX);
    let mut handle = Vec::new();
    for (name, block) in &listed {
        handle.clear();
        block.expect("in the file").encode(&mut handle);
        metaindex.add(name, &handle);
    }
    let long = vec![b'x'; 100_000];
    metaindex.add(&long, &handle);
    (1..20_000).for_each(|_| metaindex.add_sharing(long.len(), &long, &handle));
    let block = metaindex.finish();
    assert!(block.len() < 300_000, "{} bytes", block.len());
    bytes.truncate(bytes.len() - format::FOOTER_SIZE);
    let handle = BlockHandle { offset: bytes.len() as u64, size: block.len() as u64 };
    bytes.extend_from_slice(block);
    bytes.extend_from_slice(&format::trailer(block, 0));
    format::Footer { metaindex: handle, index: sound.index() }.encode(&mut bytes);

    let table = open(bytes.clone(), true, &settings, 0).expect("opens");
    assert!(table.properties().is_none());
    for (key, value) in &truth {
        let hit = get(&table, key, false).expect("reads").expect("there");
        assert_eq!(hit.value.as_slice(), value.as_slice());
    }
    let mut visited = Vec::new();
    table.for_each_meta_block(&mut |offset, _, result| visited.push((offset, result)));
    assert_eq!(visited.len(), 2, "metaindex and index");
    let error = visited[0].1.as_ref().expect_err("out of proportion").to_string();
    assert!(
        visited[0].0 == handle.offset
            && error.contains("t.ldb")
            && error.contains("out of proportion"),
        "{error}"
    );

    let table_dump = TableDump::open(Arc::new(file(&bytes)), "t.ldb".to_owned()).expect("a table");
    let (listed, whole) = table_dump.list(table_dump.metaindex());
    assert!(
        listed.len() < 100
            && whole.is_err_and(|error| error.message().contains("out of proportion"))
    );
}

#[test]
fn counters_tell_what_reads_did() {
    let (bytes, settings, truth) = small_table(Compression::Snappy);
    let counters = Arc::new(ReadCounters::default());
    let read = TableReadSettings {
        order: settings.order.clone(),
        filter_policy: settings.filter_policy.clone(),
        cache: BlockCache::new(1 << 20),
        counters: Arc::clone(&counters),
        policy: Arc::default(),
        account: None,
    };
    let file = MemoryFile { bytes, mapped: true, not_needed: Arc::default() };
    let table = Table::open(Arc::new(file), "t.ldb".to_owned(), read).expect("opens");
    for _ in 0..2 {
        for key in truth.keys() {
            assert!(get(&table, key, true).expect("reads").is_some());
        }
    }
    for n in 0..30 {
        let absent = encode(format!("key{n:03}?").as_bytes(), MAX_SEQUENCE, EntryKind::Value);
        assert!(get(&table, &absent, true).expect("reads").is_none());
    }
    let totals = counters.totals();
    assert_eq!(totals.filter_checked, 110);
    assert!(totals.filter_useful > 25, "{totals:?}");
    assert!(totals.cache_misses <= 40 && totals.cache_misses > 5, "{totals:?}");
    assert_eq!(totals.cache_hits + totals.cache_misses + totals.filter_useful, 110);
}

/// A read that leaves the cache to others does not count as one of those that let a block into a
/// full one; of the others the second does.
#[test]
fn a_full_cache_admits_a_block_at_the_second_read_that_fills_it() {
    let settings = settings(TableOrder::internal(KeyOrder::default()));
    let entries: Vec<_> = (0..2000)
        .map(|number| {
            (encode(format!("{number:06}").as_bytes(), 1, EntryKind::Value), vec![b'v'; 100])
        })
        .collect();
    let table = open(build(&settings, &entries).0, true, &settings, 20 << 10).expect("opens");
    let read = |at: usize, fill_cache| {
        let hit = get(&table, &entries[at].0, fill_cache).expect("reads").expect("is there");
        assert_eq!(hit.value.as_slice(), entries[at].1);
    };
    (0..1000).for_each(|at| read(at, true));
    let block = table.index().search(table.order(), &entries[1900].0).at;
    let is_cached = || table.cached_block(block).is_some();
    for (fill_cache, cached) in [(false, false), (false, false), (true, false), (true, true)] {
        read(1900, fill_cache);
        assert_eq!(is_cached(), cached);
    }
}

/// Of what a long scan passes, the cache keeps what would take long to load again, and what weighs
/// little. Where a seek lands, and what lies next to it, is kept.
#[test]
fn what_a_long_scan_passes_is_kept_where_it_is_dear() {
    const LONG: u64 = 64 << 10;
    let mut random = Random(7);
    let mut entries_of = |letters: usize| -> Vec<_> {
        (0..5000)
            .map(|number| {
                let key = format!("{number:06}");
                let half = random.bytes(50, letters);
                (encode(key.as_bytes(), 1, EntryKind::Value), [&half[..], &half[..]].concat())
            })
            .collect()
    };
    // The last ones are compressed in many small pieces.
    let (quick, slow) = (entries_of(256), entries_of(3));
    for (entries, compression, mapped, keeps_all) in [
        (&quick, Compression::Snappy, true, false),
        (&quick, Compression::Lz4, true, true),
        (&quick, Compression::None, true, true),
        (&quick, Compression::Snappy, false, true),
        (&slow, Compression::Snappy, true, true),
    ] {
        let order = TableOrder::internal(KeyOrder::default());
        let settings = TableSettings { compression, ..settings(order) };
        let bytes = build(&settings, entries).0;
        for backward in [false, true] {
            let table = open(bytes.clone(), mapped, &settings, 10 << 20).expect("opens");
            let handles: Vec<_> = table.index().handles().collect();
            assert!(handles.last().expect("blocks").offset > 2 * LONG);
            let mut iter = table.iter(true);
            if backward {
                iter.seek_to_last()
            } else {
                iter.seek_to_first()
            }
            let mut count = 0;
            while iter.valid() {
                count += 1;
                if backward { iter.prev() } else { iter.next() }
            }
            assert_eq!(count, entries.len());
            let from_last = |at: usize| if backward { handles.len() - 1 - at } else { at };
            let mut passed = 0;
            for step in 0..handles.len() {
                let at = from_last(step);
                passed += if step > 0 { handles[at].size } else { 0 };
                let kept = keeps_all || passed < LONG;
                let is_cached = table.cached_block(at).is_some();
                assert_eq!(is_cached, kept, "{compression:?}, {mapped}, {backward}: block {at}");
            }
            // Any seek begins anew, also of an iterator that has left the table.
            if backward {
                iter.seek_to_first()
            } else {
                iter.seek_to_last()
            }
            assert!(table.cached_block(from_last(handles.len() - 1)).is_some());
            let middle = &entries[entries.len() / 2].0;
            iter.seek(middle);
            assert!(table.cached_block(table.index().search(table.order(), middle).at).is_some());
        }
    }
}
