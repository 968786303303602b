//! The end of an open: recovered memtables go to the flusher, and writing begins.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::error::{Error, Result};
use crate::base::locks::{Mutex, MutexGuard};
use crate::base::mutation::mutated;
use crate::env::WritableFile;
use crate::log::LogWriter;
use crate::memtable::{MemTable, MemTableWriter};
use crate::version::filename::{self, LOST_DIR};

use crate::db::db_impl::DbImpl;
use crate::db::db_impl::background::state::{FlushProgress, Immutable, State};
use crate::db::db_impl::write_path::commit::Commit;
use crate::db::open::own_files::Leftovers;
use crate::db::open::recovery::{Recovered, RecoveredMemtable};
use crate::db::options::events::Event;
use crate::db::view::View;

/// Logs that an open leaves to the background; more of them, which only a series of kills leaves,
/// are flushed first.
const MAX_LEFT_LOGS: usize = 4;

/// Tells the log and the listener what recovery found.
pub(super) fn announce(core: &DbImpl, recovered: &Recovered) {
    core.files.log(format!(
        "opened: tables: {}, memtables recovered from logs: {}, last sequence number: {}",
        core.views.current.load().version.files().count(),
        recovered.memtables.len(),
        recovered.last_sequence,
    ));
    if !recovered.tables.is_empty() {
        core.files.log(format!("{} tables written from logs", recovered.tables.len()));
    }
    if let Some(error) = &recovered.table_error {
        core.files.log(format!(
            "logs stay in memory, because a table of them could not be written: {error}"
        ));
    }
    for damage in &recovered.damage {
        let later = || {
            (!core.files.options.read_only && damage.keep)
                .then(|| format!("{LOST_DIR}/{}", damage.file))
        };
        let kept_as = damage.kept_as.clone().or_else(later);
        core.files.log(format!("recovery cut the history: {}", damage.message));
        let (file, message) = (damage.file.clone(), damage.message.clone());
        core.files.tell(&Event::RecoveryDamage { file, message, kept_as });
    }
}

/// Gives the recovered memtables to the flusher and starts or continues a log.
pub(super) fn start_writing(core: &DbImpl, mut recovered: Recovered, logs: &[u64]) -> Result<()> {
    let continued = match core.files.options.reuse_logs {
        true => continue_log(core, &mut recovered),
        false => None,
    };
    let continues = continued.is_some();
    let mut commit = match continued {
        Some(commit) => commit,
        None => begin_log(core, &recovered, logs),
    };
    // Reads do not find what is in these tables before an edit has added them.
    let has_tables = !recovered.tables.is_empty();
    let many = recovered.memtables.len() > 1 || logs.len() > MAX_LEFT_LOGS || has_tables;
    // The last writes of a process that died may not be durable: in the logs, and in the MANIFEST
    // the record of a bulk load, which is in no log. A flush, if only of nothing, starts a fresh
    // MANIFEST. What was ingested into an empty database has no sequence number.
    let is_filled = core.views.current.load().version.files().next().is_some();
    let has_history = recovered.last_sequence > 0 || is_filled;
    let in_doubt = recovered.must_be_left() || has_history && !mutated("found-loads");
    let leaves = !continues && in_doubt && !mutated("found-logs-to-tables");
    if leaves && !core.logs.suspect.swap(true, Ordering::Relaxed) {
        // On a new log already: only the flush, which moves the MANIFEST past the old ones, is
        // awaited.
        commit.left_suspect_log = true;
    }
    let mut state = core.background.state.lock();
    state.log_number = commit.log_number;
    let kept_later =
        recovered.damage.iter().filter(|damage| damage.keep && damage.kept_as.is_none());
    state.damaged_logs = kept_later.map(|damage| damage.log).collect();
    let mut recovered_tables = recovered.tables;
    let mut immutable = |memtable: &MemTableWriter, logs, last_sequence| {
        let memtable = memtable.table().clone();
        Arc::new(Immutable {
            memtable,
            logs,
            last_sequence,
            // The first one is the oldest.
            recovered_tables: std::mem::take(&mut recovered_tables),
            log: Mutex::new(None),
            progress: FlushProgress::default(),
        })
    };
    for RecoveredMemtable { writer, logs, last_sequence } in recovered.memtables {
        state.immutables.push_back(immutable(&writer, logs, last_sequence));
    }
    // Logs that held nothing, or nothing that counts, are left behind all the same.
    if state.immutables.is_empty() && !continues && (leaves || !logs.is_empty()) {
        let (nothing, _) = MemTable::new(core.files.order.clone(), 0);
        state.immutables.push_back(immutable(&nothing, logs.to_vec(), recovered.last_sequence));
    }
    let memtable = commit.memtable.table().clone();
    let immutables: Vec<_> =
        state.immutables.iter().rev().map(|immutable| immutable.memtable.clone()).collect();
    let _ = core.background.swap_view(&mut state, |view| View {
        memtable,
        immutables,
        version: view.version.clone(),
        in_tables: view.in_tables,
    });
    *core.writes.commit.lock() = Some(commit);
    if !core.files.order.keys.is_bytewise() && !mutated("flush-behind-an-open") {
        state = flush_before_return(core, state);
    } else {
        core.background.schedule(&mut state);
    }
    while many && !state.immutables.is_empty() && state.error.is_none() {
        core.background.changed.wait(&mut state);
    }
    match &state.error {
        Some(failure) if has_tables && !state.immutables.is_empty() => Err(failure.error.clone()),
        _ => Ok(()),
    }
}

/// Flushes what recovery found, where a comparator is the program's. It may take a lock that the
/// program holds when it closes the database, as that of Python's interpreter: LevelDB's open leaves
/// nothing behind that compares, but for compactions that are due.
fn flush_before_return<'s>(
    core: &'s DbImpl,
    mut state: MutexGuard<'s, State>,
) -> MutexGuard<'s, State> {
    state.starting = true;
    if !state.immutables.is_empty() {
        // On this thread, as LevelDB's open does: another might wait for what the program holds now.
        state.flushing += 1;
        drop(state);
        core.background.flush_job();
        state = core.background.state.lock();
    }
    core.background.schedule(&mut state);
    // Of several memtables others may be flushed beside this thread, also when one has failed.
    while state.flushing > 0 {
        core.background.changed.wait(&mut state);
    }
    state.starting = false;
    state
}

/// Starts a log. On a full disk the database opens all the same: reads work, and the first
/// write tries again. Until then the newest log found, if any, stands for the present one: the
/// MANIFEST must not name a log that was never made. If recovery cut the history it is all of them:
/// a log behind the cut that came first would look like one that has lost nothing.
fn begin_log(core: &DbImpl, recovered: &Recovered, logs: &[u64]) -> Commit {
    let mut number = core.files.numbers.take();
    let mut found_logs = Vec::new();
    let path = core.files.path(&filename::log(number));
    let log = match core.logs.create(&path) {
        Ok((log, syncer)) => {
            core.logs.sync.start_log(number, syncer);
            log
        }
        Err(error) => {
            core.files.log(format!("no log could be started: {error}"));
            core.logs.suspect.store(true, Ordering::Relaxed);
            let whole = !recovered.was_damaged() || mutated("logs-behind-a-cut");
            let first = if whole { logs.len().saturating_sub(1) } else { 0 };
            found_logs = logs.get(first..).unwrap_or_default().to_vec();
            number = found_logs.first().copied().unwrap_or(0);
            LogWriter::new(Box::new(NoFile(error)), 0)
        }
    };
    let memtable = core.files.options.new_memtable(&core.files.order);
    Commit {
        memtable,
        log,
        log_number: number,
        found_logs,
        last_sequence: recovered.last_sequence,
        reserved_sequence: 0,
        owed_nanos: 0,
        left_suspect_log: false,
    }
}

/// Goes on with the newest log, if it ends clean and the Env can append to files. The memtable
/// of what it holds is then the one to write to.
fn continue_log(core: &DbImpl, recovered: &mut Recovered) -> Option<Commit> {
    let (number, end) = recovered.reusable()?;
    let path = core.files.path(&filename::log(number));
    let opened = match core.files.env.has_other_names(&path) {
        Ok(true) if !mutated("log-with-other-names") => {
            Err(Error::not_supported(format!("{} has another name", path.display())))
        }
        Ok(_) => core.files.env.open_append(&path),
        Err(error) => Err(error),
    };
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            core.files.log(format!("a new log, because the last cannot be continued: {error}"));
            return None;
        }
    };
    let memtable = recovered.memtables.pop()?;
    let (file, syncer) = crate::env::with_syncer(file);
    core.logs.sync.flushed(number, memtable.last_sequence);
    core.logs.sync.start_log(number, syncer);
    Some(Commit {
        memtable: memtable.writer,
        log: LogWriter::new(file, end),
        log_number: number,
        found_logs: Vec::new(),
        last_sequence: memtable.last_sequence,
        reserved_sequence: 0,
        owed_nanos: 0,
        left_suspect_log: false,
    })
}

/// Removes what an earlier run left behind. A failure leaves it to the next open.
fn retire(core: &DbImpl, name: &str) {
    match core.files.env.remove(&core.files.path(name)) {
        Ok(()) => core.files.log(format!("retired {name}, which nothing needs")),
        Err(error) => core.files.log(format!("could not retire {name}: {error}")),
    }
}

/// Removes files that no MANIFEST ever named.
pub(super) fn remove_never_used(core: &DbImpl, leftovers: &Leftovers) {
    leftovers.never_used.iter().for_each(|name| retire(core, name));
}

/// Has tables removed that recovery made for an open that failed: the next one finds the logs, and
/// makes them anew.
pub(super) fn discard_recovered(core: &DbImpl, mut tables: Vec<u64>) {
    let versions = core.background.versions.lock();
    if versions.is_in_doubt() || mutated("tables-of-a-failed-open") {
        return;
    }
    versions.current().files().for_each(|(_, file)| tables.retain(|&table| table != file.number));
    core.files.obsolete_files.put_back(tables);
}

/// Removes files that the MANIFEST has given up. A failure leaves them to the next open.
pub(super) fn clean_up(core: &DbImpl, leftovers: &Leftovers) {
    if leftovers.given_up.is_empty() {
        return;
    }
    let prepared = if mutated("fresh-manifest-first") {
        Ok(())
    } else {
        core.background.versions.lock().prepare()
    };
    match prepared {
        Ok(()) => leftovers.given_up.iter().for_each(|name| retire(core, name)),
        Err(error) => core.files.log(format!("obsolete files are kept: {error}")),
    }
}

/// Stands for a log that could not be created: every use fails with the reason.
struct NoFile(Error);

impl WritableFile for NoFile {
    fn append(&mut self, _data: &[u8]) -> Result<()> {
        Err(self.0.clone())
    }

    fn sync(&mut self) -> Result<()> {
        Err(self.0.clone())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
