//! Logs by hand: fragments, records, batches and durability marks.

use terrace::WriteBatch;

/// A fragment of a record of a log.
pub(crate) fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
    let covered = [&[kind], payload].concat();
    let checksum = crc32c::crc32c(&covered).rotate_right(15).wrapping_add(0xa282_ead8);
    [&checksum.to_le_bytes()[..], &(payload.len() as u16).to_le_bytes(), &covered].concat()
}

/// A whole record of a log.
pub(crate) fn record(payload: &[u8]) -> Vec<u8> {
    fragment(1, payload)
}

/// A batch that sets a key, with the sequence number `sequence`.
pub(crate) fn batch(sequence: u64, key: &str, value: &[u8]) -> Vec<u8> {
    let mut batch = WriteBatch::new();
    batch.put(key, value);
    [&sequence.to_le_bytes(), &batch.as_bytes()[8..]].concat()
}

/// A mark that says that writes up to `sequence` are durable.
pub(crate) fn mark(sequence: u64) -> Vec<u8> {
    let empty = [&(sequence + 1).to_le_bytes()[..], &[0; 4]].concat();
    [fragment(2, &[]), fragment(4, &empty)].concat()
}
