//! MANIFESTs.

use std::collections::BTreeSet;
use std::path::Path;

use super::damage_counter::DamageCounter;
use super::file::{name_of, open};
use super::log::{first_record, skipped};
use super::manifest_items::{AddedTable, AddedValueFile, EditItem, ManifestItem, ManifestSummary};
use super::piece::{Damage, Flow};
use crate::base::error::Result;
use crate::base::internal_key::user_key;
use crate::db::options::Options;
use crate::db::stats::leveldb_text;
use crate::log::{LogItem, LogReader};
use crate::version::NUM_LEVELS;
use crate::version::edit::VersionEdit;

/// Reads the MANIFEST at `path` from its beginning to its end and calls `visit` with every piece
/// until it breaks off.
///
/// ```
/// # use terrace::*;
/// # use std::ops::ControlFlow;
/// # use std::path::Path;
/// # use std::sync::Arc;
/// use terrace::inspect::{self, ManifestItem};
///
/// # let env: Arc<dyn Env> = Arc::new(MemEnv::new());
/// # let options = Options::new().create_if_missing(true).env(env.clone());
/// # let db = Db::open("/db", options.clone())?;
/// # db.put("apple", "red")?;
/// # db.flush()?;
/// # let mut names = env.list(Path::new("/db"))?.into_iter();
/// # let path = Path::new("/db").join(names.find(|name| name.starts_with("MANIFEST")).unwrap());
/// let summary = inspect::manifest(&path, &options, &mut |item| {
///     if let ManifestItem::Edit(edit) = item {
///         println!("{} tables come, {} go", edit.added.len(), edit.removed.len());
///     }
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(summary.tables.iter().sum::<usize>(), 1);
/// # Ok::<_, terrace::Error>(())
/// ```
///
/// # Errors
/// `Io` if the file cannot be read. Damage is a piece of its own.
pub fn manifest(
    path: &Path,
    options: &Options,
    visit: &mut dyn FnMut(ManifestItem) -> Flow,
) -> Result<ManifestSummary> {
    let mut summary = ManifestSummary::default();
    let mut tables = BTreeSet::new();
    let end = scan(path, options, &mut |piece| match piece {
        Ok((edit, offset)) => {
            fold(&edit, &mut summary, &mut tables);
            visit(ManifestItem::Edit(edit_item(edit, offset)))
        }
        Err(damage) => visit(ManifestItem::Damage(damage)),
    })?;
    (summary.file_size, summary.torn, summary.damages) = (end.file_size, end.torn, end.damages);
    summary.tables =
        (0..NUM_LEVELS).map(|level| tables.range((level, 0)..(level + 1, 0)).count()).collect();
    Ok(summary)
}

/// Shows every piece of the MANIFEST at `path` as text: edits in LevelDB's words.
pub(in crate::db) fn manifest_text(
    path: &Path,
    options: &Options,
    put: &mut dyn FnMut(String),
) -> Result<()> {
    scan(path, options, &mut |piece| {
        put(match piece {
            Ok((edit, offset)) => format!("--- offset {offset}; {}", leveldb_text::edit(&edit)),
            Err(damage) => format!("--- offset {}; {}\n", damage.offset, damage.message),
        });
        Flow::Continue(())
    })
    .map(drop)
}

/// The outcome of a scan of a MANIFEST.
struct End {
    file_size: u64,
    torn: bool,
    damages: u64,
}

/// Calls `visit` with every edit and its offset, and with all damage, until it breaks off.
fn scan(
    path: &Path,
    options: &Options,
    visit: &mut dyn FnMut(std::result::Result<(VersionEdit, u64), Damage>) -> Flow,
) -> Result<End> {
    let file = open(path, options)?;
    let mut end = End { file_size: file.size(), torn: false, damages: 0 };
    let mut reader = LogReader::new(file, name_of(path));
    let mut damages = DamageCounter::new(name_of(path));
    loop {
        let piece = match reader.next()? {
            LogItem::Record { data, offset, .. } => match VersionEdit::decode(data) {
                Ok(edit) => Ok((edit, offset)),
                Err(error) => Err(damages.count(offset, error.message())),
            },
            LogItem::Damage { offset, length, reason, .. } => {
                Err(skipped(&mut damages, offset, length, &reason))
            }
            LogItem::End { torn, .. } => {
                end.torn = torn;
                break;
            }
        };
        if visit(piece).is_break() {
            break;
        }
    }
    end.damages = damages.damages;
    Ok(end)
}

fn fold(edit: &VersionEdit, summary: &mut ManifestSummary, tables: &mut BTreeSet<(usize, u64)>) {
    summary.edits += 1;
    if edit.comparator.is_some() {
        summary.comparator = edit.comparator.as_deref().map(lossy);
    }
    summary.log_number = edit.log_number.or(summary.log_number);
    summary.next_file_number = edit.next_file_number.or(summary.next_file_number);
    summary.last_sequence = edit.last_sequence.or(summary.last_sequence);
    for removed in &edit.deleted_files {
        tables.remove(removed);
    }
    tables.extend(edit.new_files.iter().map(|file| (file.level, file.number)));
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn edit_item(edit: VersionEdit, offset: u64) -> EditItem {
    let added = edit.new_files.into_iter().map(|file| AddedTable {
        level: file.level,
        number: file.number,
        size: file.size,
        smallest: user_key(&file.smallest).to_vec(),
        largest: user_key(&file.largest).to_vec(),
        values: file.values.iter().map(|used| (used.file, used.bytes)).collect(),
        compressions: file.codecs.names(),
    });
    let added_value_files = edit.new_value_files.into_iter().map(|file| AddedValueFile {
        number: file.number,
        size: file.size,
        value_bytes: file.value_bytes,
    });
    let pointers =
        edit.compact_pointers.into_iter().map(|(level, key)| (level, user_key(&key).to_vec()));
    EditItem {
        offset,
        comparator: edit.comparator.as_deref().map(lossy),
        log_number: edit.log_number,
        previous_log_number: edit.previous_log_number,
        next_file_number: edit.next_file_number,
        last_sequence: edit.last_sequence,
        compact_pointers: pointers.collect(),
        removed: edit.deleted_files,
        added: added.collect(),
        added_value_files: added_value_files.collect(),
    }
}

/// Whether the first record that can be read is an edit that sets something.
pub(super) fn is_manifest(path: &Path, options: &Options) -> Result<bool> {
    let sets_something = |edit: VersionEdit| edit != VersionEdit::default();
    first_record(path, options, |record| VersionEdit::decode(record).is_ok_and(sets_something))
}
