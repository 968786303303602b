//! A zstd dictionary: what blocks of a table have in common, so that none of them has to say it.
//!
//! A builder trains it on the first blocks of a table; the table stores it as a block of its own.
//! Without the feature `zstd` nothing is trained, and `ruzstd` reads.

#[cfg(any(test, not(feature = "zstd")))]
use std::io::{self, Read};

#[cfg(feature = "zstd")]
use zstd::zstd_safe::{CDict, DDict};

#[cfg(not(feature = "zstd"))]
use crate::base::locks::Mutex;

use super::block_error::{BlockError, Damage};
use super::buffer::Buffer;
use super::compression::Compressor;
#[cfg(feature = "zstd")]
use super::compression::with_decompressor;

/// The name of the block in the metaindex.
pub(super) const DICTIONARY_NAME: &str = "terrace.zstd-dictionary";

/// Bytes of the largest dictionary: each open table has its own in memory.
pub(crate) const MOST_DICTIONARY: usize = 256 << 10;

/// The first bytes of every dictionary that was trained.
pub(super) const DICTIONARY_MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// Blocks hold no more than this, or than so many times their compressed size: what a hostile frame
/// claims is allocated at once.
const MOST_SMALL: usize = 1 << 20;
const MOST_RATIO: usize = 100;

/// The most that a block of `compressed` bytes may hold.
fn most_decompressed(compressed: usize) -> usize {
    compressed.saturating_mul(MOST_RATIO).max(MOST_SMALL)
}

/// A dictionary as readers have it.
pub(super) struct Dictionary {
    #[cfg(feature = "zstd")]
    digested: DDict<'static>,
    #[cfg(not(feature = "zstd"))]
    decoder: Mutex<ruzstd::decoding::FrameDecoder>,
    memory_usage: usize,
}

impl Dictionary {
    /// The dictionary of these bytes, which may come from a file.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, Damage> {
        // Any other bytes would be a dictionary without tables, of which none was trained.
        if bytes.len() > MOST_DICTIONARY || !bytes.starts_with(&DICTIONARY_MAGIC) {
            return Err(DAMAGED_DICTIONARY);
        }
        #[cfg(feature = "zstd")]
        {
            let digested = DDict::try_create(bytes).ok_or(DAMAGED_DICTIONARY)?;
            let memory_usage = digested.sizeof();
            Ok(Dictionary { digested, memory_usage })
        }
        #[cfg(not(feature = "zstd"))]
        {
            /// Tables of a dictionary, and of the decoder.
            const TABLES: usize = 64 << 10;
            let decoder = slow_decoder(bytes)?;
            let memory_usage = bytes.len() + TABLES;
            Ok(Dictionary { decoder: Mutex::new(decoder), memory_usage })
        }
    }

    /// Bytes on the heap.
    pub(super) fn memory_usage(&self) -> usize {
        self.memory_usage
    }

    /// The bytes of a block that was compressed with this dictionary.
    pub(super) fn decompress(&self, compressed: &[u8]) -> Result<Buffer, BlockError> {
        #[cfg(feature = "zstd")]
        {
            let size = zstd::zstd_safe::get_frame_content_size(compressed).ok().flatten();
            let size = size.and_then(|size| usize::try_from(size).ok()).ok_or(DAMAGED)?;
            if size > most_decompressed(compressed.len()) {
                return Err("its zstd frame claims more than can be".into());
            }
            let mut output = Buffer::with_length(size)?;
            let written = with_decompressor(|context| {
                let output = output.as_mut_slice();
                context.decompress_using_ddict(output, compressed, &self.digested).ok()
            });
            match written {
                Some(Some(written)) if written == size => Ok(output),
                Some(_) => Err(DAMAGED.into()),
                None => Err(BlockError::OutOfMemory),
            }
        }
        #[cfg(not(feature = "zstd"))]
        {
            decompress_slowly(&mut self.decoder.lock(), compressed)
        }
    }
}

/// The damage of a block, and of a dictionary.
const DAMAGED: Damage = "its zstd frame is damaged, or was compressed with another dictionary";
const DAMAGED_DICTIONARY: Damage = "the dictionary is damaged";

/// A decoder of `ruzstd` with a dictionary.
#[cfg(any(test, not(feature = "zstd")))]
fn slow_decoder(bytes: &[u8]) -> Result<ruzstd::decoding::FrameDecoder, Damage> {
    let parsed =
        ruzstd::decoding::Dictionary::decode_dict(bytes).map_err(|_| DAMAGED_DICTIONARY)?;
    let mut decoder = ruzstd::decoding::FrameDecoder::new();
    decoder.add_dict(parsed).map_err(|_| DAMAGED_DICTIONARY)?;
    Ok(decoder)
}

/// The bytes of a block, without libzstd.
#[cfg(any(test, not(feature = "zstd")))]
fn decompress_slowly(
    decoder: &mut ruzstd::decoding::FrameDecoder,
    compressed: &[u8],
) -> Result<Buffer, BlockError> {
    let limit = most_decompressed(compressed.len()) as u64;
    decoder.set_max_window_size(limit);
    let frame = ruzstd::decoding::StreamingDecoder::new_with_decoder(compressed, decoder);
    let mut output = Vec::new();
    match frame.map_err(|_| DAMAGED)?.take(limit + 1).read_to_end(&mut output) {
        Ok(length) if length as u64 <= limit => Ok(Buffer::from(output)),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(BlockError::OutOfMemory),
        _ => Err(DAMAGED.into()),
    }
}

/// A dictionary as builders have it.
pub(super) struct TrainedDictionary {
    bytes: Vec<u8>,
    #[cfg(feature = "zstd")]
    digested: CDict<'static>,
}

impl TrainedDictionary {
    /// Trains a dictionary of at most `most` bytes on samples that lie one behind the other, each
    /// with its size. `None` if it comes to nothing.
    #[cfg(feature = "zstd")]
    pub(super) fn train(samples: &[u8], sizes: &[usize], most: usize, level: i32) -> Option<Self> {
        let mut bytes = Vec::with_capacity(most.min(MOST_DICTIONARY));
        zstd::zstd_safe::train_from_buffer(&mut bytes, samples, sizes).ok()?;
        // What readers would refuse is not written.
        Dictionary::new(&bytes).ok()?;
        let digested = CDict::try_create(&bytes, level)?;
        Some(TrainedDictionary { bytes, digested })
    }

    #[cfg(not(feature = "zstd"))]
    pub(super) fn train(_: &[u8], _: &[usize], _: usize, _: i32) -> Option<Self> {
        None
    }

    /// The block that a table stores.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Compresses into `output`. Returns the size, `None` if the block is not to be compressed so.
    #[cfg(feature = "zstd")]
    pub(super) fn compress(
        &self,
        compressor: &mut Compressor,
        contents: &[u8],
        output: &mut [u8],
    ) -> Option<usize> {
        let context = compressor.zstd()?.context_mut();
        let size = context.compress_using_cdict(output, contents, &self.digested).ok()?;
        (contents.len() <= most_decompressed(size)).then_some(size)
    }

    #[cfg(not(feature = "zstd"))]
    pub(super) fn compress(&self, _: &mut Compressor, _: &[u8], _: &mut [u8]) -> Option<usize> {
        None
    }
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;

    fn block(number: usize) -> Vec<u8> {
        let entry = |at: usize| {
            let number = (number * 40 + at) * 2_654_435_761 % 1_000_003;
            format!("{{\"sku\":{number},\"state\":\"in stock\",\"warehouse\":{}}}", number % 7)
        };
        (0..40).flat_map(|at| entry(at).into_bytes()).collect()
    }

    fn trained() -> TrainedDictionary {
        let blocks: Vec<_> = (0..64).map(block).collect();
        let sizes: Vec<_> = blocks.iter().map(Vec::len).collect();
        TrainedDictionary::train(&blocks.concat(), &sizes, 4 << 10, 3).expect("a dictionary")
    }

    fn compressed(dictionary: &TrainedDictionary, contents: &[u8]) -> Vec<u8> {
        let mut output = vec![0; zstd::zstd_safe::compress_bound(contents.len())];
        let size = dictionary.compress(&mut Compressor::new(), contents, &mut output);
        output.truncate(size.expect("compresses"));
        output
    }

    #[test]
    fn blocks_come_back_or_are_damaged() {
        let trained = trained();
        let dictionary = Dictionary::new(trained.bytes()).expect("a dictionary");
        assert!((4 << 10..100 << 10).contains(&dictionary.memory_usage()));
        let mut decoder = slow_decoder(trained.bytes()).expect("a dictionary");
        for number in [0, 100, 1000] {
            let stored = compressed(&trained, &block(number));
            let output = dictionary.decompress(&stored).expect("sound");
            assert_eq!(output.as_slice(), block(number));
            // As builds without the feature read it.
            let slowly = decompress_slowly(&mut decoder, &stored).expect("sound");
            assert_eq!(slowly.as_slice(), block(number));
            assert!(decompress_slowly(&mut decoder, &stored[..stored.len() / 2]).is_err());
            for cut in 0..stored.len() {
                assert!(dictionary.decompress(&stored[..cut]).is_err());
            }
        }
        assert!(dictionary.decompress(&[0; 40]).is_err());
    }

    #[test]
    fn another_dictionary_is_damage() {
        let other: Vec<_> = (0..64)
            .map(|number| format!("{number} {}", "x y z ".repeat(40 + number)))
            .map(String::into_bytes)
            .collect();
        let sizes: Vec<_> = other.iter().map(Vec::len).collect();
        let other = TrainedDictionary::train(&other.concat(), &sizes, 2 << 10, 3).expect("one");
        let stored = compressed(&trained(), &block(7));
        let other = Dictionary::new(other.bytes()).expect("a dictionary");
        let error = other.decompress(&stored).map(|_| ()).expect_err("another");
        assert!(matches!(error, BlockError::Damage(text) if text.contains("another dictionary")));
    }

    #[test]
    fn damaged_dictionaries_are_refused_or_harmless() {
        let trained = trained();
        let stored = compressed(&trained, &block(7));
        assert!(Dictionary::new(&[]).is_err());
        assert!(Dictionary::new(&vec![b'x'; 4096]).is_err());
        assert!(Dictionary::new(&[trained.bytes(), &vec![0; MOST_DICTIONARY]].concat()).is_err());
        for at in 0..400.min(trained.bytes().len()) {
            let mut bytes = trained.bytes().to_vec();
            bytes[at] ^= 1 << (at % 8);
            if let Ok(dictionary) = Dictionary::new(&bytes) {
                let _ = dictionary.decompress(&stored);
            }
            let _ = Dictionary::new(&bytes[..at]);
        }
    }

    /// A frame of three bytes that claims a gigabyte, and a block of zeros.
    #[test]
    fn claims_are_bounded() {
        let trained = trained();
        let dictionary = Dictionary::new(trained.bytes()).expect("a dictionary");
        let bomb = [0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 3, 0, 0, b'x'];
        let error = dictionary.decompress(&bomb).map(|_| ()).expect_err("a bomb");
        assert_eq!(error, BlockError::Damage("its zstd frame claims more than can be"));
        let zeros = vec![0; 4 << 20];
        let mut output = vec![0; zstd::zstd_safe::compress_bound(zeros.len())];
        assert_eq!(trained.compress(&mut Compressor::new(), &zeros, &mut output), None);
    }
}
