//! Record framing of the write-ahead log and the MANIFEST: LevelDB's.
//!
//! A file is a sequence of blocks of [`BLOCK_SIZE`](format::BLOCK_SIZE) bytes. A record is one
//! fragment, or several if it does not fit in its block; a fragment never crosses a block's end. It
//! is
//!
//! ```text
//! masked crc32c of type and payload: u32 | payload's length: u16 | type: u8 | payload
//! ```
//!
//! Fewer than [`HEADER_SIZE`](format::HEADER_SIZE) bytes at a block's end are zeros and belong to
//! no record. All numbers are little-endian.

mod format;
mod payload;
mod reader;
mod writer;

#[cfg(test)]
pub(crate) use format::BLOCK_SIZE;
pub(crate) use format::next_record_offset;
pub(crate) use payload::{payload_end, payload_offset, strip_headers};
pub(crate) use reader::{LogItem, LogReader};
pub(crate) use writer::LogWriter;

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
