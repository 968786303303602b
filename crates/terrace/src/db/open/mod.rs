//! The life of an open: lock, CURRENT, MANIFEST, files, logs; then ready. And its end, which an
//! open that fails has as well.
//!
//! # Invariants
//! 1. Nothing is changed before the lock is held, and nothing at all in a read-only open.
//! 2. The contents of the logs are in memtables when `open` returns and are flushed in the
//!    background; until then the MANIFEST still names those logs, so that a crash at any step
//!    replays them again.
//! 3. No write is acknowledged before those tables are durable, unless the log is continued, of
//!    which durability marks say that all it holds had reached the disk: a second recovery must not
//!    find new writes behind old damage, or behind data that only the system's cache still held.
//! 4. Only files that carry the database's own names and that neither the MANIFEST nor recovery
//!    needs are removed.

pub(super) mod close;
pub(super) mod continuity;
pub(super) mod own_files;
pub(super) mod recovered_tables;
pub(super) mod recovery;
mod set_aside;
mod start;
pub(super) mod unnamed_tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::comparator::KeyOrder;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::internal_key::InternalOrder;
use crate::base::locks::{AtomicBool, Mutex};
use crate::base::mutation::mutated;
use crate::env::kept_directory::KeptDirectory;
use crate::env::{Env, FileLock, LockMode, LockedFile, Logger, ReadAccess};
use crate::memtable::MemTable;
use crate::table::{BlockCache, ReadPolicy, TableOrder, TableReadSettings};
use crate::version::file_meta::ObsoleteFiles;
use crate::version::filename::{self, FileKind};
use crate::version::manifest;
use crate::version::table_set::TableSet;
use crate::version::value_reader::ValueReader;
use crate::version::version_set::{FileNumbers, ManifestSettings, VersionSet, create_database};

use crate::db::db_impl::DbImpl;
use crate::db::db_impl::files::Files;
use crate::db::db_impl::views::Views;
use crate::db::info_log;
use crate::db::open::close::close;
use crate::db::open::own_files::{Leftovers, OwnFiles};
use crate::db::open::recovery::{Recovered, Replay};
use crate::db::open::set_aside::{set_aside_logs, set_aside_tables, set_aside_values};
use crate::db::open::start::{
    announce, clean_up, discard_recovered, remove_never_used, start_writing,
};
use crate::db::options::Options;
use crate::db::view::View;
use crate::db::view::catalogue::Catalogue;

/// So many value files may be open beside the tables: this share of `max_open_files`.
const VALUE_FILES_SHARE: usize = 4;

/// Opens a database.
pub(in crate::db) fn open(dir: &Path, options: Options) -> Result<Arc<DbImpl>> {
    let mut options = options.sanitized()?;
    let order = InternalOrder::new(KeyOrder::new(options.comparator.clone()));
    let lock = prepare_directory(dir, &options)?;
    let dir = &lasting_path(options.env.as_ref(), lock.as_ref(), dir);
    let kept = KeptDirectory::over(&options.env, lock.as_ref(), dir, filename::LOCK);
    if let Some(kept) = kept {
        options.env = kept;
    }
    let env = options.env.clone();
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
    files.check_present(dir, &state)?;
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
        unnamed_tables: files.unnamed_tables(&state),
    };
    let recovered = replay.run(&logs, &state)?;
    // Before a MANIFEST of Terrace's repeats it: an open after this one is to find the same.
    state.new_log_begins = state.new_log_begins.filter(|_| recovered.begins_new_log);

    let mut leftovers = files.leftovers(&state, manifest_number);
    let torn = state.torn.take();
    let newest_log = logs.last().copied().unwrap_or(0);
    let versions =
        VersionSet::new(settings, state, manifest_number, newest_log, obsolete_files.clone());
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
    if core.files.options.read_only {
        announce(&core, &recovered);
        return Ok(core);
    }
    let tables: Vec<_> = recovered.tables.iter().map(|table| table.number).collect();
    if let Err(error) = begin(&core, recovered, &mut leftovers, torn, &logs) {
        if !mutated("failed-open") {
            // Jobs may have begun, which use what the program may take back after a failure.
            core.background.stop();
            discard_recovered(&core, tables);
            // The error of the open is told, not that of the close.
            let _ = close(&core);
        }
        return Err(error);
    }
    clean_up(&core, &leftovers);
    core.writes.join_budget();
    Ok(core)
}

/// Puts aside what is not part of the history and makes the database ready for writes.
fn begin(
    core: &Arc<DbImpl>,
    mut recovered: Recovered,
    leftovers: &mut Leftovers,
    torn: Option<String>,
    logs: &[u64],
) -> Result<()> {
    if !mutated("found-names") {
        // The names found, CURRENT above all, before any new one.
        core.files.env.sync_dir(&core.files.dir)?;
    }
    // Before anything makes durable what was found: until then the next open finds it as well.
    set_aside_logs(&core.files, &mut recovered)?;
    announce(core, &recovered);
    set_aside_values(&core.files, &leftovers.values_of_others)?;
    set_aside_tables(&core.files, &mut leftovers.never_used, torn, &recovered)?;
    // The flush may need the space.
    remove_never_used(core, leftovers);
    start_writing(core, recovered, logs)
}

/// An error where `dir` is empty: its files would be those of the working directory.
pub(in crate::db) fn require_path(dir: &Path) -> Result<()> {
    match dir.as_os_str().is_empty() {
        true => Err(Error::invalid_argument("the path of the database is empty")),
        false => Ok(()),
    }
}

/// Creates the directory where it may be, and takes the lock.
fn prepare_directory(dir: &Path, options: &Options) -> Result<Box<dyn FileLock>> {
    let env = options.env.as_ref();
    require_path(dir)?;
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

/// The path of a directory that is locked which leads there whatever becomes of the working directory
/// and of symbolic links. As it was given where no other one is known to lead to the same files.
fn lasting_path(env: &dyn Env, lock: &dyn FileLock, dir: &Path) -> PathBuf {
    let lasting = env.true_path(dir);
    let is_there = |locked: LockedFile| locked.is_at(&lasting.join(filename::LOCK));
    let is_known = lock.locked_file().is_some_and(is_there);
    if is_known && !mutated("lasting-path") { lasting } else { dir.to_owned() }
}

/// Whether there is anything of a database in a directory.
fn has_database(env: &dyn Env, dir: &Path) -> Result<bool> {
    if env.exists(&dir.join(filename::CURRENT))? {
        return Ok(true);
    }
    let is_data = |name: &String| {
        let data = [FileKind::Manifest, FileKind::Table, FileKind::Values, FileKind::Log];
        filename::parse(name).is_some_and(|(kind, _)| data.contains(&kind))
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
/// A directory that may not be read cannot be synced; another user made it, long ago. An environment
/// may have none above.
pub(in crate::db) fn sync_directories_above(env: &dyn Env, dir: &Path) -> Result<()> {
    if mutated("directories-above") {
        return Ok(());
    }
    // Not those of its name alone, which may be relative or lead through symbolic links.
    env.true_path(dir).ancestors().skip(1).try_for_each(|above| match env.sync_dir(above) {
        Err(error)
            if error.kind() == ErrorKind::NotFound
                || matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) =>
        {
            Ok(())
        }
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
        .find(|name| {
            let kind = filename::parse(name).map(|(kind, _)| kind);
            matches!(kind, Some(FileKind::Table | FileKind::Values | FileKind::Log))
        })
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

/// The parts that an open has gathered before there is a database.
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
    let cache = match (&options.block_cache, &options.memory_budget) {
        (Some(cache), _) => cache.clone(),
        (None, Some(budget)) => budget.cache().clone(),
        (None, None) => BlockCache::new(options.block_cache_size),
    };
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
        account: options.memory_account().cloned(),
    };
    let capacity = options.max_open_files - 10;
    TableSet::new(options.env.clone(), dir.to_owned(), options.read_access, settings, capacity)
}

impl Parts {
    /// The database, with everything recovered to be read, and nothing running.
    fn assemble(self, recovered: &Recovered) -> Arc<DbImpl> {
        let Parts { dir, options, order, tables, versions, obsolete_files, logger, lock } = self;
        let env = options.env.clone();
        let capacity = options.max_open_files / VALUE_FILES_SHARE;
        let values = Arc::new(ValueReader::new(env.clone(), dir.clone(), capacity));
        tables.weigh(versions.current().bytes());
        let (_, memtable) = MemTable::new(order.clone(), 0);
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
        let files = Files {
            generation: env.process_generation(),
            env,
            dir,
            order,
            cache: tables.read_settings().cache.clone(),
            tables: Arc::new(tables),
            values,
            flushed_values: Arc::default(),
            compacted_values: Arc::default(),
            numbers: versions.numbers().clone(),
            obsolete_files,
            logger,
            closed: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
            catalogue: Catalogue::default(),
            options,
        };
        Arc::new(DbImpl::new(files, Views::new(view, recovered.last_sequence), versions))
    }
}
