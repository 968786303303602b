//! Record framing of the write-ahead log and the MANIFEST: LevelDB's.
//!
//! A file is a sequence of blocks of [`BLOCK_SIZE`] bytes. A record is one fragment, or several if
//! it does not fit in its block; a fragment never crosses a block's end and is
//!
//! ```text
//! masked crc32c of type and payload: u32 | payload's length: u16 | type: u8 | payload
//! ```
//!
//! Fewer than [`HEADER_SIZE`] bytes at a block's end are zeros and belong to no record. All numbers
//! are little-endian.

mod reader;
mod writer;

pub(crate) use reader::{LogItem, LogReader};
pub(crate) use writer::LogWriter;

/// The size of a block.
pub(crate) const BLOCK_SIZE: usize = 32 << 10;

/// The size of a fragment's header.
pub(crate) const HEADER_SIZE: usize = 4 + 2 + 1;

/// Where the record begins that follows one which ends at `end`, if nothing lies between them.
pub(crate) fn next_record_offset(end: u64) -> u64 {
    let unused = BLOCK_SIZE as u64 - end % BLOCK_SIZE as u64;
    if unused < HEADER_SIZE as u64 { end + unused } else { end }
}

/// A whole record.
const FULL: u8 = 1;
/// The first of several fragments.
const FIRST: u8 = 2;
/// Neither the first nor the last fragment.
const MIDDLE: u8 = 3;
/// The last of several fragments.
const LAST: u8 = 4;

/// A first fragment without a payload: what a writer fills the rest of a block with.
const EMPTY_FIRST: [u8; HEADER_SIZE] = [0x64, 0x51, 0xd0, 0xe9, 0, 0, FIRST];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{CreateOptions, PosixEnv, ReadAccess};

    #[test]
    fn a_prepared_log_is_read_to_its_last_record() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("000007.log");
        let env = PosixEnv::shared();
        let file = env.create_log(&path, CreateOptions::default(), 4 << 20).unwrap();
        let mut writer = LogWriter::new(file, 0);
        let record = |number: usize| vec![number as u8; number * 737 % 40_000];
        let check = |end: u64| {
            let mut reader = LogReader::new(
                env.open_random(&path, ReadAccess::Pread).unwrap(),
                "000007.log".into(),
            );
            for number in 0..60 {
                let LogItem::Record { data, .. } = reader.next().unwrap() else {
                    panic!("record {number} missing")
                };
                assert!(data == record(number), "record {number}");
            }
            assert_eq!(reader.next().unwrap(), LogItem::End { offset: end, torn: false });
        };
        for number in 0..60 {
            writer.add_record(&record(number)).unwrap();
        }
        // As a killed process leaves it, and as it is closed.
        check(writer.offset());
        let end = writer.offset();
        writer.close().unwrap();
        check(end);
        assert_eq!(env.file_size(&path).unwrap(), end);
    }
}
