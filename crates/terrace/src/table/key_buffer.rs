//! Room for keys that change.

/// Short pieces are copied in this one size; there is as much room behind everything.
const CHUNK: usize = 32;

/// A key under change, or several side by side.
pub(super) struct KeyBuffer {
    bytes: Vec<u8>,
    length: usize,
}

impl KeyBuffer {
    /// Without memory until there is a key: a scan forward needs none for steps back.
    pub(super) fn new() -> Self {
        KeyBuffer { bytes: Vec::new(), length: 0 }
    }

    /// The key.
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// How long the key is.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Everything there is room for, and some more.
    #[inline]
    pub(super) fn room(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Makes the key the first `length` bytes.
    #[inline]
    pub(super) fn set_len(&mut self, length: usize) {
        debug_assert!(length <= self.bytes.len());
        self.length = length;
    }

    /// Makes the key end at `at`, followed by `source[from..to]`.
    #[inline]
    pub(super) fn set(&mut self, at: usize, source: &[u8], from: usize, to: usize) {
        self.grow(at + (to - from));
        self.put(at, source, from, to);
        self.length = at + (to - from);
    }

    /// Room for `length` bytes.
    #[inline]
    pub(super) fn grow(&mut self, length: usize) {
        if self.bytes.len() < length + CHUNK {
            self.bytes.resize((length + CHUNK).next_power_of_two(), 0);
        }
    }

    /// Writes `source[from..to]` at `at`, where there is room. Bytes behind it, up to the slack,
    /// become arbitrary.
    #[inline]
    pub(super) fn put(&mut self, at: usize, source: &[u8], from: usize, to: usize) {
        let length = to - from;
        if length <= CHUNK
            && let Some(chunk) = source.get(from..from + CHUNK)
            && let Some(room) = self.bytes.get_mut(at..at + CHUNK)
        {
            room.copy_from_slice(chunk);
        } else {
            self.put_exact(at, source, from, to);
        }
    }

    /// Writes `source[from..to]` at `at`, where there is room, and nothing else.
    pub(super) fn put_exact(&mut self, at: usize, source: &[u8], from: usize, to: usize) {
        self.bytes[at..at + (to - from)].copy_from_slice(&source[from..to]);
    }

    /// Writes the `SIZE` bytes before `at` once more at `at`, where there is room.
    #[inline]
    pub(super) fn repeat<const SIZE: usize>(&mut self, at: usize) {
        if let Some((before, here)) = self.bytes.split_at_mut_checked(at)
            && let (Some(before), Some(here)) =
                (before.last_chunk::<SIZE>(), here.first_chunk_mut::<SIZE>())
        {
            *here = *before;
        }
    }
}
