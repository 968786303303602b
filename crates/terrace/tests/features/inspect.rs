//! Inspection of single files: what it finds in sound ones, and that no bytes at all make it fall
//! over.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use terrace::inspect::{self, Effect, FileKind, LogItem, ManifestItem, TableItem};
use terrace::{
    BloomFilterPolicy, Compression, CreateOptions, Db, ErrorKind, Options, PosixEnv, WriteBatch,
    WriteOptions,
};
use terrace_testkit::rng::Rng;

/// A database with one table, and a log with a batch, a durability mark and another batch.
fn sample(dir: &Path) -> Options {
    let filter = std::sync::Arc::new(BloomFilterPolicy::new(10));
    let options = Options::new().create_if_missing(true).filter_policy(Some(filter));
    let db = Db::open(dir, options.clone()).expect("opens");
    for i in 0..1000 {
        db.put(format!("key{i:04}"), format!("value {i}")).expect("put");
    }
    db.delete("key0500").expect("deleted");
    db.flush().expect("flushed");
    let mut batch = WriteBatch::new();
    batch.put("a", "1");
    batch.delete("b");
    db.write_with(&batch, WriteOptions::sync()).expect("written");
    db.put("c", "").expect("put");
    db.close().expect("closed");
    options
}

fn file(dir: &Path, fits: impl Fn(&str) -> bool) -> PathBuf {
    let names = dir.read_dir().expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> =
        names.filter(|path| fits(&path.file_name().expect("a name").to_string_lossy())).collect();
    files.sort();
    files.pop().expect("such a file")
}

fn table(dir: &Path) -> PathBuf {
    file(dir, |name| name.ends_with(".ldb"))
}

fn log(dir: &Path) -> PathBuf {
    file(dir, |name| name.ends_with(".log"))
}

fn manifest(dir: &Path) -> PathBuf {
    file(dir, |name| name.starts_with("MANIFEST-"))
}

#[test]
fn a_sound_table_is_shown_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = sample(dir.path());
    let path = table(dir.path());
    let (mut blocks, mut keys, mut deleted) = (0, Vec::new(), Vec::new());
    let summary = inspect::table(&path, &options, &mut |item| {
        match item {
            TableItem::Block(block) => blocks += block.entries,
            TableItem::Entry(entry) if entry.effect == Effect::Delete => {
                deleted.push(entry.key.to_vec())
            }
            TableItem::Entry(entry) => {
                let number: u64 =
                    String::from_utf8_lossy(&entry.key[3..]).parse().expect("a number");
                assert_eq!(entry.value, format!("value {number}").into_bytes());
                assert_eq!(entry.sequence, number + 1);
                keys.push(entry.key.to_vec());
            }
            other => panic!("{other:?}"),
        }
        ControlFlow::Continue(())
    });
    let summary = summary.expect("a table");
    assert!(keys.is_sorted() && deleted == [b"key0500"]);
    assert_eq!(
        (summary.entries, summary.deletions, blocks, summary.damages),
        (keys.len() as u64 + 1, 1, summary.entries, 0)
    );
    assert_eq!(summary.bounds, Some((b"key0000".to_vec(), b"key0999".to_vec())));
    assert_eq!(summary.sequences, Some((1, 1001)));
    assert_eq!(summary.file_size, fs::metadata(&path).expect("a file").len());
    assert_eq!(summary.filter_name(), Some("leveldb.BuiltinBloomFilter2"));
    assert!(summary.has_table_filter());
    assert_eq!(
        inspect::filter_name(&path, &options).expect("a table").as_deref(),
        summary.filter_name()
    );
    let mut seen = 0;
    let stopped = inspect::table(&path, &options, &mut |_| {
        seen += 1;
        ControlFlow::Break(())
    });
    assert_eq!((seen, stopped.expect("a table").entries), (1, 0));
}

#[test]
fn a_sound_log_and_manifest_are_shown_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = sample(dir.path());
    let (mut batches, mut marks, mut operations) = (Vec::new(), 0, Vec::new());
    let summary = inspect::log(&log(dir.path()), &options, &mut |item| {
        match item {
            LogItem::Batch(batch) if batch.is_mark() => marks += 1,
            LogItem::Batch(batch) => batches.push((batch.sequence, batch.operations)),
            LogItem::Operation(operation) => {
                operations.push((
                    operation.sequence,
                    operation.key.to_vec(),
                    operation.value.map(<[u8]>::to_vec),
                ));
            }
            other => panic!("{other:?}"),
        }
        ControlFlow::Continue(())
    });
    let summary = summary.expect("a log");
    assert_eq!(batches, [(1002, 2), (1004, 1)]);
    assert_eq!(
        operations,
        [
            (1002, b"a".to_vec(), Some(b"1".to_vec())),
            (1003, b"b".to_vec(), None),
            (1004, b"c".to_vec(), Some(Vec::new()))
        ]
    );
    assert!(marks >= 1 && summary.marks == marks);
    assert_eq!((summary.batches, summary.operations, summary.deletions), (2, 3, 1));
    assert_eq!((summary.sequences, summary.torn, summary.damages), (Some((1002, 1004)), false, 0));

    let mut added = Vec::new();
    let summary = inspect::manifest(&manifest(dir.path()), &options, &mut |item| {
        match item {
            ManifestItem::Edit(edit) => added.extend(edit.added),
            other => panic!("{other:?}"),
        }
        ControlFlow::Continue(())
    });
    let summary = summary.expect("a MANIFEST");
    assert_eq!(summary.comparator.as_deref(), Some("leveldb.BytewiseComparator"));
    assert_eq!(
        (summary.tables.iter().sum::<usize>(), summary.tables.len(), summary.damages),
        (1, 7, 0)
    );
    let table = added.last().expect("a table");
    assert_eq!((&table.smallest[..], &table.largest[..]), (&b"key0000"[..], &b"key0999"[..]));
}

#[test]
fn contents_tell_the_kind_where_the_name_does_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = sample(dir.path());
    let stranger = dir.path().join("stranger");
    for (path, kind) in [
        (table(dir.path()), FileKind::Table),
        (log(dir.path()), FileKind::Log),
        (manifest(dir.path()), FileKind::Manifest),
    ] {
        assert_eq!(inspect::kind(&path, &options).expect("readable"), Some(kind));
        fs::copy(&path, &stranger).expect("copied");
        assert_eq!(inspect::kind(&stranger, &options).expect("readable"), Some(kind));
    }
    fs::write(&stranger, "just text").expect("written");
    assert_eq!(inspect::kind(&stranger, &options).expect("readable"), None);
    let error = inspect::table(&stranger, &options, &mut |_| ControlFlow::Continue(()))
        .expect_err("no table");
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let error = inspect::kind(&dir.path().join("nowhere"), &options).expect_err("no file");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// Damages of a file as any of the three sees it, and whether it is torn; `None` if it is not of
/// that kind at all.
fn damages(path: &Path, options: &Options, kind: FileKind) -> Option<(u64, bool)> {
    let mut shown = 0;
    let counted = match kind {
        FileKind::Table => inspect::table(path, options, &mut |item| {
            shown += u64::from(matches!(item, TableItem::Damage(_)));
            ControlFlow::Continue(())
        })
        .map(|summary| (summary.damages, false)),
        FileKind::Log => inspect::log(path, options, &mut |item| {
            shown += u64::from(matches!(item, LogItem::Damage(_)));
            ControlFlow::Continue(())
        })
        .map(|summary| (summary.damages, summary.torn)),
        _ => inspect::manifest(path, options, &mut |item| {
            shown += u64::from(matches!(item, ManifestItem::Damage(_)));
            ControlFlow::Continue(())
        })
        .map(|summary| (summary.damages, summary.torn)),
    };
    match counted {
        Ok((counted, torn)) => {
            assert_eq!(counted, shown);
            Some((counted, torn))
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            None
        }
    }
}

#[test]
fn damage_is_shown_and_nothing_panics() {
    const SEED: u64 = 0x1a5_9ec7;
    let dir = tempfile::tempdir().expect("a directory");
    let options = sample(dir.path());
    let stranger = dir.path().join("stranger");
    let mut rng = Rng::new(SEED);
    for (path, kind) in [
        (table(dir.path()), FileKind::Table),
        (log(dir.path()), FileKind::Log),
        (manifest(dir.path()), FileKind::Manifest),
    ] {
        let sound = fs::read(&path).expect("readable");
        for round in 0..300 {
            let mut bytes = sound.clone();
            let at = rng.below(bytes.len());
            if round % 4 == 0 {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << rng.below(8);
            }
            fs::write(&stranger, &bytes).expect("written");
            for other in [FileKind::Table, FileKind::Log, FileKind::Manifest] {
                let found = damages(&stranger, &options, other);
                // A flipped bit in a table is always somewhere under a checksum, or in the footer's
                // padding.
                if other == kind
                    && round % 4 != 0
                    && (kind != FileKind::Table || at + 48 < bytes.len())
                {
                    assert_ne!(
                        found,
                        Some((0, false)),
                        "seed {SEED}, {kind:?}, round {round}, offset {at}"
                    );
                }
            }
        }
    }
}

/// Breaks off after each number of pieces, until all are shown.
fn breaks_off_anywhere(mut inspect: impl FnMut(&mut dyn FnMut() -> ControlFlow<()>)) {
    for limit in 1.. {
        let mut seen = 0;
        inspect(&mut || {
            seen += 1;
            if seen == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(seen <= limit, "{seen} pieces were shown instead of {limit}");
        if seen < limit {
            return;
        }
    }
}

#[test]
fn an_inspection_ends_where_it_is_told_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let options =
        Options::new().create_if_missing(true).block_size(1 << 10).compression(Compression::None);
    let db = Db::open(dir.path(), options.clone()).expect("opens");
    (0..40).for_each(|i| db.put(format!("key{i}"), [i; 50]).expect("put"));
    db.flush().expect("flushed");
    (0..9).for_each(|i| {
        db.put_with(format!("key{i}"), "", WriteOptions { sync: i % 3 == 0 }).expect("put")
    });
    db.close().expect("closed");
    let damage = |path: &Path, places: &[usize]| {
        let mut bytes = fs::read(path).expect("readable");
        places.iter().for_each(|&at| bytes[at] ^= 1);
        fs::write(path, bytes).expect("written");
    };
    breaks_off_anywhere(|step| {
        inspect::table(&table(dir.path()), &options, &mut |_| step()).expect("a table");
    });
    // Damage in a data block, in the filter, in the metaindex and in the index, by what the table
    // itself says.
    let sound = inspect::table(&table(dir.path()), &options, &mut |_| ControlFlow::Continue(()))
        .expect("a table");
    let (index, metaindex) = (sound.index.offset as usize, sound.metaindex.offset as usize);
    let filter = sound.meta_blocks[0].1.offset as usize;
    for places in
        [&[5][..], &[filter], &[metaindex], &[index], &[5, filter], &[5, metaindex, index]]
    {
        damage(&table(dir.path()), places);
        let mut damages = Vec::new();
        breaks_off_anywhere(|step| {
            damages.clear();
            let summary = inspect::table(&table(dir.path()), &options, &mut |item| {
                if let TableItem::Damage(damage) = item {
                    damages.push(damage.offset);
                }
                step()
            });
            assert_eq!(summary.expect("a table").damages, damages.len() as u64);
        });
        // Without the index no block is found.
        let expected = if places.contains(&index) {
            places.len() - usize::from(places.contains(&5))
        } else {
            places.len()
        };
        assert_eq!(damages.len(), expected, "{places:?}: {damages:?}");
        damage(&table(dir.path()), places);
    }
    for path in [log(dir.path()), manifest(dir.path())] {
        for place in [None, Some(15)] {
            damage(&path, place.as_slice());
            breaks_off_anywhere(|step| {
                match path.extension() {
                    Some(_) => inspect::log(&path, &options, &mut |_| step()).map(drop),
                    None => inspect::manifest(&path, &options, &mut |_| step()).map(drop),
                }
                .expect("readable");
            });
        }
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A few hundred kilobytes that stand for two gigabytes of keys.
#[test]
fn lists_of_keys_out_of_proportion_are_cut_short() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = sample(dir.path());
    let sound = inspect::table(&table(dir.path()), &options, &mut |_| ControlFlow::Continue(()))
        .expect("a table");
    let handle = |offset: u64, size: u64| [varint(offset), varint(size)].concat();
    let (index, metaindex) = (
        handle(sound.index.offset, sound.index.size),
        handle(sound.metaindex.offset, sound.metaindex.size),
    );
    // Keys that share all of the first one's 100,000 bytes, each with the index as its block.
    let size = varint(index.len() as u64);
    let mut block =
        [vec![0], varint(100_000), size.clone(), vec![b'x'; 100_000], index.clone()].concat();
    (1..20_000).for_each(|_| {
        block.extend([varint(100_000), vec![0], size.clone(), index.clone()].concat())
    });
    block.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    assert!(block.len() < 400_000, "{} bytes", block.len());
    let most = block.len() * 32 / 100_000;

    let mut bytes = fs::read(table(dir.path())).expect("readable");
    let magic = bytes[bytes.len() - 8..].to_vec();
    bytes.truncate(bytes.len() - 48);
    let list = handle(bytes.len() as u64, block.len() as u64);
    bytes.extend_from_slice(&block);
    bytes.push(0);
    block.push(0);
    bytes.extend(crc32c::crc32c(&block).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes());
    let path = dir.path().join("hostile.ldb");
    for of_index in [false, true] {
        let mut footer =
            if of_index { [&metaindex[..], &list].concat() } else { [&list[..], &index].concat() };
        footer.resize(40, 0);
        fs::write(&path, [&bytes[..], &footer, &magic].concat()).expect("written");
        let (mut damages, mut blocks) = (Vec::new(), 0);
        let summary = inspect::table(&path, &options, &mut |item| {
            match item {
                TableItem::Damage(damage) => damages.push(damage.message),
                TableItem::Block(_) => blocks += 1,
                _ => {}
            }
            ControlFlow::Continue(())
        });
        let summary = summary.expect("a table");
        assert!(damages[0].contains("out of proportion"), "{}", damages[0]);
        assert!(blocks <= most, "{blocks} blocks");
        if of_index {
            assert_eq!(summary.meta_blocks, sound.meta_blocks);
            continue;
        }
        assert_eq!((summary.entries, summary.damages), (sound.entries, 1));
        for error in [
            inspect::filter_name(&path, &options).map(drop).expect_err("damage"),
            inspect::has_table_filter(&path, &options).map(drop).expect_err("damage"),
        ] {
            assert!(
                error.kind() == ErrorKind::Corruption && error.message().contains("hostile.ldb"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_table_of_plain_keys_has_no_internal_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    let (env, path, options) = (PosixEnv::shared(), dir.path().join("plain.ldb"), Options::new());
    let file = env.create(&path, CreateOptions::default()).expect("created");
    let mut builder = terrace::abi::PlainTableBuilder::new(file, &options);
    // The second ends as a tag does: a letter, 7 as a sequence number, and the kind of a value.
    for key in [&b"apple"[..], b"b\x01\x07\0\0\0\0\0\0", b"c\x09\x07\0\0\0\0\0\0"] {
        builder.add(key, b"value").expect("added");
    }
    builder.finish().expect("finished");
    let (mut damages, mut entries) = (Vec::new(), Vec::new());
    let summary = inspect::table(&path, &options, &mut |item| {
        match item {
            TableItem::Damage(damage) => damages.push(damage.message),
            TableItem::Entry(entry) => entries.push((entry.key.to_vec(), entry.sequence)),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    assert_eq!((summary.expect("a table").damages, entries), (2, vec![(b"b".to_vec(), 7)]));
    assert!(
        damages[0].contains("no internal key: apple") && damages[1].contains("no internal key: c"),
        "{damages:?}"
    );
}
