//! Reads ahead of a scan through a file that is not mapped.
//!
//! Such a file is read block by block with `pread`, and the kernel is told not to read ahead, which
//! is best for point reads. A scan asks for what comes next by itself: after a few neighbouring
//! blocks, a window that doubles up to [`LARGE`], and the next window when half of the last one is
//! used, so that the device is never waited for if it is quick enough. A long scan's windows grow
//! further, up to [`LARGEST`], as a quarter of what it has passed. What a scan that goes on in the
//! next file will read there first, a window, is asked for when it enters this one. (RocksDB's
//! automatic readahead begins after two blocks and doubles from 8 to 256 KiB. Decision 31 says what
//! larger windows gain.)
//!
//! Of what was asked for, many blocks are read with one call.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::error::Result;
use crate::env::RandomAccessFile;

use super::format::BlockHandle;

/// Neighbouring blocks after which a scan reads ahead. A seek and ten steps rarely need a third
/// block.
const BLOCKS_BEFORE: u8 = 2;
const SMALLEST: u64 = 16 << 10;
/// Up to here windows double.
const LARGE: u64 = 512 << 10;
/// So much at a time, while as much before it is read.
const LARGEST: u64 = 2 << 20;
/// Windows beyond [`LARGE`] are at most this part of what the scan has passed: a quarter.
const PART_OF_PASSED: u64 = 4;

/// How much of a table its end takes, with the blocks that opening it reads one after the other:
/// properties, filters, index, footer. That is a twentieth for small entries and a fiftieth for
/// those of 1 KB, so tables are expected to be as the last one was that was opened.
pub(crate) struct EndShare(AtomicU64);

/// The unit of a share.
const WHOLE: u64 = 1024;
/// Of the first table.
const FIRST_SHARE: u64 = WHOLE / 16;

impl Default for EndShare {
    fn default() -> Self {
        EndShare(AtomicU64::new(FIRST_SHARE))
    }
}

impl EndShare {
    /// Takes note of a file whose end begins at `begin`. Small ones tell nothing: half of them may
    /// be footer and properties.
    pub(super) fn learn(&self, file: &dyn RandomAccessFile, begin: u64) {
        let (size, end) = (file.size(), file.size().saturating_sub(begin));
        if size < TELLING_SIZE {
            return;
        }
        let share = (u128::from(end) * u128::from(WHOLE)).div_ceil(u128::from(size));
        // Tables differ a little, and a read of the rest costs more than a page too much.
        let share = share + share / 8 + 1;
        let share = u64::try_from(share).unwrap_or(WHOLE).min(LARGEST_SHARE);
        self.0.store(share, Ordering::Relaxed);
    }

    /// Where the end of `file` likely begins.
    fn begin(&self, file: &dyn RandomAccessFile) -> u64 {
        let end = (file.size() / WHOLE).saturating_mul(self.0.load(Ordering::Relaxed));
        file.size() - end.clamp(LEAST_END, MOST_END).min(file.size())
    }
}

const TELLING_SIZE: u64 = 256 << 10;
/// Whatever the last table had.
const LARGEST_SHARE: u64 = WHOLE / 8;
/// Bytes of an end, at least and at most.
const LEAST_END: u64 = 4 << 10;
const MOST_END: u64 = 2 << 20;

/// Asks for what opening the table in `file` reads.
pub(crate) fn ask_for_end(file: &dyn RandomAccessFile, share: &EndShare) {
    if file.mapped().is_none() {
        ask(file, share.begin(file), file.size());
    }
}

/// How a scan reads ahead.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    backward: bool,
    /// Bytes that it asks for at a time.
    window: u64,
}

impl Ahead {
    pub(crate) fn is_backward(self) -> bool {
        self.backward
    }
}

/// Asks for what a scan reads first that opens the table in `file` and goes on in it, and returns
/// how far that is. `None` where asking is of no use.
pub(crate) fn ask_for_next_file(
    file: &dyn RandomAccessFile,
    share: &EndShare,
    ahead: Ahead,
) -> Option<u64> {
    if file.mapped().is_some() {
        return None;
    }
    let end = share.begin(file);
    ask(file, end, file.size());
    Some(if ahead.backward {
        let begin = end.saturating_sub(ahead.window);
        ask_backward(file, begin, end);
        begin
    } else {
        ask(file, 0, ahead.window.min(end));
        ahead.window.min(end)
    })
}

/// Asks the device for the bytes from `from` to before `to`.
pub(super) fn ask(file: &dyn RandomAccessFile, from: u64, to: u64) {
    if let Some(length) = to.checked_sub(from).filter(|&length| length > 0) {
        file.will_need(from, usize::try_from(length).unwrap_or(usize::MAX));
    }
}

/// [`ask`], in the order in which a scan backward reads.
fn ask_backward(file: &dyn RandomAccessFile, from: u64, mut to: u64) {
    while from < to {
        let begin = to.saturating_sub(BACKWARD_STEP).max(from);
        ask(file, begin, to);
        to = begin;
    }
}

/// The device reads what it is asked for at once from the front to the back.
const BACKWARD_STEP: u64 = 256 << 10;

/// Bytes that are read with one call, if they were asked for before.
const CHUNK: u64 = 64 << 10;

/// Where a scan is, what it has asked for, and what it has read of that.
#[derive(Default)]
pub(super) struct Readahead {
    /// The block read last.
    last: BlockHandle,
    /// Neighbouring blocks read one after the other, and in which direction.
    blocks: u8,
    /// Those of them that [`take_blocks`](Self::take_blocks) has told.
    told: u8,
    backward: bool,
    window: u32,
    /// Bytes of the blocks, in all files.
    passed: u64,
    /// How far bytes were asked for: the end of the window, or its beginning if backward.
    asked: u64,
    /// How far they were asked for in a file that no block was read of yet.
    asked_before: Option<u64>,
    /// Whether the scan is a compaction's, of which many may read ahead at the same time.
    is_one_of_many: bool,
    /// Made when it is needed.
    chunk: Option<Box<Chunk>>,
}

/// Bytes of the file from an offset on.
#[derive(Default)]
struct Chunk {
    offset: u64,
    bytes: Vec<u8>,
}

impl Chunk {
    fn get(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..start.checked_add(length)?)
    }
}

impl Readahead {
    /// For a scan that is going to read the whole file.
    pub(super) fn of_whole_file() -> Self {
        Readahead {
            blocks: BLOCKS_BEFORE,
            window: LARGE as u32,
            is_one_of_many: true,
            ..Readahead::default()
        }
    }

    /// For the file behind this one, or before it, in which a scan goes on.
    pub(super) fn in_next_file(mut self) -> Self {
        self.forget_chunk();
        Readahead { last: BlockHandle::default(), asked: 0, asked_before: None, ..self }
    }

    /// Says, before the first block of a file, that bytes of it were [asked](ask_for_next_file) for.
    pub(super) fn has_asked(&mut self, far: u64) {
        self.asked_before = Some(far);
    }

    /// How the scan reads ahead, if it does and so will go on in the next file.
    pub(super) fn ahead(&self) -> Option<Ahead> {
        let ahead = Ahead { backward: self.backward, window: u64::from(self.window).max(SMALLEST) };
        (self.blocks >= BLOCKS_BEFORE).then_some(ahead)
    }

    /// To how many blocks the scan went on since the last call, if it went forward.
    pub(super) fn take_blocks(&mut self) -> u8 {
        let blocks = if self.backward { 0 } else { self.blocks.saturating_sub(self.told) };
        self.told = self.blocks;
        blocks
    }

    /// Takes note that the scan comes to the block at `handle` of `file`, and asks for what comes
    /// after it.
    pub(super) fn enter(&mut self, file: &dyn RandomAccessFile, handle: BlockHandle) {
        if file.mapped().is_some() {
            return;
        }
        let begins_file = self.last.size == 0;
        let forward = handle.offset == self.last.end();
        let backward = handle.end() == self.last.offset;
        if begins_file {
            self.backward &= handle.offset > 0;
            let before = self.asked_before.take();
            self.asked = match self.backward {
                true => before.map_or(handle.offset, |asked| asked.min(handle.offset)),
                false => before.map_or(handle.end(), |asked| asked.max(handle.end())),
            };
        } else if forward || backward {
            if self.backward != backward {
                *self = Readahead { backward, ..self.anew() };
            }
            if self.blocks < BLOCKS_BEFORE {
                self.asked = if backward { handle.offset } else { handle.end() };
            }
            self.blocks = self.blocks.saturating_add(1);
        } else {
            *self = self.anew();
        }
        self.last = handle;
        self.passed = self.passed.saturating_add(handle.size);
        if self.blocks >= BLOCKS_BEFORE {
            self.ask(file, handle);
        }
    }

    /// Reads the block that was [entered](Self::enter), or a part of it, as
    /// [`RandomAccessFile::read_at`] does.
    pub(super) fn read_at(
        &mut self,
        file: &dyn RandomAccessFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize> {
        if self.blocks < BLOCKS_BEFORE {
            return file.read_at(offset, buffer);
        }
        let is_there = |chunk: &Chunk| chunk.get(offset, buffer.len()).is_some();
        if !self.chunk.as_deref().is_some_and(is_there) {
            self.read_chunk(file, offset, buffer.len() as u64);
        }
        match self.chunk.as_deref().and_then(|chunk| chunk.get(offset, buffer.len())) {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(buffer.len())
            }
            None => file.read_at(offset, buffer),
        }
    }

    /// Reads `length` bytes from `offset`, and what the scan will read after them, if it was asked
    /// for. Has nothing then if less than twice that was asked for, or it cannot be read: a bad
    /// sector is an error of its own block alone.
    fn read_chunk(&mut self, file: &dyn RandomAccessFile, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        let (from, to) = match self.backward {
            true => (end.saturating_sub(CHUNK).max(self.asked), end),
            false => (offset, offset.saturating_add(CHUNK).min(self.asked)),
        };
        let size = to.saturating_sub(from);
        if size < length.saturating_mul(2) || size > CHUNK {
            self.forget_chunk();
            return;
        }
        let chunk = self.chunk.get_or_insert_default();
        chunk.offset = from;
        chunk.bytes.resize(size as usize, 0);
        let read = file.read_at(from, &mut chunk.bytes).unwrap_or(0);
        chunk.bytes.truncate(read);
    }

    /// For a scan that begins elsewhere.
    fn anew(&self) -> Self {
        Readahead { is_one_of_many: self.is_one_of_many, ..Readahead::default() }
    }

    fn forget_chunk(&mut self) {
        if let Some(chunk) = &mut self.chunk {
            chunk.bytes.clear();
        }
    }

    fn ask(&mut self, file: &dyn RandomAccessFile, handle: BlockHandle) {
        let left = match self.backward {
            true => handle.offset.saturating_sub(self.asked),
            false => self.asked.saturating_sub(handle.end()),
        };
        if left > u64::from(self.window / 2) {
            return;
        }
        let most = match self.is_one_of_many {
            true => LARGE,
            false => (self.passed / PART_OF_PASSED).clamp(LARGE, LARGEST),
        };
        let window = (2 * u64::from(self.window)).clamp(SMALLEST, most);
        self.window = window as u32;
        let (from, to) = match self.backward {
            true => (self.asked.saturating_sub(window), self.asked),
            false => (self.asked, self.asked.saturating_add(window).min(file.size())),
        };
        if from < to {
            match self.backward {
                true => ask_backward(file, from, to),
                false => ask(file, from, to),
            }
            self.asked = if self.backward { from } else { to };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::base::error::Error;

    const BLOCK: u64 = 2_000;
    const BLOCKS: u64 = 2_000;

    /// Bytes tell where they are. Reads of the byte at `bad` fail.
    #[derive(Default)]
    struct Device {
        asked: Mutex<Vec<(u64, u64)>>,
        read: Mutex<Vec<(u64, usize)>>,
        bad: Option<u64>,
    }

    impl RandomAccessFile for Device {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
            let end = offset + buffer.len() as u64;
            if self.bad.is_some_and(|bad| (offset..end).contains(&bad)) {
                return Err(Error::corruption("a bad sector"));
            }
            self.read.lock().unwrap().push((offset, buffer.len()));
            buffer.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = byte_at(at));
            Ok(buffer.len())
        }

        fn size(&self) -> u64 {
            BLOCK * BLOCKS
        }

        fn will_need(&self, offset: u64, length: usize) {
            self.asked.lock().unwrap().push((offset, offset + length as u64));
        }
    }

    fn byte_at(at: u64) -> u8 {
        (at / 7) as u8
    }

    fn block(number: u64) -> BlockHandle {
        BlockHandle { offset: number * BLOCK, size: BLOCK - 5 }
    }

    fn asked(readahead: &mut Readahead, blocks: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let device = Device::default();
        blocks.for_each(|number| readahead.enter(&device, block(number)));
        device.asked.into_inner().unwrap()
    }

    #[test]
    fn a_scan_asks_for_every_byte_once_and_before_it_is_there() {
        let windows = asked(&mut Readahead::default(), 0..BLOCKS);
        assert_eq!(windows[0], (3 * BLOCK, 3 * BLOCK + SMALLEST));
        assert!(windows.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(windows.last().map(|window| window.1), Some(BLOCK * BLOCKS));
        assert!(windows.len() < 13, "{windows:?}");

        let windows = asked(&mut Readahead::default(), (0..BLOCKS).rev());
        assert_eq!(windows[0].1, (BLOCKS - 3) * BLOCK);
        assert!(windows.windows(2).all(|pair| pair[0].0 == pair[1].1));
        assert_eq!(windows.last().map(|window| window.0), Some(0));
        assert!(windows.iter().all(|(from, to)| to - from <= BACKWARD_STEP), "{windows:?}");
    }

    /// Reads blocks as a scan does; returns those that cannot be read.
    fn read(readahead: &mut Readahead, device: &Device, blocks: &[u64]) -> Vec<u64> {
        let mut failed = Vec::new();
        for &number in blocks {
            let block = block(number);
            readahead.enter(device, block);
            let mut bytes = vec![0; BLOCK as usize];
            match readahead.read_at(device, block.offset, &mut bytes) {
                Ok(length) => {
                    assert_eq!(length, bytes.len());
                    assert!(
                        bytes.iter().zip(block.offset..).all(|(byte, at)| *byte == byte_at(at))
                    );
                }
                Err(_) => failed.push(number),
            }
        }
        failed
    }

    #[test]
    fn a_scan_reads_many_blocks_with_one_call_and_no_byte_twice() {
        let forward: Vec<_> = (0..BLOCKS).collect();
        let backward: Vec<_> = (0..BLOCKS).rev().collect();
        for blocks in [&forward, &backward] {
            let device = Device::default();
            let mut readahead = Readahead::default();
            assert_eq!(read(&mut readahead, &device, blocks), []);
            let reversed: Vec<_> = blocks.iter().rev().take(5).copied().collect();
            assert_eq!(read(&mut readahead, &device, &reversed), []);
            let mut reads = device.read.into_inner().unwrap();
            assert!(reads.len() < BLOCKS as usize / 15, "{} reads", reads.len());
            reads.truncate(reads.len() - 4);
            let bytes: usize = reads.iter().map(|(_, length)| length).sum();
            assert!(bytes as u64 <= BLOCK * BLOCKS + CHUNK, "{bytes} bytes");
        }
    }

    #[test]
    fn a_bad_sector_is_an_error_of_its_own_block_alone() {
        let device = Device { bad: Some(500 * BLOCK + 3), ..Device::default() };
        let forward: Vec<_> = (0..BLOCKS).collect();
        let backward: Vec<_> = (0..BLOCKS).rev().collect();
        for blocks in [&forward, &backward] {
            assert_eq!(read(&mut Readahead::default(), &device, blocks), [500]);
        }
    }

    #[test]
    fn a_scan_that_jumps_reads_what_it_comes_to() {
        let device = Device::default();
        let mut readahead = Readahead::default();
        let jumps: Vec<_> = (0..40).flat_map(|at| at * 17..at * 17 + 9).collect();
        assert_eq!(read(&mut readahead, &device, &jumps), []);
        let mut next = readahead.in_next_file();
        assert_eq!(read(&mut next, &device, &[0, 1, 2, 3]), []);
    }

    #[test]
    fn the_beginning_of_the_next_file_and_its_end_are_asked_for() {
        let size = BLOCK * BLOCKS;
        let asked = |backward| {
            let device = Device::default();
            let ahead = Ahead { backward, window: LARGEST };
            let far = ask_for_next_file(&device, &EndShare::default(), ahead);
            let end = size - size / WHOLE * FIRST_SHARE;
            assert_eq!(far, Some(if backward { end - LARGEST } else { LARGEST }));
            device.asked.into_inner().unwrap()
        };
        let end = size / WHOLE * FIRST_SHARE;
        assert_eq!(asked(false), [(size - end, size), (0, LARGEST)]);
        let backward = asked(true);
        assert_eq!(backward[..2], [(size - end, size), (size - end - BACKWARD_STEP, size - end)]);
        assert!(backward[1..].windows(2).all(|pair| pair[0].0 == pair[1].1));
        assert_eq!(backward.last().map(|asked| asked.0), Some(size - end - LARGEST));
    }

    #[test]
    fn an_end_is_expected_to_be_as_the_last_one() {
        let (device, share) = (Device::default(), EndShare::default());
        let size = BLOCK * BLOCKS;
        let asks = |share: &EndShare| {
            ask_for_end(&device, share);
            device.asked.lock().unwrap().pop().expect("asks")
        };
        for end in [0, 1, 40_000, 200_000] {
            share.learn(&device, size - end);
            let (from, to) = asks(&share);
            assert_eq!(to, size);
            assert!(size - from >= end, "{end}: {from}");
            assert!(size - from <= end + end / 8 + LEAST_END + 2 * size / WHOLE, "{end}: {from}");
        }
        share.learn(&device, 0);
        assert_eq!(asks(&share), (size - size / WHOLE * LARGEST_SHARE, size));
        share.learn(&device, u64::MAX);
        assert_eq!(asks(&share), (size - LEAST_END, size));
        struct Small;
        impl RandomAccessFile for Small {
            fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
                Ok(0)
            }

            fn size(&self) -> u64 {
                300
            }
        }
        share.learn(&Small, 20);
        assert_eq!(asks(&share), (size - LEAST_END, size), "it tells nothing");
    }

    #[test]
    fn point_reads_and_short_scans_ask_for_nothing() {
        let random = (0..BLOCKS).map(|number| number * 607 % BLOCKS);
        assert_eq!(asked(&mut Readahead::default(), random), []);
        let short = (0..BLOCKS / 10).flat_map(|number| [number * 10, number * 10 + 1]);
        assert_eq!(asked(&mut Readahead::default(), short), []);
    }

    #[test]
    fn the_next_file_is_asked_for_from_its_first_block() {
        let mut readahead = Readahead::default();
        asked(&mut readahead, 0..BLOCKS);
        let window = readahead.ahead().expect("reads ahead").window;
        let next = |far: Option<u64>| {
            let mut readahead = Readahead::default();
            asked(&mut readahead, 0..BLOCKS);
            let mut next = readahead.in_next_file();
            far.into_iter().for_each(|far| next.has_asked(far));
            next
        };
        assert_eq!(asked(&mut next(None), 0..1)[0].0, BLOCK);
        // What was asked for before is not asked for again.
        let far = 300 * BLOCK;
        let windows = asked(&mut next(Some(far)), 0..BLOCKS / 2);
        assert_eq!(windows[0].0, far);
        assert!(windows[0].1 - far > window, "{windows:?}");
        let mut whole = Readahead::of_whole_file();
        assert_eq!(asked(&mut whole, 0..1), [(BLOCK, BLOCK + LARGE)]);

        let mut readahead = Readahead::default();
        asked(&mut readahead, (0..BLOCKS).rev());
        let mut before = readahead.in_next_file();
        before.has_asked(700 * BLOCK);
        let windows = asked(&mut before, (600..BLOCKS).rev());
        assert_eq!(windows[0], (700 * BLOCK - BACKWARD_STEP, 700 * BLOCK));
        // A guess that falls short of the first block, and one beyond the file.
        for far in [(BLOCKS + 1) * BLOCK, u64::MAX] {
            let mut readahead = Readahead::default();
            asked(&mut readahead, (0..BLOCKS).rev());
            let mut before = readahead.in_next_file();
            before.has_asked(far);
            let windows = asked(&mut before, std::iter::once(BLOCKS - 1));
            assert_eq!(windows[0].1, (BLOCKS - 1) * BLOCK);
        }
    }

    /// A scan that stops early has asked for little that it does not read.
    #[test]
    fn windows_keep_to_a_part_of_what_was_passed() {
        let mut readahead = Readahead::default();
        let device = Device::default();
        let (mut passed, mut most) = (0, 0);
        for file in 0..8 {
            for number in 0..BLOCKS {
                readahead.enter(&device, block(number));
                passed += BLOCK;
                let asked = device.asked.lock().unwrap().iter().map(|(from, to)| to - from).sum();
                let vain = u64::saturating_sub(asked, passed);
                let bound = match passed < 2 * LARGE {
                    true => 3 * passed,
                    false => (LARGE * 3 / 2).max(passed * 2 / 5),
                };
                assert!(vain <= bound, "{vain} of {asked} after {passed} bytes, file {file}");
                most = most.max(vain);
            }
            readahead = readahead.in_next_file();
        }
        assert!(most >= LARGEST, "{most}");
    }

    #[test]
    fn a_scan_that_switches_direction_begins_anew() {
        let mut readahead = Readahead::default();
        asked(&mut readahead, 0..100);
        let windows = asked(&mut readahead, (80..99).rev());
        assert_eq!(windows[0], (97 * BLOCK - SMALLEST, 97 * BLOCK));
    }
}
