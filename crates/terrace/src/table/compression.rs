//! How blocks are compressed.
//!
//! Terrace writes raw and snappy blocks only, as LevelDB does. It also reads what forks write: zstd
//! and zlib, which share an identifier and are told apart by their first bytes, and raw deflate.
//!
//! No output is allocated before its size was bounded. For snappy the bound is exact: no element of
//! the format makes more than 64 bytes out of 3, so a header that claims more lies. Deflate cannot
//! expand beyond 1,032 to 1. Zstd can, without a useful limit; such blocks may grow to that same
//! ratio or to [`FOREIGN_FLOOR`], whichever is more.

use std::io::Read;

use super::buffer::Buffer;

/// How the blocks of a table are compressed when it is written. A block that compression would
/// shrink by less than an eighth is stored raw.
///
/// ```
/// # use terrace::*;
/// let options = Options::new().compression(Compression::None); // for values that are compressed
/// # let _ = options;
/// # Ok::<_, terrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Not at all.
    None,
    /// With snappy.
    #[default]
    Snappy,
}

/// The identifiers in block trailers.
pub(super) const RAW: u8 = 0;
pub(super) const SNAPPY: u8 = 1;
const ZSTD_OR_ZLIB: u8 = 2;
const DEFLATE: u8 = 4;

const SNAPPY_MAX_RATIO: usize = 22;
const DEFLATE_MAX_RATIO: usize = 1032;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The size to which a block of a foreign compression may always grow.
const FOREIGN_FLOOR: usize = 64 << 20;

/// The name of the compression of a block.
pub(super) fn name(kind: u8) -> &'static str {
    match kind {
        RAW => "none",
        SNAPPY => "snappy",
        ZSTD_OR_ZLIB => "zstd or zlib",
        DEFLATE => "deflate",
        _ => "unknown",
    }
}

/// Whether blocks with this identifier can be read.
pub(super) fn is_known(kind: u8) -> bool {
    matches!(kind, RAW | SNAPPY | ZSTD_OR_ZLIB | DEFLATE)
}

/// The bytes of a compressed block. `kind` is not [`RAW`].
pub(super) fn decompress(kind: u8, compressed: &[u8]) -> Result<Buffer, &'static str> {
    match kind {
        SNAPPY => snappy(compressed),
        ZSTD_OR_ZLIB if compressed.starts_with(&ZSTD_MAGIC) => zstd(compressed),
        ZSTD_OR_ZLIB => miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(
            compressed,
            foreign_limit(compressed),
        )
        .map(Buffer::from)
        .map_err(|_| "its zlib stream is damaged or too large"),
        DEFLATE => miniz_oxide::inflate::decompress_to_vec_with_limit(
            compressed,
            foreign_limit(compressed),
        )
        .map(Buffer::from)
        .map_err(|_| "its deflate stream is damaged or too large"),
        _ => Err("unknown compression"),
    }
}

fn snappy(compressed: &[u8]) -> Result<Buffer, &'static str> {
    const DAMAGED: &str = "its snappy data is damaged";
    let length = snap::raw::decompress_len(compressed).map_err(|_| DAMAGED)?;
    if length > compressed.len().saturating_mul(SNAPPY_MAX_RATIO) {
        return Err("its snappy header claims more than can be");
    }
    let mut output = Buffer::with_length(length)?;
    let written = snap::raw::Decoder::new()
        .decompress(compressed, output.as_mut_slice())
        .map_err(|_| DAMAGED)?;
    output.truncate(written);
    Ok(output)
}

fn zstd(compressed: &[u8]) -> Result<Buffer, &'static str> {
    let limit = foreign_limit(compressed) as u64;
    let mut source = compressed;
    let mut decoder =
        ruzstd::decoding::StreamingDecoder::new_with_max_window_size(&mut source, limit)
            .map_err(|_| "its zstd header is damaged")?;
    let mut output = Vec::new();
    let taken = Read::by_ref(&mut decoder).take(limit + 1).read_to_end(&mut output);
    match taken {
        Ok(length) if length as u64 <= limit => Ok(Buffer::from(output)),
        _ => Err("its zstd frame is damaged or too large"),
    }
}

fn foreign_limit(compressed: &[u8]) -> usize {
    compressed.len().saturating_mul(DEFLATE_MAX_RATIO).max(FOREIGN_FLOOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(kind: u8, compressed: &[u8]) -> Result<Vec<u8>, &'static str> {
        decompress(kind, compressed).map(|buffer| buffer.as_slice().to_vec())
    }

    #[test]
    fn snappy_lies_are_refused_before_they_cost_memory() {
        let mut bomb = vec![0xff, 0xff, 0xff, 0xff, 0x0f];
        bomb.extend_from_slice(&[0; 100]);
        assert_eq!(plain(SNAPPY, &bomb), Err("its snappy header claims more than can be"));
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
        assert_eq!(plain(ZSTD_OR_ZLIB, &bomb), Err("its zstd frame is damaged or too large"));
        let last = bomb.len() - 4;
        bomb[last] |= 1;
        assert_eq!(plain(ZSTD_OR_ZLIB, &bomb), Err("its zstd frame is damaged or too large"));
    }
}
