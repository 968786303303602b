//! Record framing of the write-ahead log and the MANIFEST: LevelDB's.
//!
//! A file is a sequence of blocks of [`BLOCK_SIZE`] bytes. A record is one fragment, or several if it does not fit
//! in its block; a fragment never crosses a block's end and is
//!
//! ```text
//! masked crc32c of type and payload: u32 | payload's length: u16 | type: u8 | payload
//! ```
//!
//! Fewer than [`HEADER_SIZE`] bytes at a block's end are zeros that belong to nobody. All numbers are little-endian.

mod reader;
mod writer;

pub(crate) use reader::{LogItem, LogReader};
pub(crate) use writer::LogWriter;

/// The size of a block.
pub(crate) const BLOCK_SIZE: usize = 32 << 10;

/// The size of a fragment's header.
pub(crate) const HEADER_SIZE: usize = 4 + 2 + 1;

/// A whole record.
const FULL: u8 = 1;
/// The first of several fragments.
const FIRST: u8 = 2;
/// Neither the first nor the last fragment.
const MIDDLE: u8 = 3;
/// The last of several fragments.
const LAST: u8 = 4;
