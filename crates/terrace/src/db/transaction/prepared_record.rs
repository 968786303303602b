//! A prepared transaction as a value in the reserved keyspace. Pure.
//!
//! Its key is `!$terrace!prepared!` and the transaction's name. Its value is a line for the format,
//! a checksum of name and rest, a byte for each key that says whether the key had a value, the keys
//! that the transaction rests on without writing them, and the batch of its writes
//! (`docs/format.md`).

use crate::base::checksum;
use crate::base::coding::{get_length_prefixed, get_varint32, put_length_prefixed, put_varint32};
use crate::base::error::{Error, Result};
use crate::write::batch::WriteBatch;
use crate::write::batch_view::Operation;

const PREFIX: &[u8] = b"!$terrace!prepared!";
const FORMAT: &[u8] = b"prepared 1\n";
const CHECKSUM_SIZE: usize = 4;

/// State of a key's value at the time when the transaction was prepared, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Absent,
    Present,
    /// There was one, which may expire or be removed by a filter.
    MayVanish,
}

/// The writes of a prepared transaction, and the values that must not change before its commit.
#[derive(Clone, Debug)]
pub(super) struct PreparedRecord {
    pub(super) batch: WriteBatch,
    /// Keys that are not written, yet must not change.
    pub(super) relied_on: Vec<Vec<u8>>,
    /// One for each of the [keys](Self::keys).
    pub(super) before: Vec<Before>,
}

/// The key of the transaction `name`; what precedes all such keys if that is empty.
pub(super) fn key(name: &[u8]) -> Vec<u8> {
    [PREFIX, name].concat()
}

/// The name of the transaction with this key, if it is the key of one.
pub(super) fn name(key: &[u8]) -> Option<&[u8]> {
    key.strip_prefix(PREFIX)
}

impl Before {
    /// Whether the key was left alone, if it has a value now or not.
    pub(super) fn agrees_with(self, has_value: bool) -> bool {
        match self {
            Before::Absent => !has_value,
            Before::Present => has_value,
            Before::MayVanish => true,
        }
    }

    fn decode(byte: u8) -> Option<Self> {
        [Before::Absent, Before::Present, Before::MayVanish].get(usize::from(byte)).copied()
    }
}

impl PreparedRecord {
    /// A record whose keys have not been looked at. Fails if it cannot be one.
    pub(super) fn new(batch: WriteBatch, relied_on: Vec<Vec<u8>>) -> Result<Self> {
        batch.check()?;
        let record = PreparedRecord { batch, relied_on, before: Vec::new() };
        match record.touches_records() {
            true => Err(Error::invalid_argument("a key is one of those of prepared transactions")),
            false => Ok(record),
        }
    }

    /// `None` if keys and writes are too large for one value of an entry.
    pub(super) fn encode(&self, name: &[u8]) -> Option<Vec<u8>> {
        let mut value = [FORMAT, &[0; CHECKSUM_SIZE]].concat();
        let begin = value.len();
        let before: Vec<u8> = self.before.iter().map(|&before| before as u8).collect();
        put_length_prefixed(&mut value, &before);
        put_varint32(&mut value, u32::try_from(self.relied_on.len()).ok()?);
        self.relied_on.iter().for_each(|key| put_length_prefixed(&mut value, key));
        value.extend_from_slice(self.batch.as_bytes());
        let checksum = checksum::masked_pair(name, &value[begin..]);
        value[FORMAT.len()..begin].copy_from_slice(&checksum.to_le_bytes());
        Some(value)
    }

    /// `None` if the value was not made for a transaction of this name.
    pub(super) fn decode(name: &[u8], value: &[u8]) -> Option<Self> {
        let (checksum, mut rest) =
            value.strip_prefix(FORMAT)?.split_first_chunk::<CHECKSUM_SIZE>()?;
        if checksum::masked_pair(name, rest) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let before = get_length_prefixed(&mut rest)?;
        let before = before.iter().map(|&byte| Before::decode(byte)).collect::<Option<Vec<_>>>()?;
        let mut relied_on = Vec::new();
        for _ in 0..get_varint32(&mut rest)? {
            relied_on.push(get_length_prefixed(&mut rest)?.to_vec());
        }
        let batch = WriteBatch::from_bytes(rest.to_vec()).ok()?;
        let record = PreparedRecord { batch, relied_on, before };
        let is_whole = record.before.len() == record.batch.len() + record.relied_on.len();
        (is_whole && !record.touches_records()).then_some(record)
    }

    /// Every key that nobody else may write before the decision.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let written = self.batch.iter().map_while(Result::ok).map(|operation| match operation {
            Operation::Put { key, .. } | Operation::Delete { key } => key,
        });
        written.chain(self.relied_on.iter().map(Vec::as_slice))
    }

    /// Whether one of the keys is that of a prepared transaction.
    pub(super) fn touches_records(&self) -> bool {
        self.keys().any(|key| name(key).is_some())
    }
}

/// Decodes arbitrary bytes as a record whose checksum is right.
#[cfg(any(test, fuzzing))]
pub(in crate::db) fn decode_arbitrary(rest: &[u8]) {
    let checksum = checksum::masked_pair(b"", rest).to_le_bytes();
    let Some(record) = PreparedRecord::decode(b"", &[FORMAT, &checksum, rest].concat()) else {
        return;
    };
    assert_eq!(record.keys().count(), record.before.len());
    let encoded = record.encode(b"").expect("it is as small as it was");
    let again = PreparedRecord::decode(b"", &encoded).expect("decodes");
    assert!(again.keys().eq(record.keys()) && again.before == record.before);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(batch: WriteBatch, relied_on: &[&[u8]]) -> PreparedRecord {
        let before = [Before::Absent, Before::Present, Before::MayVanish];
        let relied_on: Vec<_> = relied_on.iter().map(|key| key.to_vec()).collect();
        let count = batch.len() + relied_on.len();
        PreparedRecord {
            batch,
            relied_on,
            before: before.into_iter().cycle().take(count).collect(),
        }
    }

    #[test]
    fn a_record_comes_back_and_others_are_refused() {
        let mut batch = WriteBatch::new();
        batch.put("a", "1");
        batch.delete("b");
        let record = record(batch, &[b"c", b""]);
        let value = record.encode(b"pay").expect("is small");
        let decoded = PreparedRecord::decode(b"pay", &value).expect("decodes");
        assert_eq!(decoded.keys().collect::<Vec<_>>(), [&b"a"[..], b"b", b"c", b""]);
        assert_eq!(decoded.batch.as_bytes(), record.batch.as_bytes());
        assert_eq!(decoded.before, record.before);
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

    #[test]
    fn a_record_has_the_documented_bytes() {
        let mut batch = WriteBatch::new();
        batch.put("a", "1");
        batch.delete("b");
        let value = record(batch, &[b"cd"]).encode(b"pay").expect("is small");
        let (head, rest) = value.split_at(15);
        let checksum = checksum::masked_pair(b"pay", rest).to_le_bytes();
        assert_eq!(head, [&b"prepared 1\n"[..], &checksum].concat());
        let batch = b"\0\0\0\0\0\0\0\0\x02\0\0\0\x01\x01a\x011\0\x01b";
        assert_eq!(rest, [&b"\x03\0\x01\x02\x01\x02cd"[..], batch].concat());
    }

    #[test]
    fn a_record_with_a_valid_checksum_and_other_contents_is_refused() {
        let mut batch = WriteBatch::new();
        batch.put("a", "1");
        let mut short = record(batch.clone(), &[]);
        short.before.clear();
        batch.put(key(b"other"), "");
        for record in [short, record(batch, &[]), record(WriteBatch::new(), &[&key(b"")])] {
            let value = record.encode(b"pay").expect("is small");
            assert!(PreparedRecord::decode(b"pay", &value).is_none(), "{record:?}");
        }
        let empty = record(WriteBatch::new(), &[]).encode(b"").expect("is small");
        assert!(PreparedRecord::decode(b"", &empty).is_some());
    }
}
