//! The table against a `BTreeMap`, and under concurrent readers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::check::check;
use super::*;
use crate::base::comparator::{Comparator, KeyOrder};
use crate::base::internal_key::{MAX_SEQUENCE, ParsedKey, encode};

/// A small generator: the same seed, the same test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

struct Reverse;

impl Comparator for Reverse {
    fn name(&self) -> &str {
        "test.Reverse"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

/// Keys in order, and of each the tags in descending order.
type Model = BTreeMap<(Vec<u8>, std::cmp::Reverse<u64>), Vec<u8>>;

/// Keys that differ in few places: early, late, or in length only.
fn random_key(random: &mut Random, shape: u64) -> Vec<u8> {
    match shape {
        0 => format!("{:016}", random.below(500)).into_bytes(),
        1 => (0..random.below(5)).map(|_| [0, 1, 0xff][random.below(3) as usize]).collect(),
        2 => {
            let mut key = vec![b'p'; 14 + random.below(12) as usize];
            key.extend((0..random.below(4)).map(|_| random.below(3) as u8));
            key
        }
        3 => random.below(1 << 20).to_be_bytes().to_vec(),
        4 => random.below(1 << 20).to_le_bytes().to_vec(),
        5 => vec![0; random.below(40) as usize],
        // Prefixes within prefixes, some longer than a node can skip.
        6 => {
            let mut key = Vec::new();
            for _ in 0..random.below(5) {
                let part = [&b"a"[..], b"tenant/", b"user:0000000", &[b'x'; 130]]
                    [random.below(4) as usize];
                key.extend_from_slice(part);
            }
            key.extend_from_slice(&(random.below(3000) as u16).to_be_bytes());
            key
        }
        // Groups that share much, and single keys between them.
        7 => {
            let group = random.below(20) as u8;
            let within = random.below(500) as u16;
            if random.below(20) == 0 {
                vec![group, 9]
            } else {
                [&[group][..], &[7; 20], &within.to_be_bytes()].concat()
            }
        }
        _ => {
            let shape = random.below(8);
            random_key(random, shape)
        }
    }
}

/// A user key, a tag and a value.
type Entry = (Vec<u8>, u64, Vec<u8>);

/// Compares without printing thousands of entries.
fn assert_same(found: &[Entry], expected: &[Entry]) {
    let differs = found.iter().zip(expected).position(|(a, b)| a != b);
    assert_eq!(differs.map(|at| (at, &found[at], &expected[at])), None);
    assert_eq!(found.len(), expected.len());
}

fn entry(iter: &MemTableIter) -> Entry {
    let (key, tag) = split(iter.key()).expect("an internal key");
    (key.to_vec(), tag, iter.value().to_vec())
}

fn matches_model(table: &Arc<MemTable>, model: &Model, random: &mut Random, shape: u64, last: u64) {
    assert_eq!(table.len(), model.len());
    assert_eq!(check(&table.tree), model.len());
    let expected: Vec<_> =
        model.iter().map(|((key, tag), value)| (key.clone(), tag.0, value.clone())).collect();
    let mut iter = table.iter();
    assert!(!iter.valid());
    let mut forward = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        forward.push(entry(&iter));
        iter.next();
    }
    assert_same(&forward, &expected);
    let mut backward = Vec::new();
    iter.seek_to_last();
    while iter.valid() {
        backward.push(entry(&iter));
        iter.prev();
    }
    backward.reverse();
    assert_same(&backward, &expected);
    for _ in 0..200 {
        let key = random_key(random, shape);
        let sequence = random.below(last + 2);
        let at = (key.clone(), std::cmp::Reverse(pack_tag(sequence, EntryKind::Value)));
        let found = model
            .range(at.clone()..)
            .next()
            .map(|((key, tag), value)| (key.clone(), tag.0, value.clone()));
        let got = table.get(&key, sequence).map(|(tag, value)| (key.clone(), tag, value.to_vec()));
        assert_eq!(got, found.clone().filter(|(found, ..)| *found == key));
        iter.seek(&encode(&key, sequence, EntryKind::Value));
        assert_eq!(iter.valid().then(|| entry(&iter)), found);
        // Steps in both directions from there.
        let mut position = model.range(..at).count();
        for _ in 0..random.below(6) {
            if !iter.valid() {
                break;
            }
            if random.below(2) == 0 {
                iter.next();
                position += 1;
            } else {
                iter.prev();
                position = position.wrapping_sub(1);
            }
            assert_eq!(iter.valid().then(|| entry(&iter)), expected.get(position).cloned());
        }
    }
}

#[test]
fn equals_a_map() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut random = Random(seed);
        let shape = random.below(9);
        let (mut writer, table) = MemTable::new(InternalOrder::default(), 1 << random.below(20));
        let mut model = Model::new();
        let operations = 1 + random.below(3000);
        let mut deletions = 0;
        for sequence in 1..=operations {
            let key = random_key(&mut random, shape);
            let deletes = random.below(4) == 0;
            let kind = if deletes { EntryKind::Deletion } else { EntryKind::Value };
            let value =
                if deletes { Vec::new() } else { vec![sequence as u8; random.below(40) as usize] };
            deletions += usize::from(deletes);
            writer.insert(sequence, kind, &key, &value);
            model.insert((key, std::cmp::Reverse(pack_tag(sequence, kind))), value);
        }
        assert_eq!(table.deletions(), deletions);
        matches_model(&table, &model, &mut random, shape, operations);
    }
}

#[test]
fn keys_in_order_and_in_reverse() {
    for reverse in [false, true] {
        let (mut writer, table) = MemTable::new(InternalOrder::default(), 1 << 20);
        let mut model = Model::new();
        for n in 0..5000u64 {
            let number = if reverse { 5000 - n } else { n };
            let key = format!("{number:016}").into_bytes();
            writer.insert(n, EntryKind::Value, &key, b"v");
            model.insert((key, std::cmp::Reverse(pack_tag(n, EntryKind::Value))), b"v".to_vec());
        }
        matches_model(&table, &model, &mut Random(1), 0, 5000);
    }
}

#[test]
fn a_successor_uses_memory_again_and_starts_empty() {
    let (mut writer, mut table) = MemTable::new(InternalOrder::default(), 1 << 16);
    for round in 0..5u64 {
        let mut model = Model::new();
        assert!(table.is_empty());
        for n in 0..700 {
            let key = ((n * 7919 + round) % 701).to_be_bytes().to_vec();
            writer.insert(n, EntryKind::Value, &key, &[round as u8; 30]);
            model.insert(
                (key, std::cmp::Reverse(pack_tag(n, EntryKind::Value))),
                vec![round as u8; 30],
            );
        }
        let (next_writer, next_table) = writer.successor();
        matches_model(&table, &model, &mut Random(round), 3, 700);
        (writer, table) = (next_writer, next_table);
    }
}

#[test]
fn a_custom_order_is_kept() {
    let (mut writer, table) =
        MemTable::new(InternalOrder::new(KeyOrder::new(Arc::new(Reverse))), 1 << 20);
    let mut random = Random(7);
    let mut keys: Vec<u64> = (0..2000).collect();
    for at in (1..keys.len()).rev() {
        keys.swap(at, random.below(at as u64 + 1) as usize);
    }
    for (sequence, key) in keys.iter().enumerate() {
        writer.insert(sequence as u64, EntryKind::Value, &key.to_be_bytes(), b"");
    }
    let mut iter = table.iter();
    iter.seek_to_first();
    for key in (0..2000u64).rev() {
        assert_eq!(split(iter.key()).expect("an internal key").0, key.to_be_bytes());
        assert!(table.get(&key.to_be_bytes(), MAX_SEQUENCE).is_some());
        iter.next();
    }
    assert!(!iter.valid());
}

#[test]
fn the_newest_visible_version_is_found() {
    let (mut writer, table) = MemTable::new(InternalOrder::default(), 0);
    writer.insert(5, EntryKind::Value, b"", b"five");
    writer.insert(9, EntryKind::Deletion, b"", b"");
    writer.insert(7, EntryKind::Value, b"", b"seven");
    let get = |sequence| table.get(b"", sequence).map(|(tag, value)| (tag, value.to_vec()));
    assert_eq!(get(4), None);
    assert_eq!(get(6), Some((pack_tag(5, EntryKind::Value), b"five".to_vec())));
    assert_eq!(get(8), Some((pack_tag(7, EntryKind::Value), b"seven".to_vec())));
    assert_eq!(get(MAX_SEQUENCE), Some((pack_tag(9, EntryKind::Deletion), Vec::new())));
    assert_eq!((table.len(), table.deletions()), (3, 1));
}

#[test]
fn equal_internal_keys_are_kept_latest_first() {
    let (mut writer, table) = MemTable::new(InternalOrder::default(), 0);
    for n in 0..300u32 {
        writer.insert(1, EntryKind::Value, b"key", &n.to_le_bytes());
    }
    assert_eq!(check(&table.tree), 300);
    assert_eq!(
        table.get(b"key", 1).map(|(_, value)| value.to_vec()),
        Some(299u32.to_le_bytes().to_vec())
    );
    let mut iter = table.iter();
    iter.seek(&encode(b"key", 1, EntryKind::Value));
    for n in (0..300u32).rev() {
        assert_eq!(iter.value(), n.to_le_bytes());
        iter.next();
    }
    assert!(!iter.valid());
}

#[test]
fn big_values_are_counted_and_kept() {
    let (mut writer, table) = MemTable::new(InternalOrder::default(), 1 << 16);
    let before = table.memory_usage();
    let big = vec![0xab; 3 << 20];
    writer.insert(1, EntryKind::Value, &big, b"small");
    writer.insert(2, EntryKind::Value, b"small", &big);
    writer.insert(3, EntryKind::Value, b"z", b"z");
    assert_eq!(table.get(&big, 9).map(|(_, value)| value), Some(&b"small"[..]));
    assert_eq!(table.get(b"small", 9).map(|(_, value)| value), Some(&big[..]));
    let grown = table.memory_usage() - before;
    assert!((6 << 20..(6 << 20) + 4096).contains(&grown), "{grown}");
}

#[test]
fn iterators_outlive_writer_and_table() {
    let (mut writer, table) = MemTable::new(InternalOrder::default(), 0);
    writer.insert(1, EntryKind::Value, b"a", b"1");
    let mut iter = table.iter();
    drop((writer, table));
    iter.seek_to_first();
    assert_eq!(iter.value(), b"1");
    iter.prev();
    assert!(!iter.valid() && iter.key().is_empty());
}

/// Readers check all they may rely on while a writer goes on: what was published is there, in
/// order, and whole.
#[test]
fn readers_see_whole_entries_while_a_writer_adds() {
    const KEYS: u64 = 1000;
    const WRITES: u64 = 30_000;
    let (mut writer, table) = MemTable::new(InternalOrder::default(), 1 << 20);
    let published = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    // The key that write `n` goes to: a permutation for each round, so that each key's versions are
    // known.
    let key_of = |n: u64| {
        let k = (n * 7919) % KEYS;
        format!("{}{k:016}", ["", "group/one/", "group/two/of/longer/name/"][k as usize % 3])
            .into_bytes()
    };
    let value_of = |n: u64| n.to_le_bytes().repeat(1 + n as usize % 5);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (table, published, done) = (&table, &published, &done);
            scope.spawn(move || {
                let mut random = Random(reader);
                let mut iter = table.iter();
                while !done.load(Ordering::Acquire) {
                    let last = published.load(Ordering::Acquire);
                    if last == 0 {
                        continue;
                    }
                    let n = 1 + random.below(last);
                    let (tag, value) = table.get(&key_of(n), n).expect("published");
                    assert_eq!((tag, value), (pack_tag(n, EntryKind::Value), &value_of(n)[..]));
                    iter.seek(&encode(&key_of(n), n, EntryKind::Value));
                    let mut previous = iter.key().to_vec();
                    for step in 0..20 {
                        if reader == 0 {
                            iter.next()
                        } else {
                            iter.prev()
                        }
                        if !iter.valid() {
                            break;
                        }
                        let order = InternalOrder::default().compare(&previous, iter.key());
                        assert_eq!(order.is_lt(), reader == 0, "step {step} from write {n}");
                        let found = ParsedKey::parse(iter.key()).expect("an internal key");
                        assert_eq!(found.user_key, key_of(found.sequence));
                        assert_eq!(iter.value(), value_of(found.sequence));
                        previous = iter.key().to_vec();
                    }
                }
            });
        }
        scope.spawn(|| {
            for n in 1..=WRITES {
                writer.insert(n, EntryKind::Value, &key_of(n), &value_of(n));
                published.store(n, Ordering::Release);
            }
            done.store(true, Ordering::Release);
        });
    });
    assert_eq!(check(&table.tree) as u64, WRITES);
}
