//! LevelDB's text for people, in LevelDB's words: keys, and the edits of a MANIFEST.

use std::fmt::Write as _;

use crate::base::internal_key::ParsedKey;
use crate::version::edit::VersionEdit;

/// Bytes as LevelDB shows them.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text
}

/// An internal key: `'key' @ sequence : kind`.
pub(in crate::db) fn internal_key(key: &[u8]) -> String {
    let Some(parsed) = ParsedKey::parse(key) else { return format!("(bad){}", escape(key)) };
    format!("'{}' @ {} : {}", escape(parsed.user_key), parsed.sequence, parsed.kind as u8)
}

/// An edit, over several lines.
pub(in crate::db) fn edit(edit: &VersionEdit) -> String {
    let numbers = [
        ("LogNumber", edit.log_number),
        ("PrevLogNumber", edit.previous_log_number),
        ("NextFile", edit.next_file_number),
        ("LastSeq", edit.last_sequence),
    ];
    let mut text = String::from("VersionEdit {");
    if let Some(comparator) = &edit.comparator {
        let _ = write!(text, "\n  Comparator: {}", String::from_utf8_lossy(comparator));
    }
    for (name, number) in numbers {
        if let Some(number) = number {
            let _ = write!(text, "\n  {name}: {number}");
        }
    }
    for (level, key) in &edit.compact_pointers {
        let _ = write!(text, "\n  CompactPointer: {level} {}", internal_key(key));
    }
    // In order of level and number, whatever the file's.
    let mut removed = edit.deleted_files.clone();
    removed.sort_unstable();
    for (level, number) in &removed {
        let _ = write!(text, "\n  RemoveFile: {level} {number}");
    }
    for file in &edit.new_files {
        let (smallest, largest) = (internal_key(&file.smallest), internal_key(&file.largest));
        let _ = write!(
            text,
            "\n  AddFile: {} {} {} {smallest} .. {largest}",
            file.level, file.number, file.size
        );
    }
    text.push_str("\n}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::internal_key::{EntryKind, encode};
    use crate::version::edit::NewFile;

    #[test]
    fn edits_read_as_in_leveldb() {
        assert_eq!(edit(&VersionEdit::default()), "VersionEdit {\n}\n");
        let file = NewFile {
            level: 2,
            number: 8,
            size: 99,
            smallest: encode(b"a\n", 5, EntryKind::Value),
            largest: b"nonsense".to_vec(),
            values: Vec::new(),
            codecs: Default::default(),
        };
        let full = VersionEdit {
            comparator: Some(b"order".to_vec()),
            log_number: Some(3),
            last_sequence: Some(70),
            compact_pointers: vec![(1, encode(b"p", 6, EntryKind::Deletion))],
            deleted_files: vec![(1, 7), (0, 9)],
            new_files: vec![file],
            ..VersionEdit::default()
        };
        let expected = "VersionEdit {\n  Comparator: order\n  LogNumber: 3\n  LastSeq: 70\n  CompactPointer: 1 'p' @ 6 : 0\
                        \n  RemoveFile: 0 9\n  RemoveFile: 1 7\n  AddFile: 2 8 99 'a\\x0a' @ 5 : 1 .. (bad)nonsense\n}\n";
        assert_eq!(edit(&full), expected);
    }
}
