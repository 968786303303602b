//! Writes the entries of one block.
//!
//! Each entry leaves out the prefix that its key shares with the key before it, except at *restart
//! points*, every so many entries, whose offsets follow the entries so that a reader can search
//! them. An entry is `shared length, rest length, value length` (varints), the rest of the key, the
//! value.

use crate::base::abbreviated_keys::common_prefix;
use crate::base::coding::{MAX_VARINT32, put_u32};

/// A block under construction; reused for the next one after [`reset`](BlockBuilder::reset).
pub(super) struct BlockBuilder {
    buffer: Vec<u8>,
    restarts: Vec<u32>,
    restart_interval: usize,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    pub(super) fn new(restart_interval: usize) -> Self {
        BlockBuilder {
            buffer: Vec::new(),
            restarts: vec![0],
            restart_interval: restart_interval.max(1),
            since_restart: 0,
            last_key: Vec::new(),
        }
    }

    /// Changes the number of entries between two restart points, from the next one on.
    pub(super) fn set_restart_interval(&mut self, interval: usize) {
        self.restart_interval = interval.max(1);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The key added last, to this block or, if it is empty, to the one before.
    pub(super) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// The size of the block if it were finished now.
    pub(super) fn size(&self) -> usize {
        self.buffer.len() + 4 * self.restarts.len() + 4
    }

    /// Adds an entry. Keys ascend; key and value are shorter than 4 GiB together.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.add_sharing(common_prefix(&self.last_key, key), key, value);
    }

    /// Adds an entry whose key has its first `common` bytes, and no more, in common with the last
    /// key.
    pub(super) fn add_sharing(&mut self, common: usize, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since_restart >= self.restart_interval {
            self.restarts.push(self.buffer.len() as u32);
            self.since_restart = 0;
        } else if !self.buffer.is_empty() {
            shared = common;
        }
        let rest = &key[shared..];
        let mut header = Header::default();
        header.push(shared);
        header.push(rest.len());
        header.push(value.len());
        self.buffer.reserve(header.length + rest.len() + value.len());
        self.buffer.extend_from_slice(&header.bytes[..header.length]);
        self.buffer.extend_from_slice(rest);
        self.buffer.extend_from_slice(value);
        self.last_key.truncate(common);
        self.last_key.extend_from_slice(&key[common..]);
        self.since_restart += 1;
    }

    /// Takes note of a key that is in a block by itself, between the one before and the one that
    /// begins here.
    pub(super) fn pass(&mut self, key: &[u8]) {
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    /// Completes the block and gives its bytes, valid until [`reset`](BlockBuilder::reset).
    pub(super) fn finish(&mut self) -> &[u8] {
        for &restart in &self.restarts {
            put_u32(&mut self.buffer, restart);
        }
        put_u32(&mut self.buffer, self.restarts.len() as u32);
        &self.buffer
    }

    /// Begins the next block.
    pub(super) fn reset(&mut self) {
        self.buffer.clear();
        self.restarts.truncate(1);
        self.since_restart = 0;
    }
}

/// The three varints before an entry, collected so that they are copied at once.
#[derive(Default)]
struct Header {
    bytes: [u8; 3 * MAX_VARINT32],
    length: usize,
}

impl Header {
    #[inline]
    fn push(&mut self, value: usize) {
        let mut value = value as u32;
        while value >= 0x80 {
            self.bytes[self.length] = value as u8 | 0x80;
            self.length += 1;
            value >>= 7;
        }
        self.bytes[self.length] = value as u8;
        self.length += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let mut builder = BlockBuilder::new(2);
        builder.add(b"apple", b"1");
        builder.add(b"apply", b"22");
        builder.add(b"apt", b"");
        let expected =
            b"\x00\x05\x01apple1\x04\x01\x02y22\x00\x03\x00apt\0\0\0\0\x0f\0\0\0\x02\0\0\0";
        assert_eq!(builder.size(), expected.len());
        assert_eq!(builder.finish(), expected);
        builder.reset();
        assert_eq!((builder.is_empty(), builder.last_key()), (true, &b"apt"[..]));
        builder.add(b"apx", &[b'v'; 300]);
        assert_eq!(builder.finish()[..7], *b"\x00\x03\xac\x02apx");
    }

    #[test]
    fn an_empty_block_has_one_restart() {
        assert_eq!(BlockBuilder::new(16).finish(), [0, 0, 0, 0, 1, 0, 0, 0]);
    }
}
