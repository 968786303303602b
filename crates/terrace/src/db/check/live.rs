//! Checks a database while it is in use.
//!
//! Any thread. Writers wait while logs are opened, edits while the MANIFEST is read; no one waits
//! for tables.

use std::sync::Arc;

use crate::base::error::{ErrorKind, Result};
use crate::base::internal_key::MAX_SEQUENCE;
use crate::env::{RandomAccessFile, ReadAccess};
use crate::version::filename::{self, FileKind};

use crate::db::check::log::LogCheck;
use crate::db::check::{Progress, Verification, VerifyReport};
use crate::db::db_impl::DbImpl;
use crate::db::open::own_files::OwnFiles;
use crate::db::open::unnamed_tables::last_sequences_if_readable;

/// Checks the database while it is in use: the tables of this moment, and the logs as far as
/// they were written.
pub(in crate::db) fn verify(
    core: &DbImpl,
    progress: &mut dyn FnMut(Progress),
) -> Result<VerifyReport> {
    core.files.check_open()?;
    let _open =
        if core.files.is_inherited() { None } else { Some(core.background.put_close_off()?) };
    let mut check = Verification::new(
        core.files.env.clone(),
        &core.files.dir,
        core.files.order.clone(),
        core.files.tables.clone(),
        progress,
    );
    // The logs first, by handles that outlive their names: what is flushed meanwhile is checked
    // as a table.
    let _unchanged = core.logs.recycled.read();
    let mut logs = open_logs(core)?;
    let (version, last_sequence, state, unnamed) = {
        let versions = core.background.versions.lock();
        let found = check.manifest()?.map(|(_, state)| state);
        let last_sequence = found.as_ref().map_or(MAX_SEQUENCE, |state| state.last_sequence);
        // An open for writing has set such tables aside; later ones are those of running jobs.
        let unnamed = match &found {
            Some(found) if core.files.options.read_only => {
                let mut own = OwnFiles::list(core.files.env.as_ref(), &core.files.dir)?;
                own.leave_strangers(found.next_file_number);
                last_sequences_if_readable(&core.files.tables, own.unnamed_tables(found))?
            }
            _ => Vec::new(),
        };
        // An edit may be in doubt; in a forked child what is here is old.
        let state = match core.files.is_inherited() {
            true => found,
            false => Some(versions.state_of_logs()),
        };
        (versions.current().clone(), last_sequence, state, unnamed)
    };
    if let Some(state) = &state {
        logs.retain(|(number, _)| *number >= state.log_number);
    }
    check.expect(&version, logs.iter().map(|(_, file)| file.size()).sum());
    check.version(&version, last_sequence)?;
    let mut log_check = match &state {
        Some(state) => LogCheck::following(state, check.newest_in_tables(), unnamed),
        None => LogCheck::new(Some(last_sequence)),
    };
    for (number, file) in logs {
        check.log(&mut log_check, number, file)?;
    }
    check.logs_end(&log_check);
    Ok(check.report)
}

/// The logs that are needed, oldest first, the one being written up to its last whole record.
fn open_logs(core: &DbImpl) -> Result<Vec<(u64, Arc<dyn RandomAccessFile>)>> {
    let first = core.background.versions.lock().log_number();
    let commit = core.writes.commit.lock();
    let written = commit.as_ref().filter(|commit| commit.found_logs.is_empty());
    let written = written.map(|commit| (commit.log_number, commit.log.offset()));
    let mut own = OwnFiles::list(core.files.env.as_ref(), &core.files.dir)?;
    own.leave_strangers(core.files.numbers.peek());
    let mut numbers: Vec<_> = own.of_kind(FileKind::Log).collect();
    numbers.retain(|&number| number >= first);
    numbers.sort_unstable();
    let mut logs = Vec::new();
    for number in numbers {
        let file = match core
            .files
            .env
            .open_random(&core.files.path(&filename::log(number)), ReadAccess::Pread)
        {
            // It was flushed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let file: Arc<dyn RandomAccessFile> = match written.filter(|(log, _)| *log == number) {
            Some((_, end)) => Arc::new(Beginning { size: file.size().min(end), file }),
            None => file,
        };
        logs.push((number, file));
    }
    // Two flushes may have ended meanwhile, and only the later one's log be gone already.
    let first = core.background.versions.lock().log_number();
    logs.retain(|(number, _)| *number >= first);
    Ok(logs)
}

/// The first bytes of a file that is being appended to.
struct Beginning {
    file: Arc<dyn RandomAccessFile>,
    size: u64,
}

impl RandomAccessFile for Beginning {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        self.file.read_at(offset, buffer.get_mut(..length).unwrap_or_default())
    }

    fn size(&self) -> u64 {
        self.size
    }
}
