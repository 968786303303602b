//! The frame of records: sizes and kinds of fragments. See [the module](super).

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
pub(super) const FULL: u8 = 1;
/// The first of several fragments.
pub(super) const FIRST: u8 = 2;
/// Neither the first nor the last fragment.
pub(super) const MIDDLE: u8 = 3;
/// The last of several fragments.
pub(super) const LAST: u8 = 4;

/// A first fragment without a payload: what a writer fills the rest of a block with.
pub(super) const EMPTY_FIRST: [u8; HEADER_SIZE] = [0x64, 0x51, 0xd0, 0xe9, 0, 0, FIRST];
