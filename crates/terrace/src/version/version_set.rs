//! The present version and the MANIFEST that records how it came to be.
//!
//! # Threads
//! `VersionSet` is behind the manifest lock, which is held across the I/O of an edit: edits are
//! written and applied one after another. Readers never come here; they hold the view that `db`
//! publishes.
//!
//! # Invariants
//! 1. A version is handed out for publication only after its edit is durable.
//! 2. After a failed write or sync nothing more is ever appended to that MANIFEST: whether the
//!    failed edit is durable is unknown. The next edit starts a fresh MANIFEST, and no file that
//!    the old one may name is removed before the fresh one is installed.
//! 3. An edit has both a log and a last sequence number only if that log begins right behind the
//!    number, and Terrace wrote it and all later ones. Until an edit names a log of this open, the
//!    logs that LevelDB left are named by an edit without a number, and numbers are raised by an
//!    edit that names no log, in the same MANIFEST and before it: what LevelDB recorded tells less
//!    ([`ManifestState`]).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::error::{Error, Result};
use crate::base::internal_key::{InternalOrder, SequenceNumber};
use crate::base::mutation::mutated;
use crate::env::{CreateOptions, Env};
use crate::log::LogWriter;

use super::edit::{NewFile, NewValueFile, VersionEdit};
use super::file_meta::ObsoleteFiles;
use super::filename;
use super::manifest::{ManifestState, comparator_name};
use super::value_files::UsedValueFile;
use super::version::Version;

/// Hands out file numbers. Shared, so that logs and tables get numbers without the manifest lock.
#[derive(Default)]
pub(crate) struct FileNumbers(AtomicU64);

impl FileNumbers {
    pub(crate) fn new(next: u64) -> Self {
        FileNumbers(AtomicU64::new(next))
    }

    pub(crate) fn take(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a file of level 0, and behind it that of one which this and older ones become:
    /// nobody else has it.
    pub(crate) fn take_with_successor(&self) -> u64 {
        self.0.fetch_add(2, Ordering::Relaxed)
    }

    pub(crate) fn peek(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Never hand out `number` or a smaller one.
    pub(crate) fn skip(&self, number: u64) {
        self.0.fetch_max(number.saturating_add(1), Ordering::Relaxed);
    }
}

/// Where and how MANIFESTs are written.
#[derive(Clone)]
pub(crate) struct ManifestSettings {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) dir: PathBuf,
    pub(crate) order: InternalOrder,
    pub(crate) file_mode: u32,
    pub(crate) max_manifest_size: u64,
}

impl ManifestSettings {
    /// The record of `edit` in a MANIFEST that is extended or not, which names the comparator.
    fn encode(&self, edit: &VersionEdit, is_extended: bool) -> Vec<u8> {
        let name = comparator_name(&self.order, is_extended);
        VersionEdit { comparator: Some(name), ..edit.clone() }.encode()
    }

    /// The first record of an extended MANIFEST. LevelDB refuses this one for the name, which says
    /// more than the first field that it does not know.
    fn encode_name(&self) -> Vec<u8> {
        let name = VersionEdit { previous_log_number: Some(0), ..VersionEdit::default() };
        self.encode(&name, true)
    }
}

/// See the [module](self).
pub(crate) struct VersionSet {
    settings: ManifestSettings,
    numbers: Arc<FileNumbers>,
    obsolete_files: Arc<ObsoleteFiles>,
    current: Arc<Version>,
    log_number: u64,
    last_sequence: SequenceNumber,
    /// See [`ManifestState`].
    logs_begin: Option<SequenceNumber>,
    is_terraces: bool,
    /// Whether the MANIFEST that is written has the name of an extended database.
    is_extended: bool,
    /// Greater numbers of logs are those of this open.
    newest_found_log: u64,
    manifest_number: u64,
    /// `None` before the first edit of this open and after a failure: the next edit starts a fresh
    /// MANIFEST.
    writer: Option<LogWriter>,
    /// Where the first record of the present MANIFEST ends, the whole version.
    snapshot_end: u64,
    /// MANIFESTs that a failure left behind, removed once a fresh one is installed.
    abandoned: Vec<u64>,
    /// Tables of edits that failed: a crash could still bring them to life, until a fresh MANIFEST
    /// is installed.
    uncertain: Vec<u64>,
    /// Those of edits that failed before they were written anywhere.
    unused: Vec<u64>,
    /// Whether a failed edit may be installed after a crash.
    in_doubt: bool,
}

impl VersionSet {
    /// Continues from what the MANIFEST `manifest_number` says. No log was found with a greater
    /// number than `newest_found_log`.
    pub(crate) fn new(
        settings: ManifestSettings,
        state: ManifestState,
        manifest_number: u64,
        newest_found_log: u64,
        obsolete_files: Arc<ObsoleteFiles>,
    ) -> Self {
        let numbers = Arc::new(FileNumbers::new(state.next_file_number));
        numbers.skip(manifest_number);
        for (_, file) in state.version.files() {
            numbers.skip(file.number);
        }
        VersionSet {
            settings,
            numbers,
            obsolete_files,
            current: Arc::new(state.version),
            log_number: state.log_number,
            last_sequence: state.last_sequence,
            logs_begin: state.logs_begin.or(state.new_log_begins),
            is_terraces: state.is_terraces,
            is_extended: state.is_extended,
            newest_found_log: newest_found_log.max(state.log_number),
            manifest_number,
            writer: None,
            snapshot_end: 0,
            abandoned: Vec::new(),
            uncertain: Vec::new(),
            unused: Vec::new(),
            in_doubt: false,
        }
    }

    pub(crate) fn current(&self) -> &Arc<Version> {
        &self.current
    }

    pub(crate) fn numbers(&self) -> &Arc<FileNumbers> {
        &self.numbers
    }

    pub(crate) fn log_number(&self) -> u64 {
        self.log_number
    }

    /// Whether an edit that failed may be installed after a crash, with the tables that it adds.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Whether the MANIFEST certainly leads to no log from `number` on, so that an empty one may
    /// go.
    pub(crate) fn needs_no_log_from(&self, number: u64) -> bool {
        self.log_number < number && !self.in_doubt
    }

    /// Makes `edit` durable and applies it. `last_sequence` is recorded along: at least that of
    /// every table.
    ///
    /// After an error the edit may or may not be durable: the caller must keep every file that it
    /// adds or removes. New tables are removed here once they certainly belong to nothing, but for
    /// those that it [keeps](Self::keep) for another attempt.
    pub(crate) fn log_and_apply(
        &mut self,
        mut edit: VersionEdit,
        last_sequence: SequenceNumber,
    ) -> Result<Arc<Version>> {
        let version =
            Arc::new(self.current.apply(&edit, &self.settings.order, &self.obsolete_files)?);
        let last_sequence = if mutated("last-sequence") { 0 } else { last_sequence };
        let last_sequence = last_sequence.max(self.last_sequence);
        let log_number = edit.log_number.unwrap_or(self.log_number);
        edit.next_file_number = Some(self.numbers.peek());
        edit.previous_log_number = Some(0);
        let is_terraces = self.is_terraces || log_number > self.newest_found_log;
        let mut edits = Vec::new();
        (edit.log_number, edit.last_sequence) = if is_terraces || mutated("found-logs-begin") {
            (Some(log_number), Some(last_sequence))
        } else if log_number == self.log_number {
            (None, Some(last_sequence))
        } else {
            edits.push(VersionEdit { last_sequence: Some(last_sequence), ..self.no_change() });
            (Some(log_number), None)
        };
        edits.push(edit);
        let written = self.write(&edits);
        let edit = edits.pop().unwrap_or_default();
        if let Err(error) = written {
            // No MANIFEST could be begun for it, and the old one can still be written to: the edit
            // is in neither.
            let nowhere = self.writer.is_some() && !mutated("failed-manifest");
            let list = if nowhere { &mut self.unused } else { &mut self.uncertain };
            let moved = |number| edit.deleted_files.iter().any(|&(_, deleted)| deleted == number);
            list.extend(
                edit.new_files.iter().map(|file| file.number).filter(|&number| !moved(number)),
            );
            // Those that outputs have appended to are needed as they were.
            let is_new = |file: &&NewValueFile| {
                self.current.values.get(file.number).is_none() || mutated("keep-grown-values")
            };
            let values = edit.new_value_files.iter().filter(is_new).map(|file| file.number);
            match mutated("keep-uncertain-values") {
                true => self.obsolete_files.put_back(values.collect()),
                false => list.extend(values),
            }
            if mutated("keep-uncertain-tables") {
                self.obsolete_files.put_back(std::mem::take(&mut self.uncertain));
            }
            return Err(error);
        }
        let moved: HashSet<_> = edit.new_files.iter().map(|file| file.number).collect();
        let gone: HashSet<_> =
            edit.deleted_files.iter().filter(|(_, number)| !moved.contains(number)).collect();
        if !gone.is_empty() {
            let files = self.current.files();
            let files = files.filter(|(level, file)| gone.contains(&(*level, file.number)));
            files.for_each(|(_, file)| file.mark_obsolete());
        }
        let is_unused = |used: &&UsedValueFile| version.values.get(used.file.number).is_none();
        self.current.values.iter().filter(is_unused).for_each(|used| used.file.mark_obsolete());
        if is_terraces {
            self.logs_begin = Some(last_sequence.saturating_add(1));
        } else if log_number != self.log_number {
            self.logs_begin = None;
        }
        self.is_terraces = is_terraces;
        self.log_number = log_number;
        self.last_sequence = last_sequence;
        self.current = version.clone();
        Ok(version)
    }

    /// Has tables of an edit that failed stay where they are: another edit will add them.
    pub(crate) fn keep(&mut self, tables: &[NewFile]) {
        if !mutated("keep-tables-for-the-next-edit") {
            for list in [&mut self.uncertain, &mut self.unused] {
                list.retain(|number| !tables.iter().any(|table| table.number == *number));
            }
        }
    }

    /// Makes sure that there is a MANIFEST to write to, after a failure that left none. Called
    /// before costly work whose outcome could not be recorded.
    pub(crate) fn prepare(&mut self) -> Result<()> {
        if !mutated("unused-outputs") {
            self.obsolete_files.put_back(std::mem::take(&mut self.unused));
        }
        if self.writer.is_some() {
            return Ok(());
        }
        self.roll(&[self.no_change()])
    }

    /// Records, durably, which file numbers have been handed out. Without this the next open, by
    /// whatever engine, may use a number again that no edit has named.
    pub(crate) fn record_numbers(&mut self) -> Result<()> {
        if mutated("numbers-before-links") {
            return Ok(());
        }
        self.write(&[self.no_change()])
    }

    /// An edit that leaves the version as it is.
    fn no_change(&self) -> VersionEdit {
        let names_log = self.is_terraces || mutated("found-logs-begin");
        VersionEdit {
            log_number: names_log.then_some(self.log_number),
            previous_log_number: Some(0),
            next_file_number: Some(self.numbers.peek()),
            last_sequence: Some(self.last_sequence),
            ..VersionEdit::default()
        }
    }

    /// Makes edits durable, in one MANIFEST.
    fn write(&mut self, edits: &[VersionEdit]) -> Result<()> {
        let becomes_extended = !self.is_extended && edits.iter().any(VersionEdit::is_extended);
        // At least as much in edits as in the version, however large that is.
        let end = self.settings.max_manifest_size.max(self.snapshot_end.saturating_mul(2));
        let has_room = |writer: &LogWriter| writer.offset() < end && !becomes_extended;
        let mut rolled = Ok(());
        if !self.writer.as_ref().is_some_and(has_room) {
            rolled = self.roll(edits);
            if rolled.is_ok() || becomes_extended || mutated("full-manifest-ends") {
                return rolled;
            }
        }
        // On a full disk there may be room for an edit where there is none for a MANIFEST: the old
        // one, if there is one, grows until another can be begun.
        let Some(writer) = self.writer.as_mut() else { return rolled };
        let sync =
            |writer: &mut LogWriter| if mutated("manifest-sync") { Ok(()) } else { writer.sync() };
        let record = |edit| self.settings.encode(edit, self.is_extended);
        let written = edits
            .iter()
            .try_for_each(|edit| writer.add_record(&record(edit)))
            .and_then(|()| sync(writer));
        if let Err(error) = written {
            self.in_doubt = true;
            if mutated("manifest-errors") {
                return Ok(());
            }
            if !mutated("failed-manifest") {
                self.writer = None;
            }
            return Err(error.context("writing the MANIFEST"));
        }
        Ok(())
    }

    /// Starts a fresh MANIFEST: a snapshot of the present version, then `edits`; then makes it the
    /// current one.
    fn roll(&mut self, edits: &[VersionEdit]) -> Result<()> {
        let number = self.numbers.take();
        let ManifestSettings { env, dir, file_mode, .. } = self.settings.clone();
        let path = dir.join(filename::manifest(number));
        let next_file_number = Some(self.numbers.peek());
        let is_extended = self.current.is_extended() || edits.iter().any(VersionEdit::is_extended);
        let written = env
            .create(&path, CreateOptions { mode: file_mode, exclusive: true })
            .and_then(|file| {
                let mut writer = LogWriter::new(file, 0);
                if is_extended {
                    writer.add_record(&self.settings.encode_name())?;
                }
                writer.add_record(&self.settings.encode(&self.snapshot(), is_extended))?;
                let snapshot_end = writer.offset();
                for edit in edits {
                    let edit = VersionEdit { next_file_number, ..edit.clone() };
                    writer.add_record(&self.settings.encode(&edit, is_extended))?;
                }
                if !mutated("fresh-manifest-sync") {
                    writer.sync()?;
                }
                Ok((writer, snapshot_end))
            });
        let (writer, snapshot_end) = match written {
            Ok((writer, snapshot_end)) => (writer, snapshot_end),
            Err(error) => {
                // CURRENT never named it, so it can go at once; if not even that works, the next
                // open removes it.
                let _ = env.remove(&path);
                return Err(error.context("starting a MANIFEST"));
            }
        };
        if mutated("old-manifest-last") {
            let _ = env.remove(&dir.join(filename::manifest(self.manifest_number)));
        }
        let temp = match prepare_current(env.as_ref(), &dir, number, file_mode) {
            Ok(temp) => temp,
            Err(error) => {
                // As above. A program's environment need not remove open files.
                drop(writer);
                let _ = env.remove(&path);
                return Err(error);
            }
        };
        // From here on the fresh MANIFEST may be the installed one after a crash, whatever happens
        // next: keep it until another one certainly is.
        if let Err(error) = install_current(env.as_ref(), &dir, &temp) {
            self.writer = None;
            self.in_doubt = true;
            self.abandoned.push(number);
            return Err(error);
        }
        // Every edit in it was synced, and it is removed now: a program's environment need not
        // remove open files.
        self.writer = None;
        self.abandoned.push(self.manifest_number);
        for old in self.abandoned.drain(..) {
            // A leftover is harmless: the next open removes it.
            let _ = env.remove(&dir.join(filename::manifest(old)));
        }
        self.obsolete_files.put_back(std::mem::take(&mut self.uncertain));
        self.manifest_number = number;
        self.is_extended = is_extended;
        self.snapshot_end = snapshot_end;
        self.writer = Some(writer);
        self.in_doubt = false;
        Ok(())
    }

    /// What the edits so far say of the logs, and nothing else.
    pub(crate) fn state_of_logs(&self) -> ManifestState {
        ManifestState {
            log_number: self.log_number,
            last_sequence: self.last_sequence,
            logs_begin: self.logs_begin,
            is_terraces: self.is_terraces,
            ..ManifestState::default()
        }
    }

    /// The present version. The log is named by the edit behind it, or here if it was found.
    fn snapshot(&self) -> VersionEdit {
        let is_found = !self.is_terraces;
        let before = self.logs_begin.map(|begin| begin.saturating_sub(1));
        VersionEdit {
            log_number: is_found.then_some(self.log_number),
            last_sequence: before.filter(|_| is_found),
            previous_log_number: Some(0),
            new_files: self.current.files().map(|(level, file)| file.record(level)).collect(),
            // LevelDB can read a MANIFEST without any.
            new_value_files: self.current.values.used().map(UsedValueFile::record).collect(),
            ..VersionEdit::default()
        }
    }

    /// Closes the MANIFEST. Every edit was synced when it was written. A database that was extended
    /// and has neither value files nor tables that LevelDB cannot read any more is plain again.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.obsolete_files.put_back(std::mem::take(&mut self.unused));
        if self.is_extended && !self.current.is_extended() && self.writer.is_some() {
            // It stays extended otherwise, until another edit begins a MANIFEST.
            let _ = self.roll(&[self.no_change()]);
        }
        self.writer.take().map_or(Ok(()), LogWriter::close)
    }
}

/// Points CURRENT at the MANIFEST `number`, durably, as one step.
pub(crate) fn set_current(env: &dyn Env, dir: &Path, number: u64, file_mode: u32) -> Result<()> {
    install_current(env, dir, &prepare_current(env, dir, number, file_mode)?)
}

/// Writes what CURRENT is to say beside it. After an error CURRENT is as it was.
fn prepare_current(env: &dyn Env, dir: &Path, number: u64, file_mode: u32) -> Result<PathBuf> {
    let temp = dir.join(filename::temp(number));
    let contents = format!("{}\n", filename::manifest(number));
    // The directory first: CURRENT must never be durable before the MANIFEST's own name is.
    if !mutated("manifest-name") {
        env.sync_dir(dir)?;
    }
    let written = env.create(&temp, CreateOptions { mode: file_mode, exclusive: false }).and_then(
        |mut file| {
            file.append(contents.as_bytes())?;
            if !mutated("current-sync") {
                file.sync()?;
            }
            file.close()
        },
    );
    match written {
        Ok(()) => Ok(temp),
        Err(error) => {
            let _ = env.remove(&temp);
            Err(error.context("setting CURRENT"))
        }
    }
}

/// Makes CURRENT of the file `temp`. After an error it may be in place or not.
fn install_current(env: &dyn Env, dir: &Path, temp: &Path) -> Result<()> {
    if let Err(error) = env.rename(temp, &dir.join(filename::CURRENT)) {
        let _ = env.remove(temp);
        return Err(error.context("setting CURRENT"));
    }
    if mutated("current-name") {
        return Ok(());
    }
    env.sync_dir(dir).map_err(|error| error.context("setting CURRENT"))
}

/// Creates the MANIFEST and CURRENT of an empty database.
pub(crate) fn create_database(settings: &ManifestSettings) -> Result<()> {
    // What an interrupted creation left behind holds nothing. A program's environment may refuse to
    // remove what is not there.
    let path = settings.dir.join(filename::manifest(1));
    if settings.env.exists(&path)? {
        settings.env.remove(&path)?;
    }
    begin_history(settings, 1, VersionEdit { next_file_number: Some(2), ..VersionEdit::default() })
}

/// Creates the MANIFEST `number` of a database without logs, which is what `edit` makes of an empty
/// one, and CURRENT, durably.
pub(crate) fn begin_history(
    settings: &ManifestSettings,
    number: u64,
    edit: VersionEdit,
) -> Result<()> {
    let edit = VersionEdit {
        log_number: Some(0),
        last_sequence: Some(edit.last_sequence.unwrap_or(0)),
        ..edit
    };
    let path = settings.dir.join(filename::manifest(number));
    let file =
        settings.env.create(&path, CreateOptions { mode: settings.file_mode, exclusive: true })?;
    let mut writer = LogWriter::new(file, 0);
    let is_extended = edit.is_extended();
    if is_extended {
        writer.add_record(&settings.encode_name())?;
    }
    writer.add_record(&settings.encode(&edit, is_extended))?;
    if !mutated("first-manifest-sync") {
        writer.sync()?;
    }
    writer.close()?;
    set_current(settings.env.as_ref(), &settings.dir, number, settings.file_mode)
        .map_err(|e: Error| e.context("creating a database"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::KeyOrder;
    use crate::env::MemEnv;
    use crate::version::manifest::{read_current, read_manifest};

    fn read_back(settings: &ManifestSettings) -> ManifestState {
        let (env, dir) = (settings.env.as_ref(), settings.dir.as_path());
        let number = read_current(env, dir).expect("CURRENT");
        read_manifest(env, dir, number, &settings.order, &Arc::default()).expect("a MANIFEST")
    }

    /// Log 3, which LevelDB may have continued, begins at 11 as far as that is known; logs up to 5
    /// were found. Whether every edit begins a MANIFEST changes nothing.
    #[test]
    fn only_an_edit_that_names_a_log_of_this_open_tells_where_the_logs_begin() {
        for (begin, max_manifest_size) in
            [Some(11), None].into_iter().flat_map(|begin| [1 << 20, 1].map(|size| (begin, size)))
        {
            let env = Arc::new(MemEnv::new());
            let settings = ManifestSettings {
                env: env.clone(),
                dir: PathBuf::from("/"),
                order: InternalOrder::new(KeyOrder::default()),
                file_mode: 0o644,
                max_manifest_size,
            };
            let state = ManifestState {
                log_number: 3,
                last_sequence: 20,
                logs_begin: begin,
                next_file_number: 6,
                ..ManifestState::default()
            };
            let mut versions = VersionSet::new(settings.clone(), state, 2, 5, Arc::default());
            let naming = |log| VersionEdit { log_number: Some(log), ..VersionEdit::default() };
            let read = || {
                let state = read_back(&settings);
                (state.log_number, state.last_sequence, state.logs_begin, state.is_terraces)
            };
            versions.prepare().expect("a fresh MANIFEST");
            assert_eq!(read(), (3, 20, begin, false));
            versions.log_and_apply(VersionEdit::default(), 25).expect("a compaction");
            assert_eq!(read(), (3, 25, begin, false));
            versions.log_and_apply(naming(5), 30).expect("a flush of the first of two found logs");
            assert_eq!(read(), (5, 30, None, false));
            versions.record_numbers().expect("an edit");
            assert_eq!(read(), (5, 30, None, false));
            versions.log_and_apply(naming(9), 40).expect("a flush of what was found");
            assert_eq!(read(), (9, 40, Some(41), true));
            versions.log_and_apply(VersionEdit::default(), 0).expect("a compaction");
            assert_eq!(read(), (9, 40, Some(41), true));
        }
    }
}
