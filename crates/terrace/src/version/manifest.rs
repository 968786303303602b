//! Reading a MANIFEST: the edits of a database's history, folded into its present state.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::{InternalOrder, MAX_SEQUENCE, SequenceNumber};
use crate::base::mutation::mutated;
use crate::env::{Env, RandomAccessFile, ReadAccess};
use crate::log::{LogItem, LogReader};

use super::edit::{NewFile, NewValueFile, VersionEdit};
use super::file_meta::ObsoleteFiles;
use super::filename;
use super::value_files::check_growth;
use super::version::Version;

/// What the name of a comparator begins with in the MANIFEST of an extended database, which has
/// value files, or tables with LZ4 or zstd: no reader of LevelDB's format opens a database by a
/// comparator that it does not know.
const EXTENDED: &[u8] = b"terrace.extended.";

/// The name of the comparator as a MANIFEST has it.
pub(crate) fn comparator_name(order: &InternalOrder, is_extended: bool) -> Vec<u8> {
    let before = if is_extended && !mutated("extended-name") { EXTENDED } else { &[] };
    [before, order.keys.name_bytes()].concat()
}

/// The name of the comparator as a program knows it, and whether the database is extended.
pub(crate) fn plain_name(name: &[u8]) -> (&[u8], bool) {
    match name.strip_prefix(EXTENDED) {
        Some(plain) => (plain, true),
        None => (name, false),
    }
}

/// The state that a MANIFEST records.
#[derive(Default)]
pub(crate) struct ManifestState {
    pub(crate) version: Version,
    pub(crate) comparator: Option<Vec<u8>>,
    pub(crate) log_number: u64,
    pub(crate) previous_log_number: u64,
    pub(crate) next_file_number: u64,
    pub(crate) last_sequence: SequenceNumber,
    /// The number of the first write that belongs to the logs from `log_number` on, if an edit of
    /// Terrace's has told it, which names that log and the number before: no table and no other log
    /// has had it. LevelDB records the last number that it has handed out instead, wherever the logs
    /// begin.
    pub(crate) logs_begin: Option<SequenceNumber>,
    /// The same, if the edit tells it with which LevelDB opens a database and begins a log. That log
    /// may still be one that was found, with `reuse_logs`.
    pub(crate) new_log_begins: Option<SequenceNumber>,
    /// The last record is torn, and where: it was never durable, and is not part of the state.
    pub(crate) torn: Option<String>,
    /// The logs are Terrace's: it named the first one, and no edit since is LevelDB's, which starts
    /// a MANIFEST or adds an edit before it logs.
    pub(crate) is_terraces: bool,
    /// It bears a name that LevelDB refuses, because tables point into value files or have LZ4 or
    /// zstd.
    pub(crate) is_extended: bool,
    pub(crate) edits: u64,
}

impl ManifestState {
    /// Whether the log `number` may hold writes that no table has.
    pub(crate) fn needs_log(&self, number: u64) -> bool {
        number >= self.log_number || (number == self.previous_log_number && number != 0)
    }

    /// Whether there is no number left for a write, or too few for the files of one open.
    fn exhausts_numbers(&self) -> bool {
        let tables = self.version.files().map(|(_, file)| file.number);
        let tables = tables.chain(self.version.values.iter().map(|used| used.file.number));
        let others = [self.next_file_number, self.log_number, self.previous_log_number];
        tables.chain(others).max() > Some(filename::LAST_NUMBER)
            || self.last_sequence > MAX_SEQUENCE
    }
}

/// Reads CURRENT and returns the number of the MANIFEST it names.
pub(crate) fn read_current(env: &dyn Env, dir: &Path) -> Result<u64> {
    let path = dir.join(filename::CURRENT);
    let file = env.open_random(&path, ReadAccess::Pread)?;
    // No legal name is longer than this: a hostile file must not make us read it whole.
    let mut contents = [0u8; 64];
    let length = file.read_at(0, &mut contents)?;
    filename::parse_current(&contents[..length])
        .filter(|&number| number <= filename::MAX_NUMBER)
        .ok_or_else(|| {
            let shown = String::from_utf8_lossy(&contents[..length]);
            Error::corruption(format!("{}: does not name a MANIFEST: {shown:?}", path.display()))
        })
}

/// Reads the MANIFEST `number` and checks it against the comparator in use.
///
/// Only a *torn* last record is taken as never written: one that the end of the file cuts off, of
/// which whole sectors are zeros, or of which the last byte is zero where Terrace writes none
/// ([`VersionEdit::ends_in_name`]). A power cut leaves such a record of an edit that was not
/// durable. Nothing relied on it then: files are removed only once the edit that gives them up is
/// durable, so that the edit before it still finds its own. Everything else is damage to an edit
/// that may have been durable, and an error.
pub(crate) fn read_manifest(
    env: &dyn Env,
    dir: &Path,
    number: u64,
    order: &InternalOrder,
    obsolete_files: &Arc<ObsoleteFiles>,
) -> Result<ManifestState> {
    let place = dir.join(filename::manifest(number)).display().to_string();
    let mut reader = LogReader::new(open_manifest(env, dir, number)?, place.clone());
    let mut state = ManifestState::default();
    let (mut next_file, mut last_sequence, mut log_number) = (None, None, None);
    // What is wrong with the last record, unless it is torn; and whether all edits before it are
    // Terrace's.
    let (mut damage, mut all_end_in_name) = (None, true);
    // Folding all edits into one change of the empty version keeps reading linear in the number of
    // edits.
    let mut folded = FoldedFiles::default();
    loop {
        match reader.next()? {
            LogItem::Record { data, offset, .. } => {
                if let Some(damage) =
                    damage.or(state.torn.clone()).filter(|_| !mutated("manifest-holes"))
                {
                    return Err(Error::corruption(damage));
                }
                damage = None;
                let edit = VersionEdit::decode(data)
                    .map_err(|e| e.context(format!("{place} at offset {offset}")))?;
                let ends_in_name = edit.ends_in_name(data);
                all_end_in_name &= ends_in_name;
                if let Some(name) = &edit.comparator {
                    state.is_extended |= check_comparator(name, order, &place)?;
                    state.comparator = edit.comparator.clone();
                }
                match (ends_in_name, edit.log_number, edit.last_sequence) {
                    // The snapshot at the beginning of a MANIFEST.
                    (true, None, None) => {}
                    (true, Some(_), Some(last)) => {
                        state.is_terraces = true;
                        state.new_log_begins = None;
                        state.logs_begin = Some(last.saturating_add(1));
                    }
                    (_, named, last) => {
                        state.is_terraces = false;
                        let is_same = named.is_none_or(|log| log_number == Some(log));
                        state.logs_begin = state.logs_begin.filter(|_| is_same);
                        // LevelDB's first edit stands behind a snapshot that names no log, and has
                        // replayed all logs. A new log has the number behind the MANIFEST's and
                        // those of the tables that it made of them.
                        let opens = log_number.is_none() && last_sequence.is_none();
                        let next = number.saturating_add(1 + edit.new_files.len() as u64);
                        let is_new = opens && named == Some(next);
                        let begins = last.map(|last: u64| last.saturating_add(1));
                        state.new_log_begins = match is_new && !mutated("new-log-of-leveldb") {
                            true => begins,
                            false => state.new_log_begins.filter(|_| is_same),
                        };
                    }
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
            LogItem::Damage { reason, torn, .. } => {
                if !torn {
                    damage.get_or_insert(reason.clone());
                }
                state.torn.get_or_insert(reason);
            }
            LogItem::End { offset, torn } => {
                let misses_its_end = all_end_in_name && reader.ends_in_zero();
                if let Some(damage) =
                    damage.filter(|_| !misses_its_end && !mutated("manifest-damage"))
                {
                    return Err(Error::corruption(damage));
                }
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
    state.version = Version::default()
        .apply(&folded.into_edit(), order, obsolete_files)
        .map_err(|e| e.context(&place))?;
    if state.exhausts_numbers() {
        return Err(Error::corruption(format!("{place}: file or sequence numbers are exhausted")));
    }
    Ok(state)
}

/// Opens the MANIFEST that `CURRENT` names.
fn open_manifest(env: &dyn Env, dir: &Path, number: u64) -> Result<Arc<dyn RandomAccessFile>> {
    let name = filename::manifest(number);
    env.open_random(&dir.join(&name), ReadAccess::Pread).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let current = dir.join(filename::CURRENT);
            Error::corruption(format!("{}: names {name}, which is missing", current.display()))
        }
        _ => error,
    })
}

/// Fails if the database is ordered by another comparator than `order`. Returns whether it is
/// extended.
fn check_comparator(name: &[u8], order: &InternalOrder, place: &str) -> Result<bool> {
    let (plain, is_extended) = plain_name(name);
    if plain == order.keys.name_bytes() || mutated("comparator-name") {
        return Ok(is_extended);
    }
    let (theirs, ours) = (String::from_utf8_lossy(plain), order.keys.name());
    Err(Error::invalid_argument(format!(
        "{place}: the database is ordered by {theirs}, not by the comparator {ours}"
    )))
}

/// The files that are left after a run of edits.
///
/// As in LevelDB, an edit may remove a table that is not there, and add one that is there already:
/// goleveldb records the tables of a compaction twice.
#[derive(Default)]
struct FoldedFiles {
    files: BTreeMap<(usize, u64), NewFile>,
    value_files: BTreeMap<u64, NewValueFile>,
}

impl FoldedFiles {
    fn add(&mut self, edit: VersionEdit) -> Result<()> {
        for key in &edit.deleted_files {
            self.files.remove(key);
        }
        for file in edit.new_files {
            let (level, number) = (file.level, file.number);
            let before = self.files.get(&(level, number));
            if before.is_some_and(|before| *before != file) {
                let message = format!(
                    "an edit adds table {number:06} again to level {level}, with other bounds"
                );
                return Err(Error::corruption(message));
            }
            self.files.insert((level, number), file);
        }
        for file in edit.new_value_files {
            if let Some(before) = self.value_files.insert(file.number, file) {
                check_growth(&before, &file)?;
            }
        }
        Ok(())
    }

    fn into_edit(self) -> VersionEdit {
        VersionEdit {
            new_files: self.files.into_values().collect(),
            new_value_files: self.value_files.into_values().collect(),
            ..VersionEdit::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::base::comparator::KeyOrder;
    use crate::base::internal_key::{EntryKind, encode};
    use crate::base::value_pointer::ValueUse;
    use crate::env::{CreateOptions, MemEnv};
    use crate::log::LogWriter;

    fn table(level: usize, number: u64, smallest: &str, largest: &str) -> NewFile {
        let key = |text: &str| encode(text.as_bytes(), 5, EntryKind::Value);
        NewFile {
            level,
            number,
            size: 100,
            smallest: key(smallest),
            largest: key(largest),
            values: Vec::new(),
            codecs: Default::default(),
        }
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
            comparator: Some(b"leveldb.BytewiseComparator".to_vec()),
            log_number: Some(3),
            next_file_number: Some(10),
            last_sequence: Some(7),
            ..VersionEdit::default()
        }
    }

    /// Reads a MANIFEST of these edits with `change` applied to its bytes.
    fn read(edits: &[VersionEdit], change: impl FnOnce(&mut Vec<u8>)) -> Result<ManifestState> {
        let (env, path) = (MemEnv::new(), Path::new("/MANIFEST-000001"));
        let mut writer = LogWriter::new(env.create(path, CreateOptions::default())?, 0);
        edits.iter().try_for_each(|edit| writer.add_record(&edit.encode()))?;
        writer.close()?;
        let mut bytes = env.read(path).unwrap_or_default();
        change(&mut bytes);
        env.write(path, bytes);
        read_manifest(
            &env,
            Path::new("/"),
            1,
            &InternalOrder::new(KeyOrder::default()),
            &Arc::default(),
        )
    }

    #[test]
    fn edits_follow_from_one_another() {
        let moved = VersionEdit { new_files: vec![table(2, 5, "a", "c")], ..removing(1, 5) };
        let previous = VersionEdit {
            previous_log_number: Some(2),
            log_number: Some(4),
            ..VersionEdit::default()
        };
        let state = read(
            &[first(), adding(vec![table(1, 5, "a", "c"), table(1, 6, "d", "d")]), moved, previous],
            |_| (),
        );
        let state = state.expect("reads");
        let files: Vec<_> =
            state.version.files().map(|(level, file)| (level, file.number)).collect();
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
            let error =
                read(&edits, |_| ()).err().unwrap_or_else(|| panic!("accepted, although {what}"));
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            assert!(
                error.message().contains("/MANIFEST-000001") && error.message().contains(what),
                "{error}"
            );
        };
        refused(
            &[adding(vec![table(1, 5, "a", "b"), table(1, 5, "c", "d")])],
            "adds table 000005 again to level 1",
        );
        refused(
            &[adding(vec![table(3, 5, "b", "a")])],
            "table 000005 at level 3 ends before it begins",
        );
        refused(
            &[adding(vec![table(3, 5, "a", "c"), table(3, 6, "c", "d")])],
            "000005 and 000006 at level 3 overlap",
        );
        let exhausted = "file or sequence numbers are exhausted";
        refused(
            &[VersionEdit { next_file_number: Some(u64::MAX), ..VersionEdit::default() }],
            exhausted,
        );
        refused(&[adding(vec![table(1, u64::MAX, "a", "b")])], exhausted);
        refused(
            &[VersionEdit { log_number: Some(filename::MAX_NUMBER + 1), ..VersionEdit::default() }],
            exhausted,
        );
        refused(
            &[VersionEdit { last_sequence: Some(MAX_SEQUENCE + 1), ..VersionEdit::default() }],
            exhausted,
        );
        let unknown = read(&[VersionEdit::default()], |_| ()).err().expect("refused");
        assert!(unknown.message().contains("records no next file number"), "{unknown}");
        let foreign =
            VersionEdit { comparator: Some(b"reverse".to_vec()), ..VersionEdit::default() };
        let foreign = read(&[first(), foreign], |_| ()).err().expect("refused");
        assert!(
            foreign.kind() == ErrorKind::InvalidArgument && foreign.message().contains("reverse"),
            "{foreign}"
        );
    }

    /// Accepted by LevelDB, and written by goleveldb.
    #[test]
    fn edits_may_repeat_what_is_so_already() {
        let twice = adding(vec![table(1, 5, "a", "c"), table(1, 5, "a", "c")]);
        let again = VersionEdit { new_files: vec![table(1, 5, "a", "c")], ..removing(2, 5) };
        let state = read(&[first(), twice, again, removing(1, 9)], |_| ()).expect("reads");
        let files: Vec<_> =
            state.version.files().map(|(level, file)| (level, file.number)).collect();
        assert_eq!(files, [(1, 5)]);
        let state = read(
            &[first(), adding(vec![table(1, 5, "a", "c")]), removing(1, 5), removing(1, 5)],
            |_| (),
        );
        assert_eq!(state.expect("reads").version.files().count(), 0);
    }

    #[test]
    fn only_a_torn_record_counts_as_never_written() {
        let long = "d".repeat(1200);
        let edits =
            [first(), adding(vec![table(1, 5, "a", "c")]), adding(vec![table(1, 6, "d", &long)])];
        let length =
            |count: usize| edits[..count].iter().map(|edit| edit.encode().len() + 7).sum::<usize>();
        let (first_end, second_end, end) = (length(1), length(2), length(3));
        // The end of the file, at every byte; every sector that may not have come to the disk; and
        // every one that did while the record was being copied there.
        let sectors = [second_end..512, 512..1024, 1024..end];
        let halfway =
            (second_end..1024).filter(|at| at % 8 == 0).map(|at| at..(at / 512 + 1) * 512);
        let torn = (second_end + 1..end).map(|cut| (Some(cut), 0..0));
        let torn = torn.chain(sectors.into_iter().chain(halfway).map(|sector| (None, sector)));
        for (cut, zeros) in torn {
            let tear = |bytes: &mut Vec<u8>| {
                bytes.truncate(cut.unwrap_or(end));
                bytes[zeros.clone()].fill(0);
            };
            let state =
                read(&edits, tear).unwrap_or_else(|error| panic!("{cut:?} {zeros:?}: {error}"));
            let torn = state.torn.unwrap_or_else(|| panic!("{cut:?} {zeros:?} is torn"));
            assert!(torn.contains("/MANIFEST-000001") && state.edits == 2, "{torn}");
        }
        let flips = |edits: &[VersionEdit], bits: Range<usize>| {
            for bit in bits {
                let error = read(edits, |bytes| bytes[bit / 8] ^= 1 << (bit % 8)).err();
                let error = error.unwrap_or_else(|| panic!("bit {bit} is taken for never written"));
                assert!(
                    error.kind() == ErrorKind::Corruption
                        && error.message().contains("/MANIFEST-000001"),
                    "{error}"
                );
            }
        };
        flips(&edits, 8 * first_end..8 * end);
        // Terrace's edits end in a byte that is not zero.
        let edits = edits.map(|edit| VersionEdit { comparator: first().comparator, ..edit });
        let length =
            |count: usize| edits[..count].iter().map(|edit| edit.encode().len() + 7).sum::<usize>();
        let (first_end, second_end, end) = (length(1), length(2), length(3));
        flips(&edits, 8 * first_end..8 * end);
        for zeros in second_end..end {
            let state = read(&edits, |bytes| bytes[zeros..].fill(0));
            let state =
                state.unwrap_or_else(|error| panic!("zeros from {zeros} of {end}: {error}"));
            assert_eq!(
                (state.edits, state.torn.is_some()),
                (2, zeros > second_end),
                "zeros from {zeros} of {end}"
            );
        }
    }

    #[test]
    fn an_edit_that_breaks_the_version_is_refused() {
        let order = InternalOrder::new(KeyOrder::default());
        let refused = |edit: &VersionEdit, what: &str| {
            let error =
                Version::default().apply(edit, &order, &Arc::default()).expect_err("refused");
            assert!(error.message().contains(what), "{error}");
        };
        refused(&removing(4, 9), "removes table 000009, which is not at level 4");
        refused(
            &adding(vec![table(0, 5, "a", "c"), table(0, 5, "d", "e")]),
            "000005 and 000005 at level 0 overlap",
        );
    }

    #[test]
    fn a_value_file_that_shrinks_is_refused() {
        let file = |size, value_bytes| NewValueFile { number: 7, size, value_bytes };
        let of = |files: &[NewValueFile]| {
            let mut folded = FoldedFiles::default();
            let edits = files
                .iter()
                .map(|&file| VersionEdit { new_value_files: vec![file], ..VersionEdit::default() });
            edits.map(|edit| folded.add(edit)).collect::<Result<Vec<_>>>()?;
            Ok::<_, Error>(folded.into_edit().new_value_files)
        };
        assert_eq!(of(&[file(9, 5), file(9, 5), file(20, 9)]).expect("grows"), [file(20, 9)]);
        for smaller in [file(8, 5), file(9, 4)] {
            let error = of(&[file(9, 5), smaller]).expect_err("it shrinks");
            assert!(error.to_string().contains("000007.vlog"), "{error}");
        }
        // Within one version, too.
        let table =
            NewFile { values: vec![ValueUse { file: 7, bytes: 3 }], ..table(1, 8, "a", "b") };
        let first =
            VersionEdit { new_value_files: vec![file(9, 5)], ..adding(vec![table.clone()]) };
        let order = InternalOrder::new(KeyOrder::default());
        let apply =
            |version: &Version, edit: VersionEdit| version.apply(&edit, &order, &Arc::default());
        let version = apply(&Version::default(), first).expect("applies");
        let later = |size, value_bytes| VersionEdit {
            new_value_files: vec![file(size, value_bytes)],
            ..adding(vec![NewFile { number: 9, level: 2, ..table.clone() }])
        };
        assert!(apply(&version, later(8, 5)).is_err());
        let grown = apply(&version, later(20, 9)).expect("applies");
        assert_eq!(grown.values.records(), [file(20, 9)]);
    }

    /// Sizes come from the file: their sum may be anything.
    #[test]
    fn sizes_that_overflow_are_no_panic() {
        let huge = |number, smallest, largest| NewFile {
            size: 1 << 63,
            ..table(1, number, smallest, largest)
        };
        let edits = [first(), adding(vec![huge(4, "a", "b"), huge(5, "c", "d")])];
        let state = read(&edits, |_| ()).unwrap();
        assert_eq!((state.version.level_bytes(1), state.version.bytes()), (u64::MAX, u64::MAX));
    }

    /// An open takes numbers for files, and the MANIFEST that it leaves has to be readable.
    #[test]
    fn an_open_is_refused_where_numbers_would_run_out() {
        let with = |next| {
            let last = VersionEdit { next_file_number: Some(next), ..VersionEdit::default() };
            read(&[first(), last], |_| ())
        };
        assert!(with(filename::LAST_NUMBER).is_ok());
        for next in [filename::LAST_NUMBER + 1, filename::MAX_NUMBER] {
            assert_eq!(with(next).err().map(|error| error.kind()), Some(ErrorKind::Corruption));
        }
    }
}
