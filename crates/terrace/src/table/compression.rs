//! How blocks are compressed.
//!
//! Unless options say otherwise Terrace writes raw and snappy blocks only, as LevelDB does. With
//! LZ4 or zstd the database is extended. Terrace also reads what forks write: zstd and zlib, which
//! share an identifier and are told apart by their first bytes, and raw deflate.
//!
//! No output is allocated before its size was bounded. For snappy the bound is exact: no element of
//! the format makes more than 64 bytes out of 3, so a header that claims more lies. Deflate cannot
//! expand beyond 1,032 to 1. Zstd can, without a useful limit; such blocks may grow to that same
//! ratio or to [`FOREIGN_FLOOR`], whichever is more, and none that is larger is written. LZ4 makes
//! no more than 255 bytes out of one.

#[cfg(feature = "zstd")]
use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read};

use crate::base::coding::{get_varint32, put_varint32};
use crate::base::error::{Error, Result as Outcome};

use lz4_flex::block::{CompressTable, compress_into_with_table};

use super::block_error::BlockError;
use super::buffer::Buffer;
use super::snappy::{self, SnappyDecoder};

/// How the blocks of a table are compressed when it is written. A block that compression would
/// shrink by less than an eighth is stored raw.
///
/// LevelDB 1.23 reads none of the blocks that are written with LZ4 or zstd. A database that has
/// such a table is *extended*: its MANIFEST bears a name that LevelDB and earlier versions of
/// Terrace refuse. It is plain again once compactions without these settings have rewritten the
/// last such table (`terrace convert --to plain`). Which setting reads a table does not matter.
///
/// ```
/// # use terrace::*;
/// let options = Options::new().compression(Compression::None); // for values that are compressed
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    None,
    /// With snappy.
    #[default]
    Snappy,
    /// With LZ4: about as small as snappy, and as fast.
    Lz4,
    /// With zstd, level 3: smaller than the others, and slower to write and to read. Needs the
    /// feature `zstd`; without it opening a database with this setting fails with
    /// [`NotSupported`](crate::ErrorKind::NotSupported).
    Zstd,
}

impl Compression {
    /// Its name in lower case: `none`, `snappy`, `lz4`, `zstd`.
    ///
    /// ```
    /// assert_eq!(terrace::Compression::Snappy.name(), "snappy");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// The compression of that name.
    ///
    /// ```
    /// use terrace::Compression;
    /// assert_eq!(Compression::from_name("lz4"), Some(Compression::Lz4));
    /// assert_eq!(Compression::from_name("bzip2"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zstd]
            .into_iter()
            .find(|compression| compression.name() == name)
    }

    /// Whether LevelDB 1.23 reads it.
    pub(crate) fn is_leveldbs(self) -> bool {
        matches!(self, Compression::None | Compression::Snappy)
    }

    /// Whether a compressed block is one of this compression's.
    pub(super) fn is_of(self, kind: u8, compressed: &[u8]) -> bool {
        match self {
            Compression::None => false,
            Compression::Snappy => kind == SNAPPY,
            Compression::Lz4 => kind == LZ4,
            Compression::Zstd => kind == ZSTD_OR_ZLIB && compressed.starts_with(&ZSTD_MAGIC),
        }
    }

    /// Fails if this build cannot write it.
    pub(crate) fn check(self) -> Outcome<()> {
        if self == Compression::Zstd && cfg!(not(feature = "zstd")) {
            let message = "this build of Terrace writes no zstd: it lacks the feature zstd";
            return Err(Error::not_supported(message));
        }
        Ok(())
    }
}

const LZ4_BIT: u64 = 1;
const ZSTD_BIT: u64 = 2;
const DICTIONARY_BIT: u64 = 4;

/// The compressions beyond LevelDB's that blocks of a table have, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Codecs(u64);

impl Codecs {
    /// As a file says it. Bits that are not known here stay: they are
    /// [unknown](Codecs::has_unknown).
    pub(crate) fn from_bits(bits: u64) -> Self {
        Codecs(bits)
    }

    /// Of a block with this identifier.
    pub(super) fn of(kind: u8) -> Self {
        Codecs(match kind {
            LZ4 => LZ4_BIT,
            // Those of forks, which share identifiers, among them.
            ZSTD_OR_ZLIB | DEFLATE => ZSTD_BIT,
            ZSTD_WITH_DICTIONARY => DICTIONARY_BIT,
            _ => 0,
        })
    }

    /// Whether a later version of Terrace has written blocks that this one cannot read.
    pub(crate) fn has_unknown(self) -> bool {
        self.0 & !(LZ4_BIT | ZSTD_BIT | DICTIONARY_BIT) != 0
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Whether LevelDB reads all blocks.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those in either.
    pub(crate) fn union(self, other: Codecs) -> Codecs {
        Codecs(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
    pub(crate) fn contains(self, other: Codecs) -> bool {
        other.0 & !self.0 == 0
    }

    /// Their names.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let names = [(LZ4_BIT, "lz4"), (ZSTD_BIT, "zstd"), (DICTIONARY_BIT, "zstd-dictionary")];
        names.into_iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, name)| name).collect()
    }
}

impl fmt::Display for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(" and "))
    }
}

/// The identifiers in block trailers.
pub(super) const RAW: u8 = 0;
pub(super) const SNAPPY: u8 = 1;
const ZSTD_OR_ZLIB: u8 = 2;
const DEFLATE: u8 = 4;
/// Terrace's own: the size as a varint, then a block of LZ4.
pub(super) const LZ4: u8 = 0x54;
/// Terrace's own: a frame of zstd that needs the dictionary of its table.
pub(super) const ZSTD_WITH_DICTIONARY: u8 = 0x55;

const DEFLATE_MAX_RATIO: usize = 1032;
/// A match is lengthened by 255 with each byte.
const LZ4_MAX_RATIO: usize = 255;
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The size to which a block of a foreign compression may always grow.
const FOREIGN_FLOOR: usize = 64 << 20;

/// The name of the compression of a block.
pub(super) fn name(kind: u8) -> &'static str {
    match kind {
        RAW => "none",
        SNAPPY => "snappy",
        ZSTD_OR_ZLIB => "zstd or zlib",
        DEFLATE => "deflate",
        LZ4 => "lz4",
        ZSTD_WITH_DICTIONARY => "zstd with a dictionary",
        _ => "unknown",
    }
}

/// Whether blocks with this identifier can be read.
pub(super) fn is_known(kind: u8) -> bool {
    matches!(kind, RAW | SNAPPY | ZSTD_OR_ZLIB | DEFLATE | LZ4 | ZSTD_WITH_DICTIONARY)
}

/// The bytes of a compressed block. `kind` is not [`RAW`]. A block that needs a dictionary is for
/// [`TableDictionary`](super::table_dictionary::TableDictionary).
pub(super) fn decompress(kind: u8, compressed: &[u8]) -> Result<Buffer, BlockError> {
    match kind {
        SNAPPY => Ok(decode_snappy(compressed)?.0),
        ZSTD_OR_ZLIB if compressed.starts_with(&ZSTD_MAGIC) => zstd(compressed),
        ZSTD_OR_ZLIB => miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(
            compressed,
            foreign_limit(compressed.len()),
        )
        .map(Buffer::from)
        .map_err(|_| "its zlib stream is damaged or too large".into()),
        DEFLATE => miniz_oxide::inflate::decompress_to_vec_with_limit(
            compressed,
            foreign_limit(compressed.len()),
        )
        .map(Buffer::from)
        .map_err(|_| "its deflate stream is damaged or too large".into()),
        LZ4 => lz4(compressed),
        ZSTD_WITH_DICTIONARY => Err("only data blocks may need a dictionary".into()),
        _ => Err("unknown compression".into()),
    }
}

/// A block of snappy, and whether that was so quick that the block need not be kept for a next
/// time: at least ten bytes an element, and not so large that there is no buffer at hand.
pub(super) fn decode_snappy(compressed: &[u8]) -> Result<(Buffer, bool), BlockError> {
    const MOST_QUICK: usize = 64 << 10;
    let (length, elements) = snappy::split_header(compressed)?;
    let mut output = Buffer::with_length(length)?;
    let effort = SnappyDecoder::new(elements, output.as_mut_slice()).finish()?;
    Ok((output, length <= MOST_QUICK && length >= effort.saturating_mul(10)))
}

fn lz4(compressed: &[u8]) -> Result<Buffer, BlockError> {
    const DAMAGED: &str = "its LZ4 data is damaged";
    let mut rest = compressed;
    let length = get_varint32(&mut rest).ok_or(DAMAGED)? as usize;
    if length > rest.len().saturating_mul(LZ4_MAX_RATIO) {
        return Err("its LZ4 header claims more than can be".into());
    }
    let mut output = Buffer::with_length(length)?;
    match lz4_flex::block::decompress_into(rest, output.as_mut_slice()) {
        Ok(written) if written == length => Ok(output),
        _ => Err(DAMAGED.into()),
    }
}

/// What compresses blocks, one after the other.
pub(super) struct Compressor {
    snappy: snap::raw::Encoder,
    lz4: CompressTable,
    /// The size before a block of LZ4.
    size: Vec<u8>,
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Compressor {
    pub(super) fn new() -> Self {
        Compressor {
            snappy: snap::raw::Encoder::new(),
            lz4: CompressTable::default(),
            size: Vec::new(),
            #[cfg(feature = "zstd")]
            zstd: None,
        }
    }

    /// The identifier of blocks that are compressed so, and the most that `length` bytes take;
    /// `None` if they are stored as they are.
    pub(super) fn bound(compression: Compression, length: usize) -> Option<(u8, usize)> {
        match compression {
            Compression::None => None,
            // Zero: too large for the format.
            Compression::Snappy => match snap::raw::max_compress_len(length) {
                0 => None,
                longest => Some((SNAPPY, longest)),
            },
            Compression::Lz4 => {
                u32::try_from(length).ok()?;
                Some((LZ4, 5 + lz4_flex::block::get_maximum_output_size(length)))
            }
            #[cfg(feature = "zstd")]
            Compression::Zstd => Some((ZSTD_OR_ZLIB, zstd::zstd_safe::compress_bound(length))),
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => None,
        }
    }

    /// Compresses into `output`, which has the room that `bound` says. Returns the size, `None` if
    /// the block is to be stored as it is.
    pub(super) fn compress(
        &mut self,
        compression: Compression,
        contents: &[u8],
        output: &mut [u8],
    ) -> Option<usize> {
        match compression {
            Compression::None => None,
            Compression::Snappy => self.snappy.compress(contents, output).ok(),
            Compression::Lz4 => {
                self.size.clear();
                put_varint32(&mut self.size, u32::try_from(contents.len()).ok()?);
                let (first, rest) = output.split_at_mut_checked(self.size.len())?;
                first.copy_from_slice(&self.size);
                let size = compress_into_with_table(contents, rest, &mut self.lz4).ok()?;
                Some(first.len() + size)
            }
            #[cfg(feature = "zstd")]
            Compression::Zstd => {
                let size = self.zstd()?.compress_to_buffer(contents, output).ok()?;
                // What no reader would take for sound is stored as it is.
                (contents.len() <= foreign_limit(size)).then_some(size)
            }
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => None,
        }
    }

    /// libzstd's part.
    #[cfg(feature = "zstd")]
    pub(super) fn zstd(&mut self) -> Option<&mut zstd::bulk::Compressor<'static>> {
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
        }
        self.zstd.as_mut()
    }
}

pub(super) const ZSTD_LEVEL: i32 = 3;

#[cfg(feature = "zstd")]
thread_local! {
    /// Making one costs more than a block does.
    static DECOMPRESSOR: RefCell<Option<zstd::zstd_safe::DCtx<'static>>> = const { RefCell::new(None) };
}

/// Does `work` with the thread's decompressor, or, if the thread is ending, with another one. `None`
/// if there is no memory for one.
#[cfg(feature = "zstd")]
pub(super) fn with_decompressor<T>(
    work: impl FnOnce(&mut zstd::zstd_safe::DCtx<'static>) -> T,
) -> Option<T> {
    let mut work = Some(work);
    let done = DECOMPRESSOR.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.is_none() {
            *kept = zstd::zstd_safe::DCtx::try_create();
        }
        let context = kept.as_mut()?;
        Some(work.take()?(context))
    });
    match done {
        Ok(done) => done,
        Err(_) => Some(work.take()?(&mut zstd::zstd_safe::DCtx::try_create()?)),
    }
}

/// What a zstd frame may claim for its size to be allocated at once.
#[cfg(feature = "zstd")]
const LIKELY_ZSTD_RATIO: usize = 100;
#[cfg(feature = "zstd")]
const LIKELY_SIZE: usize = 1 << 20;

#[cfg(feature = "zstd")]
fn zstd(compressed: &[u8]) -> Result<Buffer, BlockError> {
    // Whoever wrote it may have left the size out, or claim what is not there: then the output
    // grows with what comes.
    let likely = compressed.len().saturating_mul(LIKELY_ZSTD_RATIO).max(LIKELY_SIZE);
    let size = zstd::zstd_safe::get_frame_content_size(compressed).ok().flatten();
    match size.and_then(|size| usize::try_from(size).ok()) {
        Some(size) if size <= likely => {
            let mut output = Buffer::with_length(size)?;
            let written = with_decompressor(|context| {
                context.decompress(output.as_mut_slice(), compressed).ok()
            });
            match written {
                Some(Some(written)) if written == size => Ok(output),
                // It is damaged, or more frames follow, or there is no memory for a decompressor.
                _ => streamed_zstd(compressed),
            }
        }
        _ => streamed_zstd(compressed),
    }
}

#[cfg(not(feature = "zstd"))]
fn zstd(compressed: &[u8]) -> Result<Buffer, BlockError> {
    streamed_zstd(compressed)
}

fn streamed_zstd(compressed: &[u8]) -> Result<Buffer, BlockError> {
    let limit = foreign_limit(compressed.len()) as u64;
    let mut source = compressed;
    let mut decoder =
        ruzstd::decoding::StreamingDecoder::new_with_max_window_size(&mut source, limit)
            .map_err(|_| "its zstd header is damaged")?;
    let mut output = Vec::new();
    let taken = Read::by_ref(&mut decoder).take(limit + 1).read_to_end(&mut output);
    match taken {
        Ok(length) if length as u64 <= limit => Ok(Buffer::from(output)),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(BlockError::OutOfMemory),
        _ => Err("its zstd frame is damaged or too large".into()),
    }
}

/// The most that a block of `compressed` bytes may hold.
fn foreign_limit(compressed: usize) -> usize {
    compressed.saturating_mul(DEFLATE_MAX_RATIO).max(FOREIGN_FLOOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(kind: u8, compressed: &[u8]) -> Result<Vec<u8>, BlockError> {
        decompress(kind, compressed).map(|buffer| buffer.as_slice().to_vec())
    }

    #[test]
    fn snappy_lies_are_refused_before_they_cost_memory() {
        let mut bomb = vec![0xff, 0xff, 0xff, 0xff, 0x0f];
        bomb.extend_from_slice(&[0; 100]);
        assert_eq!(plain(SNAPPY, &bomb), Err("its snappy header claims more than can be".into()));
        assert!(plain(SNAPPY, &[]).is_err());
    }

    #[test]
    fn the_best_snappy_ratio_is_within_the_bound() {
        for size in [1usize, 100, 4096, 65_536, 1 << 20] {
            let zeros = vec![0; size];
            let packed = snap::raw::Encoder::new().compress_vec(&zeros).expect("compresses");
            assert_eq!(plain(SNAPPY, &packed).as_deref(), Ok(&zeros[..]));
        }
    }

    #[test]
    fn blocks_of_forks_are_read() {
        let text = b"terrace terrace terrace terrace".repeat(20);
        let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&text, 6);
        assert_eq!(plain(ZSTD_OR_ZLIB, &zlib).as_deref(), Ok(&text[..]));
        let deflate = miniz_oxide::deflate::compress_to_vec(&text, 6);
        assert_eq!(plain(DEFLATE, &deflate).as_deref(), Ok(&text[..]));
        let zstd = ruzstd::encoding::compress_to_vec(
            &text[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        assert_eq!(plain(ZSTD_OR_ZLIB, &zstd).as_deref(), Ok(&text[..]));
        assert!(decompress(3, &zstd).is_err());
        let mut lz4 = vec![0; Compressor::bound(Compression::Lz4, text.len()).expect("a bound").1];
        let size =
            Compressor::new().compress(Compression::Lz4, &text, &mut lz4).expect("compresses");
        lz4.truncate(size);
        assert_eq!(plain(LZ4, &lz4).as_deref(), Ok(&text[..]));
        for cut in 0..lz4.len() {
            assert!(plain(LZ4, &lz4[..cut]).is_err());
        }
        lz4[..2].copy_from_slice(&[0xff, 0xff]);
        assert!(plain(LZ4, &lz4).is_err());
        assert_eq!(
            plain(LZ4, &[0xff, 0xff, 0xff, 0x7f, 0]),
            Err("its LZ4 header claims more than can be".into())
        );
        for cut in 0..zstd.len() {
            assert!(plain(ZSTD_OR_ZLIB, &zstd[..cut]).is_err());
        }
        for cut in 0..zlib.len() {
            assert!(plain(ZSTD_OR_ZLIB, &zlib[..cut]).is_err());
        }
    }

    #[test]
    fn a_zstd_bomb_stops_at_the_limit() {
        // Blocks of one repeated byte: 128 KiB out of four bytes.
        let mut bomb = ZSTD_MAGIC.to_vec();
        bomb.extend_from_slice(&[0x00, 0x38]);
        for _ in 0..=FOREIGN_FLOOR >> 17 {
            bomb.extend_from_slice(&[0x02, 0x00, 0x10, b'x']);
        }
        let mut bounded = bomb[..6 + 4 * 10].to_vec();
        let last = bounded.len() - 4;
        bounded[last] |= 1;
        assert_eq!(plain(ZSTD_OR_ZLIB, &bounded).map(|output| output.len()), Ok(10 << 17));
        assert_eq!(
            plain(ZSTD_OR_ZLIB, &bomb),
            Err("its zstd frame is damaged or too large".into())
        );
        let last = bomb.len() - 4;
        bomb[last] |= 1;
        assert_eq!(
            plain(ZSTD_OR_ZLIB, &bomb),
            Err("its zstd frame is damaged or too large".into())
        );
    }
}
