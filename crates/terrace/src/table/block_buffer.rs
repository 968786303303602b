//! Finished blocks of a table under construction that wait for a dictionary.

use super::compression::Compression;

/// Blocks as they are, in the order of the table, with what their places will be needed for.
pub(super) struct BlockBuffer {
    bytes: Vec<u8>,
    blocks: Vec<Waiting>,
    /// User keys of those blocks and of the one under construction, for the filter by blocks.
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    limit: usize,
}

struct Waiting {
    /// Where it ends in the bytes, and where its keys end among all keys.
    end: usize,
    keys: usize,
    compression: Compression,
    /// Its key in the index, once that is known.
    separator: Option<Vec<u8>>,
}

/// A block that waited.
pub(super) struct BufferedBlock<'a> {
    pub(super) contents: &'a [u8],
    pub(super) compression: Compression,
    pub(super) separator: Option<&'a [u8]>,
    /// Which of the keys are its own.
    keys: std::ops::Range<usize>,
}

impl BlockBuffer {
    /// A buffer of about `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        BlockBuffer {
            bytes: Vec::new(),
            blocks: Vec::new(),
            keys: Vec::new(),
            key_ends: Vec::new(),
            limit,
        }
    }

    /// Bytes of the blocks.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() + self.keys.len() >= self.limit
    }

    /// Whether a block of `size` bytes is too large to be kept.
    pub(super) fn is_too_large(&self, size: usize) -> bool {
        size > self.limit
    }

    /// Takes note of a key of the block under construction.
    pub(super) fn add_key(&mut self, user_key: &[u8]) {
        self.keys.extend_from_slice(user_key);
        self.key_ends.push(self.keys.len());
    }

    /// Takes the block under construction.
    pub(super) fn push(&mut self, contents: &[u8], compression: Compression) {
        self.bytes.extend_from_slice(contents);
        let (end, keys) = (self.bytes.len(), self.key_ends.len());
        self.blocks.push(Waiting { end, keys, compression, separator: None });
    }

    /// Says what the index has for the last block.
    pub(super) fn set_separator(&mut self, separator: &[u8]) {
        if let Some(last) = self.blocks.last_mut() {
            last.separator = Some(separator.to_vec());
        }
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = BufferedBlock<'_>> {
        let mut begin = (0, 0);
        self.blocks.iter().map(move |block| {
            let (from, keys) = std::mem::replace(&mut begin, (block.end, block.keys));
            BufferedBlock {
                contents: self.bytes.get(from..block.end).unwrap_or_default(),
                compression: block.compression,
                separator: block.separator.as_deref(),
                keys: keys..block.keys,
            }
        })
    }

    /// The keys of a block that waited.
    pub(super) fn keys_of(&self, block: &BufferedBlock<'_>) -> impl Iterator<Item = &[u8]> {
        self.keys_in(block.keys.clone())
    }

    /// The keys of the block under construction.
    pub(super) fn last_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys_in(self.blocks.last().map_or(0, |last| last.keys)..self.key_ends.len())
    }

    fn keys_in(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &[u8]> {
        range.map(|at| {
            let begin = at.checked_sub(1).map_or(0, |before| self.key_ends[before]);
            &self.keys[begin..self.key_ends[at]]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_keys_and_separators() {
        let mut buffer = BlockBuffer::new(12);
        assert!(buffer.is_too_large(13) && !buffer.is_too_large(12));
        buffer.add_key(b"a");
        buffer.add_key(b"");
        buffer.push(b"first", Compression::Zstd);
        buffer.add_key(b"bc");
        buffer.set_separator(b"b");
        assert!(buffer.last_keys().eq([b"bc"]));
        assert!(!buffer.is_full());
        buffer.push(b"next", Compression::None);
        assert!(buffer.is_full() && buffer.len() == 9 && buffer.last_keys().count() == 0);
        let mut seen = Vec::new();
        for block in buffer.blocks() {
            let keys: Vec<_> = buffer.keys_of(&block).map(<[u8]>::to_vec).collect();
            seen.push((block.contents, block.compression, block.separator, keys));
        }
        assert_eq!(
            seen,
            [
                (&b"first"[..], Compression::Zstd, Some(&b"b"[..]), vec![b"a".to_vec(), vec![]]),
                (b"next", Compression::None, None, vec![b"bc".to_vec()]),
            ]
        );
    }
}
