//! Puts finished blocks into a table file: compression, trailer, and few large writes.

use std::sync::Arc;

use crate::base::error::Result;
use crate::env::WritableFile;

use super::compression::{Codecs, Compression, Compressor, RAW, ZSTD_WITH_DICTIONARY};
use super::dictionary::TrainedDictionary;
use super::format::{BlockHandle, FOOTER_SIZE, Footer, StoredBlock, TRAILER_SIZE, trailer};

/// Bytes that are collected before the file is written to.
const BUFFER_SIZE: usize = 128 << 10;

/// The end of a table file under construction.
pub(super) struct BlockWriter {
    file: Box<dyn WritableFile>,
    /// The first `filled` bytes are those that the file does not have yet. The rest is kept
    /// initialised, so that the compressor can write into it without its being cleared first.
    buffer: Vec<u8>,
    filled: usize,
    /// Where the next block begins.
    offset: u64,
    compressor: Compressor,
    compression: Compression,
    /// For blocks of zstd.
    dictionary: Option<Arc<TrainedDictionary>>,
    codecs: Codecs,
    bytes_per_sync: u64,
    /// Bytes that the file has, and how many of them the system was asked to write out.
    written: u64,
    writeback: u64,
}

impl BlockWriter {
    pub(super) fn new(
        file: Box<dyn WritableFile>,
        compression: Compression,
        bytes_per_sync: u64,
    ) -> Self {
        BlockWriter {
            file,
            buffer: Vec::new(),
            filled: 0,
            offset: 0,
            compressor: Compressor::new(),
            compression,
            dictionary: None,
            codecs: Codecs::default(),
            bytes_per_sync,
            written: 0,
            writeback: 0,
        }
    }

    /// Compresses the blocks to come in another way.
    pub(super) fn set_compression(&mut self, compression: Compression) {
        self.compression = compression;
    }

    /// Compresses the blocks to come with `dictionary`, as far as they have zstd.
    pub(super) fn set_dictionary(&mut self, dictionary: Option<Arc<TrainedDictionary>>) {
        self.dictionary = dictionary;
    }

    /// The compressions beyond LevelDB's that blocks so far have, or those to come may have.
    pub(super) fn codecs(&self) -> Codecs {
        let to_come = Compressor::bound(self.compression, 0);
        self.codecs.union(to_come.map_or_else(Codecs::default, |(kind, _)| Codecs::of(kind)))
    }

    /// The bytes of the file so far, collected ones included.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Writes a block, compressed if that is worth its while.
    pub(super) fn write(&mut self, contents: &[u8]) -> Result<BlockHandle> {
        let Some((kind, longest)) = Compressor::bound(self.compression, contents.len()) else {
            return self.write_raw(contents);
        };
        self.reserve(longest + TRAILER_SIZE)?;
        let BlockWriter { compressor, compression, dictionary, buffer, filled, .. } = self;
        let output = &mut buffer[*filled..*filled + longest];
        let dictionary = dictionary.as_ref().filter(|_| *compression == Compression::Zstd);
        let with = dictionary
            .and_then(|dictionary| dictionary.compress(compressor, contents, output))
            .map(|size| (ZSTD_WITH_DICTIONARY, size));
        let compressed = with
            .or_else(|| Some((kind, compressor.compress(*compression, contents, output)?)))
            .filter(|(_, size)| *size < contents.len() - contents.len() / 8);
        match compressed {
            Some((kind, size)) => {
                let trailer = trailer(&output[..size], kind);
                self.codecs = self.codecs.union(Codecs::of(kind));
                self.filled += size;
                Ok(self.end_block(size, trailer))
            }
            None => self.write_raw(contents),
        }
    }

    /// Whether blocks are compressed here in the way that `stored` is.
    pub(super) fn takes(&self, stored: &StoredBlock<'_>) -> bool {
        self.compression.is_of(stored.kind(), stored.contents())
    }

    /// Writes a block of another file as it is there, checksum and all.
    pub(super) fn copy(&mut self, stored: &StoredBlock<'_>) -> Result<BlockHandle> {
        let bytes = stored.bytes();
        self.codecs = self.codecs.union(Codecs::of(stored.kind()));
        self.put(bytes)?;
        let handle = BlockHandle { offset: self.offset, size: (bytes.len() - TRAILER_SIZE) as u64 };
        self.offset += bytes.len() as u64;
        Ok(handle)
    }

    /// Writes a block as it is.
    pub(super) fn write_raw(&mut self, contents: &[u8]) -> Result<BlockHandle> {
        let trailer = trailer(contents, RAW);
        self.put(contents)?;
        Ok(self.end_block(contents.len(), trailer))
    }

    /// Puts bytes behind the others, large ones straight into the file, and leaves room for a
    /// trailer.
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() < BUFFER_SIZE / 2 {
            self.reserve(bytes.len() + TRAILER_SIZE)?;
            self.buffer[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
            self.filled += bytes.len();
            return Ok(());
        }
        self.flush()?;
        self.append(bytes)?;
        self.reserve(TRAILER_SIZE)
    }

    /// Writes the footer and everything collected, and gives the file back.
    pub(super) fn finish(mut self, footer: &Footer) -> Result<(Box<dyn WritableFile>, u64)> {
        let mut bytes = Vec::with_capacity(FOOTER_SIZE);
        footer.encode(&mut bytes);
        self.reserve(FOOTER_SIZE)?;
        self.buffer[self.filled..self.filled + FOOTER_SIZE].copy_from_slice(&bytes);
        self.filled += FOOTER_SIZE;
        self.offset += FOOTER_SIZE as u64;
        self.flush()?;
        Ok((self.file, self.offset))
    }

    /// Gives the file back as it is, without what was collected.
    pub(super) fn into_file(self) -> Box<dyn WritableFile> {
        self.file
    }

    /// Hands everything collected to the file.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.filled == 0 {
            return Ok(());
        }
        let filled = std::mem::take(&mut self.filled);
        self.file.append(&self.buffer[..filled])?;
        self.account(filled);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)?;
        self.account(bytes.len());
        Ok(())
    }

    fn end_block(&mut self, size: usize, trailer: [u8; TRAILER_SIZE]) -> BlockHandle {
        self.buffer[self.filled..self.filled + TRAILER_SIZE].copy_from_slice(&trailer);
        self.filled += TRAILER_SIZE;
        let handle = BlockHandle { offset: self.offset, size: size as u64 };
        self.offset += (size + TRAILER_SIZE) as u64;
        handle
    }

    /// Makes room for `size` more bytes in the buffer.
    fn reserve(&mut self, size: usize) -> Result<()> {
        if self.filled + size > BUFFER_SIZE {
            self.flush()?;
        }
        let needed = (self.filled + size).max(BUFFER_SIZE);
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
        Ok(())
    }

    fn account(&mut self, bytes: usize) {
        self.written += bytes as u64;
        let pending = self.written - self.writeback;
        if self.bytes_per_sync > 0 && pending >= self.bytes_per_sync {
            self.file.start_writeback(self.writeback, pending);
            self.writeback = self.written;
        }
    }
}
