//! The reader on sound, torn and damaged logs.

use std::path::Path;

use super::*;
use crate::env::{Env, MemEnv, ReadAccess};
use crate::log::LogWriter;

/// An item without its reason, and with its data owned.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Record(Vec<u8>, Range<u64>),
    Damage(Range<u64>),
    End(u64, bool),
}
use Item::{Damage, End};

fn items(bytes: &[u8]) -> Vec<Item> {
    read(bytes, |reader| reader)
}

fn read(bytes: &[u8], how: fn(LogReader) -> LogReader) -> Vec<Item> {
    let env = MemEnv::new();
    env.write("000003.log", bytes.to_vec());
    let file = env.open_random(Path::new("000003.log"), ReadAccess::Pread).unwrap();
    let mut reader = how(LogReader::new(file, "000003.log".into()));
    let mut items = Vec::new();
    let mut behind = 0;
    loop {
        let item = match reader.next().unwrap() {
            LogItem::Record { data, offset, end, .. } => {
                assert!(offset >= behind && end > offset);
                behind = end;
                Item::Record(data.to_vec(), offset..end)
            }
            LogItem::Damage { offset, length, reason, .. } => {
                assert!(
                    offset >= behind && length > 0 && reason.contains("000003.log"),
                    "{reason}"
                );
                behind = offset + length;
                Damage(offset..behind)
            }
            LogItem::End { offset, torn } => End(offset, torn),
        };
        let ended = matches!(item, End(..));
        items.push(item);
        if ended {
            assert!(behind <= bytes.len() as u64);
            assert_eq!(
                reader.next().unwrap(),
                LogItem::End { offset: end(&items), torn: torn(&items) }
            );
            return items;
        }
    }
}

fn end(items: &[Item]) -> u64 {
    let Some(End(offset, _)) = items.last() else { panic!("no end") };
    *offset
}

fn torn(items: &[Item]) -> bool {
    matches!(items.last(), Some(End(_, true)))
}

fn records(items: &[Item]) -> Vec<&[u8]> {
    items
        .iter()
        .filter_map(|item| if let Item::Record(data, _) = item { Some(&data[..]) } else { None })
        .collect()
}

fn damage(items: &[Item]) -> Vec<(u64, u64)> {
    items
        .iter()
        .filter_map(
            |item| if let Damage(range) = item { Some((range.start, range.end)) } else { None },
        )
        .collect()
}

fn log(records: &[&[u8]]) -> Vec<u8> {
    let env = MemEnv::new();
    env.write("log", Vec::new());
    let mut writer = LogWriter::new(env.open_append(Path::new("log")).unwrap(), 0);
    records.iter().for_each(|record| writer.add_record(record).unwrap());
    env.read("log").unwrap()
}

/// A fragment of any kind with a good checksum.
fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
    let covered = [&[kind], payload].concat();
    let length = (payload.len() as u16).to_le_bytes();
    [&checksum::masked(&covered).to_le_bytes()[..], &length, &covered].concat()
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn round_trips_at_every_alignment() {
    let small: &[u8] = b"a small record";
    let big = vec![b'b'; 2 * BLOCK_SIZE + 100];
    for before in (BLOCK_SIZE - 40..BLOCK_SIZE + 3).chain([0, 1, 2 * BLOCK_SIZE]) {
        let first = vec![b'f'; before];
        for middle in [&b""[..], small, &big] {
            let expected = [&first[..], middle, small, b""];
            let bytes = log(&expected);
            let found = items(&bytes);
            assert_eq!(records(&found), expected, "{before} bytes before");
            assert_eq!(found.len(), 5);
            assert!(!torn(&found) && bytes.len() as u64 - end(&found) < HEADER_SIZE as u64);
            // The same with prepared space behind it, which may end anywhere.
            for zeros in [1, 6, 7, 50, BLOCK_SIZE, 3 * BLOCK_SIZE + 5] {
                let prepared = [&bytes[..], &vec![0; zeros]].concat();
                assert_eq!(items(&prepared), found, "{before} bytes before, {zeros} zeros behind");
            }
        }
    }
}

#[test]
fn offsets_are_those_of_headers() {
    let bytes = log(&[b"one", &[2; BLOCK_SIZE], b"three"]);
    let second = 10..(BLOCK_SIZE + 10 + 14) as u64;
    let expected = [
        Item::Record(b"one".to_vec(), 0..10),
        Item::Record(vec![2; BLOCK_SIZE], second.clone()),
        Item::Record(b"three".to_vec(), second.end..second.end + 12),
        End(second.end + 12, false),
    ];
    assert_eq!(items(&bytes), expected);
    assert_eq!(items(b""), [End(0, false)]);
}

#[test]
fn every_cut_is_a_clean_or_torn_end() {
    let bytes = log(&[b"one", b"two", &[3; BLOCK_SIZE + 5]]);
    let ends = [0, 10, 20, bytes.len()];
    for cut in (0..60).chain(BLOCK_SIZE - 10..bytes.len()) {
        let good = *ends.iter().rfind(|&&end| end <= cut).unwrap();
        let found = items(&bytes[..cut]);
        assert_eq!(found.last(), Some(&End(good as u64, cut != good)), "cut at {cut}");
        assert_eq!(damage(&found), []);
    }
    // The first fragment alone with prepared space behind it.
    let prepared = [&bytes[..BLOCK_SIZE], &[0; 5000]].concat();
    assert_eq!(items(&prepared).last(), Some(&End(20, true)));
}

/// As the writer fills the rest of a block in a prepared log.
#[test]
fn filler_is_part_of_the_record_behind_it() {
    let big = vec![b'b'; BLOCK_SIZE];
    for room in HEADER_SIZE..100 {
        let first = vec![b'f'; BLOCK_SIZE - HEADER_SIZE - room];
        let mut filler = fragment(FIRST, b"").repeat(room / HEADER_SIZE);
        filler.resize(room, 0);
        for behind in [&b"small"[..], b"", &big] {
            let bytes = [&log(&[&first]), &filler[..], &log(&[behind])].concat();
            let end = bytes.len() as u64;
            let offset = BLOCK_SIZE as u64;
            for found in [items(&bytes), read(&bytes, LogReader::tolerating_gaps)] {
                assert_eq!(
                    found[1..],
                    [Item::Record(behind.to_vec(), offset..end), End(end, false)],
                    "{room}"
                );
            }
            assert_eq!(begins(&bytes), [(0, false), (offset - room as u64, false)]);
            // Killed before the filler was stored, or half-way: its end first.
            for stored in (8..=room).chain([room]) {
                let mut part = vec![0; stored];
                part.extend_from_slice(&filler[stored..]);
                let killed = [&log(&[&first]), &part[..], &log(&[behind])].concat();
                let found = read(&killed, LogReader::tolerating_gaps);
                assert_eq!(
                    (records(&found), torn(&found)),
                    (vec![&first[..], behind], false),
                    "{room} {stored}"
                );
                assert_eq!(damage(&found), [], "{room} {stored}");
            }
        }
    }
}

/// Where each record or the filler before it begins, and whether it is split.
fn begins(bytes: &[u8]) -> Vec<(u64, bool)> {
    let env = MemEnv::new();
    env.write("log", bytes.to_vec());
    let file = env.open_random(Path::new("log"), ReadAccess::Pread).unwrap();
    let mut reader = LogReader::new(file, "log".into());
    let mut begins = Vec::new();
    while let LogItem::Record { begin, split, .. } = reader.next().unwrap() {
        begins.push((begin, split));
    }
    begins
}

#[test]
fn only_a_record_split_within_a_block_is_split() {
    let is_split =
        |bytes: &[u8]| begins(bytes).into_iter().map(|(_, split)| split).collect::<Vec<_>>();
    let before = log(&[&[b'f'; BLOCK_SIZE - HEADER_SIZE - 21]]);
    let filler = fragment(FIRST, b"").repeat(3);
    let split = [fragment(FIRST, b""), fragment(LAST, b"mark")].concat();
    assert_eq!(
        is_split(&[&before[..], &filler, &split, &log(&[b"next"])].concat()),
        [false, true, false]
    );
    assert_eq!(
        is_split(&[&before[..], &filler, &log(&[&[b'x'; 40_000], b"next"])].concat()),
        [false, false, false]
    );
    assert_eq!(is_split(&[&before[..], &filler, &log(&[b"next"])].concat()), [false, false]);
    assert_eq!(is_split(&log(&[&[b'x'; 40_000], b"next"])), [false, false]);
}

/// The reasons of what the reader calls damage that no power cut leaves.
fn not_torn(bytes: &[u8], how: fn(LogReader) -> LogReader) -> Vec<String> {
    let env = MemEnv::new();
    env.write("log", bytes.to_vec());
    let file = env.open_random(Path::new("log"), ReadAccess::Pread).unwrap();
    let mut reader = how(LogReader::new(file, "log".into()));
    let mut reasons = Vec::new();
    loop {
        match reader.next().unwrap() {
            LogItem::End { .. } => return reasons,
            LogItem::Damage { torn: false, reason, .. } => reasons.push(reason),
            _ => {}
        }
    }
}

/// A power cut keeps the sectors from any one on from the disk, whose boundary lies anywhere in a
/// record.
#[test]
fn records_that_lost_sectors_are_torn() {
    let env = MemEnv::new();
    for split in [false, true] {
        for inside in 1..26 {
            env.write("log", Vec::new());
            let mut writer = LogWriter::new(env.open_append(Path::new("log")).unwrap(), 0);
            writer.add_record(&vec![b'b'; 2 * SECTOR - HEADER_SIZE - inside]).unwrap();
            match split {
                true => writer.add_split_record(b"twelve bytes").unwrap(),
                false => writer.add_record(b"nineteen bytes long").unwrap(),
            }
            let whole = env.read("log").unwrap();
            assert_eq!(whole.len(), 2 * SECTOR - inside + 26);
            for length in [whole.len(), whole.len() + 100, BLOCK_SIZE, 3 * BLOCK_SIZE] {
                let mut bytes = whole[..2 * SECTOR].to_vec();
                bytes.resize(length, 0);
                let place = format!(
                    "split: {split}, {inside} bytes of it before the boundary, {length} bytes in all"
                );
                assert_eq!(not_torn(&bytes, LogReader::tolerating_gaps), [""; 0], "{place}");
                // The zeros of fewer bytes than a header's at the end of a file may be a record's
                // own.
                if length - 2 * SECTOR >= HEADER_SIZE {
                    assert_eq!(not_torn(&bytes, |reader| reader), [""; 0], "{place}");
                }
                // A wrong checksum is no lost sector.
                let mut bytes = whole.clone();
                bytes[2 * SECTOR - inside] ^= 4;
                bytes.resize(length, 0);
                assert_ne!(not_torn(&bytes, LogReader::tolerating_gaps), [""; 0], "{place}");
            }
        }
    }
}

/// In a log what follows a torn record in its block may be a part of it. Nothing in a MANIFEST may:
/// a flipped bit behind a torn edit stays an error.
#[test]
fn damage_behind_a_torn_record_is_torn_in_logs_alone() {
    // The header of the second record lies on the boundary of the sector that is lost.
    let mut bytes = log(&[&[1; SECTOR - 11], &[2; 2 * SECTOR], b"found", b"damaged", b"last"]);
    bytes[SECTOR..2 * SECTOR].fill(0);
    let flipped = bytes.len() - 12;
    bytes[flipped] ^= 1;
    assert_eq!(not_torn(&bytes, LogReader::tolerating_gaps), [""; 0]);
    let reasons = not_torn(&bytes, |reader| reader);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].contains("a checksum mismatch"), "{reasons:?}");
    let found = items(&bytes);
    assert_eq!(
        (records(&found)[1..].to_vec(), damage(&found).len()),
        (vec![&b"found"[..], b"last"], 2)
    );
}

#[test]
fn zeros_before_a_record_are_damage() {
    let record = log(&[b"good"]);
    let start = log(&[b"first"]);
    for gap in [7, 8, 11, 100, 4096, BLOCK_SIZE - 12, 3 * BLOCK_SIZE - 12] {
        let bytes = [&start[..], &vec![0; gap], &record, &record].concat();
        let found = items(&bytes);
        assert_eq!(records(&found), [&b"first"[..], b"good", b"good"], "{gap} zeros");
        assert_eq!(found[1], Damage(12..12 + gap as u64));
        assert_eq!(found.last(), Some(&End(bytes.len() as u64, false)));
    }
    // Also when the record's checksum begins with a zero.
    let payload =
        (0u32..).map(u32::to_le_bytes).find(|p| fragment(FULL, p).starts_with(&[0])).unwrap();
    let found = items(&[&[0; 20][..], &fragment(FULL, &payload)].concat());
    assert_eq!((records(&found), damage(&found)), (vec![&payload[..]], vec![(0, 20)]));
    // A record whose header never came, in prepared space.
    let unfinished = [&start[..], &[0; 8], b"payload of a record", &[0; 500]].concat();
    assert_eq!(damage(&items(&unfinished)), [(12, unfinished.len() as u64)]);
    assert_eq!(items(&unfinished).last(), Some(&End(12, false)));
}

#[test]
fn gaps_are_passed_over_where_asked() {
    let tolerant = |bytes: &[u8]| read(bytes, LogReader::tolerating_gaps);
    let first = log(&[b"first"]);
    let behind = [&log(&[b"behind"])[..], &[0; 100]].concat();
    let start = 2 * BLOCK_SIZE;
    let with = |parts: &[(usize, &[u8])]| {
        let mut bytes = vec![0; start];
        parts.iter().for_each(|(at, part)| bytes[*at..*at + part.len()].copy_from_slice(part));
        [&bytes[..], &behind].concat()
    };
    // A LevelDB went on behind the prepared space.
    let gap = with(&[(0, &first)]);
    assert_eq!(records(&tolerant(&gap)), [&b"first"[..], b"behind"]);
    assert_eq!(
        (damage(&tolerant(&gap)).len(), damage(&items(&gap))),
        (0, vec![(12, start as u64)])
    );
    assert_eq!(records(&tolerant(&with(&[]))), [b"behind"]);
    // An append was killed before it was visible: of one fragment, of several, of a first one that
    // became so.
    let (middle, last) = (fragment(MIDDLE, &[7; BLOCK_SIZE - HEADER_SIZE]), fragment(LAST, b"7"));
    let unfinished: [&[(usize, &[u8])]; 3] = [
        &[(0, &first), (20, b"payload of a record")],
        &[(0, &first), (20, b"payload"), (BLOCK_SIZE, &last)],
        &[(0, &fragment(FIRST, b"some")), (BLOCK_SIZE, b"\0\0\0\0\0\0\0\0some")],
    ];
    for parts in unfinished {
        let found = tolerant(&with(parts));
        assert_eq!((records(&found).last(), damage(&found).len()), (Some(&&b"behind"[..]), 0));
        assert!(!torn(&found));
        let cut = with(parts)[..start].to_vec();
        assert!(torn(&tolerant(&cut)) && damage(&tolerant(&cut)).is_empty());
    }
    let found = tolerant(&[&vec![0; BLOCK_SIZE], &middle[..], &last, &first].concat());
    assert_eq!((records(&found), damage(&found).len()), (vec![&b"first"[..]], 0));
    // Behind zeros within a block a record says that something is missing, and may be a part of a
    // value whose record was never finished.
    for at in [HEADER_SIZE, 8, 50, SECTOR - 1, SECTOR] {
        for begin in [BLOCK_SIZE, first.len()] {
            let found = tolerant(&with(&[(0, &first), (begin + at, &first)]));
            assert_eq!(
                (records(&found).len(), damage(&found).len()),
                (3, 1),
                "{at} behind {begin}"
            );
        }
    }
    // Killed while the fragments behind the first were copied.
    let partial = &middle[..BLOCK_SIZE / 2];
    let found =
        tolerant(&[&vec![0; BLOCK_SIZE], partial, &vec![0; BLOCK_SIZE / 2], &first].concat());
    assert_eq!((records(&found), damage(&found).len()), (vec![&b"first"[..]], 0));
    assert!(torn(&tolerant(&[&vec![0; BLOCK_SIZE], partial, &vec![0; BLOCK_SIZE]].concat())));
    // A writer that writes fragments one by one was killed between two, and another one went on.
    let parts = [(FIRST, &b"some"[..]), (MIDDLE, b"more"), (FULL, b"whole"), (FIRST, b"some")];
    let bytes =
        parts.iter().flat_map(|(kind, payload)| fragment(*kind, payload)).collect::<Vec<_>>();
    let found = tolerant(&bytes);
    assert_eq!(
        (records(&found), damage(&found), torn(&found)),
        (vec![&b"whole"[..]], vec![], true)
    );
    // Not a gap: other bytes before a record, and a block that begins with damage.
    let found = tolerant(&with(&[(0, &first), (40, b"garbage"), (50, &first)]));
    assert_eq!((records(&found).len(), damage(&found)), (3, vec![(12, 50)]));
    let found = tolerant(&with(&[(0, &first), (BLOCK_SIZE, &[1; 50])]));
    assert_eq!((records(&found).len(), damage(&found)[0].0), (2, BLOCK_SIZE as u64));
}

#[test]
fn records_behind_damage_are_found() {
    let mut bytes = log(&[b"first", b"second", b"third"]);
    let sound = bytes.clone();
    // Payload, checksum, kind and length of the second, which stands at 12..25.
    for (at, mask) in [(20, 1), (13, 0x80), (18, 2), (16, 1), (17, 0x80)] {
        bytes.clone_from(&sound);
        bytes[at] ^= mask;
        let found = items(&bytes);
        assert_eq!(records(&found), [b"first", b"third"], "flip at {at}");
        assert_eq!(damage(&found), [(12, 25)], "flip at {at}");
        assert_eq!(found.last(), Some(&End(37, false)));
    }
    // A length that leads to the end of the file, near it, or to zeros.
    let mut bytes = log(&[b"first", b"second", &[3; 100]]);
    for (end, zeros) in [(3, 0), (0, 0), (0, 50)] {
        bytes[4] = (bytes.len() - HEADER_SIZE - end) as u8;
        let prepared = [&bytes[..], &vec![0; zeros]].concat();
        assert_eq!(records(&items(&prepared)), [&b"second"[..], &[3; 100]]);
    }
    // At the end nothing follows: the checksum still says damage.
    bytes.clone_from(&sound);
    bytes[33] ^= 1;
    assert_eq!(items(&bytes)[2..], [Damage(25..37), End(25, false)]);
    // A record's bytes inside a damaged record's payload are not taken for a record.
    let inner = log(&[b"inner"]);
    let mut bytes = log(&[&inner, b"next"]);
    bytes[0] ^= 1;
    assert_eq!(records(&items(&bytes)), [b"next"]);
    // A length that is too long for a whole block, and nothing readable in the rest of it.
    let mut bytes = log(&[&[1; BLOCK_SIZE - 100], &[2; 200], b"next"]);
    bytes[5] ^= 0x80;
    let found = items(&bytes);
    assert_eq!(records(&found), [b"next"]);
    assert_eq!(damage(&found)[0].0, 0);
}

#[test]
fn fragments_must_fit_together() {
    let whole = fragment(FULL, b"whole");
    let run = |parts: &[(u8, &[u8])]| {
        items(
            &parts.iter().flat_map(|(kind, payload)| fragment(*kind, payload)).collect::<Vec<_>>(),
        )
    };
    assert_eq!(whole.len(), 12);
    // An unknown kind costs itself only.
    let found = run(&[(FULL, b"whole"), (9, b"what?"), (FULL, b"whole")]);
    assert_eq!((records(&found).len(), damage(&found)), (2, vec![(12, 24)]));
    // Orphans.
    let found = run(&[(MIDDLE, b"whole"), (LAST, b"whole"), (FULL, b"whole")]);
    assert_eq!((records(&found).len(), damage(&found)), (1, vec![(0, 12), (12, 24)]));
    // No last.
    let found = run(&[(FIRST, b"whole"), (MIDDLE, b"whole"), (FULL, b"whole")]);
    assert_eq!((records(&found).len(), damage(&found)), (1, vec![(0, 24)]));
    let found = run(&[(FIRST, b"whole"), (FIRST, b"whole"), (LAST, b"whole")]);
    assert_eq!((records(&found), damage(&found)), (vec![&b"wholewhole"[..]], vec![(0, 12)]));
    assert_eq!(
        run(&[(FULL, b"whole"), (FIRST, b"whole"), (MIDDLE, b"")]).last(),
        Some(&End(12, true))
    );
    // Damage takes the fragments before it along.
    let found = run(&[(FIRST, b"whole"), (0, b"whole"), (LAST, b"whole"), (FULL, b"")]);
    assert_eq!((records(&found), damage(&found)), (vec![&b""[..]], vec![(0, 24), (24, 36)]));
    // An empty first fragment is forgiven.
    let found = run(&[(FIRST, b""), (FULL, b"whole")]);
    assert_eq!((records(&found), damage(&found)), (vec![&b"whole"[..]], vec![]));
}

#[test]
fn any_bytes_are_read_to_their_end() {
    let seed = 0x5eed_0001_u64;
    println!("seed {seed:#x}");
    let mut random = seed;
    for round in 0..300 {
        let length = (xorshift(&mut random) % (3 * BLOCK_SIZE as u64)) as usize;
        // Mostly small bytes, so that lengths fit and kinds are known.
        let mask = [0xff, 0x07, 0x01, 0x81][round % 4];
        let bytes: Vec<u8> = (0..length).map(|_| xorshift(&mut random) as u8 & mask).collect();
        items(&bytes);
        read(&bytes, LogReader::tolerating_gaps);
    }
}

#[test]
fn flips_lose_only_what_they_hit() {
    let seed = 0x5eed_0002_u64;
    println!("seed {seed:#x}");
    let mut random = seed;
    for round in 0..400 {
        let sizes: Vec<usize> = (0..20)
            .map(|_| match xorshift(&mut random) % 10 {
                0 => xorshift(&mut random) as usize % (2 * BLOCK_SIZE),
                _ => xorshift(&mut random) as usize % 200,
            })
            .collect();
        let written: Vec<Vec<u8>> = sizes
            .iter()
            .map(|&size| (0..size).map(|_| xorshift(&mut random) as u8).collect())
            .collect();
        let mut bytes = log(&written.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let sound = items(&bytes);
        let bit = xorshift(&mut random) as usize % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let found = items(&bytes);
        let hit = (bit / 8) as u64;
        for item in &sound {
            let Item::Record(_, range) = item else { continue };
            // Never an altered record; the others are there.
            assert_eq!(
                found.contains(item),
                !range.contains(&hit),
                "round {round}, byte {hit}, record {range:?}"
            );
        }
        assert!(
            records(&found).iter().all(|data| written.iter().any(|record| record == data)),
            "round {round}"
        );
    }
}
