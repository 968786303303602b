//! Finds the data blocks of a table whose index or footer is lost.
//!
//! Blocks follow each other from the beginning of the file, and each is followed by the checksum of
//! itself: it ends where the checksum of all bytes so far is the one that stands there. Between
//! sound blocks that is one pass over the file. Behind a damaged one the next is searched for at
//! every byte that could begin one, which is bounded by a budget. A dictionary comes first.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::checksum::Checksum;
use crate::base::coding::get_varint32;
use crate::base::error::Result;
use crate::base::internal_key::{MAX_SEQUENCE, ParsedKey, TAG_SIZE};
use crate::base::mutation::mutated;
use crate::env::RandomAccessFile;

use super::block::Block;
use super::block_error::BlockError;
use super::block_iter::BlockIter;
use super::buffer::Buffer;
use super::compression;
use super::dictionary::DICTIONARY_MAGIC;
use super::format::{BlockData, BlockHandle, TRAILER_SIZE};
use super::order::TableOrder;
use super::table_dictionary::TableDictionary;

/// The longest block that is recognised where one is expected, and where one is searched for.
const LONGEST: usize = 64 << 20;
const LONGEST_SEARCHED: usize = 16 << 10;

/// Bytes checksummed at most in the search behind damaged blocks: a second.
const SEARCH_BUDGET: usize = 64 << 20;

/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// Bytes kept that are done with.
const LONGEST_KEPT: usize = 1 << 20;

/// Bytes that show whether a block may begin with them.
const LONGEST_BEGINNING: usize = 64;

/// Takes the offset of a block, and a key and a value in it.
pub(crate) type Visit<'a> = dyn FnMut(u64, &[u8], &[u8]) -> Result<()> + 'a;

/// Shows every entry that can be found in `file`, a table of internal keys, to `visit`. Only blocks
/// in which every key is sound and behind all keys before are taken. Messages call the file `name`.
pub(crate) fn rescue(
    file: &Arc<dyn RandomAccessFile>,
    name: &str,
    order: &TableOrder,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let mut window = Window { file, start: 0, bytes: Vec::new(), begin: 0 };
    let mut found: Vec<BlockHandle> = Vec::new();
    let mut dictionary = TableDictionary::default();
    let mut first = First::At(0);
    let mut last_key: Option<Vec<u8>> = None;
    let mut budget = SEARCH_BUDGET;
    let (mut at, mut searching) = (0, false);
    while at < file.size() {
        window.move_to(at);
        let size = match searching {
            false => window.block_size(LONGEST)?,
            true if window.may_begin_block()? => {
                budget = budget.saturating_sub(LONGEST_SEARCHED);
                window.block_size(LONGEST_SEARCHED)?
            }
            true => None,
        };
        let Some(size) = size.filter(|_| budget > 0) else {
            if budget == 0 {
                return Ok(());
            }
            (at, searching) = (at + 1, true);
            continue;
        };
        searching = false;
        let handle = BlockHandle { offset: at, size: size as u64 };
        if at == 0 && window.is_dictionary(handle) {
            dictionary = TableDictionary::new(window.rest().get(..size).unwrap_or_default());
            first = First::At(handle.end());
            at = handle.end();
            continue;
        }
        if window.needs_dictionary(size) && !dictionary.is_sound() {
            first = First::BehindDictionary;
        }
        let block = window.block(size, &dictionary);
        if let Some(block) = block.map_err(|error| error.at(handle.offset, name))? {
            if is_index(&block, order, file.size(), first, &found) && !mutated("no-index-for-data")
            {
                return Ok(());
            }
            if let Some(last) = check(&block, order, last_key.as_deref()) {
                for_each_entry(&block, at, order, visit)?;
                last_key = Some(last);
            }
        }
        found.push(handle);
        at += (size + TRAILER_SIZE) as u64;
    }
    Ok(())
}

/// Where the first data block begins.
#[derive(Clone, Copy)]
enum First {
    At(u64),
    /// Behind a dictionary that was not found.
    BehindDictionary,
}

/// A part of the file from where a block may begin.
struct Window<'a> {
    file: &'a Arc<dyn RandomAccessFile>,
    /// Where in the file the bytes are from.
    start: u64,
    bytes: Vec<u8>,
    /// Where in the bytes a block may begin.
    begin: usize,
}

impl Window<'_> {
    /// Goes on to an offset behind the present one.
    fn move_to(&mut self, at: u64) {
        let begin = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        if begin >= self.bytes.len() {
            self.bytes.clear();
            (self.start, self.begin) = (at, 0);
        } else if begin >= LONGEST_KEPT {
            self.bytes.drain(..begin);
            (self.start, self.begin) = (at, 0);
        } else {
            self.begin = begin;
        }
    }

    /// The bytes from here on.
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.begin..).unwrap_or_default()
    }

    /// Whether there are `count` bytes from here on, reading as far as needed.
    fn has(&mut self, count: usize) -> Result<bool> {
        while self.bytes.len() < self.begin + count {
            let length = self.bytes.len();
            self.bytes.resize(length + CHUNK, 0);
            let read = self.file.read_at(self.start + length as u64, &mut self.bytes[length..]);
            self.bytes.truncate(length + *read.as_ref().unwrap_or(&0));
            if read? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The size of the block that begins here, if there is one of at most `longest` bytes.
    fn block_size(&mut self, longest: usize) -> Result<Option<usize>> {
        let mut checksum = Checksum::default();
        for size in 0..=longest {
            if !self.has(size + TRAILER_SIZE)? {
                return Ok(None);
            }
            let Some(&[kind, a, b, c, d]) = self.rest().get(size..size + TRAILER_SIZE) else {
                return Ok(None);
            };
            checksum.add(&[kind]);
            if checksum.masked() == u32::from_le_bytes([a, b, c, d]) && compression::is_known(kind)
            {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    /// Whether the bytes from here on look like a block. Of zstd the frame's first bytes tell, of
    /// the others the first entry. Spares the search most of its checksums.
    fn may_begin_block(&mut self) -> Result<bool> {
        self.has(LONGEST_BEGINNING)?;
        let bytes = self.rest();
        if begins_with_entry(bytes) {
            return Ok(true);
        }
        if bytes.starts_with(&compression::ZSTD_MAGIC) {
            return Ok(true);
        }
        // Snappy and LZ4 begin with the size.
        let mut packed = bytes;
        let unpacked = get_varint32(&mut packed).filter(|&size| size as usize > TAG_SIZE);
        let (Some(_), Some((&tag, literal))) = (unpacked, packed.split_first()) else {
            return Ok(false);
        };
        // A literal, its length in the tag or in up to four bytes behind it.
        let length_bytes = usize::from(tag >> 2).saturating_sub(59);
        let is_snappy = tag & 3 == 0 && literal.get(length_bytes..).is_some_and(begins_with_entry);
        // LZ4 has the length of its first literal in the upper half, and if that is 15 in bytes
        // behind it up to one that is not 255.
        let length_bytes = match tag >> 4 {
            15 => literal.iter().position(|&byte| byte != 255).map(|last| last + 1),
            0 => None,
            _ => Some(0),
        };
        let is_lz4 =
            length_bytes.is_some_and(|bytes| literal.get(bytes..).is_some_and(begins_with_entry));
        Ok(is_snappy || is_lz4)
    }

    /// Whether the block at `handle`, which begins here, is a dictionary.
    fn is_dictionary(&self, handle: BlockHandle) -> bool {
        let kind = self.rest().get(handle.size as usize);
        TableDictionary::may_be(handle)
            && kind == Some(&compression::RAW)
            && self.rest().starts_with(&DICTIONARY_MAGIC)
    }

    /// Whether the block of `size` bytes that begins here was compressed with a dictionary.
    fn needs_dictionary(&self, size: usize) -> bool {
        self.rest().get(size) == Some(&compression::ZSTD_WITH_DICTIONARY)
    }

    /// The block of `size` bytes that begins here, if it is one. Fails if there is no memory for
    /// it.
    fn block(
        &self,
        size: usize,
        dictionary: &TableDictionary,
    ) -> std::result::Result<Option<Arc<Block>>, BlockError> {
        let Some((contents, &[kind, ..])) = self.rest().split_at_checked(size) else {
            return Ok(None);
        };
        let decoded = match kind {
            compression::RAW => Buffer::copy_of(contents).map_err(BlockError::from),
            kind => dictionary.decompress(kind, contents),
        };
        match decoded {
            Ok(buffer) => Ok(Block::parse(BlockData::Owned(buffer)).ok().map(Arc::new)),
            Err(BlockError::Damage(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether bytes begin as the first entry of a block: it shares nothing with a key before it, which
/// is a zero, and its key has room for a tag.
fn begins_with_entry(bytes: &[u8]) -> bool {
    let Some((0, mut length)) = bytes.split_first().map(|(first, rest)| (*first, rest)) else {
        return false;
    };
    get_varint32(&mut length).is_some_and(|length| length as usize >= TAG_SIZE)
}

/// Whether a block is the index: its entries point to blocks that follow each other from the `first`
/// one of the file, which has `size` bytes, and none found at such a place has another size.
/// Damaged blocks are among them, so that not each is one of those found; and sectors may have
/// changed places, so that the index may stand anywhere. The keys of an index are not the user's.
/// No data block is empty, so that an empty one is behind them, too. With the sectors another table's
/// index may have come: a shortened key of its has the largest sequence number, and a handle.
fn is_index(
    block: &Arc<Block>,
    order: &TableOrder,
    size: u64,
    first: First,
    found: &[BlockHandle],
) -> bool {
    let (mut is_index, mut has_separator) = (true, false);
    let mut next = match first {
        First::At(offset) => Some(offset),
        First::BehindDictionary => None,
    };
    let scanned = for_each_entry(block, 0, order, &mut |_, key, mut value| {
        let handle = BlockHandle::decode(&mut value).filter(|_| value.is_empty());
        let key = ParsedKey::parse(key);
        has_separator |= handle.is_some() && key.is_some_and(|key| key.sequence == MAX_SEQUENCE);
        let handle = handle.filter(|handle| next.is_none_or(|next| handle.offset == next));
        let end = handle.and_then(|handle| {
            handle.size.checked_add(handle.offset)?.checked_add(TRAILER_SIZE as u64)
        });
        let (Some(handle), Some(end)) = (handle, end.filter(|end| *end <= size)) else {
            is_index = false;
            return Ok(());
        };
        next = Some(end);
        let there = found.binary_search_by_key(&handle.offset, |found| found.offset);
        is_index &= there.ok().and_then(|at| found.get(at)).is_none_or(|found| *found == handle);
        Ok(())
    });
    (is_index || has_separator) && scanned.is_ok()
}

/// The last key of a block whose keys are sound, ascend and are behind `last`.
fn check(block: &Arc<Block>, order: &TableOrder, last: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut last = last.map(<[u8]>::to_vec);
    let mut is_sound = true;
    let scanned = for_each_entry(block, 0, order, &mut |_, key, _| {
        let behind = last.as_ref().is_none_or(|last| order.compare(last, key) == Ordering::Less);
        is_sound &= behind && ParsedKey::parse(key).is_some();
        let last = last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    });
    last.filter(|_| is_sound && scanned.is_ok_and(|whole| whole))
}

/// Shows every entry of the block at `offset`. Returns whether all of the block could be decoded.
fn for_each_entry(
    block: &Arc<Block>,
    offset: u64,
    order: &TableOrder,
    visit: &mut Visit<'_>,
) -> Result<bool> {
    let mut iter = BlockIter::new(order.tag_size());
    iter.set_block(Some(block.clone()));
    iter.seek_to_first();
    while iter.valid() {
        visit(offset, iter.key(), iter.value())?;
        iter.next();
    }
    Ok(iter.damage().is_none())
}
