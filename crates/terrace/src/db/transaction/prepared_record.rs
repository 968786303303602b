//! A prepared transaction as a value in the reserved keyspace. Pure.
//!
//! Its key is `!$terrace!prepared!` and the transaction's name. Its value is a line for the format,
//! a checksum of name and rest, the keys that the transaction rests on without writing them, each
//! after its length, with their number first, and the batch of its writes (`docs/format.md`).

use crate::base::checksum;
use crate::base::coding::{get_length_prefixed, get_varint32, put_length_prefixed, put_varint32};
use crate::write::batch::{Operation, WriteBatch};

const PREFIX: &[u8] = b"!$terrace!prepared!";
const FORMAT: &[u8] = b"prepared 1\n";
const CHECKSUM_SIZE: usize = 4;

/// What a prepared transaction does when it is committed.
#[derive(Clone, Debug)]
pub(super) struct PreparedRecord {
    pub(super) batch: WriteBatch,
    /// Keys that are not written, yet must not change.
    pub(super) relied_on: Vec<Vec<u8>>,
}

/// The key of the transaction `name`; what precedes all such keys if that is empty.
pub(super) fn key(name: &[u8]) -> Vec<u8> {
    [PREFIX, name].concat()
}

/// The name of the transaction with this key, if it is the key of one.
pub(super) fn name(key: &[u8]) -> Option<&[u8]> {
    key.strip_prefix(PREFIX)
}

impl PreparedRecord {
    pub(super) fn encode(&self, name: &[u8]) -> Vec<u8> {
        let mut rest = Vec::new();
        let count = u32::try_from(self.relied_on.len()).unwrap_or(u32::MAX);
        put_varint32(&mut rest, count);
        self.relied_on.iter().for_each(|key| put_length_prefixed(&mut rest, key));
        rest.extend_from_slice(self.batch.as_bytes());
        let checksum = checksum::masked_pair(name, &rest).to_le_bytes();
        [FORMAT, &checksum, &rest].concat()
    }

    /// `None` if the value was not made for a transaction of this name.
    pub(super) fn decode(name: &[u8], value: &[u8]) -> Option<Self> {
        let (checksum, mut rest) =
            value.strip_prefix(FORMAT)?.split_first_chunk::<CHECKSUM_SIZE>()?;
        if checksum::masked_pair(name, rest) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let mut relied_on = Vec::new();
        for _ in 0..get_varint32(&mut rest)? {
            relied_on.push(get_length_prefixed(&mut rest)?.to_vec());
        }
        let batch = WriteBatch::from_bytes(rest.to_vec()).ok()?;
        Some(PreparedRecord { batch, relied_on })
    }

    /// Every key that nobody else may write before the decision.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let written = self.batch.iter().map_while(Result::ok).map(|operation| match operation {
            Operation::Put { key, .. } | Operation::Delete { key } => key,
        });
        written.chain(self.relied_on.iter().map(Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_others_are_refused() {
        let mut batch = WriteBatch::new();
        batch.put("a", "1");
        batch.delete("b");
        let record = PreparedRecord { batch, relied_on: vec![b"c".to_vec(), Vec::new()] };
        let value = record.encode(b"pay");
        let decoded = PreparedRecord::decode(b"pay", &value).expect("decodes");
        assert_eq!(decoded.keys().collect::<Vec<_>>(), [&b"a"[..], b"b", b"c", b""]);
        assert_eq!(decoded.batch.as_bytes(), record.batch.as_bytes());
        assert!(PreparedRecord::decode(b"other", &value).is_none(), "a copy");
        for at in 0..value.len() {
            assert!(PreparedRecord::decode(b"pay", &value[..at]).is_none());
            let mut flipped = value.clone();
            flipped[at] ^= 1;
            assert!(PreparedRecord::decode(b"pay", &flipped).is_none());
        }
        assert_eq!(name(&key(b"pay")), Some(&b"pay"[..]));
        assert_eq!(name(b"!users!1"), None);
    }
}
