//! Reads the records of a log, sound or damaged.
//!
//! One thread. The reader reports what it finds and decides nothing: whether damage is an error,
//! the end of history or something to skip depends on the log's durability marks and the recovery
//! mode, which the caller knows.
//!
//! # Invariants
//! 1. Any bytes at all are read to their end: every call moves on, and nothing panics.
//! 2. Memory is one block and the record that is being put together, which grows by bytes really
//!    read.
//! 3. A record is handed out only if all its fragments follow each other with good checksums.
//! 4. Zeros up to the end of the file are no damage: space was prepared there. Neither is a record
//!    that the end of the file cuts off: its writer died. Of such a record the checksum does not
//!    match what there is, and its length fits into its block: otherwise the length is what is
//!    damaged.
//!
//! After damage, and behind zeros, the reader looks for records in the rest of the block, where
//! LevelDB goes on with the next one: they tell a flipped bit in synced data from the torn end of
//! unsynced data. What is found so is [doubtful](LogItem::Record): it may be a part of a value whose
//! record was never finished. [`LogReader::tolerating_gaps`] has the reader pass over zeros without
//! anything behind them in their block, and over unfinished records.

use std::ops::Range;
use std::sync::Arc;

use super::format::{BLOCK_SIZE, EMPTY_FIRST, FIRST, FULL, HEADER_SIZE, LAST, MIDDLE};
use crate::base::checksum;
use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;
use crate::env::RandomAccessFile;

/// The least unit in which systems and disks write files back.
const SECTOR: usize = 512;

/// A memory copy stores at least this much at once, where it is aligned.
const STORE: usize = 8;

/// Bytes checksummed at most in the search for a record in one block. Ordinary data take a tenth of
/// it; hostile data could demand half a gigabyte.
const SEARCH_BUDGET: usize = 64 * BLOCK_SIZE;

/// The next item of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LogItem<'a> {
    /// A whole record, from its first header at `offset` to `end`; the filler before it begins at
    /// `begin`. `split`: in fragments although it fits its block, as only
    /// [`LogWriter::add_split_record`](super::LogWriter::add_split_record) writes it. `doubtful`: it
    /// was found by a search behind damage in its block, and may be a part of a value.
    Record { data: &'a [u8], begin: u64, offset: u64, end: u64, split: bool, doubtful: bool },
    /// Bytes that are no record and were skipped. The reason names file and offset. `torn`: whole
    /// sectors of it are zeros, as a power cut leaves a record that was not synced.
    Damage { offset: u64, length: u64, reason: String, torn: bool },
    /// Nothing more: again and again. `offset` is the end of the last record, `torn` whether the
    /// end of the file (or prepared zeros) cut one off behind it.
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
    /// The fragments so far of the record that began at `record_start`, which is where the filler
    /// before it began.
    record: Vec<u8>,
    record_start: Option<u64>,
    /// Where its first fragment begins, behind filler.
    first_header: u64,
    tolerates_gaps: bool,
    /// Nothing but a gap lies between the last record and here.
    in_gap: bool,
    /// Something was passed over behind the last record that is neither a record nor zeros.
    unfinished: bool,
    /// The damage before was torn, and no record came since.
    in_torn_record: bool,
    /// The next record in the block was found by a search.
    is_doubtful: bool,
    /// The end of the last record handed out.
    good_end: u64,
    /// The last byte that was read from the file.
    last_byte: u8,
    /// Set at the end: whether it is torn.
    ended: Option<bool>,
}

/// The result of [`LogReader::fragment`].
enum Fragment {
    Good {
        kind: u8,
        header: usize,
        payload: Range<usize>,
    },
    /// A fragment of a record whose beginning is in a gap.
    CutOff,
    Damage {
        offset: u64,
        what: &'static str,
        torn: bool,
    },
    End {
        torn: bool,
    },
}

/// The bytes at a place that should hold a header.
enum Look {
    Good { kind: u8, payload: Range<usize> },
    TooLong,
    BadChecksum { end: usize },
}

/// The result of [`LogReader::step`].
enum Step {
    InBlock(Range<usize>, u64),
    Assembled(u64),
    Damage { offset: u64, end: u64, what: &'static str, torn: bool },
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
            first_header: 0,
            tolerates_gaps: false,
            in_gap: false,
            unfinished: false,
            in_torn_record: false,
            is_doubtful: false,
            good_end: 0,
            last_byte: 0,
            ended: None,
        }
    }

    /// From here on gaps are passed over, as LevelDB passes over them: a header of zeros with the
    /// rest of its block, behind which a log goes on whose writer was killed; and a record without
    /// its last fragment before another, which a writer leaves that was killed between fragments.
    /// For callers who see from the records themselves whether any are missing: a power cut, too,
    /// may leave zeros where records were.
    pub(crate) fn tolerating_gaps(mut self) -> Self {
        self.tolerates_gaps = true;
        self
    }

    /// The next item. An error is the file's: the bytes could not be read.
    pub(crate) fn next(&mut self) -> Result<LogItem<'_>> {
        let step = self.step()?;
        let doubtful = self.is_doubtful;
        Ok(match step {
            Step::InBlock(payload, begin) => {
                let offset = self.block_start + (payload.start - HEADER_SIZE) as u64;
                LogItem::Record {
                    data: &self.block[payload],
                    begin,
                    offset,
                    end: self.good_end,
                    split: false,
                    doubtful,
                }
            }
            Step::Assembled(begin) => {
                let offset = self.first_header;
                let split = self.first_header >= self.block_start;
                let (data, end) = (&self.record[..], self.good_end);
                LogItem::Record { data, begin, offset, end, split, doubtful }
            }
            Step::Damage { offset, end, what, torn } => LogItem::Damage {
                offset,
                length: end.saturating_sub(offset),
                reason: format!("{}: {what} at offset {offset}", self.name),
                torn,
            },
            Step::End { torn } => LogItem::End { offset: self.good_end, torn },
        })
    }

    /// Whether the file ends in a zero, once its end is reached.
    pub(crate) fn ends_in_zero(&self) -> bool {
        self.last_byte == 0
    }

    fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(torn) = self.ended {
                return Ok(Step::End { torn });
            }
            let (kind, header, payload) = match self.fragment()? {
                Fragment::Good { kind, header, payload } => (kind, header, payload),
                Fragment::Damage { offset, what, torn } => {
                    // The fragments before it are lost with it.
                    let start =
                        if mutated("fragments-in-a-row") { None } else { self.record_start.take() };
                    let offset = start.unwrap_or(offset);
                    self.in_torn_record = torn;
                    return Ok(Step::Damage { offset, end: self.position(), what, torn });
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
                (FULL | FIRST, Some(_)) if self.tolerates_gaps && !self.record.is_empty() => {
                    self.record_start = None;
                    self.unfinished = true;
                    self.cursor = header;
                }
                (FULL | FIRST, Some(start)) if !self.record.is_empty() => {
                    self.record_start = None;
                    self.cursor = header;
                    let what = "a record without its last fragment";
                    return Ok(Step::Damage { offset: start, end: offset, what, torn: false });
                }
                // Empty first fragments before it are filler, or what a writer leaves that died, or
                // an old LevelDB.
                (FULL, filler) => {
                    self.finish_record();
                    return Ok(Step::InBlock(payload, filler.unwrap_or(offset)));
                }
                (FIRST, filler) => {
                    self.record.clear();
                    self.record_start = Some(filler.unwrap_or(offset));
                    self.first_header = offset;
                    self.in_gap = false;
                    self.assemble(payload)?;
                }
                // The rest of what the gap cut off.
                (_, None) if self.in_gap => self.unfinished = true,
                (_, None) => {
                    let what = "a fragment without its record's first";
                    return Ok(Step::Damage {
                        offset,
                        end: self.position(),
                        what,
                        torn: self.in_torn_record,
                    });
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
        self.in_torn_record = false;
        self.good_end = self.position();
    }

    fn assemble(&mut self, payload: Range<usize>) -> Result<()> {
        self.record.try_reserve(payload.len()).map_err(|_| {
            let length = self.record.len();
            Error::out_of_memory(format!(
                "{}: out of memory for a record of over {length} bytes",
                self.name
            ))
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
        self.last_byte = self.block.last().copied().unwrap_or(self.last_byte);
        self.block_start = self.next_block;
        self.next_block += BLOCK_SIZE as u64;
        self.cursor = 0;
        self.is_doubtful = false;
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
        // What follows the first damage of a block may be the rest of the same unfinished record. A
        // MANIFEST has none that anything follows.
        let in_damage = self.is_doubtful && self.tolerates_gaps;
        let found = self.look(header);
        // The rest of what the gap cut off may itself have been copied in part.
        if self.in_gap
            && matches!(found, Look::BadChecksum { .. })
            && matches!(self.block.get(header + HEADER_SIZE - 1), Some(&(MIDDLE | LAST)))
        {
            self.cursor = self.search(header + 1).unwrap_or(self.block.len());
            return Fragment::CutOff;
        }
        let (what, resume, torn) = match found {
            Look::Good { kind, payload } => {
                self.cursor = payload.end;
                if matches!(kind, FULL..=LAST) {
                    return Fragment::Good { kind, header, payload };
                }
                ("an unknown kind of record", payload.end, false)
            }
            Look::TooLong => match self.search(header + 1) {
                None if self.is_cut_off(header) => {
                    self.cursor = self.block.len();
                    return Fragment::End { torn: true };
                }
                found => {
                    let torn = self.misses_sectors(header..self.block.len());
                    (
                        "a record that is longer than its block",
                        found.unwrap_or(self.block.len()),
                        torn,
                    )
                }
            },
            Look::BadChecksum { end } => {
                let resume =
                    if self.begins_record(end) { Some(end) } else { self.search(header + 1) };
                (
                    "a checksum mismatch",
                    resume.unwrap_or(self.block.len()),
                    self.misses_sectors(header..end),
                )
            }
        };
        self.cursor = resume;
        Fragment::Damage { offset, what, torn: torn || in_damage }
    }

    /// Whether the end of the file cuts off the record that begins at `header` and is too long for
    /// what there is of its block. Otherwise its length is damaged: no block has room for it, or
    /// what there is has the right checksum.
    fn is_cut_off(&self, header: usize) -> bool {
        let bytes = &self.block[header..];
        let &[c0, c1, c2, c3, l0, l1, _, ..] = bytes else { return true };
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        let is_whole =
            checksum::masked(&bytes[HEADER_SIZE - 1..]) == u32::from_le_bytes([c0, c1, c2, c3]);
        self.at_last_block() && header + HEADER_SIZE + length <= BLOCK_SIZE && !is_whole
    }

    /// Whether a record whose checksum is wrong begins or ends, or has in it, zeros where a sector
    /// does, as the sectors leave it that a power cut kept from the disk.
    ///
    /// Fewer zeros than a header's may be the record's own: the end of an internal key is. So the
    /// last few bytes of a record say that their sector is lost only if all of the sector is zeros.
    /// In a MANIFEST even that says nothing if the file ends there: LevelDB's edits end in internal
    /// keys. On the other hand zeros at the end of a sector are torn there, from one store of a
    /// memory copy on: the disk took the sector while the record was being copied to it. In a log
    /// values may be all zeros.
    fn misses_sectors(&self, record: Range<usize>) -> bool {
        let is_zeros = |part: Range<usize>| self.block[part].iter().all(|&byte| byte == 0);
        let is_lost = |part: Range<usize>| part.len() >= HEADER_SIZE && is_zeros(part);
        let first = (record.start / SECTOR + 1) * SECTOR;
        let is_halfway = |boundary: usize| {
            !self.tolerates_gaps
                && boundary <= self.block.len()
                && is_zeros(record.start.max(boundary - STORE)..boundary)
        };
        // What is missing of a header may have hidden how far the record goes.
        is_halfway(first)
            || (first..record.end).step_by(SECTOR).any(|boundary| {
                let sector = boundary..self.block.len().min(boundary + SECTOR);
                is_lost(record.start.max(boundary - SECTOR)..boundary)
                    || is_lost(boundary..record.end.min(boundary + SECTOR))
                    || is_lost(sector.clone())
                    || self.tolerates_gaps && is_zeros(sector)
                    || is_halfway(boundary)
            })
    }

    /// Passes zeros at the cursor: to the end of the file, which is a clean end, or to something
    /// else, which makes them damage; or, `None`, over a gap.
    fn pass_zeros(&mut self) -> Result<Option<Fragment>> {
        let offset = self.position();
        loop {
            let rest = &self.block[self.cursor..];
            let count = rest.iter().position(|&byte| byte != 0);
            let Some(count) =
                count.filter(|_| !is_unfinished_filler(rest) || self.block.len() < BLOCK_SIZE)
            else {
                match self.load()? {
                    false => return Ok(Some(Fragment::End { torn: false })),
                    true if self.tolerates_gaps && !self.zeros_at(0) => break,
                    true => continue,
                }
            };
            let other = self.cursor + count;
            // The first bytes of a checksum may be zeros themselves.
            let found = self.search(other.saturating_sub(HEADER_SIZE - 1).max(self.cursor));
            self.cursor = found.unwrap_or(self.block.len());
            let is_damage = found.is_some() && !mutated("records-behind-zeros");
            if !self.tolerates_gaps || is_damage {
                let torn = self.tolerates_gaps
                    || (self.block_start + other as u64) / SECTOR as u64 > offset / SECTOR as u64;
                return Ok(Some(Fragment::Damage { offset, what: "zeros inside the log", torn }));
            }
            self.unfinished = true;
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

    /// The bytes at `at`, a place in the block or its end.
    fn look(&self, at: usize) -> Look {
        let bytes = &self.block[at..];
        let &[c0, c1, c2, c3, l0, l1, kind, ..] = bytes else { return Look::TooLong };
        let end = HEADER_SIZE + usize::from(u16::from_le_bytes([l0, l1]));
        let Some(covered) = bytes.get(HEADER_SIZE - 1..end) else { return Look::TooLong };
        if checksum::masked(covered) != u32::from_le_bytes([c0, c1, c2, c3])
            && !mutated("log-checksum")
        {
            return Look::BadChecksum { end: at + end };
        }
        Look::Good { kind, payload: at + HEADER_SIZE..at + end }
    }

    /// Whether a damaged record really ended at `at`, because one begins there: then its payload is
    /// damaged and its length is not, and what looks like a record inside the payload is none.
    /// Neither the end of the file nor zeros say that: a wrong length leads there as easily.
    fn begins_record(&self, at: usize) -> bool {
        matches!(self.look(at), Look::Good { .. })
    }

    /// Does what [`find_record`](Self::find_record) does. What is found is doubtful.
    fn search(&mut self, from: usize) -> Option<usize> {
        let found = self.find_record(from);
        self.is_doubtful |= found.is_some();
        found
    }

    /// The first place from `from` on in this block where a known kind of fragment with a good
    /// checksum begins.
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

/// Whether filler that was being stored, its first bytes last, may have become `rest`, up to the
/// end of a block.
fn is_unfinished_filler(rest: &[u8]) -> bool {
    rest.iter().zip(EMPTY_FIRST.iter().cycle()).all(|(&byte, &filler)| byte == 0 || byte == filler)
}

#[cfg(test)]
mod tests;
