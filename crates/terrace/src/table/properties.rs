//! The properties of a table, which its builder wrote, in a small block that only Terrace reads.
//!
//! LevelDB looks for its filter in the metaindex and passes over everything else, so the block
//! costs it nothing. The number of tombstones tells compaction where space can be won back.

use crate::base::coding::{get_varint64, put_varint64};
use crate::base::internal_key::{SequenceNumber, TAG_SIZE, split, tag_sequence};

use super::compression::Codecs;

/// The name of the block in the metaindex.
pub(super) const PROPERTIES_NAME: &str = "terrace.properties";

/// The first number in the block. Later versions may append numbers without changing it.
const VERSION: u64 = 1;

/// Facts about a table of internal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableProperties {
    /// Entries, tombstones included.
    pub(crate) entries: u64,
    /// Tombstones.
    pub(crate) deletions: u64,
    /// Bytes of all user keys.
    pub(crate) raw_key_bytes: u64,
    /// Bytes of all values.
    pub(crate) raw_value_bytes: u64,
    /// The smallest sequence number of an entry.
    pub(crate) smallest_sequence: SequenceNumber,
    /// The largest sequence number of an entry.
    pub(crate) largest_sequence: SequenceNumber,
    /// When half of the entries have expired, in milliseconds since 1970; [`u64::MAX`] for never.
    pub(crate) half_expired: u64,
    /// The compressions beyond LevelDB's that its blocks may have.
    pub(crate) codecs: Codecs,
}

impl TableProperties {
    /// Those of a table without entries.
    pub(super) fn new() -> Self {
        TableProperties {
            entries: 0,
            deletions: 0,
            raw_key_bytes: 0,
            raw_value_bytes: 0,
            smallest_sequence: SequenceNumber::MAX,
            largest_sequence: 0,
            half_expired: u64::MAX,
            codecs: Codecs::default(),
        }
    }

    /// Counts an entry in. Of a key without a tag only the entry and its bytes count.
    #[inline]
    pub(super) fn count(&mut self, key: &[u8], value: &[u8], internal: bool) {
        self.entries += 1;
        self.raw_key_bytes += key.len() as u64;
        self.raw_value_bytes += value.len() as u64;
        if let Some((_, tag)) = internal.then(|| split(key)).flatten() {
            self.raw_key_bytes -= TAG_SIZE as u64;
            self.deletions += u64::from(tag as u8 == 0);
            self.smallest_sequence = self.smallest_sequence.min(tag_sequence(tag));
            self.largest_sequence = self.largest_sequence.max(tag_sequence(tag));
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut block = Vec::new();
        let numbers = [
            VERSION,
            self.entries,
            self.deletions,
            self.raw_key_bytes,
            self.raw_value_bytes,
            self.smallest_sequence,
            self.largest_sequence,
        ];
        for number in numbers {
            put_varint64(&mut block, number);
        }
        if self.half_expired != u64::MAX || !self.codecs.is_empty() {
            put_varint64(&mut block, self.half_expired);
        }
        if !self.codecs.is_empty() {
            put_varint64(&mut block, self.codecs.bits());
        }
        block
    }

    /// `None` if the block is not of a version that is known here.
    pub(super) fn decode(mut block: &[u8]) -> Option<Self> {
        let mut next = || get_varint64(&mut block);
        if next()? != VERSION {
            return None;
        }
        let mut properties = TableProperties {
            entries: next()?,
            deletions: next()?,
            raw_key_bytes: next()?,
            raw_value_bytes: next()?,
            smallest_sequence: next()?,
            largest_sequence: next()?,
            half_expired: u64::MAX,
            codecs: Codecs::default(),
        };
        if !block.is_empty() {
            properties.half_expired = get_varint64(&mut block)?;
        }
        if !block.is_empty() {
            properties.codecs = Codecs::from_bits(get_varint64(&mut block)?);
        }
        Some(properties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::internal_key::{EntryKind, encode};

    #[test]
    fn counts_encodes_and_decodes() {
        let mut properties = TableProperties::new();
        properties.count(&encode(b"a", 900, EntryKind::Value), b"value", true);
        properties.count(&encode(b"bb", 7, EntryKind::Deletion), b"", true);
        assert_eq!((properties.entries, properties.deletions), (2, 1));
        assert_eq!((properties.raw_key_bytes, properties.raw_value_bytes), (3, 5));
        assert_eq!((properties.smallest_sequence, properties.largest_sequence), (7, 900));
        // A key without a tag is all the user's.
        properties.count(b"plain key", b"v", false);
        assert_eq!((properties.entries, properties.deletions), (3, 1));
        assert_eq!((properties.raw_key_bytes, properties.raw_value_bytes), (12, 6));
        assert_eq!((properties.smallest_sequence, properties.largest_sequence), (7, 900));
        let mut block = properties.encode();
        assert_eq!(TableProperties::decode(&block), Some(properties));
        assert_eq!(TableProperties::decode(&block[..block.len() - 1]), None);
        properties.half_expired = 1_732_500_000_000;
        let with_expiry = properties.encode();
        assert!(with_expiry.starts_with(&block));
        assert_eq!(TableProperties::decode(&with_expiry), Some(properties));
        assert_eq!(TableProperties::decode(&with_expiry[..with_expiry.len() - 1]), None);
        properties.half_expired = u64::MAX;
        properties.codecs = Codecs::from_bits(1);
        let with_codecs = properties.encode();
        assert_eq!(TableProperties::decode(&with_codecs), Some(properties));
        assert_eq!(TableProperties::decode(&block).map(|it| it.codecs), Some(Codecs::default()));
        block[0] = 2;
        assert_eq!(TableProperties::decode(&block), None);
    }
}
