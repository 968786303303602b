//! Reading a MANIFEST: the edits of a database's history, folded into its present state.

use std::path::Path;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::{InternalOrder, MAX_SEQUENCE, SequenceNumber};
use crate::base::sabotage::sabotaged;
use crate::env::{Env, ReadAccess};
use crate::log::{LogItem, LogReader};

use super::edit::VersionEdit;
use super::file_meta::ObsoleteFiles;
use super::filename;
use super::version::Version;

/// What a MANIFEST says.
#[derive(Default)]
pub(crate) struct ManifestState {
    pub(crate) version: Version,
    pub(crate) comparator: Option<String>,
    pub(crate) log_number: u64,
    pub(crate) previous_log_number: u64,
    pub(crate) next_file_number: u64,
    pub(crate) last_sequence: SequenceNumber,
    /// What is wrong with the last record.
    pub(crate) torn: Option<String>,
    pub(crate) edits: u64,
}

impl ManifestState {
    /// Whether the log `number` may hold writes that no table has.
    pub(crate) fn needs_log(&self, number: u64) -> bool {
        number >= self.log_number || (number == self.previous_log_number && number != 0)
    }
}

/// Reads CURRENT and answers the number of the MANIFEST it names.
pub(crate) fn read_current(env: &dyn Env, dir: &Path) -> Result<u64> {
    let path = dir.join(filename::CURRENT);
    let file = env.open_random(&path, ReadAccess::Pread)?;
    // No legal name is longer than this: a hostile file must not make us read it whole.
    let mut contents = [0u8; 64];
    let length = file.read_at(0, &mut contents)?;
    filename::parse_current(&contents[..length]).filter(|&number| number <= filename::MAX_NUMBER).ok_or_else(|| {
        let shown = String::from_utf8_lossy(&contents[..length]);
        Error::corruption(format!("{}: does not name a MANIFEST: {shown:?}", path.display()))
    })
}

/// Reads the MANIFEST `number` and checks it against the comparator in use.
///
/// A bad record with a good one behind it is a corruption. A bad last record is taken as never written: a power cut
/// leaves an edit that was not durable cut off, or of full length and partly zeros. Nothing relied on it then: files
/// are removed only once the edit that gives them up is durable, so that the edit before it still finds its own.
pub(crate) fn read_manifest(
    env: &dyn Env,
    dir: &Path,
    number: u64,
    order: &InternalOrder,
    graveyard: &Arc<ObsoleteFiles>,
) -> Result<ManifestState> {
    let path = dir.join(filename::manifest(number));
    let place = path.display().to_string();
    let file = env.open_random(&path, ReadAccess::Pread).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let current = dir.join(filename::CURRENT);
            Error::corruption(format!("{}: names {}, which is missing", current.display(), filename::manifest(number)))
        }
        _ => error,
    })?;
    let mut reader = LogReader::new(file, place.clone());
    let mut state = ManifestState::default();
    let (mut next_file, mut last_sequence, mut log_number) = (None, None, None);
    // Folding all edits into one change of the empty version keeps reading linear in the number of edits.
    let mut folded = FoldedFiles::default();
    loop {
        match reader.next()? {
            LogItem::Record { data, offset, .. } => {
                if let Some(damage) = state.torn.clone().filter(|_| !sabotaged("manifest-holes")) {
                    return Err(Error::corruption(damage));
                }
                let edit = VersionEdit::decode(data).map_err(|e| e.context(format!("{place} at offset {offset}")))?;
                if let Some(name) = &edit.comparator {
                    check_comparator(name, order, &place)?;
                    state.comparator = edit.comparator.clone();
                }
                log_number = edit.log_number.or(log_number);
                next_file = edit.next_file_number.or(next_file);
                last_sequence = edit.last_sequence.or(last_sequence);
                if let Some(previous) = edit.previous_log_number {
                    state.previous_log_number = previous;
                }
                folded.add(edit).map_err(|e| e.context(format!("{place} at offset {offset}")))?;
                state.edits += 1;
            }
            LogItem::Damage { reason, .. } => {
                state.torn.get_or_insert(reason);
            }
            LogItem::End { offset, torn } => {
                if torn {
                    state.torn.get_or_insert_with(|| format!("{place}: torn at offset {offset}"));
                }
                break;
            }
        }
    }
    let missing = |what: &str| Error::corruption(format!("{place}: records no {what}"));
    state.next_file_number = next_file.ok_or_else(|| missing("next file number"))?;
    state.last_sequence = last_sequence.ok_or_else(|| missing("last sequence number"))?;
    state.log_number = log_number.ok_or_else(|| missing("log number"))?;
    state.version = Version::default().apply(&folded.into_edit(), order, graveyard).map_err(|e| e.context(&place))?;
    let tables = state.version.files().map(|(_, file)| file.number);
    let named = tables.chain([state.next_file_number, state.log_number, state.previous_log_number]);
    if named.max() > Some(filename::MAX_NUMBER) || state.last_sequence > MAX_SEQUENCE {
        return Err(Error::corruption(format!("{place}: file or sequence numbers are exhausted")));
    }
    Ok(state)
}

fn check_comparator(name: &str, order: &InternalOrder, place: &str) -> Result<()> {
    if name == order.keys.name() || sabotaged("comparator-name") {
        return Ok(());
    }
    let ours = order.keys.name();
    Err(Error::invalid_argument(format!("{place}: the database is ordered by {name}, not by the comparator {ours}")))
}

/// The files that are left after a run of edits.
#[derive(Default)]
struct FoldedFiles {
    files: std::collections::BTreeMap<(usize, u64), super::edit::NewFile>,
}

impl FoldedFiles {
    fn add(&mut self, edit: VersionEdit) -> Result<()> {
        for key in &edit.deleted_files {
            if self.files.remove(key).is_none() {
                let (level, number) = key;
                let message = format!("an edit removes table {number:06}, which is not at level {level}");
                return Err(Error::corruption(message));
            }
        }
        for file in edit.new_files {
            let key = (file.level, file.number);
            if self.files.insert(key, file).is_some() {
                return Err(Error::corruption(format!("an edit adds table {:06} twice", key.1)));
            }
        }
        Ok(())
    }

    fn into_edit(self) -> VersionEdit {
        VersionEdit { new_files: self.files.into_values().collect(), ..VersionEdit::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::KeyOrder;
    use crate::base::internal_key::{EntryKind, encode};
    use crate::env::{CreateOptions, MemEnv};
    use crate::log::LogWriter;
    use crate::version::edit::NewFile;

    fn table(level: usize, number: u64, smallest: &str, largest: &str) -> NewFile {
        let key = |text: &str| encode(text.as_bytes(), 5, EntryKind::Value);
        NewFile { level, number, size: 100, smallest: key(smallest), largest: key(largest) }
    }

    fn adding(new_files: Vec<NewFile>) -> VersionEdit {
        VersionEdit { new_files, ..VersionEdit::default() }
    }

    fn removing(level: usize, number: u64) -> VersionEdit {
        VersionEdit { deleted_files: vec![(level, number)], ..VersionEdit::default() }
    }

    /// The edit that a fresh database begins with.
    fn first() -> VersionEdit {
        VersionEdit {
            comparator: Some("leveldb.BytewiseComparator".to_owned()),
            log_number: Some(3),
            next_file_number: Some(10),
            last_sequence: Some(7),
            ..VersionEdit::default()
        }
    }

    /// What becomes of a MANIFEST of these edits, with `change` done to its bytes.
    fn read(edits: &[VersionEdit], change: impl FnOnce(&mut Vec<u8>)) -> Result<ManifestState> {
        let (env, path) = (MemEnv::new(), Path::new("/MANIFEST-000001"));
        let mut writer = LogWriter::new(env.create(path, CreateOptions::default())?, 0);
        edits.iter().try_for_each(|edit| writer.add_record(&edit.encode()))?;
        writer.close()?;
        let mut bytes = env.read(path).unwrap_or_default();
        change(&mut bytes);
        env.write(path, bytes);
        read_manifest(&env, Path::new("/"), 1, &InternalOrder::new(KeyOrder::default()), &Arc::default())
    }

    #[test]
    fn edits_follow_from_one_another() {
        let moved = VersionEdit { new_files: vec![table(2, 5, "a", "c")], ..removing(1, 5) };
        let previous = VersionEdit { previous_log_number: Some(2), log_number: Some(4), ..VersionEdit::default() };
        let state =
            read(&[first(), adding(vec![table(1, 5, "a", "c"), table(1, 6, "d", "d")]), moved, previous], |_| ());
        let state = state.expect("reads");
        let files: Vec<_> = state.version.files().map(|(level, file)| (level, file.number)).collect();
        assert_eq!((files, state.edits, state.torn.is_none()), (vec![(1, 6), (2, 5)], 4, true));
        assert_eq!((state.next_file_number, state.last_sequence, state.log_number), (10, 7, 4));
        // LevelDB could once write to two logs. The number 0 means none.
        let needed: Vec<_> = (0..6).filter(|&log| state.needs_log(log)).collect();
        assert_eq!(needed, [2, 4, 5]);
        assert!(!read(&[first()], |_| ()).expect("reads").needs_log(0));
    }

    #[test]
    fn contradictions_are_corruptions_that_name_the_file() {
        let refused = |edits: &[VersionEdit], what: &str| {
            let edits = [&[first()], edits].concat();
            let error = read(&edits, |_| ()).err().unwrap_or_else(|| panic!("accepted, although {what}"));
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            assert!(error.message().contains("/MANIFEST-000001") && error.message().contains(what), "{error}");
        };
        refused(&[removing(1, 5)], "removes table 000005, which is not at level 1");
        refused(&[adding(vec![table(1, 5, "a", "b")]), removing(2, 5)], "which is not at level 2");
        refused(&[adding(vec![table(1, 5, "a", "b"), table(1, 5, "c", "d")])], "adds table 000005 twice");
        refused(&[adding(vec![table(3, 5, "b", "a")])], "table 000005 at level 3 ends before it begins");
        refused(&[adding(vec![table(3, 5, "a", "c"), table(3, 6, "c", "d")])], "000005 and 000006 at level 3 overlap");
        let exhausted = "file or sequence numbers are exhausted";
        refused(&[VersionEdit { next_file_number: Some(u64::MAX), ..VersionEdit::default() }], exhausted);
        refused(&[adding(vec![table(1, u64::MAX, "a", "b")])], exhausted);
        refused(&[VersionEdit { log_number: Some(filename::MAX_NUMBER + 1), ..VersionEdit::default() }], exhausted);
        refused(&[VersionEdit { last_sequence: Some(MAX_SEQUENCE + 1), ..VersionEdit::default() }], exhausted);
        let unknown = read(&[VersionEdit::default()], |_| ()).err().expect("refused");
        assert!(unknown.message().contains("records no next file number"), "{unknown}");
        let foreign = VersionEdit { comparator: Some("reverse".to_owned()), ..VersionEdit::default() };
        let foreign = read(&[first(), foreign], |_| ()).err().expect("refused");
        assert!(foreign.kind() == ErrorKind::InvalidArgument && foreign.message().contains("reverse"), "{foreign}");
    }

    #[test]
    fn only_the_last_record_may_be_bad() {
        let edits = [first(), adding(vec![table(1, 5, "a", "c")]), adding(vec![table(1, 6, "d", "d")])];
        let first_end = first().encode().len() + 7;
        for damage in [
            |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 3),
            |bytes: &mut Vec<u8>| {
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
            },
        ] {
            let state = read(&edits, damage).expect("reads");
            let torn = state.torn.expect("says so");
            assert!(torn.contains("/MANIFEST-000001") && state.edits == 2, "{torn}");
        }
        let error = read(&edits, |bytes| bytes[first_end + 10] ^= 1).err().expect("refused");
        assert!(error.kind() == ErrorKind::Corruption && error.message().contains("checksum"), "{error}");
    }

    #[test]
    fn an_edit_that_breaks_the_version_is_refused() {
        let order = InternalOrder::new(KeyOrder::default());
        let refused = |edit: &VersionEdit, what: &str| {
            let error = Version::default().apply(edit, &order, &Arc::default()).expect_err("refused");
            assert!(error.message().contains(what), "{error}");
        };
        refused(&removing(4, 9), "removes table 000009, which is not at level 4");
        refused(&adding(vec![table(0, 5, "a", "c"), table(0, 5, "d", "e")]), "000005 and 000005 at level 0 overlap");
    }
}
