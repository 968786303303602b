//! Surveys CURRENT and the MANIFESTs of a damaged database.
//!
//! A MANIFEST that reads from end to end describes the database. One that does not still tells
//! which tables were compacted into others and must not come back, and which logs have become
//! tables. Changes nothing.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::{InternalOrder, MAX_SEQUENCE, SequenceNumber};
use crate::env::{Env, ReadAccess};
use crate::log::{LogItem, LogReader};
use crate::version::edit::VersionEdit;
use crate::version::filename::{self, FileKind};
use crate::version::manifest::{self, ManifestState, plain_name};

use crate::db::check::problem::Problem;
use crate::db::io_error::{is_damage, retry_once};
use crate::db::open::own_files::OwnFiles;

/// A MANIFEST that reads well.
pub(in crate::db) struct Description {
    pub(in crate::db) number: u64,
    pub(in crate::db) state: ManifestState,
    /// Whether CURRENT names it.
    pub(in crate::db) in_force: bool,
}

/// See the [module](self).
#[derive(Default)]
pub(in crate::db) struct ManifestSurvey {
    /// The best of the MANIFESTs: the present one, or else the newest.
    pub(in crate::db) description: Option<Description>,
    /// Tables that some edit removed.
    pub(in crate::db) removed: BTreeSet<u64>,
    /// The memtables of logs with smaller numbers have been flushed.
    pub(in crate::db) log_number: u64,
    pub(in crate::db) last_sequence: SequenceNumber,
    pub(in crate::db) problems: Vec<Problem>,
}

impl ManifestSurvey {
    /// Reads everything. Fails with `InvalidArgument` if any MANIFEST names another comparator than
    /// `order`'s.
    pub(in crate::db) fn read(
        env: &dyn Env,
        dir: &Path,
        order: &InternalOrder,
        own: &OwnFiles,
    ) -> Result<Self> {
        let mut survey = ManifestSurvey::default();
        let mut numbers: Vec<_> = own.of_kind(FileKind::Manifest).collect();
        numbers.sort_unstable();
        let current = match retry_once(|| manifest::read_current(env, dir)) {
            Ok(number) => Some(number),
            Err(error) if is_damage(&error) => {
                survey.problems.push(Problem::of(dir, filename::CURRENT, &error));
                None
            }
            Err(error) => return Err(error),
        };
        let in_force = current.filter(|number| numbers.contains(number));
        // In the order in which they were written: what a later one holds was not removed before.
        for &number in &numbers {
            // CURRENT never named a later one, as a kill leaves it.
            let counts = in_force.is_none_or(|in_force| number <= in_force);
            match retry_once(|| survey.skim(env, dir, order, number, counts)) {
                // Told below, if it matters.
                Err(error) if is_damage(&error) => {}
                skimmed => skimmed?,
            }
        }
        if let Some(number) = current.filter(|_| in_force.is_none()) {
            let message = format!("names {}, which is missing", filename::manifest(number));
            survey.problems.push(Problem::new(filename::CURRENT, message));
        }
        numbers.sort_by_key(|&number| (current != Some(number), Reverse(number)));
        for number in numbers {
            match retry_once(|| manifest::read_manifest(env, dir, number, order, &Arc::default())) {
                Ok(state) => {
                    survey.description =
                        Some(Description { number, state, in_force: current == Some(number) });
                    break;
                }
                Err(error) if is_damage(&error) => {
                    survey.problems.push(Problem::of(dir, &filename::manifest(number), &error));
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(Description { state, .. }) = &survey.description {
            for (_, file) in state.version.files() {
                survey.removed.remove(&file.number);
            }
        }
        Ok(survey)
    }

    /// Takes what can be learnt from every record of one MANIFEST that decodes, as far as it can be
    /// read. Where it does not count, that is its comparator and its sequence numbers.
    fn skim(
        &mut self,
        env: &dyn Env,
        dir: &Path,
        order: &InternalOrder,
        number: u64,
        counts: bool,
    ) -> Result<()> {
        let name = filename::manifest(number);
        let file = env.open_random(&dir.join(&name), ReadAccess::Pread)?;
        let mut reader = LogReader::new(file, name.clone());
        loop {
            let edit = match reader.next()? {
                LogItem::Record { data, .. } => VersionEdit::decode(data),
                LogItem::Damage { .. } => continue,
                LogItem::End { .. } => break,
            };
            let edit = match edit {
                // A later version of Terrace wrote it: that is no damage.
                Err(error) if error.kind() == ErrorKind::NotSupported => {
                    return Err(error.context(&name));
                }
                Err(_) => continue,
                Ok(edit) => edit,
            };
            let theirs = edit.comparator.as_ref().map(|name| plain_name(name).0);
            if let Some(theirs) = theirs.filter(|theirs| *theirs != order.keys.name_bytes()) {
                let (theirs, ours) = (String::from_utf8_lossy(theirs), order.keys.name());
                let message =
                    format!("the database is ordered by {theirs}, not by the comparator {ours}");
                return Err(Error::invalid_argument(format!(
                    "{}: {message}",
                    dir.join(name).display()
                )));
            }
            if counts {
                // A table that moves is removed from one level and added to another by the same
                // edit.
                self.removed.extend(edit.deleted_files.iter().map(|(_, number)| *number));
                for file in &edit.new_files {
                    self.removed.remove(&file.number);
                }
                self.log_number = self.log_number.max(edit.log_number.unwrap_or(0));
            }
            let last_sequence = edit.last_sequence.filter(|&sequence| sequence <= MAX_SEQUENCE);
            self.last_sequence = self.last_sequence.max(last_sequence.unwrap_or(0));
        }
        Ok(())
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

    const DIR: &str = "/db";

    fn write(env: &MemEnv, number: u64, edits: &[(&[u64], &[u64])]) {
        let path = Path::new(DIR).join(filename::manifest(number));
        let mut writer = LogWriter::new(env.create(&path, CreateOptions::default()).unwrap(), 0);
        for (added, deleted) in edits {
            let key = encode(b"k", 1, EntryKind::Value);
            let (smallest, largest) = (key.clone(), key);
            let (values, codecs) = Default::default();
            let file = NewFile { level: 1, number: 0, size: 1, smallest, largest, values, codecs };
            let edit = VersionEdit {
                log_number: Some(number),
                deleted_files: deleted.iter().map(|&number| (1, number)).collect(),
                new_files: added.iter().map(|&number| NewFile { number, ..file.clone() }).collect(),
                ..VersionEdit::default()
            };
            writer.add_record(&edit.encode()).unwrap();
        }
    }

    fn survey(env: &MemEnv) -> ManifestSurvey {
        let own = OwnFiles::list(env, Path::new(DIR)).unwrap();
        let order = InternalOrder::new(KeyOrder::default());
        ManifestSurvey::read(env, Path::new(DIR), &order, &own).unwrap()
    }

    /// A kill leaves such a MANIFEST of a compaction that was not installed: before or behind the
    /// one that CURRENT names, by whether it was opened since.
    #[test]
    fn what_a_manifest_removed_that_current_never_named_stays() {
        let env = MemEnv::new();
        env.create_dir(Path::new(DIR), 0o777).unwrap();
        write(&env, 2, &[(&[10, 11, 12], &[]), (&[19], &[10, 11])]);
        write(&env, 5, &[(&[10, 11, 12], &[]), (&[13], &[12])]);
        write(&env, 9, &[(&[10, 11, 13], &[]), (&[20], &[10, 13])]);
        env.write("/db/CURRENT", b"MANIFEST-000005\n".to_vec());
        let found = survey(&env);
        assert_eq!(found.removed.iter().copied().collect::<Vec<_>>(), [12]);
        assert_eq!(found.log_number, 5);
        // Where CURRENT is gone, the last one counts.
        env.remove(Path::new("/db/CURRENT")).unwrap();
        let found = survey(&env);
        assert_eq!(found.removed.iter().copied().collect::<Vec<_>>(), [10, 12, 13]);
        assert_eq!(found.log_number, 9);
    }
}
