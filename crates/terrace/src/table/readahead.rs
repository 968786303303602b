//! Reads ahead of a scan through a file that is not mapped.
//!
//! Such a file is read block by block with `pread`, and the kernel is told not to read ahead, which
//! is best for point reads. A scan asks for what comes next by itself: after a few neighbouring
//! blocks, a window that doubles up to [`LARGEST`], and the next window when half of the last one
//! is used, so that the device is never waited for if it is quick enough. (RocksDB's automatic
//! readahead begins after two blocks and doubles from 8 to 256 KiB.)

use crate::env::RandomAccessFile;

use super::format::BlockHandle;

/// Neighbouring blocks after which a scan reads ahead. A seek and ten steps rarely need a third
/// block.
const BLOCKS_BEFORE: u32 = 2;
const SMALLEST: u64 = 16 << 10;
const LARGEST: u64 = 512 << 10;

/// Where a scan is, and what it has asked for.
#[derive(Clone, Copy, Default)]
pub(super) struct Readahead {
    /// The block read last.
    last: BlockHandle,
    /// Neighbouring blocks read one after the other, and in which direction.
    blocks: u32,
    backward: bool,
    window: u64,
    /// How far bytes were asked for: the end of the window, or its beginning if backward.
    asked: u64,
}

impl Readahead {
    /// For a scan that is going to read the whole file.
    pub(super) fn of_whole_file() -> Self {
        Readahead { blocks: BLOCKS_BEFORE, window: LARGEST, ..Readahead::default() }
    }

    /// For the file behind this one, or before it, in which a scan goes on.
    pub(super) fn in_next_file(self) -> Self {
        Readahead { last: BlockHandle::default(), asked: 0, ..self }
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
            self.asked = if self.backward { handle.offset } else { handle.end() };
        } else if forward || backward {
            if self.backward != backward {
                *self = Readahead { backward, ..Readahead::default() };
            }
            if self.blocks < BLOCKS_BEFORE {
                self.asked = if backward { handle.offset } else { handle.end() };
            }
            self.blocks = self.blocks.saturating_add(1);
        } else {
            *self = Readahead::default();
        }
        self.last = handle;
        if self.blocks >= BLOCKS_BEFORE {
            self.ask(file, handle);
        }
    }

    fn ask(&mut self, file: &dyn RandomAccessFile, handle: BlockHandle) {
        let left = match self.backward {
            true => handle.offset.saturating_sub(self.asked),
            false => self.asked.saturating_sub(handle.end()),
        };
        if left > self.window / 2 {
            return;
        }
        self.window = (2 * self.window).clamp(SMALLEST, LARGEST);
        let (from, to) = match self.backward {
            true => (self.asked.saturating_sub(self.window), self.asked),
            false => (self.asked, self.asked.saturating_add(self.window).min(file.size())),
        };
        if let Some(length) = to.checked_sub(from).filter(|&length| length > 0) {
            file.will_need(from, usize::try_from(length).unwrap_or(usize::MAX));
            self.asked = if self.backward { from } else { to };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::base::error::Result;

    const BLOCK: u64 = 2_000;
    const BLOCKS: u64 = 1_000;

    #[derive(Default)]
    struct Device(Mutex<Vec<(u64, u64)>>);

    impl RandomAccessFile for Device {
        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
            Ok(0)
        }

        fn size(&self) -> u64 {
            BLOCK * BLOCKS
        }

        fn will_need(&self, offset: u64, length: usize) {
            self.0.lock().unwrap().push((offset, offset + length as u64));
        }
    }

    fn block(number: u64) -> BlockHandle {
        BlockHandle { offset: number * BLOCK, size: BLOCK - 5 }
    }

    fn asked(readahead: &mut Readahead, blocks: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let device = Device::default();
        blocks.for_each(|number| readahead.enter(&device, block(number)));
        device.0.into_inner().unwrap()
    }

    #[test]
    fn a_scan_asks_for_every_byte_once_and_before_it_is_there() {
        let windows = asked(&mut Readahead::default(), 0..BLOCKS);
        assert_eq!(windows[0], (3 * BLOCK, 3 * BLOCK + SMALLEST));
        assert!(windows.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(windows.last().map(|window| window.1), Some(BLOCK * BLOCKS));
        assert!(windows.len() < 12, "{windows:?}");

        let windows = asked(&mut Readahead::default(), (0..BLOCKS).rev());
        assert_eq!(windows[0].1, (BLOCKS - 3) * BLOCK);
        assert!(windows.windows(2).all(|pair| pair[0].0 == pair[1].1));
        assert_eq!(windows.last().map(|window| window.0), Some(0));
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
        let mut next = readahead.in_next_file();
        assert_eq!(asked(&mut next, 0..1), [(BLOCK, BLOCK + LARGEST)]);
        let mut whole = Readahead::of_whole_file();
        assert_eq!(asked(&mut whole, 0..1), [(BLOCK, BLOCK + LARGEST)]);

        let mut readahead = Readahead::default();
        asked(&mut readahead, (0..BLOCKS).rev());
        let mut before = readahead.in_next_file();
        let end = (BLOCKS - 1) * BLOCK;
        assert_eq!(asked(&mut before, std::iter::once(BLOCKS - 1)), [(end - LARGEST, end)]);
    }

    #[test]
    fn a_scan_that_turns_round_begins_anew() {
        let mut readahead = Readahead::default();
        asked(&mut readahead, 0..100);
        let windows = asked(&mut readahead, (80..99).rev());
        assert_eq!(windows[0], (97 * BLOCK - SMALLEST, 97 * BLOCK));
    }
}
