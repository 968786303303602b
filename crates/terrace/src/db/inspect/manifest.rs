//! MANIFESTs.

use std::collections::BTreeSet;
use std::path::Path;

use super::items::{AddedTable, EditItem, ManifestItem, ManifestSummary};
use super::log::{first_record, skipped};
use super::{DamageCounter, Flow, name_of, open};
use crate::base::error::Result;
use crate::base::internal_key::user_key;
use crate::db::options::Options;
use crate::log::{LogItem, LogReader};
use crate::version::NUM_LEVELS;
use crate::version::edit::VersionEdit;

/// Reads the MANIFEST at `path` from its beginning to its end and calls `visit` with every piece until it breaks off.
pub fn manifest(
    path: &Path,
    options: &Options,
    visit: &mut dyn FnMut(ManifestItem) -> Flow,
) -> Result<ManifestSummary> {
    let file = open(path, options)?;
    let mut summary = ManifestSummary { file_size: file.size(), ..ManifestSummary::default() };
    let mut reader = LogReader::new(file, name_of(path));
    let mut damages = DamageCounter::new(name_of(path));
    let mut tables = BTreeSet::new();
    loop {
        let item = match reader.next()? {
            LogItem::Record { data, offset, .. } => match VersionEdit::decode(data) {
                Ok(edit) => {
                    fold(&edit, &mut summary, &mut tables);
                    ManifestItem::Edit(edit_item(edit, offset))
                }
                Err(error) => ManifestItem::Damage(damages.count(offset, error.message())),
            },
            LogItem::Damage { offset, length, reason } => {
                ManifestItem::Damage(skipped(&mut damages, offset, length, &reason))
            }
            LogItem::End { torn, .. } => {
                summary.torn = torn;
                break;
            }
        };
        if visit(item).is_break() {
            break;
        }
    }
    summary.damages = damages.damages;
    summary.tables = (0..NUM_LEVELS).map(|level| tables.range((level, 0)..(level + 1, 0)).count()).collect();
    Ok(summary)
}

fn fold(edit: &VersionEdit, summary: &mut ManifestSummary, tables: &mut BTreeSet<(usize, u64)>) {
    summary.edits += 1;
    if edit.comparator.is_some() {
        summary.comparator.clone_from(&edit.comparator);
    }
    summary.log_number = edit.log_number.or(summary.log_number);
    summary.next_file_number = edit.next_file_number.or(summary.next_file_number);
    summary.last_sequence = edit.last_sequence.or(summary.last_sequence);
    for removed in &edit.deleted_files {
        tables.remove(removed);
    }
    tables.extend(edit.new_files.iter().map(|file| (file.level, file.number)));
}

fn edit_item(edit: VersionEdit, offset: u64) -> EditItem {
    let added = edit.new_files.into_iter().map(|file| AddedTable {
        level: file.level,
        number: file.number,
        size: file.size,
        smallest: user_key(&file.smallest).to_vec(),
        largest: user_key(&file.largest).to_vec(),
    });
    let pointers = edit.compact_pointers.into_iter().map(|(level, key)| (level, user_key(&key).to_vec()));
    EditItem {
        offset,
        comparator: edit.comparator,
        log_number: edit.log_number,
        previous_log_number: edit.previous_log_number,
        next_file_number: edit.next_file_number,
        last_sequence: edit.last_sequence,
        compact_pointers: pointers.collect(),
        removed: edit.deleted_files,
        added: added.collect(),
    }
}

/// Whether the first record that can be read is an edit that sets something.
pub(super) fn is_manifest(path: &Path, options: &Options) -> Result<bool> {
    let sets_something = |edit: VersionEdit| edit != VersionEdit::default();
    first_record(path, options, |record| VersionEdit::decode(record).is_ok_and(sets_something))
}
