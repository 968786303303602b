//! LevelDB's options as Terrace's, and opening in LevelDB's manner.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use terrace::{
    BlockCache, CompactionFilter, Comparator, Compression, Db, Env, Error, ErrorKind, FilterPolicy,
    Logger, MemoryBudget, Options, ReadAccess, Result, repair,
};

use crate::memory_budget;
use crate::size;

/// `leveldb::Options`, once what its pointers lead to has been understood.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Absent: bytewise.
    pub(crate) comparator: Option<Arc<dyn Comparator>>,
    /// Absent: the system's.
    pub(crate) env: Option<Arc<dyn Env>>,
    pub(crate) logger: Option<Arc<dyn Logger>>,
    pub(crate) cache: Option<BlockCache>,
    pub(crate) filter: Option<Arc<dyn FilterPolicy>>,
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    pub(crate) paranoid_checks: bool,
    pub(crate) reuse_logs: bool,
    pub(crate) write_buffer_size: usize,
    pub(crate) max_open_files: i32,
    pub(crate) block_size: usize,
    pub(crate) block_restart_interval: i32,
    pub(crate) max_file_size: usize,
    pub(crate) compression: i32,
    /// Instead of `compression`.
    pub(crate) own_compression: Option<Compression>,
    pub(crate) zstd_dictionary: usize,
    pub(crate) read_only: bool,
    pub(crate) prepared_transactions: bool,
    pub(crate) table_filter_bits: usize,
    /// Absent: `$TERRACE_READ_ACCESS`, or automatic.
    pub(crate) read_access: Option<ReadAccess>,
    /// Absent: `$TERRACE_MAPPED_LOG`, or mapped.
    pub(crate) mapped_log: Option<bool>,
    /// Absent: `$TERRACE_MEMORY_BUDGET`, or none.
    pub(crate) memory_budget: Option<MemoryBudget>,
    /// Absent: `$TERRACE_VALUE_LOG`, or none. 0 for none.
    pub(crate) value_log: Option<usize>,
    pub(crate) compaction_filter: Option<Arc<dyn CompactionFilter>>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            comparator: None,
            env: None,
            logger: None,
            cache: None,
            filter: None,
            create_if_missing: false,
            error_if_exists: false,
            paranoid_checks: false,
            reuse_logs: false,
            write_buffer_size: 4 << 20,
            max_open_files: 1000,
            block_size: 4 << 10,
            block_restart_interval: 16,
            max_file_size: 2 << 20,
            compression: 1,
            own_compression: None,
            zstd_dictionary: 0,
            read_only: false,
            prepared_transactions: false,
            table_filter_bits: 10,
            read_access: None,
            mapped_log: None,
            memory_budget: None,
            value_log: None,
            compaction_filter: None,
        }
    }
}

impl Settings {
    /// As the engine takes them. It clips what LevelDB clips.
    pub(crate) fn to_options(&self) -> Options {
        let compression =
            if self.compression == 1 { Compression::Snappy } else { Compression::None };
        let mut options = Options::new()
            .create_if_missing(self.create_if_missing)
            .error_if_exists(self.error_if_exists)
            .paranoid_checks(self.paranoid_checks)
            .reuse_logs(self.reuse_logs)
            .write_buffer_size(self.write_buffer_size)
            .max_open_files(usize::try_from(self.max_open_files).unwrap_or(0))
            .block_size(self.block_size)
            .block_restart_interval(usize::try_from(self.block_restart_interval).unwrap_or(1))
            .max_file_size(self.max_file_size)
            .compression(self.own_compression.unwrap_or(compression))
            .zstd_dictionary(self.zstd_dictionary)
            .read_only(self.read_only)
            .prepared_transactions(self.prepared_transactions)
            .table_filter_bits(self.table_filter_bits)
            .read_access(self.read_access.unwrap_or_else(read_access_of_environment))
            .mapped_log(self.mapped_log.unwrap_or_else(mapped_log_of_environment))
            .memory_budget(self.memory_budget.clone().or_else(memory_budget::of_environment))
            .value_log(self.value_log.or_else(value_log_of_environment).filter(|&bytes| bytes > 0))
            .filter_policy(self.filter.clone())
            .logger(self.logger.clone())
            .compaction_filter(self.compaction_filter.clone())
            .block_cache(self.cache.clone());
        if let Some(comparator) = &self.comparator {
            options = options.comparator(comparator.clone());
        }
        if let Some(env) = &self.env {
            options = options.env(env.clone());
        }
        options
    }

    /// Opens a database with LevelDB's rules about its directory, and LevelDB's words for what
    /// programs look for in messages.
    pub(crate) fn open(&self, path: &Path) -> Result<Db> {
        self.check_parent(path)?;
        let path = self.directory(path);
        Db::open(path, self.to_options()).map_err(|error| in_leveldbs_words(path, error))
    }

    /// Repairs a database.
    pub(crate) fn repair(&self, path: &Path) -> Result<()> {
        repair(self.directory(path), &self.to_options()).map(drop)
    }

    /// The directory of a database. LevelDB puts a slash behind its name, which makes the root of
    /// an empty one in an environment of the program's own.
    pub(crate) fn directory<'a>(&self, path: &'a Path) -> &'a Path {
        match self.env.is_some() && path.as_os_str().is_empty() {
            true => Path::new("/"),
            false => path,
        }
    }

    /// LevelDB makes the last directory of a path only. Terrace makes all of them, which would hide
    /// a mistyped path from a program that counts on the error.
    fn check_parent(&self, path: &Path) -> Result<()> {
        if self.env.is_some() {
            return Ok(());
        }
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => match parent.try_exists() {
                Ok(true) => Ok(()),
                Ok(false) => {
                    let message = format!("{}/LOCK: No such file or directory", path.display());
                    Err(Error::not_found(message))
                }
                Err(error) => Err(Error::io("lock", &path.join("LOCK"), error)),
            },
            _ => Ok(()),
        }
    }
}

/// The value of `$TERRACE_READ_ACCESS`, for programs that know nothing of Terrace: `auto`, `mapped`
/// or `pread`. Anything else is as if it were not set.
fn read_access_of_environment() -> ReadAccess {
    match std::env::var_os("TERRACE_READ_ACCESS").as_deref().map(OsStr::as_bytes) {
        Some(b"mapped") => ReadAccess::Mapped,
        Some(b"pread") => ReadAccess::Pread,
        _ => ReadAccess::Auto,
    }
}

/// The value of `$TERRACE_MAPPED_LOG`, for programs that know nothing of Terrace: `0`, or mapped.
fn mapped_log_of_environment() -> bool {
    std::env::var_os("TERRACE_MAPPED_LOG").is_none_or(|value| value != "0")
}

/// The value of `$TERRACE_VALUE_LOG`, for programs that know nothing of Terrace: bytes, or a number
/// with K, M or G behind it. Anything else is as if it were not set.
fn value_log_of_environment() -> Option<usize> {
    size::parse(&std::env::var_os("TERRACE_VALUE_LOG")?)
}

/// Programs tell "missing" from "exists" by these texts, because both are `InvalidArgument`.
fn in_leveldbs_words(path: &Path, error: Error) -> Error {
    if error.kind() != ErrorKind::InvalidArgument {
        return error;
    }
    if error.message().ends_with("create_if_missing is not set") {
        return Error::invalid_argument(format!(
            "{}: does not exist (create_if_missing is false)",
            path.display()
        ));
    }
    if error.message().ends_with("a database exists there already") {
        return Error::invalid_argument(format!(
            "{}: exists (error_if_exists is true)",
            path.display()
        ));
    }
    error
}

/// A path as the system sees it: any bytes.
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Where LevelDB's tests put their files: `$TEST_TMPDIR`, or a directory of the user's in `/tmp`.
/// It is created.
pub(crate) fn test_directory() -> Vec<u8> {
    let chosen = std::env::var_os("TEST_TMPDIR").filter(|dir| !dir.is_empty());
    let dir = chosen.unwrap_or_else(|| format!("/tmp/leveldbtest-{}", user_id()).into());
    // It may well exist.
    let _ = std::fs::create_dir(&dir);
    dir.into_vec()
}

#[expect(unsafe_code, reason = "a call to the system")]
fn user_id() -> u32 {
    // SAFETY: always succeeds and touches no memory.
    unsafe { libc::geteuid() }
}
