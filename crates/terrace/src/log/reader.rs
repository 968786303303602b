//! Reads the records of a log, sound or damaged.
//!
//! One thread. The reader reports what it finds and decides nothing: whether damage is an error, the end of history
//! or something to skip is known only to who knows the log's marks and its recovery mode.
//!
//! # Invariants
//! 1. Any bytes at all are read to their end: every call moves on, and nothing panics.
//! 2. Memory is one block and the record that is being put together, which grows by bytes really read.
//! 3. A record is handed out only if all its fragments follow each other with good checksums.
//! 4. Zeros up to the end of the file are no damage: space was prepared there. Neither is a record that the end of
//!    the file cuts off: its writer died.
//!
//! After damage the reader looks for records behind it. Where LevelDB goes on with the next block, this one first
//! looks in the rest of the block: a log of a few kilobytes is one block, and without the records behind the damage
//! nobody can tell a rotten bit in synced data from the torn end of unsynced data.
//!
//! # Gaps
//! LevelDB passes over a header of zeros and the rest of its block without a word, and so goes on, at the next block,
//! behind the prepared space of a log whose writer was killed. To read such a log a reader can be told to do the
//! same, and to take a record that follows zeros within a block. It then also passes over a record without its last
//! fragment before another, which a writer leaves that was killed between fragments when the next goes on in the same
//! log. It is for callers who see from the records themselves whether any are missing: a power cut, too, may leave
//! zeros where records were.

use std::ops::Range;
use std::sync::Arc;

use super::{BLOCK_SIZE, FIRST, FULL, HEADER_SIZE, LAST, MIDDLE};
use crate::base::checksum;
use crate::base::error::{Error, Result};
use crate::base::sabotage::sabotaged;
use crate::env::RandomAccessFile;

/// Bytes checksummed at most in the search for a record in one block. Ordinary data take a tenth of it; hostile data
/// could demand half a gigabyte.
const SEARCH_BUDGET: usize = 64 * BLOCK_SIZE;

/// What a log holds next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LogItem<'a> {
    /// A whole record, from its first header at `offset` to `end`.
    Record { data: &'a [u8], offset: u64, end: u64 },
    /// Bytes that are no record and were skipped. The reason names file and offset.
    Damage { offset: u64, length: u64, reason: String },
    /// Nothing more: again and again. `offset` is the end of the last record, `torn` whether the end of the file (or
    /// prepared zeros) cut one off behind it.
    End { offset: u64, torn: bool },
}

/// Reads one log file from its beginning.
pub(crate) struct LogReader {
    file: Arc<dyn RandomAccessFile>,
    name: String,
    /// The current block; shorter than [`BLOCK_SIZE`] only if the file ends in it.
    block: Vec<u8>,
    block_start: u64,
    next_block: u64,
    /// Where the next header is expected in the block.
    cursor: usize,
    /// The fragments so far of the record that began at `record_start`.
    record: Vec<u8>,
    record_start: Option<u64>,
    tolerates_gaps: bool,
    /// Nothing but a gap lies between the last record and here.
    in_gap: bool,
    /// Something was passed over behind the last record that is neither a record nor zeros.
    unfinished: bool,
    /// The end of the last record handed out.
    good_end: u64,
    /// Set at the end: whether it is torn.
    ended: Option<bool>,
}

/// What [`LogReader::fragment`] finds.
enum Fragment {
    Good {
        kind: u8,
        header: usize,
        payload: Range<usize>,
    },
    /// What belongs to a record whose beginning is in a gap.
    CutOff,
    Damage {
        offset: u64,
        what: &'static str,
    },
    End {
        torn: bool,
    },
}

/// What stands at a place that should hold a header.
enum Look {
    Good { kind: u8, payload: Range<usize> },
    TooLong,
    BadChecksum { end: usize },
}

/// What [`LogReader::step`] finds.
enum Step {
    InBlock(Range<usize>, u64),
    Assembled(u64),
    Damage { offset: u64, end: u64, what: &'static str },
    End { torn: bool },
}

impl LogReader {
    /// Reads `file`; `name` is for messages.
    pub(crate) fn new(file: Arc<dyn RandomAccessFile>, name: String) -> Self {
        LogReader {
            file,
            name,
            block: Vec::new(),
            block_start: 0,
            next_block: 0,
            cursor: 0,
            record: Vec::new(),
            record_start: None,
            tolerates_gaps: false,
            in_gap: false,
            unfinished: false,
            good_end: 0,
            ended: None,
        }
    }

    /// From here on gaps are passed over. See the [module](self).
    pub(crate) fn tolerating_gaps(mut self) -> Self {
        self.tolerates_gaps = true;
        self
    }

    /// The next item. An error is the file's: the bytes could not be read.
    pub(crate) fn next(&mut self) -> Result<LogItem<'_>> {
        Ok(match self.step()? {
            Step::InBlock(payload, offset) => {
                LogItem::Record { data: &self.block[payload], offset, end: self.good_end }
            }
            Step::Assembled(offset) => LogItem::Record { data: &self.record, offset, end: self.good_end },
            Step::Damage { offset, end, what } => LogItem::Damage {
                offset,
                length: end.saturating_sub(offset),
                reason: format!("{}: {what} at offset {offset}", self.name),
            },
            Step::End { torn } => LogItem::End { offset: self.good_end, torn },
        })
    }

    fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(torn) = self.ended {
                return Ok(Step::End { torn });
            }
            let (kind, header, payload) = match self.fragment()? {
                Fragment::Good { kind, header, payload } => (kind, header, payload),
                Fragment::Damage { offset, what } => {
                    // The fragments before it are lost with it.
                    let start = if sabotaged("fragments-in-a-row") { None } else { self.record_start.take() };
                    let offset = start.unwrap_or(offset);
                    return Ok(Step::Damage { offset, end: self.position(), what });
                }
                Fragment::CutOff => {
                    self.unfinished = true;
                    continue;
                }
                Fragment::End { torn } => {
                    self.ended = Some(torn || self.unfinished || self.record_start.is_some());
                    continue;
                }
            };
            let offset = self.block_start + header as u64;
            match (kind, self.record_start) {
                // A writer died between two fragments, and another went on behind them.
                (FULL | FIRST, Some(_)) if self.tolerates_gaps => {
                    self.record_start = None;
                    self.unfinished = true;
                    self.cursor = header;
                }
                // An empty first fragment without a successor is what a writer leaves that died, or an old LevelDB.
                (FULL | FIRST, Some(start)) if !self.record.is_empty() => {
                    self.record_start = None;
                    self.cursor = header;
                    return Ok(Step::Damage { offset: start, end: offset, what: "a record without its last fragment" });
                }
                (FULL, _) => {
                    self.finish_record();
                    return Ok(Step::InBlock(payload, offset));
                }
                (FIRST, _) => {
                    self.record.clear();
                    self.record_start = Some(offset);
                    self.in_gap = false;
                    self.assemble(payload)?;
                }
                // The rest of what the gap cut off.
                (_, None) if self.in_gap => self.unfinished = true,
                (_, None) => {
                    let what = "a fragment without its record's first";
                    return Ok(Step::Damage { offset, end: self.position(), what });
                }
                (kind, Some(start)) => {
                    self.assemble(payload)?;
                    if kind == LAST {
                        self.finish_record();
                        return Ok(Step::Assembled(start));
                    }
                }
            }
        }
    }

    fn finish_record(&mut self) {
        self.record_start = None;
        self.in_gap = false;
        self.unfinished = false;
        self.good_end = self.position();
    }

    fn assemble(&mut self, payload: Range<usize>) -> Result<()> {
        self.record.try_reserve(payload.len()).map_err(|_| {
            let length = self.record.len();
            Error::io_message(format!("{}: out of memory for a record of over {length} bytes", self.name))
        })?;
        self.record.extend_from_slice(&self.block[payload]);
        Ok(())
    }

    /// The file's offset of the cursor.
    fn position(&self) -> u64 {
        self.block_start + self.cursor as u64
    }

    /// Whether the current block is known to be the file's last.
    fn at_last_block(&self) -> bool {
        self.next_block > 0 && self.block.len() < BLOCK_SIZE
    }

    /// Goes to the beginning of the next block; `false` if there is none.
    fn load(&mut self) -> Result<bool> {
        if self.at_last_block() {
            self.cursor = self.block.len();
            return Ok(false);
        }
        self.block.resize(BLOCK_SIZE, 0);
        // If the read fails this block counts as used up, so that a later call tries again.
        self.cursor = BLOCK_SIZE;
        let length = self.file.read_at(self.next_block, &mut self.block)?;
        self.block.truncate(length);
        self.block_start = self.next_block;
        self.next_block += BLOCK_SIZE as u64;
        self.cursor = 0;
        Ok(length > 0)
    }

    /// Takes the next fragment, or the damage or end that stands in its place, and moves behind it.
    fn fragment(&mut self) -> Result<Fragment> {
        loop {
            while self.block.len() - self.cursor < HEADER_SIZE {
                let filler = self.cursor > BLOCK_SIZE - HEADER_SIZE;
                let torn = !filler && self.block[self.cursor..].iter().any(|&byte| byte != 0);
                if !self.load()? {
                    return Ok(Fragment::End { torn });
                }
            }
            if !self.zeros_at(self.cursor) {
                return Ok(self.take_fragment());
            }
            if let Some(fragment) = self.pass_zeros()? {
                return Ok(fragment);
            }
        }
    }

    /// Takes what stands at the cursor, where a whole header fits.
    fn take_fragment(&mut self) -> Fragment {
        let header = self.cursor;
        let offset = self.position();
        let found = self.look(header);
        // The rest of what the gap cut off may itself have been copied in part.
        if self.in_gap
            && matches!(found, Look::BadChecksum { .. })
            && matches!(self.block.get(header + HEADER_SIZE - 1), Some(&(MIDDLE | LAST)))
        {
            self.cursor = self.find_record(header + 1).unwrap_or(self.block.len());
            return Fragment::CutOff;
        }
        let (what, resume) = match found {
            Look::Good { kind, payload } => {
                self.cursor = payload.end;
                if matches!(kind, FULL..=LAST) {
                    return Fragment::Good { kind, header, payload };
                }
                ("an unknown kind of record", payload.end)
            }
            Look::TooLong => match self.find_record(header + 1) {
                None if self.at_last_block() => {
                    self.cursor = self.block.len();
                    return Fragment::End { torn: true };
                }
                found => ("a record that is longer than its block", found.unwrap_or(self.block.len())),
            },
            Look::BadChecksum { end } if self.begins_record(end) => ("a checksum mismatch", end),
            Look::BadChecksum { .. } => {
                ("a checksum mismatch", self.find_record(header + 1).unwrap_or(self.block.len()))
            }
        };
        self.cursor = resume;
        Fragment::Damage { offset, what }
    }

    /// Passes zeros at the cursor: to the end of the file, which is a clean end, or to something else, which makes
    /// them damage; or, `None`, over a gap.
    fn pass_zeros(&mut self) -> Result<Option<Fragment>> {
        let offset = self.position();
        loop {
            let Some(count) = self.block[self.cursor..].iter().position(|&byte| byte != 0) else {
                match self.load()? {
                    false => return Ok(Some(Fragment::End { torn: false })),
                    true if self.tolerates_gaps && !self.zeros_at(0) => break,
                    true => continue,
                }
            };
            // The first bytes of a checksum may be zeros themselves.
            let other = self.cursor + count;
            let found = self.find_record(other.saturating_sub(HEADER_SIZE - 1).max(self.cursor));
            self.cursor = found.unwrap_or(self.block.len());
            if !self.tolerates_gaps || found.is_some_and(|at| at > other) {
                return Ok(Some(Fragment::Damage { offset, what: "zeros inside the log" }));
            }
            self.unfinished |= found.is_none();
            break;
        }
        self.in_gap = true;
        self.unfinished |= self.record_start.take().is_some();
        Ok(None)
    }

    /// Whether zeros stand where a header would.
    fn zeros_at(&self, at: usize) -> bool {
        self.block[at..].iter().take(HEADER_SIZE).all(|&byte| byte == 0)
    }

    /// What stands at `at`, where the block has at least a header's length left.
    fn look(&self, at: usize) -> Look {
        let bytes = &self.block[at..];
        let &[c0, c1, c2, c3, l0, l1, kind, ..] = bytes else { return Look::TooLong };
        let end = HEADER_SIZE + usize::from(u16::from_le_bytes([l0, l1]));
        let Some(covered) = bytes.get(HEADER_SIZE - 1..end) else { return Look::TooLong };
        if checksum::masked(covered) != u32::from_le_bytes([c0, c1, c2, c3]) && !sabotaged("log-checksum") {
            return Look::BadChecksum { end: at + end };
        }
        Look::Good { kind, payload: at + HEADER_SIZE..at + end }
    }

    /// Whether a damaged record really ended at `at`, because one begins there: then its payload is damaged and its
    /// length is not, and what looks like a record inside the payload is none. Neither the end of the file nor zeros
    /// say that: a wrong length leads there as easily.
    fn begins_record(&self, at: usize) -> bool {
        self.block.len() - at >= HEADER_SIZE && matches!(self.look(at), Look::Good { .. })
    }

    /// The first place from `from` on in this block where a known kind of fragment with a good checksum begins.
    fn find_record(&self, from: usize) -> Option<usize> {
        let mut budget = SEARCH_BUDGET;
        let last = self.block.len().checked_sub(HEADER_SIZE)?;
        for at in from..=last {
            let header = &self.block[at..at + HEADER_SIZE];
            let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
            if !matches!(header[6], FULL | FIRST | MIDDLE | LAST) || length > last - at {
                continue;
            }
            budget = budget.checked_sub(length + 1)?;
            if matches!(self.look(at), Look::Good { .. }) {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
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
                LogItem::Record { data, offset, end } => {
                    assert!(offset >= behind && end > offset);
                    behind = end;
                    Item::Record(data.to_vec(), offset..end)
                }
                LogItem::Damage { offset, length, reason } => {
                    assert!(offset >= behind && length > 0 && reason.contains("000003.log"), "{reason}");
                    behind = offset + length;
                    Damage(offset..behind)
                }
                LogItem::End { offset, torn } => End(offset, torn),
            };
            let ended = matches!(item, End(..));
            items.push(item);
            if ended {
                assert!(behind <= bytes.len() as u64);
                assert_eq!(reader.next().unwrap(), LogItem::End { offset: end(&items), torn: torn(&items) });
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
        items.iter().filter_map(|item| if let Item::Record(data, _) = item { Some(&data[..]) } else { None }).collect()
    }

    fn damage(items: &[Item]) -> Vec<(u64, u64)> {
        items
            .iter()
            .filter_map(|item| if let Damage(range) = item { Some((range.start, range.end)) } else { None })
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
        let payload = (0u32..).map(u32::to_le_bytes).find(|p| fragment(FULL, p).starts_with(&[0])).unwrap();
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
        assert_eq!((damage(&tolerant(&gap)).len(), damage(&items(&gap))), (0, vec![(12, start as u64)]));
        assert_eq!(records(&tolerant(&with(&[]))), [b"behind"]);
        // An append was killed before it was visible: of one fragment, of several, of a first one that became so.
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
        // Right behind zeros LevelDB would lose a record; nobody else need.
        let found = tolerant(&with(&[(0, &first), (50, &first)]));
        assert_eq!((records(&found).len(), damage(&found)), (3, vec![]));
        // Killed while the fragments behind the first were copied.
        let partial = &middle[..BLOCK_SIZE / 2];
        let found = tolerant(&[&vec![0; BLOCK_SIZE], partial, &vec![0; BLOCK_SIZE / 2], &first].concat());
        assert_eq!((records(&found), damage(&found).len()), (vec![&b"first"[..]], 0));
        assert!(torn(&tolerant(&[&vec![0; BLOCK_SIZE], partial, &vec![0; BLOCK_SIZE]].concat())));
        // A writer that writes fragments one by one was killed between two, and another one went on.
        let parts = [(FIRST, &b"some"[..]), (MIDDLE, b"more"), (FULL, b"whole"), (FIRST, b"some")];
        let bytes = parts.iter().flat_map(|(kind, payload)| fragment(*kind, payload)).collect::<Vec<_>>();
        let found = tolerant(&bytes);
        assert_eq!((records(&found), damage(&found), torn(&found)), (vec![&b"whole"[..]], vec![], true));
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
            items(&parts.iter().flat_map(|(kind, payload)| fragment(*kind, payload)).collect::<Vec<_>>())
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
        assert_eq!(run(&[(FULL, b"whole"), (FIRST, b"whole"), (MIDDLE, b"")]).last(), Some(&End(12, true)));
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
            let written: Vec<Vec<u8>> =
                sizes.iter().map(|&size| (0..size).map(|_| xorshift(&mut random) as u8).collect()).collect();
            let mut bytes = log(&written.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let sound = items(&bytes);
            let bit = xorshift(&mut random) as usize % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let found = items(&bytes);
            let hit = (bit / 8) as u64;
            for item in &sound {
                let Item::Record(_, range) = item else { continue };
                // Never an altered record; the others are there.
                assert_eq!(found.contains(item), !range.contains(&hit), "round {round}, byte {hit}, record {range:?}");
            }
            assert!(records(&found).iter().all(|data| written.iter().any(|record| record == data)), "round {round}");
        }
    }
}
