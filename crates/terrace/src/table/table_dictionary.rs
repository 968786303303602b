//! Decompresses the blocks of a table, those with the table's dictionary too.

use super::block_error::{BlockError, Damage};
use super::buffer::Buffer;
use super::compression::{self, ZSTD_WITH_DICTIONARY};
use super::dictionary::{Dictionary, MOST_DICTIONARY};
use super::format::{BlockHandle, TRAILER_SIZE};

/// The dictionary of a table, if it has one that can be read.
#[derive(Default)]
pub(super) struct TableDictionary(State);

#[derive(Default)]
enum State {
    #[default]
    None,
    Sound(Box<Dictionary>),
    /// Whatever is compressed with it cannot be read.
    Damaged(Damage),
}

impl TableDictionary {
    /// The dictionary in the bytes of its block.
    pub(super) fn new(bytes: &[u8]) -> Self {
        TableDictionary(match Dictionary::new(bytes) {
            Ok(dictionary) => State::Sound(Box::new(dictionary)),
            Err(damage) => State::Damaged(damage),
        })
    }

    /// That of a block that cannot be read.
    pub(super) fn damaged() -> Self {
        TableDictionary(State::Damaged("the table's dictionary is damaged"))
    }

    /// Where it lies if no metaindex can say it: before the first data block, which begins at
    /// `first`. `None` if there is none.
    pub(super) fn place_before(first: u64) -> Option<BlockHandle> {
        let size = first.checked_sub(TRAILER_SIZE as u64).filter(|size| *size > 0)?;
        Some(BlockHandle { offset: 0, size })
    }

    /// Whether a block may be a dictionary: nothing is allocated for one that is too large.
    pub(super) fn may_be(handle: BlockHandle) -> bool {
        handle.size <= MOST_DICTIONARY as u64
    }

    /// What is wrong with it.
    pub(super) fn damage(&self) -> Option<Damage> {
        match self.0 {
            State::Damaged(damage) => Some(damage),
            State::None | State::Sound(_) => None,
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        matches!(self.0, State::Sound(_))
    }

    /// Bytes on the heap.
    pub(super) fn memory_usage(&self) -> usize {
        match &self.0 {
            State::Sound(dictionary) => size_of::<Dictionary>() + dictionary.memory_usage(),
            State::None | State::Damaged(_) => 0,
        }
    }

    /// The bytes of a compressed block. `kind` is not [`RAW`](compression::RAW).
    pub(super) fn decompress(&self, kind: u8, compressed: &[u8]) -> Result<Buffer, BlockError> {
        if kind != ZSTD_WITH_DICTIONARY {
            return compression::decompress(kind, compressed);
        }
        match &self.0 {
            State::Sound(dictionary) => dictionary.decompress(compressed),
            State::Damaged(damage) => Err((*damage).into()),
            State::None => Err("it needs a dictionary, and the table has none".into()),
        }
    }
}
