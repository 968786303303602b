//! The fixed points of a table file: handles, footer, block trailer.
//!
//! A table is a sequence of blocks and a footer of fixed size that says where the index and the
//! metaindex are. Every block is followed by a trailer: one byte that tells how it is compressed,
//! and the checksum of block and byte.

use std::ops::Range;
use std::sync::Arc;

use crate::base::checksum::{self, Checksum};
use crate::base::coding::{get_u64, get_varint64, put_u64, put_varint64};
use crate::base::error::{Error, Result};
use crate::base::mutation::mutated;
use crate::env::RandomAccessFile;

use super::block_error::BlockError;
use super::buffer::Buffer;
use super::compression;

/// The last eight bytes of every table.
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Bytes of the footer: two handles, padding, magic.
pub(super) const FOOTER_SIZE: usize = 2 * MAX_HANDLE_SIZE + 8;

/// The longest encoding of a handle: two 64-bit varints.
pub(super) const MAX_HANDLE_SIZE: usize = 20;

/// Bytes after every block.
pub(super) const TRAILER_SIZE: usize = 5;

/// Where a block is: its offset in the file and its size without the trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct BlockHandle {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl BlockHandle {
    pub(super) fn encode(self, dst: &mut Vec<u8>) {
        put_varint64(dst, self.offset);
        put_varint64(dst, self.size);
    }

    pub(super) fn decode(src: &mut &[u8]) -> Option<Self> {
        Some(BlockHandle { offset: get_varint64(src)?, size: get_varint64(src)? })
    }

    /// Where block and trailer end.
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.size).saturating_add(TRAILER_SIZE as u64)
    }

    /// Whether block and trailer lie before `end`.
    pub(super) fn fits_before(self, end: u64) -> bool {
        let size = self.size.checked_add(TRAILER_SIZE as u64);
        size.and_then(|size| size.checked_add(self.offset)).is_some_and(|limit| limit <= end)
    }
}

/// The end of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) metaindex: BlockHandle,
    pub(super) index: BlockHandle,
}

impl Footer {
    pub(super) fn encode(&self, dst: &mut Vec<u8>) {
        let end = dst.len() + FOOTER_SIZE;
        self.metaindex.encode(dst);
        self.index.encode(dst);
        dst.resize(end - 8, 0);
        put_u64(dst, MAGIC);
    }

    /// Reads and checks the footer of `file`.
    pub(super) fn read(file: &dyn RandomAccessFile, name: &str) -> Result<Self> {
        let size = file.size();
        let bad = |what: &str| Error::corruption(format!("{name}: {what}"));
        let Some(at) = size.checked_sub(FOOTER_SIZE as u64) else {
            return Err(bad(&format!("{size} bytes are too few for a table")));
        };
        let mut bytes = [0; FOOTER_SIZE];
        read_exact(at, &mut bytes, name, |offset, buffer| file.read_at(offset, buffer))?;
        let (mut handles, mut magic) = bytes.split_at(FOOTER_SIZE - 8);
        if get_u64(&mut magic) != Some(MAGIC) {
            return Err(bad("not a table: the last eight bytes are not a table's"));
        }
        let mut handle =
            || BlockHandle::decode(&mut handles).filter(|handle| handle.fits_before(at));
        match (handle(), handle()) {
            (Some(metaindex), Some(index)) => Ok(Footer { metaindex, index }),
            _ => Err(bad("the footer points outside the file")),
        }
    }
}

/// The verified, decompressed bytes of a block.
pub(super) enum BlockData {
    /// A buffer of its own.
    Owned(Buffer),
    /// A part of a mapped file, in place.
    Mapped { file: Arc<dyn RandomAccessFile>, range: Range<usize> },
}

impl BlockData {
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            BlockData::Owned(buffer) => buffer.as_slice(),
            BlockData::Mapped { file, range } => mapped_range(file.as_ref(), range),
        }
    }

    /// The bytes on the heap.
    pub(super) fn owned_bytes(&self) -> usize {
        match self {
            BlockData::Owned(buffer) => buffer.size(),
            BlockData::Mapped { .. } => 0,
        }
    }
}

fn mapped_range<'a>(file: &'a dyn RandomAccessFile, range: &Range<usize>) -> &'a [u8] {
    file.mapped().and_then(|bytes| bytes.get(range.start..range.end)).unwrap_or_default()
}

/// Reads, verifies and decompresses the block at `handle`. Returns the identifier in its trailer,
/// too.
///
/// Nothing is allocated before the handle was checked against the file's size: one that claims more
/// is damaged. Lack of memory is an I/O error. A raw block of a mapped file stays where it is.
pub(super) fn read_block(
    file: &Arc<dyn RandomAccessFile>,
    handle: BlockHandle,
    name: &str,
) -> Result<(BlockData, u8)> {
    let read_at = |offset, buffer: &mut [u8]| file.read_at(offset, buffer);
    read_block_by(file, handle, name, read_at, compression::decompress)
}

/// [`read_block`], by `read_at` where the file is not mapped, and decompressed by `decompress`,
/// which gets the identifier as well.
pub(super) fn read_block_by(
    file: &Arc<dyn RandomAccessFile>,
    handle: BlockHandle,
    name: &str,
    read_at: impl FnOnce(u64, &mut [u8]) -> Result<usize>,
    decompress: impl FnOnce(u8, &[u8]) -> std::result::Result<Buffer, BlockError>,
) -> Result<(BlockData, u8)> {
    let bad = |what: &str| {
        Error::corruption(format!("{name}: block at offset {}: {what}", handle.offset))
    };
    if handle.size > MOST_STORED {
        return Err(bad(&format!("its {} bytes are more than a block has", handle.size)));
    }
    if !handle.fits_before(file.size()) {
        return Err(bad(&format!("its {} bytes do not lie within the file", handle.size)));
    }
    let to_usize =
        |number: u64| usize::try_from(number).map_err(|_| bad("too large for this machine"));
    let (start, size) = (to_usize(handle.offset)?, to_usize(handle.size)?);
    if let Some(mapped) = file.mapped() {
        let stored = StoredBlock::new(mapped, handle).map_err(bad)?;
        if stored.kind == compression::RAW {
            let block = BlockData::Mapped { file: Arc::clone(file), range: start..start + size };
            return Ok((block, stored.kind));
        }
        return decompress(stored.kind, stored.contents)
            .map(|buffer| (BlockData::Owned(buffer), stored.kind))
            .map_err(|error| error.at(handle.offset, name));
    }
    let mut buffer = match Buffer::with_length(size + TRAILER_SIZE) {
        Ok(buffer) => buffer,
        // A length that was damaged is to be told from one for which there is no memory.
        Err(_) if !is_sound(file.as_ref(), handle)? => return Err(bad("checksum mismatch")),
        Err(error) => return Err(BlockError::from(error).at(handle.offset, name)),
    };
    read_exact(handle.offset, buffer.as_mut_slice(), name, read_at)?;
    let (contents, kind) = verify(buffer.as_slice()).map_err(bad)?;
    if kind == compression::RAW {
        buffer.truncate(size);
        return Ok((BlockData::Owned(buffer), kind));
    }
    let buffer = decompress(kind, contents).map_err(|error| error.at(handle.offset, name))?;
    Ok((BlockData::Owned(buffer), kind))
}

/// No block has more bytes: a restart point is the offset of an entry, with 32 bits, and the last
/// entry has less than 4 GiB.
const MOST_STORED: u64 = 8 << 30;

/// Whether the checksum of the block at `handle` is right, read in pieces.
#[cold]
fn is_sound(file: &dyn RandomAccessFile, handle: BlockHandle) -> Result<bool> {
    let mut piece = [0; 16 << 10];
    let mut checksum = Checksum::of(&[]);
    let end = handle.end() - TRAILER_SIZE as u64 + 1;
    let mut offset = handle.offset;
    while offset < end {
        let length = (end - offset).min(piece.len() as u64) as usize;
        if file.read_at(offset, &mut piece[..length])? < length {
            return Ok(false);
        }
        checksum.add(&piece[..length]);
        offset += length as u64;
    }
    let mut stored = [0; 4];
    let read = file.read_at(end, &mut stored)?;
    Ok(read == stored.len() && checksum.masked() == u32::from_le_bytes(stored))
}

/// A block as it stands in a mapped file, compressed and with its trailer, whose checksum was
/// verified.
pub(crate) struct StoredBlock<'a> {
    /// Block and trailer.
    bytes: &'a [u8],
    contents: &'a [u8],
    kind: u8,
}

impl<'a> StoredBlock<'a> {
    /// The block at `handle` in the bytes of a file.
    pub(super) fn new(
        mapped: &'a [u8],
        handle: BlockHandle,
    ) -> std::result::Result<Self, &'static str> {
        let within = |number: u64| usize::try_from(number).ok();
        let (start, size) = (within(handle.offset), within(handle.size));
        let end = start
            .zip(size)
            .and_then(|(start, size)| start.checked_add(size)?.checked_add(TRAILER_SIZE));
        let bytes = start
            .zip(end)
            .and_then(|(start, end)| mapped.get(start..end))
            .ok_or("outside of the mapping")?;
        let (contents, kind) = verify(bytes)?;
        Ok(StoredBlock { bytes, contents, kind })
    }

    /// Block and trailer.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The block alone, compressed.
    pub(super) fn contents(&self) -> &'a [u8] {
        self.contents
    }

    /// The identifier of its compression.
    pub(super) fn kind(&self) -> u8 {
        self.kind
    }
}

/// Checks block and trailer; gives the block and how it is compressed.
fn verify(bytes: &[u8]) -> std::result::Result<(&[u8], u8), &'static str> {
    let (contents, &[kind, a, b, c, d]) =
        bytes.split_last_chunk::<TRAILER_SIZE>().ok_or("no trailer")?;
    let checked = &bytes[..=contents.len()];
    if checksum::masked(checked) != u32::from_le_bytes([a, b, c, d]) && !mutated("block-checksum") {
        return Err("checksum mismatch");
    }
    Ok((contents, kind))
}

/// The trailer of a block.
pub(super) fn trailer(contents: &[u8], kind: u8) -> [u8; TRAILER_SIZE] {
    let [a, b, c, d] = checksum::masked_pair(contents, &[kind]).to_le_bytes();
    [kind, a, b, c, d]
}

fn read_exact(
    offset: u64,
    buffer: &mut [u8],
    name: &str,
    read_at: impl FnOnce(u64, &mut [u8]) -> Result<usize>,
) -> Result<()> {
    let read = read_at(offset, buffer)?;
    if read < buffer.len() {
        let wanted = buffer.len();
        return Err(Error::corruption(format!(
            "{name}: {read} bytes at offset {offset} instead of {wanted}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::base::error::ErrorKind;

    use super::*;

    #[test]
    fn footer_has_leveldbs_shape() {
        let footer = Footer {
            metaindex: BlockHandle { offset: 300, size: 8 },
            index: BlockHandle { offset: 313, size: 1 << 40 },
        };
        let mut bytes = Vec::new();
        footer.encode(&mut bytes);
        assert_eq!(bytes.len(), 48);
        assert_eq!(bytes[..5], [0xac, 2, 8, 0xb9, 2]);
        assert_eq!(bytes[40..], [0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb]);
    }

    /// A file that has become shorter than it was when it was opened.
    struct Shrunk(Vec<u8>);

    impl RandomAccessFile for Shrunk {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
            let rest = self.0.get(offset as usize..).unwrap_or_default();
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        }

        fn size(&self) -> u64 {
            1000
        }
    }

    #[test]
    fn blocks_of_a_file_that_shrinks_are_damaged() {
        let contents = b"sixteen letters.";
        let sound = [&contents[..], &trailer(contents, compression::RAW)].concat();
        let read = |bytes: &[u8], size| {
            let file: Arc<dyn RandomAccessFile> = Arc::new(Shrunk(bytes.to_vec()));
            let handle = BlockHandle { offset: 0, size };
            read_block(&file, handle, "t.ldb")
                .map(|(data, _)| data.as_slice().to_vec())
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(&sound, 16), Ok(contents.to_vec()));
        let error = read(&sound[..20], 16).expect_err("too short");
        assert!(error.contains("t.ldb: 20 bytes at offset 0 instead of 21"), "{error}");
        let error = read(&sound, 996).expect_err("too long");
        assert!(error.contains("do not lie within the file"), "{error}");
        let footer =
            Footer::read(&Shrunk(vec![0; 990]), "t.ldb").expect_err("too short").to_string();
        assert!(footer.contains("t.ldb: 38 bytes at offset 952 instead of 48"), "{footer}");
    }

    /// A file with a hole: larger than any memory.
    struct Sparse;

    impl RandomAccessFile for Sparse {
        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
            panic!("there is no memory to read into");
        }

        fn size(&self) -> u64 {
            1 << 62
        }
    }

    #[test]
    fn claims_of_more_than_a_block_has_are_damage() {
        let file: Arc<dyn RandomAccessFile> = Arc::new(Sparse);
        for size in [(8 << 30) + 1, 1 << 61, 1 << 62] {
            let error = read_block(&file, BlockHandle { offset: 7, size }, "t.ldb").err();
            let error = error.expect("an error");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        }
    }

    #[test]
    fn blocks_that_are_read_in_pieces_are_sound_or_not() {
        let contents: Vec<_> = (0..40_000u32).map(|number| ((number * 7) >> 3) as u8).collect();
        let mut bytes = [b"before", &contents[..], &trailer(&contents, compression::RAW)].concat();
        let sound = |bytes: &[u8], size| {
            is_sound(&Shrunk(bytes.to_vec()), BlockHandle { offset: 6, size }).expect("reads")
        };
        let size = contents.len() as u64;
        assert!(sound(&bytes, size));
        assert!(!sound(&bytes, size - 1) && !sound(&bytes, size + 1) && !sound(&bytes, 1 << 31));
        assert!(!sound(&bytes[..bytes.len() - 1], size));
        for at in [6, 20_000, 40_005, 40_006, 40_010] {
            bytes[at] ^= 1;
            assert!(!sound(&bytes, size), "byte {at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn stored_blocks_are_sound_or_refused() {
        let block = [b"no block", &trailer(b"no block", compression::SNAPPY)[..]].concat();
        let file = [b"before", &block[..], b"behind"].concat();
        let handle = BlockHandle { offset: 6, size: 8 };
        let read = |bytes: &[u8], handle| {
            StoredBlock::new(bytes, handle)
                .ok()
                .map(|stored| (stored.bytes().to_vec(), stored.kind()))
        };
        assert_eq!(read(&file, handle), Some((block, compression::SNAPPY)));
        assert_eq!(read(&file, BlockHandle { size: 7, ..handle }), None);
        assert_eq!(read(&file, BlockHandle { size: u64::MAX - 7, ..handle }), None);
        assert_eq!(read(&file[..18], handle), None);
        for bit in 6 * 8..19 * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&damaged, handle), None, "bit {bit}");
        }
    }

    #[test]
    fn handles_that_overflow_fit_nowhere() {
        let handle = BlockHandle { offset: u64::MAX - 2, size: 1 };
        assert!(!handle.fits_before(u64::MAX));
        assert!(!BlockHandle { offset: 0, size: u64::MAX }.fits_before(u64::MAX));
        assert!(BlockHandle { offset: 5, size: 10 }.fits_before(20));
        assert!(!BlockHandle { offset: 5, size: 10 }.fits_before(19));
    }
}
