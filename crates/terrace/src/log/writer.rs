//! Appends records to a log.
//!
//! One thread at a time; a [`FileSyncer`](crate::env::FileSyncer) of the file works beside it, and
//! its failures are for its user to act on.
//!
//! # Invariants
//! 1. A record reaches the file in one append that begins with the record's first header: fewer
//!    bytes at the end of a block than a header's are written with the record before them. So a
//!    file never ends in a block's filler that a later append would have to begin with. (A file
//!    that LevelDB ended that way gets its filler with the first append.)
//! 2. In a file that [is prepared](WritableFile::is_prepared) a record becomes visible as a whole.
//!    No small one has bytes in two blocks: the rest of a block in which it has no room is *filler*,
//!    empty first fragments. Readers pass over them, LevelDB's because old versions of its writer
//!    left one there; a reader that stops at zeros, as rusty-leveldb's does, goes on, too. Of a
//!    larger one the file makes all headers visible at once, or ends with it and gives its
//!    preparation up.
//! 3. After an append or sync failed, every later append fails with the same error: what the file
//!    holds behind the last good record is unknown, and a record behind it might never be read.

use std::io::IoSlice;

use super::format::{BLOCK_SIZE, EMPTY_FIRST, FIRST, FULL, HEADER_SIZE, LAST, MIDDLE};
use crate::base::checksum::Checksum;
use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;
use crate::env::WritableFile;

/// A record of at most as many bytes does not cross a block of a prepared file, but leaves the rest
/// of it to filler. A larger one would waste too much of it.
const FILLED: usize = 8 << 10;

/// The capacity that the scratch buffer may keep after a huge record.
const SCRATCH_KEPT: usize = 1 << 20;

/// A record of as many bytes is not collected in the buffer, but handed to the file piece by piece:
/// what makes the system's work for it costs less than another copy.
const UNCOPIED: usize = 32 << 10;

/// Writes one log file.
pub(crate) struct LogWriter {
    file: Box<dyn WritableFile>,
    offset: u64,
    scratch: Vec<u8>,
    failure: Option<Error>,
}

impl LogWriter {
    /// Writes to `file`, which holds `offset` bytes already.
    pub(crate) fn new(file: Box<dyn WritableFile>, offset: u64) -> Self {
        LogWriter { file, offset, scratch: Vec::new(), failure: None }
    }

    /// Appends one record.
    pub(crate) fn add_record(&mut self, payload: &[u8]) -> Result<()> {
        self.add_record_parts(&[payload])
    }

    /// Appends one record whose payload is all of `parts`, one behind the other.
    pub(crate) fn add_record_parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let position = (self.offset % BLOCK_SIZE as u64) as usize;
        let length = parts.iter().map(|part| part.len()).sum();
        let room = BLOCK_SIZE - position;
        if HEADER_SIZE + length <= room && length < UNCOPIED {
            self.scratch.clear();
            encode_full(&mut self.scratch, room, length, parts);
            let done = self.file.append(&self.scratch);
            return self.appended(done);
        }
        let splits_visibly = HEADER_SIZE + length > room
            && self.file.is_prepared()
            && !mutated("records-in-one-block");
        if room >= HEADER_SIZE && (length >= UNCOPIED || splits_visibly && length > FILLED) {
            return self.add_uncopied(position, length, parts);
        }
        self.scratch.clear();
        let done = if splits_visibly {
            fill(&mut self.scratch, room);
            encode(&mut self.scratch, 0, length, parts);
            self.file.append_filled(&self.scratch, room)
        } else {
            encode(&mut self.scratch, position, length, parts);
            self.file.append(&self.scratch)
        };
        self.appended(done)
    }

    /// Counts what is in `scratch`, which was appended.
    #[inline]
    fn appended(&mut self, done: Result<()>) -> Result<()> {
        if let Err(error) = done {
            return Err(self.fail(error));
        }
        self.offset += self.scratch.len() as u64;
        if self.scratch.capacity() > SCRATCH_KEPT {
            self.scratch = Vec::new();
        }
        Ok(())
    }

    /// Appends a small record in two fragments, the first of them empty, within one block. Readers
    /// see the record like any other; LevelDB's writer, which divides records at the end of a block
    /// alone, never makes one.
    pub(crate) fn add_split_record(&mut self, payload: &[u8]) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let room = BLOCK_SIZE - (self.offset % BLOCK_SIZE as u64) as usize;
        let needed = 2 * HEADER_SIZE + payload.len() + HEADER_SIZE;
        let filler = if room < needed { room } else { 0 };
        let mut bytes = Vec::with_capacity(filler + needed);
        fill(&mut bytes, filler);
        bytes.extend_from_slice(&EMPTY_FIRST);
        bytes.extend_from_slice(&header(
            Checksum::of(&[&[LAST], payload].concat()),
            LAST,
            payload.len(),
        ));
        bytes.extend_from_slice(payload);
        if let Err(error) = self.file.append_filled(&bytes, filler) {
            return Err(self.fail(error));
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Appends one record from where its parts are. It begins `position` bytes into a block, where
    /// a header finds room.
    fn add_uncopied(&mut self, position: usize, length: usize, parts: &[&[u8]]) -> Result<()> {
        let mut headers = Vec::with_capacity(length / (BLOCK_SIZE - HEADER_SIZE) + 2);
        let mut payload = Parts::new(parts);
        let mut fragments = Fragments::new(position, length);
        for (kind, length) in &mut fragments {
            let mut crc = Checksum::of(&[kind]);
            payload.take(length, |piece| crc.add(piece));
            headers.push(header(crc, kind, length));
        }
        let filler = &[0; HEADER_SIZE][..fragments.filler()];
        let mut slices = Vec::with_capacity(2 * headers.len() + parts.len() + 1);
        let mut places = Vec::with_capacity(headers.len());
        let mut payload = Parts::new(parts);
        for (header, (_, length)) in headers.iter().zip(Fragments::new(position, length)) {
            places.push(slices.len());
            slices.push(IoSlice::new(header));
            payload.take(length, |piece| slices.push(IoSlice::new(piece)));
        }
        slices.push(IoSlice::new(filler));
        if let Err(error) = self.file.append_parts(&mut slices, &places) {
            return Err(self.fail(error));
        }
        self.offset += (headers.len() * HEADER_SIZE + length + filler.len()) as u64;
        Ok(())
    }

    /// Whether a record of `length` bytes would be appended without waiting.
    pub(crate) fn takes_at_once(&self, length: usize) -> bool {
        let headers = (length / (BLOCK_SIZE - HEADER_SIZE) + 2) * HEADER_SIZE;
        let room = BLOCK_SIZE - (self.offset % BLOCK_SIZE as u64) as usize;
        let filler = if room < length + HEADER_SIZE && length <= FILLED { room } else { 0 };
        self.file.takes_at_once(filler + headers + length)
    }

    /// The bytes of the file up to the end of the last record.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Asks the system to write out `length` bytes from `offset`. A hint.
    pub(crate) fn start_writeback(&mut self, offset: u64, length: u64) {
        self.file.start_writeback(offset, length);
    }

    /// Gives the space back that a failed append took.
    pub(crate) fn cut_back(&mut self) {
        if self.failure.is_some() {
            self.file.cut_back(self.offset);
        }
    }

    /// Makes every record durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.file.sync().map_err(|error| self.fail(error))
    }

    /// The file for another log, if it can be [zeroed out](WritableFile::zero_out).
    pub(crate) fn zero_out(mut self) -> Option<Box<dyn WritableFile>> {
        if self.failure.is_none() && self.file.zero_out() {
            return Some(self.file);
        }
        self.retire();
        None
    }

    /// Closes the file before it is removed: see [`WritableFile::retire`].
    pub(crate) fn retire(self) {
        self.file.retire();
    }

    /// Closes the file without syncing it.
    pub(crate) fn close(self) -> Result<()> {
        self.file.close()
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        if mutated("failed-append") || mutated("failed-manifest") {
            return error;
        }
        self.failure.get_or_insert(error).clone()
    }
}

/// Appends to `dst` the fragments of the record that consists of `parts`, `length` bytes together,
/// and begins `position` bytes into a block.
fn encode(dst: &mut Vec<u8>, mut position: usize, length: usize, parts: &[&[u8]]) {
    if BLOCK_SIZE - position < HEADER_SIZE {
        dst.resize(dst.len() + BLOCK_SIZE - position, 0);
        position = 0;
    }
    let mut parts = Parts::new(parts);
    let mut fragments = Fragments::new(position, length);
    for (kind, length) in &mut fragments {
        let start = dst.len();
        dst.extend_from_slice(&[0, 0, 0, 0, 0, 0, kind]);
        parts.take(length, |piece| dst.extend_from_slice(piece));
        let header = header(Checksum::of(&dst[start + HEADER_SIZE - 1..]), kind, length);
        dst[start..start + HEADER_SIZE].copy_from_slice(&header);
    }
    dst.resize(dst.len() + fragments.filler(), 0);
}

/// [`encode`] of a record of one fragment, as most are, into an empty `dst`: the block has `room` for
/// it.
#[inline]
fn encode_full(dst: &mut Vec<u8>, room: usize, length: usize, parts: &[&[u8]]) {
    dst.reserve(2 * HEADER_SIZE + length);
    dst.extend_from_slice(&[0, 0, 0, 0, 0, 0, FULL]);
    parts.iter().for_each(|part| dst.extend_from_slice(part));
    let header = header(Checksum::of(&dst[HEADER_SIZE - 1..]), FULL, length);
    dst[..HEADER_SIZE].copy_from_slice(&header);
    let rest = room - dst.len();
    if rest < HEADER_SIZE {
        dst.resize(dst.len() + rest, 0);
    }
}

/// Appends the filler of `room` bytes to `dst`: empty first fragments, and zeros where none finds
/// room.
fn fill(dst: &mut Vec<u8>, room: usize) {
    (0..room / HEADER_SIZE).for_each(|_| dst.extend_from_slice(&EMPTY_FIRST));
    dst.resize(dst.len() + room % HEADER_SIZE, 0);
}

fn header(crc: Checksum, kind: u8, length: usize) -> [u8; HEADER_SIZE] {
    let ([a, b, c, d], [e, f]) = (crc.masked().to_le_bytes(), (length as u16).to_le_bytes());
    [a, b, c, d, e, f, kind]
}

/// The kinds and payload lengths of a record's fragments.
struct Fragments {
    /// Where in its block the next fragment begins, or what came last ended.
    position: usize,
    left: usize,
    is_first: bool,
    is_done: bool,
}

impl Fragments {
    /// Of a record of `length` bytes that begins `position` bytes into a block, where a header
    /// finds room.
    fn new(position: usize, length: usize) -> Self {
        Fragments { position, left: length, is_first: true, is_done: false }
    }

    /// The zeros behind the last fragment, once that has come: where no header finds room in a
    /// block.
    fn filler(&self) -> usize {
        let unused = BLOCK_SIZE - self.position;
        if unused < HEADER_SIZE { unused } else { 0 }
    }
}

impl Iterator for Fragments {
    type Item = (u8, usize);

    fn next(&mut self) -> Option<(u8, usize)> {
        if self.is_done {
            return None;
        }
        if !self.is_first {
            // The fragment before filled its block.
            self.position = 0;
        }
        let length = self.left.min(BLOCK_SIZE - self.position - HEADER_SIZE);
        self.left -= length;
        self.position += HEADER_SIZE + length;
        let kind = match (self.is_first, self.left == 0) {
            (true, true) => FULL,
            (true, false) => FIRST,
            (false, false) => MIDDLE,
            (false, true) => LAST,
        };
        (self.is_first, self.is_done) = (false, self.left == 0);
        Some((kind, length))
    }
}

/// A payload in parts, being used up.
struct Parts<'a> {
    rest: &'a [&'a [u8]],
    /// The bytes that have been consumed of the first part.
    used: usize,
}

impl<'a> Parts<'a> {
    fn new(parts: &'a [&'a [u8]]) -> Self {
        Parts { rest: parts, used: 0 }
    }

    /// Gives the next `length` bytes to `user`, piece by piece.
    #[inline]
    fn take(&mut self, mut length: usize, mut user: impl FnMut(&'a [u8])) {
        while let Some((part, rest)) = self.rest.split_first() {
            let part = &part[self.used..];
            if part.len() > length {
                user(&part[..length]);
                self.used += length;
                return;
            }
            user(part);
            length -= part.len();
            (self.rest, self.used) = (rest, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::base::error::ErrorKind;
    use crate::base::locks::plain::Mutex;
    use crate::env::{Env, MemEnv};

    fn written(offset: usize, records: &[&[u8]]) -> Vec<u8> {
        let env = MemEnv::new();
        env.write("log", vec![0; offset]);
        let mut writer = LogWriter::new(env.open_append(Path::new("log")).unwrap(), offset as u64);
        for record in records {
            writer.add_record(record).unwrap();
            assert_eq!(writer.offset(), env.file_size(Path::new("log")).unwrap());
        }
        writer.sync().unwrap();
        writer.close().unwrap();
        env.read("log").unwrap().split_off(offset)
    }

    #[test]
    fn golden_bytes() {
        // crc32c("\x01foo") = 0x3a82ec18; rotated right by 15 and increased by 0xa282ead8:
        // 0x7ab35fdd.
        assert_eq!(written(0, &[b"foo"]), b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
        assert_eq!(written(5, &[b""])[4..], [0, 0, 1]);
        assert_eq!(EMPTY_FIRST, header(Checksum::of(&[FIRST]), FIRST, 0));
    }

    #[test]
    fn fragments_fill_blocks_and_short_ends_are_zeros() {
        let header = |bytes: &[u8]| (u16::from_le_bytes([bytes[4], bytes[5]]) as usize, bytes[6]);
        let big = vec![7; 2 * BLOCK_SIZE];
        let bytes = written(0, &[&big]);
        assert_eq!(bytes.len(), 2 * BLOCK_SIZE + 3 * HEADER_SIZE);
        assert_eq!(header(&bytes), (BLOCK_SIZE - HEADER_SIZE, FIRST));
        assert_eq!(header(&bytes[BLOCK_SIZE..]), (BLOCK_SIZE - HEADER_SIZE, MIDDLE));
        assert_eq!(header(&bytes[2 * BLOCK_SIZE..]), (2 * HEADER_SIZE, LAST));
        for left in 0..HEADER_SIZE {
            let first = vec![1; BLOCK_SIZE - HEADER_SIZE - left];
            let bytes = written(0, &[&first]);
            assert_eq!(bytes.len(), BLOCK_SIZE, "{left} bytes left");
            assert!(bytes[BLOCK_SIZE - left..].iter().all(|&byte| byte == 0));
            // LevelDB leaves the filler to the next append.
            assert_eq!(
                written(BLOCK_SIZE - left, &[b"x"]).len(),
                left % BLOCK_SIZE + HEADER_SIZE + 1
            );
        }
        // Room for a header alone takes an empty first fragment.
        let bytes = written(BLOCK_SIZE - HEADER_SIZE, &[b"abc"]);
        assert_eq!((header(&bytes), header(&bytes[HEADER_SIZE..])), ((0, FIRST), (3, LAST)));
    }

    #[test]
    fn what_is_not_collected_reads_the_same() {
        let payload: Vec<u8> = (0..200_000_u32).map(|at| (at / 3) as u8).collect();
        for length in [UNCOPIED - 1, UNCOPIED, 2 * BLOCK_SIZE - 2 * HEADER_SIZE, 99_999, 200_000] {
            for left in (0..20).chain([100, BLOCK_SIZE - 50, BLOCK_SIZE]) {
                let offset = BLOCK_SIZE - left;
                let (first, rest) = payload[..length].split_at(left.min(length));
                let parts = [first, &[], &rest[..rest.len() / 2], &rest[rest.len() / 2..]];
                let mut collected = Vec::new();
                encode(&mut collected, offset % BLOCK_SIZE, length, &parts);
                let env = MemEnv::new();
                env.write("log", vec![0; offset]);
                let mut writer =
                    LogWriter::new(env.open_append(Path::new("log")).unwrap(), offset as u64);
                writer.add_record_parts(&parts).unwrap();
                assert_eq!(writer.offset(), env.file_size(Path::new("log")).unwrap());
                assert!(
                    env.read("log").unwrap()[offset..] == collected,
                    "{length} bytes, {left} before a block's end"
                );
            }
        }
    }

    /// A file that is prepared until parts are appended, and the sizes of its fillers.
    struct Prepared(Box<dyn WritableFile>, bool, Arc<Mutex<Vec<usize>>>);

    impl WritableFile for Prepared {
        fn append(&mut self, data: &[u8]) -> Result<()> {
            self.0.append(data)
        }

        fn append_parts(&mut self, parts: &mut [IoSlice<'_>], headers: &[usize]) -> Result<()> {
            self.1 = false;
            self.0.append_parts(parts, headers)
        }

        fn is_prepared(&self) -> bool {
            self.1
        }

        fn append_filled(&mut self, data: &[u8], filler: usize) -> Result<()> {
            self.2.lock().push(filler);
            self.0.append(data)
        }

        fn sync(&mut self) -> Result<()> {
            Ok(())
        }

        fn close(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_record_has_bytes_in_two_blocks_of_a_prepared_file() {
        let small = vec![7; 100];
        for length in (1..200).chain([
            FILLED,
            FILLED + 1,
            BLOCK_SIZE - HEADER_SIZE,
            BLOCK_SIZE,
            3 * BLOCK_SIZE,
        ]) {
            let env = MemEnv::new();
            env.write("log", Vec::new());
            let fillers = Arc::new(Mutex::new(Vec::new()));
            let file = Prepared(env.open_append(Path::new("log")).unwrap(), true, fillers.clone());
            let mut writer = LogWriter::new(Box::new(file), 0);
            let record: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let room = 150;
            let first = vec![1; BLOCK_SIZE - HEADER_SIZE - room];
            [&first, &record, &small].iter().for_each(|record| writer.add_record(record).unwrap());
            assert_eq!(writer.offset(), env.file_size(Path::new("log")).unwrap());
            let bytes = env.read("log").unwrap();
            let found = fillers.lock().clone();
            if length + HEADER_SIZE <= room {
                // The next one may be the first without room.
                assert!(bytes[room..].starts_with(&first[..100]) && found.len() <= 1, "{length}");
            } else if length <= FILLED {
                assert_eq!(found, [room], "{length}");
                assert!(bytes[BLOCK_SIZE + HEADER_SIZE..].starts_with(&record), "{length}");
            } else {
                assert_eq!(
                    (found.len(), bytes),
                    (0, written(0, &[&first, &record, &small])),
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn a_split_record_is_in_one_block() {
        for left in 0..60 {
            let env = MemEnv::new();
            env.write("log", Vec::new());
            let mut writer = LogWriter::new(env.open_append(Path::new("log")).unwrap(), 0);
            writer.add_record(&vec![1; BLOCK_SIZE - HEADER_SIZE - left]).unwrap();
            writer.add_split_record(b"twelve bytes").unwrap();
            writer.add_record(b"next").unwrap();
            let bytes = env.read("log").unwrap();
            let at = if left < 33 { BLOCK_SIZE } else { BLOCK_SIZE - left };
            assert!(bytes[at + 2 * HEADER_SIZE..].starts_with(b"twelve bytes"), "{left}");
            assert_eq!(bytes.len() as u64, writer.offset());
        }
    }

    struct Full {
        room: usize,
    }

    impl WritableFile for Full {
        fn append(&mut self, data: &[u8]) -> Result<()> {
            self.room = self
                .room
                .checked_sub(data.len())
                .ok_or_else(|| Error::io_message("full, the first time"))?;
            Ok(())
        }

        fn sync(&mut self) -> Result<()> {
            Err(Error::io_message("cannot sync"))
        }

        fn close(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn failures_stick() {
        let mut writer = LogWriter::new(Box::new(Full { room: 100 }), 0);
        writer.add_record(&[0; 50]).unwrap();
        let error = writer.add_record(&[0; 50]).unwrap_err();
        assert_eq!((error.kind(), writer.offset()), (ErrorKind::Io, 57));
        assert_eq!(writer.add_record(b"").unwrap_err().message(), error.message());
        let mut writer = LogWriter::new(Box::new(Full { room: 100 }), 0);
        assert!(writer.sync().is_err());
        assert_eq!(writer.add_record(b"").unwrap_err().message(), "cannot sync");
    }
}
