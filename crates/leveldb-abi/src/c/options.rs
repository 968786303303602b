//! `leveldb_options_t`, `leveldb_readoptions_t` and `leveldb_writeoptions_t`.

use std::ffi::c_int;
use std::fmt;
use std::ptr;

use terrace::{ReadOptions, WriteOptions};

use super::components::{CCache, CComparator, CEnv, CFilterPolicy};
use super::logger::CLogger;
use super::snapshot::CSnapshot;
use crate::guard::export;
use crate::memory::{hand_out, release};
use crate::options::Settings;

/// `leveldb_options_t`. Pointers are followed when a database is opened, as in LevelDB.
pub struct COptions {
    pub(super) plain: Settings,
    comparator: *const CComparator,
    filter: *const CFilterPolicy,
    cache: *const CCache,
    logger: *const CLogger,
}

impl COptions {
    /// The options with what their pointers lead to now.
    ///
    /// # Safety
    /// The comparator, filter policy, logger and cache that were set exist, and the former three
    /// outlive the result.
    pub(super) unsafe fn settings(&self) -> Settings {
        let mut settings = self.plain.clone();
        // SAFETY: guaranteed by the caller.
        unsafe {
            settings.comparator = self.comparator.as_ref().map(|comparator| comparator.adapter());
            settings.filter = self.filter.as_ref().map(|filter| filter.adapter());
            settings.cache = self.cache.as_ref().map(|cache| cache.0.clone());
            settings.logger = self.logger.as_ref().map(|logger| logger.adapter());
        }
        settings
    }
}

impl fmt::Debug for COptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("COptions").finish_non_exhaustive()
    }
}

/// `leveldb_readoptions_t`. Checksums are always verified.
#[derive(Debug)]
pub struct CReadOptions {
    fill_cache: bool,
    snapshot: *const CSnapshot,
}

impl CReadOptions {
    /// # Safety
    /// The snapshot that was set was not released.
    pub(super) unsafe fn to_read_options(&self) -> ReadOptions {
        let options = ReadOptions::new().fill_cache(self.fill_cache).stored_values(true);
        // SAFETY: guaranteed by the caller.
        match unsafe { self.snapshot.as_ref() } {
            Some(snapshot) => options.snapshot(&snapshot.0),
            None => options,
        }
    }
}

/// `leveldb_writeoptions_t`.
#[derive(Debug)]
pub struct CWriteOptions(pub(super) WriteOptions);

/// Sets one field, if there are options.
macro_rules! set {
    ($options:ident, $($field:ident).+ = $value:expr) => {
        if let Some(options) = $options.as_mut() {
            options.$($field).+ = $value;
        }
    };
}

export! {
    /// LevelDB's defaults.
    fn leveldb_options_create() -> *mut COptions {
        hand_out(COptions {
            plain: Settings::default(),
            comparator: ptr::null(),
            filter: ptr::null(),
            cache: ptr::null(),
            logger: ptr::null(),
        })
    }

    /// Releases options.
    fn leveldb_options_destroy(options: *mut COptions) {
        drop(release(options));
    }

    /// Sets the order of keys; null: bytewise.
    fn leveldb_options_set_comparator(options: *mut COptions, comparator: *mut CComparator) {
        set!(options, comparator = comparator);
    }

    /// Sets the filter policy; null: none.
    fn leveldb_options_set_filter_policy(options: *mut COptions, policy: *mut CFilterPolicy) {
        set!(options, filter = policy);
    }

    /// Whether a missing database is created.
    fn leveldb_options_set_create_if_missing(options: *mut COptions, value: u8) {
        set!(options, plain.create_if_missing = value != 0);
    }

    /// Whether an existing database is an error.
    fn leveldb_options_set_error_if_exists(options: *mut COptions, value: u8) {
        set!(options, plain.error_if_exists = value != 0);
    }

    /// Whether every doubtful byte is an error.
    fn leveldb_options_set_paranoid_checks(options: *mut COptions, value: u8) {
        set!(options, plain.paranoid_checks = value != 0);
    }

    /// Sets the environment. The C API knows only the system's.
    fn leveldb_options_set_env(_options: *mut COptions, _env: *mut CEnv) {}

    /// Sets the logger, which `terrace_logger_create` made; null: the file `LOG`.
    fn leveldb_options_set_info_log(options: *mut COptions, logger: *mut CLogger) {
        set!(options, logger = logger);
    }

    /// Sets the bytes of a memtable.
    fn leveldb_options_set_write_buffer_size(options: *mut COptions, size: usize) {
        set!(options, plain.write_buffer_size = size);
    }

    /// Sets how many files may be open.
    fn leveldb_options_set_max_open_files(options: *mut COptions, count: c_int) {
        set!(options, plain.max_open_files = count);
    }

    /// Sets the block cache; null: one of 8 MiB.
    fn leveldb_options_set_cache(options: *mut COptions, cache: *mut CCache) {
        set!(options, cache = cache);
    }

    /// Sets the bytes of a block.
    fn leveldb_options_set_block_size(options: *mut COptions, size: usize) {
        set!(options, plain.block_size = size);
    }

    /// Sets the keys between restart points.
    fn leveldb_options_set_block_restart_interval(options: *mut COptions, count: c_int) {
        set!(options, plain.block_restart_interval = count);
    }

    /// Sets the bytes of a table.
    fn leveldb_options_set_max_file_size(options: *mut COptions, size: usize) {
        set!(options, plain.max_file_size = size);
    }

    /// Sets the compression: 0 none, 1 snappy.
    fn leveldb_options_set_compression(options: *mut COptions, compression: c_int) {
        if let Some(options) = options.as_mut() {
            options.plain.compression = compression;
            options.plain.own_compression = None;
        }
    }

    /// Reads the present, through the cache.
    fn leveldb_readoptions_create() -> *mut CReadOptions {
        hand_out(CReadOptions { fill_cache: true, snapshot: ptr::null() })
    }

    /// Releases read options.
    fn leveldb_readoptions_destroy(options: *mut CReadOptions) {
        drop(release(options));
    }

    /// Checksums are verified in any case.
    fn leveldb_readoptions_set_verify_checksums(_options: *mut CReadOptions, _value: u8) {}

    /// Whether what is read stays in the cache.
    fn leveldb_readoptions_set_fill_cache(options: *mut CReadOptions, value: u8) {
        set!(options, fill_cache = value != 0);
    }

    /// Sets the snapshot to read; null: the present.
    fn leveldb_readoptions_set_snapshot(options: *mut CReadOptions, snapshot: *const CSnapshot) {
        set!(options, snapshot = snapshot);
    }

    /// Asynchronous.
    fn leveldb_writeoptions_create() -> *mut CWriteOptions {
        hand_out(CWriteOptions(WriteOptions::new()))
    }

    /// Releases write options.
    fn leveldb_writeoptions_destroy(options: *mut CWriteOptions) {
        drop(release(options));
    }

    /// Whether a write waits for the disk.
    fn leveldb_writeoptions_set_sync(options: *mut CWriteOptions, value: u8) {
        if let Some(options) = options.as_mut() {
            options.0.sync = value != 0;
        }
    }
}
