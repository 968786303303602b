//! Where the bytes of a record's payload lie in its file, between the headers of its fragments.
//!
//! A record's fragments fill their blocks: all but the last one end where the block does.

use super::format::{BLOCK_SIZE, HEADER_SIZE};

const BLOCK: u64 = BLOCK_SIZE as u64;
const HEADER: u64 = HEADER_SIZE as u64;

/// Where byte `n` of the payload of a record is whose first header is at `start`, where its block
/// has room for one.
pub(crate) fn payload_offset(start: u64, n: u64) -> u64 {
    let room = BLOCK - start % BLOCK - HEADER;
    if n < room {
        return start + HEADER + n;
    }
    let (rest, a_block) = (n - room, BLOCK - HEADER);
    start + HEADER + room + rest / a_block * BLOCK + HEADER + rest % a_block
}

/// Where `length` bytes of one record's payload end that begin at `offset` of the file. `None` if
/// no payload can begin there, or none is so long.
pub(crate) fn payload_end(offset: u64, length: u64) -> Option<u64> {
    let room = BLOCK - offset % BLOCK;
    if room > BLOCK - HEADER {
        return None;
    }
    if length <= room {
        return offset.checked_add(length);
    }
    let (rest, a_block) = (length - room, BLOCK - HEADER);
    let last = match rest % a_block {
        0 => 0,
        last => HEADER + last,
    };
    let blocks = (rest / a_block).checked_mul(BLOCK)?;
    offset.checked_add(room)?.checked_add(blocks)?.checked_add(last)
}

/// Removes the headers from `bytes`, which are those of a file from a byte of a record's payload at
/// `offset` to another one.
pub(crate) fn strip_headers(bytes: &mut Vec<u8>, offset: u64) {
    let mut kept = ((BLOCK - offset % BLOCK) as usize).min(bytes.len());
    let mut next = kept;
    while next < bytes.len() {
        let from = (next + HEADER_SIZE).min(bytes.len());
        let to = (next + BLOCK_SIZE).min(bytes.len());
        bytes.copy_within(from..to, kept);
        kept += to - from;
        next = to;
    }
    bytes.truncate(kept);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::env::{CreateOptions, Env, MemEnv};
    use crate::log::LogWriter;

    #[test]
    fn every_part_of_a_payload_is_found_again() {
        let (env, path) = (MemEnv::new(), Path::new("/log"));
        let mut writer = LogWriter::new(env.create(path, CreateOptions::default()).unwrap(), 0);
        let edges = [0, 1, 6, 7, 8, 100, BLOCK_SIZE - 7, BLOCK_SIZE, 3 * (BLOCK_SIZE - 7)];
        let lengths = edges.iter().flat_map(|edge| [edge + 20, edge + 21, edge + 90_000]);
        let mut records = Vec::new();
        for (number, length) in lengths.chain([12_345, 32_700, 32_768 - 27, 1]).enumerate() {
            let payload: Vec<u8> = (0..length).map(|n| (n * 31 + number * 7) as u8).collect();
            records.push((writer.offset(), payload.clone()));
            writer.add_record(&payload).unwrap();
        }
        let file = env.read(path).unwrap();
        for (start, payload) in records {
            for from in [0, 1, 10, payload.len() / 2, payload.len() - 1] {
                for to in [from + 1, (from + 33_000).min(payload.len()), payload.len()] {
                    let (from, to) = (from.min(to), to.min(payload.len()));
                    if from >= to {
                        continue;
                    }
                    let offset = payload_offset(start, from as u64);
                    let end = payload_end(offset, (to - from) as u64).expect("a payload");
                    let mut bytes = file[offset as usize..end as usize].to_vec();
                    strip_headers(&mut bytes, offset);
                    assert!(bytes == payload[from..to], "{from}..{to} of the record at {start}");
                }
            }
        }
    }

    #[test]
    fn no_payload_begins_in_a_header_or_is_longer_than_a_file_can_be() {
        assert_eq!(payload_end(0, 1), None);
        assert_eq!(payload_end(BLOCK + 6, 1), None);
        assert_eq!(payload_end(BLOCK + 7, 1), Some(BLOCK + 8));
        assert_eq!(payload_end(7, u64::MAX), None);
        assert_eq!(payload_end(u64::MAX - 3, 100), None);
    }
}
