//! The life of an open: lock, CURRENT, MANIFEST, files, logs; then ready.
//!
//! # Invariants
//! 1. Nothing is changed before the lock is held, and nothing at all in a read-only open.
//! 2. What the logs hold is in memtables when `open` returns and becomes tables in the background;
//!    until then the MANIFEST still names those logs, so that a crash at any step replays them
//!    again.
//! 3. No write is acknowledged before those tables are durable, unless the log is continued, of
//!    which durability marks say that all it holds had reached the disk: a second recovery must not
//!    find new writes behind old damage, or behind data that only the system's cache still held.
//! 4. Only files that carry the database's own names and that neither the MANIFEST nor recovery
//!    needs are removed.

pub(super) mod continuity;
pub(super) mod lost;
pub(super) mod recovered_tables;
pub(super) mod recovery;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::InternalOrder;
use crate::base::locks::{ArcSwap, AtomicBool, AtomicU64, Condvar, Mutex};
use crate::base::mutation::mutated;
use crate::compaction::rate_limiter::RateLimiter;
use crate::env::{Env, FileLock, LockMode, Logger, ReadAccess, WritableFile};
use crate::iterator::deleted_ranges::DeletedRanges;
use crate::log::LogWriter;
use crate::memtable::{MemTable, MemTableWriter};
use crate::table::{BlockCache, ReadPolicy, TableOrder, TableReadSettings};
use crate::version::file_meta::ObsoleteFiles;
use crate::version::filename::{self, FileKind, LOST_DIR};
use crate::version::manifest::{self, ManifestState};
use crate::version::table_set::TableSet;
use crate::version::version_set::{FileNumbers, ManifestSettings, VersionSet, create_database};
use crate::write::log_sync::LogSync;
use crate::write::throttle::Throttle;

use crate::db::background::jobs::Jobs;
use crate::db::db_impl::{DbImpl, ReadStats, View};
use crate::db::keyspace::Keyspaces;
use crate::db::open::recovery::{Recovered, RecoveredMemtable, Replay};
use crate::db::options::{Options, RecoveryMode};
use crate::db::range_delete::RecentRangeDeletes;
use crate::db::read::snapshot::SnapshotList;
use crate::db::state::{FlushProgress, Immutable, State};
use crate::db::stats::Counters;
use crate::db::stats::events::Event;
use crate::db::stats::info_log;
use crate::db::transaction::concurrency_control::ConcurrencyControl;
use crate::db::write::recycled_logs::RecycledLogs;
use crate::db::write::{Commit, create_log};

/// Logs that an open leaves to the background; more of them, which only a series of kills leaves,
/// are flushed first.
const MAX_LEFT_LOGS: usize = 4;

/// How far the numbers of files may be beyond those that the MANIFEST knows: more than any process
/// can have handed out without recording it.
const REACH: u64 = 1 << 40;

/// Opens a database.
pub(in crate::db) fn open(dir: &Path, options: Options) -> Result<Arc<DbImpl>> {
    let options = options.sanitized()?;
    let order = InternalOrder::new(KeyOrder::new(options.comparator.clone()));
    let env = options.env.clone();
    let lock = prepare_directory(dir, &options)?;
    if !options.read_only {
        env.set_background_threads(options.background_threads)?;
    }
    let logger = match &options.logger {
        Some(logger) => logger.clone(),
        None if options.read_only => info_log::silent(),
        None => info_log::start(&env, dir, options.file_mode),
    };
    let settings = ManifestSettings {
        env: env.clone(),
        dir: dir.to_owned(),
        order: order.clone(),
        file_mode: options.file_mode,
        max_manifest_size: options.max_manifest_size,
    };
    let manifest_number = current_manifest(dir, &options, &settings)?;
    let obsolete_files = Arc::new(ObsoleteFiles::default());
    let mut state =
        manifest::read_manifest(env.as_ref(), dir, manifest_number, &order, &obsolete_files)?;
    let mut files = OwnFiles::list(env.as_ref(), dir)?;
    files.leave_strangers(state.next_file_number);
    files.check_tables(dir, &state)?;
    let logs = files.needed_logs(dir, &state, &options)?;
    let tables = table_set(dir, &options, &order);
    let numbers = Arc::new(FileNumbers::new(state.next_file_number));
    files.numbers.iter().for_each(|&number| numbers.skip(number));
    let replay = Replay {
        env: env.as_ref(),
        dir,
        options: &options,
        order: &order,
        version: &state.version,
        tables: &tables,
        numbers: &numbers,
    };
    let mut recovered = replay.run(&logs, &state)?;

    let mut leftovers = files.leftovers(&state, manifest_number);
    let torn = state.torn.take();
    if !options.read_only && !mutated("found-names") {
        // The names found, CURRENT above all, before any new one.
        env.sync_dir(dir)?;
    }
    let versions = VersionSet::new(settings, state, manifest_number, obsolete_files.clone());
    recovered.tables.iter().for_each(|table| versions.numbers().skip(table.number));
    if !mutated("skip-found-numbers") {
        files.numbers.iter().for_each(|&number| versions.numbers().skip(number));
    }
    let parts = Parts {
        dir: dir.to_owned(),
        options,
        order,
        tables,
        versions,
        obsolete_files,
        logger,
        lock,
    };
    let core = parts.assemble(&recovered);
    if !core.options.read_only {
        // Before anything makes durable what was found: until then the next open finds it as well.
        core.set_aside_logs(&mut recovered);
    }
    core.announce(&recovered);
    if !core.options.read_only {
        core.set_aside_tables(&mut leftovers.never_used, torn, &recovered);
        core.start_writing(recovered, &logs)?;
        core.clean_up(&leftovers);
    }
    Ok(core)
}

/// Creates the directory where it may be, and takes the lock.
fn prepare_directory(dir: &Path, options: &Options) -> Result<Box<dyn FileLock>> {
    let env = options.env.as_ref();
    if options.create_if_missing && !options.read_only {
        env.create_dir(dir, options.dir_mode)?;
    } else if !has_database(env, dir)? {
        // Before anything is left in a directory of another program's.
        return Err(no_database(dir, options));
    }
    let path = dir.join(filename::LOCK);
    if options.read_only {
        return env.lock(&path, LockMode::Shared);
    }
    env.lock(&path, LockMode::Exclusive)
}

/// Whether there is anything of a database in a directory.
fn has_database(env: &dyn Env, dir: &Path) -> Result<bool> {
    if env.exists(&dir.join(filename::CURRENT))? {
        return Ok(true);
    }
    let is_data = |name: &String| {
        matches!(
            filename::parse(name),
            Some((FileKind::Table | FileKind::Log | FileKind::Manifest, _))
        )
    };
    Ok(names_in(env, dir)?.iter().any(is_data))
}

/// The names in a directory; none if it is not there.
fn names_in(env: &dyn Env, dir: &Path) -> Result<Vec<String>> {
    match env.list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        names => names,
    }
}

fn no_database(dir: &Path, options: &Options) -> Error {
    let reason = match options.read_only {
        true => "a read-only open creates none",
        false => "create_if_missing is not set",
    };
    Error::invalid_argument(format!("{}: no database there, and {reason}", dir.display()))
}

/// Makes the names of a new database's directory and of those above it durable, some of which may
/// be new.
///
/// A directory that may not be read cannot be synced; another user made it, long ago.
pub(in crate::db) fn sync_directories_above(env: &dyn Env, dir: &Path) -> Result<()> {
    if mutated("directories-above") {
        return Ok(());
    }
    dir.ancestors().skip(1).try_for_each(|above| match env.sync_dir(above) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => Ok(()),
        result => result,
    })
}

/// The number of the present MANIFEST, of a fresh database if there was none and one may be
/// created.
fn current_manifest(dir: &Path, options: &Options, settings: &ManifestSettings) -> Result<u64> {
    let env = options.env.as_ref();
    let current = dir.join(filename::CURRENT);
    if env.exists(&current)? {
        if options.error_if_exists {
            return Err(Error::invalid_argument(format!(
                "{}: a database exists there already",
                dir.display()
            )));
        }
        return manifest::read_current(env, dir);
    }
    // Never a fresh database over the files of one: CURRENT alone may have been lost.
    let remains = names_in(env, dir)?
        .into_iter()
        .find(|name| matches!(filename::parse(name), Some((FileKind::Table | FileKind::Log, _))))
        .filter(|_| !mutated("never-fresh-over-files"));
    if let Some(name) = remains {
        let message = format!(
            "{}: missing, although {name} is there; repair can rebuild it",
            current.display()
        );
        return Err(Error::corruption(message));
    }
    if !options.create_if_missing || options.read_only {
        return Err(no_database(dir, options));
    }
    sync_directories_above(env, dir)?;
    create_database(settings)?;
    Ok(1)
}

/// The database's own files in its directory.
pub(in crate::db) struct OwnFiles {
    pub(in crate::db) found: Vec<(String, FileKind, u64)>,
    numbers: BTreeSet<u64>,
}

impl OwnFiles {
    pub(in crate::db) fn list(env: &dyn Env, dir: &Path) -> Result<Self> {
        let mut found = Vec::new();
        for name in env.list(dir)? {
            if let Some((kind, number)) = filename::parse(&name) {
                found.push((name, kind, number));
            }
        }
        let numbers = found.iter().map(|(_, _, number)| *number).collect();
        Ok(OwnFiles { found, numbers })
    }

    /// Leaves out what cannot be the database's own, because its number is far beyond all that were
    /// handed out: what follows it would use the numbers up.
    pub(in crate::db) fn leave_strangers(&mut self, next_file_number: u64) {
        let end = next_file_number.saturating_add(REACH);
        if mutated("names-within-reach") {
            return;
        }
        self.found.retain(|(_, _, number)| *number < end);
        self.numbers.retain(|number| *number < end);
    }

    pub(in crate::db) fn of_kind(&self, wanted: FileKind) -> impl Iterator<Item = u64> {
        self.found.iter().filter(move |(_, kind, _)| *kind == wanted).map(|(_, _, number)| *number)
    }

    fn check_tables(&self, dir: &Path, state: &ManifestState) -> Result<()> {
        let present: BTreeSet<_> = self.of_kind(FileKind::Table).collect();
        let missing: Vec<_> = state
            .version
            .files()
            .filter(|(_, file)| !present.contains(&file.number))
            .map(|(_, file)| filename::table(file.number))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let names = missing.join(", ");
        Err(Error::corruption(format!(
            "{}: tables that the MANIFEST names are missing: {names}",
            dir.display()
        )))
    }

    /// What nothing needs.
    fn leftovers(&self, state: &ManifestState, manifest_number: u64) -> Leftovers {
        let live: BTreeSet<_> = state.version.files().map(|(_, file)| file.number).collect();
        let mut leftovers = Leftovers::default();
        for (name, kind, number) in &self.found {
            match kind {
                FileKind::Temp => leftovers.never_used.push(name.clone()),
                FileKind::Table if *number >= state.next_file_number => {
                    leftovers.never_used.push(name.clone())
                }
                FileKind::Table if !live.contains(number) => leftovers.given_up.push(name.clone()),
                FileKind::Log
                    if *number < state.log_number && *number != state.previous_log_number =>
                {
                    leftovers.given_up.push(name.clone());
                }
                FileKind::Manifest if *number != manifest_number => {
                    leftovers.given_up.push(name.clone())
                }
                _ => {}
            }
        }
        leftovers
    }

    /// The logs to replay, oldest first.
    fn needed_logs(
        &self,
        dir: &Path,
        state: &ManifestState,
        options: &Options,
    ) -> Result<Vec<u64>> {
        let mut logs: Vec<_> =
            self.of_kind(FileKind::Log).filter(|&number| state.needs_log(number)).collect();
        logs.sort_unstable();
        let salvage = options.recovery_mode == RecoveryMode::Salvage || mutated("missing-log");
        if state.log_number != 0 && !logs.contains(&state.log_number) && !salvage {
            let path = dir.join(filename::log(state.log_number));
            return Err(Error::corruption(format!(
                "{}: missing, and the MANIFEST needs it",
                path.display()
            )));
        }
        Ok(logs)
    }
}

/// Files of the database's own that nothing needs any more.
#[derive(Default)]
struct Leftovers {
    /// No MANIFEST ever named them.
    never_used: Vec<String>,
    /// The MANIFEST has given them up, or replaced them. If what it says is not durable, an older
    /// state needs them.
    given_up: Vec<String>,
}

/// What an open has gathered before there is a database.
struct Parts {
    dir: PathBuf,
    options: Options,
    order: InternalOrder,
    tables: TableSet,
    versions: VersionSet,
    obsolete_files: Arc<ObsoleteFiles>,
    logger: Arc<dyn Logger>,
    lock: Box<dyn FileLock>,
}

fn table_set(dir: &Path, options: &Options, order: &InternalOrder) -> TableSet {
    let cache =
        options.block_cache.clone().unwrap_or_else(|| BlockCache::new(options.block_cache_size));
    let policy = match options.read_access {
        ReadAccess::Auto => ReadPolicy::automatic(),
        ReadAccess::Mapped | ReadAccess::Pread => Arc::default(),
    };
    let settings = TableReadSettings {
        order: TableOrder::internal(order.keys.clone()),
        filter_policy: options.filter_policy.clone(),
        cache,
        counters: Arc::default(),
        policy,
    };
    let capacity = options.max_open_files - 10;
    TableSet::new(options.env.clone(), dir.to_owned(), options.read_access, settings, capacity)
}

impl Parts {
    /// The database, with everything recovered to be read, and nothing running.
    fn assemble(self, recovered: &Recovered) -> Arc<DbImpl> {
        let Parts { dir, options, order, tables, versions, obsolete_files, logger, lock } = self;
        let env = options.env.clone();
        tables.weigh(versions.current().bytes());
        let (_, memtable) = MemTable::new(order.clone(), 0);
        let rate_limiter = match options.compaction_rate_limit {
            0 => None,
            rate => Some(Arc::new(RateLimiter::new(env.clone(), rate))),
        };
        let view = View {
            memtable,
            immutables: recovered
                .memtables
                .iter()
                .rev()
                .map(|recovered| recovered.writer.table().clone())
                .collect(),
            version: versions.current().clone(),
            in_tables: recovered.last_sequence,
        };
        let control = ConcurrencyControl::new(&order.keys, &env);
        Arc::new(DbImpl {
            generation: env.process_generation(),
            env,
            dir,
            order,
            cache: tables.read_settings().cache.clone(),
            tables: Arc::new(tables),
            numbers: versions.numbers().clone(),
            obsolete_files,
            logger,
            view: ArcSwap::from_pointee(view),
            visible: AtomicU64::new(recovered.last_sequence),
            snapshots: SnapshotList::default(),
            control,
            commit: Mutex::new(None),
            log_sync: LogSync::default(),
            log_suspect: AtomicBool::new(false),
            shutting_down: Mutex::new(()),
            write_panicked: AtomicBool::new(false),
            recycled_logs: RecycledLogs::default(),
            throttle: Throttle::default(),
            rate_limiter,
            jobs: Jobs::default(),
            versions: Mutex::new(versions),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            closed: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
            counters: Counters::default(),
            read_stats: ReadStats::default(),
            deleted_ranges: DeletedRanges::default(),
            range_deletes: RecentRangeDeletes::default(),
            keyspaces: Keyspaces::default(),
            options,
        })
    }
}

impl DbImpl {
    fn announce(&self, recovered: &Recovered) {
        self.log(format!(
            "opened: {} tables, {} memtables recovered from logs, last sequence number {}",
            self.view.load().version.files().count(),
            recovered.memtables.len(),
            recovered.last_sequence,
        ));
        if !recovered.tables.is_empty() {
            self.log(format!("{} tables written from logs", recovered.tables.len()));
        }
        if let Some(error) = &recovered.table_error {
            self.log(format!(
                "logs stay in memory, because a table of them could not be written: {error}"
            ));
        }
        for damage in &recovered.damage {
            let later = || {
                (!self.options.read_only && damage.keep)
                    .then(|| format!("{LOST_DIR}/{}", damage.file))
            };
            let kept_as = damage.kept_as.clone().or_else(later);
            self.log(format!("recovery cut the history: {}", damage.message));
            let (file, message) = (damage.file.clone(), damage.message.clone());
            self.tell(&Event::RecoveryDamage { file, message, kept_as });
        }
    }

    /// Gives the recovered memtables to the flusher and starts or continues a log.
    fn start_writing(self: &Arc<Self>, mut recovered: Recovered, logs: &[u64]) -> Result<()> {
        let continued = match self.options.reuse_logs {
            true => self.continue_log(&mut recovered),
            false => None,
        };
        let continues = continued.is_some();
        let mut commit = match continued {
            Some(commit) => commit,
            None => self.begin_log(recovered.last_sequence, logs.last().copied()),
        };
        // Reads do not find what is in these tables before an edit has added them.
        let has_tables = !recovered.tables.is_empty();
        let many = recovered.memtables.len() > 1 || logs.len() > MAX_LEFT_LOGS || has_tables;
        // What a process died over may not be durable: of the logs, and of the MANIFEST the record
        // of a bulk load, which stands in no log. A flush, if only of nothing, starts a fresh
        // MANIFEST.
        let has_history = recovered.last_sequence > 0;
        let in_doubt = recovered.must_be_left() || has_history && !mutated("found-loads");
        let leaves = !continues && in_doubt && !mutated("found-logs-to-tables");
        if leaves && !self.log_suspect.swap(true, Ordering::Relaxed) {
            // On a new log already: only the flush, which moves the MANIFEST past the old ones, is
            // awaited.
            commit.left_suspect_log = true;
        }
        let mut state = self.state.lock();
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
            let (nothing, _) = MemTable::new(self.order.clone(), 0);
            state.immutables.push_back(immutable(&nothing, logs.to_vec(), recovered.last_sequence));
        }
        let memtable = commit.memtable.table().clone();
        let immutables: Vec<_> =
            state.immutables.iter().rev().map(|immutable| immutable.memtable.clone()).collect();
        let _ = self.swap_view(&mut state, |view| View {
            memtable,
            immutables,
            version: view.version.clone(),
            in_tables: view.in_tables,
        });
        *self.commit.lock() = Some(commit);
        self.schedule(&mut state);
        while many && !state.immutables.is_empty() && state.error.is_none() {
            self.changed.wait(&mut state);
        }
        match &state.error {
            Some(failure) if has_tables && !state.immutables.is_empty() => {
                Err(failure.error.clone())
            }
            _ => Ok(()),
        }
    }

    /// Starts a log. On a full disk the database opens all the same: reads work, and the first
    /// write tries again. Until then the newest log found, if any, stands for the present one: the
    /// MANIFEST must not name a log that was never made.
    fn begin_log(&self, last_sequence: u64, newest_found: Option<u64>) -> Commit {
        let mut number = self.numbers.take();
        let path = self.path(&filename::log(number));
        let log = match create_log(self.env.as_ref(), &self.options, &path) {
            Ok((log, syncer)) => {
                self.log_sync.start_log(number, syncer);
                log
            }
            Err(error) => {
                self.log(format!("no log could be started: {error}"));
                self.log_suspect.store(true, Ordering::Relaxed);
                number = newest_found.unwrap_or(0);
                LogWriter::new(Box::new(NoFile(error)), 0)
            }
        };
        let (memtable, _) = MemTable::new(self.order.clone(), self.options.write_buffer_size);
        Commit {
            memtable,
            log,
            log_number: number,
            last_sequence,
            reserved_sequence: 0,
            owed_nanos: 0,
            left_suspect_log: false,
        }
    }

    /// Goes on with the newest log, if it ends clean and the Env can append to files. The memtable
    /// of what it holds is then the one to write to.
    fn continue_log(&self, recovered: &mut Recovered) -> Option<Commit> {
        let (number, end) = recovered.reusable()?;
        let file = match self.env.open_append(&self.path(&filename::log(number))) {
            Ok(file) => file,
            Err(error) => {
                self.log(format!("a new log, because the last cannot be continued: {error}"));
                return None;
            }
        };
        let memtable = recovered.memtables.pop()?;
        let (file, syncer) = crate::env::with_syncer(file);
        self.log_sync.flushed(number, memtable.last_sequence);
        self.log_sync.start_log(number, syncer);
        Some(Commit {
            memtable: memtable.writer,
            log: LogWriter::new(file, end),
            log_number: number,
            last_sequence: memtable.last_sequence,
            reserved_sequence: 0,
            owed_nanos: 0,
            left_suspect_log: false,
        })
    }

    /// Removes what earlier runs left behind. A failure leaves it to the next open.
    fn clean_up(&self, leftovers: &Leftovers) {
        let retire = |name: &String| match self.env.remove(&self.path(name)) {
            Ok(()) => self.log(format!("retired {name}, which nothing needs")),
            Err(error) => self.log(format!("could not retire {name}: {error}")),
        };
        leftovers.never_used.iter().for_each(retire);
        if leftovers.given_up.is_empty() {
            return;
        }
        let prepared =
            if mutated("fresh-manifest-first") { Ok(()) } else { self.versions.lock().prepare() };
        match prepared {
            Ok(()) => leftovers.given_up.iter().for_each(retire),
            Err(error) => self.log(format!("obsolete files are kept: {error}")),
        }
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
