//! The difference between two versions: one record of the MANIFEST.
//!
//! Pure format code: bytes in, edit out. An unknown tag, a level out of range or a key too short to
//! be an internal key is a corruption; LevelDB refuses such a MANIFEST too.

use std::collections::BTreeMap;

use crate::base::coding::{get_length_prefixed, get_varint32, get_varint64};
use crate::base::coding::{put_length_prefixed, put_varint32, put_varint64};
use crate::base::error::{Error, Result};
use crate::base::internal_key::{SequenceNumber, TAG_SIZE};
use crate::base::value_pointer::ValueUse;
use crate::table::Codecs;

use super::NUM_LEVELS;

const TAG_COMPARATOR: u32 = 1;
const TAG_LOG_NUMBER: u32 = 2;
const TAG_NEXT_FILE: u32 = 3;
const TAG_LAST_SEQUENCE: u32 = 4;
const TAG_COMPACT_POINTER: u32 = 5;
const TAG_DELETED_FILE: u32 = 6;
const TAG_NEW_FILE: u32 = 7;
const TAG_PREVIOUS_LOG: u32 = 9;
// Terrace's, in extended databases only. LevelDB knows no such numbers and refuses the MANIFEST.
const TAG_NEW_VALUE_FILE: u32 = 0x5401;
const TAG_VALUES_OF_TABLE: u32 = 0x5402;
const TAG_CODECS_OF_TABLE: u32 = 0x5403;

/// A table file as an edit records it. Keys are internal keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewFile {
    pub(crate) level: usize,
    pub(crate) number: u64,
    pub(crate) size: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    /// How much of which value files it points at, by ascending numbers.
    pub(crate) values: Vec<ValueUse>,
    /// The compressions beyond LevelDB's that its blocks may have.
    pub(crate) codecs: Codecs,
}

/// A value file as an edit records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewValueFile {
    pub(crate) number: u64,
    /// Of the whole file. A later edit may name more of it.
    pub(crate) size: u64,
    /// Of the values in it alone.
    pub(crate) value_bytes: u64,
}

/// One record of the MANIFEST. A field that is `None` or empty is not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionEdit {
    pub(crate) comparator: Option<Vec<u8>>,
    pub(crate) log_number: Option<u64>,
    pub(crate) previous_log_number: Option<u64>,
    pub(crate) next_file_number: Option<u64>,
    pub(crate) last_sequence: Option<SequenceNumber>,
    /// LevelDB's position for the next compaction of a level. Terrace picks by overlap and writes
    /// none.
    pub(crate) compact_pointers: Vec<(usize, Vec<u8>)>,
    pub(crate) deleted_files: Vec<(usize, u64)>,
    pub(crate) new_files: Vec<NewFile>,
    /// Those that tables of this edit are the first to point into, and those that have grown.
    pub(crate) new_value_files: Vec<NewValueFile>,
}

impl VersionEdit {
    /// Whether a database with it is extended.
    pub(crate) fn is_extended(&self) -> bool {
        !self.new_value_files.is_empty()
            || self.new_files.iter().any(|file| !file.codecs.is_empty())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut dst = Vec::new();
        for (tag, number) in [
            (TAG_LOG_NUMBER, self.log_number),
            (TAG_PREVIOUS_LOG, self.previous_log_number),
            (TAG_NEXT_FILE, self.next_file_number),
            (TAG_LAST_SEQUENCE, self.last_sequence),
        ] {
            if let Some(number) = number {
                put_varint32(&mut dst, tag);
                put_varint64(&mut dst, number);
            }
        }
        for (level, key) in &self.compact_pointers {
            put_varint32(&mut dst, TAG_COMPACT_POINTER);
            put_varint32(&mut dst, *level as u32);
            put_length_prefixed(&mut dst, key);
        }
        for (level, number) in &self.deleted_files {
            put_varint32(&mut dst, TAG_DELETED_FILE);
            put_varint32(&mut dst, *level as u32);
            put_varint64(&mut dst, *number);
        }
        for file in &self.new_files {
            put_varint32(&mut dst, TAG_NEW_FILE);
            put_varint32(&mut dst, file.level as u32);
            put_varint64(&mut dst, file.number);
            put_varint64(&mut dst, file.size);
            put_length_prefixed(&mut dst, &file.smallest);
            put_length_prefixed(&mut dst, &file.largest);
        }
        for file in &self.new_value_files {
            put_varint32(&mut dst, TAG_NEW_VALUE_FILE);
            put_varint64(&mut dst, file.number);
            put_varint64(&mut dst, file.size);
            put_varint64(&mut dst, file.value_bytes);
        }
        for file in self.new_files.iter().filter(|file| !file.values.is_empty()) {
            put_varint32(&mut dst, TAG_VALUES_OF_TABLE);
            put_varint64(&mut dst, file.number);
            put_varint64(&mut dst, file.values.len() as u64);
            for used in &file.values {
                put_varint64(&mut dst, used.file);
                put_varint64(&mut dst, used.bytes);
            }
        }
        for file in self.new_files.iter().filter(|file| !file.codecs.is_empty()) {
            put_varint32(&mut dst, TAG_CODECS_OF_TABLE);
            put_varint64(&mut dst, file.number);
            put_varint64(&mut dst, file.codecs.bits());
        }
        // At the end, for `ends_in_name`. Readers take the fields in any order.
        if let Some(name) = &self.comparator {
            put_varint32(&mut dst, TAG_COMPARATOR);
            put_length_prefixed(&mut dst, name);
        }
        dst
    }

    /// Whether `encoded`, this edit, ends in the comparator's name, behind other fields, as only
    /// Terrace writes it: keys and numbers end in zeros, a name does not. So a zero at the end of
    /// such an edit is a byte that never came to the disk.
    pub(crate) fn ends_in_name(&self, encoded: &[u8]) -> bool {
        let Some(name) = self.comparator.as_ref().filter(|name| !name.ends_with(&[0])) else {
            return false;
        };
        let field = Self { comparator: Some(name.clone()), ..Self::default() }.encode();
        encoded.len() > field.len() && encoded.ends_with(&field)
    }

    pub(crate) fn decode(mut src: &[u8]) -> Result<Self> {
        let mut edit = VersionEdit::default();
        let mut places = Places::default();
        while !src.is_empty() {
            let tag = get_varint32(&mut src).ok_or_else(|| bad("tag"))?;
            match tag {
                TAG_COMPARATOR => {
                    let name =
                        get_length_prefixed(&mut src).ok_or_else(|| bad("comparator name"))?;
                    edit.comparator = Some(name.to_vec());
                }
                TAG_LOG_NUMBER => edit.log_number = Some(number(&mut src, "log number")?),
                TAG_PREVIOUS_LOG => {
                    edit.previous_log_number = Some(number(&mut src, "previous log number")?)
                }
                TAG_NEXT_FILE => {
                    edit.next_file_number = Some(number(&mut src, "next file number")?)
                }
                TAG_LAST_SEQUENCE => {
                    edit.last_sequence = Some(number(&mut src, "last sequence number")?)
                }
                TAG_COMPACT_POINTER => {
                    let level = level(&mut src, "compaction pointer")?;
                    edit.compact_pointers.push((level, key(&mut src, "compaction pointer")?));
                }
                TAG_DELETED_FILE => {
                    let level = level(&mut src, "deleted file")?;
                    edit.deleted_files.push((level, number(&mut src, "deleted file")?));
                }
                TAG_NEW_FILE => edit.new_files.push(NewFile {
                    level: level(&mut src, "new file")?,
                    number: number(&mut src, "new file")?,
                    size: number(&mut src, "new file")?,
                    smallest: key(&mut src, "new file")?,
                    largest: key(&mut src, "new file")?,
                    values: Vec::new(),
                    codecs: Codecs::default(),
                }),
                TAG_NEW_VALUE_FILE => edit.new_value_files.push(NewValueFile {
                    number: number(&mut src, "new value file")?,
                    size: number(&mut src, "new value file")?,
                    value_bytes: number(&mut src, "new value file")?,
                }),
                TAG_VALUES_OF_TABLE => {
                    let (table, values) = values_of_table(&mut src)?;
                    let place = places.of(table, &edit.new_files);
                    let place = place.ok_or_else(|| bad("values of a table"))?;
                    edit.new_files[place].values = values;
                }
                TAG_CODECS_OF_TABLE => {
                    let table = number(&mut src, "codecs of a table")?;
                    let codecs = Codecs::from_bits(number(&mut src, "codecs of a table")?);
                    if codecs.has_unknown() {
                        let message =
                            format!("table {table:06} has a compression of a later version");
                        return Err(Error::not_supported(message));
                    }
                    let place = places.of(table, &edit.new_files);
                    let place = place.ok_or_else(|| bad("codecs of a table"))?;
                    edit.new_files[place].codecs = codecs;
                }
                _ => return Err(Error::corruption(format!("unknown tag {tag} in a version edit"))),
            }
        }
        Ok(edit)
    }
}

/// The places of new files by their numbers, as far as they have been looked for.
#[derive(Default)]
struct Places {
    by_number: BTreeMap<u64, usize>,
    seen: usize,
}

impl Places {
    fn of(&mut self, table: u64, files: &[NewFile]) -> Option<usize> {
        let unseen = files.iter().enumerate().skip(self.seen);
        self.by_number.extend(unseen.map(|(at, file)| (file.number, at)));
        self.seen = files.len();
        self.by_number.get(&table).copied()
    }
}

fn bad(field: &str) -> Error {
    Error::corruption(format!("bad {field} in a version edit"))
}

fn number(src: &mut &[u8], field: &str) -> Result<u64> {
    get_varint64(src).ok_or_else(|| bad(field))
}

fn values_of_table(src: &mut &[u8]) -> Result<(u64, Vec<ValueUse>)> {
    let what = "values of a table";
    let (table, count) = (number(src, what)?, number(src, what)?);
    // Grows with the bytes that are there, whatever the count says.
    let mut values: Vec<ValueUse> = Vec::new();
    for _ in 0..count {
        let used = ValueUse { file: number(src, what)?, bytes: number(src, what)? };
        if values.last().is_some_and(|last| last.file >= used.file) {
            return Err(bad(what));
        }
        values.push(used);
    }
    Ok((table, values))
}

fn level(src: &mut &[u8], field: &str) -> Result<usize> {
    get_varint32(src)
        .map(|level| level as usize)
        .filter(|&level| level < NUM_LEVELS)
        .ok_or_else(|| bad(field))
}

fn key(src: &mut &[u8], field: &str) -> Result<Vec<u8>> {
    get_length_prefixed(src)
        .filter(|key| key.len() >= TAG_SIZE)
        .map(<[u8]>::to_vec)
        .ok_or_else(|| bad(field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::internal_key::{EntryKind, encode};

    fn full() -> VersionEdit {
        let key = |text: &str, sequence| encode(text.as_bytes(), sequence, EntryKind::Value);
        VersionEdit {
            comparator: Some("leveldb.BytewiseComparator".into()),
            log_number: Some(1 << 50),
            previous_log_number: Some(0),
            next_file_number: Some(1 << 40),
            last_sequence: Some((1 << 56) - 1),
            compact_pointers: vec![(3, key("x", 9))],
            deleted_files: vec![(0, 4), (6, 1 << 41)],
            new_files: vec![NewFile {
                level: 2,
                number: 77,
                size: 1 << 33,
                smallest: key("a", 1),
                largest: key("z", 2),
                values: vec![
                    ValueUse { file: 70, bytes: 1 << 20 },
                    ValueUse { file: 76, bytes: 1 << 34 },
                ],
                codecs: Codecs::from_bits(3),
            }],
            new_value_files: vec![NewValueFile { number: 76, size: 1 << 35, value_bytes: 1 << 34 }],
        }
    }

    #[test]
    fn edits_round_trip() {
        assert_eq!(VersionEdit::decode(&full().encode()).expect("decodes"), full());
        assert_eq!(VersionEdit::decode(&[]).expect("decodes"), VersionEdit::default());
    }

    #[test]
    fn every_truncation_is_refused_or_a_shorter_edit() {
        let bytes = full().encode();
        for length in 0..bytes.len() {
            if let Ok(edit) = VersionEdit::decode(&bytes[..length]) {
                assert_eq!(edit.encode(), &bytes[..length]);
            }
        }
    }

    #[test]
    fn unknown_tags_levels_and_short_keys_are_refused() {
        assert!(VersionEdit::decode(&[8, 0]).is_err());
        assert!(VersionEdit::decode(&[TAG_DELETED_FILE as u8, 7, 1]).is_err());
        let values = |numbers: &[u64]| {
            let mut edit = vec![];
            put_varint32(&mut edit, TAG_VALUES_OF_TABLE);
            numbers.iter().for_each(|&number| put_varint64(&mut edit, number));
            edit
        };
        let (of_nothing, table) = (values(&[77, 1, 70, 5]), full().encode());
        assert!(VersionEdit::decode(&of_nothing).is_err(), "values of a table of another edit");
        let descending = [table, values(&[77, 2, 76, 5, 70, 5])].concat();
        assert!(VersionEdit::decode(&descending).is_err());
        assert!(VersionEdit::decode(&[TAG_COMPACT_POINTER as u8, 0, 3, 1, 2, 3]).is_err());
    }

    /// goleveldb repeats tables. A later version's compression is no damage.
    #[test]
    fn codecs_are_the_last_table_s_of_that_number_and_known() {
        let codecs = |bits: u64| {
            let mut tag = Vec::new();
            put_varint32(&mut tag, TAG_CODECS_OF_TABLE);
            [77, bits].iter().for_each(|&number| put_varint64(&mut tag, number));
            tag
        };
        let file = NewFile { codecs: Codecs::default(), ..full().new_files.remove(0) };
        let new_files = vec![NewFile { number: 76, ..file.clone() }, file.clone(), file];
        let edit = VersionEdit { new_files, ..VersionEdit::default() }.encode();
        let decoded = VersionEdit::decode(&[edit.clone(), codecs(1), codecs(2)].concat());
        let files = decoded.expect("decodes").new_files;
        let bits: Vec<_> = files.iter().map(|file| file.codecs.bits()).collect();
        assert_eq!(bits, [0, 0, 2]);
        let error = VersionEdit::decode(&[edit, codecs(8)].concat()).expect_err("unknown");
        assert_eq!(error.kind(), crate::base::error::ErrorKind::NotSupported);
        assert!(VersionEdit::decode(&codecs(1)).is_err(), "a table of another edit");
    }

    #[test]
    fn bytes_are_leveldb_s() {
        let edit = VersionEdit {
            log_number: Some(300),
            deleted_files: vec![(1, 5)],
            ..VersionEdit::default()
        };
        assert_eq!(edit.encode(), [2, 0xac, 0x02, 6, 1, 5]);
    }
}
