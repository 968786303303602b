//! The parts of a table, taken out one by one for people to look at.
//!
//! [`Table`](super::Table) refuses a table whose index is damaged; this shows whatever can still be
//! read of it. Keys are plain bytes here: what tags they carry is for the caller to see.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::env::RandomAccessFile;

use super::block::Block;
use super::block_error::Damage;
use super::block_iter::BlockIter;
use super::compression;
use super::dictionary::DICTIONARY_NAME;
use super::filter_block::FILTER_PREFIX;
use super::format::{BlockData, BlockHandle, FOOTER_SIZE, Footer, read_block, read_block_by};
use super::full_filter::FULL_FILTER_NAME;
use super::key_allowance::KeyAllowance;
use super::table_dictionary::TableDictionary;

/// A table of which the footer makes sense, and nothing else is known.
pub(crate) struct TableDump {
    file: Arc<dyn RandomAccessFile>,
    name: String,
    footer: Footer,
    /// Read for the first block that needs it.
    dictionary: OnceCell<TableDictionary>,
}

/// A block whose checksum is right and whose frame makes sense.
pub(crate) struct BlockDump {
    block: Arc<Block>,
    /// The name of its compression.
    pub(crate) compression: &'static str,
}

/// An entry of index or metaindex: its key, and the block it points to, if that lies within the
/// file.
pub(crate) type Listed = (Vec<u8>, Option<BlockHandle>);

impl TableDump {
    pub(crate) fn open(file: Arc<dyn RandomAccessFile>, name: String) -> Result<Self> {
        let footer = Footer::read(file.as_ref(), &name)?;
        Ok(TableDump { file, name, footer, dictionary: OnceCell::new() })
    }

    pub(crate) fn index(&self) -> BlockHandle {
        self.footer.index
    }

    pub(crate) fn metaindex(&self) -> BlockHandle {
        self.footer.metaindex
    }

    /// The handle that the value of an entry of index or metaindex holds.
    pub(crate) fn handle(&self, mut value: &[u8]) -> Option<BlockHandle> {
        let limit = self.file.size().saturating_sub(FOOTER_SIZE as u64);
        BlockHandle::decode(&mut value).filter(|handle| handle.fits_before(limit))
    }

    /// Whether the metaindex calls a filter so; then the name of the filter's policy.
    pub(crate) fn filter_policy_name(meta_block: &str) -> Option<&str> {
        meta_block.strip_prefix(FILTER_PREFIX)
    }

    /// Whether the metaindex calls the filter for the whole table so.
    pub(crate) fn is_table_filter(meta_block: &str) -> bool {
        meta_block == FULL_FILTER_NAME
    }

    /// Whether the metaindex calls the dictionary so.
    pub(crate) fn is_dictionary(meta_block: &str) -> bool {
        meta_block == DICTIONARY_NAME
    }

    /// The data block at `handle`.
    pub(crate) fn block(&self, handle: BlockHandle) -> Result<BlockDump> {
        let read_at = |offset, buffer: &mut [u8]| self.file.read_at(offset, buffer);
        let mut failed = None;
        let decompress = |kind, stored: &[u8]| {
            if kind != compression::ZSTD_WITH_DICTIONARY {
                return compression::decompress(kind, stored);
            }
            match self.dictionary() {
                Ok(dictionary) => dictionary.decompress(kind, stored),
                Err(error) => {
                    failed = Some(error);
                    Err("its dictionary cannot be read".into())
                }
            }
        };
        let read = read_block_by(&self.file, handle, &self.name, read_at, decompress);
        let (data, kind) = failed.map_or(read, Err)?;
        self.parse(handle, data, kind)
    }

    /// The block of index or metaindex at `handle`.
    fn listing(&self, handle: BlockHandle) -> Result<BlockDump> {
        let (data, kind) = read_block(&self.file, handle, &self.name)?;
        self.parse(handle, data, kind)
    }

    fn parse(&self, handle: BlockHandle, data: BlockData, kind: u8) -> Result<BlockDump> {
        let block = Block::parse(data).map_err(|damage| self.damaged(handle, damage))?;
        Ok(BlockDump { block: Arc::new(block), compression: compression::name(kind) })
    }

    /// The dictionary, as [`Table`](super::Table) finds it. An error is the system's.
    fn dictionary(&self) -> Result<&TableDictionary> {
        if let Some(dictionary) = self.dictionary.get() {
            return Ok(dictionary);
        }
        let (entries, whole) = self.list(self.metaindex());
        let named = entries.into_iter().find(|(name, _)| name == DICTIONARY_NAME.as_bytes());
        let handle = match (named, whole) {
            (Some((_, handle)), _) => handle,
            (None, Ok(())) => None,
            (None, Err(_)) => {
                let first = self.list(self.index()).0.into_iter().find_map(|(_, handle)| handle);
                first.and_then(|first| TableDictionary::place_before(first.offset))
            }
        };
        let dictionary = match handle {
            None => TableDictionary::default(),
            Some(handle) if !TableDictionary::may_be(handle) => TableDictionary::damaged(),
            Some(handle) => match read_block(&self.file, handle, &self.name) {
                Ok((data, _)) => TableDictionary::new(data.as_slice()),
                Err(error) if error.kind() == ErrorKind::Corruption => TableDictionary::damaged(),
                Err(error) => return Err(error),
            },
        };
        Ok(self.dictionary.get_or_init(|| dictionary))
    }

    /// Checks the checksum of the block at `handle`, whatever it holds.
    pub(crate) fn check(&self, handle: BlockHandle) -> Result<()> {
        read_block(&self.file, handle, &self.name).map(drop)
    }

    /// Whether the dictionary at `handle` is sound, checksum and all.
    pub(crate) fn check_dictionary(&self, handle: BlockHandle) -> Result<()> {
        self.check(handle)?;
        match self.dictionary()?.damage() {
            Some(damage) => Err(self.damaged(handle, damage)),
            None => Ok(()),
        }
    }

    /// Calls `visit` with the entries of `block`, which came from `handle`, until it breaks off.
    pub(crate) fn for_each_entry(
        &self,
        handle: BlockHandle,
        block: &BlockDump,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut iter = BlockIter::new(0);
        iter.set_block(Some(Arc::clone(&block.block)));
        iter.seek_to_first();
        while iter.valid() {
            if visit(iter.key(), iter.value()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            iter.next();
        }
        match iter.damage() {
            Some(damage) => Err(self.damaged(handle, damage)),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    /// The entries of the index or metaindex at `handle`: all of them, or those before the damage.
    pub(crate) fn list(&self, handle: BlockHandle) -> (Vec<Listed>, Result<()>) {
        let mut entries = Vec::new();
        let listed = self.listing(handle).and_then(|block| {
            let mut allowance = KeyAllowance::of_block(block.block.size());
            let mut excess = None;
            let _ = self.for_each_entry(handle, &block, |key, value| {
                excess = allowance.take(key).err();
                if excess.is_some() {
                    return ControlFlow::Break(());
                }
                entries.push((key.to_vec(), self.handle(value)));
                ControlFlow::Continue(())
            })?;
            excess.map_or(Ok(()), |damage| Err(self.damaged(handle, damage)))
        });
        (entries, listed)
    }

    fn damaged(&self, handle: BlockHandle, damage: Damage) -> Error {
        Error::corruption(format!("{}: block at offset {}: {damage}", self.name, handle.offset))
    }
}

impl BlockDump {
    /// Bytes after decompression.
    pub(crate) fn raw_size(&self) -> u64 {
        self.block.bytes().len() as u64
    }
}
